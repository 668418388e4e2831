/* copy.c - objects from one store to another.
 *
 * struct job lists both sides and starts objects while parts and memory are left; struct object is one object
 * under way; struct part is one part of it with its buffer. Everything runs on the engine's loop, but for
 * hash_part(). A part goes through READ, HASH (strictly in order within its object, since MD5 cannot be
 * combined), WRITE; the object then through COMMIT. No deadlock on memory: parts of an object are started in
 * order, so the part that is hashed next always has its buffer.
 */
#include <string.h>

#include "base/path.h"
#include "sync/sync.h"
#include "transfer/transfer_internal.h"

enum {
    MAX_PARTS = 32,      /* as azcopy starts with on small machines */
    PART_SIZE = 8 << 20, /* above 4 MiB Azure spreads the load, see "High-throughput block blobs" */
    MEMORY = 64 << 20,   /* eight parts under way */
    OBJECTS_AHEAD = 4,   /* objects that wait for memory before listing goes on */
};

struct job;
struct object;

struct part {
    struct object *object;
    uint32_t index;
    uint64_t offset;
    size_t len;
    char *buffer;
    bool arrived;
    char md5[ACT_MD5_BASE64];
    struct store_call call;
    struct part *next; /* in object->parts, by index */
};

struct object {
    struct job *job;
    struct store_entry from;
    char *to_key;
    uint64_t part_size;
    uint32_t n_parts, started, written;
    int under_way; /* parts, and one while more parts are to be started */
    bool hashing;
    bool failed;
    struct act_md5 hash;
    struct part *parts, **parts_tail; /* not hashed yet, by index */
    struct store_upload_id upload_id;
    struct store_call call;   /* COMMIT, DROP */
    char md5[ACT_MD5_BASE64]; /* of the whole, when all parts are hashed */
    struct object *next;      /* in job->waiting */
};

struct listing {
    struct job *job;
    enum sync_side side;
    struct store *store;
    char *prefix, *marker;
    struct store_call call;
    bool under_way;
};

struct job {
    struct engine *engine;
    const struct transfer_options *options;
    int max_parts;
    uint64_t part_size, memory;
    struct store *from, *to;
    const char *to_path;
    bool single; /* one file, to_path is its new name */
    struct sync *sync;
    struct listing listings[2];
    struct object *waiting, **waiting_tail; /* objects with parts that are not started yet */
    int n_waiting, parts_under_way, objects_under_way;
    uint64_t memory_used;
    bool stop; /* start nothing more */
    bool pumping, pump_again;
    struct transfer_report *report;
    struct act_error first;
};

static void pump(struct job *job);

/* ---- objects */

static void fail_object(struct object *o, const struct act_error *error)
{
    struct job *job = o->job;

    if (!o->failed)
        transfer_report_failure(job->report, error, &job->first);
    o->failed = true;
    if (transfer_is_hopeless(error))
        job->stop = true;
}

static void free_object(struct object *o)
{
    store_entry_release(&o->from);
    free(o->to_key);
    o->job->objects_under_way--;
    free(o);
}

static void drop_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;

    store_call_release(call);
    free_object(o);
    pump(job);
}

/* The end of an object that failed: forget its blocks at the destination, never the destination itself. */
static void abandon_object(struct object *o)
{
    if (o->n_parts <= 1) {
        free_object(o);
        return;
    }
    o->call = (struct store_call){
        .op = STORE_DROP, .key = o->to_key, .upload_id = o->upload_id, .done = drop_done, .arg = o};
    store_start(o->job->to, &o->call);
}

static void object_written(struct object *o)
{
    struct transfer_progress *t = &o->job->report->total;

    t->done_objects++;
    transfer_progress_tick(o->job->options, o->job->report, false);
    free_object(o);
}

static void commit_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;
    int rc = call->rc;

    if (rc < 0)
        fail_object(o, &call->error);
    store_call_release(call);
    if (rc < 0)
        abandon_object(o);
    else
        object_written(o);
    pump(job);
}

