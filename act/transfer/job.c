/* job.c - goes through both sides: lists them, merges, starts what the items ask for. See copy.h. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "filter/filter.h"
#include "transfer/copy.h"

enum {
    OBJECTS_AHEAD = 4, /* that wait for their turn before listing ends for now, in any case */
    MEMORY_AHEAD = 4,  /* times the memory of parts: for all that wait */
    SLOW_MS = 3000,    /* an object under way for so long is named */
    SHARE_AHEAD = 8,   /* but no more than this part of the machine's memory */
};

void job_fail(struct job *job, const struct act_error *error)
{
    transfer_report_failure(job->report, error, &job->first);
    if (transfer_is_hopeless(error))
        job->stop = true;
}

void job_fail_unreadable(struct job *job, const struct sync_item *item)
{
    const struct store_entry *from = &item->from;
    bool is_from = from->key && from->kind == STORE_UNREADABLE;

    transfer_report_unreadable(job->report, is_from ? from : &item->to, &job->first);
}

/* ---- listing */

static void page_came(void *arg, struct store_page *page, bool last, const struct act_error *error)
{
    struct listing *l = arg;
    struct job *job = l->job;
    struct act_error err;

    l->asked = false;
    if (error || sync_feed(job->sync, l->side, page, last, &err) < 0) {
        transfer_report_failure(job->report, error ? error : &err, &job->first);
        job->stop = true;
    }
    job_pump(job);
}

static void list_more(struct job *job, enum sync_side side)
{
    struct listing *l = &job->listings[side];

    if (l->asked || !sync_wants(job->sync, side))
        return;
    l->asked = true;
    transfer_lister_next(l->lister, page_came, l);
}

/* Every part makes a call of both stores, one after the other. */
static int max_calls(const struct job *job)
{
    return store_window(job->from) + store_window(job->to);
}

static uint64_t memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* The sooner all objects are known, the sooner one can say how long it takes. */
static bool may_list_ahead(const struct job *job)
{
    size_t least = OBJECTS_AHEAD + (size_t)max_calls(job);

    return job->ahead.n < least || job->ahead.bytes < job->max_ahead;
}

static void list_and_take(struct job *job)
{
    struct sync_item item;

    while (!job->stop && !job->full && may_list_ahead(job) && sync_next(job->sync, &item))
        job->take(job, &item);
    if (job->stop || job->full || !may_list_ahead(job))
        return;
    if (!sync_finished(job->sync)) {
        list_more(job, SYNC_FROM);
        list_more(job, SYNC_TO);
        return;
    }
    if (!job->report->total.listing_done && job->listed)
        job->listed(job);
    job->report->total.listing_done = true;
}

/* ---- starting */

/* A single file is there at once, and its path is not in its key. */
void job_later(struct job *job, struct sync_item *item,
               void (*begin)(struct job *job, struct sync_item *item))
{
    if (job->single)
        begin(job, item);
    else
        ahead_put(&job->ahead, item, begin);
}

void job_enqueue(struct job *job, struct object *o, bool first)
{
    o->under_way++; /* for its place in the list */
    o->next = first ? job->waiting : NULL;
    *(first ? &job->waiting : job->waiting_tail) = o;
    if (!o->next)
        job->waiting_tail = &o->next;
}

static struct object *take_first(struct job *job)
{
    struct object *o = job->waiting;

    job->waiting = o->next;
    if (!job->waiting)
        job->waiting_tail = &job->waiting;
    o->under_way--;
    return o;
}

static bool may_call(const struct job *job)
{
    return job->calls_under_way < max_calls(job);
}

static bool has_room(const struct job *job, const struct object *o)
{
    return may_call(job) && transfer_pool_has_room(&job->pool, object_needs(o));
}

/* Whether anything waits: what is under way comes first, then what was listed. */
static bool has_waiting(struct job *job)
{
    void (*begin)(struct job *, struct sync_item *);
    struct sync_item item;

    if (job->stop)
        ahead_release(&job->ahead);
    while (!job->waiting && may_call(job) && ahead_take(&job->ahead, &item, &begin))
        begin(job, &item);
    return job->waiting != NULL;
}

static void start_objects(struct job *job)
{
    while (has_waiting(job)) {
        struct object *o = job->waiting;
        if (o->failed || job->stop) {
            object_give_up(take_first(job));
            continue;
        }
        if (!has_room(job, o))
            return;
        take_first(job);
        if (object_step(o))
            job_enqueue(job, o, true);
    }
}

static void name_slow(struct job *job)
{
    const struct object *o = job->oldest;
    bool is_slow = o && act_now_monotonic_ms() - o->begun_ms >= SLOW_MS;

    job->report->total.slow = is_slow ? o->from.key : NULL;
}

void job_pump(struct job *job)
{
    name_slow(job);
    transfer_progress_tick(job->options, job->report, false);
    job->pump_again = true;
    if (job->pumping)
        return;
    job->pumping = true;
    while (job->pump_again) {
        job->pump_again = false;
        list_and_take(job);
        start_objects(job);
    }
    job->pumping = false;
    if (job->calls_under_way == 0)
        store_hurry(job->to);
}

/* ---- running */

static bool takes(void *filter, const char *rel, bool is_folder)
{
    return filter_takes(filter, rel, is_folder);
}

