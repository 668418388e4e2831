/* submit.c - from a command to a run. */
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
#include "flow/runs/runs_internal.h"
#include "flow/runs/submit_internal.h"
#include "flow/trust.h"
#include "ledger/ledger.h"
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
    if (f->account && row->datastore)
        out->datastore = row->datastore(f, &a);
    if (!run_folder_mode_from_name(f->mode, &out->mode))
        rc = act_error_set(err, ACT_CONFIG, "folder '%s': unknown mode '%s'", f->name, f->mode);
    return rc;
}

/* One that is to be there already, and on this machine is not. */
static int check_place(const struct platform_row *row, const struct run_folder *folder, struct act_error *err)
{
    struct stat st;

    if (folder->mode != RUN_FOLDER_PATH || !row->is_here)
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
            rc = check_place(row, &spec->folders[i], err);
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
        rc = rc < 0 ? rc : check_place(platform_here(), out, err);
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

static void add_env(const struct act_strv *pairs, struct run_spec *spec)
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

    add_env(pairs, spec);
    for (size_t i = first; i < spec->n_env; i++)
        spec->env[i].secret = true;
}

/* Nodes and processes, from what the configuration says and the platform has. */
static int shape(const struct config *c, struct platform *platform, struct run_spec *spec, struct act_error *err)
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
        return act_error_set(err, ACT_NO_CAPACITY, "%lld %s asked for, but '%s' has %lld; use at most -n %lld",
                             (long long)c->num_gpu, limits.has_gpus ? "GPUs are" : "processes are", c->cluster,
                             (long long)most, (long long)most);
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

static void identify(const struct flow *flow, struct run_spec *spec)
{
    const struct config *c = &flow->config;

    spec->created_unix_s = act_now_unix_s();
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
    add_env(&c->env, spec);
}

static void set_labels(const struct flow_labels *labels, struct run_spec *spec)
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

    if (row->describe)
        row->describe(c, &asked, spec);
    if (spec->config)
        flow_record_place(c, spec->config);
    if (row->nodes_send_logs)
        flow_describe_sent(c, spec);
    spec->own_image = job && job->image && spec->image;
}

/* The package stored last, whatever the project's files are now. */
static int take_last_package(struct flow *flow, struct flow_package *out, struct act_error *err)
{
    int rc = flow_current_package(flow, out, err);

    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "without --last-package the code is packed first") : rc;
}

static int check_package(const struct platform *platform, const struct run_spec *spec, struct act_error *err)
{
    const struct platform_row *row = platform_row(platform);

    return row->check_package ? row->check_package(spec, err) : 0;
}

/* A run whose package is being made. */
struct pinning {
    const struct platform *platform;
    struct run_spec *spec;
};

static int fits(void *arg, uint64_t bytes, struct act_error *err)
{
    const struct pinning *p = arg;

    p->spec->package_bytes = (int64_t)bytes;
    int rc = check_package(p->platform, p->spec, err);
    p->spec->package_bytes = 0;
    return rc;
}

/* The package that the run is pinned to: the files as they are now. A dry run has one when nothing changed. */
static int pin_package(struct flow *flow, const struct platform *platform, struct flow_submit *io, bool here,
                       struct flow_package *out, struct act_error *err)
{
    struct pinning pinning = {platform, &io->spec};
    struct flow_init *code = io->code;

    if (!code)
        return take_last_package(flow, out, err);
    code->dry_run = io->dry_run;
    code->command = io->job_file ? NULL : io->argv;
    code->keep_compiled = true;
    code->fits = fits;
    code->fits_arg = &pinning;
    int rc = flow_init(flow, code, err);
    code->fits = NULL;
    if (rc < 0)
        return rc;
    if (here) /* it may be without the image */
        code->compiled[0] = '\0';
    flow_say_code(code);
    if (code->dry_run && code->is_stored != FLOW_YES)
        return 0;
    const char *sha256 = code->compiled[0] ? code->compiled : code->package.sha256;
    ACT_AUTOFREE char *key = flow_package_key(flow, sha256);
    rc = flow_package_by_key(flow, key, sha256, out, err);
    out->bytes = (int64_t)(code->compiled[0] ? code->compiled_bytes : code->package.bytes);
    return rc;
}

