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

struct aborting {
    struct flow_run *run;
    struct flow_end *out;
    struct platform *platform; /* NULL: nothing is to be done there (any more) */
};

static void abort_begin(struct flow *flow, struct aborting *a)
{
    a->out->was_final = run_state_is_final(a->run->status.state);
    if (a->out->was_final)
        return;
    a->out->rc = flow_platform_of(flow, &a->run->row, &a->platform, &a->out->err);
    if (a->out->rc == 0 && platform_row(a->platform)->about.deletion_ends)
        keep_logs(flow, a->run);
}

static void abort_take(struct aborting *a, const struct platform_end *end)
{
    bool is_gone = end->rc == -ACT_NOT_FOUND && platform_row(a->platform)->about.deletion_ends;

    *a->out = (struct flow_end){.was_final = end->was_final, .rc = is_gone ? 0 : end->rc, .err = end->err};
    if (a->out->rc == 0 && !end->was_final)
        a->run->status.aborted = a->run->changed = true;
}

/* Aborts the runs of one platform. */
static void abort_on(struct flow *flow, struct platform *platform, struct aborting **of, size_t n)
{
    ACT_AUTOFREE struct platform_end *ends = act_calloc(n, sizeof(*ends));
    ACT_AUTOFREE struct flow_run **told = act_calloc(n, sizeof(*told));
    struct act_error err;
    size_t n_told = 0;

    for (size_t i = 0; i < n; i++)
        ends[i].id = of[i]->run->row.id;
    platform_abort_all(platform, ends, n);
    for (size_t i = 0; i < n; i++) {
        abort_take(of[i], &ends[i]);
        if (of[i]->out->rc == 0)
            told[n_told++] = of[i]->run;
    }
    int rc = n_told > 0 ? flow_refresh_all(flow, platform, told, n_told, &err) : 0;
    for (size_t i = 0; rc < 0 && i < n; i++)
        if (of[i]->out->rc == 0)
            *of[i]->out = (struct flow_end){.rc = rc, .err = err};
}

void flow_abort_all(struct flow *flow, struct flow_run *runs, size_t n, struct flow_end *out)
{
    ACT_AUTOFREE struct aborting *all = act_calloc(n + 1, sizeof(*all));
    ACT_AUTOFREE struct aborting **same = act_calloc(n + 1, sizeof(*same));

    for (size_t i = 0; i < n; i++) {
        out[i] = (struct flow_end){0};
        all[i] = (struct aborting){.run = &runs[i], .out = &out[i]};
        abort_begin(flow, &all[i]);
    }
    for (size_t i = 0; i < n; i++) {
        struct platform *platform = all[i].platform;
        size_t n_same = 0;
        for (size_t k = i; platform && k < n; k++)
            if (all[k].platform == platform)
                same[n_same++] = &all[k];
        if (n_same > 0)
            abort_on(flow, platform, same, n_same);
        for (size_t k = 0; k < n_same; k++)
            same[k]->platform = NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (out[i].rc < 0)
            out[i].rc = act_error_prefix(&out[i].err, "cannot abort '%s'", runs[i].row.id);
}

int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err)
{
    struct flow_end end;

    flow_abort_all(flow, run, 1, &end);
    *out_was_final = end.was_final;
    if (end.rc < 0)
        *err = end.err;
    return end.rc;
}
