/* batch.c - deletions: many in one call, several calls at once. */

#include "transfer/transfer_internal.h"

enum {
    MAX_BATCHES = 8, /* under way */
    MAX_CLEARS = 32, /* leftovers go one by one */
};

struct transfer_batch {
    struct transfer_deleter *deleter;
    struct store_entry entries[STORE_MAX_DELETIONS];
    struct store_deletion deletions[STORE_MAX_DELETIONS];
    size_t n;
    struct store_call call;
};

bool transfer_deleter_has_room(const struct transfer_deleter *d)
{
    int window = store_window(d->store), most = d->leftovers ? MAX_CLEARS : MAX_BATCHES;

    return d->under_way < (window < most ? window : most);
}

static void free_batch(struct transfer_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        store_entry_release(&b->entries[i]);
    free(b);
}

/* Returns whether the object is gone: a missing one counts, a missing container says nothing about it. */
static bool deletion_is_gone(int rc, const struct act_error *error)
{
    return rc >= 0 || (rc == -ACT_NOT_FOUND && (error->http_status == 0 || error->fact == ACT_FACT_OBJECT_MISSING));
}

static void deletions_done(struct store_call *call)
{
    struct transfer_batch *b = call->arg;
    struct transfer_deleter *d = b->deleter;
    bool whole = call->op != STORE_DELETE_MANY || call->rc < 0; /* the call's result applies to every entry */

    for (size_t i = 0; i < b->n; i++) {
        int rc = whole ? call->rc : b->deletions[i].rc;
        const struct act_error *error = whole ? &call->error : &b->deletions[i].error;
        d->deleted(d->arg, &b->entries[i], deletion_is_gone(rc, error) ? NULL : error);
    }
    store_call_release(call);
    free_batch(b);
    d->under_way--;
    d->more(d->arg);
}

void transfer_deleter_flush(struct transfer_deleter *d)
{
    struct transfer_batch *b = d->open;

    if (!b)
        return;
    d->open = NULL;
    d->under_way++;
    b->call = (struct store_call){.done = deletions_done, .arg = b};
    if (b->n > 1) {
        b->call.op = STORE_DELETE_MANY;
        b->call.key = "";
        b->call.delete_many.v = b->deletions;
        b->call.delete_many.n = b->n;
    } else {
        b->call.op = d->leftovers ? STORE_CLEAR : STORE_DELETE;
        b->call.key = b->deletions[0].key;
        if (!d->leftovers)
            b->call.delete.if_match = b->deletions[0].if_match;
    }
    store_start(d->store, &b->call);
}

void transfer_deleter_add(struct transfer_deleter *d, struct store_entry *entry)
{
    if (!d->open)
        d->open = act_calloc(1, sizeof(*d->open));
    struct transfer_batch *b = d->open;
    struct store_entry *own = &b->entries[b->n];

    b->deleter = d;
    *own = *entry;
    *entry = (struct store_entry){.mode = -1};
    b->deletions[b->n++] = (struct store_deletion){.key = own->key, .if_match = own->etag[0] ? own->etag : NULL};
    if (b->n == (d->leftovers ? 1 : STORE_MAX_DELETIONS))
        transfer_deleter_flush(d);
}

void transfer_deleter_release(struct transfer_deleter *d)
{
    if (d->open)
        free_batch(d->open);
    d->open = NULL;
}
