/* state.c - what became of jobs, by the run history, which tells times and errors; a job that it does not know
 * yet, by the job itself.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs (JobStatus); the run history as azure-ai-ml speaks to it, and
 * responses of both as they were recorded (arm.h names where).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

enum { GPU_RANKS_MAX = 1 << 16 };

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
    {"CancelRequested", RUN_RUNNING, "is being canceled"},
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
    if (*word)
        snprintf(out->reason, sizeof(out->reason), "the service calls it '%.100s'", word);
    else
        snprintf(out->reason, sizeof(out->reason), "the service does not say its state");
}

/* Attached Kubernetes clusters correct some words later, see correct(). */
static bool may_be(const struct azureml *a, enum run_state told, enum run_state state)
{
    bool corrected = (told == RUN_QUEUED && state == RUN_RUNNING) || (told == RUN_CANCELED && state == RUN_FAILED);

    return told == state || (a->kind == AZUREML_ITP && corrected);
}

char *azureml_state_filter(const struct azureml *a, enum run_state state)
{
    struct act_buf b = {0};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (may_be(a, states[i].state, state))
            act_buf_addf(&b, "%s(Status eq %s)", b.len ? " or " : "", states[i].word);
    return act_buf_steal(&b);
}

enum run_state azureml_state_of(const char *word)
{
    struct run_status status = {0};

    set_state(word, &status);
    return status.state;
}

/* Corrects the state by a tag that attached Kubernetes clusters set, and which knows better. So did the original. */
static void correct(const json_t *tags, struct run_status *out)
{
    const char *real = codec_json_str(tags, "amlk8s status", "");

    if (out->state == RUN_QUEUED && strcasecmp(real, "running") == 0) {
        out->state = RUN_RUNNING;
        out->reason[0] = '\0';
    } else if (out->state == RUN_CANCELED && (strcasecmp(real, "killing") == 0 || strcasecmp(real, "failed") == 0)) {
        out->state = RUN_FAILED;
        snprintf(out->reason, sizeof(out->reason), "the cluster ended it (%s)", real);
    }
}

static void ACT_PRINTF(2, 3) add_reason(struct run_status *out, const char *fmt, ...)
{
    size_t n = strlen(out->reason);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out->reason + n, sizeof(out->reason) - n, fmt, ap);
    va_end(ap);
}

/* A number, or the text of one. */
static bool aml_state_number_of(const json_t *object, const char *key, int64_t *out)
{
    const json_t *member = json_object_get(object, key);

    *out = json_is_integer(member) ? json_integer_value(member) : 0;
    return json_is_integer(member) || act_int_from_text(codec_json_str(object, key, ""), out);
}

/* Why a run waits: how many nodes its cluster has, as far as a tag says it. */
static void add_allocation(const json_t *tags, struct run_status *out)
{
    static const struct {
        const char *key, *text;
    } rows[] = {
        {"CurrentNodeCount", "in the cluster"}, {"RunningNodeCount", "running"}, {"PreparingNodeCount", "starting"}};
    const char *text = codec_json_str(tags, "_aml_system_ComputeTargetStatus", "");
    const char *between = "; nodes: ";
    CODEC_AUTOJSON json_t *json = NULL;

    if (!*text || codec_json_parse(text, strlen(text), "tag", &json, NULL) < 0)
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t n;
        if (!aml_state_number_of(json, rows[i].key, &n))
            continue;
        add_reason(out, "%s%lld %s", between, (long long)n, rows[i].text);
        between = ", ";
    }
}

/* Adds what the service says besides the state. */
static void aml_state_add_words(const json_t *run, struct run_status *out)
{
    const char *queueing = codec_json_str(json_object_get(run, "queueingInfo"), "message", "");
    const char *why = codec_json_str(run, "cancelationReason", "");

    if (out->state == RUN_QUEUED)
        add_allocation(json_object_get(run, "tags"), out);
    if (out->state == RUN_QUEUED && *queueing)
        add_reason(out, "; %.200s", queueing);
    if (out->state == RUN_CANCELED && *why)
        add_reason(out, "%.200s", why);
}

