/* compute.c - the clusters that a platform can make, change and remove. */
#include "base/path.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow_internal.h"
#include "platform/clusters.h"

int flow_cluster_name(const struct flow *flow, const char *name, const char **out, struct act_error *err)
{
    const char *target = flow->config.compute_target;

    *out = name ? name : target ? act_path_basename(target) : NULL; /* the file may have its whole id */
    if (*out && **out)
        return 0;
    return act_error_set(err, ACT_USAGE, "the cluster '%s' has no compute_target: name the cluster that is meant",
                         flow->config.cluster);
}

int flow_list_clusters(struct flow *flow, struct platform_clusters *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_clusters){0};
    return rc < 0 ? rc : platform_list_clusters(platform, out, err);
}

int flow_get_cluster(struct flow *flow, const char *name, struct platform_cluster *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_cluster){0};
    return rc < 0 ? rc : platform_get_cluster(platform, name, out, err);
}

int flow_create_cluster(struct flow *flow, const struct platform_new_cluster *cluster,
                        const struct platform_follow *follow, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : platform_create_cluster(platform, cluster, follow, err);
}

int flow_scale_cluster(struct flow *flow, const char *name, const struct platform_scale *scale,
                       const struct platform_follow *follow, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : platform_scale_cluster(platform, name, scale, follow, err);
}

int flow_delete_cluster(struct flow *flow, const char *name, const struct platform_follow *follow,
                        struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : platform_delete_cluster(platform, name, follow, err);
}

int flow_cluster_nodes(struct flow *flow, const char *name, struct platform_cluster_nodes *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_cluster_nodes){0};
    return rc < 0 ? rc : platform_list_cluster_nodes(platform, name, out, err);
}
