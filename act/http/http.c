/* http.c - calls and their tries.
 *
 *   http_start -> timer 0 -> begin_try -> (libcurl) -> try_ended -> finish -> done
 *                               ^                          |
 *                               +------ timer (delay) -----+
 *
 * Everything of a call that is under way is in its struct http_try; handles go back to a small pool after
 * each try, connections stay with the engine.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/units.h"
#include "http/http_internal.h"

enum {
    MAX_HEADERS = 256,
    MAX_HEADER_BYTES = 64 << 10,
    DEFAULT_MAX_BODY = 8 << 20,
    LARGE_BUFFER = 512 << 10,  /* libcurl's limit for receiving */
    FIRST_CONTACT_RETRIES = 2, /* for a peer that never answered: most likely a wrong name or address */
};

/* --- the instance --------------------------------------------------------------------------------------- */

static int64_t env_number(const char *name, int64_t low, int64_t high, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t value;

    if (!text || !*text)
        return fallback;
    if (act_int_from_text(text, &value) && value >= low && value <= high)
        return value;
    act_warn("%s is '%s', not a number from %lld to %lld; using %lld", name, text, (long long)low,
             (long long)high, (long long)fallback);
    return fallback;
}

static void complete_options(struct http_options *o)
{
    if (o->connect_timeout_s <= 0)
        o->connect_timeout_s = (int)env_number("ACT_CONNECT_TIMEOUT", 1, 3600, 10);
    if (o->stall_timeout_s <= 0)
        o->stall_timeout_s = (int)env_number("ACT_STALL_TIMEOUT", 1, 3600, 30);
    if (o->max_retries == 0)
        o->max_retries = (int)env_number("ACT_MAX_RETRIES", 0, 1000, 8);
    if (o->max_retries < 0)
        o->max_retries = 0;
    if (o->give_up_ms <= 0)
        o->give_up_ms = 120000;
    if (!o->ca_file)
        o->ca_file = getenv("ACT_CA_FILE");
    if (o->ca_file && !*o->ca_file)
        o->ca_file = NULL;
}

struct http *http_new(struct engine *engine, const struct http_options *options)
{
    struct http *http = act_calloc(1, sizeof(*http));

    http->engine = engine;
    if (options)
        http->options = *options;
    complete_options(&http->options);
    http->ca_file = act_strdup(http->options.ca_file);
    http->options.ca_file = http->ca_file;
    return http;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    while (http->idle_n > 0)
        curl_easy_cleanup(http->idle[--http->idle_n]);
    curl_share_cleanup(http->share);
    act_strv_release(&http->answered);
    free(http->ca_file);
    free(http);
}

struct engine *http_engine(struct http *http)
{
    return http->engine;
}

static CURL *take_handle(struct http *http)
{
    if (!http->share) {
        http->share = curl_share_init();
        curl_share_setopt(http->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    return http->idle_n > 0 ? http->idle[--http->idle_n] : curl_easy_init();
}

static void give_handle(struct http *http, CURL *easy)
{
    if (http->idle_n == sizeof(http->idle) / sizeof(http->idle[0])) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    http->idle[http->idle_n++] = easy;
}

/* --- what libcurl calls --------------------------------------------------------------------------------- */

/* Called each time before the request goes out; libcurl repeats one on its own when a connection it used
 * again turns out to be dead. */
static int before_send(void *arg, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    struct http_try *t = arg;

    (void)peer_ip, (void)own_ip, (void)peer_port, (void)own_port;
    t->sends++;
    return CURL_PREREQFUNC_OK;
}

/* The len bytes without white space around them. New string. */
static char *trimmed(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    while (len > 0 && strchr(" \t", *text)) {
        text++;
        len--;
    }
    return act_strndup(text, len);
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct http_try *t = arg;
    struct http_headers *h = &t->call->answer_headers;
    size_t len = size * count;
    const char *colon = memchr(line, ':', len);

    t->header_bytes += len;
    if (h->n >= MAX_HEADERS || t->header_bytes > MAX_HEADER_BYTES) {
        snprintf(t->refused, sizeof(t->refused), "more than %d headers or %d bytes of them", MAX_HEADERS,
                 MAX_HEADER_BYTES);
        return 0;
    }
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        http_headers_release(h); /* those before belong to an interim answer (1xx) */
        t->head_complete = false;
    } else if (len > 0 && (*line == '\r' || *line == '\n')) {
        t->head_complete = true;
    } else if (colon && colon > line) {
        ACT_AUTOFREE char *name = trimmed(line, (size_t)(colon - line));
        ACT_AUTOFREE char *value = trimmed(colon + 1, len - (size_t)(colon + 1 - line));
        http_header_set(h, name, value);
    }
    return len;
}

static bool is_success(const struct http_try *t)
{
    long status = 0;

    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct http_try *t = arg;
    struct http_call *call = t->call;
    bool to_sink = call->sink && is_success(t);
    size_t len = size * count;
    size_t used = to_sink ? call->sink_len : call->body_text.len;
    size_t cap = to_sink ? call->sink_cap : call->max_body ? call->max_body : (size_t)DEFAULT_MAX_BODY;

    if (len > cap - used) {
        snprintf(t->refused, sizeof(t->refused), "it has more than %zu bytes", cap);
        return len + 1; /* any other number than len ends the transfer */
    }
    if (to_sink) {
        memcpy((char *)call->sink + used, data, len);
        call->sink_len += len;
    } else {
        act_buf_add(&call->body_text, data, len);
    }
    return len;
}

/* --- one try -------------------------------------------------------------------------------------------- */

static void set_policy(const struct http_try *t)
{
    const struct http_options *o = &t->http->options;
    CURL *easy = t->easy;

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)o->connect_timeout_s);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)o->stall_timeout_s);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "act/" ACT_VERSION);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SHARE, t->http->share);
    if (t->http->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, t->http->ca_file);
    if (t->local)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

