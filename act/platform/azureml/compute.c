/* compute.c - the managed clusters of a workspace.
 *
 * Source: learn.microsoft.com/rest/api/azureml/compute; making, changing and deleting one as it was recorded
 * (test_aml_compute_create_and_delete; arm.h names where): 201, 201 and 202 with Azure-AsyncOperation, no Retry-After.
 */
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

#define MANAGED "AmlCompute"
#define NOUN    "cluster"

static char *cluster_url(const struct azureml *a, const char *name, const char *rest)
{
    ACT_AUTOFREE char *escaped = http_encode(name, false);

    return azureml_url(a, "/computes/%s%s", escaped, rest);
}

/* ---- the existing clusters ---- */

/* Returns "PT5M", "PT120S", "P1DT2H" in seconds; -1: it is none. */
static int64_t seconds_of(const char *iso)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'D', 86400}, {'H', 3600}, {'M', 60}, {'S', 1}};
    const char *c = iso + 1;
    int64_t sum = 0;

    if (*iso != 'P')
        return -1;
    for (size_t i = 0; *c; c++) {
        char *end;
        if (*c == 'T')
            continue;
        int64_t n = strtoll(c, &end, 10);
        while (i < sizeof(units) / sizeof(units[0]) && units[i].unit != *end)
            i++;
        if (end == c || n < 0 || n > 1 << 24 || i == sizeof(units) / sizeof(units[0]))
            return -1;
        sum += n * units[i].seconds;
        c = end;
    }
    return sum;
}

/* Returns the first message in a list of errors. */
static char *first_error(const json_t *errors)
{
    const json_t *first = json_array_get(errors, 0);
    char code[64];

    if (!first)
        return NULL;
    char *text = arm_error_text(first, code, sizeof(code));
    return text ? text : codec_json_line(first);
}

static struct platform_cluster aml_compute_read_cluster(const json_t *item)
{
    const json_t *resource = json_object_get(item, "properties"), *own = json_object_get(resource, "properties"),
                 *scale = json_object_get(own, "scaleSettings"), *counts = json_object_get(own, "nodeStateCounts");
    struct platform_cluster c = {
        .name = act_strdup(codec_json_str(item, "name", "")),
        .type = codec_json_strdup(resource, "computeType"),
        .is_managed = act_streq(codec_json_str(resource, "computeType", NULL), MANAGED),
        .location = codec_json_strdup(item, "location"),
        .state = codec_json_strdup(resource, "provisioningState"),
        .error = first_error(json_object_get(resource, "provisioningErrors")),
        .vm_size = codec_json_strdup(own, "vmSize"),
        .vm_priority = codec_json_strdup(own, "vmPriority"),
        .allocation = codec_json_strdup(own, "allocationState"),
        .admin_user = codec_json_strdup(json_object_get(own, "userAccountCredentials"), "adminUserName"),
        .min_nodes = codec_json_int(scale, "minNodeCount", -1),
        .max_nodes = codec_json_int(scale, "maxNodeCount", -1),
        .idle_s = seconds_of(codec_json_str(scale, "nodeIdleTimeBeforeScaleDown", "")),
        .nodes = codec_json_int(own, "currentNodeCount", -1),
        .target_nodes = codec_json_int(own, "targetNodeCount", -1),
        .preparing = codec_json_int(counts, "preparingNodeCount", -1),
        .running = codec_json_int(counts, "runningNodeCount", -1),
        .idle = codec_json_int(counts, "idleNodeCount", -1),
        .unusable = codec_json_int(counts, "unusableNodeCount", -1),
        .leaving = codec_json_int(counts, "leavingNodeCount", -1),
        .preempted = codec_json_int(counts, "preemptedNodeCount", -1),
    };

    if (!c.error)
        c.error = first_error(json_object_get(own, "errors"));
    return c;
}

static int take_cluster(void *arg, const json_t *item, struct act_error *err)
{
    struct platform_clusters *out = arg;

    (void)err;
    ACT_PUSH(out->v, out->n, aml_compute_read_cluster(item));
    return 0;
}

