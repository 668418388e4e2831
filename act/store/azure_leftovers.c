/* azure_leftovers.c - names that have only uncommitted blocks.
 *
 * Such a name is listed (include=uncommittedblobs) like an empty blob. To tell them apart, each candidate is checked:
 * there is no blob (HEAD), but there are uncommitted blocks (Get Block List).
 */
#include <string.h>

#include "store/azure.h"

#define CHECKS 16 /* under way at once */

struct leftover_check {
    struct store_call call;
    struct azure_op *op;
    struct store_entry *entry;
    bool is_leftover;
};

struct azure_leftovers {
    struct leftover_check *checks; /* one for each entry of the page */
    size_t next, running;
    struct act_error error; /* the first; code 0: none */
};

static void release_leftovers(struct azure_op *op)
{
    free(op->left->checks);
    free(op->left);
}

/* Keeps on the page what turned out to be leftovers. */
static void keep_leftovers(struct azure_op *op)
{
    struct store_page *page = &op->call->list.page;
    size_t n = 0;

    for (size_t i = 0; i < page->n; i++) {
        if (op->left->checks[i].is_leftover)
            page->v[n++] = page->v[i];
        else
            store_entry_release(&page->v[i]);
    }
    page->n = n;
}

static void run_checks(struct azure_op *op);

static void check_ended(struct leftover_check *check)
{
    struct azure_op *op = check->op;

    store_call_release(&check->call);
    op->left->running--;
    run_checks(op);
}

static void check_failed(struct leftover_check *check)
{
    if (!check->op->left->error.code)
        check->op->left->error = check->call.error;
    check_ended(check);
}

static void blocks_known(struct store_call *call)
{
    struct leftover_check *check = call->arg;

    if (call->rc) {
        check_failed(check);
        return;
    }
    check->entry->size = call->blocks.uncommitted;
    check->is_leftover = call->blocks.uncommitted > 0;
    check_ended(check);
}

static void head_known(struct store_call *call)
{
    struct leftover_check *check = call->arg;

    if (call->rc == -(int)ACT_NOT_FOUND) {
        call->op = STORE_BLOCKS;
        call->blocks = (struct store_blocks){0};
        call->done = blocks_known;
        store_start(&check->op->azure->store, call);
    } else if (call->rc) {
        check_failed(check);
    } else {
        check_ended(check);
    }
}

/* A blob that the service got whole, even an empty one, has an MD5. */
static bool may_be_leftover(const struct store_entry *entry)
{
    return entry->kind == STORE_FILE && entry->size == 0 && !entry->md5[0] && entry->mtime_ns == 0;
}

static void run_checks(struct azure_op *op)
{
    struct azure_leftovers *left = op->left;
    struct store_page *page = &op->call->list.page;

    while (left->next < page->n && left->running < CHECKS && !left->error.code) {
        struct leftover_check *check = &left->checks[left->next];
        check->op = op;
        check->entry = &page->v[left->next++];
        if (!may_be_leftover(check->entry))
            continue;
        check->call = (struct store_call){.op = STORE_HEAD, .key = check->entry->key, .done = head_known, .arg = check};
        left->running++;
        store_start(&op->azure->store, &check->call);
    }
    if (left->running)
        return;
    if (left->error.code)
        op->call->error = left->error;
    else
        keep_leftovers(op);
    azure_finish(op, -(int)left->error.code);
}

void azure_keep_leftovers(struct azure_op *op)
{
    op->release(op); /* the listing is done */
    op->release = release_leftovers;
    op->left = act_calloc(1, sizeof(*op->left));
    op->left->checks = act_calloc(op->call->list.page.n + 1, sizeof(*op->left->checks));
    run_checks(op);
}