static void set_attributes(const struct object *o, struct store_call *call)
{
    call->attr.kind = o->from.kind;
    call->attr.mtime_ns = o->from.mtime_ns;
    call->attr.mode = o->from.mode;
}

static void commit(struct object *o)
{
    o->call = (struct store_call){.op = STORE_COMMIT,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .n_blocks = o->n_parts,
                                  .total = o->from.size,
                                  .part_size = o->part_size,
                                  .done = commit_done,
                                  .arg = o};
    set_attributes(o, &o->call);
    o->call.attr.md5 = o->md5;
    store_start(o->job->to, &o->call);
}

/* Whether what arrived is what the source knows of the whole. */
static bool whole_agrees(struct object *o)
{
    struct act_error err;

    if (o->from.md5[0] == '\0' || strcmp(o->from.md5, o->md5) == 0)
        return true;
    act_error_set(&err, ACT_FAIL,
                  "cannot copy '%s': what arrived has MD5 %s, %s says %s; nothing was replaced", o->from.key,
                  o->md5, store_name(o->job->from), o->from.md5);
    fail_object(o, &err);
    return false;
}

/* Goes on when nothing of the object is under way: commit, or give up. */
static void settle_object(struct object *o)
{
    if (o->under_way > 0)
        return;
    if (o->failed)
        abandon_object(o);
    else if (o->written == o->n_parts)
        o->n_parts > 1 ? commit(o) : object_written(o);
}

/* ---- parts */

static void free_part(struct part *p)
{
    struct job *job = p->object->job;

    job->memory_used -= p->len;
    job->parts_under_way--;
    p->object->under_way--;
    store_call_release(&p->call);
    free(p->buffer);
    free(p);
}

static void part_ended(struct part *p)
{
    struct object *o = p->object;
    struct job *job = o->job;

    free_part(p);
    settle_object(o);
    pump(job);
}

static void write_done(struct store_call *call)
{
    struct part *p = call->arg;
    struct object *o = p->object;

    if (call->rc < 0) {
        fail_object(o, &call->error);
    } else {
        o->written++;
        o->job->report->total.done_bytes += p->len;
        transfer_progress_tick(o->job->options, o->job->report, false);
    }
    part_ended(p);
}

static void write_part(struct part *p)
{
    struct object *o = p->object;
    bool whole = o->n_parts == 1;

    store_call_release(&p->call);
    p->call = (struct store_call){.op = whole ? STORE_PUT : STORE_BLOCK,
                                  .key = o->to_key,
                                  .data = p->buffer,
                                  .len = p->len,
                                  .md5 = p->md5,
                                  .upload_id = o->upload_id,
                                  .block = p->index,
                                  .offset = p->offset,
                                  .done = write_done,
                                  .arg = p};
    set_attributes(o, &p->call);
    store_start(o->job->to, &p->call);
}

/* On a worker. */
static void hash_part(void *arg)
{
    struct part *p = arg;
    struct object *o = p->object;
    struct act_md5 own;

    act_md5_init(&own);
    act_md5_add(&own, p->buffer, p->len);
    act_md5_done(&own, p->md5);
    if (o->n_parts > 1)
        act_md5_add(&o->hash, p->buffer, p->len);
}

static void hash_next(struct object *o);

static void hash_done(void *arg)
{
    struct part *p = arg;
    struct object *o = p->object;
    struct job *job = o->job;
    bool last = p->index + 1 == o->n_parts;

    o->hashing = false;
    if (last && o->n_parts > 1)
        act_md5_done(&o->hash, o->md5);
    if (last && o->n_parts == 1)
        memcpy(o->md5, p->md5, sizeof(o->md5));
    if (!o->failed && (!last || whole_agrees(o)))
        write_part(p);
    else
        free_part(p);
    hash_next(o);
    settle_object(o);
    pump(job);
}

