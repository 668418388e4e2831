/* http.h - one request and its reply, taken apart and put together; no sockets here. */
#ifndef BLOBSERVER_HTTP_H
#define BLOBSERVER_HTTP_H

#include "blobs.h"

enum { MAX_HEADERS = 100, MAX_PARAMS = 64, MAX_HEAD = 128 << 10 };

struct pair {
    char *name, *value;
};

enum page_fault { PAGE_RIGHT, PAGE_REPEAT, PAGE_EMPTY, PAGE_LOOP, PAGE_ENDLESS };

/* A request, decoded inside the memory that its head was received in and inside `decoded`. */
struct request {
    const char *method;
    char *path;  /* as it came, without the query */
    char *query; /* as it came, "" without one */
    struct pair headers[MAX_HEADERS];
    size_t n_headers;
    struct pair params[MAX_PARAMS]; /* decoded */
    size_t n_params;
    const char *account, *container, *blob; /* decoded; "" where the path ends before */
    const char *host_account;               /* the account in the host's name, "" without one */
    uint64_t length;                        /* of the body, as Content-Length says */
    struct data *body;                      /* NULL: there is none */
    char md5[25];                           /* of the body, in base64, where it was computed */
    struct text decoded;                    /* what the decoded strings live in */

    /* What the credentials allow, filled in by auth. */
    const char *rights; /* permission letters; NULL: all */
    bool by_key;
    char login_rights[256], login_object[256]; /* of a token: what rights points at, and whose it is */
    bool may_delegate;

    int64_t pending_ms;   /* how long a copy is under way */
    enum page_fault page; /* what is wrong with a page of a listing */
};

/* Takes a head of n bytes apart: request line, headers, empty line. It is changed. Returns false when it is none. */
bool request_parse(struct request *r, char *head, size_t n);
/* Only target and method; for requests inside of others. host_account must live as long as the request. */
bool request_target(struct request *r, const char *method, char *target, const char *host_account);
/* Takes one header line apart; for requests inside of others. */
bool request_header(struct request *r, char *line);
/* The account of a host "account.blob.anything" or "account.file.anything", "" for an address or another name. */
const char *account_of_host(const char *host, char *out, size_t cap);
void request_free(struct request *r);

/* NULL when it is not there; the name in lower case. Names are in lower case but for what follows "x-ms-meta-". */
const char *header(const struct request *r, const char *name);
/* "" when it is not there. */
const char *param(const struct request *r, const char *name);

struct reply {
    int status;
    const char *code; /* of an error, else NULL */
    struct text head; /* further header lines, each ended with CR LF */
    struct text body;
    struct version *version; /* NULL, or whose bytes [from, from + n) are the body */
    uint64_t from, n;
    bool no_length; /* the handler wrote Content-Length itself */
};

void reply_clear(struct reply *r);
void reply_free(struct reply *r);
void reply_header(struct reply *r, const char *name, const char *value);
/* Makes it an error with a body in XML. Returns status, to be returned on. */
int reply_error(struct reply *r, int status, const char *code);
const char *status_text(int status);

#endif
