/* aks_pools.c - the node pools of a cluster. */
#include <string.h>

#include "platform/kubernetes/aks.h"

char *aks_pool_url(const struct aks *aks, const char *pool)
{
    ACT_AUTOFREE char *name = arm_segment(pool);

    return act_sprintf("%s/agentPools/%s", aks->cluster, name);
}

/* ---- looking at them ---- */

/* Joins the texts of a list: "a, b". New string; NULL: the list is empty. */
static char *k8s_aks_pools_join(const json_t *list)
{
    struct act_buf out = {0};
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
        act_buf_addf(&out, "%s%s", i ? ", " : "", json_is_string(item) ? json_string_value(item) : "?");
    return out.data ? act_buf_steal(&out) : NULL;
}

static const char *k8s_aks_pools_state_of(const json_t *properties)
{
    const char *state = codec_json_str(properties, "provisioningState", NULL),
               *power = codec_json_str(json_object_get(properties, "powerState"), "code", "");

    return act_streq(state, "Succeeded") && strcmp(power, "Stopped") == 0 ? power : state;
}

static struct platform_cluster read_pool(const json_t *item)
{
    const json_t *p = json_object_get(item, "properties");
    bool scales = json_is_true(json_object_get(p, "enableAutoScaling"));

    return (struct platform_cluster){
        .name = act_strdup(codec_json_str(item, "name", "")),
        .type = codec_json_strdup(p, "mode"),
        .is_managed = true,
        .state = act_strdup(k8s_aks_pools_state_of(p)),
        .vm_size = codec_json_strdup(p, "vmSize"),
        .vm_priority = codec_json_strdup(p, "scaleSetPriority"),
        .autoscaler = act_strdup(scales ? "on" : "off"),
        .taints = k8s_aks_pools_join(json_object_get(p, "nodeTaints")),
        .min_nodes = scales ? codec_json_int(p, "minCount", -1) : -1,
        .max_nodes = scales ? codec_json_int(p, "maxCount", -1) : -1,
        .nodes = codec_json_int(p, "count", -1),
        .target_nodes = -1,
        .idle_s = -1,
        .preparing = -1,
        .running = -1,
        .idle = -1,
        .unusable = -1,
        .leaving = -1,
        .preempted = -1,
    };
}

static int take_pool(void *arg, const json_t *item, struct act_error *err)
{
    struct platform_clusters *out = arg;

    (void)err;
    ACT_PUSH(out->v, out->n, read_pool(item));
    return 0;
}

static int list_pools(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = act_sprintf("%s/agentPools", aks->cluster);
    ACT_AUTOFREE char *what = act_sprintf("list the node pools of the cluster '%s'", aks->config->cluster);
    rc = arm_each(aks->arm, url, AKS_VERSION, false, "value", what, take_pool, out, err);
    return aks_hint_missing(aks, rc, err);
}

int aks_get_pool(const struct aks *aks, const char *pool, bool missing_is_fine, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look at the node pool '%s' of the cluster '%s'", pool, aks->config->cluster);
    ACT_AUTOFREE char *url = aks_pool_url(aks, pool);
    int rc = (missing_is_fine ? arm_find : arm_get)(aks->arm, url, AKS_VERSION, what, out, err);

    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "'a cluster list' shows what is there") : rc;
}

static int get_pool(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *pool = NULL;
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);

    if (rc == 0)
        rc = aks_get_pool(aks, name, false, &pool, err);
    if (rc == 0)
        *out = read_pool(pool);
    return rc;
}

/* ---- changing them ---- */

/* A PUT replaces the pool: it goes back as it came, but for what the service alone may say. */
static json_t *writable(const json_t *pool)
{
    static const char *const fixed[] = {"provisioningState", "currentOrchestratorVersion", "nodeImageVersion"};
    json_t *properties = json_deep_copy(json_object_get(pool, "properties"));

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        json_object_del(properties, fixed[i]);
    return json_pack("{s:o}", "properties", properties);
}

static int64_t k8s_aks_pools_least_of(const json_t *properties)
{
    return strcmp(codec_json_str(properties, "mode", AKS_USER), AKS_SYSTEM) == 0;
}

