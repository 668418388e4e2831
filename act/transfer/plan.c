/* plan.c - how an object is moved: its parts, the checksums needed, the id of its upload. See copy.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transfer/copy.h"

enum {
    RACY_S = 2,                /* a file written so recently may change again without its times showing it */
    SERVICE_WHOLE = 256 << 20, /* the service copies this much in one request, with all properties */
    SERVICE_PART = 64 << 20,   /* of a larger object, several at a time */
};

/* Returns the usual size or, in whole MiB, one that keeps the object within the number of blocks that it can have. */
static uint64_t part_size_for(uint64_t usual, uint64_t size)
{
    const uint64_t mib = 1 << 20;
    uint64_t least = size / STORE_MAX_BLOCKS + (size % STORE_MAX_BLOCKS > 0);

    return least <= usual ? usual : (least + mib - 1) / mib * mib;
}

static void plan_add_text(struct act_sha256 *hash, const char *text)
{
    act_sha256_add(hash, text, strlen(text) + 1);
}

/* Tells whether the ETags of a store are made of times, which have the grain of a clock. */
static bool plan_has_grain(const struct store *store)
{
    return store_traits(store)->is_disk || store_traits(store)->is_far_disk;
}

/* Chooses an id that is the same for the same source in the same state and the same destination, so that an
 * interrupted upload is found again, and different for anything else, so that old blocks are never taken for new
 * ones. A folder's ETags are made of the file's inode and times: a file written just now may change again within one
 * tick of the clock, so it gets a random id. */
static void choose_upload_id(struct object *o)
{
    const struct walk *walk = o->walk;
    char facts[64], host[256] = "";
    struct act_sha256 hash;
    int64_t age_s = act_now_unix_s() - o->from.last_modified_s;

    o->plan.resumable = o->from.etag[0] && (!plan_has_grain(walk->from) || age_s > RACY_S);
    if (!o->plan.resumable) {
        act_random(&o->plan.upload_id, sizeof(o->plan.upload_id));
        return;
    }
    if (store_traits(walk->from)->is_disk)
        gethostname(host, sizeof(host) - 1);
    snprintf(facts, sizeof(facts), "%llu/%llu", (unsigned long long)o->from.size,
             (unsigned long long)o->plan.part_size);
    act_sha256_init(&hash);
    plan_add_text(&hash, "act upload 1");
    plan_add_text(&hash, host);
    plan_add_text(&hash, store_name(walk->from));
    plan_add_text(&hash, o->from.key);
    plan_add_text(&hash, o->from.etag);
    plan_add_text(&hash, store_name(walk->to));
    plan_add_text(&hash, o->to.key);
    plan_add_text(&hash, facts);
    act_sha256_bytes(&hash, o->plan.upload_id.bytes, sizeof(o->plan.upload_id.bytes));
}

/* Decides which checksums are needed, and where they cost least: where a worker handles the bytes anyway. Blob
 * Storage computes and keeps the MD5 of what is written at once; of an object in parts it keeps the one it is given.
 * A folder keeps none: there the MD5 is only needed if the source has no other checksum to verify against. */
static enum object_sums sums_for(const struct object *o)
{
    const struct walk *walk = o->walk;
    bool free_from = store_traits(walk->from)->sums_are_free, free_to = store_traits(walk->to)->sums_are_free;
    bool several = o->plan.n_parts > 1;
    uint64_t md5_max = walk->options->md5_max ? walk->options->md5_max : TRANSFER_MD5_MAX;

    if (!free_to && (!several || o->from.size <= md5_max))
        return OBJECT_SUMS_AND_MD5;
    if (several && o->from.md5[0] && !o->from.has_crc64)
        return OBJECT_SUMS_AND_MD5;
    if (free_from || !free_to)
        return OBJECT_SUMS_ON_READ;
    return several ? OBJECT_SUMS_ON_WRITE : OBJECT_NO_SUMS;
}

void object_start_over(struct object *o)
{
    struct transfer_progress *t = &o->walk->report->total;

    o->moved.started = o->moved.written = 0;
    t->done_bytes -= o->moved.counted_bytes;
    t->resumed_bytes -= o->moved.resumed_bytes;
    o->moved.counted_bytes = o->moved.resumed_bytes = 0;
    act_md5_init(&o->chain.md5);
    o->chain.tail = &o->chain.parts;
}

void object_cut(struct object *o, uint64_t part_size)
{
    o->plan.part_size = part_size_for(part_size, o->from.size);
    o->plan.n_parts = o->from.size ? (uint32_t)((o->from.size + o->plan.part_size - 1) / o->plan.part_size) : 1;
    free(o->moved.states);
    o->moved.states = act_calloc(o->plan.n_parts, sizeof(*o->moved.states));
    object_start_over(o);
}

/* Decides how the object is moved if the bytes go through us. */
static enum object_way way_for(const struct object *o)
{
    bool in_pieces = o->plan.sums == OBJECT_SUMS_ON_WRITE && store_traits(o->walk->from)->gives_pieces &&
                     store_traits(o->walk->to)->takes_pieces;

    return in_pieces ? OBJECT_IN_PIECES : OBJECT_BUFFERED;
}

void object_plan(struct object *o)
{
    const struct walk *walk = o->walk;

    if (walk->by_service && o->from.kind == STORE_FILE) {
        o->plan.way = OBJECT_BY_SERVICE;
        o->plan.sums = OBJECT_NO_SUMS;
        object_cut(o, o->from.size <= SERVICE_WHOLE ? SERVICE_WHOLE : SERVICE_PART);
    } else {
        object_cut(o, walk->pool.part_size);
        o->plan.sums = sums_for(o);
        o->plan.way = way_for(o);
    }
    if (o->plan.n_parts > 1)
        choose_upload_id(o);
    /* A folder locks the upload for the caller that asks, and can tell later that it was abandoned. */
    bool ask = o->plan.n_parts > 1 && (o->plan.resumable || store_traits(walk->to)->real_folders);
    o->phase = ask ? OBJECT_ASK : OBJECT_MOVE;
}
