/* user.c - what a kubeconfig says of the user: certificate, token, password, plugin, and whom to act as. */
#include <string.h>

#include "kube/kubeconfig.h"

/* ---- plugins ---- */

static int push_texts(const struct yaml *map, const char *key, struct act_strv *out, struct act_error *err)
{
    const struct yaml *list;
    int rc = kube_part_of(map, key, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        if (list->items[i]->kind != YAML_SCALAR)
            return yaml_error(list->items[i], err, "each of '%s' must be text", key);
        act_strv_push(out, list->items[i]->text);
    }
    return rc;
}

static int read_env(const struct yaml *map, struct act_strv *out, struct act_error *err)
{
    const struct yaml *list;
    int rc = kube_part_of(map, "env", YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const struct yaml *item = list->items[i];
        const char *name = NULL, *value = NULL;
        if (item->kind != YAML_MAP)
            return yaml_error(item, err, "each of 'env' must be a map of 'name' and 'value'");
        rc = kube_text_of(item, "name", &name, err);
        if (rc == 0 && (!name || strchr(name, '=')))
            rc = yaml_error(item, err, "this variable of 'env' has no 'name', or one that cannot be");
        if (rc == 0)
            rc = kube_text_of(item, "value", &value, err);
        if (rc == 0)
            act_strv_pushf(out, "%s=%s", name, value ? value : "");
    }
    return rc;
}

static int read_interactive(const struct yaml *map, struct kube_exec *exec, struct act_error *err)
{
    static const char *const words[] = {
        [KUBE_NEVER] = "Never", [KUBE_IF_AVAILABLE] = "IfAvailable", [KUBE_ALWAYS] = "Always"};
    const char *mode = NULL;
    int rc = kube_text_of(map, "interactiveMode", &mode, err);

    exec->interactive = KUBE_IF_AVAILABLE;
    if (rc < 0)
        return rc;
    if (!mode && act_ends_with(exec->api_version, "/v1"))
        return yaml_error(map, err, "'interactiveMode' is missing: Never, IfAvailable or Always");
    for (size_t i = 0; mode && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(mode, words[i]) == 0) {
            exec->interactive = (enum kube_interactive)i;
            return 0;
        }
    return mode ? yaml_error(map, err, "'interactiveMode' must be Never, IfAvailable or Always") : 0;
}

static int kube_user_check_version(const struct yaml *map, const struct kube_exec *exec, struct act_error *err)
{
    static const char group[] = "client.authentication.k8s.io/";
    const char *version = exec->api_version ? exec->api_version : "";

    if (act_starts_with(version, group)) {
        const char *last = version + strlen(group);
        if (strcmp(last, "v1") == 0 || strcmp(last, "v1beta1") == 0)
            return 0;
    }
    return yaml_error(map, err,
                      "'apiVersion' of 'exec' is '%s'; it must be %sv1 or %sv1beta1: get a newer plugin, and "
                      "its kubeconfig",
                      version, group, group);
}

static int read_exec(const struct kube_found *at, struct kube_exec *exec, struct act_error *err)
{
    const struct yaml *map;
    const char *command = NULL;
    int rc = kube_part_of(at->map, "exec", YAML_MAP, &map, err);

    if (rc < 0 || !map)
        return rc;
    rc = kube_text_of(map, "command", &command, err);
    if (!command)
        return rc < 0 ? rc : yaml_error(map, err, "'exec' has no 'command'");
    act_strv_take(&exec->argv, strchr(command, '/') ? kube_resolved(at->file, command) : act_strdup(command));
    rc = push_texts(map, "args", &exec->argv, err);
    if (rc == 0)
        rc = read_env(map, &exec->env, err);
    if (rc == 0)
        rc = kube_copy_text(map, "apiVersion", &exec->api_version, err);
    if (rc == 0)
        rc = kube_copy_text(map, "installHint", &exec->install_hint, err);
    if (rc == 0)
        rc = kube_bool_of(map, "provideClusterInfo", &exec->provide_cluster, err);
    if (rc == 0)
        rc = kube_user_check_version(map, exec, err);
    return rc < 0 ? rc : read_interactive(map, exec, err);
}

