/* proc_test.c - children: output, status, time limit, daemons. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "proc/pidfd.h"
#include "proc/proc.h"

static struct act_strv proc_test_shell_words(const char *script)
{
    struct act_strv argv = {0};

    act_strv_push(&argv, "sh");
    act_strv_push(&argv, "-c");
    act_strv_push(&argv, script);
    return argv;
}

static int proc_test_run_shell(const char *script, int timeout_s, size_t max, char **out, int *status,
                               struct act_error *e)
{
    ACT_AUTO(act_strv) argv = proc_test_shell_words(script);

    return proc_run(argv.v, timeout_s, max, out, status, e);
}

TEST(test_run)
{
    static const struct {
        const char *script;
        int timeout_s;
        size_t max;
        int rc;
        const char *out;
        int exit_status, signal;
    } rows[] = {
        {"echo hi", 0, 100, 0, "hi\n", 0, 0},
        {"printf 12345", 0, 5, 0, "12345", 0, 0},
        {"printf 123456", 0, 5, -ACT_FAIL, NULL, 0, 0},
        {"while :; do echo y; done", 0, 1000, -ACT_FAIL, NULL, 0, 0},
        {"exit 7", 60, 100, 0, "", 7, 0},
        {"kill -KILL $$", 60, 100, 0, "", 0, SIGKILL},
        {"sleep 1000 & sleep 1000", 1, 100, -ACT_TIMEOUT, NULL, 0, 0},
        {"cat", 60, 100, 0, "", 0, 0},                                    /* input is empty */
        {"sleep 1000 & echo $! > $P; echo up", 60, 100, 0, "up\n", 0, 0}, /* a grandchild keeps stdout open */
        {"trap '' TERM; sleep 1000", 1, 100, -ACT_TIMEOUT, NULL, 0, 0},
    };

    ACT_AUTOFREE char *pid_path = act_path_join(dir, "grandchild");
    setenv("P", pid_path, 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *out = NULL;
        err = (struct act_error){0};
        int status = -1;
        int rc = proc_test_run_shell(rows[i].script, rows[i].timeout_s, rows[i].max, &out, &status, &err);
        if (rc != rows[i].rc)
            fail_msg("%s: %d %s", rows[i].script, rc, act_error_text(&err));
        if (rc < 0) {
            assert_null(out);
            continue;
        }
        assert_string_equal(out, rows[i].out);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, rows[i].signal);
        assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 0, rows[i].exit_status);
    }
    ACT_AUTOFREE char *text = NULL;
    assert_ok(act_file_read(pid_path, 100, &text, NULL, &err), err);
    assert_int_equal(kill(atoi(text), SIGKILL), 0);
}

static bool is_slow; /* poll() is interrupted by others between its looks at the output and at the end of a child */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (!is_slow || n != 3 || fds[2].fd < 0)
        return __real_poll(fds, n, timeout_ms);
    is_slow = false;
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = 0;
    return __real_poll(&fds[2], 1, -1);
}

TEST(what_a_child_writes_before_it_ends_is_never_missed)
{
    ACT_AUTOFREE char *out = NULL;
    int status = -1;

    is_slow = true;
    assert_ok(proc_test_run_shell("sleep 0.1; echo late", 60, 100, &out, &status, &err), err);
    bool was_slow = !is_slow;
    is_slow = false;
    assert_string_equal(out, "late\n");
    assert_int_equal(status, 0);
    int self = proc_pidfd_open(getpid());
    bool is_pollable = proc_pidfd_is_pollable(self);
    close(self);
    if (!is_pollable) /* then nobody polls the end of a child */
        skip();
    assert_true(was_slow);
}

