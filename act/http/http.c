/* http.c - calls and their tries.
 *
 *   http_start -> (turn at the peer) -> http_begin -> (libcurl) -> try_ended -> finish -> done
 *                       ^                                             |
 *                       +------------- at once, or a timer -----------+
 *
 * The state of a call in flight is in its struct http_try, that of a single transfer in a struct http_handle;
 * connections stay with the engine.
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
    FIRST_CONTACT_RETRIES = 2, /* for a peer that never answered: most likely a wrong name or address */
    RECENT_MS = 120000,        /* a peer that answered properly within this time is in order */
    DEFAULT_TRANSFERS = 256,
    MAX_TRANSFERS = 500,
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
    act_warn("%s is '%s', not a number from %lld to %lld; using %lld", name, text, (long long)low, (long long)high,
             (long long)fallback);
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
    if (o->max_transfers <= 0)
        o->max_transfers = (int)env_number("ACT_MAX_TRANSFERS", 1, MAX_TRANSFERS, DEFAULT_TRANSFERS);
    if (o->max_transfers > MAX_TRANSFERS)
        o->max_transfers = MAX_TRANSFERS;
    if (o->give_up_ms <= 0)
        o->give_up_ms = env_number("ACT_GIVE_UP", 1, 86400, 120) * 1000;
    if (!o->ca_file)
        o->ca_file = http_ca_file();
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
    if (http->options.bwlimit > 0)
        http->limit = http_limit_new(engine, http->options.bwlimit);
    return http;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    http_handles_free(http);
    http_peers_free(http);
    http_limit_free(http->limit);
    free(http->ca_file);
    free(http);
}

struct engine *http_engine(struct http *http)
{
    return http->engine;
}

const struct http_options *http_options_of(const struct http *http)
{
    return &http->options;
}

/* --- one try -------------------------------------------------------------------------------------------- */

static void drop_response(struct http_call *call)
{
    call->status = 0;
    call->sink_len = 0;
    http_headers_release(&call->response_headers);
    act_buf_wipe(&call->body_text); /* it may have brought a key or a token */
}

static void http_end_try(struct http_try *t)
{
    if (t->handle)
        http_handle_give(t->handle);
    t->handle = NULL;
}

/* Gives the call its own URL back, for the next try and for done. */
static void restore_url(struct http_try *t)
{
    if (!t->call->sign)
        return;
    act_wipe(&t->call->url);
    t->call->url = act_strdup(t->url);
}

/* The last step: everything of this try is freed before done is called, which may start the call again. */
static void http_end_call(struct http_try *t, int rc)
{
    struct http_call *call = t->call;

    http_end_try(t);
    if (call->sign) {
        act_wipe(&call->url); /* it may have been signed */
        call->url = t->url;
    }
    free(t);
    call->under_way = NULL;
    call->rc = rc;
    if (rc != 0 && call->tries > 1)
        act_error_hint(&call->error, "tried %d times", call->tries);
    if (rc != 0 && call->what)
        act_error_prefix(&call->error, "%s", call->what);
    call->done(call);
}

/* Returns the quota that the service says is left before it throttles: " <header> <value>". New string. */
static char *limits_of(const struct http_call *call)
{
    static const char prefix[] = "x-ms-ratelimit-remaining-";
    struct act_buf out = {0};

    for (size_t i = 0; i < call->response_headers.n; i++) {
        const struct http_header *header = &call->response_headers.v[i];
        if (strncasecmp(header->name, prefix, strlen(prefix)) == 0)
            act_buf_addf(&out, " %s %s", header->name, header->value);
    }
    return act_buf_steal(&out);
}

static void trace_try(const struct http_try *t)
{
    const struct http_call *call = t->call;
    curl_off_t out = 0, in = 0, us = 0;

    if (!act_trace_on("http"))
        return;
    ACT_AUTOFREE char *url = http_redact_url(call->url);
    ACT_AUTOFREE char *limits = limits_of(call);
    const char *id = http_header_get(&call->response_headers, "x-ms-request-id");
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &out);
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_DOWNLOAD_T, &in);
    curl_easy_getinfo(t->handle->easy, CURLINFO_TOTAL_TIME_T, &us);
    act_trace("http", "%s %s %d out %lld in %lld %lld ms try %d id %s%s%s%s", call->method, url, call->status,
              (long long)out, (long long)in, (long long)us / 1000, call->tries, id ? id : "-", limits ? limits : "",
              call->rc ? ": " : "", call->rc ? act_error_text(&call->error) : "");
}

