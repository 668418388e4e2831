/* web.c - connections: each reads a head, waits for its answer, writes it, and takes what still comes, so that closing
 * does not destroy the answer on its way (RFC 9112 section 9.6). */
#include "web/web.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/host.h"
#include "engine/engine.h"
#include "http/http.h"
#include "web/web_internal.h"

enum {
    VISITS = 64,
    ACCEPTS = 16, /* in one turn of the loop */
    TICK_MS = 500,
    READ_MS = 5000,
    WRITE_MS = 30000,   /* without any byte going */
    STARVE_MS = 300000, /* without any byte coming from a file */
    LINGER_MS = 1000,
    LINGER_BYTES = 1 << 20,
    PIECE_BYTES = 64 << 10, /* of a file */
    PIECES = 16,            /* in one turn of the loop */
};

enum stage { FREE, READING, WAITING, WRITING, LINGERING };

struct web_body {
    struct act_buf text;
    int holders;
};

/* A file that is being sent. */
struct web_source {
    struct web_file file;
    uint64_t left; /* to be read */
    size_t at, n;  /* what of the piece is to be sent */
    bool is_watched;
    char piece[PIECE_BYTES];
};

struct web_visit {
    struct web *web;
    enum stage stage;
    int fd;
    int64_t deadline_ms;   /* of reading, writing and lingering */
    uint64_t number;       /* in the order in which they came */
    bool is_head, is_deaf; /* deaf: the client has ended what it says */
    char in[WEB_HEAD_BYTES + 1];
    size_t n_in;
    struct act_buf head;
    struct web_body *body;     /* NULL: none is to be sent, */
    struct web_source *source; /* or this file is */
    size_t n_out;
};

struct web {
    struct web_options options;
    int fd;
    bool is_paused; /* no connection could be accepted; until the next tick */
    char key[WEB_KEY_TEXT];
    char *url;
    uint64_t visits;
    struct web_visit v[VISITS];
};

/* ---- bodies */

struct web_body *web_body_new(struct act_buf *text)
{
    struct web_body *body = act_calloc(1, sizeof(*body));

    body->text = *text;
    body->holders = 1;
    *text = (struct act_buf){0};
    return body;
}

static struct web_body *web_hold(struct web_body *body)
{
    body->holders++;
    return body;
}

void web_body_drop(struct web_body *body)
{
    if (!body || --body->holders > 0)
        return;
    act_buf_release(&body->text);
    free(body);
}

/* ---- files */

static void web_source_unwatch(struct web_visit *v)
{
    if (v->source->is_watched)
        engine_unwatch(v->web->options.engine, v->source->file.fd);
    v->source->is_watched = false;
}

static void web_drop_source(struct web_visit *v)
{
    struct web_source *source = v->source;

    if (!source)
        return;
    web_source_unwatch(v);
    v->source = NULL;
    source->file.ended(source->file.arg);
    free(source);
}

/* Reads the next piece. Returns false when none comes for now, or ever. */
static bool web_read_piece(struct web_source *s, bool *out_ended)
{
    size_t room = s->left < PIECE_BYTES ? (size_t)s->left : PIECE_BYTES;
    ssize_t n = room > 0 ? read(s->file.fd, s->piece, room) : 0;

    *out_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    s->at = 0;
    s->n = n > 0 ? (size_t)n : 0;
    s->left -= s->n;
    return s->n > 0;
}

/* ---- one connection */

static void ready(void *visit);

static void end_visit(struct web_visit *v)
{
    if (v->stage == FREE)
        return;
    web_drop_source(v);
    engine_unwatch(v->web->options.engine, v->fd);
    close(v->fd);
    act_buf_release(&v->head);
    web_body_drop(v->body);
    v->body = NULL;
    v->stage = FREE;
}

static void web_enter(struct web_visit *v, enum stage stage, int64_t time_ms)
{
    v->stage = stage;
    v->deadline_ms = act_now_monotonic_ms() + time_ms;
}

/* A client that has ended what it says is always readable, so each tick writes to it instead. */
static void web_watch(struct web_visit *v)
{
    struct engine *engine = v->web->options.engine;

    bool starves = v->source && v->source->is_watched;

    if (v->is_deaf)
        engine_unwatch(engine, v->fd);
    else if (!engine_watch(engine, v->fd, v->stage == WRITING && !starves, ready, v))
        end_visit(v);
}

