/* object.c - one object on its way from store to store. See copy.h. */
#include <string.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/log.h"
#include "transfer/copy.h"

enum { SOURCE_URL_LIFE_S = 2 * 3600 };

struct part {
    struct object *object;
    uint32_t index;
    uint64_t offset;
    size_t len;
    char *buffer;
    struct pieces *pieces; /* NULL: it is written when it is whole */
    char *source_url;      /* by_service */
    bool arrived;
    bool kept; /* it only waits for the disk, and does not count among the calls */
    struct store_sums sums;
    struct store_call call;
    struct part *next; /* in object->parts, by index */
};

static void settle(struct object *o);
static void count_written(struct object *o, uint32_t index, bool resumed);

/* ---- new ones */

static void live(struct object *o)
{
    struct job *job = o->job;

    o->begun_ms = act_now_monotonic_ms();
    o->link = job->youngest;
    *o->link = o;
    job->youngest = &o->younger;
    job->objects_under_way++;
}

static void die(struct object *o)
{
    struct job *job = o->job;

    *o->link = o->younger;
    if (o->younger)
        o->younger->link = o->link;
    else
        job->youngest = o->link;
    job->objects_under_way--;
    job->report->total.slow = NULL;
}

static struct object *new_object(struct job *job, struct store *source, struct store_entry *entry)
{
    struct object *o = act_calloc(1, sizeof(*o));

    o->job = job;
    o->source = source;
    o->from = *entry;
    *entry = (struct store_entry){0};
    live(o);
    return o;
}

struct object *object_new(struct job *job, struct store_entry *from, char *to_key,
                          const struct store_entry *to)
{
    struct object *o = new_object(job, job->from, from);

    o->to_key = to_key;
    o->to_absent = !to->key;
    if (to->key)
        memcpy(o->to_etag, to->etag, sizeof(o->to_etag));
    object_plan(o);
    return o;
}

struct object *object_new_read(struct job *job, struct store *source, struct store_entry *entry,
                               bool want_md5, void (*read)(struct object *object), void *arg)
{
    struct object *o = new_object(job, source, entry);

    o->read = read;
    o->arg = arg;
    object_cut(o, job->pool.part_size);
    o->sums_on_read = o->asked = true;
    o->want_md5 = want_md5;
    o->chain = want_md5 && o->n_parts > 1;
    return o;
}

static void object_free(struct object *o)
{
    die(o);
    store_entry_release(&o->from);
    free(o->to_key);
    free(o->states);
    free(o->source_url);
    free(o->refusal);
    free(o);
}

static size_t part_len(const struct object *o, uint32_t index)
{
    uint64_t offset = (uint64_t)index * o->part_size;
    uint64_t rest = o->from.size - offset;

    return rest < o->part_size ? rest : o->part_size;
}

/* ---- its end */

static void fail(struct object *o, const struct act_error *error)
{
    if (!o->failed)
        job_fail(o->job, error);
    o->failed = true;
}

static void call_store(struct object *o, struct store *store, void (*done)(struct store_call *call))
{
    o->call.done = done;
    o->call.arg = o;
    o->under_way++;
    o->job->calls_under_way++;
    store_start(store, &o->call);
}

/* What call_store() began has ended. */
static void call_ended(struct object *o)
{
    store_call_release(&o->call);
    o->under_way--;
    o->job->calls_under_way -= !o->kept;
    o->kept = false;
}

static void arrive(struct object *o)
{
    struct job *job = o->job;

    job->report->total.done_objects += !o->from.filled;
    job->report->total.folder_modes += o->from.filled && !o->in_vain;
    object_free(o);
}

static void drop_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;

    call_ended(o);
    o->there ? arrive(o) : object_free(o);
    job_pump(job);
}

/* The end without a COMMIT. What was written stays for the next time, unless it can never be of use. The destination
 * itself is not touched. */
static void abandon(struct object *o)
{
    if (o->read)
        o->read(o);
    if (o->read || o->n_parts == 1) {
        o->there ? arrive(o) : object_free(o);
        return;
    }
    o->call = (struct store_call){.op = STORE_DROP,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .keep = o->resumable && !o->useless && !o->there};
    call_store(o, o->job->to, drop_done);
}