/* libcurl accepts a response truncated within its headers, or after an interim one, as complete. */
static CURLcode note_response(struct http_try *t)
{
    struct http_handle *h = t->handle;

    if (!h->head_complete || h->status < 200) {
        snprintf(h->why, sizeof(h->why), "the response ended within its headers");
        return CURLE_PARTIAL_FILE;
    }
    t->peer->answered = true;
    if (http_body_is_damaged(h)) {
        snprintf(h->refused, sizeof(h->refused), "its body is damaged: it does not have its Content-MD5");
        return CURLE_WRITE_ERROR;
    }
    t->call->status = h->status;
    return CURLE_OK;
}

/* --- what follows from a try ---------------------------------------------------------------------------- */

/* Tells whether a try uses up no retry. A peer throttles when it has more clients than it can serve at once; but a peer
 * that does nothing else is broken. */
static bool is_free(const struct http_try *t, bool throttled)
{
    const struct http_call *call = t->call;
    int64_t well_ms = t->peer->well_ms;

    return throttled && !call->no_retry && t->http->options.max_retries > 0 && well_ms >= 0 &&
           act_now_monotonic_ms() - well_ms < RECENT_MS;
}

/* Tells whether the pause that a peer wants is longer than anybody waits. The clock starts with the first one. */
static bool is_too_long(struct http_try *t, int64_t pause_ms)
{
    int64_t now_ms = act_now_monotonic_ms();

    if (t->failed_ms == 0)
        t->failed_ms = now_ms;
    return now_ms - t->failed_ms + pause_ms > t->http->options.give_up_ms;
}

/* Tells the user of a long wait, but not every second. */
static void tell_wait(struct http_try *t, int64_t ms, bool throttled)
{
    enum { SHORT_MS = 900, REST_MS = 10000 };
    const char *peer = t->call->peer_name;
    int64_t now_ms = act_now_monotonic_ms();

    if (!peer || ms < SHORT_MS || (t->told_ms && now_ms - t->told_ms < REST_MS))
        return;
    t->told_ms = now_ms;
    long long seconds = (ms + 999) / 1000;
    if (throttled)
        act_note("%s asks to wait %lld s (throttled)", peer, seconds);
    else if (t->call->status)
        act_note("%s answers HTTP %d; the next try is in %lld s", peer, t->call->status, seconds);
    else
        act_note("%s does not answer; the next try is in %lld s", peer, seconds);
}

/* Tells whether a kept connection died before anything was answered, which says nothing about the peer. libcurl repeats
 * most of these by itself, but not if it notices by sending rather than by receiving. */
static bool was_dead(const struct http_try *t, CURLcode code)
{
    long opened = 1;

    if (code != CURLE_SEND_ERROR && code != CURLE_RECV_ERROR && code != CURLE_GOT_NOTHING)
        return false;
    curl_easy_getinfo(t->handle->easy, CURLINFO_NUM_CONNECTS, &opened);
    return opened == 0 && t->handle->header_bytes == 0 && !t->fresh;
}

/* The time after which to give up starts with the first failure: a long transfer that breaks deserves another try. */
static int64_t next_delay_ms(struct http_try *t, bool network_error, int64_t asked_ms)
{
    const struct http_call *call = t->call;
    const struct http_options *o = &t->http->options;
    int64_t now_ms = act_now_monotonic_ms();
    int max_retries = call->no_retry ? 0 : o->max_retries;
    uint32_t random;

    if (!network_error && !http_may_pass(call->status))
        return -1;
    if (t->failed_ms == 0)
        t->failed_ms = now_ms;
    if (network_error && t->handle->sends == 0 && max_retries > FIRST_CONTACT_RETRIES && !t->peer->answered)
        max_retries = FIRST_CONTACT_RETRIES;
    act_random(&random, sizeof(random));
    return http_retry_delay(call->status, network_error, call->tries - t->free_tries, max_retries,
                            now_ms - t->failed_ms, o->give_up_ms, asked_ms, random / 4294967296.0);
}

static void http_wait_again(void *arg)
{
    http_peer_wait(arg, true);
}

static void try_for_free(struct http_try *t)
{
    t->free_tries++;
    http_end_try(t);
    http_peer_wait(t, true);
}