static int list_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);

    return azureml_each(a, azureml_url(a, "/computes"), "list the clusters", take_cluster, out, err);
}

/* ---- those of the whole subscription ---- */

struct all_clusters {
    struct azureml *a;
    struct platform_clusters *out;
};

/* Returns "rg/ws" of a workspace's id. New string; NULL: it is none. */
static char *owner_of(const char *id)
{
    static const char groups[] = "/resourceGroups/", workspaces[] = "/workspaces/";
    const char *group = id ? strcasestr(id, groups) : NULL, *name = id ? strcasestr(id, workspaces) : NULL;

    if (!group || !name)
        return NULL;
    group += strlen(groups);
    return act_sprintf("%.*s/%s", (int)strcspn(group, "/"), group, name + strlen(workspaces));
}

/* One that the user may not read is no reason to hide the others. */
static int take_workspace(void *arg, const json_t *item, struct act_error *err)
{
    struct all_clusters *all = arg;
    const char *id = codec_json_str(item, "id", NULL);
    ACT_AUTOFREE char *owner = owner_of(id);
    struct act_error why = {0};

    (void)err;
    if (!owner)
        return 0;
    ACT_AUTOFREE char *what = act_sprintf("list the clusters of the workspace '%s'", owner);
    size_t first = all->out->n;
    if (azureml_each(all->a, act_sprintf("%s/computes", id), what, take_cluster, all->out, &why) < 0)
        act_warn("%s", act_error_text(&why));
    for (size_t i = first; i < all->out->n; i++)
        all->out->v[i].owner = act_strdup(owner);
    return 0;
}

static int list_all_clusters(struct platform *p, struct platform_clusters *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct all_clusters all = {.a = a, .out = out};

    return azureml_each(a,
                        act_sprintf("/subscriptions/%s/providers/Microsoft.MachineLearningServices/workspaces",
                                    aml_config_keys(a->config)->subscription_id),
                        "list the workspaces of the subscription", take_workspace, &all, err);
}

static int hint_list(int rc, struct act_error *err)
{
    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "'a cluster list' shows what is there") : rc;
}

static int get_cluster(struct platform *p, const char *name, struct platform_cluster *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    CODEC_AUTOJSON json_t *resource = NULL;
    ACT_AUTOFREE char *what = act_sprintf("look at the cluster '%s'", name), *url = cluster_url(a, name, "");
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    if (rc == 0)
        rc = hint_list(arm_get(arm, url, a->api_version, what, &resource, err), err);
    if (rc == 0)
        *out = aml_compute_read_cluster(resource);
    return rc;
}

/* Refuses all but managed clusters, which alone can be changed. *out: how the cluster is scaled. */
static int get_managed(struct platform *p, const char *name, struct platform_scale *out, struct act_error *err)
{
    ACT_AUTO(platform_cluster) cluster = {0};
    int rc = get_cluster(p, name, &cluster, err);

    if (rc == 0 && !cluster.is_managed)
        rc = act_error_set(err, ACT_CONFIG, "'%s' is of type '%s', not a managed cluster: ACT does not change it", name,
                           cluster.type ? cluster.type : "unknown");
    *out = (struct platform_scale){.min_nodes = cluster.min_nodes > 0 ? cluster.min_nodes : 0,
                                   .max_nodes = cluster.max_nodes > 0 ? cluster.max_nodes : 0,
                                   .idle_s = cluster.idle_s};
    return rc;
}

/* ---- changing it ---- */

/* Sends a change and follows it. Takes url and body. */
static int aml_compute_change(const struct azureml *a, const char *method, const char *what, char *url, json_t *body,
                              const struct platform_follow *follow, struct act_error *err)
{
    struct arm_call call = {.method = method, .what = what, .url = url, .api_version = a->api_version, .body = body};

    return platform_change(a->arm, &call, follow, err);
}

