/* cluster.c - the load of the cluster: what its nodes offer against what the pods of everybody take.
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/ (allocatable, Ready, unschedulable);
 * .../workload-resources/pod-v1/ (phases, field selectors).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define NOT_ENDED "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

enum { THOUSANDTHS = 1000, COUNT_MAX = 1 << 24 };

/* Adds up without overflowing, as anybody's pod may ask for any number. */
static int64_t plus(int64_t a, int64_t b)
{
    return a < INT64_MAX - b ? a + b : INT64_MAX;
}

/* Returns how many whole ones there are in so many thousandths, at most COUNT_MAX. */
static int k8s_cluster_count_of(int64_t thousandths)
{
    return thousandths / THOUSANDTHS < COUNT_MAX ? (int)(thousandths / THOUSANDTHS) : COUNT_MAX;
}

static void k8s_cluster_add(int *sum, int n)
{
    *sum = k8s_cluster_count_of(((int64_t)*sum + n) * THOUSANDTHS);
}

int kubernetes_version(struct kubernetes *k, char **out_name, int *out_minor, struct act_error *err)
{
    CODEC_AUTOJSON json_t *version = NULL;
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    if (rc == 0)
        rc = kube_get(kube, "/version", "ask the server for its version", &version, err);
    if (rc < 0)
        return rc;
    bool is_first = strcmp(codec_json_str(version, "major", "1"), "1") == 0;
    *out_name = act_strdup(codec_json_str(version, "gitVersion", ""));
    *out_minor = is_first ? atoi(codec_json_str(version, "minor", "0")) : INT_MAX;
    return 0;
}

int kubernetes_each_node(struct kubernetes *k, int (*each)(void *arg, const json_t *node, struct act_error *err),
                         void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_cluster_path("v1", "nodes", NULL, NULL);
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    return rc < 0 ? rc : kube_each(kube, path, "list the nodes", each, arg, err);
}

/* Calls each for the pods of all namespaces or, where the user may not list those, of this one: then *out_all is
 * false. */
static int each_pod(struct kubernetes *k, int (*each)(void *arg, const json_t *pod, struct act_error *err), void *arg,
                    bool *out_all, struct act_error *err)
{
    ACT_AUTOFREE char *everywhere = kube_cluster_path("v1", "pods", NULL, NOT_ENDED);
    struct kube *kube;
    int rc = kubernetes_kube(k, &kube, err);

    if (rc < 0)
        return rc;
    rc = kube_each(kube, everywhere, "list the pods of the cluster", each, arg, err);
    *out_all = rc == 0;
    if (rc != -ACT_DENIED || err->http_status != 403)
        return rc;
    ACT_AUTOFREE char *here = kube_path(kube, "v1", "pods", NULL, NOT_ENDED);
    return kube_each(kube, here, "list the pods of the namespace", each, arg, err);
}

/* Returns the resource that is counted as GPUs: the processors where the cluster has none. */
static const char *resource_of(const struct kubernetes *k)
{
    const char *gpu = kubernetes_gpu_resource(k->config);

    return gpu ? gpu : "cpu";
}

/* Returns how much of a resource the containers of a pod may take at once, or ask for where they have no limit. */
static int64_t taken_by(const json_t *pod, const char *resource)
{
    size_t i;
    json_t *container;
    int64_t sum = 0;

    json_array_foreach(json_object_get(json_object_get(pod, "spec"), "containers"), i, container)
    {
        const json_t *resources = json_object_get(container, "resources");
        int64_t one = act_quantity_from_text(codec_json_str(json_object_get(resources, "limits"), resource, ""));
        if (one < 0)
            one = act_quantity_from_text(codec_json_str(json_object_get(resources, "requests"), resource, ""));
        sum = plus(sum, one > 0 ? one : 0);
    }
    return sum;
}

/* Names the Job that a pod belongs to, else the pod itself: "namespace/name". New string. */
static char *work_of(const json_t *pod)
{
    const char *job = kubernetes_label(pod, "job-name");

    return act_sprintf("%s/%s", codec_json_str(json_object_get(pod, "metadata"), "namespace", ""),
                       job ? job : kubernetes_name_of(pod));
}

/* ---- summary ---- */

