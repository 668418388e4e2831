/* read.c - transfer_read(): the bytes of one file, in order.
 *
 * Parts are fetched side by side into a ring of buffers and written by a worker, one after the other:
 *
 *   written ─► being written ─► arrived ─► under way ... started
 *
 * The CRC of the whole follows from those of its parts; MD5 is computed by the worker that writes.
 */
#include <inttypes.h>
#include <string.h>

#include "base/crc64.h"
#include "transfer/transfer_internal.h"

enum { LEAST_SLOTS = 4 };

struct transfer_reading;

struct read_slot {
    struct transfer_reading *reading;
    struct store_call call;
    struct store_sums sums;
    char *buffer;
    uint64_t offset;
    size_t len;
    bool arrived;
};

struct transfer_reading {
    struct engine *engine;
    struct store *store;
    const char *key;
    struct store_entry entry;
    bool whole; /* from start to end, so that the object's checksum applies */
    uint64_t begin, end, part_size;
    uint64_t n_parts, started, written;
    size_t n_slots;
    struct read_slot *slots; /* part i is in slot i % n_slots */
    int under_way;
    bool writing;
    int (*write)(void *arg, const void *data, size_t len, struct act_error *err);
    void *arg;
    uint64_t crc64;
    struct act_md5 md5;
    int rc;
    struct act_error *err;
};

static void transfer_read_more(struct transfer_reading *r);

static void fail_reading(struct transfer_reading *r, const struct act_error *error)
{
    if (r->rc == 0) {
        *r->err = *error;
        r->rc = -(int)error->code;
    }
}

/* ---- parts */

static bool needs_md5(const struct transfer_reading *r)
{
    return r->whole && !r->entry.has_crc64 && r->entry.md5[0];
}

/* Writes a slot on a worker, which alone touches the reading's md5 meanwhile. */
static void write_slot(void *arg)
{
    struct read_slot *s = arg;
    struct transfer_reading *r = s->reading;
    struct act_error error;

    if (needs_md5(r))
        act_md5_add(&r->md5, s->buffer, s->len);
    s->call.rc = r->write(r->arg, s->buffer, s->len, &error);
    if (s->call.rc < 0)
        s->call.error = error;
}

static void slot_written(void *arg)
{
    struct read_slot *s = arg;
    struct transfer_reading *r = s->reading;

    r->writing = false;
    r->written++;
    r->crc64 = act_crc64_combine(r->crc64, s->sums.crc64, s->len);
    if (s->call.rc < 0)
        fail_reading(r, &s->call.error);
    s->arrived = false;
    store_call_release(&s->call);
    transfer_read_more(r);
}

static void part_done(struct store_call *call)
{
    struct read_slot *s = call->arg;
    struct transfer_reading *r = s->reading;
    struct act_error error;

    r->under_way--;
    if (call->rc < 0) {
        fail_reading(r, &call->error);
    } else if (call->get.got != s->len) {
        act_error_set(&error, ACT_TEMPORARY, "'%s' changed while it was read: %zu of %zu bytes at offset %" PRIu64,
                      r->key, call->get.got, s->len, s->offset);
        fail_reading(r, &error);
    }
    s->arrived = true;
    transfer_read_more(r);
}

static void start_part(struct transfer_reading *r)
{
    struct read_slot *s = &r->slots[r->started % r->n_slots];
    uint64_t offset = r->begin + r->started * r->part_size, rest = r->end - offset;

    store_call_release(&s->call);
    s->reading = r;
    s->offset = offset;
    s->len = rest < r->part_size ? rest : r->part_size;
    s->sums = (struct store_sums){0};
    if (!s->buffer)
        s->buffer = act_alloc(s->len);
    s->call = (struct store_call){.op = STORE_GET,
                                  .key = r->key,
                                  .get = {.offset = offset, .sink = s->buffer, .sink_cap = s->len, .sums = &s->sums},
                                  .done = part_done,
                                  .arg = s};
    /* the ETag of an append blob changes with everything appended, but what is there stays */
    if (r->entry.etag[0] && !r->entry.grows)
        s->call.get.if_match = r->entry.etag;
    r->started++;
    r->under_way++;
    store_start(r->store, &s->call);
}

