/* engine.c - one loop over connections, timers and finished work.
 *
 * A turn: let libcurl move its transfers, then deliver what has ended (transfers, work, timers), then wait.
 * What is to be delivered is kept in the engine and taken one by one, so that a callback may itself run the
 * engine. Workers share nothing with the loop but struct pool: they take items from its queue and put them
 * on its list of finished ones; the first item on an empty list writes to an eventfd that the loop polls.
 */
#include "engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum {
    DEFAULT_CONNECTIONS = 64,
    MIN_WORKERS = 2,
    MAX_WORKERS = 16,
    MAX_WAIT_MS = 1000, /* how late a stop flag that a signal handler sets may be seen */
};

struct work {
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct work *next;
};

struct work_list {
    struct work *first, **end;
};

struct timer {
    int64_t at_ms;
    void (*fire)(void *arg);
    void *arg;
    struct timer *next;
};

struct transfer {
    CURL *easy;
    void (*done)(void *arg, CURLcode result);
    void *arg;
    CURLcode failed; /* why it could not even be handed to libcurl */
    struct engine *engine;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_list todo, finished;
    size_t todo_n, idle; /* items waiting, threads waiting */
    bool quit;
    int wake_fd; /* -1: not there; not changed while threads run */
};

struct engine {
    struct engine_options options;
    CURLM *multi;
    struct timer *timers; /* soonest first */
    struct timer *due;    /* to be fired in this turn */
    struct work *ready;   /* to be delivered in this turn */
    size_t transfers, works;
    struct pool pool;
    pthread_t threads[MAX_WORKERS];
    int threads_n;
};

static void list_add(struct work_list *list, struct work *w)
{
    w->next = NULL;
    if (!list->first)
        list->end = &list->first;
    *list->end = w;
    list->end = &w->next;
}

static struct work *list_take(struct work_list *list)
{
    struct work *w = list->first;

    if (w)
        list->first = w->next;
    return w;
}

static void free_works(struct work *w)
{
    while (w) {
        struct work *next = w->next;
        free(w);
        w = next;
    }
}

static void free_timers(struct timer *t)
{
    while (t) {
        struct timer *next = t->next;
        free(t);
        t = next;
    }
}

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
        e->options.workers = clamp(processors(), MIN_WORKERS, MAX_WORKERS);
    e->options.workers = clamp(e->options.workers, 1, MAX_WORKERS);
    if (e->options.max_connections <= 0)
        e->options.max_connections = DEFAULT_CONNECTIONS;
    pthread_mutex_init(&e->pool.lock, NULL);
    pthread_cond_init(&e->pool.more, NULL);
    e->pool.wake_fd = -1;
    return e;
}

static void stop_workers(struct engine *e)
{
    pthread_mutex_lock(&e->pool.lock);
    e->pool.quit = true;
    pthread_cond_broadcast(&e->pool.more);
    pthread_mutex_unlock(&e->pool.lock);
    for (int i = 0; i < e->threads_n; i++)
        pthread_join(e->threads[i], NULL);
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    stop_workers(e);
    free_works(e->pool.todo.first);
    free_works(e->pool.finished.first);
    free_works(e->ready);
    free_timers(e->timers);
    free_timers(e->due);
    if (e->multi)
        curl_multi_cleanup(e->multi);
    if (e->pool.wake_fd >= 0)
        close(e->pool.wake_fd);
    pthread_cond_destroy(&e->pool.more);
    pthread_mutex_destroy(&e->pool.lock);
    free(e);
}

/* --- the worker's side ---------------------------------------------------------------------------------- */

static void wake_loop(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void *worker(void *arg)
{
    struct pool *p = arg;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && !p->todo.first) {
            p->idle++;
            pthread_cond_wait(&p->more, &p->lock);
            p->idle--;
        }
        if (p->quit)
            break;
        struct work *w = list_take(&p->todo);
        p->todo_n--;
        pthread_mutex_unlock(&p->lock);
        w->run(w->arg);
        pthread_mutex_lock(&p->lock);
        if (!p->finished.first)
            wake_loop(p->wake_fd);
        list_add(&p->finished, w);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* --- the loop's side ------------------------------------------------------------------------------------ */

/* One more thread, deaf to signals: those are for the loop's thread. Where the system gives no thread or no
 * descriptor, the loop does the work itself. */
static void add_worker(struct engine *e)
{
    sigset_t all, old;

    if (e->pool.wake_fd < 0)
        e->pool.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->pool.wake_fd < 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&e->threads[e->threads_n], NULL, worker, &e->pool) == 0)
        e->threads_n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void engine_work(struct engine *e, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = act_alloc(sizeof(*w));
    struct pool *p = &e->pool;

    *w = (struct work){.run = run, .done = done, .arg = arg};
    e->works++;
    pthread_mutex_lock(&p->lock);
    list_add(&p->todo, w);
    bool more = ++p->todo_n > p->idle;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    if (more && e->threads_n < e->options.workers)
        add_worker(e);
}

