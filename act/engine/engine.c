/* engine.c - one loop over connections, timers and finished work.
 *
 * A turn: deliver what has ended (transfers, work, timers), let libcurl do what its clock asks for, then wait
 * for sockets and workers and let libcurl move what is ready. What is to be delivered is kept in the engine
 * and taken one by one, so that a callback may itself run the engine.
 *
 * Sockets: libcurl says which it wants to be watched for what (socket_wanted), epoll does it. Between two
 * requests on one connection libcurl wants nothing of it; its registration is then left as it is, since the
 * next request most likely wants the same again. That is safe for the sockets which the engine opened, as it
 * hears when they are closed; others (the resolver's) are registered and taken out each time.
 *
 * Work, and the threads that do it, are in pool.c.
 */
#include "engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "engine/pool.h"
#include "engine/timers.h"

enum {
    DEFAULT_CONNECTIONS = 512,
    OTHER_FILES = 256,  /* descriptors for everything that is not a connection */
    MIN_WORKERS = 4,    /* even one processor can wait for several disk reads */
    MAX_WAIT_MS = 1000, /* how late a stop flag that a signal handler sets may be seen */
    EVENTS = 128,       /* taken from epoll at once */
};

struct transfer {
    CURL *easy;
    void (*done)(void *arg, CURLcode result);
    void *arg;
    CURLcode result; /* once it has ended */
    bool has_ended, cancelled, endless;
    void (*connected)(void *arg); /* NULL: it has a response */
    struct engine *engine;
    struct transfer *next; /* in engine->ended */
};

struct engine_watched {
    bool own;                  /* opened by engine_open_socket(), not closed yet */
    uint32_t wanted, watching; /* events: what libcurl wants, what epoll looks for */
    void (*ready)(void *arg);  /* whose descriptor it is, when it is not libcurl's to look after */
    void *arg;
};

struct engine {
    struct engine_options options;
    CURLM *multi;
    int epoll_fd;                   /* -1: not there */
    struct engine_watched *watched; /* by descriptor */
    size_t watched_n;
    int64_t curl_due_ms; /* when libcurl wants to be called next; -1: never */
    struct timers timers;
    struct timer_queue due;               /* to be fired in this turn */
    struct transfer *ended, **ended_tail; /* to be delivered in this turn */
    struct engine_item *ready;            /* to be delivered in this turn */
    size_t transfers, works;
    size_t endless; /* of the transfers */
    size_t held;
    struct pool pool;
};

static int processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

struct engine *engine_new(const struct engine_options *options)
{
    struct engine *e = act_calloc(1, sizeof(*e));

    if (options)
        e->options = *options;
    if (e->options.workers <= 0)
        e->options.workers = clamp(processors(), MIN_WORKERS, POOL_THREADS_MAX);
    e->options.workers = clamp(e->options.workers, 1, POOL_THREADS_MAX);
    if (e->options.max_connections <= 0)
        e->options.max_connections = DEFAULT_CONNECTIONS;
    pool_init(&e->pool);
    e->epoll_fd = -1;
    e->curl_due_ms = -1;
    e->ended_tail = &e->ended;
    return e;
}

int engine_workers(const struct engine *e)
{
    return e->options.workers;
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    pool_release(&e->pool);
    pool_free_items(e->ready);
    timers_release(&e->timers);
    timer_queue_release(&e->due);
    if (e->multi)
        curl_multi_cleanup(e->multi);
    free(e->watched);
    if (e->epoll_fd >= 0)
        close(e->epoll_fd);
    free(e);
}

/* --- what the loop waits for ---------------------------------------------------------------------------- */

static bool need_epoll(struct engine *e)
{
    if (e->epoll_fd < 0)
        e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return e->epoll_fd >= 0;
}

/* Edge-triggered: each write is one event, and nobody has to read the counter. */
static bool need_wake_fd(struct engine *e)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    if (e->pool.wake_fd >= 0)
        return true;
    int fd = need_epoll(e) ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (fd < 0)
        return false;
    event.data.fd = fd;
    if (epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        close(fd);
        return false;
    }
    e->pool.wake_fd = fd;
    return true;
}

static struct engine_watched *watched_of(struct engine *e, curl_socket_t fd)
{
    size_t index = (size_t)fd;