static void transfer_read_more(struct transfer_reading *r)
{
    struct read_slot *next = &r->slots[r->written % r->n_slots];

    while (r->rc == 0 && r->started < r->n_parts && r->started < r->written + r->n_slots &&
           r->under_way < store_window(r->store))
        start_part(r);
    if (r->rc < 0 || r->writing || !next->arrived)
        return;
    r->writing = true;
    engine_work(r->engine, write_slot, slot_written, next);
}

/* ---- the whole */

static int find_entry(struct transfer_reading *r)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = r->key};
    int rc = store_do(r->store, &head, r->err);

    if (rc == 0) {
        r->entry = head.entry;
        head.entry = (struct store_entry){.mode = -1};
    }
    return rc;
}

static void set_range(struct transfer_reading *r, const struct transfer_range *range)
{
    uint64_t size = r->entry.size;

    r->end = range && range->first && range->first < size ? range->first : size;
    r->begin = range && range->last && range->last < r->end ? r->end - range->last : 0;
    r->whole = r->begin == 0 && r->end == size;
}

static void read_in_parts(struct transfer_reading *r, uint64_t memory)
{
    uint64_t total = r->end - r->begin;

    memory = memory ? memory : TRANSFER_MEMORY;
    r->part_size = memory / LEAST_SLOTS < TRANSFER_PART_SIZE ? memory / LEAST_SLOTS : TRANSFER_PART_SIZE;
    r->part_size = r->part_size > 0 ? r->part_size : 1;
    r->n_parts = total / r->part_size + (total % r->part_size > 0);
    r->n_slots = memory / r->part_size;
    r->n_slots = r->n_parts < r->n_slots ? r->n_parts : r->n_slots;
    if (r->n_parts == 0)
        return;
    r->slots = act_calloc(r->n_slots, sizeof(*r->slots));
    transfer_read_more(r);
    engine_run(r->engine, NULL);
    for (size_t i = 0; i < r->n_slots; i++) {
        store_call_release(&r->slots[i].call);
        free(r->slots[i].buffer);
    }
    free(r->slots);
}

/* Verifies what was written against the store's checksum of the whole. */
static int check_sum(struct transfer_reading *r)
{
    char md5[ACT_MD5_BASE64];

    if (r->whole && r->entry.has_crc64 && r->crc64 != r->entry.crc64)
        return act_error_set(r->err, ACT_FAIL,
                             "what was read of '%s' is damaged, do not trust it: its CRC64 is %016" PRIx64
                             ", %s says %016" PRIx64,
                             r->key, r->crc64, store_name(r->store), r->entry.crc64);
    if (!needs_md5(r))
        return 0;
    act_md5_done(&r->md5, md5);
    if (strcmp(md5, r->entry.md5) == 0)
        return 0;
    return act_error_set(r->err, ACT_FAIL,
                         "what was read of '%s' is damaged, do not trust it: its MD5 is %s, %s says %s", r->key, md5,
                         store_name(r->store), r->entry.md5);
}

/* Checks an object that grows, which is read without its ETag: it must not have become shorter, and an append blob
 * must still be one. A log, which has no ETag, may have stopped growing. */
static int check_grown(struct transfer_reading *r)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = r->key};

    if (!r->entry.grows)
        return 0;
    int rc = store_do(r->store, &head, r->err);
    if (rc == 0 && ((!head.entry.grows && head.entry.etag[0]) || head.entry.size < r->entry.size))
        rc = act_error_set(r->err, ACT_TEMPORARY,
                           "'%s' was replaced while it was read: do not trust what came; read it again", r->key);
    return rc;
}

int transfer_read(struct engine *engine, const struct transfer_path *what, const struct transfer_range *range,
                  uint64_t memory, int (*write)(void *arg, const void *data, size_t len, struct act_error *err),
                  void *arg, struct act_error *err)
{
    struct transfer_reading r = {
        .engine = engine, .store = what->store, .key = what->path, .write = write, .arg = arg, .err = err};

    act_md5_init(&r.md5);
    r.rc = find_entry(&r);
    if (r.rc == 0) {
        set_range(&r, range);
        read_in_parts(&r, memory);
    }
    if (r.rc == 0 && r.written < r.n_parts)
        r.rc = act_error_set(err, ACT_FAIL, "reading '%s' came to a halt before its end", r.key);
    if (r.rc == 0)
        r.rc = check_sum(&r);
    if (r.rc == 0)
        r.rc = check_grown(&r);
    store_entry_release(&r.entry);
    return r.rc;
}
