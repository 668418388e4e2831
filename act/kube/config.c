/* config.c - kubeconfig files: which there are, what they say of one context.
 *
 *   contexts: [{name, context: {cluster, user, namespace}}], clusters: [{name, cluster: {...}}],
 *   users: [{name, user: {...}}], current-context
 *
 * A name belongs to the first file that defines it, with all that the file says of it.
 */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "kube/kubeconfig.h"

enum { NAMES_SHOWN = 8 };

const char *kube_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";

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
        act_wipe(secrets[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        free(plain[i]);
    act_strv_release(&c->files);
    http_headers_release(&c->as);
    release_exec(&c->exec);
    *c = (struct kube_config){0};
}

/* ---- names ---- */

static const struct kube_kind contexts = {"contexts", "context"}, clusters = {"clusters", "cluster"},
                              users = {"users", "user"};

static int kube_config_find_in(const struct kube_file *file, const struct kube_kind *kind, const char *name,
                               struct kube_found *out, struct act_error *err)
{
    const struct yaml *list;
    int rc = kube_part_of(file->tree, kind->list, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const char *its_name = NULL;
        rc = kube_name_of(list->items[i], kind, &its_name, err);
        if (rc < 0 || !act_streq(its_name, name))
            continue;
        if (out->file)
            return yaml_error(list->items[i], err, "there are two %s '%s' in this file", kind->list, name);
        out->file = file;
        rc = kube_part_of(list->items[i], kind->part, YAML_MAP, &out->map, err);
    }
    return rc;
}

static int kube_config_find(const struct kube_files *files, const struct kube_kind *kind, const char *name,
                            struct kube_found *out, struct act_error *err)
{
    int rc = 0;

    *out = (struct kube_found){0};
    for (size_t i = 0; i < files->n && rc == 0 && !out->file; i++)
        rc = kube_config_find_in(&files->v[i], kind, name, out, err);
    return rc;
}

/* Returns the names of the files: "'a', 'b'". New string. */
static char *file_names(const struct kube_files *files)
{
    struct act_buf out = {0};

    for (size_t i = 0; i < files->n; i++)
        act_buf_addf(&out, "%s'%s'", i ? ", " : "", files->v[i].name);
    return act_buf_steal(&out);
}

/* Names the contexts there are, for an error; malformed entries are passed over. New string. */
static char *context_names(const struct kube_files *files)
{
    struct act_buf out = {0};
    size_t n = 0;

    for (size_t i = 0; i < files->n; i++) {
        const struct yaml *list = NULL;
        const char *name = NULL;
        if (kube_part_of(files->v[i].tree, contexts.list, YAML_LIST, &list, NULL) < 0 || !list)
            continue;
        for (size_t k = 0; k < list->n && n < NAMES_SHOWN; k++)
            if (kube_name_of(list->items[k], &contexts, &name, NULL) == 0 && name)
                act_buf_addf(&out, "%s%s", n++ ? ", " : "", name);
    }
    return act_buf_steal(&out);
}

static int refuse_context(const struct kube_files *files, const char *name, const char *said_by, struct act_error *err)
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

/* ---- clusters ---- */

/* Adds the scheme that is missing, as kubectl does: https if anything is said of TLS. New string. */
static char *whole_server(const struct kube_config *c, const char *text)
{
    size_t n = strlen(text);
    bool secure = c->ca || c->insecure;

    while (n && text[n - 1] == '/')
        n--;
    return act_sprintf("%s%.*s", strstr(text, "://") ? "" : secure ? "https://" : "http://", (int)n, text);
}

static int kube_config_check_server(const struct kube_found *at, const struct kube_config *c, struct act_error *err)
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

static bool is_proxy(const char *url)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (act_starts_with(url, schemes[i]))
            return true;
    return false;
}

