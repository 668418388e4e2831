/* remove.c - deletes what was listed, in batches, several at once, while the listing goes on. */
#include <string.h>

#include "base/path.h"
#include "filter/filter.h"
#include "transfer/transfer_internal.h"

enum {
    MAX_BATCHES = 8, /* under way */
    MAX_CLEARS = 32, /* leftovers go one by one */
};

struct removal {
    struct store *store;
    const struct transfer_options *options;
    struct transfer_report *report;
    struct transfer_lister *lister;
    const char *prefix;
    struct store_page page;
    size_t next;        /* of the page */
    bool listing;       /* a page is asked for */
    bool last;          /* the page is the last one */
    bool leftovers;     /* these are cleared, not objects deleted */
    bool only_folders;  /* leave everything else */
    struct batch *open; /* being filled */
    int under_way, max;
    bool stop;
    struct act_error first;
};

/* Objects that are deleted with one call. */
struct batch {
    struct removal *removal;
    struct store_entry entries[STORE_MAX_DELETIONS];
    struct store_deletion deletions[STORE_MAX_DELETIONS];
    size_t n;
    struct store_call call;
};

static void go_on(struct removal *r);

static void settle(struct removal *r, const struct store_entry *entry, int rc, const struct act_error *error)
{
    struct transfer_progress *t = &r->report->total;

    if (rc < 0 && rc != -ACT_NOT_FOUND) {
        transfer_report_failure(r->report, error, &r->first);
        r->stop |= transfer_is_hopeless(error);
        return;
    }
    t->done_objects++;
    t->done_bytes += entry->size;
}

static void free_batch(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        store_entry_release(&b->entries[i]);
    free(b);
}

static void batch_done(struct store_call *call)
{
    struct batch *b = call->arg;
    struct removal *r = b->removal;
    bool whole = call->op != STORE_DELETE_MANY || call->rc < 0; /* the call's result is that of all */

    for (size_t i = 0; i < b->n; i++)
        settle(r, &b->entries[i], whole ? call->rc : b->deletions[i].rc,
               whole ? &call->error : &b->deletions[i].error);
    transfer_progress_tick(r->options, r->report, false);
    store_call_release(call);
    free_batch(b);
    r->under_way--;
    go_on(r);
}

static void start_batch(struct removal *r)
{
    struct batch *b = r->open;

    r->open = NULL;
    r->under_way++;
    b->call =
        (struct store_call){.op = r->leftovers ? STORE_CLEAR : STORE_DELETE, .done = batch_done, .arg = b};
    b->call.key = b->deletions[0].key;
    b->call.if_match = r->leftovers ? NULL : b->deletions[0].if_match;
    if (b->n > 1) {
        b->call.op = STORE_DELETE_MANY;
        b->call.key = "";
        b->call.deletions = b->deletions;
        b->call.n_deletions = b->n;
    }
    store_start(r->store, &b->call);
}

/* Takes the entry's key. */
static void add_to_batch(struct removal *r, struct store_entry *entry)
{
    if (!r->open)
        r->open = act_calloc(1, sizeof(*r->open));
    struct batch *b = r->open;
    struct store_entry *own = &b->entries[b->n];

    b->removal = r;
    *own = *entry;
    *entry = (struct store_entry){.mode = -1};
    b->deletions[b->n++] =
        (struct store_deletion){.key = own->key, .if_match = own->etag[0] ? own->etag : NULL};
    if (b->n == (r->leftovers ? 1 : STORE_MAX_DELETIONS))
        start_batch(r);
}

static bool is_wanted(const struct removal *r, const struct store_entry *entry)
{
    bool folder = entry->kind == STORE_FOLDER;

    if (r->leftovers)
        return transfer_is_leftover_of(entry->key, r->prefix);
    if (r->only_folders && !folder)
        return false;
    return filter_takes(r->options->filter, entry->key + strlen(r->prefix), folder);
}

static void take_entry(struct removal *r, struct store_entry *entry)
{
    if (!is_wanted(r, entry))
        return;
    r->report->total.found_objects++;
    r->report->total.found_bytes += entry->size;
    if (r->options->plan)
        r->options->plan(
            r->options->arg,
            &(struct transfer_step){.action = TRANSFER_DELETE, .entry = entry, .reason = "asked for"});
    if (!r->options->dry_run)
        add_to_batch(r, entry);
}

