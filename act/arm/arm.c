/* arm.c - one request: token, request, response; and once more when the token is refused.
 *
 *   arm_do -> token_start -> send -> arm_answered -> arm_end_try
 *                     ^                    | 401, the first time
 *                     +--------------------+
 */
#include <string.h>
#include <strings.h>

#include "arm/arm_internal.h"
#include "auth/trusted.h"
#include "base/clock.h"
#include "base/hash.h"
#include "codec/json.h"

enum { RESPONSE_MAX = 16 << 20 };

struct arm_try {
    struct arm *arm;
    struct arm_call *call;
    struct token_call token;
    struct http_call http;
    char *what;              /* "cannot ..." */
    char *body, *sent_token; /* the token is secret */
    bool renewed;
    bool *finished;
};

/* ---- the client ---- */

static char *without_slash(const char *url)
{
    size_t n = strlen(url);

    while (n && url[n - 1] == '/')
        n--;
    return act_strndup(url, n);
}

static char *arm_endpoint_of(const struct arm_options *options)
{
    ACT_AUTOFREE char *scope = act_strdup(options->cloud->arm_scope);
    char *default_part = strstr(scope, "/.default");

    if (default_part)
        *default_part = '\0';
    return without_slash(options->endpoint ? options->endpoint : scope);
}

/* Checks that a token for this cloud may go to a base URL. */
static int check_base(const struct auth_cloud *cloud, const char *url, const char *said_by, bool is_own,
                      struct act_error *err)
{
    struct auth_address address = {
        .url = url, .cloud = cloud, .said_by = said_by, .owner = AUTH_OF_USER, .is_own = is_own};

    if (!http_is_private(url))
        return act_error_set(err, ACT_CONFIG, "%s is '%s': a token goes there, so it must begin with 'https://'",
                             said_by, url);
    int rc = auth_cloud_check(cloud, url, err);
    return rc < 0 ? rc : auth_check_address(&address, err);
}

int arm_new(const struct arm_options *options, struct arm **out, struct act_error *err)
{
    char *endpoint = arm_endpoint_of(options);
    int rc = check_base(options->cloud, endpoint, options->said_by ? options->said_by : "the resource manager",
                        options->is_own, err);

    if (rc < 0) {
        free(endpoint);
        return rc;
    }
    struct arm *arm = act_calloc(1, sizeof(*arm));
    *arm = (struct arm){
        .http = options->http, .tokens = options->tokens, .endpoint = endpoint, .tenant = act_strdup(options->tenant)};
    arm->want = (struct token_want){.cloud = options->cloud,
                                    .scope = options->scope ? options->scope : options->cloud->arm_scope,
                                    .tenant = arm->tenant,
                                    .use_cli = options->use_cli};
    act_strv_push(&arm->trusted, endpoint);
    *out = arm;
    return 0;
}

void arm_free(struct arm *arm)
{
    if (!arm)
        return;
    act_strv_release(&arm->trusted);
    free(arm->endpoint);
    free(arm->tenant);
    free(arm);
}

const char *arm_endpoint(const struct arm *arm)
{
    return arm->endpoint;
}

char *arm_segment(const char *text)
{
    struct act_buf out = {0};

    for (const char *c = text; *c; c++) {
        ACT_AUTOFREE char *one = http_encode((char[]){*c, '\0'}, false);
        act_buf_adds(&out, strchr("!'()*", *c) ? (char[]){*c, '\0'} : one);
    }
    return act_buf_steal(&out);
}

int arm_trust(struct arm *arm, const char *base_url, const char *said_by, bool is_own, struct act_error *err)
{
    int rc = check_base(arm->want.cloud, base_url, said_by, is_own, err);

    if (rc == 0)
        act_strv_take(&arm->trusted, without_slash(base_url));
    return rc;
}

const struct token_want *arm_want(const struct arm *arm)
{
    return &arm->want;
}

int arm_identify(struct arm *arm, struct token_identity *out, struct act_error *err)
{
    return token_identify(arm->tokens, &arm->want, out, err);
}

/* Tells whether the token may go to a URL: it begins with a trusted base URL, at a boundary. */
static bool is_trusted(const struct arm *arm, const char *url)
{
    static const char default_port[] = ":443";

    for (size_t i = 0; i < arm->trusted.n; i++) {
        size_t n = strlen(arm->trusted.v[i]);
        if (strncasecmp(url, arm->trusted.v[i], n) != 0)
            continue;
        const char *rest = url + n; /* some services name the port in their links */
        if (act_starts_with(url, "https://") && act_starts_with(rest, default_port))
            rest += strlen(default_port);
        if (strchr("/?", *rest))
            return true;
    }
    return false;
}

