/* azure_error.c - error responses of Blob Storage and Azure Files.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/blob-service-error-codes, file-service-error-codes.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/xml.h"
#include "store/azure.h"

/* The meaning of each error: the first row that fits decides. Status 0 and code NULL fit any. */
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
    {409, "CannotVerifyCopySource", ACT_FAIL, "the service cannot read the source, or it has changed"},
    {404, "CannotVerifyCopySource", ACT_NOT_FOUND, NULL},
    {0, "CannotVerifyCopySource", ACT_DENIED, "the service cannot read the source"},
    {403, "AuthorizationPermissionMismatch", ACT_DENIED, "the credential does not permit this operation"},
    {403, "AuthorizationProtocolMismatch", ACT_DENIED, "the SAS is for https only"},
    {403, "AuthorizationSourceIPMismatch", ACT_DENIED, "the SAS is for other addresses"},
    {403, "AuthenticationFailed", ACT_DENIED, "check the account name and its key or SAS"},
    {403, "AuthorizationFailure", ACT_DENIED, "check the key or SAS, and the firewall of the account"},
    {404, "ContainerNotFound", ACT_NOT_FOUND, "check the name of the container"},
    {404, "ShareNotFound", ACT_NOT_FOUND, "check the name of the share"},
    {403, "ShareDisabled", ACT_DENIED, "its administrator has disabled the share"},
    {409, "ShareBeingDeleted", ACT_TEMPORARY, NULL},
    {0, "ShareSizeLimitReached", ACT_FAIL, "the share is full: raise its quota, or remove something"},
    {0, "FileShareProvisionedStorageExceeded", ACT_FAIL, "the share is full: raise its quota, or remove something"},
    {409, "ResourceTypeMismatch", ACT_NOT_FOUND, "there is something of another kind: a file, or a folder"},
    {409, "DirectoryNotEmpty", ACT_FAIL, "the folder is not empty"},
    {409, "ReadOnlyAttribute", ACT_DENIED, "it is marked as read-only there"},
    {409, "CannotDeleteFileOrDirectory", ACT_TEMPORARY, "it cannot be deleted now"},
    {409, "DeletePending", ACT_TEMPORARY, "somebody who mounts the share deletes it"},
    {409, "SharingViolation", ACT_TEMPORARY, "somebody who mounts the share has it open"},
    {409, "FileOpenBySmbClient", ACT_TEMPORARY, "somebody who mounts the share has it open"},
    {409, "FileLockConflict", ACT_TEMPORARY, "somebody who mounts the share has locked it"},
    {500, "ClientCacheFlushDelay", ACT_TEMPORARY, "somebody who mounts the share has not written it back yet"},
    {409, "BlobArchived", ACT_FAIL, "it is in the archive tier; rehydrate it first"},
    {409, "BlobBeingRehydrated", ACT_TEMPORARY, "it is being rehydrated"},
    {409, "SnapshotsPresent", ACT_FAIL, "delete its snapshots first"},
    {409, "ContainerBeingDeleted", ACT_TEMPORARY, NULL},
    {409, "PendingCopyOperation", ACT_TEMPORARY, NULL},
    {401, NULL, ACT_DENIED, NULL},
    {403, NULL, ACT_DENIED, NULL},
    {404, NULL, ACT_NOT_FOUND, NULL},
    {408, NULL, ACT_TEMPORARY, NULL},
    {412, "SourceConditionNotMet", ACT_TEMPORARY, "the source has changed"},
    {412, "LeaseIdMissing", ACT_TEMPORARY, "somebody holds a lease on it"},
    {412, NULL, ACT_TEMPORARY, "it has changed"},
    {429, NULL, ACT_TEMPORARY, NULL},
    {500, NULL, ACT_TEMPORARY, NULL},
    {502, NULL, ACT_TEMPORARY, NULL},
    {503, NULL, ACT_TEMPORARY, "the service is busy"},
    {504, NULL, ACT_TEMPORARY, NULL},
    {0, NULL, ACT_FAIL, NULL},
};

/* The facts that callers decide by, in rows of the same kind; an error may fit none. */
static const struct {
    int status;
    const char *code;
    enum act_fact fact;
} facts[] = {
    {0, "BlobNotFound", ACT_FACT_OBJECT_MISSING},
    {0, "ContainerNotFound", ACT_FACT_CONTAINER_MISSING},
    {0, "ShareNotFound", ACT_FACT_CONTAINER_MISSING},
    {0, "ResourceNotFound", ACT_FACT_OBJECT_MISSING},
    {0, "ParentNotFound", ACT_FACT_OBJECT_MISSING},
    {0, "InvalidBlockList", ACT_FACT_BLOCKS_MISSING},
    {0, "APINotImplemented", ACT_FACT_NOT_BY_SERVICE},
    {0, "CannotVerifyCopySource", ACT_FACT_NOT_BY_SERVICE},
    {0, "FeatureNotSupported", ACT_FACT_NOT_BY_SERVICE},
    {0, "InvalidHeaderValue", ACT_FACT_NOT_BY_SERVICE},
    {0, "UnsupportedHeader", ACT_FACT_NOT_BY_SERVICE},
    {500, "", ACT_FACT_NOT_BY_SERVICE},
    {501, NULL, ACT_FACT_NOT_BY_SERVICE},
};

static int take_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct azure_refusal *refusal = arg;

    (void)err;
    if (strcmp(path, "/Error/Code") == 0)
        snprintf(refusal->code, sizeof(refusal->code), "%s", text);
    else if (strcmp(path, "/Error/Message") == 0)
        snprintf(refusal->message, sizeof(refusal->message), "%s", text);
    return 0;
}

/* Cuts a message after its first sentence: a request id, a time and general advice follow. */
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