static bool enters(void *filter, const char *rel)
{
    return filter_enters(filter, rel);
}

static void begin_listing(struct job *job, enum sync_side side, struct store *store, const char *prefix,
                          enum transfer_scope scope)
{
    job->listings[side] = (struct listing){
        .job = job, .side = side, .lister = transfer_lister_new(job->engine, store, prefix, scope)};
}

static struct sync_modes modes_of(const struct job_setup *setup)
{
    unsigned umask = act_umask();

    return (struct sync_modes){.umask = store_has_real_folders(setup->to) ? umask : 0,
                               .lost = store_has_real_folders(setup->from->store) ? umask : 0,
                               .stay_closed = setup->options->stay_closed};
}

/* A folder's content goes below to_path. */
static void begin_tree(struct job *job, const struct job_setup *setup)
{
    ACT_AUTOFREE char *from_prefix = transfer_prefix(setup->from->path);
    ACT_AUTOFREE char *to_prefix = transfer_prefix(setup->to_path);
    struct filter *filter = setup->options->filter;
    enum transfer_scope scope = setup->folder_modes ? TRANSFER_WHOLE : TRANSFER_TREE;
    int folder_mode = setup->folder_modes ? store_folder_mode(0777 & ~act_umask()) : 0;

    job->sync = sync_new(&(struct sync_options){.from_prefix = from_prefix,
                                                .to_prefix = to_prefix,
                                                .checksum = setup->checksum,
                                                .extras = setup->extras,
                                                .folder_mode = folder_mode,
                                                .modes = modes_of(setup),
                                                .takes = filter ? takes : NULL,
                                                .enters = filter ? enters : NULL,
                                                .arg = filter});
    begin_listing(job, SYNC_FROM, job->from, from_prefix, scope);
    begin_listing(job, SYNC_TO, job->to, to_prefix, scope);
    job_pump(job);
}

/* A single file: there is nothing to list. Its folder at the destination need not exist. */
static int begin_single(struct job *job, const struct job_setup *setup, struct act_error *err)
{
    struct store_call from = {.op = STORE_HEAD, .key = setup->from->path};
    struct store_call to = {.op = STORE_HEAD, .key = job->to_path};
    struct sync_modes modes = modes_of(setup);
    int rc = store_do(job->from, &from, err);

    if (rc == 0)
        rc = store_do(job->to, &to, err);
    if (rc == -ACT_NOT_FOUND && from.rc == 0 && strcmp(err->service_code, "ContainerNotFound") != 0)
        rc = 0;
    if (rc == 0) {
        struct sync_item item = {.from = from.entry, .to = to.entry, .rel = job->to_path};
        item.from.mode = sync_mode(&modes, &item.from, &item.to);
        item.action = sync_decide(&item.from, item.to.key ? &item.to : NULL, setup->checksum, &item.reason);
        from.entry = to.entry = (struct store_entry){0};
        job->report->total.listing_done = true;
        job->take(job, &item);
        job_pump(job);
    }
    store_call_release(&from);
    store_call_release(&to);
    return rc;
}

static void release(struct job *job)
{
    for (int i = 0; i < 2; i++)
        transfer_lister_free(job->listings[i].lister);
    engine_run(job->engine, NULL); /* pages that were fetched ahead */
    sync_free(job->sync);
    ahead_release(&job->ahead);
    transfer_pool_release(&job->pool);
}

int job_run(const struct job_setup *setup, struct act_error *first, struct act_error *err)
{
    const struct transfer_options *options = setup->options;
    struct store *from = setup->from->store, *to = setup->to;
    struct job job = {.engine = setup->engine,
                      .options = options,
                      .from = from,
                      .to = to,
                      .to_path = setup->to_path,
                      .single = !setup->from->is_folder,
                      .by_service = store_can(from, STORE_PUT_FROM) && store_can(to, STORE_PUT_FROM),
                      .take = setup->take,
                      .listed = setup->listed,
                      .arg = setup->arg,
                      .report = setup->report};
    uint64_t memory = options->memory ? options->memory : TRANSFER_MEMORY;
    uint64_t most = memory_of_machine() / SHARE_AHEAD;
    int rc = 0;

    job.max_ahead = memory * MEMORY_AHEAD < most ? memory * MEMORY_AHEAD : most;
    job.waiting_tail = &job.waiting;
    job.youngest = &job.oldest;
    setup->report->total.listing_done = false;
    transfer_pool_init(&job.pool, memory, options->part_size ? options->part_size : TRANSFER_PART_SIZE);
    if (job.single) {
        /* the merge of nothing, which has ended */
        job.sync = sync_new(&(struct sync_options){.from_prefix = "", .to_prefix = ""});
        rc = sync_feed(job.sync, SYNC_FROM, &(struct store_page){0}, true, err);
        if (rc == 0)
            rc = begin_single(&job, setup, err);
    } else {
        begin_tree(&job, setup);
    }
    engine_run(job.engine, NULL);
    transfer_progress_tick(options, setup->report, true);
    if (rc == 0 && !job.stop &&
        (job.objects_under_way > 0 || job.ahead.n > 0 || !setup->report->total.listing_done))
        rc = act_error_set(err, ACT_FAIL,
                           "the transfer came to a halt before its end; run the same command again");
    release(&job);
    *first = job.first;
    return rc;
}
