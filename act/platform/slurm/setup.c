/* setup.c - a new Slurm cluster: its login node and its partitions. */
#include "platform/setup.h"

#include "platform/slurm/slurm_internal.h"
#include "proc/proc.h"

/* Returns "8 nodes, 3 idle, 64 GPUs", a new string. */
static char *partition_text(const struct platform_pool *pool, bool has_gpus)
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

static int look_login(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTOFREE char *sbatch = proc_find_in_path("sbatch");

    if (sbatch)
        platform_offer(out, "", "none", act_strdup("this machine is one: it has sbatch"), true);
    return platform_look_nowhere(setup, out, err);
}

static int look_partitions(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    ACT_AUTO(platform_summary) summary = {0};
    int rc = platform_setup_summary(setup, &summary, err);

    for (size_t i = 0; rc == 0 && i < summary.n_pools; i++) {
        const struct platform_pool *pool = &summary.pools[i];
        platform_offer(out, pool->name, NULL, partition_text(pool, summary.has_gpus), pool->is_default);
    }
    return rc;
}

static int slurm_finish_setup(struct platform_setup *setup, struct act_error *err)
{
    platform_setup_look(setup);
    return platform_setup_count(setup, platform_said(setup, "partition"), err);
}

static void slurm_put_setup(struct act_buf *out, const struct platform_setup *setup)
{
    act_buf_adds(out, "\nslurm:\n");
    platform_put_if(out, "  login", platform_said(setup, "login"), "reached with ssh, as your ~/.ssh/config says");
    platform_put_if(out, "  partition", platform_said(setup, "partition"), NULL);
    if (setup->no_gpus)
        platform_put(out, "  gres", "none", "no GPUs are asked for");
    act_buf_adds(out, "  # root: ~/.act           a folder that the login node and all nodes share\n"
                      "  # account: myproject     who is charged\n"
                      "  # time: 1-00:00:00       the time limit of a run\n");
    platform_put_gpus(out, setup);
    platform_put_there(out, setup);
}

// clang-format off
static const struct platform_question questions[] = {
    {.option = "login", .text = "Login node, as user@host", .may_lack = true, .names = PLATFORM_NAMES_IN_PART,
     .look = look_login},
    {.option = "partition", .text = "Partition", .is_quiet = true, .names = PLATFORM_NAMES_IN_PART,
     .look = look_partitions},
    {0},
};
// clang-format on

const struct platform_setup_ops slurm_setup = {
    .text = "a Slurm cluster, here or behind ssh",
    .questions = questions,
    .put = slurm_put_setup,
    .finish = slurm_finish_setup,
};
