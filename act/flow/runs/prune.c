/* prune.c - removing what ACT keeps of old runs of a project. A run goes only if it has ended, by the word of its
 * platform now, is this user's and of this project; a package only if no other run in the ledger has it. What is in
 * the stores of the code stays, because others may run it, and so do the copies of logs in assets/, which are the
 * user's own.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "flow/flow_internal.h"
#include "flow/runs/keep.h"
#include "flow/runs/runs_internal.h"
#include "ledger/ledger.h"
#include "platform/platform.h"
#include "run/run.h"

void flow_prune_release(struct flow_prune *p)
{
    for (size_t i = 0; i < p->n; i++)
        flow_run_release(&p->v[i].run);
    free(p->v);
    act_strv_release(&p->packages);
    *p = (struct flow_prune){0};
}

/* ---- which runs */

static bool is_old(const struct flow_prune *p, const struct flow_run *run)
{
    int64_t ended = run->status.ended_unix_s > 0 ? run->status.ended_unix_s : run->row.created_unix_s;

    return ended < act_now_unix_s() - p->older_s;
}

static bool is_of_project(const struct flow *flow, const struct flow_run *run)
{
    return act_streq(run->row.project, flow->config.project_root);
}

/* Takes the run, or counts why it stays. */
static void judge(struct flow *flow, struct flow_prune *p, struct flow_run *run)
{
    struct platform *platform = NULL;
    struct act_error err;
    uint64_t bytes = 0;
    bool others = false;

    if (!run_state_is_final(run->status.state)) {
        p->active++;
        return;
    }
    if (!run->status.unsubmitted && (flow_platform_of(flow, &run->row, &platform, &err) < 0 ||
                                     platform_size(platform, run->row.id, &bytes, &others, &err) < 0)) {
        act_warn("run '%s' stays: %s", run->row.id, act_error_text(&err));
        p->unreachable++;
        return;
    }
    if (others) {
        p->others++;
        return;
    }
    if (platform && !platform_can_remove(platform)) {
        p->service++;
        return;
    }
    ACT_PUSH(p->v, p->n, (struct flow_pruned){.run = *run, .platform = platform, .bytes = bytes});
    *run = (struct flow_run){0};
    p->bytes += bytes;
}

static int find_runs(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    const struct flow_table table = {.cluster = p->cluster, .own = true, .with_spec = true};
    ACT_AUTO(flow_runs) runs = {0};
    int rc = flow_list_runs(flow, &table, &runs, err);

    for (size_t i = 0; rc == 0 && i < runs.n; i++)
        if (is_of_project(flow, &runs.v[i]) && is_old(p, &runs.v[i]))
            judge(flow, p, &runs.v[i]);
    return rc;
}

/* ---- asking again: the ledger may be wrong */

/* The i-th run is the first one at its place. */
static bool is_first_there(const struct flow_prune *p, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (p->v[k].platform == p->v[i].platform)
            return false;
    return p->v[i].platform != NULL;
}

static void drop(struct flow_pruned *v, struct flow_prune *p)
{
    p->bytes -= v->bytes;
    flow_run_release(&v->run);
}

/* What the platform does not know any more has ended. */
static bool may_go(const struct run_status *now)
{
    return run_state_is_final(now->state) || (now->state == RUN_UNKNOWN && !*now->reason);
}

/* Asks a platform about its runs: stays[i] is set where the i-th run stays. */
static void ask_place(struct flow_prune *p, struct platform *platform, bool *stays)
{
    const char **ids = act_calloc(p->n + 1, sizeof(*ids));
    ACT_AUTOFREE struct run_status *now = act_calloc(p->n + 1, sizeof(*now));
    struct act_error err;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].platform == platform)
            ids[n++] = p->v[i].run.row.id;
    int rc = platform_status(platform, ids, n, now, &err);
    if (rc < 0)
        act_warn("%zu run%s on %s cannot be asked about, and stay: %s", n, n == 1 ? "" : "s",
                 platform_row(platform)->name, act_error_text(&err));
    p->unreachable += rc < 0 ? n : 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].platform != platform)
            continue;
        stays[i] = rc < 0 || !may_go(&now[k]);
        p->active += rc == 0 && stays[i];
        k++;
    }
    free(ids);
}

static void ask_again(struct flow_prune *p)
{
    ACT_AUTOFREE bool *stays = act_calloc(p->n + 1, sizeof(*stays));
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        if (is_first_there(p, i))
            ask_place(p, p->v[i].platform, stays);
    for (size_t i = 0; i < p->n; i++) {
        if (stays[i])
            drop(&p->v[i], p);
        else
            p->v[n++] = p->v[i];
    }
    p->n = n;
}

/* ---- packages */

static bool goes(const struct flow_prune *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].run.row.id, id) == 0)
            return true;
    return false;
}

