/* websocket.c - see websocket.h. A connection, one request and its response by hand, then frames. */
#include "http/websocket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "http/http_internal.h"

enum {
    CONTINUATION = 0,
    BINARY = 2,
    CLOSE = 8,
    PING = 9,
    PONG = 10,
    LAST = 0x80,   /* of the frames of a message; beside the opcode */
    MASKED = 0x80, /* beside the length */
    LENGTH_16 = 126,
    LENGTH_64 = 127,
    CONTROL = 8,       /* this bit of the opcode: a frame that is no part of a message */
    CONTROL_MAX = 125, /* bytes of such a frame */
    RESERVED = 0x70,   /* for extensions, none of which was asked for */
    MASK = 4,
    UNREAD_MAX = 4 << 10, /* a server reads so much, whatever becomes of it */
    KEY_BYTES = 16,
    HEAD_MAX = 64 << 10,
    MESSAGE_MAX = 64 << 20,
    READ_SIZE = 64 << 10,
    SWITCHING = 101,
};

/* ---- the end ---- */

static void forget_timers(struct http_websocket *ws)
{
    engine_forget(http_engine(ws->http), ws);
    engine_forget(http_engine(ws->http), &ws->pulse);
}

static void websocket_end(struct http_websocket *ws, int rc)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (ws->is_over)
        return;
    ws->is_over = true;
    ws->rc = rc;
    forget_timers(ws);
    curl_easy_getinfo(http_handle_of(ws->call), CURLINFO_ACTIVESOCKET, &fd);
    if (fd != CURL_SOCKET_BAD)
        engine_unwatch(http_engine(ws->http), fd);
    http_cancel(ws->call);
}

static void broke(struct http_websocket *ws, const char *how)
{
    websocket_end(ws, act_error_set(&ws->why, ACT_TEMPORARY, "%s: the connection %s", ws->call->what, how));
    ws->why.network = true;
}

static void websocket_refuse(struct http_websocket *ws, const char *what)
{
    websocket_end(ws, act_error_set(&ws->why, ACT_FAIL, "%s: the server does not speak WebSocket as it should: %s",
                                    ws->call->what, what));
}

/* The connection is gone. */
static void websocket_ended(struct http_call *call)
{
    struct http_websocket *ws = call->arg;

    forget_timers(ws);
    if (ws->is_over) {
        call->rc = ws->rc;
        call->error = ws->rc < 0 ? ws->why : (struct act_error){0};
    } else if (call->rc < 0) {
        act_error_prefix(&call->error, "%s", call->what);
    }
    ws->done(ws);
}

/* ---- sending ---- */

static void on_socket(void *arg);

static void websocket_wait_for(struct http_websocket *ws, bool out)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    ws->waits_to_send = out;
    curl_easy_getinfo(http_handle_of(ws->call), CURLINFO_ACTIVESOCKET, &fd);
    if (fd == CURL_SOCKET_BAD || !engine_watch(http_engine(ws->http), fd, out, on_socket, ws))
        broke(ws, "cannot be waited for");
}

/* There are two buffers, because OpenSSL wants bytes that it could not send at once again at the same address. */
static bool next_buffer(struct http_websocket *ws)
{
    struct act_buf sent = ws->sending;

    if (ws->sent < ws->sending.len)
        return true;
    ws->sending = ws->queued;
    ws->queued = sent;
    ws->queued.len = 0;
    ws->sent = 0;
    return ws->sending.len > 0;
}

static void websocket_flush(struct http_websocket *ws)
{
    CURLcode code = CURLE_OK;

    while (!ws->is_over && code == CURLE_OK && next_buffer(ws)) {
        size_t n = 0;
        code = curl_easy_send(http_handle_of(ws->call), ws->sending.data + ws->sent, ws->sending.len - ws->sent, &n);
        ws->sent += code == CURLE_OK ? n : 0;
    }
    if (ws->is_over)
        return;
    if (code != CURLE_OK && code != CURLE_AGAIN)
        broke(ws, "broke");
    else if (ws->waits_to_send != (code == CURLE_AGAIN))
        websocket_wait_for(ws, code == CURLE_AGAIN);
}

static void flush_later(void *arg)
{
    struct http_websocket *ws = arg;

    websocket_flush(ws);
    if (!ws->is_over && ws->is_open && http_websocket_unsent(ws) == 0)
        ws->drained(ws);
}

size_t http_websocket_unsent(const struct http_websocket *ws)
{
    return ws->sending.len - ws->sent + ws->queued.len;
}

