/* object.c - one object on its way from store to store. See copy.h. */
#include <string.h>

#include "base/clock.h"
#include "transfer/object.h"

/* ---- creating and freeing */

static void join_walk(struct object *o)
{
    struct walk *walk = o->walk;

    o->queue.begun_ms = act_now_monotonic_ms();
    o->queue.link = walk->youngest;
    *o->queue.link = o;
    walk->youngest = &o->queue.younger;
    walk->objects_under_way++;
}

static void leave_walk(struct object *o)
{
    struct walk *walk = o->walk;

    *o->queue.link = o->queue.younger;
    if (o->queue.younger)
        o->queue.younger->queue.link = o->queue.link;
    else
        walk->youngest = o->queue.link;
    walk->objects_under_way--;
    walk->report->total.slow = NULL;
}

static struct object *new_object(struct walk *walk, struct store *source, struct store_entry *entry)
{
    struct object *o = act_calloc(1, sizeof(*o));

    o->walk = walk;
    o->source = source;
    o->from = *entry;
    *entry = (struct store_entry){0};
    join_walk(o);
    return o;
}

struct object *object_new(struct walk *walk, struct store_entry *from, char *to_key, const struct store_entry *to)
{
    struct object *o = new_object(walk, walk->from, from);

    o->to.key = to_key;
    o->to.absent = !to->key;
    if (to->key)
        memcpy(o->to.etag, to->etag, sizeof(o->to.etag));
    object_plan(o);
    return o;
}

struct object *object_new_read(struct walk *walk, struct store *source, struct store_entry *entry, bool want_md5,
                               void (*read)(struct object *object), void *arg)
{
    struct object *o = new_object(walk, source, entry);

    o->only_read.done = read;
    o->only_read.arg = arg;
    o->plan.way = OBJECT_READ_ONLY;
    o->plan.sums = want_md5 ? OBJECT_SUMS_AND_MD5 : OBJECT_SUMS_ON_READ;
    o->phase = OBJECT_MOVE;
    object_cut(o, walk->pool.part_size);
    return o;
}

size_t object_part_len(const struct object *o, uint32_t index)
{
    uint64_t offset = (uint64_t)index * o->plan.part_size;
    uint64_t rest = o->from.size - offset;

    return rest < o->plan.part_size ? rest : o->plan.part_size;
}

bool object_is_chained(const struct object *o)
{
    return o->plan.sums == OBJECT_SUMS_AND_MD5 && o->plan.n_parts > 1;
}

/* ---- its life */

bool object_has_failed(const struct object *o)
{
    return o->outcome >= OBJECT_FAILED;
}

void object_fail(struct object *o, enum object_outcome how, const struct act_error *error)
{
    if (!object_has_failed(o))
        walk_fail(o->walk, error);
    if (o->outcome < how)
        o->outcome = how;
}

void object_call(struct object *o, struct store *store, void (*done)(struct store_call *call))
{
    o->call.done = done;
    o->call.arg = o;
    o->under_way++;
    walk_begin_call(o->walk);
    store_start(store, &o->call);
}

void object_call_ended(struct object *o)
{
    struct walk *walk = o->walk;

    store_call_release(&o->call);
    o->under_way--;
    walk->calls_under_way -= !o->kept;
    o->kept = false;
    object_settle(o);
    walk_pump(walk);
}

void object_count_written(struct object *o, uint32_t index, bool resumed)
{
    struct transfer_progress *t = &o->walk->report->total;
    size_t len = object_part_len(o, index);

    o->moved.written++;
    if (o->plan.way == OBJECT_READ_ONLY)
        return;
    resumed = resumed && !o->end.again;
    t->done_bytes += len;
    t->resumed_bytes += resumed ? len : 0;
    o->moved.counted_bytes += len;
    o->moved.resumed_bytes += resumed ? len : 0;
}

static void free_object(struct object *o)
{
    leave_walk(o);
    store_entry_release(&o->from);
    free(o->to.key);
    free(o->moved.states);
    free(o->end.source_url);
    free(o->end.refusal);
    free(o);
}

static void end_object(struct object *o)
{
    struct transfer_progress *t = &o->walk->report->total;

    if (o->only_read.done) {
        o->only_read.done(o);
    } else if (!object_has_failed(o)) {
        t->done_objects += !o->from.filled;
        t->folder_modes += o->from.filled && o->outcome != OBJECT_IN_VAIN;
    }
    free_object(o);
}

