/* keys.h - the parts 'k8s' and 'aks' of a cluster file, and what the platform's name there means. */
#ifndef ACT_PLATFORM_KUBERNETES_KEYS_H
#define ACT_PLATFORM_KUBERNETES_KEYS_H

#include <jansson.h>

#include "base/text.h"
#include "config/kind.h"

/* How runs are handed to Kubernetes; members may be NULL, what they mean is in keys.c. */
struct k8s_keys {
    char *kubeconfig; /* absolute */
    char *context, *namespace_;
    char *image, *queue, *priority_class, *service_account;
    char *gpu_resource; /* "none": nodes without GPUs */
    char *cpu, *memory, *shm_size, *time, *gang_wait;
    int64_t warn_seconds;          /* before the time limit */
    bool larger_nodes;             /* than there are now may come */
    char *launcher;                /* "mpirun" or "direct" */
    json_t *node_selector, *pod;   /* objects */
    json_t *tolerations, *volumes; /* arrays of objects */
};

extern const struct config_part k8s_keys_part;
static inline struct k8s_keys *k8s_keys(const struct config *config)
{
    return config_part(config, &k8s_keys_part);
}

/* The cluster of Azure Kubernetes Service that the nodes are of; members may be NULL, what they mean is in keys.c. */
struct aks_keys {
    char *endpoint;
    char *subscription, *resource_group, *cluster, *pool;
    char *vm_size, *location, *system_vm_size;
    int64_t min, max; /* nodes; -1: not given */
    struct act_strv node_taints;
    json_t *node_labels; /* an object */
};

extern const struct config_part aks_keys_part;
static inline struct aks_keys *aks_keys(const struct config *config)
{
    return config_part(config, &aks_keys_part);
}

extern const struct config_kind kubernetes_kind;

#endif