/* Input, both streams, another folder, and of the environment what programs of its kind see. */
TEST(test_call)
{
    static const char script[] = "cat; cat </dev/stdin; pwd >&2; echo $A$HOME$B$SLURM_JOB_ID >&2; exit 3";
    ACT_AUTO(act_strv) argv = proc_test_shell_words(script), env = {0};
    struct proc_result result;

    act_strv_push(&env, "A=b");
    act_strv_push(&env, "HOME=/h");
    setenv("HOME", "/home", 1);
    setenv("B", "c", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    const struct proc_call call = {.argv = argv.v,
                                   .sees = OF_RUN,
                                   .set = env.v,
                                   .cwd = "/usr",
                                   .input = "x\0y",
                                   .input_len = 3,
                                   .timeout_s = 60,
                                   .max_bytes = 100};
    assert_ok(proc_call(&call, &result, &err), err);
    assert_int_equal(WEXITSTATUS(result.status), 3);
    assert_int_equal(result.out_len, 6); /* what is opened anew begins anew */
    assert_memory_equal(result.out, "x\0yx\0y", 6);
    assert_string_equal(result.err, "/usr\nb/hc\n");
    proc_result_release(&result);
}

TEST(test_call_fails)
{
    static const struct {
        const char *script;
        int timeout_s, rc;
    } rows[] = {
        {"echo begun >&2; sleep 1000", 1, -ACT_TIMEOUT},
        {"while :; do echo much >&2; done", 60, -ACT_FAIL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv argv = proc_test_shell_words(rows[i].script);
        const struct proc_call call = {.argv = argv.v, .timeout_s = rows[i].timeout_s, .max_bytes = 100000};
        struct proc_result result;
        assert_int_equal(proc_call(&call, &result, &err), rows[i].rc);
        assert_true(result.err_len > 0); /* what it said until then */
        proc_result_release(&result);
        act_strv_release(&argv);
    }
}

/* Puts a file in the place of a descriptor; returns the one that was there. */
static int put_in_place(const char *path, int flags, int fd)
{
    int kept = dup(fd), file = open(path, flags, 0600);

    assert_true(kept >= 0 && file >= 0);
    assert_int_equal(dup2(file, fd), fd);
    close(file);
    return kept;
}

TEST(test_call_talks)
{
    ACT_AUTOFREE char *in = act_sprintf("%s/in", dir), *said = act_sprintf("%s/said", dir), *text = NULL;
    struct act_strv argv = proc_test_shell_words("cat; echo question >&2");
    ACT_AUTO(proc_result) result = {0};
    size_t len = 0;

    assert_ok(act_file_write(in, "answer", 6, 0600, &err), err);
    int input = put_in_place(in, O_RDONLY, STDIN_FILENO),
        errors = put_in_place(said, O_WRONLY | O_CREAT, STDERR_FILENO);
    int rc = proc_call(&(struct proc_call){.argv = argv.v, .timeout_s = PATIENCE_S, .max_bytes = 100, .talks = true},
                       &result, &err);
    dup2(input, STDIN_FILENO);
    dup2(errors, STDERR_FILENO);
    close(input);
    close(errors);
    assert_ok(rc, err);
    assert_string_equal(result.out, "answer");
    assert_string_equal(result.err, "");
    assert_ok(act_file_read(said, 100, &text, &len, &err), err);
    assert_string_equal(text, "question\n");
    act_strv_release(&argv);
}

TEST(test_run_missing)
{
    char name[] = "no-such-program-xyz";
    char *argv[] = {name, NULL};
    char *out = NULL;
    int status;

    assert_fails(proc_run(argv, 1, 10, &out, &status, &err), err, ACT_NOT_FOUND, "'no-such-program-xyz'");
    assert_null(out);
}

/* Signals that this process ignores or blocks must not be so in the child. */
TEST(test_run_signals)
{
    ACT_AUTOFREE char *out = NULL;
    sigset_t set, old;
    int status;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &old);
    assert_ok(proc_test_run_shell("kill -TERM $$; echo not reached", PATIENCE_S, 100, &out, &status, &err), err);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, SIG_DFL);
    assert_true(WIFSIGNALED(status));
    assert_string_equal(out, "");
}

static char *wait_file(const char *path)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 3) {
        char *text = NULL;
        if (act_file_read(path, 10000, &text, NULL, NULL) == 0 && strstr(text, "end\n"))
            return text;
        free(text);
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    fail_msg("the daemon does not write '%s'", path);
    return NULL;
}

