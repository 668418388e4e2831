/* local.c - the same command on this machine, in the foreground. */
#include <string.h>

#include "base/dirs.h"
#include "base/path.h"
#include "flow/flow_internal.h"
#include "proc/proc.h"

/* The first of docker and podman that is in PATH, or NULL. */
static const char *container_tool(void)
{
    static const char *const tools[] = {"docker", "podman"};

    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        ACT_AUTOFREE char *program = proc_find_in_path(tools[i]);
        if (program)
            return tools[i];
    }
    return NULL;
}

/* What the container needs of the rank's environment; the values are passed on by name. */
static const char *const passed_on[] = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "TORCH_HOME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "ACT_RUN_ID",
    "AZ_BATCH_HOST_LIST",
    "AZ_BATCHAI_JOB_MASTER_NODE_IP",
    "AZ_BATCHAI_NUM_GPUS",
    "CUDA_VISIBLE_DEVICES",
};

/* Wraps the command of the run: the code and the linked folders appear in the container under their own
 * paths. */
static void wrap_in_container(const char *tool, const struct config *config, struct run_spec *spec)
{
    ACT_AUTOFREE char *state = act_state_dir();
    struct act_strv argv = {0};

    act_strv_push(&argv, tool);
    act_strv_push(&argv, "run");
    act_strv_push(&argv, "--rm");
    act_strv_push(&argv, "--init");
    act_strv_push(&argv, "--network=host");
    act_strv_push(&argv, "--ipc=host");
    if (spec->gpus_per_node > 0)
        act_strv_push(&argv, "--gpus=all");
    act_strv_pushf(&argv, "--volume=%s/runs/%s:%s/runs/%s", state, spec->id, state, spec->id);
    for (size_t i = 0; i < spec->n_folders; i++)
        if (spec->folders[i].link)
            act_strv_pushf(&argv, "--volume=%s:%s%s", spec->folders[i].link, spec->folders[i].link,
                           spec->folders[i].mode == RUN_FOLDER_RO_MOUNT ? ":ro" : "");
    act_strv_pushf(&argv, "--workdir=%s/runs/%s/%s", state, spec->id, RUN_DIR_CODE);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        act_strv_pushf(&argv, "--env=%s", passed_on[i]);
    for (size_t i = 0; i < spec->n_env; i++)
        act_strv_pushf(&argv, "--env=%s", spec->env[i].name);
    act_strv_push(&argv, config->docker.image);
    spec->starter_at = (int)argv.n;
    act_strv_copy(&argv, spec->argv.v, spec->argv.n);
    act_strv_release(&spec->argv);
    spec->argv = argv;
}

static int containerize(const struct flow *flow, bool no_container, struct run_spec *spec,
                        struct act_error *err)
{
    const char *image = flow->config.docker.image;
    const char *tool = container_tool();

    if (!image || no_container)
        return 0;
    if (!tool)
        return act_error_set(
            err, ACT_CONFIG,
            "cannot run in the image '%s': neither docker nor podman is here; --no-container runs the "
            "command directly",
            image);
    wrap_in_container(tool, &flow->config, spec);
    return 0;
}

int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct flow_run run;
    struct flow_follow what = {.tail = -1, .follow = true, .interrupted = io->interrupted, .sink = io->sink};
    bool was_final;
    int rc = flow_find_run(flow, io->spec.id, &run, err);

    if (rc < 0)
        return rc;
    rc = flow_follow_log(flow, &run, &what, err);
    if (rc == 0 && *io->interrupted)
        rc = flow_abort(flow, &run, &was_final, err);
    if (rc == 0)
        rc = flow_wait(flow, &run, err);
    io->exit_status = flow_exit_status(&run.status);
    flow_run_release(&run);
    return rc;
}

int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct config here = {.platform = flow->config.platform, .cluster = flow->config.cluster};
    struct flow_submit submit = {.argv = io->argv, .dry_run = io->dry_run, .code = io->code};
    struct flow_package package = {0};
    struct platform *platform;
    int rc;

    if (io->argv->n == 0)
        return act_error_set(err, ACT_USAGE, "no command to run; try: a local python train.py");
    here.platform = act_strdup("local");
    here.gpu_per_node = here.num_gpu = -1;
    rc = platform_open(&here, &platform, err);
    free(here.platform);
    if (rc < 0)
        return rc;
    rc = flow_describe_run(flow, platform, &submit, &package, err);
    if (rc == 0) {
        free(submit.spec.platform);
        submit.spec.platform = act_strdup("local");
        rc = containerize(flow, io->no_container, &submit.spec, err);
    }
    if (rc == 0)
        flow_mention_unused(&flow->config, true, !io->no_container);
    if (rc == 0 && !io->dry_run)
        rc = flow_start_run(flow, platform, &submit.spec, package.file, err);
    io->spec = submit.spec;
    flow_package_release(&package);
    platform_free(platform);
    return rc;
}