static void refuse_whole(struct object *o, const char *sum, const char *ours, const char *theirs)
{
    struct act_error err;

    act_error_set(&err, ACT_FAIL,
                  "cannot copy '%s': what arrived has %s %s, %s says %s; nothing was replaced", o->from.key,
                  sum, ours, store_name(o->job->from), theirs);
    o->useless = true;
    fail(o, &err);
}

/* Whether the bytes that came are those that the source says it has. md5 "": not computed. */
static bool agrees(struct object *o, const char *md5, bool has_crc64, uint64_t crc64)
{
    char ours[ACT_CRC64_HEX], theirs[ACT_CRC64_HEX];

    if (md5[0] && o->from.md5[0] && strcmp(md5, o->from.md5) != 0) {
        refuse_whole(o, "MD5", md5, o->from.md5);
        return false;
    }
    if (has_crc64 && o->from.has_crc64 && crc64 != o->from.crc64) {
        act_crc64_to_hex(crc64, ours);
        act_crc64_to_hex(o->from.crc64, theirs);
        refuse_whole(o, "CRC-64", ours, theirs);
        return false;
    }
    return true;
}

/* The CRC-64 of the whole from those of the parts; false: not all are known. */
static bool combine(struct object *o)
{
    o->crc64 = 0;
    for (uint32_t i = 0; i < o->n_parts; i++) {
        if (!o->states[i].has_crc64)
            return false;
        o->crc64 = act_crc64_combine(o->crc64, o->states[i].crc64, part_len(o, i));
    }
    return true;
}

/* ---- only what was listed is replaced */

/* What a folder replaces is never a file, whatever its marker was. */
static void set_condition(const struct object *o, struct store_call *call)
{
    bool folder = o->from.kind == STORE_FOLDER;

    call->if_absent = o->to_absent || folder;
    call->if_match = o->to_etag[0] && !folder ? o->to_etag : NULL;
    call->unmarked = true;
}

static bool is_not_as_listed(const struct store_call *call)
{
    const struct act_error *e = &call->error;

    return (call->if_absent && call->rc == -ACT_PARTIAL) ||
           (call->if_match && call->rc == -ACT_TEMPORARY && !e->network &&
            (e->http_status == 0 || e->http_status == 412));
}

static void note_refusal(struct object *o, const struct act_error *error)
{
    if (!o->refusal)
        o->refusal = act_alloc(sizeof(*o->refusal));
    *o->refusal = *error;
}

/* What the object will look like when it has arrived. */
static struct store_entry expected(struct object *o)
{
    struct store_entry entry = o->from;

    if (o->md5[0])
        memcpy(entry.md5, o->md5, sizeof(entry.md5));
    if (o->n_parts > 1 && combine(o)) {
        entry.crc64 = o->crc64;
        entry.has_crc64 = true;
    }
    return entry;
}

/* Blob Storage can have an object of a folder's name, beside what is in the folder. That is complete without the
 * mode. */
static void lose_mode(struct object *o)
{
    act_warn(
        "the mode of the folder '%s' is not kept: there is an object of this name without the '/' in %s; rename "
        "or remove it",
        o->to_key, store_name(o->job->to));
    o->in_vain = o->there = true;
}

static void refuse_replacement(struct object *o, bool found)
{
    bool beside = !found && o->from.kind == STORE_FOLDER;

    act_error_hint(o->refusal, beside
                                   ? "there is an object of this name without the '/': rename or remove it"
                                   : "it is not as it was listed, and was not replaced: run the same command "
                                     "again");
    fail(o, o->refusal);
}

static void looked(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;
    struct store_entry entry = expected(o);

    o->there = call->rc == 0 && sync_decide(&entry, &call->entry, job->options->checksum, NULL) == SYNC_SAME;
    bool found = call->rc != -(int)ACT_NOT_FOUND;
    call_ended(o);
    if (!o->there && !found && o->from.filled)
        lose_mode(o);
    else if (!o->there)
        refuse_replacement(o, found);
    while (o->there && o->written < o->n_parts)
        count_written(o, o->written, false);
    abandon(o);
    job_pump(job);
}

/* Something else is there than what was listed. It is what was to be written when the answer to an earlier try was
 * lost, or when another process does the same; nothing else is replaced. */
static void look_at_destination(struct object *o)
{
    o->call = (struct store_call){.op = STORE_HEAD, .key = o->to_key};
    call_store(o, o->job->to, looked);
}

