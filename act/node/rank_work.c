#include "node/rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "node/container.h"
#include "node/environment.h"
#include "node/feed.h"
#include "node/memory.h"
#include "node/prepare.h"
#include "node/setup.h"
#include "node/software.h"
#include "run/shell.h"
#include "run/starter.h"

enum { LEFTOVER_GRACE_MS = 5000, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Slurm, mpirun and the supervisor may all send it: the command gets it once. */
void rank_stop(struct rank *r, const char *who)
{
    node_say("told to end by %s", who);
    if (r->child > 0 && !r->record.stopped)
        kill(r->child, SIGTERM);
    if (!r->record.stopped && r->grace_ms >= 0)
        r->kill_at_ms = act_now_monotonic_ms() + r->grace_ms;
    r->record.stopped = true;
}

/* A warning goes only to processes that handle it: others would die of it. */
void rank_warn(const struct rank *r, int sig)
{
    int told = child_signal_catchers(sig);

    node_say("signal %d passed on to %d process(es)", sig, told);
    dprintf(r->log_fd, "act: %s: SIG%s passed on to %d process(es) that handle it\n",
            sig == SIGUSR1 ? "the time limit is near" : "a signal came", sigabbrev_np(sig), told);
}

/* ---- wait ---- */

static void rank_work_on_signal(struct rank *r, int sig)
{
    if (sig == SIGTERM || sig == SIGINT)
        rank_stop(r, sig == SIGTERM ? "SIGTERM" : "SIGINT");
    else if (sig == SIGUSR1 || sig == SIGUSR2)
        rank_warn(r, sig);
    else if (r->child > 0 && sig != SIGCHLD)
        kill(r->child, sig);
}

/* Returns the earlier of two times, where 0 is never. */
static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms && (!b_ms || a_ms < b_ms) ? a_ms : b_ms;
}

/* Returns the milliseconds until at_ms; -1: for ever, if that is 0. */
static int64_t time_left(int64_t at_ms)
{
    int64_t left = at_ms - act_now_monotonic_ms();

    return at_ms ? left > 0 ? left : 0 : -1;
}

/* Tells what the preparation does: a log gets a line where that is something new, not for each step of it. */
static void look_at_preparation(struct rank *r)
{
    enum { LOOK_MS = 1000 };
    char doing[sizeof(r->record.doing)];

    r->look_at_ms = act_now_monotonic_ms() + LOOK_MS;
    prepare_doing(&r->node, doing, sizeof(doing));
    if (strcmp(doing, r->record.doing) == 0)
        return;
    if (strncmp(doing, r->record.doing, strcspn(doing, ":")) != 0)
        dprintf(r->log_fd, "act: %.*s\n", (int)strcspn(doing, ":"), doing);
    memcpy(r->record.doing, doing, sizeof(doing));
    r->report(r);
}

/* Waits for one event; returns the signal that came, or 0. */
static int rank_work_wait_event(struct rank *r)
{
    int sig = 0;

    if (r->kill_at_ms && act_now_monotonic_ms() >= r->kill_at_ms) {
        node_say("time is up: all processes are killed");
        r->kill_at_ms = 0;
        child_signal_all(SIGKILL);
    }
    if (r->tick_at_ms && act_now_monotonic_ms() >= r->tick_at_ms)
        r->tick(r);
    if (r->room.look_at_ms && act_now_monotonic_ms() >= r->room.look_at_ms)
        room_look(&r->room);
    if (r->look_at_ms && act_now_monotonic_ms() >= r->look_at_ms)
        look_at_preparation(r);
    int64_t next_ms = earlier(earlier(r->look_at_ms, r->room.look_at_ms), earlier(r->kill_at_ms, r->tick_at_ms));
    if (watch_wait(&r->watch, time_left(next_ms), &sig) == WATCH_GONE)
        r->gone(r);
    rank_work_on_signal(r, sig);
    return sig;
}

/* Waits until the child has ended, and returns its wait status. */
static int wait_child(struct rank *r, pid_t pid)
{
    int status = 0;

    r->child = pid;
    while (rank_work_wait_event(r) != SIGCHLD || !child_reap(pid, &status))
        continue;
    r->child = 0;
    return status;
}

/* ---- preparation ---- */

/* Copies the failed step's output to where the user looks first, but for the reason if that is its last line: it
 * follows. */
