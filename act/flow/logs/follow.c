/* follow.c - logs of a run as they grow, across its attempts. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"

/* A log that is followed. */
struct stream {
    int rank;   /* with flow_follow.all */
    char *name; /* in the last attempt */
    uint64_t offset;
    bool seen;           /* it is, or was, there */
    struct act_buf line; /* with flow_follow.all: what there is of a line that has no end yet */
};

struct follower {
    struct flow *flow;
    struct flow_run *run;
    const struct flow_follow *what;
    struct flow_source from;
    struct flow_watch watch; /* of which the source knows as long as it is open */
    struct store_page logs;
    int attempt; /* the one that is read; 0: not known yet */
    struct stream *v;
    size_t n;
    bool moved;   /* there was something new in this round */
    bool grew;    /* logs did, at some time */
    bool aborted; /* the run, by heed_signal() */
    bool lingers; /* that it takes long to end was said */
    bool waits;   /* what the run waits for was said */
};

static void add_stream(struct follower *f, size_t at, int rank, const char *name)
{
    ACT_GROW(f->v, f->n);
    memmove(f->v + at + 1, f->v + at, (f->n++ - at) * sizeof(*f->v));
    f->v[at] = (struct stream){.rank = rank, .name = act_strdup(name)};
}

/* Ranks come one after the other; their logs stay sorted. */
static void find_ranks(struct follower *f, const char *prefix)
{
    for (size_t i = 0; i < f->logs.n; i++) {
        const char *name = f->logs.v[i].key;
        if (!act_starts_with(name, prefix))
            continue;
        int rank = run_log_rank(name + strlen(prefix), NULL);
        size_t at = f->n;
        while (at > 0 && f->v[at - 1].rank > rank)
            at--;
        if (rank >= 0 && (at == 0 || f->v[at - 1].rank < rank))
            add_stream(f, at, rank, name + strlen(prefix));
    }
}

static int against_key(const void *key, const void *log)
{
    return strcmp(key, ((const struct store_entry *)log)->key);
}

static int give_line(const struct follower *f, struct stream *s, struct act_error *err)
{
    int rc = f->what->line(f->what->sink.arg, s->rank, s->line.data ? s->line.data : "", s->line.len, err);

    s->line.len = 0;
    return rc;
}

static int give_lines(const struct follower *f, struct stream *s, const char *text, size_t len, struct act_error *err)
{
    enum { LINE_MAX_BYTES = 64 << 10 };
    int rc = 0;

    while (len > 0 && rc == 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;
        bool too_long = n > LINE_MAX_BYTES - s->line.len;
        if (too_long)
            n = LINE_MAX_BYTES - s->line.len;
        act_buf_add(&s->line, text, n);
        if (too_long || end)
            rc = give_line(f, s, err);
        n += !too_long && end;
        text += n;
        len -= n;
    }
    return rc;
}

struct draining {
    const struct follower *f;
    struct stream *s;
};

static int follow_give(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err)
{
    const struct draining *d = arg;
    const struct flow_follow *what = d->f->what;

    d->s->offset = at + len;
    return what->all ? give_lines(d->f, d->s, data, len, err) : what->sink.write(what->sink.arg, data, len, err);
}

/* Gives what the logs have between the offsets of their streams and their ends, one after the other. A log that is gone
 * was moved by a new attempt, which the next round finds. */
static int follow_drain(struct follower *f, struct transfer_stretch *stretches, size_t n, struct act_error *err)
{
    int rc = n > 0 ? transfer_stretches(flow_engine(f->flow), f->from.store, stretches, n, 0, NULL, NULL, err) : 0;

    for (size_t i = 0; i < n; i++)
        f->moved = f->moved || stretches[i].got > 0;
    return rc;
}

/* The rank's log has the name that its platform gives it. */
static void find_rank(struct follower *f, const char *prefix)
{
    struct stream *s = &f->v[0];
    const struct store_entry *log = flow_find_rank_log(&f->logs, prefix, f->what->rank);

    if (s->offset > 0 || !log)
        return;
    free(s->name);
    s->name = act_strdup(log->key + strlen(prefix));
}

/* A service that starts a run anew under the same names lets the log begin anew. A size of 0 may be one that is not
 * known. */
static int notice_restart(const struct follower *f, struct stream *s, const struct store_entry *log,
                          struct act_error *err)
{
    if (!log || log->size == 0 || log->size >= s->offset)
        return 0;
    act_note("log '%s' begins anew", log->key);
    s->offset = 0;
    return s->line.len > 0 ? give_line(f, s, err) : 0;
}

