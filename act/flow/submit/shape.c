/* shape.c - nodes and processes of a run. */
#include "config/config.h"
#include "flow/jobfile/jobfile.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"
#include "platform/platform.h"
#include "run/run.h"

int flow_take_shape(const struct config *c, struct platform *platform, struct run_spec *spec, struct act_error *err)
{
    struct platform_limits limits;
    struct run_shape s = {0};
    struct flow_range range = {0};
    int rc = platform_limits(platform, &limits, err);

    if (rc == 0)
        rc = flow_take_range(c, platform, &range, err);
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
    return flow_set_range(&range, limits.gpu_per_node, spec, err);
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
    const struct config *c = &p->flow->config;

    if (p->io->job_file && !p->io->own_size)
        return shape_of_file(c, p->platform, p->io->job_file, &p->job, p->spec, err);
    return flow_take_shape(c, p->platform, p->spec, err);
}
