/* azure_write.c - what changes blobs: Put Blob, Put Block, Put Block List, Delete Blob.
 *
 * Every body travels with a checksum that the service verifies before it keeps anything: CRC64, and MD5 where the
 * caller has that or the service knows no other. Data damaged in transit is sent again.
 */
#include <stdio.h>
#include <string.h>

#include "base/crc64.h"
#include "store/azure.h"

#define MAX_DAMAGED 3
#define SMALL       (64U << 10) /* bytes whose CRC64 costs less than the way to a worker and back */

#define UPLOAD_ID 33 /* 32 hex digits and NUL */

/* The state of a write. */
struct azure_write {
    /* The checksum of the body, if any; the service verifies it. */
    enum { SUM_NONE, SUM_CRC64, SUM_MD5 } sum;
    uint64_t crc64;
    char md5[ACT_MD5_BASE64];
    struct store_sums sums; /* the caller's sums plus the body, for when it has arrived */
    bool summed;
    bool describes;            /* sets only the metadata of the existing blob */
    int damaged;               /* how often the body arrived damaged */
    char replaces[STORE_ETAG]; /* the only ETag that may be replaced, whatever the call says; "": as the call says */
    char upload[UPLOAD_ID];    /* conditional writes: metadata that distinguishes our object from others */
    struct act_error refused;  /* the service's refusal, while we find out whose object it is */
    struct http_headers properties; /* COMMIT: the source's */
};

static void release_write(struct azure_op *op)
{
    http_headers_release(&op->write->properties);
    free(op->write);
}

void azure_begin_write(struct azure_op *op)
{
    op->write = act_calloc(1, sizeof(*op->write));
    op->release = release_write;
}

void azure_keep_property(struct azure_op *op, const char *name, const char *value)
{
    http_header_set(&op->write->properties, name, value);
}

/* ---- checksums */

/* Computes the checksums, on a worker, or on the loop if that is little work. */
static void compute_sums(void *arg)
{
    struct azure_op *op = arg;
    const struct store_data *data = store_data_of(op->call);

    if (data->sums && !op->write->summed) {
        op->write->sums = *data->sums;
        store_sums_add(&op->write->sums, data->bytes, data->len);
        op->write->summed = true;
    }
    if (op->write->sum == SUM_CRC64) {
        op->write->crc64 = data->crc64 ? *data->crc64 : act_crc64(0, data->bytes, data->len);
    } else if (data->md5) {
        snprintf(op->write->md5, sizeof(op->write->md5), "%s", data->md5);
    } else {
        azure_md5_of(data->bytes, data->len, op->write->md5);
    }
}

static void send_summed(void *op)
{
    azure_send(op);
}

/* Returns whether compute_sums() is little work. */
static bool sums_are_cheap(const struct azure_op *op)
{
    const struct store_data *data = store_data_of(op->call);
    bool is_known = op->write->sum == SUM_MD5 ? data->md5 != NULL : data->crc64 || data->len <= SMALL;

    return is_known && (!data->sums || op->write->summed);
}

static void sum_and_send(struct azure_op *op)
{
    op->write->sum = store_data_of(op->call)->md5 || op->azure->no_crc64 ? SUM_MD5 : SUM_CRC64;
    if (sums_are_cheap(op)) {
        compute_sums(op);
        azure_send(op);
    } else {
        engine_work(http_engine(op->azure->store.http), compute_sums, send_summed, op);
    }
}

static void set_sum(struct azure_op *op)
{
    char text[ACT_CRC64_BASE64];

    if (op->write->sum == SUM_MD5) {
        http_header_set(&op->http.headers, "Content-MD5", op->write->md5);
    } else {
        act_crc64_to_base64(op->write->crc64, text);
        http_header_set(&op->http.headers, "x-ms-content-crc64", text);
    }
}

/* Returns whether the service received what was sent, as far as it says what it received. */
static bool echo_is_right(const struct azure_op *op)
{
    const struct http_headers *answer = &op->http.response_headers;
    const char *md5 = http_header_get(answer, "Content-MD5");
    const char *text = http_header_get(answer, "x-ms-content-crc64");
    uint64_t crc64 = 0;

    if (op->write->sum == SUM_NONE)
        return true;
    if (op->write->sum == SUM_MD5)
        return !md5 || strcmp(md5, op->write->md5) == 0;
    return !text || (act_crc64_from_base64(text, &crc64) && crc64 == op->write->crc64);
}

/* Returns whether the body arrived damaged. The emulator has only a general code for a wrong MD5. */
static bool body_was_damaged(const struct azure_op *op)
{
    return azure_succeeded(op)
               ? !echo_is_right(op)
               : op->http.status == 400 &&
                     (azure_has_code(&op->http, "Crc64Mismatch") || azure_has_code(&op->http, "Md5Mismatch") ||
                      (op->write->sum == SUM_MD5 && azure_has_code(&op->http, "InvalidOperation")));
}

static bool is_conditional(const struct store_call *call)
{
    const struct store_condition *condition = store_condition_of(call);

    return condition->if_match || condition->if_absent;
}

