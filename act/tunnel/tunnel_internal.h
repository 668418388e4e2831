/* tunnel_internal.h - what the files of the tunnel share.
 *
 *   tunnel.c       the loop
 *   stream.c       the hello, frames, silence
 *   connection.c   one connection: its socket, its window, its end
 */
#ifndef ACT_TUNNEL_TUNNEL_INTERNAL_H
#define ACT_TUNNEL_TUNNEL_INTERNAL_H

#include <stdbool.h>

#include "base/text.h"
#include "tunnel/tunnel.h"

/* Bytes that wait to be written. */
struct tunnel_queue {
    struct act_buf bytes;
    size_t taken; /* of its beginning */
};
size_t queue_left(const struct tunnel_queue *q);
/* Writes what fd takes without waiting. Returns how much, or a negative errno. */
ssize_t queue_write(struct tunnel_queue *q, int fd);
void queue_release(struct tunnel_queue *q);

/* ---- stream.c */

enum kind { OPEN = 'O', DATA = 'D', WINDOW = 'W', END = 'E', CLOSE = 'C', PING = 'P', ANSWER = 'A' };

struct tunnel_frame {
    enum kind kind;
    uint32_t connection;
    const char *rest; /* in the buffer of the stream, until the next read */
    size_t len;
};

struct stream {
    int in, out;
    struct tunnel_queue got;   /* bytes that came */
    size_t handed;             /* of these: the frame that was taken last */
    struct tunnel_queue queue; /* frames to be sent */
    bool is_ours;              /* the hello has come */
    int64_t heard_ms, asked_ms;
};

void stream_begin(struct stream *s, int in, int out);
void stream_release(struct stream *s);
/* Reads what is there. Returns 1; 0: the stream has ended; or an error. */
int stream_fill(struct stream *s, struct act_error *err);
/* Takes the next frame: 1; 0: none is complete; or an error: this is not our protocol. */
int stream_take(struct stream *s, struct tunnel_frame *out, struct act_error *err);
void stream_send(struct stream *s, enum kind kind, uint32_t connection, const void *rest, size_t len);
void stream_send_number(struct stream *s, enum kind kind, uint32_t connection, uint32_t number, size_t bytes);
uint32_t stream_number(const struct tunnel_frame *frame); /* of its 2 or 4 bytes */
/* Tells whether no more data is to be read from sockets until the stream has taken some. */
bool stream_is_full(const struct stream *s);

/* ---- connection.c */

enum phase {
    FREE,
    COMING, /* the far end's connect() is under way */
    CARRIES,
    LEAVING, /* the socket is closed, and the other end knows; it has not said that it does */
};

struct connection {
    enum phase phase;
    int fd; /* -1: closed */
    uint16_t port;
    struct tunnel_queue queue;      /* for the socket */
    uint32_t may_send;              /* bytes that the other end takes */
    uint32_t expected;              /* bytes that the other end may send */
    uint32_t window;                /* what expected begins with */
    uint32_t consumed;              /* bytes that the socket took since the other end heard of it */
    bool has_ended, peer_has_ended; /* nothing more comes from the socket, from the other end */
    bool is_cut_off;                /* the other end is over with it: what is queued is the last */
    bool tries_ipv6;
};

struct connections {
    struct connection *v;
    size_t n;               /* slots, some of which are free */
    size_t grown;           /* by how much all windows together have grown */
    bool lacks_descriptors; /* no socket could be accepted; until one is closed */
    struct stream *stream;
    const struct tunnel *tunnel;
};

bool connections_have_room(const struct connections *all);
/* Accepts one connection for a port. False: there is none, or no room. */
bool connections_accept(struct connections *all, const struct tunnel_port *port);
/* Does what a frame says, or sets the error: no such frame is allowed now. */
int connections_take(struct connections *all, const struct tunnel_frame *frame, struct act_error *err);
/* The events of poll() that a connection waits for. */
short connection_events(const struct connections *all, const struct connection *c);
void connection_serve(struct connections *all, size_t i, short revents);
void connections_release(struct connections *all);

#endif