/* Returns the length of the next piece to write, and the piece in *out. */
static size_t next_piece(const struct web_visit *v, const char **out)
{
    size_t done = v->n_out < v->head.len ? 0 : v->n_out - v->head.len;

    if (v->n_out < v->head.len) {
        *out = v->head.data + v->n_out;
        return v->head.len - v->n_out;
    }
    *out = v->body ? v->body->text.data + done : NULL;
    return v->body ? v->body->text.len - done : 0;
}

static void begin_to_linger(struct web_visit *v)
{
    shutdown(v->fd, SHUT_WR);
    v->n_out = 0;
    if (v->is_deaf)
        end_visit(v);
    else
        web_enter(v, LINGERING, LINGER_MS);
}

/* Sends bytes. Returns how many have gone; 0: none for now, or the client has gone and the visit is over. */
static size_t web_send_some(struct web_visit *v, const char *bytes, size_t len)
{
    ssize_t n = send(v->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        end_visit(v);
    if (n <= 0)
        return 0;
    v->deadline_ms = act_now_monotonic_ms() + WRITE_MS;
    return (size_t)n;
}

static void web_source_ready(void *visit);

/* Waits for the next piece of the file, for less long once the client has ended its side: it may be gone. */
static void web_starve(struct web_visit *v)
{
    v->source->is_watched = engine_watch(v->web->options.engine, v->source->file.fd, false, web_source_ready, v);
    if (!v->source->is_watched) {
        end_visit(v);
        return;
    }
    v->deadline_ms = act_now_monotonic_ms() + (v->is_deaf ? WRITE_MS : STARVE_MS);
    web_watch(v);
}

/* Goes on where a file gives no piece: it has ended, or none is there yet. One that ends too early ends the connection,
 * so that the client does not take what came for the whole. */
static void web_lack_piece(struct web_visit *v, bool ended)
{
    if (!ended) {
        web_starve(v);
    } else if (v->source->left > 0) {
        end_visit(v);
    } else {
        web_drop_source(v);
        begin_to_linger(v);
    }
}

/* Sends pieces of a file as long as there are some and the client takes them. */
static void web_write_file(struct web_visit *v)
{
    struct web_source *s = v->source;

    for (int i = 0; i < PIECES && !s->is_watched; i++) {
        bool ended = false;
        if (s->at == s->n && !web_read_piece(s, &ended)) {
            web_lack_piece(v, ended);
            return;
        }
        size_t n = web_send_some(v, s->piece + s->at, s->n - s->at);
        if (n == 0)
            return;
        s->at += n;
    }
}

static void write_on(struct web_visit *v)
{
    const char *piece;
    size_t len;

    while ((len = next_piece(v, &piece)) > 0) {
        size_t n = web_send_some(v, piece, len);
        if (n == 0)
            return;
        v->n_out += n;
    }
    if (v->source)
        web_write_file(v);
    else
        begin_to_linger(v);
}

/* There is more of a file. */
static void web_source_ready(void *visit)
{
    struct web_visit *v = visit;

    web_source_unwatch(v);
    write_on(v);
    if (v->stage != FREE && !(v->source && v->source->is_watched))
        web_watch(v);
}

static void begin_to_write(struct web_visit *v)
{
    v->n_out = 0;
    web_enter(v, WRITING, WRITE_MS);
    write_on(v);
    if (v->stage != FREE)
        web_watch(v);
}

/* ---- answers */

static const char nothing[] = "default-src 'none'"; /* the policy of what is no page */

static const char *phrase(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {202, "Accepted"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "";
}

/* A browser must not keep a page, guess its type, show it in a frame, share it with windows of others, or tell the next
 * server of it. */
static void web_add_head(struct act_buf *out, int status, const char *type, uint64_t len)
{
    act_buf_addf(out,
                 "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %llu\r\n"
                 "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                 "X-Frame-Options: DENY\r\nCross-Origin-Opener-Policy: same-origin\r\n"
                 "Cross-Origin-Resource-Policy: same-origin\r\n",
                 status, phrase(status), type, (unsigned long long)len);
}

void web_answer(struct web_visit *v, const struct web_answer *answer)
{
    ACT_AUTOFREE char *type = act_sprintf("%s; charset=utf-8", answer->type ? answer->type : "text/html");

    web_add_head(&v->head, answer->status, type, answer->body->text.len);
    act_buf_addf(&v->head, "Content-Security-Policy: %s\r\n", answer->policy ? answer->policy : nothing);
    if (answer->refresh_s > 0)
        act_buf_addf(&v->head, "Refresh: %d\r\n", answer->refresh_s);
    act_buf_adds(&v->head, "\r\n");
    v->body = v->is_head ? NULL : web_hold(answer->body);
    begin_to_write(v);
}

/* Appends the header that has a browser keep a file under its name (RFC 6266, RFC 8187). */
static void web_add_disposition(struct act_buf *out, const char *name)
{
    ACT_AUTOFREE char *text = act_utf8_valid(name, strlen(name)) ? http_encode(name, false) : act_strdup("file");

    act_buf_addf(out, "Content-Disposition: attachment; filename*=UTF-8''%s\r\n", text);
}

void web_send_file(struct web_visit *v, const struct web_file *file)
{
    web_add_head(&v->head, 200, "application/octet-stream", file->size);
    act_buf_addf(&v->head, "Content-Security-Policy: %s\r\n", nothing);
    web_add_disposition(&v->head, file->name);
    act_buf_adds(&v->head, "\r\n");
    if (v->is_head) {
        file->ended(file->arg);
    } else {
        v->source = act_calloc(1, sizeof(*v->source));
        v->source->file = *file;
        v->source->left = file->size;
    }
    begin_to_write(v);
}

/* Refuses a stranger, and tells him nothing. */
static void web_refuse(struct web_visit *v, int status)
{
    ACT_AUTOFREE char *why =
        act_sprintf("%d %s%s\n", status, phrase(status),
                    status == 403 ? ": open the address that 'a ui' printed last; it has a new key each time" : "");

    web_add_head(&v->head, status, "text/plain; charset=utf-8", strlen(why));
    act_buf_addf(&v->head, "%sContent-Security-Policy: %s\r\n\r\n%s", status == 405 ? "Allow: GET, HEAD\r\n" : "",
                 nothing, v->is_head ? "" : why);
    begin_to_write(v);
}

/* ---- requests */

static void web_take_head(struct web_visit *v, size_t len)
{
    const struct web_options *o = &v->web->options;
    struct web_request request;

    v->in[len] = '\0';
    int status = web_read_head(v->in, len, v->web->key, &request);
    v->is_head = request.is_head;
    if (status != 200) {
        web_refuse(v, status);
        return;
    }
    engine_unwatch(o->engine, v->fd);
    v->stage = WAITING;
    o->visit(o->arg, v, request.path, request.query);
}

/* Returns false when nothing more comes for now, or ever. */
static bool web_read_some(struct web_visit *v, char *to, size_t room, size_t *out_n)
{
    ssize_t n = recv(v->fd, to, room, MSG_DONTWAIT);

    *out_n = n > 0 ? (size_t)n : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0) {
        end_visit(v);
        return false;
    }
    v->is_deaf = n == 0;
    return n > 0;
}

static void web_read_request(struct web_visit *v)
{
    size_t n, len;

    if (!web_read_some(v, v->in + v->n_in, WEB_HEAD_BYTES - v->n_in, &n)) {
        if (v->is_deaf)
            end_visit(v);
        return;
    }
    v->n_in += n;
    len = web_head_end(v->in, v->n_in);
    if (len > 0)
        web_take_head(v, len);
    else if (v->n_in == WEB_HEAD_BYTES)
        web_refuse(v, 431);
}

static void discard(struct web_visit *v)
{
    char ignored[16384];
    size_t n;

    if (!web_read_some(v, ignored, sizeof(ignored), &n) && v->is_deaf && v->stage != FREE) {
        web_watch(v);
        if (v->source && v->source->is_watched)
            v->deadline_ms = act_now_monotonic_ms() + WRITE_MS;
    }
    if (v->stage == LINGERING && (v->is_deaf || (v->n_out += n) > LINGER_BYTES))
        end_visit(v);
}

static void ready(void *visit)
{
    struct web_visit *v = visit;

    if (v->stage == READING) {
        web_read_request(v);
        return;
    }
    discard(v);
    if (v->stage == WRITING)
        write_on(v);
    if (v->stage == LINGERING)
        web_watch(v);
}

/* ---- all connections */

/* Finds a place for one more: a free one, or that of the client that has waited longest without showing the key. NULL:
 * all have shown it. */
static struct web_visit *web_find_place(struct web *web)
{
    struct web_visit *oldest = NULL;

    for (size_t i = 0; i < VISITS; i++) {
        struct web_visit *v = &web->v[i];
        if (v->stage == FREE)
            return v;
        if ((v->stage == READING || v->stage == LINGERING) && (!oldest || v->number < oldest->number))
            oldest = v;
    }
    if (oldest)
        end_visit(oldest);
    return oldest;
}

static void begin_visit(struct web *web, int fd)
{
    struct web_visit *v = web_find_place(web);

    if (!v) {
        close(fd);
        return;
    }
    v->fd = fd;
    v->number = web->visits++;
    v->n_in = v->n_out = 0;
    v->is_head = v->is_deaf = false;
    web_enter(v, READING, READ_MS);
    web_watch(v);
}

/* Accepts some connections. Without descriptors it pauses, because the waiting one would wake the loop for ever. */
static void web_accept_some(void *arg)
{
    struct web *web = arg;

    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(web->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            begin_visit(web, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        web->is_paused = errno != EAGAIN;
        if (web->is_paused)
            engine_unwatch(web->options.engine, web->fd);
        return;
    }
}

static void web_tick(void *arg)
{
    struct web *web = arg;
    int64_t now_ms = act_now_monotonic_ms();

    for (size_t i = 0; i < VISITS; i++) {
        struct web_visit *v = &web->v[i];
        if (v->stage == FREE || v->stage == WAITING)
            continue;
        if (v->deadline_ms <= now_ms)
            end_visit(v);
        else if (v->stage == WRITING && v->is_deaf)
            write_on(v);
    }
    if (web->is_paused)
        web->is_paused = !engine_watch(web->options.engine, web->fd, false, web_accept_some, web);
    engine_timer(web->options.engine, TICK_MS, web_tick, web);
}

/* ---- the server */

static int listen_here(struct web *web, struct act_error *err)
{
    uint8_t key[WEB_KEY_BYTES];
    uint16_t port = (uint16_t)web->options.port;

    web->fd = act_listen_here(&port, VISITS);
    if (web->fd == -EADDRINUSE)
        return act_error_set(err, ACT_USAGE,
                             "port %d of 127.0.0.1 is taken; --port takes another one, and without it one that is "
                             "free is found",
                             web->options.port);
    if (web->fd < 0)
        return act_error_errno(err, -web->fd, "cannot listen on 127.0.0.1, port %d", web->options.port);
    act_random(key, sizeof(key));
    act_hex(key, sizeof(key), web->key);
    web->url = act_sprintf("http://127.0.0.1:%d/%s/", port, web->key);
    return 0;
}

int web_open(const struct web_options *options, struct web **out, struct act_error *err)
{
    struct web *web = act_calloc(1, sizeof(*web));

    web->options = *options;
    for (size_t i = 0; i < VISITS; i++)
        web->v[i].web = web;
    int rc = listen_here(web, err);
    if (rc == 0 && !engine_watch(options->engine, web->fd, false, web_accept_some, web))
        rc = act_error_errno(err, errno, "cannot wait for connections");
    if (rc == 0)
        engine_timer(options->engine, TICK_MS, web_tick, web);
    *out = web;
    if (rc == 0)
        return 0;
    web_close(web);
    *out = NULL;
    return rc;
}

const char *web_url(const struct web *web)
{
    return web->url;
}

void web_close(struct web *web)
{
    if (!web)
        return;
    for (size_t i = 0; i < VISITS; i++)
        end_visit(&web->v[i]);
    engine_forget(web->options.engine, web);
    if (web->fd >= 0) {
        engine_unwatch(web->options.engine, web->fd);
        close(web->fd);
    }
    free(web->url);
    free(web);
}
