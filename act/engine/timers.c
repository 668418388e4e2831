#include "engine/timers.h"

#include <stdlib.h>

#include "base/text.h"

void timer_queue_push(struct timer_queue *q, struct timer timer)
{
    if (q->n == q->cap) {
        size_t cap = q->cap ? 2 * q->cap : 64;
        struct timer *v = act_alloc(cap * sizeof(*v));
        for (size_t i = 0; i < q->n; i++)
            v[i] = q->v[(q->first + i) & (q->cap - 1)];
        free(q->v);
        *q = (struct timer_queue){.v = v, .n = q->n, .cap = cap};
    }
    q->v[(q->first + q->n++) & (q->cap - 1)] = timer;
}

bool timer_queue_pop(struct timer_queue *q, struct timer *out)
{
    if (q->n == 0)
        return false;
    *out = q->v[q->first];
    q->first = (q->first + 1) & (q->cap - 1);
    q->n--;
    return true;
}

static void timers_no_op(void *arg)
{
    (void)arg;
}

static void timers_forget_one(struct timer *timer, const void *arg)
{
    if (timer->arg == arg)
        timer->fire = timers_no_op;
}

void timer_queue_forget(struct timer_queue *q, const void *arg)
{
    for (size_t i = 0; i < q->n; i++)
        timers_forget_one(&q->v[(q->first + i) & (q->cap - 1)], arg);
}

void timer_queue_release(struct timer_queue *q)
{
    free(q->v);
    *q = (struct timer_queue){0};
}

static bool is_sooner(const struct timer *a, const struct timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void heap_push(struct timers *t, struct timer timer)
{
    ACT_GROW(t->heap, t->n);
    size_t at = t->n++;
    while (at > 0 && is_sooner(&timer, &t->heap[(at - 1) / 2])) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = timer;
}

static struct timer heap_pop(struct timers *t)
{
    struct timer first = t->heap[0], last = t->heap[--t->n];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < t->n) {
        if (child + 1 < t->n && is_sooner(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!is_sooner(&t->heap[child], &last))
            break;
        t->heap[at] = t->heap[child];
        at = child;
    }
    t->heap[at] = last;
    return first;
}

void timers_add(struct timers *t, int64_t now_ms, int64_t delay_ms, void (*fire)(void *arg), void *arg)
{
    struct timer timer = {.at_ms = now_ms + delay_ms, .number = t->added++, .fire = fire, .arg = arg};

    if (delay_ms > 0)
        heap_push(t, timer);
    else
        timer_queue_push(&t->soon, timer);
}

void timers_take_due(struct timers *t, int64_t now_ms, struct timer_queue *due)
{
    struct timer timer;

    while (t->n > 0 && t->heap[0].at_ms <= now_ms)
        timer_queue_push(due, heap_pop(t));
    while (timer_queue_pop(&t->soon, &timer))
        timer_queue_push(due, timer);
}

int64_t timers_next_ms(const struct timers *t)
{
    if (t->soon.n > 0)
        return 0;
    return t->n > 0 ? t->heap[0].at_ms : -1;
}

void timers_forget(struct timers *t, const void *arg)
{
    struct timer *before = t->heap;
    const size_t n = t->n;

    t->heap = NULL;
    t->n = 0;
    for (size_t i = 0; i < n; i++)
        if (before[i].arg != arg) /* one that is kept would keep the loop going */
            heap_push(t, before[i]);
    free(before);
    timer_queue_forget(&t->soon, arg);
}

void timers_release(struct timers *t)
{
    timer_queue_release(&t->soon);
    free(t->heap);
    *t = (struct timers){0};
}
