/* far_change.c - what differs in two states of an object. Pure. See far.h. */
#include <string.h>

#include "store/far.h"

static size_t far_blocks_of(size_t len)
{
    return len / FAR_BLOCK + (len % FAR_BLOCK > 0);
}

static size_t far_block_len(size_t len, size_t block)
{
    size_t left = len - block * FAR_BLOCK;

    return left < FAR_BLOCK ? left : FAR_BLOCK;
}

static bool far_differs(const struct far_changes *changes, size_t block)
{
    return changes->bits[block / 8] >> block % 8 & 1;
}

size_t far_sums_size(size_t len)
{
    return far_blocks_of(len) * FAR_SUM;
}

size_t far_bits_of(size_t len)
{
    return (far_blocks_of(len) + 7) / 8;
}

static void far_sum_block(const void *bytes, size_t len, size_t block, uint8_t out[FAR_SUM])
{
    struct act_sha256 hash;

    act_sha256_init(&hash);
    act_sha256_add(&hash, (const char *)bytes + block * FAR_BLOCK, far_block_len(len, block));
    act_sha256_bytes(&hash, out, FAR_SUM);
}

void far_sums_of(const void *bytes, size_t len, uint8_t *out)
{
    for (size_t i = 0; i < far_blocks_of(len); i++)
        far_sum_block(bytes, len, i, out + i * FAR_SUM);
}

void far_find_changes(const void *bytes, size_t len, const uint8_t *sums, size_t sums_size, struct far_changes *out)
{
    uint8_t sum[FAR_SUM];

    *out = (struct far_changes){0};
    for (size_t i = 0; i < far_blocks_of(len); i++) {
        far_sum_block(bytes, len, i, sum);
        if ((i + 1) * FAR_SUM > sums_size || memcmp(sum, sums + i * FAR_SUM, FAR_SUM) != 0)
            out->bits[i / 8] |= (uint8_t)(1U << i % 8);
    }
}

size_t far_changes_size(const struct far_changes *changes, size_t len)
{
    size_t size = 0;

    for (size_t i = 0; i < far_blocks_of(len); i++)
        size += far_differs(changes, i) ? far_block_len(len, i) : 0;
    return size;
}

void far_gather(const struct far_changes *changes, const void *bytes, size_t len, void *gathered)
{
    char *to = gathered;

    for (size_t i = 0; i < far_blocks_of(len); i++) {
        if (!far_differs(changes, i))
            continue;
        memcpy(to, (const char *)bytes + i * FAR_BLOCK, far_block_len(len, i));
        to += far_block_len(len, i);
    }
}

void far_scatter(const struct far_changes *changes, void *bytes, size_t len, const void *gathered)
{
    const char *from = gathered;

    for (size_t i = 0; i < far_blocks_of(len); i++) {
        if (!far_differs(changes, i))
            continue;
        memcpy((char *)bytes + i * FAR_BLOCK, from, far_block_len(len, i));
        from += far_block_len(len, i);
    }
}
