/* pace.h - how many requests may be under way at one peer. Pure: the caller brings clock, counts and chance.
 *
 * The window starts small and grows while more requests under way bring more work done: it is measured over
 * some round trips during which the window was used; then a larger one is tried, for as long again, and kept
 * if it pays. A peer that throttles halves it and gets a pause.
 */
#ifndef ACT_HTTP_PACE_H
#define ACT_HTTP_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int window, max;
    /* the period that is measured */
    int64_t since_ms, last_ms; /* its start, the last response */
    double work;               /* done in it: bytes, and so many for each request */
    int skip, done, full;      /* responses: to be left out first; counted; of those, while the window was used */
    bool is_full;
    /* what was found out */
    double base_rate; /* work per ms under base_window; 0: not measured */
    int base_window;  /* smaller than window while that is tried out */
    int rest;         /* periods until the next attempt */
    bool settled;     /* doubling is over */
    double rate;      /* of the last period, for traces */
    /* throttling */
    int regain; /* grow to here without asking what it brings; 0: not throttled */
    int64_t cut_ms, hold_until_ms;
};

/* max: the limit of the window. */
void pace_init(struct pace *pace, int max);

/* Requests were started: under_way were before, now there are so many. */
void pace_started(struct pace *pace, int64_t now_ms, int before, int under_way);

/* A response came, and not a throttling one; bytes: of both bodies. */
void pace_done(struct pace *pace, int64_t now_ms, uint64_t bytes);

/* A request, started at started_ms, was throttled. asked_ms: the pause the peer asks for (a short
 * one is made even for 0), -1: none. random01 in [0, 1). What was started before the last such response counts as the
 * same event. */
void pace_throttled(struct pace *pace, int64_t now_ms, int64_t started_ms, int64_t asked_ms, double random01);

/* For how many milliseconds nothing may be started; 0: now. */
int64_t pace_hold_ms(const struct pace *pace, int64_t now_ms);

#endif
