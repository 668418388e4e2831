#include "http/pace.h"

enum {
    START = 32,           /* enough to fill most lines; few enough for a small service */
    FLOOR = 4,            /* under throttling */
    PERIOD_WINDOWS = 3,   /* responses per period, in windows: as many round trips */
    PERIOD_MS = 50,       /* at least, on short lines */
    REST_PERIODS = 10,    /* between attempts to grow once growing brought nothing */
    REGAIN_STEP = 4,      /* per period, after throttling */
    REQUEST_WORK = 65536, /* what a request is worth beside its bytes: so long it takes on a usual line */
    PAUSE_MS = 1000,      /* where a peer throttles without saying for how long */
    PAUSE_SPREAD_MS = 500,
    LEAST_PAUSE_MS = 100, /* where it says that it wants none */
};

static int pace_least(int a, int b)
{
    return a < b ? a : b;
}

static void start_period(struct pace *p, int64_t now_ms)
{
    p->since_ms = now_ms;
    p->work = 0;
    p->done = p->full = 0;
}

void pace_init(struct pace *p, int max)
{
    *p = (struct pace){.window = pace_least(START, max), .max = max};
    p->base_window = p->window;
    p->cut_ms = -1;
}

/* Responses to what was started under the old window tell nothing about the new one. */
static void set_window(struct pace *p, int window)
{
    p->skip = p->window;
    p->window = window;
}

static void try_larger(struct pace *p)
{
    int step = p->settled ? p->window / 4 : p->window;

    p->base_window = p->window;
    p->base_rate = p->rate;
    if (p->window < p->max)
        set_window(p, pace_least(p->max, p->window + (step > REGAIN_STEP ? step : REGAIN_STEP)));
}

/* Tells whether the growth brought at least a quarter of what it would if nothing else limited the rate. */
static bool has_paid(const struct pace *p)
{
    double growth = (double)p->window / p->base_window - 1;

    return p->rate >= p->base_rate * (1 + growth / 4);
}

static void step_back(struct pace *p)
{
    set_window(p, p->base_window);
    p->rest = REST_PERIODS;
}

static void regain(struct pace *p)
{
    set_window(p, pace_least(p->regain, p->window + REGAIN_STEP));
    p->base_window = p->window;
    if (p->window == p->regain) {
        p->regain = 0;
        p->rest = REST_PERIODS;
    }
}

/* Chooses the window that follows from a period. */
static void choose_window(struct pace *p, bool used)
{
    bool on_trial = p->window > p->base_window;

    if (!used) {
        if (on_trial)
            step_back(p);
    } else if (p->regain > 0) {
        regain(p);
    } else if (on_trial && !has_paid(p)) {
        p->settled = true;
        step_back(p);
    } else if (p->rest > 0) {
        p->rest--;
    } else {
        try_larger(p);
    }
}

void pace_started(struct pace *p, int64_t now_ms, int before, int under_way)
{
    if (before == 0 && now_ms - p->last_ms > PERIOD_MS) /* was idle */
        start_period(p, now_ms);
    p->is_full = under_way * 4 >= p->window * 3;
}

void pace_done(struct pace *p, int64_t now_ms, uint64_t bytes)
{
    p->last_ms = now_ms;
    if (p->skip > 0) {
        if (--p->skip == 0)
            start_period(p, now_ms);
        return;
    }
    p->work += (double)bytes + REQUEST_WORK;
    p->done++;
    p->full += p->is_full;
    if (p->done < PERIOD_WINDOWS * p->window || now_ms - p->since_ms < PERIOD_MS)
        return;
    p->rate = p->work / (double)(now_ms - p->since_ms);
    choose_window(p, p->full * 4 >= p->done * 3);
    start_period(p, now_ms);
}

void pace_throttled(struct pace *p, int64_t now_ms, int64_t started_ms, int64_t asked_ms, double random01)
{
    bool is_new = started_ms > p->cut_ms;
    int64_t own_ms = is_new ? PAUSE_MS + (int64_t)(PAUSE_SPREAD_MS * random01) : 0;
    int64_t pause_ms = asked_ms < 0 ? own_ms : asked_ms > LEAST_PAUSE_MS ? asked_ms : LEAST_PAUSE_MS;

    if (now_ms + pause_ms > p->hold_until_ms)
        p->hold_until_ms = now_ms + pause_ms;
    if (!is_new)
        return;
    p->cut_ms = now_ms;
    p->regain = p->window > p->regain ? p->window : p->regain;
    set_window(p, p->window / 2 > FLOOR ? p->window / 2 : pace_least(FLOOR, p->max));
    p->base_window = p->window;
    p->settled = true;
}

int64_t pace_hold_ms(const struct pace *p, int64_t now_ms)
{
    return p->hold_until_ms > now_ms ? p->hold_until_ms - now_ms : 0;
}
