/* handle.c - carries out one try on an easy handle: the settings, and what libcurl calls.
 *
 * A handle keeps its settings from use to use; each use sets only what differs. Buffers are as large as the
 * bodies deserve: all parts in memory together have a budget, and so their buffers have a small part of it.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/http_internal.h"

enum {
    MAX_HEADERS = 256,
    MAX_WARNINGS = 64, /* of these */
    MAX_HEADER_BYTES = 64 << 10,
    DEFAULT_MAX_BODY = 8 << 20,
    SMALL_BUFFER = 16 << 10, /* the least that libcurl takes for sending */
    LARGE_BUFFER = 256 << 10,
    BODY_PER_BUFFER = 16, /* a body is at least this many buffers */
};

enum handle_kind { UNSET, PLAIN, HEAD, MEMORY_BODY, LIMITED_BODY };

/* --- what libcurl calls --------------------------------------------------------------------------------- */

/* Called each time before the request goes out; libcurl repeats one on its own when a connection it used
 * again turns out to be dead. */
static int before_send(void *arg, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    struct http_handle *h = arg;

    (void)peer_ip, (void)own_ip, (void)peer_port, (void)own_port;
    h->sends++;
    return CURL_PREREQFUNC_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cuts white space from both ends; returns the new length. */
static size_t trim(const char **text, size_t len)
{
    while (len > 0 && is_space((*text)[len - 1]))
        len--;
    while (len > 0 && is_space(**text)) {
        ++*text;
        len--;
    }
    return len;
}

static void take_header(struct http_headers *response, const char *line, size_t len, const char *colon)
{
    const char *name = line, *value = colon + 1;
    size_t name_len = trim(&name, (size_t)(colon - line));
    size_t value_len = trim(&value, len - (size_t)(value - line));

    http_header_add(response, name, name_len, value, value_len);
}

static void handle_note_status(struct http_handle *h)
{
    long status = 0;

    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
    h->status = (int)status;
}

/* Returns the Content-MD5 of the response, which is that of its body, also of a part (RFC 1864, RFC 2616 section
 * 14.15), if the body was asked for: the answer to a PUT may name that of the request. */
static const char *md5_of_body(const struct http_call *call)
{
    const char *md5 = strcmp(call->method, "GET") == 0 ? http_header_get(&call->response_headers, "Content-MD5") : NULL;

    return md5 && strlen(md5) == ACT_MD5_BASE64 - 1 ? md5 : NULL;
}

static void begin_sum(struct http_handle *h)
{
    h->summed = h->status >= 200 && md5_of_body(h->t->call);
    if (h->summed)
        act_md5_init(&h->md5);
}

bool http_body_is_damaged(struct http_handle *h)
{
    char md5[ACT_MD5_BASE64];

    if (!h->summed)
        return false;
    act_md5_done(&h->md5, md5);
    h->summed = false;
    return strcmp(md5, md5_of_body(h->t->call)) != 0;
}

/* Warnings are advice (RFC 7234, 5.5): a server that has a thousand of them has done what it was asked all the same. */
static bool is_one_too_many(struct http_handle *h, const char *line, size_t len)
{
    static const char name[] = "Warning:";

    return len >= strlen(name) && strncasecmp(line, name, strlen(name)) == 0 && h->n_warnings++ >= MAX_WARNINGS;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct http_handle *h = arg;
    struct http_headers *response = &h->t->call->response_headers;
    size_t len = size * count;
    const char *colon = memchr(line, ':', len);

    if (is_one_too_many(h, line, len))
        return len;
    h->header_bytes += len;
    if (response->n >= MAX_HEADERS || h->header_bytes > MAX_HEADER_BYTES) {
        snprintf(h->refused, sizeof(h->refused), "more than %d headers or %d bytes of them", MAX_HEADERS,
                 MAX_HEADER_BYTES);
        return 0;
    }
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        http_headers_release(response); /* those before belong to an interim response (1xx) */
        h->head_complete = false;
    } else if (len > 0 && (*line == '\r' || *line == '\n')) {
        h->head_complete = true;
        handle_note_status(h);
        begin_sum(h);
    } else if (colon && colon > line) {
        take_header(response, line, len, colon);
    }
    return len;
}

