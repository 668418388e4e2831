/* own.c - cluster files, and the user's own settings. */
#include "flow/cluster/own.h"
#include "config/config.h"
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/secrets.h"
#include "codec/yaml_edit.h"
#include "flow/cluster/doctor.h"
#include "flow/flow_internal.h"

enum { MAX_FILE = 1 << 20 };

static const char DEFAULT[] = "default_cluster";

void flow_own_state(const struct config_named *named, struct config_report *out)
{
    const struct config_request request = {.cluster = named->name, .file = named->file, .quiet = true};
    struct act_error err = {0};

    if (flow_check_config(&request, out, &err) < 0)
        act_strv_push(&out->problems, act_error_text(&err));
}

int flow_find_own(const struct config_listing *listing, const char *name, bool with_project,
                  const struct config_named **out, struct act_error *err)
{
    ACT_AUTO(act_strv) names = {0};

    *out = NULL;
    for (size_t i = 0; i < listing->n; i++) {
        const struct config_named *named = &listing->v[i];
        bool fits = named->is_users || (with_project && !named->is_hidden);
        if (fits && !*out && strcmp(named->name, name) == 0)
            *out = named;
        if (fits)
            act_strv_push(&names, named->name);
    }
    if (*out)
        return 0;
    act_error_set(err, ACT_NOT_FOUND, "no cluster '%s' is %s", name, with_project ? "here" : "your own");
    const char *near = names.n ? act_nearest(name, (const char *const *)names.v) : NULL;
    if (near)
        return act_error_hint(err, "did you mean '%s'?", near);
    return act_error_hint(err, "'a cluster list --own' lists what there is");
}

char *flow_own_account(const struct config_named *named)
{
    ACT_AUTOFREE char *clusters = act_path_dirname(named->file);
    ACT_AUTOFREE char *above = act_path_dirname(clusters);
    char *file = act_sprintf("%s/accounts/%s", above, act_path_basename(named->file));

    if (access(file, F_OK) == 0)
        return file;
    free(file);
    return NULL;
}

size_t flow_runs_on(struct flow *flow, const char *cluster)
{
    struct ledger *ledger;
    struct act_error ignored;
    size_t n = 0;

    if (flow_look_at_ledger(&ignored) < 0 || flow_ledger(flow, &ledger, &ignored) < 0 ||
        ledger_count(ledger, cluster, &n, &ignored) < 0)
        return 0;
    return n;
}

/* ---- a file at hand ---- */

int flow_draft_open(const char *file, bool must_exist, struct flow_draft *out, struct act_error *err)
{
    char *real = realpath(file, NULL);
    struct stat st;
    size_t len = 0;

    *out = (struct flow_draft){.file = real ? real : act_strdup(file), .mode = 0600};
    if (!real && errno == ENOENT && !must_exist)
        return 0;
    if (!real || stat(real, &st) < 0)
        return act_error_errno(err, errno, "cannot read '%s'", file);
    out->mode = st.st_mode & 0777;
    if (!(st.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) || access(real, W_OK) < 0) /* root may write anything */
        return act_error_set(err, ACT_DENIED, "'%s' is read-only; 'chmod u+w %s' lets it be changed", real, real);
    int rc = act_file_read_regular(out->file, MAX_FILE, &out->text, &len, err);
    if (rc == 0 && strlen(out->text) != len)
        rc = act_error_set(err, ACT_CONFIG, "'%s' is not a text", file);
    return rc;
}

/* Locks the folder of the file, because the file becomes another one. *out_fd is -1 where a file system cannot do that:
 * then the look before the file is replaced must do. */
static int lock_folder_of(const char *file, int *out_fd, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    int fd = act_lock_folder(dir, err);

    *out_fd = fd < 0 ? -1 : fd;
    if (fd == -ACT_TEMPORARY || fd == -ACT_INTERRUPTED)
        return act_error_prefix(err, "'%s' was not changed", file);
    return 0;
}

/* Opens a draft for a change that waits for no user: others who change a file of that folder wait meanwhile. */
static int own_open_locked(const char *file, bool must_exist, struct flow_draft *out, struct act_error *err)
{
    ACT_AUTOFREE char *real = realpath(file, NULL);
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    int rc = must_exist ? 0 : act_mkdir_all(dir, 0700, err), fd = -1;

    *out = (struct flow_draft){0};
    if (rc == 0)
        rc = lock_folder_of(real ? real : file, &fd, err);
    if (rc == 0)
        rc = flow_draft_open(file, must_exist, out, err);
    out->is_locked = fd >= 0;
    out->lock_fd = fd;
    return rc;
}

