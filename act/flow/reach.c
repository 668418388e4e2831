/* reach.c - what of a project leads out of it: links, stores, logins, hosts. Each is one line of text that says what and
 * where to, so that another target is another line. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/trusted.h"
#include "base/path.h"
#include "flow/trust.h"
#include "http/http.h"

char *flow_real_place(const char *path)
{
    ACT_AUTOFREE char *real = realpath(path, NULL);

    if (real)
        return act_strdup(real);
    ACT_AUTOFREE char *above = act_strdup(path);
    while (!real && strcmp(above, "/") != 0 && strcmp(above, ".") != 0) {
        char *next = act_path_dirname(above);
        free(above);
        above = next;
        real = realpath(above, NULL);
    }
    const char *rest = path + (strcmp(above, "/") == 0 ? 0 : strlen(above));
    return real ? act_path_join(strcmp(real, "/") == 0 ? "" : real, rest + strspn(rest, "/"))
                : act_strdup(path);
}

static void add(struct act_strv *items, char *text)
{
    if (act_strv_has(items, text))
        free(text);
    else
        act_strv_take(items, text);
}

/* Where a link leads, also when there is nothing; NULL: it is none. New string. */
static char *target_of(const char *path)
{
    char text[PATH_MAX];
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
        return NULL;
    char *real = realpath(path, NULL);
    ssize_t n = real ? 0 : readlink(path, text, sizeof(text) - 1);
    if (real || n < 0)
        return real;
    text[n] = '\0';
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    ACT_AUTOFREE char *full = *text == '/' ? act_strdup(text) : act_path_join(dir, text);
    ACT_AUTOFREE char *clean = act_path_clean(full);
    return flow_real_place(clean);
}

void flow_reach_link(const char *root, const char *name, struct act_strv *items)
{
    ACT_AUTOFREE char *path = act_path_join(root, name);
    ACT_AUTOFREE char *target = target_of(path);
    ACT_AUTOFREE char *real_root = flow_real_place(root);

    if (target && !act_path_is_within(target, real_root))
        add(items, act_sprintf("'%s' is a link to '%s'", name, target));
}

void flow_reach_path(const struct config *config, const char *folder, const char *rest,
                     struct act_strv *items)
{
    ACT_AUTOFREE char *top = act_path_join(config->project_root, folder);
    ACT_AUTOFREE char *path = act_path_join(top, rest);
    ACT_AUTOFREE char *place = flow_real_place(path);
    ACT_AUTOFREE char *real_top = flow_real_place(top);
    ACT_AUTOFREE char *root = flow_real_place(config->project_root);

    if (!act_path_is_within(place, real_top) && !act_path_is_within(place, root))
        add(items, act_sprintf("'%s/%s' leads by a link to '%s'", folder, rest, place));
}

/* ---- what the configuration says */

static bool is_outside(const struct config *config, const char *path)
{
    ACT_AUTOFREE char *place = flow_real_place(path);
    ACT_AUTOFREE char *root = flow_real_place(config->project_root);

    return !act_path_is_within(place, root);
}

static void add_value(const struct config *config, const char *key, const char *value, struct act_strv *items)
{
    if (!value || config_is_own(config, key))
        return;
    ACT_AUTOFREE char *file = config_file_of(config, key);
    add(items, act_sprintf("%s: '%s' is '%s'", file, key, value));
}

static void add_slurm(const struct config *config, struct act_strv *items)
{
    if (!act_streq(config->platform, "slurm"))
        return;
    add_value(config, "slurm.login", config->slurm.login, items);
    if (!config->slurm.login && config->slurm.root && is_outside(config, config->slurm.root))
        add_value(config, "slurm.root", config->slurm.root, items);
}

/* Whether the host is neither Azure's nor trusted anyway. Where the user's list cannot be read it is foreign. */
static bool is_foreign(const char *url)
{
    struct act_error ignored;

    return url && auth_trusts(NULL, url, &ignored) != 1;
}

static void add_azureml(const struct config *config, struct act_strv *items)
{
    if (is_foreign(config->azureml.endpoint))
        add_value(config, "azureml.endpoint", config->azureml.endpoint, items);
    if (is_foreign(config->azureml.history_endpoint))
        add_value(config, "azureml.history_endpoint", config->azureml.history_endpoint, items);
}

static void add_account(const struct config *config, const struct config_folder *folder,
                        struct act_strv *items)
{
    struct config_account a;

    if (!folder->account_file || !folder->path || config_account_is_own(config, folder))
        return;
    const char *file = config_shown_path(config, folder->account_file);
    if (is_outside(config, folder->account_file))
        add(items, act_sprintf("the account file '%s' lies outside of the project", file));
    if (!config_account_peek(config, folder, &a))
        return; /* whoever needs it says what is wrong with it */
    if (a.folder && is_outside(config, a.folder))
        add(items, act_sprintf("%s: the store is the folder '%s'", file, a.folder));
    else if (!a.folder && is_foreign(a.endpoint)) {
        ACT_AUTOFREE char *shown = http_redact_url(a.endpoint);
        add(items, act_sprintf("%s: 'endpoint' is '%s'", file, shown));
    }
    config_account_release(&a);
}

void flow_reach(const struct config *config, struct act_strv *items)
{
    for (size_t i = 0; i < config->n_folders; i++)
        flow_reach_link(config->project_root, config->folders[i].name, items);
    flow_reach_link(config->project_root, "assets", items);
    add_account(config, &config->code, items);
    for (size_t i = 0; i < config->n_folders; i++)
        add_account(config, &config->folders[i], items);
    add_slurm(config, items);
    add_azureml(config, items);
}
