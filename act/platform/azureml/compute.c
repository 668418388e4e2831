/* compute.c - the managed clusters of a workspace. */
#include "platform/azureml/azureml.h"

#include <string.h>

#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml/azureml_internal.h"

#define MANAGED "AmlCompute"

static int open_managed(struct platform *p, struct azureml **out, struct arm **arm, struct act_error *err)
{
    const char *name = p->row->name;

    *out = azureml_of(p);
    *arm = NULL;
    if (strcmp(name, "aml") != 0)
        return act_error_set(
            err, ACT_CONFIG,
            "platform '%s' has no managed clusters: only a cluster file of platform 'aml' has", name);
    return azureml_arm(*out, arm, err);
}

static char *cluster_url(const struct azureml *a, const char *name, const char *rest)
{
    ACT_AUTOFREE char *escaped = http_encode(name, false);

    return azureml_url(a, "/computes/%s%s", escaped, rest);
}

/* ---- what there is ---- */

void azureml_cluster_release(struct azureml_cluster *c)
{
    free(c->name);
    free(c->type);
    free(c->location);
    free(c->state);
    free(c->error);
    free(c->vm_size);
    free(c->vm_priority);
    free(c->allocation);
    free(c->admin_user);
    *c = (struct azureml_cluster){0};
}

void azureml_clusters_release(struct azureml_clusters *clusters)
{
    for (size_t i = 0; i < clusters->n; i++)
        azureml_cluster_release(&clusters->v[i]);
    free(clusters->v);
    *clusters = (struct azureml_clusters){0};
}

bool azureml_cluster_is_managed(const struct azureml_cluster *cluster)
{
    return act_streq(cluster->type, MANAGED);
}

static char *copy(const json_t *object, const char *key)
{
    return act_strdup(codec_json_str(object, key, NULL));
}

/* "PT5M", "PT120S", "P1DT2H" in seconds; -1: it is none. */
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

/* The first thing that is said in a list of errors. */
static char *first_error(const json_t *errors)
{
    const json_t *first = json_array_get(errors, 0);
    char code[64];

    if (!first)
        return NULL;
    char *text = arm_error_text(first, code, sizeof(code));
    return text ? text : codec_json_line(first);
}

static struct azureml_cluster read_cluster(const json_t *item)
{
    const json_t *resource = json_object_get(item, "properties"),
                 *own = json_object_get(resource, "properties"),
                 *scale = json_object_get(own, "scaleSettings"),
                 *counts = json_object_get(own, "nodeStateCounts");
    struct azureml_cluster c = {
        .name = act_strdup(codec_json_str(item, "name", "")),
        .type = copy(resource, "computeType"),
        .location = copy(item, "location"),
        .state = copy(resource, "provisioningState"),
        .error = first_error(json_object_get(resource, "provisioningErrors")),
        .vm_size = copy(own, "vmSize"),
        .vm_priority = copy(own, "vmPriority"),
        .allocation = copy(own, "allocationState"),
        .admin_user = copy(json_object_get(own, "userAccountCredentials"), "adminUserName"),
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
    struct azureml_clusters *out = arg;

    (void)err;
    ACT_PUSH(out->v, out->n, read_cluster(item));
    return 0;
}

int azureml_list_clusters(struct platform *p, struct azureml_clusters *out, struct act_error *err)
{
    struct azureml *a;
    struct arm *arm;
    int rc = open_managed(p, &a, &arm, err);

    *out = (struct azureml_clusters){0};
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = azureml_url(a, "/computes");
    rc = arm_each(arm, url, a->api_version, false, "value", "list the clusters", take_cluster, out, err);
    if (rc < 0)
        azureml_clusters_release(out);
    return rc;
}

/* The resource; with missing_is_fine *out is NULL when there is none. */
static int get_resource(const struct azureml *a, struct arm *arm, const char *name, bool missing_is_fine,
                        json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("look at the cluster '%s'", name);
    struct arm_call call = {.method = "GET",
                            .what = what,
                            .url = cluster_url(a, name, ""),
                            .api_version = a->api_version,
                            .missing_is_fine = missing_is_fine};
    int rc = arm_do(arm, &call, err);

    *out = rc == 0 ? json_incref(call.answer) : NULL;
    if (rc == 0 && !*out && !(missing_is_fine && call.status == 404))
        rc = act_error_set(err, ACT_FAIL, "cannot %s: the answer is empty", what);
    arm_call_release(&call);
    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "'a cluster list' shows what is there") : rc;
}

