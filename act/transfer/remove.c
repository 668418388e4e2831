/* remove.c - transfer_remove(), transfer_clear(): delete what is listed in batches, while the listing goes on. */
#include <string.h>

#include "base/path.h"
#include "filter/filter.h"
#include "transfer/transfer_internal.h"

struct removal {
    const struct transfer_options *options;
    struct transfer_report *report;
    struct transfer_deleter deleter;
    struct transfer_lister *lister;
    const char *prefix;
    struct store_page page;
    size_t next;       /* of the page */
    bool listing;      /* a page is asked for */
    bool last;         /* the page is the last one */
    bool only_folders; /* leave everything else */
    bool filled;       /* folders with something in them were listed */
    bool stop;
};

static void remove_more(struct removal *r);

static void entry_removed(void *arg, const struct store_entry *entry, const struct act_error *error)
{
    struct removal *r = arg;
    struct transfer_progress *t = &r->report->total;

    if (error) {
        transfer_report_failure(r->report, error);
        r->stop |= transfer_is_hopeless(error);
        return;
    }
    t->done_objects++;
    t->done_bytes += entry->size;
}

static void batch_ended(void *arg)
{
    struct removal *r = arg;

    transfer_progress_tick(r->options, r->report, false);
    remove_more(r);
}

static bool should_remove(const struct removal *r, const struct store_entry *entry)
{
    bool folder = act_ends_with(entry->key, "/");

    if (r->deleter.leftovers)
        return transfer_is_leftover_of(entry->key, r->prefix);
    if (r->only_folders && entry->kind != STORE_FOLDER)
        return false;
    return filter_takes(r->options->filter, entry->key + strlen(r->prefix), folder);
}

static void remove_listed_entry(struct removal *r, struct store_entry *entry)
{
    if (entry->filled) {
        r->filled = true;
        if (!r->options->dry_run)
            store_open_up(r->deleter.store, entry->key);
        return;
    }
    if (!should_remove(r, entry))
        return;
    if (entry->kind == STORE_UNREADABLE) {
        transfer_report_unreadable(r->report, entry);
        return;
    }
    r->report->total.found_objects++;
    r->report->total.found_bytes += entry->size;
    if (r->options->plan)
        r->options->plan(r->options->arg,
                         &(struct transfer_step){.action = TRANSFER_DELETE, .entry = entry, .reason = "asked for"});
    if (!r->options->dry_run)
        transfer_deleter_add(&r->deleter, entry);
}

static void removal_page_came(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct removal *r = arg;

    r->listing = false;
    r->last = last;
    if (error) {
        transfer_report_failure(r->report, error);
        r->stop = true;
    }
    store_page_release(&r->page);
    r->next = 0;
    r->page = *page;
    *page = (struct store_page){0};
    remove_more(r);
}

static void remove_more(struct removal *r)
{
    while (!r->stop && r->next < r->page.n && transfer_deleter_has_room(&r->deleter))
        remove_listed_entry(r, &r->page.v[r->next++]);
    if (r->stop || r->listing || r->next < r->page.n)
        return;
    if (!r->last) {
        r->listing = true;
        transfer_lister_next(r->lister, removal_page_came, r);
    } else {
        transfer_deleter_flush(&r->deleter);
    }
    r->report->total.listing_done = r->last;
}

static void init_removal(struct removal *r, struct store *store, bool leftovers)
{
    r->deleter = (struct transfer_deleter){
        .store = store, .leftovers = leftovers, .deleted = entry_removed, .more = batch_ended, .arg = r};
}

/* Removes what is listed below r->prefix, in one pass. */
static void remove_listed(struct removal *r, struct engine *engine)
{
    r->lister = transfer_lister_new(engine, r->deleter.store, r->prefix,
                                    r->deleter.leftovers ? TRANSFER_LEFTOVERS : TRANSFER_WHOLE);
    remove_more(r);
    engine_run(engine, NULL);
    transfer_lister_free(r->lister);
    store_page_release(&r->page);
    transfer_deleter_release(&r->deleter);
}

