#include "node/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "node/node.h"
#include "node/processes.h"
#include "proc/proc.h"
#include "run/run.h"

/* ---- wait ---- */

int watch_open(struct watch *w, struct act_error *err)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        sigaddset(&set, taken[i]);
    *w = (struct watch){.extra_fd = -1};
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return act_error_errno(err, errno, "cannot block signals");
    w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return w->signal_fd < 0 ? act_error_errno(err, errno, "cannot wait for signals") : 0;
}

/* Returns WATCH_TIMEOUT if there is no signal after all. */
static enum watch_event take_signal(const struct watch *w, int *out_signal)
{
    struct signalfd_siginfo info;

    if (read(w->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return WATCH_TIMEOUT;
    *out_signal = (int)info.ssi_signo;
    return WATCH_SIGNAL;
}

enum watch_event watch_wait(struct watch *w, int64_t timeout_ms, int *out_signal)
{
    struct pollfd fds[] = {
        {.fd = w->signal_fd, .events = POLLIN},
        {.fd = w->extra_fd, .events = POLLIN},
    };

    *out_signal = 0;
    if (poll(fds, 2, timeout_ms < 0 ? -1 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms) <= 0)
        return WATCH_TIMEOUT;
    if (fds[1].revents && w->extra && !w->extra(w->extra_arg))
        return WATCH_GONE;
    if (!fds[0].revents)
        return WATCH_EXTRA;
    enum watch_event event = take_signal(w, out_signal);
    w->told = w->told || *out_signal == SIGTERM || *out_signal == SIGINT;
    return event;
}

/* ---- start ---- */

/* The limits that programs get back. */
static struct {
    int resource;
    struct rlimit limit;
} kept[2];
static size_t n_kept;

rlim_t child_own_limit(int resource, rlim_t wanted)
{
    struct rlimit limit;

    if (n_kept == sizeof(kept) / sizeof(kept[0]) || getrlimit(resource, &limit) < 0)
        return 0;
    kept[n_kept].resource = resource;
    kept[n_kept++].limit = limit;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    return setrlimit(resource, &limit) < 0 ? kept[n_kept - 1].limit.rlim_cur : limit.rlim_cur;
}

static void give_back_limits(void)
{
    for (size_t i = 0; i < n_kept; i++)
        setrlimit(kept[i].resource, &kept[i].limit);
}

/* Returns an errno. */
static int redirect(const struct child *child)
{
    int in = child->in_fd ? child->in_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (in < 0 || dup2(in, STDIN_FILENO) < 0)
        return errno;
    if (child->out_fd >= 0 && (dup2(child->out_fd, STDOUT_FILENO) < 0 || dup2(child->out_fd, STDERR_FILENO) < 0))
        return errno;
    return child->cwd && chdir(child->cwd) < 0 ? errno : 0;
}

/* Runs in the child. Returns an errno, and only if exec or a step before it failed. */
static int child_enter_group(const struct child *child, pid_t parent, int report_fd)
{
    if (!child->guarded)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(ACT_WRAPPER);
    setpgid(0, 0);
    proc_reset_signals();
    int errnum = redirect(child);
    if (errnum)
        return errnum;
    if (child->run) {
        close(report_fd);
        _exit(child->run(child->arg));
    }
    give_back_limits();
    for (char *const *variable = child->set; variable && *variable; variable++)
        putenv(*variable);
    execvp(child->argv[0], child->exec_argv);
    return errno;
}

/* Starts in the cgroup: writing to cgroup.procs would wait for all processors of the machine. The caller has one
 * thread, so nothing in the C library needs fork()'s handling. */
static pid_t fork_into(int cgroup)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned long long)cgroup};

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

pid_t child_start(const struct child *child)
{
    int ends[2], errnum = 0, status;
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = child->cgroup ? fork_into(child->cgroup) : fork();
    if (pid == 0) {
        errnum = child_enter_group(child, parent, ends[1]);
        _exit(act_write_all(ends[1], &errnum, sizeof(errnum)) < 0 ? ACT_WRAPPER : 0);
    }
    int fork_errno = errno;
    close(ends[1]);
    while (pid > 0 && read(ends[0], &errnum, sizeof(errnum)) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    if (pid > 0 && errnum) {
        waitpid(pid, &status, 0);
        pid = -1;
    }
    errno = pid < 0 && !errnum ? fork_errno : errnum;
    return pid;
}

/* ---- end ---- */

int child_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int child_wait(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

bool child_reap(pid_t pid, int *out_status)
{
    bool found = false;
    pid_t got;
    int status;

    while ((got = waitpid(-1, &status, WNOHANG)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0 && got == pid) {
            *out_status = status;
            found = true;
        }
    return found;
}

void child_signal_all(int sig)
{
    ACT_AUTO(processes) list = {0};

    processes_list_own(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].ours)
            kill(list.v[i].pid, sig);
}

bool child_mask_has(const char *hex, int sig)
{
    unsigned long long mask = strtoull(hex, NULL, 16);

    return sig > 0 && sig <= 64 && (mask >> (sig - 1) & 1);
}

static bool catches(pid_t pid, int sig)
{
    char text[4096];

    processes_read(pid, "status", text, sizeof(text));
    const char *mask = strstr(text, "\nSigCgt:");
    return mask && child_mask_has(mask + strlen("\nSigCgt:"), sig);
}

int child_signal_catchers(int sig)
{
    ACT_AUTO(processes) list = {0};
    int told = 0;

    processes_list_own(&list);
    for (size_t i = 0; i < list.n; i++)
        told += list.v[i].ours && catches(list.v[i].pid, sig) && kill(list.v[i].pid, sig) == 0;
    return told;
}

static bool child_has_children(void)
{
    ACT_AUTO(processes) list = {0};
    bool any = false;
    int status;

    child_reap(-1, &status);
    if (waitpid(-1, &status, WNOHANG) != 0)
        return false;
    processes_list_own(&list);
    for (size_t i = 0; i < list.n; i++)
        any = any || list.v[i].ours;
    return any;
}

/* A process that hangs in a driver or a file system does not even end by SIGKILL: it is left after some seconds, so
 * that it holds neither the run nor its GPUs. */
void child_kill_all(void)
{
    enum { LEAVE_AFTER_MS = 10000, LONGEST_MS = 50 };
    int64_t until_ms = act_now_monotonic_ms() + LEAVE_AFTER_MS;

    for (int pause_ms = 1; child_has_children(); pause_ms = pause_ms < LONGEST_MS ? 2 * pause_ms : LONGEST_MS) {
        child_signal_all(SIGKILL);
        if (act_now_monotonic_ms() >= until_ms) {
            node_say("a process that cannot be killed is left behind: it hangs in a driver or a file system");
            return;
        }
        poll(NULL, 0, pause_ms);
    }
}

void child_end_all(struct watch *w, int64_t grace_ms)
{
    int64_t deadline = act_now_monotonic_ms() + grace_ms;
    int signal;

    if (!child_has_children())
        return;
    if (grace_ms > 0)
        child_signal_all(SIGTERM);
    while (child_has_children()) {
        int64_t left = deadline - act_now_monotonic_ms();
        if (left <= 0 || watch_wait(w, left, &signal) == WATCH_GONE)
            break;
    }
    child_kill_all();
}
