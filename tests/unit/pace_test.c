/* How many requests, and how many bytes: decisions under made-up clocks. */
#include "unit/test.h"

#include "http/bucket.h"
#include "http/pace.h"

/* --- a peer whose requests take latency_ms, and which does at most capacity of them per ms ------------------ */

struct line {
    double latency_ms, capacity;
};

/* Requests are kept under way, as many as the window (times share) allows, until duration_ms. */
static void pace_test_load(struct pace *p, const struct line *line, double share, int64_t *now_ms, int64_t duration_ms)
{
    double ends[512] = {0}, now = (double)*now_ms, free_at = now;
    int first = 0, n = 0;

    while (now < (double)(*now_ms + duration_ms)) {
        int before = n;
        while (n < p->window * share) {
            double begin = now + line->latency_ms / 2 > free_at ? now + line->latency_ms / 2 : free_at;
            free_at = begin + 1 / line->capacity;
            ends[(first + n++) % 512] = free_at + line->latency_ms / 2;
        }
        pace_started(p, (int64_t)now, before, n);
        now = ends[first++ % 512];
        n--;
        pace_done(p, (int64_t)now, 10000);
    }
    *now_ms = (int64_t)now + 1;
}

TEST(window_grows_as_long_as_it_pays)
{
    static const struct {
        struct line line;
        int max, low, high; /* window at the end */
    } rows[] = {
        {{100, 100}, 256, 256, 256}, /* a long line to a strong service: as many as allowed */
        {{100, 100}, 500, 500, 500}, {{100, 1}, 256, 100, 160}, /* the service is busy with 100 */
        {{10, 20}, 256, 200, 256},   {{1, 20}, 256, 32, 40},    /* a short line: 20 would do */
        {{1, 1}, 256, 32, 40},       {{100, 100}, 1, 1, 1},     {{100, 100}, 33, 33, 33},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pace p;
        int64_t now_ms = 1000;
        pace_init(&p, rows[i].max);
        assert_int_equal(p.window, rows[i].max < 32 ? rows[i].max : 32);
        pace_test_load(&p, &rows[i].line, 1, &now_ms, 10000);
        int window = p.window > p.base_window ? p.base_window : p.window; /* not one that is just tried */
        if (window < rows[i].low || window > rows[i].high)
            fail_msg("row %zu: window %d", i, p.window);
    }
}

TEST(window_stays_when_it_is_not_used)
{
    static const struct line line = {100, 100};
    struct pace p;
    int64_t now_ms = 0;

    pace_init(&p, 256);
    pace_test_load(&p, &line, 0.5, &now_ms, 20000);
    assert_int_equal(p.window, 32);
    pace_test_load(&p, &line, 1, &now_ms, 20000);
    assert_int_equal(p.window, 256);
}

/* A new period is compared with the one before, not with what was long ago. */
TEST(idle_time_is_not_measured)
{
    static const struct line line = {1, 20};
    struct pace p;
    int64_t now_ms = 0;

    pace_init(&p, 256);
    for (int i = 0; i < 50; i++) {
        pace_test_load(&p, &line, 1, &now_ms, 3);
        now_ms += 5000;
    }
    assert_true(p.rate == 0 || p.rate > 100000);
}

TEST(throttling_halves_once_per_event)
{
    struct pace p;

    pace_init(&p, 256);
    assert_int_equal(pace_hold_ms(&p, 1000), 0);
    for (int i = 0; i < 20; i++) /* a burst of what was under way together */
        pace_throttled(&p, 1000 + i, 990, -1, 0.5);
    assert_int_equal(p.window, 16);
    assert_int_equal(pace_hold_ms(&p, 1000), 1250);
    assert_int_equal(pace_hold_ms(&p, 2250), 0);
    pace_throttled(&p, 2300, 2260, 0, 0.5); /* a new one, and the peer says: no pause */
    assert_int_equal(p.window, 8);
    assert_int_equal(pace_hold_ms(&p, 2300), 100); /* there is one still */
    pace_throttled(&p, 2400, 2350, 7000, 0.5);
    pace_throttled(&p, 2500, 2450, 7000, 0.5);
    assert_int_equal(p.window, 4); /* never fewer */
    assert_int_equal(pace_hold_ms(&p, 2500), 7000);
    pace_throttled(&p, 2600, 2350, 8000, 0.5); /* old, but it asks for more */
    assert_int_equal(pace_hold_ms(&p, 2600), 8000);
    pace_init(&p, 2);
    pace_throttled(&p, 10, 5, -1, 0);
    assert_int_equal(p.window, 2);
}

