/* compute.c - the managed clusters of an Azure Machine Learning workspace. */
#include "base/error.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "platform/azureml/azureml.h"

int flow_cluster_name(const struct flow *flow, const char *name, const char **out, struct act_error *err)
{
    const char *target = flow->config.compute_target;

    *out = name ? name : target ? act_path_basename(target) : NULL; /* the file may have its whole id */
    if (*out && **out)
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "the cluster '%s' has no compute_target: name the cluster that is meant",
                         flow->config.cluster);
}

int flow_list_clusters(struct flow *flow, struct azureml_clusters *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct azureml_clusters){0};
    return rc < 0 ? rc : azureml_list_clusters(platform, out, err);
}

int flow_get_cluster(struct flow *flow, const char *name, struct azureml_cluster *out, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct azureml_cluster){0};
    return rc < 0 ? rc : azureml_get_cluster(platform, name, out, err);
}

int flow_create_cluster(struct flow *flow, const struct azureml_new_cluster *cluster,
                        const struct azureml_follow *follow, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : azureml_create_cluster(platform, cluster, follow, err);
}

int flow_scale_cluster(struct flow *flow, const char *name, const struct azureml_scale *scale,
                       const struct azureml_follow *follow, struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : azureml_scale_cluster(platform, name, scale, follow, err);
}

int flow_delete_cluster(struct flow *flow, const char *name, const struct azureml_follow *follow,
                        struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    return rc < 0 ? rc : azureml_delete_cluster(platform, name, follow, err);
}

int flow_cluster_nodes(struct flow *flow, const char *name, struct azureml_node_list *out,
                       struct act_error *err)
{
    struct platform *platform;
    int rc = flow_platform(flow, &platform, err);

    *out = (struct azureml_node_list){0};
    return rc < 0 ? rc : azureml_cluster_nodes(platform, name, out, err);
}