int azureml_get_cluster(struct platform *p, const char *name, struct azureml_cluster *out,
                        struct act_error *err)
{
    CODEC_AUTOJSON json_t *resource = NULL;
    struct azureml *a;
    struct arm *arm;
    int rc = open_managed(p, &a, &arm, err);

    *out = (struct azureml_cluster){0};
    if (rc == 0)
        rc = get_resource(a, arm, name, false, &resource, err);
    if (rc == 0)
        *out = read_cluster(resource);
    return rc;
}

/* What is changed must be a managed cluster. */
static int get_managed(const struct azureml *a, struct arm *arm, const char *name,
                       struct azureml_cluster *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *resource = NULL;
    int rc = get_resource(a, arm, name, false, &resource, err);

    *out = (struct azureml_cluster){0};
    if (rc < 0)
        return rc;
    *out = read_cluster(resource);
    if (azureml_cluster_is_managed(out))
        return 0;
    rc = act_error_set(err, ACT_CONFIG, "'%s' is of type '%s', not a managed cluster: ACT does not change it",
                       name, out->type ? out->type : "unknown");
    azureml_cluster_release(out);
    return rc;
}

/* ---- changing it ---- */

/* Sends a change and follows it. Takes url and body. */
static int change(const struct azureml *a, struct arm *arm, const char *method, const char *what, char *url,
                  json_t *body, const struct azureml_follow *follow, struct act_error *err)
{
    struct arm_call call = {
        .method = method, .what = what, .url = url, .api_version = a->api_version, .body = body};
    int rc = arm_do(arm, &call, err);

    if (rc == 0 && !follow->no_wait && follow->progress)
        follow->progress(follow->arg, "Accepted", -1);
    if (rc == 0 && !follow->no_wait)
        rc = arm_follow(arm, &call, 0, follow->progress, follow->arg, NULL, err);
    arm_call_release(&call);
    return rc;
}

static json_t *scale_json(const struct azureml_scale *scale)
{
    json_t *json = json_pack("{s:I, s:I}", "minNodeCount", (json_int_t)scale->min_nodes, "maxNodeCount",
                             (json_int_t)scale->max_nodes);

    if (scale->idle_s > 0) {
        ACT_AUTOFREE char *iso = act_sprintf("PT%lldS", (long long)scale->idle_s);
        json_object_set_new(json, "nodeIdleTimeBeforeScaleDown", json_string(iso));
    }
    return json;
}

static int check_scale(const char *name, const struct azureml_scale *scale, struct act_error *err)
{
    if (scale->min_nodes > scale->max_nodes)
        return act_error_set(
            err, ACT_USAGE, "cluster '%s' cannot have at least %lld and at most %lld nodes; see --min, --max",
            name, (long long)scale->min_nodes, (long long)scale->max_nodes);
    return 0;
}

static json_t *new_cluster_json(const struct azureml_new_cluster *c, const char *location,
                                const struct azureml_scale *scale)
{
    json_t *own = json_pack("{s:s, s:s, s:s, s:o}", "vmSize", c->vm_size, "vmPriority",
                            c->low_priority ? "LowPriority" : "Dedicated", "osType", "Linux", "scaleSettings",
                            scale_json(scale));

    if (c->ssh_key) {
        json_object_set_new(
            own, "userAccountCredentials",
            json_pack("{s:s, s:s}", "adminUserName", c->admin_user, "adminUserSshPublicKey", c->ssh_key));
        json_object_set_new(own, "remoteLoginPortPublicAccess", json_string("Enabled"));
    }
    return json_pack("{s:s, s:{s:s, s:s, s:o}}", "location", location, "properties", "computeType", MANAGED,
                     "description", "created by act", "properties", own);
}

static int check_free(const struct azureml *a, struct arm *arm, const char *name, struct act_error *err)
{
    CODEC_AUTOJSON json_t *there = NULL;
    int rc = get_resource(a, arm, name, true, &there, err);

    if (rc < 0 || !there)
        return rc;
    const char *state =
        codec_json_str(json_object_get(there, "properties"), "provisioningState", "Succeeded");
    if (strcmp(state, "Failed") == 0)
        return act_error_set(err, ACT_FAIL,
                             "cluster '%s' is there already, and '%s'; 'a cluster delete %s' removes it",
                             name, state, name);
    return act_error_set(err, ACT_FAIL,
                         "cluster '%s' is there already; 'a cluster autoscale %s' changes its size", name,
                         name);
}

