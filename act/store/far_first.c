/* far_first.c - what is asked of a far store together with the connection: whether there is an object of a key, and
 * what lies below it. The key goes there with the command that begins the other end, which answers behind its first
 * words. So these calls take no way there and back of their own. Both ends know them, and number them alike.
 */
#include <string.h>

#include "store/far.h"

size_t far_first_calls(const char *key, const char *prefix, struct store_call out[FAR_FIRSTS])
{
    out[0] = (struct store_call){.op = STORE_LIST, .key = prefix, .list.whole = true};
    out[1] = (struct store_call){.op = STORE_LIST, .key = prefix, .list.max = 1};
    out[2] = (struct store_call){.op = STORE_HEAD, .key = key};
    return *key ? FAR_FIRSTS : FAR_FIRSTS - 1;
}

char *far_first_prefix(const char *key)
{
    return act_sprintf("%s%s", key, *key ? "/" : "");
}

/* Ends the call that waits for one of them, and takes its outputs. */
static void far_first_give(struct far_first *f)
{
    struct store_call *to = f->waiter, *from = &f->call;
    int rc = from->rc;

    to->error = from->error;
    to->entry = from->entry;
    if (to->op == STORE_LIST)
        to->list.page = from->list.page;
    if (from->op == STORE_LIST)
        from->list.page = (struct store_page){0};
    from->entry = (struct store_entry){.mode = -1};
    store_finish_later(&f->far->store, to, rc);
}

static void far_first_came(struct store_call *call)
{
    struct far_first *f = call->arg;

    f->sent = NULL;
    if (f->waiter)
        far_first_give(f);
}

void far_first_begin(struct far *far, const char *key)
{
    struct store_call calls[FAR_FIRSTS];

    far->place.first = act_strdup(key);
    far->first_prefix = far_first_prefix(key);
    far->n_firsts = far_first_calls(far->place.first, far->first_prefix, calls);
    for (size_t i = 0; i < far->n_firsts; i++) {
        struct far_first *f = &far->firsts[i];
        *f = (struct far_first){.far = far, .call = calls[i]};
        f->call.done = far_first_came;
        f->call.arg = f;
        f->sent = far_call_new(far, &f->call);
        far_sum(f->sent);
        f->sent->stage = FAR_CALL_WAITS;
    }
}

void far_first_asked(struct far *far)
{
    for (size_t i = 0; i < far->n_firsts; i++) {
        far->firsts[i].sent->stage = FAR_CALL_SENT;
        far->firsts[i].sent->is_written = true;
    }
}

static bool far_first_is_same(const struct store_call *a, const struct store_call *b)
{
    return a->op == b->op && strcmp(a->key, b->key) == 0 &&
           (a->op != STORE_LIST || (!b->list.marker && a->list.max == b->list.max && a->list.whole == b->list.whole &&
                                    a->list.delimiter == b->list.delimiter && a->list.leftovers == b->list.leftovers));
}

bool far_first_takes(struct far *far, struct store_call *call)
{
    const bool reads = call->op == STORE_HEAD || call->op == STORE_LIST || call->op == STORE_GET;

    far->firsts_are_old = far->firsts_are_old || !reads || far->store.follow;
    for (size_t i = 0; i < far->n_firsts && !far->firsts_are_old; i++) {
        struct far_first *f = &far->firsts[i];
        if (f->waiter || !far_first_is_same(&f->call, call))
            continue;
        f->waiter = call;
        if (!f->sent)
            far_first_give(f);
        return true;
    }
    return false;
}

void far_first_release(struct far *far)
{
    for (size_t i = 0; i < far->n_firsts; i++) {
        struct far_first *f = &far->firsts[i];
        if (f->sent) {
            far_leave_slot(f->sent);
            far_call_free(f->sent);
        }
        store_call_release(&f->call);
    }
    free(far->first_prefix);
    far->first_prefix = NULL;
    far->n_firsts = 0;
}