static json_t *scale_json(const struct platform_scale *scale)
{
    json_t *json = json_pack("{s:I, s:I}", "minNodeCount", (json_int_t)scale->min_nodes, "maxNodeCount",
                             (json_int_t)scale->max_nodes);

    if (scale->idle_s > 0) {
        ACT_AUTOFREE char *iso = act_sprintf("PT%lldS", (long long)scale->idle_s);
        json_object_set_new(json, "nodeIdleTimeBeforeScaleDown", json_string(iso));
    }
    return json;
}

/* Adds what describes a cluster besides its size. */
static void add_network(json_t *own, const struct platform_new_cluster *c)
{
    if (c->subnet)
        json_object_set_new(own, "subnet", json_pack("{s:s}", "id", c->subnet));
    if (c->node_image)
        json_object_set_new(own, "virtualMachineImage", json_pack("{s:s}", "id", c->node_image));
    if (c->no_public_ip)
        json_object_set_new(own, "enableNodePublicIp", json_false());
}

/* NULL: the nodes have none. */
static json_t *aml_compute_identity_json(const struct act_strv *identities)
{
    json_t *users = json_object();
    bool of_its_own = false;

    for (size_t i = 0; identities && i < identities->n; i++)
        if (strcmp(identities->v[i], "system") == 0)
            of_its_own = true;
        else
            json_object_set_new(users, identities->v[i], json_object());
    if (json_object_size(users) == 0) {
        json_decref(users);
        return of_its_own ? json_pack("{s:s}", "type", "SystemAssigned") : NULL;
    }
    return json_pack("{s:s, s:o}", "type", of_its_own ? "SystemAssigned,UserAssigned" : "UserAssigned",
                     "userAssignedIdentities", users);
}

static json_t *new_cluster_json(const struct platform_new_cluster *c, const char *location,
                                const struct platform_scale *scale)
{
    json_t *own =
        json_pack("{s:s, s:s, s:s, s:o}", "vmSize", c->vm_size, "vmPriority",
                  c->low_priority ? "LowPriority" : "Dedicated", "osType", "Linux", "scaleSettings", scale_json(scale));

    if (c->ssh_key) {
        json_object_set_new(
            own, "userAccountCredentials",
            json_pack("{s:s, s:s}", "adminUserName", c->admin_user, "adminUserSshPublicKey", c->ssh_key));
        json_object_set_new(own, "remoteLoginPortPublicAccess", json_string("Enabled"));
    }
    add_network(own, c);
    json_t *body = json_pack("{s:s, s:{s:s, s:s, s:o}}", "location", location, "properties", "computeType", MANAGED,
                             "description", "created by act", "properties", own);
    json_t *identity = aml_compute_identity_json(c->identities);
    if (identity)
        json_object_set_new(body, "identity", identity);
    if (json_object_size(c->tags))
        json_object_set(body, "tags", c->tags);
    return body;
}

static int aml_compute_check_free(struct azureml *a, const char *name, struct act_error *err)
{
    CODEC_AUTOJSON json_t *there = NULL;
    ACT_AUTOFREE char *what = act_sprintf("look at the cluster '%s'", name);
    int rc = azureml_find(a, what, cluster_url(a, name, ""), &there, err);

    if (rc < 0 || !there)
        return rc;
    return platform_is_there(
        NOUN, name, codec_json_str(json_object_get(there, "properties"), "provisioningState", "Succeeded"), err);
}

static bool aml_compute_is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

    return *name && strchr("0123456789-", *name) == NULL && strspn(name, letters) == strlen(name);
}

static int prepare_cluster(struct platform *p, struct platform_new_cluster *c, char **out_setup, struct act_error *err)
{
    (void)p;
    *out_setup = NULL;
    if (!aml_compute_is_name(c->name))
        return act_error_set(
            err, ACT_USAGE,
            "'%s' cannot be the name of a cluster: it has letters, digits and '-', and begins with a letter", c->name);
    if (!c->vm_size || c->scale.max_nodes < 1)
        return act_error_set(err, ACT_USAGE,
                             "a new cluster needs --vm-size and --max, as in 'a cluster create %s --vm-size "
                             "STANDARD_NC6 --max 4'",
                             c->name);
    return 0;
}

