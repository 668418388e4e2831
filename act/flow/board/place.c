/* place.c - asks one place: the states of its runs in one question, its load now and then, and the logs of the
 * runs that are seen. */
#include <string.h>

#include "base/clock.h"
#include "flow/board/places.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/watch.h"

enum {
    LOAD_MS = 10000,         /* between questions for the load of a cluster, */
    LOAD_WATCHED_MS = 60000, /* of one that tells by itself what becomes of runs */
    GPUS_HANG_MS = 60000,    /* after a driver did not answer */
    NEWS_MS = 250,
    PARTS = 4, /* a round takes at most one of so many parts of the time, so that a busy scheduler is left alone, */
    PATIENCE_MS = 60000, /* but it is never put off for longer */
};

struct asker {
    struct board_place *place;
    struct flow_board *board;
    struct flow flow;
    struct platform *platform; /* NULL: not opened yet */
    struct board_follow *follows[FLOW_BOARD_FOLLOWED];
    size_t n_follows;
    bool in_hurry; /* somebody wants to see the logs now */
    int64_t due_ms, load_ms, gpus_ms;
    int64_t soonest_ms; /* when it is asked because it has news */
};

static bool board_place_is_of(const struct asker *a, const struct board_entry *entry)
{
    return entry->shown.cluster == a->place->index && !run_state_is_final(entry->shown.run.status.state);
}

/* ---- states */

static void list_active(struct asker *a, struct act_strv *ids)
{
    pthread_mutex_lock(&a->board->lock);
    for (size_t i = 0; i < a->board->view.n; i++)
        if (board_place_is_of(a, a->board->by_id[i]))
            act_strv_push(ids, a->board->by_id[i]->shown.run.row.id);
    pthread_mutex_unlock(&a->board->lock);
}

/* Takes the status of a run, which goes to changed if the ledger is to have it. The caller holds the lock. */
static void board_place_take_status(struct asker *a, const char *id, struct run_status *now, struct flow_runs *changed)
{
    struct board_entry *entry = board_find(a->board, id);
    struct flow_run *run = entry ? &entry->shown.run : NULL;

    if (!run)
        return;
    flow_take_status(run, now);
    entry->fresh = true;
    if (!run->changed)
        return;
    run->changed = false;
    ACT_PUSH(changed->v, changed->n,
             (struct flow_run){.row = {.id = act_strdup(id)}, .status = run->status, .changed = true});
}

static int board_place_ask_states(struct asker *a, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    ACT_AUTO(flow_runs) changed = {0};

    list_active(a, &ids);
    if (ids.n == 0)
        return 0;
    ACT_AUTOFREE struct run_status *now = act_calloc(ids.n, sizeof(*now));
    int rc = platform_status(a->platform, (const char *const *)ids.v, ids.n, now, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&a->board->lock);
    for (size_t i = 0; i < ids.n; i++)
        board_place_take_status(a, ids.v[i], &now[i], &changed);
    pthread_mutex_unlock(&a->board->lock);
    return flow_store_changes(&a->flow, changed.v, changed.n, err);
}

/* ---- the cluster */

static int ask_load(struct asker *a, struct act_error *err)
{
    struct platform_summary summary = {0};
    int64_t now_ms = act_now_monotonic_ms();

    if (now_ms < a->load_ms || !platform_row(a->platform)->nodes.summary)
        return 0;
    int rc = platform_summary(a->platform, &summary, err);
    if (rc < 0)
        return rc;
    a->load_ms = now_ms + (platform_row(a->platform)->runs.watch ? LOAD_WATCHED_MS : LOAD_MS);
    pthread_mutex_lock(&a->board->lock);
    platform_summary_release(&a->place->shown.summary);
    a->place->shown.summary = summary;
    a->place->shown.has_summary = true;
    pthread_mutex_unlock(&a->board->lock);
    return 0;
}

/* The driver may take seconds. */
static void ask_gpus(struct asker *a)
{
    struct platform_gpus gpus;

    if (act_now_monotonic_ms() < a->gpus_ms)
        return;
    platform_gpus(a->platform, &gpus);
    a->gpus_ms = act_now_monotonic_ms() + (gpus.note ? GPUS_HANG_MS : LOAD_MS);
    pthread_mutex_lock(&a->board->lock);
    platform_gpus_release(&a->place->shown.gpus);
    a->place->shown.gpus = gpus;
    pthread_mutex_unlock(&a->board->lock);
}