static bool takes_body(const char *method)
{
    return strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0;
}

/* A body in memory is libcurl's POSTFIELDS, under any method: it can be rewound without help, and one of
 * length 0 is announced as such. */
static void set_request(struct http_try *t)
{
    const struct http_call *call = t->call;
    CURL *easy = t->easy;

    curl_easy_setopt(easy, CURLOPT_URL, call->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
    if (call->body_len > 0 || takes_body(call->method)) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body_len > 0 ? call->body : "");
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
    } else if (strcmp(call->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->body_len >= LARGE_BUFFER)
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)LARGE_BUFFER);
    if (call->sink_cap >= LARGE_BUFFER)
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)LARGE_BUFFER);
}

static void set_callbacks(struct http_try *t)
{
    CURL *easy = t->easy;

    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
}

static void add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (!longer)
        abort(); /* out of memory */
    *list = longer;
}

/* libcurl's spelling: "Name: value", "Name;" for an empty value, "Name:" for none of its own making. */
static int build_headers(struct http_try *t)
{
    struct http_call *call = t->call;

    for (size_t i = 0; i < call->headers.n; i++) {
        const struct http_header *h = &call->headers.v[i];
        if (strpbrk(h->name, "\r\n:; ") || strpbrk(h->value, "\r\n"))
            return act_error_set(&call->error, ACT_USAGE,
                                 "the header '%s' cannot be sent: it has a line break "
                                 "or a forbidden character",
                                 h->name);
        ACT_AUTOFREE char *line = act_sprintf(*h->value ? "%s: %s" : "%s;", h->name, h->value);
        add_line(&t->headers, line);
    }
    add_line(&t->headers, "Expect:");
    if (!http_header_get(&call->headers, "Content-Type"))
        add_line(&t->headers, "Content-Type:");
    return 0;
}

static void drop_answer(struct http_call *call)
{
    call->status = 0;
    call->sink_len = 0;
    http_headers_release(&call->answer_headers);
    act_buf_release(&call->body_text);
}

static void end_try(struct http_try *t)
{
    if (t->easy)
        give_handle(t->http, t->easy);
    t->easy = NULL;
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

static void restore_url(struct http_try *t)
{
    free(t->call->url);
    t->call->url = act_strdup(t->url);
}

/* The last step: whatever belongs to the way is gone before done is called, which may start the call anew. */
static void finish(struct http_try *t, int rc)
{
    struct http_call *call = t->call;

    end_try(t);
    restore_url(t);
    free(t->url);
    free(t->peer);
    free(t);
    call->internal = NULL;
    call->rc = rc;
    if (rc != 0 && call->tries > 1)
        act_error_hint(&call->error, "tried %d times", call->tries);
    if (rc != 0 && call->what)
        act_error_prefix(&call->error, "%s", call->what);
    call->done(call);
}

static void trace_try(const struct http_try *t)
{
    const struct http_call *call = t->call;
    curl_off_t out = 0, in = 0, us = 0;

    if (!act_trace_on("http"))
        return;
    ACT_AUTOFREE char *url = http_redact_url(call->url);
    const char *id = http_header_get(&call->answer_headers, "x-ms-request-id");
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &out);
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &in);
    curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &us);
    act_trace("http", "%s %s %d out %lld in %lld %lld ms try %d id %s%s%s", call->method, url, call->status,
              (long long)out, (long long)in, (long long)us / 1000, call->tries, id ? id : "-",
              call->rc ? ": " : "", call->rc ? call->error.text : "");
}

