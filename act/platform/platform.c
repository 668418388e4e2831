/* platform.c - platforms by name, and the wrappers that callers use. */
#include <stdarg.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "platform/platform_internal.h"
#include "proc/mounts.h"

static int refuse_to_open(const struct config *config, struct platform **out, struct act_error *err)
{
    (void)out;
    return act_error_set(err, ACT_CONFIG,
                         "platform '%s' cannot be driven by this version of ACT; use -c local to run on this "
                         "machine",
                         config->platform);
}

void platform_begin(void)
{
    enum { MOST = 16 };
    static const struct config_kind *kinds[MOST + 1];
    size_t n = 0;

    for (const struct platform_row *const *row = platform_table; *row && n < MOST; row++)
        kinds[n++] = (*row)->kind;
    config_use_kinds(kinds);
}

const struct platform_row *platform_find(const char *name)
{
    static const struct config_kind no_kind = {.name = ""};
    static const struct platform_row unknown = {.kind = &no_kind, .open = refuse_to_open};

    for (const struct platform_row *const *row = platform_table; *row; row++)
        if (act_streq((*row)->kind->name, name))
            return *row;
    return &unknown;
}

const struct platform_row *platform_here(void)
{
    const struct platform_row *const *row = platform_table;

    while (!(*row)->about.is_here)
        row++;
    return *row;
}

const struct platform_row *platform_row(const struct platform *p)
{
    return p->row;
}

char **platform_image(struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    return row->settings.image.at ? row->settings.image.at(config) : &config->docker.image;
}

bool platform_image_is_said(const struct config *config)
{
    const char *key = platform_find(config->platform)->settings.image.key;

    return config_is_said(config, "docker.image") || (key && config_is_said(config, key));
}

int platform_open(struct services *services, const struct config *config, struct platform **out, struct act_error *err)
{
    *out = NULL;
    int rc = platform_find(config->platform)->open(config, out, err);
    if (*out)
        (*out)->services = services;
    return rc;
}

void platform_free(struct platform *p)
{
    if (p)
        p->row->close(p);
}

void platform_reach(const struct config *config, struct platform_reaches *out)
{
    for (const struct platform_row *const *row = platform_table; *row; row++)
        if ((*row)->settings.reach)
            (*row)->settings.reach(config, out);
}

static int cannot(const struct platform *p, const char *what, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "platform '%s' cannot %s", p->row->kind->name, what);
}

int platform_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    return p->row->nodes.limits(p, out, err);
}

/* The kernel of a node starts nothing with a longer word or variable: execve(2), MAX_ARG_STRLEN. */
enum { WORD_MAX = 128 * 1024 };

static int platform_check_words(const struct run_spec *spec, struct act_error *err)
{
    for (size_t i = 0; i < spec->argv.n; i++)
        if (strlen(spec->argv.v[i]) >= WORD_MAX)
            return act_error_set(err, ACT_USAGE,
                                 "a word of the command has %zu bytes, and nodes start programs with less than %d in "
                                 "each: put it into a script of the project",
                                 strlen(spec->argv.v[i]), WORD_MAX);
    for (size_t i = 0; i < spec->n_env; i++) {
        const struct run_env *env = &spec->env[i];
        size_t n = env->value ? strlen(env->value) : 0;
        if (strlen(env->name) + 1 + n >= WORD_MAX)
            return act_error_set(err, ACT_USAGE,
                                 "the variable '%s' has %zu bytes, and nodes start programs with less than %d in each: "
                                 "put its value into a file of the project",
                                 env->name, n, WORD_MAX);
    }
    return 0;
}

int platform_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    return p->row->submit.check_settings ? p->row->submit.check_settings(p, spec, err) : 0;
}

int platform_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    int rc = platform_check_words(spec, err);

    if (rc == 0)
        rc = platform_check_settings(p, spec, err);
    return rc == 0 && p->row->submit.check ? p->row->submit.check(p, spec, err) : rc;
}

int platform_preview(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err)
{
    *out = NULL;
    return p->row->submit.preview ? p->row->submit.preview(p, spec, out, err) : 0;
}

int platform_own_folders(struct platform *p, const char *const *paths, size_t n, bool *out_there, char **out_store,
                         struct act_error *err)
{
    *out_store = NULL;
    return p->row->submit.own_folders ? p->row->submit.own_folders(p, paths, n, out_there, out_store, err) : 0;
}

bool platform_nodes_fetch_package(const struct platform_row *row, const struct run_spec *spec)
{
    return row->about.package_most > 0 && spec->logs_path && spec->package_bytes > row->about.package_most;
}