static int aml_compute_create_cluster(struct platform *p, const struct platform_new_cluster *c,
                                      const struct platform_follow *follow, struct act_error *err)
{
    struct platform_scale scale = c->scale;
    const json_t *workspace = NULL;
    struct azureml *a = azureml_of(p);

    if (scale.min_nodes < 0)
        scale.min_nodes = 0;
    int rc = platform_check_scale(NOUN, c->name, &scale, err);
    if (rc == 0)
        rc = aml_compute_check_free(a, c->name, err);
    if (rc == 0 && !c->location)
        rc = azureml_workspace(a, &workspace, err);
    if (rc < 0)
        return rc;
    const char *location = c->location ? c->location : codec_json_str(workspace, "location", "");
    ACT_AUTOFREE char *what = act_sprintf("create the cluster '%s'", c->name);
    return aml_compute_change(a, "PUT", what, cluster_url(a, c->name, ""), new_cluster_json(c, location, &scale),
                              follow, err);
}

static int scale_cluster(struct platform *p, const char *name, const struct platform_scale *wanted,
                         const struct platform_follow *follow, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct platform_scale scale;
    int rc = get_managed(p, name, &scale, err);

    if (rc < 0)
        return rc;
    if (wanted->min_nodes >= 0)
        scale.min_nodes = wanted->min_nodes;
    if (wanted->max_nodes >= 0)
        scale.max_nodes = wanted->max_nodes;
    if (wanted->idle_s != 0)
        scale.idle_s = wanted->idle_s;
    rc = platform_check_scale(NOUN, name, &scale, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("scale the cluster '%s'", name);
    return aml_compute_change(
        a, "PATCH", what, cluster_url(a, name, ""),
        json_pack("{s:{s:{s:o}}}", "properties", "properties", "scaleSettings", scale_json(&scale)), follow, err);
}

static int delete_cluster(struct platform *p, const char *name, const struct platform_follow *follow,
                          struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct platform_scale ignored;
    int rc = get_managed(p, name, &ignored, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("delete the cluster '%s'", name);
    return aml_compute_change(a, "DELETE", what, cluster_url(a, name, "?underlyingResourceAction=Delete"), NULL, follow,
                              err);
}

/* ---- nodes ---- */

static int aml_compute_take_node(void *arg, const json_t *item, struct act_error *err)
{
    struct platform_cluster_nodes *out = arg;

    (void)err;
    ACT_PUSH(out->v, out->n,
             (struct platform_cluster_node){.id = codec_json_strdup(item, "nodeId"),
                                            .state = codec_json_strdup(item, "nodeState"),
                                            .public_address = codec_json_strdup(item, "publicIpAddress"),
                                            .private_address = codec_json_strdup(item, "privateIpAddress"),
                                            .run = codec_json_strdup(item, "runId"),
                                            .port = codec_json_int(item, "port", 0)});
    return 0;
}

static int aml_compute_list_nodes(struct platform *p, const char *name, struct platform_cluster_nodes *out,
                                  struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    ACT_AUTOFREE char *url = cluster_url(a, name, "");
    ACT_AUTOFREE char *what = act_sprintf("list the nodes of the cluster '%s'", name);

    return hint_list(azureml_each_node(a, url, what, aml_compute_take_node, out, err), err);
}

/* The file may have its whole id. */
static const char *usual_cluster(const struct config *config)
{
    return config->compute_target ? act_path_basename(config->compute_target) : NULL;
}

const struct platform_clusters_ops azureml_clusters = {
    .words = {.noun = NOUN, .owner = "workspace", .key = "compute_target", .usual = usual_cluster},
    .list = list_clusters,
    .list_all = list_all_clusters,
    .get = get_cluster,
    .prepare = prepare_cluster,
    .create = aml_compute_create_cluster,
    .scale = scale_cluster,
    .remove = delete_cluster,
    .nodes = aml_compute_list_nodes,
};
