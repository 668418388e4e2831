/* list.c - transfer_list(): the entries of a path, one after the other. */
#include <string.h>

#include "base/path.h"
#include "transfer/transfer_internal.h"

struct listed_path {
    struct transfer_lister *lister;
    const struct transfer_path *what;
    enum transfer_scope scope;
    int (*each)(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err);
    void *arg;
    struct act_error *err;
    int rc;
    bool ended;
    uint64_t unreadable;
    struct act_error first; /* why the first of those cannot be read */
};

bool transfer_is_leftover_of(const char *key, const char *path)
{
    return *path == '\0' || act_path_is_within(key, path);
}

/* Returns the key relative to the listed folder. */
static const char *list_rel_of(const struct listed_path *l, const char *key)
{
    const char *rel = key + strlen(l->what->path);

    if (!*l->what->path)
        return key;
    return *rel == '/' ? rel + 1 : act_path_basename(key);
}

static int give_entry(struct listed_path *l, const struct store_entry *entry)
{
    if (l->scope == TRANSFER_LEFTOVERS && !transfer_is_leftover_of(entry->key, l->what->path))
        return 0;
    if (entry->kind != STORE_UNREADABLE)
        return l->each(l->arg, entry, list_rel_of(l, entry->key), l->err);
    if (l->unreadable++ == 0)
        (void)store_entry_problem(entry, &l->first);
    return 0;
}

/* Returns the result: an error, though all else was listed, if something could not be read. */
static int say_unreadable(struct listed_path *l)
{
    if (l->rc < 0 || l->unreadable == 0)
        return l->rc;
    *l->err = l->first;
    if (l->unreadable > 1)
        act_error_hint(l->err, "%llu more cannot be read", (unsigned long long)l->unreadable - 1);
    return -(int)ACT_PARTIAL;
}

static void give_page(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct listed_path *l = arg;

    if (error) {
        *l->err = *error;
        l->rc = -(int)error->code;
    }
    for (size_t i = 0; i < page->n && l->rc == 0; i++)
        l->rc = give_entry(l, &page->v[i]);
    if (last || l->rc < 0)
        l->ended = true;
    else
        transfer_lister_next(l->lister, give_page, l);
}

static int list_below(struct engine *engine, struct listed_path *l)
{
    const char *path = l->what->path;
    /* a leftover has the key of the file it was to become */
    ACT_AUTOFREE char *prefix = l->scope == TRANSFER_LEFTOVERS ? act_strdup(path) : transfer_prefix(path);

    l->lister = transfer_lister_new(engine, l->what->store, prefix, l->scope);
    transfer_lister_next(l->lister, give_page, l);
    engine_run(engine, &l->ended);
    transfer_lister_free(l->lister);
    engine_run(engine, NULL); /* pages fetched ahead */
    if (!l->ended)
        l->rc = act_error_set(l->err, ACT_FAIL, "the listing of '%s' came to a halt before its end", path);
    return say_unreadable(l);
}

static int list_file(struct listed_path *l)
{
    ACT_AUTO(store_call) call = {.op = STORE_HEAD, .key = l->what->path};
    int rc = store_do(l->what->store, &call, l->err);

    if (rc == 0)
        rc = give_entry(l, &call.entry);
    return rc;
}

int transfer_list(struct engine *engine, const struct transfer_path *what, enum transfer_scope scope,
                  int (*each)(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err),
                  void *arg, struct act_error *err)
{
    struct listed_path l = {.what = what, .scope = scope, .each = each, .arg = arg, .err = err};

    return what->is_folder || scope == TRANSFER_LEFTOVERS ? list_below(engine, &l) : list_file(&l);
}
