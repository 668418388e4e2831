/* local.c - the same command on this machine, in the foreground. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "flow/submit/passage.h"

static int find_tool(const char *image, const char **out, struct act_error *err)
{
    struct act_error why;

    if (flow_find_docker(out, &why) == 0)
        return 0;
    return act_error_set(err, ACT_CONFIG, "cannot run in the image '%s': %s; --no-container runs the command directly",
                         image, act_error_text(&why));
}

int step_check_stored(struct passage *p, struct act_error *err)
{
    static const char hint[] = "without --mount the project's own is used";
    const struct config *c = p->flow->config;
    const struct run_spec *spec = p->spec;

    if (p->own_folders)
        return 0;
    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *f = &spec->folders[i];
        if (act_starts_with(f->store, RUN_CLAIM))
            return act_error_set(err, ACT_CONFIG,
                                 "folder '%s' is on the PersistentVolumeClaim '%s', which only pods see; %s", f->name,
                                 f->store + strlen(RUN_CLAIM), hint);
        if (f->link && !platform_find(c->platform)->about.is_here && access(f->link, F_OK) < 0)
            return act_error_errno(err, errno, "folder '%s' is '%s' where cluster '%s' is; %s", f->name, f->link,
                                   c->cluster, hint);
    }
    return spec->n_folders ? 0 : act_error_set(err, ACT_USAGE, "--mount: '%s' maps no folders", c->cluster);
}

int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct flow_run run; /* which is on this machine, whatever cluster the command line names */
    struct flow_follow what = {.tail = -1, .follow = true, .interrupted = io->interrupted, .sink = io->sink};

    flow->cluster_is_target = true;
    int rc = flow_find_run(flow, io->spec.id, &run, err);
    if (rc < 0)
        return rc;
    rc = flow_follow_log(flow, &run, &what, err);
    if (rc == 0)
        rc = flow_wait(flow, &run, err);
    io->exit_status = flow_exit_status(&run.status);
    snprintf(io->reason, sizeof(io->reason), "%s", run.status.reason);
    flow_run_release(&run);
    return rc;
}

int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err)
{
    struct flow_submit asked = {
        .argv = io->argv, .dry_run = io->dry_run, .code = io->code, .confirm = io->confirm, .arg = io->arg};
    struct passage p = {.flow = flow,
                        .io = &asked,
                        .spec = &io->spec,
                        .here = true,
                        .own_folders = !io->stored_folders,
                        .image = io->no_container ? NULL : flow->config->docker.image};
    int rc = p.image ? find_tool(p.image, &p.tool, err) : 0;

    if (rc == 0)
        rc = flow_pass(&p, err);
    flow_passage_release(&p);
    return rc;
}
