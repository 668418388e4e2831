/* part.c - one part of an object: read, hashed in order, and written, or fetched by the service. See copy.h. */
#include "transfer/object.h"

struct object_part {
    struct object *object;
    uint32_t index;
    uint64_t offset;
    size_t len;
    char *buffer;
    struct pieces *pieces; /* OBJECT_IN_PIECES */
    char *source_url;      /* OBJECT_BY_SERVICE */
    enum {
        PART_ON_ITS_WAY,
        PART_ARRIVED, /* in the buffer, or reading it has failed */
        PART_KEPT,    /* written; it only waits for the disk, and is not counted among the calls */
    } phase;
    struct store_sums sums;
    struct store_call call;
    int64_t moved_bytes;
    struct object_part *next; /* in object->chain, by index */
};

static void part_free(struct object_part *p)
{
    struct object *o = p->object;

    if (p->buffer)
        transfer_pool_give(&o->walk->pool, p->buffer, p->len);
    pieces_free(p->pieces);
    o->walk->report->total.moving_bytes -= p->moved_bytes;
    o->walk->calls_under_way -= p->phase != PART_KEPT;
    o->under_way--;
    store_call_release(&p->call);
    free(p->source_url);
    free(p);
}

static void part_moves(struct store_call *call, int64_t bytes)
{
    struct object_part *p = call->arg;
    const struct walk *walk = p->object->walk;

    p->moved_bytes += bytes;
    walk->report->total.moving_bytes += bytes;
    transfer_progress_tick(walk->options, walk->report, false);
}

static void part_ended(struct object_part *p)
{
    struct object *o = p->object;
    struct walk *walk = o->walk;

    part_free(p);
    object_settle(o);
    walk_pump(walk);
}

static void part_is_there(struct object_part *p)
{
    struct object *o = p->object;
    struct part_state *state = &o->moved.states[p->index];
    const struct store_entry *written = &p->call.entry;

    if (o->from.filled && written->mode >= 0 && written->mode != o->from.mode)
        o->outcome = OBJECT_IN_VAIN;
    if (o->plan.sums != OBJECT_NO_SUMS) {
        state->crc64 = p->sums.crc64;
        state->has_crc64 = true;
    }
    object_count_written(o, p->index, state->present);
}

/* Plans the object anew, as the service cannot fetch it: its bytes go through us, and so do those of all that
 * follow. */
static void plan_again(struct object *o)
{
    o->walk->by_service = false;
    o->phase = OBJECT_PLAN;
}

static void part_written(struct store_call *call)
{
    struct object_part *p = call->arg;
    struct object *o = p->object;

    if (call->rc == 0) {
        part_is_there(p);
    } else if (o->plan.way == OBJECT_BY_SERVICE && call->error.fact == ACT_FACT_NOT_BY_SERVICE) {
        plan_again(o);
    } else if (object_is_not_as_listed(call)) {
        object_note_refusal(o, &call->error);
    } else {
        object_fail(o, OBJECT_FAILED, &call->error);
    }
    part_ended(p);
}

static void put_kept(struct store_call *call)
{
    struct object_part *p = call->arg;
    struct walk *walk = p->object->walk;

    if (p->buffer)
        transfer_pool_give(&walk->pool, p->buffer, p->len);
    p->buffer = NULL;
    p->phase = PART_KEPT;
    walk->calls_under_way--;
    walk_pump(walk);
}

/* Fills in the call that writes a whole object at once, with the checksum that the store verifies: Blob Storage
 * takes the MD5, which it also keeps; a folder, on its worker, takes whichever the source knows. */
static void fill_put(struct object_part *p)
{
    struct object *o = p->object;

    p->call.op = STORE_PUT;
    p->call.kept = put_kept;
    p->call.put = (struct store_put){.data = {.bytes = p->buffer, .len = p->len, .replaces = !o->to.absent},
                                     .attr = object_attributes(o),
                                     .condition = object_condition(o)};
    if (o->plan.sums == OBJECT_SUMS_AND_MD5)
        p->call.put.data.md5 = o->whole.md5;
    else if (o->from.md5[0])
        p->call.put.data.md5 = o->from.md5;
    else if (o->plan.sums == OBJECT_SUMS_ON_READ)
        p->call.put.data.crc64 = &p->sums.crc64;
    else if (o->from.has_crc64)
        p->call.put.data.crc64 = &o->from.crc64;
}

static void fill_block(struct object_part *p)
{
    struct object *o = p->object;

    p->call.op = STORE_BLOCK;
    p->call.block = (struct store_put_block){.upload_id = o->plan.upload_id,
                                             .index = p->index,
                                             .offset = p->offset,
                                             .data = {.bytes = p->buffer, .len = p->len, .replaces = !o->to.absent}};
    if (o->plan.sums >= OBJECT_SUMS_ON_READ)
        p->call.block.data.crc64 = &p->sums.crc64;
    else
        p->call.block.data.sums = &p->sums;
}