int platform_settle(struct platform *p, struct run_spec *spec, struct act_error *err)
{
    return p->row->submit.settle ? p->row->submit.settle(p, spec, err) : 0;
}

int platform_prepare(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err)
{
    return p->row->submit.prepare ? p->row->submit.prepare(p, spec, package, err) : 0;
}

int platform_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    if (!run_id_valid(submission->spec->id))
        return act_error_set(err, ACT_USAGE, "'%s' is not a run id", submission->spec->id);
    struct platform_submission own = *submission;
    bool nobody_wants_it = false;
    if (!own.asked)
        own.asked = &nobody_wants_it;
    return p->row->submit.one(p, &own, err);
}

int platform_submit_several(struct platform *p, const struct platform_several *several, struct act_error *err)
{
    return p->row->submit.several(p, several, err);
}

int platform_most_together(struct platform *p)
{
    return p->row->submit.several ? p->row->submit.most_together(p) : 1;
}

int platform_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out, struct act_error *err)
{
    return p->row->runs.status(p, ids, n, out, err);
}

static void ask_question(void *questions, size_t i)
{
    struct platform_query *q = ((struct platform_query **)questions)[i];

    q->rc = platform_status(q->platform, q->ids, q->n, q->out, &q->err);
}

void platform_ask_all(struct platform_query *questions, size_t n)
{
    ACT_AUTOFREE struct platform_query **apart = act_calloc(n + 1, sizeof(*apart));
    size_t n_apart = 0;

    for (size_t i = 0; i < n; i++)
        if (questions[i].platform->row->about.asked_apart)
            apart[n_apart++] = &questions[i];
    platform_at_once(n_apart, ask_question, apart);
    for (size_t i = 0; i < n; i++)
        if (!questions[i].platform->row->about.asked_apart)
            ask_question(&(struct platform_query *){&questions[i]}, 0);
}

static int platform_check_id(const char *id, struct act_error *err)
{
    return run_name_valid(id) ? 0 : act_error_set(err, ACT_NOT_FOUND, "there is no run '%s'", id);
}

bool platform_watch(struct platform *p, bool *news)
{
    return p->row->runs.watch ? p->row->runs.watch(p, news) : true;
}

int platform_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err)
{
    struct platform_end end = {.id = id};

    platform_abort_all(p, &end, 1);
    *out_was_final = end.was_final;
    if (end.rc < 0 && err)
        *err = end.err;
    return end.rc;
}

bool platform_awaits_ends(const struct platform *p)
{
    return p->row->runs.abort_waits;
}

/* Passes over ends without a valid id. */
void platform_abort_all(struct platform *p, struct platform_end *ends, size_t n)
{
    ACT_AUTOFREE struct platform_end *valid = act_calloc(n + 1, sizeof(*valid));
    size_t n_valid = 0;

    for (size_t i = 0; i < n; i++) {
        ends[i] = (struct platform_end){.id = ends[i].id};
        ends[i].rc = platform_check_id(ends[i].id, &ends[i].err);
        if (ends[i].rc == 0)
            valid[n_valid++] = ends[i];
    }
    if (n_valid > 0)
        p->row->runs.abort(p, valid, n_valid);
    for (size_t i = 0, at = 0; i < n; i++)
        if (ends[i].rc == 0)
            ends[i] = valid[at++];
}

struct ends_together {
    struct platform_ending *endings;
    size_t n;
    void (*here)(void *arg);
    void *arg;
};

/* The last one of platform_at_once() is this thread's. */
static void abort_one_of(void *arg, size_t i)
{
    const struct ends_together *t = arg;

    if (i < t->n)
        platform_abort_all(t->endings[i].platform, t->endings[i].ends, t->endings[i].n);
    else
        t->here(t->arg);
}

void platform_abort_together(struct platform_ending *endings, size_t n, void (*here)(void *arg), void *arg)
{
    struct ends_together t = {endings, n, here, arg};

    platform_at_once(n + (here != NULL), abort_one_of, &t);
}

int platform_expect_logs(struct platform *p, const char *id, bool with_ends, struct act_error *err)
{
    int rc = p->row->runs.expect_logs ? p->row->runs.expect_logs(p, id, with_ends, err) : 0;

    return rc < 0 ? act_error_prefix(err, "cannot find out the state of %s", id) : 0;
}

int platform_scale(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err)
{
    int rc = platform_check_id(id, err);

    if (rc < 0)
        return rc;
    return p->row->runs.scale ? p->row->runs.scale(p, id, nodes, dry_run, err)
                              : cannot(p, "change the size of a run", err);
}