void flow_draft_release(struct flow_draft *draft)
{
    if (draft->is_locked)
        close(draft->lock_fd);
    draft->is_locked = false;
    free(draft->file);
    act_wipe(&draft->text);
}

static int problems_of(const struct flow_draft *draft, const char *text, struct config_report *out,
                       struct act_error *err)
{
    return flow_check_config(&(struct config_request){.file = draft->file, .text = text, .quiet = true}, out, err);
}

/* A problem without its place, which may have moved. */
static const char *without_place(const char *problem)
{
    const char *at = strstr(problem, ": ");

    return at ? at : problem;
}

static bool cluster_own_is_old(const struct act_strv *before, const char *problem)
{
    for (size_t i = 0; i < before->n; i++)
        if (strcmp(without_place(before->v[i]), without_place(problem)) == 0)
            return true;
    return false;
}

int flow_draft_check(const struct flow_draft *draft, const char *text, struct act_strv *problems, struct act_error *err)
{
    ACT_AUTO(config_report) before = {0}, now = {0};
    int rc = draft->text ? problems_of(draft, draft->text, &before, err) : 0;

    if (rc == 0)
        rc = problems_of(draft, text, &now, err);
    for (size_t i = 0; rc == 0 && i < now.problems.n; i++)
        if (!cluster_own_is_old(&before.problems, now.problems.v[i]))
            act_strv_push(problems, now.problems.v[i]);
    return rc;
}

static int write_new(const struct flow_draft *draft, const char *text, struct act_error *err)
{
    bool existed = false;
    int rc = act_file_create(draft->file, text, strlen(text), draft->mode, &existed, err);

    return rc == 0 && existed ? act_error_set(err, ACT_FAIL, "'%s' is there already: nothing was changed", draft->file)
                              : rc;
}

static int write_unchanged(const struct flow_draft *draft, const char *text, struct act_error *err)
{
    ACT_AUTO(flow_draft) now = {0};
    int rc = flow_draft_open(draft->file, false, &now, err);
    if (rc == 0 && !act_streq(now.text, draft->text))
        rc = act_error_set(err, ACT_TEMPORARY, "'%s' was changed by somebody else meanwhile: nothing was saved",
                           draft->file);
    return rc < 0 ? rc : act_file_write(draft->file, text, strlen(text), draft->mode, err);
}

