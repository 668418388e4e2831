/* http.h - one request and its response on the engine, with retries and at the pace that suits the peer.
 *
 * A request that failed in a way that may pass (network, 408, 429, 500, 502, 503, 504) is sent again after a
 * delay: what the service asked for (Retry-After in seconds or as a date, retry-after-ms,
 * x-ms-retry-after-ms), otherwise exponential with jitter. Also a service that asks for no delay gets one, which grows
 * to a second. The decision is http_retry_delay(), a pure function. Bodies are memory; large ones are the caller's
 * parts. TLS certificates are always verified.
 *
 * Only as many requests are in flight at one peer (host and port: a storage account) as raise throughput; the others
 * wait here, first come, first served. A peer that throttles (429; 503 ServerBusy; 500 OperationTimedOut; another
 * passing failure with a Retry-After other than 0) gets half as many and a pause. As long as it gave another proper
 * response within the last two minutes, a throttled request waits for its next turn without using up a retry. See
 * pace.h; ACT_TRACE=pace shows it.
 */
#ifndef ACT_HTTP_HTTP_H
#define ACT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct engine;
struct http;

struct http_options {
    int connect_timeout_s; /* 0: 10 */
    int stall_timeout_s;   /* less than 1 KiB/s for this long is a failure; 0: 30 */
    int max_retries;       /* 0: 8; negative: none */
    int64_t give_up_ms;    /* no retry after this long; 0: 120,000 */
    int max_transfers;     /* requests under way at one peer, at most; 1 to 500; 0: 256 */
    uint64_t bwlimit;      /* bytes per second of request bodies, and as many of responses; 0: no limit. A
                              stall is then a transfer that may move but has moved nothing for this long */
    const char *ca_file;   /* NULL: the system's, where each distribution has it */
};

/* Makes a client on the engine. Where an option is 0 the environment may set it: ACT_CONNECT_TIMEOUT,
 * ACT_STALL_TIMEOUT, ACT_GIVE_UP (seconds), ACT_MAX_RETRIES, ACT_MAX_TRANSFERS and ACT_CA_FILE (or SSL_CERT_FILE, as
 * for OpenSSL's programs). A peer that never answered gets only two retries when it cannot be reached. The clock of
 * give_up_ms starts with the first failure. */
struct http *http_new(struct engine *engine, const struct http_options *options);
/* Frees a client that has no call under way; it must come before its engine. */
void http_free(struct http *http);
/* Returns the engine of http_new(). */
struct engine *http_engine(struct http *http);
/* Returns its options, with what the defaults and the environment add. They live as long as http. */
const struct http_options *http_options_of(const struct http *http);

struct http_header {
    const char *name, *value;
    char *line; /* "name: value" */
};

/* {0} is an empty list. All text belongs to the list. */
struct http_headers {
    struct http_header *v;
    size_t n;
    struct http_text *text;
};
/* Appends a header, even if there is one of the same name. */
void http_header_add(struct http_headers *h, const char *name, size_t name_len, const char *value, size_t value_len);
/* Replace the header name, or append it. */
void http_header_set(struct http_headers *h, const char *name, const char *value);
void http_header_setf(struct http_headers *h, const char *name, const char *fmt, ...) ACT_PRINTF(3, 4);
/* Returns the value of the header name, in any case; NULL: there is none. */
const char *http_header_get(const struct http_headers *h, const char *name);
/* Frees all headers, and wipes their text. */
void http_headers_release(struct http_headers *h);

/* TLS for one server, and the way to it, if they differ from those for all others. The caller owns it and keeps it for
 * longer than the calls; each try reads it, so that it may change. Certificates and keys are PEM. Calls with different
 * ones share neither a connection nor a session. */
struct http_tls {
    char *ca;               /* the only authorities to trust; NULL: those of the options. Never written to. */
    char *cert, *key;       /* the client's; NULL: none. The key is secret */
    const char *connect_to; /* "NAME:PORT:HOST:PORT": where the NAME of the URL, which the server's certificate must
                               have, is found; NULL: where its name leads */
    const char *proxy;      /* for every host; NULL: as the environment says */
    bool insecure;          /* the server's certificate is not verified */
    const char *hint;       /* what to do when the server's certificate is not trusted; NULL: the usual */
};

