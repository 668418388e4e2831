/* submit.c - from a command to the specification of a run. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/jobfile/jobfile.h"
#include "flow/place.h"
#include "flow/source/source.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"
#include "platform/platform.h"
#include "run/run.h"

/* Where a mapped folder is, without opening it; row: where the run is. */
static int describe_folder(struct flow *flow, const struct platform_row *row, const struct config_folder *f,
                           struct run_folder *out, struct act_error *err)
{
    ACT_AUTO(config_account) a = {0};
    int rc = f->claim ? 0 : config_account(&flow->config, f, &a, err);

    if (rc < 0)
        return rc;
    *out = (struct run_folder){.name = act_strdup(f->name), .path = act_strdup(f->path)};
    out->store = flow_store_text(f, &a);
    if (a.folder)
        out->link = act_path_join(a.folder, f->path);
    if (f->account && row->settings.datastore)
        out->datastore = row->settings.datastore(f, &a);
    if (!run_folder_mode_from_name(f->mode, &out->mode))
        rc = act_error_set(err, ACT_CONFIG, "folder '%s': unknown mode '%s'", f->name, f->mode);
    return rc;
}

/* One that is to be there already, and on this machine is not. */
static int submit_check_place(const struct platform_row *row, const struct run_folder *folder, struct act_error *err)
{
    struct stat st;

    if (folder->mode != RUN_FOLDER_PATH || !row->about.is_here)
        return 0;
    if (stat(folder->link, &st) == 0)
        return S_ISDIR(st.st_mode)
                   ? 0
                   : act_error_set(err, ACT_CONFIG, "'%s', which the folder '%s' is (mode: path), is a file",
                                   folder->link, folder->name);
    return act_error_set(err, ACT_NOT_FOUND, "'%s' is not there, which the folder '%s' is (mode: path)", folder->link,
                         folder->name);
}

static int describe_folders(struct flow *flow, const struct platform_row *row, struct run_spec *spec,
                            struct act_error *err)
{
    const struct config *c = &flow->config;

    for (size_t i = 0; i < c->n_folders; i++) {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        int rc = describe_folder(flow, row, &c->folders[i], &spec->folders[i], err);
        if (rc == 0)
            rc = submit_check_place(row, &spec->folders[i], err);
        if (rc < 0)
            return rc;
        if (spec->folders[i].link && spec->folders[i].mode != RUN_FOLDER_RW_MOUNT &&
            spec->folders[i].mode != RUN_FOLDER_PATH)
            act_warn("'mode: %s' of the folder '%s' has no effect: its store is a folder, which runs read and write "
                     "themselves",
                     c->folders[i].mode, c->folders[i].name);
    }
    return 0;
}

/* One that is not in the project is where 'mode: path' says; else the command makes it there, or goes without it. */
static int describe_own_folder(struct flow *flow, const struct config_folder *f, struct run_folder *out,
                               struct act_error *err)
{
    const struct config *c = &flow->config;
    ACT_AUTOFREE char *own = act_path_join(c->project_root, f->name);
    bool is_read = act_streq(f->mode, "ro_mount"), is_missing = access(own, F_OK) < 0;

    if (is_missing && config_is_place(f)) {
        int rc = describe_folder(flow, platform_here(), f, out, err);
        rc = rc < 0 ? rc : submit_check_place(platform_here(), out, err);
        return rc < 0 ? act_error_hint(err, "a folder '%s' in the project would be used instead", f->name) : 0;
    }
    if (is_missing)
        act_note("%s  not in the project, %s; --mount takes what the store has", f->name,
                 is_read ? "so the command goes without it" : "so an empty folder is made there");
    if (is_missing && is_read)
        return 0;
    *out = (struct run_folder){.name = act_strdup(f->name),
                               .store = act_sprintf("folder:%s", c->project_root),
                               .path = act_strdup(f->name),
                               .mode = is_read ? RUN_FOLDER_RO_MOUNT : RUN_FOLDER_RW_MOUNT,
                               .link = act_strdup(own)};
    return 0;
}

/* As the original ACT ran commands on this machine: the project's own folders are mapped, and no store is asked. */
static int describe_own_folders(struct flow *flow, struct run_spec *spec, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < flow->config.n_folders; i++) {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        struct run_folder *folder = &spec->folders[spec->n_folders - 1];
        rc = describe_own_folder(flow, &flow->config.folders[i], folder, err);
        spec->n_folders -= rc == 0 && !folder->name;
    }
    return rc;
}

/* The same for a run: where it finds them. */
static int choose_folders(struct flow *flow, const struct platform_row *row, struct run_spec *spec,
                          struct act_error *err)
{
    int rc = describe_folders(flow, row, spec, err);

    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++)
        flow_use_here(&flow->config, &flow->config.folders[i], &spec->folders[i]);
    return rc;
}

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

/* Nodes and processes, from what the configuration says and the platform has. */
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

