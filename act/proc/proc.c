/* proc.c - child processes. Children start with default signal handling and an empty signal mask; only the named
 * descriptors stay open in them. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "proc/pidfd.h"

/* ---- start ---- */

static pid_t proc_wait_for(pid_t pid, int *out_status)
{
    pid_t got;

    do
        got = waitpid(pid, out_status, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static int spawn_error(struct act_error *err, int errnum, const char *name)
{
    if (errnum == ENOENT)
        return act_error_set(err, ACT_NOT_FOUND, "cannot start '%s': no such program", name);
    return act_error_errno(err, errnum, "cannot start '%s'", name);
}

static void proc_set_attributes(posix_spawnattr_t *attributes, bool own_group)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(
        attributes, (short)((own_group ? POSIX_SPAWN_SETPGROUP : 0) | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
}

static void set_files(posix_spawn_file_actions_t *files, const struct proc_start *start)
{
    const int fds[] = {start->in_fd, start->out_fd, start->err_fd};

    if (start->in_fd < 0)
        posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fds[i] >= 0)
            posix_spawn_file_actions_adddup2(files, fds[i], i);
    if (start->cwd)
        posix_spawn_file_actions_addchdir_np(files, start->cwd);
}

/* Returns an errno. */
static int proc_spawn(const struct proc_start *start, char *const *env, pid_t *out_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    proc_set_attributes(&attributes, start->own_group);
    set_files(&files, start);
    int errnum = posix_spawnp(out_pid, start->argv[0], &files, &attributes, start->argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return errnum;
}

/* Becomes the program, by what may be done between fork() and exec(). Returns an errno. */
static int proc_become(const struct proc_start *start, char *const *env, pid_t parent)
{
    int null = start->in_fd < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    const int fds[] = {start->in_fd < 0 ? null : start->in_fd, start->out_fd, start->err_fd};

    prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (getppid() != parent) /* it was killed before the line above */
        _exit(ACT_WRAPPER);
    if (start->own_group)
        setpgid(0, 0);
    proc_reset_signals();
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fds[i] >= 0 && (fds[i] == i ? fcntl(i, F_SETFD, 0) : dup2(fds[i], i)) < 0)
            return errno;
    if (start->cwd && chdir(start->cwd) < 0)
        return errno;
    execvpe(start->argv[0], start->argv, env);
    return errno;
}

/* Does what posix_spawn() cannot: the child asks the kernel to be ended with this process. Returns an errno. */
static int proc_fork(const struct proc_start *start, char *const *env, pid_t *out_pid)
{
    int ends[2], errnum = 0;
    pid_t parent = getpid();
    sigset_t all, before;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of this program runs in the child */
    pid_t pid = fork();
    if (pid == 0) {
        errnum = proc_become(start, env, parent);
        _exit(act_write_all(ends[1], &errnum, sizeof(errnum)) < 0 ? ACT_WRAPPER : 0);
    }
    errnum = pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    while (pid > 0 && read(ends[0], &errnum, sizeof(errnum)) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    if (pid > 0 && errnum)
        proc_wait_for(pid, &(int){0});
    *out_pid = pid;
    return errnum;
}

int proc_start(const struct proc_start *start, pid_t *out_pid, struct act_error *err)
{
    ACT_AUTO(act_strv) env = {0};

    environment_make(start->sees, start->set, &env);
    int errnum = start->ends_with_us ? proc_fork(start, env.v, out_pid) : proc_spawn(start, env.v, out_pid);
    return errnum ? spawn_error(err, errnum, start->argv[0]) : 0;
}

int proc_start_piped(const struct proc_start *start, pid_t *out_pid, struct proc_pipes *out, struct act_error *err)
{
    struct proc_start piped = *start;
    int in[2] = {-1, -1}, from[2] = {-1, -1};
    int rc =
        pipe2(in, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 ? act_error_errno(err, errno, "cannot make a pipe") : 0;

    piped.in_fd = in[0];
    piped.out_fd = from[1];
    if (rc == 0)
        rc = proc_start(&piped, out_pid, err);
    *out = rc == 0 ? (struct proc_pipes){in[1], from[0]} : (struct proc_pipes){-1, -1};
    const int done[] = {in[0], from[1], rc < 0 ? in[1] : -1, rc < 0 ? from[0] : -1};
    for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++)
        if (done[i] >= 0)
            close(done[i]);
    return rc;
}

/* ---- run and capture ---- */

enum { LOOK_MS = 10 }; /* between looks at a child whose end poll() does not report */

struct proc_stream {
    int fd; /* -1: not captured, or has ended */
    struct act_buf text;
};

struct capture {
    const char *name;
    pid_t pid;
    bool own_group;
    int end_fd; /* of proc_pidfd_open() */
    int64_t deadline_ms;
    size_t max_bytes; /* of each stream */
    struct proc_stream streams[2];
};

static int time_left_ms(const struct capture *c)
{
    if (c->deadline_ms == 0)
        return -1;
    int64_t left = c->deadline_ms - act_now_monotonic_ms();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Returns the shorter of two timeouts of poll(), where -1 is never. */
static int sooner_ms(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Reads what is available. */
static int proc_take_output(const struct capture *c, struct proc_stream *s, struct act_error *err)
{
    char chunk[16384];
    ssize_t n = read(s->fd, chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR ? 0 : act_error_errno(err, errno, "cannot read the output of '%s'", c->name);
    if (n == 0) {
        close(s->fd);
        s->fd = -1;
    }
    if (s->text.len + (size_t)n > c->max_bytes)
        return act_error_set(err, ACT_FAIL, "'%s' wrote more than %zu bytes", c->name, c->max_bytes);
    act_buf_add(&s->text, chunk, (size_t)n);
    return 0;
}

/* Waits until both the output and the child have ended, but not for a grandchild that keeps the output open once the
 * child is gone and nothing is left to read. */
static int proc_wait_for_end(struct capture *c, struct act_error *err)
{
    for (;;) {
        /* This looks first, so that poll() sees all that a child wrote that has ended. Within one poll(), a child may
         * write and end after its output was looked at. */
        bool ended = proc_pidfd_wait(c->end_fd, 0), pollable = proc_pidfd_is_pollable(c->end_fd);
        int left_ms = time_left_ms(c), rc = 0;
        struct pollfd fds[] = {{.fd = c->streams[0].fd, .events = POLLIN},
                               {.fd = c->streams[1].fd, .events = POLLIN},
                               {.fd = pollable && !ended ? c->end_fd : -1, .events = POLLIN}};
        int n = poll(fds, 3, ended ? 0 : pollable ? left_ms : sooner_ms(left_ms, LOOK_MS));

        if (n < 0 && errno != EINTR)
            return act_error_errno(err, errno, "cannot wait for '%s'", c->name);
        if (n == 0 && ended)
            return 0;
        if (n == 0 && left_ms == 0)
            return act_error_set(err, ACT_TIMEOUT, "'%s' took too long", c->name);
        for (int i = 0; i < 2 && n > 0 && rc == 0; i++)
            if (fds[i].revents)
                rc = proc_take_output(c, &c->streams[i], err);
        if (rc < 0)
            return rc;
    }
}

static int capture_all(struct capture *c, int *out_status, struct act_error *err)
{
    int rc = 0;

    c->end_fd = proc_pidfd_open(c->pid);
    if (c->end_fd < 0)
        rc = act_error_errno(err, errno, "cannot watch '%s'", c->name);
    else
        rc = proc_wait_for_end(c, err);
    if (rc < 0)
        kill(c->own_group ? -c->pid : c->pid, SIGKILL);
    proc_wait_for(c->pid, out_status);
    if (c->end_fd >= 0)
        close(c->end_fd);
    return rc;
}

/* Starts the child and waits for its end. captured[0] and captured[1]: whether stdout and stderr are wanted. */
static int proc_run_child(struct proc_start *start, const bool captured[2], struct capture *c, int *out_status,
                          struct act_error *err)
{
    int ends[2][2] = {{-1, -1}, {-1, -1}};
    int rc = 0;

    c->name = start->argv[0];
    c->own_group = start->own_group;
    for (int i = 0; i < 2 && rc == 0; i++)
        if (captured[i] && pipe2(ends[i], O_CLOEXEC) < 0)
            rc = act_error_errno(err, errno, "cannot start '%s'", c->name);
    start->out_fd = ends[0][1];
    start->err_fd = ends[1][1];
    if (rc == 0)
        rc = proc_start(start, &c->pid, err);
    for (int i = 0; i < 2; i++) {
        c->streams[i].fd = ends[i][0];
        if (ends[i][1] >= 0)
            close(ends[i][1]);
    }
    if (rc == 0)
        rc = capture_all(c, out_status, err);
    for (int i = 0; i < 2; i++)
        if (c->streams[i].fd >= 0)
            close(c->streams[i].fd);
    return rc;
}

static int64_t deadline_in(int timeout_s)
{
    return timeout_s > 0 ? act_now_monotonic_ms() + (int64_t)timeout_s * 1000 : 0;
}

int proc_run(char *const *argv, int timeout_s, size_t max_bytes, char **out, int *out_status, struct act_error *err)
{
    const bool captured[] = {out != NULL, false};
    struct proc_start start = {.argv = argv, .in_fd = -1, .own_group = true};
    struct capture c = {.deadline_ms = deadline_in(timeout_s), .max_bytes = max_bytes};
    int rc = proc_run_child(&start, captured, &c, out_status, err);

    if (rc == 0 && out)
        *out = act_buf_steal(&c.streams[0].text);
    act_buf_release(&c.streams[0].text);
    return rc;
}

/* A file in memory need not be fed while the output is read, and "/dev/stdin" can be opened, too. */
static int open_input(const struct proc_call *call, struct act_error *err)
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd >= 0 && act_write_all(fd, call->input, call->input_len) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    int rc = act_error_errno(err, errno, "cannot hold the input of '%s'", call->argv[0]);
    if (fd >= 0)
        close(fd);
    return rc;
}

int proc_call(const struct proc_call *call, struct proc_result *result, struct act_error *err)
{
    const bool captured[] = {true, !call->talks};
    struct proc_start start = {.argv = call->argv,
                               .sees = call->sees,
                               .set = call->set,
                               .cwd = call->cwd,
                               .in_fd = call->talks ? STDIN_FILENO : -1,
                               .own_group = !call->on_terminal};
    struct capture c = {.deadline_ms = deadline_in(call->timeout_s), .max_bytes = call->max_bytes};
    int rc = 0;

    *result = (struct proc_result){0};
    if (call->input)
        start.in_fd = rc = open_input(call, err);
    if (rc < 0)
        return rc;
    rc = proc_run_child(&start, captured, &c, &result->status, err);
    if (call->input)
        close(start.in_fd);
    result->out_len = c.streams[0].text.len;
    result->err_len = c.streams[1].text.len;
    result->out = act_buf_steal(&c.streams[0].text);
    result->err = act_buf_steal(&c.streams[1].text);
    return rc;
}

void proc_result_release(struct proc_result *result)
{
    free(result->out);
    free(result->err);
    *result = (struct proc_result){0};
}

/* ---- daemon ---- */

struct daemon {
    char *const *argv, *const *env;
    const char *log_path;
    int keep_fd;
};

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

void proc_reset_signals(void)
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

/* Becomes the daemon in the second child. */
__attribute__((noreturn)) static void become_daemon(const struct daemon *d, int report_fd)
{
    int errnum = redirect_to(d->log_path);

    if (!errnum && d->keep_fd >= 0 && fcntl(d->keep_fd, F_SETFD, 0) < 0)
        errnum = errno;
    if (!errnum) {
        close_all_but(d->keep_fd, report_fd);
        proc_reset_signals();
        send_report(report_fd, 0);
        execvpe(d->argv[0], d->argv, d->env);
        errnum = errno;
    }
    send_report(report_fd, errnum);
    _exit(ACT_WRAPPER);
}

/* The first child leaves at once, so that init adopts the second. */
__attribute__((noreturn)) static void fork_daemon(const struct daemon *d, int report_fd)
{
    setsid();
    pid_t pid = fork();
    if (pid == 0)
        become_daemon(d, report_fd);
    if (pid < 0)
        send_report(report_fd, errno);
    _exit(0);
}

/* The first report has the pid; a second one, or a first with an errno, says that it failed; the end of the pipe
 * without a second one means that exec succeeded. Returns an errno. */
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

int proc_daemon(char *const *argv, enum environment_of sees, const char *log_path, int keep_fd, pid_t *out_pid,
                struct act_error *err)
{
    ACT_AUTO(act_strv) env = {0};
    int ends[2], status;

    environment_make(sees, NULL, &env);
    const struct daemon d = {.argv = argv, .env = env.v, .log_path = log_path, .keep_fd = keep_fd};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot start '%s'", argv[0]);
    pid_t pid = fork();
    if (pid == 0)
        fork_daemon(&d, ends[1]);
    int errnum = pid < 0 ? errno : 0;
    close(ends[1]);
    if (pid > 0) {
        errnum = read_reports(ends[0], out_pid);
        proc_wait_for(pid, &status);
    }
    close(ends[0]);
    return errnum ? spawn_error(err, errnum, argv[0]) : 0;
}

void proc_hide(void)
{
    const char *kept = getenv("ACT_DUMPABLE");

    if (!kept || strcmp(kept, "1") != 0)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* ---- find ---- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Returns the folder of the running program, a new string; NULL: the kernel does not say. */
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

/* Another installation may have left a program in PATH. One that cannot be started here is for other machines. */
static int proc_check_version(char *path, struct act_error *err)
{
    enum { SECONDS = 10, OUTPUT_MAX = 4096 };
    ACT_AUTOFREE char *said = NULL;
    char *argv[] = {path, (char[]){"--version"}, NULL};
    struct act_error ignored;
    int status;

    if (proc_run(argv, SECONDS, OUTPUT_MAX, &said, &status, &ignored) < 0 || !said ||
        strstr(said, " " ACT_VERSION "\n"))
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "'%s' is not of version " ACT_VERSION
                         ", as this program is, but says '%.*s'; install ACT again, all of one version",
                         path, (int)strcspn(said, "\n"), said);
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
    ACT_AUTOFREE char *installed = proc_find_in_path(name);
    int rc = installed ? proc_check_version(installed, err) : 0;
    *out = rc == 0 ? installed : NULL;
    if (*out)
        installed = NULL;
    if (rc < 0 || *out)
        return rc;
    return act_error_set(err, ACT_NOT_FOUND,
                         "cannot find the program '%s' beside this one, in '../libexec/act' or in PATH; "
                         "install ACT again",
                         name);
}