/* Between the look at the file and its replacement nobody else may do the same. */
int flow_draft_save(const struct flow_draft *draft, const char *text, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(draft->file);
    int rc;

    if (!draft->text) {
        rc = act_mkdir_all(dir, 0700, err);
        return rc < 0 ? rc : write_new(draft, text, err);
    }
    int fd = -1;
    rc = draft->is_locked ? 0 : lock_folder_of(draft->file, &fd, err);
    if (rc == 0)
        rc = write_unchanged(draft, text, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- keys ---- */

static int edited_by_key(const char *text, const char *name, const struct flow_key *key, char **out,
                         struct act_error *err)
{
    struct yaml *value = NULL;
    int rc = 0;

    *out = NULL;
    if (!key->value)
        return yaml_edit_unset(text, name, key->key, out, err);
    if (config_is_text_key(key->key) || yaml_has_special(key->value))
        value = yaml_new_text(name, key->value);
    else
        rc = yaml_parse(key->value, strlen(key->value), "the value", &value, err);
    if (rc == 0)
        rc = yaml_edit_set(text, name, key->key, value, out, err);
    yaml_tree_free(value);
    return rc;
}

/* Makes the new text of a file; *out is NULL if there is nothing to change. */
static int edited(const char *text, const char *name, const struct flow_keys *keys, char **out, struct act_error *err)
{
    int rc = 0;

    *out = NULL;
    for (size_t i = 0; rc == 0 && i < keys->n; i++) {
        char *next = NULL;
        rc = edited_by_key(*out ? *out : text, name, &keys->v[i], &next, err);
        if (next) {
            act_wipe(out);
            *out = next;
        }
    }
    if (rc < 0 || act_streq(*out, text))
        act_wipe(out);
    return rc;
}

/* Checks that the user can have the cluster as default in all projects. */
static int check_default(const char *name, struct act_error *err)
{
    ACT_AUTO(config_listing) all = {0};
    const struct config_named *named = NULL;

    config_list(NULL, &all);
    int rc = strcmp(name, CONFIG_BUILT_IN_CLUSTER) == 0 ? 0 : flow_find_own(&all, name, false, &named, err);
    if (rc == -ACT_NOT_FOUND && flow_find_own(&all, name, true, &named, NULL) == 0)
        return act_error_set(err, ACT_NOT_FOUND,
                             "'%s' is a cluster of this project, and there is one default for all projects; "
                             "'export ACT_CLUSTER=%s' makes it that of this shell",
                             name, name);
    return rc;
}

bool flow_is_default(const char *name)
{
    ACT_AUTO(config_user) user = {0};
    struct act_error ignored;

    return config_user_read(&user, &ignored) == 0 && act_streq(user.default_cluster, name);
}

/* A change that only counts while the default cluster is this one (NULL: there is none). */
struct condition {
    const char *default_cluster;
};

/* A dry run makes no folder. */
static int open_settings(const char *file, bool dry_run, struct flow_draft *out, struct act_error *err)
{
    return dry_run ? flow_draft_open(file, false, out, err) : own_open_locked(file, false, out, err);
}

static int set_in_settings(const struct flow_keys *keys, const struct condition *only_if, char **out_file,
                           bool *out_changed, struct act_error *err)
{
    ACT_AUTO(flow_draft) draft = {0};
    ACT_AUTOFREE char *file = config_user_file();
    char *text = NULL;
    int rc = open_settings(file, keys->dry_run, &draft, err);

    if (rc == 0 && (!only_if || flow_is_default(only_if->default_cluster)))
        rc = edited(draft.text ? draft.text : "", file, keys, &text, err);
    if (rc == 0 && text)
        rc = config_user_check(text, err);
    if (rc == 0 && text && !keys->dry_run)
        rc = flow_draft_save(&draft, text, err);
    *out_changed = rc == 0 && text;
    *out_file = act_strdup(file);
    act_wipe(&text);
    return rc;
}

static int refuse_worse(const struct act_strv *problems, struct act_error *err)
{
    act_error_set(err, ACT_CONFIG, "%s", problems->v[0]);
    return act_error_hint(err, "nothing was changed");
}

static int no_file(const struct config *config, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND,
                         "the cluster '%s' is built in and has no file; 'a cluster add NAME --kind local' makes one",
                         config->cluster);
}

/* Finds the file of the cluster, also one that has mistakes, which can be mended. */
static int file_of(const struct config_request *request, char **out, struct act_error *err)
{
    ACT_AUTO(config_report) report = {0};
    int rc = config_check(request, &report, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    if (!report.file)
        return no_file(&(struct config){.cluster = report.cluster}, err);
    *out = act_strdup(report.file);
    return 0;
}

static int set_in_cluster(const struct config_request *request, const struct flow_keys *keys, char **out_file,
                          bool *out_changed, struct act_error *err)
{
    ACT_AUTO(flow_draft) draft = {0};
    ACT_AUTO(act_strv) problems = {0};
    char *text = NULL;
    int rc = file_of(request, out_file, err);

    if (rc == 0)
        rc = own_open_locked(*out_file, true, &draft, err);
    if (rc == 0)
        rc = edited(draft.text, *out_file, keys, &text, err);
    if (rc == 0 && text)
        rc = flow_draft_check(&draft, text, &problems, err);
    if (rc == 0 && problems.n)
        rc = refuse_worse(&problems, err);
    if (rc == 0 && text && !keys->dry_run)
        rc = flow_draft_save(&draft, text, err);
    *out_changed = rc == 0 && text;
    act_wipe(&text);
    return rc;
}

static int refuse_key(const char *key, const char *near, struct act_error *err)
{
    act_error_set(err, ACT_USAGE, "there is no key '%s'", key);
    return near ? act_error_hint(err, "did you mean '%s'?", near)
                : act_error_hint(err, "'man act.yaml' lists them, 'a config show --all' what they are");
}

static bool cluster_own_is_secret(const char *key, const char *value)
{
    const char *dot = strrchr(key, '.');

    return config_is_secret(dot ? dot + 1 : key) ||
           (act_starts_with(key, "env.") && act_env_gives_away(dot + 1, value));
}

static int cluster_own_check_key(const struct flow_key *key, struct act_error *err)
{
    ACT_AUTOFREE char *near = NULL;

    if (config_home_of(key->key, &near) == CONFIG_NO_KEY)
        return refuse_key(key->key, near, err);
    if (cluster_own_is_secret(key->key, key->value))
        return act_error_set(
            err, ACT_USAGE, "'%s' is a secret, which the command line shows to others: 'a cluster edit' opens the file",
            key->key);
    return strcmp(key->key, DEFAULT) == 0 ? check_default(key->value, err) : 0;
}

/* Checks each key by itself, and that all have the same home. */
static int cluster_own_check_keys(const struct flow_keys *keys, bool in_settings, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < keys->n; i++) {
        const char *key = keys->v[i].key;
        rc = keys->v[i].value ? cluster_own_check_key(&keys->v[i], err) : 0;
        if (rc == 0 && (config_home_of(key, NULL) == CONFIG_IN_SETTINGS) != in_settings)
            rc = act_error_set(err, ACT_USAGE, "'%s' and '%s' stand in two files: set them one after the other",
                               keys->v[0].key, key);
    }
    return rc;
}

/* Refuses a key to remove that neither exists nor stands in the file: one that does can be removed from there. */
static int refuse_unknown(const struct flow_keys *keys, int rc, struct act_error *err)
{
    for (size_t i = 0; (rc == 0 || rc == -ACT_NOT_FOUND) && i < keys->n; i++) {
        ACT_AUTOFREE char *near = NULL;
        if (config_home_of(keys->v[i].key, &near) == CONFIG_NO_KEY)
            return refuse_key(keys->v[i].key, near, err);
    }
    return rc;
}

int flow_set_keys(const struct config_request *request, const struct flow_keys *keys, char **out_file,
                  bool *out_changed, struct act_error *err)
{
    bool in_settings = config_home_of(keys->v[0].key, NULL) == CONFIG_IN_SETTINGS;
    int rc = cluster_own_check_keys(keys, in_settings, err);

    *out_file = NULL;
    *out_changed = false;
    if (rc < 0)
        return rc;
    rc = in_settings ? set_in_settings(keys, NULL, out_file, out_changed, err)
                     : set_in_cluster(request, keys, out_file, out_changed, err);
    return *out_changed ? rc : refuse_unknown(keys, rc, err);
}

/* ---- the list ---- */

/* *out_changed may be NULL. */
static int set_default(const char *name, const struct condition *only_if, bool dry_run, bool *out_changed,
                       struct act_error *err)
{
    ACT_AUTOFREE char *file = NULL;
    bool changed;

    return set_in_settings(&(struct flow_keys){&(struct flow_key){DEFAULT, name}, 1, dry_run}, only_if, &file,
                           out_changed ? out_changed : &changed, err);
}

/* Returns the cluster file of this project that comes before the user's default, as a new string, or NULL. */
static char *file_instead(void)
{
    ACT_AUTO(config_listing) all = {0};

    config_list(NULL, &all);
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].is_default && !all.v[i].is_users && all.v[i].file)
            return act_strdup(all.v[i].file);
    return NULL;
}

