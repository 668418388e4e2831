/* exchange.h - requests to the other side of a connection and their responses: one after the other, or several that
 * are sent before the first of them is waited for.
 *
 * The other side carries out requests in the order in which they come, and answers in that order. What is asked ahead
 * is remembered by its content: whoever makes the same request later takes the response to the first one.
 */
#ifndef ACT_SITE_EXCHANGE_H
#define ACT_SITE_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "site/frame.h"
#include "site/site.h"
#include "site/ssh.h"

struct wire_asked;
struct wire_package;

struct wire {
    struct ssh ssh; /* login NULL: the connection was given, and cannot be made again */
    struct channel channel;
    bool in_login_shell;
    int ahead;                /* above 0: requests are only sent */
    uint64_t session;         /* how often that has begun */
    struct wire_asked *asked; /* ahead, in order, until somebody takes the response */
    size_t n_asked;
    uint64_t n_sent;              /* requests */
    uint64_t n_awaited;           /* of them were sent when a response was waited for the last time */
    struct act_buf said;          /* the names of those since then, for the trace */
    struct site_news *news;       /* who is told what is new; NULL: nobody */
    struct wire_package *package; /* the last one that was to be brought; NULL: none */
};

bool wire_is_open(const struct wire *w);
/* Ends the connection, and drops what was asked ahead. */
void wire_disconnect(struct wire *w);
/* Connects if necessary. */
int wire_connect(struct site *site, struct act_error *err) ACT_NODISCARD;
/* Takes the root from what the other side says first, unasked. */
int wire_greet(struct site *site, struct act_error *err) ACT_NODISCARD;

struct file_range {
    uint64_t offset, len;
};
/* A request, followed by a file or ranges of it if there is one, and its response. */
struct exchange {
    json_t *request;                      /* wire_call_send() takes the reference */
    struct frame_part parts[FRAME_PARTS]; /* n_parts of them; what they name lives as long as this */
    size_t n_parts;
    const char *file;
    const struct file_range *ranges;
    size_t n_ranges;
    bool has_several; /* responses: it is not sent ahead */
    size_t max_response;
    int timeout_s; /* 0: two minutes */
    struct frame response;
    uint64_t number;    /* of the request */
    bool is_from_ahead; /* it was sent before */
};
void exchange_release(struct exchange *x);

/* Connects if necessary, sends the request, and waits for its response: the error of the other side, if it failed.
 * While requests are sent ahead it is -ACT_INTERRUPTED. err may be NULL. */
int wire_call(struct site *site, struct exchange *x, struct act_error *err) ACT_NODISCARD;
/* Do the two halves of that, for a request with several responses. */
int wire_call_send(struct site *site, struct exchange *x, struct act_error *err) ACT_NODISCARD;
int wire_call_receive(struct wire *w, struct exchange *x, struct act_error *err) ACT_NODISCARD;

enum wire_answer { WIRE_NOT_ASKED, WIRE_NOT_YET, WIRE_HAS_COME };
/* Tells whether the same request was sent ahead, and if so whether its response can be taken without a wait. Responses
 * that are there before it are read; a connection that breaks over them has been asked nothing. */
enum wire_answer wire_answer_of(struct wire *w, const struct exchange *x);

/* news.c: nobody is told any more. */
void wire_lose_news(struct wire *w);

/* wire.c: takes the list of files of a response, with their ends. */
int wire_take_files(const struct frame *response, struct site_files *out, struct act_error *err) ACT_NODISCARD;

/* Drops what was asked ahead and nobody has taken: its responses are passed over. */
void wire_drop_ahead(struct wire *w);

#endif