/* A node, and what is taken of it; sorted by name. */
struct node {
    char *name, *pool;
    bool down;
    int64_t has, taken; /* in thousandths */
};

struct load {
    struct kubernetes *k;
    struct node *v;
    size_t n;
    int64_t queued;            /* in thousandths, by pods that no node has yet */
    json_t *running, *waiting; /* work -> true */
};

/* Names the pool of a node by the label that its cloud gives it. */
static const char *k8s_cluster_pool_of(const json_t *node)
{
    static const char *const labels[] = {"agentpool", "kubernetes.azure.com/agentpool", "cloud.google.com/gke-nodepool",
                                         "eks.amazonaws.com/nodegroup", "node.kubernetes.io/instance-type"};

    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (kubernetes_label(node, labels[i]))
            return kubernetes_label(node, labels[i]);
    return "nodes";
}

static int k8s_cluster_take_node(void *arg, const json_t *node, struct act_error *err)
{
    struct load *l = arg;
    const json_t *has = json_object_get(json_object_get(node, "status"), "allocatable");
    int64_t number = act_quantity_from_text(codec_json_str(has, resource_of(l->k), "0"));
    bool unschedulable = json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable"));

    (void)err;
    ACT_PUSH(l->v, l->n,
             (struct node){.name = act_strdup(kubernetes_name_of(node)),
                           .pool = act_strdup(k8s_cluster_pool_of(node)),
                           .down = unschedulable || !kubernetes_condition(node, "Ready"),
                           .has = number > 0 ? number : 0});
    return 0;
}

static int k8s_cluster_take_pod(void *arg, const json_t *pod, struct act_error *err)
{
    struct load *l = arg;
    ACT_AUTOFREE char *work = work_of(pod);
    const char *name = kubernetes_node_of(pod);
    struct node *node = l->n ? bsearch(&name, l->v, l->n, sizeof(*l->v), act_by_text) : NULL;
    int64_t taken = taken_by(pod, resource_of(l->k));

    (void)err;
    if (taken == 0 && !kubernetes_run_of(pod)) /* runs may ask for nothing */
        return 0;
    if (node)
        node->taken = plus(node->taken, taken);
    else if (!*name)
        l->queued = plus(l->queued, taken);
    json_object_set_new(*name ? l->running : l->waiting, work, json_true());
    return 0;
}

static void count_node(const struct node *node, bool known, struct platform_pool *pool)
{
    int has = k8s_cluster_count_of(node->has), taken = k8s_cluster_count_of(plus(node->taken, THOUSANDTHS - 1));
    int busy = taken < has ? taken : has;

    pool->nodes++;
    k8s_cluster_add(&pool->gpus, has);
    if (node->down) {
        pool->nodes_down++;
        k8s_cluster_add(&pool->gpus_down, has);
    } else if (known) {
        *(taken > 0 ? &pool->nodes_busy : &pool->nodes_idle) += 1;
        k8s_cluster_add(&pool->gpus_busy, busy);
        k8s_cluster_add(&pool->gpus_idle, has - busy);
    }
}

static struct platform_pool pool_new(const char *name, bool known)
{
    int at = known ? 0 : -1;

    return (struct platform_pool){.name = act_strdup(name),
                                  .nodes_idle = at,
                                  .nodes_busy = at,
                                  .gpus_idle = at,
                                  .gpus_busy = at,
                                  .jobs_running = -1,
                                  .jobs_queued = -1,
                                  .gpus_queued = -1};
}

static struct platform_pool *k8s_cluster_find_pool(struct platform_summary *out, const char *name, bool known)
{
    for (size_t i = 0; i < out->n_pools; i++)
        if (strcmp(out->pools[i].name, name) == 0)
            return &out->pools[i];
    ACT_PUSH(out->pools, out->n_pools, pool_new(name, known));
    return &out->pools[out->n_pools - 1];
}

static void sum_up(const struct load *l, bool known, struct platform_summary *out)
{
    out->has_gpus = kubernetes_gpu_resource(l->k->config) != NULL;
    out->total = pool_new(kube_context(l->k->kube), known);
    for (size_t i = 0; i < l->n; i++) {
        count_node(&l->v[i], known, k8s_cluster_find_pool(out, l->v[i].pool, known));
        count_node(&l->v[i], known, &out->total);
    }
    if (!known)
        return;
    const char *work;
    json_t *value;
    json_object_foreach(l->running, work, value) json_object_del(l->waiting, work);
    out->total.jobs_running = (int)json_object_size(l->running);
    out->total.jobs_queued = (int)json_object_size(l->waiting);
    out->total.gpus_queued = k8s_cluster_count_of(l->queued);
}