/* Hands the next part in order to a worker, when it has arrived. */
static void hash_next(struct object *o)
{
    struct part *p = o->parts;

    if (o->hashing || !p || !p->arrived)
        return;
    o->parts = p->next;
    if (!o->parts)
        o->parts_tail = &o->parts;
    o->hashing = true;
    engine_work(o->job->engine, hash_part, hash_done, p);
}

/* A part that will not be hashed: takes it out of the list. */
static void unlink_part(struct part *p)
{
    struct object *o = p->object;
    struct part **at = &o->parts;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (!p->next)
        o->parts_tail = at;
}

/* Ends the parts that arrived and now will never be hashed. */
static void end_arrived_parts(struct object *o)
{
    struct part *p = o->parts, *next;

    for (; p; p = next) {
        next = p->next;
        if (p->arrived) {
            unlink_part(p);
            free_part(p);
        }
    }
}

static void read_done(struct store_call *call)
{
    struct part *p = call->arg;
    struct object *o = p->object;
    struct job *job = o->job;
    struct act_error err;

    if (call->rc < 0) {
        fail_object(o, &call->error);
    } else if (call->got != p->len) {
        act_error_set(&err, ACT_TEMPORARY, "'%s' changed while it was read: %zu of %zu bytes at offset %llu",
                      o->from.key, call->got, p->len, (unsigned long long)p->offset);
        fail_object(o, &err);
    }
    p->arrived = true;
    if (!o->failed) {
        hash_next(o);
        return;
    }
    end_arrived_parts(o);
    settle_object(o);
    pump(job);
}

static size_t part_len(const struct object *o, uint32_t index)
{
    uint64_t offset = (uint64_t)index * o->part_size;
    uint64_t rest = o->from.size - offset;

    return rest < o->part_size ? rest : o->part_size;
}

static void start_part(struct object *o)
{
    struct job *job = o->job;
    struct part *p = act_calloc(1, sizeof(*p));

    p->object = o;
    p->index = o->started++;
    p->offset = (uint64_t)p->index * o->part_size;
    p->len = part_len(o, p->index);
    p->buffer = act_alloc(p->len);
    *o->parts_tail = p;
    o->parts_tail = &p->next;
    o->under_way++;
    job->parts_under_way++;
    job->memory_used += p->len;
    p->call = (struct store_call){.op = STORE_GET,
                                  .key = o->from.key,
                                  .offset = p->offset,
                                  .sink = p->buffer,
                                  .sink_cap = p->len,
                                  .if_match = o->from.etag[0] ? o->from.etag : NULL,
                                  .done = read_done,
                                  .arg = p};
    store_start(job->from, &p->call);
}

/* ---- the job */

/* The usual size, or as large as it takes to get by with the blocks that an object can have, in whole MiB. */
static uint64_t part_size_for(const struct job *job, uint64_t size)
{
    const uint64_t mib = 1 << 20;
    uint64_t least = size / STORE_MAX_BLOCKS + (size % STORE_MAX_BLOCKS > 0);

    return least <= job->part_size ? job->part_size : (least + mib - 1) / mib * mib;
}

static void enqueue_object(struct job *job, struct store_entry *from, char *to_key)
{
    struct object *o = act_calloc(1, sizeof(*o));

    o->job = job;
    o->from = *from;
    *from = (struct store_entry){0};
    o->to_key = to_key;
    o->part_size = part_size_for(job, o->from.size);
    o->n_parts = o->from.size ? (uint32_t)((o->from.size + o->part_size - 1) / o->part_size) : 1;
    o->parts_tail = &o->parts;
    act_md5_init(&o->hash);
    act_random(&o->upload_id, sizeof(o->upload_id));
    o->under_way = 1;
    *job->waiting_tail = o;
    job->waiting_tail = &o->next;
    job->n_waiting++;
    job->objects_under_way++;
}

static void refuse_key(struct job *job, const char *from_key, const char *to_key, const char *problem)
{
    struct act_error err;

    act_error_set(&err, ACT_FAIL, "cannot copy '%s': the name '%s' %s", from_key, to_key, problem);
    transfer_report_failure(job->report, &err, &job->first);
}