static void commit_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;
    bool blocks_missing = call->rc < 0 && strcmp(call->error.service_code, "InvalidBlockList") == 0;
    bool ended = call->rc == 0;

    if (blocks_missing &&
        !o->recommitted) { /* they expired, or somebody else wrote there: see which are left */
        o->recommitted = true;
        object_start_over(o);
        o->asked = false;
        for (uint32_t i = 0; i < o->n_parts; i++)
            o->states[i].present = false;
        call_ended(o);
        job_enqueue(job, o, true);
    } else if (is_not_as_listed(call)) {
        note_refusal(o, &call->error);
        call_ended(o);
        look_at_destination(o);
    } else {
        if (!ended)
            fail(o, &call->error);
        call_ended(o);
        ended ? arrive(o) : abandon(o);
    }
    job_pump(job);
}

static void commit_kept(struct store_call *call)
{
    struct object *o = call->arg;

    o->kept = true;
    o->job->calls_under_way--;
    job_pump(o->job);
}

static void set_attributes(const struct object *o, struct store_call *call)
{
    call->attr.kind = o->from.kind;
    call->attr.mtime_ns = sync_mtime_ns(&o->from);
    call->attr.mode = o->from.mode;
}

/* A call for a URL that the service of the destination can read the source by; nobody else sees it. */
static struct store_call url_call(const struct object *o)
{
    return (struct store_call){.op = STORE_URL,
                               .key = o->from.key,
                               .permissions = "r",
                               .life_s = SOURCE_URL_LIFE_S,
                               .share_sas = true};
}

/* Takes it; NULL: there is none. */
static char *take_url(struct store_call *call)
{
    char *url = call->url;

    call->url = NULL;
    return url;
}

static void send_commit(struct object *o)
{
    bool whole = combine(o);

    if (!whole && o->from.has_crc64)
        o->crc64 = o->from.crc64;
    o->call = (struct store_call){.op = STORE_COMMIT,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .n_blocks = o->n_parts,
                                  .total = o->from.size,
                                  .part_size = o->part_size};
    set_attributes(o, &o->call);
    set_condition(o, &o->call);
    o->call.attr.md5 = o->md5[0] ? o->md5 : o->from.md5[0] ? o->from.md5 : NULL;
    o->call.attr.crc64 = whole || o->from.has_crc64 ? &o->crc64 : NULL;
    o->call.source_url = o->source_url;
    o->call.kept = commit_kept;
    call_store(o, o->job->to, commit_done);
}

static void commit_url_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;

    if (call->rc < 0)
        fail(o, &call->error);
    o->source_url = take_url(call);
    call_ended(o);
    if (o->source_url)
        send_commit(o);
    else
        abandon(o);
    job_pump(job);
}

static void commit(struct object *o)
{
    bool whole = combine(o);

    if (!o->by_service && !agrees(o, o->md5, whole, o->crc64)) {
        abandon(o);
    } else if (o->by_service && !o->source_url) {
        o->call = url_call(o);
        call_store(o, o->job->from, commit_url_done);
    } else {
        send_commit(o);
    }
}

/* All its parts are where they belong. */
static void finish(struct object *o)
{
    if (o->read) {
        combine(o);
        o->read(o);
        object_free(o);
    } else if (o->n_parts > 1) {
        commit(o);
    } else {
        arrive(o);
    }
}

/* Goes on when nothing of the object is under way. */
static void settle(struct object *o)
{
    if (o->under_way > 0)
        return;
    if (o->failed) {
        abandon(o);
    } else if (o->refusal) {
        look_at_destination(o);
    } else if (o->redo) {
        object_plan(o);
        job_enqueue(o->job, o, true);
    } else if (o->written == o->n_parts) {
        finish(o);
    }
}

/* ---- a part */

static void part_free(struct part *p)
{
    struct object *o = p->object;

    if (p->buffer)
        transfer_pool_give(&o->job->pool, p->buffer, p->len);
    pieces_free(p->pieces);
    o->job->calls_under_way -= !p->kept;
    o->under_way--;
    store_call_release(&p->call);
    free(p->source_url);
    free(p);
}

static void part_ended(struct part *p)
{
    struct object *o = p->object;
    struct job *job = o->job;

    part_free(p);
    settle(o);
    job_pump(job);
}

static void count_written(struct object *o, uint32_t index, bool resumed)
{
    struct transfer_progress *t = &o->job->report->total;
    size_t len = part_len(o, index);

    o->written++;
    if (o->read)
        return;
    resumed = resumed && !o->recommitted;
    t->done_bytes += len;
    t->resumed_bytes += resumed ? len : 0;
    o->counted_bytes += len;
    o->resumed_bytes += resumed ? len : 0;
}

