/* pieces.c - a part that comes from a service is summed and written while the rest of it still comes.
 *
 * What comes is summed at once, on the loop: while it is in the processor's cache that costs less than on the worker
 * that writes it. It is collected in pieces, which are written in order, one at a time, on a worker. A piece goes into
 * the place in the part's buffer that became free last: as long as the disk keeps up, the same few places are used, and
 * they stay in the processor's cache. When it does not, there is room for the whole part. Of 256 KiB, 512 KiB and
 * 1 MiB, 512 KiB was fastest: large enough that few hand-overs are needed, small enough for the cache.
 *
 * What was written is not complete until its last piece was: only then does the store know the block. So the last piece
 * waits until the response as a whole is known to be what was asked for.
 */
#include <string.h>

#include "base/crc64.h"
#include "transfer/copy.h"

enum { PIECE = 512 << 10 };

struct pieces {
    struct store *to;
    struct store_call call; /* the piece under way */
    bool under_way, ended, failed;
    bool good; /* the response, once it has ended */
    struct pieces_setup setup;
    size_t came, written; /* bytes */
    uint32_t *place;      /* of each piece, in the buffer */
    uint32_t *free, n_free;
};

struct pieces *pieces_new(struct store *to, const struct pieces_setup *setup)
{
    struct pieces *p = act_calloc(1, sizeof(*p));
    uint32_t n = (uint32_t)((setup->len + PIECE - 1) / PIECE);

    p->to = to;
    p->setup = *setup;
    p->place = act_calloc(n, sizeof(*p->place));
    p->free = act_calloc(n, sizeof(*p->free));
    for (p->n_free = 0; p->n_free < n; p->n_free++)
        p->free[p->n_free] = n - 1 - p->n_free;
    return p;
}

void pieces_free(struct pieces *p)
{
    if (!p)
        return;
    store_call_release(&p->call);
    free(p->place);
    free(p->free);
    free(p);
}

static size_t piece_len(const struct pieces *p, size_t at)
{
    size_t left = p->setup.len - at;

    return left < PIECE ? left : PIECE;
}

static char *piece_place(const struct pieces *p, size_t at)
{
    return p->setup.buffer + (size_t)p->place[at / PIECE] * PIECE + at % PIECE;
}

static void write_next_piece(struct pieces *p);

/* Nothing is under way, and nothing more will be. */
static void finish_pieces(struct pieces *p)
{
    p->setup.done(p->setup.arg, p->failed ? &p->call.error : NULL);
}

static void piece_written(struct store_call *call)
{
    struct pieces *p = call->arg;

    p->under_way = false;
    p->failed = call->rc < 0;
    p->free[p->n_free++] = p->place[p->written / PIECE];
    p->written += call->block.data.len;
    write_next_piece(p);
}

/* The next piece when it is here, or the end. */
static void write_next_piece(struct pieces *p)
{
    size_t len = piece_len(p, p->written);
    const struct pieces_setup *s = &p->setup;
    bool is_last = p->written + len == s->len;

    if (p->under_way)
        return;
    if (p->failed || len == 0 || p->came - p->written < len || (is_last && !p->good)) {
        if (p->ended)
            finish_pieces(p);
        return;
    }
    store_call_release(&p->call);
    p->call = (struct store_call){.op = STORE_BLOCK,
                                  .key = s->key,
                                  .block = {.upload_id = s->upload_id,
                                            .index = s->block,
                                            .offset = s->offset + p->written,
                                            .data.bytes = piece_place(p, p->written),
                                            .data.len = len,
                                            .block_len = s->len,
                                            .more = !is_last,
                                            .data.crc64 = s->crc64},
                                  .done = piece_written,
                                  .arg = p};
    p->under_way = true;
    store_start(p->to, &p->call);
}

/* Bytes of one piece. */
static void take_some(struct pieces *p, const char *data, size_t len)
{
    if (p->came % PIECE == 0)
        p->place[p->came / PIECE] = p->free[--p->n_free];
    *p->setup.crc64 = act_crc64(*p->setup.crc64, data, len);
    memcpy(piece_place(p, p->came), data, len);
    p->came += len;
    if (p->came % PIECE == 0 || p->came == p->setup.len)
        write_next_piece(p);
}

/* After a failed try of the request it comes from the start once more: it is the same object, by its ETag, and what was
 * taken stays. */
void pieces_take(struct pieces *p, size_t at, const char *data, size_t len)
{
    size_t known = at < p->came ? p->came - at : 0, n = 0;

    for (size_t done = known < len ? known : len; done < len; done += n) {
        size_t room = piece_len(p, p->came - p->came % PIECE) - p->came % PIECE;
        n = len - done < room ? len - done : room;
        take_some(p, data + done, n);
    }
}

void pieces_end(struct pieces *p, bool good)
{
    p->ended = true;
    p->good = good;
    write_next_piece(p);
}
