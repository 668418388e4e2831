/* local.c - the same command on this machine, in the foreground. */
#include <string.h>

#include "base/text.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs.h"
#include "flow/runs/submit_internal.h"
#include "platform/platform.h"

static int find_tool(const char *image, const char **out, struct act_error *err)
{
    struct act_error why;

    if (flow_find_docker(out, &why) == 0)
        return 0;
    return act_error_set(err, ACT_CONFIG, "cannot run in the image '%s': %s; --no-container runs the command directly",
                         image, act_error_text(&why));
}

int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct flow_run run;
    struct flow_follow what = {.tail = -1, .follow = true, .interrupted = io->interrupted, .sink = io->sink};
    int rc = flow_find_run(flow, io->spec.id, &run, err);

    if (rc < 0)
        return rc;
    rc = flow_follow_log(flow, &run, &what, err);
    if (rc == 0)
        rc = flow_wait(flow, &run, err);
    io->exit_status = flow_exit_status(&run.status);
    flow_run_release(&run);
    return rc;
}

int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct flow_submit submit = {.argv = io->argv, .dry_run = io->dry_run, .code = io->code};
    const char *image = io->no_container ? NULL : flow->config.docker.image, *tool = NULL;
    struct flow_describing with = {.own_folders = true};
    struct platform *platform;
    int rc;

    rc = image ? find_tool(image, &tool, err) : 0;
    if (rc < 0)
        return rc;
    rc = flow_platform_here(flow, &platform, err);
    if (rc < 0)
        return rc;
    rc = flow_describe_run(flow, platform, &submit, &with, err);
    if (rc == 0) {
        free(submit.spec.platform);
        submit.spec.platform = act_strdup(platform_here()->name);
        submit.spec.image = act_strdup(image);
        submit.spec.container = act_strdup(tool);
        flow_mention_unused(&flow->config, true, image != NULL);
    }
    if (rc == 0 && !io->dry_run)
        rc = flow_start_run(flow, platform, &submit.spec, with.package.file, err);
    io->spec = submit.spec;
    flow_package_release(&with.package);
    return rc;
}
