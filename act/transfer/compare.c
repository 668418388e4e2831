/* compare.c - whether two objects of the same size have the same content: by the checksums that their stores know, or,
 * where those cannot be compared, by reading the bytes. */
#include <string.h>

#include "transfer/copy.h"

struct compared_side {
    struct object_comparison *comparison;
    struct store *store;
    const struct store_entry *entry;
    bool has_md5, has_crc64;
    char md5[ACT_MD5_BASE64];
    uint64_t crc64;
};

struct object_comparison {
    struct walk *walk;
    struct sync_item item;
    struct compared_side from, to;
    int reading;
    bool failed;
    void (*done)(struct walk *walk, struct sync_item *item, int rc);
};

static void take_stored(struct compared_side *side)
{
    side->has_md5 = side->entry->md5[0] != '\0';
    memcpy(side->md5, side->entry->md5, sizeof(side->md5));
    side->has_crc64 = side->entry->has_crc64;
    side->crc64 = side->entry->crc64;
}

static bool side_is_known(const struct compared_side *side)
{
    return side->has_md5 || side->has_crc64;
}

static bool are_comparable(const struct object_comparison *c)
{
    return (c->from.has_crc64 && c->to.has_crc64) || (c->from.has_md5 && c->to.has_md5);
}

static bool are_equal(const struct object_comparison *c)
{
    if (c->from.has_crc64 && c->to.has_crc64)
        return c->from.crc64 == c->to.crc64;
    return strcmp(c->from.md5, c->to.md5) == 0;
}

static void end_comparison(void *arg)
{
    struct object_comparison *c = arg;
    struct walk *walk = c->walk;

    c->done(walk, &c->item, c->failed ? -ACT_FAIL : are_equal(c));
    free(c);
    walk_pump(walk);
}

static void side_was_read(struct object *o)
{
    struct compared_side *side = o->only_read.arg;
    struct object_comparison *c = side->comparison;

    c->failed |= object_has_failed(o);
    side->has_crc64 = true;
    side->crc64 = o->whole.crc64;
    side->has_md5 = o->whole.md5[0] != '\0';
    memcpy(side->md5, o->whole.md5, sizeof(side->md5));
    if (--c->reading == 0)
        end_comparison(c);
}

static void read_side(struct compared_side *side, bool want_md5)
{
    struct walk *walk = side->comparison->walk;
    struct store_entry entry = *side->entry;

    entry.key = act_strdup(entry.key);
    side->comparison->reading++;
    walk_enqueue(walk, object_new_read(walk, side->store, &entry, want_md5, side_was_read, side), false);
}

void compare_start(struct walk *walk, struct sync_item *item, bool deep,
                   void (*done)(struct walk *walk, struct sync_item *item, int rc))
{
    struct object_comparison *c = act_calloc(1, sizeof(*c));

    *c = (struct object_comparison){.walk = walk, .item = *item, .done = done};
    c->from = (struct compared_side){.comparison = c, .store = walk->from, .entry = &c->item.from};
    c->to = (struct compared_side){.comparison = c, .store = walk->to, .entry = &c->item.to};
    if (!deep) {
        take_stored(&c->from);
        take_stored(&c->to);
    }
    if (are_comparable(c)) {
        engine_timer(walk->engine, 0, end_comparison, c);
    } else if (side_is_known(&c->to)) {
        read_side(&c->from, !c->to.has_crc64);
    } else if (side_is_known(&c->from)) {
        read_side(&c->to, !c->from.has_crc64);
    } else {
        read_side(&c->from, false);
        read_side(&c->to, false);
    }
}
