/* azure_batch.c - STORE_DELETE_MANY: Blob Batch on the container.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/blob-batch.
 *
 * A batch is a multipart request with one DELETE per blob, each signed on its own, and a multipart response with
 * one status for each, told apart by Content-ID. 202 around them says nothing. Parts that the service was too
 * busy for go into a next batch. Folder markers have two possible names and are deleted one by one, and so is
 * everything where there are no batches.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/azure.h"

#define MAX_TRIES  8
#define GIVE_UP_MS 120000
#define SINGLES    16 /* deletes under way at once */
#define BOUNDARY   "batch_%s"
#define NO_ANSWER  (-1)

/* A deletion that is a call of its own. */
struct single {
    struct store_call call;
    struct azure_op *op;
    struct store_deletion *deletion;
};

struct azure_batch {
    size_t parts[STORE_MAX_DELETIONS]; /* of the next request: indexes of deletions */
    size_t n_parts;
    struct azure_refusal answers[STORE_MAX_DELETIONS]; /* to the parts; status NO_ANSWER: none */
    char boundary[48];
    int tries;
    int64_t failed_ms;                   /* when a part failed first; 0: none has */
    bool uncertain[STORE_MAX_DELETIONS]; /* deletions of which an earlier try may have taken effect */
    size_t ones[STORE_MAX_DELETIONS];    /* deletions to be made one by one */
    size_t n_ones, next_one, running;
    struct single *singles;
};

static void release_batch(struct azure_op *op)
{
    free(op->batch->singles);
    free(op->batch);
}

static struct store_deletion *deletion_of(const struct azure_op *op, size_t part)
{
    return &op->call->delete_many.v[op->batch->parts[part]];
}

/* Returns what a deletion does, for error texts. New string. */
static char *what_of(const struct azure_op *op, const struct store_deletion *deletion)
{
    return act_sprintf("cannot delete '%s/%s'", op->azure->container, deletion->key);
}

/* ---- one by one */

static void run_singles(struct azure_op *op);

static void single_done(struct store_call *call)
{
    struct single *single = call->arg;
    struct azure_op *op = single->op;

    single->deletion->rc = call->rc;
    single->deletion->error = call->error;
    store_call_release(call);
    op->batch->running--;
    run_singles(op);
}

static void run_singles(struct azure_op *op)
{
    struct azure_batch *batch = op->batch;

    while (batch->next_one < batch->n_ones && batch->running < SINGLES) {
        struct single *single = &batch->singles[batch->next_one];
        single->op = op;
        single->deletion = &op->call->delete_many.v[batch->ones[batch->next_one++]];
        single->call = (struct store_call){.op = STORE_DELETE,
                                           .key = single->deletion->key,
                                           .delete.if_match = single->deletion->if_match,
                                           .done = single_done,
                                           .arg = single};
        batch->running++;
        store_start(&op->azure->store, &single->call);
    }
    if (batch->running == 0)
        azure_finish(op, 0);
}

static void start_singles(void *arg)
{
    struct azure_op *op = arg;

    op->batch->singles = act_calloc(op->batch->n_ones ? op->batch->n_ones : 1, sizeof(*op->batch->singles));
    run_singles(op);
}

static void do_parts_one_by_one(struct azure_op *op)
{
    struct azure_batch *batch = op->batch;

    for (size_t i = 0; i < batch->n_parts; i++)
        batch->ones[batch->n_ones++] = batch->parts[i];
    batch->n_parts = 0;
    start_singles(op);
}

/* ---- the request */

/* Returns the path and query of a URL. */
static const char *batch_target(const char *url)
{
    const char *host = strstr(url, "://");

    return host + 3 + strcspn(host + 3, "/");
}

/* Adds a part to the body. Only the batch as a whole has an x-ms-version; parts neither have nor sign one. */
static int batch_add_part(struct azure_op *op, size_t part)
{
    const struct azure *azure = op->azure;
    const struct store_deletion *deletion = deletion_of(op, part);
    ACT_AUTO(http_call) one = {.method = "DELETE", .url = azure_url(azure, deletion->key)};

    if (deletion->if_match)
        http_header_set(&one.headers, "If-Match", deletion->if_match);
    int rc = auth_sign(azure->auth, &one, azure->clock_offset_s, &op->call->error);
    if (rc == 0) {
        act_buf_addf(&op->body,
                     "--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
                     "Content-ID: %zu\r\n\r\nDELETE %s HTTP/1.1\r\n",
                     op->batch->boundary, part, batch_target(one.url));
        for (size_t i = 0; i < one.headers.n; i++)
            act_buf_addf(&op->body, "%s: %s\r\n", one.headers.v[i].name, one.headers.v[i].value);
        act_buf_adds(&op->body, "Content-Length: 0\r\n\r\n");
    }
    return rc;
}

