/* screen.c - takes the terminal over and gives it back, reads keys and signals, draws frames. */
#include "cli/screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/engine.h"
#include "proc/proc.h"

enum { LOOK_MS = 50, KEPT_MAX = 20, SAID_MAX = 64 << 10 };

static const char ENTER[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char LEAVE[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* ---- the terminal's state, which is given back however this program ends */

static struct termios before;
static struct screen *taken; /* NULL: the terminal is as it was */

static void screen_put(const char *text, size_t len)
{
    if (act_write_all(STDOUT_FILENO, text, len) < 0)
        (void)0; /* the terminal is gone, which SIGHUP tells */
}

static void screen_give_back(void)
{
    if (!taken)
        return;
    screen_put(LEAVE, strlen(LEAVE));
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    taken = NULL;
}

static void screen_take_size(struct screen *s)
{
    struct winsize w = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0 || w.ws_row == 0)
        w = (struct winsize){.ws_col = 80, .ws_row = 24};
    s->rows = w.ws_row;
    s->columns = w.ws_col;
}

static void screen_take(struct screen *s)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays: Ctrl-C and Ctrl-Z are signals, as everywhere */
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    taken = s;
    screen_put(ENTER, strlen(ENTER));
    screen_take_size(s);
    act_strv_release(&s->frame);
}

/* ---- what is written to stderr meanwhile would tear the frame */

static void screen_catch_stderr(struct screen *s)
{
    s->said = memfd_create("said", MFD_CLOEXEC);
    s->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (s->said < 0 || s->stderr_fd < 0)
        return;
    fcntl(s->said, F_SETFL, O_APPEND);
    dup2(s->said, STDERR_FILENO);
}

static void keep_line(struct screen *s, const char *line)
{
    if (s->kept.n < KEPT_MAX && !act_strv_has(&s->kept, line))
        act_strv_push(&s->kept, line);
}

char *screen_said(struct screen *s)
{
    off_t len = s->said < 0 ? 0 : lseek(s->said, 0, SEEK_END);
    off_t from = len > SAID_MAX ? len - SAID_MAX : 0;
    char *rest, *line, *last = NULL;

    if (len <= 0)
        return NULL;
    ACT_AUTOFREE char *text = act_calloc(1, (size_t)(len - from) + 1);
    ssize_t got = pread(s->said, text, (size_t)(len - from), from);
    if (got < 0 || ftruncate(s->said, 0) < 0)
        return NULL;
    for (rest = text; (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        keep_line(s, line);
        last = line;
    }
    return act_strdup(last);
}

static void release_stderr(struct screen *s)
{
    free(screen_said(s));
    if (s->stderr_fd >= 0 && s->said >= 0)
        dup2(s->stderr_fd, STDERR_FILENO);
    if (s->stderr_fd >= 0)
        close(s->stderr_fd);
    if (s->said >= 0)
        close(s->said);
    for (size_t i = 0; i < s->kept.n; i++)
        fprintf(stderr, "%s\n", s->kept.v[i]);
    act_strv_release(&s->kept);
}

/* ---- keys */

static const struct {
    const char *bytes;
    int key;
} sequences[] = {
    {"\033[A", SCREEN_UP},       {"\033OA", SCREEN_UP},         {"\033[B", SCREEN_DOWN},    {"\033OB", SCREEN_DOWN},
    {"\033[5~", SCREEN_PAGE_UP}, {"\033[6~", SCREEN_PAGE_DOWN}, {"\033[H", SCREEN_HOME},    {"\033[1~", SCREEN_HOME},
    {"\033OH", SCREEN_HOME},     {"\033[F", SCREEN_END},        {"\033[4~", SCREEN_END},    {"\033OF", SCREEN_END},
    {"\r", SCREEN_ENTER},        {"\n", SCREEN_ENTER},          {"\177", SCREEN_BACKSPACE}, {"\b", SCREEN_BACKSPACE},
    {"\027", SCREEN_ERASE_WORD}, {"\025", SCREEN_ERASE_ALL},
};

/* Returns the length of a control sequence: ESC [ or ESC O, parameters, one final character. */
static size_t sequence_len(const char *bytes, size_t len)
{
    size_t i = 2;

    if (len < 2 || (bytes[1] != '[' && bytes[1] != 'O'))
        return 1;
    while (i < len && bytes[i] >= 0x20 && bytes[i] < 0x40)
        i++;
    return i < len ? i + 1 : len;
}

size_t screen_read_key(const char *bytes, size_t len, int *out)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        size_t n = strlen(sequences[i].bytes);
        if (len >= n && memcmp(bytes, sequences[i].bytes, n) == 0) {
            *out = sequences[i].key;
            return n;
        }
    }
    if (bytes[0] != '\033') {
        *out = (unsigned char)bytes[0] < ' ' ? 0 : (unsigned char)bytes[0];
        return 1;
    }
    size_t n = sequence_len(bytes, len);
    *out = n == 1 ? SCREEN_ESCAPE : 0;
    return n;
}

