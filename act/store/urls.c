/* urls.c - the store of objects that are read by URLs. Each holds a signature that reads its object for some time: it
 * is never shown, and gets no token.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store_internal.h"

enum { OBJECTS_MAX = 10000, LOOK_AGAIN_MS = 20 };

struct urls_store {
    struct store store;
    struct store_urls_options options;
    struct store_urls urls;
    unsigned turn; /* how often they were got */
    bool asking;
    int rc; /* of the last question, and its error */
    struct act_error error;
};

void store_urls_add(struct store_urls *urls, const char *key, const char *url)
{
    ACT_PUSH(urls->v, urls->n, (struct store_url){.key = act_strdup(key), .url = act_strdup(url)});
}

static void urls_release(struct store_urls *urls)
{
    for (size_t i = 0; i < urls->n; i++) {
        free(urls->v[i].key);
        act_wipe(&urls->v[i].url);
    }
    free(urls->v);
    *urls = (struct store_urls){0};
}

/* Asks for the URLs, while the loop runs. */
static int ask_for_urls(struct urls_store *s)
{
    struct store_urls urls = {0};

    s->asking = true;
    s->rc = s->options.ask(s->options.arg, s->options.id, &urls, &s->error);
    s->asking = false;
    if (s->rc < 0)
        return s->rc;
    urls_release(&s->urls);
    s->urls = urls;
    s->turn++;
    if (urls.n > 0)
        qsort(urls.v, urls.n, sizeof(*urls.v), act_by_text);
    return 0;
}

/* Asks for new URLs. A call that waited for the question of another one takes its outcome, good or bad. */
static int urls_renew(struct urls_store *s, bool has_waited, struct act_error *err)
{
    int rc = has_waited ? s->rc : ask_for_urls(s);

    if (rc < 0)
        *err = s->error;
    return rc;
}

/* Returns whether a question is under way, after which again(arg) is called: there is one at a time. */
static bool wait_for_question(struct urls_store *s, bool *has_waited, void (*again)(void *arg), void *arg)
{
    if (!s->asking)
        return false;
    *has_waited = true;
    engine_timer(http_engine(s->store.http), LOOK_AGAIN_MS, again, arg);
    return true;
}

/* ---- LIST, HEAD: what there is, and the sizes, all at once ---- */

struct url_head {
    struct http_call http;
    struct url_listing *of;
    int64_t asked_s, changed_s; /* by the clock of the service; 0: not known */
};

struct url_listing {
    struct urls_store *s;
    struct store_call *call;
    struct store_page page;
    struct url_head *v;
    size_t n, left;
    bool has_waited;
};

static int64_t time_in(const struct http_call *http, const char *header)
{
    const char *text = http_header_get(&http->response_headers, header);
    int64_t unix_s;

    return text && act_time_from_http(text, &unix_s) ? unix_s : 0;
}

/* Returns whether no bytes come any more: they may for some time after the end. */
static bool are_settled(const struct url_listing *l)
{
    const struct urls_store *s = l->s;
    int64_t last = s->urls.ended_unix_s;

    for (size_t i = 0; i < l->n; i++)
        last = l->v[i].changed_s > last ? l->v[i].changed_s : last;
    for (size_t i = 0; i < l->n; i++)
        if (!l->v[i].asked_s || l->v[i].asked_s - last < s->options.settle_s)
            return false;
    return s->urls.ended_unix_s > 0;
}

/* Returns the size that the response tells; -1: it tells none. */
static int64_t told_size(const struct url_head *h)
{
    const char *length = http_header_get(&h->http.response_headers, "Content-Length");
    int64_t size;

    return length && act_int_from_text(length, &size) && size >= 0 ? size : -1;
}

/* Takes the size. One that the service does not tell is an error; an object that is not there (yet) has 0 bytes. */
static int check_head(const struct urls_store *s, const struct url_head *h, const char *key, struct act_error *err)
{
    if (h->http.rc < 0) {
        *err = h->http.error;
        return h->http.rc;
    }
    if ((h->http.status == 200 && told_size(h) >= 0) || h->http.status == 404)
        return 0;
    if (h->http.status == 200)
        return act_error_set(err, ACT_FAIL, "cannot look at log '%s' of '%s': the response does not tell its size", key,
                             s->options.id);
    return act_error_set(err, h->http.status >= 500 ? ACT_TEMPORARY : ACT_FAIL,
                         "cannot look at log '%s' of '%s': HTTP %d", key, s->options.id, h->http.status);
}

