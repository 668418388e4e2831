/* pool.h - the workers of an engine, and the work that they do. For engine.c only, whose thread calls all of this.
 *
 * Workers share nothing with the loop but struct pool: they take items from its queue and put them on its list of
 * finished ones. They wake the loop, by an eventfd, only while it waits.
 */
#ifndef ACT_ENGINE_POOL_H
#define ACT_ENGINE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct engine_lane;

struct engine_item {
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct engine_lane *lane; /* or NULL */
    struct engine_item *next;
};

struct work_list {
    struct engine_item *first, **end;
};

enum { POOL_THREADS_MAX = 64 }; /* hashing at 10 GB/s takes some 20; the rest wait for slow disks */

struct pool {
    pthread_mutex_t lock; /* for the members down to quit, and for lanes */
    pthread_cond_t more;
    struct work_list todo, finished;
    size_t todo_n, idle; /* items waiting, threads waiting */
    bool waking;         /* one of the waiting threads was woken and has not arrived yet */
    bool loop_waits;     /* and wants to be woken */
    bool quit;
    int wake_fd; /* -1: not there; not changed while threads run */
    pthread_t threads[POOL_THREADS_MAX];
    int threads_n;
};

void pool_init(struct pool *p);
/* Ends the threads, and frees the items that nobody has taken. */
void pool_release(struct pool *p);

/* Has the pool run the item, which it owns until pool_take_finished(). Tells whether there is more to do than threads
 * wait for it. */
bool pool_add(struct pool *p, struct engine_item *item);
/* Starts one more thread, if the system gives one; p->wake_fd is there. */
void pool_start_thread(struct pool *p);
/* Tells whether there is work that no thread will do. */
bool pool_needs_loop(const struct pool *p);
/* Does that work here. */
void pool_run_here(struct pool *p);
/* Returns the items that have run, in a list that ends with NULL; they are the caller's. */
struct engine_item *pool_take_finished(struct pool *p);
void pool_free_items(struct engine_item *first);
/* Has a worker that finishes something wake the loop from now on. Returns whether the loop may wait at all. */
bool pool_ask_to_be_woken(struct pool *p);

#endif
