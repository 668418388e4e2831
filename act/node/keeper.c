/* keeper.c - act-node keep|host ...: the command of a run of 'a shell' or 'a notebook' (run/shell.h). On the first node
 * it waits for sessions (session.c), of which one at a time is connected, and starts the shell for the first one, on a
 * terminal of the keeper's own: so the shell has all that a command of the run has, and stays when a connection
 * breaks.
 *
 *   session's terminal <-> session <-packets-> keeper <-> master of the shell's terminal
 *
 * A session without a terminal hands over its input and output, which the command has then, and ends with it. Another
 * one stays beside it, whose end tells that whoever started both is gone.
 *
 * As 'host' it starts its command at once, which listens at a socket (serving.h), and nobody has a terminal. Those who
 * come are connected to it, and stay for as long as they use it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/env.h"
#include "node/gpu.h"
#include "node/node.h"
#include "node/serving.h"
#include "node/terminal.h"
#include "proc/proc.h"
#include "run/shell.h"

enum {
    HELLO_S = 2,           /* for a session to say what it is */
    DRAIN_S = 5,           /* for a session to take the last output */
    GRACE_MS = 5000,       /* for the shell to end after SIGHUP */
    OWNER_MS = 20 * 1000,  /* for whoever started a command without a terminal to connect again */
    WARN_MS = 5 * 60000,   /* before an end that comes by the clock, at most */
    KEPT_MOST = 64 * 1024, /* of what was printed while nobody was connected */
    STAYING_MOST = 64,     /* who are there without a session */
    GPUS_MS = 10 * 1000    /* between two looks at what the GPUs do */
};

/* Bytes on their way that were not taken yet. */
struct passing {
    char data[TERMINAL_PIECE];
    size_t at, n;
};

struct keeper {
    struct run_shell how;
    char *const *command; /* in place of a shell; ends with NULL, and may be empty */
    int listener, signals;
    int session;               /* -1: nobody is connected with the terminal */
    int staying[STAYING_MOST]; /* others who are there */
    size_t n_staying;
    int owner;                 /* TERMINAL_OWN; -1: nobody said so, or the connection broke */
    int64_t owner_ms;          /* when that one is given up; 0: it is there, or never was */
    struct serving serving;    /* with how.serves */
    int master;                /* of the shell's terminal; -1: there is none */
    bool is_shut;              /* nobody had that open when it was looked at last */
    pid_t shell;               /* 0: it does not run */
    struct passing in, out;    /* to and from the shell */
    struct act_buf kept;       /* printed while nobody was connected */
    int64_t used_ms;           /* when something was typed or printed last, or a GPU computed */
    pid_t looker;              /* looks at the GPUs; 0: nobody does */
    int64_t looked_ms;         /* when it began last; 0: never */
    int64_t away_ms, limit_ms; /* when nobody is waited for any more, and when the time is over; 0: never */
    int64_t kill_ms;           /* when the shell is killed, which was told to end; 0: it was not */
    bool warned_idle, warned_limit;
    bool is_leaving; /* the run ends with the shell, whatever was asked for */
    int status;      /* this process ends with it; -1: it goes on */
};

/* ---- the session */

/* Somebody has come or gone. */
static void keeper_see_who_is_there(struct keeper *k)
{
    bool is_alone = k->session < 0 && k->owner < 0 && k->n_staying == 0;

    k->away_ms = is_alone && !k->how.stays ? act_now_monotonic_ms() + k->how.away_s * 1000 : 0;
}

static void keeper_hang_up(struct keeper *k)
{
    if (k->session >= 0)
        close(k->session);
    k->session = -1;
    keeper_see_who_is_there(k);
}

/* Prints a line on the terminal of the session, and in the log. */
static void keeper_say(struct keeper *k, const char *text)
{
    ACT_AUTOFREE char *line = act_sprintf("\r\nact: %s\r\n", text);

    printf(RUN_LOG_AGENT "%s\n", text);
    fflush(stdout);
    if (k->session >= 0 && k->master >= 0)
        (void)terminal_send(k->session, TERMINAL_DATA, line, strlen(line));
}

/* Ends the shell, and the run with it. */
static void keeper_end(struct keeper *k, const char *why)
{
    if (k->is_leaving || k->status >= 0)
        return;
    keeper_say(k, why);
    k->is_leaving = true;
    if (k->shell <= 0) {
        k->status = 0;
        return;
    }
    k->kill_ms = act_now_monotonic_ms() + GRACE_MS;
    kill(-k->shell, k->how.serves ? SIGTERM : SIGHUP);
    kill(-k->shell, SIGCONT);
}

