#include "site/frame.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/deflate.h"
#include "codec/json.h"

enum {
    EARLY_MAX_BYTES =
        64 << 20, /* the responses to all that is asked ahead: SITE_AHEAD_MOST, SITE_ENDS_MAX_BYTES each */
    WRITE_S = 120 /* as long as the other side may take for a response, and take nothing meanwhile */
};

/* ---- bytes ---- */

static int lost(struct act_error *err, const char *why)
{
    int rc = act_error_set(err, ACT_TEMPORARY, "the connection was lost: %s", why);

    err->network = true;
    return rc;
}

static int wait_readable(const struct channel *c, struct act_error *err)
{
    struct pollfd in = {.fd = c->in_fd, .events = POLLIN};
    int n;

    do {
        int64_t left = c->deadline_ms ? c->deadline_ms - act_now_monotonic_ms() : -1;
        if (c->deadline_ms && left < 0)
            left = 0;
        n = poll(&in, 1, left > INT_MAX ? INT_MAX : (int)left);
    } while (n < 0 && errno == EINTR);
    return n == 0 ? lost(err, "no response in time") : 0;
}

/* Reads what is available into the buffer, which is empty. */
static int channel_read(struct channel *c, struct act_error *err)
{
    ssize_t n;

    do
        n = read(c->in_fd, c->buffer, sizeof(c->buffer));
    while (n < 0 && errno == EINTR);
    c->ended = n <= 0;
    if (n <= 0)
        return lost(err, n == 0 ? "the other side ended" : strerror(errno));
    c->pos = 0;
    c->len = (size_t)n;
    return 0;
}

/* Takes what was read early into the buffer. */
static void channel_take_early(struct channel *c)
{
    const size_t left = c->early.len - c->early_pos;

    c->len = left < sizeof(c->buffer) ? left : sizeof(c->buffer);
    c->pos = 0;
    memcpy(c->buffer, c->early.data + c->early_pos, c->len);
    c->early_pos += c->len;
    if (c->early_pos < c->early.len)
        return;
    act_buf_wipe(&c->early);
    c->early_pos = 0;
}

/* Returns once there is at least one byte. */
static int fill_channel(struct channel *c, struct act_error *err)
{
    if (c->early.len > 0) {
        channel_take_early(c);
        return 0;
    }
    int rc = wait_readable(c, err);
    return rc < 0 ? rc : channel_read(c, err);
}

int channel_read_some(struct channel *c, void *data, size_t len, size_t *out_got, struct act_error *err)
{
    int rc = c->pos == c->len ? fill_channel(c, err) : 0;

    if (rc < 0)
        return rc;
    *out_got = len < c->len - c->pos ? len : c->len - c->pos;
    memcpy(data, c->buffer + c->pos, *out_got);
    c->pos += *out_got;
    return 0;
}

bool channel_is_ready(const struct channel *c, int more_fd, int wait_ms)
{
    struct pollfd in[] = {{.fd = c->in_fd, .events = POLLIN}, {.fd = more_fd, .events = POLLIN}};

    if (c->pos < c->len || c->early.len > 0)
        return true;
    return poll(in, 2, wait_ms) > 0 && in[0].revents;
}

/* Overwrites what was taken from the buffer, which may have been a secret of a run. */
static void channel_wipe_taken(struct channel *c)
{
    explicit_bzero(c->buffer, c->pos);
    explicit_bzero(c->buffer + c->len, sizeof(c->buffer) - c->len);
}

int channel_read_line(struct channel *c, size_t max, struct act_buf *out, struct act_error *err)
{
    const char *end = NULL;

    out->len = 0;
    while (!end) {
        int rc = c->pos == c->len ? fill_channel(c, err) : 0;
        if (rc < 0)
            return rc;
        const char *from = c->buffer + c->pos;
        end = memchr(from, '\n', c->len - c->pos);
        size_t n = end ? (size_t)(end - from) : c->len - c->pos;
        if (out->len + n > max)
            return act_error_set(err, ACT_FAIL, "the other side sent a line of more than %zu bytes", max);
        act_buf_add(out, from, n);
        c->pos += n + (end ? 1 : 0);
    }
    return 0;
}

