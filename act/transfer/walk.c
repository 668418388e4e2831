/* walk.c - goes through both sides: lists and merges them, and starts objects. See copy.h. */
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "filter/filter.h"
#include "transfer/copy.h"

enum {
    OBJECTS_AHEAD = 4, /* may always wait for their turn before listing pauses */
    MEMORY_AHEAD = 4,  /* times the memory of parts, for all that wait */
    SLOW_MS = 3000,    /* an object under way for this long is named */
    SHARE_AHEAD = 8,   /* but no more than the machine's memory divided by this */
};

void walk_fail(struct walk *walk, const struct act_error *error)
{
    transfer_report_failure(walk->report, error);
    if (transfer_is_hopeless(error))
        walk->stop = true;
}

void walk_fail_unreadable(struct walk *walk, const struct sync_item *item)
{
    const struct store_entry *from = &item->from;
    bool is_from = from->key && from->kind == STORE_UNREADABLE;

    transfer_report_unreadable(walk->report, is_from ? from : &item->to);
}

/* ---- listing */

/* Counts what of the source was listed, before it is compared. */
static void walk_count_listed(struct walk *walk, const struct store_entry *entries, size_t n)
{
    struct transfer_progress *t = &walk->report->total;

    t->listed_objects += n;
    for (size_t i = 0; i < n; i++)
        t->listed_bytes += entries[i].size;
}

static void page_came(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct side_listing *l = arg;
    struct walk *walk = l->walk;
    struct act_error err;

    l->asked = false;
    if (!error && l->side == SYNC_FROM)
        walk_count_listed(walk, page->v, page->n);
    if (error || sync_feed(walk->sync, l->side, page, last, &err) < 0) {
        walk_fail(walk, error ? error : &err);
        walk->stop = true;
    }
    walk_pump(walk);
}

static void list_more(struct walk *walk, enum sync_side side)
{
    struct side_listing *l = &walk->listings[side];

    if (l->asked || !sync_wants(walk->sync, side))
        return;
    l->asked = true;
    transfer_lister_next(l->lister, page_came, l);
}

/* Returns how many calls may be under way: each part makes one to both stores, one after the other. */
static int max_calls(const struct walk *walk)
{
    return store_window(walk->from) + store_window(walk->to);
}

static uint64_t memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* Returns whether to list ahead: the sooner all objects are known, the sooner progress can say how long it will
 * take. */
static bool may_list_ahead(const struct walk *walk)
{
    size_t least = OBJECTS_AHEAD + (size_t)max_calls(walk);

    return walk->ahead.n < least || walk->ahead.bytes < walk->max_ahead;
}

static void list_and_take(struct walk *walk)
{
    struct sync_item item;

    while (!walk->stop && !walk->full && may_list_ahead(walk) && sync_next(walk->sync, &item))
        walk->take(walk, &item);
    if (walk->stop || walk->full || !may_list_ahead(walk))
        return;
    if (!sync_finished(walk->sync)) {
        list_more(walk, SYNC_FROM);
        list_more(walk, SYNC_TO);
        return;
    }
    if (!walk->report->total.listing_done && walk->listed)
        walk->listed(walk);
    walk->report->total.listing_done = true;
}

/* ---- starting */

/* A single file need not wait, and its rel is not part of its key, as ahead_put() needs. */
void walk_later(struct walk *walk, struct sync_item *item, walk_take *begin)
{
    if (walk->single)
        begin(walk, item);
    else
        ahead_put(&walk->ahead, item, begin);
}

void walk_enqueue(struct walk *walk, struct object *o, bool first)
{
    o->under_way++; /* while it is in the queue */
    o->queue.next = first ? walk->waiting : NULL;
    *(first ? &walk->waiting : walk->waiting_tail) = o;
    if (!o->queue.next)
        walk->waiting_tail = &o->queue.next;
}

static struct object *walk_take_first(struct walk *walk)
{
    struct object *o = walk->waiting;

    walk->waiting = o->queue.next;
    if (!walk->waiting)
        walk->waiting_tail = &walk->waiting;
    o->under_way--;
    return o;
}

static bool may_call(const struct walk *walk)
{
    return walk->calls_under_way < max_calls(walk);
}

static bool walk_has_room(const struct walk *walk, const struct object *o)
{
    return may_call(walk) && transfer_pool_has_room(&walk->pool, object_needs(o));
}

