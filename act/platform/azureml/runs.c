/* runs.c - the states of many runs, and the list of runs, in few requests, by whichever part of the run history
 * is available:
 *
 *   what became of them   batchrundata: 100 runs of whatever experiment in a request
 *                         else the pages of the experiment, newest first
 *                         else the jobs of the workspace
 *                         else each by itself
 *   which there are       the pages of the experiment, else the jobs of the workspace
 *
 * Jobs tell neither times nor errors: how a run ended is asked of the history all the same.
 *
 * Source: azure-ai-ml as it speaks to the run history: BatchRequest1, GetRunDataRequest, BatchResult1, QueryParams.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

enum {
    PAGE = 100,
    PAGES_MAX = 1000,
    FEW = 2,
    GPUS_MAX = 1 << 16,
    CLOCKS_DIFFER_S = 3600,
    LAG_S = 600, /* a job is a run of the history after moments */
};

/* Tells whether another way is worth trying: not if access is denied or the service does not respond. */
static bool is_refusal(int rc)
{
    return rc < 0 && rc != -ACT_DENIED && rc != -ACT_TEMPORARY && rc != -ACT_TIMEOUT;
}

/* ---- the pages of the experiment ---- */

#define LIST_RUNS "list the runs of the experiment"

static json_t *query_body(const char *filter, size_t page, const char *continuation)
{
    json_t *body = json_pack("{s:s, s:i}", "orderBy", "createdUtc desc", "top", (int)page);

    if (filter)
        json_object_set_new(body, "filter", json_string(filter));
    if (*continuation)
        json_object_set_new(body, "continuationToken", json_string(continuation));
    return body;
}

struct pages {
    const char *filter; /* NULL: none */
    size_t page;        /* runs on each */
    bool (*more)(void *arg, size_t pages);
    void (*each)(void *arg, const json_t *run);
    void *arg;
};

/* Passes on the runs of a response. */
static int aml_runs_read_page(const struct pages *p, const json_t *response, struct act_error *err)
{
    const json_t *runs = json_object_get(response, "value");
    size_t i;
    json_t *run;

    if (!json_is_array(runs))
        return act_error_set(err, ACT_FAIL, "its response is not a list of runs");
    json_array_foreach(runs, i, run) p->each(p->arg, run);
    return 0;
}

/* Returns what tells pages apart: a service that does not understand the token sends the first page again, with another
 * token. */
static const char *mark_of(const json_t *response, const char *next)
{
    return codec_json_str(json_array_get(json_object_get(response, "value"), 0), "runId", next);
}

/* The token of the next page; empty: this was the last one. New string. */
static int next_page(const json_t *response, char **out, struct act_error *err)
{
    *out = act_strdup(codec_json_str(response, "continuationToken", ""));
    if (!**out && *codec_json_str(response, "nextLink", ""))
        return act_error_set(err, ACT_FAIL, "it does not say how the next page is asked for");
    return 0;
}

/* The runs of the experiment, newest first, page after page as long as more() says so. An experiment that the service
 * does not know has no runs yet. */
static int each_run(struct azureml *a, const struct pages *p, struct act_error *err)
{
    ACT_AUTOFREE char *experiment = http_encode(a->config->experiment_name, false);
    ACT_AUTOFREE char *next = act_strdup("");
    ACT_AUTO(act_pages) seen = {0};
    int rc = 0;

    for (size_t pages = 0; rc == 0 && p->more(p->arg, pages) && (pages == 0 || *next); pages++) {
        struct arm_call call = {.method = "POST",
                                .what = LIST_RUNS,
                                .url = azureml_history_url(a, "/experiments/%s/runs:query", experiment),
                                .body = query_body(p->filter, p->page, next)};
        free(next);
        next = act_strdup("");
        rc = azureml_ask_history(a, &call, err);
        if (rc == 0) {
            free(next);
            rc = next_page(call.response, &next, err);
            int read = aml_runs_read_page(p, call.response, err);
            rc = read < 0 ? read : rc;
            if (rc == 0 && *next)
                rc = act_pages_next(&seen, mark_of(call.response, next), PAGES_MAX, LIST_RUNS, err);
        } else if (rc == -ACT_NOT_FOUND && strstr(err->service_code, "Experiment")) {
            rc = 0;
        }
        arm_call_release(&call);
    }
    return rc;
}