/* A round over all streams, as the logs of an attempt stand. */
static int drain_attempt(struct follower *f, int attempt, int last, bool from_tail, struct act_error *err)
{
    ACT_AUTOFREE char *prefix = attempt < last ? act_sprintf(RUN_DIR_ATTEMPTS "/%d/", attempt) : act_strdup("");
    int rc = 0;

    if (f->what->all)
        find_ranks(f, prefix);
    else if (!f->what->name)
        find_rank(f, prefix);
    ACT_AUTOFREE struct draining *draining = act_calloc(f->n + 1, sizeof(*draining));
    ACT_AUTOFREE struct transfer_stretch *stretches = act_calloc(f->n + 1, sizeof(*stretches));
    size_t n = 0;
    for (size_t i = 0; i < f->n && rc == 0; i++) {
        struct stream *s = &f->v[i];
        ACT_AUTOFREE char *name = act_sprintf("%s%s", prefix, s->name);
        const struct store_entry *log =
            f->logs.n ? bsearch(name, f->logs.v, f->logs.n, sizeof(*f->logs.v), against_key) : NULL;
        s->seen = s->seen || log;
        rc = notice_restart(f, s, log, err);
        if (rc == 0 && log && from_tail)
            rc = flow_find_tail(&f->from, name, f->what->tail, log->size, &s->offset, err);
        if (rc < 0 || !log || s->offset >= log->size)
            continue;
        draining[n] = (struct draining){.f = f, .s = s};
        stretches[n] = (struct transfer_stretch){.key = log->key,
                                                 .offset = s->offset,
                                                 .end = log->size,
                                                 .in_turn = true,
                                                 .write = follow_give,
                                                 .arg = &draining[n]};
        n++;
    }
    return rc < 0 ? rc : follow_drain(f, stretches, n, err);
}

/* Lines that will never have an end. */
static int give_rest(struct follower *f, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < f->n && rc == 0; i++)
        if (f->v[i].line.len > 0)
            rc = give_line(f, &f->v[i], err);
    return rc;
}

/* Gives what is left of an attempt that has ended, then begins the next one. */
static int change_attempt(struct follower *f, int last, struct act_error *err)
{
    int rc = drain_attempt(f, f->attempt, last, false, err);

    if (rc == 0)
        rc = give_rest(f, err);
    if (rc < 0)
        return rc;
    act_note("attempt %d begins", ++f->attempt);
    for (size_t i = 0; i < f->n; i++)
        f->v[i].offset = 0;
    return 0;
}

static bool is_follow_over(const struct follower *f)
{
    return f->what->attempt > 0 && f->attempt == f->what->attempt && f->attempt < flow_last_attempt(&f->logs);
}

static int choose_attempt(struct follower *f, int last, struct act_error *err)
{
    if (f->what->attempt > last)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has had %d attempt%s, not %d", f->run->row.id, last,
                             last == 1 ? "" : "s", f->what->attempt);
    f->attempt = f->what->attempt > 0 ? f->what->attempt : last;
    return drain_attempt(f, f->attempt, last, f->what->tail >= 0, err);
}

/* A round over what was listed. */
static int follow_round(struct follower *f, struct act_error *err)
{
    int last = flow_last_attempt(&f->logs), rc = flow_saw_attempt(f->flow, f->run, last, err);

    if (rc == 0 && f->attempt == 0)
        return choose_attempt(f, last, err);
    while (rc == 0 && f->attempt < last && f->what->attempt == 0)
        rc = change_attempt(f, last, err);
    return rc < 0 ? rc : drain_attempt(f, f->attempt, last, false, err);
}

/* If logs that grew grow no more, the run has ended or is about to: asks at once. */
static void look_at_growth(struct follower *f)
{
    bool grows = false;

    for (size_t i = 0; i < f->logs.n && !grows; i++)
        grows = f->logs.v[i].grows;
    if (f->grew && !grows)
        f->watch.due_ms = 0;
    if (f->grew && !grows && f->watch.tells)
        f->watch.round_ms = 0; /* as at the beginning */
    f->grew = f->grew || grows;
}

/* So that a sink that collects lines gives them out. */
static int end_round(const struct follower *f, struct act_error *err)
{
    return f->what->all && f->moved ? f->what->sink.write(f->what->sink.arg, "", 0, err) : 0;
}

/* Every log is asked for in every round, but those of a source that tells are there when they are listed. */
static int timed_round(struct follower *f, struct act_error *err)
{
    int64_t start = act_now_monotonic_ms();
    bool by_request = f->from.platform && platform_row(f->from.platform)->about.answers_by_request;

    store_page_release(&f->logs);
    f->moved = false;
    f->from.with_ends = f->attempt == 0 && f->what->all;
    f->from.follows = f->what->follow && !run_state_is_final(f->run->status.state); /* the last one has all */
    f->from.by_news = f->watch.by_news && f->from.follows;
    int rc = flow_source_list(&f->from, &f->logs, err);
    int64_t listed = act_now_monotonic_ms();
    if (rc == 0)
        rc = follow_round(f, err);
    int64_t end = f->watch.tells ? listed : act_now_monotonic_ms();
    f->watch.round_ms = by_request ? end - start : 0;
    return rc;
}

