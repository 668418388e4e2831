/* wait.c - waiting for runs: those of one platform are asked about in one request, and each platform is left alone for
 * as long as it wants to be. */
#include <string.h>

#include "base/clock.h"
#include "flow/flow_internal.h"
#include "flow/runs/watch.h"
#include "platform/platform.h"

/* The time that the user is willing to wait; {0}: for ever. */
struct limit {
    int64_t seconds, end_ms;
};

static struct limit limit_of(int64_t timeout_s)
{
    return (struct limit){timeout_s, timeout_s ? act_now_monotonic_ms() + timeout_s * 1000 : 0};
}

static bool is_limit_over(const struct limit *limit)
{
    return limit->end_ms && act_now_monotonic_ms() >= limit->end_ms;
}

/* ---- which runs */

/* The whole id of a run that is known: meanwhile "@" may become another one. New string. */
static char *wait_id_of(struct flow *flow, const char *piece)
{
    ACT_AUTO(flow_run) known = {0};
    struct act_error ignored;

    return act_strdup(flow_find_unasked(flow, piece, &known, &ignored) == 0 ? known.row.id : piece);
}

/* Goes on looking for a run of which a first search said rc, while nobody can tell. */
static int find_patiently(struct flow *flow, const char *id, const struct limit *limit, int rc, struct flow_run *out,
                          struct act_error *err)
{
    struct flow_watch watch = {0};

    for (;; rc = flow_find_run(flow, id, out, err)) {
        rc = flow_watch_took(&watch, rc, err);
        if (rc < 0 || !watch.trial_ms)
            return rc;
        if (is_limit_over(limit)) {
            struct act_error why = *err;
            return act_error_set(err, ACT_TIMEOUT, "nobody could tell for %lld s what run '%s' does: %s",
                                 (long long)limit->seconds, id, act_error_text(&why));
        }
        flow_watch_pause(&watch, flow, false, limit->end_ms);
    }
}

int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    ACT_AUTOFREE char *id = wait_id_of(flow, piece);

    return find_patiently(flow, id, &(struct limit){0}, flow_find_run(flow, id, out, err), out, err);
}

/* Takes the first of the runs that were found, up to one that had to be looked for further, and drops the others: what
 * was said of them is old then. *n: how many there are, and then how many were taken. */
static int wait_take_found(struct flow *flow, char *const *ids, size_t *n, const struct limit *limit,
                           struct flow_found *found, struct flow_runs *out, struct act_error *err)
{
    size_t i = 0;
    int rc = 0;

    for (bool fresh = true; rc == 0 && fresh && i < *n; i++) {
        fresh = found[i].rc == 0;
        if (!fresh) {
            *err = found[i].err;
            rc = find_patiently(flow, ids[i], limit, found[i].rc, &found[i].run, err);
        }
        if (rc == 0)
            flow_runs_take(out, &found[i].run);
    }
    for (size_t k = i; k < *n; k++)
        if (found[k].rc == 0)
            flow_run_release(&found[k].run);
    *n = i;
    return rc;
}

/* Finds a few runs, about which each cluster is asked at once. */
static int wait_find_some(struct flow *flow, const struct act_strv *ids, const struct limit *limit,
                          struct flow_runs *out, struct act_error *err)
{
    ACT_AUTOFREE struct flow_found *found = act_calloc(ids->n, sizeof(*found));
    int rc = 0;

    for (size_t i = 0, n; rc == 0 && i < ids->n; i += n) {
        n = ids->n - i;
        flow_find_runs(flow, (const char *const *)ids->v + i, n, found);
        rc = wait_take_found(flow, ids->v + i, &n, limit, found, out, err);
    }
    return rc;
}

static int wait_find_all(struct flow *flow, const struct act_strv *pieces, const struct limit *limit,
                         struct flow_runs *out, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < pieces->n;) {
        ACT_AUTO(act_strv) ids = {0};
        for (; i < pieces->n && ids.n < FLOW_ROWS_FEW; i++)
            act_strv_take(&ids, wait_id_of(flow, pieces->v[i]));
        rc = wait_find_some(flow, &ids, limit, out, err);
    }
    return rc;
}

/* ---- rounds */

/* The runs that one platform has. */
struct group {
    struct platform *platform;
    struct flow_watch watch;
    struct flow_run **v;
    size_t n; /* that have not ended */
};

struct waiting {
    struct flow *flow;
    const struct flow_waiting *how;
    struct flow_runs *runs;
    struct group *groups;
    size_t n_groups;
    bool *told; /* of each run, that it has ended */
};

static int add_to_groups(struct waiting *w, struct flow_run *run, struct act_error *err)
{
    struct platform *platform;
    size_t i = 0;
    int rc = flow_platform_of(w->flow, &run->row, &platform, err);

    if (rc < 0)
        return rc;
    while (i < w->n_groups && w->groups[i].platform != platform)
        i++;
    if (i == w->n_groups) {
        w->groups[w->n_groups++] = (struct group){.platform = platform};
        flow_watch_begin(&w->groups[i].watch, platform);
    }
    ACT_PUSH(w->groups[i].v, w->groups[i].n, run);
    return 0;
}