/* ---- the request ---- */

static char *whole_url(const struct arm *arm, const struct arm_call *call)
{
    ACT_AUTOFREE char *url = *call->url == '/' ? act_sprintf("%s%s", arm->endpoint, call->url) : act_strdup(call->url);

    if (!call->api_version)
        return act_strdup(url);
    return act_sprintf("%s%capi-version=%s", url, strchr(url, '?') ? '&' : '?', call->api_version);
}

static void forget_token(struct arm_try *t)
{
    act_wipe(&t->sent_token);
}

static void arm_end_try(struct arm_try *t, int rc)
{
    struct arm_call *call = t->call;

    http_call_release(&t->http);
    forget_token(t);
    act_wipe(&t->body);
    free(t->what);
    *t->finished = true;
    free(t);
    call->rc = rc;
}

static void ask_for_token(struct arm_try *t);

/* A token for another tenant than the service names is still valid: it is kept for that tenant. */
static bool follow_tenant(struct arm_try *t, const struct token_challenge *challenge)
{
    struct arm *arm = t->arm;

    if (!token_follows(challenge, &t->token.want, t->sent_token))
        return false;
    if (!arm->tenant)
        arm->want.tenant = arm->tenant = act_strdup(challenge->tenant);
    return true;
}

/* Tells whether to drop a refused token and try a new one. After a claims challenge no other token helps. */
static bool arm_renew(struct arm_try *t)
{
    ACT_AUTO(token_challenge) challenge = {0};

    if (t->http.status != 401 || t->renewed)
        return false;
    token_read_challenge(http_header_get(&t->http.response_headers, "WWW-Authenticate"), &challenge);
    bool again = !challenge.claims;
    t->renewed = true;
    if (!again || !follow_tenant(t, &challenge))
        token_refused(t->arm->tokens, &t->token.want, t->sent_token);
    return again;
}

static char *copy_header(const struct http_call *http, const char *name)
{
    return act_strdup(http_header_get(&http->response_headers, name));
}

static void arm_take_headers(struct arm_try *t)
{
    struct arm_call *call = t->call;

    call->status = t->http.status;
    call->operation = copy_header(&t->http, "Azure-AsyncOperation");
    if (!call->operation)
        call->operation = copy_header(&t->http, "Operation-Location");
    call->location = copy_header(&t->http, "Location");
    call->retry_after_ms = http_retry_after_ms(&t->http.response_headers, act_now_unix_s());
}

/* Tells whether a body is empty or "null", the response to a cancel. */
static bool arm_says_nothing(const struct act_buf *body)
{
    ACT_AUTOFREE char *text = act_strndup(body->len ? body->data : "", body->len);
    const char *start = text + strspn(text, " \t\r\n");
    size_t n = strcspn(start, " \t\r\n");

    return !start[n + strspn(start + n, " \t\r\n")] && (n == 0 || (n == 4 && strncmp(start, "null", n) == 0));
}

static int judge_response(struct arm_try *t)
{
    struct arm_call *call = t->call;
    const struct act_buf *body = &t->http.body_text;
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error quoting; /* would show a piece of a key */
    int rc = arm_says_nothing(body) ? 0 : codec_json_parse(body->data, body->len, "response", &json, &quoting);

    if (call->status == 404 && call->missing_is_fine) {
        free(arm_error_text(json, call->error.service_code, sizeof(call->error.service_code)));
        return 0;
    }
    if (call->status < 200 || call->status > 299)
        return arm_describe(call, &t->http, json, &t->token.want, t->sent_token);
    if (rc < 0) {
        act_error_set(&call->error, ACT_FAIL, "cannot %s: the response is not JSON", call->what);
        return act_error_hint(&call->error, "is '%s' the right address?", t->arm->endpoint);
    }
    call->response = json_incref(json);
    return 0;
}

static void arm_answered(struct http_call *http)
{
    struct arm_try *t = http->arg;
    struct arm_call *call = t->call;

    if (http->rc < 0) {
        call->error = http->error;
        arm_end_try(t, http->rc);
    } else if (arm_renew(t)) {
        http_call_release(http);
        forget_token(t);
        ask_for_token(t);
    } else {
        arm_take_headers(t);
        arm_end_try(t, judge_response(t));
    }
}

