/* submit.c - a run becomes a job of the same name: a submission whose response was lost can be found, and repeating the
 * request changes nothing.
 *
 * Source: learn.microsoft.com/rest/api/azureml/jobs (Create Or Update, Cancel); their recorded responses (see arm.h):
 * 201, and 202 with the body "null" or 400 for what has ended.
 */
#include <string.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

/* The first line of the user's public key if the nodes should accept it; otherwise *out is NULL. New string. */
static int find_ssh_key(const struct azureml *a, char **out, struct act_error *err)
{
    static const char *const names[] = {".ssh/id_rsa.pub", ".ssh/id_ed25519.pub", ".ssh/id_ecdsa.pub"};
    enum { MAX = 64 << 10 };
    ACT_AUTOFREE char *home = act_home_dir();

    *out = NULL;
    if (!azureml_keys(a->config)->ssh)
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ACT_AUTOFREE char *path = act_path_join(home, names[i]);
        ACT_AUTOFREE char *text = NULL;
        size_t len = 0;
        int rc = act_file_read(path, MAX, &text, &len, err);
        if (rc == -ACT_NOT_FOUND)
            continue;
        size_t line = rc < 0 ? 0 : strcspn(text, "\r\n");
        if (rc == 0 && (!line || !act_utf8_valid(text, line)))
            rc = act_error_set(err, ACT_CONFIG, "'%s' is not a public key", path);
        if (rc == 0)
            *out = act_strndup(text, line);
        return rc;
    }
    return act_error_set(err, ACT_CONFIG,
                         "azureml.ssh needs your public key, and '%s' has none of %s, %s and %s; "
                         "'ssh-keygen' makes one",
                         home, names[0], names[1], names[2]);
}

static int check_ssh_key(const struct azureml *a, struct act_error *err)
{
    ACT_AUTOFREE char *key = NULL;

    return find_ssh_key(a, &key, err);
}

/* A missing login is reported before the code is packed. A cached token costs no request. */
static int check_login(struct azureml *a, struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    return rc < 0 ? rc : token_wait(services_tokens(a->base.services), arm_want(arm), err);
}

int azureml_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    const struct config *c = a->config;

    if (spec->argv.n == 0)
        return act_error_set(err, ACT_USAGE, "there is no command to run");
    if (!c->docker.image)
        return act_error_set(err, ACT_CONFIG, "the platform '%s' needs 'docker.image' in '%s'", c->platform, c->file);
    if (!c->compute_target && a->kind != AZUREML_MANAGED)
        return act_error_set(err, ACT_CONFIG, "the platform '%s' needs 'compute_target' in '%s'", c->platform, c->file);
    if (!c->compute_target && !azureml_keys(c)->instance_type)
        return act_error_set(err, ACT_CONFIG,
                             "'%s' has no compute_target; without one, azureml.instance_type must name a VM size",
                             c->file);
    int rc = azureml_check_image(a, err);
    if (rc == 0)
        rc = azureml_check_stores(a, err);
    if (rc == 0)
        rc = azureml_job_check(a, spec, err);
    return rc < 0 ? rc : check_ssh_key(a, err);
}

int azureml_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    int rc = check_login(a, err);

    return rc < 0 ? rc : azureml_check_start(a, spec, err);
}

/* ---- submit ---- */

/* Tells whether a job of that name is this run: it has the same command; of another tool's job, it repeats the same
 * one. */
static bool is_same_run(const json_t *job, const json_t *body)
{
    const json_t *have = json_object_get(json_object_get(job, "properties"), "properties");
    const json_t *want = json_object_get(json_object_get(body, "properties"), "properties");
    const char *key = json_object_get(want, "act.cmd") ? "act.cmd" : "act.resubmit_of";

    return strcmp(codec_json_str(have, key, ""), codec_json_str(want, key, "?")) == 0;
}

static char *job_url(const struct azureml *a, const char *id)
{
    return azureml_url(a, "/jobs/%s", id);
}

/* After a refusal that may mean that it is there: 0 when it is, else what was said. */
static int look_again(struct azureml *a, const char *id, const json_t *body, const struct act_error *said,
                      struct act_error *err)
{
    struct act_error ignored;
    CODEC_AUTOJSON json_t *job = NULL;

    if (azureml_find(a, "look for the job", job_url(a, id), &job, &ignored) == 0 && job && is_same_run(job, body))
        return 0;
    if (job)
        return act_error_set(err, ACT_FAIL, "there is another job of the name '%s' in the workspace", id);
    *err = *said;
    return -(int)said->code;
}

static int put_job(struct azureml *a, const struct run_spec *spec, const json_t *body, const char *token,
                   struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("submit '%s' to '%s' of the workspace '%s'", spec->id,
                                          a->config->compute_target ? a->config->compute_target : "serverless compute",
                                          aml_config_keys(a->config)->workspace_name);
    ACT_AUTO(arm_call) put = azureml_put(a, what, job_url(a, spec->id), json_deep_copy(body));
    struct act_error said;

    put.user_token = act_strdup(token);
    int rc = arm_do(a->arm, &put, &said);
    if (rc < 0 && (put.status == 0 || put.status == 409 || put.status == 400 || put.status >= 500))
        return look_again(a, spec->id, body, &said, err);
    if (rc < 0)
        *err = said;
    return rc;
}

/* Requests that the service cannot express. */
static void say_what_is_not_used(const struct config *c)
{
    if (c->aks_compute_global_dispatch)
        act_note("aks_compute_global_dispatch is not used, for jobs have no such member: the run waits for '%s' "
                 "alone",
                 c->compute_target);
}

