/* range.c - the sizes that an elastic run may have, which works with as many nodes as there are. */
#include "base/units.h"
#include "config/config.h"
#include "flow/submit/parts.h"
#include "platform/platform.h"

static int range_refuse_here(const struct config *c, const struct platform_row *row, struct act_error *err)
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
        return said && !row->about.is_elastic ? range_refuse_here(c, row, err) : 0;
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