static void take_page(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct removal *r = arg;

    r->listing = false;
    r->last = last;
    if (error) {
        transfer_report_failure(r->report, error, &r->first);
        r->stop = true;
    }
    store_page_release(&r->page);
    r->next = 0;
    r->page = *page;
    *page = (struct store_page){0};
    go_on(r);
}

static void go_on(struct removal *r)
{
    while (!r->stop && r->next < r->page.n && r->under_way < r->max)
        take_entry(r, &r->page.v[r->next++]);
    if (r->stop || r->listing || r->next < r->page.n)
        return;
    if (!r->last) {
        r->listing = true;
        transfer_lister_next(r->lister, take_page, r);
    } else if (r->open) {
        start_batch(r);
    }
    r->report->total.listing_done = r->last;
}

/* One pass over what is listed below r->prefix. */
static void remove_listed(struct removal *r, struct engine *engine)
{
    int window = store_window(r->store), most = r->leftovers ? MAX_CLEARS : MAX_BATCHES;

    r->max = window < most ? window : most;
    r->lister =
        transfer_lister_new(engine, r->store, r->prefix, r->leftovers ? TRANSFER_LEFTOVERS : TRANSFER_TREE);
    go_on(r);
    engine_run(engine, NULL);
    transfer_lister_free(r->lister);
    store_page_release(&r->page);
    if (r->open)
        free_batch(r->open);
}

static int remove_file(struct removal *r, struct engine *engine, const char *path, struct act_error *err)
{
    struct store_call head = {.op = STORE_HEAD, .key = path};
    int rc = store_do(r->store, &head, err);

    r->max = 1;
    r->last = true;
    if (rc == 0) {
        take_entry(r, &head.entry);
        go_on(r);
        engine_run(engine, NULL);
    }
    store_call_release(&head);
    return rc;
}

/* Removes the folders below the prefix that are empty. Returns how many. */
static uint64_t remove_empty_level(struct engine *engine, const struct removal *before)
{
    const struct transfer_options options = {.filter = before->options->filter};
    struct transfer_report report = {0};
    struct removal r = {.store = before->store,
                        .options = &options,
                        .report = &report,
                        .prefix = before->prefix,
                        .only_folders = true};

    remove_listed(&r, engine);
    transfer_report_release(&report);
    return report.total.done_objects;
}

/* Folders that are empty now, from the deepest up, and the folder itself. They hold nothing any more: one that
 * cannot be removed, because somebody has just put something there, is left without a word. With a filter, only
 * those it takes. */
static void remove_empty_folders(struct engine *engine, const struct removal *r)
{
    struct store_call itself = {.op = STORE_DELETE, .key = r->prefix};
    struct act_error ignored;

    while (store_has_real_folders(r->store) && remove_empty_level(engine, r) > 0)
        continue;
    if (*r->prefix && !r->options->filter && store_do(r->store, &itself, &ignored) == 0)
        store_call_release(&itself);
}

int transfer_remove(struct engine *engine, const struct transfer_path *what,
                    const struct transfer_options *options, struct transfer_report *report,
                    struct act_error *err)
{
    ACT_AUTOFREE char *below = transfer_prefix(what->path);
    ACT_AUTOFREE char *beside =
        act_strndup(what->path, strlen(what->path) - strlen(act_path_basename(what->path)));
    struct removal r = {.store = what->store,
                        .options = options,
                        .report = report,
                        .prefix = what->is_folder ? below : beside};
    int rc = 0;

    *report = (struct transfer_report){0};
    if (what->is_folder)
        remove_listed(&r, engine);
    else
        rc = remove_file(&r, engine, what->path, err);
    if (what->is_folder && !options->dry_run && report->total.failed_objects == 0)
        remove_empty_folders(engine, &r);
    transfer_progress_tick(options, report, true);
    return rc < 0 ? rc : transfer_report_result(report, &r.first, err);
}

int transfer_clear(struct engine *engine, struct store *store, const char *path,
                   const struct transfer_options *options, struct transfer_report *report,
                   struct act_error *err)
{
    struct removal r = {
        .store = store, .options = options, .report = report, .prefix = path, .leftovers = true};

    *report = (struct transfer_report){0};
    remove_listed(&r, engine);
    transfer_progress_tick(options, report, true);
    return transfer_report_result(report, &r.first, err);
}