static void urls_fill_entry(const struct url_head *h, struct store_entry *entry)
{
    int64_t size = h->http.status == 200 ? told_size(h) : 0;
    int64_t idle_s = h->asked_s > h->changed_s ? h->asked_s - h->changed_s : 0;

    entry->size = size > 0 ? (uint64_t)size : 0;
    entry->last_modified_s = h->asked_s && h->changed_s ? act_now_unix_s() - idle_s : 0;
}

static void end_listing(struct url_listing *l, int rc)
{
    struct store_call *call = l->call;
    bool grow = !are_settled(l);

    for (size_t i = 0; i < l->n; i++) {
        struct store_entry *entry = &l->page.v[i];
        if (rc == 0)
            rc = check_head(l->s, &l->v[i], entry->key, &call->error);
        urls_fill_entry(&l->v[i], entry);
        entry->grows = grow;
        http_call_release(&l->v[i].http);
    }
    struct urls_store *s = l->s;
    struct store_page page = l->page;
    free(l->v);
    free(l);
    store_finish_listed(&s->store, call, rc, &page);
}

static void urls_head_done(struct http_call *http)
{
    struct url_head *h = http->arg;

    h->asked_s = time_in(http, "Date");
    h->changed_s = time_in(http, "Last-Modified");
    if (--h->of->left == 0)
        end_listing(h->of, 0);
}

static bool urls_wants(const struct store_call *call, const char *key)
{
    return call->op == STORE_HEAD ? strcmp(key, call->key) == 0 : act_starts_with(key, call->key);
}

static void ask_heads(struct url_listing *l)
{
    const struct store_urls *urls = &l->s->urls;

    l->v = act_calloc(urls->n, sizeof(*l->v));
    for (size_t i = 0; i < urls->n && l->n < OBJECTS_MAX; i++) {
        if (!urls_wants(l->call, urls->v[i].key))
            continue;
        store_page_add(&l->page)->key = act_strdup(urls->v[i].key);
        l->v[l->n++] = (struct url_head){
            .of = l,
            .http = {
                .method = "HEAD", .what = "look at a log", .url = act_strdup(urls->v[i].url), .done = urls_head_done}};
    }
    l->left = l->n;
    for (size_t i = 0; i < l->n; i++) {
        l->v[i].http.arg = &l->v[i];
        http_start(l->s->store.http, &l->v[i].http);
    }
}

static void urls_begin_listing(void *arg)
{
    struct url_listing *l = arg;

    if (wait_for_question(l->s, &l->has_waited, urls_begin_listing, l))
        return;
    int rc = urls_renew(l->s, l->has_waited, &l->call->error);
    if (rc == 0 && l->s->urls.n > 0)
        ask_heads(l);
    if (l->n == 0)
        end_listing(l, rc);
}

static void start_list(struct store *store, struct store_call *call)
{
    struct url_listing *l = act_calloc(1, sizeof(*l));

    *l = (struct url_listing){.s = (struct urls_store *)store, .call = call};
    engine_timer(http_engine(store->http), 0, urls_begin_listing, l);
}

/* ---- GET ---- */

struct url_reading {
    struct http_call http;
    struct urls_store *s;
    struct store_call *call;
    char *what;
    unsigned turn; /* of the URL that was used */
    bool refused, has_waited;
};

static void urls_end_reading(struct url_reading *r, int rc)
{
    struct store_call *call = r->call;

    http_call_release(&r->http);
    free(r->what);
    free(r);
    store_finish(call, rc);
}

/* Returns whether "bytes 100-199/1000" of the response begins at `offset`, and gives the size of the whole. */
static bool begins_at(const struct http_call *http, uint64_t offset, uint64_t *out_size)
{
    const char *range = http_header_get(&http->response_headers, "Content-Range");
    const char *total = range ? strchr(range, '/') : NULL;
    unsigned long long first;
    int64_t size;

    if (total && act_int_from_text(total + 1, &size) && size > 0)
        *out_size = (uint64_t)size;
    return range && sscanf(range, "bytes %llu-", &first) == 1 && first == offset;
}