static void write_part(struct object_part *p)
{
    struct object *o = p->object;

    store_call_release(&p->call);
    p->call = (struct store_call){.key = o->to.key, .moves = part_moves, .done = part_written, .arg = p};
    o->plan.n_parts == 1 ? fill_put(p) : fill_block(p);
    store_start(o->walk->to, &p->call);
}

/* The bytes are in the buffer and their sums are known. */
static void part_is_here(struct object_part *p)
{
    struct object *o = p->object;
    bool whole = o->plan.n_parts == 1, only_read = o->plan.way == OBJECT_READ_ONLY;

    if (p->sums.want_md5)
        act_md5_done(&p->sums.md5, o->whole.md5);
    if (whole && !only_read && !object_agrees(o, o->plan.sums >= OBJECT_SUMS_ON_READ, p->sums.crc64)) {
        part_ended(p);
    } else if (only_read || o->moved.states[p->index].present) {
        part_is_there(p);
        part_ended(p);
    } else {
        write_part(p);
    }
}

/* ---- the chain: the MD5 of the whole, part by part in order */

/* Adds a part to the MD5 of the whole, on a worker. */
static void chain_part(void *arg)
{
    struct object_part *p = arg;

    act_md5_add(&p->object->chain.md5, p->buffer, p->len);
}

static void chain_next(struct object *o);

static void chain_done(void *arg)
{
    struct object_part *p = arg;
    struct object *o = p->object;

    o->chain.hashing = false;
    if (p->index + 1 == o->plan.n_parts)
        act_md5_done(&o->chain.md5, o->whole.md5);
    chain_next(o); /* before this part ends: the object may end with its last part */
    object_has_failed(o) ? part_ended(p) : part_is_here(p);
}

static void chain_add(struct object_part *p)
{
    *p->object->chain.tail = p;
    p->object->chain.tail = &p->next;
}

/* Removes and returns the part to which this place of the chain points. */
static struct object_part *chain_take(struct object *o, struct object_part **at)
{
    struct object_part *p = *at;

    *at = p->next;
    if (!p->next)
        o->chain.tail = at;
    return p;
}

/* Hands the next part in order to a worker, if it has arrived. */
static void chain_next(struct object *o)
{
    struct object_part *p = o->chain.parts;

    if (o->chain.hashing || !p || p->phase != PART_ARRIVED)
        return;
    o->chain.hashing = true;
    engine_work(o->walk->engine, chain_part, chain_done, chain_take(o, &o->chain.parts));
}

/* Ends the parts that have arrived but will never be hashed. */
static void chain_end(struct object *o)
{
    for (struct object_part **at = &o->chain.parts; *at;)
        if ((*at)->phase == PART_ARRIVED)
            part_free(chain_take(o, at));
        else
            at = &(*at)->next;
}

/* ---- reading */

/* Checks that what was received is what was asked for. A growing object may only grow; any other is guarded by its
 * ETag, so a mismatch is the fault of the store or the service. */
static bool check_read(struct object_part *p)
{
    struct object *o = p->object;
    const struct store_entry *now = &p->call.entry;
    struct act_error err;

    if (p->call.rc < 0) {
        object_fail(o, object_is_another(&p->call.error) ? OBJECT_USELESS : OBJECT_FAILED, &p->call.error);
        return false;
    }
    if (p->call.get.got != p->len || (o->from.grows && (!now->grows || now->size < o->from.size))) {
        act_error_set(&err, ACT_TEMPORARY, "'%s' changed while it was read: %zu of %zu bytes at offset %llu",
                      o->from.key, p->call.get.got, p->len, (unsigned long long)p->offset);
        object_fail(o, OBJECT_USELESS, &err);
        return false;
    }
    return true;
}

static void get_done(struct store_call *call)
{
    struct object_part *p = call->arg;
    struct object *o = p->object;
    struct walk *walk = o->walk;

    bool good = check_read(p);
    p->phase = PART_ARRIVED;
    if (p->pieces) {
        pieces_end(p->pieces, good);
        return;
    }
    if (!object_is_chained(o)) {
        object_has_failed(o) ? part_ended(p) : part_is_here(p);
        return;
    }
    if (!object_has_failed(o)) {
        chain_next(o);
        return;
    }
    chain_end(o);
    object_settle(o);
    walk_pump(walk);
}

static void pieces_written(void *arg, const struct act_error *error)
{
    struct object_part *p = arg;
    struct object *o = p->object;

    if (error)
        object_fail(o, OBJECT_FAILED, error);
    else if (!object_has_failed(o))
        part_is_there(p);
    part_ended(p);
}

static void take_piece(struct store_call *call, size_t at, const void *data, size_t len)
{
    pieces_take(((struct object_part *)call->arg)->pieces, at, data, len);
}

