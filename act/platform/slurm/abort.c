/* abort.c - ending runs. Each has a file that tells its agent to end it, and its job is told by scancel, until Slurm
 * and the agent say that it has ended. What is asked for several runs is one request each time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "platform/slurm/slurm_internal.h"

/* How a job is ended. */
enum method { NOT_YET, WHILE_IT_WAITS, ITS_STEP, GRACEFULLY, AT_ONCE };

/* Messages of scancel for a job that has started, ended or been requeued since it was queried, and for one that its
 * node has not started yet, though Slurm reports it as running. */
static const char *const moved_on[] = {"Invalid job id", "already complet", "can not be altered now",
                                       "did not say why"}; /* of a task that the signal ended, scancel keeps quiet */

enum { ENDINGS_MOST = 256 }; /* of which the words of one command have room */

/* A run that is to end. */
struct slurm_ending {
    struct platform_end *end;
    struct slurm_view view;
    enum method told, next;
    bool goes_on; /* it is not known to have ended, or why it cannot be */
    bool no_file; /* disk full: Slurm can end the job all the same */
};

struct slurm_endings {
    struct slurm *s;
    struct slurm_ending *v;
    size_t n;
    int64_t since_ms; /* monotonic */
};

static int64_t endings_waited_ms(const struct slurm_endings *all)
{
    return act_now_monotonic_ms() - all->since_ms;
}

static void ending_fail(struct slurm_ending *e, int rc, const struct act_error *err)
{
    e->end->rc = rc;
    e->end->err = *err;
    e->goes_on = false;
}

/* Returns those that go on, and how many they are in *out_n. */
static struct slurm_ending **endings_left(const struct slurm_endings *all, size_t *out_n)
{
    struct slurm_ending **left = act_calloc(all->n + 1, sizeof(*left));

    *out_n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].goes_on)
            left[(*out_n)++] = &all->v[i];
    return left;
}

static void endings_look(const struct slurm_endings *all)
{
    size_t n;
    ACT_AUTOFREE struct slurm_ending **left = endings_left(all, &n);
    ACT_AUTOFREE struct slurm_view *views = act_calloc(n + 1, sizeof(*views));
    ACT_AUTOFREE const char **ids = act_calloc(n + 1, sizeof(*ids));
    struct act_error err;

    for (size_t i = 0; i < n; i++)
        ids[i] = left[i]->end->id;
    int rc = n > 0 ? slurm_look(all->s, ids, n, views, &err) : 0;
    for (size_t i = 0; i < n; i++) {
        slurm_views_release(&left[i]->view, 1);
        left[i]->view = views[i];
        if (rc < 0)
            ending_fail(left[i], rc, &err);
    }
}

/* ---- the files ---- */

/* Prints one digit for each folder: whether the file is there now. */
static const char ask[] =
    "umask 077; for dir; do { : >\"$dir/" RUN_FILE_ABORT "\"; } 2>/dev/null && printf 1 || printf 0; done";

static int endings_ask_many(const struct slurm_endings *all, struct slurm_ending *const *left, size_t n,
                            struct site_result *out, struct act_error *err)
{
    ACT_AUTO(act_strv) argv = {0};

    ACT_STRV_PUSH(&argv, "sh", "-c", ask, "sh");
    for (size_t i = 0; i < n; i++)
        act_strv_take(&argv, site_run_dir(all->s->site, left[i]->end->id));
    return site_run(all->s->site, &(struct site_command){.argv = (const char *const *)argv.v}, out, err);
}

/* Says why the file of a run cannot be written, which is no obstacle if it has a job. */
static void ending_has_no_file(struct slurm *s, struct slurm_ending *e)
{
    struct act_error err;
    int rc = site_write(s->site, e->end->id, RUN_FILE_ABORT, "", NULL, &err);

    e->no_file = rc < 0 && rc != -ACT_TEMPORARY;
    if (rc < 0 && !(e->no_file && e->view.job))
        ending_fail(e, rc, &err);
}

/* Makes the files of up to ENDINGS_MOST of those that go on. */
static void endings_ask_some(const struct slurm_endings *all, struct slurm_ending *const *some, size_t n)
{
    ACT_AUTO(site_result) result = {0};
    struct act_error err;
    int rc = endings_ask_many(all, some, n, &result, &err);

    for (size_t i = 0; i < n && rc != -ACT_INTERRUPTED; i++)
        if (rc < 0)
            ending_fail(some[i], rc, &err);
        else if (i >= result.out_len || result.out[i] != '1')
            ending_has_no_file(all->s, some[i]);
}

