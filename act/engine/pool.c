/* pool.c - the worker's side of the engine, and what the loop does under the lock. */
#include "engine/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/engine.h"

enum { WORKER_STACK = 256 << 10 };

struct engine_lane {
    struct work_list waiting;
    bool busy; /* one of its items is in the pool */
};

void pool_init(struct pool *p)
{
    *p = (struct pool){.wake_fd = -1};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
}

void pool_release(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->threads_n; i++)
        pthread_join(p->threads[i], NULL);
    pool_free_items(p->todo.first);
    pool_free_items(p->finished.first);
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
}

/* ---- lists and lanes ---- */

static void list_add(struct work_list *list, struct engine_item *w)
{
    w->next = NULL;
    if (!list->first)
        list->end = &list->first;
    *list->end = w;
    list->end = &w->next;
}

static struct engine_item *list_take(struct work_list *list)
{
    struct engine_item *w = list->first;

    if (w)
        list->first = w->next;
    return w;
}

void pool_free_items(struct engine_item *w)
{
    while (w) {
        struct engine_item *next = w->next;
        free(w);
        w = next;
    }
}

struct engine_lane *engine_lane_new(void)
{
    return act_calloc(1, sizeof(struct engine_lane));
}

void engine_lane_free(struct engine_lane *lane)
{
    if (lane)
        pool_free_items(lane->waiting.first);
    free(lane);
}

/* ---- the workers ---- */

static void wake_loop(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* Tells whether to wake a worker once the lock is free. Workers are woken one at a time, and only while there is
 * something to do: each wakes the next. A worker that is awake anyway takes most small items. */
static bool should_wake_worker(struct pool *p)
{
    if (!p->todo.first || p->idle == 0 || p->waking)
        return false;
    p->waking = true;
    return true;
}

/* Has the pool run the work, now or after the work before it in its lane. This and the next two need the lock. */
static void queue_work(struct pool *p, struct engine_item *w)
{
    if (w->lane && w->lane->busy) {
        list_add(&w->lane->waiting, w);
        return;
    }
    if (w->lane)
        w->lane->busy = true;
    list_add(&p->todo, w);
    p->todo_n++;
}

static struct engine_item *take_work(struct pool *p)
{
    struct engine_item *w = list_take(&p->todo);

    if (w)
        p->todo_n--;
    return w;
}

/* The next work of the lane comes after what the pool already has to do, so that a long lane does not hold up
 * others. */
static void finish_work(struct pool *p, struct engine_item *w)
{
    list_add(&p->finished, w);
    if (!w->lane)
        return;
    w->lane->busy = false;
    struct engine_item *next = list_take(&w->lane->waiting);
    if (next)
        queue_work(p, next);
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
            p->waking = false;
        }
        if (p->quit)
            break;
        struct engine_item *w = take_work(p);
        bool wake = should_wake_worker(p);
        pthread_mutex_unlock(&p->lock);
        if (wake)
            pthread_cond_signal(&p->more);
        w->run(w->arg);
        pthread_mutex_lock(&p->lock);
        finish_work(p, w);
        if (p->loop_waits) {
            p->loop_waits = false;
            pthread_mutex_unlock(&p->lock);
            wake_loop(p->wake_fd);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are blocked there: they are for the loop's thread. */
void pool_start_thread(struct pool *p)
{
    pthread_attr_t attr;
    sigset_t all, old;

    if (pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setstacksize(&attr, WORKER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&p->threads[p->threads_n], &attr, worker, p) == 0)
        p->threads_n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

/* ---- the loop's side ---- */

bool pool_add(struct pool *p, struct engine_item *item)
{
    pthread_mutex_lock(&p->lock);
    queue_work(p, item);
    bool more = p->todo_n > p->idle;
    bool wake = should_wake_worker(p);
    pthread_mutex_unlock(&p->lock);
    if (wake)
        pthread_cond_signal(&p->more);
    return more;
}

bool pool_needs_loop(const struct pool *p)
{
    return p->threads_n == 0 && p->todo.first;
}

void pool_run_here(struct pool *p)
{
    while (pool_needs_loop(p)) {
        struct engine_item *w = take_work(p);
        w->run(w->arg);
        finish_work(p, w);
    }
}

struct engine_item *pool_take_finished(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    struct engine_item *first = p->finished.first;
    p->finished.first = NULL;
    pthread_mutex_unlock(&p->lock);
    return first;
}

bool pool_ask_to_be_woken(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->loop_waits = !p->finished.first;
    bool may_wait = p->loop_waits;
    pthread_mutex_unlock(&p->lock);
    return may_wait;
}
