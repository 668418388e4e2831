/* tunnel.c - the loop of one end. */
#include "tunnel/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tunnel/tunnel_internal.h"

enum { ACCEPTS = 16, FRAMES = 256, TURN_MS = 1000, OTHER_FILES = 64 };

/* The order in which poll() is given descriptors: these, the ports, the connections. */
enum { AT_IN, AT_OUT, AT_PORTS };

struct tunnel_end {
    const struct tunnel *tunnel;
    struct stream stream;
    struct connections connections;
    struct pollfd *fds;
    size_t n_fds;
    bool was_ready; /* the other end's hello was reported */
};

static void end_look(struct tunnel_end *e, int fd, short events)
{
    ACT_PUSH(e->fds, e->n_fds, (struct pollfd){.fd = events ? fd : -1, .events = events});
}

/* How long nothing need be done without an event; -1: for ever. */
static int end_patience_ms(const struct tunnel *t)
{
    if (t->n_ports > 0 && t->silence_ms / 3 < TURN_MS)
        return (int)(t->silence_ms / 3);
    return t->n_ports > 0 || t->stops ? TURN_MS : -1;
}

/* Waits until something is to be done. */
static void end_poll(struct tunnel_end *e)
{
    const struct tunnel *t = e->tunnel;
    bool accepts = e->stream.is_ours && !stream_is_full(&e->stream) && connections_have_room(&e->connections);

    e->n_fds = 0;
    end_look(e, t->in, POLLIN);
    end_look(e, t->out, queue_left(&e->stream.queue) ? POLLOUT : 0);
    for (size_t i = 0; i < t->n_ports; i++)
        end_look(e, t->ports[i].fd, accepts ? POLLIN : 0);
    for (size_t i = 0; i < e->connections.n; i++)
        end_look(e, e->connections.v[i].fd, connection_events(&e->connections, &e->connections.v[i]));
    if (poll(e->fds, e->n_fds, end_patience_ms(t)) < 0)
        for (size_t i = 0; i < e->n_fds; i++)
            e->fds[i].revents = 0;
}

/* ---- the stream */

/* The near end asks whether the other one is still there. It gives up only where it has asked: after a sleep of this
 * machine nothing was heard for long, and nobody was asked. */
static int check_silence(struct tunnel_end *e, struct act_error *err)
{
    int64_t third_ms = e->tunnel->silence_ms / 3, now = act_now_monotonic_ms(), silent_ms = now - e->stream.heard_ms,
            waits_ms = now - e->stream.asked_ms;
    bool has_asked = e->stream.asked_ms > e->stream.heard_ms;

    if (e->tunnel->n_ports == 0 || !e->stream.is_ours || silent_ms <= third_ms || (has_asked && waits_ms <= third_ms))
        return 0;
    if (has_asked && silent_ms > e->tunnel->silence_ms)
        return act_error_set(err, ACT_TEMPORARY, "the other end has been silent for %d s", (int)(silent_ms / 1000));
    e->stream.asked_ms = now;
    stream_send(&e->stream, PING, 0, NULL, 0);
    return 0;
}

static int end_take(struct tunnel_end *e, const struct tunnel_frame *frame, struct act_error *err)
{
    if (frame->kind == PING && !stream_is_full(&e->stream)) /* else it does not read answers */
        stream_send(&e->stream, ANSWER, 0, NULL, 0);
    if (frame->kind == PING || frame->kind == ANSWER)
        return 0;
    return connections_take(&e->connections, frame, err);
}

static int end_take_all(struct tunnel_end *e, struct act_error *err)
{
    struct tunnel_frame frame;
    int rc;

    while ((rc = stream_take(&e->stream, &frame, err)) > 0) {
        rc = end_take(e, &frame, err);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && e->stream.is_ours && !e->was_ready && e->tunnel->ready)
        e->tunnel->ready(e->tunnel->arg);
    e->was_ready = e->stream.is_ours;
    return rc;
}

/* The stream ended before its hello: what came says why. */
static int ended_early(const struct tunnel_end *e, struct act_error *err)
{
    const struct act_buf *got = &e->stream.got.bytes;
    ACT_AUTOFREE char *said = act_one_line(got->len ? got->data : "", got->len);

    return act_error_set(err, ACT_TEMPORARY, "the other end did not begin%s%.200s", *said ? ": " : "", said);
}

/* Returns 1; 0: the stream has ended; or an error. */
static int end_serve_stream(struct tunnel_end *e, struct act_error *err)
{
    int rc = 1;

    if (e->fds[AT_IN].revents)
        rc = stream_fill(&e->stream, err);
    if (rc == 0)
        return e->stream.is_ours ? 0 : ended_early(e, err);
    if (rc > 0)
        rc = end_take_all(e, err);
    return rc < 0 ? rc : 1;
}

/* ---- a turn */

static void serve_sockets(struct tunnel_end *e)
{
    const struct tunnel *t = e->tunnel;
    size_t first = AT_PORTS + t->n_ports, n = e->n_fds - first;

    for (size_t i = 0; i < n; i++)
        if (e->fds[first + i].revents)
            connection_serve(&e->connections, i, e->fds[first + i].revents);
    for (size_t i = 0; i < t->n_ports; i++)
        for (int k = 0; e->fds[AT_PORTS + i].revents && k < ACCEPTS; k++)
            if (!connections_accept(&e->connections, &t->ports[i]))
                break;
}

/* Returns 1; 0: the stream has ended; or an error. */
static int end_turn(struct tunnel_end *e, struct act_error *err)
{
    end_poll(e);
    if (e->tunnel->stops && e->tunnel->stops(e->tunnel->arg))
        return act_error_set(err, ACT_INTERRUPTED, "interrupted");
    serve_sockets(e); /* before frames, which may give the number of one that has ended to another */
    int rc = end_serve_stream(e, err);
    if (rc > 0 && check_silence(e, err) < 0)
        rc = -(int)err->code;
    if (rc > 0 && queue_write(&e->stream.queue, e->tunnel->out) < 0)
        rc = e->stream.is_ours ? 0 : ended_early(e, err);
    return rc;
}

int tunnel_run(const struct tunnel *tunnel, struct act_error *err)
{
    struct tunnel_end e = {.tunnel = tunnel, .connections = {.tunnel = tunnel}};
    int rc;

    (void)act_allow_files(TUNNEL_CONNECTIONS_MAX + OTHER_FILES); /* each connection has a descriptor */
    e.connections.stream = &e.stream;
    stream_begin(&e.stream, tunnel->in, tunnel->out);
    while ((rc = end_turn(&e, err)) > 0)
        ;
    connections_release(&e.connections);
    stream_release(&e.stream);
    free(e.fds);
    return rc;
}