/* Takes the bytes: none of an empty object, or of a range behind its end (416). */
static int urls_take_answer(const struct url_reading *r, struct store_call *call)
{
    const struct http_call *http = &r->http;
    struct act_error *err = &call->error;

    if (http->rc < 0) {
        *err = http->error;
        return http->rc;
    }
    call->get.got = http->status < 300 ? http->sink_len : 0;
    call->entry.key = act_strdup(call->key);
    call->entry.size = call->get.offset + call->get.got;
    call->entry.grows = true;
    if (http->status == 206 && !begins_at(http, call->get.offset, &call->entry.size))
        return act_error_set(err, ACT_FAIL, "cannot %s: the service sent another part of it", r->what);
    if (http->status == 200 && call->get.offset > 0)
        return act_error_set(err, ACT_FAIL, "cannot %s: the service does not read parts of it", r->what);
    if (http->status == 403)
        return act_error_set(err, ACT_DENIED, "cannot %s: the service does not let it be read", r->what);
    if (http->status != 200 && http->status != 206 && http->status != 416)
        return act_error_set(err, http->status == 404 ? ACT_NOT_FOUND : ACT_FAIL, "cannot %s: HTTP %d", r->what,
                             http->status);
    if (call->get.sums)
        store_sums_add(call->get.sums, call->get.sink, call->get.got);
    return 0;
}

static void begin_reading(void *arg);

static void read_done(struct http_call *http)
{
    struct url_reading *r = http->arg;

    if (http->rc == 0 && http->status == 403 && !r->refused) {
        r->refused = true;
        r->has_waited = false;
        http_call_release(http);
        begin_reading(r);
    } else {
        urls_end_reading(r, urls_take_answer(r, r->call));
    }
}

static void send_reading(struct url_reading *r, const char *url)
{
    const struct store_call *call = r->call;

    r->http = (struct http_call){.method = "GET",
                                 .what = r->what,
                                 .url = act_strdup(url),
                                 .sink = call->get.sink,
                                 .sink_cap = call->get.sink_cap,
                                 .done = read_done,
                                 .arg = r};
    r->turn = r->s->turn;
    http_header_setf(&r->http.headers, "Range", "bytes=%llu-%llu", (unsigned long long)call->get.offset,
                     (unsigned long long)(call->get.offset + call->get.sink_cap - 1));
    http_start(r->s->store.http, &r->http);
}

static const char *find_url(const struct urls_store *s, const char *key)
{
    const struct store_urls *urls = &s->urls;
    const struct store_url *found = urls->n > 0 ? bsearch(&key, urls->v, urls->n, sizeof(*urls->v), act_by_text) : NULL;

    return found ? found->url : NULL;
}

/* Asks for new URLs when there is none, as for a new object, or the latest was refused. */
static void begin_reading(void *arg)
{
    struct url_reading *r = arg;
    struct urls_store *s = r->s;
    int rc = 0;

    if (wait_for_question(s, &r->has_waited, begin_reading, r))
        return;
    const char *url = find_url(s, r->call->key);
    if (!url || r->turn == s->turn) {
        rc = urls_renew(s, r->has_waited, &r->call->error);
        url = rc == 0 ? find_url(s, r->call->key) : NULL;
    }
    if (rc == 0 && !url)
        rc = act_error_set(&r->call->error, ACT_NOT_FOUND, "run '%s' has no log '%s'", s->options.id, r->call->key);
    if (url)
        send_reading(r, url);
    else
        urls_end_reading(r, rc);
}

static void urls_start_get(struct store *store, struct store_call *call)
{
    struct urls_store *s = (struct urls_store *)store;
    struct url_reading *r = act_calloc(1, sizeof(*r));

    *r = (struct url_reading){
        .s = s, .call = call, .what = act_sprintf("read log '%s' of '%s'", call->key, s->options.id)};
    engine_timer(http_engine(store->http), 0, begin_reading, r);
}

/* ---- the store ---- */

static void urls_start(struct store *store, struct store_call *call)
{
    if (call->op == STORE_GET)
        urls_start_get(store, call);
    else
        start_list(store, call);
}

static int urls_window(const struct store *store)
{
    const struct urls_store *s = (const struct urls_store *)store;

    return s->urls.n > 0 ? http_window(store->http, s->urls.v[0].url) : 1;
}

static void close_urls(struct store *store)
{
    struct urls_store *s = (struct urls_store *)store;

    urls_release(&s->urls);
    free(s);
}

static const struct store_ops ops = {
    .operations = STORE_READS,
    .start = urls_start,
    .window = urls_window,
    .close = close_urls,
};

struct store *store_urls_open(struct http *http, const struct store_urls_options *options)
{
    struct urls_store *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->store = (struct store){.ops = &ops, .http = http, .name = store_logs_name(options->id, &s->options.id)};
    return &s->store;
}
