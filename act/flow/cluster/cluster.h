/* cluster.h - the cluster itself: its load, its nodes, and a file of Azure Batch AI that describes a new one. The
 * clusters that a platform can create and change are those of platform/clusters.h, on flow_platform(). */
#ifndef ACT_FLOW_CLUSTER_CLUSTER_H
#define ACT_FLOW_CLUSTER_CLUSTER_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/clusters.h"
#include "platform/platform.h"

/* Lists the nodes of a run, of which there are none while it waits. The caller releases out. */
int flow_nodes(struct flow *flow, const struct flow_run *run, struct platform_nodes *out,
               struct act_error *err) ACT_NODISCARD;
/* Runs command (empty: a shell) on a node of a running run, or says how. node: its name, or its number from 0; NULL:
 * the first. */
int flow_shell(struct flow *flow, const struct flow_run *run, const char *node, const struct act_strv *command,
               struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
/* Does the same with the agent there, whose words command has. */
int flow_agent(struct flow *flow, const struct flow_run *run, const char *node, const struct act_strv *command,
               struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
/* Does the same on the node of this cluster with this address, "10.0.0.4", whatever runs there. */
int flow_shell_at(struct flow *flow, const char *address, const struct act_strv *command, struct platform_shell *out,
                  struct act_error *err) ACT_NODISCARD;

struct flow_summary {
    struct platform_summary cluster;
    struct platform_gpus gpus; /* of a single machine */
    size_t running, queued;    /* runs in the ledger that are on this cluster */
};
/* Tells what the cluster of the configuration is doing. The caller releases cluster and gpus of out. */
int flow_summary(struct flow *flow, struct flow_summary *out, struct act_error *err) ACT_NODISCARD;
/* Lists all users' running jobs on the cluster, the longest-running first. The caller releases out. */
int flow_jobs(struct flow *flow, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
/* A new cluster as a file of Azure Batch AI describes it. */
struct flow_batch_cluster {
    struct platform_new_cluster cluster; /* without a name; points into json */
    struct act_strv notes;               /* what has no counterpart, a line each */
    json_t *json;
};
/* Reads such a file. Not JSON, unknown members or missing ones: -ACT_CONFIG with file and place. Release out. */
int flow_read_batch_cluster(const char *file, struct flow_batch_cluster *out, struct act_error *err) ACT_NODISCARD;
void flow_batch_cluster_release(struct flow_batch_cluster *cluster);

#endif
