/* supervise.c - act-node supervise: one for each run.
 *
 *   ours alone -> slots taken -> Running -> ranks -> all gone -> folders sent -> Completed, Failed or Canceled
 *                      ^---------- tried again (again.c) <-'
 *
 * On "local" the lock on supervisor.lock is taken by the client before this process exists and held until it ends, so a
 * non-final status with a free lock means: lost. In a Slurm job (--slurm) this is the batch step; the job's id in the
 * file "claim" makes the run ours; with --within it is a step of a job that goes on without it. status.json has no
 * other writer meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "node/container.h"
#include "node/folder.h"
#include "node/launcher.h"
#include "node/place.h"
#include "node/pod.h"
#include "node/supervisor.h"
#include "run/machines.h"

enum {
    LEFTOVER_GRACE_MS = 5000,
    SEND_EVERY_MS = 10 * 60 * 1000,
    HEARTBEAT_MS = 10 * 1000,
    LOOK_MS = 1000,
    LAUNCHER_END_MS = 10 * 1000, /* for mpirun or srun to end when all ranks are gone */
    LAUNCHER_FAIL_MS = 1000,     /* the same while it is killing them */
    LATE_MS = 5000,              /* once some ranks have finished, the others are late after this */
    SLURM_SIGNAL_MS = 2000,      /* between the first and the last process that Slurm signals */
};

static const char limit_class[] = "time_limit"; /* a rule's id */

/* ---- signals ---- */

/* A second signal means: now. But Slurm itself signals everything several times, and kills in the end. */
static void abort_ranks(struct supervisor *s)
{
    if (s->aborted && s->options.where != IN_SLURM) {
        node_say("told to abort again: what is left is killed");
        child_signal_all(SIGKILL);
    }
    if (s->aborted)
        return;
    node_say("told to abort");
    s->aborted = true;
    ranks_stop(s, node_abort_grace_ms());
}

/* Everything in the job got the same signal, and has little time: record what is known at once. */
static void end_with_job(struct supervisor *s)
{
    enum { OUR_MS = 2000, LEAST_MS = 1000 };

    if (s->aborted || s->job.end != JOB_GOES_ON)
        return;
    job_find_end(&s->job, &s->node);
    node_say("Slurm ends the job: %s", job_end_text(&s->job));
    judge_run(s);
    attempt_save_status(s);
    int64_t grace_ms = s->job.kill_wait_ms - OUR_MS;
    ranks_stop(s, grace_ms < LEAST_MS ? LEAST_MS : grace_ms);
}

/* A batch system ends all processes of the job in which the run was submitted. */
static void end_with_outer_job(struct supervisor *s)
{
    if (s->aborted || s->phase >= RANKS_STOPPING || s->first_failed >= 0)
        return;
    snprintf(s->limit, sizeof(s->limit), "%.100s ends, of which the run is a part", s->options.within);
    node_say("%s", s->limit);
    attempt_save_failure(s, NULL, s->limit);
    ranks_stop(s, node_abort_grace_ms());
}

static void supervise_on_signal(struct supervisor *s, int sig)
{
    bool end = sig == SIGTERM || sig == SIGINT;

    if (end && s->options.within && !attempt_abort_is_asked(s))
        end_with_outer_job(s);
    else if ((end && (s->options.where != IN_SLURM || attempt_abort_is_asked(s))) ||
             (sig == SIGUSR2 && attempt_abort_is_asked(s)))
        abort_ranks(s);
    else if (end)
        end_with_job(s);
    else if (sig == SIGUSR1 || sig == SIGUSR2)
        ranks_signal(s, sig);
}

/* ---- times ---- */

static void set_alarm(struct supervisor *s, enum alarm alarm, int64_t in_ms)
{
    s->alarms_ms[alarm] = act_now_monotonic_ms() + in_ms;
}

static void start_sending(struct supervisor *s)
{
    s->send_pid = child_start(&(struct child){.run = folder_send_all, .arg = &s->node, .out_fd = -1});
    set_alarm(s, ALARM_SEND, SEND_EVERY_MS);
}

static void supervise_beat(struct supervisor *s)
{
    claims_keep(&s->devices.claims);
    if (s->job.end == JOB_GOES_ON) /* else the end is recorded already */
        attempt_save_status(s);
    set_alarm(s, ALARM_BEAT, HEARTBEAT_MS);
}

static void warn_of_limit(struct supervisor *s)
{
    ranks_signal(s, SIGUSR1);
}