static void part_arrived(struct part *p)
{
    struct object *o = p->object;
    struct part_state *state = &o->states[p->index];
    const struct store_entry *written = &p->call.entry;

    o->in_vain = o->from.filled && written->mode >= 0 && written->mode != o->from.mode;

    if (o->sums_on_read || o->sums_on_write) {
        state->crc64 = p->sums.crc64;
        state->has_crc64 = true;
    }
    count_written(o, p->index, state->present);
}

static void write_done(struct store_call *call)
{
    struct part *p = call->arg;
    struct object *o = p->object;

    if (call->rc == 0) {
        part_arrived(p);
    } else if (o->by_service && store_must_stream(&call->error)) {
        o->job->by_service = false;
        o->redo = true;
    } else if (is_not_as_listed(call)) {
        note_refusal(o, &call->error);
    } else {
        fail(o, &call->error);
    }
    part_ended(p);
}

static void put_kept(struct store_call *call)
{
    struct part *p = call->arg;
    struct job *job = p->object->job;

    if (p->buffer)
        transfer_pool_give(&job->pool, p->buffer, p->len);
    p->buffer = NULL;
    p->kept = true;
    job->calls_under_way--;
    job_pump(job);
}

/* A whole object at once. What verifies it is what the store checks: Blob Storage the MD5, which it also keeps; a
 * folder, on its worker, whatever the source knows. */
static void fill_put(struct part *p)
{
    struct object *o = p->object;

    p->call.op = STORE_PUT;
    p->call.kept = put_kept;
    if (o->want_md5)
        p->call.md5 = o->md5;
    else if (o->from.md5[0])
        p->call.md5 = o->from.md5;
    else if (o->sums_on_read)
        p->call.crc64 = &p->sums.crc64;
    else if (o->from.has_crc64)
        p->call.crc64 = &o->from.crc64;
    set_attributes(o, &p->call);
    set_condition(o, &p->call);
}

static void fill_block(struct part *p)
{
    struct object *o = p->object;

    p->call.op = STORE_BLOCK;
    p->call.upload_id = o->upload_id;
    p->call.block = p->index;
    p->call.offset = p->offset;
    if (o->sums_on_read)
        p->call.crc64 = &p->sums.crc64;
    else
        p->call.sums = &p->sums;
}

static void write_part(struct part *p)
{
    struct object *o = p->object;

    store_call_release(&p->call);
    p->call =
        (struct store_call){.key = o->to_key, .data = p->buffer, .len = p->len, .done = write_done, .arg = p};
    o->n_parts == 1 ? fill_put(p) : fill_block(p);
    store_start(o->job->to, &p->call);
}

/* The bytes are here and their sums known. */
static void take_part(struct part *p)
{
    struct object *o = p->object;
    bool whole = o->n_parts == 1;

    if (whole && o->want_md5)
        act_md5_done(&p->sums.md5, o->md5);
    if (whole && !o->read && !agrees(o, o->md5, o->sums_on_read, p->sums.crc64)) {
        part_ended(p);
    } else if (o->read || o->states[p->index].present) {
        part_arrived(p);
        part_ended(p);
    } else {
        write_part(p);
    }
}

/* ---- the chain: the MD5 of the whole, part by part in order */

/* On a worker. */
static void chain_part(void *arg)
{
    struct part *p = arg;

    act_md5_add(&p->object->hash, p->buffer, p->len);
}

static void chain_next(struct object *o);

static void chain_done(void *arg)
{
    struct part *p = arg;
    struct object *o = p->object;

    o->hashing = false;
    if (p->index + 1 == o->n_parts)
        act_md5_done(&o->hash, o->md5);
    chain_next(o); /* first: with its last part the object may end */
    if (o->failed)
        part_ended(p);
    else
        take_part(p);
}

static void chain_add(struct part *p)
{
    *p->object->parts_tail = p;
    p->object->parts_tail = &p->next;
}

static void chain_remove(struct part *p)
{
    struct object *o = p->object;
    struct part **at = &o->parts;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (!p->next)
        o->parts_tail = at;
}

/* Hands the next part in order to a worker, when it has arrived. */
static void chain_next(struct object *o)
{
    struct part *p = o->parts;

    if (o->hashing || !p || !p->arrived)
        return;
    chain_remove(p);
    o->hashing = true;
    engine_work(o->job->engine, chain_part, chain_done, p);
}