static int remove_file(struct removal *r, struct engine *engine, const char *path, struct act_error *err)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = path};
    int rc = store_do(r->deleter.store, &head, err);

    r->last = true;
    if (rc == 0) {
        remove_listed_entry(r, &head.entry);
        remove_more(r);
        engine_run(engine, NULL);
    }
    return rc;
}

/* Removes empty folders below the prefix and returns how many; those that could not be removed are in *report. */
static uint64_t remove_empty_level(struct engine *engine, const struct removal *before, struct transfer_report *report)
{
    const struct transfer_options options = {.filter = before->options->filter};
    struct removal r = {.options = &options, .report = report, .prefix = before->prefix, .only_folders = true};

    *report = (struct transfer_report){0};
    init_removal(&r, before->deleter.store, false);
    remove_listed(&r, engine);
    return report->total.done_objects;
}

/* Removes empty folders, the deepest first. Only failures of the last round count: what failed earlier may be gone
 * since. */
static void remove_empty_levels(struct engine *engine, struct removal *r)
{
    struct transfer_report report;
    uint64_t removed;

    do {
        removed = remove_empty_level(engine, r, &report);
        if (removed == 0)
            transfer_report_add(r->report, &report);
        transfer_report_release(&report);
    } while (removed > 0);
}

/* Removes folders that are empty now, and the folder itself. With a filter, only those it accepts. */
static void remove_empty_folders(struct engine *engine, struct removal *r)
{
    ACT_AUTO(store_call) itself = {.op = STORE_DELETE, .key = r->prefix};
    struct act_error err;
    int rc = 0;

    if (r->filled)
        remove_empty_levels(engine, r);
    if (r->report->total.failed_objects > 0 || !*r->prefix || r->options->filter)
        return;
    rc = store_do(r->deleter.store, &itself, &err);
    if (rc < 0 && rc != -ACT_NOT_FOUND)
        transfer_report_failure(r->report, &err);
}

/* Removes an empty folder, when that is all there is. */
static void remove_empty_folder(struct engine *engine, struct removal *r)
{
    struct act_error err;

    init_removal(r, r->deleter.store, false);
    int rc = remove_file(r, engine, r->prefix, &err);
    if (rc < 0 && rc != -ACT_NOT_FOUND)
        transfer_report_failure(r->report, &err);
}

static bool found_nothing(const struct removal *r)
{
    const struct transfer_progress *t = &r->report->total;

    return t->found_objects + t->failed_objects == 0 && !r->filled && !r->options->filter && *r->prefix;
}

int transfer_remove(struct engine *engine, const struct transfer_path *what, const struct transfer_options *options,
                    struct transfer_report *report, struct act_error *err)
{
    ACT_AUTOFREE char *below = transfer_prefix(what->path);
    ACT_AUTOFREE char *beside = act_strndup(what->path, strlen(what->path) - strlen(act_path_basename(what->path)));
    struct removal r = {.options = options, .report = report, .prefix = what->is_folder ? below : beside};
    int rc = 0;

    *report = (struct transfer_report){0};
    init_removal(&r, what->store, false);
    if (what->is_folder)
        remove_listed(&r, engine);
    else
        rc = remove_file(&r, engine, what->path, err);
    if (what->is_folder && found_nothing(&r))
        remove_empty_folder(engine, &r);
    if (what->is_folder && !options->dry_run && report->total.failed_objects == 0)
        remove_empty_folders(engine, &r);
    transfer_progress_tick(options, report, true);
    return rc < 0 ? rc : transfer_report_result(report, err);
}

int transfer_clear(struct engine *engine, struct store *store, const char *path, const struct transfer_options *options,
                   struct transfer_report *report, struct act_error *err)
{
    struct removal r = {.options = options, .report = report, .prefix = path};

    *report = (struct transfer_report){0};
    init_removal(&r, store, true);
    remove_listed(&r, engine);
    transfer_progress_tick(options, report, true);
    return transfer_report_result(report, err);
}
