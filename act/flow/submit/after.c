/* after.c - the runs that a run is to run after. What has completed is no matter of the platform any more, wherever it
 * is; what has not is waited for there, by whoever starts the run: so both must be in one place, and somebody must be
 * there who waits. */
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "flow/runs/runs.h"
#include "flow/submit/passage.h"

/* A run that has begun has had what it needed. */
static const struct act_strv *after_kept(const struct passage *p)
{
    static const struct act_strv none;

    return p->old && !p->old->status.started_unix_s ? &p->old->spec.needs : &none;
}

/* Tells whether a run waits for the one of the id to, by way of others, too. */
static bool after_leads_to(struct flow *flow, const char *id, const char *to)
{
    ACT_AUTO(act_strv) seen = {0};
    struct act_error ignored;
    bool found = false;

    act_strv_push(&seen, id);
    for (size_t i = 0; i < seen.n && !found; i++) {
        ACT_AUTO(flow_run) run = {0};
        if (flow_find_known(flow, seen.v[i], &run, &ignored) < 0)
            continue;
        found = act_strv_has(&run.spec.needs, to);
        for (size_t k = 0; k < run.spec.needs.n; k++)
            if (!act_strv_has(&seen, run.spec.needs.v[k]))
                act_strv_push(&seen, run.spec.needs.v[k]);
    }
    return found;
}

/* The run that is replaced is told to end, and so do those that wait for it. */
static int after_check_circle(const struct passage *p, struct flow *flow, const char *id, struct act_error *err)
{
    const char *old = p->old && !run_state_is_final(p->old->status.state) ? p->old->row.id : NULL;

    if (act_streq(id, old))
        return act_error_set(err, ACT_USAGE, "it replaces '%s', which ends then: it cannot run after that", id);
    if (old && after_leads_to(flow, id, old))
        return act_error_set(err, ACT_USAGE, "'%s' is to run after '%s', which this run replaces: a circle", id, old);
    return 0;
}

static int after_refuse_ended(const struct flow_run *run, struct act_error *err)
{
    char what[256];

    run_say_unmet(run->row.id, &run->status, what, sizeof(what));
    act_error_set(err, ACT_FAIL, "%s%s%s", what, *run->status.reason ? ": " : "", run->status.reason);
    return act_error_hint(err, "--after-any begins when it has ended, however that was");
}

/* Refuses a run that goes on where this one cannot wait for it. */
static int after_check_active(const struct passage *p, struct flow *flow, const struct flow_run *run,
                              struct act_error *err)
{
    const struct config *config = p->flow->config;
    const char *id = run->row.id;

    if (!platform_row(p->platform)->about.runs_after)
        return act_error_set(err, ACT_USAGE,
                             "'%s' has not ended, and nothing waits for it on platform '%s', where only the service "
                             "starts runs; 'a wait %s && a submit ...' does",
                             id, config->platform, id);
    if (!flow_leads_to(config, &run->row))
        return act_error_set(err, ACT_USAGE,
                             "'%s' has not ended, and is in another place, on cluster '%s', of which '%s' knows "
                             "nothing; 'a wait %s && a submit ...' waits for it here",
                             id, run->row.cluster, config->cluster, id);
    return after_check_circle(p, flow, id, err);
}

static int after_judge(const struct passage *p, struct flow *flow, const struct flow_run *run, struct act_error *err)
{
    struct run_spec *spec = p->spec;

    if (run->status.state == RUN_COMPLETED || (run_state_is_final(run->status.state) && spec->needs_any))
        return 0;
    if (run_state_is_final(run->status.state))
        return after_refuse_ended(run, err);
    int rc = after_check_active(p, flow, run, err);
    if (rc == 0 && !act_strv_has(&spec->needs, run->row.id))
        act_strv_push(&spec->needs, run->row.id);
    return rc;
}

static int after_take(const struct passage *p, struct flow *flow, const char *piece, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(flow, piece, &run, err);

    if (rc == 0 && run.replaced_by) {
        act_note("'%s' was replaced by '%s': it runs after that one", run.row.id, run.replaced_by);
        return after_take(p, flow, run.replaced_by, err);
    }
    return rc < 0 ? rc : after_judge(p, flow, &run, err);
}

/* Takes "RUN,RUN". */
static int after_take_list(const struct passage *p, struct flow *flow, const char *list, struct act_error *err)
{
    ACT_AUTOFREE char *text = act_strdup(list);
    char *rest = text, *piece;
    int rc = 0;

    while (rc == 0 && (piece = strsep(&rest, ",")))
        rc = after_take(p, flow, piece, err);
    return rc;
}

int step_take_needs(struct passage *p, struct act_error *err)
{
    const struct act_strv *pieces = p->io->after.n ? &p->io->after : after_kept(p);
    struct flow *flow = p->old ? p->from : p->flow;
    bool kept_any = !p->io->after.n && p->old && p->old->spec.needs_any;
    int rc = 0;

    flow->cluster_is_target = true; /* the cluster of the command line is that of the new run */
    p->spec->needs_any = p->io->after_any || kept_any;
    for (size_t i = 0; i < pieces->n && rc == 0; i++)
        rc = after_take_list(p, flow, pieces->v[i], err);
    p->spec->needs_any = p->spec->needs_any && p->spec->needs.n;
    return rc;
}

/* Names the runs that wait for this one, as the ledger has them. One that cannot be read is no reason to refuse. */
int step_say_followers(struct passage *p, struct act_error *err)
{
    const struct flow_table table = {.own = true, .active = true, .with_spec = true, .as_known = true};
    const char *old = p->old->row.id;
    ACT_AUTO(flow_runs) runs = {0};
    struct act_error ignored;

    (void)err;
    if (run_state_is_final(p->old->status.state) || flow_list_runs(p->from, &table, &runs, &ignored) < 0)
        return 0;
    for (size_t i = 0; i < runs.n; i++)
        if (act_strv_has(&runs.v[i].spec.needs, old) && !runs.v[i].spec.needs_any)
            act_note("'%s' was to run after '%s', and ends with it; 'a resubmit %s' then runs it after this one",
                     runs.v[i].row.id, old, runs.v[i].row.id);
    return 0;
}
