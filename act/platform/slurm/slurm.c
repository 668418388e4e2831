/* slurm.c - Slurm: a run is one job, which starts the agent on its first node; all information about the run is in its
 * folder on the shared file system, <slurm.root>/runs/<id>/, and in Slurm's listings.
 *
 * Several runs that differ only in their commands are one array, of which each task is a run of its own.
 *
 * Slurm is controlled by its own programs, on this machine or on a login node over ssh (site/site.h): every login node
 * has them, and their text output is more stable than their JSON.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/slurm/slurm_internal.h"

/* ---- limits ---- */

bool slurm_has_gpus(const struct slurm *s)
{
    return !act_streq(s->config.gres, "none");
}

static int slurm_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    const struct slurm *s = slurm_of(p);
    int per_node = s->gpu_per_node > 0 ? (int)s->gpu_per_node : SLURM_GPUS_DEFAULT;

    (void)err;
    *out = (struct platform_limits){
        .gpu_per_node = per_node, .num_gpu = slurm_has_gpus(s) ? per_node : 1, .has_gpus = slurm_has_gpus(s)};
    return 0;
}

/* ---- status ---- */

static int slurm_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                        struct act_error *err)
{
    ACT_AUTOFREE struct slurm_view *views = act_calloc(n, sizeof(*views));
    int rc = slurm_look(slurm_of(p), ids, n, views, err);

    for (size_t i = 0; rc == 0 && i < n; i++)
        out[i] = views[i].status;
    slurm_views_release(views, n);
    return rc < 0 ? act_error_prefix(err, "cannot tell the state of %s", n == 1 ? ids[0] : "the runs") : 0;
}

/* ---- abort ---- */

/* How a job is ended. */
enum method { NOT_YET, WHILE_IT_WAITS, GRACEFULLY, AT_ONCE };

/* Messages of scancel for a job that has started, ended or been requeued since it was queried, and for one that its
 * node has not started yet, though Slurm reports it as running. */
static const char *const moved_on[] = {"Invalid job id", "already complet", "can not be altered now",
                                       "did not say why"}; /* of a task that the signal ended, scancel keeps quiet */

static int send_scancel(struct slurm *s, const struct slurm_view *view, enum method how, enum method *told,
                        struct act_error *err)
{
    ACT_AUTOFREE char *job = slurm_task_text(view->job, view->task);
    ACT_AUTOFREE char *out = NULL;
    const char *const words[][6] = {
        [WHILE_IT_WAITS] = {"scancel", "--state=PENDING", job, NULL},
        [GRACEFULLY] = {"scancel", "--batch", "--signal=USR2", job, NULL},
        [AT_ONCE] = {"scancel", job, NULL},
    };

    int rc = slurm_run(s, words[how], &out, err);
    if (rc == 0)
        *told = how;
    for (size_t i = 0; rc < 0 && i < sizeof(moved_on) / sizeof(moved_on[0]); i++)
        if (strstr(act_error_text(err), moved_on[i]))
            rc = 0; /* the next query tells what to do */
    return rc;
}

/* Returns the request that fits the run's current state. */
static enum method choose_method(const struct slurm_view *view, bool at_once, int64_t waited_ms)
{
    enum { PENDING_MS = 2000 }; /* a job being prepared or suspended by Slurm waits too, but not as PENDING */

    if (at_once || view->is_array || waited_ms > run_abort_wait_ms())
        return AT_ONCE;
    if (view->status.state == RUN_RUNNING)
        return GRACEFULLY;
    /* with a state, scancel takes all waiting tasks of an array for the one that it was given */
    return view->task >= 0 || waited_ms > PENDING_MS ? AT_ONCE : WHILE_IT_WAITS;
}

