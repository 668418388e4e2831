/* object.c - one object on its way from store to store. See copy.h. */
#include <string.h>

#include "base/clock.h"
#include "transfer/object.h"

/* ---- new ones */

static void live(struct object *o)
{
    struct walk *walk = o->walk;

    o->begun_ms = act_now_monotonic_ms();
    o->link = walk->youngest;
    *o->link = o;
    walk->youngest = &o->younger;
    walk->objects_under_way++;
}

static void die(struct object *o)
{
    struct walk *walk = o->walk;

    *o->link = o->younger;
    if (o->younger)
        o->younger->link = o->link;
    else
        walk->youngest = o->link;
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
    live(o);
    return o;
}

struct object *object_new(struct walk *walk, struct store_entry *from, char *to_key,
                          const struct store_entry *to)
{
    struct object *o = new_object(walk, walk->from, from);

    o->to_key = to_key;
    o->to_absent = !to->key;
    if (to->key)
        memcpy(o->to_etag, to->etag, sizeof(o->to_etag));
    object_plan(o);
    return o;
}

struct object *object_new_read(struct walk *walk, struct store *source, struct store_entry *entry,
                               bool want_md5, void (*read)(struct object *object), void *arg)
{
    struct object *o = new_object(walk, source, entry);

    o->read = read;
    o->arg = arg;
    object_cut(o, walk->pool.part_size);
    o->sums_on_read = o->asked = true;
    o->want_md5 = want_md5;
    o->chain = want_md5 && o->n_parts > 1;
    return o;
}

void object_free(struct object *o)
{
    die(o);
    store_entry_release(&o->from);
    free(o->to_key);
    free(o->states);
    free(o->source_url);
    free(o->refusal);
    free(o);
}

size_t object_part_len(const struct object *o, uint32_t index)
{
    uint64_t offset = (uint64_t)index * o->part_size;
    uint64_t rest = o->from.size - offset;

    return rest < o->part_size ? rest : o->part_size;
}

/* ---- how it goes on */

void object_fail(struct object *o, const struct act_error *error)
{
    if (!o->failed)
        walk_fail(o->walk, error);
    o->failed = true;
}

void object_call(struct object *o, struct store *store, void (*done)(struct store_call *call))
{
    o->call.done = done;
    o->call.arg = o;
    o->under_way++;
    o->walk->calls_under_way++;
    store_start(store, &o->call);
}

/* What object_call() began has ended. */
void object_call_ended(struct object *o)
{
    store_call_release(&o->call);
    o->under_way--;
    o->walk->calls_under_way -= !o->kept;
    o->kept = false;
}

void object_count_written(struct object *o, uint32_t index, bool resumed)
{
    struct transfer_progress *t = &o->walk->report->total;
    size_t len = object_part_len(o, index);

    o->written++;
    if (o->read)
        return;
    resumed = resumed && !o->recommitted;
    t->done_bytes += len;
    t->resumed_bytes += resumed ? len : 0;
    o->counted_bytes += len;
    o->resumed_bytes += resumed ? len : 0;
}

void object_settle(struct object *o)
{
    if (o->under_way > 0)
        return;
    if (o->failed) {
        object_abandon(o);
    } else if (o->refusal) {
        object_look_at_destination(o);
    } else if (o->redo) {
        object_plan(o);
        walk_enqueue(o->walk, o, true);
    } else if (o->written == o->n_parts) {
        object_finish(o);
    }
}

/* ---- blocks that are there already */

/* Whether damage to a block that is there would be noticed. It holds what arrived here, which is not always what the
 * source has: that comes out when the whole is compared, but an upload can break off before, and not every store can
 * forget blocks. So what came from afar is used again only when the checksum of the block is known, or its bytes can
 * be had. */
static bool can_be_proved(const struct object *o, const struct part_state *state)
{
    return state->has_crc64 || o->by_service || store_sums_are_free(o->walk->from) ||
           store_sums_are_free(o->walk->to);
}

static void note_block(struct object *o, const struct store_block *block)
{
    int64_t index = store_block_index(&o->upload_id, block);

    if (index < 0 || index >= o->n_parts || block->len != object_part_len(o, (uint32_t)index))
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
    struct walk *walk = o->walk;
    bool taken = call->rc == -ACT_TEMPORARY && !call->error.network && call->error.http_status == 0;

    if (call->rc == 0) {
        for (size_t i = 0; i < call->n_found; i++)
            note_block(o, &call->found[i]);
    } else if (taken) { /* another process is at the same: each on its own, the last one stays */
        o->asked = !o->resumable;
        o->resumable = false;
        act_random(&o->upload_id, sizeof(o->upload_id));
    } else {
        object_fail(o, &call->error);
    }
    object_call_ended(o);
    if (o->failed)
        object_settle(o);
    else
        walk_enqueue(walk, o, true);
    walk_pump(walk);
}

static void ask_for_blocks(struct object *o)
{
    o->asked = true;
    o->call = (struct store_call){.op = STORE_BLOCKS,
                                  .key = o->to_key,
                                  .upload_id = o->upload_id,
                                  .total = o->from.size,
                                  .attr.mode = o->from.mode};
    object_call(o, o->walk->to, blocks_done);
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
        object_count_written(o, o->started++, true);
}

/* ---- steps */

size_t object_needs(const struct object *o)
{
    return o->asked && !o->by_service && !o->failed && o->started < o->n_parts
               ? object_part_len(o, o->started)
               : 0;
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
        object_start_part(o, o->started++);
    skip_finished(o);
    o->under_way--;
    if (o->started < o->n_parts && !o->failed && !o->redo)
        return true;
    object_settle(o);
    return false;
}

void object_give_up(struct object *o)
{
    o->failed = true;
    object_settle(o);
}