/* A client masks what it sends, with another mask for each frame, so that nobody on the way takes it for something
 * else. */
static void add_frame(struct http_websocket *ws, int opcode, const uint8_t *data, size_t len)
{
    uint8_t head[2 + sizeof(uint64_t) + MASK], *mask;
    size_t n = 2, bytes = len < LENGTH_16 ? 0 : len <= UINT16_MAX ? sizeof(uint16_t) : sizeof(uint64_t);

    head[0] = (uint8_t)(LAST | opcode);
    head[1] = (uint8_t)(MASKED | (bytes == 0 ? len : bytes == sizeof(uint16_t) ? LENGTH_16 : LENGTH_64));
    for (size_t i = bytes; i > 0; i--)
        head[n++] = (uint8_t)(len >> 8 * (i - 1));
    mask = head + n;
    act_random(mask, MASK);
    act_buf_add(&ws->queued, head, n + MASK);
    size_t at = ws->queued.len;
    act_buf_add(&ws->queued, data, len);
    for (size_t i = 0; i < len; i++)
        ws->queued.data[at + i] ^= (char)mask[i % MASK];
}

static void send_later(struct http_websocket *ws)
{
    engine_forget(http_engine(ws->http), ws);
    engine_timer(http_engine(ws->http), 0, flush_later, ws);
}

void http_websocket_send(struct http_websocket *ws, const void *data, size_t len)
{
    if (ws->is_over)
        return;
    add_frame(ws, BINARY, data, len);
    ws->pulse.unread += len;
    send_later(ws);
}

/* ---- whether it is still there ---- */

enum beat { BEAT_ON, BEAT_ASK, BEAT_DEAD };

static enum beat next_beat(const struct http_websocket_pulse *pulse)
{
    if (pulse->heard)
        return BEAT_ON;
    if (!pulse->asked)
        return BEAT_ASK;
    return pulse->before > UNREAD_MAX ? BEAT_ON : BEAT_DEAD;
}

static void start_beat(struct http_websocket *ws);

static void websocket_beat(void *arg)
{
    struct http_websocket_pulse *pulse = arg;
    struct http_websocket *ws = pulse->ws;
    enum beat next = next_beat(pulse);

    pulse->heard = false;
    if (next == BEAT_DEAD) {
        broke(ws, "is silent, and nobody answers there");
        return;
    }
    if (next == BEAT_ASK) {
        pulse->asked = true;
        pulse->before = pulse->unread;
        add_frame(ws, PING, (const uint8_t *)"", 0);
        send_later(ws);
    }
    start_beat(ws);
}

static void start_beat(struct http_websocket *ws)
{
    ws->pulse.ws = ws;
    engine_timer(http_engine(ws->http), (int64_t)ws->http->options.stall_timeout_s * 1000, websocket_beat, &ws->pulse);
}

/* Notes that the server has read what was sent before the ping. */
static void take_pong(struct http_websocket_pulse *pulse)
{
    pulse->unread -= pulse->asked ? pulse->before : 0;
    pulse->before = 0;
    pulse->asked = false;
}

/* ---- frames ---- */

static void take_message(struct http_websocket *ws, bool is_last, const char *data, size_t len)
{
    ws->in_parts = !is_last;
    if (is_last && ws->part.len == 0) {
        ws->message(ws, data, len);
        return;
    }
    act_buf_add(&ws->part, data, len);
    if (!is_last)
        return;
    struct act_buf whole = ws->part;
    ws->part = (struct act_buf){0};
    ws->message(ws, whole.data, whole.len);
    act_buf_release(&whole);
}

/* Says what RFC 6455, 5.2 to 5.5, does not allow in a frame of that first byte and so many bytes of data; NULL: it is
 * well. Without the bound a server could have any number of bytes sent back to it. */
static const char *fault_of(const struct http_websocket *ws, int first, size_t len)
{
    int opcode = first & 0xf;

    if (first & RESERVED)
        return "a frame of an extension that was not asked for";
    if (opcode & CONTROL)
        return opcode > PONG                          ? "a frame of a kind that there is not"
               : !(first & LAST) || len > CONTROL_MAX ? "a control frame in parts or too long"
                                                      : NULL;
    if (opcode > BINARY)
        return "a frame of a kind that there is not";
    if ((opcode == CONTINUATION) != ws->in_parts)
        return "a part of a message out of its order";
    return ws->part.len + len > MESSAGE_MAX ? "too long a message" : NULL;
}

