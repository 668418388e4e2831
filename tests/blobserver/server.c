#include "server.h"

#include "fault.h"
#include "files_service.h"
#include "service.h"
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SWALLOW_ABOVE = 64 << 10,
    PATTERN_FILE = 4 << 20, /* a multiple of PATTERN */
    RECEIVE = 1 << 20,
    FIRST_READ = 16 << 10,
    TURNS = 16, /* of one connection, before others have theirs */
    OVERLONG = 100,
    LONG_HEADER = 1 << 20,
    TRICKLE_MS = 20,
};

enum state { HEAD, BODY, REPLY, ASLEEP, GONE };
enum cut { CUT_NOT, CUT_RESET, CUT_CLOSE, CUT_WAIT };

struct loop {
    int epoll;
    struct connection **sleeping;
    size_t n_sleeping, cap_sleeping;
    struct connection *gone; /* freed at the end of a turn */
    char *sink;              /* where swallowed bytes do not go */
};

struct connection {
    struct loop *loop;
    size_t slot; /* among those asleep */
    struct connection *next_gone;
    struct stream stream;
    uint32_t events;
    enum state state;
    char *in;
    size_t in_n, in_cap, head_n;
    struct request request;
    struct reply reply;
    struct fault fault;
    bool refuse; /* the fault is the answer */
    bool close;
    char *target; /* path and query as they came */
    uint64_t received;

    struct text out;      /* head and text of the answer */
    uint64_t sent, total; /* of the answer, with the bytes of a blob */
    size_t piece;         /* of the blob's content that is next */
    uint64_t piece_start; /* in the blob */
    enum cut cut;
    uint64_t cut_at;
    int64_t wake;
};

static struct server_options options;
static int listener, pattern_file;
static char *pattern;
static _Atomic uint64_t request_ids;

/* ---- sleeping and waiting */

static void want(struct connection *c, uint32_t events)
{
    if (events == c->events)
        return;
    c->events = events;
    epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->stream.fd, &(struct epoll_event){.events = events, .data.ptr = c});
}

static void wake_up(struct connection *c)
{
    struct loop *loop = c->loop;
    struct connection *last = loop->sleeping[--loop->n_sleeping];

    loop->sleeping[last->slot = c->slot] = last;
}

static void fall_asleep(struct connection *c, int64_t ms)
{
    struct loop *loop = c->loop;

    if (loop->n_sleeping == loop->cap_sleeping)
        loop->sleeping =
            need(realloc(loop->sleeping, (loop->cap_sleeping = loop->cap_sleeping * 2 + 64) * sizeof(void *)));
    loop->sleeping[c->slot = loop->n_sleeping++] = c;
    c->state = ASLEEP;
    c->wake = monotonic_ms() + ms;
    want(c, 0);
}

static void leave(struct connection *c)
{
    if (c->state == ASLEEP)
        wake_up(c);
    c->state = GONE;
    c->next_gone = c->loop->gone;
    c->loop->gone = c;
}

