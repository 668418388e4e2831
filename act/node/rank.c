/* rank.c - act-node rank RUN_DIR: one process of the run. Prepares the node, starts the command with its
 * arguments as they are, passes signals on, tells the supervisor how it ended. */
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
#include "codec/json.h"
#include "node/child.h"
#include "node/container.h"
#include "node/env.h"
#include "node/link.h"
#include "node/metrics.h"
#include "node/node.h"
#include "node/place.h"
#include "node/prepare.h"
#include "node/record.h"

enum {
    LEFTOVER_GRACE_MS = 5000,
    SEND_MS = 60000,
    GOODBYE_MS = 5000,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127
};

struct rank {
    struct node node;
    struct rank_place place;
    struct watch watch;
    struct link link;
    struct record record;
    pid_t child;        /* what runs at the moment, or 0 */
    int64_t kill_at_ms; /* then it is killed; 0: never */
    int log_fd;
};

/* ---- the supervisor ---- */

/* The supervisor is gone: nothing of this run may go on. */
__attribute__((noreturn)) static void end_with_supervisor(void)
{
    node_say("the supervisor is gone: the rank ends");
    child_kill_all();
    exit(ACT_WRAPPER);
}

static void tell_supervisor(struct rank *r, const json_t *message)
{
    if (!link_send(&r->link, message) || !link_drain(&r->link, SEND_MS))
        end_with_supervisor();
}

static void send_record(struct rank *r)
{
    ACT_AUTOFREE char *name = run_rank_log(r->place.rank);
    ACT_AUTOFREE char *log = node_path(&r->node, name);

    if (record_failed(&r->record) && r->record.lines.n == 0)
        record_tail(log, &r->record.lines);
    CODEC_AUTOJSON json_t *message = record_to_json(&r->record);
    json_object_set_new(message, "type", json_string("record"));
    tell_supervisor(r, message);
}

/* Slurm, mpirun and the supervisor may all say it: a command is told once. */
static void stop(struct rank *r, const char *who)
{
    node_say("told to end by %s", who);
    if (r->child > 0 && !r->record.stopped)
        kill(r->child, SIGTERM);
    r->record.stopped = true;
}

/* A warning is for those who know it: others would die of it. */
static void warn(const struct rank *r, int sig)
{
    int told = child_signal_catchers(sig);

    node_say("signal %d passed on to %d process(es)", sig, told);
    dprintf(r->log_fd, "act: %s: SIG%s passed on to %d process(es) that handle it\n",
            sig == SIGUSR1 ? "the time limit is near" : "a signal came", sigabbrev_np(sig), told);
}

static void on_message(struct rank *r, const json_t *message)
{
    const char *type = codec_json_str(message, "type", "");
    int sig = (int)codec_json_int(message, "signal", 0);

    if (strcmp(type, "stop") == 0) {
        r->kill_at_ms = act_now_monotonic_ms() + codec_json_int(message, "grace_ms", 0);
        stop(r, "the supervisor");
    } else if (strcmp(type, "signal") == 0 && (sig == SIGUSR1 || sig == SIGUSR2)) {
        warn(r, sig);
    }
}

/* Fits struct watch. */
static bool read_messages(void *arg)
{
    struct rank *r = arg;
    bool more = link_fill(&r->link);
    json_t *message;
    int got;

    while ((got = link_take(&r->link, &message)) > 0) {
        on_message(r, message);
        json_decref(message);
    }
    return more && got == 0;
}

/* ---- wait ---- */

static void on_signal(struct rank *r, int sig)
{
    if (sig == SIGTERM || sig == SIGINT)
        stop(r, sig == SIGTERM ? "SIGTERM" : "SIGINT");
    else if (sig == SIGUSR1 || sig == SIGUSR2)
        warn(r, sig);
    else if (r->child > 0 && sig != SIGCHLD)
        kill(r->child, sig);
}

/* Waits for one event; returns the signal that came, or 0. */
static int wait_event(struct rank *r)
{
    int64_t left = r->kill_at_ms ? r->kill_at_ms - act_now_monotonic_ms() : -1;
    int sig = 0;

    if (r->kill_at_ms && left <= 0) {
        node_say("time is up: all processes are killed");
        r->kill_at_ms = 0;
        child_signal_all(SIGKILL);
        left = -1;
    }
    if (watch_wait(&r->watch, left, &sig) == WATCH_GONE)
        end_with_supervisor();
    on_signal(r, sig);
    return sig;
}