int kubernetes_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    struct load l = {.k = kubernetes_of(p), .running = json_object(), .waiting = json_object()};
    bool all = false;
    int rc = kubernetes_each_node(l.k, k8s_cluster_take_node, &l, err);

    if (l.n > 0)
        qsort(l.v, l.n, sizeof(*l.v), act_by_text);
    if (rc == 0)
        rc = each_pod(l.k, k8s_cluster_take_pod, &l, &all, err);
    if (rc == 0)
        sum_up(&l, all, out);
    for (size_t i = 0; i < l.n; i++) {
        free(l.v[i].name);
        free(l.v[i].pool);
    }
    free(l.v);
    json_decref(l.running);
    json_decref(l.waiting);
    return rc;
}

/* ---- jobs ---- */

struct found {
    struct kubernetes *k;
    struct platform_jobs *jobs;
    json_t *places; /* work -> its place among the jobs */
};

static struct platform_job *find_work(struct found *f, const json_t *pod)
{
    ACT_AUTOFREE char *work = work_of(pod);
    const char *run = kubernetes_run_of(pod), *user = kubernetes_annotation(pod, KUBERNETES_USER);
    int64_t at = codec_json_int(f->places, work, -1);

    if (at >= 0)
        return &f->jobs->v[at];
    json_object_set_new(f->places, work, json_integer((json_int_t)f->jobs->n));
    ACT_PUSH(f->jobs->v, f->jobs->n,
             (struct platform_job){.id = act_strdup(work),
                                   .user = act_strdup(user ? user : ""),
                                   .name = act_strdup(run ? run : strchr(work, '/') + 1),
                                   .nodes_text = act_strdup(""),
                                   .running_s = -1});
    return &f->jobs->v[f->jobs->n - 1];
}

static int take_running(void *arg, const json_t *pod, struct act_error *err)
{
    struct found *f = arg;
    int64_t taken = taken_by(pod, resource_of(f->k));
    int64_t since = kubernetes_time(json_object_get(pod, "status"), "startTime");
    int64_t now = act_now_unix_s() + kube_ahead_s(f->k->kube);

    (void)err;
    bool counts = taken > 0 || kubernetes_run_of(pod);
    if (!counts || strcmp(kubernetes_phase(pod), "Running") != 0)
        return 0;
    struct platform_job *job = find_work(f, pod);
    char *nodes = act_sprintf("%s%s%s", job->nodes_text, *job->nodes_text ? "," : "", kubernetes_node_of(pod));
    free(job->nodes_text);
    job->nodes_text = nodes;
    job->nodes++;
    k8s_cluster_add(&job->gpus, k8s_cluster_count_of(taken));
    if (since && now - since > job->running_s)
        job->running_s = now - since;
    return 0;
}

int kubernetes_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    struct found f = {.k = kubernetes_of(p), .jobs = out, .places = json_object()};
    bool all;
    int rc = each_pod(f.k, take_running, &f, &all, err);

    platform_jobs_sort(out);
    json_decref(f.places);
    return rc;
}

/* ---- what a run may be placed on ---- */

struct usable {
    json_t *selector;
    struct act_strv *out;
};

static int take_usable(void *arg, const json_t *node, struct act_error *err)
{
    const struct usable *u = arg;
    bool fits = kubernetes_condition(node, "Ready") &&
                !json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable"));
    const char *key;
    json_t *value;

    (void)err;
    json_object_foreach(u->selector, key, value) fits =
        fits && act_streq(kubernetes_label(node, key), json_string_value(value));
    if (fits)
        act_strv_push(u->out, kubernetes_name_of(node));
    return 0;
}

int kubernetes_usable_nodes(struct platform *p, const struct run_spec *spec, struct act_strv *out,
                            struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    struct usable u = {.selector = k8s_keys(k->config)->node_selector, .out = out};

    (void)spec;
    return kubernetes_each_node(k, take_usable, &u, err);
}