static bool blob_hang_up(struct connection *c, bool reset)
{
    if (reset)
        setsockopt(c->stream.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    leave(c);
    return false;
}

static void bury(struct loop *loop)
{
    while (loop->gone) {
        struct connection *c = loop->gone;
        loop->gone = c->next_gone;
        stream_close(&c->stream);
        request_free(&c->request);
        reply_free(&c->reply);
        text_free(&c->out);
        free(c->target);
        free(c->in);
        free(c);
    }
}

/* ---- the answer */

static void blob_add_head(struct connection *c)
{
    const struct request *r = &c->request;
    const char *version = header(r, "x-ms-version"), *id = header(r, "x-ms-client-request-id");
    static _Thread_local int64_t second;
    static _Thread_local char date[RFC1123];
    uint64_t length = c->reply.body.n ? c->reply.body.n : c->reply.n;
    struct text *t = &c->out;

    if (blobs_now() != second)
        date_http(second = blobs_now(), date);
    text_clear(t);
    text_str(t, "HTTP/1.1 ");
    text_number(t, (uint64_t)c->reply.status);
    text_add(t, " ", 1);
    text_str(t, status_text(c->reply.status));
    text_str(t, "\r\nServer: blobserver\r\nDate: ");
    text_str(t, date);
    text_addf(t, "\r\nx-ms-request-id: %08llx-0000-4000-8000-000000000000\r\nx-ms-version: ",
              (unsigned long long)++request_ids);
    text_str(t, version ? version : "2023-11-03");
    text_str(t, "\r\n");
    if (id) {
        text_str(t, "x-ms-client-request-id: ");
        text_str(t, id);
        text_str(t, "\r\n");
    }
    if (c->reply.head.n)
        text_add(t, c->reply.head.s, c->reply.head.n);
    if (c->reply.status != 204 && c->reply.status != 304) {
        text_str(t, "Content-Length: ");
        text_number(t, length);
        text_str(t, "\r\n");
    }
    text_str(t, c->close ? "Connection: close\r\n\r\n" : "\r\n");
}

static void set_cut(struct connection *c, enum cut cut, uint64_t head)
{
    static const struct {
        unsigned head, half;
    } places[] = {
        [AT_ANSWER] = {0, 0}, [AT_REQUEST] = {0, 0}, [AT_UPLOAD] = {0, 0}, [AT_HEADERS] = {1, 0}, [AT_BODY] = {1, 1}};

    c->cut = cut;
    c->cut_at = places[c->fault.where].head * head + places[c->fault.where].half * (c->total - head) / 2;
}

static void apply_fault(struct connection *c, uint64_t head)
{
    switch (c->fault.kind) {
    case FAULT_RESET:
        set_cut(c, CUT_RESET, head);
        break;
    case FAULT_STALL:
        set_cut(c, CUT_WAIT, head);
        break;
    case FAULT_TRUNCATE:
        set_cut(c, CUT_CLOSE, head);
        break;
    case FAULT_TRICKLE:
        c->fault.ms = TRICKLE_MS;
        c->cut = CUT_WAIT;
        c->cut_at = 0;
        break;
    case FAULT_OVERLONG:
        c->close = true;
        break;
    default:
        if (options.latency_ms) {
            c->fault.ms = options.latency_ms;
            c->cut = CUT_WAIT;
            c->cut_at = 0;
        }
        break;
    }
}

/* Replaces the value of a header in the reply's own lines by one of the same length. */
static void spoil(struct text *head, const char *name, size_t skip)
{
    char *at = head->s ? strstr(head->s, name) : NULL;

    if (at)
        at[strlen(name) + skip] = at[strlen(name) + skip] == '1' ? '2' : '1';
}

/* Takes the bytes of a blob into the reply, to change one of them. */
static void corrupt(struct reply *reply)
{
    if (reply->version) {
        text_room(&reply->body, reply->n);
        content_read(reply->version->content, reply->from, reply->n, (uint8_t *)reply->body.s);
        reply->body.n = reply->n;
        version_unref(reply->version);
        reply->version = NULL;
    }
    if (reply->body.n)
        reply->body.s[reply->body.n / 2] ^= 1;
}

/* Of nothing, whatever the body is. */
static void add_md5(struct reply *reply)
{
    char md5[25];

    md5_base64("", 0, md5);
    reply_header(reply, "Content-MD5", md5);
}

static void add_long_header(struct reply *reply)
{
    text_addf(&reply->head, "x-ms-meta-long: %0*d\r\n", LONG_HEADER, 0);
}

static void spoil_reply(struct connection *c)
{
    struct reply *reply = &c->reply;

    switch (c->fault.kind) {
    case FAULT_RANGE:
        spoil(&reply->head, "Content-Range: bytes ", 0);
        break;
    case FAULT_CHECKSUM:
        spoil(&reply->head, "x-ms-content-crc64: ", 0);
        spoil(&reply->head, "Content-MD5: ", 0);
        break;
    case FAULT_CORRUPT:
        corrupt(reply);
        break;
    case FAULT_BODY_MD5:
        add_md5(reply);
        break;
    case FAULT_HEADER:
        add_long_header(reply);
        break;
    case FAULT_PAGE:
        reply->body.n -= c->fault.torn ? reply->body.n / 2 : 0;
        break;
    default:
        break;
    }
}

static void start_reply(struct connection *c)
{
    struct reply *reply = &c->reply;
    bool no_body = !strcmp(c->request.method, "HEAD") || reply->status == 304;

    spoil_reply(c);
    c->close |= c->fault.kind == FAULT_OVERLONG;
    blob_add_head(c);
    uint64_t head = c->out.n;
    if (!no_body && reply->body.n)
        text_add(&c->out, reply->body.s, reply->body.n);
    c->total = c->out.n + (!no_body && reply->version ? reply->n : 0);
    c->sent = c->piece = c->piece_start = 0;
    c->cut = CUT_NOT;
    apply_fault(c, head);
    if (c->fault.kind == FAULT_OVERLONG && !reply->version)
        text_addf(&c->out, "%*s", OVERLONG, "");
    c->total += c->fault.kind == FAULT_OVERLONG ? OVERLONG : 0;
    /* Before it is sent, so that the log is in the order that a client sees. */
    bool all = c->cut == CUT_NOT || c->cut == CUT_WAIT;
    log_add(c->request.method, c->target, reply->status, c->received, all ? c->total : c->cut_at);
    c->state = REPLY;
}

/* Sends from the blob's content. Returns what send gives. */
static ssize_t send_content(struct connection *c, uint64_t limit)
{
    const struct content *content = c->reply.version->content;
    uint64_t at = c->reply.from + (c->sent - c->out.n);

    while (c->piece < content->n_pieces && at >= c->piece_start + content->pieces[c->piece].n)
        c->piece_start += content->pieces[c->piece++].n;
    if (c->piece == content->n_pieces) { /* behind the end: the overlong part */
        static const char extra[OVERLONG];
        return stream_send(&c->stream, extra, limit < OVERLONG ? limit : OVERLONG, false);
    }
    const struct piece *p = &content->pieces[c->piece];
    uint64_t in_piece = at - c->piece_start, n = p->n - in_piece;
    n = n < limit ? n : limit;
    if (p->data->bytes)
        return stream_send(&c->stream, p->data->bytes + p->from + in_piece, n, n < limit);
    off_t offset = (off_t)(at % PATTERN);
    n = n < PATTERN_FILE - PATTERN ? n : PATTERN_FILE - PATTERN;
    return stream_send_file(&c->stream, pattern_file, pattern, offset, n);
}

static bool end_of_reply(struct connection *c)
{
    if (c->close)
        return blob_hang_up(c, false);
    data_unref(c->request.body);
    c->request.body = NULL;
    reply_clear(&c->reply);
    c->state = HEAD;
    if (c->in_n > c->head_n || stream_has_more(&c->stream))
        return true;
    want(c, EPOLLIN); /* nothing more was received yet */
    return false;
}

static void next_drop(struct connection *c)
{
    uint64_t drop = (uint64_t)(c->fault.rate * TRICKLE_MS / 1000) + 1;

    if (c->sent + drop < c->total) {
        c->cut = CUT_WAIT;
        c->cut_at = c->sent + drop;
    }
}

static bool blob_cut_off(struct connection *c)
{
    enum cut cut = c->cut;

    c->cut = CUT_NOT;
    if (c->fault.kind == FAULT_TRICKLE)
        next_drop(c);
    if (cut == CUT_WAIT) {
        fall_asleep(c, c->fault.ms);
        return false;
    }
    return blob_hang_up(c, cut == CUT_RESET);
}

/* Returns whether the connection can go on at once. */
static bool send_reply(struct connection *c)
{
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t limit = (c->cut ? c->cut_at : c->total) - c->sent;
        if (!limit && !stream_flush(&c->stream))
            break;
        if (!limit && c->cut)
            return blob_cut_off(c);
        if (!limit)
            return end_of_reply(c);
        ssize_t n = 0;
        if (c->sent < c->out.n) {
            uint64_t text = c->out.n - c->sent;
            n = stream_send(&c->stream, c->out.s + c->sent, text < limit ? text : limit, text < limit);
        } else {
            n = send_content(c, limit);
        }
        if (n < 0 && errno != EAGAIN)
            return blob_hang_up(c, false);
        if (n < 0)
            break;
        c->sent += (uint64_t)n;
    }
    want(c, EPOLLOUT);
    return false;
}