static void write_in_pieces(struct object_part *p)
{
    struct object *o = p->object;

    p->pieces = pieces_new(o->walk->to, &(struct pieces_setup){.key = o->to.key,
                                                               .upload_id = o->plan.upload_id,
                                                               .block = p->index,
                                                               .offset = p->offset,
                                                               .buffer = p->buffer,
                                                               .len = p->len,
                                                               .crc64 = &p->sums.crc64,
                                                               .done = pieces_written,
                                                               .arg = p});
}

/* Reads a part. Bytes that are already in the part file of a folder are read from there. Those that go on to another
 * service move twice, and are counted as they are sent. old: bytes of what it replaces that are in the buffer. */
static void get_part(struct object_part *p, size_t old)
{
    struct object *o = p->object;
    struct walk *walk = o->walk;
    bool from_disk = o->moved.states[p->index].present && store_traits(walk->to)->sums_are_free;

    if (o->plan.way == OBJECT_IN_PIECES && !o->moved.states[p->index].present)
        write_in_pieces(p);

    p->call = (struct store_call){.op = STORE_GET,
                                  .key = from_disk ? o->to.key : o->from.key,
                                  .get = {.upload = from_disk ? &o->plan.upload_id : NULL,
                                          .offset = p->offset,
                                          .sink = p->pieces ? NULL : p->buffer,
                                          .sink_cap = p->len,
                                          .take = p->pieces ? take_piece : NULL,
                                          .sums = o->plan.sums >= OBJECT_SUMS_ON_READ ? &p->sums : NULL},
                                  .moves = store_traits(walk->to)->is_disk ? part_moves : NULL,
                                  .done = get_done,
                                  .arg = p};
    if (!from_disk && !o->from.grows && o->from.etag[0])
        p->call.get.if_match = o->from.etag;
    p->call.get.old = old;
    store_start(from_disk ? walk->to : o->source, &p->call);
}

static void old_done(struct store_call *call)
{
    struct object_part *p = call->arg;
    size_t old = call->rc == 0 ? call->get.got : 0;

    store_call_release(call);
    get_part(p, old);
}

/* Tells whether what is here of an older object saves bytes of the new one. */
static bool old_helps(const struct object_part *p)
{
    const struct object *o = p->object;
    uint64_t from = store_traits(o->source)->changes_from;

    return from > 0 && p->len >= from && o->to.key && !o->to.absent && o->plan.way == OBJECT_BUFFERED &&
           !o->moved.states[p->index].present && store_traits(o->walk->to)->is_disk;
}

/* Reads what the part will replace, then the part. */
static void get_old(struct object_part *p)
{
    p->call = (struct store_call){.op = STORE_GET,
                                  .key = p->object->to.key,
                                  .get = {.offset = p->offset, .sink = p->buffer, .sink_cap = p->len},
                                  .done = old_done,
                                  .arg = p};
    store_start(p->object->walk->to, &p->call);
}

/* Without a URL by which the other service can read the source, the bytes go through us. */
static void part_url_done(struct store_call *call)
{
    struct object_part *p = call->arg;
    struct object *o = p->object;

    if (call->rc == -ACT_DENIED) {
        plan_again(o);
    } else if (call->rc < 0) {
        object_fail(o, OBJECT_FAILED, &call->error);
    }
    p->source_url = object_take_url(call);
    store_call_release(call);
    if (!p->source_url) {
        part_ended(p);
        return;
    }
    struct store_source source = {.url = p->source_url,
                                  .match = o->from.etag[0] && !o->from.grows ? o->from.etag : NULL};
    p->call = (struct store_call){.key = o->to.key, .done = part_written, .arg = p};
    if (o->plan.n_parts == 1) {
        p->call.op = STORE_PUT_FROM;
        p->call.put_from = (struct store_put_from){.source = source, .condition = object_condition(o)};
    } else {
        p->call.op = STORE_BLOCK_FROM;
        p->call.block_from = (struct store_block_from){
            .upload_id = o->plan.upload_id, .index = p->index, .source = source, .offset = p->offset, .len = p->len};
    }
    store_start(o->walk->to, &p->call);
}

static void copy_by_service(struct object_part *p)
{
    p->call = object_url_call(p->object);
    p->call.done = part_url_done;
    p->call.arg = p;
    store_start(p->object->walk->from, &p->call);
}

void object_start_part(struct object *o, uint32_t index)
{
    struct object_part *p = act_calloc(1, sizeof(*p));

    p->object = o;
    p->index = index;
    p->offset = (uint64_t)index * o->plan.part_size;
    p->len = object_part_len(o, index);
    p->sums.want_md5 = o->plan.sums == OBJECT_SUMS_AND_MD5 && o->plan.n_parts == 1;
    act_md5_init(&p->sums.md5);
    o->under_way++;
    walk_begin_call(o->walk);
    if (o->plan.way == OBJECT_BY_SERVICE) {
        copy_by_service(p);
        return;
    }
    p->buffer = transfer_pool_take(&o->walk->pool, p->len);
    if (object_is_chained(o))
        chain_add(p);
    if (p->len == 0)
        part_is_here(p);
    else if (old_helps(p))
        get_old(p);
    else
        get_part(p, 0);
}