static int check_least(const char *name, const json_t *properties, const struct platform_scale *scale,
                       struct act_error *err)
{
    if (scale->min_nodes >= k8s_aks_pools_least_of(properties))
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "node pool '%s' is a system pool, which the cluster itself needs: it cannot have fewer nodes "
                         "than 1",
                         name);
}

int aks_refuse_idle(struct act_error *err)
{
    return act_error_set(err, ACT_USAGE,
                         "--idle has no effect on node pools: when nodes go is a setting of the whole cluster, 'az aks "
                         "update --cluster-autoscaler-profile scale-down-unneeded-time=5m'");
}

/* Completes scale: what was not said stays as it is. */
static int k8s_aks_pools_complete(const char *name, const json_t *properties, struct platform_scale *scale,
                                  struct act_error *err)
{
    bool scales = json_is_true(json_object_get(properties, "enableAutoScaling"));

    if (scale->idle_s)
        return aks_refuse_idle(err);
    if (scale->min_nodes < 0)
        scale->min_nodes = scales ? codec_json_int(properties, "minCount", 0) : k8s_aks_pools_least_of(properties);
    if (scale->max_nodes < 0 && scales)
        scale->max_nodes = codec_json_int(properties, "maxCount", -1);
    if (scale->max_nodes < 1 && !scale->is_fixed)
        return act_error_set(err, ACT_USAGE, "node pool '%s' needs --max, of 1 or more, to be scaled by the cluster",
                             name);
    int rc = platform_check_scale(AKS_NOUN, name, scale, err);
    return rc < 0 ? rc : check_least(name, properties, scale, err);
}

/* While the autoscaler is on, count is its own to set; turning it on leaves count to it. */
static void k8s_aks_pools_apply(json_t *properties, const struct platform_scale *scale)
{
    json_object_set_new(properties, "enableAutoScaling", json_boolean(!scale->is_fixed));
    if (scale->is_fixed) {
        json_object_set_new(properties, "count", json_integer(scale->max_nodes));
        json_object_del(properties, "minCount");
        json_object_del(properties, "maxCount");
    } else {
        json_object_set_new(properties, "minCount", json_integer(scale->min_nodes));
        json_object_set_new(properties, "maxCount", json_integer(scale->max_nodes));
    }
}

static int scale_pool(struct platform *p, const char *name, const struct platform_scale *wanted,
                      const struct platform_follow *follow, struct act_error *err)
{
    CODEC_AUTOJSON json_t *pool = NULL;
    struct platform_scale scale = *wanted;
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);

    if (rc == 0)
        rc = aks_get_pool(aks, name, false, &pool, err);
    if (rc == 0)
        rc = k8s_aks_pools_complete(name, json_object_get(pool, "properties"), &scale, err);
    if (rc < 0)
        return rc;
    json_t *body = writable(pool);
    k8s_aks_pools_apply(json_object_get(body, "properties"), &scale);
    ACT_AUTOFREE char *what = act_sprintf("scale the node pool '%s'", name);
    return aks_change(aks, "PUT", what, aks_pool_url(aks, name), body, follow, err);
}

static int delete_pool(struct platform *p, const char *name, const struct platform_follow *follow,
                       struct act_error *err)
{
    CODEC_AUTOJSON json_t *pool = NULL;
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);

    if (rc == 0)
        rc = aks_get_pool(aks, name, false, &pool, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("delete the node pool '%s'", name);
    return aks_change(aks, "DELETE", what, aks_pool_url(aks, name), NULL, follow, err);
}

static const char *usual_pool(const struct config *config)
{
    return aks_keys(config)->pool;
}

static bool has_aks(const struct config *config)
{
    return aks_keys(config)->subscription || aks_keys(config)->resource_group || aks_keys(config)->cluster;
}

const struct platform_clusters_ops aks_clusters = {
    .words = {.noun = AKS_NOUN, .owner = "Kubernetes cluster", .key = "aks.pool", .usual = usual_pool},
    .has = has_aks,
    .list = list_pools,
    .get = get_pool,
    .prepare = aks_prepare,
    .create = aks_create,
    .scale = scale_pool,
    .remove = delete_pool,
    .nodes = aks_nodes,
    .login = aks_login,
};
