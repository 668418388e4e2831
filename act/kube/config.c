/* config.c - kubeconfig files: which there are, what they say of one context.
 *
 *   contexts: [{name, context: {cluster, user, namespace}}], clusters: [{name, cluster: {...}}],
 *   users: [{name, user: {...}}], current-context
 *
 * A name belongs to the first file that defines it, with all that the file says of it.
 */
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "kube/kube_internal.h"

enum { MAX_FILES = 64, MAX_FILE = 1 << 20, NAMES_SHOWN = 8 };

const char *kube_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";

void kube_wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static void release_exec(struct kube_exec *exec)
{
    act_strv_release(&exec->argv);
    act_strv_release(&exec->env);
    free(exec->api_version);
    free(exec->install_hint);
    json_decref(exec->cluster_config);
}

void kube_config_release(struct kube_config *c)
{
    char **const secrets[] = {&c->key, &c->token, &c->password};
    char *const plain[] = {c->context, c->namespace_, c->server, c->server_name, c->proxy,
                           c->ca,      c->cert,       c->user,   c->token_file};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        kube_wipe(secrets[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        free(plain[i]);
    http_headers_release(&c->as);
    release_exec(&c->exec);
    *c = (struct kube_config){0};
}

/* ---- files ---- */

struct file {
    char *name, *dir;
    struct yaml *tree;
};

struct files {
    struct file *v;
    size_t n;
    struct act_strv missing;
};

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        yaml_tree_free(files->v[i].tree);
        free(files->v[i].name);
        free(files->v[i].dir);
    }
    free(files->v);
    act_strv_release(&files->missing);
}

static int add_file(struct files *files, const char *name, bool must_exist, struct act_error *err)
{
    struct yaml *tree = NULL;
    int rc = 0;

    if (files->n == MAX_FILES)
        return act_error_set(err, ACT_CONFIG, "KUBECONFIG names more than %d files", MAX_FILES);
    if (!must_exist && access(name, F_OK) < 0) {
        act_strv_push(&files->missing, name);
        return 0;
    }
    if ((rc = yaml_read(name, name, &tree, err)) < 0)
        return rc;
    if (tree->kind != YAML_MAP) {
        rc = yaml_error(tree, err, "this is no kubeconfig");
        yaml_tree_free(tree);
        return rc;
    }
    ACT_PUSH(files->v, files->n, (struct file){.name = act_strdup(name), .dir = act_path_dirname(name), .tree = tree});
    return 0;
}

static int add_list(struct files *files, const char *list, struct act_error *err)
{
    int rc = 0;

    for (const char *at = list; *at && rc == 0; at += at[strcspn(at, ":")] == ':' ? 1 : 0) {
        size_t n = strcspn(at, ":");
        ACT_AUTOFREE char *name = act_strndup(at, n);
        if (n > 0)
            rc = add_file(files, name, false, err);
        at += n;
    }
    return rc;
}

static int read_files(const char *named, struct files *out, struct act_error *err)
{
    const char *list = getenv("KUBECONFIG");

    if (named)
        return add_file(out, named, true, err);
    if (list && *list)
        return add_list(out, list, err);
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *usual = act_path_join(home, ".kube/config");
    return add_file(out, usual, false, err);
}

/* ---- values ---- */

/* NULL: it is missing or null. */
static int text_of(const struct yaml *map, const char *key, const char **out, struct act_error *err)
{
    const struct yaml *value = map ? yaml_get(map, key) : NULL;

    *out = NULL;
    if (yaml_is_null(value))
        return 0;
    if (value->kind != YAML_SCALAR)
        return yaml_error(value, err, "'%s' must be text", key);
    *out = *value->text ? value->text : NULL;
    return 0;
}

static int copy_text(const struct yaml *map, const char *key, char **out, struct act_error *err)
{
    const char *text = NULL;
    int rc = text_of(map, key, &text, err);

    if (rc == 0 && text)
        act_str_replace(out, text);
    return rc;
}

