/* compute.c - the clusters that a platform can make, change and remove. */
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow_internal.h"
#include "platform/clusters.h"

const struct platform_clusters_words *flow_cluster_words(const struct flow *flow)
{
    return platform_clusters_words(flow->config.platform);
}

bool flow_has_clusters(const struct flow *flow)
{
    return platform_has_clusters(&flow->config);
}

int flow_cluster_name(const struct flow *flow, const char *name, const char **out, struct act_error *err)
{
    const struct platform_clusters_words *words = flow_cluster_words(flow);

    *out = name ? name : words->usual(&flow->config);
    if (*out && **out)
        return 0;
    return act_error_set(err, ACT_USAGE, "the cluster '%s' has no %s: name the %s that is meant", flow->config.cluster,
                         words->key, words->noun);
}

int flow_list_clusters(struct flow *flow, bool all, struct platform_clusters *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_clusters){0};
    if (rc < 0)
        return rc;
    return all ? platform_list_all_clusters(platform, out, err) : platform_list_clusters(platform, out, err);
}

int flow_get_cluster(struct flow *flow, const char *name, struct platform_cluster *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_cluster){0};
    return rc < 0 ? rc : platform_get_cluster(platform, name, out, err);
}

int flow_prepare_cluster(struct flow *flow, struct platform_new_cluster *cluster, char **out_setup,
                         struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out_setup = NULL;
    return rc < 0 ? rc : platform_prepare_cluster(platform, cluster, out_setup, err);
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

int flow_fetch_login(struct flow *flow, struct platform_login *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct platform_login){0};
    return rc < 0 ? rc : platform_fetch_login(platform, out, err);
}
