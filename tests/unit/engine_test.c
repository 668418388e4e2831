/* The event loop: order, threads, exactly one callback, never from inside the start. */
#include "unit/test.h"

#include <pthread.h>
#include <sys/resource.h>

#include "base/text.h"
#include "engine/engine.h"

static void unused_engine_costs_nothing(void **state)
{
    struct engine *e = engine_new(NULL);

    (void)state;
    assert_false(engine_busy(e));
    engine_run(e, NULL);
    engine_free(e);
    engine_free(NULL);
}

static struct act_buf seen;
static struct engine *current;

static void note_letter(void *arg)
{
    act_buf_addc(&seen, *(char *)arg);
}

static void timers_fire_in_order(void **state)
{
    struct engine *e = engine_new(NULL);
    char letters[] = "abcd";

    (void)state;
    engine_timer(e, 30, note_letter, &letters[3]);
    engine_timer(e, 10, note_letter, &letters[1]);
    engine_timer(e, 10, note_letter, &letters[2]);
    engine_timer(e, -5, note_letter, &letters[0]);
    assert_true(engine_busy(e));
    assert_int_equal(seen.len, 0);
    engine_run(e, NULL);
    assert_string_equal(seen.data, "abcd");
    act_buf_release(&seen);
    engine_free(e);
}

static int countdown;

static void count_down_again(void *arg)
{
    if (--countdown > 0)
        engine_timer(current, 0, count_down_again, arg);
}

static void timers_may_start_timers(void **state)
{
    (void)state;
    current = engine_new(NULL);
    countdown = 100;
    engine_timer(current, 0, count_down_again, NULL);
    engine_run(current, NULL);
    assert_int_equal(countdown, 0);
    engine_free(current);
}

struct item {
    int runs, dones;
    pthread_t on_worker, on_loop;
    struct item *then;
};

static void item_run(void *arg)
{
    struct item *item = arg;

    item->runs++;
    item->on_worker = pthread_self();
}

static void item_done(void *arg)
{
    struct item *item = arg;

    item->dones++;
    item->on_loop = pthread_self();
    if (item->then)
        engine_work(current, item_run, item_done, item->then);
}

static void work_runs_once_on_other_threads(void **state)
{
    static struct item items[2000];

    (void)state;
    current = engine_new(&(struct engine_options){.workers = 3});
    for (size_t i = 0; i < COUNT(items) / 2; i++) {
        items[i].then = &items[COUNT(items) / 2 + i];
        engine_work(current, item_run, item_done, &items[i]);
        assert_int_equal(items[i].dones, 0);
    }
    engine_run(current, NULL);
    for (size_t i = 0; i < COUNT(items); i++) {
        assert_int_equal(items[i].runs, 1);
        assert_int_equal(items[i].dones, 1);
        assert_true(pthread_equal(items[i].on_loop, pthread_self()));
        assert_false(pthread_equal(items[i].on_worker, pthread_self()));
    }
    assert_false(engine_busy(current));
    engine_free(current);
}

static void meet(void *arg)
{
    pthread_barrier_wait(arg);
}

static void no_op(void *arg)
{
    (void)arg;
}

/* Ends only when all three run at the same time. */
static void work_runs_at_the_same_time(void **state)
{
    struct engine *e = engine_new(&(struct engine_options){.workers = 3});
    pthread_barrier_t barrier;

    (void)state;
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 3; i++)
        engine_work(e, meet, no_op, &barrier);
    engine_run(e, NULL);
    pthread_barrier_destroy(&barrier);
    engine_free(e);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void stop_leaves_the_rest_for_later(void **state)
{
    struct engine *e = engine_new(NULL);
    bool stop = false, later = false;

    (void)state;
    engine_timer(e, 0, set_true, &stop);
    engine_timer(e, 50, set_true, &later);
    engine_run(e, &stop);
    assert_false(later);
    assert_true(engine_busy(e));
    engine_run(e, NULL);
    assert_true(later);
    engine_free(e);
}

/* A callback that waits for work of its own, while other finished work waits for delivery. */
static void run_inside(void *arg)
{
    struct item *item = arg;
    bool stop = false;

    engine_work(current, no_op, set_true, &stop);
    engine_run(current, &stop);
    item->dones++;
}

static void a_callback_may_run_the_engine(void **state)
{
    struct item items[20] = {0};

    (void)state;
    current = engine_new(&(struct engine_options){.workers = 2});
    for (size_t i = 0; i < COUNT(items); i++) {
        engine_work(current, item_run, run_inside, &items[i]);
        engine_timer(current, 0, run_inside, &items[i]);
    }
    engine_run(current, NULL);
    for (size_t i = 0; i < COUNT(items); i++)
        assert_int_equal(items[i].dones, 2);
    engine_free(current);
}

/* Without a descriptor to wake the loop there are no threads: the loop does the work. */
static void work_is_done_without_threads(void **state)
{
    struct rlimit old, none;
    struct item second = {0}, first = {.then = &second};

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
    current = engine_new(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    engine_work(current, item_run, item_done, &first);
    engine_run(current, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(second.dones, 1);
    assert_true(pthread_equal(second.on_worker, pthread_self()));
    engine_free(current);
}

struct ended {
    int n;
    CURLcode code;
    CURL *easy;
};

static void transfer_ended(void *arg, CURLcode code)
{
    struct ended *ended = arg;

    ended->code = code;
    if (++ended->n < 3) /* the handle is free again: use it once more */
        engine_transfer(current, ended->easy, transfer_ended, ended);
}

static void a_transfer_that_cannot_start_ends_later(void **state)
{
    struct ended ended = {0};

    (void)state;
    current = engine_new(NULL);
    ended.easy = curl_easy_init();
    curl_easy_setopt(ended.easy, CURLOPT_URL, "nosuch://127.0.0.1/");
    engine_transfer(current, ended.easy, transfer_ended, &ended);
    assert_int_equal(ended.n, 0);
    engine_run(current, NULL);
    assert_int_equal(ended.n, 3);
    assert_int_equal(ended.code, CURLE_UNSUPPORTED_PROTOCOL);
    curl_easy_cleanup(ended.easy);
    engine_free(current);
}

/* What libcurl does not take is reported like every other end: later, and once. */
static void a_refused_handle_is_reported(void **state)
{
    struct ended first = {.n = 9}, second = {.n = 9};

    (void)state;
    current = engine_new(NULL);
    first.easy = curl_easy_init();
    curl_easy_setopt(first.easy, CURLOPT_URL, "nosuch://127.0.0.1/");
    engine_transfer(current, NULL, transfer_ended, &second);
    engine_transfer(current, first.easy, transfer_ended, &first);
    assert_int_equal(second.n, 9);
    engine_run(current, NULL);
    assert_int_equal(first.n, 10);
    assert_int_equal(second.n, 10);
    assert_int_equal(second.code, CURLE_FAILED_INIT);
    curl_easy_cleanup(first.easy);
    engine_free(current);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_engine_costs_nothing),
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test(timers_may_start_timers),
        cmocka_unit_test(work_runs_once_on_other_threads),
        cmocka_unit_test(work_runs_at_the_same_time),
        cmocka_unit_test(stop_leaves_the_rest_for_later),
        cmocka_unit_test(a_callback_may_run_the_engine),
        cmocka_unit_test(work_is_done_without_threads),
        cmocka_unit_test(a_transfer_that_cannot_start_ends_later),
        cmocka_unit_test(a_refused_handle_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
