/* stream.c - frames over the stream between both ends. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tunnel/tunnel_internal.h"

enum {
    HEAD = 9,
    NOISE_MAX = 64 * 1024, /* which a login shell may print before the hello */
    FULL = 256 * 1024,
    READ_ONCE = 256 * 1024,
    QUEUE_TIDY = 64 * 1024,
};

/* ---- queues */

size_t queue_left(const struct tunnel_queue *q)
{
    return q->bytes.len - q->taken;
}

/* Takes n bytes away from its beginning. */
static void queue_take(struct tunnel_queue *q, size_t n)
{
    q->taken += n;
    if (!q->bytes.data || (q->taken < QUEUE_TIDY && queue_left(q) > 0))
        return;
    memmove(q->bytes.data, q->bytes.data + q->taken, queue_left(q));
    q->bytes.len -= q->taken;
    q->taken = 0;
}

ssize_t queue_write(struct tunnel_queue *q, int fd)
{
    ssize_t n = 0, all = 0;

    for (; queue_left(q) > 0 && (n = write(fd, q->bytes.data + q->taken, queue_left(q))) > 0; all += n)
        queue_take(q, (size_t)n);
    return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : all;
}

void queue_release(struct tunnel_queue *q)
{
    act_buf_release(&q->bytes);
    q->taken = 0;
}

/* ---- the stream */

/* Nobody waits for it, and a pipe takes much at once, so that both sides change less often. */
static void stream_prepare(int fd)
{
    enum { PIPE_BYTES = 1 << 20 };
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* fails if it is no pipe, or the user has too many pages in pipes */
}

void stream_begin(struct stream *s, int in, int out)
{
    *s = (struct stream){.in = in, .out = out, .heard_ms = act_now_monotonic_ms()};
    stream_prepare(in);
    stream_prepare(out);
    act_buf_adds(&s->queue.bytes, TUNNEL_HELLO);
}

void stream_release(struct stream *s)
{
    queue_release(&s->got);
    queue_release(&s->queue);
}

bool stream_is_full(const struct stream *s)
{
    return queue_left(&s->queue) >= FULL;
}

static void stream_put_number(uint8_t *out, uint32_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
}

static uint32_t stream_get_number(const char *at, size_t bytes)
{
    uint32_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (uint8_t)at[i];
    return number;
}

uint32_t stream_number(const struct tunnel_frame *frame)
{
    return stream_get_number(frame->rest, frame->len);
}

void stream_send(struct stream *s, enum kind kind, uint32_t connection, const void *rest, size_t len)
{
    uint8_t head[HEAD] = {(uint8_t)kind};

    stream_put_number(head + 1, connection, 4);
    stream_put_number(head + 5, (uint32_t)len, 4);
    act_buf_add(&s->queue.bytes, head, sizeof(head));
    act_buf_add(&s->queue.bytes, rest, len);
}

void stream_send_number(struct stream *s, enum kind kind, uint32_t connection, uint32_t number, size_t bytes)
{
    uint8_t rest[4];

    stream_put_number(rest, number, bytes);
    stream_send(s, kind, connection, rest, bytes);
}

int stream_fill(struct stream *s, struct act_error *err)
{
    static char chunk[READ_ONCE];
    ssize_t n = read(s->in, chunk, sizeof(chunk));

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return act_error_errno(err, errno, "cannot read from the other end");
    if (n > 0) {
        act_buf_add(&s->got.bytes, chunk, (size_t)n);
        s->heard_ms = act_now_monotonic_ms();
    }
    return n != 0;
}

/* Skips what comes before the hello. */
static int look_for_hello(struct stream *s, struct act_error *err)
{
    const size_t len = sizeof(TUNNEL_HELLO) - 1;
    const char *text = s->got.bytes.data, *found = text ? memmem(text, s->got.bytes.len, TUNNEL_HELLO, len) : NULL;

    if (found) {
        s->is_ours = true;
        queue_take(&s->got, (size_t)(found - text) + len);
        return 1;
    }
    if (s->got.bytes.len <= NOISE_MAX)
        return 0;
    return act_error_set(err, ACT_TEMPORARY, "what answers there is not the agent: %.80s", text);
}

static int malformed(struct act_error *err)
{
    return act_error_set(err, ACT_TEMPORARY, "the other end sent what is not a frame of a tunnel");
}

/* The lengths that the rest of a frame may have. */
static bool stream_is_allowed(const struct tunnel_frame *f)
{
    switch (f->kind) {
    case OPEN:
        return f->len == 2 && f->connection < TUNNEL_CONNECTIONS_MAX;
    case DATA:
        return f->len >= 1 && f->len <= TUNNEL_DATA_MAX;
    case WINDOW:
        return f->len == 4;
    case CLOSE:
        return f->len <= 1024;
    case END:
    case PING:
    case ANSWER:
        return f->len == 0;
    }
    return false;
}

int stream_take(struct stream *s, struct tunnel_frame *out, struct act_error *err)
{
    if (!s->is_ours) {
        int rc = look_for_hello(s, err);
        if (rc <= 0)
            return rc;
    }
    queue_take(&s->got, s->handed);
    s->handed = 0;
    const char *at = s->got.bytes.data + s->got.taken;
    size_t left = queue_left(&s->got);
    if (left < HEAD)
        return 0;
    *out = (struct tunnel_frame){.kind = (enum kind)at[0],
                                 .connection = stream_get_number(at + 1, 4),
                                 .rest = at + HEAD,
                                 .len = stream_get_number(at + 5, 4)};
    if (!stream_is_allowed(out))
        return malformed(err);
    if (left - HEAD < out->len)
        return 0;
    s->handed = HEAD + out->len;
    return 1;
}
