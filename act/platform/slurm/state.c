/* state.c - Slurm's states, and their meaning combined with the agent's record. */
#include "platform/slurm/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

/* ---- the states ---- */

enum {
    ALIVE_S = 60,       /* the agent writes its heartbeat every 10 s */
    LAST_WORD_S = 10,   /* for the agent's record to appear on a shared file system after its job has ended */
    HANDOVER_S = 600,   /* no submission takes longer */
    NO_SUCH_OUTPUT = 53 /* "signal" of a job whose output or working folder could not be opened */
};

static const struct state {
    const char *word;
    enum run_state state;
    int exit_status;  /* for a run in this state whose agent could not report it */
    const char *text; /* NULL: use the reason */
} states[] = {
    {"PENDING", RUN_QUEUED, 0, NULL},
    {"CONFIGURING", RUN_QUEUED, 0, "its nodes are being made ready"},
    {"POWER_UP_NODE", RUN_QUEUED, 0, "its nodes are starting"},
    {"REQUEUED", RUN_QUEUED, 0, "Slurm queues it again"},
    {"REQUEUE_FED", RUN_QUEUED, 0, "Slurm queues it again"},
    {"REQUEUE_HOLD", RUN_QUEUED, 0, "queued again and held: it waits for 'scontrol release'"},
    {"RESV_DEL_HOLD", RUN_QUEUED, 0, "held, its reservation was deleted: it waits for 'scontrol release'"},
    {"SPECIAL_EXIT", RUN_QUEUED, 0, "queued again and held after a special exit: it waits for 'scontrol release'"},
    {"SUSPENDED", RUN_QUEUED, 0, "Slurm has suspended it"},
    {"STOPPED", RUN_QUEUED, 0, "its processes were stopped by a signal"},
    {"RUNNING", RUN_RUNNING, 0, ""},
    {"SIGNALING", RUN_RUNNING, 0, ""},
    {"STAGE_OUT", RUN_RUNNING, 0, "its data is staged out"},
    {"RESIZING", RUN_RUNNING, 0, ""},
    {"UPDATE_DB", RUN_RUNNING, 0, ""},
    {"EXPEDITING", RUN_QUEUED, 0, "Slurm queues it again"},
    {"COMPLETING", RUN_RUNNING, 0, "it is ending"},
    {"COMPLETED", RUN_COMPLETED, 0, ""},
    {"FAILED", RUN_FAILED, 1, NULL},
    {"TIMEOUT", RUN_FAILED, 128 + SIGTERM, "time limit reached"},
    {"DEADLINE", RUN_FAILED, 128 + SIGTERM, "its deadline passed"},
    {"OUT_OF_MEMORY", RUN_FAILED, 128 + SIGKILL, "out of memory: it used more than Slurm gave it"},
    {"NODE_FAIL", RUN_FAILED, 128 + SIGKILL, "a node of it failed"},
    {"BOOT_FAIL", RUN_FAILED, 1, "a node of it could not be started"},
    {"LAUNCH_FAILED", RUN_FAILED, 1, "Slurm could not start it on its nodes"},
    {"RECONFIG_FAIL", RUN_FAILED, 1, "a node of it could not be configured"},
    {"PREEMPTED", RUN_FAILED, 128 + SIGTERM, "preempted: its nodes were given to a run of higher priority"},
    {"CANCELLED", RUN_CANCELED, 128 + SIGTERM, NULL},
    {"REVOKED", RUN_CANCELED, 128 + SIGTERM, "it was moved to another cluster"},
};

#define ABORT_AND "abort it and submit it with "