static void refuse_size(struct job *job, const struct store_entry *from)
{
    struct act_error err;

    act_error_set(&err, ACT_FAIL, "cannot copy '%s': its %llu bytes are more than an object in %s can have",
                  from->key, (unsigned long long)from->size, store_name(job->to));
    transfer_report_failure(job->report, &err, &job->first);
}

/* Takes one object of the plan. */
static void take_item(struct job *job, struct sync_item *item)
{
    struct transfer_progress *t = &job->report->total;
    bool safe = act_path_is_safe(item->rel, strlen(item->rel));
    char *to_key = job->single ? act_strdup(job->to_path) : act_path_join(job->to_path, item->rel);
    const char *problem = safe ? store_key_problem(job->to, to_key) : "is not a safe relative path";

    if (problem) {
        refuse_key(job, item->from.key, to_key, problem);
    } else if (item->from.size > store_max_put(job->to) * STORE_MAX_BLOCKS) {
        refuse_size(job, &item->from);
    } else if (item->action == SYNC_SAME) {
        t->same_objects++;
    } else {
        t->found_objects++;
        t->found_bytes += item->from.size;
        if (job->options->plan)
            job->options->plan(job->options->arg,
                               &(struct transfer_step){.action = TRANSFER_COPY,
                                                       .entry = &item->from,
                                                       .to_key = to_key,
                                                       .reason = sync_reason_text(item->reason)});
        if (!job->options->dry_run) {
            enqueue_object(job, &item->from, to_key);
            to_key = NULL;
        }
    }
    free(to_key);
    sync_item_release(item);
}

static void page_done(struct store_call *call)
{
    struct listing *l = call->arg;
    struct job *job = l->job;

    l->under_way = false;
    free(l->marker);
    l->marker = NULL;
    if (call->rc < 0) {
        transfer_report_failure(job->report, &call->error, &job->first);
        job->stop = true;
    } else {
        l->marker = act_strdup(call->page.next);
        if (sync_feed(job->sync, l->side, &call->page, !l->marker, &call->error) < 0) {
            transfer_report_failure(job->report, &call->error, &job->first);
            job->stop = true;
        }
    }
    store_call_release(call);
    pump(job);
}

static void list_more(struct job *job, enum sync_side side)
{
    struct listing *l = &job->listings[side];

    if (l->under_way || !sync_wants(job->sync, side))
        return;
    l->under_way = true;
    l->call = (struct store_call){
        .op = STORE_LIST, .key = l->prefix, .marker = l->marker, .done = page_done, .arg = l};
    store_start(l->store, &l->call);
}

static void plan_more(struct job *job)
{
    struct sync_item item;

    while (!job->stop && job->n_waiting < OBJECTS_AHEAD + job->max_parts && sync_next(job->sync, &item))
        take_item(job, &item);
    if (job->stop || job->n_waiting >= OBJECTS_AHEAD + job->max_parts)
        return;
    if (sync_finished(job->sync)) {
        job->report->total.listing_done = true;
        return;
    }
    list_more(job, SYNC_FROM);
    list_more(job, SYNC_TO);
}

static bool has_room(const struct job *job, const struct object *o)
{
    size_t len = part_len(o, o->started);

    return job->parts_under_way < job->max_parts &&
           (job->memory_used == 0 || job->memory_used + len <= job->memory);
}

/* Takes the first waiting object off the list: all its parts are started, or none will be. */
static void pop_waiting(struct job *job)
{
    struct object *o = job->waiting;

    job->waiting = o->next;
    if (!job->waiting)
        job->waiting_tail = &job->waiting;
    job->n_waiting--;
    o->under_way--;
}