int azureml_create_cluster(struct platform *p, const struct azureml_new_cluster *c,
                           const struct azureml_follow *follow, struct act_error *err)
{
    struct azureml_scale scale = c->scale;
    const json_t *workspace = NULL;
    struct azureml *a;
    struct arm *arm;
    int rc = open_managed(p, &a, &arm, err);

    if (scale.min_nodes < 0)
        scale.min_nodes = 0;
    if (rc == 0)
        rc = check_scale(c->name, &scale, err);
    if (rc == 0)
        rc = check_free(a, arm, c->name, err);
    if (rc == 0 && !c->location)
        rc = azureml_workspace(a, &workspace, err);
    if (rc < 0)
        return rc;
    const char *location = c->location ? c->location : codec_json_str(workspace, "location", "");
    ACT_AUTOFREE char *what = act_sprintf("create the cluster '%s'", c->name);
    return change(a, arm, "PUT", what, cluster_url(a, c->name, ""), new_cluster_json(c, location, &scale),
                  follow, err);
}

/* One that is there already, as it is. */
static int open_cluster(struct platform *p, const char *name, struct azureml **a, struct arm **arm,
                        struct azureml_cluster *cluster, struct act_error *err)
{
    int rc = open_managed(p, a, arm, err);

    return rc < 0 ? rc : get_managed(*a, *arm, name, cluster, err);
}

int azureml_scale_cluster(struct platform *p, const char *name, const struct azureml_scale *wanted,
                          const struct azureml_follow *follow, struct act_error *err)
{
    struct azureml_scale scale = *wanted;
    struct azureml_cluster cluster = {0};
    struct azureml *a;
    struct arm *arm;
    int rc = open_cluster(p, name, &a, &arm, &cluster, err);

    if (rc < 0)
        return rc;
    if (scale.min_nodes < 0)
        scale.min_nodes = cluster.min_nodes > 0 ? cluster.min_nodes : 0;
    if (scale.max_nodes < 0)
        scale.max_nodes = cluster.max_nodes > 0 ? cluster.max_nodes : 0;
    if (scale.idle_s == 0)
        scale.idle_s = cluster.idle_s;
    azureml_cluster_release(&cluster);
    rc = check_scale(name, &scale, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("scale the cluster '%s'", name);
    return change(a, arm, "PATCH", what, cluster_url(a, name, ""),
                  json_pack("{s:{s:{s:o}}}", "properties", "properties", "scaleSettings", scale_json(&scale)),
                  follow, err);
}

int azureml_delete_cluster(struct platform *p, const char *name, const struct azureml_follow *follow,
                           struct act_error *err)
{
    struct azureml_cluster cluster = {0};
    struct azureml *a;
    struct arm *arm;
    int rc = open_cluster(p, name, &a, &arm, &cluster, err);

    if (rc < 0)
        return rc;
    azureml_cluster_release(&cluster);
    ACT_AUTOFREE char *what = act_sprintf("delete the cluster '%s'", name);
    return change(a, arm, "DELETE", what, cluster_url(a, name, "?underlyingResourceAction=Delete"), NULL,
                  follow, err);
}

/* ---- nodes ---- */

void azureml_node_list_release(struct azureml_node_list *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        free(nodes->v[i].id);
        free(nodes->v[i].state);
        free(nodes->v[i].public_address);
        free(nodes->v[i].private_address);
        free(nodes->v[i].run);
    }
    free(nodes->v);
    *nodes = (struct azureml_node_list){0};
}

static int take_node(void *arg, const json_t *item, struct act_error *err)
{
    struct azureml_node_list *out = arg;

    (void)err;
    ACT_PUSH(out->v, out->n,
             (struct azureml_node){.id = copy(item, "nodeId"),
                                   .state = copy(item, "nodeState"),
                                   .public_address = copy(item, "publicIpAddress"),
                                   .private_address = copy(item, "privateIpAddress"),
                                   .run = copy(item, "runId"),
                                   .port = codec_json_int(item, "port", 0)});
    return 0;
}

int azureml_cluster_nodes(struct platform *p, const char *name, struct azureml_node_list *out,
                          struct act_error *err)
{
    struct azureml *a;
    struct arm *arm;
    int rc = open_managed(p, &a, &arm, err);

    *out = (struct azureml_node_list){0};
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = cluster_url(a, name, "/listNodes");
    ACT_AUTOFREE char *what = act_sprintf("list the nodes of the cluster '%s'", name);
    rc = arm_each(arm, url, a->api_version, true, "nodes", what, take_node, out, err);
    if (rc < 0)
        azureml_node_list_release(out);
    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "'a cluster list' shows what is there") : rc;
}
