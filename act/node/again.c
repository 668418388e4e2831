/* again.c - another attempt after one that failed. On this machine this process begins it, and in a Slurm job Slurm
 * does, on other nodes where there are enough; in pods the first one reads what is decided here. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/attempt.h"
#include "node/retry.h"
#include "node/supervisor.h"

static bool may_be_tried_again(const struct supervisor *s)
{
    return s->status.state == RUN_FAILED && !s->aborted && s->job.end == JOB_GOES_ON && !attempt_abort_is_asked(s);
}

static void take_facts(const struct supervisor *s, struct retry_facts *out)
{
    const struct node_record *r =
        s->first_failed >= 0 && s->status.failed_rank >= 0 ? &s->ranks[s->first_failed].record : NULL;
    bool alone = s->node.spec.nodes == 1;

    *out = (struct retry_facts){.attempt = s->status.attempt,
                                .rank = r ? r->rank : -1,
                                .exit_status = s->status.exit_status,
                                .signal = r ? r->signal : 0,
                                .reason = s->status.reason,
                                .lines = r ? &r->lines : NULL,
                                .slurm_from = s->job.output_from,
                                .node = r       ? r->node
                                        : alone ? s->node.name
                                                : "",
                                .hosts = &s->job.hosts,
                                .is_requeued = r && r->lost && s->job.id && !s->job.step && job_is_requeued(&s->job),
                                .class_of_elsewhere = s->end_class};
    if (s->status.started_unix_s)
        out->seconds = s->status.ended_unix_s - s->status.started_unix_s;
}

static void again_wait_for_next(struct supervisor *s, int next, int64_t pause_s)
{
    s->status.state = RUN_QUEUED;
    s->status.failed_rank = -1;
    s->status.exit_status = 0;
    s->status.ended_unix_s = 0;
    s->status.class[0] = '\0';
    char of[24] = "", reason[120];
    if (s->status.attempts > 0) /* else the run has as many as Slurm gives it */
        snprintf(of, sizeof(of), " of %d", s->status.attempts);
    snprintf(reason, sizeof(reason), "attempt %d%s begins in %lld s", next, of, (long long)pause_s);
    attempt_set_reason(s, reason);
    node_say("%s; %s", s->status.retry, reason);
    attempt_save_status(s);
}

/* ---- on this machine ---- */

static bool is_abort(const struct supervisor *s, int sig)
{
    return sig == SIGTERM || sig == SIGINT || (sig == SIGUSR2 && attempt_abort_is_asked(s));
}

/* Waits for pause_s. Returns false if the user has asked to abort. */
static bool pause_here(struct supervisor *s, int64_t pause_s)
{
    enum { BEAT_MS = 10 * 1000 };
    int64_t end = act_now_monotonic_ms() + pause_s * 1000, left;
    int sig = 0;

    while ((left = end - act_now_monotonic_ms()) > 0) {
        bool is_told = watch_wait(&s->watch, left < BEAT_MS ? left : BEAT_MS, &sig) == WATCH_SIGNAL && is_abort(s, sig);
        if (is_told || attempt_abort_is_asked(s))
            return false;
        attempt_save_status(s);
    }
    return !attempt_abort_is_asked(s);
}

/* Executes this program anew, which still holds the lock, if there is one. Signals that came meanwhile are pending
 * there, too. */
static void begin_here(const struct supervisor *s)
{
    const struct supervise_options *o = &s->options;
    char self[PATH_MAX] = "";
    ACT_AUTO(act_strv) argv = {0};

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
        (o->lock_fd >= 0 && fcntl(o->lock_fd, F_SETFD, 0) < 0))
        return;
    ACT_STRV_PUSH(&argv, self, "supervise");
    if (o->where == IN_SLURM)
        act_strv_push(&argv, "--slurm");
    if (o->slots_dir)
        act_strv_pushf(&argv, "--slots-dir=%s", o->slots_dir);
    if (o->lock_fd >= 0)
        act_strv_pushf(&argv, "--lock-fd=%d", o->lock_fd);
    act_strv_pushf(&argv, "--slots=%d", o->slots);
    act_strv_pushf(&argv, "--time-left=%d", o->left_s);
    if (o->gpus)
        act_strv_push(&argv, "--gpus");
    if (o->shared)
        act_strv_push(&argv, "--shared");
    if (o->within)
        act_strv_pushf(&argv, "--within=%s", o->within);
    act_strv_push(&argv, o->run_dir);
    gpu_masks_restore(&s->masks);
    execv(self, argv.v);
}

