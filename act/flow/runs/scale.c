/* scale.c - gives an elastic run another size. */
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"
#include "platform/platform.h"

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
        return act_error_set(err, ACT_USAGE, "it has whole nodes of %d each, and %lld is not a multiple of that",
                             per_node, (long long)num_gpu);
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