static void set_package(const struct flow_package *p, struct run_spec *spec)
{
    if (!p->key)
        return;
    spec->package_store = act_strdup(p->store);
    spec->package_key = act_strdup(p->key);
    spec->package_bytes = p->bytes;
    memcpy(spec->package_sha256, p->sha256, sizeof(spec->package_sha256));
}

/* What became of a submission, into the ledger. The run itself matters more than this line: a failure is a warning. */
static void note_outcome(struct flow *flow, const char *id, const struct run_status *status)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);
    ACT_AUTOFREE char *line = codec_json_line(json);
    struct ledger_update update = {id, run_state_name(status->state), line};
    struct act_error err;

    if (ledger_update(flow->ledger, &update, 1, &err) < 0)
        act_warn("%s", act_error_text(&err));
}

/* Records in the ledger what the platform said. unclear: the platform may have the run, so it stays Queued until the
 * next query. */
static int note_submission(struct flow *flow, const struct run_spec *spec, int rc, bool unclear, struct act_error *err)
{
    enum { LONG_S = 10 };
    struct run_status status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};

    if (rc < 0 && !unclear) {
        ACT_AUTOFREE char *prefix = act_sprintf("cannot submit '%s': ", spec->id);
        const char *why = act_error_text(err);
        status.state = RUN_FAILED;
        status.exit_status = -1;
        status.unsubmitted = true;
        snprintf(status.reason, sizeof(status.reason), "not submitted: %.480s",
                 act_starts_with(why, prefix) ? why + strlen(prefix) : why);
    }
    /* by now a query may have concluded that the run was never submitted */
    if (status.state == RUN_FAILED || act_now_unix_s() - spec->created_unix_s >= LONG_S)
        note_outcome(flow, spec->id, &status);
    return unclear ? act_error_hint(err, "'a q %s' will tell whether it was submitted", spec->id) : rc;
}

int flow_hand_over(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   bool *asked, struct act_error *err)
{
    const struct platform_row *row = platform_row(platform);
    ACT_AUTOWIPE char *stores = NULL;
    ACT_AUTO(flow_job_files) files = {0};
    int rc = 0;

    if (row->nodes_send_logs) /* the id may be another one than at first */
        flow_describe_sent(&flow->config, spec);
    if (package && platform_nodes_fetch_package(row, spec))
        rc = flow_store_package(flow, spec, package, err);
    if (rc == 0 && !spec->foreign)
        rc = row->nodes_fetch ? flow_store_job(flow, spec, package, &files, err)
                              : flow_run_stores(flow, spec, &stores, err);
    if (rc == 0)
        rc = platform_prepare(platform, spec, err);
    if (rc == 0)
        rc = flow_remember(flow, spec, err);
    if (rc == 0) {
        struct platform_submission submission = {.spec = spec,
                                                 .package = package,
                                                 .stores = stores,
                                                 .agent_key = files.agent_key,
                                                 .spec_key = files.spec_key,
                                                 .agent_url = files.agent_url,
                                                 .spec_url = files.spec_url,
                                                 .package_url = files.package_url,
                                                 .asked = asked};
        rc = platform_submit(platform, &submission, err);
        rc = note_submission(flow, spec, rc, *asked && flow_may_pass(rc), err);
    }
    return rc;
}

int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err)
{
    struct flow_again again;
    bool asked = false;

    int rc = flow_use_own_folders(&flow->config, platform, spec, err);
    if (rc == 0)
        rc = flow_trust_submitted(&flow->config, err);
    if (rc == 0)
        rc = flow_fetch_secrets(flow, spec, err);
    if (rc < 0)
        return rc;
    if (!platform_row(platform)->answers_by_request)
        return flow_hand_over(flow, platform, spec, package, &asked, err);
    asked = flow_again_begin(flow, spec, &again);
    rc = flow_hand_over(flow, platform, spec, package, &asked, err);
    bool unclear = asked && flow_may_pass(rc);
    flow_again_end(&again, !unclear);
    return unclear ? act_error_hint(err, "the same command again is the same run") : rc;
}

static void describe_command(const struct flow_submit *io, const struct flow_describing *with, struct run_spec *spec)
{
    if (!io->job_file) {
        act_strv_copy(&spec->argv, io->argv->v, io->argv->n);
        return;
    }
    if (with->limit_s) {
        act_strv_push(&spec->argv, "timeout");
        act_strv_push(&spec->argv, "--verbose");
        act_strv_push(&spec->argv, "--kill-after=10s");
        act_strv_pushf(&spec->argv, "%lld", (long long)with->limit_s);
    }
    act_strv_push(&spec->argv, "/bin/bash");
    act_strv_push(&spec->argv, "-c");
    act_strv_push(&spec->argv, with->job.line);
    spec->title = act_sprintf("%s, %s", io->job_file, with->job.title);
    add_env(&with->job.env, spec);
    add_secrets(&with->job.secrets, spec);
}

