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

/* A run that is to end, and the runs of a platform that are. */
struct aborting {
    struct flow_run *run;
    struct flow_end *out;
    struct platform *platform; /* NULL: nothing is to be done there */
};

struct aborting_there {
    struct flow *flow;
    struct aborting **of; /* n of them */
    struct platform_ending ending;
};

struct aborting_all {
    struct aborting_there *v; /* first those of platforms that wait for the ends, n_waiting of them */
    size_t n_waiting, n;
};

static void abort_begin(struct flow *flow, struct aborting *a)
{
    a->out->was_final = run_state_is_final(a->run->status.state);
    if (!a->out->was_final)
        a->out->rc = flow_platform_of(flow, &a->run->row, &a->platform, &a->out->err);
}

static void abort_take(struct aborting *a, const struct platform_end *end)
{
    bool is_gone = end->rc == -ACT_NOT_FOUND && platform_row(a->platform)->about.deletion_ends;

    *a->out = (struct flow_end){.was_final = end->was_final, .rc = is_gone ? 0 : end->rc, .err = end->err};
    if (a->out->rc == 0 && !end->was_final)
        a->run->status.aborted = a->run->changed = true;
}

/* Notes what became of the runs of one platform. */
static void abort_note(const struct aborting_there *t)
{
    ACT_AUTOFREE struct flow_run **told = act_calloc(t->ending.n + 1, sizeof(*told));
    struct act_error err;
    size_t n_told = 0;

    for (size_t i = 0; i < t->ending.n; i++) {
        abort_take(t->of[i], &t->ending.ends[i]);
        if (t->of[i]->out->rc == 0)
            told[n_told++] = t->of[i]->run;
    }
    int rc = n_told > 0 ? flow_refresh_all(t->flow, t->ending.platform, told, n_told, &err) : 0;
    for (size_t i = 0; rc < 0 && i < t->ending.n; i++)
        if (t->of[i]->out->rc == 0)
            *t->of[i]->out = (struct flow_end){.rc = rc, .err = err};
}

/* Ends some runs of one platform that does not wait for that. */
static void abort_some(const struct aborting_there *t, size_t from, size_t n)
{
    for (size_t k = from; k < from + n && platform_row(t->ending.platform)->about.deletion_ends; k++)
        keep_logs(t->flow, t->of[k]->run);
    platform_abort_all(t->ending.platform, &t->ending.ends[from], n);
}

/* Ends the runs of platforms that do not wait for that: not all at once, as an interruption leaves those alone whose
 * turn has not come, and their logs are brought before. */
static void abort_here(void *arg)
{
    enum { AT_ONCE = 32 };
    const struct aborting_all *all = arg;

    for (size_t i = all->n_waiting; i < all->n; i++)
        for (size_t k = 0, n = all->v[i].ending.n; k < n; k += AT_ONCE)
            abort_some(&all->v[i], k, n - k < AT_ONCE ? n - k : AT_ONCE);
}

/* Takes the runs of the platform of the first of them. */
static void abort_gather(struct flow *flow, struct aborting *all, size_t n, struct aborting_there *out)
{
    struct platform *platform = all->platform;

    *out = (struct aborting_there){.flow = flow, .of = act_calloc(n, sizeof(*out->of)), .ending.platform = platform};
    out->ending.ends = act_calloc(n, sizeof(*out->ending.ends));
    for (size_t i = 0; i < n; i++)
        if (all[i].platform == platform) {
            out->ending.ends[out->ending.n].id = all[i].run->row.id;
            out->of[out->ending.n++] = &all[i];
        }
}

static bool abort_is_first(const struct aborting *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all[k].platform == all[i].platform)
            return false;
    return all[i].platform;
}

/* Takes all of them, by their platforms: those that wait, or those that do not. */
static void abort_gather_all(struct flow *flow, struct aborting *all, size_t n, bool waits, struct aborting_all *out)
{
    for (size_t i = 0; i < n; i++)
        if (abort_is_first(all, i) && platform_awaits_ends(all[i].platform) == waits)
            abort_gather(flow, all + i, n - i, &out->v[out->n++]);
}

static void abort_on_all(struct flow *flow, struct aborting *all, size_t n)
{
    struct aborting_all there = {.v = act_calloc(n + 1, sizeof(*there.v))};

    abort_gather_all(flow, all, n, true, &there);
    there.n_waiting = there.n;
    abort_gather_all(flow, all, n, false, &there);
    ACT_AUTOFREE struct platform_ending *endings = act_calloc(there.n_waiting + 1, sizeof(*endings));
    for (size_t i = 0; i < there.n_waiting; i++)
        endings[i] = there.v[i].ending;
    platform_abort_together(endings, there.n_waiting, there.n > there.n_waiting ? abort_here : NULL, &there);
    for (size_t i = 0; i < there.n; i++) {
        abort_note(&there.v[i]);
        free(there.v[i].ending.ends);
        free(there.v[i].of);
    }
    free(there.v);
}

void flow_abort_all(struct flow *flow, struct flow_run *runs, size_t n, struct flow_end *out)
{
    ACT_AUTOFREE struct aborting *all = act_calloc(n + 1, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        out[i] = (struct flow_end){0};
        all[i] = (struct aborting){.run = &runs[i], .out = &out[i]};
        abort_begin(flow, &all[i]);
    }
    abort_on_all(flow, all, n);
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
