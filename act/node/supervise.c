/* supervise.c - act-node supervise: one for each run on this machine.
 *
 *   lock held -> slots taken -> Running -> ranks -> all gone -> folders sent -> Completed, Failed or Canceled
 *
 * The lock on supervisor.lock is taken by the client before this process exists and held until it ends, so
 * that a status that is not final and a free lock mean: lost. status.json has no other writer meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "node/child.h"
#include "node/env.h"
#include "node/folder.h"
#include "node/mpirun.h"
#include "node/node.h"
#include "node/record.h"
#include "node/slots.h"

enum { LEFTOVER_GRACE_MS = 5000, ABORT_GRACE_S = 10, SEND_EVERY_MS = 10 * 60 * 1000 };

struct options {
    const char *run_dir, *slots_dir;
    int slots;   /* this machine has */
    int lock_fd; /* of supervisor.lock, locked; -1: still to be taken */
    bool gpus;   /* the slots are GPUs */
};

struct supervisor {
    struct options options;
    struct node node;
    struct watch watch;
    struct slots slots;
    struct run_status status;
    char *status_path;
    pid_t main_pid, send_pid;
    int main_status;
    bool aborted;
    int64_t kill_at_ms, send_at_ms; /* 0: never */
};

static void save_status(const struct supervisor *s)
{
    struct act_error err;

    if (run_status_write(s->status_path, &s->status, &err) < 0)
        node_say("%s", err.text);
}

static void set_reason(struct supervisor *s, const char *reason)
{
    snprintf(s->status.reason, sizeof(s->status.reason), "%.*s", (int)sizeof(s->status.reason) - 1, reason);
}

static void finish(struct supervisor *s, enum run_state state, int exit_status, const char *reason)
{
    s->status.state = state;
    s->status.exit_status = exit_status;
    s->status.ended_unix_s = act_now_unix_s();
    set_reason(s, reason);
}

/* ---- slots ---- */

static void tell_waiting(void *arg, int missing)
{
    struct supervisor *s = arg;
    ACT_AUTOFREE char *reason = act_sprintf("waits for %d of %d %s", missing, s->node.spec.gpus_per_node,
                                            s->options.gpus ? "GPUs" : "processors");

    set_reason(s, reason);
    node_say("%s", reason);
    save_status(s);
}