static void read_keys(void *arg)
{
    struct screen *s = arg;
    char bytes[256];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
        engine_unwatch(s->engine, STDIN_FILENO);
        s->end(s->arg, SIGHUP);
        return;
    }
    for (size_t at = 0; got > 0 && at < (size_t)got;) {
        int key = 0;
        at += screen_read_key(bytes + at, (size_t)got - at, &key);
        if (key)
            s->key(s->arg, key);
    }
}

/* ---- signals */

static sigset_t screen_signals(void)
{
    static const int all[] = {SIGWINCH, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sigaddset(&set, all[i]);
    return set;
}

/* Stops, as SIGTSTP makes programs that do not catch it. Returns when SIGCONT came. */
static void screen_stop(struct screen *s)
{
    screen_give_back();
    raise(SIGSTOP);
    screen_take(s);
    s->redraw(s->arg);
}

static void screen_on_signal(void *arg)
{
    struct screen *s = arg;
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != sizeof(info))
        return;
    switch (info.ssi_signo) {
    case SIGWINCH:
        screen_take_size(s);
        screen_put("\033[2J", 4);
        act_strv_release(&s->frame);
        s->redraw(s->arg);
        break;
    case SIGTSTP:
        screen_stop(s);
        break;
    case SIGCONT: /* whoever had the terminal meanwhile may have changed it */
        screen_give_back();
        screen_take(s);
        s->redraw(s->arg);
        break;
    default:
        s->end(s->arg, (int)info.ssi_signo);
    }
}

/* ---- opening and closing */

int screen_check(const char *what, struct act_error *err)
{
    const char *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO))
        return act_error_set(err, ACT_USAGE, "there is no terminal to redraw, as the output goes elsewhere; %s", what);
    if (!isatty(STDIN_FILENO))
        return act_error_set(err, ACT_USAGE, "no key would reach it, as the input is not a terminal; %s", what);
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return act_error_set(err, ACT_USAGE, "this terminal cannot be redrawn in place (TERM is '%s'); %s",
                             term ? term : "", what);
    return 0;
}

int screen_open(struct screen *s, struct act_error *err)
{
    static bool registered;
    sigset_t set = screen_signals();

    s->said = s->stderr_fd = -1;
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0)
        return act_error_errno(err, errno, "cannot watch for signals");
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (!engine_watch(s->engine, s->signals, false, screen_on_signal, s) ||
        !engine_watch(s->engine, STDIN_FILENO, false, read_keys, s)) {
        close(s->signals);
        return act_error_set(err, ACT_FAIL, "cannot wait for keys of this terminal");
    }
    if (!registered)
        atexit(screen_give_back);
    registered = true;
    fflush(stdout);
    screen_catch_stderr(s);
    screen_take(s);
    s->on = true;
    return 0;
}

