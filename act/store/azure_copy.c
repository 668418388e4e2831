/* azure_copy.c - server-side copies.
 *
 * Copies inside one account are asked for at once (Copy Blob From URL, up to 256 MiB), otherwise started and watched
 * until the service has finished (Copy Blob). From other accounts come whole blobs (Put Blob From URL) and blocks
 * (Put Block From URL); a blob made of the latter gets the properties of the source when it is committed.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/copy-blob-from-url, copy-blob, put-blob-from-url,
 * put-block-from-url.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "store/azure.h"

#define FIRST_POLL_MS 100
#define LAST_POLL_MS  1000
#define SOURCE_LIFE_S 3600             /* of the signature in the URL of a source */
#define STUCK_MS      (10 * 60 * 1000) /* without progress */

/* The state of a COPY. */
struct azure_copy {
    char *id;
    char *progress;
    int64_t moved_ms; /* when it last made progress */
    int64_t poll_ms;
};

static void release_copy(struct azure_op *op)
{
    free(op->copy->id);
    free(op->copy->progress);
    free(op->copy);
}

static void set_source_condition(struct azure_op *op, const char *match)
{
    if (match)
        http_header_set(&op->http.headers, "x-ms-source-if-match", match);
}

/* Names a source in this store and permits the service to read it: by the URL alone, or by the login's token beside
 * it. */
static void set_own_source(struct azure_op *op, bool with_token)
{
    ACT_AUTOWIPE char *bearer = with_token ? auth_bearer(op->azure->auth) : NULL;
    ACT_AUTOWIPE char *source = NULL;

    if (bearer) {
        source = azure_url(op->azure, op->call->copy.source);
        http_header_set(&op->http.headers, "x-ms-copy-source-authorization", bearer);
    } else if (azure_mint_url(op->azure, op->call->copy.source, "r", SOURCE_LIFE_S, &source, NULL) < 0) {
        source = azure_url(op->azure, op->call->copy.source);
    }
    http_header_set(&op->http.headers, "x-ms-copy-source", source);
    set_source_condition(op, op->call->copy.source_match);
}

/* Asks for a copy at once, for which the service only reads what the request itself permits it to read. */
void azure_build_sync_copy(struct azure_op *op)
{
    azure_request(op, "PUT", op->call->key, NULL);
    http_header_set(&op->http.headers, "x-ms-requires-sync", "true");
    set_own_source(op, true);
}

/* Asks for a copy that the service makes later. A request that the account's key signs needs no other permission to
 * read. */
void azure_build_copy(struct azure_op *op)
{
    azure_request(op, "PUT", op->call->key, NULL);
    if (auth_kind_of(op->azure->auth) == AUTH_LOGIN) {
        set_own_source(op, false);
        return;
    }
    ACT_AUTOFREE char *source = azure_url(op->azure, op->call->copy.source);
    http_header_setf(&op->http.headers, "x-ms-copy-source", "%s%s%s", source, op->azure->sas ? "?" : "",
                     op->azure->sas ? op->azure->sas : "");
    set_source_condition(op, op->call->copy.source_match);
}

static void copy_poll(void *arg)
{
    azure_send(arg);
}

/* Polls again later. Returns -ACT_TIMEOUT when nothing has moved for too long. */
static int copy_poll_later(struct azure_op *op)
{
    const char *progress = http_header_get(&op->http.response_headers, "x-ms-copy-progress");
    int64_t now = act_now_monotonic_ms();

    if (!op->copy->moved_ms || (progress && !act_streq(progress, op->copy->progress))) {
        free(op->copy->progress);
        op->copy->progress = act_strdup(progress);
        op->copy->moved_ms = now;
    }
    if (now - op->copy->moved_ms > STUCK_MS)
        return act_error_set(&op->call->error, ACT_TIMEOUT, "%s: no progress for 10 minutes", azure_what(op));
    op->copy->poll_ms = op->copy->poll_ms == 0                 ? FIRST_POLL_MS
                        : op->copy->poll_ms < LAST_POLL_MS / 2 ? 2 * op->copy->poll_ms
                                                               : LAST_POLL_MS;
    engine_timer(http_engine(op->azure->store.http), op->copy->poll_ms, copy_poll, op);
    return 0;
}

/* Takes the first response, or one to a poll: all carry the copy's id and status. */
void azure_answer_copy_status(struct azure_op *op)
{
    const struct http_headers *headers = &op->http.response_headers;
    const char *id = http_header_get(headers, "x-ms-copy-id");
    const char *status = http_header_get(headers, "x-ms-copy-status");
    const char *why = http_header_get(headers, "x-ms-copy-status-description");
    struct act_error *err = &op->call->error;
    int rc = 0;

    if (op->http.status / 100 != 2) {
        azure_finish_failed(op);
        return;
    }
    if (!op->copy->id)
        op->copy->id = act_strdup(id ? id : "");
    if (!status || !act_streq(id ? id : "", op->copy->id))
        rc = act_error_set(err, ACT_TEMPORARY, "%s: something else was written there meanwhile", azure_what(op));
    else if (strcmp(status, "pending") == 0) {
        op->phase = AZURE_COPY_POLL;
        rc = copy_poll_later(op);
        if (rc == 0)
            return;
    } else if (strcmp(status, "success") != 0)
        rc = act_error_set(err, ACT_FAIL, "%s: copy %s: %s", azure_what(op), status, why ? why : "no reason given");
    else {
        op->call->entry.key = act_strdup(op->call->key);
        azure_take_etag(&op->call->entry, http_header_get(headers, "ETag"));
    }
    azure_finish(op, rc);
}

