/* user.c - what the user sets for all projects. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config_internal.h"

char *config_user_file(void)
{
    ACT_AUTOFREE char *dir = act_config_dir();

    return act_path_join(dir, "config.yaml");
}

bool config_is_users(const char *path)
{
    ACT_AUTOFREE char *dir_as_given = act_config_dir();
    ACT_AUTOFREE char *dir = realpath(dir_as_given, NULL);
    ACT_AUTOFREE char *real = realpath(path, NULL);

    return dir && real && act_path_is_within(real, dir);
}

/* A file that another user can write says nothing about whom the user trusts. */
static int check_owner(const char *file, struct act_error *err)
{
    struct stat st;

    if (stat(file, &st) < 0)
        return act_error_errno(err, errno, "cannot read '%s'", file);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return act_error_set(err, ACT_DENIED, "'%s' belongs to another user, so it is not read", file);
    if (st.st_mode & (S_IWOTH | S_IWGRP))
        return act_error_set(err, ACT_DENIED, "'%s' can be written by %s, so it is not read; run 'chmod 600 %s'", file,
                             st.st_mode & S_IWOTH ? "everybody" : "its group", file);
    return 0;
}

/* Anybody who can write to its folder can replace the file; in a sticky folder only the owners can. */
static int config_user_check_folder(const char *file, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    struct stat st;

    if (stat(dir, &st) < 0)
        return act_error_errno(err, errno, "cannot look at '%s'", dir);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return act_error_set(err, ACT_DENIED, "'%s' is not read: its folder belongs to another user", file);
    if ((st.st_mode & (S_IWOTH | S_IWGRP)) && !(st.st_mode & S_ISVTX))
        return act_error_set(err, ACT_DENIED, "'%s' is not read: others can write its folder; run 'chmod go-w %s'",
                             file, dir);
    return 0;
}

/* If it is a link, both the link and its target must be the user's. */
int config_check_users(const char *file, struct act_error *err)
{
    ACT_AUTOFREE char *real = realpath(file, NULL);
    int rc = check_owner(file, err);

    if (rc == 0)
        rc = config_user_check_folder(file, err);
    return rc < 0 || !real ? rc : config_user_check_folder(real, err);
}

/* text: what the file would hold; NULL: what it holds. */
static int config_user_read_tree(const char *file, const char *text, struct config_user *out, bool warns,
                                 struct act_error *err)
{
    ACT_AUTO(config_findings) f = {0};
    struct yaml *tree = NULL;
    const char *problem;
    int rc = text ? yaml_parse(text, strlen(text), file, &tree, err) : yaml_read(file, file, &tree, err);

    if (rc == 0 && tree->kind != YAML_MAP)
        rc = yaml_error(tree, err, "must be a map of keys and values, as 'trusted_hosts: [HOST]'");
    if (rc == 0) {
        config_read_keys(config_user_keys, "", tree, out, &f);
        config_warn_unknown(config_user_keys, "", tree, &f);
    }
    if (rc == 0 && warns)
        config_warn(&f);
    if (rc == 0 && config_count_problems(&f, &problem))
        rc = act_error_set(err, ACT_CONFIG, "%s", problem);
    yaml_tree_free(tree);
    return rc;
}

static int read_settings(struct config_user *out, bool warns, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_user_file();
    int rc = 0;

    *out = (struct config_user){0};
    if (access(file, F_OK) == 0)
        rc = config_check_users(file, err);
    else if (errno == ENOENT || errno == ENOTDIR)
        return 0;
    else
        rc = act_error_errno(err, errno, "cannot read '%s'", file);
    if (rc == 0)
        rc = config_user_read_tree(file, NULL, out, warns, err);
    if (rc < 0)
        config_user_release(out);
    return rc;
}

int config_user_read(struct config_user *out, struct act_error *err)
{
    return read_settings(out, true, err);
}