/* Nobody is there any more with whom a command without a terminal goes on. */
static void keeper_lost(struct keeper *k)
{
    if (k->shell > 0 && k->master < 0 && !k->how.serves)
        keeper_end(k, "nobody is connected with the command any more");
}

static void keeper_session_ended(struct keeper *k)
{
    keeper_hang_up(k);
    keeper_lost(k);
}

/* ---- the shell */

static const char *keeper_shell_name(void)
{
    const char *own = getenv("SHELL");

    return own && *own && access(own, X_OK) == 0 ? own : access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

/* Becomes the shell, or the command. */
__attribute__((noreturn)) static void keeper_exec(char *const *command)
{
    char *shell[] = {act_strdup(keeper_shell_name()), NULL};
    char *const *argv = command[0] ? command : shell;

    proc_reset_signals();
    execvp(argv[0], argv);
    fprintf(stderr, "act: cannot start '%s': %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static struct winsize keeper_size(const struct terminal_size *size)
{
    return (struct winsize){.ws_row = size->rows, .ws_col = size->columns};
}

static void keeper_start_on_terminal(struct keeper *k, const struct terminal_hello *hello)
{
    struct winsize size = keeper_size(&hello->size);
    pid_t pid = forkpty(&k->master, NULL, NULL, &size);

    if (pid == 0) {
        setenv("TERM", hello->name[0] ? hello->name : "dumb", 1);
        keeper_exec(k->command);
    }
    k->shell = pid;
    if (pid < 0)
        return;
    (void)fcntl(k->master, F_SETFL, O_NONBLOCK);
    (void)fcntl(k->master, F_SETFD, FD_CLOEXEC);
}

static void keeper_start_on_files(struct keeper *k, const int files[3])
{
    pid_t pid = fork();

    if (pid == 0) {
        setsid();
        for (int i = 0; i < 3; i++)
            dup2(files[i], i);
        keeper_exec(k->command);
    }
    k->shell = pid;
}

/* Gives the session what the terminal still has: a process that the shell has left behind may go on printing. */
static void keeper_drain(struct keeper *k)
{
    const struct timeval patience = {.tv_sec = DRAIN_S};
    char data[TERMINAL_PIECE];
    ssize_t n;

    if (k->session < 0 || k->master < 0)
        return;
    setsockopt(k->session, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    (void)fcntl(k->session, F_SETFL, 0);
    bool taken = k->out.n == 0 || terminal_send(k->session, TERMINAL_DATA, k->out.data, k->out.n);
    while (taken && (n = read(k->master, data, sizeof(data))) > 0)
        taken = terminal_send(k->session, TERMINAL_DATA, data, (size_t)n);
    k->out = (struct passing){0};
}

static void keeper_shell_ended(struct keeper *k, int wait_status)
{
    uint8_t status = (uint8_t)child_exit_status(wait_status);

    keeper_drain(k);
    if (k->session >= 0)
        (void)terminal_send(k->session, TERMINAL_STATUS, &status, 1);
    k->shell = 0;
    k->kill_ms = 0;
    if (!k->how.stays || k->how.serves || k->is_leaving) {
        k->status = status;
        return;
    }
    if (k->master >= 0)
        close(k->master);
    k->master = -1;
    k->in = k->out = (struct passing){0};
    k->kept.len = 0;
    keeper_hang_up(k);
}

/* ---- a new session */

static void keeper_part(int fd, const char *why)
{
    (void)terminal_send(fd, TERMINAL_PARTED, why, strlen(why));
}

/* Lets a program that fills the screen draw it anew: it does so when the size has changed. */
static void keeper_redraw(const struct keeper *k, const struct terminal_size *size)
{
    struct winsize now = keeper_size(size), other = now;

    other.ws_row++;
    ioctl(k->master, TIOCSWINSZ, &other);
    ioctl(k->master, TIOCSWINSZ, &now);
}

/* Takes over a session; false: it is of no use, and the reason was said. */
static bool keeper_connect(struct keeper *k, int fd, const struct terminal_hello *hello, const int files[3])
{
    bool has_files = files[2] >= 0;

    if (hello->is_terminal == has_files || (k->shell > 0 && (has_files || k->master < 0))) {
        keeper_part(fd, "the run's command has its input and output already");
        return false;
    }
    if (k->session >= 0) {
        keeper_part(k->session, "another session has taken over");
        keeper_hang_up(k);
    }
    k->session = fd;
    keeper_see_who_is_there(k);
    k->used_ms = act_now_monotonic_ms();
    k->warned_idle = false;
    if (k->shell > 0) {
        for (size_t at = 0; at < k->kept.len; at += TERMINAL_PIECE)
            (void)terminal_send(fd, TERMINAL_DATA, k->kept.data + at,
                                k->kept.len - at < TERMINAL_PIECE ? k->kept.len - at : TERMINAL_PIECE);
        k->kept.len = 0;
        keeper_redraw(k, &hello->size);
    } else if (has_files) {
        keeper_start_on_files(k, files);
    } else {
        keeper_start_on_terminal(k, hello);
    }
    if (k->shell < 0)
        k->status = ACT_WRAPPER;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return true;
}

/* Tells whether the peer is this user, or the user of the code: in a container this process may be root. */
static bool keeper_is_ours(int fd)
{
    uid_t peer = terminal_peer(fd);
    struct stat code;

    return peer == getuid() || (peer != (uid_t)-1 && stat(".", &code) == 0 && peer == code.st_uid);
}

static void keeper_answer_look(const struct keeper *k, int fd)
{
    uint8_t runs = k->shell > 0 && !k->is_leaving;

    (void)terminal_send(fd, TERMINAL_LOOK, &runs, 1);
}

/* Takes the connection of whoever started the command in place of the one that it had, or no connection: -1. */
static void keeper_take_owner(struct keeper *k, int fd)
{
    if (k->owner >= 0)
        close(k->owner);
    k->owner = fd;
    k->owner_ms = fd < 0 ? act_now_monotonic_ms() + OWNER_MS : 0;
    keeper_see_who_is_there(k);
}

static void keeper_accept(struct keeper *k)
{
    const struct timeval patience = {.tv_sec = HELLO_S};
    int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC), files[3] = {-1, -1, -1};
    char packet[1 + sizeof(struct terminal_hello)];
    struct terminal_hello hello;
    bool is_kept = false;

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t n = keeper_is_ours(fd) ? terminal_receive(fd, packet, sizeof(packet), files, TERMINAL_FILES) : -1;
    if (n == 1 && packet[0] == TERMINAL_STAY && k->n_staying < STAYING_MOST) {
        k->staying[k->n_staying++] = fd;
        is_kept = true;
        keeper_see_who_is_there(k);
    } else if (n == 1 && packet[0] == TERMINAL_OWN) {
        keeper_take_owner(k, fd);
        is_kept = true;
    } else if (n == 1 && packet[0] == TERMINAL_LOOK) {
        keeper_answer_look(k, fd);
    } else if (n == (ssize_t)sizeof(packet) && packet[0] == TERMINAL_HELLO && !k->is_leaving) {
        memcpy(&hello, packet + 1, sizeof(hello));
        hello.name[sizeof(hello.name) - 1] = '\0';
        is_kept = keeper_connect(k, fd, &hello, files);
    }
    for (int i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
    if (!is_kept)
        close(fd);
}

/* Serves one who stays; false: it has gone. */
static bool keeper_serve(const struct keeper *k, int fd)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n > 0 && packet[0] == TERMINAL_REACH)
        serving_answer(&k->serving, fd);
    return n > 0;
}

static void keeper_serve_all(struct keeper *k, const struct pollfd *p)
{
    size_t n = k->n_staying;

    k->n_staying = 0;
    for (size_t i = 0; i < n; i++) {
        int fd = k->staying[i];
        if (!p[i].revents || keeper_serve(k, fd))
            k->staying[k->n_staying++] = fd;
        else
            close(fd);
    }
    if (k->n_staying < n)
        keeper_see_who_is_there(k);
}

/* ---- bytes */

static void keeper_used(struct keeper *k)
{
    k->used_ms = act_now_monotonic_ms();
    k->warned_idle = false;
}

static void keeper_from_session(struct keeper *k)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t n = recv(k->session, packet, sizeof(packet), 0);
    struct terminal_size size;

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            keeper_session_ended(k);
        return;
    }
    if (packet[0] == TERMINAL_DATA && k->master >= 0) {
        k->in = (struct passing){.n = (size_t)n - 1};
        memcpy(k->in.data, packet + 1, k->in.n);
        keeper_used(k);
    } else if (packet[0] == TERMINAL_SIZE && n == 1 + (ssize_t)sizeof(size) && k->master >= 0) {
        memcpy(&size, packet + 1, sizeof(size));
        struct winsize now = keeper_size(&size);
        ioctl(k->master, TIOCSWINSZ, &now);
    }
}