static void say_error(struct asker *a, int rc, const struct act_error *err)
{
    struct flow_board_cluster *shown = &a->place->shown;

    pthread_mutex_lock(&a->board->lock);
    free(shown->error);
    shown->error = rc < 0 ? act_strdup(act_error_text(err)) : NULL;
    pthread_mutex_unlock(&a->board->lock);
}

/* ---- logs */

static struct board_follow *find_follow(struct asker *a, const char *id)
{
    for (size_t i = 0; i < a->n_follows; i++)
        if (strcmp(board_follow_id(a->follows[i]), id) == 0)
            return a->follows[i];
    if (a->n_follows == FLOW_BOARD_FOLLOWED)
        return NULL;
    struct board_follow *follow = board_follow_new(&a->flow, id);
    if (follow)
        a->follows[a->n_follows++] = follow;
    return follow;
}

/* Drops the logs of runs that have ended or are not seen any more. */
static void drop_follows(struct asker *a, const struct act_strv *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n_follows; i++) {
        if (act_strv_has(ids, board_follow_id(a->follows[i])))
            a->follows[n++] = a->follows[i];
        else
            board_follow_free(a->follows[i]);
    }
    a->n_follows = n;
}

static void list_followed(struct asker *a, struct act_strv *ids)
{
    pthread_mutex_lock(&a->board->lock);
    for (size_t i = 0; i < a->board->view.n; i++) {
        const struct board_entry *entry = a->board->by_id[i];
        if (board_place_is_of(a, entry) && board_follows(a->board, entry))
            act_strv_push(ids, entry->shown.run.row.id);
    }
    pthread_mutex_unlock(&a->board->lock);
}

/* False: nobody wants to know any more. */
static bool board_place_status_of(struct asker *a, const char *id, struct run_status *out)
{
    pthread_mutex_lock(&a->board->lock);
    struct board_entry *entry = board_find(a->board, id);
    bool wanted = entry && board_follows(a->board, entry) && !a->board->stop;
    if (wanted)
        *out = entry->shown.run.status;
    pthread_mutex_unlock(&a->board->lock);
    return wanted;
}

static void show_live(struct asker *a, const char *id, struct flow_live *live)
{
    pthread_mutex_lock(&a->board->lock);
    struct board_entry *entry = board_find(a->board, id);
    struct flow_live *old = live;
    if (entry) {
        old = entry->shown.live;
        entry->shown.live = live;
    }
    pthread_mutex_unlock(&a->board->lock);
    flow_live_free(old);
}

static void look_at_logs(struct asker *a)
{
    ACT_AUTO(act_strv) ids = {0};
    struct run_status status;

    list_followed(a, &ids);
    drop_follows(a, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        struct board_follow *follow = board_place_status_of(a, ids.v[i], &status) ? find_follow(a, ids.v[i]) : NULL;
        if (!follow)
            continue;
        show_live(a, ids.v[i], board_follow_look(follow, &a->flow, &status, a->in_hurry));
        board_changed(a->board);
    }
    a->in_hurry = false;
}

/* ---- abort */

static void board_place_abort_run(struct asker *a, const char *id)
{
    ACT_AUTO(flow_runs) found = {.v = act_calloc(1, sizeof(struct flow_run)), .n = 1};
    struct flow_run *run = &found.v[0];
    bool was_final = false;
    struct act_error err;
    int rc = flow_find_run(&a->flow, id, run, &err);

    if (rc == 0)
        rc = flow_abort(&a->flow, run, &was_final, &err);
    pthread_mutex_lock(&a->board->lock);
    free(a->board->view.said);
    a->board->view.said = rc < 0      ? act_sprintf("cannot abort %s: %s", id, act_error_text(&err))
                          : was_final ? act_sprintf("%s had already ended", id)
                                      : act_sprintf("aborted %s", id);
    pthread_mutex_unlock(&a->board->lock);
    board_changed(a->board);
}

/* ---- rounds */

static bool board_place_is_followed(const struct asker *a, const char *id)
{
    for (size_t i = 0; i < a->n_follows; i++)
        if (strcmp(board_follow_id(a->follows[i]), id) == 0)
            return true;
    return false;
}

/* Asks ahead, where each question is a round trip, for what a round asks: the load, and the logs. Those of a run that
 * is seen for the first time come with their ends. */