static void take_frame(struct http_websocket *ws, int first, const char *data, size_t len)
{
    const char *fault = fault_of(ws, first, len);
    int opcode = first & 0xf;

    if (fault) {
        websocket_refuse(ws, fault);
    } else if (opcode == PING) {
        add_frame(ws, PONG, (const uint8_t *)data, len);
        send_later(ws);
    } else if (opcode == CLOSE) {
        websocket_end(ws, 0);
    } else if (opcode == PONG) {
        take_pong(&ws->pulse);
    } else {
        take_message(ws, first & LAST, data, len);
    }
}

/* Returns the length of the first frame with its head; 0: it is not all there; SIZE_MAX: it is not a frame. */
static size_t frame_at(const uint8_t *bytes, size_t len, size_t *out_head)
{
    size_t head = 2, n = len >= 2 ? bytes[1] : 0;

    if (len < head)
        return 0;
    if (n & MASKED)
        return SIZE_MAX;
    size_t more = n == LENGTH_16 ? sizeof(uint16_t) : n == LENGTH_64 ? sizeof(uint64_t) : 0;
    if (len < head + more)
        return 0;
    n = more ? 0 : n;
    for (size_t i = 0; i < more; i++)
        n = n << 8 | bytes[head + i];
    *out_head = head + more;
    if (n > MESSAGE_MAX)
        return SIZE_MAX;
    return len - *out_head < n ? 0 : *out_head + n;
}

static void take_frames(struct http_websocket *ws)
{
    size_t at = 0, head = 0, n = 0;

    while (!ws->is_over) {
        const uint8_t *frame = (const uint8_t *)ws->in.data + at;
        n = frame_at(frame, ws->in.len - at, &head);
        if (n == 0 || n == SIZE_MAX)
            break;
        at += n;
        take_frame(ws, frame[0], (const char *)frame + head, n - head);
    }
    if (!ws->is_over && n == SIZE_MAX)
        websocket_refuse(ws, "a frame that is masked or too long");
    memmove(ws->in.data, ws->in.data + at, ws->in.len - at);
    ws->in.len -= at;
}

/* ---- the response ---- */

static void websocket_take_headers(struct http_call *call, char *head)
{
    char *rest = NULL;

    for (char *line = strtok_r(head, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        http_header_add(&call->response_headers, line, (size_t)(colon - line), value, strlen(value));
    }
}

static const char *header(const struct http_websocket *ws, const char *name)
{
    const char *value = http_header_get(&ws->call->response_headers, name);

    return value ? value : "";
}

static bool proves_it(const struct http_websocket *ws)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    ACT_AUTOFREE char *text = act_sprintf("%s%s", ws->key, guid);
    char wanted[ACT_SHA1_BASE64];

    act_sha1_base64(text, strlen(text), wanted);
    return strcmp(header(ws, "Sec-WebSocket-Accept"), wanted) == 0 &&
           strcasecmp(header(ws, "Upgrade"), "websocket") == 0;
}

static void take_body(struct http_websocket *ws, bool has_closed)
{
    size_t wanted = strtoul(header(ws, "Content-Length"), NULL, 10);

    if (ws->in.len < wanted && wanted <= HEAD_MAX && !has_closed)
        return;
    act_buf_add(&ws->call->body_text, ws->in.data, ws->in.len < wanted ? ws->in.len : wanted);
    websocket_end(ws, 0);
}

/* Reads the status of "HTTP/1.1 101 Switching Protocols"; 0: it is no possible one. */
static int websocket_status_of(const char *head)
{
    char version, digits[4];
    int end = 0;

    if (sscanf(head, "HTTP/1.%c %3[0-9]%n", &version, digits, &end) != 2 || !strchr("01", version) ||
        strlen(digits) != 3 || !strchr(" \r", head[end]))
        return 0;
    return *digits >= '1' && *digits <= '5' ? (int)strtol(digits, NULL, 10) : 0;
}