void azure_build_batch(struct azure_op *op)
{
    struct azure_batch *batch = op->batch;
    uint8_t random[16];
    char hex[2 * sizeof(random) + 1];

    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), hex);
    snprintf(batch->boundary, sizeof(batch->boundary), BOUNDARY, hex);
    for (size_t i = 0; i < batch->n_parts; i++)
        batch_add_part(op, i);
    act_buf_addf(&op->body, "--%s--\r\n", batch->boundary);
    azure_request(op, "POST", NULL, "restype=container&comp=batch");
    http_header_setf(&op->http.headers, "Content-Type", "multipart/mixed; boundary=%s", batch->boundary);
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

/* ---- the response */

/* Moves *at past a line, and returns that without its CR LF. New string. */
static char *take_response_line(const char **at)
{
    size_t len = strcspn(*at, "\r\n");
    char *line = act_strndup(*at, len);

    *at += len;
    *at += **at == '\r';
    *at += **at == '\n';
    return line;
}

/* Takes header lines up to the empty one. */
static void batch_take_headers(const char **at, struct http_headers *out)
{
    bool more = **at != '\0';

    while (more) {
        ACT_AUTOFREE char *line = take_response_line(at);
        char *colon = strchr(line, ':');
        if (colon) {
            *colon = '\0';
            http_header_set(out, line, colon + 1 + strspn(colon + 1, " \t"));
        }
        more = *line && **at;
    }
}

/* Returns the 202 of "HTTP/1.1 202 Accepted"; 0: the line is not a status line. */
static int batch_status(const char *line)
{
    int status = 0;

    return sscanf(line, "HTTP/%*d.%*d %d", &status) == 1 ? status : 0;
}

/* Takes a part of the response: headers, which name the part of the request that it belongs to, then an HTTP
 * response. Returns false if it is malformed, or the second response to one part. */
static bool take_part_response(struct azure_batch *batch, const char *text)
{
    struct http_headers outer = {0}, inner = {0};
    const char *at = text;

    batch_take_headers(&at, &outer);
    ACT_AUTOFREE char *line = take_response_line(&at);
    batch_take_headers(&at, &inner);
    const char *id = http_header_get(&outer, "Content-ID");
    char *end = NULL;
    size_t part = id ? strtoul(id, &end, 10) : 0;
    int status = batch_status(line);
    bool fine =
        id && end != id && *end == '\0' && part < batch->n_parts && status && batch->answers[part].status == NO_ANSWER;
    if (fine)
        azure_read_refusal(&batch->answers[part], status, &inner, at, strlen(at));
    http_headers_release(&outer);
    http_headers_release(&inner);
    return fine;
}

/* Returns the delimiter "\r\n--boundary" of the response; NULL: it is not a multipart one. New string. */
static char *delimiter_of(const struct http_call *http)
{
    const char *type = http_header_get(&http->response_headers, "Content-Type");
    const char *boundary = type ? strcasestr(type, "boundary=") : NULL;

    if (!boundary)
        return NULL;
    boundary += strlen("boundary=");
    boundary += *boundary == '"';
    ACT_AUTOFREE char *text = act_strndup(boundary, strcspn(boundary, "\"; \t"));
    return *text ? act_sprintf("--%s", text) : NULL;
}

/* Takes the responses to all parts. Returns false if one is missing: a batch that the service refused as a whole has
 * one part without an id, inside a 202. */
static bool read_responses(struct azure_op *op)
{
    struct azure_batch *batch = op->batch;
    ACT_AUTOFREE char *delimiter = delimiter_of(&op->http);
    const char *text = op->http.body_text.data, *at = text && delimiter ? strstr(text, delimiter) : NULL;
    size_t n = 0;

    for (size_t i = 0; i < batch->n_parts; i++)
        batch->answers[i].status = NO_ANSWER;
    while (at && !act_starts_with(at += strlen(delimiter), "--")) {
        const char *end = strstr(at, delimiter);
        ACT_AUTOFREE char *part = end ? act_strndup(at, (size_t)(end - at)) : act_strdup(at);
        const char *start = part;
        free(take_response_line(&start)); /* the rest of the line of the delimiter */
        if (!take_part_response(batch, start))
            return false;
        n++;
        at = end;
    }
    return n == batch->n_parts;
}