int flow_describe_run(struct flow *flow, struct platform *platform, struct flow_submit *io,
                      struct flow_describing *with, struct act_error *err)
{
    const struct flow_job_file *job = io->job_file ? &with->job : NULL;
    int rc;

    identify(flow, &io->spec);
    io->spec.resubmit_of = act_strdup(io->resubmit_of);
    set_labels(&io->labels, &io->spec);
    describe_command(io, with, &io->spec);
    rc = job && !io->own_size ? shape_of_file(&flow->config, platform, io->job_file, job, &io->spec, err)
                              : shape(&flow->config, platform, &io->spec, err);
    if (rc == 0)
        rc = flow_check_shared_temp(platform, &io->spec, err);
    if (rc == 0)
        rc = flow_form_starter(platform, &io->spec, err);
    if (rc == 0 && !with->here) /* else the user sees it hang */
        rc = flow_take_hang(&flow->config, platform_row(platform), &io->spec, err);
    if (rc == 0 && !with->here)
        rc = flow_set_retry(&flow->config, platform_row(platform), &io->spec, err);
    describe_by_platform(&flow->config, platform, job, &io->spec);
    if (rc == 0)
        rc = with->own_folders ? describe_own_folders(flow, &io->spec, err)
                               : choose_folders(flow, platform_row(platform), &io->spec, err);
    if (rc == 0 && with->here && !with->own_folders)
        rc = flow_check_stored(&flow->config, &io->spec, err);
    if (rc == 0)
        rc = platform_check(platform, &io->spec, err);
    if (rc == 0 && !with->here)
        rc = flow_avoid_bad_nodes(flow, platform, &io->spec, err);
    if (rc == 0)
        rc = pin_package(flow, platform, io, with->here, &with->package, err);
    if (rc == 0)
        set_package(&with->package, &io->spec);
    return rc < 0 ? rc : check_package(platform, &io->spec, err);
}

int flow_check_run(struct flow *flow, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {.nodes = 1, .procs_per_node = 1}; /* how many there are is a matter of the machine */
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    if (rc < 0)
        return rc;
    act_strv_push(&spec.argv, "true");
    spec.mount = act_strdup(flow->config.mount);
    rc = describe_folders(flow, platform_row(platform), &spec, err);
    if (rc == 0 && !platform_row(platform)->answers_by_request) /* it would be asked */
        rc = platform_check(platform, &spec, err);
    return rc;
}

static int read_job_file(struct flow *flow, const struct flow_submit *io, struct flow_describing *with,
                         struct act_error *err)
{
    struct flow_job_file *job = &with->job;
    int rc = flow_job_file_read(io->job_file, &flow->config, job, err);

    if (rc < 0)
        return rc;
    if (job->fixed_size && io->own_size)
        return act_error_set(err, ACT_USAGE,
                             "'%s' says how many workers and parameter servers there are: there cannot be "
                             "another size as well",
                             io->job_file);
    with->limit_s = flow_job_file_apply(job, &flow->config);
    for (size_t i = 0; i < job->notes.n; i++)
        act_note("%s", job->notes.v[i]);
    return 0;
}

int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err)
{
    struct flow_describing with = {0};
    struct platform *platform = NULL;
    int rc = 0;

    if (io->job_file)
        rc = read_job_file(flow, io, &with, err);
    if (rc == 0)
        rc = flow_platform(flow, &platform, err);
    if (rc == 0)
        rc = flow_describe_run(flow, platform, io, &with, err);
    if (rc == 0)
        flow_mention_unused(&flow->config, false, io->spec.image != NULL);
    if (rc == 0 && io->dry_run)
        rc = platform_preview(platform, &io->spec, &io->preview, err);
    else if (rc == 0)
        rc = flow_check_copies(flow, &io->spec, io->confirm, io->arg, err);
    if (rc == 0 && !io->dry_run)
        rc = flow_start_run(flow, platform, &io->spec, with.package.file, err);
    flow_package_release(&with.package);
    flow_job_file_release(&with.job);
    return rc;
}

