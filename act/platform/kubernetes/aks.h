/* aks.h - a cluster of Azure Kubernetes Service, by Azure Resource Manager: its node pools, the cluster where there is
 * none yet, and the login to it. For the files of the platform k8s only.
 *
 *   aks.c        opening; the cluster as it is
 *   aks_pools.c  the node pools: looking at them and changing them
 *   aks_setup.c  a new pool, and a new cluster for it
 *   aks_nodes.c  the nodes of a pool, which the cluster itself knows
 *   aks_login.c  the login, for the kubeconfig
 *
 * Source: learn.microsoft.com/rest/api/aks/managed-clusters and .../agent-pools (2024-01-01), .../azure/aks/
 * use-system-pools (what a system pool needs), cluster-autoscaler, spot-node-pool, aks-pending-operation (409);
 * learn.microsoft.com/rest/api/resources/resource-groups/get.
 */
#ifndef ACT_PLATFORM_KUBERNETES_AKS_H
#define ACT_PLATFORM_KUBERNETES_AKS_H

#include "arm/arm.h"
#include "platform/clusters.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define AKS_VERSION "2024-01-01"
#define AKS_NOUN    "node pool"
#define AKS_SYSTEM  "System"
#define AKS_USER    "User"

struct aks {
    const struct aks_keys *config;
    struct arm *arm;
    char *group, *cluster; /* paths: of the resource group, and of the cluster below it */
    char *location;        /* of the resource group, once it was asked for */
};

/* Opened on the first call. -ACT_CONFIG: the cluster file does not say which cluster it is. */
int aks_open(struct kubernetes *k, struct aks **out, struct act_error *err) ACT_NODISCARD;
void aks_free(struct aks *aks);
/* *out NULL: there is none. A new reference. */
int aks_get_cluster(const struct aks *aks, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Adds the hint to the error of a cluster that does not exist. */
int aks_hint_missing(const struct aks *aks, int rc, struct act_error *err);
/* Makes a change and follows it. Takes url and body. */
int aks_change(const struct aks *aks, const char *method, const char *what, char *url, json_t *body,
               const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;

/* Returns the path of a pool. New string. */
char *aks_pool_url(const struct aks *aks, const char *pool);
/* With missing_is_fine *out is NULL when there is none. A new reference. */
int aks_get_pool(const struct aks *aks, const char *pool, bool missing_is_fine, json_t **out,
                 struct act_error *err) ACT_NODISCARD;
/* The error of a setting that only whole clusters have. */
int aks_refuse_idle(struct act_error *err);

int aks_prepare(struct platform *p, struct platform_new_cluster *cluster, char **out_setup, struct act_error *err);
int aks_create(struct platform *p, const struct platform_new_cluster *cluster, const struct platform_follow *follow,
               struct act_error *err);
int aks_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out, struct act_error *err);
int aks_login(struct platform *p, struct platform_login *out, struct act_error *err);
extern const struct platform_clusters_ops aks_clusters;

#endif
