/* cluster.h - the cluster itself: its load, its nodes, and the clusters that its platform can create and change. */
#ifndef ACT_FLOW_CLUSTER_CLUSTER_H
#define ACT_FLOW_CLUSTER_CLUSTER_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/clusters.h"
#include "platform/platform.h"

/* The nodes of a run: none yet while it waits. */
int flow_nodes(struct flow *flow, const struct flow_run *run, struct platform_nodes *out,
               struct act_error *err) ACT_NODISCARD;
/* Runs command (empty: a shell) on a node of a running run, or says how. node: its name, or its number from 0; NULL:
 * the first. */
int flow_shell(struct flow *flow, const struct flow_run *run, const char *node, const struct act_strv *command,
               struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
/* Likewise on the node of this cluster with this address, "10.0.0.4", whatever runs there. */
int flow_shell_at(struct flow *flow, const char *address, const struct act_strv *command, struct platform_shell *out,
                  struct act_error *err) ACT_NODISCARD;

struct flow_summary {
    struct platform_summary cluster;
    size_t running, queued; /* runs in the ledger that are on this cluster */
};
int flow_summary(struct flow *flow, struct flow_summary *out, struct act_error *err) ACT_NODISCARD;
/* All users' running jobs on the cluster, the longest-running first. */
int flow_jobs(struct flow *flow, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
/* Whether the cluster has clusters, or node pools, of a service that can be listed. */
bool flow_has_clusters(const struct flow *flow);
/* What the clusters of flow's platform are called. */
const struct platform_clusters_words *flow_cluster_words(const struct flow *flow);
/* The name, or if it is NULL that in the cluster file (compute_target, aks.pool); -ACT_USAGE if there is none. */
int flow_cluster_name(const struct flow *flow, const char *name, const char **out, struct act_error *err) ACT_NODISCARD;
/* all: those of all workspaces of the subscription. */
int flow_list_clusters(struct flow *flow, bool all, struct platform_clusters *out, struct act_error *err) ACT_NODISCARD;
int flow_get_cluster(struct flow *flow, const char *name, struct platform_cluster *out,
                     struct act_error *err) ACT_NODISCARD;
/* A new cluster as a file of Azure Batch AI describes it. */
struct flow_batch_cluster {
    struct platform_new_cluster cluster; /* without a name; points into json */
    struct act_strv notes;               /* what has no counterpart, a line each */
    json_t *json;
};
/* Not JSON, unknown members or missing ones: -ACT_CONFIG with file and place. Release out. */
int flow_read_batch_cluster(const char *file, struct flow_batch_cluster *out, struct act_error *err) ACT_NODISCARD;
void flow_batch_cluster_release(struct flow_batch_cluster *cluster);
/* The rest is as in platform/clusters.h. */
int flow_prepare_cluster(struct flow *flow, struct platform_new_cluster *cluster, char **out_setup,
                         struct act_error *err) ACT_NODISCARD;
int flow_create_cluster(struct flow *flow, const struct platform_new_cluster *cluster,
                        const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int flow_scale_cluster(struct flow *flow, const char *name, const struct platform_scale *scale,
                       const struct platform_follow *follow, struct act_error *err) ACT_NODISCARD;
int flow_delete_cluster(struct flow *flow, const char *name, const struct platform_follow *follow,
                        struct act_error *err) ACT_NODISCARD;
int flow_cluster_nodes(struct flow *flow, const char *name, struct platform_cluster_nodes *out,
                       struct act_error *err) ACT_NODISCARD;
int flow_fetch_login(struct flow *flow, struct platform_login *out, struct act_error *err) ACT_NODISCARD;

#endif
