/* http_internal.h - for the files of http/ only. */
#ifndef ACT_HTTP_HTTP_INTERNAL_H
#define ACT_HTTP_HTTP_INTERNAL_H

#include "base/hash.h"
#include "engine/engine.h"
#include "http/bucket.h"
#include "http/http.h"
#include "http/pace.h"

struct http {
    struct engine *engine;
    struct http_options options; /* complete: defaults and environment applied */
    char *ca_file;
    CURLSH *share;            /* TLS sessions */
    struct http_handle *idle; /* handles to use again */
    struct http_peer *peers;  /* all peers ever contacted */
    struct http_origin *origins;
    bool pump_soon;           /* a timer will start the waiting tries */
    struct http_limit *limit; /* NULL: none */
};

/* Returns the file of trusted certificates: the user's, or this distribution's. NULL: there is none. */
const char *http_ca_file(void);

/* Tells whether a 2xx body is passed to the caller as it arrives. */
static inline bool http_has_sink(const struct http_call *call)
{
    return call->sink || call->take;
}

/* A host and port. */
struct http_peer {
    struct http *http;
    char *name;      /* "host:port" */
    bool local;      /* never through a proxy */
    bool answered;   /* ever */
    int64_t well_ms; /* when it last answered properly; -1: never */
    struct pace pace;
    int under_way;
    struct http_try *first, **end; /* waiting tries, in order */
    bool hold_timer;               /* a timer will start what waits when the pause is over */
    struct http_peer *next;
};

/* One call under way; lives from http_start() to done. */
struct http_try {
    struct http *http;
    struct http_call *call;
    struct http_peer *peer;     /* NULL: the URL names none */
    struct http_handle *handle; /* while it is sent */
    char *url;                  /* as given; sign() may replace that of the call for one try */
    int64_t started_ms;         /* this try */
    int64_t failed_ms;          /* when the first try had failed; 0: none has */
    int64_t told_ms;            /* when the user was told of a wait; 0: never */
    int free_tries;             /* those of call->tries that used up no retry */
    bool fresh;                 /* to be sent on a new connection: the old one was dead */
    bool cancelled;
    struct http_try *next; /* in peer->first */
};

/* An easy handle and what belongs to one use of it. Settings stay from use to use. */
struct http_handle {
    CURL *easy;
    struct http *http;
    struct http_try *t;
    struct http_handle *next; /* in http->idle */
    struct curl_slist *lines; /* the request's headers: points into the call's */
    size_t lines_cap;
    struct act_strv empty; /* "Name;": libcurl's spelling of a header without value */
    /* what is set in easy */
    const struct http_tls *tls; /* then it serves one call only */
    struct curl_slist *connect_to;
    char method[16];
    int kind;
    bool no_proxy, fresh;
    long buffer, upload_buffer, low_speed_s;
    /* this use */
    int sends;           /* how often libcurl sent the request */
    int status;          /* of the last complete head */
    bool head_complete;  /* the empty line after the headers came */
    size_t header_bytes; /* of the response */
    int n_warnings;      /* in it */
    bool summed;         /* the head names the MD5 of the body, which is computed in md5 */
    struct act_md5 md5;
    size_t sent;       /* of the body, where a limit makes us hand it over */
    char refused[128]; /* why the response was refused here; empty: it was not */
    char why[CURL_ERROR_SIZE];
    /* under a limit, by direction */
    bool waits[2];
    size_t granted[2];
    struct http_handle *next_waiting[2];
    curl_off_t moved; /* bytes, when last seen to move */
    int64_t moved_ms;
};

/* --- handle.c: sending one try ------------------------------------------------------------------------- */

/* Returns a handle that is set up for this try, which has been signed. NULL: call->error says why. */
struct http_handle *http_handle_take(struct http_try *t);
/* Takes the handle back, for another use. */
void http_handle_give(struct http_handle *handle);
void http_handles_free(struct http *http);

/* Tells at the end of a response whether its body is another than the head says. */
bool http_body_is_damaged(struct http_handle *h);

/* --- peer.c: who may be sent now ----------------------------------------------------------------------- */

/* Returns the peer of url, which is made if it is new; NULL: url names none. */
struct http_peer *http_peer_of(struct http *http, const char *url);
/* Lets t wait for its turn at its peer, behind all others or in_front of them. */
void http_peer_wait(struct http_try *t, bool in_front);
/* Notes that t has ended; throttled: the peer asked for fewer requests, and for a pause of asked_ms (-1: none). */
void http_peer_ended(struct http_try *t, bool throttled, int64_t asked_ms);
void http_peers_free(struct http *http);
/* Begins a try whose turn has come; it is in http.c. */
void http_begin(struct http_try *t);

/* --- limit.c: bytes per second ------------------------------------------------------------------------- */

enum http_direction { HTTP_UP, HTTP_DOWN };

struct http_limit *http_limit_new(struct engine *engine, uint64_t rate);
void http_limit_free(struct http_limit *limit);
/* Returns how many of len bytes may move now, of a response all or none; 0: none, and the handle waits until it is
 * resumed. */
size_t http_limit_ask(struct http_limit *limit, struct http_handle *handle, enum http_direction direction, size_t len);
/* Returns the largest piece that a handle should receive at once. */
long http_limit_piece(const struct http_limit *limit);
/* Forgets a handle that has ended. */
void http_limit_leave(struct http_limit *limit, struct http_handle *handle);

/* ------------------------------------------------------------------------------------------------------- */

/* Returns libcurl's handle of a call whose connection is there. */
CURL *http_handle_of(const struct http_call *call);

/* Describes a failed try in call->error. Returns whether a retry may succeed. */
bool http_describe_failure(struct http_try *t, CURLcode code);

/* Tells whether a retry after this status may get a different one. */
bool http_may_pass(int status);

/* Tells whether the response says that the peer is overloaded. */
bool http_is_throttled(int status, const struct http_headers *response);

/* Returns "host:port" of an http or https URL, a new string; NULL: it is no such URL. *out_local: whether that is this
 * machine (or its metadata service), which no proxy can reach. */
char *http_peer_name(const char *url, bool *out_local);

#endif
