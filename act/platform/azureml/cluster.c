/* cluster.c - what the compute is doing, and the jobs of everybody on it.
 *
 * Source: learn.microsoft.com/rest/api/azureml/compute (Get); the run history as azure-ai-ml and azureml-core speak to
 * it (runs by compute, filters on the status); virtual clusters as they were recorded (test_vc; arm.h names where).
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

enum { PAGE = 100, PAGES_MAX = 20, JOBS_MAX = PAGE * PAGES_MAX, COUNT_MAX = 1 << 24 };

/* ---- the compute ---- */

int azureml_compute(struct azureml *a, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *url = azureml_compute_id(a);
    bool is_virtual = a->kind == AZUREML_SINGULARITY;
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = NULL;
    if (rc == 0 && !url)
        rc = act_error_set(err, ACT_CONFIG, "the cluster '%s' has no compute_target: the name of %s",
                           a->config->cluster, is_virtual ? "a virtual cluster" : "a compute of the workspace");
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("look at the %s '%s'", is_virtual ? "virtual cluster" : "compute",
                                          act_path_basename(a->config->compute_target));
    return arm_get(arm, url, is_virtual ? AZUREML_VIRTUAL_CLUSTER_VERSION : a->api_version, what, out, err);
}

/* -1: not said. */
static int aml_cluster_count(const json_t *counts, const char *key)
{
    int64_t n = codec_json_int(counts, key, -1);

    return n >= 0 && n < COUNT_MAX ? (int)n : -1;
}

static int or_none(int n)
{
    return n < 0 ? 0 : n;
}

