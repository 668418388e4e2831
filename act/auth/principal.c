/* principal.c - an application that authenticates with a secret, or with a token of another issuer.
 *
 * Source: learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow.
 */
#include <string.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "codec/json.h"

enum { MAX_RESPONSE = 1 << 20, MAX_ASSERTION = 64 << 10 };

#define ASSERTION_TYPE "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/* ---- the token endpoint ---- */

void token_form_add(struct act_buf *form, const char *name, const char *value)
{
    ACT_AUTOWIPE char *encoded = http_encode(value, false);

    act_buf_addf(form, "%s%s=%s", form->len ? "&" : "", name, encoded);
}

void token_post(struct token_ask *ask, const char *tenant, const char *path, void (*ended)(struct http_call *))
{
    act_buf_wipe(&ask->call.body_text); /* of the response before */
    http_call_release(&ask->call);
    ask->call = (struct http_call){.method = "POST",
                                   .url = act_sprintf("%s/%s/oauth2/v2.0/%s", ask->authority, tenant, path),
                                   .body = ask->body.data,
                                   .body_len = ask->body.len,
                                   .max_body = MAX_RESPONSE,
                                   .done = ended,
                                   .arg = ask};
    http_header_set(&ask->call.headers, "Content-Type", "application/x-www-form-urlencoded");
    http_header_set(&ask->call.headers, "Accept", "application/json");
    http_start(ask->http, &ask->call);
}

/* Takes the token of a response that came. */
static int take_response(struct token_ask *ask)
{
    CODEC_AUTOJSON json_t *response = token_json_of(&ask->call);
    int64_t now_s = act_now_unix_s();

    if (ask->call.status != 200) {
        token_describe_response(&ask->call, "no token", &ask->error);
        return -(int)ask->error.code;
    }
    if (!response)
        return act_error_set(&ask->error, ACT_FAIL, "the response has no token that can be used");
    return token_take(response, ask->source, now_s, http_clock_ahead_s(&ask->call.response_headers, now_s), &ask->token,
                      &ask->error);
}

void token_settle(struct token_ask *ask)
{
    int rc = ask->call.rc;

    if (rc < 0)
        ask->error = ask->call.error;
    else
        rc = take_response(ask);
    if (rc < 0)
        token_failed(ask);
    else
        token_found(ask);
}

static void principal_answered(struct http_call *call)
{
    struct token_ask *ask = call->arg;

    act_buf_wipe(&ask->body);
    token_settle(ask);
}

/* ---- the two proofs ---- */

/* Begins the form, with what both proofs need. False: ask has failed. */
static bool begin_form(struct token_ask *ask)
{
    static const char *const names[] = {"AZURE_TENANT_ID", "AZURE_CLIENT_ID"};

    for (size_t i = 0; i < 2; i++)
        if (!act_env(names[i])) {
            token_denied(ask, "%s is not set", names[i]);
            return false;
        }
    if (!token_tenant_is_valid(act_env(names[0]))) {
        token_denied(ask, "AZURE_TENANT_ID is '%s', which is not a tenant", act_env(names[0]));
        return false;
    }
    token_form_add(&ask->body, "client_id", act_env(names[1]));
    token_form_add(&ask->body, "scope", ask->want.scope);
    token_form_add(&ask->body, "grant_type", "client_credentials");
    return true;
}

/* A timer calls this, because an ask may only end on the loop's next turn. */
static void ask_with_secret(void *arg)
{
    struct token_ask *ask = arg;

    if (!begin_form(ask))
        return;
    token_form_add(&ask->body, "client_secret", act_env("AZURE_CLIENT_SECRET"));
    token_post(ask, act_env("AZURE_TENANT_ID"), "token", principal_answered);
}

static void start_secret(struct token_ask *ask)
{
    engine_timer(http_engine(ask->http), 0, ask_with_secret, ask);
}

/* Reads the file each time, because it is replaced every hour or so. */
static void read_assertion(void *arg)
{
    struct token_ask *ask = arg;
    size_t len = 0;

    ask->rc = act_file_read(act_env("AZURE_FEDERATED_TOKEN_FILE"), MAX_ASSERTION, &ask->text, &len, &ask->error);
}

static void ask_with_assertion(void *arg)
{
    struct token_ask *ask = arg;

    if (ask->rc < 0) {
        token_failed(ask);
        return;
    }
    char *text = ask->text + strspn(ask->text, " \t\r\n");
    text[strcspn(text, " \t\r\n")] = '\0';
    if (!*text) {
        token_denied(ask, "'%s' is empty", act_env("AZURE_FEDERATED_TOKEN_FILE"));
    } else if (begin_form(ask)) {
        token_form_add(&ask->body, "client_assertion_type", ASSERTION_TYPE);
        token_form_add(&ask->body, "client_assertion", text);
        token_post(ask, act_env("AZURE_TENANT_ID"), "token", principal_answered);
    }
}

static void start_federated(struct token_ask *ask)
{
    engine_work(http_engine(ask->http), read_assertion, ask_with_assertion, ask);
}

/* ---- the sources ---- */

static bool has_secret(void)
{
    return act_env("AZURE_CLIENT_SECRET") != NULL;
}

static bool has_assertion(void)
{
    return act_env("AZURE_FEDERATED_TOKEN_FILE") != NULL;
}

static char *identity(const struct token_want *want)
{
    const char *tenant = act_env("AZURE_TENANT_ID"), *client = act_env("AZURE_CLIENT_ID");

    (void)want;
    return act_sprintf("%s|%s", tenant ? tenant : "", client ? client : "");
}

const struct token_source token_secret = {.name = "client secret",
                                          .credential = "EnvironmentCredential",
                                          .is_for_jobs = true,
                                          .is_set = has_secret,
                                          .identity = identity,
                                          .ask = start_secret};

const struct token_source token_federated = {.name = "federated token",
                                             .credential = "WorkloadIdentityCredential",
                                             .is_for_jobs = true,
                                             .is_set = has_assertion,
                                             .identity = identity,
                                             .ask = start_federated};