static void endings_ask(const struct slurm_endings *all, struct slurm_ending *const *left, size_t n)
{
    for (size_t i = 0; i < n; i += ENDINGS_MOST)
        endings_ask_some(all, left + i, n - i < ENDINGS_MOST ? n - i : ENDINGS_MOST);
}

/* ---- the jobs ---- */

/* Returns the request that fits the run's current state. */
static enum method choose_method(const struct slurm_view *view, bool at_once, int64_t waited_ms)
{
    enum { PENDING_MS = 2000 }; /* a job being prepared or suspended by Slurm waits too, but not as PENDING */

    if (at_once || view->is_array || waited_ms > run_abort_wait_ms())
        return AT_ONCE;
    if (view->step >= 0) /* the agent looks for the file, but not while it waits for a part of the job */
        return view->status.state == RUN_QUEUED ? ITS_STEP : NOT_YET;
    if (view->status.state == RUN_RUNNING)
        return GRACEFULLY;
    /* with a state, scancel takes all waiting tasks of an array for the one that it was given */
    return view->task >= 0 || waited_ms > PENDING_MS ? AT_ONCE : WHILE_IT_WAITS;
}

/* Returns Slurm's name for it: of a job, of a task, or of a step in somebody's job. New string. */
static char *ending_text(const struct slurm_view *view)
{
    return view->step < 0 ? slurm_task_text(view->job, view->task)
                          : act_sprintf("%lld.%lld", (long long)view->job, (long long)view->step);
}

static int slurm_scancel(struct slurm *s, enum method how, struct slurm_ending *const *of, size_t n,
                         struct act_error *err)
{
    static const char *const options[][2] = {[WHILE_IT_WAITS] = {"--state=PENDING"},
                                             [ITS_STEP] = {"--signal=TERM"},
                                             [GRACEFULLY] = {"--batch", "--signal=USR2"},
                                             [AT_ONCE] = {NULL}};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *out = NULL;

    act_strv_push(&words, "scancel");
    for (size_t i = 0; i < 2 && options[how][i]; i++)
        act_strv_push(&words, options[how][i]);
    for (size_t i = 0; i < n; i++)
        act_strv_take(&words, ending_text(&of[i]->view));
    int rc = slurm_run(s, (const char *const *)words.v, &out, err);
    for (size_t i = 0; rc < 0 && i < sizeof(moved_on) / sizeof(moved_on[0]); i++)
        if (n == 1 && strstr(act_error_text(err), moved_on[i]))
            rc = 0; /* the next query tells what to do */
    for (size_t i = 0; rc == 0 && i < n; i++)
        of[i]->told = how;
    return rc;
}

/* Sends one request for up to ENDINGS_MOST. If scancel says something against it, each is asked for by itself: what it
 * says is about that one then. */
static void endings_tell_some(struct slurm *s, enum method how, struct slurm_ending *const *of, size_t n)
{
    struct act_error err;
    int rc = slurm_scancel(s, how, of, n, &err);

    for (size_t i = 0; rc < 0 && i < n; i++) {
        int own = n == 1 ? rc : slurm_scancel(s, how, &of[i], 1, &err);
        if (own < 0)
            ending_fail(of[i], own, &err);
    }
}

static void endings_tell(struct slurm *s, enum method how, struct slurm_ending *const *of, size_t n)
{
    for (size_t i = 0; i < n; i += ENDINGS_MOST)
        endings_tell_some(s, how, of + i, n - i < ENDINGS_MOST ? n - i : ENDINGS_MOST);
}

/* Tells the jobs what they have not been told. */
static void endings_send(const struct slurm_endings *all)
{
    size_t n, n_next;
    ACT_AUTOFREE struct slurm_ending **left = endings_left(all, &n);
    ACT_AUTOFREE struct slurm_ending **next = act_calloc(n + 1, sizeof(*next));

    for (size_t i = 0; i < n; i++)
        left[i]->next = choose_method(&left[i]->view, left[i]->no_file, endings_waited_ms(all));
    for (enum method how = WHILE_IT_WAITS; how <= AT_ONCE; how++) {
        n_next = 0;
        for (size_t i = 0; i < n; i++)
            if (left[i]->next == how && how > left[i]->told)
                next[n_next++] = left[i];
        endings_tell(all->s, how, next, n_next);
    }
}