void object_settle(struct object *o)
{
    if (o->under_way > 0)
        return;
    if (object_has_failed(o) && o->phase < OBJECT_DROP)
        o->phase = OBJECT_DROP;
    switch (o->phase) {
    case OBJECT_PLAN:
        object_plan(o);
        walk_enqueue(o->walk, o, true);
        break;
    case OBJECT_ASK:
        walk_enqueue(o->walk, o, true);
        break;
    case OBJECT_MOVE:
        if (o->moved.written < o->plan.n_parts)
            walk_enqueue(o->walk, o, true);
        else
            object_finish(o);
        break;
    case OBJECT_SIGN:
        object_sign(o);
        break;
    case OBJECT_COMMIT:
        object_commit(o);
        break;
    case OBJECT_LOOK:
        object_look_at_destination(o);
        break;
    case OBJECT_DROP:
        object_drop(o);
        break;
    case OBJECT_END:
        end_object(o);
        break;
    }
}

/* ---- blocks that exist already */

/* Returns whether damage to an existing block would be noticed. A block holds what was received, which is not always
 * what the source has. Comparing the whole reveals that, but an upload can be interrupted before, and not every
 * store can drop blocks. So blocks of a remote source are reused only if their checksums are known or their bytes
 * can be read. */
static bool can_be_proved(const struct object *o, const struct part_state *state)
{
    return state->has_crc64 || o->plan.way == OBJECT_BY_SERVICE || store_traits(o->walk->from)->sums_are_free ||
           store_traits(o->walk->to)->sums_are_free;
}

static void note_block(struct object *o, const struct store_block *block)
{
    int64_t index = store_block_index(&o->plan.upload_id, block);

    if (index < 0 || index >= o->plan.n_parts || block->len != object_part_len(o, (uint32_t)index))
        return;
    struct part_state *state = &o->moved.states[index];
    if (block->has_crc64) {
        state->has_crc64 = true;
        state->crc64 = block->crc64;
    }
    state->present = can_be_proved(o, state);
}

static void blocks_done(struct store_call *call)
{
    struct object *o = call->arg;
    bool taken = call->rc == -ACT_TEMPORARY && !call->error.network && call->error.http_status == 0;

    o->phase = OBJECT_MOVE;
    if (call->rc == 0) {
        for (size_t i = 0; i < call->blocks.n_found; i++)
            note_block(o, &call->blocks.found[i]);
    } else if (taken) { /* another process uploads the same: each goes on by itself, the last one wins */
        o->phase = o->plan.resumable ? OBJECT_ASK : OBJECT_MOVE;
        o->plan.resumable = false;
        act_random(&o->plan.upload_id, sizeof(o->plan.upload_id));
    } else {
        object_fail(o, OBJECT_FAILED, &call->error);
    }
    object_call_ended(o);
}

static void ask_for_blocks(struct object *o)
{
    o->call =
        (struct store_call){.op = STORE_BLOCKS,
                            .key = o->to.key,
                            .blocks = {.upload_id = o->plan.upload_id, .total = o->from.size, .mode = o->from.mode}};
    object_call(o, o->walk->to, blocks_done);
}

/* Returns whether nothing needs to be done about a part: it is at the destination, and its checksum is known or not
 * needed. Where the source knows the checksum of the whole, parts that the service has verified need none. */
static bool is_finished(const struct object *o, uint32_t index)
{
    const struct part_state *state = &o->moved.states[index];

    return state->present && !object_is_chained(o) &&
           (state->has_crc64 || o->plan.way == OBJECT_BY_SERVICE || o->from.has_crc64);
}

static void skip_finished(struct object *o)
{
    while (o->moved.started < o->plan.n_parts && is_finished(o, o->moved.started))
        object_count_written(o, o->moved.started++, true);
}

/* ---- steps */

/* Returns whether there are parts to start. */
static bool has_more(const struct object *o)
{
    return o->phase == OBJECT_MOVE && !object_has_failed(o) && o->moved.started < o->plan.n_parts;
}

size_t object_needs(const struct object *o)
{
    return has_more(o) && o->plan.way != OBJECT_BY_SERVICE ? object_part_len(o, o->moved.started) : 0;
}

bool object_step(struct object *o)
{
    if (o->phase == OBJECT_ASK) {
        ask_for_blocks(o);
        return false;
    }
    o->under_way++; /* it must not end in here */
    skip_finished(o);
    if (has_more(o))
        object_start_part(o, o->moved.started++);
    skip_finished(o);
    o->under_way--;
    if (has_more(o))
        return true;
    object_settle(o);
    return false;
}

void object_give_up(struct object *o)
{
    if (!object_has_failed(o))
        o->outcome = OBJECT_FAILED;
    object_settle(o);
}