/* Ends the parts that arrived and now will never be hashed. */
static void chain_end(struct object *o)
{
    struct part *p = o->parts, *next;

    for (; p; p = next) {
        next = p->next;
        if (p->arrived) {
            chain_remove(p);
            part_free(p);
        }
    }
}

/* ---- reading */

/* What came is not what was asked for. A growing object only grows; any other is guarded by its ETag, and this is the
 * store's or the service's fault. */
static void check_read(struct part *p)
{
    struct object *o = p->object;
    const struct store_entry *now = &p->call.entry;
    struct act_error err;

    if (p->call.rc < 0) {
        o->useless |= p->call.rc == -ACT_TEMPORARY && !p->call.error.network;
        fail(o, &p->call.error);
    } else if (p->call.got != p->len || (o->from.grows && (!now->grows || now->size < o->from.size))) {
        o->useless = true;
        act_error_set(&err, ACT_TEMPORARY, "'%s' changed while it was read: %zu of %zu bytes at offset %llu",
                      o->from.key, p->call.got, p->len, (unsigned long long)p->offset);
        fail(o, &err);
    }
}

static void read_done(struct store_call *call)
{
    struct part *p = call->arg;
    struct object *o = p->object;
    struct job *job = o->job;

    check_read(p);
    p->arrived = true;
    if (p->pieces) {
        pieces_end(p->pieces);
        return;
    }
    if (!o->chain) {
        o->failed ? part_ended(p) : take_part(p);
        return;
    }
    if (!o->failed) {
        chain_next(o);
        return;
    }
    chain_end(o);
    settle(o);
    job_pump(job);
}

static void pieces_written(void *arg, const struct act_error *error)
{
    struct part *p = arg;
    struct object *o = p->object;

    if (error)
        fail(o, error);
    else if (!o->failed)
        part_arrived(p);
    part_ended(p);
}

static void take_piece(struct store_call *call, size_t at, const void *data, size_t len)
{
    pieces_take(((struct part *)call->arg)->pieces, at, data, len);
}

static void write_in_pieces(struct part *p)
{
    struct object *o = p->object;

    p->pieces = pieces_new(o->job->to, &(struct pieces_setup){.key = o->to_key,
                                                              .upload_id = o->upload_id,
                                                              .block = p->index,
                                                              .offset = p->offset,
                                                              .buffer = p->buffer,
                                                              .len = p->len,
                                                              .crc64 = &p->sums.crc64,
                                                              .done = pieces_written,
                                                              .arg = p});
}

/* Bytes that are in the part file of a folder already are read from there. */
static void read_part(struct part *p)
{
    struct object *o = p->object;
    struct job *job = o->job;
    bool from_disk = o->states[p->index].present && store_sums_are_free(job->to);

    if (o->in_pieces && !o->states[p->index].present)
        write_in_pieces(p);

    p->call = (struct store_call){.op = STORE_GET,
                                  .key = from_disk ? o->to_key : o->from.key,
                                  .upload_id = o->upload_id,
                                  .from_upload = from_disk,
                                  .offset = p->offset,
                                  .sink = p->pieces ? NULL : p->buffer,
                                  .sink_cap = p->len,
                                  .take = p->pieces ? take_piece : NULL,
                                  .sums = o->sums_on_read ? &p->sums : NULL,
                                  .done = read_done,
                                  .arg = p};
    if (!from_disk && !o->from.grows && o->from.etag[0])
        p->call.if_match = o->from.etag;
    store_start(from_disk ? job->to : o->source, &p->call);
}

/* Where no URL can be made that the other service could read by, the bytes go through here. */
static void part_url_done(struct store_call *call)
{
    struct part *p = call->arg;
    struct object *o = p->object;

    if (call->rc == -ACT_DENIED) {
        o->job->by_service = false;
        o->redo = true;
    } else if (call->rc < 0) {
        fail(o, &call->error);
    }
    p->source_url = take_url(call);
    store_call_release(call);
    if (!p->source_url) {
        part_ended(p);
        return;
    }
    p->call = (struct store_call){.op = o->n_parts == 1 ? STORE_PUT_FROM : STORE_BLOCK_FROM,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .block = p->index,
                                  .source_url = p->source_url,
                                  .source_match = o->from.etag[0] && !o->from.grows ? o->from.etag : NULL,
                                  .offset = p->offset,
                                  .total = p->len,
                                  .done = write_done,
                                  .arg = p};
    if (o->n_parts == 1)
        set_condition(o, &p->call);
    store_start(o->job->to, &p->call);
}

