/* pool.c - the buffers of parts: a fixed budget of memory; large buffers are reused. */
#include "transfer/transfer_internal.h"

void transfer_pool_init(struct transfer_pool *pool, uint64_t limit, uint64_t part_size)
{
    *pool = (struct transfer_pool){.limit = limit, .part_size = part_size};
}

void transfer_pool_release(struct transfer_pool *pool)
{
    while (pool->n_spare > 0)
        free(pool->spare[--pool->n_spare]);
    free(pool->spare);
    *pool = (struct transfer_pool){0};
}

/* Returns what a buffer takes of the budget: large ones all have the size of a part, so that they fit any part. */
static uint64_t pool_charge(const struct transfer_pool *pool, size_t len)
{
    return len > pool->part_size / 2 && len < pool->part_size ? pool->part_size : len;
}

bool transfer_pool_has_room(const struct transfer_pool *pool, size_t len)
{
    return pool->used == 0 || pool->used + pool_charge(pool, len) <= pool->limit;
}

char *transfer_pool_take(struct transfer_pool *pool, size_t len)
{
    uint64_t size = pool_charge(pool, len);

    pool->used += size;
    if (size == pool->part_size && pool->n_spare > 0)
        return pool->spare[--pool->n_spare];
    return act_alloc(size);
}

void transfer_pool_give(struct transfer_pool *pool, char *buffer, size_t len)
{
    uint64_t size = pool_charge(pool, len);

    pool->used -= size;
    if (size != pool->part_size) {
        free(buffer);
        return;
    }
    ACT_PUSH(pool->spare, pool->n_spare, buffer);
}