static void aml_cluster_read_node_states(const json_t *counts, struct platform_summary *out)
{
    static const struct {
        const char *state, *key;
    } rows[] = {{"running", "runningNodeCount"}, {"preparing", "preparingNodeCount"},
                {"idle", "idleNodeCount"},       {"unusable", "unusableNodeCount"},
                {"leaving", "leavingNodeCount"}, {"preempted", "preemptedNodeCount"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (aml_cluster_count(counts, rows[i].key) >= 0)
            out->node_states[out->n_node_states++] =
                (struct platform_node_count){.state = rows[i].state, .n = aml_cluster_count(counts, rows[i].key)};
}

/* Counts as the original ACT did: free nodes are the maximum minus those unusable or in use, whether they are running
 * or would have to be started. */
static void count_nodes(const json_t *cluster, int per_node, struct platform_pool *out)
{
    const json_t *counts = json_object_get(cluster, "nodeStateCounts");

    out->nodes = or_none(aml_cluster_count(json_object_get(cluster, "scaleSettings"), "maxNodeCount"));
    out->nodes_down = or_none(aml_cluster_count(counts, "unusableNodeCount"));
    out->nodes_busy = or_none(aml_cluster_count(counts, "runningNodeCount")) +
                      or_none(aml_cluster_count(counts, "preparingNodeCount"));
    int idle = out->nodes - out->nodes_down - out->nodes_busy;
    out->nodes_idle = or_none(idle); /* a cluster that was made smaller has more than its maximum */
    out->gpus = out->nodes * per_node;
    out->gpus_idle = out->nodes_idle * per_node;
    out->gpus_busy = out->nodes_busy * per_node;
    out->gpus_down = out->nodes_down * per_node;
}

static void forget_nodes(struct platform_pool *out)
{
    out->nodes = out->nodes_idle = out->nodes_busy = out->nodes_down = -1;
    out->gpus = out->gpus_idle = out->gpus_busy = out->gpus_down = -1;
}

static int summarize_compute(struct azureml *a, struct platform_summary *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *compute = NULL;
    int per_node = a->config->gpu_per_node > 0 ? (int)a->config->gpu_per_node : 1;
    bool is_serverless = a->kind == AZUREML_MANAGED && !a->config->compute_target;
    int rc = is_serverless ? 0 : azureml_compute(a, &compute, err);

    if (rc < 0)
        return rc;
    const json_t *cluster = json_object_get(json_object_get(compute, "properties"), "properties");
    forget_nodes(&out->total); /* which serverless compute has not */
    if (!json_object_get(cluster, "scaleSettings"))
        return 0; /* attached Kubernetes does not say */
    aml_cluster_read_node_states(json_object_get(cluster, "nodeStateCounts"), out);
    count_nodes(cluster, per_node, &out->total);
    return 0;
}

/* ---- quota of a virtual cluster ---- */

static json_t *quotas_of(const json_t *virtual_cluster)
{
    return json_object_get(json_object_get(json_object_get(virtual_cluster, "properties"), "managed"), "quotas");
}

/* Processors have quotas as well, and only the name of a quota tells what it counts: "... Family vCPUs". */
static bool is_quota_of(const json_t *limit, const char *tier)
{
    return strcasecmp(codec_json_str(limit, "slaTier", ""), tier) == 0 &&
           !strcasestr(codec_json_str(limit, "name", ""), "vCPU");
}

static struct platform_pool quota_pool(const char *region, const json_t *limit)
{
    const char *family = codec_json_str(limit, "id", NULL);
    struct platform_pool pool = {.name = family ? act_sprintf("%s/%s", region, family) : act_strdup(region),
                                 .jobs_running = -1,
                                 .jobs_queued = -1,
                                 .gpus_queued = -1};

    forget_nodes(&pool);
    pool.gpus = or_none(aml_cluster_count(limit, "limit"));
    pool.gpus_busy = or_none(aml_cluster_count(limit, "used"));
    pool.gpus_idle = or_none(pool.gpus - pool.gpus_busy);
    pool.gpus_down = 0;
    return pool;
}

/* A pool for each family of machines with GPUs that has a quota of this tier in a region. */
static void add_quotas(json_t *quotas, const char *tier, struct platform_summary *out)
{
    const char *region;
    json_t *quota;

    json_object_foreach(quotas, region, quota)
    {
        const json_t *limits = json_object_get(quota, "limits");
        for (size_t i = 0; i < json_array_size(limits); i++) {
            const json_t *limit = json_array_get(limits, i);
            if (!is_quota_of(limit, tier))
                continue;
            ACT_PUSH(out->pools, out->n_pools, quota_pool(region, limit));
        }
    }
}

int64_t azureml_tier_limit(const json_t *virtual_cluster, const char *tier)
{
    struct platform_summary all = {0};
    int64_t most = -1;

    add_quotas(quotas_of(virtual_cluster), tier, &all);
    for (size_t i = 0; i < all.n_pools; i++)
        most = all.pools[i].gpus > most ? all.pools[i].gpus : most;
    platform_summary_release(&all);
    return most;
}

static void aml_cluster_add(int *sum, int n)
{
    *sum = n < INT_MAX - *sum ? *sum + n : INT_MAX;
}

static void add_up(struct platform_summary *out)
{
    struct platform_pool *total = &out->total;

    total->gpus = total->gpus_busy = total->gpus_idle = total->gpus_down = 0;
    for (size_t i = 0; i < out->n_pools; i++) {
        aml_cluster_add(&total->gpus, out->pools[i].gpus);
        aml_cluster_add(&total->gpus_busy, out->pools[i].gpus_busy);
        aml_cluster_add(&total->gpus_idle, out->pools[i].gpus_idle);
    }
}

static int summarize_virtual(struct azureml *a, struct platform_summary *out, struct act_error *err)
{
    const char *tier = a->config->singularity_sla_tier;
    CODEC_AUTOJSON json_t *response = NULL;
    int rc = azureml_compute(a, &response, err);

    if (rc < 0)
        return rc;
    forget_nodes(&out->total);
    add_quotas(quotas_of(response), tier, out);
    if (out->n_pools)
        add_up(out);
    else
        act_warn("the virtual cluster '%s' tells no quota of the SLA tier '%s'; see singularity_sla_tier",
                 act_path_basename(a->config->compute_target), tier);
    return 0;
}

/* ---- the queue ---- */

struct queue {
    const char *compute; /* the name; "": serverless; NULL: all of the workspace */
    struct platform_pool *pool;
    struct platform_jobs *jobs; /* the running ones; NULL: only count them */
    size_t n;                   /* that were looked at */
    bool cut;                   /* there may be more */
};

static bool aml_cluster_count_job(struct queue *q, const char *status)
{
    enum run_state state = azureml_state_of(status);

    q->pool->jobs_running += state == RUN_RUNNING;
    q->pool->jobs_queued += state == RUN_QUEUED;
    return q->jobs && state == RUN_RUNNING;
}

static int64_t aml_cluster_age_of(int64_t since_unix_s)
{
    int64_t s = act_now_unix_s() - since_unix_s;

    return !since_unix_s ? -1 : s > 0 ? s : 0;
}

static struct platform_job *new_job(struct queue *q, const char *id, const char *user, const char *name,
                                    const char *compute, int64_t since)
{
    struct platform_jobs *jobs = q->jobs;

    ACT_GROW(jobs->v, jobs->n);
    struct platform_job *job = &jobs->v[jobs->n++];
    *job = (struct platform_job){.id = act_strdup(id),
                                 .user = act_strdup(user),
                                 .name = act_strdup(name),
                                 .nodes_text = act_strdup(compute),
                                 .running_s = aml_cluster_age_of(since),
                                 .nodes = -1,
                                 .gpus = -1};
    return job;
}

/* ---- by the run history: the active runs of the compute, with the time that each began */

#define LIST_RUNS "list the runs on the compute"

static void aml_cluster_take_run(struct queue *q, const json_t *run)
{
    const json_t *given = json_object_get(run, "compute");
    int64_t gpus;

    q->n++;
    if (!aml_cluster_count_job(q, codec_json_str(run, "status", "")))
        return;
    struct platform_job *job =
        new_job(q, codec_json_str(run, "runId", ""), codec_json_str(json_object_get(run, "createdBy"), "userName", ""),
                codec_json_str(run, "displayName", ""), q->compute, azureml_time(run, "startTimeUtc"));
    job->nodes = aml_cluster_count(given, "instanceCount");
    job->gpus = aml_cluster_count(given, "gpuCount");
    if (act_int_from_text(codec_json_str(json_object_get(run, "properties"), "act.num_gpu", ""), &gpus) && gpus >= 0 &&
        gpus < COUNT_MAX)
        job->gpus = (int)gpus;
}

static char *runs_url(struct azureml *a, const char *compute, const char *continuation)
{
    static const char *const words[] = {"Running",  "Finalizing",   "CancelRequested", "NotResponding", "NotStarted",
                                        "Starting", "Provisioning", "Preparing",       "Queued",        "Paused"};
    ACT_AUTOFREE char *name = http_encode(compute, false);
    ACT_AUTOFREE char *from = http_encode(continuation, false);
    ACT_AUTO(act_buf) filter = {0};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        act_buf_addf(&filter, "%s(Status eq %s)", i ? " or " : "", words[i]);
    ACT_AUTOFREE char *escaped = http_encode(filter.data, false);
    return azureml_history_url(a, "/computes/%s/runs?$filter=%s&$top=%d%s%s", name, escaped, PAGE,
                               *from ? "&$continuationtoken=" : "", from);
}

/* Replaces the token by that of the next page. */
static int aml_cluster_read_page(struct azureml *a, struct queue *q, char **token, struct act_error *err)
{
    struct arm_call call = {.method = "GET", .what = LIST_RUNS, .url = runs_url(a, q->compute, *token)};
    size_t i;
    json_t *run;
    int rc = azureml_ask_history(a, &call, err);

    json_array_foreach(json_object_get(call.response, "value"), i, run) aml_cluster_take_run(q, run);
    act_str_replace(token, codec_json_str(call.response, "continuationToken", ""));
    arm_call_release(&call);
    return rc;
}

static int read_runs(struct azureml *a, struct queue *q, struct act_error *err)
{
    ACT_AUTOFREE char *token = act_strdup("");
    ACT_AUTO(act_pages) seen = {0};
    const char *history;
    int rc = azureml_history(a, &history, err);

    for (int page = 0; rc == 0 && (page == 0 || *token); page++) {
        q->cut = page == PAGES_MAX;
        if (q->cut)
            break;
        rc = aml_cluster_read_page(a, q, &token, err);
        if (rc == 0 && *token)
            rc = act_pages_next(&seen, token, PAGES_MAX + 1, LIST_RUNS, err);
    }
    return rc;
}

/* ---- by the list of jobs, newest first, which knows only when they were submitted, and not what has ended from what
 * has not */

static struct platform_job *aml_cluster_find_job(const struct platform_jobs *jobs, const char *id)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (strcmp(jobs->v[i].id, id) == 0)
            return &jobs->v[i];
    return NULL;
}

static int aml_cluster_take_job(void *arg, const json_t *job, struct act_error *err)
{
    struct queue *q = arg;
    const json_t *properties = json_object_get(job, "properties"), *data = json_object_get(job, "systemData"),
                 *resources = json_object_get(properties, "resources");
    const char *compute = act_path_basename(codec_json_str(properties, "computeId", "")),
               *id = codec_json_str(job, "name", "");

    (void)err;
    q->cut = q->n == JOBS_MAX;
    if (q->cut)
        return 1;
    q->n++;
    if ((q->compute && strcasecmp(compute, q->compute) != 0) ||
        !aml_cluster_count_job(q, codec_json_str(properties, "status", "")))
        return 0;
    const char *experiment = codec_json_str(properties, "experimentName", NULL);
    struct platform_job *one = aml_cluster_find_job(q->jobs, id);
    if (one) { /* by the run history, which does not name the experiment */
        free(one->experiment);
        one->experiment = act_strdup(experiment);
        return 0;
    }
    one = new_job(q, id, codec_json_str(data, "createdBy", ""), codec_json_str(properties, "displayName", ""), compute,
                  azureml_time(data, "createdAt"));
    one->experiment = act_strdup(experiment);
    one->nodes = aml_cluster_count(resources, "instanceCount");
    int ranks = aml_cluster_count(json_object_get(properties, "distribution"), "processCountPerInstance");
    int64_t gpus = (int64_t)one->nodes * ranks;
    one->gpus = one->nodes >= 0 && ranks >= 0 && gpus < COUNT_MAX ? (int)gpus : -1;
    return 0;
}

static int read_jobs(struct azureml *a, struct queue *q, struct act_error *err)
{
    return azureml_each(a, azureml_url(a, "/jobs?jobType=Command&listViewType=ActiveOnly"), "list the jobs",
                        aml_cluster_take_job, q, err);
}

/* A virtual cluster and serverless compute are no computes of the workspace: the history has no list for them. */
static bool aml_cluster_has_runs(const struct azureml *a)
{
    return a->kind != AZUREML_SINGULARITY && a->config->compute_target;
}

/* Tells whether another list may answer where this one did not. */
static bool may_ask_elsewhere(int rc, const struct queue *q, const struct act_error *err)
{
    if (rc == 0 || rc == -ACT_TEMPORARY || q->n > 0)
        return false;
    act_trace("azureml", "no list of the runs on the compute: %s", act_error_text(err));
    return true;
}

static void mention_cut(const struct queue *q)
{
    if (q->cut)
        act_warn("only %zu jobs were looked at: there are more, which are not counted", q->n);
}

static int count_queue(struct azureml *a, struct platform_pool *pool, struct act_error *err)
{
    const char *target = a->config->compute_target;
    struct queue q = {.compute = target ? act_path_basename(target) : "", .pool = pool};
    int rc = aml_cluster_has_runs(a) ? read_runs(a, &q, err) : read_jobs(a, &q, err);

    if (aml_cluster_has_runs(a) && may_ask_elsewhere(rc, &q, err))
        rc = read_jobs(a, &q, err);
    if (rc == 0)
        mention_cut(&q);
    return rc;
}

/* ---- the longest-running jobs of the workspace: all on this compute, and of the newest jobs those on the others */

/* Fits azureml_each_of(). */
static void take_start(void *arg, const json_t *run)
{
    struct platform_job *job = aml_cluster_find_job(arg, codec_json_str(run, "runId", ""));
    int64_t start = azureml_time(run, "startTimeUtc");

    if (job && start)
        job->running_s = aml_cluster_age_of(start);
}

/* When jobs began of which only the time of submission is known: for the earliest, as many as two requests cover. */
static void find_starts(struct azureml *a, struct platform_job *v, size_t n)
{
    enum { STARTS_MAX = 2 * PAGE };
    const char *ids[STARTS_MAX];
    struct platform_jobs asked = {.v = v, .n = n < STARTS_MAX ? n : STARTS_MAX};
    struct act_error err;

    platform_jobs_sort(&(struct platform_jobs){v, n});
    for (size_t i = 0; i < asked.n; i++)
        ids[i] = v[i].id;
    int rc = azureml_each_of(a, ids, asked.n, take_start, &asked, &err);
    if (rc < 0)
        act_trace("azureml", "the times are not known: %s", act_error_text(&err));
    if (rc < 0 || asked.n < n)
        act_warn("the service does not tell here when %s began: the times are since it was submitted",
                 rc < 0 ? "a job" : "each job");
}

/* ---- the questions ---- */

int azureml_summary(struct platform *p, struct platform_summary *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    int rc = a->kind == AZUREML_SINGULARITY ? summarize_virtual(a, out, err) : summarize_compute(a, out, err);

    out->has_gpus = true;
    out->total.gpus_queued = -1;
    return rc < 0 ? rc : count_queue(a, &out->total, err);
}

int azureml_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct platform_pool ignored = {0};
    struct queue here = {.pool = &ignored, .jobs = out}, all = here;
    int rc = 0;

    if (aml_cluster_has_runs(a)) {
        here.compute = act_path_basename(a->config->compute_target);
        rc = read_runs(a, &here, err);
        rc = may_ask_elsewhere(rc, &here, err) ? 0 : rc;
    }
    size_t with_start = out->n;
    if (rc == 0 && !here.cut)
        rc = read_jobs(a, &all, err);
    if (rc < 0)
        return rc;
    mention_cut(here.cut ? &here : &all);
    if (out->n > with_start)
        find_starts(a, out->v + with_start, out->n - with_start);
    platform_jobs_sort(out);
    return 0;
}
