/* azure_blocks.c - the blocks that a blob has, and those that wait for being committed: Get Block List. */
#include <string.h>

#include "base/units.h"
#include "codec/xml.h"
#include "store/azure.h"

#define BLOCK_LIST_BYTES ((size_t)64 << 20) /* 150,000 blocks with ids of 64 bytes need 24 MiB */

struct block_reader {
    struct store_call *call;
    size_t cap;
    struct store_block block;
    bool has_id, has_size, complete;
};

/* Ids of another length belong to other programs. */
static void take_id(struct block_reader *reader, const char *text)
{
    size_t len = 0;
    ACT_AUTOFREE uint8_t *id = act_base64_decode(text, &len);

    reader->has_id = id && len == STORE_BLOCK_ID;
    if (reader->has_id)
        memcpy(reader->block.id, id, STORE_BLOCK_ID);
}

static void add_block(struct block_reader *reader, bool committed)
{
    struct store_call *call = reader->call;

    if (call->n_found == reader->cap) {
        reader->cap = reader->cap ? 2 * reader->cap : 64;
        call->found = act_realloc(call->found, reader->cap * sizeof(*call->found));
    }
    reader->block.committed = committed;
    call->found[call->n_found++] = reader->block;
}

static int end_block(struct block_reader *reader, bool committed, struct act_error *err)
{
    if (!reader->has_size)
        return act_error_set(err, ACT_FAIL, "a block without a size");
    if (reader->has_id)
        add_block(reader, committed);
    reader->block = (struct store_block){0};
    reader->has_id = reader->has_size = false;
    return 0;
}

static int end_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct block_reader *reader = arg;
    bool committed = act_starts_with(path, "/BlockList/CommittedBlocks/");
    const char *name = committed                                                ? strrchr(path, '/')
                       : act_starts_with(path, "/BlockList/UncommittedBlocks/") ? strrchr(path, '/')
                                                                                : "";
    int64_t size = 0;

    if (strcmp(path, "/BlockList") == 0) {
        reader->complete = true;
    } else if (strcmp(name, "/Name") == 0) {
        take_id(reader, text);
    } else if (strcmp(name, "/Size") == 0) {
        if (!act_int_from_text(text, &size) || size < 0)
            return act_error_set(err, ACT_FAIL, "the size '%.40s'", text);
        reader->block.len = (uint64_t)size;
        reader->has_size = true;
    } else if (strcmp(name, "/Block") == 0) {
        return end_block(reader, committed, err);
    }
    return 0;
}

static int parse_block_list(struct azure_op *op, struct act_error *err)
{
    static const struct xml_handler handler = {.end = end_element};
    struct block_reader reader = {.call = op->call};
    const struct act_buf *text = &op->http.body_text;
    int rc = xml_parse(text->data ? text->data : "", text->len, "block list", &handler, &reader, err);

    if (rc == 0 && !reader.complete)
        rc = act_error_set(err, ACT_FAIL, "the answer is not a block list");
    return rc;
}

static void read_blocks(void *arg)
{
    struct azure_op *op = arg;

    op->call->rc = parse_block_list(op, &op->call->error);
    if (op->call->rc)
        act_error_prefix(&op->call->error, "%s: unusable answer", azure_what(op));
}

static void blocks_read(void *arg)
{
    struct azure_op *op = arg;

    azure_finish(op, op->call->rc);
}

void azure_build_blocks(struct azure_op *op)
{
    azure_request(op, "GET", op->call->key, "comp=blocklist&blocklisttype=all");
    op->http.max_body = BLOCK_LIST_BYTES;
}

/* A blob that is not there has no blocks. */
void azure_answer_blocks(struct azure_op *op)
{
    if (op->http.status == 200)
        engine_work(http_engine(op->azure->store.http), read_blocks, blocks_read, op);
    else if (azure_has_code(&op->http, "BlobNotFound"))
        azure_finish(op, 0);
    else
        azure_finish_failed(op);
}