/* ---- the jobs of the workspace ---- */

static int each_job(struct azureml *a, azureml_take_item *each, void *arg, struct act_error *err)
{
    return azureml_each(a, azureml_url(a, "/jobs?jobType=Command&tag=act"), "list the jobs of the workspace", each, arg,
                        err);
}

static int aml_runs_take_id(void *arg, const json_t *job, struct act_error *err)
{
    const char *name = codec_json_str(job, "name", "");

    (void)err;
    if (run_id_valid(name))
        act_strv_push(arg, name);
    return 0;
}

int azureml_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    int rc = each_job(azureml_of(p), aml_runs_take_id, out_ids, err);

    act_strv_sort(out_ids);
    return rc;
}

/* ---- what became of many ---- */

struct lookup {
    const char *const *ids;
    size_t n, left;
    struct run_status *out;
    bool *found;
    int64_t oldest_unix_s; /* among those searched */
    bool past;             /* the runs that come are older */
    size_t jobs_left, jobs_seen;
};

/* Returns the index of an id that is searched, from begin to end; end: it is none. */
static size_t find_id(const struct lookup *l, size_t begin, size_t end, const char *id)
{
    size_t i = begin;

    while (i < end && (l->found[i] || strcmp(l->ids[i], id) != 0))
        i++;
    return i;
}

static void aml_runs_take_status(struct lookup *l, size_t i, const json_t *run)
{
    azureml_read_run(run, &l->out[i]);
    l->found[i] = true;
    l->left--;
}

/* Asks the history about up to PAGE runs. Release call in every case. */
static int post_batch(struct azureml *a, const char *const *ids, size_t n, struct arm_call *call, struct act_error *err)
{
    json_t *requests = json_object();

    for (size_t i = 0; i < n; i++)
        if (run_name_valid(ids[i]))
            json_object_set_new(requests, ids[i], json_pack("{s:s, s:b}", "runId", ids[i], "selectRunMetadata", 1));
    *call = (struct arm_call){.method = "POST",
                              .what = "tell the states of the runs",
                              .url = azureml_history_url(a, "/batchrundata"),
                              .body = json_pack("{s:o}", "requests", requests)};
    return azureml_ask_history(a, call, err);
}

int azureml_each_of(struct azureml *a, const char *const *ids, size_t n, void (*each)(void *arg, const json_t *run),
                    void *arg, struct act_error *err)
{
    int rc = 0;

    for (size_t begin = 0; begin < n && rc == 0; begin += PAGE) {
        struct arm_call call;
        const char *key;
        json_t *result;
        rc = post_batch(a, ids + begin, n - begin < PAGE ? n - begin : PAGE, &call, err);
        json_object_foreach(rc == 0 ? json_object_get(call.response, "successfulResults") : NULL, key, result)
            each(arg, json_object_get(result, "runMetadata"));
        arm_call_release(&call);
    }
    return rc;
}

/* Returns the time in "<experiment>_<unix time>_<8 hex>"; 0: there is none. */
static int64_t aml_runs_created_of(const char *id)
{
    const char *end = strrchr(id, '_');
    const char *start = end;
    int64_t seconds = 0;

    while (start && start > id && start[-1] != '_')
        start--;
    ACT_AUTOFREE char *text = start ? act_strndup(start, (size_t)(end - start)) : act_strdup("");
    return act_int_from_text(text, &seconds) ? seconds : 0;
}

