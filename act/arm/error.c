/* error.c - reads error responses. The body may be that of the resource manager, that of the run history, a gateway's
 * HTML, or empty. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "arm/arm_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/units.h"
#include "codec/json.h"

enum { DEPTH_MAX = 8, DETAILS_MAX = 4, LINES_MAX = 4, BODY_SHOWN = 500 };

/* The first row that fits decides; status 0: any, code NULL: any. */
static const struct {
    int status;
    const char *code; /* a part of it */
    enum act_code result;
} meanings[] = {
    {0, "QuotaExceeded", ACT_NO_CAPACITY},
    {0, "Quota", ACT_NO_CAPACITY},
    {0, "InsufficientCapacity", ACT_NO_CAPACITY},
    {0, "SkuNotAvailable", ACT_NO_CAPACITY},
    {401, NULL, ACT_DENIED},
    {403, NULL, ACT_DENIED},
    {404, NULL, ACT_NOT_FOUND},
    {408, NULL, ACT_TEMPORARY},
    {429, NULL, ACT_TEMPORARY},
    {500, NULL, ACT_TEMPORARY},
    {502, NULL, ACT_TEMPORARY},
    {503, NULL, ACT_TEMPORARY},
    {504, NULL, ACT_TEMPORARY},
    {0, NULL, ACT_FAIL},
};

static enum act_code arm_meaning_of(int status, const char *code)
{
    size_t i = 0;

    while ((meanings[i].status && meanings[i].status != status) ||
           (meanings[i].code && !strstr(code, meanings[i].code)))
        i++;
    return meanings[i].result;
}

enum act_code arm_meaning(const char *code)
{
    return arm_meaning_of(0, code);
}

/* Returns the entry of this type in an error's "additionalInfo"; NULL: there is none. */
static const json_t *info_of(const json_t *error, const char *type)
{
    const json_t *info = codec_json_find(json_object_get(error, "additionalInfo"), "type", type);

    return json_object_get(json_object_get(info, "info"), "value");
}

/* Returns the error within an error; for jobs and what they need, it is in the list. */
static const json_t *inner_of(const json_t *error)
{
    static const char *const names[] = {"innerError", "innererror"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *inner = json_object_get(error, names[i]);
        if (json_is_object(inner))
            return inner;
    }
    return info_of(error, "InnerError");
}

/* Returns the innermost code, which says most: UserError -> NotFoundError. */
static const char *deepest_code(const json_t *error)
{
    const char *code = codec_json_str(error, "code", "");

    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const json_t *inner = inner_of(error);
        if (!json_is_object(inner))
            break;
        error = inner;
        if (*codec_json_str(error, "code", ""))
            code = codec_json_str(error, "code", "");
    }
    return code;
}

/* Adds a message as one line, without final stops, and of a trace only the beginning. */
static void add_sentence(struct act_buf *out, const char *text)
{
    for (int line = 0; *text && line < LINES_MAX; line++) {
        text += strspn(text, " \t\r\n");
        size_t len = strcspn(text, "\r\n"), n = len;
        while (n && (text[n - 1] == '.' || isspace((unsigned char)text[n - 1])))
            n--;
        if (n && line)
            act_buf_adds(out, "; ");
        act_buf_add(out, text, n);
        text += len;
    }
}

/* Details that say more than the message does. */
static void add_details(struct act_buf *out, const json_t *error)
{
    size_t i;
    json_t *detail;

    json_array_foreach(json_object_get(error, "details"), i, detail)
    {
        const char *message = codec_json_str(detail, "message", "");
        if (i >= DETAILS_MAX)
            break;
        if (!*message || (out->data && strstr(out->data, message)))
            continue;
        act_buf_adds(out, "; ");
        add_sentence(out, message);
    }
}

/* Finds the error in {"error": {...}}, the error itself, or {"message": ...} (App Service, gateways). */
static const json_t *arm_error_of(const json_t *body)
{
    const json_t *error = json_object_get(body, "error");

    return json_is_object(error) ? error : json_is_object(body) ? body : NULL;
}