/* What runs of any project have that stay, and how many runs may be somebody else's. */
static void look_at_rest(const struct flow *flow, struct flow_prune *p, const struct flow_runs *all,
                         struct act_strv *kept)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct flow_run *run = &all->v[i];
        if (goes(p, run->row.id))
            continue;
        act_strv_push(kept, run->spec.package_sha256);
        p->others += run->row.found && is_of_project(flow, run) && is_old(p, run) &&
                     (!p->cluster || act_streq(run->row.cluster, p->cluster));
    }
}

static int find_packages(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    const struct flow_table table = {.as_known = true, .with_spec = true};
    ACT_AUTO(flow_runs) all = {0};
    ACT_AUTO(act_strv) kept = {0};
    int rc = flow_list_runs(flow, &table, &all, err);

    if (rc < 0)
        return rc;
    look_at_rest(flow, p, &all, &kept);
    for (size_t i = 0; i < p->n; i++) {
        const char *sha256 = p->v[i].run.spec.package_sha256;
        if (*sha256 && !act_strv_has(&kept, sha256) && !act_strv_has(&p->packages, sha256))
            act_strv_push(&p->packages, sha256);
    }
    return 0;
}

/* ---- at each place */

static int sweep_place(struct platform *platform, struct flow_prune *p, bool dry_run, struct act_error *err)
{
    struct platform_kept kept;
    bool busy = false;
    int rc = platform_remove_agents(platform, p->older_s, dry_run, &kept, &busy, err);

    p->busy = p->busy || busy;
    p->n_agents += kept.n;
    p->bytes += kept.bytes;
    for (size_t i = 0; rc == 0 && i < p->packages.n; i++) {
        rc = platform_remove_package(platform, p->packages.v[i], dry_run, &kept, err);
        p->n_packages += kept.n;
        p->bytes += kept.bytes;
    }
    return rc;
}

static void sweep_cache(struct flow_prune *p, bool dry_run)
{
    struct stat st;

    for (size_t i = 0; i < p->packages.n; i++) {
        ACT_AUTOFREE char *file = flow_package_cache(p->packages.v[i]);
        if (lstat(file, &st) < 0 || (!dry_run && unlink(file) < 0))
            continue;
        p->n_packages++;
        p->bytes += (uint64_t)st.st_size;
    }
}

static int sweep(struct flow_prune *p, bool dry_run, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < p->n; i++)
        if (is_first_there(p, i))
            rc = sweep_place(p->v[i].platform, p, dry_run, err);
    sweep_cache(p, dry_run);
    return rc;
}

int flow_prune_find(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    int rc = find_runs(flow, p, err);

    if (rc == 0)
        ask_again(p);
    if (rc == 0)
        rc = find_packages(flow, p, err);
    return rc == 0 ? sweep(p, true, err) : rc;
}

/* ---- doing it */

struct gone {
    const char **ids;
    size_t n;
};

static int forget(struct ledger *ledger, void *arg, struct act_error *err)
{
    const struct gone *gone = arg;

    return ledger_remove(ledger, gone->ids, gone->n, err);
}

/* Those that could be removed. */
static void remove_runs(struct flow_prune *p, struct gone *gone)
{
    struct act_error err;

    for (size_t i = 0; i < p->n; i++) {
        struct flow_pruned *v = &p->v[i];
        if (!v->platform || platform_remove(v->platform, v->run.row.id, &err) == 0) {
            gone->ids[gone->n++] = v->run.row.id;
            p->bytes += v->bytes;
        } else {
            act_warn("run '%s' stays: %s", v->run.row.id, act_error_text(&err));
        }
    }
}

/* The packages that go now: a run that was submitted since they were found may have one of them. */
static int find_packages_again(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    size_t others = p->others;

    act_strv_release(&p->packages);
    p->packages = (struct act_strv){0};
    int rc = find_packages(flow, p, err);
    p->others = others;
    return rc;
}

/* The user may have taken hours to say yes, so that all is asked about again. */
int flow_prune(struct flow *flow, struct flow_prune *p, size_t *out_n, struct act_error *err)
{
    ask_again(p);
    struct gone gone = {.ids = act_calloc(p->n + 1, sizeof(const char *))};
    p->bytes = p->n_packages = p->n_agents = 0;
    remove_runs(p, &gone);
    int rc = flow_with_ledger(flow, forget, &gone, err);
    if (rc == 0 && gone.n == p->n)
        rc = find_packages_again(flow, p, err);
    if (rc == 0 && gone.n == p->n)
        rc = sweep(p, false, err);
    if (rc == 0 && gone.n < p->n)
        rc = act_error_set(err, ACT_PARTIAL, "%zu of %zu runs could not be removed", p->n - gone.n, p->n);
    *out_n = gone.n;
    free(gone.ids);
    return rc;
}