    if (index >= e->watched_n) {
        size_t n = index < 64 ? 64 : 2 * index;
        e->watched = act_realloc(e->watched, n * sizeof(*e->watched));
        for (size_t i = e->watched_n; i < n; i++)
            e->watched[i] = (struct engine_watched){0};
        e->watched_n = n;
    }
    return &e->watched[index];
}

/* Makes epoll watch for these events. A descriptor that was closed without our knowledge is gone from epoll, and its
 * number may be reused: each of the two calls stands in for the other. */
static void engine_watch_events(struct engine *e, curl_socket_t fd, struct engine_watched *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (events == w->watching)
        return;
    if (events == 0) {
        epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, fd, &event);
    } else {
        int first = w->watching ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        int second = w->watching ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
        if (epoll_ctl(e->epoll_fd, first, fd, &event) < 0)
            epoll_ctl(e->epoll_fd, second, fd, &event);
    }
    w->watching = events;
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct engine *e = arg;
    struct engine_watched *w = watched_of(e, fd);

    (void)easy, (void)socket_arg;
    w->wanted = (what & CURL_POLL_IN && what != CURL_POLL_REMOVE ? EPOLLIN : 0U) |
                (what & CURL_POLL_OUT && what != CURL_POLL_REMOVE ? EPOLLOUT : 0U);
    if (w->wanted || !w->own)
        engine_watch_events(e, fd, w, w->wanted);
    return 0;
}

static curl_socket_t engine_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct engine *e = arg;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd >= 0)
        *watched_of(e, fd) = (struct engine_watched){.own = true};
    return fd;
}

static int close_socket(void *arg, curl_socket_t fd)
{
    *watched_of(arg, fd) = (struct engine_watched){0};
    return close(fd);
}

static bool engine_watch_for(struct engine *e, int fd, uint32_t events, void (*ready)(void *arg), void *arg)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (!need_epoll(e))
        return false;
    struct engine_watched *w = watched_of(e, fd);
    if (!w->watching) {
        if (epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST)
            return false;
        w->watching = events;
    }
    engine_watch_events(e, fd, w, events);
    w->ready = ready;
    w->arg = arg;
    return true;
}

bool engine_watch(struct engine *e, int fd, bool out, void (*ready)(void *arg), void *arg)
{
    return engine_watch_for(e, fd, EPOLLIN | (out ? EPOLLOUT : 0U), ready, arg);
}

bool engine_watch_out(struct engine *e, int fd, void (*ready)(void *arg), void *arg)
{
    return engine_watch_for(e, fd, EPOLLOUT, ready, arg);
}

void engine_unwatch(struct engine *e, int fd)
{
    struct engine_watched *w = watched_of(e, fd);

    if (w->watching)
        engine_watch_events(e, fd, w, 0);
    w->ready = NULL;
}

static int clock_wanted(CURLM *multi, long delay_ms, void *arg)
{
    struct engine *e = arg;

    (void)multi;
    e->curl_due_ms = delay_ms < 0 ? -1 : act_now_monotonic_ms() + delay_ms;
    return 0;
}

/* Raises the limit of open files for the connections; if that fails, there are fewer connections. */
static int allowed_connections(int wanted)
{
    uint64_t needed = (uint64_t)wanted + OTHER_FILES, allowed = act_allow_files(needed);

    if (allowed >= needed)
        return wanted;
    return allowed > 2 * OTHER_FILES ? (int)(allowed - OTHER_FILES) : clamp((int)(allowed / 2), 1, wanted);
}

/* libcurl counts these calls, and keeps the functions of the first one. */
static CURLcode start_curl(void)
{
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, act_free_wiping, act_realloc_wiping, strdup, calloc);
}

CURL *engine_easy(void)
{
    return start_curl() == CURLE_OK ? curl_easy_init() : NULL;
}

static CURLcode need_multi(struct engine *e)
{
    if (e->multi)
        return CURLE_OK;
    CURLcode code = start_curl();
    if (code != CURLE_OK)
        return code;
    e->options.max_connections = allowed_connections(e->options.max_connections);
    if (!need_epoll(e))
        return CURLE_FAILED_INIT;
    e->multi = curl_multi_init();
    if (!e->multi)
        return CURLE_OUT_OF_MEMORY;
    curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e);
    curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, clock_wanted);
    curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e);
    curl_multi_setopt(e->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)e->options.max_connections);
    curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, (long)e->options.max_connections);
    curl_multi_setopt(e->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    return CURLE_OK;
}