/* ---- resubmit */

static void repeat_range(struct config *config, const struct run_spec *old)
{
    act_strv_release(&config->elastic_num_gpu);
    if (!run_spec_is_elastic(old))
        return;
    act_strv_pushf(&config->elastic_num_gpu, "%d", old->min_nodes * old->gpus_per_node);
    act_strv_pushf(&config->elastic_num_gpu, "%d", old->max_nodes * old->gpus_per_node);
}

/* The size of the first run, unless this command gives another; on another cluster as many GPUs. */
static int repeat_shape(struct flow *to, const struct run_spec *old, bool moved, struct platform *platform,
                        struct run_spec *spec, struct act_error *err)
{
    bool said = config_is_said(&to->config, "num_gpu");

    if (moved || said || config_is_said(&to->config, "multi_process")) {
        if (!said)
            to->config.num_gpu = flow_slots_of(old);
        if (!said && platform_row(platform)->scale)
            repeat_range(&to->config, old);
        else if (!said && run_spec_is_elastic(old))
            act_note("the first run had %d to %d nodes; this one has a fixed size, as platform '%s' cannot change it",
                     old->min_nodes, old->max_nodes, to->config.platform);
        return shape(&to->config, platform, spec, err);
    }
    spec->nodes = old->nodes;
    spec->procs_per_node = old->procs_per_node;
    spec->gpus_per_node = old->gpus_per_node;
    spec->on_processors = old->on_processors;
    spec->started_per_node = old->started_per_node;
    spec->min_nodes = old->min_nodes;
    spec->max_nodes = old->max_nodes;
    return 0;
}

/* What the job file of the first run had mounted by its keys, which only a datastore leads to now, or found on the
 * nodes, which are the same ones if the cluster is. */
static void repeat_volumes(const struct config *config, struct platform *platform, const struct run_spec *old,
                           struct run_spec *spec)
{
    bool moved = strcmp(old->cluster, config->cluster) != 0;

    for (size_t i = 0; i < old->n_folders; i++) {
        const struct run_folder *f = &old->folders[i];
        if ((!f->datastore && f->mode != RUN_FOLDER_PATH) || flow_find_folder(spec, f->name))
            continue;
        if (f->datastore ? !platform_row(platform)->datastore : moved) {
            act_note("the volume '%s', '%s', is not mounted on cluster '%s'; map it there, as a folder of that name",
                     f->name, f->store, config->cluster);
            continue;
        }
        ACT_PUSH(spec->folders, spec->n_folders,
                 (struct run_folder){.name = act_strdup(f->name),
                                     .store = act_strdup(f->store),
                                     .path = act_strdup(f->path),
                                     .link = act_strdup(f->link),
                                     .datastore = act_strdup(f->datastore),
                                     .mode = f->mode});
    }
}

/* What the first run says, and where it will run, to a new specification. */
static int repeat_spec(struct flow *to, const struct run_spec *old, struct platform *platform, struct run_spec *spec,
                       struct act_error *err)
{
    bool moved = strcmp(old->cluster, to->config.cluster) != 0;

    flow_repeat_config(&to->config, old, moved);
    identify(to, spec);
    describe_by_platform(&to->config, platform, NULL, spec);
    spec->timeout = act_strdup(old->timeout);
    spec->shm_size = act_strdup(old->shm_size);
    spec->own_image = old->own_image && act_streq(spec->image, old->image);
    spec->resubmit_of = act_strdup(old->id);
    set_labels(&(struct flow_labels){old->name, old->tags}, spec);
    act_strv_copy(&spec->argv, old->argv.v, old->argv.n);
    spec->title = act_strdup(old->title);
    int rc = repeat_shape(to, old, moved, platform, spec, err);
    if (rc == 0)
        rc = flow_repeat_hang(&to->config, platform_row(platform), old, spec, err);
    if (rc == 0 && !old->foreign)
        rc = flow_form_starter(platform, spec, err);
    if (rc == 0)
        rc = flow_repeat_retry(&to->config, platform_row(platform), old, spec, err);
    if (rc == 0)
        rc = choose_folders(to, platform_row(platform), spec, err);
    if (rc == 0)
        repeat_volumes(&to->config, platform, old, spec);
    return rc < 0 ? rc : flow_repeat_settings(&to->config, old, moved, spec, err);
}

