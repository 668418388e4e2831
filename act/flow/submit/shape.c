/* shape.c - nodes and processes of a run, and the sizes that an elastic run may have, which works with as many nodes as
 * there are. */
#include "base/units.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

/* How many GPUs, or processes where there are none, an elastic run may have. Both 0: the run has a fixed size. */
struct flow_range {
    int64_t least, most;
};

static int range_refuse_here(const struct config *c, const struct platform_row *row, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE,
                         "an elastic run (-n MIN:MAX, elastic_num_gpu) needs the platform k8s: cluster '%s' has the "
                         "platform '%s', which cannot change the size of a run; use -n N",
                         c->cluster, row->kind->name);
}

/* Reads the range from the configuration, where -n N gives a fixed size. */
static int shape_take_range(const struct config *c, struct platform *platform, struct flow_range *out,
                            struct act_error *err)
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

/* Completes the shape of the largest size; a whole node has per_node. */
static int shape_set_range(const struct flow_range *range, int per_node, struct run_spec *spec, struct act_error *err)
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

int flow_take_shape(const struct config *c, struct platform *platform, struct run_spec *spec, struct act_error *err)
{
    struct platform_limits limits;
    struct run_shape s = {0};
    struct flow_range range = {0};
    int rc = platform_limits(platform, &limits, err);

    if (rc == 0)
        rc = shape_take_range(c, platform, &range, err);
    if (rc < 0)
        return rc;
    int64_t num_gpu = range.most ? range.most : c->num_gpu >= 0 ? c->num_gpu : limits.num_gpu;
    int64_t most = (int64_t)limits.gpu_per_node * limits.max_nodes; /* 0: unknown */
    if (most > 0 && c->num_gpu > most)
        return act_error_set(err, ACT_NO_CAPACITY, "%lld %s asked for, but '%s' has %lld%s%s%s; use at most -n %lld",
                             (long long)c->num_gpu, limits.has_gpus ? "GPUs are" : "processes are", c->cluster,
                             (long long)most, limits.why_not_all ? " (" : "",
                             limits.why_not_all ? limits.why_not_all : "", limits.why_not_all ? ")" : "",
                             (long long)most);
    rc = run_shape_of(num_gpu, limits.gpu_per_node, c->multi_process, &s, err);
    if (rc < 0)
        return rc;
    spec->nodes = s.nodes;
    spec->procs_per_node = s.procs_per_node;
    if (c->process_count_per_node > 0 && c->multi_process && s.gpus_per_node > 0)
        spec->procs_per_node = (int)c->process_count_per_node;
    spec->gpus_per_node = s.gpus_per_node;
    spec->on_processors = !limits.has_gpus;
    return shape_set_range(&range, limits.gpu_per_node, spec, err);
}

/* The size that a job file names: all GPUs of each of its nodes. */
static int shape_of_file(const struct config *c, struct platform *platform, const char *file,
                         const struct flow_job_file *job, struct run_spec *spec, struct act_error *err)
{
    struct platform_limits limits;
    int rc = platform_limits(platform, &limits, err);

    if (rc < 0)
        return rc;
    if (limits.max_nodes && job->nodes > limits.max_nodes)
        return act_error_set(err, ACT_NO_CAPACITY, "'%s' asks for %d nodes, but '%s' has %d; -n gives another size",
                             file, job->nodes, c->cluster, limits.max_nodes);
    spec->nodes = job->nodes;
    spec->procs_per_node = job->procs_per_node;
    spec->gpus_per_node = limits.has_gpus ? limits.gpu_per_node : job->procs_per_node;
    spec->on_processors = !limits.has_gpus;
    return 0;
}

int step_take_size(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;

    if (p->io->job_file && !p->io->own_size)
        return shape_of_file(c, p->platform, p->io->job_file, &p->job, p->spec, err);
    return flow_take_shape(c, p->platform, p->spec, err);
}
