/* azureml_state.c - what became of jobs, by the run history, which tells times and errors; a job that it does not know
 * yet, by the job itself.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs (JobStatus); the run history as azure-ai-ml speaks to it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml_internal.h"

enum { PAGE = 100, FEW = 2, GPU_RANKS_MAX = 1 << 16 };

/* ---- the words of the service ---- */

static const struct {
    const char *word;
    enum run_state state;
    const char *text; /* what a run that waits is doing */
} states[] = {
    {"NotStarted", RUN_QUEUED, "is being handed over"},
    {"Starting", RUN_QUEUED, "is accepted"},
    {"Provisioning", RUN_QUEUED, "waits for nodes that are being started"},
    {"Preparing", RUN_QUEUED, "waits for its environment, which is being prepared"},
    {"Queued", RUN_QUEUED, "waits for free nodes"},
    {"Paused", RUN_QUEUED, "is paused"},
    {"Pausing", RUN_QUEUED, "is being paused"},
    {"Unapproved", RUN_QUEUED, "waits for an approval"},
    {"Running", RUN_RUNNING, ""},
    {"Finalizing", RUN_RUNNING, "the command has ended, its outputs are being stored"},
    {"CancelRequested", RUN_RUNNING, "is being cancelled"},
    {"NotResponding", RUN_RUNNING, "its nodes do not respond"},
    {"Completed", RUN_COMPLETED, ""},
    {"Failed", RUN_FAILED, ""},
    {"Canceled", RUN_CANCELED, ""},
};

static void set_state(const char *word, struct run_status *out)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcasecmp(word, states[i].word) == 0) {
            out->state = states[i].state;
            if (*states[i].text)
                snprintf(out->reason, sizeof(out->reason), "%s (%s)", states[i].text, word);
            return;
        }
    out->state = RUN_UNKNOWN;
    snprintf(out->reason, sizeof(out->reason), "the service calls it '%.100s'", word);
}

enum run_state azureml_state_of(const char *word)
{
    struct run_status status = {0};

    set_state(word, &status);
    return status.state;
}

/* What attached Kubernetes clusters know better, in a tag of the run; as the original corrected it. */
static void correct(const json_t *tags, struct run_status *out)
{
    const char *real = codec_json_str(tags, "amlk8s status", "");

    if (out->state == RUN_QUEUED && strcasecmp(real, "running") == 0) {
        out->state = RUN_RUNNING;
        out->reason[0] = '\0';
    } else if (out->state == RUN_CANCELED &&
               (strcasecmp(real, "killing") == 0 || strcasecmp(real, "failed") == 0)) {
        out->state = RUN_FAILED;
        snprintf(out->reason, sizeof(out->reason), "the cluster ended it (%s)", real);
    }
}

/* Why a run waits: how many nodes the cluster has and starts. */
static void add_allocation(const json_t *tags, struct run_status *out)
{
    const char *text = codec_json_str(tags, "_aml_system_ComputeTargetStatus", "");
    CODEC_AUTOJSON json_t *json = NULL;
    size_t n = strlen(out->reason);

    if (out->state != RUN_QUEUED || !*text || codec_json_parse(text, strlen(text), "tag", &json, NULL) < 0)
        return;
    snprintf(out->reason + n, sizeof(out->reason) - n,
             "; the cluster has %lld nodes, %lld of them running, %lld starting",
             (long long)codec_json_int(json, "CurrentNodeCount", 0),
             (long long)codec_json_int(json, "RunningNodeCount", 0),
             (long long)codec_json_int(json, "PreparingNodeCount", 0));
}

static int64_t time_of(const json_t *object, const char *key)
{
    int64_t ns = 0;

    return act_time_from_iso_ns(codec_json_str(object, key, ""), &ns) ? ns / 1000000000 : 0;
}

/* "... exited with status code 7. ..." says it; else it only failed. */
static int exit_status_of(const char *reason)
{
    static const char before[] = "exited with status code ";
    const char *at = strstr(reason, before);
    char digits[4] = "";
    int64_t status;

    if (at)
        snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at + strlen(before), "0123456789"),
                 at + strlen(before));
    return act_int_from_text(digits, &status) && status > 0 && status < 256 ? (int)status : ACT_FAIL;
}