/* The id of a run has the time in it, and times before 1970 have no place there. */
static int submit_identify(const struct flow *flow, struct run_spec *spec, struct act_error *err)
{
    const struct config *c = &flow->config;
    char now[ACT_TIME_TEXT];

    spec->created_unix_s = act_now_unix_s();
    if (spec->created_unix_s < 0) {
        act_time_to_iso(spec->created_unix_s, now);
        return act_error_set(err, ACT_FAIL, "the clock of this machine is wrong, it says %s: set it first", now);
    }
    spec->id = run_id_new(c->experiment_name, spec->created_unix_s);
    spec->experiment = act_strdup(c->experiment_name);
    spec->cluster = act_strdup(c->cluster);
    spec->platform = act_strdup(c->platform);
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

static void submit_add_labels(const struct flow_labels *labels, struct run_spec *spec)
{
    if (labels->name)
        act_str_replace(&spec->name, labels->name);
    if (!spec->tags)
        spec->tags = json_object();
    if (labels->tags)
        json_object_update(spec->tags, labels->tags);
}

/* What the platform adds; job: of the job file, or NULL. */
static void describe_by_platform(const struct config *c, const struct platform *platform,
                                 const struct flow_job_file *job, struct run_spec *spec)
{
    const struct platform_row *row = platform_row(platform);
    const struct platform_asked asked = {.time_limit = job && job->limit_s, .shm_size = job && job->shm_size};

    if (row->settings.describe)
        row->settings.describe(c, &asked, spec);
    if (spec->config)
        flow_record_place(c, spec->config);
    if (row->about.nodes_send_logs)
        flow_describe_sent(c, spec);
    spec->own_image = job && job->image && act_streq(spec->image, job->image);
}

/* ---- the steps */

int step_read_job_file(struct passage *p, struct act_error *err)
{
    struct flow_job_file *job = &p->job;
    const char *file = p->io->job_file;
    const struct flow_job_storage storage = {p->io->storage_account, p->io->storage_key};
    int rc = file ? flow_job_file_read(file, &p->flow->config, &storage, job, err) : 0;

    if (rc < 0 || !file)
        return rc;
    if (job->fixed_size && p->io->own_size)
        return act_error_set(err, ACT_USAGE,
                             "'%s' says how many workers and parameter servers there are: there cannot be "
                             "another size as well",
                             file);
    p->limit_s = flow_job_file_apply(job, &p->flow->config);
    for (size_t i = 0; i < job->notes.n; i++)
        act_note("%s", job->notes.v[i]);
    return 0;
}

int step_open_platform(struct passage *p, struct act_error *err)
{
    return p->here ? flow_platform_here(p->flow, &p->platform, err) : flow_platform(p->flow, &p->platform, err);
}

int step_identify(struct passage *p, struct act_error *err)
{
    p->spec->resubmit_of = act_strdup(p->old ? p->old->row.id : NULL);
    return submit_identify(p->flow, p->spec, err);
}

/* Those of the old run stay, where this command says no others. */
int step_label(struct passage *p, struct act_error *err)
{
    (void)err;
    if (p->old)
        submit_add_labels(&(struct flow_labels){p->old->spec.name, p->old->spec.tags}, p->spec);
    submit_add_labels(&p->io->labels, p->spec);
    return 0;
}

int step_ask_row(struct passage *p, struct act_error *err)
{
    (void)err;
    describe_by_platform(&p->flow->config, p->platform, p->io->job_file ? &p->job : NULL, p->spec);
    return 0;
}

int step_take_command(struct passage *p, struct act_error *err)
{
    struct run_spec *spec = p->spec;

    (void)err;
    if (!p->io->job_file) {
        act_strv_copy(&spec->argv, p->io->argv->v, p->io->argv->n);
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

int step_take_size(struct passage *p, struct act_error *err)
{
    const struct config *c = &p->flow->config;

    if (p->io->job_file && !p->io->own_size)
        return shape_of_file(c, p->platform, p->io->job_file, &p->job, p->spec, err);
    return flow_take_shape(c, p->platform, p->spec, err);
}

/* The job of another tool has its processes started by that. */
int step_form_starter(struct passage *p, struct act_error *err)
{
    return p->old && p->old->spec.foreign ? 0 : flow_form_starter(p->platform, p->spec, err);
}

int step_take_setup(struct passage *p, struct act_error *err)
{
    return flow_take_setup(&p->flow->config, p->spec, err);
}

int step_take_hang(struct passage *p, struct act_error *err)
{
    return flow_take_hang(&p->flow->config, platform_row(p->platform), p->spec, err);
}

int step_take_retry(struct passage *p, struct act_error *err)
{
    return flow_set_retry(&p->flow->config, platform_row(p->platform), p->spec, err);
}

int step_map_folders(struct passage *p, struct act_error *err)
{
    return p->own_folders ? describe_own_folders(p->flow, p->spec, err)
                          : choose_folders(p->flow, platform_row(p->platform), p->spec, err);
}

/* Whatever its cluster is. */
int step_take_place(struct passage *p, struct act_error *err)
{
    (void)err;
    act_str_replace(&p->spec->platform, platform_here()->kind->name);
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
    spec.mount = act_strdup(flow->config.mount);
    rc = describe_folders(flow, platform_row(platform), &spec, err);
    if (rc == 0 && !is_here) /* else how many there are is a matter of the machine */
        rc = flow_take_shape(&flow->config, platform, &spec, err);
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