/* Refuses a provider that kubectl itself knew once and knows no longer. */
static int refuse_provider(const struct kube_found *at, struct act_error *err)
{
    static const struct {
        const char *name, *remedy;
    } providers[] = {
        {"azure", "run 'kubelogin convert-kubeconfig'"},
        {"gcp", "install gke-gcloud-auth-plugin and run 'gcloud container clusters get-credentials' again"},
    };
    const struct yaml *map;
    const char *name = NULL;
    int rc = kube_part_of(at->map, "auth-provider", YAML_MAP, &map, err);

    if (rc == 0 && map)
        rc = kube_text_of(map, "name", &name, err);
    if (rc < 0 || !map)
        return rc;
    yaml_error(map, err, "'auth-provider' '%s' is not supported", name ? name : "");
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (act_streq(name, providers[i].name))
            return act_error_hint(err, "%s", providers[i].remedy);
    return act_error_hint(err, "use a plugin ('exec') instead");
}

static int read_extra(const struct kube_found *at, struct http_headers *out, struct act_error *err)
{
    const struct yaml *map;
    int rc = kube_part_of(at->map, "as-user-extra", YAML_MAP, &map, err);

    for (size_t i = 0; rc == 0 && map && i < map->n; i++) {
        ACT_AUTO(act_strv) values = {0};
        ACT_AUTOFREE char *key = http_encode(map->items[i]->key, false);
        ACT_AUTOFREE char *name = act_sprintf("Impersonate-Extra-%s", key);
        rc = push_texts(map, map->items[i]->key, &values, err);
        for (size_t k = 0; k < values.n; k++)
            http_header_add(out, name, strlen(name), values.v[k], strlen(values.v[k]));
    }
    return rc;
}

static int read_as(const struct kube_found *at, struct http_headers *out, struct act_error *err)
{
    static const char group[] = "Impersonate-Group";
    ACT_AUTO(act_strv) groups = {0};
    const char *user = NULL, *uid = NULL;
    int rc = kube_text_of(at->map, "as", &user, err);

    if (rc == 0)
        rc = kube_text_of(at->map, "as-uid", &uid, err);
    if (rc == 0)
        rc = push_texts(at->map, "as-groups", &groups, err);
    if (rc == 0 && !user && (uid || groups.n || !yaml_is_null(yaml_get(at->map, "as-user-extra"))))
        rc = yaml_error(at->map, err, "'as-uid', 'as-groups' and 'as-user-extra' need 'as'");
    if (rc < 0 || !user)
        return rc;
    http_header_set(out, "Impersonate-User", user);
    if (uid)
        http_header_set(out, "Impersonate-Uid", uid);
    for (size_t i = 0; i < groups.n; i++)
        http_header_add(out, group, strlen(group), groups.v[i], strlen(groups.v[i]));
    return read_extra(at, out, err);
}

static int check_user(const struct kube_found *at, const struct kube_config *c, struct act_error *err)
{
    bool token = c->token || c->token_file;

    if (token && (c->user || c->password))
        return yaml_error(at->map, err, "a user must have either a token or 'username' and 'password'");
    if (c->cert && !c->key)
        return yaml_error(at->map, err, "there is a 'client-certificate', but no 'client-key'");
    if (c->key && !c->cert)
        return yaml_error(at->map, err, "there is a 'client-key', but no 'client-certificate'");
    return 0;
}

int kube_user_read(const struct kube_found *at, struct kube_config *c, struct act_error *err)
{
    const char *token_file = NULL;
    int rc = refuse_provider(at, err);

    if (rc == 0)
        rc = kube_pem_of(at, "client-certificate", &c->cert, &c->files, err);
    if (rc == 0)
        rc = kube_pem_of(at, "client-key", &c->key, &c->files, err);
    if (rc == 0)
        rc = kube_copy_text(at->map, "token", &c->token, err);
    if (rc == 0)
        rc = kube_text_of(at->map, "tokenFile", &token_file, err);
    if (rc == 0 && token_file) {
        c->token_file = kube_resolved(at->file, token_file);
        act_strv_push(&c->files, c->token_file);
    }
    if (rc == 0)
        rc = kube_copy_text(at->map, "username", &c->user, err);
    if (rc == 0)
        rc = kube_copy_text(at->map, "password", &c->password, err);
    if (rc == 0)
        rc = read_exec(at, &c->exec, err);
    if (rc == 0)
        rc = read_as(at, &c->as, err);
    return rc < 0 ? rc : check_user(at, c, err);
}
