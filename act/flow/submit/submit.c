/* submit.c - from a command to the specification of a run. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "flow/source/source.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

static void submit_add_env(const struct act_strv *pairs, struct run_spec *spec)
{
    for (size_t i = 0; i < pairs->n; i++) {
        const char *eq = strchr(pairs->v[i], '=');
        ACT_AUTOFREE char *name = act_strndup(pairs->v[i], (size_t)(eq - pairs->v[i]));
        run_spec_add_env(spec, name, eq + 1);
    }
}

static void add_secrets(const struct act_strv *pairs, struct run_spec *spec)
{
    size_t first = spec->n_env;

    submit_add_env(pairs, spec);
    for (size_t i = first; i < spec->n_env; i++)
        spec->env[i].secret = true;
}

/* Names the platform, and says what its agent on the nodes goes by instead of that name. */
static void submit_set_platform(const char *name, struct run_spec *spec)
{
    const struct platform_about *about = &platform_find(name)->about;

    act_str_replace(&spec->platform, name);
    spec->is_here = about->is_here;
    spec->agent_mounts = about->agent_mounts;
}

static void submit_add_labels(const struct flow_labels *labels, struct run_spec *spec)
{
    if (labels->name)
        act_str_replace(&spec->name, labels->name);
    if (!spec->tags)
        spec->tags = json_object();
    if (labels->tags)
        json_object_update(spec->tags, labels->tags);
}

/* ---- the steps */

int step_read_job_file(struct passage *p, struct act_error *err)
{
    struct flow_job_file *job = &p->job;
    const char *file = p->io->job_file;
    const struct flow_job_storage storage = {p->io->storage_account, p->io->storage_key};
    int rc = file ? flow_job_file_read(file, p->flow->config, &storage, job, err) : 0;

    if (rc < 0 || !file)
        return rc;
    if (job->fixed_size && p->io->own_size)
        return act_error_set(err, ACT_USAGE,
                             "'%s' says how many workers and parameter servers there are: there cannot be "
                             "another size as well",
                             file);
    p->limit_s = flow_job_file_apply(job, p->flow->config);
    for (size_t i = 0; i < job->notes.n; i++)
        act_note("%s", job->notes.v[i]);
    return 0;
}

int step_open_platform(struct passage *p, struct act_error *err)
{
    return p->here ? flow_platform_here(p->flow, &p->platform, err) : flow_platform(p->flow, &p->platform, err);
}

/* The id of a run has the time in it, and times before 1970 have no place there. */
int step_identify(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    struct run_spec *spec = p->spec;
    char now[ACT_TIME_TEXT];

    spec->resubmit_of = act_strdup(p->old ? p->old->row.id : NULL);
    spec->created_unix_s = act_now_unix_s();
    if (spec->created_unix_s < 0) {
        act_time_to_iso(spec->created_unix_s, now);
        return act_error_set(err, ACT_FAIL, "the clock of this machine is wrong, it says %s: set it first", now);
    }
    spec->id = run_id_new(c->experiment_name, spec->created_unix_s);
    spec->experiment = act_strdup(c->experiment_name);
    spec->cluster = act_strdup(c->cluster);
    submit_set_platform(c->platform, spec);
    spec->project_root = act_strdup(c->project_root);
    spec->compile_args = act_strdup(c->compile_args);
    spec->mount = act_strdup(c->mount);
    spec->sleep_if_fail = c->sleep_if_fail;
    spec->sleep_if_succeed = c->sleep_if_succeed;
    spec->config = config_resolved(c);
    if (c->file)
        json_object_set_new(spec->config, "file", codec_json_bytes_new(c->file));
    submit_add_env(&c->env, spec);
    return 0;
}

/* Labels the run: those of the old run stay where this command says no others. */
int step_label(struct passage *p, struct act_error *err)
{
    (void)err;
    if (p->old)
        submit_add_labels(&(struct flow_labels){p->old->spec.name, p->old->spec.tags}, p->spec);
    submit_add_labels(&p->io->labels, p->spec);
    return 0;
}

/* Adds what the platform says of the run. */
int step_ask_row(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    const struct flow_job_file *job = &p->job; /* {0} without a job file */
    const struct platform_row *row = platform_row(p->platform);
    const struct platform_asked asked = {.time_limit = job->limit_s, .shm_size = job->shm_size};

    (void)err;
    if (row->settings.describe)
        row->settings.describe(c, &asked, p->spec);
    if (p->spec->config)
        flow_record_place(c, p->spec->config);
    if (row->about.nodes_send_logs)
        flow_describe_sent(c, p->spec);
    p->spec->own_image = job->image && act_streq(p->spec->image, job->image);
    return 0;
}

int step_take_command(struct passage *p, struct act_error *err)
{
    struct run_spec *spec = p->spec;

    (void)err;
    if (!p->io->job_file) {
        act_strv_copy(&spec->argv, p->io->argv->v, p->io->argv->n);
        act_str_replace(&spec->title, p->io->title);
        return 0;
    }
    if (p->limit_s) {
        act_strv_push(&spec->argv, "timeout");
        act_strv_push(&spec->argv, "--verbose");
        act_strv_push(&spec->argv, "--kill-after=10s");
        act_strv_pushf(&spec->argv, "%lld", (long long)p->limit_s);
    }
    act_strv_push(&spec->argv, "/bin/bash");
    act_strv_push(&spec->argv, "-c");
    act_strv_push(&spec->argv, p->job.line);
    spec->title = act_sprintf("%s, %s", p->io->job_file, p->job.title);
    for (size_t i = 0; i < p->job.n_outputs; i++)
        run_spec_add_output(spec, p->job.outputs[i].id, p->job.outputs[i].path);
    submit_add_env(&p->job.env, spec);
    add_secrets(&p->job.secrets, spec);
    return 0;
}

/* Whatever its cluster is. */
int step_take_place(struct passage *p, struct act_error *err)
{
    (void)err;
    submit_set_platform(platform_here()->kind->name, p->spec);
    act_str_replace(&p->spec->image, p->image);
    act_str_replace(&p->spec->container, p->tool);
    return 0;
}

/* ---- the verb */

int flow_check_run(struct flow *flow, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {.nodes = 1, .procs_per_node = 1};
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    if (rc < 0)
        return rc;
    bool is_here = platform_row(platform)->about.is_here;
    act_strv_push(&spec.argv, "true");
    spec.mount = act_strdup(flow->config->mount);
    rc = flow_describe_folders(flow, platform_row(platform), &spec, err);
    if (rc == 0 && !platform_row(platform)->kind->counts_gpus) /* else how many there are is a matter of the machine */
        rc = flow_take_shape(flow->config, platform, &spec, err);
    if (rc < 0)
        return rc;
    return (is_here ? platform_check : platform_check_settings)(platform, &spec, err);
}

int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err)
{
    struct passage p = {.flow = flow, .io = io, .spec = &io->spec};
    int rc = flow_pass(&p, err);

    if (rc == 0 && io->dry_run)
        rc = platform_preview(p.platform, p.spec, &io->preview, err);
    flow_passage_release(&p);
    return rc;
}
