/* far_link.c - frames over a stream, both ways at once, on the loop. What is sent in one turn of the loop is a block,
 * and is written together: a head, the frames but for their bytes, compressed where that is worth it, and the bytes of
 * each frame, which are written from where they are, and read to where they belong. Small frames that follow one
 * another closely share a block, because each write costs four processes a turn: this one, the other end, and both of
 * ssh. Under a limit a direction moves a piece at a time, and waits by a timer for the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/deflate.h"
#include "engine/engine.h"
#include "store/far.h"

enum {
    BLOCK_HEAD_BYTES = 4 + 4 + 4, /* of what follows, of that uncompressed, a mark */
    BLOCK_BYTES = 64 << 10,       /* that are enough for a block */
    BLOCK_MAX_BYTES = FAR_MAX_WORDS + 2 * BLOCK_BYTES,
    HEAD_BYTES = 4 + 4 + 8, /* of the words, of the bytes, the number */
    BUFFER_BYTES = 256 << 10,
    TURN_BYTES = 4 << 20, /* are read before others have their turn */
    GATHER_MS = 2,        /* from one block to the next, unless enough waits for it */
    PIECES = 128,         /* for one writev() */
    LOW_PIECE = 1 << 10,  /* bytes that move at once under a limit */
    HIGH_PIECE = 256 << 10,
};

static const uint32_t head_mark = 0x41435446; /* whoever sees another one is in the wrong place of the stream */

/* A frame to be written. */
struct far_chunk {
    struct act_buf head; /* with the words; of a block, those of all its frames, before the bytes of the first one */
    const char *bytes;   /* of the owner */
    size_t len, written; /* of the bytes; of head and bytes */
    size_t size;         /* of words and bytes */
    uint64_t id;
    void (*sent)(void *arg, uint64_t id, const void *bytes, size_t size);
    struct far_chunk *next;
};

/* ---- numbers of the head */

static void link_put_number(char *at, uint64_t n, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)(n >> (8 * i));
}

static uint64_t link_get_number(const char *at, size_t size)
{
    uint64_t n = 0;

    for (size_t i = 0; i < size; i++)
        n |= (uint64_t)(uint8_t)at[i] << (8 * i);
    return n;
}

/* ---- the end */

static void link_tell_broken(void *arg)
{
    struct far_link *link = arg;

    link->broken(link->arg, &link->error);
}

static void link_unwatch(struct far_link *link)
{
    if (link->watches_in)
        engine_unwatch(link->engine, link->in_fd);
    if (link->watches_out)
        engine_unwatch(link->engine, link->out_fd);
    link->watches_in = link->watches_out = false;
}

void far_link_break(struct far_link *link, const struct act_error *error)
{
    if (link->is_broken)
        return;
    link->is_broken = true;
    link->error = *error;
    link_unwatch(link);
    engine_timer(link->engine, 0, link_tell_broken, link);
}

static void link_lost(struct far_link *link, const char *why)
{
    struct act_error err;

    act_error_set(&err, ACT_TEMPORARY, "the connection was lost: %s", why);
    err.network = true;
    far_link_break(link, &err);
}

static void link_malformed(struct far_link *link)
{
    struct act_error err;

    act_error_set(&err, ACT_FAIL, "the other side sent something that is not part of ACT's protocol");
    err.network = true; /* nothing else will come of it */
    far_link_break(link, &err);
}

/* ---- the limit */

/* Returns how many bytes may move now; 0: none before go_on() is called. */
static size_t link_may_move(struct far_link *link, struct far_pace *pace, void (*go_on)(void *arg))
{
    if (pace->bucket.rate == 0)
        return SIZE_MAX;
    int64_t wait_ms = bucket_wait_ms(&pace->bucket, act_now_monotonic_ms());
    if (wait_ms == 0)
        return bucket_piece(&pace->bucket, LOW_PIECE, HIGH_PIECE);
    act_trace("far", "waits for --bwlimit: %lld ms", (long long)wait_ms);
    if (!pace->waits)
        engine_timer(link->engine, wait_ms, go_on, link);
    pace->waits = true;
    return 0;
}