/* The clock of giving up starts with the first failure: a long transfer that breaks deserves another try. */
static int64_t next_delay_ms(struct http_try *t, bool network_error)
{
    const struct http_call *call = t->call;
    const struct http_options *o = &t->http->options;
    int64_t now_ms = act_now_monotonic_ms();
    int max_retries = call->no_retry ? 0 : o->max_retries;
    uint32_t random;

    if (t->failed_ms == 0)
        t->failed_ms = now_ms;
    if (network_error && t->sends == 0 && max_retries > FIRST_CONTACT_RETRIES &&
        !act_strv_has(&t->http->answered, t->peer))
        max_retries = FIRST_CONTACT_RETRIES;
    act_random(&random, sizeof(random));
    return http_retry_delay(call->status, network_error, call->tries, max_retries, now_ms - t->failed_ms,
                            o->give_up_ms, http_retry_after_ms(&call->answer_headers, act_now_unix_s()),
                            random / 4294967296.0);
}

/* libcurl takes an answer that was cut within its headers, or behind an interim one, as whole. */
static CURLcode note_answer(struct http_try *t)
{
    long status = 0;

    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!t->head_complete || status < 200) {
        snprintf(t->why, sizeof(t->why), "the answer ended within its headers");
        return CURLE_PARTIAL_FILE;
    }
    t->call->status = (int)status;
    if (!act_strv_has(&t->http->answered, t->peer))
        act_strv_push(&t->http->answered, t->peer);
    return CURLE_OK;
}

static void begin_try(void *arg);

static void try_ended(void *arg, CURLcode code)
{
    struct http_try *t = arg;
    struct http_call *call = t->call;
    bool may_pass = false;

    call->rc = 0;
    if (code == CURLE_OK)
        code = note_answer(t);
    if (code != CURLE_OK) {
        may_pass = http_describe_failure(t, code);
        call->rc = -(int)call->error.code;
    }
    trace_try(t);
    if (t->sends > 1 || (code != CURLE_OK && t->sends > 0) || call->status >= 500)
        call->ambiguous = true;
    bool is_final = call->rc ? !may_pass : call->is_final && call->is_final(call);
    int64_t delay_ms = is_final ? -1 : next_delay_ms(t, may_pass);
    if (delay_ms < 0) {
        finish(t, call->rc);
        return;
    }
    end_try(t);
    engine_timer(t->http->engine, delay_ms, begin_try, t);
}

static void begin_try(void *arg)
{
    struct http_try *t = arg;
    struct http_call *call = t->call;
    int rc;

    drop_answer(call);
    restore_url(t);
    t->sends = 0;
    t->header_bytes = 0;
    t->head_complete = false;
    t->refused[0] = t->why[0] = '\0';
    if (!t->peer) {
        ACT_AUTOFREE char *shown = http_redact_url(call->url);
        finish(t, act_error_set(&call->error, ACT_CONFIG, "'%s' is not an address of http or https", shown));
        return;
    }
    if ((call->sign && (rc = call->sign(call, &call->error))) || (rc = build_headers(t))) {
        finish(t, rc);
        return;
    }
    t->easy = take_handle(t->http);
    if (!t->easy) {
        finish(t, act_error_set(&call->error, ACT_FAIL, "cannot set up libcurl"));
        return;
    }
    set_policy(t);
    set_request(t);
    set_callbacks(t);
    call->tries++;
    engine_transfer(t->http->engine, t->easy, try_ended, t);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

void http_start(struct http *http, struct http_call *call)
{
    struct http_try *t = act_calloc(1, sizeof(*t));

    drop_answer(call);
    call->rc = 0;
    call->tries = 0;
    call->ambiguous = false;
    call->error = (struct act_error){0};
    call->internal = t;
    t->http = http;
    t->call = call;
    t->url = act_strdup(call->url);
    t->peer = http_peer(call->url, &t->local);
    engine_timer(http->engine, 0, begin_try, t);
}

static void set_flag(struct http_call *call)
{
    *(bool *)call->arg = true;
}

int http_do(struct http *http, struct http_call *call, struct act_error *err)
{
    void (*done)(struct http_call * call) = call->done;
    void *arg = call->arg;
    bool ended = false;

    call->done = set_flag;
    call->arg = &ended;
    http_start(http, call);
    engine_run(http->engine, &ended);
    call->done = done;
    call->arg = arg;
    if (call->rc != 0 && err)
        *err = call->error;
    return call->rc;
}

void http_call_release(struct http_call *call)
{
    drop_answer(call);
    http_headers_release(&call->headers);
    free(call->url);
    call->url = NULL;
}
