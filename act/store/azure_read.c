/* azure_read.c - looking at blobs and reading ranges of them. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "store/azure.h"

/* Takes a decimal number and moves *text past it. */
static bool blob_take_number(const char **text, uint64_t *out)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text))
        return false;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return true;
}

/* Takes "bytes 0-9/100" apart (RFC 9110 section 14.4). */
static bool parse_content_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *total)
{
    if (!text || !act_starts_with(text, "bytes "))
        return false;
    text += strlen("bytes ");
    return blob_take_number(&text, first) && *text++ == '-' && blob_take_number(&text, last) && *text++ == '/' &&
           blob_take_number(&text, total) && *text == '\0' && *last >= *first && *total > *last;
}

void azure_build_head(struct azure_op *op)
{
    azure_request(op, "HEAD", azure_blob_of(op), NULL);
}

int azure_take_head(struct azure_op *op)
{
    const char *length = http_header_get(&op->http.response_headers, "Content-Length");
    uint64_t size = 0;

    if (!azure_succeeded(op))
        return azure_answer_error(op);
    if (!length || !blob_take_number(&length, &size))
        return act_error_set(&op->call->error, ACT_FAIL, "%s: the answer does not tell the size", azure_what(op));
    azure_fill(&op->call->entry, azure_blob_of(op), size, op->http.status, &op->http.response_headers);
    return 0;
}

static int not_a_file(struct azure_op *op)
{
    return act_error_set(&op->call->error, ACT_NOT_FOUND, "%s: there is only a folder of this name", azure_what(op));
}

static int blob_has_changed(struct azure_op *op)
{
    return act_error_set(&op->call->error, ACT_TEMPORARY, "%s: it has changed", azure_what(op));
}

void azure_answer_head(struct azure_op *op)
{
    int rc = azure_take_head(op);

    if (rc == 0 && op->call->entry.kind == STORE_FOLDER)
        rc = not_a_file(op);
    azure_finish(op, rc);
}

/* Answers a GET that can bring nothing, as its range begins at the end of the blob or behind it, or has no length.
 * The emulator responds to some of them with 206. */
void azure_answer_head_of_get(struct azure_op *op)
{
    const struct store_call *call = op->call;
    int rc = azure_take_head(op);

    if (rc == 0 && call->entry.kind == STORE_FOLDER)
        rc = not_a_file(op);
    if (rc == 0 && ((call->get.if_match && strcmp(call->get.if_match, call->entry.etag) != 0) ||
                    (call->get.sink_cap && call->entry.size > call->get.offset)))
        rc = blob_has_changed(op);
    azure_finish(op, rc);
}

/* Returns whether the response is of the version that was asked for. */
static bool is_same_version(const struct azure_op *op)
{
    const char *etag = http_header_get(&op->http.response_headers, "ETag");

    return !op->call->get.if_match || !etag || strcmp(op->call->get.if_match, etag) == 0;
}

/* Returns whether the body begins with the first byte that was asked for: a proxy may ignore the range. */
static bool begins_at_offset(const struct azure_op *op)
{
    const char *text = http_header_get(&op->http.response_headers, "Content-Range");
    uint64_t first = 0, last = 0, total = 0;

    if (op->http.status == 200)
        return op->call->get.offset == 0;
    return op->http.status == 206 && parse_content_range(text, &first, &last, &total) && first == op->call->get.offset;
}

/* Hands bytes on, once the head of the response is known to be right: a later try may succeed, and what was taken
 * stays. */
static void blob_take_bytes(struct http_call *http, size_t at, const void *data, size_t len)
{
    struct azure_op *op = http->arg;

    if (is_same_version(op) && begins_at_offset(op))
        op->call->get.take(op->call, at, data, len);
}

void azure_build_get(struct azure_op *op)
{
    const struct store_call *call = op->call;

    azure_request(op, "GET", call->key, NULL);
    http_header_setf(&op->http.headers, "x-ms-range", "bytes=%" PRIu64 "-%" PRIu64, call->get.offset,
                     call->get.offset + call->get.sink_cap - 1);
    if (call->get.if_match && !op->azure->files) /* which refuses conditions; the answer tells */
        http_header_set(&op->http.headers, "If-Match", call->get.if_match);
    op->http.sink = call->get.sink;
    op->http.sink_cap = call->get.sink_cap;
    op->http.take = call->get.take ? blob_take_bytes : NULL;
}

/* Checks that the bytes that came are those that were asked for, and gives the size of the whole blob. */
static int blob_check_range(struct azure_op *op, uint64_t *out_size)
{
    const struct store_call *call = op->call;
    const char *text = http_header_get(&op->http.response_headers, "Content-Range");
    uint64_t first = 0, last = 0, end = call->get.offset + call->get.sink_cap;

    if (op->http.status == 200 && call->get.offset == 0) {
        *out_size = op->http.sink_len;
        return 0;
    }
    if (begins_at_offset(op) && parse_content_range(text, &first, &last, out_size) &&
        last + 1 == (*out_size < end ? *out_size : end) && last - first + 1 == op->http.sink_len)
        return 0;
    return act_error_set(&op->call->error, ACT_FAIL,
                         "%s: asked for bytes %" PRIu64 "-%" PRIu64 ", got %zu bytes of '%.100s' with HTTP %d",
                         azure_what(op), call->get.offset, end - 1, op->http.sink_len, text ? text : "",
                         op->http.status);
}

static void add_sums(void *arg)
{
    const struct store_call *call = ((struct azure_op *)arg)->call;

    store_sums_add(call->get.sums, call->get.sink, call->get.got);
}

static void sums_added(void *op)
{
    azure_finish(op, 0);
}

void azure_answer_get(struct azure_op *op)
{
    struct store_call *call = op->call;
    uint64_t size = 0;

    if (op->http.status == 416 || (op->http.status == 206 && op->http.sink_len == 0)) {
        azure_send_phase(op, AZURE_HEAD_OF_GET);
        return;
    }
    if (!azure_succeeded(op)) {
        azure_finish_failed(op);
        return;
    }
    int rc = is_same_version(op) ? blob_check_range(op, &size) : blob_has_changed(op);
    if (rc == 0) {
        call->get.got = op->http.sink_len;
        azure_fill(&call->entry, call->key, size, op->http.status, &op->http.response_headers);
        if (call->entry.kind == STORE_FOLDER)
            rc = not_a_file(op);
    }
    if (rc == 0 && call->get.sums)
        engine_work(http_engine(op->azure->store.http), add_sums, sums_added, op);
    else
        azure_finish(op, rc);
}