/* A run that the history does not have is gone, or never existed, unless its job is so new that the history may not
 * have it yet. */
static void take_missing(struct lookup *l, size_t i, const json_t *error)
{
    char code[64];
    ACT_AUTOFREE char *text = arm_error_text(error, code, sizeof(code));

    if (!text || !strstr(code, "NotFound") || aml_runs_created_of(l->ids[i]) > act_now_unix_s() - LAG_S)
        return;
    l->found[i] = true;
    l->left--;
}

static int ask_batch(struct azureml *a, struct lookup *l, size_t begin, size_t end, struct act_error *err)
{
    ACT_AUTO(arm_call) call = {0};
    int rc = post_batch(a, l->ids + begin, end - begin, &call, err);
    json_t *results = json_object_get(call.response, "successfulResults"),
           *failures = json_object_get(call.response, "failedResults"), *result;
    const char *key;

    if (rc == 0 && !json_is_object(results))
        rc = act_error_set(err, ACT_FAIL, "cannot find out the states of the runs: the response has none");
    json_object_foreach(results, key, result)
    {
        const json_t *run = json_object_get(result, "runMetadata");
        size_t i = find_id(l, begin, end, codec_json_str(run, "runId", key));
        if (json_is_object(run) && i < end)
            aml_runs_take_status(l, i, run);
    }
    json_object_foreach(rc == 0 ? failures : NULL, key, result)
    {
        size_t i = find_id(l, begin, end, key);
        if (i < end)
            take_missing(l, i, result);
    }
    return rc;
}

static int ask_batches(struct azureml *a, struct lookup *l, struct act_error *err)
{
    int rc = 0;

    for (size_t begin = 0; begin < l->n && rc == 0; begin += PAGE)
        rc = ask_batch(a, l, begin, l->n - begin < PAGE ? l->n : begin + PAGE, err);
    return rc;
}

static int64_t created_at(const json_t *run)
{
    int64_t created = azureml_time(run, "createdTimeUtc");

    return created ? created : azureml_time(run, "createdUtc");
}

/* Fits struct pages. */
static void match_run(void *arg, const json_t *run)
{
    struct lookup *l = arg;
    int64_t created = created_at(run);
    size_t i = find_id(l, 0, l->n, codec_json_str(run, "runId", ""));

    l->past = l->past || (created && created < l->oldest_unix_s - CLOCKS_DIFFER_S);
    if (i < l->n)
        aml_runs_take_status(l, i, run);
}

/* Until all are found, or until asking for each that is left costs less than what the pages did. */
static bool search_on(void *arg, size_t pages)
{
    const struct lookup *l = arg;

    return l->left > 0 && !l->past && pages < l->left + FEW;
}

static int search_experiment(struct azureml *a, struct lookup *l, struct act_error *err)
{
    struct pages pages = {.page = PAGE, .more = search_on, .each = match_run, .arg = l};

    l->oldest_unix_s = INT64_MAX;
    for (size_t i = 0; i < l->n; i++)
        if (!l->found[i] && aml_runs_created_of(l->ids[i]) < l->oldest_unix_s)
            l->oldest_unix_s = aml_runs_created_of(l->ids[i]);
    return each_run(a, &pages, err);
}

/* A run that has ended is noted, but must still be queried: a job does not say how it ended. */
static int match_job(void *arg, const json_t *job, struct act_error *err)
{
    struct lookup *l = arg;
    size_t i = find_id(l, 0, l->n, codec_json_str(job, "name", ""));

    (void)err;
    if (i < l->n) {
        azureml_read_run(json_object_get(job, "properties"), &l->out[i]);
        l->found[i] = !run_state_is_final(l->out[i].state);
        l->left -= l->found[i];
        l->jobs_left--;
    }
    return l->jobs_left == 0 || ++l->jobs_seen > PAGE * (l->jobs_left + FEW);
}

