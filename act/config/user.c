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

/* A file that somebody else can write says nothing about whom the user trusts. */
static int check_owner(const char *file, struct act_error *err)
{
    struct stat st;

    if (stat(file, &st) < 0)
        return act_error_errno(err, errno, "cannot read '%s'", file);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return act_error_set(err, ACT_DENIED, "'%s' belongs to another user, so it is not read", file);
    if (st.st_mode & S_IWOTH)
        return act_error_set(err, ACT_DENIED,
                             "'%s' can be written by everybody, so it is not read; run 'chmod 600 %s'", file,
                             file);
    return 0;
}

static int read_tree(const char *file, struct config_user *out, struct act_error *err)
{
    struct config_findings f = {0};
    struct yaml *tree = NULL;
    int rc = yaml_read(file, file, &tree, err);

    if (rc == 0 && tree->kind != YAML_MAP)
        rc = yaml_error(tree, err, "must be a map of keys and values, as 'trusted_hosts: [HOST]'");
    if (rc == 0) {
        config_read_keys(config_user_keys, "", tree, out, &f);
        config_warn_unknown(config_user_keys, "", tree, &f);
    }
    for (size_t i = 0; rc == 0 && i < f.warnings.n; i++)
        act_warn("%s", f.warnings.v[i]);
    if (rc == 0 && f.problems.n > 0)
        rc = act_error_set(err, ACT_CONFIG, "%s", f.problems.v[0]);
    config_findings_release(&f);
    yaml_tree_free(tree);
    return rc;
}

int config_user_read(struct config_user *out, struct act_error *err)
{
    ACT_AUTOFREE char *file = config_user_file();
    int rc = 0;

    *out = (struct config_user){0};
    if (access(file, F_OK) == 0)
        rc = check_owner(file, err);
    else if (errno == ENOENT || errno == ENOTDIR)
        return 0;
    else
        rc = act_error_errno(err, errno, "cannot read '%s'", file);
    if (rc == 0)
        rc = read_tree(file, out, err);
    if (rc < 0)
        config_user_release(out);
    return rc;
}

void config_user_release(struct config_user *user)
{
    config_release_keys(config_user_keys, "", user);
    *user = (struct config_user){0};
}

/* ---- whose word a value is */

static bool is_own_place(const struct config *config, const struct yaml *value)
{
    const char *file = value->file;

    if (value->line == 0 || file[0] == '-' || file[0] == '$') /* what is in a file has a line */
        return true;
    ACT_AUTOFREE char *path = config_absolute(file, config->project_root);
    return config_is_users(path) ||
           (act_streq(path, config->file) && !act_path_is_within(path, config->project_root));
}

bool config_is_own(const struct config *config, const char *key)
{
    const struct yaml *value = config_value(config, key);

    return yaml_is_null(value) || is_own_place(config, value);
}

bool config_account_is_own(const struct config *config, const struct config_folder *folder)
{
    const struct yaml *named = config_account_origin(config, folder);
    const char *file = folder->account_file;

    return strcmp(file, CONFIG_BUILT_IN) == 0 || config_is_users(file) ||
           (!yaml_is_null(named) && is_own_place(config, named) &&
            !act_path_is_within(file, config->project_root));
}

bool config_account_peek(const struct config *config, const struct config_folder *folder,
                         struct config_account *out)
{
    struct config_findings f = {0};
    struct yaml *tree = NULL;
    struct act_error ignored;
    bool there = config_account_read(config, folder, out, &tree, &f, &ignored) == 0;

    if (!there)
        config_account_release(out);
    yaml_tree_free(tree);
    config_findings_release(&f);
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
