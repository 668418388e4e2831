/* pieces.c - a part that comes from a service is summed and written while the rest of it still comes.
 *
 * The bytes are collected in pieces, each of which is handed to the store as soon as it is whole: a writer that had to
 * wait until the loop is done with receiving would stand still. Workers sum and write them; those of one file take
 * turns (engine_lane_new()). A piece goes into the place in the part's buffer that became free last: as long as the
 * disk keeps up, few places are used, and they stay in the processor's cache. When it does not, there is room for the
 * whole part. Of 256 KiB, 512 KiB and 1 MiB, 512 KiB was as fast as any: large enough that few hand-overs are needed,
 * small enough for the cache.
 *
 * A block is not complete until its last piece was written: only then does the store know the block. So the last piece
 * waits until those before it are written, and the response as a whole is known to be what was asked for.
 */
#include <string.h>

#include "base/crc64.h"
#include "transfer/copy.h"

enum { PIECE = 512 << 10 };

struct part_piece {
    struct pieces *of;
    struct store_call call;
    struct store_sums sums;
    uint32_t place; /* in the buffer */
};

struct pieces {
    struct store *to;
    struct pieces_setup setup;
    struct part_piece *v;
    size_t came, given; /* bytes: that are here, that were handed to the store */
    size_t under_way;   /* calls */
    uint32_t *free, n_free;
    bool ended, good; /* the response; good is known once it has ended */
    bool failed;      /* the store */
    struct act_error error;
};

struct pieces *pieces_new(struct store *to, const struct pieces_setup *setup)
{
    struct pieces *p = act_calloc(1, sizeof(*p));
    uint32_t n = (uint32_t)((setup->len + PIECE - 1) / PIECE);

    p->to = to;
    p->setup = *setup;
    p->v = act_calloc(n, sizeof(*p->v));
    p->free = act_calloc(n, sizeof(*p->free));
    for (p->n_free = 0; p->n_free < n; p->n_free++)
        p->free[p->n_free] = n - 1 - p->n_free;
    return p;
}

void pieces_free(struct pieces *p)
{
    if (!p)
        return;
    free(p->v);
    free(p->free);
    free(p);
}

static size_t pieces_len_at(const struct pieces *p, size_t at)
{
    size_t left = p->setup.len - at;

    return left < PIECE ? left : PIECE;
}

static char *piece_place(const struct pieces *p, size_t at)
{
    return p->setup.buffer + (size_t)p->v[at / PIECE].place * PIECE + at % PIECE;
}

static void write_pieces(struct pieces *p);

static void piece_written(struct store_call *call)
{
    struct part_piece *piece = call->arg;
    struct pieces *p = piece->of;

    p->under_way--;
    if (call->rc < 0 && !p->failed)
        p->error = call->error;
    p->failed = p->failed || call->rc < 0;
    p->free[p->n_free++] = piece->place;
    store_call_release(call);
    write_pieces(p);
}

/* Adds up the sum of the block until now, with which the last piece goes on. */
static void pieces_add_up(const struct pieces *p)
{
    for (size_t at = 0; at < p->given; at += PIECE)
        *p->setup.crc64 = act_crc64_combine(*p->setup.crc64, p->v[at / PIECE].sums.crc64, PIECE);
}

static void pieces_write_next(struct pieces *p, size_t len)
{
    const struct pieces_setup *s = &p->setup;
    struct part_piece *piece = &p->v[p->given / PIECE];
    bool more = p->given + len < s->len;

    if (!more)
        pieces_add_up(p);
    piece->of = p;
    piece->sums = (struct store_sums){.crc64 = more ? 0 : *s->crc64};
    piece->call = (struct store_call){.op = STORE_BLOCK,
                                      .key = s->key,
                                      .block = {.upload_id = s->upload_id,
                                                .index = s->block,
                                                .offset = s->offset + p->given,
                                                .data.bytes = piece_place(p, p->given),
                                                .data.len = len,
                                                .block_len = s->len,
                                                .more = more,
                                                .data.sums = &piece->sums},
                                      .done = piece_written,
                                      .arg = piece};
    p->given += len;
    p->under_way++;
    store_start(p->to, &piece->call);
}

/* Returns whether the next piece may be written: the last one has to wait for all before it. */
static bool is_next_ready(const struct pieces *p, size_t len)
{
    bool is_last = p->given + len == p->setup.len;

    return !p->failed && len > 0 && p->came - p->given >= len && (!is_last || (p->good && p->under_way == 0));
}

/* Ends the part: nothing is under way, and nothing more will be. */
static void finish_pieces(struct pieces *p)
{
    if (!p->failed && p->given == p->setup.len)
        *p->setup.crc64 = p->v[(p->given - 1) / PIECE].sums.crc64;
    p->setup.done(p->setup.arg, p->failed ? &p->error : NULL);
}

/* Writes all pieces that are here. */
static void write_pieces(struct pieces *p)
{
    for (size_t len; is_next_ready(p, len = pieces_len_at(p, p->given));)
        pieces_write_next(p, len);
    if (p->ended && p->under_way == 0)
        finish_pieces(p);
}

/* Takes bytes of one piece. */
static void pieces_take_some(struct pieces *p, const char *data, size_t len)
{
    if (p->came % PIECE == 0)
        p->v[p->came / PIECE].place = p->free[--p->n_free];
    memcpy(piece_place(p, p->came), data, len);
    p->came += len;
    if (p->came % PIECE == 0 || p->came == p->setup.len)
        write_pieces(p);
}

/* After a failed try of the request the bytes come from the start once more. They are of the same object, by its
 * ETag, and what was taken stays. */
void pieces_take(struct pieces *p, size_t at, const char *data, size_t len)
{
    size_t known = at < p->came ? p->came - at : 0, n = 0;

    for (size_t done = known < len ? known : len; done < len; done += n) {
        size_t room = pieces_len_at(p, p->came - p->came % PIECE) - p->came % PIECE;
        n = len - done < room ? len - done : room;
        pieces_take_some(p, data + done, n);
    }
}

void pieces_end(struct pieces *p, bool good)
{
    p->ended = true;
    p->good = good;
    write_pieces(p);
}
