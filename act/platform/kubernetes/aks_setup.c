/* aks_setup.c - a new node pool, and where there is no cluster, a cluster for it. */
#include <string.h>

#include "platform/kubernetes/aks.h"

#define GROUP_VERSION "2021-04-01"
#define SYSTEM_POOL   "system"

enum { NAME_MAX_LEN = 12 };

/* ---- before it is made ---- */

static bool k8s_aks_setup_is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

    return *name >= 'a' && *name <= 'z' && !name[len] && len <= NAME_MAX_LEN;
}

/* Refuses options that managed clusters of Azure Machine Learning have, and node pools do not. */
static int check_strange(const struct platform_new_cluster *c, struct act_error *err)
{
    const struct {
        bool given;
        const char *option, *because;
    } rows[] = {
        {c->ssh_key, "--ssh-key", "nobody logs in to their nodes"},
        {c->identities && c->identities->n, "--identity", "their nodes have that of the cluster"},
        {c->node_image, "--node-image", "the service chooses what their nodes start from"},
        {c->no_public_ip, "--no-public-ip", "their nodes have no public address as it is"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].given)
            return act_error_set(err, ACT_USAGE, "%s has no effect on node pools: %s", rows[i].option, rows[i].because);
    return c->scale.idle_s ? aks_refuse_idle(err) : 0;
}

static int k8s_aks_setup_complete(const struct aks_keys *config, struct platform_new_cluster *c, struct act_error *err)
{
    if (!k8s_aks_setup_is_name(c->name))
        return act_error_set(err, ACT_USAGE,
                             "'%s' cannot be the name of a node pool: it has at most %d small letters and digits, and "
                             "begins with a letter",
                             c->name, NAME_MAX_LEN);
    if (!c->vm_size)
        c->vm_size = config->vm_size;
    if (c->scale.min_nodes < 0)
        c->scale.min_nodes = config->min;
    if (c->scale.max_nodes < 0)
        c->scale.max_nodes = config->max;
    if (!c->vm_size || c->scale.max_nodes < 1)
        return act_error_set(err, ACT_USAGE,
                             "a new node pool needs --vm-size and --max (or aks.vm_size and aks.max), as in 'a cluster "
                             "create %s --vm-size Standard_ND96asr_v4 --max 4'",
                             c->name);
    int rc = check_strange(c, err);
    return rc < 0 ? rc : platform_check_scale(AKS_NOUN, c->name, &c->scale, err);
}

static int k8s_aks_setup_find_location(struct aks *aks, struct act_error *err)
{
    CODEC_AUTOJSON json_t *group = NULL;
    ACT_AUTOFREE char *what = act_sprintf("look at the resource group '%s'", aks->config->resource_group);
    int rc = aks->location ? 0 : arm_get(aks->arm, aks->group, GROUP_VERSION, what, &group, err);

    if (rc == 0 && !aks->location)
        aks->location = act_strdup(codec_json_str(group, "location", ""));
    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "'az group create --name %s --location REGION' makes it",
                                                 aks->config->resource_group)
                                : rc;
}

/* Plans the cluster, where there is none yet. */
static int plan_cluster(struct aks *aks, struct platform_new_cluster *c, char **out_setup, struct act_error *err)
{
    const struct aks_keys *config = aks->config;
    int rc = c->location || config->location ? 0 : k8s_aks_setup_find_location(aks, err);

    if (rc == 0 && strcmp(c->name, SYSTEM_POOL) == 0)
        rc = act_error_set(err, ACT_USAGE, "the first node pool of a new cluster cannot be '%s': its own nodes are",
                           SYSTEM_POOL);
    if (rc == 0 && c->subnet)
        rc = act_error_set(err, ACT_USAGE, "--subnet is for a node pool of a cluster that is there, and '%s' is not",
                           config->cluster);
    if (rc < 0)
        return rc;
    c->with_owner = true;
    if (!c->location)
        c->location = config->location ? config->location : aks->location;
    *out_setup = act_sprintf("There is no cluster '%s' in the resource group '%s'. It is made in %s with one node %s "
                             "for itself, which costs money day and night, as its disk, address and load balancer do; "
                             "'az aks delete -g %s -n %s' ends that",
                             config->cluster, config->resource_group, c->location, config->system_vm_size,
                             config->resource_group, config->cluster);
    return 0;
}

int aks_prepare(struct platform *p, struct platform_new_cluster *c, char **out_setup, struct act_error *err)
{
    CODEC_AUTOJSON json_t *cluster = NULL;
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);

    if (rc == 0)
        rc = k8s_aks_setup_complete(aks->config, c, err);
    if (rc == 0)
        rc = aks_get_cluster(aks, &cluster, err);
    if (rc < 0 || !cluster)
        return rc < 0 ? rc : plan_cluster(aks, c, out_setup, err);
    return c->location ? act_error_set(err, ACT_USAGE,
                                       "--location is for a new cluster: the nodes of '%s' are where it is, in %s",
                                       aks->config->cluster, codec_json_str(cluster, "location", "its region"))
                       : 0;
}