/* A message may repeat the value of a header that it complains about, as the URL of a source or a token. */
static void hide_secrets(char message[AZURE_SENTENCE])
{
    ACT_AUTOFREE char *plain = http_redact_text(message);
    ACT_AUTOFREE char *shown = strstr(plain, "sig=") ? http_redact_url(plain) : act_strdup(plain);

    snprintf(message, AZURE_SENTENCE, "%s", shown);
}

/* Takes what the service got when it read the source of a copy. */
static void read_source(struct azure_refusal *out, const struct http_headers *headers)
{
    const char *status = http_header_get(headers, "x-ms-copy-source-status-code");
    const char *code = http_header_get(headers, "x-ms-copy-source-error-code");

    out->source_status = status ? (int)strtol(status, NULL, 10) : 0;
    snprintf(out->source_code, sizeof(out->source_code), "%s", code ? code : "");
}

/* A body that is missing or malformed, such as a proxy's or a truncated one, leaves the fields empty. */
void azure_read_refusal(struct azure_refusal *out, int status, const struct http_headers *headers, const char *body,
                        size_t len)
{
    static const struct xml_handler handler = {.end = take_element};
    const char *code = http_header_get(headers, "x-ms-error-code");
    const char *id = http_header_get(headers, "x-ms-request-id");

    *out = (struct azure_refusal){.status = status};
    if (len && xml_parse(body, len, "error", &handler, out, NULL))
        out->message[0] = '\0';
    if (code)
        snprintf(out->code, sizeof(out->code), "%s", code);
    snprintf(out->request_id, sizeof(out->request_id), "%s", id ? id : "");
    keep_first_sentence(out->message);
    hide_secrets(out->message);
    read_source(out, headers);
}

struct azure_refusal azure_refusal_of(const struct http_call *http)
{
    struct azure_refusal refusal;

    azure_read_refusal(&refusal, http->status, &http->response_headers, http->body_text.data, http->body_text.len);
    return refusal;
}

bool azure_has_code(const struct http_call *http, const char *code)
{
    const char *header = http_header_get(&http->response_headers, "x-ms-error-code");

    if (header)
        return strcmp(header, code) == 0;
    struct azure_refusal refusal = azure_refusal_of(http);
    return strcmp(refusal.code, code) == 0;
}

static bool row_fits(int row_status, const char *row_code, int status, const char *code)
{
    return (!row_status || row_status == status) && (!row_code || strcmp(row_code, code) == 0);
}

static size_t refusal_meaning(int status, const char *code)
{
    size_t i = 0;

    while (!row_fits(meanings[i].status, meanings[i].code, status, code))
        i++;
    return i;
}

static enum act_fact find_fact(int status, const char *code)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        if (row_fits(facts[i].status, facts[i].code, status, code))
            return facts[i].fact;
    return ACT_FACT_NONE;
}

/* Returns whether the SAS has expired, and when in `out`. */
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

static void set_facts(const char *what, const struct azure_refusal *r, enum act_code result, struct act_error *err)
{
    bool has_id = *r->request_id;

    act_error_set(err, result, "%s: HTTP %d%s%s%s%s%s%s%s", what, r->status, *r->code ? " " : "", r->code,
                  has_id ? " (request id " : "", r->request_id, has_id ? ")" : "", *r->message ? ": " : "", r->message);
    err->fact = find_fact(r->status, r->code);
    err->http_status = r->status;
    snprintf(err->service_code, sizeof(err->service_code), "%s", r->code);
    snprintf(err->request_id, sizeof(err->request_id), "%s", r->request_id);
    if (r->source_status)
        act_error_hint(err, "the source answered %d %s", r->source_status, r->source_code);
}

/* Judges a copy whose source refused: it says whether a later try may succeed; otherwise we may be able to read it
 * ourselves. */
static int source_refused(const struct azure_refusal *r, struct act_error *err)
{
    bool may_pass = r->source_status == 412 || r->source_status == 429 || r->source_status >= 500;

    err->fact = may_pass ? find_fact(r->status, r->source_code) : ACT_FACT_NOT_BY_SERVICE;
    if (may_pass)
        err->code = ACT_TEMPORARY;
    return -(int)err->code;
}

int azure_describe(const struct azure *azure, const char *what, const struct azure_refusal *r, struct act_error *err)
{
    size_t row = refusal_meaning(r->status, r->code);
    char ended[ACT_TIME_TEXT];

    set_facts(what, r, meanings[row].result, err);
    if (r->source_status)
        return source_refused(r, err);
    if (meanings[row].result == ACT_DENIED && sas_expired(azure->sas, ended))
        return act_error_hint(err, "the SAS expired at %s; get a new one", ended);
    if (meanings[row].hint)
        return act_error_hint(err, "%s", meanings[row].hint);
    return -(int)meanings[row].result;
}

static bool exists_already(const struct azure_op *op, const struct azure_refusal *r)
{
    static const struct {
        int status;
        const char *code;
    } rows[] = {{409, "BlobAlreadyExists"}, {412, "ConditionNotMet"}, {412, "TargetConditionNotMet"}, {412, ""}};

    bool if_absent = store_condition_of(op->call)->if_absent;

    for (size_t i = 0; if_absent && !r->source_status && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (r->status == rows[i].status && strcmp(r->code, rows[i].code) == 0)
            return true;
    return false;
}

int azure_answer_error(struct azure_op *op)
{
    struct azure_refusal refusal = azure_refusal_of(&op->http);
    struct act_error *err = &op->call->error;

    if (!exists_already(op, &refusal)) {
        int rc = azure_describe(op->azure, azure_what(op), &refusal, err);
        azure_hint_login(op, err);
        return rc;
    }
    set_facts(azure_what(op), &refusal, ACT_PARTIAL, err);
    return act_error_hint(err, "it exists already");
}
