/* kubernetes.c - Kubernetes by its API: what the platform can do, and how it is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "config/config.h"
#include "platform/kubernetes/aks.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define KUBECONFIG "k8s.kubeconfig"

/* ---- reaching it ---- */

static int open_kube(const struct config *config, struct http *http, struct kube **out, struct act_error *err)
{
    ACT_AUTOFREE char *origin =
        config->values ? config_origin(config, k8s_keys(config)->context ? "k8s.context" : KUBECONFIG) : act_strdup("");
    ACT_AUTOFREE char *said_by = act_sprintf("'k8s' of '%s'", origin);

    return kube_open(&(struct kube_options){.http = http,
                                            .kubeconfig = k8s_keys(config)->kubeconfig,
                                            .context = k8s_keys(config)->context,
                                            .namespace_ = k8s_keys(config)->namespace_,
                                            .said_by = said_by},
                     out, err);
}

int kubernetes_kube(struct kubernetes *k, struct kube **out, struct act_error *err)
{
    int rc = k->kube ? 0 : open_kube(k->config, services_http(k->base.services), &k->kube, err);

    *out = k->kube;
    return rc;
}

static int kubernetes_open(const struct config *config, struct platform **out, struct act_error *err)
{
    struct kubernetes *k = act_calloc(1, sizeof(*k));

    (void)err;
    k->base.row = &platform_kubernetes;
    k->config = config;
    *out = &k->base;
    return 0;
}

static void kubernetes_close(struct platform *p)
{
    struct kubernetes *k = kubernetes_of(p);

    kubernetes_watch(p, NULL);
    kube_free(k->kube);
    aks_free(k->aks);
    free(k->agent.name);
    free(k->client.name);
    act_strv_release(&k->aborted);
    act_strv_release(&k->losses);
    free(k);
}

/* Takes what a node offers from the configuration: the nodes of a cluster differ, and come and go. */
static int kubernetes_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    const struct config *c = kubernetes_of(p)->config;
    enum { GPUS = 4 };

    (void)err;
    *out = (struct platform_limits){.gpu_per_node = c->gpu_per_node >= 0 ? (int)c->gpu_per_node : GPUS,
                                    .has_gpus = kubernetes_gpu_resource(c) != NULL};
    out->num_gpu = out->gpu_per_node;
    return 0;
}

/* ---- what a configuration means ---- */

/* Names the cluster and the namespace, whatever the kubeconfig calls them. New string; NULL: it names none. */
static char *kubernetes_place(const struct config *config)
{
    struct kube *kube = NULL;
    struct act_error ignored;

    if (open_kube(config, NULL, &kube, &ignored) < 0)
        return NULL;
    char *place = act_sprintf("namespace '%s' of %s", kube_namespace(kube), kube_server(kube));
    kube_free(kube);
    return place;
}

static const char *const place_keys[] = {KUBECONFIG, "k8s.context", "k8s.namespace", "k8s.gpu_resource", NULL};

static bool kubernetes_runs_images(const struct config *config)
{
    (void)config;
    return true;
}

/* ---- what leads out ---- */

enum { DIGEST_SHOWN = 16 };

/* Takes the text. */
static void k8s_add_login(struct platform_reaches *out, const char *key, char *text)
{
    platform_reaches_add(out, PLATFORM_LOGIN, key, text);
    free(text);
}

/* Takes the text. */
static void k8s_add_words(struct platform_reaches *out, const char *key, char *text)
{
    k8s_add_login(out, key, text);
    out->v[out->n - 1].in_words = true;
}

static void add_plugin(const struct kube *kube, struct platform_reaches *out)
{
    const struct act_strv *env = kube_plugin_env(kube);

    if (!kube_plugin(kube))
        return;
    k8s_add_words(out, KUBECONFIG, act_sprintf("the program %s, which logs in", kube_plugin(kube)));
    for (size_t i = 0; i < env->n; i++)
        k8s_add_words(out, KUBECONFIG,
                      act_sprintf("the variable '%.*s' of that program", (int)strcspn(env->v[i], "="), env->v[i]));
}

/* Adds the files by their resolved paths: a link in the project may lead anywhere. */
static void k8s_add_files(const struct kube *kube, struct platform_reaches *out)
{
    const struct act_strv *files = kube_named_files(kube);

    for (size_t i = 0; i < files->n; i++) {
        ACT_AUTOFREE char *real = realpath(files->v[i], NULL);
        k8s_add_words(out, KUBECONFIG, act_sprintf("the file '%s', to log in with", real ? real : files->v[i]));
    }
}