/* ---- making it ---- */

/* Returns the labels as texts; numbers and truths are written as YAML has them. A new reference, NULL: *err. */
static json_t *labels_json(json_t *labels, struct act_error *err)
{
    json_t *out = json_object(), *value;
    const char *key;

    json_object_foreach(labels, key, value)
    {
        ACT_AUTOFREE char *text = json_is_string(value) ? codec_json_bytes_get(value) : codec_json_line(value);
        if (json_is_object(value) || json_is_array(value) || json_is_null(value)) {
            act_error_set(err, ACT_CONFIG, "'aks.node_labels': the value of '%s' must be text", key);
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, key, codec_json_bytes_new(text));
    }
    return out;
}

static void make_spot(json_t *pool)
{
    json_object_set_new(pool, "scaleSetPriority", json_string("Spot"));
    json_object_set_new(pool, "scaleSetEvictionPolicy", json_string("Delete"));
    json_object_set_new(pool, "spotMaxPrice", json_integer(-1)); /* at most the usual price */
}

/* Returns the pool's properties. A new reference, NULL: *err. */
static json_t *k8s_aks_setup_pool_json(const struct aks *aks, const struct platform_new_cluster *c,
                                       struct act_error *err)
{
    json_t *labels = labels_json(aks->config->node_labels, err);

    if (!labels)
        return NULL;
    json_t *pool = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:I, s:o}", "mode", AKS_USER, "type", "VirtualMachineScaleSets", "osType",
        "Linux", "vmSize", c->vm_size, "count", (json_int_t)c->scale.min_nodes, "enableAutoScaling", 1, "minCount",
        (json_int_t)c->scale.min_nodes, "maxCount", (json_int_t)c->scale.max_nodes, "nodeLabels", labels);
    if (aks->config->node_taints.n)
        json_object_set_new(pool, "nodeTaints", codec_json_strv_new(&aks->config->node_taints));
    if (c->low_priority)
        make_spot(pool);
    if (c->subnet)
        json_object_set_new(pool, "vnetSubnetID", json_string(c->subnet));
    if (json_object_size(c->tags))
        json_object_set(pool, "tags", c->tags);
    return pool;
}

/* Returns the body of a new cluster, with the driver that mounts containers of Blob Storage. Takes pool. */
static json_t *k8s_aks_setup_cluster_json(const struct aks *aks, const struct platform_new_cluster *c, json_t *pool)
{
    json_object_set_new(pool, "name", json_string(c->name));
    json_t *system =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "name", SYSTEM_POOL, "mode", AKS_SYSTEM, "type",
                  "VirtualMachineScaleSets", "osType", "Linux", "vmSize", aks->config->system_vm_size, "count", 1);
    return json_pack("{s:s, s:{s:s}, s:{s:s, s:b, s:[o,o], s:{s:s, s:s}, s:{s:{s:b}}}}", "location", c->location,
                     "identity", "type", "SystemAssigned", "properties", "dnsPrefix", aks->config->cluster,
                     "enableRBAC", 1, "agentPoolProfiles", system, pool, "networkProfile", "networkPlugin", "azure",
                     "networkPluginMode", "overlay", "storageProfile", "blobCSIDriver", "enabled", 1);
}

static int k8s_aks_setup_create_cluster(const struct aks *aks, const struct platform_new_cluster *c, json_t *pool,
                                        const struct platform_follow *follow, struct act_error *err)
{
    ACT_AUTOFREE char *what =
        act_sprintf("create the cluster '%s' with the node pool '%s'", aks->config->cluster, c->name);

    return aks_change(aks, "PUT", what, act_strdup(aks->cluster), k8s_aks_setup_cluster_json(aks, c, pool), follow,
                      err);
}

static int create_pool(const struct aks *aks, const struct platform_new_cluster *c, json_t *pool,
                       const struct platform_follow *follow, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("create the node pool '%s'", c->name);
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = aks_get_pool(aks, c->name, true, &there, err);

    if (rc == 0 && there)
        rc = platform_is_there(AKS_NOUN, c->name,
                               codec_json_str(json_object_get(there, "properties"), "provisioningState", "Succeeded"),
                               err);
    if (rc == 0)
        return aks_change(aks, "PUT", what, aks_pool_url(aks, c->name), json_pack("{s:o}", "properties", pool), follow,
                          err);
    json_decref(pool);
    return rc;
}

int aks_create(struct platform *p, const struct platform_new_cluster *c, const struct platform_follow *follow,
               struct act_error *err)
{
    struct aks *aks;
    int rc = aks_open(kubernetes_of(p), &aks, err);
    json_t *pool = rc == 0 ? k8s_aks_setup_pool_json(aks, c, err) : NULL;

    if (!pool)
        return rc < 0 ? rc : -ACT_CONFIG;
    return c->with_owner ? k8s_aks_setup_create_cluster(aks, c, pool, follow, err)
                         : create_pool(aks, c, pool, follow, err);
}
