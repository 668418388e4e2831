/* websocket.h - messages both ways on one connection, by WebSocket (RFC 6455), as a client.
 *
 * The connection is libcurl's (CURLOPT_CONNECT_ONLY), with its TLS, proxies and names; the protocol is spoken here.
 * That of libcurl itself is an option which few builds of it have, and its functions, an experiment up to 8.11, make
 * the socket a blocking one.
 *
 * A server that has said nothing for the time after which a request counts as stalled (ACT_STALL_TIMEOUT) gets a ping,
 * and counts as gone when it says nothing for as long again (RFC 6455, 5.5.2 and 5.5.3: it must answer). This waits for
 * a server that may be busy with what it was sent, as while a command does not read its input.
 *
 * All runs on the loop of http. Source: RFC 6455 sections 4 and 5.
 */
#ifndef ACT_HTTP_WEBSOCKET_H
#define ACT_HTTP_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

/* The caller sets what it wants, leaves the rest 0, keeps it until done was called, and releases it then. */
struct http_websocket {
    /* in: its url (http or https), headers, tls, direct and what. Out: its rc, error, status, response_headers and,
     * when the server refused the protocol, body_text. */
    struct http_call *call;
    const char *protocols; /* "v2, v1": what to speak on it, the best first; not copied */
    /* The server agreed to speak the protocol. */
    void (*opened)(struct http_websocket *ws);
    /* Gets a whole message, which is valid during the call. It may send and cancel. */
    void (*message)(struct http_websocket *ws, const char *data, size_t len);
    /* All that was sent is on its way: a good moment for more. */
    void (*drained)(struct http_websocket *ws);
    /* On the loop, exactly once. rc 0: the server closed it, or refused it with call->status (101: it did not). Else
     * call->error: -ACT_INTERRUPTED: it was cancelled. */
    void (*done)(struct http_websocket *ws);
    void *arg;

    const char *protocol; /* "": the server named none */
    struct http *http;
    bool is_open, is_over; /* over: nothing more is read or sent */
    int rc;
    struct act_error why;
    char key[25];
    struct act_buf in, part, queued, sending; /* part: the message whose last frame has not come */
    size_t sent;                              /* of sending */
    bool in_parts;                            /* a message has begun whose last frame has not come */
    bool waits_to_send;
    struct http_websocket_pulse {
        struct http_websocket *ws;
        bool heard, asked;     /* since the last beat; and there is a ping without an answer */
        size_t unread, before; /* bytes that the server may not have read yet; of these, those before the ping */
    } pulse;
};
/* Starts ws on the loop of http. */
void http_websocket_start(struct http *http, struct http_websocket *ws);
/* Sends len bytes, which it copies, as one message. */
void http_websocket_send(struct http_websocket *ws, const void *data, size_t len);
/* Returns how many bytes still wait to be sent. */
size_t http_websocket_unsent(const struct http_websocket *ws);
/* Ends it: done comes later, from the loop. */
void http_websocket_cancel(struct http_websocket *ws);
/* Releases all but ws->call. */
void http_websocket_release(struct http_websocket *ws);

#endif