static void keeper_to_shell(struct keeper *k)
{
    ssize_t n = write(k->master, k->in.data + k->in.at, k->in.n - k->in.at);

    if (n > 0)
        k->in.at += (size_t)n;
    if (k->in.at == k->in.n || (n < 0 && errno != EAGAIN && errno != EINTR))
        k->in = (struct passing){0};
}

static void keeper_keep(struct keeper *k, const char *data, size_t len)
{
    act_buf_add(&k->kept, data, len);
    if (k->kept.len <= KEPT_MOST)
        return;
    size_t old = k->kept.len - KEPT_MOST;
    memmove(k->kept.data, k->kept.data + old, KEPT_MOST);
    k->kept.len = KEPT_MOST;
}

static void keeper_from_shell(struct keeper *k)
{
    ssize_t n = read(k->master, k->out.data, sizeof(k->out.data));

    if (n <= 0)
        return;
    k->out.n = (size_t)n;
    keeper_used(k);
}

static void keeper_to_session(struct keeper *k)
{
    if (k->session < 0)
        keeper_keep(k, k->out.data, k->out.n);
    else if (!terminal_send(k->session, TERMINAL_DATA, k->out.data, k->out.n) && errno == EAGAIN)
        return;
    k->out.n = 0;
}

/* ---- times */