static int check_way(const struct kube_found *at, const struct kube_config *c, struct act_error *err)
{
    ACT_AUTOFREE char *url = act_sprintf("https://%s", c->server_name ? c->server_name : "x");
    ACT_AUTOFREE char *host = http_host(url);

    if (c->insecure && c->ca)
        return yaml_error(yaml_get(at->map, "insecure-skip-tls-verify"), err,
                          "'insecure-skip-tls-verify' and a 'certificate-authority' cannot both be set");
    if (c->proxy && !is_proxy(c->proxy))
        return yaml_error(yaml_get(at->map, "proxy-url"), err,
                          "'proxy-url' must begin with 'http://', 'https://' or 'socks5://'");
    if (c->server_name && (!host || strcasecmp(host, c->server_name) != 0))
        return yaml_error(yaml_get(at->map, "tls-server-name"), err, "'tls-server-name' must be a name");
    return 0;
}

/* Reads what the cluster has for its plugins. */
static int read_extension(const struct kube_found *at, json_t **out, struct act_error *err)
{
    static const struct kube_kind extensions = {"extensions", "extension"};
    const struct yaml *list;
    int rc = kube_part_of(at->map, extensions.list, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const char *name = NULL;
        rc = kube_name_of(list->items[i], &extensions, &name, err);
        const struct yaml *value = rc == 0 ? yaml_get(list->items[i], extensions.part) : NULL;
        if (value && act_streq(name, "client.authentication.k8s.io/exec") && !*out)
            *out = kube_to_json(value);
    }
    return rc;
}

static int kube_config_read_cluster(const struct kube_found *at, struct kube_config *c, struct act_error *err)
{
    const char *server = NULL;
    int rc = kube_text_of(at->map, "server", &server, err);

    if (!server)
        return rc < 0 ? rc
                      : act_error_set(err, ACT_CONFIG, "the cluster of the context '%s' has no 'server' in '%s'",
                                      c->context, at->file->name);
    if (rc == 0)
        rc = kube_bool_of(at->map, "insecure-skip-tls-verify", &c->insecure, err);
    if (rc == 0)
        rc = kube_copy_text(at->map, "tls-server-name", &c->server_name, err);
    if (rc == 0)
        rc = kube_copy_text(at->map, "proxy-url", &c->proxy, err);
    if (rc == 0)
        rc = kube_pem_of(at, "certificate-authority", &c->ca, &c->files, err);
    if (rc == 0)
        rc = read_extension(at, &c->exec.cluster_config, err);
    if (rc < 0)
        return rc;
    c->server = whole_server(c, server);
    rc = kube_config_check_server(at, c, err);
    return rc < 0 ? rc : check_way(at, c, err);
}

/* ---- the account of a pod ---- */

static char *account_file(const char *name)
{
    return act_path_join(kube_account_dir, name);
}

static bool is_in_cluster(void)
{
    ACT_AUTOFREE char *token = account_file("token");

    return act_env("KUBERNETES_SERVICE_HOST") && act_env("KUBERNETES_SERVICE_PORT") && access(token, F_OK) == 0;
}

static int read_account(struct kube_config *c, struct act_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    ACT_AUTOFREE char *ca = account_file("ca.crt"), *namespace_ = account_file("namespace");
    bool brackets = host && strchr(host, ':');
    size_t len = 0;

    c->context = act_strdup("in-cluster");
    c->server = act_sprintf("https://%s%s%s:%s", brackets ? "[" : "", host, brackets ? "]" : "", port);
    c->token_file = account_file("token");
    if (access(namespace_, F_OK) == 0) {
        int rc = act_file_read_regular(namespace_, KUBE_MAX_FILE, &c->namespace_, &len, err);
        if (rc < 0)
            return rc;
        c->namespace_[strcspn(c->namespace_, " \t\r\n")] = '\0';
    }
    ACT_AUTOFREE char *url = http_host(c->server);
    if (!url)
        return act_error_set(err, ACT_CONFIG, "KUBERNETES_SERVICE_HOST and _PORT are not an address: '%s'", c->server);
    return access(ca, F_OK) == 0 ? act_file_read_regular(ca, KUBE_MAX_FILE, &c->ca, &len, err) : 0;
}

/* ---- all of it ---- */

/* Tells whether no file says anything, as where there is none. */
static bool kube_config_is_empty(const struct kube_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        if (!yaml_is_null(yaml_get(files->v[i].tree, "contexts")) ||
            !yaml_is_null(yaml_get(files->v[i].tree, "clusters")))
            return false;
    return true;
}

