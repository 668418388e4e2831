/* setup_slurm.c - what a Slurm cluster has. */
#include <string.h>

#include "flow/cluster/setup_internal.h"
#include "flow/flow_internal.h"
#include "proc/proc.h"

/* "8 nodes, 3 of them idle, 64 GPUs". New string. */
static char *pool_text(const struct platform_pool *pool, bool has_gpus)
{
    ACT_AUTO(act_buf) out = {0};

    if (pool->nodes >= 0)
        act_buf_addf(&out, "%d node%s", pool->nodes, pool->nodes == 1 ? "" : "s");
    if (pool->nodes_idle >= 0)
        act_buf_addf(&out, ", %d idle", pool->nodes_idle);
    if (has_gpus && pool->gpus > 0)
        act_buf_addf(&out, ", %d GPU%s", pool->gpus, pool->gpus == 1 ? "" : "s");
    else if (has_gpus && pool->gpus == 0)
        act_buf_adds(&out, ", no GPUs");
    return act_buf_steal(&out);
}

/* What the platform tells of its nodes. Release out. */
static int summarise(const struct flow_setup *setup, struct platform_summary *out, struct act_error *err)
{
    struct flow flow;
    struct platform *platform;
    int rc = setup_open(setup, &flow, err);

    *out = (struct platform_summary){0};
    if (rc == 0)
        rc = flow_platform(&flow, &platform, err);
    if (rc == 0)
        rc = platform_summary(platform, out, err);
    flow_close(&flow);
    return rc;
}

/* The pool of that name; without one that with most GPUs, else all nodes. */
static const struct platform_pool *setup_slurm_find_pool(const struct platform_summary *summary, const char *name)
{
    const struct platform_pool *best = &summary->total;

    for (size_t i = 0; i < summary->n_pools; i++) {
        const struct platform_pool *pool = &summary->pools[i];
        bool better = best == &summary->total || pool->gpus > best->gpus;
        if (name ? act_streq(pool->name, name) : better)
            best = pool;
    }
    return best;
}

/* As many as each node has, where all have as many; else it stays unknown. */
static void setup_slurm_count(struct flow_setup *setup, const struct platform_summary *summary, const char *name)
{
    const struct platform_pool *pool = setup_slurm_find_pool(summary, name);

    if (pool->nodes > 0 && pool->gpus > 0 && pool->gpus % pool->nodes == 0)
        setup->gpu_per_node = pool->gpus / pool->nodes;
}

int setup_count_gpus(struct flow_setup *setup, const char *pool, struct act_error *err)
{
    ACT_AUTO(platform_summary) summary = {0};
    int rc = summarise(setup, &summary, err);

    if (rc < 0)
        return rc;
    const struct platform_pool *found = setup_slurm_find_pool(&summary, pool);
    if (found->nodes <= 0 || found->gpus != 0) {
        setup_slurm_count(setup, &summary, pool);
        return 0;
    }
    ACT_AUTO(platform_summary) processors = {0};
    setup->no_gpus = true;
    rc = summarise(setup, &processors, err);
    if (rc == 0)
        setup_slurm_count(setup, &processors, pool);
    return rc;
}

int setup_look_login(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *sbatch = proc_find_in_path("sbatch");

    (void)setup;
    (void)err;
    out->open = true;
    if (sbatch)
        setup_offer(out, "", "none", act_strdup("this machine is one: it has sbatch"), true);
    return 0;
}

int setup_look_partitions(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    ACT_AUTO(platform_summary) summary = {0};
    int rc = summarise(setup, &summary, err);

    for (size_t i = 0; rc == 0 && i < summary.n_pools; i++) {
        const struct platform_pool *pool = &summary.pools[i];
        setup_offer(out, pool->name, NULL, pool_text(pool, summary.has_gpus), pool->is_default);
    }
    return rc;
}

int setup_finish_slurm(struct flow_setup *setup, struct act_error *err)
{
    return setup_count_gpus(setup, setup->partition, err);
}

void setup_put_slurm(struct act_buf *out, const struct flow_setup *setup)
{
    act_buf_adds(out, "\nslurm:\n");
    setup_put_if(out, "  login", setup->login, "reached with ssh, as your ~/.ssh/config says");
    setup_put_if(out, "  partition", setup->partition, NULL);
    if (setup->no_gpus)
        setup_put(out, "  gres", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # root: ~/.act           a folder that the login node and all nodes share\n"
                      "  # account: myproject     who is charged\n"
                      "  # time: 1-00:00:00       the time limit of a run\n");
    setup_put_gpus(out, setup);
}