void azure_replace_that(struct azure_op *op)
{
    struct store_entry entry = {0};

    azure_take_etag(&entry, http_header_get(&op->http.response_headers, "ETag"));
    memcpy(op->write->replaces, entry.etag, sizeof(op->write->replaces));
}

/* Sends a body that arrived damaged again. If the condition of the write was met, the next try replaces its result. */
static void send_again_or_give_up(struct azure_op *op)
{
    if (azure_succeeded(op) && is_conditional(op->call))
        azure_replace_that(op);
    op->ambiguous |= op->http.ambiguous;
    if (++op->write->damaged < MAX_DAMAGED) {
        azure_send(op);
        return;
    }
    azure_finish(op, act_error_set(&op->call->error, ACT_FAIL,
                                   "%s: the data did not arrive as it was sent, %d times; check the memory "
                                   "and the network of this machine",
                                   azure_what(op), op->write->damaged));
}

/* ---- requests */

void azure_set_upload(struct azure_op *op)
{
    uint8_t random[(UPLOAD_ID - 1) / 2];

    if (!op->write->upload[0]) {
        act_random(random, sizeof(random));
        act_hex(random, sizeof(random), op->write->upload);
    }
    http_header_set(&op->http.headers, "x-ms-meta-act_upload", op->write->upload);
}

bool azure_is_ours(const struct azure_op *op)
{
    const char *upload = http_header_get(&op->http.response_headers, "x-ms-meta-act_upload");

    return op->write->upload[0] && act_streq(upload, op->write->upload);
}

void azure_set_conditions(struct azure_op *op)
{
    const struct store_condition *condition = store_condition_of(op->call);
    struct http_headers *headers = &op->http.headers;

    if (op->write->replaces[0])
        http_header_set(headers, "If-Match", op->write->replaces);
    else if (condition->if_match)
        http_header_set(headers, "If-Match", condition->if_match);
    else if (condition->if_absent)
        http_header_set(headers, "If-None-Match", "*");
    if (is_conditional(op->call) && !condition->unmarked)
        azure_set_upload(op);
}

void azure_build_put(struct azure_op *op)
{
    const struct store_put *put = &op->call->put;
    struct http_headers *headers = &op->http.headers;

    azure_request(op, "PUT", azure_blob_of(op), NULL);
    http_header_set(headers, "x-ms-blob-type", "BlockBlob");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    set_sum(op);
    if (put->data.md5)
        http_header_set(headers, "x-ms-blob-content-md5", put->data.md5);
    azure_set_attributes(headers, &put->attr);
    azure_set_conditions(op);
    op->http.body = put->data.bytes;
    op->http.body_len = put->data.len;
}

/* Returns whether the write met a folder that has something in it, in a hierarchical namespace. No request can
 * replace that: it can only be described, without the metadata that says it is a folder (azcopy,
 * ste/sender-blobFolders.go). */
static bool is_real_folder(const struct azure_op *op)
{
    return op->call->op == STORE_PUT && op->call->put.attr.kind == STORE_FOLDER && op->write->replaces[0] &&
           op->http.status == 409 && !op->write->describes;
}

void azure_build_description(struct azure_op *op)
{
    op->write->describes = true;
    azure_request(op, "PUT", azure_blob_of(op), "comp=metadata");
    azure_set_metadata(&op->http.headers, &op->call->put.attr);
    azure_set_conditions(op);
}

static void finish_written(struct azure_op *op)
{
    struct store_entry *entry = &op->call->entry;

    store_entry_release(entry);
    entry->key = act_strdup(op->call->key);
    azure_take_etag(entry, http_header_get(&op->http.response_headers, "ETag"));
    if (op->write->summed)
        *store_data_of(op->call)->sums = op->write->sums;
    if (op->call->op == STORE_COMMIT) /* no other blocks are left */
        azure_forget_ids(op->azure, op->call->key);
    azure_finish(op, 0);
}

static void send_write(struct azure_op *op)
{
    enum store_op what = op->call->op;

    azure_send_phase(op, what == STORE_PUT ? AZURE_PUT : what == STORE_PUT_FROM ? AZURE_PUT_FROM : AZURE_COMMIT);
}

/* The marker of a folder is not an object, and in nobody's way. */
void azure_answer_whose(struct azure_op *op)
{
    bool there = azure_take_head(op) == 0, is_marker = op->call->entry.kind == STORE_FOLDER;

    store_entry_release(&op->call->entry);
    if (there && azure_is_ours(op)) {
        finish_written(op);
    } else if (there && is_marker && store_condition_of(op->call)->if_absent && !op->write->replaces[0]) {
        azure_replace_that(op);
        send_write(op);
    } else {
        op->call->error = op->write->refused;
        azure_finish(op, -(int)op->write->refused.code);
    }
}