void azureml_read_run(const json_t *run, struct run_status *out)
{
    const json_t *tags = json_object_get(run, "tags"), *error = json_object_get(run, "error");

    *out = (struct run_status){.failed_rank = -1, .attempt = 1};
    set_state(codec_json_str(run, "status", ""), out);
    correct(tags, out);
    add_allocation(tags, out);
    out->started_unix_s = time_of(run, "startTimeUtc");
    out->ended_unix_s = time_of(run, "endTimeUtc");
    if (out->state != RUN_FAILED)
        return;
    char code[64];
    ACT_AUTOFREE char *text = json_is_object(error) ? arm_error_text(error, code, sizeof(code)) : NULL;
    if (text)
        snprintf(out->reason, sizeof(out->reason), "%.500s", text);
    out->exit_status = exit_status_of(out->reason);
}

/* ---- one run ---- */

char *azureml_history_url(struct azureml *a, const char *fmt, ...)
{
    ACT_AUTOFREE char *path = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&path, fmt, ap);
    va_end(ap);
    return act_sprintf("%s/history/v1.0%s%s", a->history, a->workspace, n < 0 ? "" : path);
}

int azureml_details(struct azureml *a, const char *id, json_t **out, struct act_error *err)
{
    const char *history;

    *out = NULL;
    if (!run_id_valid(id))
        return 0;
    int rc = azureml_history(a, &history, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("tell the state of '%s'", id);
    struct arm_call call = {.method = "GET",
                            .what = what,
                            .url = azureml_history_url(a, "/runs/%s/details", id),
                            .missing_is_fine = true};
    rc = arm_do(a->arm, &call, err);
    if (rc == 0 && call.status != 404)
        *out = json_incref(call.answer);
    arm_call_release(&call);
    return rc;
}

int azureml_job(struct azureml *a, const char *id, json_t **out, struct act_error *err)
{
    struct arm *arm;

    *out = NULL;
    if (!run_id_valid(id))
        return 0;
    int rc = azureml_arm(a, &arm, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("get the job '%s'", id);
    struct arm_call call = {.method = "GET",
                            .what = what,
                            .url = azureml_url(a, "/jobs/%s", id),
                            .api_version = a->api_version,
                            .missing_is_fine = true};
    rc = arm_do(arm, &call, err);
    if (rc == 0 && call.status != 404)
        *out = json_incref(call.answer);
    arm_call_release(&call);
    return rc;
}

static int status_of_one(struct azureml *a, const char *id, struct run_status *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *details = NULL;
    CODEC_AUTOJSON json_t *job = NULL;

    *out = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    int rc = azureml_details(a, id, &details, err);
    if (rc == 0 && details)
        azureml_read_run(details, out);
    if (rc < 0 || details)
        return rc;
    rc = azureml_job(a, id, &job, err); /* a job is a run of the history a moment later */
    if (rc == 0 && job)
        azureml_read_run(json_object_get(job, "properties"), out);
    return rc;
}

/* ---- many runs: pages of the experiment, newest first ---- */

struct search {
    const char *const *ids;
    size_t n, left;
    struct run_status *out;
    bool *found;
    int64_t oldest_unix_s; /* of those that are searched */
    bool past;             /* the runs that come are older */
};

static int64_t created_at(const json_t *run)
{
    int64_t created = time_of(run, "createdTimeUtc");

    return created ? created : time_of(run, "createdUtc");
}

static void match(void *arg, const json_t *run)
{
    struct search *s = arg;
    const char *id = codec_json_str(run, "runId", "");
    int64_t created = created_at(run);

    s->past = s->past || (created && created < s->oldest_unix_s - 3600);
    for (size_t i = 0; i < s->n; i++)
        if (!s->found[i] && strcmp(s->ids[i], id) == 0) {
            azureml_read_run(run, &s->out[i]);
            s->found[i] = true;
            s->left--;
            return;
        }
}

/* Until all are found, or until asking for each that is left costs less than what the pages did. */
static bool search_on(void *arg, size_t pages)
{
    const struct search *s = arg;

    return s->left > 0 && !s->past && pages < s->left + FEW;
}

static json_t *query_body(size_t page, const char *continuation)
{
    json_t *body = json_pack("{s:[s], s:i}", "orderBy", "createdUtc desc", "top", (int)page);

    if (continuation && *continuation)
        json_object_set_new(body, "continuationToken", json_string(continuation));
    return body;
}

/* The runs of the experiment, newest first, page after page as long as more() says so. */
static int each_run(struct azureml *a, size_t page, bool (*more)(void *arg, size_t pages),
                    void (*each)(void *arg, const json_t *run), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *experiment = http_encode(a->config->experiment_name, false);
    ACT_AUTOFREE char *continuation = NULL;
    const char *history;
    int rc = azureml_history(a, &history, err);

    for (size_t pages = 0; rc == 0 && more(arg, pages); pages++) {
        struct arm_call call = {.method = "POST",
                                .what = "list the runs of the experiment",
                                .url = azureml_history_url(a, "/experiments/%s/runs:query", experiment),
                                .missing_is_fine = true, /* an experiment without runs is none there */
                                .body = query_body(page, continuation)};
        size_t i;
        json_t *run;
        rc = arm_do(a->arm, &call, err);
        if (rc == 0) {
            json_array_foreach(json_object_get(call.answer, "value"), i, run) each(arg, run);
        }
        free(continuation);
        continuation = act_strdup(codec_json_str(call.answer, "continuationToken", ""));
        arm_call_release(&call);
        if (!*continuation)
            break;
    }
    return rc;
}

/* ---- the newest runs of the experiment */

struct recent {
    struct platform_runs *out;
    size_t max; /* 0: all */
};

static bool want_more(void *arg, size_t pages)
{
    const struct recent *r = arg;

    (void)pages;
    return r->max == 0 || r->out->n < r->max;
}

static void take_run(void *arg, const json_t *run)
{
    struct recent *r = arg;
    struct platform_runs *out = r->out;
    const json_t *own = json_object_get(run, "properties");
    const char *text = codec_json_str(own, "act.cmd", "");
    CODEC_AUTOJSON json_t *argv = NULL;
    int64_t gpus = 0;

    if (!run_id_valid(codec_json_str(run, "runId", "")) || (r->max && out->n == r->max))
        return;
    out->v = act_realloc(out->v, (out->n + 1) * sizeof(*out->v));
    struct platform_run *p = &out->v[out->n++];
    *p = (struct platform_run){.id = act_strdup(codec_json_str(run, "runId", "")),
                               .created_unix_s = created_at(run)};
    if (*text && codec_json_parse(text, strlen(text), "act.cmd", &argv, NULL) == 0 &&
        !codec_json_strv_get(argv, &p->argv))
        act_strv_release(&p->argv);
    if (act_int_from_text(codec_json_str(own, "act.num_gpu", ""), &gpus) && gpus > 0 && gpus <= GPU_RANKS_MAX)
        p->num_gpu = (int)gpus;
    azureml_read_run(run, &p->status);
}

int azureml_recent(struct platform *p, size_t max, struct platform_runs *out, struct act_error *err)
{
    struct recent r = {.out = out, .max = max};

    return each_run(azureml_of(p), max && max < PAGE ? max : PAGE, want_more, take_run, &r, err);
}

/* "<experiment>_<unix time>_<8 hex>" */
static int64_t created_of(const char *id)
{
    const char *end = strrchr(id, '_');
    const char *start = end;
    int64_t seconds = 0;

    while (start && start > id && start[-1] != '_')
        start--;
    ACT_AUTOFREE char *text = start ? act_strndup(start, (size_t)(end - start)) : act_strdup("");
    return act_int_from_text(text, &seconds) ? seconds : 0;
}

static int status_of_many(struct azureml *a, const char *const *ids, size_t n, struct run_status *out,
                          struct act_error *err)
{
    bool *found = act_calloc(n, sizeof(*found));
    struct search s = {.ids = ids, .n = n, .left = n, .out = out, .found = found, .oldest_unix_s = INT64_MAX};

    for (size_t i = 0; i < n; i++)
        s.oldest_unix_s = created_of(ids[i]) < s.oldest_unix_s ? created_of(ids[i]) : s.oldest_unix_s;
    int rc = each_run(a, PAGE, search_on, match, &s, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!found[i])
            rc = status_of_one(a, ids[i], &out[i], err);
    free(found);
    return rc;
}

int azureml_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                   struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    int rc = 0;

    if (n > FEW)
        return status_of_many(a, ids, n, out, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = status_of_one(a, ids[i], &out[i], err);
    return rc;
}

/* ---- a run of another machine ---- */

static int count_in(const json_t *object, const char *key, int fallback)
{
    int64_t value = codec_json_int(object, key, fallback);

    return value >= 1 && value <= GPU_RANKS_MAX ? (int)value : fallback;
}

static int read_command(const json_t *job, struct run_spec *out, struct act_error *err)
{
    const char *text = codec_json_str(json_object_get(job, "properties"), "act.cmd", "");
    CODEC_AUTOJSON json_t *argv = NULL;

    if (*text && codec_json_parse(text, strlen(text), "act.cmd", &argv, NULL) == 0 &&
        codec_json_strv_get(argv, &out->argv) && out->argv.n > 0)
        return 0;
    const char *line = codec_json_str(job, "command", ""); /* of another tool: a shell line */
    if (!*line)
        return act_error_set(err, ACT_FAIL, "the job does not say what it runs");
    act_strv_release(&out->argv);
    act_strv_push(&out->argv, "/bin/bash");
    act_strv_push(&out->argv, "-c");
    act_strv_push(&out->argv, line);
    return 0;
}

/* Without what a job of such a run gets by itself. */
static void read_environment(const struct azureml *a, const json_t *job, struct run_spec *out)
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach(json_object_get(job, "environmentVariables"), name, value) if (json_is_string(value))
        run_spec_add_env(out, name, json_string_value(value));
    CODEC_AUTOJSON json_t *own = azureml_own_environment(a, out);
    for (size_t i = 0; i < out->n_env; i++) {
        struct run_env env = out->env[i];
        if (act_streq(env.value, codec_json_str(own, env.name, NULL))) {
            free(env.name);
            free(env.value);
        } else {
            out->env[n++] = env;
        }
    }
    out->n_env = n;
}

static int gpus_of(const json_t *own, const struct run_spec *spec)
{
    int64_t gpus;

    if (act_int_from_text(codec_json_str(own, "act.num_gpu", ""), &gpus) && gpus >= 0 &&
        gpus <= GPU_RANKS_MAX)
        return (int)gpus / spec->nodes;
    return spec->procs_per_node; /* of another tool: as the original counted them */
}

int azureml_read_spec(const struct azureml *a, const char *id, const json_t *answer, struct run_spec *out,
                      struct act_error *err)
{
    const json_t *job = json_object_get(answer, "properties"), *own = json_object_get(job, "properties"),
                 *resources = json_object_get(job, "resources");
    const char *old = codec_json_str(own, "act.resubmit_of", NULL);
    *out = (struct run_spec){
        .id = act_strdup(id),
        .experiment = act_strdup(codec_json_str(job, "experimentName", "")),
        .cluster = act_strdup(codec_json_str(own, "act.cluster", a->config->cluster)),
        .platform = act_strdup(a->config->platform),
        .project_root = act_strdup(a->config->project_root),
        .created_unix_s = time_of(json_object_get(answer, "systemData"), "createdAt"),
        .nodes = count_in(resources, "instanceCount", 1),
        .procs_per_node = count_in(json_object_get(job, "distribution"), "processCountPerInstance", 1),
        .resubmit_of = act_strdup(old),
    };
    out->gpus_per_node = gpus_of(own, out);
    const char *key = codec_json_str(own, "act.package_key", ""),
               *sha = codec_json_str(own, "act.package_sha256", "");
    if (*key && strlen(sha) == ACT_SHA256_HEX - 1) {
        out->package_key = act_strdup(key);
        snprintf(out->package_sha256, sizeof(out->package_sha256), "%s", sha);
    }
    read_environment(a, job, out);
    int rc = read_command(job, out, err);
    if (rc < 0)
        run_spec_release(out);
    return rc;
}

int azureml_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    CODEC_AUTOJSON json_t *answer = NULL;
    int rc = azureml_job(a, id, &answer, err);

    *out = (struct run_spec){0};
    if (rc == 0 && !answer)
        return act_error_set(err, ACT_NOT_FOUND, "there is no job '%s' in the workspace", id);
    return rc < 0 ? rc : azureml_read_spec(a, id, answer, out, err);
}

static int take_id(void *arg, const json_t *item, struct act_error *err)
{
    const char *name = codec_json_str(item, "name", "");

    (void)err;
    if (run_id_valid(name))
        act_strv_push(arg, name);
    return 0;
}

int azureml_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *url = azureml_url(a, "/jobs?jobType=Command&tag=act");
    rc = arm_each(arm, url, a->api_version, false, "value", "list the jobs of the workspace", take_id,
                  out_ids, err);
    act_strv_sort(out_ids);
    return rc;
}