/* Ends the run by its limit. How the ranks take SIGTERM does not count: their time was up. */
static void end_by_limit(struct supervisor *s)
{
    char time[ACT_UNIT_TEXT];

    if (s->aborted || s->phase >= RANKS_STOPPING || s->first_failed >= 0)
        return;
    act_duration_to_text(s->node.spec.limit_s, time);
    snprintf(s->limit, sizeof(s->limit), "time limit reached: it may run for %s", time);
    node_say("%s", s->limit);
    snprintf(s->status.class, sizeof(s->status.class), "%s", limit_class);
    s->end_class = limit_class;
    attempt_save_failure(s, NULL, s->limit);
    ranks_stop(s, node_abort_grace_ms());
}

static void set_limit(struct supervisor *s)
{
    int64_t left_ms = s->options.left_s * INT64_C(1000), warn_ms = s->node.spec.warn_s * 1000;

    if (!left_ms)
        return;
    set_alarm(s, ALARM_LIMIT, left_ms);
    if (warn_ms > 0 && warn_ms < left_ms)
        set_alarm(s, ALARM_WARN, left_ms - warn_ms);
}

/* The agents have not ended their ranks in time: stop waiting for them. */
static void give_up_ranks(struct supervisor *s)
{
    node_say("time is up: %d rank(s) are given up", link_connected(s->link));
    link_cut(s->link);
    s->phase = RANKS_GIVEN_UP;
    if (s->main_pid <= 0)
        return;
    set_alarm(s, ALARM_LAUNCHER, LAUNCHER_FAIL_MS);
    kill(s->main_pid, SIGTERM);
}

static void kill_launcher(struct supervisor *s)
{
    node_say("%s has not ended: it is killed", launcher_name(&s->node));
    s->main_killed = true;
    kill(s->main_pid, SIGKILL);
}

/* mpirun takes long to end ranks that it could not start. */
static void look_for_late_ranks(struct supervisor *s)
{
    s->phase = RANKS_SEEING;
    if (judge_is_blind(s))
        ranks_stop(s, 0);
}

static void end_phase(struct supervisor *s)
{
    switch (s->phase) {
    case RANKS_LATE:
        return look_for_late_ranks(s);
    case RANKS_STOPPING:
        return give_up_ranks(s);
    case RANKS_RUN:
    case RANKS_SEEING:
    case RANKS_GIVEN_UP:
    case RANKS_GONE:
        return; /* they have no end of their own */
    }
}

/* Ends the run if that is asked for. Slurm signals all processes of a step, its ranks too, and they are to end one
 * after another. */
static void look_for_abort(struct supervisor *s)
{
    if (attempt_abort_is_asked(s))
        return abort_ranks(s);
    set_alarm(s, ALARM_LOOK, LOOK_MS);
}

/* Returns the milliseconds until the next alarm; -1: none is set. */
static int64_t next_timeout_ms(const struct supervisor *s)
{
    int64_t now = act_now_monotonic_ms(), next = -1;

    for (int i = 0; i < N_ALARMS; i++) {
        int64_t at = s->alarms_ms[i], left = at > now ? at - now : 0;
        if (at && (next < 0 || left < next))
            next = left;
    }
    return next;
}

/* An alarm fires once and must be set again to repeat. */
static void act_in_time(struct supervisor *s)
{
    static void (*const acts[N_ALARMS])(struct supervisor *) = {
        [ALARM_PHASE] = end_phase,     [ALARM_LAUNCHER] = kill_launcher, [ALARM_SEND] = start_sending,
        [ALARM_STACKS] = hang_end_run, [ALARM_BEAT] = supervise_beat,    [ALARM_WARN] = warn_of_limit,
        [ALARM_LIMIT] = end_by_limit,  [ALARM_LOOK] = look_for_abort};
    int64_t now = act_now_monotonic_ms();

    for (int i = 0; i < N_ALARMS; i++)
        if (s->alarms_ms[i] && now >= s->alarms_ms[i]) {
            s->alarms_ms[i] = 0;
            acts[i](s);
        }
}

/* ---- while they run ---- */

static void supervise_wait_event(struct supervisor *s, int64_t timeout_ms)
{
    int sig;

    if (watch_wait(&s->watch, timeout_ms, &sig) == WATCH_SIGNAL)
        supervise_on_signal(s, sig);
    if (s->main_pid > 0 && child_reap(s->main_pid, &s->main_status)) {
        s->main_pid = 0;
        s->alarms_ms[ALARM_LAUNCHER] = 0;
    }
}

/* Tells whether all ranks that have connected are gone; the others must connect first, unless everything is being
 * ended. */
static bool all_ranks_are_gone(const struct supervisor *s)
{
    int came = judge_count_came(s);

    return link_connected(s->link) == 0 &&
           (came == node_world_size(&s->node) || (s->phase == RANKS_STOPPING && came > 0));
}

static bool some_are_late(const struct supervisor *s)
{
    int came = judge_count_came(s);

    return s->options.where == IN_SLURM && link_connected(s->link) == 0 && came > 0 && came < node_world_size(&s->node);
}