static void try_ended(void *arg, CURLcode code)
{
    struct http_try *t = arg;
    struct http_call *call = t->call;
    bool may_pass = false, throttled = false;
    int64_t asked_ms = -1;

    call->rc = 0;
    if (code == CURLE_OK)
        code = note_response(t);
    if (code != CURLE_OK) {
        may_pass = http_describe_failure(t, code);
        call->rc = -(int)call->error.code;
    } else if (http_may_pass(call->status)) {
        asked_ms = http_retry_after_ms(&call->response_headers, act_now_unix_s());
        throttled = http_is_throttled(call->status, &call->response_headers);
    }
    trace_try(t);
    if (t->handle->sends > 1 || (code != CURLE_OK && t->handle->sends > 0) || call->status >= 500)
        call->ambiguous = true;
    http_peer_ended(t, throttled, asked_ms);
    if (was_dead(t, code)) {
        t->fresh = true;
        try_for_free(t);
        return;
    }
    bool is_final = call->rc ? !may_pass : call->is_final && call->is_final(call);
    int64_t pause_ms = pace_hold_ms(&t->peer->pace, act_now_monotonic_ms());
    if (!is_final && is_free(t, throttled) && !(call->bounded && is_too_long(t, pause_ms))) {
        tell_wait(t, pause_ms, true);
        try_for_free(t);
        return;
    }
    int64_t delay_ms = is_final ? -1 : next_delay_ms(t, may_pass, asked_ms);
    if (delay_ms < 0) {
        http_end_call(t, call->rc);
        return;
    }
    tell_wait(t, delay_ms > pause_ms ? delay_ms : pause_ms, throttled);
    http_end_try(t);
    engine_timer(t->http->engine, delay_ms, http_wait_again, t);
}

/* Tells whether a call has nothing to do with the pace of its peer. */
static bool http_is_alone(const struct http_call *call)
{
    return call->endless || call->connected;
}

static void connection_made(void *arg)
{
    struct http_call *call = ((struct http_try *)arg)->call;

    call->connected(call);
}

static void endless_ended(void *arg, CURLcode code)
{
    struct http_try *t = arg;
    struct http_call *call = t->call;

    if (code == CURLE_OK)
        code = note_response(t);
    if (t->cancelled)
        act_error_set(&call->error, ACT_INTERRUPTED, "its reader has enough");
    else if (code != CURLE_OK)
        http_describe_failure(t, code);
    call->rc = -(int)call->error.code;
    trace_try(t);
    http_end_call(t, call->rc);
}

static void give_up_call(struct http_try *t, int rc)
{
    if (!http_is_alone(t->call))
        http_peer_ended(t, false, -1);
    http_end_call(t, rc);
}

void http_begin(struct http_try *t)
{
    struct http_call *call = t->call;
    int rc;

    drop_response(call);
    if (call->tries > 0)
        restore_url(t);
    if (call->sign && (rc = call->sign(call, &call->error))) {
        give_up_call(t, rc);
        return;
    }
    t->handle = http_handle_take(t);
    if (!t->handle) {
        give_up_call(t, -(int)call->error.code);
        return;
    }
    call->tries++;
    if (call->connected)
        engine_connect(t->http->engine, t->handle->easy, connection_made, endless_ended, t);
    else if (call->endless)
        engine_transfer_endless(t->http->engine, t->handle->easy, endless_ended, t);
    else
        engine_transfer(t->http->engine, t->handle->easy, try_ended, t);
}

static void begin_endless(void *arg)
{
    struct http_try *t = arg;

    if (t->cancelled)
        http_end_call(t, act_error_set(&t->call->error, ACT_INTERRUPTED, "its reader has enough"));
    else
        http_begin(t);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static void refuse_url(void *arg)
{
    struct http_try *t = arg;
    ACT_AUTOFREE char *shown = http_redact_url(t->call->url);

    http_end_call(t, act_error_set(&t->call->error, ACT_CONFIG, "'%s' is not an address of http or https", shown));
}

void http_start(struct http *http, struct http_call *call)
{
    struct http_try *t = act_calloc(1, sizeof(*t));

    drop_response(call);
    call->rc = 0;
    call->tries = 0;
    call->ambiguous = false;
    call->error = (struct act_error){0};
    call->under_way = t;
    t->http = http;
    t->call = call;
    t->url = call->sign ? act_strdup(call->url) : NULL;
    t->peer = http_peer_of(http, call->url);
    if (!t->peer)
        engine_timer(http->engine, 0, refuse_url, t);
    else if (http_is_alone(call))
        engine_timer(http->engine, 0, begin_endless, t);
    else
        http_peer_wait(t, false);
}

void http_cancel(struct http_call *call)
{
    struct http_try *t = call->under_way;

    if (!t)
        return;
    t->cancelled = true;
    if (t->handle)
        engine_cancel(t->http->engine, t->handle->easy);
}

void http_call_release(struct http_call *call)
{
    drop_response(call);
    http_headers_release(&call->headers);
    act_wipe(&call->url);
}
