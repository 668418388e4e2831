/* end.c - how runs end: aborted, forgotten, waited for. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs.h"
#include "flow/runs/runs_internal.h"
#include "ledger/ledger.h"
#include "platform/platform.h"
#include "run/run.h"

/* Whether the platform still knows the run; a run that may be running must not be forgotten. */
static bool still_tells(struct flow *flow, struct flow_run *run)
{
    struct act_error ignored;
    struct platform *platform;

    return flow_platform_of(flow, &run->row, &platform, &ignored) == 0 &&
           flow_refresh(flow, platform, run, &ignored) == 0;
}

int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err)
{
    bool tells = !run_state_is_final(run->status.state) && still_tells(flow, run);

    *out_was_final = run_state_is_final(run->status.state);
    if (*out_was_final)
        return 0;
    if (tells)
        return act_error_set(err, ACT_USAGE, "cannot forget '%s': its cluster answers, and 'a abort %s' ends it",
                             run->row.id, run->row.id);
    run->status.state = RUN_CANCELED;
    run->status.aborted = run->changed = true;
    snprintf(run->status.reason, sizeof(run->status.reason), "forgotten here; its cluster does not answer");
    int rc = flow_store_changes(flow, run, 1, err);
    if (rc == 0 && flow->ledger_copy)
        rc = act_error_set(err, ACT_FAIL, "cannot forget '%s': the ledger cannot be written", run->row.id);
    return rc;
}

/* A run that is deleted takes its logs along: what there is of them is fetched before. */
static void keep_logs(struct flow *flow, const struct flow_run *run)
{
    struct flow_run ended = *run;
    struct flow_logs logs;
    struct act_error err;

    ended.status.state = RUN_CANCELED;
    ended.status.ended_unix_s = 0;
    int rc = flow_fetch_logs(flow, &ended, &(struct flow_fetch){0}, &logs, &err);
    if (rc == 0)
        flow_logs_release(&logs);
    else if (rc != -ACT_NOT_FOUND)
        act_warn("%s", act_error_text(&err));
}

int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc;

    *out_was_final = run_state_is_final(run->status.state);
    if (*out_was_final)
        return 0;
    rc = flow_platform_of(flow, &run->row, &platform, err);
    if (rc < 0)
        return rc;
    if (platform_row(platform)->deletion_ends)
        keep_logs(flow, run);
    rc = platform_abort(platform, run->row.id, out_was_final, err);
    if (rc == -ACT_NOT_FOUND && platform_row(platform)->deletion_ends)
        rc = 0;
    if (rc == 0 && !*out_was_final)
        run->status.aborted = run->changed = true;
    if (rc == 0)
        rc = flow_refresh(flow, platform, run, err);
    return rc < 0 ? act_error_prefix(err, "cannot abort '%s'", run->row.id) : 0;
}

char *flow_page(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform;
    struct act_error ignored;

    if (run->status.unsubmitted || flow_platform_of(flow, &run->row, &platform, &ignored) < 0)
        return NULL;
    return platform_page(platform, run->row.id);
}

int flow_exit_status(const struct run_status *status)
{
    switch (status->state) {
    case RUN_COMPLETED:
        return 0;
    case RUN_CANCELED:
        return ACT_TERMINATED;
    default:
        return status->exit_status > 0 ? status->exit_status : ACT_FAIL;
    }
}

/* ---- watching */

/* How long the user is willing to wait; {0}: for ever. */
struct limit {
    int64_t seconds, end_ms;
};

static struct limit limit_of(int64_t timeout_s)
{
    return (struct limit){timeout_s, timeout_s ? act_now_monotonic_ms() + timeout_s * 1000 : 0};
}

static bool is_limit_over(const struct limit *limit)
{
    return limit->end_ms && act_now_monotonic_ms() >= limit->end_ms;
}

static int find_patiently(struct flow *flow, const char *piece, const struct limit *limit, struct flow_run *out,
                          struct act_error *err)
{
    struct flow_watch watch = {0};

    for (;;) {
        int rc = flow_watch_took(&watch, flow_find_run(flow, piece, out, err), err);
        if (rc < 0 || !watch.trial_ms)
            return rc;
        if (is_limit_over(limit)) {
            struct act_error why = *err;
            return act_error_set(err, ACT_TIMEOUT, "nobody could tell for %lld s what run '%s' does: %s",
                                 (long long)limit->seconds, piece, act_error_text(&why));
        }
        flow_watch_pause(&watch, flow, false, limit->end_ms);
    }
}

int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    return find_patiently(flow, piece, &(struct limit){0}, out, err);
}

static int wait_until(struct flow *flow, struct flow_run *run, const struct limit *limit,
                      const struct flow_waiting *how, struct act_error *err)
{
    struct flow_watch watch = {0};
    struct platform *platform;

    if (run_state_is_final(run->status.state))
        return 0;
    int rc = flow_platform_of(flow, &run->row, &platform, err);
    while (rc == 0) {
        if (how->each)
            how->each(how->arg, run);
        flow_watch_pause(&watch, flow, false, limit->end_ms);
        rc = flow_watch_took(&watch, flow_watch_look(&watch, flow, platform, run, err), err);
        if (rc < 0 || run_state_is_final(run->status.state))
            break;
        if (is_limit_over(limit))
            rc = act_error_set(err, ACT_TIMEOUT, "run '%s' is still %s after %lld s", run->row.id,
                               run_state_name(run->status.state), (long long)limit->seconds);
    }
    return rc;
}

int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    return wait_until(flow, run, &(struct limit){0}, &(struct flow_waiting){0}, err);
}

int flow_wait_for(struct flow *flow, const char *piece, const struct flow_waiting *how, struct flow_run *out,
                  struct act_error *err)
{
    struct limit limit = limit_of(how->timeout_s);
    int rc = find_patiently(flow, piece, &limit, out, err);

    if (rc < 0)
        return rc;
    rc = wait_until(flow, out, &limit, how, err);
    if (rc < 0)
        flow_run_release(out);
    return rc;
}
