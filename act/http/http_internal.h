/* http_internal.h - for the files of http/ only. */
#ifndef ACT_HTTP_HTTP_INTERNAL_H
#define ACT_HTTP_HTTP_INTERNAL_H

#include "http/http.h"

struct http {
    struct engine *engine;
    struct http_options options; /* complete: defaults and environment applied */
    char *ca_file;
    CURLSH *share;  /* TLS sessions */
    CURL *idle[64]; /* handles to use again */
    size_t idle_n;
    struct act_strv answered; /* "host:port" of every peer that ever answered */
};

/* One call under way; lives from http_start() to done. */
struct http_try {
    struct http *http;
    struct http_call *call;
    CURL *easy;
    struct curl_slist *headers;
    char *url;           /* as given; sign() may replace that of the call for one try */
    char *peer;          /* "host:port" */
    bool local;          /* never through a proxy */
    int64_t failed_ms;   /* when the first try had failed; 0: none has */
    int sends;           /* how often libcurl sent the request within this try */
    size_t header_bytes; /* of the answer */
    bool head_complete;  /* the empty line behind the headers came */
    char refused[128];   /* why the answer was refused here; empty: it was not */
    char why[CURL_ERROR_SIZE];
};

/* Describes a failed try in call->error. Returns whether it may pass when tried again. */
bool http_describe_failure(struct http_try *t, CURLcode code);

/* What the answer asks to wait: retry-after-ms, x-ms-retry-after-ms or Retry-After; -1: nothing (usable). */
int64_t http_retry_after_ms(const struct http_headers *answer, int64_t now_unix_s);

/* "host:port" of an http or https URL, and whether it is this machine (or its metadata service), which no
 * proxy can reach. New string; NULL: not such a URL. */
char *http_peer(const char *url, bool *out_local);

#endif