/* Why a job waits. A word ending in '*' matches all that begin with it; the first match is used. */
static const struct reason {
    const char *word, *text;
} reasons[] = {
    {"None", "waits to be looked at by the scheduler"},
    {"Resources", "waits for free nodes"},
    {"Priority", "waits behind runs of higher priority"},
    {"Dependency", "waits for another job"},
    {"DependencyNeverSatisfied", "will never start: the job it waits for did not end as asked; abort it"},
    {"JobHeldUser", "is held: 'scontrol release' lets it go"},
    {"JobHeldAdmin", "will not start: an administrator holds it; ask who runs the cluster, or abort it"},
    {"BeginTime", "waits for the time at which it may start"},
    {"Cleaning", "waits for the end of its last attempt"},
    {"JobArrayTaskLimit", "waits for other runs of its array"},
    {"PartitionNodeLimit",
     "will not start: the partition does not have, or does not give, so many nodes; " ABORT_AND "a smaller -n"},
    {"PartitionTimeLimit", "will not start: slurm.time is more than the partition allows; " ABORT_AND "a shorter one"},
    {"PartitionConfig",
     "will not start: the partition cannot give what it asks for; " ABORT_AND "less, or in another slurm.partition"},
    {"PartitionDown", "waits: its partition is down"},
    {"PartitionInactive", "waits: its partition takes no jobs"},
    {"BadConstraints",
     "will not start: no node is as it asks; " ABORT_AND "another slurm.constraint, or fewer GPUs on each node"},
    {"NodeDown", "waits: a node it needs is down"},
    {"ReqNodeNotAvail*", "waits: nodes it needs are down, drained or reserved"},
    {"Nodes required for job are *", "waits: nodes it needs are down, drained or reserved"},
    {"Reservation", "waits for its reservation to begin"},
    {"ReservationDeleted", "will not start: its reservation was deleted; " ABORT_AND "another slurm.reservation"},
    {"InvalidAccount", "will not start: its account is not valid; " ABORT_AND "another slurm.account"},
    {"InvalidQOS", "will not start: its QOS is not valid; " ABORT_AND "another slurm.qos"},
    {"AccountNotAllowed", "will not start: the partition does not take its account; " ABORT_AND "another"},
    {"QOSNotAllowed", "will not start: the partition does not take its QOS; " ABORT_AND "another slurm.qos"},
    {"AccountingPolicy", "waits: a limit of its account is reached"},
    {"QOSMaxWallDurationPerJobLimit",
     "will not start: slurm.time is more than its QOS allows; " ABORT_AND "a shorter one"},
    {"AssocMaxWallDurationPerJobLimit",
     "will not start: slurm.time is more than its account allows; " ABORT_AND "a shorter one"},
    {"QOSMax*PerJob*", "will not start: it asks for more than its QOS allows one job; " ABORT_AND "less"},
    {"QOSMin*", "will not start: it asks for less than its QOS is for; " ABORT_AND "more, or another slurm.qos"},
    {"QOSGrp*", "waits: all runs of its QOS together are at their limit"},
    {"QOSMax*", "waits: your runs in this QOS are at their limit"},
    {"QOSUsageThreshold", "waits: the usage threshold of its QOS is reached"},
    {"QOSJobLimit", "waits: its QOS has as many jobs as it may"},
    {"QOSResourceLimit", "waits: a limit of its QOS is reached"},
    {"QOSTimeLimit", "will not start: slurm.time is more than its QOS allows; " ABORT_AND "a shorter one"},
    {"AssocGrp*Minutes*", "waits: its account has used up its time; ask who manages the account"},
    {"AssocGrp*", "waits: all runs of its account together are at their limit"},
    {"AssocMax*PerJob*", "will not start: it asks for more than its account allows one job; " ABORT_AND "less"},
    {"AssocMax*", "waits: your runs in this account are at their limit"},
    {"AssociationJobLimit", "waits: its account has as many jobs as it may"},
    {"AssociationResourceLimit", "waits: a limit of its account is reached"},
    {"AssociationTimeLimit", "will not start: slurm.time is more than its account allows; " ABORT_AND "a shorter one"},
    {"MaxGRESPerAccount", "waits: all runs of its account together have as many GPUs as they may"},
    {"Max*PerAccount", "waits: all runs of its account together are at their limit"},
    {"Licenses", "waits for licences"},
    {"Prolog", "its nodes are being made ready"},
    {"launch_failed_requeued_held",
     "is held: a node could not start it; 'scontrol release' tries again, else abort it"},
    {"job_requeued_in_held_state", "is held after it was queued again: 'scontrol release' lets it go"},
    {"FrontEndDown", "waits: a front end node is down"},
    {"SchedDefer", "waits for the scheduler's next round"},
    {"BurstBuffer*", "waits for its burst buffer"},
};

