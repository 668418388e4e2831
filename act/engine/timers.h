/* timers.h - calls that are due later. For engine.c only.
 *
 * Those without a delay are a list, in order; the others are a heap, soonest first, those of one moment in
 * the order they were added.
 */
#ifndef ACT_ENGINE_TIMERS_H
#define ACT_ENGINE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t number; /* counts up */
    void (*fire)(void *arg);
    void *arg;
};

/* First in, first out; a ring that grows. */
struct timer_queue {
    struct timer *v;
    size_t first, n, cap; /* cap is a power of two */
};

struct timers {
    struct timer *heap;
    size_t n;
    uint64_t added;
    struct timer_queue soon; /* to be fired in the next turn */
};

/* Adds a timer; with a delay_ms of 0 or less it is due with the next turn. */
void timers_add(struct timers *t, int64_t now_ms, int64_t delay_ms, void (*fire)(void *arg), void *arg);
/* Moves what is due at now_ms to the end of due. */
void timers_take_due(struct timers *t, int64_t now_ms, struct timer_queue *due);
/* Returns when the next timer is due; -1: never; 0: now. */
int64_t timers_next_ms(const struct timers *t);
/* Cancels the timers with this arg: they will call a function that does nothing. */
void timers_forget(struct timers *t, const void *arg);
void timers_release(struct timers *t);

void timer_queue_push(struct timer_queue *q, struct timer timer);
bool timer_queue_pop(struct timer_queue *q, struct timer *out);
void timer_queue_forget(struct timer_queue *q, const void *arg);
void timer_queue_release(struct timer_queue *q);

#endif
