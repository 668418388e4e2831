/* connection.c - one connection of a tunnel: its socket, its windows, its end. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host.h"
#include "tunnel/tunnel_internal.h"

static uint32_t connection_number(const struct connections *all, const struct connection *c)
{
    return (uint32_t)(c - all->v);
}

static bool connections_are_near(const struct connections *all)
{
    return all->tunnel->n_ports > 0;
}

/* ---- its begin and its end */

/* A key press goes at once. */
static void connection_hurry(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

static void connection_begin(struct connection *c, enum phase phase, int fd, uint16_t port)
{
    *c = (struct connection){.phase = phase,
                             .fd = fd,
                             .port = port,
                             .may_send = TUNNEL_WINDOW,
                             .expected = TUNNEL_WINDOW,
                             .window = TUNNEL_WINDOW};
    if (fd >= 0)
        connection_hurry(fd);
}

static void connection_free(struct connections *all, struct connection *c)
{
    all->grown -= c->window - TUNNEL_WINDOW;
    queue_release(&c->queue);
    *c = (struct connection){.phase = FREE, .fd = -1};
    all->lacks_descriptors = false;
}

static void connection_reset(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

/* Closes the socket; why: with a reset, and the other end hears why. */
static void connection_close(struct connections *all, struct connection *c, const char *why)
{
    if (why && c->fd >= 0)
        connection_reset(c->fd);
    else if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    stream_send(all->stream, CLOSE, connection_number(all, c), why ? why : "", why ? strlen(why) : 0);
    if (c->is_cut_off)
        connection_free(all, c);
    else
        c->phase = LEAVING;
}

static void connection_fail(struct connections *all, struct connection *c, int errnum)
{
    connection_close(all, c, strerror(errnum));
}

/* Ends it when nothing more goes in either direction. */
static void connection_check_end(struct connections *all, struct connection *c)
{
    bool nothing_comes = c->is_cut_off || (c->has_ended && c->peer_has_ended);

    if (nothing_comes && queue_left(&c->queue) == 0)
        connection_close(all, c, NULL);
}

/* ---- the far end connects */

static int connect_here(struct connection *c, int family)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(c->port), .sin6_addr = in6addr_loopback};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(c->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    bool is_six = family == AF_INET6;

    c->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return errno;
    connection_hurry(c->fd);
    return connect(c->fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof(six) : sizeof(four)) < 0 ? errno : 0;
}

/* Takes the result of a connect(): a program that listens only at ::1 is found there. */
static void connection_come(struct connections *all, struct connection *c, int errnum)
{
    if (errnum == ECONNREFUSED && !c->tries_ipv6) {
        close(c->fd);
        c->tries_ipv6 = true;
        errnum = connect_here(c, AF_INET6);
        if (errnum != 0 && errnum != EINPROGRESS)
            errnum = ECONNREFUSED; /* as IPv4 said; there may be no IPv6 */
    }
    if (errnum == 0)
        c->phase = CARRIES;
    else if (errnum != EINPROGRESS)
        connection_fail(all, c, errnum);
}

static void connection_reach_service(struct connections *all, struct connection *c)
{
    const struct tunnel *t = all->tunnel;

    c->fd = t->service ? t->service(t->arg) : -ECONNREFUSED;
    if (c->fd < 0) {
        connection_fail(all, c, -c->fd);
        return;
    }
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->phase = CARRIES;
}

static int connection_open(struct connections *all, const struct tunnel_frame *frame, struct act_error *err)
{
    uint32_t number = frame->connection;

    if (connections_are_near(all) || (number < all->n && all->v[number].phase != FREE))
        return act_error_set(err, ACT_TEMPORARY, "the other end opened connection %u twice", number);
    while (all->n <= number)
        ACT_PUSH(all->v, all->n, (struct connection){.fd = -1});
    struct connection *c = &all->v[number];
    connection_begin(c, COMING, -1, (uint16_t)stream_number(frame));
    if (c->port == 0)
        connection_reach_service(all, c);
    else
        connection_come(all, c, connect_here(c, AF_INET));
    return 0;
}

/* ---- the near end accepts */

static size_t find_free(const struct connections *all)
{
    size_t i = 0;

    while (i < all->n && all->v[i].phase != FREE)
        i++;
    return i;
}

bool connections_have_room(const struct connections *all)
{
    return !all->lacks_descriptors && find_free(all) < TUNNEL_CONNECTIONS_MAX;
}

bool connections_accept(struct connections *all, const struct tunnel_port *port)
{
    size_t i = find_free(all);
    int fd = i < TUNNEL_CONNECTIONS_MAX ? accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

    if (fd < 0) {
        all->lacks_descriptors = errno == EMFILE || errno == ENFILE;
        return false;
    }
    if (!act_is_own_peer(fd)) {
        connection_reset(fd);
        if (all->tunnel->stranger)
            all->tunnel->stranger(all->tunnel->arg, port->port);
        return true;
    }
    if (i == all->n)
        ACT_PUSH(all->v, all->n, (struct connection){.fd = -1});
    connection_begin(&all->v[i], CARRIES, fd, port->port);
    stream_send_number(all->stream, OPEN, (uint32_t)i, port->port, 2);
    return true;
}

/* ---- data */

/* Reads what the other end takes. */
static void connection_read(struct connections *all, struct connection *c)
{
    static char chunk[TUNNEL_DATA_MAX];
    size_t most = c->may_send < sizeof(chunk) ? c->may_send : sizeof(chunk);
    ssize_t n = read(c->fd, chunk, most);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            connection_fail(all, c, errno);
        return;
    }
    if (n > 0) {
        c->may_send -= (uint32_t)n;
        stream_send(all->stream, DATA, connection_number(all, c), chunk, (size_t)n);
        return;
    }
    c->has_ended = true;
    stream_send(all->stream, END, connection_number(all, c), NULL, 0);
    connection_check_end(all, c);
}

