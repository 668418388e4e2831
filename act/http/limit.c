/* limit.c - bytes per second, for all connections together.
 *
 * A handle that may not move anything is paused and waits in line; a timer resumes those whose turn it is and grants
 * each one piece, so that they do not all come back for one piece. Nobody overtakes a waiting handle.
 */
#include "base/clock.h"
#include "http/http_internal.h"

enum { LOW_PIECE = 1024, HIGH_PIECE = 256 << 10 };

struct limit_line {
    struct engine *engine;
    struct bucket bucket;
    enum http_direction direction;
    struct http_handle *first, **end;
    bool timer;
};

struct http_limit {
    struct limit_line lines[2]; /* by enum http_direction */
};

struct http_limit *http_limit_new(struct engine *engine, uint64_t rate)
{
    struct http_limit *limit = act_calloc(1, sizeof(*limit));

    for (int i = 0; i < 2; i++) {
        struct limit_line *line = &limit->lines[i];
        *line = (struct limit_line){.engine = engine, .direction = i, .end = &line->first};
        bucket_init(&line->bucket, rate, act_now_monotonic_ms());
    }
    return limit;
}

void http_limit_free(struct http_limit *limit)
{
    if (!limit)
        return;
    for (int i = 0; i < 2; i++)
        engine_forget(limit->lines[i].engine, &limit->lines[i]);
    free(limit);
}

static size_t limit_piece_of(const struct limit_line *line)
{
    return bucket_piece(&line->bucket, LOW_PIECE, HIGH_PIECE);
}

long http_limit_piece(const struct http_limit *limit)
{
    return (long)limit_piece_of(&limit->lines[HTTP_DOWN]);
}

/* Grants one piece, but not more than the body has left: nobody else can use granted bytes. */
static size_t grant_for(const struct limit_line *line, const struct http_handle *h)
{
    const struct http_call *call = h->t->call;
    size_t left = line->direction == HTTP_UP ? call->body_len - h->sent
                  : http_has_sink(call)      ? call->sink_cap - call->sink_len
                                             : 0;
    size_t piece = limit_piece_of(line);

    return left < LOW_PIECE ? LOW_PIECE : left < piece ? left : piece;
}

static void resume(struct limit_line *line, struct http_handle *h)
{
    h->waits[line->direction] = false;
    h->granted[line->direction] = grant_for(line, h);
    bucket_take(&line->bucket, (double)h->granted[line->direction]);
    h->moved_ms = act_now_monotonic_ms();
    curl_easy_pause(h->easy, (h->waits[HTTP_UP] ? CURLPAUSE_SEND : 0) | (h->waits[HTTP_DOWN] ? CURLPAUSE_RECV : 0));
}

static void time_has_come(void *arg);

static void set_line_timer(struct limit_line *line)
{
    if (line->timer || !line->first)
        return;
    line->timer = true;
    engine_timer(line->engine, bucket_wait_ms(&line->bucket, act_now_monotonic_ms()), time_has_come, line);
}

static void time_has_come(void *arg)
{
    struct limit_line *line = arg;
    struct http_handle *h;

    line->timer = false;
    while ((h = line->first) && bucket_wait_ms(&line->bucket, act_now_monotonic_ms()) == 0) {
        line->first = h->next_waiting[line->direction];
        if (!line->first)
            line->end = &line->first;
        resume(line, h);
    }
    set_line_timer(line);
}

static void stand_in_line(struct limit_line *line, struct http_handle *h)
{
    h->waits[line->direction] = true;
    h->next_waiting[line->direction] = NULL;
    *line->end = h;
    line->end = &h->next_waiting[line->direction];
    set_line_timer(line);
}

size_t http_limit_ask(struct http_limit *limit, struct http_handle *h, enum http_direction direction, size_t len)
{
    struct limit_line *line = &limit->lines[direction];
    size_t granted = h->granted[direction];

    if (granted == 0 && (line->first || bucket_wait_ms(&line->bucket, act_now_monotonic_ms()) > 0)) {
        stand_in_line(line, h);
        return 0;
    }
    size_t piece = granted > 0 ? granted : limit_piece_of(line);
    if (direction == HTTP_UP && len > piece)
        len = piece;
    size_t from_grant = len < granted ? len : granted;
    h->granted[direction] -= from_grant;
    bucket_take(&line->bucket, (double)(len - from_grant));
    return len;
}

void http_limit_leave(struct http_limit *limit, struct http_handle *h)
{
    for (int i = 0; i < 2; i++) {
        struct limit_line *line = &limit->lines[i];
        struct http_handle **at = &line->first;
        bucket_take(&line->bucket, -(double)h->granted[i]);
        h->granted[i] = 0;
        if (!h->waits[i])
            continue;
        while (*at != h)
            at = &(*at)->next_waiting[i];
        *at = h->next_waiting[i];
        if (!*at)
            line->end = at;
        h->waits[i] = false;
    }
}
