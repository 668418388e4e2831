/* tunnel.h - TCP connections between two machines over one stream of bytes, which may be the input and output of a
 * command there. The near end accepts connections; the far end connects each to a port of its own loopback interface.
 *
 * Each end begins with TUNNEL_HELLO; what a login shell prints before it is skipped. Then come frames: a byte that says
 * the kind, the number of the connection and the length of the rest (4 bytes each, big-endian), the rest:
 *
 *   'O' open     the port (2 bytes), 0: that of the service; only from the near end
 *   'D' data     bytes, at most TUNNEL_DATA_MAX and no more than the window allows, which begins with TUNNEL_WINDOW
 *   'W' window   how many more bytes the other end may send (4 bytes)
 *   'E' end      nothing more comes in this direction
 *   'C' close    the connection is over; text: why, empty after a normal end. Each end sends it once, then the number
 *                is free
 *   'P' ping, 'A' its answer: the connection is 0
 *
 * A window doubles as long as its reader keeps up, so that the link, however long it is, does not hold up the sender. A
 * reader that stalls holds up only itself, and what is kept for all of them is bounded.
 */
#ifndef ACT_TUNNEL_TUNNEL_H
#define ACT_TUNNEL_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TUNNEL_HELLO "act-tunnel 1\n"

enum {
    TUNNEL_DATA_MAX = 64 * 1024,
    TUNNEL_WINDOW = 64 * 1024,
    TUNNEL_WINDOW_MAX = 8 * 1024 * 1024,
    TUNNEL_WINDOWS_MAX = 64 * 1024 * 1024, /* by which all of them together may grow */
    TUNNEL_CONNECTIONS_MAX = 4096,
};

/* A socket that listens here, and the port that its connections lead to. */
struct tunnel_port {
    int fd;
    uint16_t port;
};

struct tunnel {
    int in, out;                     /* the stream; they become non-blocking, and stay the caller's */
    const struct tunnel_port *ports; /* of the near end */
    size_t n_ports;                  /* 0: this is the far end */
    int64_t silence_ms;              /* of the near end: a stream that is silent for so long, although it was asked,
                                      * is broken */
    bool (*stops)(void *arg);        /* asked at least each second, and after a signal: ends the tunnel; may be NULL */
    void (*ready)(void *arg);        /* the other end has said hello; may be NULL */
    void (*stranger)(void *arg, uint16_t port);                 /* act_is_own_peer() says no; may be NULL */
    void (*refused)(void *arg, uint16_t port, const char *why); /* may be NULL */
    int (*service)(void *arg); /* of the far end: returns a connected socket, the caller's, for port 0, or a negative
                                * errno; may be NULL */
    void *arg;
};

/* Carries connections until the stream ends: 0, or -ACT_INTERRUPTED when it was stopped. -ACT_TEMPORARY: it is broken,
 * or not our protocol; then err says what came instead of the hello. Connections that are open are reset. SIGPIPE must
 * be ignored. */
int tunnel_run(const struct tunnel *tunnel, struct act_error *err) ACT_NODISCARD;

#endif
