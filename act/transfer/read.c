/* read.c - transfer_read(): the bytes of one file, in order.
 *
 * They are a stretch (stretch.c). The CRC of the whole follows from those of its slices; MD5 is computed by the worker
 * that writes.
 */
#include <inttypes.h>
#include <string.h>

#include "transfer/transfer_internal.h"

struct transfer_reading {
    struct store *store;
    const char *key;
    struct store_entry entry;
    bool whole; /* from start to end, so that the object's checksum applies */
    struct transfer_stretch stretch;
    int (*write)(void *arg, const void *data, size_t len, struct act_error *err);
    void *arg;
    struct act_md5 md5;
    struct act_error *err;
};

static bool needs_md5(const struct transfer_reading *r)
{
    return r->whole && !r->entry.has_crc64 && r->entry.md5[0];
}

/* Called on a worker, which alone touches md5 meanwhile. */
static int reading_write(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err)
{
    struct transfer_reading *r = arg;

    (void)at;
    if (needs_md5(r))
        act_md5_add(&r->md5, data, len);
    return r->write(r->arg, data, len, err);
}

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

/* Sets the stretch to be read. Four of its slices fit into the memory. */
static void set_stretch(struct transfer_reading *r, const struct transfer_range *range, uint64_t memory)
{
    uint64_t slice = (memory ? memory : TRANSFER_MEMORY) / 4;
    uint64_t size = r->entry.size;
    uint64_t end = range && range->first && range->first < size ? range->first : size;
    uint64_t begin = range && range->last && range->last < end ? end - range->last : 0;

    r->whole = begin == 0 && end == size;
    r->stretch =
        (struct transfer_stretch){.key = r->key,
                                  .offset = begin,
                                  .end = end,
                                  .slice = slice > TRANSFER_PART_SIZE ? TRANSFER_PART_SIZE : slice + (slice == 0),
                                  .want_crc64 = true,
                                  .write = reading_write,
                                  .arg = r};
    /* the ETag of an append blob changes with everything appended, but what is there stays */
    if (r->entry.etag[0] && !r->entry.grows)
        r->stretch.if_match = r->entry.etag;
}

/* Verifies what was written against the store's checksum of the whole. */
static int check_sum(struct transfer_reading *r)
{
    char md5[ACT_MD5_BASE64];

    if (r->whole && r->entry.has_crc64 && r->stretch.crc64 != r->entry.crc64)
        return act_error_set(r->err, ACT_FAIL,
                             "what was read of '%s' is damaged, do not trust it: its CRC64 is %016" PRIx64
                             ", %s says %016" PRIx64,
                             r->key, r->stretch.crc64, store_name(r->store), r->entry.crc64);
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
    struct transfer_reading r = {.store = what->store, .key = what->path, .write = write, .arg = arg, .err = err};
    const struct transfer_stretch *s = &r.stretch;

    act_md5_init(&r.md5);
    int rc = find_entry(&r);
    if (rc == 0) {
        set_stretch(&r, range, memory);
        rc = transfer_stretches(engine, r.store, &r.stretch, 1, memory, NULL, NULL, err);
    }
    if (rc == 0 && s->got < s->end - s->offset)
        rc = act_error_set(err, ACT_TEMPORARY, "'%s' changed while it was read: it ends after %" PRIu64 " bytes", r.key,
                           s->offset + s->got);
    if (rc == 0)
        rc = check_sum(&r);
    if (rc == 0)
        rc = check_grown(&r);
    store_entry_release(&r.entry);
    return rc;
}
