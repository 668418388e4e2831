/* azure_error.c - what an answer of Blob Storage that is not a success means.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/blob-service-error-codes.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/xml.h"
#include "store/azure.h"

#define SENTENCE 320

/* The first row that fits decides; status 0: any, code NULL: any. */
static const struct {
    int status;
    const char *code;
    enum act_code result;
    const char *hint; /* may be NULL */
} meanings[] = {
    {400, "InvalidBlobOrBlock", ACT_FAIL,
     "uncommitted blocks of another program's upload are in the way: they expire within 7 days, or go when "
     "something is written there in one request, or when the uncommitted blob is deleted"},
    {400, "InvalidBlockList", ACT_TEMPORARY, "blocks of this upload are gone; upload it again"},
    {400, "Md5Mismatch", ACT_TEMPORARY, "the data was damaged on its way"},
    {403, "AuthorizationPermissionMismatch", ACT_DENIED, "the credential does not permit this operation"},
    {403, "AuthorizationProtocolMismatch", ACT_DENIED, "the SAS is for https only"},
    {403, "AuthorizationSourceIPMismatch", ACT_DENIED, "the SAS is for other addresses"},
    {403, "AuthenticationFailed", ACT_DENIED, "check the account name and its key or SAS"},
    {403, "AuthorizationFailure", ACT_DENIED, "check the key or SAS, and the firewall of the account"},
    {404, "ContainerNotFound", ACT_NOT_FOUND, "check the name of the container"},
    {409, "BlobArchived", ACT_FAIL, "it is in the archive tier; rehydrate it first"},
    {409, "BlobBeingRehydrated", ACT_TEMPORARY, "it is being rehydrated"},
    {409, "SnapshotsPresent", ACT_FAIL, "delete its snapshots first"},
    {409, "ContainerBeingDeleted", ACT_TEMPORARY, NULL},
    {409, "PendingCopyOperation", ACT_TEMPORARY, NULL},
    {401, NULL, ACT_DENIED, NULL},
    {403, NULL, ACT_DENIED, NULL},
    {404, NULL, ACT_NOT_FOUND, NULL},
    {408, NULL, ACT_TEMPORARY, NULL},
    {412, NULL, ACT_TEMPORARY, "it has changed"},
    {429, NULL, ACT_TEMPORARY, NULL},
    {500, NULL, ACT_TEMPORARY, NULL},
    {502, NULL, ACT_TEMPORARY, NULL},
    {503, NULL, ACT_TEMPORARY, "the service is busy"},
    {504, NULL, ACT_TEMPORARY, NULL},
    {0, NULL, ACT_FAIL, NULL},
};

struct error_body {
    char code[64];
    char message[SENTENCE];
};

static int take_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct error_body *body = arg;

    (void)err;
    if (strcmp(path, "/Error/Code") == 0)
        snprintf(body->code, sizeof(body->code), "%s", text);
    else if (strcmp(path, "/Error/Message") == 0)
        snprintf(body->message, sizeof(body->message), "%s", text);
    return 0;
}

/* Cuts text behind its first sentence: the rest is a request id, a time and general advice. */
static void keep_first_sentence(char *text)
{
    char *end = strstr(text, ". ");

    text[strcspn(text, "\r\n")] = '\0';
    if (end && end < text + strlen(text))
        *end = '\0';
    size_t n = strlen(text);
    if (n && text[n - 1] == '.')
        text[n - 1] = '\0';
}

/* A body that is missing or malformed (a proxy's, a truncated one) only leaves the fields empty. */
static struct error_body read_body(const struct http_call *http)
{
    static const struct xml_handler handler = {.end = take_element};
    struct error_body body = {0};
    const char *code = http_header_get(&http->answer_headers, "x-ms-error-code");

    if (http->body_text.len &&
        xml_parse(http->body_text.data, http->body_text.len, "error", &handler, &body, NULL))
        body.message[0] = '\0';
    if (code)
        snprintf(body.code, sizeof(body.code), "%s", code);
    keep_first_sentence(body.message);
    return body;
}

void azure_service_code(const struct http_call *http, char *out, size_t cap)
{
    struct error_body body = read_body(http);

    snprintf(out, cap, "%s", body.code);
}

static size_t find_meaning(int status, const char *code)
{
    size_t i = 0;

    while ((meanings[i].status && meanings[i].status != status) ||
           (meanings[i].code && strcmp(meanings[i].code, code) != 0))
        i++;
    return i;
}

/* When the SAS ended, if that is in the past. */
static bool sas_expired(const char *sas, char out[ACT_TIME_TEXT])
{
    int64_t ns = 0;
    const char *se = sas;

    while (se && !act_starts_with(se, "se="))
        se = strchr(se, '&') ? strchr(se, '&') + 1 : NULL;
    if (!se)
        return false;
    ACT_AUTOFREE char *raw = act_strndup(se + 3, strcspn(se + 3, "&"));
    ACT_AUTOFREE char *text = http_decode(raw);
    ACT_AUTOFREE char *midnight = act_sprintf("%sT00:00:00Z", text); /* a date alone is allowed */
    if ((!act_time_from_iso_ns(text, &ns) && !act_time_from_iso_ns(midnight, &ns)) || ns >= act_now_unix_ns())
        return false;
    act_time_to_iso(ns / 1000000000, out);
    return true;
}

static bool exists_already(const struct azure_op *op, const char *code)
{
    return op->call->if_absent &&
           (op->http.status == 412 || (op->http.status == 409 && strcmp(code, "BlobAlreadyExists") == 0));
}

int azure_answer_error(struct azure_op *op)
{
    struct http_call *http = &op->http;
    struct act_error *err = &op->call->error;
    struct error_body body = read_body(http);
    size_t row = find_meaning(http->status, body.code);
    const char *id = http_header_get(&http->answer_headers, "x-ms-request-id");
    char ended[ACT_TIME_TEXT];

    act_error_set(err, meanings[row].result, "%s: HTTP %d%s%s%s%s%s%s%s", op->what, http->status,
                  *body.code ? " " : "", body.code, id ? " (request id " : "", id ? id : "", id ? ")" : "",
                  *body.message ? ": " : "", body.message);
    err->http_status = http->status;
    snprintf(err->service_code, sizeof(err->service_code), "%s", body.code);
    snprintf(err->request_id, sizeof(err->request_id), "%s", id ? id : "");

    if (exists_already(op, body.code)) {
        err->code = ACT_PARTIAL;
        act_error_hint(err, "it exists already");
    } else if (err->code == ACT_DENIED && sas_expired(op->azure->sas, ended)) {
        act_error_hint(err, "the SAS expired at %s; get a new one", ended);
    } else if (meanings[row].hint) {
        act_error_hint(err, "%s", meanings[row].hint);
    }
    return -(int)err->code;
}