void screen_close(struct screen *s)
{
    sigset_t set = screen_signals();

    if (!s->on)
        return;
    engine_unwatch(s->engine, STDIN_FILENO);
    engine_unwatch(s->engine, s->signals);
    close(s->signals);
    screen_give_back();
    release_stderr(s);
    act_strv_release(&s->frame);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    s->on = false;
}

/* ---- frames */

void screen_draw(struct screen *s, const struct act_strv *lines)
{
    ACT_AUTO(act_buf) out = {0};

    for (size_t i = 0; i < (size_t)s->rows; i++) {
        const char *now = i < lines->n ? lines->v[i] : "", *shown = i < s->frame.n ? s->frame.v[i] : "";
        if (strcmp(now, shown) != 0)
            act_buf_addf(&out, "\033[%zu;1H%s\033[0m\033[K", i + 1, now);
    }
    if (out.len > 0)
        screen_put(out.data, out.len);
    act_strv_release(&s->frame);
    act_strv_copy(&s->frame, lines->v, lines->n);
}

/* ---- another program on the terminal */

/* Returns a signal that came while another program has the terminal; 0: none. */
static int read_signal(struct screen *s)
{
    struct signalfd_siginfo info;

    return read(s->signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* Tells whether to go on waiting for the program. */
static bool wait_on(struct screen *s, pid_t pid, int *out_status, int *out_signal)
{
    struct pollfd in = {.fd = s->signals, .events = POLLIN};
    pid_t got = waitpid(pid, out_status, WNOHANG | WUNTRACED);

    if (got == pid && WIFSTOPPED(*out_status)) {
        raise(SIGSTOP);
        kill(pid, SIGCONT);
        return true;
    }
    if (got == pid || (got < 0 && errno != EINTR))
        return false;
    int signal = poll(&in, 1, LOOK_MS) > 0 ? read_signal(s) : 0;
    if (signal == SIGTERM || signal == SIGHUP) {
        *out_signal = signal;
        kill(pid, signal);
    }
    return true;
}

/* Waits for a key, or for a signal, of which it returns the one that is to end this program; 0: none. The signals of
 * keys (Ctrl-C, Ctrl-Z) are keys here. */
static int wait_for_key(struct screen *s)
{
    struct pollfd in[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = s->signals, .events = POLLIN}};
    char ignored[64];

    for (;;) {
        if (poll(in, 2, -1) < 0 && errno != EINTR)
            return 0;
        if (in[0].revents)
            return read(STDIN_FILENO, ignored, sizeof(ignored)) > 0 ? 0 : SIGHUP; /* all of an arrow's bytes */
        int signal = in[1].revents ? read_signal(s) : 0;
        if (signal == SIGTERM || signal == SIGHUP)
            return signal;
        if (signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP)
            return 0;
    }
}

static int ask_for_key(struct screen *s)
{
    struct termios raw = before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    printf("\n-- press a key to go back --");
    fflush(stdout);
    int signal = wait_for_key(s);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    printf("\n");
    fflush(stdout);
    return signal;
}

int screen_run(struct screen *s, const char *head, char *const *argv, struct act_error *err)
{
    int status = 0, signal = 0;
    pid_t pid;

    screen_give_back();
    printf("-- %s --\n", head);
    fflush(stdout);
    int rc = proc_start(
        &(struct proc_start){
            .argv = argv, .in_fd = STDIN_FILENO, .out_fd = -1, .err_fd = s->stderr_fd, .ends_with_us = true},
        &pid, err);
    while (rc == 0 && wait_on(s, pid, &status, &signal))
        ;
    while (read_signal(s))
        ; /* Ctrl-C was for the other program, and so was the size */
    bool cut = (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) ||
               (WIFEXITED(status) && WEXITSTATUS(status) == ACT_INTERRUPTED);
    if (rc == 0 && !cut && !signal)
        signal = ask_for_key(s);
    screen_take(s);
    if (signal)
        s->end(s->arg, signal);
    s->redraw(s->arg);
    return rc;
}