/* Returns whether an object waits. Those already begun come first, then what was listed. */
static bool has_waiting(struct walk *walk)
{
    walk_take *begin;
    struct sync_item item;

    if (walk->stop)
        ahead_release(&walk->ahead);
    while (!walk->waiting && may_call(walk) && ahead_take(&walk->ahead, &item, &begin))
        begin(walk, &item);
    return walk->waiting != NULL;
}

static void start_objects(struct walk *walk)
{
    while (has_waiting(walk)) {
        struct object *o = walk->waiting;
        if (object_has_failed(o) || walk->stop) {
            object_give_up(walk_take_first(walk));
            continue;
        }
        if (!walk_has_room(walk, o))
            return;
        walk_take_first(walk);
        if (object_step(o))
            walk_enqueue(walk, o, true);
    }
}

static void name_slow(struct walk *walk)
{
    const struct object *o = walk->oldest;
    bool is_slow = o && act_now_monotonic_ms() - o->queue.begun_ms >= SLOW_MS;

    walk->report->total.slow = is_slow ? o->from.key : NULL;
}

void walk_begin_call(struct walk *walk)
{
    walk->calls_under_way++;
    walk->syncing.has_all = false;
    if (walk->syncing.out)
        *walk->syncing.out = false;
}

static void walk_synced(struct store_call *call)
{
    struct walk *walk = call->arg;

    /* Over a new connection the answer may come before those of the objects that it was to sync. */
    *walk->syncing.out = call->rc == 0 && walk->syncing.has_all && walk->objects_under_way == 0;
    store_call_release(call);
}

/* Has a destination that is far away sync behind the last objects, which only wait for its disk: all of them take one
 * round trip then. */
static void walk_sync_ahead(struct walk *walk)
{
    bool is_end = walk->report->total.listing_done && walk->objects_under_way > 0 && walk->ahead.n == 0 &&
                  !walk->waiting && !walk->stop;

    if (!walk->syncing.out || !store_traits(walk->to)->syncs_behind || !is_end || walk->syncing.begun)
        return;
    walk->syncing.begun = walk->syncing.has_all = true;
    walk->syncing.call = (struct store_call){.op = STORE_SYNC, .key = "", .done = walk_synced, .arg = walk};
    store_start(walk->to, &walk->syncing.call);
}

void walk_pump(struct walk *walk)
{
    name_slow(walk);
    transfer_progress_tick(walk->options, walk->report, false);
    if (walk->pump != WALK_IDLE) {
        walk->pump = WALK_PUMP_AGAIN;
        return;
    }
    do {
        walk->pump = WALK_PUMPING;
        list_and_take(walk);
        start_objects(walk);
    } while (walk->pump == WALK_PUMP_AGAIN);
    walk->pump = WALK_IDLE;
    if (walk->calls_under_way > 0)
        return;
    store_hurry(walk->to);
    walk_sync_ahead(walk);
}

/* ---- running */

static bool filter_lets_pass(void *filter, const char *rel, bool is_folder)
{
    return filter_takes(filter, rel, is_folder);
}

static bool filter_lets_enter(void *filter, const char *rel)
{
    return filter_enters(filter, rel);
}

static void walk_begin_listing(struct walk *walk, enum sync_side side, struct store *store, const char *prefix,
                               enum transfer_scope scope)
{
    walk->listings[side] = (struct side_listing){
        .walk = walk, .side = side, .lister = transfer_lister_new(walk->engine, store, prefix, scope)};
}

static struct sync_modes modes_of(const struct walk_setup *setup)
{
    unsigned umask = act_umask();

    return (struct sync_modes){.umask = store_traits(setup->to)->is_disk ? umask : 0,
                               .lost = store_traits(setup->from->store)->is_disk ? umask : 0,
                               .stay_closed = setup->options->stay_closed};
}