static void send_it(struct arm_try *t)
{
    struct http_call *http = &t->http;
    const char *token = token_now(t->arm->tokens, &t->token.want);
    char id[ACT_UUID_TEXT];

    *http = (struct http_call){.method = t->call->method,
                               .url = whole_url(t->arm, t->call),
                               .max_body = t->call->max_body ? t->call->max_body : RESPONSE_MAX,
                               .what = t->what,
                               .bounded = true,
                               .peer_name = "the service",
                               .done = arm_answered,
                               .arg = t};
    act_uuid(id);
    t->sent_token = act_strdup(token);
    http_header_setf(&http->headers, "Authorization", "Bearer %s", token);
    http_header_set(&http->headers, "Accept", "application/json");
    http_header_set(&http->headers, "x-ms-client-request-id", id);
    if (t->call->user_token)
        http_header_set(&http->headers, "x-azureml-token", t->call->user_token);
    if (t->call->body) {
        if (!t->body)
            t->body = codec_json_line(t->call->body);
        http_header_set(&http->headers, "Content-Type", "application/json");
        http->body = t->body;
        http->body_len = strlen(t->body);
    }
    http_start(t->arm->http, http);
}

static void have_token(struct token_call *token)
{
    struct arm_try *t = token->arg;

    if (token->rc < 0) {
        t->call->error = token->error;
        act_error_prefix(&t->call->error, "cannot %s", t->call->what);
        if (token->want.tenant && !strstr(act_error_text(&t->call->error), "az login"))
            arm_hint_tenant(&t->call->error, token->want.tenant);
        arm_end_try(t, token->rc);
    } else {
        send_it(t);
    }
}

static void ask_for_token(struct arm_try *t)
{
    t->token = (struct token_call){.want = t->arm->want, .done = have_token, .arg = t};
    token_start(t->arm->tokens, &t->token);
}

/* Ends a call whose host is not trusted: the token must not go there. */
static void refuse_call(void *arg)
{
    struct arm_try *t = arg;
    ACT_AUTOFREE char *url = whole_url(t->arm, t->call);
    ACT_AUTOFREE char *shown = http_redact_url(url);

    arm_end_try(t,
                act_error_set(&t->call->error, ACT_FAIL, "cannot %s: the service names '%.200s', which is not at '%s'",
                              t->call->what, shown, t->arm->endpoint));
}

static void arm_begin(struct arm *arm, struct arm_call *call, bool *finished)
{
    struct arm_try *t = act_calloc(1, sizeof(*t));
    ACT_AUTOFREE char *url = whole_url(arm, call);

    *t = (struct arm_try){.arm = arm, .call = call, .what = act_sprintf("cannot %s", call->what), .finished = finished};
    call->retry_after_ms = -1;
    if (is_trusted(arm, url))
        ask_for_token(t);
    else
        engine_timer(http_engine(arm->http), 0, refuse_call, t);
}

void arm_do_all(struct arm *arm, struct arm_call *calls, size_t n)
{
    ACT_AUTOFREE bool *finished = act_calloc(n + 1, sizeof(*finished));

    for (size_t i = 0; i < n; i++)
        arm_begin(arm, &calls[i], &finished[i]);
    for (size_t i = 0; i < n; i++)
        engine_run(http_engine(arm->http), &finished[i]);
}

int arm_do(struct arm *arm, struct arm_call *call, struct act_error *err)
{
    arm_do_all(arm, call, 1);
    if (call->rc < 0 && err)
        *err = call->error;
    return call->rc;
}

void arm_call_release(struct arm_call *call)
{
    free(call->url);
    act_wipe(&call->user_token);
    json_decref(call->body);
    json_decref(call->response);
    free(call->operation);
    free(call->location);
    *call = (struct arm_call){0};
}

static int arm_get_one(struct arm *arm, struct arm_call *call, json_t **out, struct act_error *err)
{
    int rc = arm_do(arm, call, err);

    if (rc == 0 && !call->response && call->status != 404)
        rc = act_error_set(err, ACT_FAIL, "cannot %s: the response is empty", call->what);
    *out = rc == 0 ? json_incref(call->response) : NULL;
    arm_call_release(call);
    return rc;
}

int arm_get(struct arm *arm, const char *url, const char *api_version, const char *what, json_t **out,
            struct act_error *err)
{
    struct arm_call call = {.method = "GET", .what = what, .url = act_strdup(url), .api_version = api_version};

    return arm_get_one(arm, &call, out, err);
}

int arm_find(struct arm *arm, const char *url, const char *api_version, const char *what, json_t **out,
             struct act_error *err)
{
    struct arm_call call = {
        .method = "GET", .what = what, .url = act_strdup(url), .api_version = api_version, .missing_is_fine = true};

    return arm_get_one(arm, &call, out, err);
}