static int kube_config_choose_context(const struct kube_files *files, const char *named, struct kube_config *c,
                                      struct act_error *err)
{
    int rc = 0;

    act_str_replace(&c->context, named);
    for (size_t i = 0; i < files->n && rc == 0 && !c->context; i++)
        rc = kube_copy_text(files->v[i].tree, "current-context", &c->context, err);
    return rc;
}

static int find_part(const struct kube_files *files, const struct kube_found *context, const struct kube_kind *kind,
                     const struct kube_config *c, struct kube_found *out, struct act_error *err)
{
    const char *name = NULL;
    int rc = kube_text_of(context->map, kind->part, &name, err);

    *out = (struct kube_found){0};
    if (rc == 0 && name)
        rc = kube_config_find(files, kind, name, out, err);
    if (rc < 0 || out->file || (!name && kind == &users))
        return rc;
    return act_error_set(err, ACT_CONFIG, "the context '%s' in '%s' names the %s '%s', which is not defined",
                         c->context, context->file->name, kind->part, name ? name : "");
}

static int read_context(const struct kube_files *files, const struct kube_options *options, struct kube_config *c,
                        struct act_error *err)
{
    struct kube_found context = {0}, cluster = {0}, user = {0};
    int rc = kube_config_choose_context(files, options->context, c, err);

    if (rc == 0 && c->context)
        rc = kube_config_find(files, &contexts, c->context, &context, err);
    if (rc < 0)
        return rc;
    if (!context.file)
        return refuse_context(files, c->context, options->said_by, err);
    rc = kube_copy_text(context.map, "namespace", &c->namespace_, err);
    if (rc == 0)
        rc = find_part(files, &context, &clusters, c, &cluster, err);
    if (rc == 0)
        rc = find_part(files, &context, &users, c, &user, err);
    if (rc == 0 && cluster.file)
        rc = kube_config_read_cluster(&cluster, c, err);
    return rc < 0 || !user.map ? rc : kube_user_read(&user, c, err);
}

static int refuse_nothing(const struct kube_files *files, struct act_error *err)
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
    ACT_AUTO(kube_files) files = {0};
    struct act_error why;
    int rc = kube_files_read(options->kubeconfig, &files, &why);

    if (rc < 0 && options->kubeconfig && options->said_by)
        act_error_hint(&why, "it is named by %s", options->said_by);
    if (rc == 0 && kube_config_is_empty(&files)) {
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

/* ---- all contexts ---- */

void kube_contexts_release(struct kube_contexts *c)
{
    act_strv_release(&c->names);
    free(c->current);
    *c = (struct kube_contexts){0};
}

static int add_contexts(const struct kube_file *file, struct kube_contexts *out, struct act_error *err)
{
    const struct yaml *list = NULL;
    const char *current = NULL;
    int rc = kube_part_of(file->tree, contexts.list, YAML_LIST, &list, err);

    for (size_t i = 0; rc == 0 && list && i < list->n; i++) {
        const char *name = NULL;
        rc = kube_name_of(list->items[i], &contexts, &name, err);
        if (rc == 0 && name && !act_strv_has(&out->names, name))
            act_strv_push(&out->names, name);
    }
    if (rc == 0)
        rc = kube_text_of(file->tree, "current-context", &current, err);
    if (rc == 0 && current && *current && !out->current)
        out->current = act_strdup(current);
    return rc;
}

int kube_contexts_read(const char *kubeconfig, struct kube_contexts *out, struct act_error *err)
{
    struct kube_files files = {0};
    int rc = kube_files_read(kubeconfig, &files, err);

    *out = (struct kube_contexts){0};
    for (size_t i = 0; rc == 0 && i < files.n; i++)
        rc = add_contexts(&files.v[i], out, err);
    kube_files_release(&files);
    if (rc == 0 && out->names.n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND,
                           "there is no kubeconfig with a context; get one from your provider, as by "
                           "'az aks get-credentials', or name it by --kubeconfig");
    return rc;
}