int64_t azureml_time(const json_t *object, const char *key)
{
    const char *text = codec_json_str(object, key, "");
    ACT_AUTOFREE char *utc = act_sprintf("%sZ", text); /* some services leave it out */
    int64_t ns = 0;

    return act_time_from_iso_ns(text, &ns) || act_time_from_iso_ns(utc, &ns) ? ns / 1000000000 : 0;
}

/* "... exited with status code 7. ..." says it; else the code of the error, as of a run for which there is no room. */
static int exit_status_of(const char *reason, const char *code)
{
    static const char before[] = "exited with status code ";
    const char *at = strstr(reason, before);
    char digits[4] = "";
    int64_t status;

    if (at)
        snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at + strlen(before), "0123456789"), at + strlen(before));
    return act_int_from_text(digits, &status) && status > 0 && status < 256 ? (int)status : (int)arm_meaning(code);
}

void azureml_read_run(const json_t *run, struct run_status *out)
{
    const json_t *error = json_object_get(run, "error");

    *out = (struct run_status){.failed_rank = -1, .attempt = 1};
    set_state(codec_json_str(run, "status", ""), out);
    correct(json_object_get(run, "tags"), out);
    aml_state_add_words(run, out);
    out->started_unix_s = azureml_time(run, "startTimeUtc");
    out->ended_unix_s = azureml_time(run, "endTimeUtc");
    if (out->state != RUN_FAILED)
        return;
    char code[64] = "";
    ACT_AUTOFREE char *text =
        json_is_object(error) ? arm_error_text(error, code, sizeof(code)) : codec_json_strdup(run, "error");
    if (text)
        snprintf(out->reason, sizeof(out->reason), "%.500s", text);
    out->exit_status = exit_status_of(out->reason, code);
}

/* ---- one run ---- */

char *azureml_history_url(struct azureml *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *path = act_vsprintf(fmt, ap);
    va_end(ap);
    return act_sprintf("%s/history/v1.0%s%s", a->history, a->workspace, path);
}

