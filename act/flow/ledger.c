/* ledger.c - the user's ledger, also when it is lost, damaged, locked or not writable.
 *
 * What is known about runs is shown in any case. Only a run about to be submitted must be recorded first.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "ledger/ledger.h"
#include "platform/platform.h"

static char *ledger_path(void)
{
    ACT_AUTOFREE char *dir = act_state_dir();

    return act_path_join(dir, "ledger.db");
}

int flow_look_at_ledger(struct act_error *err)
{
    ACT_AUTOFREE char *path = ledger_path();
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int rc = act_can_write_in(dir, err);

    if (rc == 0)
        rc = ledger_look(path, err);
    if (rc == 0 && access(path, W_OK) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    return rc;
}

/* ---- filling a new one with the existing runs */

static void note_status(struct ledger_run *row, const struct run_status *status)
{
    CODEC_AUTOJSON json_t *json = run_status_to_json(status);

    if (status->state == RUN_UNKNOWN)
        return;
    free(row->state);
    row->state = act_strdup(run_state_name(status->state));
    row->status = codec_json_line(json);
}

static void add_run_of(struct platform *platform, const char *id, struct ledger_runs *out)
{
    ACT_AUTO(run_spec) spec = {0};
    struct run_status status;
    struct act_error err;

    if (platform_spec(platform, id, &spec, &err) < 0) {
        act_warn("run '%s' is not in the new ledger: %s", id, act_error_text(&err));
    } else {
        ACT_GROW(out->v, out->n);
        out->v[out->n] = flow_row_of(&spec);
        if (platform_status(platform, &id, 1, &status, &err) == 0)
            note_status(&out->v[out->n], &status);
        out->n++;
    }
}

/* The runs of this machine: each has a folder. */
static void find_runs_here(struct flow *flow, struct ledger_runs *out)
{
    struct platform *platform = NULL;
    ACT_AUTO(act_strv) ids = {0};
    struct act_error err;

    *out = (struct ledger_runs){0};
    if (flow_platform_here(flow, &platform, &err) < 0 || platform_list(platform, &ids, &err) < 0)
        act_warn("the runs of this machine are not in the new ledger: %s", act_error_text(&err));
    for (size_t i = 0; i < ids.n; i++)
        add_run_of(platform, ids.v[i], out);
}

/* What a ledger that is made anew is filled with. */
struct ledger_filling {
    struct flow *flow;
    const char *aside; /* the remains of the previous ledger; NULL: there are none */
    bool done;
};

static void ledger_join(struct ledger_runs *to, struct ledger_runs *more)
{
    for (size_t i = 0; i < more->n; i++)
        ACT_PUSH(to->v, to->n, more->v[i]);
    free(more->v);
}

static void ledger_list_first(void *arg, struct ledger_runs *out)
{
    struct ledger_filling *f = arg;
    struct ledger_runs here;

    *out = (struct ledger_runs){0};
    f->done = true;
    if (f->aside)
        ledger_salvage(f->aside, out);
    find_runs_here(f->flow, &here);
    if (f->aside)
        act_warn("the ledger was damaged and is kept as '%s'; a new one has the runs that could be read there and "
                 "those of this machine, 'a -c CLUSTER q --rebuild' takes those of a cluster",
                 f->aside);
    else if (here.n > 0)
        act_warn("there was no ledger: a new one has the %zu run%s of this machine, 'a -c CLUSTER q --rebuild' takes "
                 "those of a cluster",
                 here.n, here.n == 1 ? "" : "s");
    ledger_join(out, &here);
}

/* Fills one that is there. That is best effort: a failure is only reported. */
static void fill_ledger(struct ledger_filling *f, struct ledger *ledger)
{
    ACT_AUTO(ledger_runs) runs;
    struct act_error err;

    ledger_list_first(f, &runs);
    if (ledger_add_all(ledger, &runs, &err) < 0)
        act_warn("the new ledger has not all runs: %s", act_error_text(&err));
}

/* ---- opening */

/* Sets a damaged file aside. 1: done, or another process has just done it; 0: it is not damaged. */
static int mend(const char *path, char **out_aside)
{
    struct act_error err;

    if (ledger_set_aside(path, out_aside, &err) == 0)
        return *out_aside != NULL;
    act_warn("%s", act_error_text(&err));
    return 0;
}

/* aside: what mend() has set aside. Another process may have made the new ledger before this one. */
static int ledger_open_filled(struct flow *flow, const char *path, const char *aside, struct act_error *err)
{
    struct ledger_filling filling = {.flow = flow, .aside = aside};
    int rc = ledger_open(path, &(struct ledger_first){ledger_list_first, &filling}, &flow->ledger, err);

    if (rc == 0 && aside && !filling.done)
        fill_ledger(&filling, flow->ledger);
    return rc;
}