static int board_place_ask_ahead(struct asker *a, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    struct run_status status;
    struct act_error ignored;
    int rc = platform_ahead(a->platform, err);

    if (rc <= 0)
        return rc;
    (void)!ask_load(a, &ignored); /* it is not known yet */
    list_followed(a, &ids);
    for (size_t i = 0; i < ids.n; i++)
        if (board_place_status_of(a, ids.v[i], &status) && status.state == RUN_RUNNING &&
            platform_expect_logs(a->platform, ids.v[i], !board_place_is_followed(a, ids.v[i]), &ignored) < 0)
            break;
    platform_ahead_end(a->platform);
    return 0;
}

static void ask_all(struct asker *a)
{
    int64_t begun_ms = act_now_monotonic_ms();
    struct act_error err;
    int rc = a->platform ? 0 : flow_platform_of(&a->flow, &a->place->sample, &a->platform, &err);

    if (rc == 0 && platform_row(a->platform)->runs.watch)
        platform_watch(a->platform, &a->place->bell.rung); /* before it is asked, so that nothing is asked twice */
    if (rc == 0)
        rc = board_place_ask_ahead(a, &err);
    if (rc == 0)
        rc = board_place_ask_states(a, &err);
    if (rc == 0)
        rc = ask_load(a, &err);
    say_error(a, rc, &err);
    board_changed(a->board);
    if (rc == 0)
        look_at_logs(a);
    if (rc == 0)
        platform_ahead_drop(a->platform);
    if (rc == 0)
        ask_gpus(a);
    int64_t now_ms = act_now_monotonic_ms(), pause_ms = (now_ms - begun_ms) * (PARTS - 1);
    int64_t rest_ms = begun_ms + a->board->options.interval_ms - now_ms;
    pause_ms = pause_ms > PATIENCE_MS ? PATIENCE_MS : pause_ms;
    a->due_ms = now_ms + (pause_ms > rest_ms ? pause_ms : rest_ms);
    a->soonest_ms = now_ms + (pause_ms > NEWS_MS ? pause_ms : NEWS_MS);
    pthread_mutex_lock(&a->board->lock);
    a->place->shown.asked = true;
    pthread_mutex_unlock(&a->board->lock);
    board_changed(a->board);
}

struct wish {
    struct act_strv aborts;
    bool ask, logs, stop;
};

/* Returns when the place is asked next. A platform that does not tell by itself may always know more. */
static int64_t board_place_when_due(struct asker *a)
{
    bool tells = a->platform && platform_row(a->platform)->runs.watch;

    return tells && platform_watch(a->platform, &a->place->bell.rung) && a->soonest_ms < a->due_ms ? a->soonest_ms
                                                                                                   : a->due_ms;
}

static void wait_for_wish(struct asker *a, struct wish *out)
{
    struct board_place *place = a->place;
    int64_t due_ms;

    pthread_mutex_lock(&a->board->lock);
    while (!a->board->stop && !place->hurry && !place->look_at_logs && place->aborts.n == 0 &&
           act_now_monotonic_ms() < (due_ms = board_place_when_due(a)))
        board_wait(a->board, &a->flow, &place->bell, due_ms);
    *out =
        (struct wish){.aborts = place->aborts,
                      .ask = place->hurry || place->aborts.n > 0 || act_now_monotonic_ms() >= board_place_when_due(a),
                      .logs = place->look_at_logs,
                      .stop = a->board->stop};
    if (place->hurry) {
        a->in_hurry = true;
        a->load_ms = a->gpus_ms = 0;
    }
    place->aborts = (struct act_strv){0};
    place->hurry = place->look_at_logs = false;
    pthread_mutex_unlock(&a->board->lock);
}

void *board_ask_place(void *arg)
{
    struct board_place *place = arg;
    struct asker a = {.place = place, .board = place->board};
    struct wish wish;

    flow_open_bare(NULL, &a.flow);
    for (wait_for_wish(&a, &wish); !wish.stop; wait_for_wish(&a, &wish)) {
        for (size_t i = 0; i < wish.aborts.n; i++)
            board_place_abort_run(&a, wish.aborts.v[i]);
        act_strv_release(&wish.aborts);
        if (wish.ask)
            ask_all(&a);
        else if (wish.logs)
            look_at_logs(&a);
    }
    act_strv_release(&wish.aborts);
    drop_follows(&a, &(struct act_strv){0});
    flow_close(&a.flow);
    pthread_mutex_lock(&place->board->lock);
    place->ended = true;
    pthread_mutex_unlock(&place->board->lock);
    return NULL;
}