/* Returns whether the first try of the request did start a copy, though it seemed to fail. */
static bool is_ours_pending(const struct azure_op *op)
{
    return op->http.ambiguous && azure_has_code(&op->http, "PendingCopyOperation");
}

void azure_answer_copy(struct azure_op *op)
{
    if (is_ours_pending(op))
        azure_send_phase(op, AZURE_COPY_POLL);
    else
        azure_answer_copy_status(op);
}

/* Blobs that are too large to be copied at once, or that the service may not read that way, are copied later, for
 * which the service takes no token. */
void azure_answer_sync_copy(struct azure_op *op)
{
    if (azure_succeeded(op) || azure_has_code(&op->http, "BlobNotFound") || op->http.status == 412 ||
        op->http.status >= 502)
        azure_answer_copy_status(op);
    else if (auth_kind_of(op->azure->auth) == AUTH_LOGIN)
        azure_need_delegation(op, SOURCE_LIFE_S);
    else
        azure_send_phase(op, AZURE_COPY_LATER);
}

void azure_copy(struct azure_op *op)
{
    op->copy = act_calloc(1, sizeof(*op->copy));
    op->release = release_copy;
    free(op->what);
    op->what = act_sprintf("cannot copy '%s/%s' to '%s/%s'", op->azure->container, op->call->copy.source,
                           op->azure->container, op->call->key);
    azure_send_phase(op, AZURE_COPY_NOW);
}

/* ---- from anywhere */

static void set_source(struct azure_op *op, const struct store_source *source)
{
    http_header_set(&op->http.headers, "x-ms-copy-source", source->url);
    set_source_condition(op, source->match);
}

void azure_build_put_from(struct azure_op *op)
{
    azure_request(op, "PUT", op->call->key, NULL);
    http_header_set(&op->http.headers, "x-ms-blob-type", "BlockBlob");
    http_header_set(&op->http.headers, "x-ms-copy-source-blob-properties", "true");
    azure_set_conditions(op);
    set_source(op, &op->call->put_from.source);
}

void azure_build_block_from(struct azure_op *op)
{
    const struct store_block_from *from = &op->call->block_from;
    uint8_t id[STORE_BLOCK_ID];

    store_block_id(&from->upload_id, from->index, id);
    azure_request_block(op, id);
    set_source(op, &from->source);
    http_header_setf(&op->http.headers, "x-ms-source-range", "bytes=%" PRIu64 "-%" PRIu64, from->offset,
                     from->offset + from->len - 1);
}

/* ---- a commit after blocks from a source */

void azure_build_source_head(struct azure_op *op)
{
    op->http.method = "HEAD";
    op->http.url = act_strdup(op->call->commit.source.url);
    op->http.sign = NULL; /* the URL is what permits it */
}

/* Returns the request header that sets this blob header; NULL: it is not taken over. */
static const char *property_to_set(const char *name)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"Content-Type", "x-ms-blob-content-type"},         {"Content-Encoding", "x-ms-blob-content-encoding"},
        {"Content-Language", "x-ms-blob-content-language"}, {"Content-Disposition", "x-ms-blob-content-disposition"},
        {"Cache-Control", "x-ms-blob-cache-control"},       {"Content-MD5", "x-ms-blob-content-md5"},
    };

    if (strncasecmp(name, "x-ms-meta-", 10) == 0)
        return strcasecmp(name, "x-ms-meta-act_upload") == 0 ? NULL : name;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcasecmp(name, rows[i].from) == 0)
            return rows[i].to;
    return NULL;
}

void azure_answer_source_head(struct azure_op *op)
{
    const struct http_headers *source = &op->http.response_headers;
    const char *etag = http_header_get(source, "ETag"), *wanted = op->call->commit.source.match;

    if (!azure_succeeded(op)) {
        azure_finish_failed(op);
        return;
    }
    if (wanted && !act_streq(etag, wanted)) {
        azure_finish(op, act_error_set(&op->call->error, ACT_TEMPORARY, "%s: the source has changed", azure_what(op)));
        return;
    }
    for (size_t i = 0; i < source->n; i++) {
        const char *name = property_to_set(source->v[i].name);
        if (name)
            azure_keep_property(op, name, source->v[i].value);
    }
    azure_send_phase(op, AZURE_COMMIT);
}

void azure_commit(struct azure_op *op)
{
    if (op->call->commit.source.url)
        azure_send_phase(op, AZURE_SOURCE);
    else
        azure_send_phase(op, AZURE_COMMIT);
}