int flow_ledger(struct flow *flow, struct ledger **out, struct act_error *err)
{
    ACT_AUTOFREE char *path = ledger_path();
    ACT_AUTOFREE char *aside = NULL;
    int rc = flow->ledger ? 0 : ledger_open_filled(flow, path, NULL, err);

    if (rc == -ACT_FAIL && mend(path, &aside))
        rc = ledger_open_filled(flow, path, aside, err);
    *out = flow->ledger;
    return rc;
}

bool flow_ledger_changed(struct stat *before)
{
    ACT_AUTOFREE char *path = ledger_path();
    struct stat now = {0};

    if (stat(path, &now) < 0)
        return true;
    bool same = now.st_ino == before->st_ino && now.st_size == before->st_size &&
                act_timespec_ns(now.st_mtim) == act_timespec_ns(before->st_mtim);
    *before = now;
    return !same;
}

/* ---- going on without it */

static int use_copy(struct flow *flow, const struct act_error *why, struct act_error *err)
{
    ACT_AUTOFREE char *path = ledger_path();
    struct act_error reason = *why;
    int rc = ledger_copy(path, &flow->ledger_copy, err);

    if (rc < 0)
        return rc;
    act_hint_at_own_dirs(&reason);
    act_warn("%s (what is known of the runs is shown, but not written down)", act_error_text(&reason));
    if (ledger_is_new(flow->ledger_copy))
        fill_ledger(&(struct ledger_filling){.flow = flow}, flow->ledger_copy);
    return 0;
}

/* Decides what to do after a failure. 0: try again. */
static int help(struct flow *flow, int failed, struct act_error *err)
{
    ACT_AUTOFREE char *path = ledger_path();
    ACT_AUTOFREE char *aside = NULL;
    struct act_error ignored;

    if (flow->ledger_copy)
        return failed;
    if (failed == -ACT_FAIL && flow->ledger && mend(path, &aside)) {
        ledger_close(flow->ledger);
        flow->ledger = NULL;
        if (ledger_open_filled(flow, path, aside, &ignored) == 0)
            return 0;
    }
    return use_copy(flow, err, err);
}

bool flow_next_ledger(struct flow *flow, struct ledger **ledger, int *rc, struct act_error *err)
{
    bool is_first = !*ledger;

    while (is_first || (*rc < 0 && (*rc = help(flow, *rc, err)) == 0)) {
        is_first = false;
        *rc = flow->ledger_copy ? 0 : flow_ledger(flow, ledger, err);
        *ledger = flow->ledger_copy ? flow->ledger_copy : *ledger;
        if (*rc == 0)
            return true;
    }
    return false;
}

int flow_ledger_each(struct flow *flow, bool (*each)(void *arg, const struct ledger_run *row), void *arg,
                     struct act_error *err)
{
    enum { FEW = 64 };
    struct ledger_place place = {0}, next = {0};
    const struct ledger_query query = {.without_spec = true, .few = FEW, .place = &next};
    bool goes_on = true;
    int rc = 0;

    while (rc == 0 && goes_on && !place.ended) {
        ACT_AUTO(ledger_runs) rows = {0};
        for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);) {
            next = place;
            rc = ledger_list(ledger, &query, &rows, err);
        }
        place = next;
        for (size_t i = 0; i < rows.n && goes_on; i++)
            goes_on = each(arg, &rows.v[i]);
    }
    return rc;
}

/* Checks that the run was added; another process may be quicker. */
static int check_added(struct ledger *ledger, const struct ledger_run *row, struct act_error *err)
{
    ACT_AUTO(ledger_runs) others = {0};
    bool added;
    int rc = ledger_has(ledger, row->id, &added, err);

    if (rc < 0 || added)
        return rc;
    rc = ledger_repeats(ledger, row->replaces, &others, err);
    return rc < 0 ? rc : flow_refuse_other(others.n ? others.v[0].id : "another run", err);
}

int flow_remember(struct flow *flow, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTO(ledger_run) row = flow_row_of(spec);
    struct ledger *ledger;
    int rc = flow_ledger(flow, &ledger, err);

    if (spec->resubmit_of && act_strv_has(&spec->after, spec->resubmit_of))
        row.replaces = act_strdup(spec->resubmit_of);
    if (rc == 0)
        rc = ledger_add(ledger, &row, err);
    return rc == 0 && row.replaces ? check_added(ledger, &row, err) : rc;
}

int flow_refuse_other(const char *other, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE, "'%s' takes its place already; 'a resubmit %s' replaces that one", other,
                         other);
}