int channel_skip_to(struct channel *c, const char *mark, size_t max, struct act_error *err)
{
    size_t matched = 0, passed = 0;

    while (mark[matched]) {
        int rc = c->pos == c->len ? fill_channel(c, err) : 0;
        if (rc < 0)
            return rc;
        char byte = c->buffer[c->pos++];
        matched = byte == mark[matched] ? matched + 1 : byte == *mark;
        if (++passed - matched > max)
            return act_error_set(err, ACT_FAIL, "the other side sent more than %zu bytes of something else", max);
    }
    return 0;
}

void channel_close(struct channel *c)
{
    if (c->in_fd >= 0)
        close(c->in_fd);
    if (c->out_fd >= 0 && c->out_fd != c->in_fd)
        close(c->out_fd);
    c->in_fd = c->out_fd = -1;
    act_buf_wipe(&c->early);
    c->early_pos = 0;
}

/* Reads whatever has come behind what was read before. */
static int channel_read_early(struct channel *c, struct act_error *err)
{
    char chunk[16384];
    ssize_t n;

    do
        n = recv(c->in_fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return lost(err, n == 0 ? "the other side ended" : strerror(errno));
    int rc = 0;
    if (n > 0 && c->early.len - c->early_pos + (size_t)n > EARLY_MAX_BYTES)
        rc = act_error_set(err, ACT_FAIL, "the other side sent more than %d MiB and took nothing",
                           EARLY_MAX_BYTES >> 20);
    else if (n > 0)
        act_buf_add(&c->early, chunk, (size_t)n);
    explicit_bzero(chunk, sizeof(chunk));
    return rc;
}

/* Waits until there is room to write, and reads meanwhile. Gives up when nothing goes either way for WRITE_S. */
static int channel_wait_writable(struct channel *c, struct act_error *err)
{
    struct pollfd ends[] = {{.fd = c->out_fd, .events = POLLOUT}, {.fd = c->in_fd, .events = POLLIN}};

    for (;;) {
        int n = poll(ends, 2, WRITE_S * 1000);
        if (n < 0 && errno != EINTR)
            return lost(err, strerror(errno));
        if (n == 0)
            return lost(err, "the other side takes nothing");
        if (n > 0 && ends[0].revents)
            return 0;
        int rc = n > 0 ? channel_read_early(c, err) : 0;
        if (rc < 0)
            return rc;
    }
}

int channel_write(struct channel *c, const void *data, size_t len, struct act_error *err)
{
    const char *p = data;
    int rc = 0;

    while (len > 0 && rc == 0) {
        ssize_t n = send(c->out_fd, p, len, MSG_NOSIGNAL | (c->reads_early ? MSG_DONTWAIT : 0));
        if (n < 0 && errno == ENOTSOCK)
            n = write(c->out_fd, p, len);
        if (n < 0 && errno == EAGAIN && c->reads_early)
            rc = channel_wait_writable(c, err);
        else if (n < 0 && errno != EINTR)
            rc = lost(err, strerror(errno));
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return rc;
}

/* ---- frames ---- */

/* Compresses a part if that is worth it, and adds to lengths what the other side reads. */
static struct frame_part frame_prepare(const struct frame_part *part, json_t *lengths, struct act_buf *packed)
{
    if (!codec_deflate(part->data, part->len, packed)) {
        json_array_append_new(lengths, json_integer((json_int_t)part->len));
        return *part;
    }
    json_array_append_new(lengths, json_pack("[I, I]", (json_int_t)packed->len, (json_int_t)part->len));
    return (struct frame_part){packed->data, packed->len};
}

int frame_write(struct channel *c, json_t *head, const struct frame_part *parts, size_t n, struct act_error *err)
{
    struct frame_part sent[FRAME_PARTS];
    struct act_buf line = {0}, packed[FRAME_PARTS] = {0};
    json_t *lengths = json_array();

    for (size_t i = 0; i < n; i++)
        sent[i] = frame_prepare(&parts[i], lengths, &packed[i]);
    json_object_set_new(head, "parts", lengths);
    ACT_AUTOWIPE char *text = codec_json_line(head);
    json_decref(head);
    act_buf_addf(&line, "%s\n", text);
    int rc = channel_write(c, line.data, line.len, err);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0)
            rc = channel_write(c, sent[i].data, sent[i].len, err);
        act_buf_wipe(&packed[i]);
    }
    act_buf_wipe(&line); /* what begins a run has its secrets */
    return rc;
}