/* Tells whether word matches the pattern, in which each '*' stands for any text. */
static bool slurm_state_fits(const char *pattern, const char *word)
{
    size_t len = strcspn(pattern, "*");

    if (strncmp(pattern, word, len) != 0)
        return false;
    if (!pattern[len])
        return word[len] == '\0';
    for (const char *at = word + len;; at++) {
        if (slurm_state_fits(pattern + len + 1, at))
            return true;
        if (!*at)
            return false;
    }
}

static const struct state *slurm_state_find(const char *word)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(states[i].word, word) == 0)
            return &states[i];
    return NULL;
}

enum run_state slurm_state_of(const char *word)
{
    const struct state *s = slurm_state_find(word);

    return s ? s->state : RUN_UNKNOWN;
}

/* "waits for free nodes (Resources); Slurm expects to start it at 2026-11-21 14:05 UTC" */
static void slurm_state_explain_waiting(const struct slurm_job *job, char *out, size_t size)
{
    const char *text = "waits";
    char when[80] = "", iso[ACT_TIME_TEXT];

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (slurm_state_fits(reasons[i].word, job->reason)) {
            text = reasons[i].text;
            break;
        }
    if (job->start_unix_s) {
        act_time_to_iso(job->start_unix_s, iso);
        snprintf(when, sizeof(when), "; Slurm expects to start it at %.10s %.5s UTC", iso, iso + 11);
    }
    if (*job->reason && strcmp(job->reason, "None") != 0)
        snprintf(out, size, "%s (%.100s)%s", text, job->reason, when);
    else
        snprintf(out, size, "%s%s", text, when);
}

static void slurm_state_explain_failure(const struct slurm_job *job, struct run_status *out)
{
    bool not_launched = job->exit_signal == NO_SUCH_OUTPUT ||
                        (!job->exit_signal && !job->exit_status && strcmp(job->reason, "JobLaunchFailure") == 0);

    if (job->exit_signal == SIGUSR2) { /* sent by 'a abort' to an agent that was not up yet */
        out->state = RUN_CANCELED;
        out->exit_status = 128 + SIGTERM;
        snprintf(out->reason, sizeof(out->reason), "aborted");
        return;
    }
    if (job->exit_signal || job->exit_status)
        out->exit_status = job->exit_signal ? 128 + job->exit_signal : job->exit_status;
    if (not_launched) {
        snprintf(
            out->reason, sizeof(out->reason),
            "Slurm could not start it: the run's folder cannot be reached from the node %.100s; set slurm.root to a "
            "folder that all nodes share",
            job->nodes);
        return;
    }
    if (job->in_array)
        snprintf(out->reason, sizeof(out->reason),
                 "a task of its array ended with status %d: see system_logs/slurm.txt", out->exit_status);
    else if (job->exit_signal)
        snprintf(out->reason, sizeof(out->reason),
                 "its agent was killed by signal %d (%s) before it could say how the run ended", job->exit_signal,
                 strsignal(job->exit_signal));
    else
        snprintf(out->reason, sizeof(out->reason),
                 "ended with status %d, and its agent has not said why: see system_logs/slurm.txt", job->exit_status);
}

static void explain_canceling(const struct slurm_job *job, struct run_status *out)
{
    if (job->uid == 0)
        snprintf(out->reason, sizeof(out->reason), "canceled by an administrator (uid 0)");
    else if (job->uid > 0)
        snprintf(out->reason, sizeof(out->reason), "canceled in Slurm by uid %d", job->uid);
    else
        snprintf(out->reason, sizeof(out->reason), "canceled in Slurm");
}