/* Adds the kubeconfig with its hash: any change of the file is another line. */
static void add_kubeconfig(const struct config *config, struct platform_reaches *out)
{
    char hash[ACT_SHA256_HEX] = "";
    struct act_error ignored;

    if (act_sha256_file(k8s_keys(config)->kubeconfig, hash, &ignored) < 0)
        platform_reaches_add(out, PLATFORM_LOGIN, KUBECONFIG, k8s_keys(config)->kubeconfig);
    else
        k8s_add_login(out, KUBECONFIG,
                      act_sprintf("%s, with SHA-256 %.*s...", k8s_keys(config)->kubeconfig, DIGEST_SHOWN, hash));
}

/* Adds the context that a project chooses, because the user's own kubeconfig may have others. */
static void add_context(const struct config *config, const struct kube *kube, struct platform_reaches *out)
{
    const struct k8s_keys *c = k8s_keys(config);
    const char *key = c->context ? "k8s.context" : c->namespace_ ? "k8s.namespace" : "platform";

    k8s_add_words(out, key,
                  act_sprintf("the context '%s' of the server '%s', in the namespace '%s'", kube_context(kube),
                              kube_server(kube), kube_namespace(kube)));
}

/* Lists the paths of all leaves ("spec.containers.securityContext.privileged"), not their values, which may be
 * secret. */
static void add_leaves(json_t *value, const char *path, struct act_strv *out)
{
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach(value, key, member)
    {
        ACT_AUTOFREE char *below = act_sprintf("%s%s%s", path, *path ? "." : "", key);
        add_leaves(member, below, out);
    }
    json_array_foreach(value, i, member)
    {
        add_leaves(member, path, out);
    }
    if (!json_is_object(value) && !json_is_array(value) && !act_strv_has(out, path))
        act_strv_push(out, path);
}

