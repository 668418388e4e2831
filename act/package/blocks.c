/* blocks.c - cuts the archive into blocks, which fall the same way again after a change.
 *
 * A block ends after an entry whose path says so. Its id is computed on a worker from the file that was written, unless
 * the block is one of the last package.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "engine/engine.h"
#include "package/build.h"

enum {
    BLOCK_MIN = 256 << 10,  /* no border before: little, as borders that are passed over move those after */
    BLOCK_SPREAD_BITS = 20, /* then one within about a MiB */
};

/* A block whose id is being computed. */
struct digest {
    struct build *build;
    size_t block;
    struct package_block range;
    int errnum;
};

const struct package_block *package_find_block(const struct package_index *last, uint64_t offset)
{
    size_t low = 0, high = last->n_blocks;

    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (last->blocks[mid].offset <= offset)
            low = mid;
        else
            high = mid;
    }
    return &last->blocks[low];
}

/* Returns the block of the last package that the current one is, at this length; NULL: none. */
static const struct package_block *blocks_same(const struct build *b, uint64_t len)
{
    if (!b->block_copied)
        return NULL;
    uint64_t there = (uint64_t)((int64_t)b->block_start - b->block_shift);
    const struct package_block *block = package_find_block(&b->last, there);
    return block->offset == there && block->len == len ? block : NULL;
}

static void digest_run(void *arg)
{
    struct digest *d = arg;
    ACT_AUTOFREE char *data = act_alloc(d->range.len);

    if (act_pread_all(d->build->sink.fd, data, d->range.len, (off_t)d->range.offset) != (ssize_t)d->range.len)
        d->errnum = errno ? errno : EIO;
    package_block_sum(&d->range, data);
}

static void digest_done(void *arg)
{
    struct digest *d = arg;
    struct build *b = d->build;

    if (d->errnum && b->rc == 0)
        b->rc = package_fail_output(b, d->errnum);
    b->out->blocks[d->block] = d->range;
    b->digests--;
    free(d);
    package_look_around(b);
}

static void blocks_add(struct build *b, struct package_block block, bool has_id)
{
    struct package_summary *out = b->out;

    ACT_PUSH(out->blocks, out->n_blocks, block);
    if (has_id)
        return;
    if (package_sink_flush(&b->sink) < 0) {
        package_fail_sink(b);
        return;
    }
    struct digest *d = act_calloc(1, sizeof(*d));
    *d = (struct digest){.build = b, .block = out->n_blocks - 1, .range = block};
    b->digests++;
    engine_work(b->output->engine, digest_run, digest_done, d);
}

void package_cut(struct build *b, uint64_t at)
{
    struct package_block block = {.offset = b->block_start, .len = at - b->block_start};

    if (block.len == 0)
        return;
    const struct package_block *same = blocks_same(b, block.len);
    if (same) {
        block.crc64 = same->crc64;
        memcpy(block.id, same->id, sizeof(block.id));
    }
    blocks_add(b, block, same != NULL);
    b->block_start = at;
}

/* The header of an entry follows from what the index was asked for and the versions that made the last package; its
 * length is looked at all the same. */
void package_note_origin(struct build *b, const struct package_item *item)
{
    bool copied = b->origin.copied && item->data - item->offset == b->origin.head;
    int64_t shift = (int64_t)item->data - (int64_t)b->origin.data;

    if (b->block_start >= item->offset)
        b->block_copied = copied;
    else
        b->block_copied = b->block_copied && copied && b->block_shift == shift;
    b->block_shift = shift;
}

/* FNV-1a, its bits mixed once more. */
static uint64_t hash_path(const char *path)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *path; path++)
        h = (h ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    return h * UINT64_C(0x9e3779b97f4a7c15);
}

/* A block ends the likelier the longer an entry is, so that blocks have about the same size whatever the files have. */
bool package_is_border(const struct build *b, const char *path, uint64_t entry_len, uint64_t end)
{
    uint64_t len = end - b->block_start;

    return len >= BLOCK_MAX || (len >= BLOCK_MIN && hash_path(path) >> (64 - BLOCK_SPREAD_BITS) < entry_len);
}