/* Gives bytes to take(), which may look at the status: that of the call is set only when all has come. */
static void handle_give(struct http_call *call, int status, size_t at, const char *data, size_t len)
{
    call->status = status;
    call->take(call, at, data, len);
    call->status = 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct http_handle *h = arg;
    struct http_call *call = h->t->call;
    bool to_sink = http_has_sink(call) && h->status >= 200 && h->status < 300;
    size_t len = size * count;
    size_t used = to_sink ? call->sink_len : call->body_text.len;
    size_t cap = !to_sink        ? call->max_body ? call->max_body : (size_t)DEFAULT_MAX_BODY
                 : call->endless ? SIZE_MAX
                                 : call->sink_cap;

    if (len > cap - used) {
        snprintf(h->refused, sizeof(h->refused), "it has more than %zu bytes", cap);
        return len + 1; /* any other number than len ends the transfer */
    }
    if (h->http->limit && len > 0 && http_limit_ask(h->http->limit, h, HTTP_DOWN, len) == 0)
        return CURL_WRITEFUNC_PAUSE; /* it comes again */
    if (h->summed)
        act_md5_add(&h->md5, data, len);
    if (!to_sink) {
        act_buf_add(&call->body_text, data, len);
        return len;
    }
    if (call->take)
        handle_give(call, h->status, used, data, len);
    else
        memcpy((char *)call->sink + used, data, len);
    call->sink_len += len;
    return len;
}

/* libcurl calls this only under a limit; otherwise it has the body itself. */
static size_t give_body(char *to, size_t size, size_t count, void *arg)
{
    struct http_handle *h = arg;
    const struct http_call *call = h->t->call;
    size_t len = size * count, left = call->body_len - h->sent;

    if (left == 0)
        return 0;
    len = http_limit_ask(h->http->limit, h, HTTP_UP, len < left ? len : left);
    if (len == 0)
        return CURL_READFUNC_PAUSE;
    memcpy(to, (const char *)call->body + h->sent, len);
    h->sent += len;
    return len;
}

/* libcurl sends the request once more, from its beginning. */
static int rewind_body(void *arg, curl_off_t offset, int origin)
{
    struct http_handle *h = arg;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > h->t->call->body_len)
        return CURL_SEEKFUNC_FAIL;
    h->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* Under a limit, a slow transfer is not a stall, nor is one that waits for its turn. */
static bool is_stalled(struct http_handle *h, curl_off_t moved)
{
    int64_t now_ms = act_now_monotonic_ms();

    if (h->t->call->endless || h->sends == 0 || h->moved != moved || h->waits[HTTP_UP] || h->waits[HTTP_DOWN]) {
        h->moved = moved;
        h->moved_ms = now_ms;
    }
    return now_ms - h->moved_ms >= (int64_t)h->http->options.stall_timeout_s * 1000;
}

/* libcurl calls this about once a second, and whenever bytes move. Any other result than 0 ends the transfer. */
static int on_progress(void *arg, curl_off_t in_all, curl_off_t in, curl_off_t out_all, curl_off_t out)
{
    struct http_handle *h = arg;
    struct http_call *call = h->t->call;
    int64_t more = in + out - call->moved_bytes;

    (void)in_all, (void)out_all;
    call->moved_bytes += more;
    if (call->moves)
        call->moves(call, more);
    return h->http->limit && is_stalled(h, in + out);
}

/* --- settings ------------------------------------------------------------------------------------------- */

static void set_policy(struct http_handle *h)
{
    const struct http_options *o = &h->http->options;
    CURL *easy = h->easy;

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L); /* how the peer of a silent body is known to be gone */
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 15L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)o->connect_timeout_s);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "act/" ACT_VERSION);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SHARE, h->http->share);
    if (o->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
}

static void set_callbacks(struct http_handle *h)
{
    CURL *easy = h->easy;

    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->why);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, h);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, h);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, h);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, h);
    if (!h->http->limit)
        return;
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, h);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_body);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, h);
}

static bool takes_body(const char *method)
{
    return strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0;
}

static enum handle_kind handle_kind_of(const struct http_handle *h, const struct http_call *call)
{
    if (call->body_len > 0 && h->http->limit)
        return LIMITED_BODY;
    if (call->body_len > 0 || takes_body(call->method))
        return MEMORY_BODY;
    return strcmp(call->method, "HEAD") == 0 ? HEAD : PLAIN;
}