/* ---- the request */

static void blob_refuse(struct connection *c)
{
    if (*c->fault.retry_after)
        reply_header(&c->reply, "Retry-After", c->fault.retry_after);
    reply_error(&c->reply, c->fault.status, c->fault.code);
}

/* Somebody else writes the blob: as many bytes, but others. */
static void replace_blob(const struct request *r)
{
    struct container *c = container_find(r->account, r->container);
    struct entry *e = c ? entry_find(c, r->blob) : NULL;
    if (e && e->current) {
        uint64_t n = e->current->content->n;
        struct data *d = data_new(n, false);
        memset(d->bytes, '!', n);
        struct version *v = version_copy(e->current);
        content_unref(v->content);
        v->content = content_of(d);
        entry_set(c, e, v);
    }
}

static void blob_replace(const struct request *r)
{
    blobs_write();
    if (options.files)
        files_replace(r);
    else
        replace_blob(r);
    blobs_unlock();
}

static bool blob_serve(struct connection *c)
{
    struct request *r = &c->request;

    if (c->refuse)
        blob_refuse(c);
    else if (!strncmp(r->path, "/-/", 3))
        control(r, &c->reply);
    else {
        if (c->fault.kind == FAULT_REPLACE)
            blob_replace(r);
        r->page = c->fault.page;
        r->pending_ms = c->fault.kind == FAULT_PENDING ? c->fault.ms : 0;
        if (options.files)
            files_service(r, &c->reply);
        else
            service(r, &c->reply);
    }
    start_reply(c);
    return true;
}

