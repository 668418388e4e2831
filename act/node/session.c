/* session.c - act-node session RUN [look|stay|service]: connects its terminal, or its input and output, with the keeper
 * of a run of 'a shell' on this machine, and exits with the status of the shell there; or looks whether that is there;
 * or stays with it until its own input ends; or asks it for the token of what the run of 'a notebook' serves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "node/node.h"
#include "node/serving.h"
#include "node/terminal.h"
#include "run/shell.h"

enum { TRIES = 100, PAUSE_MS = 100, GOODBYE_MS = 5000, LOOK_S = 5 };

struct session {
    int keeper, signals;
    bool is_terminal;
    struct termios before; /* how the terminal was */
    /* Input that the keeper has not taken yet. It takes none while the shell does not read, and the shell may wait
     * until this program has shown what it printed. */
    char typed[TERMINAL_PIECE];
    size_t n_typed;
    bool is_resized;
};

/* ---- the connection */

static volatile sig_atomic_t session_was_interrupted;

static void session_interrupt(int sig)
{
    (void)sig;
    session_was_interrupted = 1;
}

/* Waits for the keeper, which comes when the node is prepared. */
static int session_connect(const char *run)
{
    int fd = -1;

    for (int i = 0; i < TRIES && !session_was_interrupted && (fd = terminal_connect(run)) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return fd;
}

static struct terminal_size session_size(void)
{
    struct winsize size = {0};

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return (struct terminal_size){.rows = size.ws_row, .columns = size.ws_col};
}

/* Says what this is; without a terminal, with what the command is to have. */
static bool session_hello(const struct session *s)
{
    const int files[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    const char *name = getenv("TERM");
    struct terminal_hello hello = {.is_terminal = s->is_terminal, .size = session_size()};

    snprintf(hello.name, sizeof(hello.name), "%s", name ? name : "");
    return terminal_send_files(s->keeper, TERMINAL_HELLO, &hello, sizeof(hello), files, s->is_terminal ? 0 : 3);
}

/* ---- the terminal */

static void session_begin(struct session *s)
{
    sigset_t signals;

    sigemptyset(&signals);
    for (const int *sig = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0}; *sig; sig++)
        sigaddset(&signals, *sig);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    s->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (!s->is_terminal || tcgetattr(STDIN_FILENO, &s->before) < 0)
        return;
    struct termios raw = s->before;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static int session_end(const struct session *s, int status)
{
    if (s->is_terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    return status;
}

/* ---- what comes: each returns the exit status; -1: it goes on */

/* Sends what is to be sent, as far as the keeper takes it. */
static void session_send(struct session *s)
{
    struct terminal_size size = session_size();

    if (s->is_resized && terminal_send(s->keeper, TERMINAL_SIZE, &size, sizeof(size)))
        s->is_resized = false;
    if (s->n_typed > 0 && (terminal_send(s->keeper, TERMINAL_DATA, s->typed, s->n_typed) || errno != EAGAIN))
        s->n_typed = 0;
}

static int session_on_signal(struct session *s)
{
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return -1;
    if (info.ssi_signo != SIGWINCH)
        return 128 + (int)info.ssi_signo;
    s->is_resized = true;
    return -1;
}

static int session_on_typed(struct session *s)
{
    ssize_t n = read(STDIN_FILENO, s->typed, sizeof(s->typed));

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return 128 + SIGHUP;
    s->n_typed = n > 0 ? (size_t)n : 0;
    return -1;
}

/* The keeper goes with the shell: whoever looks then finds that there is none. */
static int session_on_status(const struct session *s, uint8_t status)
{
    struct pollfd p = {.fd = s->keeper};

    (void)poll(&p, 1, GOODBYE_MS);
    return status;
}

static int session_on_keeper(const struct session *s)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t n = recv(s->keeper, packet, sizeof(packet), 0);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return -1;
    if (n <= 0)
        return 128 + SIGTERM;
    switch (packet[0]) {
    case TERMINAL_DATA:
        return act_write_all(STDOUT_FILENO, packet + 1, (size_t)n - 1) < 0 ? 128 + SIGHUP : -1;
    case TERMINAL_STATUS:
        return session_on_status(s, n > 1 ? (uint8_t)packet[1] : 0);
    case TERMINAL_PARTED:
        fprintf(stderr, "%sact: %.*s\r\n", s->is_terminal ? "\r\n" : "", (int)n - 1, packet + 1);
        return RUN_SHELL_PARTED;
    default:
        return -1;
    }
}

static int session_round(struct session *s)
{
    enum { SIGNALS, KEEPER, TYPED, SHOWN };
    bool waits = s->n_typed > 0 || s->is_resized;
    struct pollfd p[] = {
        [SIGNALS] = {s->signals, POLLIN, 0},
        [KEEPER] = {s->keeper, (short)(POLLIN | (waits ? POLLOUT : 0)), 0},
        [TYPED] = {s->is_terminal && s->n_typed == 0 ? STDIN_FILENO : -1, POLLIN, 0},
        [SHOWN] = {STDOUT_FILENO, 0, 0}, /* which nobody reads any more when the connection is broken */
    };
    int status = -1;

    if (poll(p, sizeof(p) / sizeof(p[0]), -1) < 0)
        return errno == EINTR ? -1 : ACT_WRAPPER;
    if (p[SIGNALS].revents)
        status = session_on_signal(s);
    if (status < 0 && p[KEEPER].revents & (POLLIN | POLLHUP | POLLERR))
        status = session_on_keeper(s);
    else if (status < 0 && p[SHOWN].revents & (POLLERR | POLLHUP))
        status = 128 + SIGHUP;
    if (status < 0 && p[TYPED].revents)
        status = session_on_typed(s);
    session_send(s);
    return status;
}

/* Tells by the exit status whether the shell runs. */
static int session_look(const char *run)
{
    const struct timeval patience = {.tv_sec = LOOK_S};
    int keeper = terminal_connect(run);
    char packet[2] = "";

    if (keeper < 0)
        return RUN_SHELL_GONE;
    setsockopt(keeper, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    bool answered = terminal_send(keeper, TERMINAL_LOOK, "", 0) && recv(keeper, packet, sizeof(packet), 0) == 2;
    close(keeper);
    return answered && packet[1] ? 0 : RUN_SHELL_GONE;
}

/* A command without a terminal has the input of its session, whose end says nothing of who started it; and srun and
 * the like notice only when they print something that nobody reads it any more. So the end of this input says it. */
static int session_stay(const char *run)
{
    int keeper = session_connect(run);
    struct pollfd p[] = {{keeper, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    char data[TERMINAL_PIECE];

    if (keeper < 0 || !terminal_send(keeper, TERMINAL_OWN, "", 0))
        return RUN_SHELL_NOT_YET;
    do
        (void)poll(p, sizeof(p) / sizeof(p[0]), -1);
    while (!session_was_interrupted && !p[0].revents && (!p[1].revents || read(STDIN_FILENO, data, sizeof(data)) > 0));
    close(keeper);
    return 0;
}

/* Prints the token of what the run serves, as soon as it does. */
static int session_ask_service(const char *run)
{
    char token[SERVING_TOKEN + 1] = "";
    int fd = -1;

    for (int i = 0; i < TRIES && !session_was_interrupted && fd < 0; i++) {
        int keeper = serving_stay(run);
        fd = serving_connect(keeper, token);
        if (keeper >= 0)
            close(keeper);
        if (fd < 0)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    if (fd < 0)
        return session_was_interrupted ? RUN_SHELL_INTERRUPTED : RUN_SHELL_NOT_YET;
    close(fd);
    return printf("%s\n", token) < 0 || fflush(stdout) < 0 ? ACT_WRAPPER : 0;
}

static const struct {
    const char *word;
    int (*does)(const char *run);
} session_words[] = {{"look", session_look}, {"stay", session_stay}, {"service", session_ask_service}};

/* Does what the word says. */
static int session_do(const char *run, const char *word)
{
    for (size_t i = 0; i < sizeof(session_words) / sizeof(session_words[0]); i++)
        if (strcmp(word, session_words[i].word) == 0)
            return session_words[i].does(run);
    return ACT_USAGE;
}

int node_session(int argc, char **argv)
{
    struct session s = {.is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    int status = -1;

    if (argc != 2 && argc != 3)
        return ACT_USAGE;
    signal(SIGINT, session_interrupt);
    if (argc == 3)
        return session_do(argv[1], argv[2]);
    s.keeper = session_connect(argv[1]);
    if (s.keeper < 0)
        return session_was_interrupted ? RUN_SHELL_INTERRUPTED : RUN_SHELL_NOT_YET;
    session_begin(&s);
    if (!session_hello(&s) || fcntl(s.keeper, F_SETFL, O_NONBLOCK) < 0)
        status = RUN_SHELL_NOT_YET;
    while (status < 0)
        status = session_round(&s);
    return session_end(&s, status);
}