static bool may_pass(int status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

static void batch_settle(struct azure_op *op, size_t part, const struct azure_refusal *answer)
{
    struct azure_batch *batch = op->batch;
    struct store_deletion *deletion = deletion_of(op, part);
    bool gone = strcmp(answer->code, "BlobNotFound") == 0;
    bool by_us = op->http.ambiguous || op->ambiguous || batch->uncertain[batch->parts[part]];

    deletion->rc = 0;
    deletion->error = (struct act_error){0};
    if (answer->status / 100 == 2 || (gone && by_us))
        return;
    ACT_AUTOFREE char *what = what_of(op, deletion);
    deletion->rc = azure_describe(op->azure, what, answer, &deletion->error);
}

/* Returns whether the token ended after the part was signed: a call of its own gets another token. */
static bool needs_token(const struct azure_op *op, int status)
{
    return status == 401 && auth_kind_of(op->azure->auth) == AUTH_LOGIN;
}

/* Settles every part. Those that may succeed later become the next batch; returns a status that they got. */
static int settle_all(struct azure_op *op)
{
    struct azure_batch *batch = op->batch;
    size_t left = 0;
    int status = 0;

    for (size_t i = 0; i < batch->n_parts; i++) {
        batch_settle(op, i, &batch->answers[i]);
        if (needs_token(op, batch->answers[i].status)) {
            batch->ones[batch->n_ones++] = batch->parts[i];
        } else if (may_pass(batch->answers[i].status)) {
            status = batch->answers[i].status;
            batch->uncertain[batch->parts[i]] = true;
            batch->parts[left++] = batch->parts[i];
        }
    }
    batch->n_parts = left;
    return status;
}

static void send_rest(void *op)
{
    azure_send(op);
}

/* Sends the parts that are left again, later. Returns false if they were tried too often. */
static bool retry(struct azure_op *op, int status)
{
    struct azure_batch *batch = op->batch;
    int64_t now = act_now_monotonic_ms();
    uint32_t random;

    act_random(&random, sizeof(random));
    if (batch->failed_ms == 0)
        batch->failed_ms = now;
    int64_t delay_ms = http_retry_delay(status, false, ++batch->tries, MAX_TRIES, now - batch->failed_ms, GIVE_UP_MS,
                                        -1, random / 4294967296.0);
    if (delay_ms < 0)
        return false;
    engine_timer(http_engine(op->azure->store.http), delay_ms, send_rest, op);
    return true;
}

/* Returns whether the refusal says something about batches, and not about the credential or the container: a SAS
 * does not permit them, or a service or namespace has none. */
static bool has_no_batches(const struct azure_op *op)
{
    int status = op->http.status;

    if (status == 403)
        return !azure_has_code(&op->http, "AuthenticationFailed");
    if (status == 404)
        return !azure_has_code(&op->http, "ContainerNotFound");
    return status / 100 == 2 || status == 400 || status == 405 || status == 409 || status == 500 || status == 501;
}

void azure_batch_failed(struct azure_op *op)
{
    for (size_t i = 0; i < op->batch->n_parts; i++) {
        struct store_deletion *deletion = deletion_of(op, i);
        ACT_AUTOFREE char *what = what_of(op, deletion);
        deletion->error = op->call->error;
        deletion->rc = act_error_prefix(&deletion->error, "%s", what);
    }
    op->call->error = (struct act_error){0};
    start_singles(op);
}

static void batch_refused(struct azure_op *op)
{
    struct azure_refusal refusal = azure_refusal_of(&op->http);

    for (size_t i = 0; i < op->batch->n_parts; i++)
        batch_settle(op, i, &refusal);
    start_singles(op);
}

void azure_answer_batch(struct azure_op *op)
{
    if (azure_succeeded(op) && read_responses(op)) {
        int status = settle_all(op);
        if (op->batch->n_parts == 0 || !retry(op, status))
            start_singles(op);
    } else if (has_no_batches(op)) {
        op->azure->no_batch = true;
        do_parts_one_by_one(op);
    } else {
        batch_refused(op);
    }
}

static bool must_be_single(const struct azure *azure, const char *key)
{
    return azure->no_batch || act_ends_with(key, "/") || azure_alias_problem(key); /* that one is refused */
}

void azure_batch(struct azure_op *op)
{
    struct azure_batch *batch = op->batch = act_calloc(1, sizeof(*batch));

    op->release = release_batch;
    for (size_t i = 0; i < op->call->delete_many.n; i++) {
        if (must_be_single(op->azure, op->call->delete_many.v[i].key))
            batch->ones[batch->n_ones++] = i;
        else
            batch->parts[batch->n_parts++] = i;
    }
    if (batch->n_parts)
        azure_send_phase(op, AZURE_BATCH);
    else
        engine_timer(http_engine(op->azure->store.http), 0, start_singles, op);
}
