/* lister.c - pages of what lies below a prefix, in order of keys, fetched ahead.
 *
 * A listing is serial: each page names the next. So when a listing turns out to be long, the remaining folders are
 * looked up with a delimiter, and if they are few and large they are listed side by side. Each of them is a branch.
 * Branches are kept, and their pages delivered, in the order of keys, so the memory limit bounds how far the later
 * ones may run ahead:
 *
 *   front: pages ready, next one under way ─► branch: first page ready ─► branch: under way ─► branch: not begun
 *
 * The first branch is the flat listing itself. When others are put after it, it continues to the end of the folder
 * that it has reached (bound), and that folder is the next to be looked up.
 */
#include <string.h>

#include "base/log.h"
#include "transfer/transfer_internal.h"

enum {
    PAGE = 5000,            /* entries, at most */
    MAX_UNDER_WAY = 2,      /* pages: their text takes several times the memory of the entries */
    MAX_ENTRIES = 4 * PAGE, /* ready or on the way */
    AHEAD = 2,              /* pages that wait in one branch */
    LOOK_AFTER = 2,         /* pages before the folders are looked up: short listings need no more */
    MAX_FOLDERS = 512,      /* more of them are small, or too many requests */
    MAX_SPREAD = 2,         /* folders that one page covers: with more the flat listing gets more each time */
};

struct branch {
    struct transfer_lister *lister;
    char *prefix;
    bool is_folder; /* found by a lookup: an entry of its own if it is empty */
    int mode;       /* of the folder, which is then an entry even if it is not empty; -1: not known */
    char *bound;    /* only keys that start with this are wanted; NULL: all */
    char *look;     /* the folder to look up when the branch is long; NULL: none */
    bool cut;       /* nothing more is wanted */
    char *marker;
    bool under_way, ended, failed;
    struct store_call call;
    struct act_error error;
    struct store_page ready[AHEAD];
    int n_ready;
    int pages;      /* received since the last lookup */
    size_t entries; /* received altogether */
    char *last;     /* the last key received */
    size_t spread;  /* how many folders of the level the last page covers */
    struct branch *next;
};

struct transfer_lister {
    struct engine *engine;
    struct store *store;
    enum transfer_scope scope;
    struct branch *front;
    struct branch *looking; /* the branch that the lookup is for; NULL: none, or it is gone */
    struct store_call look;
    char *look_prefix;
    bool look_under_way;
    void (*done)(void *arg, struct store_page *page, bool last, const struct act_error *error);
    void *arg;
    bool timer; /* set, to deliver a page */
    bool abandoned;
};

static void lister_go_on(struct transfer_lister *l);

/* ---- branches */

static struct branch *branch_new(struct transfer_lister *l, const char *prefix)
{
    struct branch *b = act_calloc(1, sizeof(*b));

    b->lister = l;
    b->prefix = act_strdup(prefix);
    b->mode = -1;
    /* listing a disk side by side gains nothing */
    if ((l->scope == TRANSFER_TREE || l->scope == TRANSFER_WHOLE) && !store_traits(l->store)->real_folders)
        b->look = act_strdup(prefix);
    return b;
}

static void branch_free(struct branch *b)
{
    if (b->lister->looking == b)
        b->lister->looking = NULL;
    for (int i = 0; i < b->n_ready; i++)
        store_page_release(&b->ready[i]);
    free(b->prefix);
    free(b->bound);
    free(b->look);
    free(b->marker);
    free(b->last);
    free(b);
}

static void branch_fail(struct branch *b, const struct act_error *error)
{
    b->error = *error;
    b->failed = b->ended = true;
}

/* Drops the entries beyond the bound; reaching it ends the branch. */
static void keep_within_bound(struct branch *b, struct store_page *page)
{
    size_t n = b->cut ? 0 : page->n;

    while (n > 0 && b->bound && !act_starts_with(page->v[n - 1].key, b->bound))
        n--;
    b->ended = b->cut || n < page->n || !page->next;
    while (page->n > n)
        store_entry_release(&page->v[--page->n]);
}