static int bool_of(const struct yaml *map, const char *key, bool *out, struct act_error *err)
{
    const struct yaml *value = map ? yaml_get(map, key) : NULL;

    if (yaml_is_null(value) || yaml_as_bool(value, out))
        return 0;
    return yaml_error(value, err, "'%s' must be true or false", key);
}

/* A member that must be a map or a list; *out NULL: it is missing. */
static int part_of(const struct yaml *map, const char *key, enum yaml_kind kind, const struct yaml **out,
                   struct act_error *err)
{
    const struct yaml *value = yaml_get(map, key);

    *out = NULL;
    if (yaml_is_null(value))
        return 0;
    if (value->kind != kind)
        return yaml_error(value, err, "'%s' must be a %s", key, kind == YAML_MAP ? "map" : "list");
    *out = value;
    return 0;
}

static json_t *to_json(const struct yaml *value)
{
    int64_t number;
    bool truth;
    json_t *out;

    if (value->kind == YAML_MAP) {
        out = json_object();
        for (size_t i = 0; i < value->n; i++)
            json_object_set_new(out, value->items[i]->key, to_json(value->items[i]));
        return out;
    }
    if (value->kind == YAML_LIST) {
        out = json_array();
        for (size_t i = 0; i < value->n; i++)
            json_array_append_new(out, to_json(value->items[i]));
        return out;
    }
    if (yaml_is_null(value))
        return json_null();
    if (yaml_as_bool(value, &truth))
        return json_boolean(truth);
    return yaml_as_int(value, &number) ? json_integer(number) : json_string(value->text);
}

/* ---- names ---- */

struct kind {
    const char *list, *part;
};
static const struct kind contexts = {"contexts", "context"}, clusters = {"clusters", "cluster"},
                         users = {"users", "user"};

struct found {
    const struct file *file; /* NULL: it was not found */
    const struct yaml *map;  /* what is said of it; NULL: nothing */
};

/* The name of an entry of a list; NULL: it has none. */
static int name_of(const struct yaml *entry, const struct kind *kind, const char **out, struct act_error *err)
{
    if (entry->kind != YAML_MAP)
        return yaml_error(entry, err, "each of '%s' must be a map", kind->list);
    return text_of(entry, "name", out, err);
}

static int find_in(const struct file *file, const struct kind *kind, const char *name, struct found *out,
                   struct act_error *err)
{
    const struct yaml *list;
    int rc = part_of(file->tree, kind->list, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const char *its_name = NULL;
        rc = name_of(list->items[i], kind, &its_name, err);
        if (rc < 0 || !act_streq(its_name, name))
            continue;
        if (out->file)
            return yaml_error(list->items[i], err, "there are two %s '%s' in this file", kind->list, name);
        out->file = file;
        rc = part_of(list->items[i], kind->part, YAML_MAP, &out->map, err);
    }
    return rc;
}

static int find(const struct files *files, const struct kind *kind, const char *name, struct found *out,
                struct act_error *err)
{
    int rc = 0;

    *out = (struct found){0};
    for (size_t i = 0; i < files->n && rc == 0 && !out->file; i++)
        rc = find_in(&files->v[i], kind, name, out, err);
    return rc;
}

/* "'a', 'b'": new string. */
static char *file_names(const struct files *files)
{
    struct act_buf out = {0};

    for (size_t i = 0; i < files->n; i++)
        act_buf_addf(&out, "%s'%s'", i ? ", " : "", files->v[i].name);
    return act_buf_steal(&out);
}

/* The contexts there are, for an error; malformed entries are passed over. New string. */
static char *context_names(const struct files *files)
{
    struct act_buf out = {0};
    size_t n = 0;

    for (size_t i = 0; i < files->n; i++) {
        const struct yaml *list = NULL;
        const char *name = NULL;
        if (part_of(files->v[i].tree, contexts.list, YAML_LIST, &list, NULL) < 0 || !list)
            continue;
        for (size_t k = 0; k < list->n && n < NAMES_SHOWN; k++)
            if (name_of(list->items[k], &contexts, &name, NULL) == 0 && name)
                act_buf_addf(&out, "%s%s", n++ ? ", " : "", name);
    }
    return act_buf_steal(&out);
}