static void set_kind(struct http_handle *h, enum handle_kind kind)
{
    static const CURLoption options[] = {[PLAIN] = CURLOPT_HTTPGET,
                                         [HEAD] = CURLOPT_NOBODY,
                                         [MEMORY_BODY] = CURLOPT_POST,
                                         [LIMITED_BODY] = CURLOPT_POST};

    if (h->kind == (int)kind)
        return;
    curl_easy_setopt(h->easy, options[kind], 1L);
    h->kind = kind;
}

/* A body in memory is libcurl's POSTFIELDS, under any method: it can be rewound without help, and one of
 * length 0 is announced as such. Under a limit libcurl asks for it piece by piece. */
static void set_body(struct http_handle *h, const struct http_call *call)
{
    enum handle_kind kind = handle_kind_of(h, call);

    set_kind(h, kind);
    if (kind != MEMORY_BODY && kind != LIMITED_BODY)
        return;
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, kind == LIMITED_BODY ? NULL : call->body_len > 0 ? call->body : "");
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
}

static void set_method(struct http_handle *h, const char *method)
{
    if (strcmp(h->method, method) == 0)
        return;
    curl_easy_setopt(h->easy, CURLOPT_CUSTOMREQUEST, method);
    snprintf(h->method, sizeof(h->method), "%s", method);
}

static void set_long(const struct http_handle *h, CURLoption option, long *current, long value)
{
    if (*current != value)
        curl_easy_setopt(h->easy, option, value);
    *current = value;
}

static long buffer_for(size_t body)
{
    size_t size = SMALL_BUFFER;

    while (size < LARGE_BUFFER && 2 * size * BODY_PER_BUFFER <= body)
        size *= 2;
    return (long)size;
}

static void set_buffers(struct http_handle *h, const struct http_call *call)
{
    const struct http_limit *limit = h->http->limit;
    long in = buffer_for(call->sink_cap);

    if (limit && in > http_limit_piece(limit))
        in = http_limit_piece(limit);
    set_long(h, CURLOPT_UPLOAD_BUFFERSIZE, &h->upload_buffer, buffer_for(call->body_len));
    set_long(h, CURLOPT_BUFFERSIZE, &h->buffer, in);
}

static void set_patience(struct http_handle *h, const struct http_call *call)
{
    bool looks = !call->endless && !h->http->limit;

    set_long(h, CURLOPT_LOW_SPEED_TIME, &h->low_speed_s, looks ? h->http->options.stall_timeout_s : 0);
}

static void set_way(struct http_handle *h, const struct http_try *t)
{
    bool no_proxy = t->peer->local || t->call->direct;

    if (h->no_proxy != no_proxy)
        curl_easy_setopt(h->easy, CURLOPT_PROXY, no_proxy ? "" : NULL);
    h->no_proxy = no_proxy;
    if (h->fresh != t->fresh)
        curl_easy_setopt(h->easy, CURLOPT_FRESH_CONNECT, (long)t->fresh);
    h->fresh = t->fresh;
}

static void set_pem(const struct http_handle *h, CURLoption option, char *pem)
{
    struct curl_blob blob = {.data = pem, .len = pem ? strlen(pem) : 0, .flags = CURL_BLOB_COPY};

    if (pem)
        curl_easy_setopt(h->easy, option, &blob);
}

