/* azureml_cluster.c - the nodes of a run, a shell on one of them, what the compute is doing, who runs longest on it.
 *
 * Source: learn.microsoft.com/rest/api/azureml/compute (Get, List Nodes); of virtual clusters only the original's requests
 * are known.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
#include "platform/azureml_internal.h"

/* ---- the compute ---- */

/* properties.properties of a managed cluster; NULL for what has none. */
static int get_compute(struct azureml *a, json_t **out, struct act_error *err)
{
    const char *target = a->config->compute_target;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = NULL;
    if (rc == 0 && !target)
        rc = act_error_set(err, ACT_CONFIG,
                           "the cluster '%s' has no compute_target: serverless compute has no nodes",
                           a->config->cluster);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name = http_encode(target, false);
    ACT_AUTOFREE char *url = azureml_url(a, "/computes/%s", name);
    ACT_AUTOFREE char *what = act_sprintf("look at the compute '%s'", target);
    return arm_get(arm, url, a->api_version, what, out, err);
}

/* ---- nodes of a run ---- */

struct node_list {
    const struct azureml *a;
    const char *id;
    struct platform_nodes *out;
    int procs_per_node, gpus_per_node;
};

static int take_node(void *arg, const json_t *item, struct act_error *err)
{
    struct node_list *l = arg;
    struct platform_nodes *out = l->out;

    (void)err;
    if (strcmp(codec_json_str(item, "runId", ""), l->id) != 0)
        return 0;
    out->v = act_realloc(out->v, (out->n + 1) * sizeof(*out->v));
    out->v[out->n] = (struct platform_node){.name = act_strdup(codec_json_str(item, "nodeId", "?")),
                                            .state = act_strdup(codec_json_str(item, "nodeState", "unknown")),
                                            .rank = (int)out->n,
                                            .first_rank = (int)out->n * l->procs_per_node,
                                            .n_ranks = l->procs_per_node,
                                            .gpus = l->gpus_per_node};
    out->n++;
    return 0;
}

static int each_node(struct azureml *a, int (*each)(void *arg, const json_t *item, struct act_error *err),
                     void *arg, struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    if (rc == 0 && (a->kind != AZUREML_MANAGED || !a->config->compute_target))
        rc = act_error_set(err, ACT_FAIL, "platform '%s' does not tell its nodes", a->base.ops->name);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name = http_encode(a->config->compute_target, false);
    ACT_AUTOFREE char *url = azureml_url(a, "/computes/%s/listNodes", name);
    return arm_each(arm, url, a->api_version, true, "nodes", "list the nodes", each, arg, err);
}

int azureml_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct run_spec spec;
    int rc = azureml_spec(p, id, &spec, err);

    if (rc < 0)
        return rc;
    struct node_list list = {.a = a,
                             .id = id,
                             .out = out,
                             .procs_per_node = spec.procs_per_node,
                             .gpus_per_node = spec.gpus_per_node};
    rc = each_node(a, take_node, &list, err);
    run_spec_release(&spec);
    return rc;
}

/* ---- a shell ---- */

struct address {
    const char *id, *node;
    int at;
    char *host;
    int64_t port;
};

static int take_address(void *arg, const json_t *item, struct act_error *err)
{
    struct address *w = arg;
    const char *name = codec_json_str(item, "nodeId", "");
    char number[16];

    (void)err;
    if (strcmp(codec_json_str(item, "runId", ""), w->id) != 0)
        return 0;
    snprintf(number, sizeof(number), "%d", w->at++);
    if (w->node && strcmp(w->node, name) != 0 && strcmp(w->node, number) != 0)
        return 0;
    w->host =
        act_strdup(codec_json_str(item, "publicIpAddress", codec_json_str(item, "privateIpAddress", "")));
    w->port = codec_json_int(item, "port", 22);
    return 1;
}

/* What may stand in an address or a user name: they become arguments of ssh. */
static bool is_plain(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:";

    return text && *text && *text != '-' && strspn(text, letters) == strlen(text);
}