static int refuse_context(const struct files *files, const char *name, const char *said_by, struct act_error *err)
{
    ACT_AUTOFREE char *names = context_names(files), *where = file_names(files);

    if (name)
        act_error_set(err, ACT_CONFIG, "there is no context '%s' in %s%s%s", name, where,
                      said_by ? ", which is from " : "", said_by ? said_by : "");
    else
        act_error_set(err, ACT_CONFIG, "no context is chosen: %s has no 'current-context'", where);
    if (*names)
        return act_error_hint(err, "there is: %s; choose one by 'k8s.context', or 'kubectl config use-context NAME'",
                              names);
    return act_error_hint(err, "there is none at all; get one from your provider, as by 'az aks get-credentials'");
}

/* ---- files that it names ---- */

static char *resolved(const struct file *file, const char *path)
{
    return *path == '/' ? act_strdup(path) : act_path_join(file->dir, path);
}

static bool is_pem(const char *text, size_t len)
{
    return strlen(text) == len && strstr(text, "-----BEGIN ");
}

static int pem_of_data(const struct yaml *map, const char *key, const char *text, char **out, struct act_error *err)
{
    size_t len = 0;
    uint8_t *data = act_base64_decode(text, &len);

    if (!data)
        return yaml_error(yaml_get(map, key), err, "'%s' is not base64", key);
    *out = act_strndup((char *)data, len);
    bool ok = is_pem(*out, len);
    explicit_bzero(data, len);
    free(data);
    return ok ? 0 : yaml_error(yaml_get(map, key), err, "'%s' is not the base64 of a PEM text", key);
}

static int pem_of_file(const struct found *at, const char *key, const char *name, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *path = resolved(at->file, name);
    size_t len = 0;
    int rc = act_file_read_regular(path, MAX_FILE, out, &len, err);

    if (rc < 0) {
        act_error_prefix(err, "'%s' in '%s'", key, at->file->name);
        return -(int)(err ? err->code : ACT_CONFIG);
    }
    return is_pem(*out, len) ? 0
                             : act_error_set(err, ACT_CONFIG, "'%s', which is '%s' in '%s', is no PEM file", path, key,
                                             at->file->name);
}

/* "<key>-data", else the file "<key>". */
static int pem_of(const struct found *at, const char *key, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *data_key = act_sprintf("%s-data", key);
    const char *data = NULL, *name = NULL;
    int rc = text_of(at->map, data_key, &data, err);

    if (rc == 0)
        rc = text_of(at->map, key, &name, err);
    if (rc < 0)
        return rc;
    return data ? pem_of_data(at->map, data_key, data, out, err) : name ? pem_of_file(at, key, name, out, err) : 0;
}

/* ---- clusters ---- */

/* As kubectl does: a server without a scheme is one of https if anything is said of TLS. */
static char *whole_server(const struct kube_config *c, const char *text)
{
    size_t n = strlen(text);
    bool secure = c->ca || c->insecure;

    while (n && text[n - 1] == '/')
        n--;
    return act_sprintf("%s%.*s", strstr(text, "://") ? "" : secure ? "https://" : "http://", (int)n, text);
}

static int check_server(const struct found *at, const struct kube_config *c, struct act_error *err)
{
    const struct yaml *server = yaml_get(at->map, "server");
    ACT_AUTOFREE char *host = http_host(c->server);

    if (!host || strpbrk(c->server, "?# \t"))
        return yaml_error(server, err, "'server' must be like 'https://HOST:PORT'");
    if (!http_is_private(c->server))
        return yaml_error(server, err, "'server' is '%s': credentials go there, so it must begin with 'https://'",
                          c->server);
    return 0;
}

static int check_tls(const struct found *at, const struct kube_config *c, struct act_error *err)
{
    ACT_AUTOFREE char *url = act_sprintf("https://%s", c->server_name ? c->server_name : "x");
    ACT_AUTOFREE char *host = http_host(url);

    if (c->insecure && c->ca)
        return yaml_error(yaml_get(at->map, "insecure-skip-tls-verify"), err,
                          "'insecure-skip-tls-verify' and a 'certificate-authority' cannot both be set");
    if (c->server_name && (!host || strcasecmp(host, c->server_name) != 0))
        return yaml_error(yaml_get(at->map, "tls-server-name"), err, "'tls-server-name' must be a name");
    return 0;
}

