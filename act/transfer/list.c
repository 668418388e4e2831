/* list.c - what a path holds, one entry after the other. */
#include <string.h>

#include "base/path.h"
#include "transfer/transfer_internal.h"

struct listing {
    struct transfer_lister *lister;
    size_t prefix_len;
    int (*each)(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err);
    void *arg;
    struct act_error *err;
    int rc;
    bool ended;
};

static void take_page(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct listing *l = arg;

    if (error) {
        *l->err = *error;
        l->rc = -(int)error->code;
    }
    for (size_t i = 0; i < page->n && l->rc == 0; i++)
        l->rc = l->each(l->arg, &page->v[i], page->v[i].key + l->prefix_len, l->err);
    if (last || l->rc < 0)
        l->ended = true;
    else
        transfer_lister_next(l->lister, take_page, l);
}

static int list_folder(struct engine *engine, const struct transfer_path *what, enum transfer_scope scope,
                       struct listing *l)
{
    ACT_AUTOFREE char *prefix = transfer_prefix(what->path);

    l->prefix_len = strlen(prefix);
    l->lister = transfer_lister_new(engine, what->store, prefix, scope);
    transfer_lister_next(l->lister, take_page, l);
    engine_run(engine, &l->ended);
    transfer_lister_free(l->lister);
    engine_run(engine, NULL); /* what was fetched ahead */
    if (!l->ended)
        l->rc =
            act_error_set(l->err, ACT_FAIL, "the listing of '%s' came to a halt before its end", what->path);
    return l->rc;
}

static int list_file(const struct transfer_path *what, struct listing *l)
{
    struct store_call call = {.op = STORE_HEAD, .key = what->path};
    int rc = store_do(what->store, &call, l->err);

    if (rc == 0)
        rc = l->each(l->arg, &call.entry, act_path_basename(what->path), l->err);
    store_call_release(&call);
    return rc;
}

int transfer_list(struct engine *engine, const struct transfer_path *what, enum transfer_scope scope,
                  int (*each)(void *arg, const struct store_entry *entry, const char *rel,
                              struct act_error *err),
                  void *arg, struct act_error *err)
{
    struct listing l = {.each = each, .arg = arg, .err = err};

    return what->is_folder || scope == TRANSFER_LEFTOVERS ? list_folder(engine, what, scope, &l)
                                                          : list_file(what, &l);
}
