/* room.c - before a run is made: whether the cluster and the namespace could ever have all of its pods. Without a queue
 * nobody gives a run all of them or none, so what cannot be is refused, and what is not free now is said.
 *
 * Quotas are asked for runs of several pods alone: a single pod that waits for one holds nothing.
 *
 * Source: kubernetes.io/docs/concepts/policy/resource-quotas/ (what is counted, scopes), .../reference/kubernetes-api/
 * cluster-resources/node-v1/ (allocatable).
 */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

enum { THOUSANDTHS = 1000 };

/* The demand of a run. */
struct demand {
    struct kubernetes *k;
    const struct run_spec *spec;
    int pods;         /* without which it does not begin */
    json_t *requests; /* of a pod: resource -> thousandths */
    json_t *limits;   /* likewise */
    json_t *selector;
};

/* ---- of a pod ---- */

static void k8s_room_add(json_t *sums, const char *key, int64_t value)
{
    int64_t sum = codec_json_int(sums, key, 0);

    if (value > 0 && sum <= INT64_MAX - value)
        json_object_set_new(sums, key, json_integer(sum + value));
}

/* Adds a container, which requests what it is limited to if it does not say how much. */
static void add_container(struct demand *d, const json_t *container)
{
    const json_t *resources = json_object_get(container, "resources");
    json_t *limits = json_object_get(resources, "limits"), *requests = json_object_get(resources, "requests"), *value;
    const char *key;

    json_object_foreach(limits, key, value)
    {
        int64_t n = act_quantity_from_text(json_is_string(value) ? json_string_value(value) : "");
        k8s_room_add(d->limits, key, n);
        if (!json_object_get(requests, key))
            k8s_room_add(d->requests, key, n);
    }
    json_object_foreach(requests, key, value)
        k8s_room_add(d->requests, key, act_quantity_from_text(json_is_string(value) ? json_string_value(value) : ""));
}

static struct demand demand_new(struct kubernetes *k, const struct run_spec *spec, const json_t *job)
{
    const json_t *pod = json_object_get(json_object_get(json_object_get(job, "spec"), "template"), "spec");
    struct demand d = {.k = k,
                       .spec = spec,
                       .pods = run_spec_is_elastic(spec) ? spec->min_nodes : spec->nodes,
                       .requests = json_object(),
                       .limits = json_object(),
                       .selector = json_object_get(pod, "nodeSelector")};
    size_t i;
    json_t *container;

    json_array_foreach(json_object_get(pod, "containers"), i, container) add_container(&d, container);
    return d;
}

/* ---- quotas ---- */

/* Returns how much a pod counts for a key of a quota, in thousandths; 0: nothing. */
static int64_t counted(const struct demand *d, const char *key)
{
    if (strcmp(key, "pods") == 0 || strcmp(key, "count/pods") == 0)
        return THOUSANDTHS;
    if (act_starts_with(key, "limits."))
        return codec_json_int(d->limits, key + strlen("limits."), 0);
    if (act_starts_with(key, "requests."))
        return codec_json_int(d->requests, key + strlen("requests."), 0);
    return codec_json_int(d->requests, key, 0);
}

/* Writes an amount of a resource for people. New string. */
static char *amount(const char *key, int64_t thousandths)
{
    char size[ACT_UNIT_TEXT];

    act_size_to_text((uint64_t)(thousandths / THOUSANDTHS), size);
    return strstr(key, "memory") || strstr(key, "storage") ? act_strdup(size)
           : thousandths % THOUSANDTHS                     ? act_sprintf("%lldm", (long long)thousandths)
                                                           : act_sprintf("%lld", (long long)thousandths / THOUSANDTHS);
}

/* Says for how long a part of the run's pods is held. */
static const char *held(const struct demand *d)
{
    const char *wait = k8s_keys(d->k->config)->gang_wait;
    int64_t seconds;

    return wait && act_duration_from_text(wait, &seconds) && seconds > 0 ? wait : "ever";
}

static int k8s_room_check_key(const struct demand *d, const json_t *quota, const char *key, struct act_error *err)
{
    const json_t *status = json_object_get(quota, "status");
    int64_t pod = counted(d, key),
            hard = act_quantity_from_text(codec_json_str(json_object_get(status, "hard"), key, ""));
    int64_t used = act_quantity_from_text(codec_json_str(json_object_get(status, "used"), key, "0"));
    const char *name = kubernetes_name_of(quota);

    if (pod <= 0 || hard < 0 || used < 0 || (used <= hard && (hard - used) / pod >= d->pods))
        return 0;
    ACT_AUTOFREE char *most = amount(key, hard), *taken = amount(key, used), *each = amount(key, pod);
    if (hard / pod < d->pods)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "the quota '%s' of the namespace '%s' allows %s of '%s', which is enough for %lld of the "
                             "run's %d pods (each needs %s); ask for fewer nodes (-n), or for a larger quota",
                             name, kube_namespace(d->k->kube), most, key, (long long)(hard / pod), d->pods, each);
    act_warn("the quota '%s' of the namespace '%s' has room for %lld of the run's %d pods now (%s of %s of '%s' are "
             "used): it waits for the others, and holds what it got for %s (k8s.gang_wait)",
             name, kube_namespace(d->k->kube), used < hard ? (long long)((hard - used) / pod) : 0LL, d->pods, taken,
             most, key, held(d));
    return 0;
}

