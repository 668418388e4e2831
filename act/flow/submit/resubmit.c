/* resubmit.c - a run again: what it takes from the first one. */
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

bool passage_is_moved(const struct passage *p)
{
    return strcmp(p->old->spec.cluster, p->flow->config->cluster) != 0;
}

/* The values of the secrets, which run.json does not have: the platform may. */
int step_find_secrets(struct passage *p, struct act_error *err)
{
    struct flow_run *old = p->old;
    ACT_AUTO(run_spec) there = {0};
    struct platform *platform;
    struct act_error ignored;
    bool missing = false;

    (void)err;
    for (size_t i = 0; i < old->spec.n_env; i++)
        missing = missing || !old->spec.env[i].value;
    if (!missing || flow_platform_of(p->from, &old->row, &platform, &ignored) < 0 ||
        platform_spec(platform, old->row.id, &there, &ignored) < 0)
        return 0;
    for (size_t i = 0; i < old->spec.n_env; i++)
        for (size_t j = 0; j < there.n_env; j++)
            if (!old->spec.env[i].value && strcmp(old->spec.env[i].name, there.env[j].name) == 0)
                old->spec.env[i] = (struct run_env){
                    .name = old->spec.env[i].name, .value = act_strdup(there.env[j].value), .secret = true};
    return 0;
}

int step_repeat_command(struct passage *p, struct act_error *err)
{
    const struct run_spec *old = &p->old->spec;
    struct run_spec *spec = p->spec;

    (void)err;
    spec->timeout = act_strdup(old->timeout);
    spec->shm_size = act_strdup(old->shm_size);
    spec->own_image = old->own_image && act_streq(spec->image, old->image);
    act_strv_copy(&spec->argv, old->argv.v, old->argv.n);
    spec->title = act_strdup(old->title);
    for (size_t i = 0; i < old->n_outputs; i++)
        run_spec_add_output(spec, old->outputs[i].id, old->outputs[i].path);
    return 0;
}

static void repeat_range(struct config *config, const struct run_spec *old)
{
    act_strv_release(&config->elastic_num_gpu);
    if (!run_spec_is_elastic(old))
        return;
    act_strv_pushf(&config->elastic_num_gpu, "%d", old->min_nodes * old->gpus_per_node);
    act_strv_pushf(&config->elastic_num_gpu, "%d", old->max_nodes * old->gpus_per_node);
}

/* The size of the first run, unless this command gives another; on another cluster as many GPUs. */
int step_repeat_size(struct passage *p, struct act_error *err)
{
    struct config *c = p->flow->config;
    const struct run_spec *old = &p->old->spec;
    struct run_spec *spec = p->spec;
    bool said = config_is_said(c, "num_gpu");

    if (passage_is_moved(p) || said || config_is_said(c, "multi_process")) {
        if (!said)
            c->num_gpu = flow_slots_of(old);
        if (!said && platform_row(p->platform)->runs.scale)
            repeat_range(c, old);
        else if (!said && run_spec_is_elastic(old))
            act_note("the first run had %d to %d nodes; this one has a fixed size, as platform '%s' cannot change it",
                     old->min_nodes, old->max_nodes, c->platform);
        return flow_take_shape(c, p->platform, spec, err);
    }
    spec->nodes = old->nodes;
    spec->procs_per_node = old->procs_per_node;
    spec->gpus_per_node = old->gpus_per_node;
    spec->on_processors = old->on_processors;
    spec->started_per_node = old->started_per_node;
    spec->min_nodes = old->min_nodes;
    spec->max_nodes = old->max_nodes;
    return 0;
}

/* Repeats the job of another tool, of which the service alone knows all: on the same cluster it becomes the same job
 * again, elsewhere its command runs. */
int step_repeat_foreign(struct passage *p, struct act_error *err)
{
    const struct run_spec *old = &p->old->spec;

    p->spec->foreign = old->foreign && !passage_is_moved(p);
    if (old->foreign && p->io->code)
        return act_error_set(err, ACT_USAGE, "another tool made it: --code is for runs whose code ACT has packed");
    if (old->foreign && !p->spec->foreign && strstr(old->argv.v[old->argv.n - 1], "${{"))
        return act_error_set(err, ACT_FAIL,
                             "another tool made it, and its command names inputs of its job ('${{'), which "
                             "cluster '%s' does not have",
                             p->flow->config->cluster);
    return 0;
}

/* ---- the place of the old run */

/* Tells whether a run has ended or is nowhere. When in doubt, it has not. */
static bool resubmit_has_ended(struct flow *flow, const char *id)
{
    struct flow_run run = {0};
    struct act_error ignored;
    int rc = flow_find_run(flow, id, &run, &ignored);
    bool ended = rc < 0 ? rc == -ACT_NOT_FOUND : run_state_is_final(run.status.state);

    if (rc == 0)
        flow_run_release(&run);
    return ended;
}

/* The old one may have ended before it began, and what it waited for goes on. */
int step_wait_for_old(struct passage *p, struct act_error *err)
{
    const struct act_strv *before = &p->old->spec.after;

    (void)err;
    for (size_t i = 0; i < before->n; i++)
        if (!resubmit_has_ended(p->from, before->v[i]))
            act_strv_push(&p->spec->after, before->v[i]);
    if (!run_state_is_final(p->old->status.state))
        act_strv_push(&p->spec->after, p->old->row.id);
    return 0;
}

/* Another run took the place of this one, and goes on: both would do the same work. */
static int confirm_second(const struct passage *p, struct act_error *err)
{
    const char *by = p->old->replaced_by;

    if (!by || !p->io->confirm || p->io->dry_run || flow_again_is_open(by) || resubmit_has_ended(p->from, by))
        return 0;
    ACT_AUTOFREE char *question =
        act_sprintf("'%s' was replaced by '%s', which goes on: submit it once more?", p->old->row.id, by);
    return p->io->confirm(p->io->arg, question, err);
}

/* Refuses to replace a run that another one replaces. A run of which it is not known whether it was submitted may be
 * this very one (again.c); flow_remember() looks again. */
int step_check_place(struct passage *p, struct act_error *err)
{
    ACT_AUTO(ledger_runs) others = {0};
    int rc = 0;

    if (run_state_is_final(p->old->status.state))
        return confirm_second(p, err);
    for (struct ledger *ledger = NULL; flow_next_ledger(p->from, &ledger, &rc, err);)
        rc = ledger_repeats(ledger, p->old->row.id, &others, err);
    for (size_t i = 0; i < others.n && rc == 0; i++)
        if (!flow_again_is_open(others.v[i].id) && !resubmit_has_ended(p->from, others.v[i].id))
            rc = flow_refuse_other(others.v[i].id, err);
    return rc;
}

void step_end_old_run(struct passage *p)
{
    const char *id = p->old->row.id;
    struct act_error err;
    bool was_final;

    if (flow_abort(p->from, p->old, &was_final, &err) < 0)
        act_warn("'%s' goes on, and '%s' is there as well: %s; 'a abort %s' ends the first one", id, p->spec->id,
                 act_error_text(&err), id);
}

int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to, struct flow_submit *io,
                  struct act_error *err)
{
    struct passage p = {.flow = to, .io = io, .spec = &io->spec, .old = old, .home = home, .from = flow};
    int rc = flow_pass(&p, err);

    if (rc == 0 && io->dry_run)
        rc = platform_preview(p.platform, p.spec, &io->preview, err);
    flow_passage_release(&p);
    return rc < 0 ? act_error_prefix(err, "cannot resubmit '%s'", old->row.id) : 0;
}