/* Sets TLS on a handle that is new and will have no other call. */
static void handle_set_tls(struct http_handle *h, const struct http_tls *tls)
{
    if (tls->ca) /* and not the system's folder beside it */
        curl_easy_setopt(h->easy, CURLOPT_CAPATH, NULL);
    set_pem(h, CURLOPT_CAINFO_BLOB, tls->ca);
    set_pem(h, CURLOPT_SSLCERT_BLOB, tls->cert);
    set_pem(h, CURLOPT_SSLKEY_BLOB, tls->key);
    if (tls->insecure) {
        curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (tls->connect_to) {
        h->connect_to = curl_slist_append(NULL, tls->connect_to);
        curl_easy_setopt(h->easy, CURLOPT_CONNECT_TO, h->connect_to);
    }
    if (tls->proxy) {
        curl_easy_setopt(h->easy, CURLOPT_PROXY, tls->proxy);
        curl_easy_setopt(h->easy, CURLOPT_NOPROXY, "");
    }
    if (h->t->call->connected) /* whatever is spoken on it is not the proxy's business */
        curl_easy_setopt(h->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
}

/* --- the request's headers ------------------------------------------------------------------------------ */

/* Gives libcurl a line without copying it: "Name: value", "Name;" for an empty value, "Name:" to drop a header that
 * libcurl would add. */
static void add_header_line(struct http_handle *h, size_t n, char *line)
{
    h->lines[n].data = line;
    h->lines[n].next = NULL;
    if (n > 0)
        h->lines[n - 1].next = &h->lines[n];
}

static int check_header(const struct http_header *header, struct act_error *err)
{
    if (strpbrk(header->name, "\r\n:; ") || strpbrk(header->value, "\r\n"))
        return act_error_set(err, ACT_USAGE,
                             "the header '%s' cannot be sent: it has a line break or a forbidden character",
                             header->name);
    return 0;
}

static char *handle_line_of(struct http_handle *h, const struct http_header *header)
{
    if (*header->value)
        return header->line;
    act_strv_pushf(&h->empty, "%s;", header->name);
    return h->empty.v[h->empty.n - 1];
}

static int set_headers(struct http_handle *h, const struct http_call *call, struct act_error *err)
{
    static char no_expect[] = "Expect:", no_type[] = "Content-Type:";
    size_t n = 0, most = call->headers.n + 2;
    int rc = 0;

    if (most > h->lines_cap) {
        h->lines_cap = 2 * most;
        h->lines = act_realloc(h->lines, h->lines_cap * sizeof(*h->lines));
    }
    add_header_line(h, n++, no_expect);
    for (size_t i = 0; i < call->headers.n && rc == 0; i++) {
        rc = check_header(&call->headers.v[i], err);
        add_header_line(h, n++, handle_line_of(h, &call->headers.v[i]));
    }
    if (!http_header_get(&call->headers, "Content-Type"))
        add_header_line(h, n++, no_type);
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->lines);
    return rc;
}

/* --- the pool ------------------------------------------------------------------------------------------- */

static void free_handle(struct http_handle *h)
{
    curl_easy_cleanup(h->easy);
    curl_slist_free_all(h->connect_to);
    act_strv_release(&h->empty);
    free(h->lines);
    free(h);
}

static struct http_handle *new_handle(struct http *http)
{
    struct http_handle *h = act_calloc(1, sizeof(*h));

    if (!http->share) {
        http->share = curl_share_init();
        curl_share_setopt(http->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    h->http = http;
    h->easy = engine_easy();
    if (!h->easy) {
        free(h);
        return NULL;
    }
    set_policy(h);
    set_callbacks(h);
    return h;
}

static void start_use(struct http_handle *h, struct http_try *t)
{
    h->t = t;
    h->sends = h->status = 0;
    h->head_complete = h->summed = false;
    h->header_bytes = h->sent = 0;
    h->n_warnings = 0;
    h->moved = 0;
    h->moved_ms = act_now_monotonic_ms();
    h->refused[0] = h->why[0] = '\0';
}

struct http_handle *http_handle_take(struct http_try *t)
{
    struct http *http = t->http;
    struct http_call *call = t->call;
    struct http_handle *h = http->idle && !call->tls ? http->idle : new_handle(http);

    if (!h) {
        act_error_set(&call->error, ACT_FAIL, "cannot set up libcurl");
        return NULL;
    }
    if (h == http->idle)
        http->idle = h->next;
    h->tls = call->tls;
    start_use(h, t);
    if (set_headers(h, call, &call->error) != 0) {
        http_handle_give(h);
        return NULL;
    }
    curl_easy_setopt(h->easy, CURLOPT_URL, call->url);
    set_body(h, call);
    set_method(h, call->method);
    set_buffers(h, call);
    set_patience(h, call);
    set_way(h, t);
    if (h->tls)
        handle_set_tls(h, h->tls);
    return h;
}

CURL *http_handle_of(const struct http_call *call)
{
    return call->under_way->handle->easy;
}

void http_handle_give(struct http_handle *h)
{
    struct http *http = h->http;

    if (http->limit)
        http_limit_leave(http->limit, h);
    if (h->tls) {
        free_handle(h);
        return;
    }
    act_strv_release(&h->empty);
    h->t = NULL;
    h->next = http->idle;
    http->idle = h;
}

void http_handles_free(struct http *http)
{
    struct http_handle *next;

    for (struct http_handle *h = http->idle; h; h = next) {
        next = h->next;
        free_handle(h);
    }
    curl_share_cleanup(http->share);
}