static void add_pod(json_t *pod, struct platform_reaches *out)
{
    ACT_AUTO(act_strv) leaves = {0};
    ACT_AUTO(act_buf) names = {0};
    ACT_AUTOFREE char *line = codec_json_line(pod);
    struct act_sha256 hash;
    char hex[ACT_SHA256_HEX];

    add_leaves(pod, "", &leaves);
    for (size_t i = 0; i < leaves.n; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", leaves.v[i]);
    act_sha256_init(&hash);
    act_sha256_add(&hash, line, strlen(line));
    act_sha256_done(&hash, hex);
    k8s_add_login(out, "k8s.pod",
                  act_sprintf("%s, with SHA-256 %.*s...", names.len ? names.data : "{}", DIGEST_SHOWN, hex));
}

static void add_node_folders(const json_t *volumes, struct platform_reaches *out)
{
    const json_t *volume;
    size_t i;

    json_array_foreach(volumes, i, volume)
    {
        const json_t *folder = json_object_get(volume, "hostPath");
        if (folder)
            k8s_add_words(out, "k8s.volumes",
                          act_sprintf("the path '%s' of the nodes", codec_json_str(folder, "path", "")));
    }
}

/* A kubeconfig says where to log in, and may name a program that does it; what a pod may do to its node counts too. */
static void kubernetes_reach(const struct config *config, struct platform_reaches *out)
{
    const struct k8s_keys *c = k8s_keys(config);
    struct kube *kube = NULL;
    struct act_error ignored;

    platform_reaches_add(out, PLATFORM_HOST, "aks.endpoint", aks_keys(config)->endpoint);
    if (!act_streq(config->platform, kubernetes_kind.name))
        return;
    if (c->kubeconfig)
        add_kubeconfig(config, out);
    if (open_kube(config, NULL, &kube, &ignored) == 0) {
        add_context(config, kube, out);
        if (c->kubeconfig)
            k8s_add_files(kube, out);
        if (c->kubeconfig)
            add_plugin(kube, out);
        kube_free(kube);
    }
    if (c->service_account)
        platform_reaches_add(out, PLATFORM_LOGIN, "k8s.service_account", c->service_account);
    if (c->pod)
        add_pod(c->pod, out);
    add_node_folders(c->volumes, out);
}

static void kubernetes_set_time_limit(struct config *config, int64_t seconds)
{
    ACT_AUTOFREE char *text = act_sprintf("%llds", (long long)seconds);

    act_str_replace(&k8s_keys(config)->time, text);
}

/* Takes the size as docker does, "16g". */
static void kubernetes_set_shm_size(struct config *config, const char *size)
{
    uint64_t bytes;
    ACT_AUTOFREE char *text =
        act_size_from_text(size, &bytes) ? act_sprintf("%llu", (unsigned long long)bytes) : act_strdup(size);

    act_str_replace(&k8s_keys(config)->shm_size, text);
}

/* Returns the one kubeconfig that the environment, or the home folder, has, unless it is in the project, where nobody
 * has looked at it. New string; NULL: there is none, or there are several, whose values are merged. */
static char *usual_kubeconfig(const struct config *config)
{
    const char *named = act_env("KUBECONFIG");
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *file = named ? act_strdup(named) : act_path_join(home, ".kube/config");
    char *real = realpath(file, NULL);

    if (real && act_path_is_within(real, config->project_root)) {
        free(real);
        real = NULL;
    }
    return real;
}

/* The kubeconfig may be another one tomorrow, and its current context too: the run records where it is. */
static void kubernetes_record_place(const struct config *config, json_t *resolved)
{
    json_t *settings = json_object_get(resolved, "k8s");
    ACT_AUTOFREE char *usual = k8s_keys(config)->kubeconfig ? NULL : usual_kubeconfig(config);
    struct kube *kube = NULL;
    struct act_error ignored;

    if (open_kube(config, NULL, &kube, &ignored) < 0)
        return;
    if (usual)
        json_object_set_new(settings, "kubeconfig", codec_json_bytes_new(usual));
    json_object_set_new(settings, "context", codec_json_bytes_new(kube_context(kube)));
    json_object_set_new(settings, "namespace", codec_json_bytes_new(kube_namespace(kube)));
    kube_free(kube);
}

static void kubernetes_describe(const struct config *config, const struct platform_asked *asked, struct run_spec *spec)
{
    spec->image = kubernetes_image(config, NULL);
    spec->launcher = act_strdup(k8s_keys(config)->launcher);
    if (k8s_keys(config)->time && act_duration_from_text(k8s_keys(config)->time, &spec->limit_s)) {
        spec->limit_s = spec->limit_s < RUN_LIMIT_MOST_S ? spec->limit_s : RUN_LIMIT_MOST_S;
        spec->warn_s = k8s_keys(config)->warn_seconds < spec->limit_s ? k8s_keys(config)->warn_seconds : 0;
    }
    if (asked->time_limit)
        spec->timeout = act_strdup(k8s_keys(config)->time);
    if (asked->shm_size)
        spec->shm_size = act_strdup(k8s_keys(config)->shm_size);
}

static void kubernetes_repeat(struct config *config, const struct run_spec *old)
{
    if (old->timeout && !config_is_said(config, "k8s.time"))
        act_str_replace(&k8s_keys(config)->time, old->timeout);
    if (old->shm_size && !config_is_said(config, "k8s.shm_size"))
        act_str_replace(&k8s_keys(config)->shm_size, old->shm_size);
}

/* ---- the row ---- */

const struct platform_row platform_kubernetes = {
    .kind = &kubernetes_kind,
    .about = {.answers_by_request = true,
              .keeps_record = true,
              .tries_again = true,
              .keeps_list = true,
              .logs_in_to_registry = true,
              .deletion_ends = true,
              .kept_s = KUBERNETES_KEPT_S,
              .begins_once = true,
              .nodes_send_logs = true,
              .package_most = KUBERNETES_PART,
              .is_elastic = true},
    .place = {.words = kubernetes_place, .keys = place_keys, .record = kubernetes_record_place},
    .settings = {.runs_images = kubernetes_runs_images,
                 .reach = kubernetes_reach,
                 .time_limit = {.key = "k8s.time", .set = kubernetes_set_time_limit},
                 .shm_size = {.key = "k8s.shm_size", .set = kubernetes_set_shm_size},
                 .describe = kubernetes_describe,
                 .repeat = kubernetes_repeat,
                 .image = {.key = "k8s.image", .at = kubernetes_image_setting}},
    .open = kubernetes_open,
    .close = kubernetes_close,
    .submit = {.check_settings = kubernetes_check_settings,
               .check = kubernetes_check,
               .check_package = kubernetes_check_package,
               .preview = kubernetes_preview,
               .prepare = kubernetes_prepare,
               .one = kubernetes_submit},
    .runs = {.status = kubernetes_status,
             .watch = kubernetes_watch,
             .abort = kubernetes_abort,
             .scale = kubernetes_scale,
             .open_logs = kubernetes_open_logs,
             .spec = kubernetes_spec,
             .list = kubernetes_list,
             .recent = kubernetes_recent},
    .nodes = {.limits = kubernetes_limits,
              .usable = kubernetes_usable_nodes,
              .of_run = kubernetes_nodes,
              .shell = kubernetes_shell,
              .agent = kubernetes_agent_in,
              .summary = kubernetes_summary,
              .jobs = kubernetes_jobs,
              .examine = kubernetes_examine},
    .keep = {.remove = kubernetes_remove, .remove_agents = kubernetes_remove_agents},
    .clusters = &aks_clusters,
    .setup = &kubernetes_setup,
};