/* What the cluster has for its plugins. */
static int read_extension(const struct found *at, json_t **out, struct act_error *err)
{
    static const struct kind extensions = {"extensions", "extension"};
    const struct yaml *list;
    int rc = part_of(at->map, extensions.list, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const char *name = NULL;
        rc = name_of(list->items[i], &extensions, &name, err);
        const struct yaml *value = rc == 0 ? yaml_get(list->items[i], extensions.part) : NULL;
        if (value && act_streq(name, "client.authentication.k8s.io/exec") && !*out)
            *out = to_json(value);
    }
    return rc;
}

static int read_cluster(const struct found *at, struct kube_config *c, struct act_error *err)
{
    const char *server = NULL;
    int rc = text_of(at->map, "server", &server, err);

    if (rc == 0 && !server)
        rc = act_error_set(err, ACT_CONFIG, "the cluster of the context '%s' has no 'server' in '%s'", c->context,
                           at->file->name);
    if (rc == 0)
        rc = bool_of(at->map, "insecure-skip-tls-verify", &c->insecure, err);
    if (rc == 0)
        rc = copy_text(at->map, "tls-server-name", &c->server_name, err);
    if (rc == 0)
        rc = copy_text(at->map, "proxy-url", &c->proxy, err);
    if (rc == 0)
        rc = pem_of(at, "certificate-authority", &c->ca, err);
    if (rc == 0)
        rc = read_extension(at, &c->exec.cluster_config, err);
    if (rc < 0)
        return rc;
    c->server = whole_server(c, server);
    rc = check_server(at, c, err);
    return rc < 0 ? rc : check_tls(at, c, err);
}

/* ---- users ---- */

