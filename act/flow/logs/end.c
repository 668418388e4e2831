/* end.c - how runs end: aborted, forgotten. */
#include <string.h>

#include "base/log.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/watch.h"
#include "platform/platform.h"

/* Tells whether the platform still knows the run: a run that may be running must not be forgotten. */
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
    if (platform_row(platform)->about.deletion_ends)
        keep_logs(flow, run);
    rc = platform_abort(platform, run->row.id, out_was_final, err);
    if (rc == -ACT_NOT_FOUND && platform_row(platform)->about.deletion_ends)
        rc = 0;
    if (rc == 0 && !*out_was_final)
        run->status.aborted = run->changed = true;
    if (rc == 0)
        rc = flow_refresh(flow, platform, run, err);
    return rc < 0 ? act_error_prefix(err, "cannot abort '%s'", run->row.id) : 0;
}