/* Returns whether only a look at the blob can tell what the refusal means. */
static bool may_be_in_order(const struct azure_op *op, int rc)
{
    bool sent_twice = (op->http.ambiguous || op->ambiguous) && op->write->upload[0];

    return (store_condition_of(op->call)->if_absent && rc == -ACT_PARTIAL) ||
           (sent_twice && (op->http.status == 409 || op->http.status == 412));
}

/* Returns whether the service refused the kind of checksum, and sends the other kind from then on. */
static bool crc64_was_refused(struct azure_op *op)
{
    if (op->write->sum != SUM_CRC64 || op->http.status != 500 || !azure_has_code(&op->http, "FeatureNotSupported"))
        return false;
    op->azure->no_crc64 = true;
    return true;
}

void azure_answer_write(struct azure_op *op)
{
    if (crc64_was_refused(op)) {
        if (op->call->op == STORE_COMMIT)
            azure_send(op);
        else
            sum_and_send(op);
        return;
    }
    if (body_was_damaged(op)) {
        send_again_or_give_up(op);
        return;
    }
    if (azure_succeeded(op)) {
        finish_written(op);
        return;
    }
    if (azure_has_code(&op->http, "InvalidBlobOrBlock")) {
        azure_fit_ids(op);
        return;
    }
    if (is_real_folder(op)) {
        azure_send_phase(op, AZURE_DESCRIBE);
        return;
    }
    int rc = azure_answer_error(op);
    if (may_be_in_order(op, rc)) {
        op->write->refused = op->call->error;
        azure_send_phase(op, AZURE_WHOSE);
        return;
    }
    azure_finish(op, rc);
}

void azure_request_block(struct azure_op *op, const uint8_t id[STORE_BLOCK_ID])
{
    op->id_len = azure_id_length(op->azure, op->call->key);
    ACT_AUTOFREE char *text = azure_encode_id(id, op->id_len);
    ACT_AUTOFREE char *encoded = http_encode(text, false);
    ACT_AUTOFREE char *query = act_sprintf("comp=block&blockid=%s", encoded);

    azure_request(op, "PUT", op->call->key, query);
}

void azure_build_block(struct azure_op *op)
{
    const struct store_put_block *block = &op->call->block;
    uint8_t own[STORE_BLOCK_ID];

    store_block_id(&block->upload_id, block->index, own);
    azure_request_block(op, block->id ? block->id : own);
    set_sum(op);
    op->http.body = block->data.bytes;
    op->http.body_len = block->data.len;
}

static void write_block_list(const struct store_commit *commit, size_t id_len, struct act_buf *out)
{
    uint8_t own[STORE_BLOCK_ID];

    act_buf_adds(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (uint32_t i = 0; i < commit->n_blocks; i++) {
        store_block_id(&commit->upload_id, i, own);
        ACT_AUTOFREE char *id = azure_encode_id(commit->blocks ? commit->blocks[i].id : own, id_len);
        act_buf_adds(out, "<Latest>");
        act_buf_adds(out, id);
        act_buf_adds(out, "</Latest>");
    }
    act_buf_adds(out, "</BlockList>");
}

/* Sets the checksum of the list, which is the body. */
static void sum_block_list(struct azure_op *op)
{
    op->write->sum = op->azure->no_crc64 ? SUM_MD5 : SUM_CRC64;
    if (op->write->sum == SUM_CRC64) {
        op->write->crc64 = act_crc64(0, op->body.data, op->body.len);
    } else {
        azure_md5_of(op->body.data, op->body.len, op->write->md5);
    }
    set_sum(op);
}

void azure_build_commit(struct azure_op *op)
{
    const struct store_commit *commit = &op->call->commit;
    struct http_headers *headers = &op->http.headers;

    write_block_list(commit, azure_id_length(op->azure, op->call->key), &op->body);
    azure_request(op, "PUT", op->call->key, "comp=blocklist");
    http_header_set(headers, "Content-Type", "application/xml");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    for (size_t i = 0; i < op->write->properties.n; i++)
        http_header_set(headers, op->write->properties.v[i].name, op->write->properties.v[i].value);
    if (commit->attr.md5)
        http_header_set(headers, "x-ms-blob-content-md5", commit->attr.md5);
    azure_set_attributes(headers, &commit->attr);
    azure_set_conditions(op);
    sum_block_list(op);
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

void azure_put(struct azure_op *op)
{
    op->phase = AZURE_PUT;
    sum_and_send(op);
}

void azure_block(struct azure_op *op)
{
    op->phase = AZURE_BLOCK;
    sum_and_send(op);
}

void azure_build_delete(struct azure_op *op)
{
    azure_request(op, "DELETE", azure_blob_of(op), NULL);
    if (op->call->delete.if_match)
        http_header_set(&op->http.headers, "If-Match", op->call->delete.if_match);
}

void azure_answer_delete(struct azure_op *op)
{
    if (azure_succeeded(op) || ((op->http.ambiguous || op->ambiguous) && azure_has_code(&op->http, "BlobNotFound")))
        azure_finish(op, 0); /* not found, as an earlier try deleted it */
    else
        azure_finish_failed(op);
}
