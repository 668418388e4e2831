/* azureml.h - the managed clusters of an Azure Machine Learning workspace: what there is, and changing it. Only a
 * platform "aml" has them; another one is -ACT_CONFIG and says so.
 *
 * What the workspace has besides (attached Kubernetes, a machine of one user) is listed, but not changed.
 *
 * Source: learn.microsoft.com/rest/api/azureml/compute; making, changing and deleting one as it was recorded
 * (test_aml_compute_create_and_delete; arm.h names where): 201, 201 and 202 with Azure-AsyncOperation, no Retry-After.
 */
#ifndef ACT_PLATFORM_AZUREML_H
#define ACT_PLATFORM_AZUREML_H

#include "platform/platform.h"

struct config_account;
struct config_docker;
struct config_folder;

/* The image of runs, with the registry, as docker has it. New string. */
char *azureml_image(const struct config_docker *docker);
/* The datastore that stands for a row of the configuration, as its own name or its content says. New string. */
char *azureml_datastore_name(const struct config_folder *row, const struct config_account *account);
/* The host of an image's registry, as docker finds it in the name. New string; NULL: Docker Hub. */
char *azureml_registry_of(const char *image);

/* Members may be NULL, counts -1: not said. Only a managed cluster has the second half. */
struct azureml_cluster {
    char *name;
    char *type; /* "AmlCompute", "Kubernetes", ... */
    char *location;
    char *state; /* of the resource: "Succeeded", "Creating", "Failed", ... */
    char *error; /* why it failed, or why it has fewer nodes than it should; one line */

    char *vm_size, *vm_priority; /* "Dedicated", "LowPriority" */
    char *allocation;            /* "Steady", "Resizing" */
    char *admin_user;
    int64_t min_nodes, max_nodes, nodes, target_nodes;
    int64_t idle_s;                                                 /* an idle node goes after this time */
    int64_t preparing, running, idle, unusable, leaving, preempted; /* nodes */
};
struct azureml_clusters {
    struct azureml_cluster *v;
    size_t n;
};
void azureml_cluster_release(struct azureml_cluster *cluster);
void azureml_clusters_release(struct azureml_clusters *clusters);

bool azureml_cluster_is_managed(const struct azureml_cluster *cluster);

int azureml_list_clusters(struct platform *p, struct azureml_clusters *out,
                          struct act_error *err) ACT_NODISCARD;
int azureml_get_cluster(struct platform *p, const char *name, struct azureml_cluster *out,
                        struct act_error *err) ACT_NODISCARD;

/* How a change that takes long is followed; its status is told each time it is asked for, and before that "Accepted":
 * from then on it goes on, whatever becomes of this process. */
struct azureml_follow {
    bool no_wait; /* return when the service has accepted it */
    void (*progress)(void *arg, const char *status, int percent /* -1: not said */); /* may be NULL */
    void *arg;
};

struct azureml_scale {
    int64_t min_nodes, max_nodes; /* -1: as it is; of a new cluster 0 and an error */
    int64_t idle_s;               /* 0: as it is; of a new cluster: what the service takes */
};
struct azureml_new_cluster {
    const char *name, *vm_size;
    const char *location; /* NULL: that of the workspace */
    bool low_priority;
    struct azureml_scale scale;
    const char *admin_user, *ssh_key; /* the text of a public key; both or none */
};
/* A cluster that is there is an error. */
int azureml_create_cluster(struct platform *p, const struct azureml_new_cluster *cluster,
                           const struct azureml_follow *follow, struct act_error *err) ACT_NODISCARD;
int azureml_scale_cluster(struct platform *p, const char *name, const struct azureml_scale *scale,
                          const struct azureml_follow *follow, struct act_error *err) ACT_NODISCARD;
int azureml_delete_cluster(struct platform *p, const char *name, const struct azureml_follow *follow,
                           struct act_error *err) ACT_NODISCARD;

/* Members may be NULL. */
struct azureml_node {
    char *id, *state, *public_address, *private_address;
    char *run;    /* the run that has it */
    int64_t port; /* of ssh; 0: not said */
};
struct azureml_node_list {
    struct azureml_node *v;
    size_t n;
};
int azureml_cluster_nodes(struct platform *p, const char *name, struct azureml_node_list *out,
                          struct act_error *err) ACT_NODISCARD;
void azureml_node_list_release(struct azureml_node_list *nodes);

#endif
