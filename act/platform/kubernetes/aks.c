/* aks.c - how a cluster of Azure Kubernetes Service is reached, and what it is. */
#include "platform/kubernetes/aks.h"
#include "auth/cloud.h"
#include "config/config.h"

static int check_keys(const struct config *c, struct act_error *err)
{
    const struct {
        const char *name, *value;
    } rows[] = {{"aks.subscription", aks_keys(c)->subscription},
                {"aks.resource_group", aks_keys(c)->resource_group},
                {"aks.cluster", aks_keys(c)->cluster}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!rows[i].value || !*rows[i].value)
            return act_error_set(err, ACT_CONFIG,
                                 "'a cluster' needs '%s' in the cluster file '%s': it changes the node pools of a "
                                 "cluster of Azure Kubernetes Service",
                                 rows[i].name, c->file ? c->file : c->cluster);
    return 0;
}

static int k8s_aks_open_arm(struct kubernetes *k, struct arm **out, struct act_error *err)
{
    const struct config *c = k->config;
    ACT_AUTOFREE char *origin = config_origin(c, "aks.endpoint");
    ACT_AUTOFREE char *said_by = act_sprintf("'aks.endpoint' of '%s'", origin);
    const struct auth_cloud *cloud;
    int rc = auth_cloud_find(aks_keys(c)->endpoint, &cloud, err);

    return rc < 0 ? rc
                  : arm_new(&(struct arm_options){.http = services_http(k->base.services),
                                                  .tokens = services_tokens(k->base.services),
                                                  .endpoint = aks_keys(c)->endpoint,
                                                  .cloud = cloud,
                                                  .use_cli = c->use_cli_auth,
                                                  .said_by = said_by,
                                                  .is_own = config_is_said_by_user(c, "aks.endpoint")},
                            out, err);
}

int aks_open(struct kubernetes *k, struct aks **out, struct act_error *err)
{
    const struct aks_keys *c = aks_keys(k->config);
    struct arm *arm;
    int rc = k->aks ? 0 : check_keys(k->config, err);

    if (rc == 0 && !k->aks)
        rc = k8s_aks_open_arm(k, &arm, err);
    if (rc == 0 && !k->aks) {
        ACT_AUTOFREE char *subscription = arm_segment(c->subscription);
        ACT_AUTOFREE char *group = arm_segment(c->resource_group);
        ACT_AUTOFREE char *cluster = arm_segment(c->cluster);
        k->aks = act_calloc(1, sizeof(*k->aks));
        *k->aks = (struct aks){.config = c, .arm = arm};
        k->aks->group = act_sprintf("/subscriptions/%s/resourceGroups/%s", subscription, group);
        k->aks->cluster =
            act_sprintf("%s/providers/Microsoft.ContainerService/managedClusters/%s", k->aks->group, cluster);
    }
    *out = k->aks;
    return rc;
}

void aks_free(struct aks *aks)
{
    if (!aks)
        return;
    arm_free(aks->arm);
    free(aks->group);
    free(aks->cluster);
    free(aks->location);
    free(aks);
}

int aks_get_cluster(const struct aks *aks, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look at the cluster '%s'", aks->config->cluster);

    return arm_find(aks->arm, aks->cluster, AKS_VERSION, what, out, err);
}

int aks_hint_missing(const struct aks *aks, int rc, struct act_error *err)
{
    return rc == -ACT_NOT_FOUND ? act_error_hint(err,
                                                 "'aks' in the cluster file names it; 'a cluster create' makes the "
                                                 "cluster '%s' with a node pool",
                                                 aks->config->cluster)
                                : rc;
}

/* Adds a hint, as a cluster takes one change at a time. */
static int hint_pending(int rc, struct act_error *err)
{
    return rc < 0 && err && err->http_status == 409
               ? act_error_hint(err, "while another change of the cluster is under way, do it again when that is over; "
                                     "'a cluster list' shows the states")
               : rc;
}

int aks_change(const struct aks *aks, const char *method, const char *what, char *url, json_t *body,
               const struct platform_follow *follow, struct act_error *err)
{
    struct arm_call call = {.method = method, .what = what, .url = url, .api_version = AKS_VERSION, .body = body};

    return hint_pending(platform_change(aks->arm, &call, follow, err), err);
}
