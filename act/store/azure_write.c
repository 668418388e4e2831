/* azure_write.c - what changes blobs: Put Blob, Put Block, Put Block List, Delete Blob. */
#include <string.h>

#include "store/azure.h"

static void set_conditions(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;

    if (op->call->if_match)
        http_header_set(headers, "If-Match", op->call->if_match);
    if (op->call->if_absent)
        http_header_set(headers, "If-None-Match", "*");
    if (!op->call->if_match && !op->call->if_absent)
        return;
    if (!op->upload[0]) {
        uint8_t random[(AZURE_UPLOAD_ID - 1) / 2];
        act_random(random, sizeof(random));
        act_hex(random, sizeof(random), op->upload);
    }
    http_header_set(headers, "x-ms-meta-act_upload", op->upload);
}

void azure_build_put(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct http_headers *headers = &op->http.headers;

    azure_request(op, "PUT", azure_blob_of(op), NULL);
    http_header_set(headers, "x-ms-blob-type", "BlockBlob");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    if (call->md5) {
        http_header_set(headers, "Content-MD5", call->md5);
        http_header_set(headers, "x-ms-blob-content-md5", call->md5);
    }
    azure_set_attributes(headers, call);
    set_conditions(op);
    op->http.body = call->data;
    op->http.body_len = call->len;
}

static void finish_written(struct azure_op *op)
{
    struct store_entry *entry = &op->call->entry;

    store_entry_release(entry);
    entry->key = act_strdup(op->call->key);
    azure_take_etag(entry, http_header_get(&op->http.answer_headers, "ETag"));
    azure_finish(op, 0);
}

/* The blob that is in the way of a write that was sent twice: is it what the first try wrote? */
static void answer_whose(struct azure_op *op)
{
    const char *upload = http_header_get(&op->http.answer_headers, "x-ms-meta-act_upload");

    if (azure_succeeded(op) && act_streq(upload, op->upload)) {
        finish_written(op);
        return;
    }
    op->call->error = op->refused;
    azure_finish(op, -(int)op->refused.code);
}

void azure_answer_write(struct azure_op *op)
{
    if (azure_succeeded(op)) {
        finish_written(op);
        return;
    }
    int rc = azure_answer_error(op);
    if (op->http.ambiguous && op->upload[0] && (op->http.status == 409 || op->http.status == 412)) {
        op->refused = op->call->error;
        azure_send_next(op, azure_build_head, answer_whose);
        return;
    }
    azure_finish(op, rc);
}

/* Base64 of the block's id. New string. */
static char *block_id(const struct store_upload_id *upload, uint32_t index)
{
    uint8_t id[STORE_BLOCK_ID];

    store_block_id(upload, index, id);
    return act_base64_encode(id, sizeof(id));
}

void azure_build_block(struct azure_op *op)
{
    const struct store_call *call = op->call;
    ACT_AUTOFREE char *id = block_id(&call->upload_id, call->block);
    ACT_AUTOFREE char *encoded = http_encode(id, false);
    ACT_AUTOFREE char *query = act_sprintf("comp=block&blockid=%s", encoded);

    azure_request(op, "PUT", call->key, query);
    if (call->md5)
        http_header_set(&op->http.headers, "Content-MD5", call->md5);
    op->http.body = call->data;
    op->http.body_len = call->len;
}

void azure_build_commit(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct http_headers *headers = &op->http.headers;

    act_buf_adds(&op->body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (uint32_t i = 0; i < call->n_blocks; i++) {
        ACT_AUTOFREE char *id = block_id(&call->upload_id, i);
        act_buf_addf(&op->body, "<Latest>%s</Latest>", id);
    }
    act_buf_adds(&op->body, "</BlockList>");

    azure_request(op, "PUT", call->key, "comp=blocklist");
    http_header_set(headers, "Content-Type", "application/xml");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    if (call->attr.md5)
        http_header_set(headers, "x-ms-blob-content-md5", call->attr.md5);
    azure_set_attributes(headers, call);
    set_conditions(op);
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

void azure_build_delete(struct azure_op *op)
{
    azure_request(op, "DELETE", azure_blob_of(op), NULL);
    if (op->call->if_match)
        http_header_set(&op->http.headers, "If-Match", op->call->if_match);
}

void azure_answer_delete(struct azure_op *op)
{
    char code[64];

    azure_service_code(&op->http, code, sizeof(code));
    if (azure_succeeded(op) || (op->http.ambiguous && strcmp(code, "BlobNotFound") == 0))
        azure_finish(op, 0); /* not found, as an earlier try deleted it */
    else
        azure_finish_failed(op);
}