/* Returns how many of the folders right below the prefix have entries on the page. */
static size_t count_folders(const struct store_page *page, const char *prefix)
{
    const char *folder = NULL;
    size_t folders = 0, folder_len = 0, prefix_len = strlen(prefix);

    for (size_t i = 0; i < page->n; i++) {
        const char *key = page->v[i].key, *slash = strchr(key + prefix_len, '/');
        if (!slash || (folder && strncmp(key, folder, folder_len) == 0))
            continue;
        folder = key;
        folder_len = (size_t)(slash - key) + 1;
        folders++;
    }
    return folders;
}

/* Puts an entry for the folder itself, which its own listing does not contain, before its content. */
static void put_folder_first(const struct branch *b, struct store_page *page)
{
    (void)store_page_add(page);
    memmove(&page->v[1], &page->v[0], (page->n - 1) * sizeof(page->v[0]));
    page->v[0] =
        (struct store_entry){.key = act_strdup(b->prefix), .kind = STORE_FOLDER, .filled = true, .mode = b->mode};
}

static void branch_take_page(struct branch *b, struct store_page *page)
{
    keep_within_bound(b, page);
    if (page->n > 0 && b->entries == 0 && b->mode >= 0 && b->lister->scope == TRANSFER_WHOLE)
        put_folder_first(b, page);
    free(b->marker);
    b->marker = b->ended ? NULL : act_strdup(page->next);
    b->pages++;
    if (page->n == 0)
        return;
    b->entries += page->n;
    free(b->last);
    b->last = act_strdup(page->v[page->n - 1].key);
    b->spread = b->look ? count_folders(page, b->look) : 0;
    b->ready[b->n_ready++] = *page;
    *page = (struct store_page){0};
}

/* Returns whether the branch may be an empty folder, which its own listing does not show. */
static bool may_be_empty_folder(const struct branch *b)
{
    return b->is_folder && b->ended && !b->failed && !b->cut && b->entries == 0;
}

static void lister_head_done(struct store_call *call)
{
    struct branch *b = call->arg;

    b->under_way = false;
    if (call->rc == 0 && call->entry.kind == STORE_FOLDER) {
        b->ready[0] = (struct store_page){.v = act_alloc(sizeof(call->entry)), .n = 1};
        b->ready[0].v[0] = call->entry;
        call->entry = (struct store_entry){.mode = -1};
        b->n_ready = 1;
    } else if (call->rc < 0 && call->rc != -ACT_NOT_FOUND) {
        branch_fail(b, &call->error);
    }
    store_call_release(call);
    lister_go_on(b->lister);
}

static void look_for_marker(struct branch *b)
{
    b->under_way = true;
    b->call = (struct store_call){.op = STORE_HEAD, .key = b->prefix, .done = lister_head_done, .arg = b};
    store_start(b->lister->store, &b->call);
}

static void page_done(struct store_call *call)
{
    struct branch *b = call->arg;

    b->under_way = false;
    if (call->rc < 0)
        branch_fail(b, &call->error);
    else
        branch_take_page(b, &call->list.page);
    store_call_release(call);
    if (may_be_empty_folder(b) && !b->lister->abandoned)
        look_for_marker(b);
    lister_go_on(b->lister);
}

static void branch_ask(struct branch *b)
{
    struct transfer_lister *l = b->lister;

    b->under_way = true;
    b->call = (struct store_call){.op = STORE_LIST,
                                  .key = b->prefix,
                                  .list = {.marker = b->marker,
                                           .delimiter = l->scope == TRANSFER_LEVEL,
                                           .whole = l->scope == TRANSFER_WHOLE,
                                           .leftovers = l->scope == TRANSFER_LEFTOVERS,
                                           .ahead = !l->front->next},
                                  .done = page_done,
                                  .arg = b};
    store_start(l->store, &b->call);
}

/* ---- looking for folders to list side by side */