int flow_use_cluster(const char *name, bool dry_run, char **out_instead, struct act_error *err)
{
    int rc = check_default(name, err);

    *out_instead = rc == 0 ? file_instead() : NULL;
    return rc < 0 ? rc : set_default(name, NULL, dry_run, NULL, err);
}

int flow_use_first_cluster(const char *name, bool *out_is_default, struct act_error *err)
{
    ACT_AUTOFREE char *instead = file_instead();
    int rc = set_default(name, &(struct condition){NULL}, false, out_is_default, err);

    *out_is_default = *out_is_default && !instead;
    return rc;
}

/* The settings name the default cluster: where they cannot be written, the file keeps its name. */
int flow_rename_own(const struct config_named *named, const char *name, bool dry_run, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_users_cluster_file(name);
    const struct condition was_it = {named->name};
    int rc = config_check_name(name, err);

    if (rc == 0 && access(file, F_OK) == 0)
        rc = act_error_set(err, ACT_USAGE, "there is a cluster '%s' already: '%s'", name, file);
    if (rc == 0 && flow_is_default(named->name))
        rc = set_default(name, &was_it, true, NULL, err);
    if (rc < 0 || dry_run)
        return rc;
    if (act_rename_new(AT_FDCWD, named->file, file) < 0)
        return act_error_errno(err, errno, "cannot rename '%s' to '%s'", named->file, file);
    rc = flow_is_default(named->name) ? set_default(name, &was_it, false, NULL, err) : 0;
    if (rc < 0 && act_rename_new(AT_FDCWD, file, named->file) < 0)
        return act_error_hint(err, "'%s' is called '%s' now: 'a cluster use %s' chooses it", named->name, name, name);
    return rc;
}

/* Removes a cluster, which is then not the default any more. The settings are written first here, too. */
int flow_remove_own(const struct config_named *named, bool dry_run, struct act_error *err)
{
    const struct condition is_it = {named->name}, none = {NULL};
    bool chosen = flow_is_default(named->name);
    int rc = chosen ? set_default(NULL, &is_it, dry_run, NULL, err) : 0;

    if (rc < 0 || dry_run || unlink(named->file) == 0)
        return rc;
    rc = act_error_errno(err, errno, "cannot remove '%s'", named->file);
    if (chosen && set_default(named->name, &none, false, NULL, NULL) < 0)
        return act_error_hint(err, "it is not the default cluster any more: 'a cluster use %s' chooses it",
                              named->name);
    return rc;
}