int azureml_details(struct azureml *a, const char *id, json_t **out, struct act_error *err)
{
    const char *history;

    *out = NULL;
    if (!run_name_valid(id))
        return 0;
    int rc = azureml_history(a, &history, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("tell the state of '%s'", id);
    struct arm_call call = {
        .method = "GET", .what = what, .url = azureml_history_url(a, "/runs/%s/details", id), .missing_is_fine = true};
    rc = azureml_ask_history(a, &call, err);
    if (rc == 0 && call.status != 404)
        *out = json_incref(call.response);
    arm_call_release(&call);
    return rc;
}

int azureml_job(struct azureml *a, const char *id, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("get the job '%s'", id);

    *out = NULL;
    return run_name_valid(id) ? azureml_find(a, what, azureml_url(a, "/jobs/%s", id), out, err) : 0;
}

int azureml_status_of_one(struct azureml *a, const char *id, struct run_status *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *details = NULL;
    CODEC_AUTOJSON json_t *job = NULL;

    *out = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    int rc = azureml_details(a, id, &details, err);
    if (rc == 0 && details) {
        azureml_read_run(details, out);
        out->attempt = 1 + azureml_last_retry(details);
    }
    if (rc < 0 || details)
        return rc;
    rc = azureml_job(a, id, &job, err); /* a job is a run of the history a moment later */
    if (rc == 0 && job)
        azureml_read_run(json_object_get(job, "properties"), out);
    return rc;
}

/* ---- a run of another machine ---- */

static int aml_state_count_in(const json_t *object, const char *key, int fallback)
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

/* Reads the member of this name, which is JSON as text. */
static int aml_state_read_member(const json_t *own, const char *name,
                                 int (*read)(const json_t *json, struct run_spec *out, struct act_error *err),
                                 struct run_spec *out, struct act_error *err)
{
    const char *text = codec_json_str(own, name, "");
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = *text ? codec_json_parse(text, strlen(text), name, &json, err) : 0;

    return rc < 0 || !json ? rc : read(json, out, err);
}

/* Without what a job of such a run gets by itself. */
static void aml_state_read_environment(const struct azureml *a, const json_t *job, struct run_spec *out)
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

static int aml_state_gpus_of(const json_t *own, const struct run_spec *spec)
{
    int64_t gpus;

    if (act_int_from_text(codec_json_str(own, "act.num_gpu", ""), &gpus) && gpus >= 0 && gpus <= GPU_RANKS_MAX)
        return (int)gpus / spec->nodes;
    return spec->procs_per_node; /* of another tool: as the original counted them */
}

int azureml_read_spec(const struct azureml *a, const char *id, const json_t *response, struct run_spec *out,
                      struct act_error *err)
{
    const json_t *job = json_object_get(response, "properties"), *own = json_object_get(job, "properties"),
                 *resources = json_object_get(job, "resources");
    const char *old = codec_json_str(own, "act.resubmit_of", NULL), *name = codec_json_str(own, "act.name", "");
    *out = (struct run_spec){
        .id = act_strdup(id),
        .experiment = act_strdup(codec_json_str(job, "experimentName", "")),
        .cluster = act_strdup(codec_json_str(own, "act.cluster", a->config->cluster)),
        .platform = act_strdup(a->config->platform),
        .project_root = act_strdup(a->config->project_root),
        .created_unix_s = azureml_time(json_object_get(response, "systemData"), "createdAt"),
        .nodes = aml_state_count_in(resources, "instanceCount", 1),
        .procs_per_node = aml_state_count_in(json_object_get(job, "distribution"), "processCountPerInstance", 1),
        .resubmit_of = act_strdup(old),
        .name = act_strdup(run_label_valid(name) ? name : NULL),
        .tags = run_tags_parse(codec_json_str(own, "act.tags", NULL)),
        .title = codec_json_strdup(own, "act.title"),
        .image = codec_json_strdup(own, "act.image"),
        .timeout = codec_json_strdup(own, "act.timeout"),
        .shm_size = codec_json_strdup(own, "act.shm_size"),
        .compile_args = codec_json_strdup(own, "act.compile_args"),
        .sleep_if_fail = act_streq(codec_json_str(own, "act.sleep_if_fail", NULL), "true"),
        .sleep_if_succeed = act_streq(codec_json_str(own, "act.sleep_if_succeed", NULL), "true"),
        .foreign = !json_object_get(own, "act.cmd"),
    };
    out->gpus_per_node = aml_state_gpus_of(own, out);
    const char *key = codec_json_str(own, "act.package_key", ""), *sha = codec_json_str(own, "act.package_sha256", "");
    if (*key && strlen(sha) == ACT_SHA256_HEX - 1) {
        out->package_key = act_strdup(key);
        snprintf(out->package_sha256, sizeof(out->package_sha256), "%s", sha);
    }
    aml_state_read_environment(a, job, out);
    int rc = read_command(job, out, err);
    if (rc == 0)
        rc = aml_state_read_member(own, "act.volumes", run_volumes_from_json, out, err); /* the caller has the others */
    if (rc == 0)
        rc = aml_state_read_member(own, "act.setup", run_setup_from_json, out, err);
    if (rc < 0)
        run_spec_release(out);
    return rc;
}

int azureml_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    CODEC_AUTOJSON json_t *response = NULL;
    int rc = azureml_job(a, id, &response, err);

    *out = (struct run_spec){0};
    if (rc == 0 && !response)
        return act_error_set(err, ACT_NOT_FOUND, "there is no job '%s' in the workspace", id);
    return rc < 0 ? rc : azureml_read_spec(a, id, response, out, err);
}
