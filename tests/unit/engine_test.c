/* The event loop: order, threads, exactly one callback, never from inside the start. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/timers.h"

TEST(unused_engine_costs_nothing)
{
    struct engine *e = engine_new(NULL);

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

TEST(timers_fire_in_order)
{
    struct engine *e = engine_new(NULL);
    char letters[] = "abcd";

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

/* Any order of starting, any delays: they fire by their time, and in their order where the times are equal. */
TEST(many_timers_fire_by_their_time)
{
    enum { TIMERS = 3000 };
    struct timers timers = {0};
    struct timer_queue due = {0};
    struct timer timer, last = {.at_ms = -1};
    unsigned random = 7;
    int fired = 0;

    assert_true(timers_next_ms(&timers) < 0);
    for (int i = 0; i < TIMERS; i++) {
        random = random * 1103515245 + 12345;
        timers_add(&timers, 1000, 1 + (random >> 16) % 100, note_letter, NULL);
    }
    for (int64_t now_ms = 1000; now_ms <= 1100; now_ms++) {
        timers_take_due(&timers, now_ms, &due);
        while (timer_queue_pop(&due, &timer)) {
            assert_int_equal(timer.at_ms, now_ms);
            assert_true(timer.at_ms > last.at_ms || timer.number > last.number);
            last = timer;
            fired++;
        }
        assert_true(timers_next_ms(&timers) < 0 || timers_next_ms(&timers) > now_ms);
    }
    assert_int_equal(fired, TIMERS);
    timers_release(&timers);
    timer_queue_release(&due);
}

/* A ring that is full while its first element is in the middle grows in order. */
TEST(a_queue_keeps_its_order)
{
    struct timer_queue queue = {0};
    struct timer timer;
    uint64_t in = 0, out = 0;

    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 3; i++)
            timer_queue_push(&queue, (struct timer){.number = in++});
        assert_true(timer_queue_pop(&queue, &timer));
        assert_int_equal(timer.number, out++);
    }
    while (timer_queue_pop(&queue, &timer))
        assert_int_equal(timer.number, out++);
    assert_int_equal(in, out);
    timer_queue_release(&queue);
}

static int countdown;

static void count_down_again(void *arg)
{
    if (--countdown > 0)
        engine_timer(current, 0, count_down_again, arg);
}

TEST(timers_may_start_timers)
{
    current = engine_new(NULL);
    countdown = 100;
    engine_timer(current, 0, count_down_again, NULL);
    engine_run(current, NULL);
    assert_int_equal(countdown, 0);
    engine_free(current);
}

static bool later_fired;

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void go_on_until_later(void *arg)
{
    if (!later_fired)
        engine_timer(current, 0, go_on_until_later, arg);
}