void slurm_status_of(const struct slurm_job *job, struct run_status *out)
{
    const struct state *s = slurm_state_find(job->state);

    *out = (struct run_status){.state = s ? s->state : RUN_UNKNOWN,
                               .failed_rank = -1,
                               .attempt = job->restarts + 1,
                               .exit_status = s ? s->exit_status : 0};
    if (!s)
        snprintf(out->reason, sizeof(out->reason), "Slurm calls it '%.100s'", job->state);
    else if (s->text)
        snprintf(out->reason, sizeof(out->reason), s->text[0] && s->state != RUN_RUNNING ? "%s (%s)" : "%s", s->text,
                 s->word);
    else if (s->state == RUN_QUEUED)
        slurm_state_explain_waiting(job, out->reason, sizeof(out->reason));
    else if (s->state == RUN_FAILED)
        slurm_state_explain_failure(job, out);
    else
        explain_canceling(job, out);
    bool ended = run_state_is_final(out->state);
    if (*job->nodes && (ended || out->state == RUN_RUNNING)) /* a job that never started has none */
        out->started_unix_s = job->start_unix_s;
    if (ended)
        out->ended_unix_s = job->end_unix_s;
}

/* ---- listings ---- */

/* The state of a whole array: the first of these that any task is in. */
static int importance(const struct slurm_job *job)
{
    static const int by_state[] = {[RUN_RUNNING] = 0, [RUN_QUEUED] = 1,   [RUN_UNKNOWN] = 2,
                                   [RUN_FAILED] = 3,  [RUN_CANCELED] = 4, [RUN_COMPLETED] = 5};

    return by_state[slurm_state_of(job->state)];
}

static int slurm_state_by_id(const void *a, const void *b)
{
    const struct slurm_job *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return importance(x) - importance(y);
}

void slurm_jobs_combine(struct slurm_jobs *jobs)
{
    size_t kept = 0;

    if (jobs->n)
        qsort(jobs->v, jobs->n, sizeof(*jobs->v), slurm_state_by_id);
    for (size_t i = 0; i < jobs->n; i++) {
        if (kept && jobs->v[kept - 1].id == jobs->v[i].id)
            jobs->v[kept - 1].in_array = true;
        else
            jobs->v[kept++] = jobs->v[i];
    }
    jobs->n = kept;
}

static int by_task(const void *a, const void *b)
{
    const struct slurm_job *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

void slurm_jobs_tasks(const struct slurm_jobs *jobs, struct slurm_jobs *out)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->v[i].task >= 0) {
            ACT_PUSH(out->v, out->n, jobs->v[i]);
            out->v[out->n - 1].in_array = false;
        }
    if (out->n)
        qsort(out->v, out->n, sizeof(*out->v), by_task);
}

const struct slurm_job *slurm_jobs_find_task(const struct slurm_jobs *tasks, int64_t id, int64_t task)
{
    const struct slurm_job wanted = {.id = id, .task = task};

    return tasks->n ? bsearch(&wanted, tasks->v, tasks->n, sizeof(*tasks->v), by_task) : NULL;
}

const struct slurm_job *slurm_jobs_find_run(const struct slurm_jobs *tasks, const char *id)
{
    int number = 0;
    ACT_AUTOFREE char *row = run_id_row(id, &number);

    for (size_t i = row ? tasks->n : 0; i-- > 0;)
        if (tasks->v[i].task == number && strcmp(tasks->v[i].name, row) == 0)
            return &tasks->v[i];
    return NULL;
}

const struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id)
{
    size_t low = 0, high = jobs->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (jobs->v[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < jobs->n && jobs->v[low].id == id ? &jobs->v[low] : NULL;
}

const struct slurm_job *slurm_jobs_find_name(const struct slurm_jobs *jobs, const char *name)
{
    for (size_t i = jobs->n; i-- > 0;)
        if (strcmp(jobs->v[i].name, name) == 0)
            return &jobs->v[i];
    return NULL;
}

/* ---- together with the record ---- */

int64_t slurm_run_created(const char *id)
{
    const char *last = strrchr(id, '_'), *first = last;
    int64_t unix_s;

    while (first && first > id && first[-1] != '_')
        first--;
    if (!first || first == id)
        return 0;
    ACT_AUTOFREE char *text = act_strndup(first, (size_t)(last - first));
    return act_int_from_text(text, &unix_s) && unix_s > 0 ? unix_s : 0;
}

/* Tells whether the agent's record is about the attempt that Slurm reports. */
static bool is_current(const struct run_status *said, const struct slurm_job *job)
{
    return said->attempt >= job->restarts + 1;
}

bool slurm_has_begun(const struct run_status *said)
{
    return said->state == RUN_RUNNING || said->heartbeat_unix_s || said->started_unix_s;
}

static bool is_job_over(const struct slurm_job *job)
{
    return run_state_is_final(slurm_state_of(job->state));
}

/* Tells whether the record is final, whatever Slurm reports now. */
static bool record_stands(const struct run_status *said, const struct slurm_job *job)
{
    if (!run_state_is_final(said->state))
        return false;
    if (!job)
        return true;
    if (slurm_state_of(job->state) == RUN_QUEUED || !is_current(said, job))
        return false;  /* requeued */
    if (job->in_array) /* one task wrote it; only Slurm knows whether another one failed */
        return is_job_over(job) && (said->state != RUN_COMPLETED || slurm_state_of(job->state) == RUN_COMPLETED);
    return true;
}

bool slurm_needs_past(const struct slurm_known *known)
{
    if (!known->job || known->is_step || record_stands(known->said, known->queue))
        return false;
    return !known->queue || slurm_state_of(known->queue->state) == RUN_CANCELED; /* only sacct knows by whom */
}

bool slurm_needs_record(const struct slurm_known *known)
{
    const struct slurm_job *job = known->queue ? known->queue : known->past;
    bool is_over = known->is_step ? !known->step_there : job && is_job_over(job);

    return is_over && !run_state_is_final(known->said->state);
}

/* This machine sees a record only a moment after it was written. */
static bool may_still_say(const struct slurm_known *k, const struct slurm_job *job)
{
    int64_t age = k->now_unix_s - job->end_unix_s;

    return !job->in_array && slurm_has_begun(k->said) && is_current(k->said, job) && job->end_unix_s &&
           age >= -ALIVE_S && age < LAST_WORD_S;
}

static void say_ending(const struct slurm_known *k, const struct slurm_job *job, struct run_status *out)
{
    *out = *k->said;
    out->state = RUN_RUNNING;
    snprintf(out->reason, sizeof(out->reason), "it has ended (%.40s); its agent's last word is awaited", job->state);
}

/* Slurm takes minutes to notice a lost node; its agent's heartbeat stops at once. */
static void note_silence(const struct slurm_known *k, struct run_status *out)
{
    char iso[ACT_TIME_TEXT];

    if (*out->reason || !k->said->heartbeat_unix_s || k->now_unix_s - k->said->heartbeat_unix_s <= ALIVE_S)
        return;
    act_time_to_iso(k->said->heartbeat_unix_s, iso);
    snprintf(out->reason, sizeof(out->reason), "its agent was last heard of at %.10s %.8s UTC", iso, iso + 11);
}

/* Takes over what only the agent knows of the attempts. */
static void keep_record(const struct run_status *said, struct run_status *out)
{
    out->attempts = said->attempts;
    memcpy(out->retry, said->retry, sizeof(said->retry));
    memcpy(out->bad, said->bad, sizeof(said->bad));
    out->n_bad = said->n_bad;
}

/* Names the runs that it waits for, as was written down when it was submitted. */
static void name_needs(const struct slurm_known *k, const struct slurm_job *job, struct run_status *out)
{
    if (out->state == RUN_QUEUED && strcmp(job->reason, "Dependency") == 0 && *k->said->reason &&
        !slurm_has_begun(k->said))
        snprintf(out->reason, sizeof(out->reason), "%.480s (%s)", k->said->reason, job->reason);
}

/* Slurm runs it: the agent's record is more precise, if it is about this attempt. */
static void merge_active(const struct slurm_known *k, const struct slurm_job *job, struct run_status *out)
{
    slurm_status_of(job, out);
    keep_record(k->said, out);
    name_needs(k, job, out);
    if (strcmp(job->state, "COMPLETING") == 0 && k->said->attempt == job->restarts) {
        out->attempt = k->said->attempt; /* Slurm already counts the next one */
        snprintf(out->reason, sizeof(out->reason), "it is ending, and will be queued again");
    }
    if (out->state != RUN_RUNNING || !is_current(k->said, job) || run_state_is_final(k->said->state))
        return;
    if (k->said->started_unix_s)
        out->started_unix_s = k->said->started_unix_s;
    out->heartbeat_unix_s = k->said->heartbeat_unix_s;
    if (!*out->reason)
        snprintf(out->reason, sizeof(out->reason), "%s", k->said->state == RUN_RUNNING ? k->said->reason : "");
    note_silence(k, out);
}

/* The job is no longer known. */
static void merge_forgotten(const struct slurm_known *k, struct run_status *out)
{
    int64_t silent = k->now_unix_s - k->said->heartbeat_unix_s;

    *out = *k->said;
    if (k->said->heartbeat_unix_s && silent > -ALIVE_S && silent < ALIVE_S)
        return;
    if (!k->job && k->now_unix_s - slurm_run_created(k->id) < HANDOVER_S) {
        snprintf(out->reason, sizeof(out->reason), "it is being handed to Slurm");
        return;
    }
    out->state = RUN_FAILED;
    out->exit_status = 128 + SIGKILL;
    out->failed_rank = -1;
    out->ended_unix_s = k->said->heartbeat_unix_s;
    if (!k->job)
        snprintf(out->reason, sizeof(out->reason),
                 "lost: it was never handed to Slurm (the submission was interrupted)");
    else if (slurm_has_begun(k->said))
        snprintf(out->reason, sizeof(out->reason),
                 "lost: Slurm no longer knows job %lld and its agent has not said how it ended", (long long)k->job);
    else
        snprintf(out->reason, sizeof(out->reason),
                 "lost: Slurm no longer knows job %lld, and its agent has never begun", (long long)k->job);
}

/* A task that is canceled while it waits leaves its array without a trace. */
static bool is_dropped(const struct slurm_known *k)
{
    return k->task >= 0 && k->array_there && !slurm_has_begun(k->said);
}

static void say_dropped(const struct slurm_known *k, struct run_status *out)
{
    *out = *k->said;
    out->state = RUN_CANCELED;
    out->exit_status = 128 + SIGTERM;
    out->ended_unix_s = k->now_unix_s;
    snprintf(out->reason, sizeof(out->reason), "canceled in Slurm while it waited");
}

/* The job that it is a step of says nothing about it. */
static bool merge_step(const struct slurm_known *k, struct run_status *out)
{
    enum { SILENT_S = 20 }; /* the agent writes its heartbeat every 10 s */
    int64_t silent = k->now_unix_s - k->said->heartbeat_unix_s;

    *out = *k->said;
    if (k->step_there) {
        if (!*out->reason && out->state == RUN_RUNNING)
            snprintf(out->reason, sizeof(out->reason), "a step of job %lld", (long long)k->job);
        note_silence(k, out);
        return false;
    }
    if (k->said->heartbeat_unix_s && silent > -ALIVE_S && silent < SILENT_S)
        return false;
    out->state = RUN_FAILED;
    out->exit_status = 128 + SIGKILL;
    out->failed_rank = -1;
    out->ended_unix_s = k->said->heartbeat_unix_s;
    snprintf(out->reason, sizeof(out->reason),
             "lost: its step of job %lld is gone, and its agent has not said how it ended", (long long)k->job);
    return true;
}

bool slurm_merge(const struct slurm_known *k, struct run_status *out)
{
    const struct slurm_job *job = k->queue;

    if (record_stands(k->said, job)) {
        *out = *k->said;
        return false;
    }
    if (k->is_step)
        return merge_step(k, out);
    if (k->past && (!job || is_job_over(job)) && is_job_over(k->past))
        job = k->past;
    if (!job && is_dropped(k)) {
        say_dropped(k, out);
        return true;
    }
    if (!job) {
        merge_forgotten(k, out);
        return false;
    }
    if (!is_job_over(job)) {
        merge_active(k, job, out);
        return false;
    }
    if (may_still_say(k, job)) {
        say_ending(k, job, out);
        return false;
    }
    slurm_status_of(job, out);
    keep_record(k->said, out);
    if (job == k->past) /* sacct does not report the number of restarts */
        out->attempt = k->queue ? k->queue->restarts + 1 : k->said->attempt;
    if (k->said->started_unix_s && is_current(k->said, job))
        out->started_unix_s = k->said->started_unix_s;
    return true;
}