static int search_jobs(struct azureml *a, struct lookup *l, struct act_error *err)
{
    l->jobs_left = l->left;
    return each_job(a, match_job, l, err);
}

/* A run that ended, as its job says, is no run whose end is known. */
static bool leave_open(struct run_status *status, const struct act_error *why)
{
    const char *state = run_state_name(status->state);

    if (!run_state_is_final(status->state))
        return false;
    *status = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    snprintf(status->reason, sizeof(status->reason),
             "the job is %s, and the run history does not say how it ended: %.300s", state, act_error_text(why));
    return true;
}

/* Each that is left by itself, until the service does not answer. */
static int ask_each(struct azureml *a, struct lookup *l, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct run_status status;
        if (l->found[i])
            continue;
        if (rc == 0)
            rc = azureml_status_of_one(a, l->ids[i], &status, err);
        if (rc == 0)
            l->out[i] = status;
        else if (!leave_open(&l->out[i], err))
            return rc;
    }
    return 0;
}

static int look_up(struct azureml *a, struct lookup *l, struct act_error *err)
{
    int rc = ask_batches(a, l, err);
    bool refused = rc < 0;

    if (is_refusal(rc))
        rc = search_experiment(a, l, err);
    if (rc == -ACT_DENIED)
        return rc;
    if (rc < 0 || (refused && l->left > FEW)) {
        act_trace("azureml", "the jobs are asked, as the run history does not answer: %s", act_error_text(err));
        rc = search_jobs(a, l, err);
    }
    return rc < 0 ? rc : ask_each(a, l, err);
}

static int status_of_many(struct azureml *a, const char *const *ids, size_t n, struct run_status *out,
                          struct act_error *err)
{
    struct lookup l = {.ids = ids, .n = n, .left = n, .out = out, .found = act_calloc(n, sizeof(*l.found))};
    const char *history;
    int rc = azureml_history(a, &history, err);

    for (size_t i = 0; i < n; i++)
        out[i] = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    if (rc == 0)
        rc = look_up(a, &l, err);
    free(l.found);
    return rc;
}

int azureml_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    int rc = 0;

    if (n > FEW)
        return status_of_many(a, ids, n, out, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = azureml_status_of_one(a, ids[i], &out[i], err);
    return rc;
}

/* ---- which there are ---- */

struct recent {
    const struct azureml *platform;
    struct platform_runs *out;
    const enum run_state *only; /* NULL: all */
    size_t max;                 /* 0: all */
    bool probing;               /* one page is enough, unless there is something on it */
    json_t *seen;               /* the ids of those that out has: pages move on while they are read */
};

static bool aml_runs_has_enough(const struct recent *r)
{
    return r->max > 0 && r->out->n >= r->max;
}

/* A run of ACT says its cluster; another's compute may be that of the cluster that is asked. New string. */
static char *aml_runs_cluster_of(const struct azureml *a, const json_t *own, const char *compute)
{
    const char *said = codec_json_str(own, "act.cluster", "");
    bool is_ours = !*compute || strcasecmp(compute, a->config->compute_target ? a->config->compute_target : "") == 0;

    return act_strdup(*said ? said : is_ours ? a->config->cluster : compute);
}

/* A run as its service tells of it, in whatever form. */
struct told {
    const char *id, *name, *compute;
    const json_t *own; /* properties that say what ACT knows */
};

