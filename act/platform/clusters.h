/* clusters.h - listing and changing the clusters that a platform can create, resize and delete: the managed clusters of
 * an Azure Machine Learning workspace, the node pools of a Kubernetes cluster. A platform without any: -ACT_CONFIG.
 *
 * Other computes (attached Kubernetes, a machine of one user) are listed, but cannot be changed.
 */
#ifndef ACT_PLATFORM_CLUSTERS_H
#define ACT_PLATFORM_CLUSTERS_H

#include "platform/platform.h"

/* Members may be NULL, and counts -1, if not reported. */
struct platform_cluster {
    char *name;
    char *owner; /* "GROUP/WORKSPACE"; set only in a list of all */
    char *type;  /* "AmlCompute", "Kubernetes", ...; of a node pool "User", "System" */
    char *location;
    char *state;     /* of the resource: "Succeeded", "Creating", "Failed", ... */
    char *error;     /* why it failed, or why it has fewer nodes than it should; one line */
    bool is_managed; /* it can be changed; only then are the members below set */

    char *vm_size, *vm_priority; /* "Dedicated", "LowPriority"; "Regular", "Spot" */
    char *allocation;            /* "Steady", "Resizing" */
    char *admin_user;
    char *autoscaler; /* "on", "off" */
    char *taints;     /* "sku=gpu:NoSchedule, ..." */
    int64_t min_nodes, max_nodes, nodes, target_nodes;
    int64_t idle_s;                                                 /* an idle node is released after this time */
    int64_t preparing, running, idle, unusable, leaving, preempted; /* nodes */
};
struct platform_clusters {
    struct platform_cluster *v;
    size_t n;
};
/* Return a cluster as an object, and clusters as an array: new references. */
json_t *platform_cluster_to_json(const struct platform_cluster *cluster);
json_t *platform_clusters_to_json(const struct platform_clusters *clusters);
void platform_cluster_release(struct platform_cluster *cluster);
void platform_clusters_release(struct platform_clusters *clusters);

/* The words for the clusters of a platform. */
struct platform_clusters_words {
    const char *noun;                                  /* "cluster" */
    const char *owner;                                 /* what they belong to: "workspace" */
    const char *key;                                   /* the key of the cluster file that names the usual one */
    const char *(*usual)(const struct config *config); /* its value; may be NULL */
};
/* Those of the first platform that has clusters, where this one has none; NULL: no platform has. */
const struct platform_clusters_words *platform_clusters_words(const char *platform);

/* Tells whether a configuration has clusters of a service at all: not one of Kubernetes that nothing says is
 * Azure's. */
bool platform_has_clusters(const struct config *config);

int platform_list_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err) ACT_NODISCARD;
/* Those of all workspaces of the subscription. One that cannot be read is warned about. */
int platform_list_all_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err) ACT_NODISCARD;
int platform_get_cluster(struct platform *p, const char *name, struct platform_cluster *out,
                         struct act_error *err) ACT_NODISCARD;

/* How to follow a long-running change. progress() first gets "Accepted", after which the change continues even if
 * this process ends, then the status after each poll. */
struct platform_follow {
    bool no_wait; /* return as soon as the service has accepted it */
    bool dry_run; /* all but the change itself, so that what would be refused is */
    void (*progress)(void *arg, const char *status, int percent /* -1: not said */); /* may be NULL */
    void *arg;
};

struct arm;
struct arm_call;
/* Makes the call, follows what it began, and releases it. */
int platform_change(struct arm *arm, struct arm_call *call, const struct platform_follow *follow,
                    struct act_error *err) ACT_NODISCARD;