static int wait_make_groups(struct waiting *w, struct act_error *err)
{
    int rc = 0;

    w->groups = act_calloc(w->runs->n + 1, sizeof(*w->groups));
    w->told = act_calloc(w->runs->n + 1, sizeof(*w->told));
    for (size_t i = 0; rc == 0 && i < w->runs->n; i++)
        if (!run_state_is_final(w->runs->v[i].status.state))
            rc = add_to_groups(w, &w->runs->v[i], err);
    return rc;
}

static void release_groups(struct waiting *w)
{
    for (size_t i = 0; i < w->n_groups; i++) {
        flow_watch_end(w->groups[i].platform);
        free(w->groups[i].v);
    }
    free(w->groups);
    free(w->told);
}

static void drop_ended(struct group *group)
{
    size_t n = 0;

    for (size_t i = 0; i < group->n; i++)
        if (!run_state_is_final(group->v[i]->status.state))
            group->v[n++] = group->v[i];
    group->n = n;
}

static int look_at_groups(struct waiting *w, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->n_groups; i++) {
        struct group *group = &w->groups[i];
        if (group->n == 0)
            continue;
        rc = flow_watch_look(&group->watch, w->flow, group->platform, group->v, group->n, err);
        rc = flow_watch_took(&group->watch, rc, err);
        drop_ended(group);
    }
    return rc;
}

/* The watch of the platform that answers soonest. */
static struct flow_watch *quickest(const struct waiting *w)
{
    struct group *found = NULL;

    for (size_t i = 0; i < w->n_groups; i++)
        if (w->groups[i].n > 0 && (!found || w->groups[i].watch.trial_ms < found->watch.trial_ms))
            found = &w->groups[i];
    return &found->watch;
}

/* Tells of those that have ended since. Returns how many have. */
static size_t wait_tell_ended(struct waiting *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->runs->n; i++) {
        if (!run_state_is_final(w->runs->v[i].status.state))
            continue;
        n++;
        if (!w->told[i] && w->how->ended)
            w->how->ended(w->how->arg, &w->runs->v[i]);
        w->told[i] = true;
    }
    return n;
}

/* Moves the one that ended first to the front, and tells of it. Returns how many have. */
static size_t tell_first(struct waiting *w)
{
    struct flow_run *first = NULL, *v = w->runs->v;

    for (size_t i = 0; i < w->runs->n; i++)
        if (run_state_is_final(v[i].status.state) && (!first || v[i].status.ended_unix_s < first->status.ended_unix_s))
            first = &v[i];
    if (!first)
        return 0;
    struct flow_run taken = *first;
    *first = *v;
    *v = taken;
    if (w->how->ended)
        w->how->ended(w->how->arg, v);
    return 1;
}

static int too_late(const struct waiting *w, size_t ended, const struct limit *limit, struct act_error *err)
{
    const struct flow_run *first = w->runs->v;

    if (w->runs->n == 1)
        return act_error_set(err, ACT_TIMEOUT, "run '%s' is still %s after %lld s", first->row.id,
                             run_state_name(first->status.state), (long long)limit->seconds);
    return act_error_set(err, ACT_TIMEOUT, "after %lld s %zu of %zu runs %s", (long long)limit->seconds, ended,
                         w->runs->n, ended == 1 ? "has ended" : "have ended");
}

static int wait_until(struct waiting *w, const struct limit *limit, struct act_error *err)
{
    int rc = wait_make_groups(w, err);

    while (rc == 0) {
        size_t ended = w->how->any ? tell_first(w) : wait_tell_ended(w);
        if (ended == w->runs->n || (w->how->any && ended > 0))
            break;
        if (is_limit_over(limit)) {
            rc = too_late(w, ended, limit, err);
            break;
        }
        if (w->how->each)
            w->how->each(w->how->arg, w->runs, ended);
        flow_watch_pause(quickest(w), w->flow, false, limit->end_ms);
        rc = look_at_groups(w, err);
    }
    release_groups(w);
    return rc;
}

int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    struct waiting w = {.flow = flow, .how = &(struct flow_waiting){0}, .runs = &(struct flow_runs){.v = run, .n = 1}};

    return wait_until(&w, &(struct limit){0}, err);
}

int flow_wait_begun(struct flow *flow, struct flow_run *run, const struct flow_beginning *how, struct act_error *err)
{
    enum { STEP_MS = 1000 };
    struct flow_watch watch = {0};
    struct platform *platform;
    int rc = flow_platform_of(flow, &run->row, &platform, err);

    if (rc < 0)
        return rc;
    flow_watch_begin(&watch, platform);
    while (rc == 0 && run->status.state != RUN_RUNNING && !run_state_is_final(run->status.state)) {
        how->each(how->arg, run);
        flow_watch_pause(&watch, flow, false, act_now_monotonic_ms() + STEP_MS);
        if (how->stops(how->arg))
            break;
        rc = flow_watch_took(&watch, flow_watch_look(&watch, flow, platform, &run, 1, err), err);
    }
    flow_watch_end(platform);
    return rc;
}

int flow_wait_for(struct flow *flow, const struct act_strv *pieces, const struct flow_waiting *how,
                  struct flow_runs *out, struct act_error *err)
{
    struct limit limit = limit_of(how->timeout_s);
    struct waiting w = {.flow = flow, .how = how, .runs = out};

    *out = (struct flow_runs){0};
    int rc = wait_find_all(flow, pieces, &limit, out, err);
    return rc < 0 ? rc : wait_until(&w, &limit, err);
}