static void show_preparation(const struct rank *r, const char *reason)
{
    enum { SHOWN_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *name = prepare_log(&r->node);
    ACT_AUTOFREE char *path = node_path(&r->node, name);
    ACT_AUTOFREE char *text = act_alloc(SHOWN_BYTES);
    ACT_AUTOFREE char *last = act_sprintf(RUN_LOG_AGENT "%s\n", reason);
    size_t len = node_read_tail(path, text, SHOWN_BYTES), n = strlen(last);

    if (len >= n && memcmp(text + len - n, last, n) == 0)
        len -= n;
    if (len > 0 && (dprintf(r->log_fd, "%s\n", RUN_LOG_PREPARATION) < 0 || act_write_all(r->log_fd, text, len) < 0))
        node_say("cannot write the rank's log: %m");
}

void rank_fail(struct rank *r, int exit_status, const char *reason)
{
    r->record.ended_unix_ns = act_now_unix_ns();
    r->record.exit_status = exit_status;
    snprintf(r->record.reason, sizeof(r->record.reason), "%.*s", (int)sizeof(r->record.reason) - 1, reason);
    dprintf(r->log_fd, "act: %s\n", reason);
    node_say("%s", reason);
    r->report(r);
}

static int rank_work_prepare(struct rank *r)
{
    char reason[370], text[400];
    int exit_status = 0, status;
    pid_t pid = child_start(&(struct child){.run = prepare_node, .arg = &r->node, .out_fd = -1});

    if (pid < 0) {
        snprintf(text, sizeof(text), "cannot start the preparation: %m");
        rank_fail(r, ACT_WRAPPER, text);
        return ACT_WRAPPER;
    }
    look_at_preparation(r);
    status = wait_child(r, pid);
    look_at_preparation(r);
    r->look_at_ms = 0;
    r->record.doing[0] = '\0';
    if (status == 0 && !r->record.stopped)
        return 0;
    exit_status = child_exit_status(status);
    if (exit_status == 0) /* done, but told to end */
        exit_status = 128 + SIGTERM;
    if (!prepare_result(&r->node, &status, reason, sizeof(reason)) || !reason[0])
        snprintf(reason, sizeof(reason), "it ended with status %d", exit_status);
    if (!r->record.stopped)
        show_preparation(r, reason);
    snprintf(text, sizeof(text), "preparation failed: %s", reason);
    rank_fail(r, exit_status, text);
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
        hint = !strchr(name, '/') ? "; it is in the code, but not in PATH: write './' before it"
               : node_has_windows_lines(in_code)
                   ? "; " NODE_WINDOWS_LINES
                   : "; the file is there, but not the interpreter that its first line names";
    snprintf(text, sizeof(text), "cannot start '%.200s': %s%s", name, strerror(errnum), hint);
    rank_fail(r, errnum == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, text);
    return r->record.exit_status;
}

/* Keeps the node for inspection until the run is aborted (sleep_if_fail, sleep_if_succeed). */
static void keep_node(struct rank *r)
{
    node_say("the node is kept for a look; abort the run to release it");
    for (bool stopped = r->record.stopped; !stopped; stopped = r->record.stopped)
        rank_work_wait_event(r);
}

/* Only the order of the nodes matters: the names are never resolved. All nodes write the same. */
static int write_starter_hosts(const struct run_spec *spec, const char *path, struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};

    for (int i = 0; i < spec->nodes; i++)
        act_buf_addf(&text, "node%d slots=%d\n", i, spec->started_per_node);
    return act_file_write(path, text.data, text.len, 0644, err);
}

/* Appends the words of the command. A starter (run/starter.h) gets what it needs to know on this node. */
static int rank_work_words(const struct node *node, const struct rank_place *place, struct act_strv *out,
                           struct act_error *err)
{
    const struct run_spec *spec = &node->spec;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    ACT_AUTOFREE char *hosts = node_path(node, RUN_DIR_TEMP "/starter_hosts");
    struct run_starter starter;

    act_strv_copy(out, spec->argv.v, spec->argv.n);
    ACT_AUTOFREE char *own = run_shell_is(&spec->argv) ? node_own_program() : NULL;
    if (own)
        act_str_replace(&out->v[0], own);
    if (!spec->started_per_node || !run_starter_find(out, true, &starter))
        return 0;
    run_starter_fill(&starter,
                     &(struct run_starter_place){.nodes = spec->nodes,
                                                 .per_node = spec->started_per_node,
                                                 .node_rank = place->node_rank,
                                                 .address = getenv("MASTER_ADDR"),
                                                 .port = getenv("MASTER_PORT"),
                                                 .id = spec->id,
                                                 .hosts = hosts,
                                                 .narrowed = visible && *visible},
                     out);
    for (size_t i = starter.first; i < starter.first + out->n - spec->argv.n; i++)
        node_say("the command gets %s", out->v[i]);
    return spec->nodes > 1 ? write_starter_hosts(spec, hosts, err) : 0;
}