static int frame_read_part(struct channel *c, size_t len, struct act_buf *out, struct act_error *err)
{
    char chunk[16384];
    size_t got;
    int rc = 0;

    for (; len > 0 && rc == 0; len -= rc == 0 ? got : 0) {
        rc = channel_read_some(c, chunk, len < sizeof(chunk) ? len : sizeof(chunk), &got, err);
        if (rc == 0)
            act_buf_add(out, chunk, got);
    }
    explicit_bzero(chunk, sizeof(chunk));
    return rc;
}

/* Returns a length that the other side has sent; -1: it is none, or more than max. */
static json_int_t frame_part_length(const json_t *length, size_t max)
{
    json_int_t len = json_is_integer(length) ? json_integer_value(length) : -1;

    return len < 0 || (uint64_t)len > max ? -1 : len;
}

static int frame_read_packed(struct channel *c, size_t packed_len, size_t len, struct act_buf *out,
                             struct act_error *err)
{
    struct act_buf packed = {0};
    int rc = frame_read_part(c, packed_len, &packed, err);

    if (rc == 0)
        rc = codec_inflate(&packed, len, out, err);
    act_buf_wipe(&packed);
    return rc;
}

static int read_parts(struct channel *c, size_t max, struct frame *out, struct act_error *err)
{
    const json_t *lengths = json_object_get(out->head, "parts");
    const size_t n = json_array_size(lengths);

    if (n > FRAME_PARTS)
        return act_error_set(err, ACT_FAIL, "the other side sent %zu parts", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *length = json_array_get(lengths, i);
        const bool is_packed = json_is_array(length);
        const json_int_t len = frame_part_length(is_packed ? json_array_get(length, 1) : length, max);
        const json_int_t packed =
            is_packed && len >= 0 ? frame_part_length(json_array_get(length, 0), (size_t)len) : len;
        if (packed < 0)
            return act_error_set(err, ACT_FAIL, "the other side sent a part of a wrong length");
        max -= (size_t)len;
        struct act_buf *part = &out->parts[out->n_parts++];
        int rc = is_packed ? frame_read_packed(c, (size_t)packed, (size_t)len, part, err)
                           : frame_read_part(c, (size_t)len, part, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int frame_read(struct channel *c, size_t max, struct frame *out, struct act_error *err)
{
    struct act_buf line = {0};

    *out = (struct frame){0};
    int rc = channel_read_line(c, FRAME_HEAD_MAX, &line, err);
    if (rc == 0)
        rc = codec_json_parse(line.data ? line.data : "", line.len, "the other side's line", &out->head, err);
    act_buf_wipe(&line);
    if (rc == 0 && !json_is_object(out->head))
        rc = act_error_set(err, ACT_FAIL, "the other side's line is not an object");
    if (rc == 0)
        rc = read_parts(c, max, out, err);
    channel_wipe_taken(c);
    return rc;
}

void frame_release(struct frame *frame)
{
    json_decref(frame->head);
    for (size_t i = 0; i < FRAME_PARTS; i++)
        act_buf_wipe(&frame->parts[i]);
    *frame = (struct frame){0};
}