/* Aborts the run at the first signal, and goes on: what the command prints at its end is followed as well, however long
 * that takes, because what it wrote may be on its way to a store. */
static int heed_signal(struct follower *f, struct act_error *err)
{
    bool ignored;

    if (f->aborted || !f->what->interrupted || !*f->what->interrupted)
        return 0;
    int rc = flow_abort(f->flow, f->run, &ignored, err);
    f->aborted = rc != -ACT_TIMEOUT;
    if (f->aborted)
        return rc;
    if (!f->lingers)
        act_note("run %s was told to end and has not ended yet: what it wrote may be on its way to its store",
                 f->run->row.id);
    f->lingers = true;
    return 0;
}

static bool has_seen_any(const struct follower *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].seen)
            return true;
    return false;
}

/* Once: while a run is queued there is nothing else to see of it. */
static void say_what_it_waits_for(struct follower *f, int64_t begun_ms)
{
    enum { PATIENCE_MS = 2000 }; /* as long as it may be no more than on its way */
    const struct run_status *s = &f->run->status;
    bool is_new = !*s->reason && act_now_monotonic_ms() - begun_ms < PATIENCE_MS;

    if (f->waits || !f->what->follow || s->state != RUN_QUEUED || is_new || has_seen_any(f))
        return;
    f->waits = true;
    act_note("run '%s' is queued%s%s", f->run->row.id, *s->reason ? ": " : "", s->reason);
}

static int follow_to_end(struct follower *f, struct act_error *err)
{
    const struct flow_follow *what = f->what;
    struct flow_watch *watch = &f->watch;
    int64_t begun_ms = act_now_monotonic_ms();

    watch->tells = what->follow && f->from.store && store_watch(f->from.store, &watch->news);
    if (what->follow && f->from.platform)
        flow_watch_begin(watch, f->from.platform);
    for (;;) {
        /* the state was asked for just before this began */
        int rc = f->attempt ? flow_watch_look(watch, f->flow, f->from.platform, &f->run, 1, err) : 0;
        bool ended = run_state_is_final(f->run->status.state);
        if (rc == 0)
            rc = timed_round(f, err);
        look_at_growth(f);
        if (rc == 0)
            rc = end_round(f, err);
        if (what->follow)
            rc = flow_watch_took(watch, rc, err);
        if (rc < 0 || !what->follow || (ended && !watch->trial_ms) || is_follow_over(f))
            return rc;
        rc = heed_signal(f, err);
        if (rc < 0)
            return rc;
        say_what_it_waits_for(f, begun_ms);
        flow_watch_pause(watch, f->flow, f->moved, 0);
    }
}

/* A log that is not there yet, or that a run has ended without. */
static int check_seen(const struct follower *f, struct act_error *err)
{
    const struct flow_run *run = f->run;
    bool seen = false;

    for (size_t i = 0; i < f->n; i++)
        seen = seen || f->v[i].seen;
    if (seen)
        return 0;
    ACT_AUTOFREE char *what = f->what->all ? act_strdup("log of a rank") : act_sprintf("log '%s'", f->v[0].name);
    if (!run_state_is_final(run->status.state)) {
        act_note("run '%s' is %s and has no %s yet", run->row.id, run_state_name(run->status.state), what);
        return 0;
    }
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' is %s and has no %s; 'a q %s' lists those it has", run->row.id,
                         run_state_name(run->status.state), what, run->row.id);
}

static void release_follower(struct follower *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].name);
        act_buf_release(&f->v[i].line);
    }
    free(f->v);
    store_page_release(&f->logs);
    if (f->what->follow && f->from.platform)
        flow_watch_end(f->from.platform);
    flow_source_close(&f->from);
}

int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what, struct act_error *err)
{
    ACT_AUTOFREE char *rank_log = run_rank_log(what->rank);
    struct follower f = {.flow = flow, .run = run, .what = what};
    ACT_AUTO(flow_output) output = {0};
    int rc = what->name ? flow_find_output(run, what->name, &output, err) : 0;

    if (rc >= 0)
        rc = output.folder   ? flow_source_open_output(flow, run, &output, &f.from, err)
             : output.path   ? flow_source_open_there(flow, run, &f.from, err)
             : what->fetched ? flow_source_open_here(flow, run, &f.from, err)
                             : flow_source_open(flow, run, &f.from, err);
    f.from.with_outputs = output.path && !output.folder;
    const char *name = f.from.only ? f.from.only : output.path ? output.path : what->name;
    if (!what->all)
        add_stream(&f, 0, 0, name ? name : rank_log);
    if (rc == 0)
        rc = follow_to_end(&f, err);
    if (rc == 0)
        rc = give_rest(&f, err);
    if (rc == 0 && what->must_exist)
        rc = check_seen(&f, err);
    release_follower(&f);
    return rc;
}