char *arm_error_text(const json_t *body, char *code, size_t size)
{
    const json_t *error = arm_error_of(body);
    struct act_buf out = {0};
    const char *message = codec_json_str(error, "message", codec_json_str(error, "Message", ""));

    snprintf(code, size, "%s", error ? deepest_code(error) : "");
    if (!error || (!*message && !*code))
        return NULL;
    if (!act_starts_with(message, code)) /* many begin with it */
        act_buf_addf(&out, "%s%s", code, *code && *message ? ": " : "");
    add_sentence(&out, message);
    add_details(&out, error);
    ACT_AUTOFREE char *plain = act_buf_steal(&out);
    return http_redact_text(plain);
}

/* Returns the id by which support finds a request. */
static const char *arm_id_of(const struct http_call *http, const json_t *body)
{
    static const char *const headers[] = {"x-ms-correlation-request-id", "x-ms-request-id"};

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        const char *id = http_header_get(&http->response_headers, headers[i]);
        if (id && *id)
            return id;
    }
    const json_t *correlation = json_object_get(body, "correlation");
    if (!correlation)
        correlation = info_of(arm_error_of(body), "Correlation");
    return codec_json_str(correlation, "operation", codec_json_str(correlation, "request", ""));
}

/* Returns the beginning of a body that is not an error of the service, redacted. New string. */
static char *arm_raw_text(const struct http_call *http)
{
    size_t n = http->body_text.len < BODY_SHOWN ? http->body_text.len : BODY_SHOWN;
    ACT_AUTOFREE char *text = act_strndup(n ? http->body_text.data : "", n);

    for (char *c = text; *c; c++)
        if (isspace((unsigned char)*c))
            *c = ' ';
    return http_redact_text(text);
}

void arm_hint_tenant(struct act_error *err, const char *tenant)
{
    const char *set = act_env("AZURE_TENANT_ID");

    if (set)
        act_error_hint(err, "it belongs to the tenant %s, AZURE_TENANT_ID is '%s'", tenant, set);
    else
        act_error_hint(err, "it belongs to the tenant %s; run 'az login --tenant %s'", tenant, tenant);
}

/* A clock that is wrong makes 'az' give out tokens that have ended. */
static void hint_clock(struct act_error *err, const struct http_call *http)
{
    enum { SKEW_S = 300 };
    int64_t ahead_s = http_clock_ahead_s(&http->response_headers, act_now_unix_s());
    char text[ACT_UNIT_TEXT];

    if (ahead_s >= -SKEW_S && ahead_s <= SKEW_S)
        return;
    act_duration_to_text(ahead_s < 0 ? -ahead_s : ahead_s, text);
    act_error_hint(err, "the clock of this machine is %s %s that of the service", text,
                   ahead_s < 0 ? "ahead of" : "behind");
}

static void arm_hint_at_login(struct arm_call *call, const struct http_call *http, const struct token_want *want,
                              const char *token)
{
    ACT_AUTO(token_challenge) challenge = {0};

    if (call->status != 401)
        return;
    token_read_challenge(http_header_get(&http->response_headers, "WWW-Authenticate"), &challenge);
    if (challenge.claims) {
        ACT_AUTOFREE char *command = token_claims_command(&challenge, want);
        act_error_hint(&call->error, "further proof is required; run '%s'", command);
    } else if (challenge.tenant && !token_is_of_tenant(token, challenge.tenant)) {
        arm_hint_tenant(&call->error, challenge.tenant);
    } else {
        act_error_hint(&call->error, "the service rejects the login; log in again ('a doctor' shows who you are)");
        hint_clock(&call->error, http);
    }
}

int arm_describe(struct arm_call *call, const struct http_call *http, const json_t *body, const struct token_want *want,
                 const char *token)
{
    char code[sizeof(call->error.service_code)];
    ACT_AUTOFREE char *text = arm_error_text(body, code, sizeof(code));
    ACT_AUTOFREE char *raw = text ? NULL : arm_raw_text(http);
    const char *said = text ? text : *raw || call->status != 404 ? raw : "there is none";
    const char *id = arm_id_of(http, body);

    act_error_set(&call->error, arm_meaning_of(call->status, code), "cannot %s: HTTP %d%s%s%s%s%s", call->what,
                  call->status, *said ? ": " : "", said, *id ? " (request id " : "", id, *id ? ")" : "");
    call->error.http_status = call->status;
    snprintf(call->error.service_code, sizeof(call->error.service_code), "%s", code);
    snprintf(call->error.request_id, sizeof(call->error.request_id), "%s", id);
    arm_hint_at_login(call, http, want, token);
    return -(int)call->error.code;
}