/* Neither the launcher nor the ranks may outlive the other for long. */
static void end_the_rest(struct supervisor *s)
{
    if (s->main_pid <= 0 && link_connected(s->link) > 0 && s->phase != RANKS_STOPPING)
        ranks_stop(s, node_abort_grace_ms());
    if (s->main_pid > 0 && !s->alarms_ms[ALARM_LAUNCHER] && !s->main_killed && all_ranks_are_gone(s))
        set_alarm(s, ALARM_LAUNCHER, s->phase == RANKS_STOPPING ? LAUNCHER_FAIL_MS : LAUNCHER_END_MS);
}

static void wait_for_ranks(struct supervisor *s)
{
    while (s->main_pid > 0 || link_connected(s->link) > 0) {
        supervise_wait_event(s, next_timeout_ms(s));
        act_in_time(s);
        end_the_rest(s);
        if (s->phase == RANKS_RUN && some_are_late(s)) {
            s->phase = RANKS_LATE;
            set_alarm(s, ALARM_PHASE, LATE_MS);
        }
    }
    s->phase = RANKS_GONE;
    s->alarms_ms[ALARM_PHASE] = 0;
}

/* SIGTERM ended a rank: perhaps Slurm sends it to all processes, and to this one last. */
static void wait_for_slurm(struct supervisor *s)
{
    int64_t deadline = act_now_monotonic_ms() + SLURM_SIGNAL_MS, left = SLURM_SIGNAL_MS;

    if (!judge_only_terminated(s))
        return;
    for (; left > 0 && !s->aborted && s->job.end == JOB_GOES_ON; left = deadline - act_now_monotonic_ms())
        supervise_wait_event(s, left);
}

/* ---- the end ---- */

/* Tells whether this process sends the folders. Each pod sends its own, see pod_send.c. */
static bool is_sender(const struct supervisor *s)
{
    return s->options.where != IN_PODS && folder_any_to_send(&s->node);
}

/* Sends the folders; false if not all could be sent. */
static bool send_folders(struct supervisor *s)
{
    int status = 0, sig;

    if (!is_sender(s))
        return true;
    start_sending(s);
    s->alarms_ms[ALARM_SEND] = 0;
    while (s->send_pid > 0 && !child_reap(s->send_pid, &status)) {
        watch_wait(&s->watch, next_timeout_ms(s), &sig);
        act_in_time(s);
    }
    return s->send_pid > 0 && status == 0;
}

static void run_supervisor(struct supervisor *s)
{
    struct act_error err;

    set_alarm(s, ALARM_BEAT, HEARTBEAT_MS);
    set_limit(s);
    if (s->job.step)
        set_alarm(s, ALARM_LOOK, LOOK_MS);
    if (is_sender(s))
        set_alarm(s, ALARM_SEND, SEND_EVERY_MS);
    wait_for_ranks(s);
    if (place_end_mounts(&s->node, &err) < 0)
        judge_note_unsent(s, act_error_text(&err));
    child_end_all(&s->watch, s->aborted ? 0 : LEFTOVER_GRACE_MS);
    if (!cgroup_end(&s->cgroup))
        node_say("some processes of the run could not be killed");
    wait_for_slurm(s);
    judge_sweep(s);
    if (!send_folders(s)) {
        ACT_AUTOFREE char *why = folder_why_unsent(&s->node);
        judge_note_unsent(s, why);
    }
    judge_run(s);
    if (s->status.state != RUN_COMPLETED)
        container_remove_all(&s->node);
    judge_cut_logs(s);
    judge_unsent(s);
}

static void supervise_fail_to_start(struct supervisor *s, const char *why)
{
    attempt_finish(s, RUN_FAILED, ACT_WRAPPER, why);
    attempt_save_failure(s, NULL, why);
}

/* Ends a run that still waits: its user, a run that it needs, or the job of a batch system around it ended the wait. */
static void end_before_start(struct supervisor *s, const char *why)
{
    if (s->watch.told && s->options.within && !attempt_abort_is_asked(s)) {
        ACT_AUTOFREE char *text = act_sprintf("%s ended while the run waited in it", s->options.within);
        supervise_fail_to_start(s, text);
        return;
    }
    s->aborted = true;
    attempt_finish(s, RUN_CANCELED, 128 + SIGTERM, why);
}

static void supervise(struct supervisor *s)
{
    struct act_error err;
    int rc = start_run(s, &err);

    if (rc == 0)
        run_supervisor(s);
    else if (rc == -ACT_INTERRUPTED)
        end_before_start(s, act_error_text(&err));
    else
        supervise_fail_to_start(s, act_error_text(&err));
    slots_release(&s->slots);
    devices_close(&s->devices);
    again_consider(s);
    node_say("%s%s%s", run_state_name(s->status.state), s->status.reason[0] ? ": " : "", s->status.reason);
    attempt_save_status(s);
    attempt_drop_reserve(s);
}

