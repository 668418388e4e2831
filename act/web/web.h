/* web.h - pages for the browser of this user: a server of HTTP/1.1 (RFC 9110, RFC 9112) on the loopback interface.
 *
 * It answers GET and HEAD and nothing else, takes no body, and closes each connection after its answer: the usual
 * faults of servers, in lengths, chunks and a second request behind the first, do not exist here.
 *
 * Who may ask: any user and any program of the machine reaches a port of it, and so do pages from elsewhere in the
 * user's browser. So a path begins with a key of 128 random bits, which is compared in constant time and stays in the
 * links, as all of them are relative. It is no cookie: browsers send those to every port of a host, also to that of
 * another user, and with requests that others caused. No answer lets it out (Referrer-Policy). The Host must be a name
 * of this machine, so that no name that leads here can be used by pages of its owner ("DNS rebinding").
 *
 * What it may cost: so many connections, each with a head of so many bytes and with so much time. When there are too
 * many, the one goes first that has waited longest without having shown the key. Everything is on the engine's thread.
 */
#ifndef ACT_WEB_WEB_H
#define ACT_WEB_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct engine;
struct web;
struct web_visit; /* a request, until it is answered */

struct web_options {
    struct engine *engine;
    int port; /* 0: any that is free */
    /* A request with the right key, for the path behind it and its query: "run", "id=60ce"; both printable ASCII, and
     * gone after the call. web_answer() comes now or later, once. */
    void (*visit)(void *arg, struct web_visit *visit, const char *path, const char *query);
    void *arg;
};

/* Opens a server; a port that is taken is -ACT_USAGE. From then on engine_run() has something to do. */
int web_open(const struct web_options *options, struct web **out, struct act_error *err) ACT_NODISCARD;
/* Returns "http://127.0.0.1:PORT/KEY/"; whoever has it sees everything. */
const char *web_url(const struct web *web);
/* Ends all connections, also of visits that are not answered; web may be NULL. */
void web_close(struct web *web);

/* The body of many answers; it is freed when nobody holds it. */
struct web_body;
/* Makes a body of text, which is empty afterwards. The caller holds it. */
struct web_body *web_body_new(struct act_buf *text);
void web_body_drop(struct web_body *body); /* NULL is fine */

struct web_answer {
    int status;            /* 200, 202, 400, 403, 404, 500, 502, 503 */
    const char *type;      /* of the body, which is text: "application/json"; NULL: "text/html" */
    const char *policy;    /* the Content-Security-Policy; NULL: one that allows nothing, as of what is no page */
    int refresh_s;         /* the browser is to ask again after so long; 0: it is not */
    struct web_body *body; /* UTF-8; the caller goes on holding it */
};
void web_answer(struct web_visit *visit, const struct web_answer *answer);

/* A file that a browser is to keep, and never to show. Its bytes come from a pipe as quickly as the client takes them,
 * and are nowhere in memory together. */
struct web_file {
    const char *name;         /* for the copy; any bytes */
    uint64_t size;            /* bytes; if fewer come, the client sees that some are missing */
    int fd;                   /* the caller's, which does not wait; until ended() */
    void (*ended)(void *arg); /* called once, also by web_close(): nothing more is read */
    void *arg;
};
void web_send_file(struct web_visit *visit, const struct web_file *file);

/* Returns the nth value (from 0) of a name in a query, as forms write it (application/x-www-form-urlencoded), a new
 * string; NULL: there is none. */
char *web_param(const char *query, const char *name, size_t nth);
/* Tells whether a query has only these names, which end with NULL. */
bool web_params_are(const char *query, const char *const *names);

#endif