/* The level of a folder, divided at the key that the branch has reached. */
struct parted_level {
    struct store_page *page;
    size_t rest;          /* index of the first entry beyond that key */
    size_t folders;       /* among the rest */
    const char *standing; /* the folder that contains the key, or NULL */
};

static struct parted_level part_level(struct store_page *page, const char *reached)
{
    struct parted_level level = {.page = page};

    for (size_t i = 0; i < page->n; i++) {
        const struct store_entry *entry = &page->v[i];
        bool folder = entry->kind == STORE_PREFIX;
        if (strcmp(entry->key, reached) > 0) {
            level.folders += folder;
            continue;
        }
        level.rest = i + 1;
        if (folder && act_starts_with(reached, entry->key))
            level.standing = entry->key;
    }
    return level;
}

/* Puts branches for the rest of the level after b: one for each folder, and the files between them. */
static void branch_off(struct branch *b, const struct parted_level *level)
{
    struct branch *after = b, *behind = b->next;

    for (size_t i = level->rest; i < level->page->n; i++) {
        struct store_entry *entry = &level->page->v[i];
        bool folder = entry->kind == STORE_PREFIX;
        if (folder || after == b || after->is_folder) {
            struct branch *new = branch_new(b->lister, folder ? entry->key : "");
            new->is_folder = folder;
            new->mode = folder ? entry->mode : -1;
            new->ended = !folder;
            new->next = behind;
            after->next = new;
            after = new;
        }
        if (!folder) {
            *store_page_add(&after->ready[0]) = *entry;
            *entry = (struct store_entry){.mode = -1};
            after->n_ready = 1;
        }
    }
}

/* Confines the branch to the folder that it has reached; NULL: it lists nothing more. */
static void confine(struct branch *b, const char *folder)
{
    free(b->bound);
    b->bound = act_strdup(folder);
    b->look = act_strdup(folder);
    b->pages = 0;
    if (folder)
        return;
    b->cut = true;
    b->ended = !b->under_way;
}

static void take_level(struct branch *b, struct store_page *page)
{
    struct parted_level level = part_level(page, b->last);

    free(b->look);
    b->look = NULL;
    if (page->next || level.folders > MAX_FOLDERS)
        return;
    if (level.folders > 0) {
        branch_off(b, &level);
        confine(b, level.standing);
    } else if (level.rest == page->n && level.standing) {
        confine(b, level.standing);
    }
}

static void look_done(struct store_call *call)
{
    struct transfer_lister *l = call->arg;
    struct branch *b = l->looking;

    l->look_under_way = false;
    l->looking = NULL;
    if (call->rc < 0)
        act_trace("transfer", "cannot look for folders in '%s': %s", l->look_prefix, act_error_text(&call->error));
    if (b && !b->ended)
        take_level(b, &call->list.page);
    store_call_release(call);
    free(l->look_prefix);
    l->look_prefix = NULL;
    lister_go_on(l);
}

/* Returns whether to look up its folders: the branch is long, and one or two folders fill its last page. */
static bool should_look(const struct branch *b)
{
    return !b->ended && b->look && b->pages >= LOOK_AFTER && b->spread >= 1 && b->spread <= MAX_SPREAD;
}

static void look_for_folders(struct transfer_lister *l)
{
    struct branch *b = l->front;

    while (b && !should_look(b))
        b = b->next;
    if (!b || l->look_under_way)
        return;
    l->look_under_way = true;
    l->looking = b;
    l->look_prefix = act_strdup(b->look);
    b->pages = 0;
    l->look = (struct store_call){
        .op = STORE_LIST, .key = l->look_prefix, .list.delimiter = true, .done = look_done, .arg = l};
    store_start(l->store, &l->look);
}

/* ---- fetching and delivering pages */

static size_t entries_ready(const struct branch *b)
{
    size_t n = 0;

    for (int i = 0; i < b->n_ready; i++)
        n += b->ready[i].n;
    return n;
}