void engine_timer(struct engine *e, int64_t delay_ms, void (*fire)(void *arg), void *arg)
{
    struct timer *t = act_alloc(sizeof(*t)), **at = &e->timers;

    *t = (struct timer){
        .at_ms = act_now_monotonic_ms() + (delay_ms > 0 ? delay_ms : 0), .fire = fire, .arg = arg};
    while (*at && (*at)->at_ms <= t->at_ms)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

static CURLcode need_multi(struct engine *e)
{
    if (e->multi)
        return CURLE_OK;
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK)
        return code;
    e->multi = curl_multi_init();
    if (!e->multi)
        return CURLE_OUT_OF_MEMORY;
    curl_multi_setopt(e->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)e->options.max_connections);
    curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, (long)e->options.max_connections);
    curl_multi_setopt(e->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    return CURLE_OK;
}

static void end_transfer(struct transfer *t, CURLcode result)
{
    struct transfer ended = *t;

    free(t);
    ended.engine->transfers--;
    ended.done(ended.arg, result);
}

static void report_failed_start(void *arg)
{
    struct transfer *t = arg;

    end_transfer(t, t->failed);
}

void engine_transfer(struct engine *e, CURL *easy, void (*done)(void *arg, CURLcode result), void *arg)
{
    struct transfer *t = act_alloc(sizeof(*t));

    *t = (struct transfer){.easy = easy, .done = done, .arg = arg, .engine = e};
    e->transfers++;
    t->failed = need_multi(e);
    if (t->failed == CURLE_OK) {
        curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
        if (curl_multi_add_handle(e->multi, easy) != CURLM_OK)
            t->failed = CURLE_FAILED_INIT;
    }
    if (t->failed != CURLE_OK)
        engine_timer(e, 0, report_failed_start, t);
}

static void deliver_transfers(struct engine *e)
{
    CURLMsg *m;
    int left;

    while (e->multi && (m = curl_multi_info_read(e->multi, &left))) {
        struct transfer *t = NULL;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        curl_multi_remove_handle(e->multi, t->easy);
        end_transfer(t, result);
    }
}

/* Without a single thread: do here what was queued. */
static void work_here(struct engine *e)
{
    struct work *w;

    while (e->threads_n == 0 && (w = list_take(&e->pool.todo))) {
        e->pool.todo_n--;
        w->run(w->arg);
        list_add(&e->pool.finished, w);
    }
}

static void deliver_work(struct engine *e)
{
    struct work *w;

    work_here(e);
    if (!e->ready) {
        pthread_mutex_lock(&e->pool.lock);
        e->ready = e->pool.finished.first;
        e->pool.finished.first = NULL;
        pthread_mutex_unlock(&e->pool.lock);
    }
    while ((w = e->ready)) {
        struct work ended = *w;
        e->ready = w->next;
        free(w);
        e->works--;
        ended.done(ended.arg);
    }
}

/* Fires what is due now; what those start comes with the next turn. */
static void deliver_timers(struct engine *e)
{
    int64_t now_ms = act_now_monotonic_ms();
    struct timer *t, **end = &e->due;

    while (*end)
        end = &(*end)->next;
    while ((t = e->timers) && t->at_ms <= now_ms) {
        e->timers = t->next;
        t->next = NULL;
        *end = t;
        end = &t->next;
    }
    while ((t = e->due)) {
        struct timer ended = *t;
        e->due = t->next;
        free(t);
        ended.fire(ended.arg);
    }
}

static int wait_ms(const struct engine *e)
{
    if (e->threads_n == 0 && e->pool.todo.first)
        return 0; /* for work_here(): no worker will wake the loop */
    if (!e->timers)
        return MAX_WAIT_MS;
    int64_t left_ms = e->timers->at_ms - act_now_monotonic_ms();
    return left_ms < 0 ? 0 : left_ms > MAX_WAIT_MS ? MAX_WAIT_MS : (int)left_ms;
}

static void wait_for_something(struct engine *e)
{
    struct pollfd wake = {.fd = e->pool.wake_fd, .events = POLLIN};
    struct curl_waitfd curl_wake = {.fd = e->pool.wake_fd, .events = CURL_WAIT_POLLIN};
    uint64_t count;

    if (e->transfers > 0 && e->multi)
        curl_multi_poll(e->multi, &curl_wake, e->pool.wake_fd >= 0, wait_ms(e), NULL);
    else
        poll(&wake, 1, wait_ms(e)); /* a descriptor of -1 is ignored */
    if (e->pool.wake_fd >= 0 && read(e->pool.wake_fd, &count, sizeof(count)) < 0)
        return; /* not woken by a worker */
}

bool engine_busy(const struct engine *e)
{
    return e->transfers > 0 || e->works > 0 || e->timers || e->due;
}

void engine_run(struct engine *e, const bool *stop)
{
    int running;

    while (!(stop && *stop) && engine_busy(e)) {
        if (e->transfers > 0 && e->multi)
            curl_multi_perform(e->multi, &running);
        deliver_transfers(e);
        deliver_work(e);
        deliver_timers(e);
        if (!(stop && *stop) && engine_busy(e))
            wait_for_something(e);
    }
}