/* Shortens n pieces to so many bytes in all. */
static size_t link_trim(struct iovec *pieces, size_t n, size_t most)
{
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].iov_len > most)
            pieces[i].iov_len = most;
        most -= pieces[i].iov_len;
        if (most == 0)
            return i + 1;
    }
    return n;
}

/* ---- writing */

/* Appends a block of frames without their bytes. */
static void link_put_block(const struct act_buf *frames, struct act_buf *out)
{
    ACT_AUTO(act_buf) packed = {0};
    const struct act_buf *sent = codec_deflate(frames->data, frames->len, &packed) ? &packed : frames;
    char head[BLOCK_HEAD_BYTES];

    link_put_number(head, sent->len, 4);
    link_put_number(head + 4, frames->len, 4);
    link_put_number(head + 8, head_mark, 4);
    act_buf_add(out, head, sizeof(head));
    act_buf_add(out, sent->data, sent->len);
}

/* Makes blocks of the frames that are in none. */
static void link_make_blocks(struct far_link *link)
{
    while (link->unpacked) {
        struct far_chunk *first = link->unpacked;
        ACT_AUTO(act_buf) frames = {0};
        for (; link->unpacked && frames.len < BLOCK_BYTES; link->unpacked = link->unpacked->next) {
            act_buf_add(&frames, link->unpacked->head.data, link->unpacked->head.len);
            act_buf_release(&link->unpacked->head);
        }
        link_put_block(&frames, &first->head);
    }
}

static size_t link_chunk_left(const struct far_chunk *c)
{
    return c->head.len + c->len - c->written;
}

/* writev() only reads what it is given. */
static struct iovec link_piece(const char *bytes, size_t len)
{
    struct iovec piece = {.iov_len = len};

    memcpy(&piece.iov_base, &bytes, sizeof(bytes));
    return piece;
}

/* Adds what is left of a chunk to the pieces. Returns how many there are then. */
static size_t link_add_pieces(const struct far_chunk *c, struct iovec *pieces, size_t n)
{
    size_t of_bytes = c->written > c->head.len ? c->written - c->head.len : 0;

    if (c->written < c->head.len)
        pieces[n++] = link_piece(c->head.data + c->written, c->head.len - c->written);
    if (of_bytes < c->len)
        pieces[n++] = link_piece(c->bytes + of_bytes, c->len - of_bytes);
    return n;
}

/* Removes the first chunk, which is written. */
static void link_chunk_sent(struct far_link *link)
{
    struct far_chunk *c = link->first;

    link->first = c->next;
    act_buf_release(&c->head);
    if (c->sent)
        c->sent(link->arg, c->id, c->bytes, c->size);
    free(c);
}

static void link_take_written(struct far_link *link, size_t n)
{
    while (link->first) {
        const size_t left = link_chunk_left(link->first);
        if (n < left) {
            link->first->written += n;
            return;
        }
        n -= left;
        link_chunk_sent(link);
    }
}

/* Works as writev(), but without a SIGPIPE where the descriptor is a socket. */
static ssize_t link_writev(int fd, struct iovec *pieces, size_t n)
{
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n};
    ssize_t written = sendmsg(fd, &message, MSG_NOSIGNAL);

    return written < 0 && errno == ENOTSOCK ? writev(fd, pieces, (int)n) : written;
}

static void link_write_again(void *arg);

