/* remove.c - deletes what was listed, many at once. */
#include <string.h>

#include "transfer/transfer_internal.h"

enum { MAX_DELETES = 32 };

struct removal {
    struct store *store;
    const struct transfer_options *options;
    struct transfer_report *report;
    struct store_call list;
    struct store_page page;
    size_t next;  /* of the page */
    bool listing; /* a page is under way */
    bool last;    /* the page is the last one */
    const char *prefix;
    char *marker;
    int under_way, max;
    bool stop;
    bool only_folders; /* leave everything else */
    struct act_error first;
};

struct deletion {
    struct removal *removal;
    char *key, *etag;
    uint64_t size;
    struct store_call call;
};

static void go_on(struct removal *r);

static void fail(struct removal *r, const struct act_error *error)
{
    transfer_report_failure(r->report, error, &r->first);
    if (transfer_is_hopeless(error))
        r->stop = true;
}

static void count(struct removal *r, uint64_t size)
{
    r->report->total.done_objects++;
    r->report->total.done_bytes += size;
    transfer_progress_tick(r->options, r->report, false);
}

static void delete_done(struct store_call *call)
{
    struct deletion *d = call->arg;
    struct removal *r = d->removal;

    if (call->rc < 0 && call->rc != -ACT_NOT_FOUND)
        fail(r, &call->error);
    else
        count(r, d->size);
    store_call_release(call);
    free(d->key);
    free(d->etag);
    free(d);
    r->under_way--;
    go_on(r);
}

static void start_delete(struct removal *r, const struct store_entry *entry)
{
    struct deletion *d = act_calloc(1, sizeof(*d));

    d->removal = r;
    d->key = act_strdup(entry->key);
    d->etag = entry->etag[0] ? act_strdup(entry->etag) : NULL;
    d->size = entry->size;
    d->call = (struct store_call){
        .op = STORE_DELETE, .key = d->key, .if_match = d->etag, .done = delete_done, .arg = d};
    r->under_way++;
    store_start(r->store, &d->call);
}

static void take_entry(struct removal *r, const struct store_entry *entry)
{
    if (r->only_folders && entry->kind != STORE_FOLDER)
        return;
    r->report->total.found_objects++;
    r->report->total.found_bytes += entry->size;
    if (r->options->plan)
        r->options->plan(
            r->options->arg,
            &(struct transfer_step){.action = TRANSFER_DELETE, .entry = entry, .reason = "asked for"});
    if (!r->options->dry_run)
        start_delete(r, entry);
}

static void page_done(struct store_call *call)
{
    struct removal *r = call->arg;

    r->listing = false;
    free(r->marker);
    r->marker = NULL;
    if (call->rc < 0) {
        fail(r, &call->error);
        r->stop = true;
    } else {
        r->page = call->page;
        r->next = 0;
        call->page = (struct store_page){0};
        r->marker = act_strdup(r->page.next);
        r->last = !r->marker;
    }
    store_call_release(call);
    go_on(r);
}

static void list_more(struct removal *r)
{
    store_page_release(&r->page);
    r->next = 0;
    r->listing = true;
    r->list = (struct store_call){
        .op = STORE_LIST, .key = r->prefix, .marker = r->marker, .done = page_done, .arg = r};
    store_start(r->store, &r->list);
}

static void go_on(struct removal *r)
{
    while (!r->stop && r->next < r->page.n && r->under_way < r->max)
        take_entry(r, &r->page.v[r->next++]);
    if (!r->stop && !r->listing && !r->last && r->next == r->page.n)
        list_more(r);
}

static int remove_file(struct removal *r, const char *path, struct act_error *err)
{
    struct store_call head = {.op = STORE_HEAD, .key = path};
    int rc = store_do(r->store, &head, err);

    if (rc == 0)
        take_entry(r, &head.entry);
    store_call_release(&head);
    return rc;
}

/* One pass over what is listed below r->prefix. */
static void remove_listed(struct removal *r, struct engine *engine)
{
    go_on(r);
    engine_run(engine, NULL);
    store_page_release(&r->page);
    free(r->marker);
    r->marker = NULL;
}

/* Removes the folders below prefix that are empty. Returns how many. */
static uint64_t remove_empty_level(struct engine *engine, struct store *store, const char *prefix)
{
    const struct transfer_options options = {0};
    struct transfer_report report = {0};
    struct removal r = {.store = store,
                        .options = &options,
                        .report = &report,
                        .prefix = prefix,
                        .max = MAX_DELETES,
                        .only_folders = true};

    remove_listed(&r, engine);
    transfer_report_release(&report);
    return report.total.done_objects;
}

/* Folders that are empty now, from the deepest up, and the folder itself. They hold nothing any more: one that
 * cannot be removed, because somebody has just put something there, is left without a word. */
static void remove_empty_folders(struct engine *engine, const struct transfer_path *what)
{
    ACT_AUTOFREE char *prefix = transfer_prefix(what->path);
    struct store_call itself = {.op = STORE_DELETE, .key = prefix};
    struct act_error ignored;

    while (store_has_real_folders(what->store) && remove_empty_level(engine, what->store, prefix) > 0)
        continue;
    if (*prefix && store_do(what->store, &itself, &ignored) == 0)
        store_call_release(&itself);
}

int transfer_remove(struct engine *engine, const struct transfer_path *what,
                    const struct transfer_options *options, struct transfer_report *report,
                    struct act_error *err)
{
    ACT_AUTOFREE char *prefix = transfer_prefix(what->path);
    struct removal r = {.store = what->store, .options = options, .report = report, .prefix = prefix};
    int rc = 0;

    *report = (struct transfer_report){0};
    r.max = MAX_DELETES;
    if (what->is_folder) {
        remove_listed(&r, engine);
    } else {
        rc = remove_file(&r, what->path, err);
        engine_run(engine, NULL);
    }
    if (what->is_folder && !options->dry_run && report->total.failed_objects == 0)
        remove_empty_folders(engine, what);
    transfer_progress_tick(options, report, true);
    return rc < 0 ? rc : transfer_report_result(report, &r.first, err);
}
