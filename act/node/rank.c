/* rank.c - act-node rank RUN_DIR: one process of the run. Prepares the node, starts the command with its
 * arguments as they are, passes signals on, records how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "node/child.h"
#include "node/container.h"
#include "node/env.h"
#include "node/metrics.h"
#include "node/node.h"
#include "node/place.h"
#include "node/prepare.h"
#include "node/record.h"

enum { LEFTOVER_GRACE_MS = 5000, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct rank {
    struct node node;
    struct rank_place place;
    struct watch watch;
    struct record record;
    int log_fd;
};

static void save_record(const struct rank *r)
{
    struct act_error err;

    if (record_write(&r->node, &r->record, &err) < 0)
        node_say("%s", err.text);
}

/* The supervisor is gone: nothing of this run may go on. */
__attribute__((noreturn)) static void end_with_supervisor(void)
{
    node_say("the supervisor is gone: the rank ends");
    child_kill_all();
    exit(ACT_WRAPPER);
}

/* Hands a signal on to the child, if there is one. */
static void pass_on(struct rank *r, pid_t pid, int sig)
{
    if (sig == SIGTERM || sig == SIGINT) {
        node_say("told to end by signal %d", sig);
        r->record.stopped = true;
    }
    if (pid > 0)
        kill(pid, sig);
}

/* Until the child has ended; returns its wait status. */
static int wait_child(struct rank *r, pid_t pid)
{
    int sig, status = 0;

    for (;;) {
        switch (watch_wait(&r->watch, -1, &sig)) {
        case WATCH_GUARD_GONE:
            end_with_supervisor();
        case WATCH_SIGNAL:
            if (sig != SIGCHLD)
                pass_on(r, pid, sig);
            else if (child_reap(pid, &status))
                return status;
            break;
        default:
            break;
        }
    }
}

/* ---- preparation ---- */