/* Writes what can be. Returns false if nothing more can be now. */
static bool link_write_some(struct far_link *link)
{
    struct iovec pieces[PIECES];
    size_t n = 0, most;
    ssize_t written;

    link_make_blocks(link);
    for (const struct far_chunk *c = link->first; c && n + 2 <= PIECES; c = c->next)
        n = link_add_pieces(c, pieces, n);
    if (n == 0 || (most = link_may_move(link, &link->up, link_write_again)) == 0)
        return false;
    n = link_trim(pieces, n, most);
    do
        written = link_writev(link->out_fd, pieces, n);
    while (written < 0 && errno == EINTR);
    if (written < 0 && errno != EAGAIN)
        link_lost(link, errno == EPIPE || errno == ECONNRESET ? "the other side ended" : strerrordesc_np(errno));
    if (written > 0) {
        bucket_take(&link->up.bucket, (double)written);
        link_take_written(link, (size_t)written);
    }
    return written > 0;
}

static void link_write(void *arg)
{
    struct far_link *link = arg;

    while (!link->is_broken && link_write_some(link))
        continue;
    const bool wanted = link->first && !link->up.waits;
    if (link->is_broken)
        return;
    if (wanted && !link->watches_out && !engine_watch_out(link->engine, link->out_fd, link_write, link))
        link_lost(link, "it cannot be waited for");
    else if (!wanted && link->watches_out)
        engine_unwatch(link->engine, link->out_fd);
    link->watches_out = wanted && !link->is_broken;
}

static void link_write_again(void *arg)
{
    struct far_link *link = arg;

    link->up.waits = false;
    link_write(link);
}

static void link_flush(void *arg)
{
    struct far_link *link = arg;

    link->flushes = false;
    link->unwritten = 0;
    link->flushed_ms = act_now_monotonic_ms();
    link_write(link);
}

/* Writes what was sent: at once where enough waits or nothing was written of late, else when others have joined it. */
static void link_flush_soon(struct far_link *link)
{
    const int64_t since_ms = act_now_monotonic_ms() - link->flushed_ms;
    const bool now = link->unwritten >= BLOCK_BYTES || since_ms >= GATHER_MS;

    if (link->watches_out || link->up.waits || link->is_broken || (link->flushes && !(now && link->gathers)))
        return;
    link->flushes = true;
    link->gathers = !now;
    engine_timer(link->engine, now ? 0 : GATHER_MS - since_ms, link_flush, link);
}

void far_link_send(struct far_link *link, uint64_t id, const struct act_buf *words, const void *bytes, size_t len,
                   void (*sent)(void *arg, uint64_t id, const void *bytes, size_t size))
{
    struct far_chunk *c = act_calloc(1, sizeof(*c));
    char head[HEAD_BYTES];

    link_put_number(head, words->len, 4);
    link_put_number(head + 4, len, 4);
    link_put_number(head + 8, id, 8);
    act_buf_add(&c->head, head, sizeof(head));
    act_buf_add(&c->head, words->data ? words->data : "", words->len);
    c->bytes = bytes;
    c->len = len;
    c->size = words->len + len;
    c->id = id;
    c->sent = sent;
    *(link->first ? link->end : &link->first) = c;
    link->end = &c->next;
    link->unpacked = link->unpacked ? link->unpacked : c;
    link->unwritten += c->size;
    link_flush_soon(link);
}

/* ---- reading */

/* Takes at most `want` bytes of what was read. Returns how many. */
static size_t link_take(struct far_link *link, char *out, size_t want)
{
    size_t n = link->len - link->pos < want ? link->len - link->pos : want;

    if (n > 0)
        memcpy(out, link->buffer + link->pos, n);
    link->pos += n;
    return n;
}

/* Takes the head of a block. */
static bool link_begin_block(struct far_link *link)
{
    const char *head = link->buffer + link->pos;

    if (link->len - link->pos < BLOCK_HEAD_BYTES)
        return false;
    link->packed_len = (size_t)link_get_number(head, 4);
    link->frames_len = (size_t)link_get_number(head + 4, 4);
    if (link_get_number(head + 8, 4) != head_mark || link->frames_len > BLOCK_MAX_BYTES ||
        link->packed_len > link->frames_len) {
        link_malformed(link);
        return false;
    }
    link->pos += BLOCK_HEAD_BYTES;
    act_buf_release(&link->frames);
    link->frames = (struct act_buf){.data = act_alloc(link->packed_len + 1), .cap = link->packed_len + 1};
    link->expects = FAR_LINK_FRAMES;
    return true;
}

