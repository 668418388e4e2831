/* clusters.h - the clusters that a platform can make, resize and remove: what there is, and changing it. A platform
 * that has none is -ACT_CONFIG and says so.
 *
 * What is there besides (attached Kubernetes, a machine of one user) is listed, but not changed.
 */
#ifndef ACT_PLATFORM_CLUSTERS_H
#define ACT_PLATFORM_CLUSTERS_H

#include "platform/platform.h"

/* Members may be NULL, counts -1: not said. */
struct platform_cluster {
    char *name;
    char *type; /* "AmlCompute", "Kubernetes", ... */
    char *location;
    char *state;     /* of the resource: "Succeeded", "Creating", "Failed", ... */
    char *error;     /* why it failed, or why it has fewer nodes than it should; one line */
    bool is_managed; /* it can be changed; only such a one has the rest */

    char *vm_size, *vm_priority; /* "Dedicated", "LowPriority" */
    char *allocation;            /* "Steady", "Resizing" */
    char *admin_user;
    int64_t min_nodes, max_nodes, nodes, target_nodes;
    int64_t idle_s;                                                 /* an idle node goes after this time */
    int64_t preparing, running, idle, unusable, leaving, preempted; /* nodes */
};
struct platform_clusters {
    struct platform_cluster *v;
    size_t n;
};
void platform_cluster_release(struct platform_cluster *cluster);
void platform_clusters_release(struct platform_clusters *clusters);

int platform_list_clusters(struct platform *p, struct platform_clusters *out,
                           struct act_error *err) ACT_NODISCARD;
int platform_get_cluster(struct platform *p, const char *name, struct platform_cluster *out,
                         struct act_error *err) ACT_NODISCARD;

/* How a change that takes long is followed; its status is told each time it is asked for, and before that "Accepted":
 * from then on it goes on, whatever becomes of this process. */
struct platform_follow {
    bool no_wait; /* return when the service has accepted it */
    void (*progress)(void *arg, const char *status, int percent /* -1: not said */); /* may be NULL */
    void *arg;
};

struct platform_scale {
    int64_t min_nodes, max_nodes; /* -1: as it is; of a new cluster 0 and an error */
    int64_t idle_s;               /* 0: as it is; of a new cluster: what the service takes */
};
struct platform_new_cluster {
    const char *name, *vm_size;
    const char *location; /* NULL: that of the workspace */
    bool low_priority;
    struct platform_scale scale;
    const char *admin_user, *ssh_key; /* the text of a public key; both or none */
};
/* A cluster that is there is an error. */
int platform_create_cluster(struct platform *p, const struct platform_new_cluster *cluster,
                            const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int platform_scale_cluster(struct platform *p, const char *name, const struct platform_scale *scale,
                           const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int platform_delete_cluster(struct platform *p, const char *name, const struct platform_follow *follow,
                            struct act_error *err) ACT_NODISCARD;

/* Members may be NULL. */
struct platform_cluster_node {
    char *id, *state, *public_address, *private_address;
    char *run;    /* the run that has it */
    int64_t port; /* of ssh; 0: not said */
};
struct platform_cluster_nodes {
    struct platform_cluster_node *v;
    size_t n;
};
int platform_list_cluster_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                                struct act_error *err) ACT_NODISCARD;
void platform_cluster_nodes_release(struct platform_cluster_nodes *nodes);

/* The same of one platform, whose row has it. */
struct platform_clusters_ops {
    int (*list)(struct platform *p, struct platform_clusters *out, struct act_error *err);
    int (*get)(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err);
    int (*create)(struct platform *p, const struct platform_new_cluster *cluster,
                  const struct platform_follow *follow, struct act_error *err);
    int (*scale)(struct platform *p, const char *name, const struct platform_scale *scale,
                 const struct platform_follow *follow, struct act_error *err);
    int (*remove)(struct platform *p, const char *name, const struct platform_follow *follow,
                  struct act_error *err);
    int (*nodes)(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                 struct act_error *err);
};

#endif