static void aml_runs_add_run(struct recent *r, const struct told *told, const struct platform_run *found)
{
    const char *text = codec_json_str(told->own, "act.cmd", "");
    struct platform_runs *out = r->out;
    CODEC_AUTOJSON json_t *argv = NULL;
    int64_t gpus = 0;

    if (!run_name_valid(told->id) || aml_runs_has_enough(r) || (r->only && *r->only != found->status.state) ||
        json_object_get(r->seen, told->id))
        return;
    json_object_set_new(r->seen, told->id, json_true());
    ACT_GROW(out->v, out->n);
    struct platform_run *run = &out->v[out->n++];
    *run = *found;
    run->id = act_strdup(told->id);
    run->name = act_strdup(told->name);
    run->title = codec_json_strdup(told->own, "act.title");
    run->label = codec_json_strdup(told->own, "act.name");
    run->tags = codec_json_strdup(told->own, "act.tags");
    run->cluster = aml_runs_cluster_of(r->platform, told->own, told->compute);
    if (*text && codec_json_parse(text, strlen(text), "act.cmd", &argv, NULL) == 0 &&
        !codec_json_strv_get(argv, &run->argv))
        act_strv_release(&run->argv);
    if (act_int_from_text(codec_json_str(told->own, "act.num_gpu", ""), &gpus) && gpus > 0 && gpus <= GPUS_MAX)
        run->num_gpu = (int)gpus;
}

/* Fits struct pages. */
static bool wants_more(void *arg, size_t pages)
{
    const struct recent *r = arg;

    return !aml_runs_has_enough(r) && (!r->probing || pages == 0 || r->out->n > 0);
}

/* Fits struct pages. */
static void aml_runs_take_run(void *arg, const json_t *run)
{
    struct platform_run found = {.created_unix_s = created_at(run)};

    azureml_read_run(run, &found.status);
    aml_runs_add_run(arg,
                     &(struct told){codec_json_str(run, "runId", ""), codec_json_str(run, "displayName", ""),
                                    codec_json_str(run, "target", ""), json_object_get(run, "properties")},
                     &found);
}

static int aml_runs_take_job(void *arg, const json_t *job, struct act_error *err)
{
    struct recent *r = arg;
    const json_t *properties = json_object_get(job, "properties");
    const char *id = codec_json_str(job, "name", ""), *experiment = codec_json_str(properties, "experimentName", "");
    struct platform_run found = {.created_unix_s = azureml_time(json_object_get(job, "systemData"), "createdAt"),
                                 .is_partial = true};

    (void)err;
    azureml_read_run(properties, &found.status);
    if (strcmp(experiment, r->platform->config->experiment_name) == 0)
        aml_runs_add_run(r,
                         &(struct told){id, codec_json_str(properties, "displayName", ""),
                                        act_path_basename(codec_json_str(properties, "computeId", "")),
                                        json_object_get(properties, "properties")},
                         &found);
    return aml_runs_has_enough(r);
}

/* The filter is for the service; what it lets through is looked at all the same. When that is nothing, the newest runs
 * are looked at without one: it may be understood otherwise there. */
static int list_experiment(struct azureml *a, struct recent *r, struct act_error *err)
{
    ACT_AUTOFREE char *filter = r->only ? azureml_state_filter(a, *r->only) : NULL;
    struct pages pages = {.filter = filter,
                          .page = r->max && r->max < PAGE ? r->max : PAGE,
                          .more = wants_more,
                          .each = aml_runs_take_run,
                          .arg = r};
    int rc = each_run(a, &pages, err);

    if (!filter || r->out->n > 0 || (rc < 0 && !is_refusal(rc)))
        return rc;
    pages.filter = NULL;
    r->probing = rc == 0;
    return each_run(a, &pages, err);
}

static int find_recent(struct azureml *a, struct recent *r, struct act_error *err)
{
    int rc = list_experiment(a, r, err);

    if (rc == 0 || rc == -ACT_DENIED)
        return rc;
    act_note("the runs are listed by the jobs of the workspace, without times: the run history does not list "
             "them (%s)",
             act_error_text(err));
    return each_job(a, aml_runs_take_job, r, err);
}

int azureml_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                   struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    CODEC_AUTOJSON json_t *seen = json_object();
    struct recent r = {.platform = a, .out = out, .only = only, .max = max, .seen = seen};
    const char *history;
    int rc = azureml_history(a, &history, err);

    return rc < 0 ? rc : find_recent(a, &r, err);
}