static int end_job(struct slurm *s, const char *id, bool at_once, struct slurm_view *view, struct act_error *err)
{
    enum { KILL_MS = 60000, STEP_MIN_MS = 20, STEP_MAX_MS = 1000 }; /* Slurm's KillWait is 30 s */
    int64_t start = act_now_monotonic_ms(), waited = 0;
    enum method told = NOT_YET;
    long step_ms = STEP_MIN_MS;
    int rc = 0;

    while (rc == 0 && !run_state_is_final(view->status.state)) {
        enum method how = choose_method(view, at_once, waited);
        if (waited > run_abort_wait_ms() + KILL_MS)
            return act_error_set(err, ACT_TIMEOUT, "'%s' was told to end and has not ended yet (job %lld)", id,
                                 (long long)view->job);
        if (how > told)
            rc = send_scancel(s, view, how, &told, err);
        if (rc < 0)
            break;
        nanosleep(&(struct timespec){.tv_sec = step_ms / 1000, .tv_nsec = step_ms % 1000 * 1000000}, NULL);
        step_ms = 2 * step_ms < STEP_MAX_MS ? 2 * step_ms : STEP_MAX_MS;
        slurm_views_release(view, 1);
        rc = slurm_look_one(s, id, view, err);
        waited = act_now_monotonic_ms() - start;
    }
    return rc;
}

/* A run whose end no agent recorded ended because it was aborted. */
static int note_abort(struct slurm *s, const char *id, struct slurm_view *view, struct act_error *err)
{
    struct run_status *status = &view->status;

    status->state = RUN_CANCELED;
    status->exit_status = 0;
    status->ended_unix_s = status->ended_unix_s ? status->ended_unix_s : act_now_unix_s();
    snprintf(status->reason, sizeof(status->reason), "aborted");
    return slurm_write_status(s, id, status, err);
}

/* Tells whether only Slurm knew of it, so that nobody but this function says that it was aborted. */
static bool is_ours_to_note(const struct slurm_view *view)
{
    bool dropped = view->task >= 0 && view->status.state == RUN_FAILED && !view->status.started_unix_s;

    return view->by_slurm || !view->job || dropped; /* a task that waited, and nothing is left of its array */
}

static int slurm_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err)
{
    struct slurm *s = slurm_of(p);
    struct slurm_view view;
    int rc = slurm_look_one(s, id, &view, err);

    *out_was_final = rc == 0 && run_state_is_final(view.status.state);
    if (rc == 0 && !*out_was_final) {
        rc = site_write(s->site, id, RUN_FILE_ABORT, "", NULL, err);
        bool no_file = rc < 0 && rc != -ACT_TEMPORARY; /* disk full: Slurm can end the job all the same */
        if (view.job && (rc == 0 || no_file))
            rc = end_job(s, id, no_file, &view, err);
        if (rc == 0 && is_ours_to_note(&view)) /* without a job: the submitting client, or the agent, sees the file */
            rc = note_abort(s, id, &view, err);
    }
    slurm_views_release(&view, 1);
    return rc;
}

/* ---- the rest ---- */

int slurm_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    struct site *site;
    int rc = slurm_site(slurm_of(p), &site, err);

    return rc < 0 ? rc : platform_site_spec(site, id, out, err);
}

static int slurm_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    struct site *site;
    int rc = slurm_site(slurm_of(p), &site, err);

    return rc < 0 ? rc : site_list(site, out_ids, err);
}

/* ---- folders ---- */

/* Prints one digit per path: whether it is a folder. */
#define ARE_FOLDERS "for path; do [ -d \"$path\" ] && printf 1 || printf 0; done"

static int ask_for_folders(struct site *site, const struct act_strv *paths, bool *out_there, struct act_error *err)
{
    static const char *const words[] = {"sh", "-c", ARE_FOLDERS, "sh"};
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(site_result) result = {0};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        act_strv_push(&argv, words[i]);
    for (size_t i = 0; i < paths->n; i++)
        act_strv_push(&argv, paths->v[i]);
    int rc = site_run(site, &(struct site_command){.argv = (const char *const *)argv.v}, &result, err);
    for (size_t i = 0; rc == 0 && i < paths->n && i < result.out_len; i++)
        out_there[i] = result.out[i] == '1';
    return rc;
}

