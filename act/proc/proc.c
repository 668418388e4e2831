/* proc.c - child processes. Children start with the default signal handling and an empty signal mask; nothing
 * but what is named stays open in them. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

/* ---- run and capture ---- */

struct capture {
    pid_t pid;
    int out_fd; /* -1: stdout is not captured, or has ended */
    int end_fd; /* pidfd: readable when the child has ended */
    int64_t deadline_ms;
    size_t max_bytes;
    struct act_buf text;
};

static int spawn_error(struct act_error *err, int errnum, const char *name)
{
    if (errnum == ENOENT)
        return act_error_set(err, ACT_NOT_FOUND, "cannot start '%s': no such program", name);
    return act_error_errno(err, errnum, "cannot start '%s'", name);
}

/* Starts argv in a process group of its own. out_fd (or -1) becomes its stdout. Returns an errno. */
static int spawn(char *const *argv, int out_fd, pid_t *out_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (out_fd >= 0)
        posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);

    int rc = posix_spawnp(out_pid, argv[0], &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int time_left_ms(const struct capture *c)
{
    if (c->deadline_ms == 0)
        return -1;
    int64_t left = c->deadline_ms - act_now_monotonic_ms();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Takes what is there to read. */
static int take_output(struct capture *c, const char *name, struct act_error *err)
{
    char chunk[16384];
    ssize_t n = read(c->out_fd, chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR ? 0 : act_error_errno(err, errno, "cannot read the output of '%s'", name);
    if (n == 0) {
        close(c->out_fd);
        c->out_fd = -1;
    }
    if (c->text.len + (size_t)n > c->max_bytes)
        return act_error_set(err, ACT_FAIL, "'%s' wrote more than %zu bytes", name, c->max_bytes);
    act_buf_add(&c->text, chunk, (size_t)n);
    return 0;
}

/* Until the output has ended and the child too. A grandchild that keeps the output open is not waited for
 * once the child is gone and nothing more is there. */
static int wait_for_end(struct capture *c, const char *name, struct act_error *err)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = c->out_fd, .events = POLLIN}, {.fd = c->end_fd, .events = POLLIN}};
        int n = poll(fds, 2, time_left_ms(c));

        if (n < 0 && errno != EINTR)
            return act_error_errno(err, errno, "cannot wait for '%s'", name);
        if (n == 0)
            return act_error_set(err, ACT_TIMEOUT, "'%s' took too long", name);
        if (n > 0 && fds[0].revents) {
            int rc = take_output(c, name, err);
            if (rc < 0)
                return rc;
        } else if (n > 0 && fds[1].revents) {
            return 0;
        }
    }
}