struct store *platform_open_logs(struct platform *p, const char *id, bool ended)
{
    return p->row->runs.open_logs(p, id, ended);
}

char *platform_page(struct platform *p, const char *id)
{
    return p->row->runs.page ? p->row->runs.page(p, id) : NULL;
}

int platform_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    int rc = platform_check_id(id, err);

    if (rc < 0)
        return rc;
    return p->row->runs.spec ? p->row->runs.spec(p, id, out, err) : cannot(p, "tell how a run was submitted", err);
}

int platform_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    return p->row->runs.list ? p->row->runs.list(p, out_ids, err) : cannot(p, "list its runs", err);
}

int platform_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                    struct act_error *err)
{
    *out = (struct platform_runs){0};
    return p->row->runs.recent ? p->row->runs.recent(p, only, max, out, err) : 0;
}

int platform_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    int rc = platform_check_id(id, err);

    *out = (struct platform_nodes){0};
    if (rc < 0)
        return rc;
    return p->row->nodes.of_run ? p->row->nodes.of_run(p, id, out, err) : cannot(p, "tell the nodes of a run", err);
}

int platform_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                   struct platform_shell *out, struct act_error *err)
{
    int rc = id ? platform_check_id(id, err) : 0;

    *out = (struct platform_shell){0};
    if (rc == 0 && !id && !p->row->about.nodes_have_addresses)
        rc = act_error_set(err, ACT_NOT_FOUND,
                           "no node has an address of its own on platform '%s': name a run, and a node of it",
                           p->row->kind->name);
    if (rc < 0)
        return rc;
    return p->row->nodes.shell ? p->row->nodes.shell(p, id, node, command, out, err) : cannot(p, "open a shell", err);
}

int platform_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err)
{
    int rc = platform_check_id(id, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    return p->row->nodes.agent ? p->row->nodes.agent(p, id, node, out, err) : cannot(p, "run its agent on a node", err);
}

void platform_shell_release(struct platform_shell *shell)
{
    act_strv_release(&shell->argv);
}

int platform_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    *out = (struct platform_summary){0};
    return p->row->nodes.summary ? p->row->nodes.summary(p, out, err) : cannot(p, "tell what it is doing", err);
}

void platform_gpus(struct platform *p, struct platform_gpus *out)
{
    *out = (struct platform_gpus){0};
    if (p->row->nodes.gpus)
        p->row->nodes.gpus(p, out);
}

void platform_gpus_release(struct platform_gpus *gpus)
{
    for (size_t i = 0; i < gpus->n; i++) {
        free(gpus->v[i].name);
        free(gpus->v[i].model);
        free(gpus->v[i].users);
    }
    free(gpus->v);
    *gpus = (struct platform_gpus){0};
}

int platform_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    *out = (struct platform_jobs){0};
    return p->row->nodes.jobs ? p->row->nodes.jobs(p, out, err) : cannot(p, "list the jobs of everybody", err);
}

void platform_remember(const char *component, const char *file, const json_t *value)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    struct act_error err;

    if (act_mkdir_all(dir, 0700, &err) < 0 || codec_json_write(file, value, 0600, &err) < 0)
        act_trace(component, "%s", act_error_text(&err));
}

int platform_check_shares(const struct run_spec *spec, const char *where, struct act_error *err)
{
    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *f = &spec->folders[i];
        bool is_moved = f->mode == RUN_FOLDER_DOWNLOAD || f->mode == RUN_FOLDER_UPLOAD || run_folder_is_copied(spec, f);
        if (act_starts_with(f->store, RUN_SHARE) && !is_moved)
            return act_error_set(err, ACT_CONFIG,
                                 "folder '%s' is in a share of Azure Files (%s), which only jobs of Azure Machine "
                                 "Learning mount: on %s it takes 'mode: download' or 'mode: upload'%s",
                                 f->name, f->store, where,
                                 platform_find(spec->platform)->about.agent_mounts
                                     ? ", or 'mount: copy' at the top level of the cluster file"
                                     : "");
    }
    return 0;
}

int platform_check_mounts_here(const struct run_spec *spec, struct act_error *err)
{
    enum mounts_tool tool;
    struct act_error why;

    for (size_t i = 0; i < spec->n_folders; i++) {
        const struct run_folder *f = &spec->folders[i];
        bool is_mounted = !f->link && !run_folder_is_copied(spec, f) &&
                          (f->mode == RUN_FOLDER_RW_MOUNT || f->mode == RUN_FOLDER_RO_MOUNT);
        if (is_mounted && mounts_find_tool(spec->mount, &tool, NULL, &why) < 0)
            return act_error_set(
                err, ACT_CONFIG,
                "folder '%s' cannot be mounted on this machine: %s; or set 'mount: copy', or for the "
                "folder 'mode: download' (brought before the command) or 'mode: upload' (sent after it)",
                f->name, act_error_text(&why));
    }
    return 0;
}