struct platform_scale {
    int64_t min_nodes, max_nodes; /* -1: unchanged; for a new cluster 0 and an error, respectively */
    int64_t idle_s;               /* 0: unchanged; for a new cluster: the service's default */
    bool is_fixed;                /* min_nodes is max_nodes, and nothing may change that */
};
struct platform_new_cluster {
    const char *name, *vm_size;
    const char *location; /* NULL: that of the workspace */
    bool low_priority;
    bool with_owner; /* its owner is made, too */
    struct platform_scale scale;
    const char *admin_user, *ssh_key;  /* the text of a public key; both or neither */
    const char *subnet;                /* its resource id; NULL: the service's own network */
    const char *node_image;            /* the resource id of what nodes start from; NULL: the service's own */
    bool no_public_ip;                 /* nodes have no address outside of their network */
    const struct act_strv *identities; /* of the nodes: resource ids, "system" for one of their own; NULL: none */
    json_t *tags;                      /* {"key": "value"}; NULL: none; the caller's */
};
/* Completes what was not said from the configuration, and checks it. *out_setup: what has to be made besides the
 * cluster itself, and costs money, as a sentence (new string); then with_owner is set. NULL: nothing. */
int platform_prepare_cluster(struct platform *p, struct platform_new_cluster *cluster, char **out_setup,
                             struct act_error *err) ACT_NODISCARD;
/* cluster: as prepared. It is an error if the cluster exists. */
int platform_create_cluster(struct platform *p, const struct platform_new_cluster *cluster,
                            const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int platform_scale_cluster(struct platform *p, const char *name, const struct platform_scale *scale,
                           const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int platform_delete_cluster(struct platform *p, const char *name, const struct platform_follow *follow,
                            struct act_error *err) ACT_NODISCARD;

/* Members may be NULL. */
struct platform_cluster_node {
    char *id, *state, *public_address, *private_address;
    char *run;    /* the run that occupies it */
    int64_t port; /* for ssh; 0: not reported */
};
struct platform_cluster_nodes {
    struct platform_cluster_node *v;
    size_t n;
};
int platform_list_cluster_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                                struct act_error *err) ACT_NODISCARD;
/* Returns the nodes as an array, a new reference. */
json_t *platform_cluster_nodes_to_json(const struct platform_cluster_nodes *nodes);
void platform_cluster_nodes_release(struct platform_cluster_nodes *nodes);

/* How the user logs in to a cluster, for the file in which such logins are kept. */
struct platform_login {
    char *file;
    char *context;            /* its name in the file */
    char *old_text, *text;    /* secret: what the file holds (NULL: none), and what it is to hold */
    struct act_strv replaced; /* entries of the file that say something else: "user 'x'" */
    bool is_new;              /* false: the file has it already */
};
/* Asks the service; writes nothing. */
int platform_fetch_login(struct platform *p, struct platform_login *out, struct act_error *err) ACT_NODISCARD;
/* Writes the file, for its owner alone. One that was changed since the fetch is left alone: -ACT_TEMPORARY. */
int platform_keep_login(const struct platform_login *login, struct act_error *err) ACT_NODISCARD;
void platform_login_release(struct platform_login *login); /* wipes secrets */

/* The operations of one platform, referred to by its row. */
struct platform_clusters_ops {
    struct platform_clusters_words words;
    bool (*has)(const struct config *config); /* NULL: always */
    int (*list)(struct platform *p, struct platform_clusters *out, struct act_error *err);
    int (*list_all)(struct platform *p, struct platform_clusters *out, struct act_error *err); /* NULL: cannot */
    int (*get)(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err);
    int (*prepare)(struct platform *p, struct platform_new_cluster *cluster, char **out_setup, struct act_error *err);
    int (*create)(struct platform *p, const struct platform_new_cluster *cluster, const struct platform_follow *follow,
                  struct act_error *err);
    int (*scale)(struct platform *p, const char *name, const struct platform_scale *scale,
                 const struct platform_follow *follow, struct act_error *err);
    int (*remove)(struct platform *p, const char *name, const struct platform_follow *follow, struct act_error *err);
    int (*nodes)(struct platform *p, const char *name, struct platform_cluster_nodes *out, struct act_error *err);
    int (*login)(struct platform *p, struct platform_login *out, struct act_error *err); /* NULL: it has none */
};

#endif