/* Bodies of blobs and blocks that nobody looks at again. */
static bool may_swallow(const struct request *r)
{
    const char *comp = param(r, "comp");

    return options.discard && r->length > SWALLOW_ABOVE && *r->blob && !strcmp(r->method, "PUT") &&
           (!*comp || !strcmp(comp, "block") || !strcmp(comp, "appendblock") || !strcmp(comp, "range"));
}

static bool bad_request(struct connection *c, int status, const char *code)
{
    c->close = true;
    c->target = c->target ? c->target : need(strdup("/"));
    c->request.method = "BAD";
    reply_error(&c->reply, status, code);
    start_reply(c);
    return true;
}

static void interim(struct connection *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    stream_send(&c->stream, go_on, sizeof(go_on) - 1, false);
    stream_flush(&c->stream);
}

static bool start_body(struct connection *c)
{
    struct request *r = &c->request;
    const char *expect = header(r, "expect"), *connection = header(r, "connection");

    c->close = connection && !strcasecmp(connection, "close");
    c->received = 0;
    c->fault = strncmp(r->path, "/-/", 3) ? fault_for(r->method, c->target) : (struct fault){0};
    c->refuse = c->fault.kind == FAULT_ANSWER || c->fault.kind == FAULT_THROTTLE;
    if (c->fault.kind == FAULT_RESET && c->fault.where == AT_REQUEST) {
        log_add(r->method, c->target, 0, 0, 0);
        return blob_hang_up(c, true);
    }
    if (header(r, "transfer-encoding"))
        return bad_request(c, 411, "MissingContentLengthHeader");
    if (expect && !strcasecmp(expect, "100-continue"))
        interim(c);
    if (r->length)
        r->body = data_new(r->length, c->refuse || may_swallow(r));
    c->state = BODY;
    return true;
}

static bool blob_read_more(struct connection *c)
{
    if (c->in_n == c->in_cap)
        c->in = need(realloc(c->in, c->in_cap = c->in_cap * 2 + FIRST_READ));
    ssize_t n = stream_recv(&c->stream, c->in + c->in_n, c->in_cap - c->in_n, false);
    if (n > 0)
        c->in_n += (size_t)n;
    else if (!n || errno != EAGAIN)
        blob_hang_up(c, false);
    else
        want(c, EPOLLIN);
    return n > 0;
}

static char *join_target(const char *head, size_t n)
{
    const char *start = memchr(head, ' ', n);
    const char *end = start ? memchr(start + 1, ' ', n - (size_t)(start + 1 - head)) : NULL;

    return end ? need(strndup(start + 1, (size_t)(end - start - 1))) : NULL;
}

static bool read_head(struct connection *c)
{
    const char *end = c->in_n ? memmem(c->in, c->in_n, "\r\n\r\n", 4) : NULL;

    if (!end && c->in_n > MAX_HEAD)
        return bad_request(c, 400, "InvalidInput");
    if (!end)
        return blob_read_more(c);
    c->head_n = (size_t)(end - c->in) + 4;
    free(c->target);
    c->target = join_target(c->in, c->head_n);
    if (!c->target || !request_parse(&c->request, c->in, c->head_n))
        return bad_request(c, 400, "InvalidUri");
    return start_body(c);
}

/* What came behind the head belongs to the body, and behind that to the next request. */
static void take_buffered(struct connection *c)
{
    uint64_t left = c->request.length - c->received;
    size_t there = c->in_n - c->head_n, n = there < left ? there : (size_t)left;

    if (n && c->request.body->bytes)
        memcpy(c->request.body->bytes + c->received, c->in + c->head_n, n);
    c->received += n;
    c->head_n += n;
}