int azureml_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                  struct act_strv *out_argv, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct address where = {.id = id, .node = node};
    CODEC_AUTOJSON json_t *compute = NULL;
    int rc = each_node(a, take_address, &where, err);
    ACT_AUTOFREE char *host = where.host;

    if (rc == 0 && !host)
        rc = act_error_set(err, ACT_NOT_FOUND, "run '%s' has no %s%s now; 'a nodes' lists them", id,
                           node ? "node " : "node", node ? node : "");
    if (rc == 0)
        rc = get_compute(a, &compute, err);
    if (rc < 0)
        return rc;
    const json_t *cluster = json_object_get(json_object_get(compute, "properties"), "properties");
    const char *user =
        codec_json_str(json_object_get(cluster, "userAccountCredentials"), "adminUserName", "azureuser");
    if (!is_plain(host) || !is_plain(user))
        return act_error_set(err, ACT_FAIL, "the node has no address that ssh can use: '%s@%s'", user, host);
    act_strv_push(out_argv, "ssh");
    act_strv_push(out_argv, "-p");
    act_strv_pushf(out_argv, "%lld", (long long)where.port);
    act_strv_pushf(out_argv, "%s@%s", user, host);
    for (size_t i = 0; command && i < command->n; i++)
        act_strv_push(out_argv, command->v[i]);
    return 0;
}

/* ---- summary ---- */

static int count(const json_t *counts, const char *key)
{
    int64_t n = codec_json_int(counts, key, 0);

    return n > 0 && n < 1 << 24 ? (int)n : 0;
}

/* As the original counted: what could be used is the maximum less what is in use or broken. */
static void summarize_managed(const struct azureml *a, const json_t *cluster, struct platform_pool *out)
{
    const json_t *counts = json_object_get(cluster, "nodeStateCounts");
    int per_node = a->config->gpu_per_node > 0 ? (int)a->config->gpu_per_node : 1;
    int most = count(json_object_get(cluster, "scaleSettings"), "maxNodeCount");

    out->nodes_down = count(counts, "unusableNodeCount") + count(counts, "leavingNodeCount") +
                      count(counts, "preemptedNodeCount");
    out->nodes_busy = count(counts, "runningNodeCount") + count(counts, "preparingNodeCount");
    out->nodes = most;
    out->nodes_idle =
        most - out->nodes_down - out->nodes_busy > 0 ? most - out->nodes_down - out->nodes_busy : 0;
    out->gpus = out->nodes * per_node;
    out->gpus_idle = out->nodes_idle * per_node;
    out->gpus_busy = out->nodes_busy * per_node;
    out->gpus_down = out->nodes_down * per_node;
}

static int summarize_virtual(struct azureml *a, struct platform_pool *out, struct act_error *err)
{
    static const char version[] = "2021-03-01-preview";
    const char *end = strstr(a->workspace, "/workspaces/"), *tier = a->config->singularity_sla_tier;
    CODEC_AUTOJSON json_t *answer = NULL;
    size_t i;
    json_t *limit;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name = http_encode(a->config->compute_target ? a->config->compute_target : "", false);
    ACT_AUTOFREE char *url =
        a->config->compute_target && a->config->compute_target[0] == '/'
            ? act_strdup(a->config->compute_target)
            : act_sprintf("%.*s/virtualclusters/%s", (int)(end - a->workspace), a->workspace, name);
    rc = arm_get(arm, url, version, "look at the virtual cluster", &answer, err);
    if (rc < 0)
        return rc;
    const json_t *managed = json_object_get(json_object_get(answer, "properties"), "managed"),
                 *quota = json_array_get(json_object_get(managed, "quotas"), 0);
    json_array_foreach(json_object_get(quota, "limits"), i, limit)
    {
        if (strcasecmp(codec_json_str(limit, "slaTier", ""), tier) != 0)
            continue;
        out->gpus = count(limit, "limit");
        out->gpus_busy = count(limit, "used");
        out->gpus_idle = out->gpus - out->gpus_busy > 0 ? out->gpus - out->gpus_busy : 0;
    }
    return 0;
}