/* Takes over the lock and writes its holder into it, so that this process can be signalled. */
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

static int own_run(struct supervisor *s, struct act_error *err)
{
    if (s->options.outcome) /* whoever has started us has the lock */
        return 0;
    if (s->options.where != IN_SLURM)
        return own_lock(s, err);
    int rc = job_open(&s->job, &s->node, s->options.within != NULL, err);

    return rc < 0 ? rc : attempt_claim(s, err);
}

/* ---- the program ---- */

static bool parse_int(const char *text, int high, int *out)
{
    int64_t value;

    if (!act_int_from_text(text, &value) || value < 0 || value > high)
        return false;
    *out = (int)value;
    return true;
}

static int supervise_parse_options(int argc, char **argv, struct supervise_options *o)
{
    static const struct option table[] = {
        {"slots-dir", required_argument, NULL, 'd'}, {"slots", required_argument, NULL, 's'},
        {"lock-fd", required_argument, NULL, 'l'},   {"gpus", no_argument, NULL, 'g'},
        {"within", required_argument, NULL, 'w'},    {"shared", no_argument, NULL, 'a'},
        {"slurm", no_argument, NULL, 'b'},           {"pods", required_argument, NULL, 'p'},
        {"group", required_argument, NULL, 'e'},     {"outcome", required_argument, NULL, 'o'},
        {"time-left", required_argument, NULL, 't'}, {NULL, 0, NULL, 0},
    };
    enum { SLOTS_MAX = 65536 };
    int c;
    bool good = true;

    *o = (struct supervise_options){.lock_fd = -1};
    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'd')
            o->slots_dir = optarg;
        else if (c == 's')
            good = good && parse_int(optarg, SLOTS_MAX, &o->slots);
        else if (c == 'l')
            good = good && parse_int(optarg, INT_MAX, &o->lock_fd);
        else if (c == 'g')
            o->gpus = true;
        else if (c == 'a')
            o->shared = true;
        else if (c == 'w')
            o->within = optarg;
        else if (c == 'b')
            o->where = IN_SLURM;
        else if (c == 'p') {
            o->where = IN_PODS;
            o->pods = optarg;
        } else if (c == 'e')
            o->group = optarg;
        else if (c == 'o')
            o->outcome = optarg;
        else if (c == 't')
            good = good && parse_int(optarg, RUN_LIMIT_MOST_S, &o->left_s);
        else
            good = false;
    }
    o->run_dir = argv[optind];
    return good && optind == argc - 1 && (o->where != IN_SLOTS || o->slots_dir) ? 0 : -ACT_USAGE;
}

/* Opens what is needed before anything is written about the run. */
static int supervise_open_run(struct supervisor *s, struct act_error *err)
{
    int rc = watch_open(&s->watch, err);

    if (rc == 0)
        rc = node_open(&s->node, s->options.run_dir, "supervisor", err);
    if (rc == 0)
        rc = own_run(s, err);
    if (rc < 0)
        return rc;
    s->status_path = node_path(&s->node, RUN_FILE_STATUS);
    return 0;
}

int node_supervise(int argc, char **argv)
{
    struct supervisor s = {.first_failed = -1, .status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1}};
    struct act_error err;

    if (supervise_parse_options(argc, argv, &s.options) < 0) {
        node_say("usage: act-node supervise --slots-dir DIR --slots N [--gpus [--shared]] [--within JOB] [--lock-fd N] "
                 "RUN_DIR, or --slurm [--within JOB] [--time-left SECONDS] RUN_DIR, or --pods NAME [--group LIST] "
                 "[--outcome FILE] [--time-left SECONDS] RUN_DIR");
        return ACT_USAGE;
    }
    gpu_masks_read(&s.masks);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (supervise_open_run(&s, &err) < 0) {
        fprintf(stderr, "act-node: %s\n", act_error_text(&err));
        return ACT_WRAPPER;
    }
    if (s.options.where == IN_SLOTS && run_has_machines(s.options.run_dir))
        pod_machine(&s);
    else if (attempt_find(&s))
        supervise(&s);
    else
        node_say("there is nothing to do: the run is %s", run_state_name(s.status.state));
    if (s.aborted && s.job.id && !s.job.step && s.status.state == RUN_CANCELED)
        job_cancel(&s.job); /* its last step: Slurm must report the same */
    ranks_close(&s);
    slots_release(&s.slots);
    gpu_masks_release(&s.masks);
    job_release(&s.job);
    free(s.status_path);
    node_release(&s.node);
    return s.status.exit_status;
}