/* Asks for pages, first branches first. The front can always continue. */
static void ask_for_more(struct transfer_lister *l)
{
    size_t ready = 0;
    int under_way = 0;

    for (struct branch *b = l->front; b; b = b->next) {
        ready += entries_ready(b);
        under_way += b->under_way;
    }
    for (struct branch *b = l->front; b && under_way < MAX_UNDER_WAY; b = b->next) {
        bool waited_for = b == l->front && b->n_ready == 0;
        if (b->under_way || b->ended || b->n_ready == AHEAD ||
            (!waited_for && ready + (size_t)(under_way + 1) * PAGE > MAX_ENTRIES))
            continue;
        branch_ask(b);
        under_way++;
    }
}

static bool is_spent(const struct branch *b)
{
    return b->ended && !b->failed && !b->under_way && b->n_ready == 0;
}

static void drop_spent(struct transfer_lister *l)
{
    while (l->front && is_spent(l->front)) {
        struct branch *b = l->front;
        l->front = b->next;
        branch_free(b);
    }
}

static struct store_page take_ready(struct branch *b)
{
    struct store_page page = b->ready[0];

    b->n_ready--;
    memmove(&b->ready[0], &b->ready[1], (AHEAD - 1) * sizeof(b->ready[0]));
    b->ready[AHEAD - 1] = (struct store_page){0};
    return page;
}

/* Returns whether there is something to deliver. */
static bool can_answer(const struct transfer_lister *l)
{
    return !l->front || l->front->n_ready > 0 || l->front->failed;
}

/* Delivers a page or an error. Do not touch l afterwards: done() may have freed it. */
static void lister_answer(struct transfer_lister *l)
{
    void (*done)(void *, struct store_page *, bool, const struct act_error *) = l->done;
    ACT_AUTO(store_page) page = {0};
    struct act_error error;
    bool failed = l->front && l->front->n_ready == 0;

    l->done = NULL;
    if (failed)
        error = l->front->error;
    else if (l->front)
        page = take_ready(l->front);
    drop_spent(l);
    bool last = !l->front;
    if (!failed)
        ask_for_more(l);
    done(l->arg, &page, last, failed ? &error : NULL);
}

static bool is_under_way(const struct transfer_lister *l)
{
    bool any = l->look_under_way || l->timer;

    for (const struct branch *b = l->front; b; b = b->next)
        any |= b->under_way;
    return any;
}

static void destroy(struct transfer_lister *l)
{
    struct branch *next;

    for (struct branch *b = l->front; b; b = next) {
        next = b->next;
        branch_free(b);
    }
    free(l);
}

static void lister_go_on(struct transfer_lister *l)
{
    if (l->abandoned) {
        if (!is_under_way(l))
            destroy(l);
        return;
    }
    drop_spent(l);
    look_for_folders(l);
    ask_for_more(l);
    if (l->done && !l->timer && can_answer(l))
        lister_answer(l);
}

static void lister_fire(void *arg)
{
    struct transfer_lister *l = arg;

    l->timer = false;
    lister_go_on(l);
}

struct transfer_lister *transfer_lister_new(struct engine *engine, struct store *store, const char *prefix,
                                            enum transfer_scope scope)
{
    struct transfer_lister *l = act_calloc(1, sizeof(*l));

    l->engine = engine;
    l->store = store;
    l->scope = scope;
    l->front = branch_new(l, prefix);
    ask_for_more(l);
    return l;
}

void transfer_lister_next(struct transfer_lister *l,
                          void (*done)(void *arg, struct store_page *page, bool last, const struct act_error *error),
                          void *arg)
{
    l->done = done;
    l->arg = arg;
    if (!can_answer(l))
        return;
    l->timer = true;
    engine_timer(l->engine, 0, lister_fire, l);
}

void transfer_lister_free(struct transfer_lister *l)
{
    if (!l)
        return;
    l->abandoned = true;
    l->done = NULL;
    lister_go_on(l);
}