/* --- starting ------------------------------------------------------------------------------------------- */

void engine_work(struct engine *e, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    engine_work_in(e, NULL, run, done, arg);
}

void engine_work_in(struct engine *e, struct engine_lane *lane, void (*run)(void *arg), void (*done)(void *arg),
                    void *arg)
{
    struct engine_item *w = act_alloc(sizeof(*w));

    *w = (struct engine_item){.run = run, .done = done, .arg = arg, .lane = lane};
    e->works++;
    /* if the system refuses a thread or a descriptor, the loop does the work itself */
    if (pool_add(&e->pool, w) && e->pool.threads_n < e->options.workers && need_wake_fd(e))
        pool_start_thread(&e->pool);
}

void engine_timer(struct engine *e, int64_t delay_ms, void (*fire)(void *arg), void *arg)
{
    timers_add(&e->timers, delay_ms > 0 ? act_now_monotonic_ms() : 0, delay_ms, fire, arg);
}

void engine_forget(struct engine *e, const void *arg)
{
    timers_forget(&e->timers, arg);
    timer_queue_forget(&e->due, arg);
}

static void add_ended(struct transfer *t, CURLcode result)
{
    struct engine *e = t->engine;

    t->has_ended = true;
    t->result = result;
    t->next = NULL;
    *e->ended_tail = t;
    e->ended_tail = &t->next;
}

static void start_transfer(struct transfer what)
{
    struct engine *e = what.engine;
    struct transfer *t = act_alloc(sizeof(*t));
    CURL *easy = what.easy;
    CURLcode failed = need_multi(e);

    *t = what;
    e->transfers++;
    e->endless += t->endless;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    if (failed == CURLE_OK) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, engine_open_socket);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, e);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, e);
        if (curl_multi_add_handle(e->multi, easy) != CURLM_OK)
            failed = CURLE_FAILED_INIT;
    }
    if (failed != CURLE_OK)
        add_ended(t, failed);
}

void engine_transfer(struct engine *e, CURL *easy, void (*done)(void *arg, CURLcode result), void *arg)
{
    start_transfer((struct transfer){.easy = easy, .done = done, .arg = arg, .engine = e});
}

void engine_transfer_endless(struct engine *e, CURL *easy, void (*done)(void *arg, CURLcode result), void *arg)
{
    start_transfer((struct transfer){.easy = easy, .done = done, .arg = arg, .engine = e, .endless = true});
}

void engine_connect(struct engine *e, CURL *easy, void (*connected)(void *arg),
                    void (*done)(void *arg, CURLcode result), void *arg)
{
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    start_transfer((struct transfer){
        .easy = easy, .connected = connected, .done = done, .arg = arg, .engine = e, .endless = true});
}

static void remove_transfer(void *arg)
{
    struct transfer *t = arg;

    if (t->has_ended)
        return;
    curl_multi_remove_handle(t->engine->multi, t->easy);
    add_ended(t, CURLE_ABORTED_BY_CALLBACK);
}

/* A timer does it, because libcurl lets go of nothing from inside its callbacks. */
void engine_cancel(struct engine *e, CURL *easy)
{
    struct transfer *t = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    if (!t->cancelled)
        engine_timer(e, 0, remove_transfer, t);
    t->cancelled = true;
}

/* --- delivering ----------------------------------------------------------------------------------------- */

/* The connection is there, and stays as long as libcurl has the handle. */
static void say_connected(void *arg)
{
    struct transfer *t = arg;

    t->connected(t->arg);
}

/* Takes from libcurl what has ended. */
static void collect_transfers(struct engine *e)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(e->multi, &left))) {
        struct transfer *t = NULL;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        if (t->connected && result == CURLE_OK) {
            engine_timer(e, 0, say_connected, t);
            continue;
        }
        curl_multi_remove_handle(e->multi, t->easy);
        add_ended(t, result);
    }
}

static void deliver_transfers(struct engine *e)
{
    struct transfer *t;

    while ((t = e->ended)) {
        struct transfer ended = *t;
        e->ended = t->next;
        if (!e->ended)
            e->ended_tail = &e->ended;
        if (t->cancelled || t->connected)
            engine_forget(e, t);
        free(t);
        e->transfers--;
        e->endless -= ended.endless;
        ended.done(ended.arg, ended.result);
    }
}