/* Takes the frames of a block, without their bytes. */
static bool link_take_frames(struct far_link *link)
{
    struct act_buf *frames = &link->frames, plain = {0};
    struct act_error ignored;

    frames->len += link_take(link, frames->data + frames->len, link->packed_len - frames->len);
    if (frames->len < link->packed_len)
        return false;
    if (link->packed_len < link->frames_len) {
        int rc = codec_inflate(frames, link->frames_len, &plain, &ignored);
        act_buf_release(frames);
        *frames = plain;
        if (rc < 0) {
            link_malformed(link);
            return false;
        }
    }
    link->frames_pos = 0;
    link->expects = FAR_LINK_FRAME;
    return true;
}

/* Takes the next frame of the block, if there is one, without its bytes. */
static bool link_begin_frame(struct far_link *link)
{
    const char *head = link->frames.data + link->frames_pos;
    const size_t left = link->frames.len - link->frames_pos;
    struct far_frame *f = &link->frame;

    if (left == 0) {
        link->expects = FAR_LINK_HEAD;
        return true;
    }
    const size_t words_len = left < HEAD_BYTES ? left : (size_t)link_get_number(head, 4),
                 len = left < HEAD_BYTES ? 0 : (size_t)link_get_number(head + 4, 4);
    if (left < HEAD_BYTES || words_len > left - HEAD_BYTES || words_len > FAR_MAX_WORDS || len > FAR_MAX_PUT) {
        link_malformed(link);
        return false;
    }
    *f = (struct far_frame){
        .id = link_get_number(head + 8, 8), .words = act_alloc(words_len + 1), .words_len = words_len, .len = len};
    memcpy(f->words, head + HEAD_BYTES, words_len);
    f->words[words_len] = '\0';
    link->frames_pos += HEAD_BYTES + words_len;
    link->bytes_got = 0;
    link->expects = FAR_LINK_BYTES;
    if (link->begun(link->arg, f))
        return true;
    link_malformed(link);
    return false;
}

static bool link_take_bytes(struct far_link *link)
{
    struct far_frame *f = &link->frame;

    link->bytes_got += link_take(link, (char *)f->bytes + link->bytes_got, f->len - link->bytes_got);
    if (link->bytes_got < f->len)
        return false;
    struct far_frame whole = *f;
    *f = (struct far_frame){0};
    link->expects = FAR_LINK_FRAME;
    link->came(link->arg, &whole);
    return true;
}

/* Takes all that was read, but for what is not whole yet. */
static void link_parse(struct far_link *link)
{
    static bool (*const steps[])(struct far_link * link) = {[FAR_LINK_HEAD] = link_begin_block,
                                                            [FAR_LINK_FRAMES] = link_take_frames,
                                                            [FAR_LINK_FRAME] = link_begin_frame,
                                                            [FAR_LINK_BYTES] = link_take_bytes};

    while (!link->is_broken && !(link->is_paused && link->expects != FAR_LINK_BYTES) && steps[link->expects](link))
        continue;
}

static void link_read_again(void *arg);

/* Reads once: bytes of a frame to where they belong, anything else into the buffer. Returns how much; 0: nothing more
 * now. */
