/* aks_nodes.c - the nodes of a pool, as the cluster itself has them: whether they are ready, whose runs they have. */
#include <string.h>
#include <strings.h>

#include "platform/kubernetes/aks.h"

#define POOL_LABEL "kubernetes.azure.com/agentpool"

/* ---- whether the kubeconfig is that of the cluster ---- */

static bool has_host(const json_t *cluster, const char *host)
{
    static const char *const keys[] = {"fqdn", "privateFQDN", "azurePortalFQDN"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcasecmp(codec_json_str(json_object_get(cluster, "properties"), keys[i], ""), host) == 0)
            return true;
    return false;
}

/* A pool of the same name in another cluster must not be taken for this one. */
static int k8s_aks_nodes_check_server(const struct aks *aks, const struct kube *kube, struct act_error *err)
{
    CODEC_AUTOJSON json_t *cluster = NULL;
    ACT_AUTOFREE char *host = http_host(kube_server(kube));
    int rc = aks_get_cluster(aks, &cluster, err);

    if (rc < 0 || (cluster && host && has_host(cluster, host)))
        return rc;
    if (!cluster)
        return aks_hint_missing(
            aks, act_error_set(err, ACT_NOT_FOUND, "there is no cluster '%s'", aks->config->cluster), err);
    return act_error_set(err, ACT_CONFIG,
                         "the context '%s' of the kubeconfig is another cluster than '%s'; 'a cluster login' fetches "
                         "the login to it, and k8s.context chooses it",
                         kube_context(kube), aks->config->cluster);
}

/* ---- nodes ---- */

struct taking {
    struct platform_cluster_nodes *out;
    json_t *runs; /* node: run */
};

static char *k8s_aks_nodes_address_of(const json_t *node, const char *type)
{
    size_t i;
    json_t *address;

    json_array_foreach(json_object_get(json_object_get(node, "status"), "addresses"), i,
                       address) if (act_streq(codec_json_str(address, "type", NULL),
                                              type)) return codec_json_strdup(address, "address");
    return NULL;
}

static const char *k8s_aks_nodes_state_of(const json_t *node)
{
    if (!kubernetes_condition(node, "Ready"))
        return "NotReady";
    return json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable")) ? "Cordoned" : "Ready";
}

static int k8s_aks_nodes_take_node(void *arg, const json_t *node, struct act_error *err)
{
    struct taking *t = arg;

    (void)err;
    ACT_PUSH(t->out->v, t->out->n,
             (struct platform_cluster_node){
                 .id = act_strdup(kubernetes_name_of(node)),
                 .state = act_strdup(k8s_aks_nodes_state_of(node)),
                 .public_address = k8s_aks_nodes_address_of(node, "ExternalIP"),
                 .private_address = k8s_aks_nodes_address_of(node, "InternalIP"),
                 .run = act_strdup(codec_json_str(t->runs, kubernetes_name_of(node), NULL)),
             });
    return 0;
}

/* Notes which run of ACT in the namespace has a node. */
static int k8s_aks_nodes_take_pod(void *arg, const json_t *pod, struct act_error *err)
{
    json_t *runs = arg;
    const char *node = kubernetes_node_of(pod), *run = kubernetes_run_of(pod), *phase = kubernetes_phase(pod);

    (void)err;
    if (*node && run && strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0)
        json_object_set_new(runs, node, codec_json_bytes_new(run));
    return 0;
}

static int k8s_aks_nodes_list(struct kube *kube, const char *pool, struct platform_cluster_nodes *out,
                              struct act_error *err)
{
    CODEC_AUTOJSON json_t *runs = json_object();
    struct taking taking = {.out = out, .runs = runs};
    ACT_AUTOFREE char *label = http_encode(POOL_LABEL "=", false), *name = http_encode(pool, false);
    ACT_AUTOFREE char *query = act_sprintf("labelSelector=%s%s", label, name);
    ACT_AUTOFREE char *nodes = kube_cluster_path("v1", "nodes", NULL, query);
    ACT_AUTOFREE char *pods = kube_path(kube, "v1", "pods", NULL, "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dact");
    ACT_AUTOFREE char *what = act_sprintf("list the nodes of the node pool '%s'", pool);
    int rc = kube_each(kube, pods, "list the pods of runs", k8s_aks_nodes_take_pod, runs, err);

    return rc < 0 ? rc : kube_each(kube, nodes, what, k8s_aks_nodes_take_node, &taking, err);
}

int aks_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    CODEC_AUTOJSON json_t *pool = NULL;
    struct kube *kube;
    struct aks *aks;
    int rc = aks_open(k, &aks, err);

    if (rc == 0) {
        rc = kubernetes_kube(k, &kube, err);
        if (rc < 0)
            return act_error_hint(err, "'a cluster login' fetches the login to the cluster '%s'", aks->config->cluster);
    }
    if (rc == 0)
        rc = k8s_aks_nodes_check_server(aks, kube, err);
    if (rc == 0)
        rc = aks_get_pool(aks, name, false, &pool, err);
    return rc == 0 ? k8s_aks_nodes_list(kube, name, out, err) : rc;
}