static void copy_by_service(struct part *p)
{
    p->call = url_call(p->object);
    p->call.done = part_url_done;
    p->call.arg = p;
    store_start(p->object->job->from, &p->call);
}

static void start_part(struct object *o, uint32_t index)
{
    struct part *p = act_calloc(1, sizeof(*p));

    p->object = o;
    p->index = index;
    p->offset = (uint64_t)index * o->part_size;
    p->len = part_len(o, index);
    p->sums.want_md5 = o->want_md5 && o->n_parts == 1;
    act_md5_init(&p->sums.md5);
    o->under_way++;
    o->job->calls_under_way++;
    if (o->by_service) {
        copy_by_service(p);
        return;
    }
    p->buffer = transfer_pool_take(&o->job->pool, p->len);
    if (o->chain)
        chain_add(p);
    if (p->len == 0)
        take_part(p);
    else
        read_part(p);
}

/* ---- blocks that are there already */

/* Whether damage to a block that is there would be noticed. It holds what arrived here, which is not always what the
 * source has: that comes out when the whole is compared, but an upload can break off before, and not every store can
 * forget blocks. So what came from afar is used again only when the checksum of the block is known, or its bytes can
 * be had. */
static bool can_be_proved(const struct object *o, const struct part_state *state)
{
    return state->has_crc64 || o->by_service || store_sums_are_free(o->job->from) ||
           store_sums_are_free(o->job->to);
}

static void note_block(struct object *o, const struct store_block *block)
{
    int64_t index = store_block_index(&o->upload_id, block);

    if (index < 0 || index >= o->n_parts || block->len != part_len(o, (uint32_t)index))
        return;
    struct part_state *state = &o->states[index];
    if (block->has_crc64) {
        state->has_crc64 = true;
        state->crc64 = block->crc64;
    }
    state->present = can_be_proved(o, state);
}

static void blocks_done(struct store_call *call)
{
    struct object *o = call->arg;
    struct job *job = o->job;
    bool taken = call->rc == -ACT_TEMPORARY && !call->error.network && call->error.http_status == 0;

    if (call->rc == 0) {
        for (size_t i = 0; i < call->n_found; i++)
            note_block(o, &call->found[i]);
    } else if (taken) { /* another process is at the same: each on its own, the last one stays */
        o->asked = !o->resumable;
        o->resumable = false;
        act_random(&o->upload_id, sizeof(o->upload_id));
    } else {
        fail(o, &call->error);
    }
    call_ended(o);
    if (o->failed)
        settle(o);
    else
        job_enqueue(job, o, true);
    job_pump(job);
}

static void ask_for_blocks(struct object *o)
{
    o->asked = true;
    o->call = (struct store_call){.op = STORE_BLOCKS,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .total = o->from.size,
                                  .attr.mode = o->from.mode};
    call_store(o, o->job->to, blocks_done);
}

/* Whether a part needs nothing more: it is there, and nothing is left to be known of it. Where the source knows the
 * checksum of the whole, that of a part that the service has verified need not be found out again. */
static bool is_finished(const struct object *o, uint32_t index)
{
    const struct part_state *state = &o->states[index];

    return state->present && !o->chain && (state->has_crc64 || o->by_service || o->from.has_crc64);
}

static void skip_finished(struct object *o)
{
    while (o->started < o->n_parts && is_finished(o, o->started))
        count_written(o, o->started++, true);
}

/* ---- steps */

size_t object_needs(const struct object *o)
{
    return o->asked && !o->by_service && !o->failed && o->started < o->n_parts ? part_len(o, o->started) : 0;
}

bool object_step(struct object *o)
{
    if (!o->asked) {
        ask_for_blocks(o);
        return false;
    }
    o->under_way++; /* not over while more is to be started */
    skip_finished(o);
    if (o->started < o->n_parts && !o->failed)
        start_part(o, o->started++);
    skip_finished(o);
    o->under_way--;
    if (o->started < o->n_parts && !o->failed && !o->redo)
        return true;
    settle(o);
    return false;
}

void object_give_up(struct object *o)
{
    o->failed = true;
    settle(o);
}