static size_t link_read_some(struct far_link *link)
{
    struct far_frame *f = &link->frame;
    const bool direct = link->expects == FAR_LINK_BYTES && link->pos == link->len && f->len > link->bytes_got;
    const size_t most = link_may_move(link, &link->down, link_read_again);
    ssize_t n;

    if (most == 0)
        return 0;
    if (!direct) {
        memmove(link->buffer, link->buffer + link->pos, link->len - link->pos);
        link->len -= link->pos;
        link->pos = 0;
    }
    const size_t kept = direct ? 0 : link->len;
    struct iovec pieces[2] = {{.iov_base = direct ? (char *)f->bytes + link->bytes_got : NULL,
                               .iov_len = direct ? f->len - link->bytes_got : 0},
                              {.iov_base = link->buffer + kept, .iov_len = BUFFER_BYTES - kept}};
    const size_t n_pieces = link_trim(pieces + !direct, 1 + direct, most);
    do
        n = readv(link->in_fd, pieces + !direct, (int)n_pieces);
    while (n < 0 && errno == EINTR);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        link_lost(link, n == 0 || errno == ECONNRESET ? "the other side ended" : strerrordesc_np(errno));
    if (n <= 0)
        return 0;
    link->heard = true;
    bucket_take(&link->down.bucket, (double)n);
    size_t of_frame = (size_t)n < pieces[0].iov_len ? (size_t)n : pieces[0].iov_len;
    link->bytes_got += of_frame;
    link->pos = 0;
    link->len = kept + (size_t)n - of_frame;
    return (size_t)n;
}

static void link_read(void *arg);

static void link_watch_in(struct far_link *link)
{
    const bool wanted = !link->is_paused && !link->down.waits && !link->is_broken;

    if (wanted && !link->watches_in && !engine_watch(link->engine, link->in_fd, false, link_read, link))
        link_lost(link, "it cannot be waited for");
    else if (!wanted && link->watches_in)
        engine_unwatch(link->engine, link->in_fd);
    link->watches_in = wanted && !link->is_broken;
}

static void link_read(void *arg)
{
    struct far_link *link = arg;

    for (size_t all = 0, n = 1; n > 0 && all < TURN_BYTES && !link->is_broken && !link->is_paused; all += n) {
        n = link_read_some(link);
        link_parse(link);
    }
    link_watch_in(link);
}

static void link_read_again(void *arg)
{
    struct far_link *link = arg;

    link->down.waits = false;
    link_watch_in(link);
}

/* Goes on with what was read before the pause. */
static void link_go_on(void *arg)
{
    struct far_link *link = arg;

    link_parse(link);
    link_watch_in(link);
}

bool far_link_heard(struct far_link *link)
{
    struct pollfd in = {.fd = link->in_fd, .events = POLLIN};
    const bool heard = link->heard || poll(&in, 1, 0) > 0;

    link->heard = false;
    return heard;
}

void far_link_pause(struct far_link *link, bool pause)
{
    if (link->is_paused == pause || link->is_broken)
        return;
    link->is_paused = pause;
    if (pause)
        link_watch_in(link);
    else
        engine_timer(link->engine, 0, link_go_on, link);
}

void far_link_init(struct far_link *link, struct engine *engine, int in_fd, int out_fd, const struct act_buf *said)
{
    bucket_init(&link->up.bucket, link->rate, act_now_monotonic_ms());
    bucket_init(&link->down.bucket, link->rate, act_now_monotonic_ms());
    link->engine = engine;
    link->in_fd = in_fd;
    link->out_fd = out_fd;
    link->buffer = act_alloc(BUFFER_BYTES);
    if (said && said->len > BUFFER_BYTES) {
        link_malformed(link);
    } else if (said && said->len > 0) {
        memcpy(link->buffer, said->data, said->len);
        link->len = said->len;
        engine_timer(engine, 0, link_go_on, link);
    }
    fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    link_watch_in(link);
}

void far_link_release(struct far_link *link)
{
    if (!link->engine) /* it was not used, or is released */
        return;
    link->is_broken = true;
    link_unwatch(link);
    engine_forget(link->engine, link);
    while (link->first)
        link_chunk_sent(link);
    free(link->frame.words);
    act_buf_release(&link->frames);
    free(link->buffer);
    close(link->in_fd);
    close(link->out_fd);
    *link = (struct far_link){.in_fd = -1, .out_fd = -1};
}