struct queue {
    const char *compute;
    struct platform_pool *pool;
    struct platform_jobs *jobs; /* those that run; NULL: only counted */
};

static int64_t unix_of(const json_t *object, const char *key)
{
    int64_t ns = 0;

    return act_time_from_iso_ns(codec_json_str(object, key, ""), &ns) ? ns / 1000000000 : 0;
}

static void add_job(struct queue *q, const json_t *job, const json_t *properties)
{
    const json_t *data = json_object_get(job, "systemData"),
                 *resources = json_object_get(properties, "resources");
    int64_t since = unix_of(data, "createdAt");
    int nodes = count(resources, "instanceCount");

    q->jobs->v = act_realloc(q->jobs->v, (q->jobs->n + 1) * sizeof(*q->jobs->v));
    q->jobs->v[q->jobs->n++] = (struct platform_job){
        .id = act_strdup(codec_json_str(job, "name", "")),
        .user = act_strdup(codec_json_str(data, "createdBy", "")),
        .name = act_strdup(codec_json_str(properties, "displayName", "")),
        .nodes_text = act_strdup(""),
        .running_s = since ? act_now_unix_s() - since : 0,
        .nodes = nodes ? nodes : 1,
        .gpus = (nodes ? nodes : 1) *
                count(json_object_get(properties, "distribution"), "processCountPerInstance"),
    };
}

static int take_job(void *arg, const json_t *job, struct act_error *err)
{
    struct queue *q = arg;
    const json_t *properties = json_object_get(job, "properties");
    const char *compute = codec_json_str(properties, "computeId", ""),
               *status = codec_json_str(properties, "status", "");

    (void)err;
    if (strcasecmp(act_path_basename(compute), q->compute) != 0)
        return 0;
    enum run_state state = azureml_state_of(status);
    q->pool->jobs_running += state == RUN_RUNNING;
    q->pool->jobs_queued += state == RUN_QUEUED;
    if (q->jobs && state == RUN_RUNNING)
        add_job(q, job, properties);
    return 0;
}

static int read_queue(struct azureml *a, struct platform_pool *pool, struct platform_jobs *jobs,
                      struct act_error *err)
{
    struct queue q = {.compute =
                          a->config->compute_target ? act_path_basename(a->config->compute_target) : "",
                      .pool = pool,
                      .jobs = jobs};
    ACT_AUTOFREE char *url = azureml_url(a, "/jobs?jobType=Command&listViewType=ActiveOnly");
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    return rc < 0 ? rc
                  : arm_each(arm, url, a->api_version, false, "value", "list the jobs", take_job, &q, err);
}

int azureml_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    CODEC_AUTOJSON json_t *compute = NULL;
    int rc;

    *out = (struct platform_summary){.has_gpus = true};
    out->total.gpus_queued = -1;
    if (a->kind == AZUREML_SINGULARITY) {
        rc = summarize_virtual(a, &out->total, err);
    } else {
        rc = get_compute(a, &compute, err);
        if (rc == 0)
            summarize_managed(a, json_object_get(json_object_get(compute, "properties"), "properties"),
                              &out->total);
    }
    return rc < 0 ? rc : read_queue(a, &out->total, NULL, err);
}

static int longest_first(const void *x, const void *y)
{
    const struct platform_job *a = x, *b = y;

    return a->running_s < b->running_s ? 1 : a->running_s > b->running_s ? -1 : 0;
}

int azureml_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    struct platform_pool ignored = {0};
    int rc = read_queue(azureml_of(p), &ignored, out, err);

    if (rc == 0 && out->n)
        qsort(out->v, out->n, sizeof(*out->v), longest_first);
    return rc;
}