static pid_t wait_for(pid_t pid, int *out_status)
{
    pid_t got;

    do
        got = waitpid(pid, out_status, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static int capture_all(struct capture *c, const char *name, int *out_status, struct act_error *err)
{
    int rc = 0;

    c->end_fd = pidfd_open(c->pid, 0);
    if (c->end_fd < 0)
        rc = act_error_errno(err, errno, "cannot watch '%s'", name);
    else
        rc = wait_for_end(c, name, err);
    if (rc < 0)
        kill(-c->pid, SIGKILL);
    wait_for(c->pid, out_status);
    if (c->end_fd >= 0)
        close(c->end_fd);
    return rc;
}

int proc_run(char *const *argv, int timeout_s, size_t max_bytes, char **out, int *out_status,
             struct act_error *err)
{
    struct capture c = {.out_fd = -1, .max_bytes = max_bytes};
    int ends[2] = {-1, -1};
    int rc;

    if (timeout_s > 0)
        c.deadline_ms = act_now_monotonic_ms() + (int64_t)timeout_s * 1000;
    if (out && pipe2(ends, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot start '%s'", argv[0]);
    c.out_fd = ends[0];
    int errnum = spawn(argv, ends[1], &c.pid);
    if (ends[1] >= 0)
        close(ends[1]);
    if (errnum)
        rc = spawn_error(err, errnum, argv[0]);
    else
        rc = capture_all(&c, argv[0], out_status, err);
    if (c.out_fd >= 0)
        close(c.out_fd);
    if (rc == 0 && out)
        *out = act_buf_steal(&c.text);
    act_buf_release(&c.text);
    return rc;
}

/* ---- daemon ---- */

struct daemon_report {
    pid_t pid;
    int errnum; /* 0: exec is about to happen */
};

static void send_report(int fd, int errnum)
{
    struct daemon_report report = {.pid = getpid(), .errnum = errnum};

    if (act_write_all(fd, &report, sizeof(report)) < 0)
        _exit(ACT_WRAPPER);
}

static void close_range_of(unsigned first, unsigned last)
{
    if (first <= last && close_range(first, last, 0) < 0)
        for (unsigned fd = first; fd <= last && fd < 65536; fd++)
            close((int)fd);
}

static void close_all_but(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

    if (a < 0 || b < 0)
        low = high; /* only one is kept */
    if (low > 3)
        close_range_of(3, low - 1);
    if (high > low + 1)
        close_range_of(low + 1, high - 1);
    close_range_of(high + 1, ~0U);
}

static void reset_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns an errno. */
static int redirect_to(const char *log_path)
{
    int null = open("/dev/null", O_RDONLY), log = -1;

    if (null >= 0)
        log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return errno;
    return chdir("/") < 0 ? errno : 0;
}

/* The second child: never returns. */
__attribute__((noreturn)) static void become_daemon(char *const *argv, const char *log_path, int keep_fd,
                                                    int report_fd)
{
    int errnum = redirect_to(log_path);

    if (!errnum && keep_fd >= 0 && fcntl(keep_fd, F_SETFD, 0) < 0)
        errnum = errno;
    if (!errnum) {
        close_all_but(keep_fd, report_fd);
        reset_signals();
        send_report(report_fd, 0);
        execvp(argv[0], argv);
        errnum = errno;
    }
    send_report(report_fd, errnum);
    _exit(ACT_WRAPPER);
}

/* The first child leaves at once, so that init adopts the second. */
__attribute__((noreturn)) static void fork_daemon(char *const *argv, const char *log_path, int keep_fd,
                                                  int report_fd)
{
    setsid();
    pid_t pid = fork();
    if (pid == 0)
        become_daemon(argv, log_path, keep_fd, report_fd);
    if (pid < 0)
        send_report(report_fd, errno);
    _exit(0);
}

/* The first report says the pid, a second one (or a first with an errno) that it failed; the end of the pipe
 * without one that exec succeeded. Returns an errno. */
static int read_reports(int fd, pid_t *out_pid)
{
    struct daemon_report report;
    ssize_t n;
    int errnum = EIO; /* it died before it could say anything */

    while ((n = read(fd, &report, sizeof(report))) != 0) {
        if (n == (ssize_t)sizeof(report)) {
            *out_pid = report.pid;
            errnum = report.errnum;
        } else if (n > 0 || errno != EINTR) {
            return EIO;
        }
    }
    return errnum;
}

int proc_daemon(char *const *argv, const char *log_path, int keep_fd, pid_t *out_pid, struct act_error *err)
{
    int ends[2], status;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot start '%s'", argv[0]);
    pid_t pid = fork();
    if (pid == 0)
        fork_daemon(argv, log_path, keep_fd, ends[1]);
    int errnum = pid < 0 ? errno : 0;
    close(ends[1]);
    if (pid > 0) {
        errnum = read_reports(ends[0], out_pid);
        wait_for(pid, &status);
    }
    close(ends[0]);
    return errnum ? spawn_error(err, errnum, argv[0]) : 0;
}

/* ---- find ---- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* The folder of the running program, NULL when the kernel does not say. New string. */
static char *own_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (n <= 0)
        return NULL;
    path[n] = '\0';
    return act_path_dirname(path);
}

char *proc_find_in_path(const char *name)
{
    const char *path = getenv("PATH");

    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
        size_t n = strcspn(path, ":");
        char *candidate = act_sprintf("%.*s/%s", (int)n, n ? path : ".", name);
        if (n && is_program(candidate))
            return candidate;
        free(candidate);
        path += n + (path[n] == ':');
    }
    return NULL;
}

int proc_find_sibling(const char *name, char **out, struct act_error *err)
{
    static const char *const places[] = {".", "../libexec/act"};
    ACT_AUTOFREE char *dir = own_folder();

    for (size_t i = 0; dir && i < sizeof(places) / sizeof(places[0]); i++) {
        char *candidate = act_sprintf("%s/%s/%s", dir, places[i], name);
        if (is_program(candidate)) {
            *out = candidate;
            return 0;
        }
        free(candidate);
    }
    *out = proc_find_in_path(name);
    if (*out)
        return 0;
    return act_error_set(err, ACT_NOT_FOUND,
                         "cannot find the program '%s' beside this one, in '../libexec/act' or in PATH; "
                         "install ACT again",
                         name);
}