static void try_here(struct supervisor *s, int next)
{
    struct retry_history history;
    struct act_error err;

    retry_history_read(&s->node, &history);
    ranks_close(s);
    attempt_drop_reserve(s);
    if (attempt_put_away(&s->node, s->status.attempt, &s->status, &err) < 0)
        return attempt_finish(s, RUN_FAILED, s->status.exit_status, act_error_text(&err));
    node_own_log(&s->node);
    int64_t pause_s = retry_pause_s(history.n);
    s->status.attempt = next;
    s->status.started_unix_s = 0;
    again_wait_for_next(s, next, pause_s);
    if (pause_here(s, pause_s)) {
        begin_here(s);
        attempt_finish(s, RUN_FAILED, ACT_WRAPPER, "the next attempt could not be started");
    } else {
        s->aborted = true;
        attempt_finish(s, RUN_CANCELED, 128 + SIGTERM, "aborted");
    }
}

/* ---- in a Slurm job ---- */

static void say_nodes(struct supervisor *s, const struct act_strv *out_of, bool is_short)
{
    size_t len = strlen(s->status.retry), room = sizeof(s->status.retry) - len;

    if (is_short)
        snprintf(s->status.retry + len, room, "; its node is not excluded: the run would not fit without it");
    else if (out_of->n > 0)
        snprintf(s->status.retry + len, room, "; without %.64s from now on", out_of->v[out_of->n - 1]);
}

/* Slurm ends this process once the job is in the queue again. */
static void again_wait_for_end(struct supervisor *s)
{
    enum { WAIT_MS = 60 * 1000 };
    int64_t end = act_now_monotonic_ms() + WAIT_MS, left;
    int sig = 0;

    while (sig != SIGTERM && (left = end - act_now_monotonic_ms()) > 0)
        watch_wait(&s->watch, left, &sig);
}

static void try_in_slurm(struct supervisor *s, int next)
{
    struct retry_history history;
    struct run_status failed = s->status;
    ACT_AUTO(act_strv) nodes = {0}, out_of = {0};
    struct act_error err;
    bool is_short = false;

    retry_history_read(&s->node, &history);
    int64_t pause_s = retry_pause_s(history.n);
    for (int i = 0; i < history.n; i++)
        if (history.v[i].node[0] && !act_strv_has(&nodes, history.v[i].node))
            act_strv_push(&nodes, history.v[i].node);
    job_choose_excluded(&s->job, &s->node, &nodes, &out_of, &is_short);
    say_nodes(s, &out_of, is_short);
    again_wait_for_next(s, next, pause_s);
    if (job_requeue(&s->job, &out_of, pause_s, &err) == 0)
        return again_wait_for_end(s);
    s->status = failed;
    retry_forget(&s->node, s->status.attempt);
    snprintf(s->status.retry, sizeof(s->status.retry), "not tried again: %.250s", act_error_text(&err));
}

void again_consider(struct supervisor *s)
{
    static void (*const tries[])(struct supervisor *,
                                 int) = {[IN_SLOTS] = try_here, [IN_SLURM] = try_in_slurm, [IN_PODS] = NULL};
    struct retry_facts facts;

    if (!may_be_tried_again(s))
        return;
    take_facts(s, &facts);
    int next = retry_consider(&s->node, &facts, &s->status);
    void (*try)(struct supervisor *, int) = s->job.step ? try_here : tries[s->options.where];
    if (next > 0 && try)
        try(s, next);
}