/* Lets the other end send more: what the socket took and, if that takes all at once, so that only the link holds up the
 * other end, as much again. No connection gets more than a quarter of what all of them may still grow by. */
static void connection_widen(struct connections *all, struct connection *c)
{
    uint32_t more = c->consumed;

    if (c->peer_has_ended || c->is_cut_off || more < c->window / 2)
        return;
    if (queue_left(&c->queue) == 0 && c->window < TUNNEL_WINDOW_MAX &&
        c->window <= (TUNNEL_WINDOWS_MAX - all->grown) / 4) {
        all->grown += c->window;
        more += c->window;
        c->window *= 2;
    }
    c->expected += more;
    c->consumed = 0;
    stream_send_number(all->stream, WINDOW, connection_number(all, c), more, 4);
}

static void connection_write(struct connections *all, struct connection *c)
{
    ssize_t n = queue_write(&c->queue, c->fd);

    if (n < 0) {
        connection_fail(all, c, (int)-n);
        return;
    }
    c->consumed += (uint32_t)n;
    if (c->peer_has_ended && queue_left(&c->queue) == 0)
        shutdown(c->fd, SHUT_WR);
    connection_widen(all, c);
    connection_check_end(all, c);
}

/* ---- frames */

static int connection_take_data(struct connections *all, struct connection *c, const struct tunnel_frame *frame,
                                struct act_error *err)
{
    if (frame->len > c->expected || c->peer_has_ended)
        return act_error_set(err, ACT_TEMPORARY, "the other end sent more than it may");
    c->expected -= (uint32_t)frame->len;
    act_buf_add(&c->queue.bytes, frame->rest, frame->len);
    if (c->phase == CARRIES)
        connection_write(all, c);
    return 0;
}

static int connection_take_window(struct connection *c, uint32_t more, struct act_error *err)
{
    if (more > 2 * TUNNEL_WINDOW_MAX || c->may_send > 2 * TUNNEL_WINDOW_MAX)
        return act_error_set(err, ACT_TEMPORARY, "the other end opened a window that is too large");
    c->may_send += more;
    return 0;
}

/* The other end is over with it. */
static void connection_take_close(struct connections *all, struct connection *c, const struct tunnel_frame *frame)
{
    ACT_AUTOFREE char *why = act_one_line(frame->rest, frame->len);

    bool is_new = c->phase == CARRIES && c->window == TUNNEL_WINDOW && c->expected == TUNNEL_WINDOW;

    if (frame->len > 0 && is_new && connections_are_near(all) && all->tunnel->refused)
        all->tunnel->refused(all->tunnel->arg, c->port, why);
    c->is_cut_off = true;
    if (c->phase == LEAVING)
        connection_free(all, c);
    else if (frame->len > 0)
        connection_close(all, c, why);
    else
        connection_check_end(all, c);
}

int connections_take(struct connections *all, const struct tunnel_frame *frame, struct act_error *err)
{
    struct connection *c = frame->connection < all->n ? &all->v[frame->connection] : NULL;

    if (frame->kind == OPEN)
        return connection_open(all, frame, err);
    if (!c || c->phase == FREE || c->is_cut_off)
        return act_error_set(err, ACT_TEMPORARY, "the other end speaks of connection %u, which is not there",
                             frame->connection);
    if (frame->kind == CLOSE)
        connection_take_close(all, c, frame);
    else if (c->phase == LEAVING)
        return 0; /* it has not yet heard that nobody reads this */
    else if (frame->kind == DATA)
        return connection_take_data(all, c, frame, err);
    else if (frame->kind == WINDOW)
        return connection_take_window(c, stream_number(frame), err);
    else if (frame->kind == END) {
        c->peer_has_ended = true;
        if (c->phase == CARRIES)
            connection_write(all, c);
    }
    return 0;
}

/* ---- poll() */

short connection_events(const struct connections *all, const struct connection *c)
{
    bool reads = c->phase == CARRIES && !c->has_ended && c->may_send > 0 && !stream_is_full(all->stream);
    bool writes = c->phase == COMING || (c->phase == CARRIES && queue_left(&c->queue) > 0);

    return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

static int socket_error(int fd)
{
    socklen_t len = sizeof(int);
    int errnum = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0 ? errno : errnum;
}

void connection_serve(struct connections *all, size_t i, short revents)
{
    struct connection *c = &all->v[i];

    if (c->phase == COMING && revents) {
        connection_come(all, c, socket_error(c->fd));
        if (c->phase != CARRIES)
            return;
        revents = POLLOUT;
    }
    if (c->phase == CARRIES && revents & POLLOUT)
        connection_write(all, c);
    if (c->phase == CARRIES && revents & (POLLIN | POLLHUP | POLLERR) && connection_events(all, c) & POLLIN)
        connection_read(all, c);
    else if (c->phase == CARRIES && revents & POLLERR)
        connection_fail(all, c, socket_error(c->fd));
}

void connections_release(struct connections *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct connection *c = &all->v[i];
        if (c->fd >= 0)
            connection_reset(c->fd);
        queue_release(&c->queue);
    }
    free(all->v);
}