static int command_words(const struct rank *r, struct act_strv *out, struct act_error *err)
{
    ACT_AUTO(act_strv) command = {0}, inside = {0};
    int rc = rank_work_words(&r->node, &r->place, &command, err);

    prepare_words(&r->node, &inside);
    setup_rank_words(&r->node, &inside);
    act_strv_copy(&inside, command.v, command.n);
    if (rc == 0)
        rc = container_wrap(&r->node, r->place.rank, (const char *const *)inside.v, out, err);
    return rc;
}

/* Nobody else says it: a process that the kernel kills for memory cannot, and the node's log is its administrator's. */
static void explain_kill(struct rank *r, int64_t kills_before)
{
    if (r->record.exit_status != 0 && !r->record.stopped && kills_before >= 0 && memory_kills() > kills_before)
        memory_describe(r->record.reason, sizeof(r->record.reason));
}

static pid_t rank_work_start(const struct rank *r, const struct act_strv *words)
{
    int in = r->node.spec.takes_input ? feed_start(&r->node, r->place.rank) : 0;

    if (in < 0)
        return -1;
    pid_t pid = child_start(
        &(struct child){.argv = (const char *const *)words->v, .cwd = r->node.code, .in_fd = in, .out_fd = r->out_fd});
    int start_errno = errno;
    if (in > 0)
        close(in);
    errno = start_errno;
    return pid;
}

static int rank_work_run_command(struct rank *r)
{
    const struct run_spec *spec = &r->node.spec;
    int64_t kills = memory_kills();
    struct act_strv words = {0};
    struct act_error err;

    bool is_set = setup_apply(&r->node, &err) == 0;
    if (is_set)
        environment_apply(&r->node);
    if (!is_set || command_words(r, &words, &err) < 0) {
        rank_fail(r, ACT_WRAPPER, act_error_text(&err));
        act_strv_release(&words);
        return ACT_WRAPPER;
    }
    if (r->out_fd >= 0)
        room_open(&r->room, &r->node, r->place.rank);
    pid_t pid = rank_work_start(r, &words);
    int start_errno = errno;

    act_strv_release(&words);
    if (pid < 0) {
        (void)room_close(&r->room, r->log_fd);
        return fail_to_start(r, start_errno);
    }
    r->record.pid = pid;
    r->record.started_unix_ns = act_now_unix_ns();
    r->report(r);
    node_say("command started, process %d", (int)pid);
    if (r->place.rank == 0)
        software_start(&r->node);

    int status = wait_child(r, pid);
    r->record.no_room = room_close(&r->room, r->log_fd);
    r->record.room_again = r->room.again;
    r->record.ended_unix_ns = act_now_unix_ns();
    r->record.exit_status = child_exit_status(status);
    r->record.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    explain_kill(r, kills);
    r->record.kept = !r->record.stopped && (r->record.exit_status ? spec->sleep_if_fail : spec->sleep_if_succeed);
    r->report(r);
    node_say("command ended with status %d", r->record.exit_status);
    if (r->record.kept)
        keep_node(r);
    return r->record.exit_status;
}

/* ---- all of it ---- */

int rank_find_place(struct rank *r, char who[RANK_WHO], struct act_error *err)
{
    int rc = env_find_place(&r->node, &r->place, err);

    if (rc < 0)
        return rc;
    snprintf(who, RANK_WHO, "rank %d", r->place.rank);
    r->record.rank = r->place.rank;
    snprintf(r->record.node, sizeof(r->record.node), "%s", r->node.name);
    return 0;
}

int rank_work(struct rank *r)
{
    int exit_status = rank_work_prepare(r);

    return exit_status ? exit_status : rank_work_run_command(r);
}

int rank_end(struct rank *r, struct act_error *err)
{
    child_end_all(&r->watch, LEFTOVER_GRACE_MS);
    int rc = place_close(&r->node, &r->place, err);
    if (rc < 0) {
        dprintf(r->log_fd, "act: %s\n", act_error_text(err));
        node_say("%s", act_error_text(err));
    }
    return rc;
}