void platform_examine(struct platform *p, struct platform_findings *findings)
{
    if (p->row->nodes.examine)
        p->row->nodes.examine(p, findings);
}

void platform_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings)
{
    if (p->row->nodes.examine_setup)
        p->row->nodes.examine_setup(p, trial, findings);
    else
        platform_findings_add(findings, true, "setup", "not tried: only the nodes of a run have it");
}

bool platform_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings)
{
    if (p->row->nodes.examine_place)
        p->row->nodes.examine_place(p, name, path, findings);
    return p->row->nodes.examine_place;
}

void platform_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings)
{
    if (p->row->nodes.examine_mounts)
        p->row->nodes.examine_mounts(p, wanted, findings);
}

/* ---- what they return ---- */

void platform_findings_add(struct platform_findings *findings, bool ok, const char *what, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_PUSH(findings->v, findings->n,
             (struct platform_finding){.ok = ok, .what = act_strdup(what), .text = act_vsprintf(fmt, ap)});
    va_end(ap);
}

void platform_reaches_add(struct platform_reaches *reaches, int kind, const char *key, const char *value)
{
    ACT_PUSH(reaches->v, reaches->n, (struct platform_reach){.kind = kind, .key = key, .value = act_strdup(value)});
}

void platform_reaches_release(struct platform_reaches *reaches)
{
    for (size_t i = 0; i < reaches->n; i++)
        free(reaches->v[i].value);
    free(reaches->v);
    *reaches = (struct platform_reaches){0};
}

void platform_findings_release(struct platform_findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        free(findings->v[i].what);
        free(findings->v[i].text);
    }
    free(findings->v);
    *findings = (struct platform_findings){0};
}

#define NODE_TEXT(member) FIELD_TEXT(struct platform_node, member, #member, .flags = FIELD_OR_NULL)

static const struct field node_rows[] = {
    FIELD_INT(struct platform_node, rank, "node"),
    NODE_TEXT(name),
    NODE_TEXT(state),
    FIELD_INT(struct platform_node, first_rank, "first_rank"),
    FIELD_INT(struct platform_node, n_ranks, "ranks"),
    FIELD_INT(struct platform_node, gpus, "gpus"),
    NODE_TEXT(gpu_ids),
    NODE_TEXT(address),
    FIELD_INT(struct platform_node, port, "port", .flags = FIELD_OR_NULL),
};
const struct fields platform_node_fields = FIELDS("node", struct platform_node, node_rows, NULL);

json_t *platform_nodes_to_json(const struct platform_nodes *nodes)
{
    return fields_list_to_json(&platform_node_fields, nodes->v, nodes->n);
}

void platform_nodes_release(struct platform_nodes *nodes)
{
    fields_list_release(&platform_node_fields, nodes->v, nodes->n);
    *nodes = (struct platform_nodes){0};
}

void platform_runs_release(struct platform_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        free(runs->v[i].id);
        free(runs->v[i].name);
        free(runs->v[i].cluster);
        free(runs->v[i].title);
        free(runs->v[i].label);
        free(runs->v[i].tags);
        act_strv_release(&runs->v[i].argv);
    }
    free(runs->v);
    *runs = (struct platform_runs){0};
}

void platform_summary_release(struct platform_summary *summary)
{
    for (size_t i = 0; i < summary->n_pools; i++)
        free(summary->pools[i].name);
    free(summary->pools);
    free(summary->total.name);
    *summary = (struct platform_summary){0};
}

static int platform_longest_first(const void *a, const void *b)
{
    const struct platform_job *x = a, *y = b;

    return x->running_s < y->running_s ? 1 : x->running_s > y->running_s ? -1 : strcmp(x->id, y->id);
}

void platform_jobs_sort(struct platform_jobs *jobs)
{
    if (jobs->n)
        qsort(jobs->v, jobs->n, sizeof(*jobs->v), platform_longest_first);
}

void platform_jobs_release(struct platform_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        free(jobs->v[i].id);
        free(jobs->v[i].user);
        free(jobs->v[i].name);
        free(jobs->v[i].experiment);
        free(jobs->v[i].nodes_text);
    }
    free(jobs->v);
    *jobs = (struct platform_jobs){0};
}
