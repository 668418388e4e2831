/* logins.c - the files by which the user logs in to Kubernetes clusters: none of them is code, whatever is in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/yaml.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/trust.h"

/* Names in packages are as the project has them; a file may be reached by links, too. */
static void keep_out(const struct config *config, const char *file, struct act_strv *out)
{
    ACT_AUTOFREE char *root = flow_real_place(config->project_root), *place = flow_real_place(file);

    if (act_path_is_within(file, config->project_root) && strcmp(file, config->project_root) != 0)
        act_strv_push(out, file + strlen(config->project_root) + 1);
    if (act_path_is_within(place, root) && strcmp(place, root) != 0)
        act_strv_push(out, place + strlen(root) + 1);
}

static void keep_out_named(const struct config *config, const char *kubeconfig, const struct yaml *user,
                           struct act_strv *out)
{
    static const char *const keys[] = {"client-key", "tokenFile"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct yaml *value = yaml_get(user, keys[i]);
        if (!value || value->kind != YAML_SCALAR || !*value->text || yaml_is_null(value))
            continue;
        ACT_AUTOFREE char *dir = act_path_dirname(kubeconfig);
        ACT_AUTOFREE char *full = *value->text == '/' ? act_strdup(value->text) : act_path_join(dir, value->text);
        ACT_AUTOFREE char *file = act_path_clean(full);
        keep_out(config, file, out);
    }
}

static void keep_out_login(const struct config *config, const char *kubeconfig, struct act_strv *out)
{
    struct act_error ignored;
    struct yaml *tree = NULL;

    keep_out(config, kubeconfig, out);
    if (yaml_read(kubeconfig, kubeconfig, &tree, &ignored) < 0)
        return;
    const struct yaml *users = tree->kind == YAML_MAP ? yaml_get(tree, "users") : NULL;
    for (size_t i = 0; users && users->kind == YAML_LIST && i < users->n; i++) {
        const struct yaml *user = users->items[i]->kind == YAML_MAP ? yaml_get(users->items[i], "user") : NULL;
        if (user && user->kind == YAML_MAP)
            keep_out_named(config, kubeconfig, user, out);
    }
    yaml_tree_free(tree);
}

/* Adds the files of a list as kubectl would read them. Relative ones begin here. */
static void logins_add_list(const char *list, struct act_strv *files)
{
    for (size_t n; *list; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        ACT_AUTOFREE char *name = act_strndup(list, n);
        ACT_AUTOFREE char *here = *name == '/' ? NULL : getcwd(NULL, 0);
        ACT_AUTOFREE char *full = here ? act_path_join(here, name) : act_strdup(name);
        if (n > 0)
            act_strv_take(files, act_path_clean(full));
    }
}

void flow_keep_out_logins(const struct config *config, struct act_strv *out)
{
    const char *list = getenv("KUBECONFIG");
    ACT_AUTO(act_strv) files = {0};

    config_login_files(config, &files);
    logins_add_list(list ? list : "", &files);
    for (size_t i = 0; i < files.n; i++)
        keep_out_login(config, files.v[i], out);
}