TEST(window_comes_back_step_by_step)
{
    static const struct line line = {10, 100};
    struct pace p;
    int64_t now_ms = 0;

    pace_init(&p, 64);
    pace_test_load(&p, &line, 1, &now_ms, 1000);
    assert_int_equal(p.window, 64);
    pace_throttled(&p, now_ms, now_ms - 5, -1, 0);
    assert_int_equal(p.window, 32);
    for (int before = p.window, steps = 0; p.window < 64; before = p.window) {
        pace_test_load(&p, &line, 1, &now_ms, 1);
        assert_true(p.window == before || p.window == before + 4);
        assert_true(++steps < 10000);
    }
}

/* --- bytes per second ----------------------------------------------------------------------------------- */

/* Takes pieces whenever it may; returns how many bytes moved. */
static uint64_t pace_test_drain(struct bucket *b, int64_t from_ms, int64_t to_ms, size_t piece)
{
    uint64_t moved = 0;

    for (int64_t now_ms = from_ms; now_ms < to_ms;) {
        int64_t wait_ms = bucket_wait_ms(b, now_ms);
        if (wait_ms == 0) {
            bucket_take(b, (double)piece);
            moved += piece;
        }
        now_ms += wait_ms;
    }
    return moved;
}

TEST(bucket_is_exact_over_seconds)
{
    static const struct {
        uint64_t rate;
        size_t piece;
    } rows[] = {{1000, 1}, {1000, 1024}, {100000, 16384}, {10000000, 16384}, {1000000000, 16384}, {7, 1024}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bucket b;
        bucket_init(&b, rows[i].rate, 500);
        double moved = (double)pace_test_drain(&b, 500, 60500, rows[i].piece), wanted = 60.0 * (double)rows[i].rate;
        if (moved > wanted * 1.002 + (double)rows[i].piece || moved < wanted * 0.998 - (double)rows[i].piece)
            fail_msg("row %zu: %.0f of %.0f", i, moved, wanted);
    }
}

TEST(bucket_does_not_save_up)
{
    struct bucket b;

    bucket_init(&b, 1000000, 0);
    assert_true(pace_test_drain(&b, 3600000, 3600001, 1000) <=
                102000); /* a tenth of a second, though idle for an hour */
    bucket_init(&b, 0, 0);
    bucket_take(&b, 1e18);
    assert_int_equal(bucket_wait_ms(&b, 0), 0); /* no limit */
}

TEST(bucket_gives_back)
{
    struct bucket b;

    bucket_init(&b, 1000, 0);
    assert_int_equal(bucket_wait_ms(&b, 50), 0);
    bucket_take(&b, 150);
    assert_int_equal(bucket_wait_ms(&b, 50), 101);
    bucket_take(&b, -150);
    assert_int_equal(bucket_wait_ms(&b, 50), 0);
}

TEST(pieces_fit_the_rate)
{
    static const struct {
        uint64_t rate;
        size_t piece;
    } rows[] = {{1, 1024}, {100000, 5000}, {1000000000, 16384}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bucket b;
        bucket_init(&b, rows[i].rate, 0);
        assert_int_equal(bucket_piece(&b, 1024, 16384), rows[i].piece);
    }
}

TEST_MAIN(NULL, NULL)