static void websocket_take_head(struct http_websocket *ws)
{
    char *stop = ws->in.len ? strstr(ws->in.data, "\r\n\r\n") : NULL;

    if (!stop) {
        if (ws->in.len > HEAD_MAX || memchr(ws->in.data, '\0', ws->in.len))
            websocket_refuse(ws, "its response has no end");
        return;
    }
    size_t head = (size_t)(stop - ws->in.data) + strlen("\r\n\r\n");
    *stop = '\0';
    ws->call->status = websocket_status_of(ws->in.data);
    if (!ws->call->status) {
        websocket_refuse(ws, "its response is not one of HTTP");
        return;
    }
    websocket_take_headers(ws->call, ws->in.data);
    memmove(ws->in.data, ws->in.data + head, ws->in.len - head);
    ws->in.len -= head;
    if (ws->call->status != SWITCHING)
        return;
    if (!proves_it(ws)) {
        websocket_refuse(ws, "it did not understand what it agreed to");
        return;
    }
    engine_forget(http_engine(ws->http), ws);
    ws->is_open = true;
    ws->protocol = header(ws, "Sec-WebSocket-Protocol");
    start_beat(ws);
    ws->opened(ws);
}

static void websocket_take(struct http_websocket *ws)
{
    if (!ws->is_open && ws->call->status == 0)
        websocket_take_head(ws);
    if (!ws->is_over && ws->call->status && !ws->is_open)
        take_body(ws, false);
    if (!ws->is_over && ws->is_open)
        take_frames(ws);
}

static void closed(struct http_websocket *ws)
{
    if (ws->call->status && !ws->is_open)
        take_body(ws, true);
    else
        broke(ws, "ended before it was over");
}

/* Receives until nothing is left: OpenSSL may have more than the socket says. */
static void websocket_receive(struct http_websocket *ws)
{
    ACT_AUTOFREE char *buffer = act_alloc(READ_SIZE);
    CURLcode code = CURLE_OK;
    size_t n = 1;

    while (!ws->is_over && code == CURLE_OK && n > 0) {
        code = curl_easy_recv(http_handle_of(ws->call), buffer, READ_SIZE, &n);
        if (code == CURLE_OK && n > 0) {
            ws->pulse.heard = true;
            act_buf_add(&ws->in, buffer, n);
            websocket_take(ws);
        }
    }
    if (ws->is_over)
        return;
    if (code == CURLE_OK)
        closed(ws);
    else if (code != CURLE_AGAIN)
        broke(ws, "broke");
}

static void on_socket(void *arg)
{
    struct http_websocket *ws = arg;

    websocket_receive(ws);
    if (!ws->is_over && ws->waits_to_send)
        flush_later(ws);
}

/* ---- the request ---- */

static void add_request(struct http_websocket *ws)
{
    const char *host = strstr(ws->call->url, "://") + strlen("://"), *path = host + strcspn(host, "/?");
    const char *other = http_header_get(&ws->call->headers, "Host");
    uint8_t random[KEY_BYTES];

    act_random(random, sizeof(random));
    ACT_AUTOFREE char *key = act_base64_encode(random, sizeof(random));
    memcpy(ws->key, key, sizeof(ws->key));
    act_buf_addf(&ws->queued, "GET %s%s HTTP/1.1\r\n", *path == '/' ? "" : "/", path);
    if (!other)
        act_buf_addf(&ws->queued, "Host: %.*s\r\n", (int)(path - host), host);
    for (size_t i = 0; i < ws->call->headers.n; i++)
        act_buf_addf(&ws->queued, "%s\r\n", ws->call->headers.v[i].line);
    act_buf_addf(&ws->queued,
                 "User-Agent: act/" ACT_VERSION "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
                 ws->key, ws->protocols);
}

static void gave_no_response(void *arg)
{
    broke(arg, "brought no response");
}

static void connected(struct http_call *call)
{
    struct http_websocket *ws = call->arg;

    add_request(ws);
    websocket_wait_for(ws, false);
    websocket_flush(ws);
    if (!ws->is_over)
        engine_timer(http_engine(ws->http), (int64_t)ws->http->options.stall_timeout_s * 1000, gave_no_response, ws);
}

void http_websocket_start(struct http *http, struct http_websocket *ws)
{
    ws->http = http;
    ws->call->method = "GET";
    ws->call->connected = connected;
    ws->call->done = websocket_ended;
    ws->call->arg = ws;
    http_start(http, ws->call);
}

void http_websocket_cancel(struct http_websocket *ws)
{
    if (ws->is_over || !ws->call->under_way)
        return;
    http_cancel(ws->call);
}

void http_websocket_release(struct http_websocket *ws)
{
    act_buf_release(&ws->in);
    act_buf_release(&ws->part);
    act_buf_wipe(&ws->queued); /* what was sent began with credentials */
    act_buf_wipe(&ws->sending);
    *ws = (struct http_websocket){0};
}
