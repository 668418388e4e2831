/* watch.c - how often a watched run is queried, and what happens while its platform cannot be reached (a scheduler
 * restarts, a connection breaks): watching goes on, while a single query fails. */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "flow/flow_internal.h"
#include "flow/runs/watch.h"
#include "platform/platform.h"

enum {
    SHORTEST_MS = 10,
    LONGEST_MS = 500,
    FIRST_TRIAL_MS = 500,
    LONGEST_TRIAL_MS = 10000,
    SOON_MS = 1000, /* who has just begun to watch sees what happens about then, */
    SOON_PARTS = 4, /* later after a fraction of the time that the watch took */
    /* Queries take at most this fraction of the time, so that a busy scheduler is left alone; the longer the watch, the
     * less. */
    PARTS_FIRST = 50,
    PARTS_LAST = 300,
    PARTS_MOVED = 10, /* of a round that brought something: there may be more. If it took long, it brought much. */
    LONGEST_MOVED_MS = 1000,
    PARTS_TOLD = 4,     /* of a platform that tells by itself, which is asked nothing, */
    UNASKED_MS = 10000, /* and looked at so often nevertheless */
};

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

bool flow_may_pass(int rc)
{
    return rc == -ACT_TEMPORARY || rc == -ACT_TIMEOUT;
}

void flow_watch_begin(struct flow_watch *w, struct platform *platform)
{
    w->tells = w->tells || platform_row(platform)->runs.watch;
    platform_watch(platform, &w->news);
}

void flow_watch_end(struct platform *platform)
{
    platform_watch(platform, NULL);
}

/* A platform that has nothing to say is asked now and then nevertheless: time alone may tell what became of a run. What
 * comes too early is known when it is due. */
static bool is_due(struct flow_watch *w, struct platform *platform, int64_t now)
{
    w->by_news = w->news;
    w->news = false; /* before anything is asked: what comes from now on ends the next pause */
    bool may_know_more = platform_watch(platform, &w->news);
    w->wake_ms = may_know_more && platform_row(platform)->runs.watch ? w->due_ms : 0;
    return w->trial_ms || now >= (may_know_more ? w->due_ms : w->asked_ms + UNASKED_MS);
}

static int64_t longer(int64_t ms)
{
    return ms ? at_most(ms * 3 / 2, LONGEST_MS) : SHORTEST_MS;
}

/* Returns how long to leave a platform alone that was asked just now. */
static int64_t rest_of_asked(struct flow_watch *w, int64_t start, int64_t end)
{
    int64_t parts = at_most(PARTS_FIRST + (start - w->begun_ms) / 1000, PARTS_LAST);
    int64_t patience = at_most(SOON_MS + (end - w->begun_ms) / SOON_PARTS, LONGEST_TRIAL_MS);
    int64_t by_cost = at_most((end - start) * parts, patience);

    w->look_ms = longer(w->look_ms);
    return by_cost > w->look_ms ? by_cost : w->look_ms;
}

/* Returns how long to let news of a platform come that tells by itself: mostly several come at once. */
static int64_t rest_of_told(struct flow_watch *w, int64_t start, int64_t end)
{
    int64_t by_cost = at_most((end - start) * PARTS_TOLD, LONGEST_MOVED_MS);
    bool was_quiet = start - w->asked_ms > SOON_MS;

    w->look_ms = longer(was_quiet ? 0 : w->look_ms);
    return by_cost > w->look_ms ? by_cost : w->look_ms;
}

int flow_watch_look(struct flow_watch *w, struct flow *flow, struct platform *platform, struct flow_run *const *runs,
                    size_t n, struct act_error *err)
{
    int64_t start = act_now_monotonic_ms();

    if (!is_due(w, platform, start))
        return 0;
    int rc = flow_refresh_all(flow, platform, runs, n, err);
    int64_t end = act_now_monotonic_ms();
    w->begun_ms = w->begun_ms ? w->begun_ms : start;
    w->due_ms = end + (platform_row(platform)->runs.watch ? rest_of_told(w, start, end) : rest_of_asked(w, start, end));
    w->asked_ms = end;
    w->wake_ms = 0;
    return rc;
}

int flow_watch_took(struct flow_watch *w, int rc, const struct act_error *err)
{
    if (rc >= 0) {
        if (w->trial_ms)
            act_note("it answers again");
        w->trial_ms = 0;
        return rc;
    }
    if (!flow_may_pass(rc))
        return rc;
    if (w->trial_ms == 0)
        act_warn("%s (this goes on until it answers; Ctrl-C ends the watch, not the run)", act_error_text(err));
    w->trial_ms = w->trial_ms ? at_most(w->trial_ms * 2, LONGEST_TRIAL_MS) : FIRST_TRIAL_MS;
    return 0;
}

struct pause {
    bool *over, is_long_enough;
};

static void end_pause(void *arg)
{
    struct pause *p = arg;

    *p->over = p->is_long_enough = true;
}

/* Sleeps while requests that are under way go on, as for a log that is followed. If there are none, and no news can
 * come, a signal ends the pause. *news ends it, too. */
static void sleep_ms(struct engine *engine, int64_t ms, bool *news)
{
    bool over = false;
    struct pause pause = {.over = news ? news : &over};

    if (!news && !engine_busy(engine)) {
        usleep((useconds_t)ms * 1000);
        return;
    }
    if (*pause.over)
        return;
    engine_timer(engine, ms, end_pause, &pause);
    engine_run(engine, pause.over);
    engine_forget(engine, &pause);
    if (pause.is_long_enough)
        *pause.over = false;
}

/* Pauses grow: what happens early is noticed at once, and a long run is not asked about all the time. */
void flow_watch_pause(struct flow_watch *w, struct flow *flow, bool moved, int64_t until_ms)
{
    int64_t now = act_now_monotonic_ms(), pause;
    int64_t by_cost = moved ? at_most(w->round_ms * PARTS_MOVED, LONGEST_MOVED_MS)
                            : at_most(w->round_ms * PARTS_FIRST, LONGEST_TRIAL_MS);

    w->pause_ms = moved || !w->pause_ms ? SHORTEST_MS : at_most(w->pause_ms * 3 / 2, LONGEST_MS);
    pause = w->trial_ms ? w->trial_ms : w->pause_ms > by_cost ? w->pause_ms : by_cost;
    until_ms = w->wake_ms && (!until_ms || w->wake_ms < until_ms) ? w->wake_ms : until_ms;
    if (until_ms && until_ms - now < pause)
        pause = until_ms > now ? until_ms - now : 0;
    int64_t deaf = w->tells && !w->trial_ms ? at_most(pause, SHORTEST_MS) : pause;
    sleep_ms(flow_engine(flow), deaf, NULL);
    if (pause > deaf)
        sleep_ms(flow_engine(flow), pause - deaf, &w->news);
}