static bool read_body(struct connection *c)
{
    struct request *r = &c->request;
    bool cut = c->fault.kind == FAULT_RESET && c->fault.where == AT_UPLOAD;

    take_buffered(c);
    for (int turn = 0; c->received < r->length; turn++) {
        if (turn >= TURNS && !stream_has_more(&c->stream)) {
            want(c, EPOLLIN);
            return false;
        }
        uint64_t left = r->length - c->received;
        size_t most = left < RECEIVE ? (size_t)left : RECEIVE;
        ssize_t n = r->body->bytes ? stream_recv(&c->stream, r->body->bytes + c->received, most, false)
                                   : stream_recv(&c->stream, c->loop->sink, most, true);
        if (n > 0)
            c->received += (uint64_t)n;
        else if (!n || errno != EAGAIN)
            return blob_hang_up(c, false);
        if (cut && c->received >= r->length / 2) {
            log_add(r->method, c->target, 0, c->received, 0);
            return blob_hang_up(c, true);
        }
        if (n < 0) {
            want(c, EPOLLIN);
            return false;
        }
    }
    return blob_serve(c);
}

/* The head's memory is in use until the answer is sent; then the next request moves to the front. */
static bool next_request(struct connection *c)
{
    if (c->head_n) {
        memmove(c->in, c->in + c->head_n, c->in_n -= c->head_n);
        c->head_n = 0;
    }
    return read_head(c);
}

static void advance(struct connection *c)
{
    bool more = true;

    while (more)
        switch (c->state) {
        case HEAD:
            more = next_request(c);
            break;
        case BODY:
            more = read_body(c);
            break;
        case REPLY:
            more = send_reply(c);
            break;
        default:
            more = false;
            break;
        }
}

/* ---- loops */

static void accept_one(struct loop *loop)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct connection *c = need(calloc(1, sizeof(*c)));
    *c = (struct connection){.loop = loop, .events = EPOLLIN};
    stream_open(&c->stream, fd);
    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
}

/* Continues those whose time has come. Returns the milliseconds until the next one's, -1 without one; a connection that
 * woke may sleep again because of its next request. */
static int wake_sleepers(struct loop *loop)
{
    int64_t now = loop->n_sleeping ? monotonic_ms() : 0, soonest = -1;

    for (size_t i = loop->n_sleeping; i-- > 0;) { /* downwards: the last one takes the place of one that leaves */
        struct connection *c = loop->sleeping[i];
        if (c->wake > now)
            continue;
        wake_up(c);
        c->state = REPLY;
        advance(c);
    }
    for (size_t i = 0; i < loop->n_sleeping; i++) {
        int64_t left = loop->sleeping[i]->wake - now;
        soonest = soonest < 0 || left < soonest ? left : soonest;
    }
    return (int)soonest;
}

static void *run_loop(void *arg)
{
    struct loop *loop = arg;
    struct epoll_event events[64];

    for (;;) {
        int n = epoll_wait(loop->epoll, events, COUNT(events), wake_sleepers(loop));
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c)
                accept_one(loop);
            else if (c->state == ASLEEP) /* only an error can wake it */
                leave(c);
            else
                advance(c);
        }
        bury(loop);
    }
    return NULL;
}

static bool make_pattern(void)
{
    pattern_file = memfd_create("pattern", MFD_CLOEXEC);
    if (pattern_file < 0 || ftruncate(pattern_file, PATTERN_FILE))
        return false;
    pattern = mmap(NULL, PATTERN_FILE, PROT_READ | PROT_WRITE, MAP_SHARED, pattern_file, 0);
    for (unsigned i = 0; pattern != MAP_FAILED && i < PATTERN_FILE; i++)
        pattern[i] = (char)pattern_byte(i);
    return pattern != MAP_FAILED;
}

static int open_listener(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int on = 1;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        bind(listener, (struct sockaddr *)&address, n) || listen(listener, 4096) ||
        getsockname(listener, (struct sockaddr *)&address, &n))
        return -1;
    return ntohs(address.sin_port);
}

static bool start_loop(void)
{
    struct loop *loop = need(calloc(1, sizeof(*loop)));
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    pthread_t thread;

    loop->sink = need(malloc(RECEIVE));
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll >= 0 && !epoll_ctl(loop->epoll, EPOLL_CTL_ADD, listener, &event) &&
           !pthread_create(&thread, NULL, run_loop, loop) && !pthread_detach(thread);
}

int server_start(const struct server_options *chosen)
{
    options = *chosen;
    int port = open_listener(options.port);
    if (port < 0 || !make_pattern())
        return -1;
    service_port(port);
    for (int i = 0; i < options.threads; i++)
        if (!start_loop())
            return -1;
    return port;
}
