/* local.c - the same command on this machine, in the foreground. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs.h"
#include "flow/runs/runs.h"
#include "flow/runs/submit.h"
#include "flow/runs/submit_internal.h"
#include "platform/platform.h"
#include "proc/proc.h"

/* The last line that a program wrote, without its end. */
static const char *last_line(char *text)
{
    char *end = text + strlen(text);

    while (end > text && (end[-1] == '\n' || end[-1] == '\r'))
        *--end = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* Whether it is there and works: docker is a client, whose daemon may not run. err: what it says else. */
static bool answers(const char *tool, char *program, struct act_error *err)
{
    enum { ANSWER_S = 30, ANSWER_MAX = 64 << 10 };
    char *const argv[] = {program, (char[]){"version"}, NULL};
    struct proc_result result = {0};
    int rc = proc_call(&(struct proc_call){.argv = argv, .timeout_s = ANSWER_S, .max_bytes = ANSWER_MAX},
                       &result, err);

    if (rc == 0 && result.status != 0)
        rc = act_error_set(err, ACT_FAIL, "%s does not answer: %s", tool, last_line(result.err));
    proc_result_release(&result);
    return rc == 0;
}

int flow_find_docker(const char **out, struct act_error *err)
{
    static const char *const tools[] = {"docker", "podman"};
    bool found = false;

    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        ACT_AUTOFREE char *program = proc_find_in_path(tools[i]);
        *out = tools[i];
        if (program && answers(tools[i], program, err))
            return 0;
        found = found || program;
    }
    return found ? -(int)err->code : act_error_set(err, ACT_CONFIG, "neither docker nor podman is here");
}

static int find_tool(const char *image, const char **out, struct act_error *err)
{
    struct act_error why;

    if (flow_find_docker(out, &why) == 0)
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "cannot run in the image '%s': %s; --no-container runs the command directly", image,
                         why.text);
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
    struct flow_submit submit = {
        .argv = io->argv, .dry_run = io->dry_run, .code = io->code, .own_folders = true};
    const char *image = io->no_container ? NULL : flow->config.docker.image, *tool = NULL;
    struct flow_package package = {0};
    struct platform *platform;
    int rc;

    if (io->argv->n == 0)
        return act_error_set(err, ACT_USAGE, "no command to run; try: a local python train.py");
    rc = image ? find_tool(image, &tool, err) : 0;
    if (rc < 0)
        return rc;
    rc = flow_platform_here(flow, &platform, err);
    if (rc < 0)
        return rc;
    rc = flow_describe_run(flow, platform, &submit, &package, err);
    if (rc == 0) {
        free(submit.spec.platform);
        submit.spec.platform = act_strdup(platform_here()->name);
        submit.spec.image = act_strdup(image);
        submit.spec.container = act_strdup(tool);
        flow_mention_unused(&flow->config, true, image != NULL);
    }
    if (rc == 0 && !io->dry_run)
        rc = flow_start_run(flow, platform, &submit.spec, package.file, err);
    io->spec = submit.spec;
    flow_package_release(&package);
    return rc;
}
