/* azure_blocks.c - the committed and uncommitted blocks of a blob (Get Block List), and how to discard uncommitted ones
 * where there is no blob.
 */
#include <string.h>

#include "store/azure.h"

#define BLOCK_LIST_BYTES ((size_t)64 << 20) /* 150,000 blocks with ids of 64 bytes need 24 MiB */

/* A block as it appears in the list. */
struct listed {
    uint8_t id[AZURE_ID_MAX];
    uint8_t id_len;
    bool committed;
    uint64_t len;
};

struct block_reader {
    struct listed *v;
    size_t n;
    struct listed block;
    bool has_size, complete;
};

static void take_block_id(struct block_reader *reader, const char *text)
{
    size_t len = 0;
    ACT_AUTOFREE uint8_t *id = act_base64_decode(text, &len);

    reader->block.id_len = 0;
    if (id && len <= AZURE_ID_MAX) {
        memcpy(reader->block.id, id, len);
        reader->block.id_len = (uint8_t)len;
    }
}

static int end_block(struct block_reader *reader, bool committed, struct act_error *err)
{
    if (!reader->has_size)
        return act_error_set(err, ACT_FAIL, "a block without a size");
    reader->block.committed = committed;
    ACT_PUSH(reader->v, reader->n, reader->block);
    reader->block = (struct listed){0};
    reader->has_size = false;
    return 0;
}

static int blocks_end_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct block_reader *reader = arg;
    bool committed = act_starts_with(path, "/BlockList/CommittedBlocks/");
    const char *name = committed                                                ? strrchr(path, '/')
                       : act_starts_with(path, "/BlockList/UncommittedBlocks/") ? strrchr(path, '/')
                                                                                : "";

    if (strcmp(path, "/BlockList") == 0) {
        reader->complete = true;
    } else if (strcmp(name, "/Name") == 0) {
        take_block_id(reader, text);
    } else if (strcmp(name, "/Size") == 0) {
        reader->has_size = true;
        return azure_take_size(&reader->block.len, text, err);
    } else if (strcmp(name, "/Block") == 0) {
        return end_block(reader, committed, err);
    }
    return 0;
}

/* Returns the length that ids must have here, which uncommitted blocks decide first. 0: there are no blocks. */
static size_t length_of_ids(const struct block_reader *reader)
{
    size_t len = 0;

    for (size_t i = 0; i < reader->n; i++)
        if (!len || !reader->v[i].committed)
            len = reader->v[i].id_len;
    return len;
}

/* Gives the blocks that can belong to an upload. */
static void find_blocks(const struct block_reader *reader, struct store_blocks *out)
{
    out->id_len = length_of_ids(reader);
    out->found = reader->n ? act_calloc(reader->n, sizeof(*out->found)) : NULL;
    for (size_t i = 0; i < reader->n; i++) {
        const struct listed *from = &reader->v[i];
        struct store_block *to = &out->found[out->n_found];
        out->uncommitted += from->committed ? 0 : from->len;
        if (from->id_len != out->id_len || !azure_decode_id(&out->upload_id, from->id, from->id_len, to->id))
            continue;
        to->len = from->len;
        to->committed = from->committed;
        out->n_found++;
    }
}

static int parse_block_list(const struct azure_op *op, struct store_blocks *out, struct act_error *err)
{
    static const struct xml_handler handler = {.end = blocks_end_element};
    struct block_reader reader = {0};
    const struct act_buf *text = &op->http.body_text;
    int rc = xml_parse(text->data ? text->data : "", text->len, "block list", &handler, &reader, err);

    if (rc == 0 && !reader.complete)
        rc = act_error_set(err, ACT_FAIL, "the answer is not a block list");
    if (rc == 0)
        find_blocks(&reader, out);
    free(reader.v);
    return rc;
}

static void read_blocks(void *arg)
{
    struct azure_op *op = arg;

    op->call->rc = parse_block_list(op, &op->call->blocks, &op->call->error);
    if (op->call->rc)
        act_error_prefix(&op->call->error, "%s: unusable answer", azure_what(op));
}

static void blocks_read(void *arg)
{
    struct azure_op *op = arg;

    size_t id_len = op->call->blocks.id_len;

    if (op->call->rc == 0 && id_len >= AZURE_ID_MIN)
        azure_set_id_length(op->azure, op->call->key, id_len);
    azure_finish(op, op->call->rc);
}

void azure_build_blocks(struct azure_op *op)
{
    azure_request(op, "GET", op->call->key, "comp=blocklist&blocklisttype=all");
    op->http.max_body = BLOCK_LIST_BYTES;
}

/* A missing blob has no blocks. */
void azure_answer_blocks(struct azure_op *op)
{
    if (op->http.status == 200)
        engine_work(http_engine(op->azure->store.http), read_blocks, blocks_read, op);
    else if (azure_has_code(&op->http, "BlobNotFound"))
        azure_finish(op, 0);
    else
        azure_finish_failed(op);
}

/* ---- STORE_CLEAR */

/* Whatever somebody wrote there meanwhile stays: it has another ETag. */
void azure_answer_deleted(struct azure_op *op)
{
    if (azure_succeeded(op) || op->http.status == 404 || op->http.status == 412)
        azure_finish(op, 0);
    else
        azure_finish_failed(op);
}

void azure_build_delete_empty(struct azure_op *op)
{
    azure_request(op, "DELETE", op->call->key, NULL);
    http_header_set(&op->http.headers, "If-Match", op->call->entry.etag);
}

/* Deletes the empty blob that took the place of the blocks. It is ours: we made it just now, or by a first try that
 * failed. */
static void delete_empty(struct azure_op *op)
{
    azure_take_etag(&op->call->entry, http_header_get(&op->http.response_headers, "ETag"));
    azure_send_phase(op, AZURE_DELETE_EMPTY);
}

void azure_answer_whose_empty(struct azure_op *op)
{
    if (azure_succeeded(op) && azure_is_ours(op))
        delete_empty(op);
    else
        azure_finish(op, act_error_set(&op->call->error, ACT_TEMPORARY,
                                       "%s: an object has been written there meanwhile", azure_what(op)));
}

void azure_answer_empty(struct azure_op *op)
{
    if (azure_succeeded(op))
        delete_empty(op);
    else if (op->http.status == 409 || op->http.status == 412)
        azure_send_phase(op, AZURE_WHOSE_EMPTY);
    else
        azure_finish_failed(op);
}

/* Where there is no blob, an empty list of blocks makes an empty one and discards the blocks. */
void azure_build_empty(struct azure_op *op)
{
    static const char list[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList></BlockList>";

    azure_request(op, "PUT", op->call->key, "comp=blocklist");
    http_header_set(&op->http.headers, "Content-Type", "application/xml");
    http_header_set(&op->http.headers, "If-None-Match", "*");
    azure_set_upload(op);
    op->http.body = list;
    op->http.body_len = sizeof(list) - 1;
}

void azure_answer_is_free(struct azure_op *op)
{
    if (op->http.status == 404)
        azure_send_phase(op, AZURE_EMPTY);
    else if (azure_succeeded(op))
        azure_finish(op, act_error_set(&op->call->error, ACT_FAIL,
                                       "%s: it is an object, not what an interrupted upload left", azure_what(op)));
    else
        azure_finish_failed(op);
}

void azure_answer_is_leftover(struct azure_op *op)
{
    if (azure_succeeded(op))
        azure_send_phase(op, AZURE_IS_FREE);
    else
        azure_finish_failed(op);
}