/* Returns how long before an end that comes after all_s somebody is warned. */
static int64_t keeper_warning_ms(int64_t all_s)
{
    return all_s * 500 < WARN_MS ? all_s * 500 : WARN_MS;
}

static void keeper_warn(struct keeper *k, int64_t end_ms, const char *why, const char *what_helps)
{
    int64_t left_s = (end_ms - act_now_monotonic_ms() + 999) / 1000;
    char left[ACT_UNIT_TEXT];

    act_duration_to_text(left_s > 0 ? left_s : 0, left);
    ACT_AUTOFREE char *text = act_sprintf("%s: this shell is ended in %s%s", why, left, what_helps);
    keeper_say(k, text);
}

/* Runs in a child, which nvidia-smi may hold up. Returns what the GPUs of the run do. */
static int keeper_ask_gpus(void *arg)
{
    struct gpu_query query;
    struct watch watch;
    struct act_error err;

    (void)arg;
    if (watch_open(&watch, &err) < 0)
        return GPU_UNKNOWN;
    gpu_open(&query, &watch);
    CODEC_AUTOJSON json_t *gpus = gpu_ask(&query);
    gpu_close(&query);
    return gpu_use_of(gpus, getenv("CUDA_VISIBLE_DEVICES"));
}

/* Begins a look at the GPUs, if there was none since somebody used the shell, or that was long ago. Tells whether the
 * answer is still to come. */
static bool keeper_looks_at_gpus(struct keeper *k, int64_t now_ms)
{
    if (k->looker == 0 && (k->looked_ms <= k->used_ms || now_ms - k->looked_ms >= GPUS_MS)) {
        pid_t pid = child_start(&(struct child){.run = keeper_ask_gpus, .out_fd = -1});
        k->looker = pid > 0 ? pid : 0;
        k->looked_ms = now_ms;
    }
    return k->looker > 0;
}

/* Somebody who waits for what computes on a GPU uses the shell, although he types nothing. */
static void keeper_saw_gpus(struct keeper *k, int wait_status)
{
    k->looker = 0;
    if (child_exit_status(wait_status) == GPU_BUSY)
        keeper_used(k);
}

static void keeper_look_at_idle(struct keeper *k, int64_t now_ms)
{
    int64_t end_ms = k->used_ms + k->how.idle_s * 1000;

    if (!k->how.idle_s || k->shell <= 0 || k->master < 0 || now_ms < end_ms - keeper_warning_ms(k->how.idle_s) ||
        keeper_looks_at_gpus(k, now_ms))
        return;
    if (now_ms >= end_ms)
        return keeper_end(k,
                          "nothing was typed or printed for too long, and no GPU computes: the shell is ended, and the "
                          "run with it");
    if (k->warned_idle)
        return;
    k->warned_idle = true;
    keeper_warn(k, end_ms, "nothing was typed or printed for long, and no GPU computes", " unless you type something");
}

static void keeper_look_at_limit(struct keeper *k, int64_t now_ms)
{
    if (!k->limit_ms)
        return;
    if (now_ms >= k->limit_ms)
        return keeper_end(k, "the time is over (--time): the shell is ended, and the run with it");
    if (now_ms < k->limit_ms - keeper_warning_ms(k->how.limit_s) || k->warned_limit)
        return;
    k->warned_limit = true;
    keeper_warn(k, k->limit_ms, "the time is almost over (--time)", "");
}