static int take_slots(struct supervisor *s, struct act_error *err)
{
    int rc = slots_take(&s->slots, s->options.slots_dir, s->options.slots, s->node.spec.gpus_per_node,
                        &s->watch, tell_waiting, s, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *mine = slots_text(&s->slots);
    if (s->options.gpus || s->slots.need == 0)
        setenv("CUDA_VISIBLE_DEVICES", mine, 1);
    node_say("%s: %s", s->options.gpus ? "GPUs" : "processors", *mine ? mine : "none");
    return 0;
}

/* ---- what the ranks find ---- */

static bool port_is_free(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

    if (fd >= 0)
        close(fd);
    return is_free;
}

/* A port below those that the system hands out by itself, so that it stays free until rank 0 listens. */
static int choose_port(void)
{
    enum { LOW = 20000, HIGH = 32000, TRIES = 64 };
    int port = LOW;

    for (int i = 0; i < TRIES; i++) {
        uint16_t random;
        act_random(&random, sizeof(random));
        port = LOW + random % (HIGH - LOW);
        if (port_is_free(port))
            break;
    }
    return port;
}

static int write_hostfile(const struct supervisor *s, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(&s->node, RUN_FILE_HOSTS);
    ACT_AUTOFREE char *text = act_sprintf("localhost slots=%d\n", s->node.spec.procs_per_node);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = 0;

    if (fd < 0 || act_write_all(fd, text, strlen(text)) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int make_place(const struct supervisor *s, struct act_error *err)
{
    static const char *const folders[] = {RUN_DIR_USER, RUN_DIR_RANKS, RUN_DIR_NODES, RUN_DIR_TEMP};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
        ACT_AUTOFREE char *path = node_path(&s->node, folders[i]);
        rc = act_mkdir_all(path, 0755, err);
    }
    return rc < 0 ? rc : write_hostfile(s, err);
}

static void set_environment(void)
{
    ACT_AUTOFREE char *port = act_sprintf("%d", choose_port());
    ACT_AUTOFREE char *pid = act_sprintf("%d", (int)getpid());

    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port, 1);
    setenv(ENV_SUPERVISOR, pid, 1);
}

static int start_ranks(struct supervisor *s, struct act_error *err)
{
    char self[PATH_MAX] = "";
    struct act_strv argv = {0};
    bool alone = node_world_size(&s->node) == 1;
    int rc = 0;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return act_error_errno(err, errno, "cannot find this program");
    if (!alone)
        rc = mpirun_command(&s->node, self, &argv, err);
    else {
        act_strv_push(&argv, self);
        act_strv_push(&argv, "rank");
        act_strv_push(&argv, s->node.dir);
    }
    if (rc == 0) {
        int fd = alone ? -1 : node_open_log(&s->node, RUN_DIR_SYSTEM "/mpirun.txt");
        s->main_pid =
            child_start(&(struct child){.argv = (const char *const *)argv.v, .out_fd = fd, .guarded = alone});
        if (s->main_pid < 0)
            rc = act_error_errno(err, errno, "cannot start '%s'", argv.v[0]);
        if (fd >= 0)
            close(fd);
    }
    act_strv_release(&argv);
    return rc;
}

/* ---- while they run ---- */

static int64_t abort_grace_ms(void)
{
    int64_t seconds;
    const char *text = getenv("ACT_ABORT_GRACE");

    return text && act_int_from_text(text, &seconds) && seconds >= 0 && seconds < 86400
               ? seconds * 1000
               : ABORT_GRACE_S * 1000;
}

/* Asks all ranks to end; what is left when the time is up is killed. mpirun is left out: it would kill. A
 * rank that mpirun starts from now on sees the file. */
static void stop_ranks(struct supervisor *s)
{
    ACT_AUTOFREE char *path = node_path(&s->node, NODE_FILE_STOP);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    s->kill_at_ms = act_now_monotonic_ms() + abort_grace_ms();
    if (node_world_size(&s->node) == 1)
        kill(s->main_pid, SIGTERM);
    else
        child_signal_below(s->main_pid, SIGTERM);
}

static void abort_ranks(struct supervisor *s)
{
    if (s->aborted)
        return;
    node_say("told to abort");
    s->aborted = true;
    if (!s->kill_at_ms)
        stop_ranks(s);
}

static int64_t next_timeout_ms(const struct supervisor *s)
{
    int64_t now = act_now_monotonic_ms(), at = s->kill_at_ms;

    if (s->send_at_ms && (!at || s->send_at_ms < at))
        at = s->send_at_ms;
    return !at ? -1 : at > now ? at - now : 0;
}

static void start_sending(struct supervisor *s)
{
    s->send_pid = child_start(&(struct child){.run = folder_send_all, .arg = &s->node, .out_fd = -1});
    s->send_at_ms = act_now_monotonic_ms() + SEND_EVERY_MS;
}

/* True when the ranks have ended by it. */
static bool on_timeout(struct supervisor *s)
{
    int64_t now = act_now_monotonic_ms();

    if (s->kill_at_ms && now >= s->kill_at_ms) {
        node_say("time is up: the ranks are killed");
        child_kill_all();
        s->main_status = SIGKILL;
        return true;
    }
    if (s->send_at_ms && now >= s->send_at_ms)
        start_sending(s);
    return false;
}

static void tell_kept(struct supervisor *s, const struct record *r)
{
    char what[400], reason[440];

    record_describe(r, what, sizeof(what));
    snprintf(reason, sizeof(reason), "kept after %s", what);
    if (strcmp(reason, s->status.reason) == 0)
        return;
    set_reason(s, reason);
    save_status(s);
}

/* A rank has written something: perhaps that it has failed, or that it keeps its node. */
static void look_at_ranks(struct supervisor *s)
{
    char events[4096];
    struct record r;

    while (read(s->watch.extra_fd, events, sizeof(events)) > 0)
        continue;
    for (int rank = 0; rank < node_world_size(&s->node); rank++) {
        if (!record_read(&s->node, rank, &r) || (!r.kept && !record_failed(&r)))
            continue;
        if (r.kept) {
            tell_kept(s, &r);
            return;
        }
        if (!s->kill_at_ms && node_world_size(&s->node) > 1) {
            node_say("rank %d has failed: the others are told to end", rank);
            stop_ranks(s);
        }
    }
}

static void watch_ranks(struct supervisor *s)
{
    ACT_AUTOFREE char *dir = node_path(&s->node, RUN_DIR_RANKS);

    s->watch.extra_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->watch.extra_fd < 0 || inotify_add_watch(s->watch.extra_fd, dir, IN_MOVED_TO) < 0)
        node_say("cannot watch '%s': %m", dir);
    else
        look_at_ranks(s); /* what was written before */
}

