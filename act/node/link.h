/* link.h - the TCP connections between the supervisor of a run and the agents of its ranks.
 *
 * The supervisor listens; a rank finds in its environment (LINK_ENV) the port, the token of the run and the addresses
 * of the supervisor's machine. A message is a JSON object in one line of at most LINK_LINE_MAX bytes.
 *   rank -> supervisor   {"type": "hello", "token": T, "rank", "node", "pid"}   the first line
 *   supervisor -> rank   {"type": "accepted", "token": T, "stop": bool}         only to those who know the token
 *   then                 see ranks.h
 * When a connection breaks, the other side is gone: a process that dies closes it, and a machine that vanishes
 * is noticed within a minute (keep-alive, TCP_USER_TIMEOUT).
 */
#ifndef ACT_NODE_LINK_H
#define ACT_NODE_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define LINK_ENV "ACT_LINK"

enum { LINK_LINE_MAX = 128 * 1024, LINK_TOKEN_BYTES = 16, LINK_TOKEN_TEXT = 2 * LINK_TOKEN_BYTES + 1 };

/* ---- one end of a connection ---- */

struct link {
    int fd; /* -1: none */
    struct act_buf in, out;
    size_t taken; /* bytes of in that were handed out */
};

/* Takes the next whole message out of what has arrived: 1 with a new reference; 0: it is not complete yet; -1: this
 * is not our protocol (no JSON object, or too long a line). */
int link_take(struct link *l, json_t **out);
/* Reads what is there without waiting. False: the connection is at its end; errno tells why, 0 for a plain end. */
bool link_fill(struct link *l);
/* Sends a message, or keeps what the network does not take at once for link_flush(). False: broken. */
bool link_send(struct link *l, const json_t *message);
bool link_flush(struct link *l);
/* Waits until all is sent; false when it could not be. */
bool link_drain(struct link *l, int timeout_ms);
/* Lets the other side read all that was sent, waits for it to hang up, at most timeout_ms, and closes. */
void link_finish(struct link *l, int timeout_ms);
void link_close(struct link *l);

/* ---- the rank's side ---- */

/* Connects to the supervisor that the environment names, tries all its addresses for some seconds, says hello and is accepted. hello gets the
 * token. *out_stop: the ranks are being stopped already. Removes LINK_ENV from the environment. */
int link_connect(struct link *l, json_t *hello, bool *out_stop, struct act_error *err) ACT_NODISCARD;

/* ---- the supervisor's side ---- */

struct link_server;

/* What happens on the connections of a server. */
struct link_events {
    /* A rank that knows the token has connected. False: it is not wanted (there is one of that rank already). */
    bool (*hello)(void *arg, int rank, const json_t *message);
    void (*message)(void *arg, int rank, const json_t *message);
    /* Its connection is at its end; errnum 0: closed by the other side. */
    void (*gone)(void *arg, int rank, int errnum);
};

/* Listens on a free port: of the loopback when everybody is on this machine, else of all addresses, for ranks 0 to
 * n_ranks - 1. */
int link_listen(int n_ranks, bool here_only, const struct link_events *events, void *arg,
                struct link_server **out, struct act_error *err) ACT_NODISCARD;
/* The value of LINK_ENV for the ranks. Lives as long as the server. */
const char *link_address(const struct link_server *s);
/* A descriptor that becomes readable when there is something for link_serve(). */
int link_fd(const struct link_server *s);
/* Handles what has happened, without waiting. */
void link_serve(struct link_server *s);
/* To one rank, to all that are connected. New ones are told in their acceptance when stopping. */
void link_tell(struct link_server *s, int rank, const json_t *message);
void link_tell_all(struct link_server *s, const json_t *message);
void link_set_stopping(struct link_server *s);
int link_connected(const struct link_server *s); /* how many ranks */
/* Hangs up on all ranks, which are gone then with ETIMEDOUT; those who are still there end everything. */
void link_cut(struct link_server *s);
void link_server_free(struct link_server *s);

#endif