static void start_parts(struct job *job)
{
    while (job->waiting) {
        struct object *o = job->waiting;
        if (job->stop && !o->failed && o->started == 0) {
            pop_waiting(job);
            free_object(o); /* never begun */
            continue;
        }
        if (!o->failed && !has_room(job, o))
            return;
        if (!o->failed)
            start_part(o);
        if (o->failed || o->started == o->n_parts) {
            pop_waiting(job);
            settle_object(o);
        }
    }
}

/* Does whatever can be done now. Called after every event; not from within itself. */
static void pump(struct job *job)
{
    job->pump_again = true;
    if (job->pumping)
        return;
    job->pumping = true;
    while (job->pump_again) {
        job->pump_again = false;
        plan_more(job);
        start_parts(job);
    }
    job->pumping = false;
}

static void job_init(struct job *job, struct engine *engine, const struct transfer_path *from,
                     struct store *to, const char *to_path, const struct transfer_options *options,
                     struct transfer_report *report)
{
    *job = (struct job){.engine = engine,
                        .options = options,
                        .max_parts = MAX_PARTS,
                        .part_size = options->part_size ? options->part_size : PART_SIZE,
                        .memory = options->memory ? options->memory : MEMORY,
                        .from = from->store,
                        .to = to,
                        .to_path = to_path,
                        .single = !from->is_folder,
                        .report = report};
    job->waiting_tail = &job->waiting;
    char *from_prefix = transfer_prefix(from->path), *to_prefix = transfer_prefix(to_path);
    job->sync = sync_new(&(struct sync_options){.from_prefix = from_prefix, .to_prefix = to_prefix});
    job->listings[SYNC_FROM] =
        (struct listing){.job = job, .side = SYNC_FROM, .store = from->store, .prefix = from_prefix};
    job->listings[SYNC_TO] = (struct listing){.job = job, .side = SYNC_TO, .store = to, .prefix = to_prefix};
}

static void job_release(struct job *job)
{
    for (int i = 0; i < 2; i++) {
        free(job->listings[i].prefix);
        free(job->listings[i].marker);
    }
    sync_free(job->sync);
}

/* A single file: there is nothing to list. */
static int take_single(struct job *job, const char *path, struct act_error *err)
{
    struct store_call from = {.op = STORE_HEAD, .key = path}, to = {.op = STORE_HEAD, .key = job->to_path};
    struct store_page none = {0};
    int rc = store_do(job->from, &from, err);

    if (rc == 0)
        rc = sync_feed(job->sync, SYNC_FROM, &none, true, err);
    if (rc == 0)
        rc = sync_feed(job->sync, SYNC_TO, &none, true, err);
    if (rc == 0)
        rc = store_do(job->to, &to, err);
    if (rc == -ACT_NOT_FOUND && from.rc == 0 && strcmp(err->service_code, "ContainerNotFound") != 0)
        rc = 0;
    if (rc == 0) {
        struct sync_item item = {.from = from.entry, .rel = job->to_path};
        item.action = sync_decide(&from.entry, to.rc == 0 ? &to.entry : NULL, false, &item.reason);
        from.entry = (struct store_entry){0};
        take_item(job, &item);
        pump(job);
    }
    store_call_release(&from);
    store_call_release(&to);
    return rc;
}

int transfer_copy(struct engine *engine, const struct transfer_path *from, struct store *to,
                  const char *to_path, const struct transfer_options *options, struct transfer_report *report,
                  struct act_error *err)
{
    struct job job;
    int rc = 0;

    *report = (struct transfer_report){0};
    job_init(&job, engine, from, to, to_path, options, report);
    if (job.single)
        rc = take_single(&job, from->path, err);
    else
        pump(&job);
    engine_run(engine, NULL);
    transfer_progress_tick(options, report, true);
    if (rc == 0 && !job.stop && (job.objects_under_way > 0 || !report->total.listing_done))
        rc = act_error_set(err, ACT_FAIL,
                           "the transfer came to a halt before its end; run the same command again");
    job_release(&job);
    return rc < 0 ? rc : transfer_report_result(report, &job.first, err);
}