static void keeper_look_at_times(struct keeper *k)
{
    int64_t now_ms = act_now_monotonic_ms();

    if (k->kill_ms && now_ms >= k->kill_ms)
        kill(-k->shell, SIGKILL);
    keeper_look_at_idle(k, now_ms);
    keeper_look_at_limit(k, now_ms);
    if (k->away_ms && now_ms >= k->away_ms)
        keeper_end(k, "nobody has come back: the run ends");
    if (k->owner_ms && now_ms >= k->owner_ms)
        keeper_lost(k);
}

/* ---- all of it */

static void keeper_take_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    if (read(k->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == k->shell)
            keeper_shell_ended(k, status);
        else if (pid == k->looker)
            keeper_saw_gpus(k, status);
    if (info.ssi_signo != SIGCHLD)
        keeper_end(k, "the run is asked to end");
}

static void keeper_round(struct keeper *k)
{
    enum { LOOK_MS = 500, FIXED = 5 };
    bool typed = k->in.n > 0, printed = k->out.n > 0;
    struct pollfd p[FIXED + STAYING_MOST] = {
        {k->signals, POLLIN, 0},
        {k->listener, POLLIN, 0},
        {k->session, (short)((typed ? 0 : POLLIN) | (printed ? POLLOUT : 0)), 0},
        /* poll() returns at once while nobody has it open, and somebody may open it again: so not in each round. */
        {k->is_shut ? -1 : k->master, (short)((printed ? 0 : POLLIN) | (typed ? POLLOUT : 0)), 0},
        {k->owner, POLLIN, 0},
    };

    for (size_t i = 0; i < k->n_staying; i++)
        p[FIXED + i] = (struct pollfd){k->staying[i], POLLIN, 0};
    (void)poll(p, FIXED + k->n_staying, printed && k->session < 0 ? 0 : LOOK_MS);
    if (p[2].revents & (POLLIN | POLLHUP | POLLERR) && !typed)
        keeper_from_session(k);
    else if (p[2].revents & (POLLHUP | POLLERR))
        keeper_session_ended(k);
    k->is_shut = p[3].revents & POLLHUP && !(p[3].revents & POLLIN);
    if (p[3].revents & POLLIN && !printed)
        keeper_from_shell(k);
    if (k->in.n > 0 && k->master >= 0)
        keeper_to_shell(k);
    if (k->out.n > 0)
        keeper_to_session(k);
    keeper_serve_all(k, p + FIXED);
    if (p[4].revents) /* it says nothing more, so this is its end */
        keeper_take_owner(k, -1);
    if (p[1].revents & POLLIN)
        keeper_accept(k);
    if (p[0].revents & POLLIN)
        keeper_take_signals(k);
    keeper_look_at_times(k);
}

static int keeper_listen(struct keeper *k, const char *run)
{
    sigset_t signals;

    sigemptyset(&signals);
    for (const int *sig = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *sig; sig++)
        sigaddset(&signals, *sig);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    k->signals = signalfd(-1, &signals, SFD_CLOEXEC);
    k->listener = terminal_listen(run);
    if (k->signals >= 0 && k->listener >= 0)
        return 0;
    fprintf(stderr, RUN_LOG_AGENT "cannot wait for a terminal: %s\n", strerror(errno));
    return ACT_WRAPPER;
}

static int keeper_start_service(struct keeper *k)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || serving_open(&k->serving) < 0) {
        fprintf(stderr, RUN_LOG_AGENT "cannot make a folder for a socket: %s\n", strerror(errno));
        return ACT_WRAPPER;
    }
    keeper_start_on_files(k, (const int[]){null, STDOUT_FILENO, STDERR_FILENO});
    close(null);
    return k->shell < 0 ? ACT_WRAPPER : 0;
}

/* On the other nodes: until the supervisor ends it, when the shell has ended. */
__attribute__((noreturn)) static void keeper_wait_elsewhere(void)
{
    for (;;)
        pause();
}

int node_keep(int argc, char **argv)
{
    struct keeper k = {.session = -1, .owner = -1, .master = -1, .status = -1};
    const char *run = getenv("ACT_RUN_ID"), *rank = getenv("RANK");
    size_t first;

    if (!run_shell_read(argv, (size_t)argc, &k.how, &first) || !run)
        return ACT_USAGE;
    if (rank && strcmp(rank, "0") != 0)
        keeper_wait_elsewhere();
    k.command = argv + first;
    k.limit_ms = k.how.limit_s ? act_now_monotonic_ms() + k.how.limit_s * 1000 : 0;
    keeper_hang_up(&k);
    env_forget_rank();
    int rc = keeper_listen(&k, run);
    if (rc == 0 && k.how.serves)
        rc = keeper_start_service(&k);
    while (rc == 0 && k.status < 0)
        keeper_round(&k);
    serving_close(&k.serving);
    return rc ? rc : k.status;
}
