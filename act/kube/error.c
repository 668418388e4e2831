/* error.c - what a response that is not 2xx means. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "kube/kube_internal.h"

enum { CAUSES_MAX = 3, BODY_SHOWN = 300 };

static enum act_code meaning_of(int status)
{
    static const struct {
        int status;
        enum act_code code;
    } meanings[] = {{401, ACT_DENIED},    {403, ACT_DENIED}, {404, ACT_NOT_FOUND}, {408, ACT_TEMPORARY},
                    {410, ACT_TEMPORARY}, {422, ACT_CONFIG}, {429, ACT_TEMPORARY}};

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].status == status)
            return meanings[i].code;
    return status >= 500 ? ACT_TEMPORARY : ACT_FAIL;
}

/* Other meanings of a status, by the words of the server: not every 403 is a missing right, and what a webhook fails at
 * has not been done. Source: kubernetes.io/docs/concepts/policy/resource-quotas; .../reference/access-authn-authz/
 * authorization and extensible-admission-controllers (failurePolicy). */
static const struct cause {
    int status;
    const char *words;
    enum act_code code;
    const char *service_code; /* NULL: the Status' reason */
    const char *hint;
} causes[] = {
    {401, "", ACT_DENIED, NULL,
     "the cluster does not accept the credentials of the kubeconfig: log in again as your provider says, and try "
     "'kubectl get pods'"},
    {403, "exceeded quota", ACT_NO_CAPACITY, KUBE_NO_QUOTA,
     "'kubectl describe quota' shows what the namespace may have, and 'a prune' removes what old runs left"},
    {403, " cannot ", ACT_DENIED, NULL, "ask whoever runs the cluster for this right"},
    {403, "is forbidden: ", ACT_DENIED, KUBE_NOT_ADMITTED, NULL},
    {403, "denied the request", ACT_DENIED, KUBE_NOT_ADMITTED, NULL},
    {500, "failed calling webhook", ACT_TEMPORARY, KUBE_NO_WEBHOOK,
     "nothing was made: a program that the cluster asks does not answer; tell whoever runs it, and try again then"},
};

static const struct cause *kube_error_cause_of(int status, const char *text)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        if (causes[i].status == status && strstr(text, causes[i].words))
            return &causes[i];
    return NULL;
}

/* Adds "field: message; ..." of the causes, as far as the message does not say it itself. */
static void add_causes(struct act_buf *out, const json_t *body)
{
    const json_t *cause;
    size_t i, shown = 0;

    json_array_foreach(json_object_get(json_object_get(body, "details"), "causes"), i, cause)
    {
        const char *field = codec_json_str(cause, "field", ""), *message = codec_json_str(cause, "message", "");
        if (!*message || strstr(out->data, message))
            continue;
        if (shown++ == CAUSES_MAX)
            break;
        act_buf_addf(out, "; %s%s%s", field, *field ? ": " : "", message);
    }
}

/* Overwrites what was sent to log in, which the server may repeat. authorization: "Bearer ..."; NULL: nothing was. */
static void mask(char *text, const char *authorization)
{
    const char *secret = authorization ? strchr(authorization, ' ') : NULL;
    size_t n = secret ? strlen(++secret) : 0;

    for (char *s = text; n && (s = strstr(s, secret)); s += n)
        memset(s, '*', n);
}

/* Returns the beginning of a body that is no Status, as one line. New string. */
static char *raw_text(const struct act_buf *body, const char *authorization)
{
    ACT_AUTOFREE char *text = act_strndup(body->len ? body->data : "", body->len);
    size_t n = strlen(text);

    mask(text, authorization);
    n = n < BODY_SHOWN ? n : BODY_SHOWN;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return act_one_line(text, n);
}

static bool is_status(const json_t *body)
{
    return act_streq(codec_json_str(body, "kind", NULL), "Status");
}

/* Returns the words of the server, redacted; "" where it has none. New string. */
static char *kube_error_text_of(const struct http_call *http, const json_t *body, const char *authorization)
{
    struct act_buf out = {0};

    if (is_status(body)) {
        act_buf_adds(&out, codec_json_str(body, "message", codec_json_str(body, "reason", "")));
        if (out.len)
            add_causes(&out, body);
    }
    if (!out.len) {
        ACT_AUTOFREE char *raw = raw_text(&http->body_text, authorization);
        act_buf_adds(&out, raw);
    }
    ACT_AUTOFREE char *plain = act_buf_steal(&out);
    mask(plain, authorization);
    return http_redact_text(plain);
}

/* An unknown group or version is answered with a line of text, and not with a Status. */
static bool is_unknown_api(const struct http_call *http, const json_t *body)
{
    return http->status == 404 && !is_status(body);
}

static void hint(struct act_error *err, int status, const struct cause *cause)
{
    if (cause && cause->hint)
        act_error_hint(err, "%s", cause->hint);
    else if (status >= 300 && status < 400)
        act_error_hint(err, "redirections are not followed: correct 'server' in the kubeconfig");
}

int kube_describe(struct act_error *err, const char *what, const struct http_call *http, const json_t *body,
                  const char *authorization)
{
    ACT_AUTOFREE char *text = kube_error_text_of(http, body, authorization);
    bool unknown = is_unknown_api(http, body);
    const struct cause *cause = kube_error_cause_of(http->status, text);
    const char *reason = unknown                        ? "NoSuchApi"
                         : cause && cause->service_code ? cause->service_code
                                                        : codec_json_str(body, "reason", "");

    if (unknown)
        act_error_set(err, ACT_NOT_FOUND, "cannot %s: the server does not know this part of the API (%s)", what,
                      *text ? text : "HTTP 404");
    else
        act_error_set(err, cause ? cause->code : meaning_of(http->status), "cannot %s: HTTP %d%s%s", what, http->status,
                      *text ? ": " : "", text);
    err->http_status = http->status;
    snprintf(err->service_code, sizeof(err->service_code), "%s", reason);
    hint(err, http->status, cause);
    return -(int)err->code;
}
