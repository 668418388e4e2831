/* fault.h - what goes wrong on command, and the log of what was asked for. All of it may be called by any thread. */
#ifndef BLOBSERVER_FAULT_H
#define BLOBSERVER_FAULT_H

#include "http.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_ANSWER,   /* answers with an error and does nothing */
    FAULT_THROTTLE, /* the same as soon as there are more than `rate` requests in one second */
    FAULT_RESET,    /* resets the connection */
    FAULT_TRUNCATE, /* closes the connection in good order */
    FAULT_OVERLONG, /* sends bytes behind the end of the body, and closes */
    FAULT_STALL,    /* sends nothing for some time, then goes on */
    FAULT_TRICKLE,  /* sends the answer with `rate` bytes a second */
    FAULT_RANGE,    /* a Content-Range that is off by one */
    FAULT_CHECKSUM, /* echoes a checksum that is not that of the body */
    FAULT_CORRUPT,  /* changes one byte in the middle of the answer's body */
    FAULT_REPLACE,  /* somebody else replaces the blob by as many other bytes, before the request is served */
    FAULT_PENDING,  /* a copy that is under way for some time, by what the service says */
    FAULT_PAGE,     /* a page of a listing that repeats its marker, leads back ("loop"), is empty, breaks off, or has
                       one name that is new, as the next one will ("endless") */
    FAULT_HEADER,   /* a header that is longer than any client takes */
    FAULT_BODY_MD5, /* a Content-MD5 that is not that of the whole body */
};

enum fault_where {
    AT_ANSWER,  /* the request was served; nothing of the answer is sent */
    AT_REQUEST, /* nothing but the head of the request was read, and it is not served */
    AT_UPLOAD,  /* in the middle of the request's body */
    AT_HEADERS, /* between the head of the answer and its body */
    AT_BODY,    /* in the middle of the answer's body */
};

struct fault {
    enum fault_kind kind;
    enum fault_where where;
    int status;
    char code[64];
    char retry_after[32];
    int64_t ms;
    double rate;
    enum page_fault page;
    bool torn; /* a page that breaks off */
};

/* Adds the rules of a text, one in a line:
 *     KIND [NAME=VALUE]...
 * Names are those of struct fault, and method=, path= (an extended regular expression that is searched for in the path
 * and query as they came), times= (how often; default 1, 0 for ever) and skip= (how many requests to let pass first).
 * Without where= a truncation or a stall is in the body. Values are percent-encoded. Returns the number of the first
 * line that is wrong, or 0. */
int fault_add(const char *text);
void fault_clear(void);
/* What happens to a request: the first rule that wants it decides. */
struct fault fault_for(const char *method, const char *target);

/* "METHOD target status bytes-received bytes-sent". When there are very many, the oldest are forgotten. */
void log_add(const char *method, const char *target, int status, uint64_t received, uint64_t sent);
void log_copy(struct text *out);
void log_clear(void);

/* Requests to /-/..., by which a test commands the server:
 *     POST /-/faults      adds rules; DELETE removes all
 *     GET /-/log          the requests so far; DELETE forgets them
 *     GET /-/tls          stream_describe()
 *     POST /-/preload     makes blobs of the first account (blobs_preload), or files (files_preload)
 *     POST /-/limit       says how many bytes a share may hold (files_limit)
 *     POST /-/clock       sets how many seconds the server's clock is ahead */
void control(struct request *r, struct reply *reply);

#endif
