/* shell.c - this terminal, or these files, as those of a command in a pod.
 *
 * A terminal is raw meanwhile: what is typed, Ctrl-C as well, is the command's. A signal that would end this program
 * comes by a descriptor, as a change of the window's size does, so that the terminal is itself again before the end.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "platform/kubernetes/kubernetes_internal.h"

enum {
    UNSENT_MAX = 256 << 10, /* no more is read while so much waits to be sent */
    READ_SIZE = 32 << 10,   /* as much as kubectl sends at once */
};

struct shell {
    struct engine *engine;
    struct kube_command command;
    bool terminal, finished;
    bool is_file, has_ended; /* the input */
    int signals;             /* descriptor; -1: there is none */
    int signal;              /* that ended it */
};

bool kubernetes_has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* ---- the terminal ---- */

static struct termios before;
static bool is_raw;

static void restore_terminal(void)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_raw = false;
}

/* Makes the terminal raw. At whichever exit it is itself again. */
static void make_raw(void)
{
    static bool registered;
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    if (!registered)
        atexit(restore_terminal);
    registered = true;
    raw = before;
    cfmakeraw(&raw);
    is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void tell_size(struct shell *s)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0)
        kube_command_resize(&s->command, size.ws_col, size.ws_row);
}

static void k8s_shell_on_signal(void *arg)
{
    struct shell *s = arg;
    struct signalfd_siginfo info;

    if (read(s->signals, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH) {
        tell_size(s);
        return;
    }
    s->signal = (int)info.ssi_signo;
    kube_command_cancel(&s->command);
}

static sigset_t k8s_shell_signals(void)
{
    static const int all[] = {SIGWINCH, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sigaddset(&set, all[i]);
    return set;
}

/* ---- input ---- */

static void pump(void *arg);

/* Waits for input while what was read can be sent; drained() goes on. */
static void wait_for_input(struct shell *s)
{
    bool full = kube_command_unsent(&s->command) >= UNSENT_MAX;

    if (s->has_ended || full)
        engine_unwatch(s->engine, STDIN_FILENO);
    else if (!s->is_file && !engine_watch(s->engine, STDIN_FILENO, false, pump, s))
        s->is_file = true;
}

static void end_input(struct shell *s)
{
    s->has_ended = true;
    if (!s->terminal)
        kube_command_end_input(&s->command);
}

static void read_input(struct shell *s)
{
    char buffer[READ_SIZE];
    ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));

    if (n > 0)
        kube_command_input(&s->command, buffer, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        end_input(s);
}

static void pump(void *arg)
{
    struct shell *s = arg;

    do
        read_input(s);
    while (s->is_file && !s->has_ended && kube_command_unsent(&s->command) < UNSENT_MAX);
    wait_for_input(s);
}

static void k8s_shell_drained(struct kube_command *command)
{
    struct shell *s = command->arg;

    wait_for_input(s);
    if (s->is_file && !s->has_ended)
        pump(s);
}

/* ---- output ---- */

static void output(struct kube_command *command, int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR) {
            kube_command_cancel(command); /* nobody reads it any more */
            return;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* ---- from the beginning to the end ---- */

static void k8s_shell_opened(struct kube_command *command)
{
    struct shell *s = command->arg;

    if (s->terminal) {
        make_raw();
        tell_size(s);
    }
    k8s_shell_drained(command);
}

static void k8s_shell_done(struct kube_command *command)
{
    ((struct shell *)command->arg)->finished = true;
}

static void k8s_shell_run(struct shell *s, struct kube *kube)
{
    sigset_t set = k8s_shell_signals(), old;

    sigprocmask(SIG_BLOCK, &set, &old);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals >= 0 && !engine_watch(s->engine, s->signals, false, k8s_shell_on_signal, s)) {
        close(s->signals);
        s->signals = -1;
    }
    if (s->signals < 0)
        sigprocmask(SIG_SETMASK, &old, NULL);
    kube_command_start(kube, &s->command);
    engine_run(s->engine, &s->finished);
    engine_unwatch(s->engine, STDIN_FILENO);
    restore_terminal();
    if (s->signals >= 0) {
        engine_unwatch(s->engine, s->signals);
        close(s->signals);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int kubernetes_run_in(struct kubernetes *k, const char *pod, const struct act_strv *command, int *out_status,
                      bool *out_not_spoken, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("run a command in the pod '%s'", pod);
    struct shell s = {.engine = services_engine(k->base.services), .terminal = kubernetes_has_terminal()};

    s.command = (struct kube_command){.path = kube_command_path(k->kube, pod, KUBERNETES_MAIN, command, s.terminal),
                                      .what = what,
                                      .ends_input = !s.terminal,
                                      .opened = k8s_shell_opened,
                                      .output = output,
                                      .drained = k8s_shell_drained,
                                      .done = k8s_shell_done,
                                      .arg = &s};
    k8s_shell_run(&s, k->kube);
    if (s.signal)
        raise(s.signal); /* as if it had come now */
    int rc = s.command.rc;
    *out_status = s.command.exit_status;
    *out_not_spoken = s.command.not_spoken;
    if (rc < 0)
        *err = s.command.error;
    kube_command_release(&s.command);
    return rc;
}