/* The old run's package, which the new cluster's store may not have: the local copy serves both. */
static int repeat_package(struct flow *home, const struct run_spec *old, struct flow_package *out,
                          struct act_error *err)
{
    if (!old->package_key)
        return 0;
    int rc = flow_package_by_key(home, old->package_key, old->package_sha256, out, err);
    out->bytes = old->package_bytes;
    return rc;
}

static int end_old_run(struct flow *flow, struct flow_run *old, struct act_error *err)
{
    bool was_final;

    return run_state_is_final(old->status.state) ? 0 : flow_abort(flow, old, &was_final, err);
}

/* The values of the secrets, which run.json does not have: the platform may. */
static void find_secrets(struct flow *flow, struct flow_run *old)
{
    ACT_AUTO(run_spec) there = {0};
    struct platform *platform;
    struct act_error ignored;
    bool missing = false;

    for (size_t i = 0; i < old->spec.n_env; i++)
        missing = missing || !old->spec.env[i].value;
    if (!missing || flow_platform_of(flow, &old->row, &platform, &ignored) < 0 ||
        platform_spec(platform, old->row.id, &there, &ignored) < 0)
        return;
    for (size_t i = 0; i < old->spec.n_env; i++)
        for (size_t j = 0; j < there.n_env; j++)
            if (!old->spec.env[i].value && strcmp(old->spec.env[i].name, there.env[j].name) == 0)
                old->spec.env[i] = (struct run_env){
                    .name = old->spec.env[i].name, .value = act_strdup(there.env[j].value), .secret = true};
}

/* Of another tool's job the service alone knows all: where it was it becomes the same again, elsewhere its command
 * runs. */
static int repeat_foreign(const struct flow *to, const struct run_spec *old, struct run_spec *spec,
                          struct act_error *err)
{
    spec->foreign = old->foreign && strcmp(old->cluster, to->config.cluster) == 0;
    if (old->foreign && !spec->foreign && strstr(old->argv.v[old->argv.n - 1], "${{"))
        return act_error_set(err, ACT_FAIL,
                             "another tool made it, and its command names inputs of its job ('${{'), which "
                             "cluster '%s' does not have",
                             to->config.cluster);
    return 0;
}

/* What may still be refused comes first, as the first run is lost otherwise. */
static int replace_run(struct flow *flow, struct flow_run *old, struct flow *to, struct platform *platform,
                       struct run_spec *spec, const char *package, struct act_error *err)
{
    int rc;

    if (!platform_row(platform)->refuses_late) {
        rc = end_old_run(flow, old, err);
        return rc < 0 ? rc : flow_start_run(to, platform, spec, package, err);
    }
    rc = flow_start_run(to, platform, spec, package, err);
    if (rc == 0 && end_old_run(flow, old, err) < 0)
        act_warn("'%s' goes on beside '%s': %s", old->row.id, spec->id, act_error_text(err));
    return rc;
}

int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to,
                  struct flow_resubmission *out, struct act_error *err)
{
    struct run_spec *spec = &out->spec;
    ACT_AUTO(flow_package) package = {0};
    struct platform *platform = NULL;
    int rc = flow_platform(to, &platform, err);

    *spec = (struct run_spec){0};
    if (rc < 0)
        return rc;
    find_secrets(flow, old);
    rc = repeat_spec(to, &old->spec, platform, spec, err);
    set_labels(&out->labels, spec);
    if (rc == 0)
        rc = repeat_foreign(to, &old->spec, spec, err);
    if (rc == 0)
        rc = flow_check_shared_temp(platform, spec, err);
    if (rc == 0 && !spec->foreign)
        rc = platform_check(platform, spec, err);
    if (rc == 0)
        rc = flow_avoid_bad_nodes(to, platform, spec, err);
    if (rc == 0)
        rc = repeat_package(home, &old->spec, &package, err);
    if (rc == 0)
        set_package(&package, spec);
    if (rc == 0)
        rc = check_package(platform, spec, err);
    if (rc == 0)
        flow_mention_unused(&to->config, false, spec->image != NULL);
    if (rc == 0 && out->dry_run)
        rc = platform_preview(platform, spec, &out->preview, err);
    else if (rc == 0)
        rc = replace_run(flow, old, to, platform, spec, package.file, err);
    return rc < 0 ? act_error_prefix(err, "cannot resubmit '%s'", old->row.id) : 0;
}