/* Begins a walk whose content goes below to_path. */
static void begin_tree(struct walk *walk, const struct walk_setup *setup)
{
    ACT_AUTOFREE char *from_prefix = transfer_prefix(setup->from->path);
    ACT_AUTOFREE char *to_prefix = transfer_prefix(setup->to_path);
    struct filter *filter = setup->options->filter;
    enum transfer_scope scope = setup->folder_modes ? TRANSFER_WHOLE : TRANSFER_TREE;
    int folder_mode = setup->folder_modes ? store_folder_mode(0777 & ~act_umask()) : 0;

    walk->sync = sync_new(&(struct sync_options){.from_prefix = from_prefix,
                                                 .to_prefix = to_prefix,
                                                 .checksum = setup->checksum,
                                                 .extras = setup->extras,
                                                 .folder_mode = folder_mode,
                                                 .modes = modes_of(setup),
                                                 .takes = filter ? filter_lets_pass : NULL,
                                                 .enters = filter ? filter_lets_enter : NULL,
                                                 .arg = filter});
    walk_begin_listing(walk, SYNC_FROM, walk->from, from_prefix, scope);
    walk_begin_listing(walk, SYNC_TO, walk->to, to_prefix, scope);
    walk_pump(walk);
}

/* Begins a walk of a single file: there is nothing to list, and its folder at the destination need not exist. */
static int begin_single(struct walk *walk, const struct walk_setup *setup, struct act_error *err)
{
    ACT_AUTO(store_call) from = {.op = STORE_HEAD, .key = setup->from->path};
    ACT_AUTO(store_call) to = {.op = STORE_HEAD, .key = walk->to_path};
    struct sync_modes modes = modes_of(setup);
    int rc = store_do(walk->from, &from, err);

    if (rc == 0) {
        walk_count_listed(walk, &from.entry, 1);
        walk->report->total.listing_done = true;
        transfer_progress_tick(walk->options, walk->report, true);
        rc = store_do(walk->to, &to, err);
    }
    if (rc == -ACT_NOT_FOUND && from.rc == 0 && err->fact != ACT_FACT_CONTAINER_MISSING)
        rc = 0;
    if (rc == 0) {
        struct sync_item item = {.from = from.entry, .to = to.entry, .rel = walk->to_path};
        item.from.mode = sync_mode(&modes, &item.from, &item.to);
        item.action = sync_decide(&item.from, item.to.key ? &item.to : NULL, setup->checksum, &item.reason);
        from.entry = to.entry = (struct store_entry){0};
        walk->take(walk, &item);
        walk_pump(walk);
    }
    return rc;
}

static void walk_release(struct walk *walk)
{
    for (int i = 0; i < 2; i++)
        transfer_lister_free(walk->listings[i].lister);
    engine_run(walk->engine, NULL); /* pages fetched ahead */
    sync_free(walk->sync);
    ahead_release(&walk->ahead);
    transfer_pool_release(&walk->pool);
}

int walk_run(const struct walk_setup *setup, struct act_error *err)
{
    const struct transfer_options *options = setup->options;
    struct store *from = setup->from->store, *to = setup->to;
    struct walk walk = {.engine = setup->engine,
                        .options = options,
                        .from = from,
                        .to = to,
                        .to_path = setup->to_path,
                        .single = !setup->from->is_folder,
                        .by_service = store_can(from, STORE_PUT_FROM) && store_can(to, STORE_PUT_FROM),
                        .take = setup->take,
                        .listed = setup->listed,
                        .arg = setup->arg,
                        .syncing.out = setup->out_synced,
                        .report = setup->report};
    uint64_t memory = options->memory ? options->memory : TRANSFER_MEMORY;
    uint64_t most = memory_of_machine() / SHARE_AHEAD;
    int rc = 0;

    walk.max_ahead = memory * MEMORY_AHEAD < most ? memory * MEMORY_AHEAD : most;
    walk.waiting_tail = &walk.waiting;
    walk.youngest = &walk.oldest;
    setup->report->total.listing_done = false;
    transfer_pool_init(&walk.pool, memory, options->part_size ? options->part_size : TRANSFER_PART_SIZE);
    if (walk.single) {
        /* an empty merge, which has ended */
        walk.sync = sync_new(&(struct sync_options){.from_prefix = "", .to_prefix = ""});
        rc = sync_feed(walk.sync, SYNC_FROM, &(struct store_page){0}, true, err);
        if (rc == 0)
            rc = begin_single(&walk, setup, err);
    } else {
        begin_tree(&walk, setup);
    }
    engine_run(walk.engine, NULL);
    transfer_progress_tick(options, setup->report, true);
    if (rc == 0 && !walk.stop && (walk.objects_under_way > 0 || walk.ahead.n > 0 || !setup->report->total.listing_done))
        rc = act_error_set(err, ACT_FAIL, "the transfer came to a halt before its end; run the same command again");
    walk_release(&walk);
    return rc;
}