/* Until the child has ended; returns its wait status. */
static int wait_child(struct rank *r, pid_t pid)
{
    int status = 0;

    r->child = pid;
    while (wait_event(r) != SIGCHLD || !child_reap(pid, &status))
        continue;
    r->child = 0;
    return status;
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
    snprintf(r->record.reason, sizeof(r->record.reason), "%.*s", (int)sizeof(r->record.reason) - 1, reason);
    dprintf(r->log_fd, "act: %s\n", reason);
    node_say("%s", reason);
    send_record(r);
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
    node_say("the node is kept for a look; abort the run to release it");
    for (bool stopped = r->record.stopped; !stopped; stopped = r->record.stopped)
        wait_event(r);
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
    send_record(r);
    node_say("command started, process %d", (int)pid);

    int status = wait_child(r, pid);
    r->record.ended_unix_ns = act_now_unix_ns();
    r->record.exit_status = child_exit_status(status);
    r->record.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->record.kept =
        !r->record.stopped && (r->record.exit_status ? spec->sleep_if_fail : spec->sleep_if_succeed);
    send_record(r);
    node_say("command ended with status %d", r->record.exit_status);
    if (r->record.kept)
        keep_node(r);
    return r->record.exit_status;
}

/* ---- all of it ---- */

static int connect_to_supervisor(struct rank *r, bool *out_stop, struct act_error *err)
{
    CODEC_AUTOJSON json_t *hello =
        json_pack("{s:i, s:s, s:i}", "rank", r->place.rank, "node", r->node.name, "pid", (int)getpid());
    int rc = link_connect(&r->link, hello, out_stop, err);

    if (rc < 0) {
        node_say("%s", err->text); /* and where mpirun's output goes, for the supervisor cannot be told */
        return act_error_prefix(err, "rank %d on node '%s'", r->place.rank, r->node.name);
    }
    r->watch.extra_fd = r->link.fd;
    r->watch.extra = read_messages;
    r->watch.extra_arg = r;
    return 0;
}

static int join_run(struct rank *r, const char *dir, bool *out_stop, struct act_error *err)
{
    static char who[32]; /* the log keeps it */
    int rc = watch_open(&r->watch, err);

    if (rc == 0)
        rc = node_open(&r->node, dir, who, err);
    if (rc == 0)
        rc = env_find_place(&r->node, &r->place, err);
    if (rc < 0)
        return rc;
    snprintf(who, sizeof(who), "rank %d", r->place.rank);
    r->record.rank = r->place.rank;
    snprintf(r->record.node, sizeof(r->record.node), "%s", r->node.name);
    return connect_to_supervisor(r, out_stop, err);
}

static int open_place(struct rank *r, struct act_error *err)
{
    ACT_AUTOFREE char *log = run_rank_log(r->place.rank);

    r->log_fd = node_open_log(&r->node, log);
    if (r->log_fd < 0)
        return act_error_errno(err, errno, "cannot open '%s'", log);
    return place_open(&r->node, &r->place, node_attempt(), err);
}

static int work(struct rank *r)
{
    struct act_error err;
    int exit_status;

    if (open_place(r, &err) < 0) {
        fail(r, ACT_WRAPPER, err.text);
        return ACT_WRAPPER;
    }
    env_set(&r->node, &r->place);
    if (r->place.local_rank == 0)
        metrics_start(&r->node);
    exit_status = prepare(r);
    return exit_status ? exit_status : run_command(r);
}

static void say_goodbye(struct rank *r)
{
    CODEC_AUTOJSON json_t *bye = json_pack("{s:s}", "type", "bye");

    tell_supervisor(r, bye);
    r->watch.extra_fd = -1;
    link_finish(&r->link, GOODBYE_MS);
}

int node_rank(int argc, char **argv)
{
    struct rank r = {.log_fd = -1, .link.fd = -1};
    struct act_error err;
    int exit_status = 128 + SIGTERM;
    bool stopping = false;

    if (argc != 2)
        return ACT_USAGE;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (join_run(&r, argv[1], &stopping, &err) < 0) {
        fprintf(stderr, "act-node: %s\n", err.text);
        return ACT_WRAPPER;
    }
    if (!stopping)
        exit_status = work(&r);
    child_end_all(&r.watch, LEFTOVER_GRACE_MS);
    place_close(&r.node, &r.place);
    say_goodbye(&r);
    /* The record tells. mpirun and srun would end the other ranks when one of them fails; the supervisor gives them time
     * to save, and no more than they need. */
    if (r.place.world_size > 1)
        exit_status = 0;
    record_release(&r.record);
    node_release(&r.node);
    if (r.log_fd >= 0)
        close(r.log_fd);
    return exit_status;
}
