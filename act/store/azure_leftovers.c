/* azure_leftovers.c - names that have only uncommitted blocks.
 *
 * Such a name is listed (include=uncommittedblobs) like an empty blob. To tell them apart, each candidate is checked:
 * there is no blob (HEAD), but there are uncommitted blocks (Get Block List). The listing of a share looks at its
 * entries in the same way.
 */
#include <string.h>

#include "store/azure.h"

#define CHECKS 16 /* under way at once */

/* ---- a call for each entry of a page */

static void keep_entries(struct azure_looks *looks)
{
    struct store_page *page = looks->page;
    size_t n = 0;

    for (size_t i = 0; i < page->n; i++) {
        if (looks->v[i].drop)
            store_entry_release(&page->v[i]);
        else
            page->v[n++] = page->v[i];
    }
    page->n = n;
}

static void looks_go_on(struct azure_looks *looks)
{
    while (looks->next < looks->page->n && looks->running < looks->most && !looks->error.code) {
        struct azure_look *look = &looks->v[looks->next];
        struct store_entry *entry = &looks->page->v[looks->next++];
        bool wanted = looks->wants(entry);
        *look = (struct azure_look){.of = looks, .entry = entry, .drop = looks->only && !wanted};
        if (!wanted)
            continue;
        look->call = (struct store_call){.op = STORE_HEAD, .key = entry->key, .done = looks->looked, .arg = look};
        looks->running++;
        store_start(looks->store, &look->call);
    }
    if (looks->running)
        return;
    if (!looks->error.code)
        keep_entries(looks);
    free(looks->v);
    looks->ended(looks);
}

void azure_looks_start(struct azure_looks *looks)
{
    looks->v = act_calloc(looks->page->n + 1, sizeof(*looks->v));
    looks_go_on(looks);
}

void azure_look_ended(struct azure_look *look, bool failed)
{
    struct azure_looks *looks = look->of;

    if (failed && !looks->error.code)
        looks->error = look->call.error;
    store_call_release(&look->call);
    looks->running--;
    looks_go_on(looks);
}

/* ---- leftovers */

static void release_leftovers(struct azure_op *op)
{
    free(op->left);
}

static void blocks_known(struct store_call *call)
{
    struct azure_look *look = call->arg;

    if (call->rc == 0)
        look->entry->size = call->blocks.uncommitted;
    look->drop = call->rc != 0 || call->blocks.uncommitted == 0;
    azure_look_ended(look, call->rc != 0);
}

static void head_known(struct store_call *call)
{
    struct azure_look *look = call->arg;

    if (call->rc == -(int)ACT_NOT_FOUND) {
        call->op = STORE_BLOCKS;
        call->blocks = (struct store_blocks){0};
        call->done = blocks_known;
        store_start(look->of->store, call);
        return;
    }
    look->drop = true;
    azure_look_ended(look, call->rc != 0);
}

/* A blob that the service got whole, even an empty one, has an MD5. */
static bool may_be_leftover(const struct store_entry *entry)
{
    return entry->kind == STORE_FILE && entry->size == 0 && !entry->md5[0] && entry->mtime_ns == 0;
}

static void leftovers_known(struct azure_looks *looks)
{
    struct azure_op *op = looks->arg;
    int rc = -(int)looks->error.code;

    if (rc)
        op->call->error = looks->error;
    azure_finish(op, rc);
}

void azure_keep_leftovers(struct azure_op *op)
{
    op->release(op); /* the listing is done */
    op->release = release_leftovers;
    op->left = act_calloc(1, sizeof(*op->left));
    *op->left = (struct azure_looks){.store = &op->azure->store,
                                     .page = &op->call->list.page,
                                     .most = CHECKS,
                                     .only = true,
                                     .wants = may_be_leftover,
                                     .looked = head_known,
                                     .ended = leftovers_known,
                                     .arg = op};
    azure_looks_start(op->left);
}