static void deliver_work(struct engine *e)
{
    struct engine_item *w;

    if (e->works == 0)
        return;
    pool_run_here(&e->pool);
    if (!e->ready)
        e->ready = pool_take_finished(&e->pool);
    while ((w = e->ready)) {
        struct engine_item ended = *w;
        e->ready = w->next;
        free(w);
        e->works--;
        ended.done(ended.arg);
    }
}

/* Fires what is due now; timers that these start fire in the next turn. */
static void deliver_timers(struct engine *e)
{
    struct timer timer;

    timers_take_due(&e->timers, e->timers.n > 0 ? act_now_monotonic_ms() : 0, &e->due);
    while (timer_queue_pop(&e->due, &timer))
        timer.fire(timer.arg);
}

/* --- waiting -------------------------------------------------------------------------------------------- */

static void engine_move(struct engine *e, curl_socket_t fd, int what)
{
    int running;

    curl_multi_socket_action(e->multi, fd, what, &running);
    collect_transfers(e);
}

/* A request that was just sent often asks to be called once more at once. */
static void heed_clock(struct engine *e)
{
    for (int i = 0; i < 2 && e->curl_due_ms >= 0 && e->curl_due_ms <= act_now_monotonic_ms(); i++) {
        e->curl_due_ms = -1;
        engine_move(e, CURL_SOCKET_TIMEOUT, 0);
    }
}

static void heed_socket(struct engine *e, curl_socket_t fd, uint32_t events)
{
    struct engine_watched *w = watched_of(e, fd);

    if (w->ready) {
        w->ready(w->arg);
        return;
    }
    if (events & (EPOLLERR | EPOLLHUP))
        events |= w->wanted; /* the next call on the socket reports what is wrong */
    if (w->wanted == 0)
        engine_watch_events(e, fd, w, 0); /* a peer closed an idle connection */
    else
        engine_move(e, fd, (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0));
}

static bool must_not_wait(const struct engine *e)
{
    return e->ended || e->ready || e->due.n > 0 || pool_needs_loop(&e->pool);
}

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

static int wait_ms(const struct engine *e)
{
    int64_t due_ms = sooner(timers_next_ms(&e->timers), e->curl_due_ms);

    if (must_not_wait(e) || due_ms == 0)
        return 0;
    if (due_ms < 0)
        return MAX_WAIT_MS;
    int64_t left_ms = due_ms - act_now_monotonic_ms();
    return left_ms < 0 ? 0 : left_ms > MAX_WAIT_MS ? MAX_WAIT_MS : (int)left_ms;
}

static void wait_for_something(struct engine *e)
{
    struct epoll_event events[EVENTS];
    int timeout_ms = wait_ms(e), n;

    if (timeout_ms > 0 && e->works > 0 && !pool_ask_to_be_woken(&e->pool))
        timeout_ms = 0;
    if (e->epoll_fd < 0) {
        poll(NULL, 0, timeout_ms);
        return;
    }
    n = epoll_wait(e->epoll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++)
        if (events[i].data.fd != e->pool.wake_fd)
            heed_socket(e, events[i].data.fd, events[i].events);
}

static bool is_only_endless(const struct engine *e)
{
    return e->transfers == e->endless && e->works == 0 && e->held == 0 && e->due.n == 0 &&
           timers_next_ms(&e->timers) < 0;
}

bool engine_busy(const struct engine *e)
{
    return e->transfers > 0 || e->works > 0 || e->held > 0 || e->due.n > 0 || timers_next_ms(&e->timers) >= 0;
}

void engine_hold(struct engine *e, bool hold)
{
    e->held += hold ? 1 : -(size_t)1;
}

/* Without a flag nobody could end the wait for an endless transfer. */
static bool engine_goes_on(const struct engine *e, const bool *stop)
{
    return stop ? !*stop && engine_busy(e) : engine_busy(e) && !is_only_endless(e);
}

void engine_run(struct engine *e, const bool *stop)
{
    while (engine_goes_on(e, stop)) {
        deliver_transfers(e);
        deliver_work(e);
        deliver_timers(e);
        heed_clock(e);
        if (engine_goes_on(e, stop))
            wait_for_something(e);
    }
}