/* Checks a quota, unless it has scopes: then it is for some pods alone. */
static int check_quota(void *arg, const json_t *quota, struct act_error *err)
{
    const struct demand *d = arg;
    const json_t *spec = json_object_get(quota, "spec");
    json_t *hard = json_object_get(json_object_get(quota, "status"), "hard"), *value;
    const char *key;
    int rc = 0;

    if (json_array_size(json_object_get(spec, "scopes")) > 0 || json_object_get(spec, "scopeSelector"))
        return 0;
    json_object_foreach(hard, key, value) rc = rc < 0 ? rc : k8s_room_check_key(d, quota, key, err);
    return rc;
}

/* Who may not list them learns from the run why it waits. */
static int check_quotas(struct demand *d, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_path(d->k->kube, "v1", "resourcequotas", NULL, NULL);
    int rc = d->pods > 1 ? kube_each(d->k->kube, path, "list the quotas", check_quota, d, err) : 0;

    return rc == -ACT_NO_CAPACITY ? rc : 0;
}

/* ---- nodes ---- */

struct room {
    const struct demand *d;
    int64_t gpus; /* of any node, in thousandths; -1: there is none with GPUs */
    int64_t pods; /* as many of the run fit on all nodes, if nothing else is there */
    bool any;     /* there are nodes of the kind that is asked for */
};

static bool k8s_room_matches(const json_t *node, json_t *selector)
{
    const char *key;
    json_t *value;

    json_object_foreach(selector, key, value)
    {
        if (!act_streq(kubernetes_label(node, key), json_string_value(value)))
            return false;
    }
    return true;
}

/* Returns how many pods of the run a node could have. */
static int64_t k8s_room_pods_of(const struct demand *d, const json_t *has)
{
    int64_t fits = act_quantity_from_text(codec_json_str(has, "pods", "110")) / THOUSANDTHS;
    json_t *value;
    const char *key;

    json_object_foreach(d->requests, key, value)
    {
        int64_t n = act_quantity_from_text(codec_json_str(has, key, "0")) / json_integer_value(value);
        fits = n < fits ? n : fits;
    }
    return fits > 0 ? fits : 0;
}

static int k8s_room_take_node(void *arg, const json_t *node, struct act_error *err)
{
    struct room *r = arg;
    const json_t *has = json_object_get(json_object_get(node, "status"), "allocatable");
    const char *gpu = kubernetes_gpu_resource(r->d->k->config);
    int64_t gpus = gpu ? act_quantity_from_text(codec_json_str(has, gpu, "")) : 0;

    (void)err;
    if (!k8s_room_matches(node, r->d->selector))
        return 0;
    r->gpus = gpus > r->gpus ? gpus : r->gpus;
    r->any = true;
    if (!json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable")))
        r->pods += k8s_room_pods_of(r->d, has);
    return 0;
}

/* Judges a pod that wants more GPUs than any node has. An autoscaler may have a pool of larger nodes that is empty now,
 * of which the cluster says nothing: its user does. */
static int judge_largest(const struct demand *d, const char *gpu, int64_t largest, struct act_error *err)
{
    int wanted = d->spec->gpus_per_node;

    if (!k8s_keys(d->k->config)->larger_nodes)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "a pod with %d '%s' fits no node of '%s': the largest has %lld; set gpu_per_node to that, "
                             "and -n makes more nodes; where the cluster may bring larger nodes, set k8s.larger_nodes",
                             wanted, gpu, d->k->config->cluster, (long long)largest);
    act_warn("a pod with %d '%s' fits no node that '%s' has now, of which the largest has %lld: it waits for a larger "
             "one (k8s.larger_nodes)",
             wanted, gpu, d->k->config->cluster, (long long)largest);
    return 0;
}

/* A pod that no node can ever have is refused. Nodes may be added, so where there are too few, that is only said. Where
 * nothing is known of them, nothing is: they may not be listed, or their pool is empty until somebody asks for it. */
static int k8s_room_check_nodes(const struct demand *d, struct act_error *err)
{
    const char *gpu = kubernetes_gpu_resource(d->k->config);
    bool asks_gpus = gpu && d->spec->gpus_per_node > 0;
    struct room r = {.d = d, .gpus = -1};
    struct act_error said;

    if (!asks_gpus && (d->pods < 2 || json_object_size(d->requests) == 0))
        return 0;
    if (kubernetes_each_node(d->k, k8s_room_take_node, &r, &said) < 0 || !r.any || (asks_gpus && r.gpus <= 0))
        return 0;
    if (asks_gpus && r.gpus < (int64_t)d->spec->gpus_per_node * THOUSANDTHS)
        return judge_largest(d, gpu, r.gpus / THOUSANDTHS, err);
    if (d->pods > 1 && r.pods < d->pods)
        act_warn(
            "the nodes of '%s' have room for %lld of the run's %d pods, if nothing else is there: unless nodes are "
            "added, it waits for the others, and holds what it got for %s (k8s.gang_wait)",
            d->k->config->cluster, (long long)r.pods, d->pods, held(d));
    return 0;
}

int kubernetes_check_room(struct kubernetes *k, const struct run_spec *spec, const json_t *job, struct act_error *err)
{
    struct demand d = demand_new(k, spec, job);
    int rc = k8s_keys(k->config)->queue ? 0 : check_quotas(&d, err); /* Kueue lets in all of them or none */

    if (rc == 0)
        rc = k8s_room_check_nodes(&d, err);
    json_decref(d.requests);
    json_decref(d.limits);
    return rc;
}
