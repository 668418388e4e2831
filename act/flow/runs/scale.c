/* scale.c - elastic runs, which work with as many nodes as there are, within a range. */
#include "base/units.h"
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"
#include "flow/runs/submit_internal.h"
#include "platform/platform.h"

/* ---- what a configuration says */

static int scale_refuse_here(const struct config *c, const struct platform_row *row, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE,
                         "an elastic run (-n MIN:MAX, elastic_num_gpu) needs the platform k8s: cluster '%s' has the "
                         "platform '%s', which cannot change the size of a run; use -n N",
                         c->cluster, row->kind->name);
}

int flow_take_range(const struct config *c, struct platform *platform, struct flow_range *out, struct act_error *err)
{
    const struct platform_row *row = platform_row(platform);
    const struct act_strv *counts = &c->elastic_num_gpu;
    bool said = config_is_said(c, "elastic_num_gpu");

    *out = (struct flow_range){0};
    if (counts->n == 0 || (config_is_said(c, "num_gpu") && !said))
        return 0;
    if (!row->runs.scale)
        return said && !row->about.is_elastic ? scale_refuse_here(c, row, err) : 0;
    for (size_t i = 0; i < counts->n; i++) {
        int64_t n;
        if (!act_int_from_text(counts->v[i], &n))
            continue;
        out->least = i == 0 || n < out->least ? n : out->least;
        out->most = n > out->most ? n : out->most;
    }
    if (c->num_gpu < 0 || c->num_gpu == out->most)
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "num_gpu is %lld, but the largest of elastic_num_gpu is %lld, which an elastic run may grow "
                         "to; remove num_gpu, or use -n N for a fixed size",
                         (long long)c->num_gpu, (long long)out->most);
}

int flow_set_range(const struct flow_range *range, int per_node, struct run_spec *spec, struct act_error *err)
{
    if (!range->most)
        return 0;
    if (range->least % per_node || range->most % per_node)
        return act_error_set(err, ACT_USAGE,
                             "an elastic run has whole nodes: %lld:%lld must be multiples of the %d that each has",
                             (long long)range->least, (long long)range->most, per_node);
    spec->min_nodes = (int)(range->least / per_node);
    spec->max_nodes = spec->nodes;
    return 0;
}

/* ---- a run */

static int scale_check_run(const struct flow_run *run, int64_t num_gpu, struct act_error *err)
{
    const struct run_spec *spec = &run->spec;
    int per_node = spec->gpus_per_node;

    if (run_state_is_final(run->status.state))
        return act_error_set(err, ACT_USAGE, "it has ended: %s", run_state_name(run->status.state));
    if (!run_spec_is_elastic(spec))
        return act_error_set(err, ACT_USAGE, "it has a fixed size; 'a -n MIN:MAX submit' makes runs that change it");
    long long least = (long long)spec->min_nodes * per_node, most = (long long)spec->max_nodes * per_node;
    if (num_gpu < least || num_gpu > most)
        return act_error_set(err, ACT_USAGE, "it can have from %lld to %lld, not %lld", least, most,
                             (long long)num_gpu);
    if (num_gpu % per_node)
        return act_error_set(err, ACT_USAGE, "it has whole nodes of %d each, and %lld is no multiple of that", per_node,
                             (long long)num_gpu);
    return 0;
}

int flow_scale(struct flow *flow, struct flow_run *run, int64_t num_gpu, bool dry_run, int *out_nodes,
               struct act_error *err)
{
    struct platform *platform = NULL;
    int rc = flow_platform_of(flow, &run->row, &platform, err);

    *out_nodes = 0;
    if (rc == 0 && !platform_row(platform)->runs.scale)
        rc = platform_scale(platform, run->row.id, 0, dry_run, err); /* which says that it cannot */
    else if (rc == 0)
        rc = scale_check_run(run, num_gpu, err);
    if (rc == 0)
        *out_nodes = (int)(num_gpu / run->spec.gpus_per_node);
    if (rc == 0)
        rc = platform_scale(platform, run->row.id, *out_nodes, dry_run, err);
    return rc < 0 ? act_error_prefix(err, "cannot scale '%s'", run->row.id) : 0;
}