/* What the failing step said, where the user looks first. */
static void show_preparation(const struct rank *r)
{
    enum { SHOWN_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *name = prepare_log(&r->node);
    ACT_AUTOFREE char *path = node_path(&r->node, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END), from = end > SHOWN_BYTES ? end - SHOWN_BYTES : 0;
    char *text = act_alloc(SHOWN_BYTES);
    ssize_t n = act_pread_all(fd, text, SHOWN_BYTES, from);
    if (n > 0 && act_write_all(r->log_fd, text, (size_t)n) < 0)
        node_say("cannot write the rank's log: %m");
    free(text);
    close(fd);
}

static void fail(struct rank *r, int exit_status, const char *reason)
{
    r->record.ended_unix_ns = act_now_unix_ns();
    r->record.exit_status = exit_status;
    snprintf(r->record.reason, sizeof(r->record.reason), "%s", reason);
    dprintf(r->log_fd, "act: %s\n", reason);
    node_say("%s", reason);
    save_record(r);
}

static bool is_stopping(const struct rank *r)
{
    ACT_AUTOFREE char *path = node_path(&r->node, NODE_FILE_STOP);

    return access(path, F_OK) == 0;
}

static int prepare(struct rank *r)
{
    char reason[320], text[400];
    int exit_status = 0, status;
    pid_t pid = child_start(&(struct child){.run = prepare_node, .arg = &r->node, .out_fd = -1});

    if (pid < 0) {
        snprintf(text, sizeof(text), "cannot start the preparation: %m");
        fail(r, ACT_WRAPPER, text);
        return ACT_WRAPPER;
    }
    status = wait_child(r, pid);
    if (status == 0 && !r->record.stopped)
        return 0;
    exit_status = child_exit_status(status);
    if (exit_status == 0) /* done, but told to end */
        exit_status = 128 + SIGTERM;
    if (!prepare_result(&r->node, &status, reason, sizeof(reason)) || !reason[0])
        snprintf(reason, sizeof(reason), "it ended with status %d", exit_status);
    if (!r->record.stopped)
        show_preparation(r);
    snprintf(text, sizeof(text), "preparation failed: %s", reason);
    fail(r, exit_status, text);
    return exit_status;
}

/* ---- the command ---- */

static int fail_to_start(struct rank *r, int errnum)
{
    const char *name = r->node.spec.argv.v[0];
    ACT_AUTOFREE char *in_code = act_path_join(r->node.code, name);
    bool there = access(in_code, F_OK) == 0;
    const char *hint = "";
    char text[400];

    if (errnum == ENOENT && there)
        hint = strchr(name, '/') ? "; the file is there, but not the interpreter that its first line names"
                                 : "; it is in the code, but not in PATH: write './' before it";
    snprintf(text, sizeof(text), "cannot start '%.200s': %s%s", name, strerror(errnum), hint);
    fail(r, errnum == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, text);
    return r->record.exit_status;
}

/* sleep_if_fail, sleep_if_succeed: the node stays for a look until the run is aborted. */
static void keep_node(struct rank *r)
{
    int sig;

    node_say("the node is kept for a look; abort the run to release it");
    for (;;) {
        enum watch_event event = watch_wait(&r->watch, -1, &sig);
        if (event == WATCH_GUARD_GONE)
            end_with_supervisor();
        if (sig == SIGTERM || sig == SIGINT)
            return;
    }
}

static int run_command(struct rank *r)
{
    const struct run_spec *spec = &r->node.spec;
    struct act_strv words = {0};
    struct act_error err;

    if (container_wrap(&r->node, (const char *const *)spec->argv.v, &words, &err) < 0) {
        fail(r, ACT_WRAPPER, err.text);
        act_strv_release(&words);
        return ACT_WRAPPER;
    }
    pid_t pid = child_start(
        &(struct child){.argv = (const char *const *)words.v, .cwd = r->node.code, .out_fd = r->log_fd});
    int start_errno = errno;

    act_strv_release(&words);
    errno = start_errno;
    if (pid < 0)
        return fail_to_start(r, errno);
    r->record.pid = pid;
    r->record.started_unix_ns = act_now_unix_ns();
    save_record(r);
    node_say("command started, process %d", (int)pid);

    int status = wait_child(r, pid);
    r->record.ended_unix_ns = act_now_unix_ns();
    r->record.exit_status = child_exit_status(status);
    r->record.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->record.kept =
        !r->record.stopped && (r->record.exit_status ? spec->sleep_if_fail : spec->sleep_if_succeed);
    save_record(r);
    node_say("command ended with status %d", r->record.exit_status);
    if (r->record.kept)
        keep_node(r);
    return r->record.exit_status;
}

/* ---- all of it ---- */

/* Below a supervisor: die with it. Whoever starts a rank otherwise watches over it himself. */
static int watch_supervisor(struct rank *r, struct act_error *err)
{
    int64_t pid;
    const char *text = getenv(ENV_SUPERVISOR);

    if (text && act_int_from_text(text, &pid) && !watch_guard(&r->watch, (pid_t)pid))
        return act_error_set(err, ACT_FAIL, "the supervisor is gone");
    unsetenv(ENV_SUPERVISOR);
    return 0;
}

static int open_rank(struct rank *r, const char *dir, struct act_error *err)
{
    static char who[32]; /* the log keeps it */
    ACT_AUTOFREE char *log = NULL;
    int rc = watch_open(&r->watch, err);

    if (rc == 0)
        rc = watch_supervisor(r, err);
    if (rc == 0)
        rc = node_open(&r->node, dir, who, err);
    if (rc == 0)
        rc = env_find_place(&r->node, &r->place, err);
    if (rc == 0)
        rc = place_open(&r->node, &r->place, node_attempt(), err);
    if (rc < 0)
        return rc;
    snprintf(who, sizeof(who), "rank %d", r->place.rank);
    r->record.rank = r->place.rank;
    snprintf(r->record.node, sizeof(r->record.node), "%s", r->node.name);
    log = run_rank_log(r->place.rank);
    r->log_fd = node_open_log(&r->node, log);
    return r->log_fd < 0 ? act_error_errno(err, errno, "cannot open '%s'", log) : 0;
}

int node_rank(int argc, char **argv)
{
    struct rank r = {.log_fd = -1};
    struct act_error err;

    if (argc != 2)
        return ACT_USAGE;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (open_rank(&r, argv[1], &err) < 0) {
        node_say("%s", err.text);
        return ACT_WRAPPER;
    }
    save_record(&r); /* from now on this rank is lost when it does not say how it ended */
    env_set(&r.node, &r.place);
    if (r.place.local_rank == 0)
        metrics_start(&r.node);
    int exit_status = is_stopping(&r) ? 128 + SIGTERM : prepare(&r);
    if (exit_status == 0)
        exit_status = run_command(&r);
    child_end_all(&r.watch, LEFTOVER_GRACE_MS);
    place_close(&r.node, &r.place);
    /* Below a supervisor the record tells. mpirun gives the other ranks one second when one of them fails,
     * and always lets it pass; the supervisor gives them time to save, and no more than they need. */
    if (r.watch.guard_fd >= 0 && r.place.world_size > 1)
        exit_status = 0;
    node_release(&r.node);
    close(r.log_fd);
    return exit_status;
}