int config_user_check(const char *text, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_user_file();
    ACT_AUTO(config_user) user = {0};
    int rc = access(file, F_OK) == 0 ? config_check_users(file, err) : 0;

    return rc < 0 ? rc : config_user_read_tree(file, text, &user, true, err);
}

/* Every command asks, so that only those that need the settings warn about them. */
int config_user_default(char **out, struct act_error *err)
{
    ACT_AUTO(config_user) user = {0};
    int rc = read_settings(&user, false, err);

    *out = rc == 0 && user.default_cluster && *user.default_cluster ? act_strdup(user.default_cluster) : NULL;
    return rc;
}

void config_user_release(struct config_user *user)
{
    config_release_keys(config_user_keys, "", user);
    *user = (struct config_user){0};
}

/* ---- whose word a value is */

/* From the command line, the environment, or a default: only a value from a file has a line. */
static bool is_in_no_file(const struct yaml *value)
{
    return value->line == 0 || value->file[0] == '-' || value->file[0] == '$';
}

static bool is_own_file(const struct config *config, const char *path)
{
    return config_is_users(path) || (act_streq(path, config->file) && !act_path_is_within(path, config->project_root));
}

static bool is_own_place(const struct config *config, const struct yaml *value)
{
    if (is_in_no_file(value))
        return true;
    ACT_AUTOFREE char *path = config_absolute(value->file, config->project_root);
    return is_own_file(config, path);
}

bool config_is_own(const struct config *config, const char *key)
{
    const struct yaml *value = config_value(config, key);

    return yaml_is_null(value) || is_own_place(config, value);
}

bool config_is_said_by_user(const struct config *config, const char *key)
{
    const struct yaml *value = config_value(config, key);

    return !yaml_is_null(value) && is_own_place(config, value);
}

bool config_account_is_own(const struct config *config, const struct config_folder *folder)
{
    const struct yaml *named = config_account_origin(config, folder);
    const struct yaml *path = config_row_value(config, folder, "path");
    const char *file = folder->account_file, *root_key = config_kind_named(config->platform)->root_key;

    if (config_is_built_in(folder))
        return !root_key || config_is_own(config, root_key);
    if (yaml_is_null(named) || !is_own_place(config, named))
        return false;
    return (is_in_no_file(named) || yaml_is_null(path) || is_own_place(config, path)) &&
           (config_is_users(file) || !act_path_is_within(file, config->project_root));
}

/* Most values come from the same file as the previous one. */
static void config_user_add_files(const struct yaml *value, const char *before, struct act_strv *names)
{
    if (!is_in_no_file(value) && !act_streq(value->file, before) && !act_strv_has(names, value->file))
        act_strv_push(names, value->file);
    for (size_t i = 0; i < value->n; i++)
        config_user_add_files(value->items[i], value->file, names);
}

void config_files(const struct config *config, struct act_strv *out)
{
    ACT_AUTO(act_strv) names = {0};

    config_user_add_files(config->values->tree, NULL, &names);
    for (size_t i = 0; i < names.n; i++) {
        char *path = config_absolute(names.v[i], config->project_root);
        if (is_own_file(config, path) || act_strv_has(out, path))
            free(path);
        else
            act_strv_take(out, path);
    }
}

bool config_account_peek(const struct config *config, const struct config_folder *folder, struct config_account *out)
{
    ACT_AUTO(config_findings) f = {0};
    struct yaml *tree = NULL;
    struct act_error ignored;
    bool there = config_account_read(config, folder, out, &tree, &f, &ignored) == 0;

    if (!there)
        config_account_release(out);
    yaml_tree_free(tree);
    return there;
}

char *config_file_of(const struct config *config, const char *key)
{
    const struct yaml *value = config_value(config, key);

    return act_strdup(yaml_is_null(value) ? CONFIG_DEFAULT : value->file);
}

const char *config_shown_path(const struct config *config, const char *path)
{
    return config_display(path, config->project_root);
}