/* A run whose end no agent recorded ended because it was aborted. */
static int note_abort(struct slurm *s, const char *id, struct slurm_view *view, struct act_error *err)
{
    struct run_status *status = &view->status;

    status->state = RUN_CANCELED;
    status->exit_status = 0;
    status->ended_unix_s = status->ended_unix_s ? status->ended_unix_s : act_now_unix_s();
    snprintf(status->reason, sizeof(status->reason), "aborted");
    return slurm_write_status(s, id, status, err);
}

/* Tells whether only Slurm knew of it, so that nobody but this function says that it was aborted. */
static bool is_ours_to_note(const struct slurm_view *view)
{
    bool dropped = view->task >= 0 && view->status.state == RUN_FAILED && !view->status.started_unix_s;

    return view->by_slurm || !view->job || dropped; /* a task that waited, and nothing is left of its array */
}

/* Judges what was just looked at. */
static void ending_judge(struct slurm *s, struct slurm_ending *e)
{
    struct slurm_view *view = &e->view;
    struct act_error err;

    if (!e->goes_on || (view->job && !run_state_is_final(view->status.state)))
        return;
    e->goes_on = false;
    int rc = is_ours_to_note(view) ? note_abort(s, e->end->id, view, &err) : 0;
    if (rc < 0)
        ending_fail(e, rc, &err);
}

static void endings_judge(const struct slurm_endings *all)
{
    for (size_t i = 0; i < all->n; i++)
        ending_judge(all->s, &all->v[i]);
}

/* Makes the files and tells the jobs in one round trip. Where there turns out to be no file, the job is told more by
 * the next step. */
static void endings_begin(const struct slurm_endings *all)
{
    size_t n;
    ACT_AUTOFREE struct slurm_ending **left = endings_left(all, &n);
    bool is_ahead = site_ahead(all->s->site);

    if (is_ahead) {
        endings_ask(all, left, n);
        site_ahead_end(all->s->site);
        endings_judge(all);
        endings_send(all);
    }
    endings_ask(all, left, n);
}

/* Judges what was there at first. */
static void ending_begin(struct slurm *s, struct slurm_ending *e)
{
    struct act_error err;

    if (!e->goes_on)
        return;
    e->end->was_final = run_state_is_final(e->view.status.state);
    if (!e->view.there)
        ending_fail(e,
                    act_error_set(&err, ACT_NOT_FOUND, "there is no run '%s' in '%s'", e->end->id, site_root(s->site)),
                    &err);
    else if (e->end->was_final)
        e->goes_on = false;
}

static void ending_give_up(struct slurm_ending *e)
{
    struct act_error err;

    if (e->goes_on)
        ending_fail(e,
                    act_error_set(&err, ACT_TIMEOUT, "'%s' was told to end and has not ended yet (job %lld)",
                                  e->end->id, (long long)e->view.job),
                    &err);
}

/* Until all have ended. Returns whether there is anything to wait for. */
static bool endings_step(const struct slurm_endings *all, long step_ms)
{
    enum { KILL_MS = 60000 }; /* Slurm's KillWait is 30 s */
    bool too_long = endings_waited_ms(all) > run_abort_wait_ms() + KILL_MS;
    size_t n;

    endings_judge(all);
    for (size_t i = 0; too_long && i < all->n; i++)
        ending_give_up(&all->v[i]);
    endings_send(all);
    free(endings_left(all, &n));
    if (n == 0)
        return false;
    nanosleep(&(struct timespec){.tv_sec = step_ms / 1000, .tv_nsec = step_ms % 1000 * 1000000}, NULL);
    endings_look(all);
    return true;
}

void slurm_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    enum { STEP_MIN_MS = 20, STEP_MAX_MS = 1000 };
    struct slurm_endings all = {
        .s = slurm_of(p), .v = act_calloc(n, sizeof(*all.v)), .n = n, .since_ms = act_now_monotonic_ms()};

    for (size_t i = 0; i < n; i++)
        all.v[i] = (struct slurm_ending){.end = &ends[i], .goes_on = true};
    endings_look(&all);
    for (size_t i = 0; i < n; i++)
        ending_begin(all.s, &all.v[i]);
    if (all.s->site)
        endings_begin(&all);
    all.since_ms = act_now_monotonic_ms();
    for (long step_ms = STEP_MIN_MS; endings_step(&all, step_ms);)
        step_ms = 2 * step_ms < STEP_MAX_MS ? 2 * step_ms : STEP_MAX_MS;
    for (size_t i = 0; i < n; i++)
        slurm_views_release(&all.v[i].view, 1);
    free(all.v);
}
