/* azure_ids.c - ids of blocks where ids of another length are in the way.
 *
 * All ids of the blocks of one blob must have one length, those of its committed blocks and those that somebody's
 * interrupted upload left included; otherwise the service reports InvalidBlobOrBlock. To clear them away could cost
 * somebody the blob, or an upload that is still going on. So nothing is cleared: our ids take the length that is
 * there.
 *   longer:  zeros follow
 *   shorter: the beginning of the upload's id, then the index; so a block of an upload still has an id of its own
 * Only below AZURE_ID_MIN bytes too little of the upload's id would be left.
 */
#include <string.h>

#include "store/azure.h"

#define INDEX_BYTES 4
#define MAX_LOOKUPS 2
#define SURE_UPLOAD 12 /* bytes of an upload's id that tell it from all others */

/* A key with ids of another length than ours. */
struct azure_ids {
    char *key;
    size_t len; /* 0: it is being found out */
    struct azure_op *waiting;
    struct azure_ids *next;
};

static struct azure_ids *ids_of_upload(const struct azure *azure, const char *key)
{
    struct azure_ids *ids = azure->ids;

    while (ids && strcmp(ids->key, key) != 0)
        ids = ids->next;
    return ids;
}

static struct azure_ids *ids_find_or_add(struct azure *azure, const char *key)
{
    struct azure_ids *ids = ids_of_upload(azure, key);

    if (!ids) {
        ids = act_calloc(1, sizeof(*ids));
        ids->key = act_strdup(key);
        ids->next = azure->ids;
        azure->ids = ids;
    }
    return ids;
}

size_t azure_id_length(const struct azure *azure, const char *key)
{
    const struct azure_ids *ids = ids_of_upload(azure, key);

    return ids && ids->len ? ids->len : STORE_BLOCK_ID;
}

void azure_set_id_length(struct azure *azure, const char *key, size_t len)
{
    struct azure_ids *ids = ids_of_upload(azure, key);

    if (ids || len != STORE_BLOCK_ID)
        ids_find_or_add(azure, key)->len = len;
}

static void free_ids(struct azure_ids *ids)
{
    free(ids->key);
    free(ids);
}

void azure_forget_ids(struct azure *azure, const char *key)
{
    struct azure_ids **at = &azure->ids, *ids = ids_of_upload(azure, key);

    if (!ids || ids->waiting || !ids->len)
        return;
    while (*at != ids)
        at = &(*at)->next;
    *at = ids->next;
    free_ids(ids);
}

void azure_free_ids(struct azure *azure)
{
    while (azure->ids) {
        struct azure_ids *next = azure->ids->next;
        free_ids(azure->ids);
        azure->ids = next;
    }
}

/* ---- the forms of an id */

char *azure_encode_id(const uint8_t id[STORE_BLOCK_ID], size_t len)
{
    uint8_t form[AZURE_ID_MAX] = {0};

    if (len >= STORE_BLOCK_ID) {
        memcpy(form, id, STORE_BLOCK_ID);
    } else {
        memcpy(form, id, len - INDEX_BYTES);
        memcpy(form + len - INDEX_BYTES, id + STORE_BLOCK_ID - INDEX_BYTES, INDEX_BYTES);
    }
    return act_base64_encode(form, len);
}

static bool id_is_zero(const uint8_t *bytes, size_t len)
{
    while (len && bytes[len - 1] == 0)
        len--;
    return len == 0;
}

bool azure_decode_id(const struct store_upload_id *upload, const uint8_t *form, size_t len, uint8_t id[STORE_BLOCK_ID])
{
    size_t kept = len < STORE_BLOCK_ID ? len - INDEX_BYTES : 0;

    if (len >= STORE_BLOCK_ID) {
        memcpy(id, form, STORE_BLOCK_ID);
        return id_is_zero(form + STORE_BLOCK_ID, len - STORE_BLOCK_ID);
    }
    if (len < SURE_UPLOAD + INDEX_BYTES || memcmp(form, upload->bytes, kept) != 0)
        return false;
    memcpy(id, upload->bytes, sizeof(upload->bytes));
    memcpy(id + sizeof(upload->bytes), form + kept, INDEX_BYTES);
    return true;
}

/* ---- finding out their length */

/* A call of this file that asks for the blocks at a key, while ops wait for the length of their ids. */
struct ids_lookup {
    struct store_call call;
    struct azure *azure;
    char *key;
};

static void end_lookup(struct ids_lookup *lookup, bool fits)
{
    struct azure_ids *ids = ids_of_upload(lookup->azure, lookup->key);
    struct azure_op *waiting = ids->waiting;

    ids->waiting = NULL;
    if (ids->len == 0)
        ids->len = STORE_BLOCK_ID;
    store_call_release(&lookup->call);
    free(lookup->key);
    free(lookup);
    while (waiting) {
        struct azure_op *op = waiting;
        waiting = op->next_waiting;
        if (fits)
            azure_start(op);
        else
            azure_finish(op, -(int)op->call->error.code);
    }
}

static void cleared(struct store_call *call)
{
    end_lookup(call->arg, call->rc == 0 || call->rc == -(int)ACT_NOT_FOUND);
}

/* Removes the blocks where our ids cannot be made to fit, and there is no blob that could suffer. */
static void looked_up(struct store_call *call)
{
    struct ids_lookup *lookup = call->arg;

    if (call->rc || call->blocks.id_len == 0 || call->blocks.id_len >= AZURE_ID_MIN) {
        end_lookup(lookup, call->rc == 0);
        return;
    }
    store_call_release(call);
    call->op = STORE_CLEAR;
    call->done = cleared;
    store_start(&lookup->azure->store, call);
}

static void look_up_ids(struct azure *azure, struct azure_ids *ids)
{
    struct ids_lookup *lookup = act_calloc(1, sizeof(*lookup));

    lookup->azure = azure;
    lookup->key = act_strdup(ids->key);
    lookup->call = (struct store_call){.op = STORE_BLOCKS, .key = lookup->key, .done = looked_up, .arg = lookup};
    ids->len = 0;
    store_start(&azure->store, &lookup->call);
}

void azure_fit_ids(struct azure_op *op)
{
    struct azure_ids *ids = ids_find_or_add(op->azure, op->call->key);
    bool is_running = ids->waiting != NULL;

    if (ids->len && ids->len != op->id_len) { /* found out while this block was on its way */
        azure_start(op);
        return;
    }
    int rc = azure_answer_error(op);
    if (++op->id_lookups > MAX_LOOKUPS) {
        azure_finish(op, rc);
        return;
    }
    op->next_waiting = ids->waiting;
    ids->waiting = op;
    if (!is_running)
        look_up_ids(op->azure, ids);
}