static void on_signal(struct supervisor *s, int sig)
{
    if (sig == SIGTERM || sig == SIGINT)
        abort_ranks(s);
    else if (sig == SIGUSR1 || sig == SIGUSR2)
        kill(s->main_pid, sig);
}

static void wait_for_ranks(struct supervisor *s)
{
    int sig;

    for (;;) {
        switch (watch_wait(&s->watch, next_timeout_ms(s), &sig)) {
        case WATCH_SIGNAL:
            on_signal(s, sig);
            break;
        case WATCH_EXTRA:
            look_at_ranks(s);
            break;
        default:
            if (on_timeout(s))
                return;
            break;
        }
        if (child_reap(s->main_pid, &s->main_status))
            return;
    }
}

/* ---- the end ---- */

/* The rank that failed first; of those that were only told to end none has failed. */
static bool first_failure(const struct supervisor *s, struct record *out)
{
    struct record r;
    bool found = false;

    for (int rank = 0; rank < node_world_size(&s->node); rank++)
        if (record_read(&s->node, rank, &r) && record_failed(&r) &&
            (!found || r.ended_unix_ns < out->ended_unix_ns)) {
            *out = r;
            found = true;
        }
    return found;
}

/* The first rank that began and never said how it ended: its agent was killed. -1 when there is none. */
static int find_lost_rank(const struct supervisor *s)
{
    struct record r;

    for (int rank = 0; rank < node_world_size(&s->node); rank++)
        if (record_read(&s->node, rank, &r) && !r.ended_unix_ns)
            return rank;
    return -1;
}

static void finish_without_record(struct supervisor *s)
{
    ACT_AUTOFREE char *log = node_path(&s->node, RUN_DIR_SYSTEM "/mpirun.txt");
    int exit_status = child_exit_status(s->main_status);
    int lost = find_lost_rank(s);
    const char *name = node_world_size(&s->node) == 1 ? "the rank's agent" : "mpirun";
    char last[200], reason[400];

    node_last_line(log, last, sizeof(last));
    if (lost >= 0) {
        s->status.failed_rank = lost;
        snprintf(reason, sizeof(reason), "rank %d is lost: its agent was killed", lost);
    } else {
        snprintf(reason, sizeof(reason), "%s ended with status %d%s%s", name, exit_status,
                 last[0] ? ": " : "", last);
    }
    finish(s, RUN_FAILED, exit_status ? exit_status : 128 + SIGKILL, reason);
}

/* What is true now that all ranks are gone. A failure before the abort stays a failure. */
static void judge(struct supervisor *s)
{
    struct record r;
    char reason[440];

    if (first_failure(s, &r)) {
        record_describe(&r, reason, sizeof(reason));
        s->status.failed_rank = r.rank;
        finish(s, RUN_FAILED, r.exit_status, reason);
        return;
    }
    bool all_ended = true;
    for (int rank = 0; all_ended && rank < node_world_size(&s->node); rank++)
        all_ended = record_read(&s->node, rank, &r) && r.ended_unix_ns && !r.stopped && r.exit_status == 0;
    if (all_ended && (s->aborted || child_exit_status(s->main_status) == 0))
        finish(s, RUN_COMPLETED, 0, "");
    else if (s->aborted)
        finish(s, RUN_CANCELED, 128 + SIGTERM, "aborted");
    else
        finish_without_record(s);
}

static void send_folders(struct supervisor *s)
{
    int status = 0, sig;

    if (!folder_any_to_send(&s->node))
        return;
    start_sending(s);
    while (s->send_pid > 0 && !child_reap(s->send_pid, &status))
        watch_wait(&s->watch, -1, &sig);
    if (s->send_pid > 0 && status == 0)
        return;
    if (s->status.state == RUN_COMPLETED)
        finish(s, RUN_FAILED, ACT_WRAPPER,
               "the command succeeded, but not all folders could be sent; see " RUN_DIR_SYSTEM
               "/folders.txt");
}

static void run(struct supervisor *s)
{
    watch_ranks(s);
    if (folder_any_to_send(&s->node))
        s->send_at_ms = act_now_monotonic_ms() + SEND_EVERY_MS;
    wait_for_ranks(s);
    child_end_all(&s->watch, s->aborted ? 0 : LEFTOVER_GRACE_MS);
    judge(s);
    send_folders(s);
}