/* Without a login node, the store at the root is like any other: this machine sees it. */
static int slurm_own_folders(struct platform *p, const char *const *paths, size_t n, bool *out_there, char **out_store,
                             struct act_error *err)
{
    struct slurm *s = slurm_of(p);
    ACT_AUTO(act_strv) places = {0};
    struct site *site;

    if (!s->config.login)
        return 0;
    int rc = slurm_site(s, &site, err);
    if (rc < 0)
        return rc;
    char *store = act_path_join(site_root(site), "store");
    for (size_t i = 0; i < n; i++)
        act_strv_take(&places, act_path_join(store, paths[i]));
    rc = ask_for_folders(site, &places, out_there, err);
    if (rc == 0)
        *out_store = store;
    else
        free(store);
    return rc;
}

/* The texts of the configuration, which need not live as long as the platform. */
static const size_t texts[] = {
    offsetof(struct slurm_keys, login),       offsetof(struct slurm_keys, root),
    offsetof(struct slurm_keys, partition),   offsetof(struct slurm_keys, account),
    offsetof(struct slurm_keys, qos),         offsetof(struct slurm_keys, time),
    offsetof(struct slurm_keys, constraint),  offsetof(struct slurm_keys, gres),
    offsetof(struct slurm_keys, reservation), offsetof(struct slurm_keys, exclude),
    offsetof(struct slurm_keys, nodelist),    offsetof(struct slurm_keys, launcher),
    offsetof(struct slurm_keys, mpi),         offsetof(struct slurm_keys, container),
    offsetof(struct slurm_keys, scratch),
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

static char **slurm_text_at(struct slurm_keys *c, size_t i)
{
    return (char **)((char *)c + texts[i]);
}

static void copy_config(const struct config *config, struct slurm *s)
{
    struct slurm_keys from = *slurm_keys(config);

    if (!from.partition)
        from.partition = config->compute_target;
    for (size_t i = 0; i < TEXTS; i++)
        *slurm_text_at(&s->config, i) = act_strdup(*slurm_text_at(&from, i));
    act_strv_copy(&s->config.sbatch_options, from.sbatch_options.v, from.sbatch_options.n);
    s->options_are_said = config_is_said(config, "slurm.sbatch_options");
    s->config.warn_seconds = from.warn_seconds;
    s->image = act_strdup(config->docker.image);
    s->gpu_per_node = config->gpu_per_node;
    s->preemption_allowed = config->preemption_allowed;
}

static void slurm_close(struct platform *p)
{
    struct slurm *s = slurm_of(p);

    site_free(s->site);
    for (size_t i = 0; i < TEXTS; i++)
        free(*slurm_text_at(&s->config, i));
    act_strv_release(&s->config.sbatch_options);
    free(s->could_start);
    free(s->image);
    free(s);
}

static int slurm_open(const struct config *config, struct platform **out, struct act_error *err)
{
    struct slurm *s = act_calloc(1, sizeof(*s));

    (void)err;
    s->base.row = &platform_slurm;
    copy_config(config, s);
    *out = &s->base;
    return 0;
}

/* ---- interpreting a configuration ---- */

static char *slurm_place(const struct config *config)
{
    const char *login = slurm_keys(config)->login, *root = slurm_keys(config)->root;

    return act_sprintf("'%s' on %s", root ? root : "~/.act", login ? login : "this machine");
}

/* With "slurm.gres: none" the nodes have no GPUs. */
static const char *const place_keys[] = {"slurm.login", "slurm.root", "slurm.gres", NULL};

/* Assumed for the nodes of a cluster whose login node is this machine. They refuse a folder that they do not see. */
static bool slurm_sees_project(const struct config *config, const struct config_folder *folder)
{
    return config_is_built_in(folder) && !slurm_keys(config)->login;
}

static bool slurm_runs_images(const struct config *config)
{
    return slurm_keys(config)->container && strcmp(slurm_keys(config)->container, "none") != 0;
}

/* Separated by spaces; NULL: none. New string. */
static char *slurm_text_of(const struct act_strv *words)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < words->n; i++)
        act_buf_addf(&text, "%s%s", i ? " " : "", words->v[i]);
    return text.data;
}