/* A request and, once done was called, its response. The caller owns it and keeps it until done was called. */
struct http_call {
    /* in */
    const char *method;          /* "GET", "PUT", ...; not copied */
    char *url;                   /* percent-encoded, sent byte for byte; owned by the call */
    struct http_headers headers; /* owned by the call */
    const void *body;            /* not copied; NULL with body_len 0: none. Content-Type only if in headers */
    size_t body_len;
    void *sink; /* a 2xx body goes here, when set; more than sink_cap bytes is a failure */
    size_t sink_cap;
    /* Instead of a sink: gets the bytes of a 2xx body as they arrive, at offset `at`, sink_cap at most in all. Every
     * try delivers them from the start; status and response_headers are those of this try. It may start other calls,
     * but this call never ends inside it. */
    void (*take)(struct http_call *call, size_t at, const void *data, size_t len);
    size_t max_body;  /* limit of body_text; 0: 8 MiB */
    const char *what; /* for error texts: "cannot get 'container/key'"; owned by the caller */
    /* Called before every try, to sign with the current time. May set headers, and replace url for this one
     * try: before the next one, and for done, it is again what was given to http_start(). */
    int (*sign)(struct http_call *call, struct act_error *err);
    void *sign_arg;
    /* Whether a response that would be retried is final, because a retry would bring the same. NULL: none is. */
    bool (*is_final)(const struct http_call *call);
    bool no_retry;
    bool direct;  /* never use a proxy, whatever the host; requests to this machine never do */
    bool bounded; /* a throttled request gives up after give_up_ms as well: a user is waiting */
    /* The body has no end of its own and may pause for any time; http_cancel() ends it. The call never queues behind
     * others, is sent once, and ignores sink_cap. */
    bool endless;
    /* Only the connection is made, to the host of the URL, and lasts until http_cancel(): connected() says that it is
     * there. It waits for no other call, is made once, and has tls; nothing else of the request is looked at. */
    void (*connected)(struct http_call *call);
    const struct http_tls *tls; /* NULL: as the options say */
    const char *peer_name;      /* for notes that tell the user of a long wait: "the cluster"; NULL: none is written */
    /* Is told of the bytes of both bodies that have moved since it was last called, at least once a second; negative:
     * the try failed that had moved them. It starts and ends no call. May be NULL. */
    void (*moves)(struct http_call *call, int64_t bytes);
    void (*done)(struct http_call *call);
    void *arg;

    /* out */
    int rc; /* 0: a response came (of any status); else see error */
    struct act_error error;
    int status; /* HTTP status */
    struct http_headers response_headers;
    size_t sink_len;          /* bytes that went into sink or to take */
    struct act_buf body_text; /* the body, when it did not go to the sink */
    int tries;                /* how often it was sent */
    bool ambiguous;           /* an earlier try may have taken effect though it failed */

    struct http_try *under_way; /* opaque; NULL: it is not */
    int64_t moved_bytes;        /* internal: what moves() was told of in all */
};

/* Starts call. done is called exactly once, on the loop, with rc and the response set, and the length of the body
 * checked against Content-Length. 4xx and 5xx responses that are not (or no longer) retried have rc 0: the caller
 * interprets them. The error of a failed connection names host, port and reason. */
void http_start(struct http *http, struct http_call *call);
/* Ends an endless call or a connection that is under way: done comes with -ACT_INTERRUPTED. take() may call it. */
void http_cancel(struct http_call *call);
void http_call_release(struct http_call *call);

/* Returns how many requests to the peer of this URL are worth having in flight; it changes with every response. More do
 * no harm but keep their bodies in memory while they wait; with clearly fewer (less than three quarters) the pace
 * cannot tell whether more would be faster. */
int http_window(struct http *http, const char *url);

/* Returns the milliseconds to wait before the next try; -1: no further try. status 0: no response came (network).
 * random01: in [0, 1). retry_after_ms: -1 if the service said nothing. */
int64_t http_retry_delay(int status, bool network_error, int tries, int max_retries, int64_t elapsed_ms,
                         int64_t give_up_ms, int64_t retry_after_ms, double random01);

/* Returns how long the response asks to wait, by retry-after-ms, x-ms-retry-after-ms or Retry-After; -1: it asks for
 * nothing, or nothing usable. A date is by the service's clock (the response's Date); now_unix_s is for responses
 * without one. */
int64_t http_retry_after_ms(const struct http_headers *response, int64_t now_unix_s);

/* Returns how many seconds the service's clock (the response's Date) is ahead of now_unix_s, this machine's; 0: there
 * is no Date. A response takes time, so small differences mean nothing. */
int64_t http_clock_ahead_s(const struct http_headers *response, int64_t now_unix_s);

/* Percent-encodes everything but A-Z a-z 0-9 - . _ ~ and, where keep_slash, '/'. New string. */
char *http_encode(const char *text, bool keep_slash);
/* Decodes "%XX", but leaves invalid escapes, and %00, as they are. New string. */
char *http_decode(const char *text);

/* Tells whether nobody on the way can read what is sent to this URL: it is https, or this machine itself. */
bool http_is_private(const char *url);
/* Tells whether url leads to this machine and nowhere else: localhost, 127.x.x.x, [::1]. */
bool http_is_here(const char *url);
/* Returns the host of an http or https URL, as libcurl would connect to it, a new string: in lower case, an IPv6
 * address in brackets, without a final dot. NULL: it has no plain host, or a user before it. */
char *http_host(const char *url);
/* Returns the port of such a URL, also one that only follows from the scheme; 0: it is no such URL. */
int http_port(const char *url);

/* Replaces the values of secret query parameters ("sig", "code", ...) of url by "REDACTED". New string. */
char *http_redact_url(const char *url);

/* Replaces in text from a service, which may repeat what it was sent, whatever looks like a token (three parts of
 * base64url, RFC 7519), the signature of a SAS or an account key, also if all was encoded again. New string. */
char *http_redact_text(const char *text);

#endif
