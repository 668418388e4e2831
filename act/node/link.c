/* link.c - one end of a connection: lines of JSON. */
#include "node/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/json.h"
#include "node/link_internal.h"

void link_tune(int fd)
{
    /* A machine that vanished is noticed after 20 + 4 * 5 seconds of silence; unacknowledged data after 45. */
    static const struct {
        int level, name, value;
    } rows[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 20}, {IPPROTO_TCP, TCP_KEEPINTVL, 5},
        {IPPROTO_TCP, TCP_KEEPCNT, 4}, {IPPROTO_TCP, TCP_NODELAY, 1},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 45000},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof(rows[i].value));
}

socklen_t link_parse_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof(*v6);
}

/* ---- in ---- */

bool link_fill(struct link *l)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = recv(l->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (n > 0)
            act_buf_add(&l->in, chunk, (size_t)n);
        if (n == 0) {
            errno = 0;
            return false;
        }
        if (n < 0 && errno != EINTR)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        if (l->in.len - l->taken > LINK_LINE_MAX) /* received messages are taken first */
            return true;
    }
}

static void forget_taken(struct link *l)
{
    if (l->taken == 0 || !l->in.data)
        return;
    l->in.len -= l->taken;
    memmove(l->in.data, l->in.data + l->taken, l->in.len + 1);
    l->taken = 0;
}

int link_take(struct link *l, json_t **out)
{
    const char *line = l->in.data ? l->in.data + l->taken : "";
    size_t left = l->in.len - l->taken;
    const char *end = memchr(line, '\n', left);

    *out = NULL;
    if (!end) {
        forget_taken(l);
        return left >= LINK_LINE_MAX ? -1 : 0;
    }
    size_t len = (size_t)(end - line);
    l->taken += len + 1;
    if (len >= LINK_LINE_MAX || codec_json_parse(line, len, "message", out, NULL) < 0)
        return -1;
    if (json_is_object(*out))
        return 1;
    json_decref(*out);
    *out = NULL;
    return -1;
}

/* ---- out ---- */

bool link_flush(struct link *l)
{
    size_t sent = 0;
    bool good = true;

    while (good && sent < l->out.len) {
        ssize_t n = send(l->fd, l->out.data + sent, l->out.len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else
            good = errno == EINTR;
    }
    if (sent > 0) {
        l->out.len -= sent;
        memmove(l->out.data, l->out.data + sent, l->out.len + 1);
    }
    return good;
}

bool link_send(struct link *l, const json_t *message)
{
    ACT_AUTOWIPE char *line = codec_json_line(message);

    if (l->fd < 0)
        return false;
    act_buf_addf(&l->out, "%s\n", line);
    return link_flush(l);
}

bool link_drain(struct link *l, int timeout_ms)
{
    int64_t deadline = act_now_monotonic_ms() + timeout_ms, left = timeout_ms;

    while (l->out.len > 0) {
        struct pollfd end = {.fd = l->fd, .events = POLLOUT};
        if (left <= 0)
            return false;
        poll(&end, 1, (int)left);
        if (!link_flush(l))
            return false;
        left = deadline - act_now_monotonic_ms();
    }
    return true;
}

/* ---- the end ---- */

void link_finish(struct link *l, int timeout_ms)
{
    int64_t deadline = act_now_monotonic_ms() + timeout_ms, left = timeout_ms;

    /* closing with unread bytes would discard data in flight */
    if (l->fd >= 0 && link_drain(l, timeout_ms) && shutdown(l->fd, SHUT_WR) == 0)
        for (; left > 0 && link_fill(l); left = deadline - act_now_monotonic_ms()) {
            l->in.len = l->taken = 0;
            poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, (int)left);
        }
    link_close(l);
}

void link_close(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    act_buf_release(&l->in);
    act_buf_release(&l->out);
    *l = (struct link){.fd = -1};
}