/* Where to log in, into which folder, and the options for the scheduler there: if a project sets one of them, all must
 * be trusted, as it could abuse a login of the user. */
static void slurm_reach(const struct config *config, struct platform_reaches *out)
{
    const struct slurm_keys *c = slurm_keys(config);
    ACT_AUTOFREE char *options = slurm_text_of(&c->sbatch_options);

    if (!act_streq(config->platform, slurm_kind.name))
        return;
    if (!c->login) {
        platform_reaches_add(out, PLATFORM_FOLDER, "slurm.root", c->root);
        return;
    }
    platform_reaches_add(out, PLATFORM_LOGIN, "slurm.login", c->login);
    platform_reaches_add(out, PLATFORM_LOGIN, "slurm.root", c->root);
    platform_reaches_add(out, PLATFORM_LOGIN, "slurm.sbatch_options", options);
}

/* "3-00:00:00" */
static void slurm_set_time_limit(struct config *config, int64_t s)
{
    ACT_AUTOFREE char *text = act_sprintf("%lld-%02d:%02d:%02d", (long long)(s / 86400), (int)(s / 3600 % 24),
                                          (int)(s / 60 % 60), (int)(s % 60));

    act_str_replace(&slurm_keys(config)->time, text);
}

/* How the nodes start the processes, and in which image. */
static void slurm_describe(const struct config *config, const struct platform_asked *asked, struct run_spec *spec)
{
    const struct slurm_keys *c = slurm_keys(config);

    (void)asked; /* a repeated run uses the cluster file's values */
    spec->launcher = act_strdup(c->launcher);
    spec->mpi = act_strdup(c->mpi);
    spec->scratch = act_strdup(c->scratch);
    if (config->docker.image && slurm_runs_images(config)) {
        spec->container = act_strdup(c->container);
        spec->image = act_strdup(config->docker.image);
    }
}

static int slurm_site_of(struct platform *p, struct site **out, struct act_error *err)
{
    return slurm_site(slurm_of(p), out, err);
}

/* ---- the row ---- */

const struct platform_row platform_slurm = {
    .kind = &slurm_kind,
    .about = {.keeps_record = true,
              .tries_again = true,
              .tries_elsewhere = true,
              .nodes_share_folder = true,
              .agent_mounts = true},
    .place = {.words = slurm_place, .keys = place_keys, .sees_project = slurm_sees_project},
    .settings = {.runs_images = slurm_runs_images,
                 .reach = slurm_reach,
                 .time_limit = {.key = "slurm.time", .set = slurm_set_time_limit, .get = slurm_time_limit_s},
                 .describe = slurm_describe},
    .open = slurm_open,
    .close = slurm_close,
    .submit = {.check_settings = slurm_check_settings,
               .check = slurm_check,
               .own_folders = slurm_own_folders,
               .one = slurm_submit,
               .most_together = slurm_most_together,
               .several = slurm_submit_several},
    .runs = {.status = slurm_status,
             .abort = slurm_abort,
             .open_logs = platform_site_open_logs,
             .spec = slurm_spec,
             .list = slurm_list},
    .nodes = {.limits = slurm_limits,
              .usable = slurm_usable_nodes,
              .of_run = slurm_nodes,
              .shell = slurm_shell,
              .summary = slurm_summary,
              .jobs = slurm_jobs,
              .examine = slurm_examine,
              .examine_mounts = slurm_examine_mounts},
    .keep = {.site = slurm_site_of},
    .setup = &slurm_setup,
};
