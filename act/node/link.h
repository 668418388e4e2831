/* link.h - the connections between the supervisor of a run and the agents of its ranks.
 *
 * On one machine the supervisor listens on a Unix socket in the run's folder, for processes of its user and of root.
 * Else it listens on TCP towards the nodes. A rank finds the run's token and the address in its environment
 * (LINK_ENV). A message is a JSON object in one line of at most LINK_LINE_MAX bytes.
 *
 *   supervisor -> rank   {"type": "challenge", "nonce": S}               the first line
 *   rank -> supervisor   {"type": "hello", "nonce": R, "proof": P, "rank", "node", "pid"}
 *   supervisor -> rank   {"type": "accepted", "proof": P, "stop": bool}  only to those who know the token
 *   then                 see ranks.c
 *
 * The token is never sent: a proof is an HMAC of both nonces (link_internal.h). A peer that has not proved within
 * LINK_STRANGER_MS that it knows the token is disconnected, and if there are too many of them, the oldest goes first.
 * When a connection breaks, the other side is gone: a process that dies closes it, and a machine that vanishes is
 * noticed within a minute (keep-alive, TCP_USER_TIMEOUT).
 */
#ifndef ACT_NODE_LINK_H
#define ACT_NODE_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define LINK_ENV "ACT_LINK"

enum { LINK_LINE_MAX = 128 * 1024, LINK_STRANGER_MS = 1000, LINK_STRANGERS_MORE = 512 };

/* ---- one end of a connection ---- */

struct link {
    int fd; /* -1: none */
    struct act_buf in, out;
    size_t taken; /* bytes of in that were handed out */
};

/* Takes the next whole message from the received bytes: 1 with a new reference; 0: it is not complete yet; -1: this
 * is not our protocol (not a JSON object, or too long a line). */
int link_take(struct link *l, json_t **out);
/* Reads without waiting. False: the connection has ended; errno says why, 0 for a normal end. */
bool link_fill(struct link *l);
/* Sends a message, or keeps what the network does not take at once for link_flush(). False: the connection is
 * broken. */
bool link_send(struct link *l, const json_t *message);
bool link_flush(struct link *l);
/* Waits until all is sent; false when it could not be. */
bool link_drain(struct link *l, int timeout_ms);
/* Lets the other side read everything that was sent, waits at most timeout_ms for it to hang up, and closes. */
void link_finish(struct link *l, int timeout_ms);
void link_close(struct link *l);

/* ---- the rank's side ---- */

/* Connects to the supervisor that the environment names, tries all its addresses for some seconds, says hello and is
 * accepted. hello, which names the rank, gets the proof. *out_stop: the ranks are being stopped already. Removes
 * LINK_ENV from the environment. Messages that came right behind the acceptance are still to be read from l->fd. */
int link_connect(struct link *l, json_t *hello, bool *out_stop, struct act_error *err) ACT_NODISCARD;

/* Does the same, but tries each address of the target once: "<token> tcp <port> <address> <address> ...", the form of
 * link_address(). */
int link_connect_once(struct link *l, const char *target, json_t *hello, bool *out_stop,
                      struct act_error *err) ACT_NODISCARD;

/* An address that is tried. */
struct link_probe {
    const char *address;
    uint16_t port;
    size_t of;  /* whose address it is */
    int errnum; /* 0: it accepts connections; else why it does not */
};
/* Finds out which addresses accept connections, at the same time, so that those which do not answer cost a few seconds
 * together. Sets errnum of each. Those of one peer stand together; once the first of these that can be had is known,
 * nothing waits for the rest. */
void link_probe(struct link_probe *probes, size_t n);

/* ---- the supervisor's side ---- */

struct link_server;

/* The events on the connections of a server. */
struct link_events {
    /* A rank that knows the token has connected. False: it is rejected (the rank is connected already). */
    bool (*hello)(void *arg, int rank, const json_t *message);
    void (*message)(void *arg, int rank, const json_t *message);
    /* Its connection has ended; errnum 0: closed by the other side. */
    void (*gone)(void *arg, int rank, int errnum);
};

/* The place of the ranks. */
struct link_where {
    const char *dir; /* the run's folder, if all ranks are on this machine; NULL: there are several nodes */
    const struct act_strv *hosts; /* the names of all nodes; NULL: not known */
    uint16_t port;                /* with several nodes; 0: any that is free */
    const char *token;            /* 64 hex digits; NULL: a new one */
};

/* Listens for ranks 0 to n_ranks - 1. On one machine: a Unix socket, or a loopback port if the file system does not
 * support sockets. With several nodes: a free port on this machine's source addresses for the routes to the hosts (on
 * all its addresses if a host cannot be resolved), and on the loopback. */
int link_listen(int n_ranks, const struct link_where *where, const struct link_events *events, void *arg,
                struct link_server **out, struct act_error *err) ACT_NODISCARD;
/* Returns the value of LINK_ENV for the ranks. Lives as long as the server. */
const char *link_address(const struct link_server *s);
/* Returns a descriptor that becomes readable when there is something for link_serve(), including a stranger's expired
 * time limit. */
int link_fd(const struct link_server *s);
/* Handles pending events, without waiting. */
void link_serve(struct link_server *s);
/* Sends a message to one rank, to all connected ranks; to nobody if the rank is not connected or does not
 * exist. While stopping, new ranks learn it from their acceptance. */
void link_tell(struct link_server *s, int rank, const json_t *message);
void link_tell_all(struct link_server *s, const json_t *message);
void link_set_stopping(struct link_server *s);
int link_connected(const struct link_server *s); /* how many ranks */
/* Disconnects all ranks, which then count as gone with ETIMEDOUT; those still alive end themselves. */
void link_cut(struct link_server *s);
void link_server_free(struct link_server *s);

#endif