static int push_texts(const struct yaml *map, const char *key, struct act_strv *out, struct act_error *err)
{
    const struct yaml *list;
    int rc = part_of(map, key, YAML_LIST, &list, err);

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
    int rc = part_of(map, "env", YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const struct yaml *item = list->items[i];
        const char *name = NULL, *value = NULL;
        if (item->kind != YAML_MAP)
            return yaml_error(item, err, "each of 'env' must be a map of 'name' and 'value'");
        rc = text_of(item, "name", &name, err);
        if (rc == 0 && (!name || strchr(name, '=')))
            rc = yaml_error(item, err, "this variable of 'env' has no 'name', or one that cannot be");
        if (rc == 0)
            rc = text_of(item, "value", &value, err);
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
    int rc = text_of(map, "interactiveMode", &mode, err);

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

static int check_version(const struct yaml *map, const struct kube_exec *exec, struct act_error *err)
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

static int read_exec(const struct found *at, struct kube_exec *exec, struct act_error *err)
{
    const struct yaml *map;
    const char *command = NULL;
    int rc = part_of(at->map, "exec", YAML_MAP, &map, err);

    if (rc < 0 || !map)
        return rc;
    rc = text_of(map, "command", &command, err);
    if (rc == 0 && !command)
        rc = yaml_error(map, err, "'exec' has no 'command'");
    if (rc < 0)
        return rc;
    act_strv_take(&exec->argv, strchr(command, '/') ? resolved(at->file, command) : act_strdup(command));
    rc = push_texts(map, "args", &exec->argv, err);
    if (rc == 0)
        rc = read_env(map, &exec->env, err);
    if (rc == 0)
        rc = copy_text(map, "apiVersion", &exec->api_version, err);
    if (rc == 0)
        rc = copy_text(map, "installHint", &exec->install_hint, err);
    if (rc == 0)
        rc = bool_of(map, "provideClusterInfo", &exec->provide_cluster, err);
    if (rc == 0)
        rc = check_version(map, exec, err);
    return rc < 0 ? rc : read_interactive(map, exec, err);
}

/* What kubectl itself knew once and knows no longer. */
static int refuse_provider(const struct found *at, struct act_error *err)
{
    static const struct {
        const char *name, *remedy;
    } providers[] = {
        {"azure", "run 'kubelogin convert-kubeconfig'"},
        {"gcp", "install gke-gcloud-auth-plugin and run 'gcloud container clusters get-credentials' again"},
    };
    const struct yaml *map;
    const char *name = NULL;
    int rc = part_of(at->map, "auth-provider", YAML_MAP, &map, err);

    if (rc == 0 && map)
        rc = text_of(map, "name", &name, err);
    if (rc < 0 || !map)
        return rc;
    yaml_error(map, err, "'auth-provider' '%s' is not supported", name ? name : "");
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (act_streq(name, providers[i].name))
            return err ? act_error_hint(err, "%s", providers[i].remedy) : -ACT_CONFIG;
    return err ? act_error_hint(err, "use a plugin ('exec') instead") : -ACT_CONFIG;
}

static int read_extra(const struct found *at, struct http_headers *out, struct act_error *err)
{
    const struct yaml *map;
    int rc = part_of(at->map, "as-user-extra", YAML_MAP, &map, err);

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

static int read_as(const struct found *at, struct http_headers *out, struct act_error *err)
{
    static const char group[] = "Impersonate-Group";
    ACT_AUTO(act_strv) groups = {0};
    const char *user = NULL, *uid = NULL;
    int rc = text_of(at->map, "as", &user, err);

    if (rc == 0)
        rc = text_of(at->map, "as-uid", &uid, err);
    if (rc == 0)
        rc = push_texts(at->map, "as-groups", &groups, err);
    if (rc == 0 && !user && (uid || groups.n))
        rc = yaml_error(at->map, err, "'as-uid' and 'as-groups' need 'as'");
    if (rc < 0 || !user)
        return rc;
    http_header_set(out, "Impersonate-User", user);
    if (uid)
        http_header_set(out, "Impersonate-Uid", uid);
    for (size_t i = 0; i < groups.n; i++)
        http_header_add(out, group, strlen(group), groups.v[i], strlen(groups.v[i]));
    return read_extra(at, out, err);
}

static int check_user(const struct found *at, const struct kube_config *c, struct act_error *err)
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

static int read_user(const struct found *at, struct kube_config *c, struct act_error *err)
{
    const char *token_file = NULL;
    int rc = refuse_provider(at, err);

    if (rc == 0)
        rc = pem_of(at, "client-certificate", &c->cert, err);
    if (rc == 0)
        rc = pem_of(at, "client-key", &c->key, err);
    if (rc == 0)
        rc = copy_text(at->map, "token", &c->token, err);
    if (rc == 0)
        rc = text_of(at->map, "tokenFile", &token_file, err);
    if (rc == 0 && token_file)
        c->token_file = resolved(at->file, token_file);
    if (rc == 0)
        rc = copy_text(at->map, "username", &c->user, err);
    if (rc == 0)
        rc = copy_text(at->map, "password", &c->password, err);
    if (rc == 0)
        rc = read_exec(at, &c->exec, err);
    if (rc == 0)
        rc = read_as(at, &c->as, err);
    return rc < 0 ? rc : check_user(at, c, err);
}

/* ---- the account of a pod ---- */

static char *account_file(const char *name)
{
    return act_path_join(kube_account_dir, name);
}

static bool is_in_cluster(void)
{
    ACT_AUTOFREE char *token = account_file("token");
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");

    return host && *host && port && *port && access(token, F_OK) == 0;
}

static int read_account(struct kube_config *c, struct act_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    ACT_AUTOFREE char *ca = account_file("ca.crt"), *namespace_ = account_file("namespace");
    bool brackets = strchr(host, ':') != NULL;
    size_t len = 0;

    c->context = act_strdup("in-cluster");
    c->server = act_sprintf("https://%s%s%s:%s", brackets ? "[" : "", host, brackets ? "]" : "", port);
    c->token_file = account_file("token");
    if (access(namespace_, F_OK) == 0) {
        int rc = act_file_read_regular(namespace_, MAX_FILE, &c->namespace_, &len, err);
        if (rc < 0)
            return rc;
        c->namespace_[strcspn(c->namespace_, " \t\r\n")] = '\0';
    }
    ACT_AUTOFREE char *url = http_host(c->server);
    if (!url)
        return act_error_set(err, ACT_CONFIG, "KUBERNETES_SERVICE_HOST and _PORT are no address: '%s'", c->server);
    return access(ca, F_OK) == 0 ? act_file_read_regular(ca, MAX_FILE, &c->ca, &len, err) : 0;
}

/* ---- all of it ---- */

/* Whether no file says anything, as where there is none. */
static bool is_empty(const struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        if (!yaml_is_null(yaml_get(files->v[i].tree, "contexts")) ||
            !yaml_is_null(yaml_get(files->v[i].tree, "clusters")))
            return false;
    return true;
}

static int choose_context(const struct files *files, const char *named, struct kube_config *c, struct act_error *err)
{
    int rc = 0;

    act_str_replace(&c->context, named);
    for (size_t i = 0; i < files->n && rc == 0 && !c->context; i++)
        rc = copy_text(files->v[i].tree, "current-context", &c->context, err);
    return rc;
}

static int find_part(const struct files *files, const struct found *context, const struct kind *kind,
                     const struct kube_config *c, struct found *out, struct act_error *err)
{
    const char *name = NULL;
    int rc = text_of(context->map, kind->part, &name, err);

    *out = (struct found){0};
    if (rc == 0 && name)
        rc = find(files, kind, name, out, err);
    if (rc < 0 || out->file || (!name && kind == &users))
        return rc;
    return act_error_set(err, ACT_CONFIG, "the context '%s' in '%s' names the %s '%s', which is not defined",
                         c->context, context->file->name, kind->part, name ? name : "");
}

static int read_context(const struct files *files, const struct kube_options *options, struct kube_config *c,
                        struct act_error *err)
{
    struct found context = {0}, cluster = {0}, user = {0};
    int rc = choose_context(files, options->context, c, err);

    if (rc == 0 && c->context)
        rc = find(files, &contexts, c->context, &context, err);
    if (rc < 0)
        return rc;
    if (!context.file)
        return refuse_context(files, c->context, options->said_by, err);
    rc = copy_text(context.map, "namespace", &c->namespace_, err);
    if (rc == 0)
        rc = find_part(files, &context, &clusters, c, &cluster, err);
    if (rc == 0)
        rc = find_part(files, &context, &users, c, &user, err);
    if (rc == 0)
        rc = read_cluster(&cluster, c, err);
    return rc < 0 || !user.map ? rc : read_user(&user, c, err);
}

static int refuse_nothing(const struct files *files, struct act_error *err)
{
    ACT_AUTOFREE char *names = file_names(files);

    if (files->missing.n)
        return act_error_set(err, ACT_NOT_FOUND,
                             "there is no kubeconfig '%s'; name one by 'k8s.kubeconfig' or KUBECONFIG, "
                             "or get one from your provider, as by 'az aks get-credentials'",
                             files->missing.v[0]);
    return act_error_set(err, ACT_CONFIG,
                         "there is no cluster in %s; get one from your provider, as by 'az aks "
                         "get-credentials'",
                         *names ? names : "KUBECONFIG");
}

int kube_config_read(const struct kube_options *options, struct kube_config *out, struct act_error *err)
{
    ACT_AUTO(files) files = {0};
    struct act_error why;
    int rc = read_files(options->kubeconfig, &files, &why);

    if (rc == 0 && is_empty(&files)) {
        bool account = !options->kubeconfig && !options->context && is_in_cluster();
        rc = account ? read_account(out, &why) : refuse_nothing(&files, &why);
    } else if (rc == 0) {
        rc = read_context(&files, options, out, &why);
    }
    if (rc == 0 && (options->namespace_ || !out->namespace_))
        act_str_replace(&out->namespace_, options->namespace_ ? options->namespace_ : "default");
    if (rc < 0) {
        kube_config_release(out);
        if (err)
            *err = why;
    }
    return rc;
}
