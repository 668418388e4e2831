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
#include "config/config.h"
#include "platform/slurm/slurm_internal.h"

/* ---- limits ---- */

bool slurm_has_gpus(const struct slurm *s)
{
    return !act_streq(s->config.gres, "none");
}

static int slurm_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    struct slurm *s = slurm_of(p);
    int per_node = s->gpu_per_node > 0 ? (int)s->gpu_per_node : SLURM_GPUS_DEFAULT;

    *out = (struct platform_limits){
        .gpu_per_node = per_node, .num_gpu = slurm_has_gpus(s) ? per_node : 1, .has_gpus = slurm_has_gpus(s)};
    return s->config.here ? slurm_here_limits(s, out, err) : 0;
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
    return rc < 0 ? act_error_prefix(err, "cannot find out the state of %s", n == 1 ? ids[0] : "the runs") : 0;
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
    s->config.here = from.here;
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
    slurm_here_release(&s->here);
    free(s->could_start);
    free(s->no_index);
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

/* "slurm.gres" is one of them because the nodes have no GPUs where it is "none". */
static const char *const place_keys[] = {"slurm.login", "slurm.root", "slurm.gres", NULL};

/* Assumed for the nodes of a cluster whose login node is this machine. They refuse a folder that they do not see. */
static bool slurm_sees_project(const struct config *config, const struct config_folder *folder)
{
    return config_is_built_in(folder) && !slurm_keys(config)->login;
}

static bool slurm_login(const struct config *config, const char **out_login, const char **out_root)
{
    *out_login = slurm_keys(config)->login;
    *out_root = slurm_keys(config)->root;
    return *out_login;
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
    if (c->here) {
        spec->limit_s = slurm_time_limit_s(config);
        spec->warn_s = c->warn_seconds;
    }
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
              .runs_after = true,
              .tries_again = true,
              .tries_elsewhere = true,
              .runs_in_jobs = true,
              .has_login_node = true,
              .nodes_share_folder = true,
              .agent_mounts = true},
    .place = {.words = slurm_place, .keys = place_keys, .login = slurm_login, .sees_project = slurm_sees_project},
    .settings = {.runs_images = slurm_runs_images,
                 .reach = slurm_reach,
                 .time_limit = {.key = "slurm.time", .set = slurm_set_time_limit, .get = slurm_time_limit_s},
                 .describe = slurm_describe},
    .open = slurm_open,
    .close = slurm_close,
    .submit = {.check_settings = slurm_check_settings,
               .check = slurm_check,
               .own_folders = slurm_own_folders,
               .prepare = slurm_prepare,
               .one = slurm_submit,
               .most_together = slurm_most_together,
               .several = slurm_submit_several},
    .runs = {.status = slurm_status,
             .abort = slurm_abort,
             .abort_waits = true,
             .open_logs = platform_site_open_logs,
             .expect_logs = platform_site_expect_logs,
             .spec = slurm_spec,
             .list = slurm_list},
    .nodes = {.limits = slurm_limits,
              .usable = slurm_usable_nodes,
              .of_run = slurm_nodes,
              .shell = slurm_shell,
              .agent = slurm_agent,
              .summary = slurm_summary,
              .jobs = slurm_jobs,
              .examine = slurm_examine,
              .examine_mounts = slurm_examine_mounts,
              .examine_place = slurm_examine_place,
              .examine_setup = slurm_examine_setup},
    .keep = {.site = slurm_site_of},
    .setup = &slurm_setup,
};