/* The token that a job needs to be its user, and the job itself. */
static int put_body(struct azureml *a, const struct run_spec *spec, const json_t *body, struct act_error *err)
{
    const json_t *identity = json_object_get(json_object_get(body, "properties"), "identity");
    const char *token = NULL;
    int rc = strcmp(codec_json_str(identity, "identityType", ""), "UserIdentity") == 0
                 ? azureml_user_token(a, &token, err)
                 : 0;

    return rc < 0 ? rc : put_job(a, spec, body, token, err);
}

static int submit_foreign(struct azureml *a, const struct platform_submission *submission, struct act_error *err)
{
    const struct run_spec *spec = submission->spec;
    CODEC_AUTOJSON json_t *response = NULL;
    CODEC_AUTOJSON json_t *body = NULL;
    int rc = azureml_job(a, spec->resubmit_of, &response, err);

    if (rc < 0)
        return rc;
    if (!response)
        return act_error_set(err, ACT_NOT_FOUND, "there is no job '%s' in the workspace any more", spec->resubmit_of);
    body = azureml_repeated_body(response, spec);
    *submission->asked = true;
    return put_body(a, spec, body, err);
}

int azureml_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    struct azureml_job_places places;
    CODEC_AUTOJSON json_t *body = NULL;
    ACT_AUTOFREE char *ssh_key = NULL;

    if (submission->spec->foreign)
        return submit_foreign(a, submission, err);
    int rc = azureml_check(p, submission->spec, err);
    if (rc == 0)
        rc = find_ssh_key(a, &ssh_key, err);
    if (rc < 0)
        return rc;
    say_what_is_not_used(a->config);
    rc = azureml_prepare(a, submission, &places, err);
    places.ssh_key = ssh_key;
    if (rc == 0)
        rc = azureml_job_body(a, submission->spec, &places, &body, err);
    *submission->asked = rc == 0;
    if (rc == 0)
        rc = put_body(a, submission->spec, body, err);
    azureml_places_release(&places, submission->spec->n_folders);
    return rc;
}

/* ---- abort and remove ---- */

/* Asks for something to be done with a job; below: "" or "/cancel". */
static int ask_of_job(struct azureml *a, const char *method, const char *verb, const char *id, const char *below,
                      struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *what = act_sprintf("%s '%s'", verb, id);
    struct arm_call call = {
        .method = method, .what = what, .url = azureml_url(a, "/jobs/%s%s", id, below), .api_version = a->api_version};
    rc = arm_do(arm, &call, err);
    arm_call_release(&call);
    return rc;
}

/* The service answers 204 for a job that it does not have. */
int azureml_remove(struct platform *p, const char *id, struct act_error *err)
{
    int rc = ask_of_job(azureml_of(p), "DELETE", "delete", id, "", err);

    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

/* Judges by its status whether a run can be cancelled. */
static void cancel_judge(const struct run_status *status, struct platform_end *end)
{
    end->was_final = run_state_is_final(status->state);
    if (status->state == RUN_UNKNOWN && !status->reason[0])
        end->rc = act_error_set(&end->err, ACT_NOT_FOUND, "there is no job '%s' in the workspace", end->id);
}

/* Takes the answer to a cancellation. The service says 400 to one of a job that has ended meanwhile. */
static void cancel_take(struct platform *p, const struct arm_call *call, struct platform_end *end)
{
    struct run_status status;
    struct act_error ignored;

    end->was_final = call->rc == -ACT_FAIL && platform_status(p, &end->id, 1, &status, &ignored) == 0 &&
                     run_state_is_final(status.state);
    end->rc = end->was_final ? 0 : call->rc;
    end->err = call->error;
}

/* Asks to cancel those that have not ended, all at once. */
static void cancel_all(struct platform *p, struct arm *arm, struct platform_end *ends, size_t n)
{
    struct azureml *a = azureml_of(p);
    ACT_AUTOFREE struct arm_call *calls = act_calloc(n + 1, sizeof(*calls));
    ACT_AUTOFREE struct platform_end **of = act_calloc(n + 1, sizeof(*of));
    ACT_AUTO(act_strv) texts = {0};
    size_t n_calls = 0;

    for (size_t i = 0; i < n; i++)
        if (ends[i].rc == 0 && !ends[i].was_final) {
            act_strv_pushf(&texts, "cancel '%s'", ends[i].id);
            of[n_calls] = &ends[i];
            calls[n_calls++] = (struct arm_call){.method = "POST",
                                                 .what = texts.v[texts.n - 1],
                                                 .url = azureml_url(a, "/jobs/%s/cancel", ends[i].id),
                                                 .api_version = a->api_version};
        }
    arm_do_all(arm, calls, n_calls);
    for (size_t i = 0; i < n_calls; i++) {
        cancel_take(p, &calls[i], of[i]);
        arm_call_release(&calls[i]);
    }
}

void azureml_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    ACT_AUTOFREE struct run_status *now = act_calloc(n, sizeof(*now));
    ACT_AUTOFREE const char **ids = act_calloc(n, sizeof(*ids));
    struct act_error err;
    struct arm *arm;

    for (size_t i = 0; i < n; i++)
        ids[i] = ends[i].id;
    int rc = platform_status(p, ids, n, now, &err);
    if (rc == 0)
        rc = azureml_arm(azureml_of(p), &arm, &err);
    for (size_t i = 0; i < n; i++) {
        ends[i].rc = rc;
        if (rc < 0)
            ends[i].err = err;
        else
            cancel_judge(&now[i], &ends[i]);
    }
    if (rc == 0)
        cancel_all(p, arm, ends, n);
}