TEST(test_daemon)
{
    ACT_AUTOFREE char *log = act_path_join(dir, "log");
    ACT_AUTOFREE char *lock = act_path_join(dir, "lock");
    ACT_AUTO(act_strv) argv = {0};
    pid_t pid = 0;

    setenv("SLURM_JOB_ID", "7", 1); /* which a run does not see */
    int fd = act_lock(lock, false, &err);
    assert_true(fd >= 0);
    int other = open("/dev/null", O_RDONLY); /* not close-on-exec: must not reach the daemon */
    act_strv_push(&argv, "sh");
    act_strv_push(&argv, "-c");
    act_strv_pushf(
        &argv,
        "pwd; readlink /proc/self/fd/0; echo to stderr$SLURM_JOB_ID >&2; ls /proc/$$/fd | tr '\\n' ' '; echo; "
        "echo pid $$ sid $(cut -d' ' -f6 /proc/$$/stat); test -e /proc/$$/fd/%d && echo kept; "
        "test -e /proc/$$/fd/%d && echo leaked; echo end; read x < %s/fifo",
        fd, other, dir);
    ACT_AUTOFREE char *fifo = act_path_join(dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_ok(proc_daemon(argv.v, OF_RUN, log, fd, &pid, &err), err);
    close(fd);
    close(other);

    ACT_AUTOFREE char *text = wait_file(log);
    ACT_AUTOFREE char *own = act_sprintf("pid %d sid ", (int)pid);
    assert_non_null(strstr(text, "/\n/dev/null\nto stderr\n"));
    assert_non_null(strstr(text, own));
    assert_non_null(strstr(text, "kept\n"));
    assert_null(strstr(text, "leaked\n"));
    assert_int_equal(act_lock(lock, false, &err), -ACT_TEMPORARY); /* it holds the lock */
    assert_int_equal(waitpid(pid, NULL, 0), -1);                   /* it is not our child */
    int gate = open(fifo, O_WRONLY | O_CLOEXEC);
    close(gate);
    fd = act_lock(lock, true, &err); /* free when it has ended */
    assert_true(fd >= 0);
    close(fd);
}

TEST(test_daemon_fails)
{
    ACT_AUTOFREE char *log = act_path_join(dir, "log2");
    ACT_AUTOFREE char *bad_log = act_path_join(dir, "none/log");
    char missing[] = "/no/such/program", sh[] = "true";
    pid_t pid;

    assert_fails(proc_daemon((char *[]){missing, NULL}, OF_RUN, log, -1, &pid, &err), err, ACT_NOT_FOUND,
                 "'/no/such/program'");
    assert_int_equal(proc_daemon((char *[]){dir, NULL}, OF_RUN, log, -1, &pid, &err), -ACT_DENIED);
    assert_true(proc_daemon((char *[]){sh, NULL}, OF_RUN, bad_log, -1, &pid, &err) < 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies */
}

/* Starts a child that holds the pipe open, and waits to be killed. */
static void proc_test_start_and_wait(int out_fd)
{
    ACT_AUTO(act_strv) argv = proc_test_shell_words("echo up; exec sleep 1000");
    pid_t pid;

    if (proc_start(
            &(struct proc_start){
                .argv = argv.v, .in_fd = -1, .out_fd = out_fd, .err_fd = -1, .own_group = true, .ends_with_us = true},
            &pid, &err) < 0)
        _exit(1);
    close(out_fd);
    for (;;)
        pause();
}

TEST(test_ends_with_us)
{
    char missing[] = "/no/such/program", said[8] = "";
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0)
        proc_test_start_and_wait(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], said, sizeof(said)), 3);
    assert_string_equal(said, "up\n");
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_int_equal(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, PATIENCE_MS), 1);
    assert_int_equal(read(ends[0], said, sizeof(said)), 0);
    close(ends[0]);

    const struct proc_start start = {
        .argv = (char *[]){missing, NULL}, .in_fd = -1, .out_fd = -1, .err_fd = -1, .ends_with_us = true};
    assert_fails(proc_start(&start, &pid, &err), err, ACT_NOT_FOUND, "'/no/such/program'");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies */
}

/* In a process of its own, because it holds from then on. */
static int hide_and_look(void)
{
    char sh[] = "sh", option[] = "-c", owner[] = "test -O /proc/self/environ && echo free";
    ACT_AUTOFREE char *out = NULL;
    int status;

    setenv("ACT_DUMPABLE", "1", 1);
    proc_hide();
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
        return 1;
    setenv("ACT_DUMPABLE", "0", 1);
    proc_hide();
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 2;
    if (proc_run((char *[]){sh, option, owner, NULL}, 60, 100, &out, &status, &err) < 0)
        return 3;
    return strcmp(out, "free\n") == 0 ? 0 : 4; /* what it starts is not hidden */
}

TEST(test_hide)
{
    int status;

    pid_t pid = fork();
    if (pid == 0)
        _exit(hide_and_look());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
}

TEST(test_find)
{
    ACT_AUTOFREE char *old = act_strdup(getenv("PATH"));
    static const char same[] = "#!/bin/sh\necho only-here " ACT_VERSION "\n";
    ACT_AUTOFREE char *program = act_path_join(dir, "only-here");
    ACT_AUTOFREE char *self = NULL;
    ACT_AUTOFREE char *found = NULL;

    assert_ok(act_file_write(program, "#!/bin/sh\n", 10, 0755, &err), err);
    assert_ok(proc_find_sibling("proc_test", &self, &err), err);
    assert_int_equal(proc_find_sibling("only-here", &found, &err), -ACT_NOT_FOUND);
    setenv("PATH", dir, 1);
    assert_fails(proc_find_sibling("only-here", &found, &err), err, ACT_CONFIG, "is not of version " ACT_VERSION);
    assert_ok(act_file_write(program, same, strlen(same), 0755, &err), err);
    assert_ok(proc_find_sibling("only-here", &found, &err), err);
    assert_string_equal(found, program);
    assert_int_equal(chmod(program, 0644), 0);
    assert_null(proc_find_in_path("only-here"));
    setenv("PATH", old, 1);
}

TEST_MAIN(make_dir, remove_dir)