/* Ends only when a timer with a delay comes through between those without one. */
TEST(timers_without_delay_do_not_starve_the_others)
{
    current = engine_new(NULL);
    later_fired = false;
    engine_timer(current, 5, set_true, &later_fired);
    engine_timer(current, 0, go_on_until_later, NULL);
    engine_run(current, NULL);
    assert_true(later_fired);
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

TEST(work_runs_once_on_other_threads)
{
    static struct item items[2000];

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

static void engine_test_meet(void *arg)
{
    pthread_barrier_wait(arg);
}

static void engine_test_no_op(void *arg)
{
    (void)arg;
}

/* Ends only when all three run at the same time. */
TEST(work_runs_at_the_same_time)
{
    struct engine *e = engine_new(&(struct engine_options){.workers = 3});
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 3; i++)
        engine_work(e, engine_test_meet, engine_test_no_op, &barrier);
    engine_run(e, NULL);
    assert_false(engine_busy(e));
    pthread_barrier_destroy(&barrier);
    engine_free(e);
}

enum { LANES = 3, PER_LANE = 200 };

struct lane {
    struct engine_lane *lane;
    int running, runs;
};

struct lane_item {
    struct lane *lane;
    int number, dones;
    bool alone, in_order;
};

static void run_in_lane(void *arg)
{
    struct lane_item *item = arg;

    item->alone = item->lane->running++ == 0;
    item->in_order = item->lane->runs++ == item->number;
    sched_yield();
    item->lane->running--;
}

static void lane_item_done(void *arg)
{
    struct lane_item *item = arg;

    item->dones++;
}

/* What is written without a lock here, the lane guards: the thread sanitizer sees if it does not. */
static void check_lanes(struct engine *e)
{
    static struct lane_item items[LANES][PER_LANE];
    struct lane lanes[LANES] = {0};

    memset(items, 0, sizeof(items));
    for (int i = 0; i < LANES; i++)
        lanes[i].lane = engine_lane_new();
    for (int n = 0; n < PER_LANE; n++)
        for (int i = 0; i < LANES; i++) {
            items[i][n] = (struct lane_item){.lane = &lanes[i], .number = n};
            engine_work_in(e, lanes[i].lane, run_in_lane, lane_item_done, &items[i][n]);
        }
    engine_run(e, NULL);
    for (int i = 0; i < LANES; i++) {
        for (int n = 0; n < PER_LANE; n++) {
            assert_true(items[i][n].alone && items[i][n].in_order);
            assert_int_equal(items[i][n].dones, 1);
        }
        engine_lane_free(lanes[i].lane);
    }
}

TEST(work_of_one_lane_runs_one_at_a_time_in_order)
{
    struct engine *e = engine_new(&(struct engine_options){.workers = 4});

    check_lanes(e);
    engine_free(e);
}

/* Ends only when both lanes run at the same time, and work without a lane beside them. */
TEST(lanes_run_beside_each_other)
{
    struct engine *e = engine_new(&(struct engine_options){.workers = 3});
    struct engine_lane *one = engine_lane_new(), *other = engine_lane_new();
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 3);
    engine_work_in(e, one, engine_test_meet, engine_test_no_op, &barrier);
    engine_work_in(e, one, engine_test_no_op, engine_test_no_op, NULL);
    engine_work_in(e, other, engine_test_meet, engine_test_no_op, &barrier);
    engine_work(e, engine_test_meet, engine_test_no_op, &barrier);
    engine_run(e, NULL);
    assert_false(engine_busy(e));
    pthread_barrier_destroy(&barrier);
    engine_lane_free(one);
    engine_lane_free(other);
    engine_free(e);
}

static void note_number(void *arg)
{
    struct lane_item *item = arg;

    item->number = item->lane->runs++;
}

/* With one worker: work without a lane does not wait for the end of a long one. */
TEST(a_long_lane_does_not_hold_up_others)
{
    struct engine *e = engine_new(&(struct engine_options){.workers = 1});
    struct lane lane = {.lane = engine_lane_new()};
    struct lane_item first[3] = {{.lane = &lane}, {.lane = &lane}, {.lane = &lane}}, other = {.lane = &lane};
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 2);
    engine_work(e, engine_test_meet, engine_test_no_op, &barrier);
    for (int i = 0; i < 3; i++)
        engine_work_in(e, lane.lane, note_number, lane_item_done, &first[i]);
    engine_work(e, note_number, lane_item_done, &other);
    pthread_barrier_wait(&barrier);
    engine_run(e, NULL);
    assert_int_equal(first[0].number, 0);
    assert_int_equal(other.number, 1);
    assert_int_equal(first[2].number, 3);
    pthread_barrier_destroy(&barrier);
    engine_lane_free(lane.lane);
    engine_free(e);
}