static bool abort_is_asked(const struct supervisor *s)
{
    ACT_AUTOFREE char *path = node_path(&s->node, RUN_FILE_ABORT);

    return access(path, F_OK) == 0;
}

static int start(struct supervisor *s, struct act_error *err)
{
    int rc = abort_is_asked(s) ? act_error_set(err, ACT_INTERRUPTED, "cancelled before it began") : 0;

    if (rc == 0)
        rc = take_slots(s, err);
    if (rc == 0)
        rc = make_place(s, err);
    if (rc < 0)
        return rc;
    set_environment();
    s->status.state = RUN_RUNNING;
    s->status.started_unix_s = act_now_unix_s();
    set_reason(s, "");
    save_status(s); /* before the first line of the command can be seen */
    return start_ranks(s, err);
}

static void log_spec(const struct node *node)
{
    const struct run_spec *spec = &node->spec;

    node_say("run %s: %d node(s), %d process(es) on each, %d GPU(s) on each, act-node %s", spec->id,
             spec->nodes, spec->procs_per_node, spec->gpus_per_node, ACT_VERSION);
    for (size_t i = 0; i < spec->n_env; i++)
        node_say("env %s=%s", spec->env[i].name, run_env_shown(spec->env[i].name, spec->env[i].value));
}

static void supervise(struct supervisor *s)
{
    struct act_error err;
    int rc = start(s, &err);

    if (rc == 0)
        run(s);
    else if (rc == -ACT_INTERRUPTED)
        finish(s, RUN_CANCELED, 128 + SIGTERM, err.text);
    else
        finish(s, RUN_FAILED, ACT_WRAPPER, err.text);
    slots_release(&s->slots);
    node_say("%s%s%s", run_state_name(s->status.state), s->status.reason[0] ? ": " : "", s->status.reason);
    save_status(s);
}

/* Takes over the lock and says in it who holds it, for those who want to signal this process. */
static int own_lock(struct supervisor *s, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(s->options.run_dir, RUN_FILE_LOCK);
    ACT_AUTOFREE char *pid = act_sprintf("%d\n", (int)getpid());

    if (s->options.lock_fd < 0)
        s->options.lock_fd = act_lock(path, false, err);
    if (s->options.lock_fd < 0)
        return s->options.lock_fd;
    if (fcntl(s->options.lock_fd, F_SETFD, FD_CLOEXEC) < 0 || ftruncate(s->options.lock_fd, 0) < 0 ||
        act_pwrite_all(s->options.lock_fd, pid, strlen(pid), 0) < 0)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    return 0;
}

static bool parse_int(const char *text, int high, int *out)
{
    int64_t value;

    if (!act_int_from_text(text, &value) || value < 0 || value > high)
        return false;
    *out = (int)value;
    return true;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"slots-dir", required_argument, NULL, 'd'},
        {"slots", required_argument, NULL, 's'},
        {"lock-fd", required_argument, NULL, 'l'},
        {"gpus", no_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    enum { SLOTS_MAX = 65536 };
    int c;
    bool good = true;

    *o = (struct options){.lock_fd = -1};
    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'd')
            o->slots_dir = optarg;
        else if (c == 's')
            good = good && parse_int(optarg, SLOTS_MAX, &o->slots);
        else if (c == 'l')
            good = good && parse_int(optarg, INT_MAX, &o->lock_fd);
        else if (c == 'g')
            o->gpus = true;
        else
            good = false;
    }
    o->run_dir = argv[optind];
    return good && optind == argc - 1 && o->slots_dir ? 0 : -ACT_USAGE;
}

int node_supervise(int argc, char **argv)
{
    struct supervisor s = {.main_pid = -1, .status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1}};
    struct act_error err;

    if (parse_options(argc, argv, &s.options) < 0) {
        node_say("usage: act-node supervise --slots-dir DIR --slots N [--gpus] [--lock-fd N] RUN_DIR");
        return ACT_USAGE;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int rc = watch_open(&s.watch, &err);
    if (rc == 0)
        rc = node_open(&s.node, s.options.run_dir, "supervisor", &err);
    if (rc == 0)
        rc = own_lock(&s, &err);
    if (rc < 0) {
        node_say("%s", err.text);
        return ACT_WRAPPER;
    }
    env_scrub();
    log_spec(&s.node);
    s.status_path = node_path(&s.node, RUN_FILE_STATUS);
    supervise(&s);
    free(s.status_path);
    node_release(&s.node);
    return s.status.exit_status;
}
