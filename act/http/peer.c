/* peer.c - peers, and the order of requests to each.
 *
 * Calls wait in a list for each peer. What changes a list or makes room at a peer only asks for a pump; it
 * comes once in a turn of the loop, for all that happened in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "http/http_internal.h"

/* The beginning of a URL up to the path, as it was written. */
struct http_origin {
    struct http_peer *peer;
    struct http_origin *next;
    size_t len;
    char text[];
};

static struct http_peer *add_peer(struct http *http, char *name, bool local)
{
    struct http_peer *peer = act_calloc(1, sizeof(*peer));

    *peer = (struct http_peer){
        .http = http, .name = name, .local = local, .well_ms = -1, .end = &peer->first, .next = http->peers};
    pace_init(&peer->pace, http->options.max_transfers);
    http->peers = peer;
    return peer;
}

static struct http_peer *find_or_add_peer(struct http *http, const char *url)
{
    bool local = false;
    char *name = http_peer_name(url, &local);

    if (!name)
        return NULL;
    for (struct http_peer *p = http->peers; p; p = p->next)
        if (strcmp(p->name, name) == 0) {
            free(name);
            return p;
        }
    return add_peer(http, name, local);
}

/* Comparing the beginning of a URL with known ones is faster than parsing it. */
struct http_peer *http_peer_of(struct http *http, const char *url)
{
    const char *host = strstr(url, "://");
    size_t len = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;

    for (struct http_origin *o = http->origins; o; o = o->next)
        if (o->len == len && memcmp(o->text, url, len) == 0)
            return o->peer;
    struct http_peer *peer = find_or_add_peer(http, url);
    if (peer) {
        struct http_origin *o = act_alloc(sizeof(*o) + len);
        *o = (struct http_origin){.peer = peer, .next = http->origins, .len = len};
        memcpy(o->text, url, len);
        http->origins = o;
    }
    return peer;
}

void http_peers_free(struct http *http)
{
    struct http_peer *next_peer;
    struct http_origin *next_origin;

    for (struct http_peer *p = http->peers; p; p = next_peer) {
        next_peer = p->next;
        engine_forget(http->engine, p);
        free(p->name);
        free(p);
    }
    for (struct http_origin *o = http->origins; o; o = next_origin) {
        next_origin = o->next;
        free(o);
    }
    engine_forget(http->engine, http);
}

int http_window(struct http *http, const char *url)
{
    const struct http_peer *peer = http_peer_of(http, url);

    return peer ? peer->pace.window : 1;
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void peer_pump(struct http_peer *peer);

static void hold_is_over(void *arg)
{
    struct http_peer *peer = arg;

    peer->hold_timer = false;
    peer_pump(peer);
}

static bool is_held(struct http_peer *peer, int64_t now_ms)
{
    int64_t hold_ms = pace_hold_ms(&peer->pace, now_ms);

    if (hold_ms > 0 && !peer->hold_timer) {
        peer->hold_timer = true;
        engine_timer(peer->http->engine, hold_ms, hold_is_over, peer);
    }
    return hold_ms > 0;
}

static struct http_try *peer_take_first(struct http_peer *peer)
{
    struct http_try *t = peer->first;

    peer->first = t->next;
    if (!peer->first)
        peer->end = &peer->first;
    return t;
}

static void peer_pump(struct http_peer *peer)
{
    int64_t now_ms = act_now_monotonic_ms();
    int before = peer->under_way;

    if (!peer->first || is_held(peer, now_ms))
        return;
    while (peer->first && peer->under_way < peer->pace.window) {
        struct http_try *t = peer_take_first(peer);
        peer->under_way++;
        t->started_ms = now_ms;
        http_begin(t);
    }
    pace_started(&peer->pace, now_ms, before, peer->under_way);
}

static void pump_all(void *arg)
{
    struct http *http = arg;

    http->pump_soon = false;
    for (struct http_peer *p = http->peers; p; p = p->next)
        peer_pump(p);
}

static void ask_for_pump(struct http *http)
{
    if (!http->pump_soon)
        engine_timer(http->engine, 0, pump_all, http);
    http->pump_soon = true;
}

void http_peer_wait(struct http_try *t, bool in_front)
{
    struct http_peer *peer = t->peer;

    if (in_front && peer->first) {
        t->next = peer->first;
        peer->first = t;
    } else {
        t->next = NULL;
        *peer->end = t;
        peer->end = &t->next;
    }
    ask_for_pump(t->http);
}

static void trace_window(const struct http_peer *peer, int before, const char *why)
{
    const struct pace *p = &peer->pace;

    if (before != p->window)
        act_trace("pace", "%s window %d to %d, %s, %.1f MB/s or requests of 64 KiB, under way %d", peer->name, before,
                  p->window, why, p->rate / 1000, peer->under_way);
}

void http_peer_ended(struct http_try *t, bool throttled, int64_t asked_ms)
{
    struct http_peer *peer = t->peer;
    const struct http_call *call = t->call;
    int64_t now_ms = act_now_monotonic_ms();
    int before = peer->pace.window;
    uint32_t random;

    if (throttled) {
        act_random(&random, sizeof(random));
        pace_throttled(&peer->pace, now_ms, t->started_ms, asked_ms, random / 4294967296.0);
    } else if (call->status > 0 && !http_may_pass(call->status)) {
        peer->well_ms = now_ms;
        pace_done(&peer->pace, now_ms, call->body_len + call->sink_len + call->body_text.len);
    }
    trace_window(peer, before, throttled ? "throttled" : "measured");
    peer->under_way--;
    if (peer->first)
        ask_for_pump(t->http);
}