TEST(stop_leaves_the_rest_for_later)
{
    struct engine *e = engine_new(NULL);
    bool stop = false, later = false;

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
static void engine_test_run_inside(void *arg)
{
    struct item *item = arg;
    bool stop = false;

    engine_work(current, engine_test_no_op, set_true, &stop);
    engine_run(current, &stop);
    item->dones++;
}

TEST(a_callback_may_run_the_engine)
{
    struct item items[20] = {0};

    current = engine_new(&(struct engine_options){.workers = 2});
    for (size_t i = 0; i < COUNT(items); i++) {
        engine_work(current, item_run, engine_test_run_inside, &items[i]);
        engine_timer(current, 0, engine_test_run_inside, &items[i]);
    }
    engine_run(current, NULL);
    for (size_t i = 0; i < COUNT(items); i++)
        assert_int_equal(items[i].dones, 2);
    engine_free(current);
}

/* Without a descriptor to wake the loop there are no threads: the loop does the work. */
TEST(work_is_done_without_threads)
{
    struct rlimit old, none;
    struct item second = {0}, first = {.then = &second};

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
    current = engine_new(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    engine_work(current, item_run, item_done, &first);
    engine_run(current, NULL);
    assert_int_equal(second.dones, 1);
    assert_true(pthread_equal(second.on_worker, pthread_self()));
    check_lanes(current);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    engine_free(current);
}

/* --- transfers, against a server of this process --------------------------------------------------------- */

enum { PEERS = 300, ROUNDS = 4 };

struct server {
    int listener, port;
    pthread_t thread;
    int max_open;
};

/* Answers on all connections only when as many have asked as may be open: so they must be open together. */
static void *serve_together(void *arg)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    struct server *s = arg;
    int open[PEERS];
    char request[4096];

    for (int n = 0; n < s->max_open; n++)
        open[n] = accept(s->listener, NULL, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < s->max_open; n++)
            if (recv(open[n], request, sizeof(request), 0) <= 0)
                return NULL;
        for (int n = 0; n < s->max_open; n++)
            if (send(open[n], answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
                return NULL;
    }
    for (int n = 0; n < s->max_open; n++)
        close(open[n]);
    return NULL;
}

static void engine_test_server_start(struct server *s, int max_open)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *s = (struct server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .max_open = max_open};
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(s->listener, PEERS), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve_together, s), 0);
}

static void engine_test_server_stop(struct server *s)
{
    pthread_join(s->thread, NULL);
    close(s->listener);
}

struct asker {
    CURL *easy;
    int answers;
    char body[8];
    size_t len;
};

static size_t keep_body(char *data, size_t size, size_t count, void *arg)
{
    struct asker *asker = arg;

    assert_true(asker->len + size * count < sizeof(asker->body));
    memcpy(asker->body + asker->len, data, size * count);
    asker->len += size * count;
    return size * count;
}

static void asker_ended(void *arg, CURLcode code)
{
    struct asker *asker = arg;

    assert_int_equal(code, CURLE_OK);
    assert_int_equal(asker->len, 2);
    assert_memory_equal(asker->body, "hi", 2);
    asker->len = 0;
    if (++asker->answers < ROUNDS)
        engine_transfer(current, asker->easy, asker_ended, asker);
}

/* Many connections at once, each used several times; the limit of open files is too low at first. */
TEST(many_connections_are_open_together)
{
    static struct asker askers[PEERS];
    struct rlimit old, now;
    struct server server;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    engine_test_server_start(&server, PEERS);
    current = engine_new(&(struct engine_options){.max_connections = 2 * PEERS});
    ACT_AUTOFREE char *url = act_sprintf("http://127.0.0.1:%d/", server.port);
    for (size_t i = 0; i < PEERS; i++) {
        askers[i] = (struct asker){.easy = curl_easy_init()};
        curl_easy_setopt(askers[i].easy, CURLOPT_URL, url);
        curl_easy_setopt(askers[i].easy, CURLOPT_PROXY, "");
        curl_easy_setopt(askers[i].easy, CURLOPT_WRITEFUNCTION, keep_body);
        curl_easy_setopt(askers[i].easy, CURLOPT_WRITEDATA, &askers[i]);
    }
    now = (struct rlimit){.rlim_cur = PEERS, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    for (size_t i = 0; i < PEERS; i++)
        engine_transfer(current, askers[i].easy, asker_ended, &askers[i]);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_true(now.rlim_cur >= 2 * PEERS);
    engine_run(current, NULL);
    for (size_t i = 0; i < PEERS; i++) {
        assert_int_equal(askers[i].answers, ROUNDS);
        curl_easy_cleanup(askers[i].easy);
    }
    engine_free(current);
    engine_test_server_stop(&server);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
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

TEST(a_transfer_that_cannot_start_ends_later)
{
    struct ended ended = {0};

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
TEST(a_refused_handle_is_reported)
{
    struct ended first = {.n = 9}, second = {.n = 9};

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

TEST_MAIN(NULL, NULL)
