/* pace.h - decides how many requests may be under way at one peer. Pure: the caller brings clock, counts and chance.
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

/* Notes that requests were started: before, so many were under way, and now under_way are. */
void pace_started(struct pace *pace, int64_t now_ms, int before, int under_way);

/* Notes a response that did not throttle. bytes: the length of both bodies. */
void pace_done(struct pace *pace, int64_t now_ms, uint64_t bytes);

/* Notes that a request of started_ms was throttled. asked_ms: the pause that the peer asks for (even 0 makes a short
 * one); -1: none. random01: in [0, 1). Requests that were started before the last such response count as the same
 * event. */
void pace_throttled(struct pace *pace, int64_t now_ms, int64_t started_ms, int64_t asked_ms, double random01);

/* Returns for how many milliseconds nothing may be started; 0: it may now. */
int64_t pace_hold_ms(const struct pace *pace, int64_t now_ms);

#endif
