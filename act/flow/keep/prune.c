/* prune.c - removing what ACT keeps of old runs of a project, or of those that were named. A run goes only if it has
 * ended, by the word of its platform now, and is this user's. Everything of it goes before its row in the ledger does,
 * so that whatever interrupts that is found again.
 *
 * Packages are found where they are, not by their runs: one goes if no run in the ledger has it, nor any folder of a
 * run where it is, and it is old or was one of the runs that go. In a store of the code that others may use, it stays.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"
#include "flow/keep/keep.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"
#include "flow/trust.h"

static void pruned_release(struct flow_pruned *v)
{
    free(v->id);
    free(v->package);
    free(v->unreached);
}

void flow_prune_release(struct flow_prune *p)
{
    for (size_t i = 0; i < p->n; i++)
        pruned_release(&p->v[i]);
    free(p->v);
    act_strv_release(&p->packages);
    act_strv_release(&p->used);
    act_strv_release(&p->going);
    *p = (struct flow_prune){0};
}

/* ---- which runs */

static bool prune_is_old(const struct flow_prune *p, const struct flow_run *run)
{
    int64_t ended = run->status.ended_unix_s > 0 ? run->status.ended_unix_s : run->row.created_unix_s;

    return ended < act_now_unix_s() - p->older_s;
}

static bool is_of_project(const struct flow *flow, const struct flow_run *run)
{
    return act_streq(run->row.project, flow->config->project_root);
}

/* The copies of its logs in the project, as far as no link leads elsewhere. */
static uint64_t size_of_copies(const struct flow_run *run)
{
    ACT_AUTOFREE char *folder = flow_assets(run), *root = flow_log_folder(run->row.project);
    struct act_error ignored;
    int fd = flow_trust_logs(run->row.project, &ignored) < 0 ? -1 : act_folder_below(root, folder, false, &ignored);

    if (fd < 0)
        return 0;
    close(fd);
    return act_tree_size(folder);
}

/* Finds the platform of a run. Even a run that was never submitted may have left something where it was to go. */
static int prune_find_place(struct flow *flow, const struct flow_run *run, struct platform **out, struct act_error *err)
{
    struct act_error ignored;
    int rc = flow_platform_of(flow, &run->row, out, run->status.unsubmitted ? &ignored : err);

    if (!run->status.unsubmitted)
        return rc;
    if (rc < 0 || !platform_can_remove(*out))
        *out = NULL;
    return 0;
}

/* A run, with what there is of it where it was. */
struct prune_look {
    struct flow_run *run;
    struct platform *platform;
    struct platform_size size;
    int rc;
    struct act_error err;
};

/* Measures what is where the first of n runs was, and with it the others of that place. */
static void prune_measure_place(struct prune_look *looks, size_t n)
{
    const char **ids = act_calloc(n, sizeof(*ids));
    ACT_AUTOFREE struct platform_size *sizes = act_calloc(n, sizeof(*sizes));
    struct platform *platform = looks[0].platform;
    struct act_error err = {0};
    size_t n_there = 0, at = 0;

    for (size_t i = 0; i < n; i++)
        if (looks[i].platform == platform)
            ids[n_there++] = looks[i].run->row.id;
    int rc = platform_sizes(platform, ids, n_there, sizes, &err);
    for (size_t i = 0; i < n; i++) {
        if (looks[i].platform != platform)
            continue;
        looks[i].size = sizes[at++];
        looks[i].rc = rc;
        looks[i].err = err;
    }
    free(ids);
}

static bool prune_is_first_of_place(const struct prune_look *looks, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (looks[k].platform == looks[i].platform)
            return false;
    return looks[i].platform != NULL;
}

/* Finds whose each of n runs is, and how much, by one question to each place. */
static void prune_measure(struct flow *flow, struct prune_look *looks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        looks[i].rc = prune_find_place(flow, looks[i].run, &looks[i].platform, &looks[i].err);
        if (looks[i].rc < 0)
            looks[i].platform = NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (prune_is_first_of_place(looks, i))
            prune_measure_place(&looks[i], n - i);
}

static void prune_take(struct flow_prune *p, const struct prune_look *look, char *unreached)
{
    const struct flow_run *run = look->run;
    struct flow_pruned taken = {.platform = look->platform, .unreached = unreached};
    uint64_t copies = size_of_copies(run);

    taken.bytes = look->size.bytes + copies;
    taken.has_copies = copies > 0;
    taken.has_sent = run->spec.logs_path && platform_find(run->row.platform)->about.nodes_send_logs;
    taken.has_ended = run_state_is_final(run->status.state);
    taken.unsubmitted = run->status.unsubmitted;
    taken.package = act_strdup(run->spec.package_sha256);
    taken.id = act_strdup(run->row.id);
    ACT_PUSH(p->v, p->n, taken);
    p->bytes += taken.bytes;
    p->n_copies += taken.has_copies;
    p->n_sent += taken.has_sent;
}

static bool is_kept_by_service(const struct platform *platform)
{
    return platform && !platform_can_remove(platform);
}

/* Takes the run, or counts why it stays. */
static void prune_judge(struct flow_prune *p, const struct prune_look *look)
{
    if (look->rc < 0) {
        act_warn("run '%s' stays: %s", look->run->row.id, act_error_text(&look->err));
        p->unreachable++;
    } else if (look->size.others) {
        p->others++;
    } else if (is_kept_by_service(look->platform)) {
        p->service++;
    } else {
        prune_take(p, look, NULL);
    }
}

enum { ASKED_TOGETHER = FLOW_ROWS_FEW }; /* runs about which a far place is asked at once */

static bool prune_is_candidate(const struct flow *flow, const struct flow_prune *p, const struct flow_run *run)
{
    return is_of_project(flow, run) && prune_is_old(p, run);
}

/* Asks ahead how much there is of a run, where each question is a round trip. False: its place cannot be asked. */
static bool prune_measure_ahead(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform = NULL;
    struct platform_size size;
    struct act_error ignored;
    const char *id = run->row.id;

    if (!run_state_is_final(run->status.state))
        return true;
    int rc = prune_find_place(flow, run, &platform, &ignored);
    if (rc == 0 && platform)
        rc = platform_ahead(platform, &ignored);
    if (rc <= 0)
        return rc == 0;
    (void)!platform_sizes(platform, &id, 1, &size, &ignored); /* it is not known yet */
    platform_ahead_end(platform);
    return true;
}

struct prune_visit {
    struct flow *flow;
    struct flow_prune *p;
};

/* Visits the runs of the ledger with their specifications. */
static int prune_each(struct flow *flow, const struct flow_table *table, flow_rows_visit *each, struct prune_visit *v,
                      struct act_error *err)
{
    struct flow_rows *runs;
    int rc = flow_rows_open(flow, table, &runs, err);

    if (rc == 0)
        rc = flow_rows_each(runs, each, v, NULL, err);
    flow_rows_close(runs);
    return rc;
}

static int prune_visit_runs(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    const struct prune_visit *v = arg;
    ACT_AUTOFREE struct prune_look *looks = act_calloc(n, sizeof(*looks));
    size_t n_looks = 0;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        if (!prune_is_candidate(v->flow, v->p, &runs[i]))
            continue;
        if (run_state_is_final(runs[i].status.state))
            looks[n_looks++].run = &runs[i];
        else
            v->p->active++;
    }
    prune_measure(v->flow, looks, n_looks);
    for (size_t i = 0; i < n_looks; i++)
        prune_judge(v->p, &looks[i]);
    return 0;
}

static int prune_find_runs(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    const struct flow_table table = {.cluster = p->cluster, .own = true, .with_spec = true, .without_config = true};

    return prune_each(flow, &table, prune_visit_runs, &(struct prune_visit){flow, p}, err);
}

int flow_prune_rows(struct flow *flow, const struct flow_prune *p, size_t at, size_t n, struct ledger_runs *out,
                    struct act_error *err)
{
    const char **ids = act_calloc(n + 1, sizeof(*ids));
    int rc = 0;

    *out = (struct ledger_runs){0};
    for (size_t i = 0; i < n; i++)
        ids[i] = p->v[at + i].id;
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_get(ledger, ids, n, out, err);
    free(ids);
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

static void prune_drop(struct flow_pruned *v, struct flow_prune *p)
{
    p->bytes -= v->bytes;
    p->n_copies -= v->has_copies;
    p->n_sent -= v->has_sent;
    pruned_release(v);
}

/* Tells whether a run may go. One that the platform does not know any more has ended. */
static bool prune_may_go(const struct run_status *now)
{
    return run_state_is_final(now->state) || (now->state == RUN_UNKNOWN && !*now->reason);
}

enum { ASKED_AGAIN = 1024 }; /* runs in one question: what is said of each is large */

/* Asks a platform about n runs: stays[at[k]] is set where the k-th of them stays. */
static void ask_some(struct flow_prune *p, struct platform *platform, const size_t *at, size_t n, bool *stays)
{
    const char **ids = act_calloc(n + 1, sizeof(*ids));
    ACT_AUTOFREE struct run_status *now = act_calloc(n + 1, sizeof(*now));
    struct act_error err;

    for (size_t k = 0; k < n; k++)
        ids[k] = p->v[at[k]].id;
    int rc = platform_status(platform, ids, n, now, &err);
    if (rc < 0)
        act_warn("%zu run%s on %s cannot be asked about, and stay: %s", n, n == 1 ? "" : "s",
                 platform_row(platform)->kind->name, act_error_text(&err));
    p->unreachable += rc < 0 ? n : 0;
    for (size_t k = 0; k < n; k++) {
        stays[at[k]] = !p->v[at[k]].unsubmitted && (rc < 0 || !prune_may_go(&now[k]));
        p->active += rc == 0 && stays[at[k]];
    }
    free(ids);
}

static void ask_place(struct flow_prune *p, struct platform *platform, bool *stays)
{
    size_t at[ASKED_AGAIN], n = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].platform == platform)
            at[n++] = i;
        if (n == ASKED_AGAIN || (n > 0 && i + 1 == p->n)) {
            ask_some(p, platform, at, n, stays);
            n = 0;
        }
    }
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
            prune_drop(&p->v[i], p);
        else
            p->v[n++] = p->v[i];
    }
    p->n = n;
}

/* ---- packages */

/* Tells whether a sorted list has this text. */
static bool prune_holds(const struct act_strv *sorted, const char *text)
{
    return sorted->n && bsearch(&text, sorted->v, sorted->n, sizeof(*sorted->v), act_by_text);
}

static void prune_note_going(struct flow_prune *p)
{
    for (size_t i = 0; i < p->n; i++) {
        act_strv_push(&p->going, p->v[i].id);
        if (i == 0 || strcmp(p->v[i].package, p->v[i - 1].package) != 0)
            act_strv_push(&p->packages, p->v[i].package);
    }
    act_strv_sort(&p->going);
    act_strv_sort(&p->packages);
}

/* Lists the package of a run of any project that stays, and counts it if it may be somebody else's. */
static void prune_add_rest(const struct prune_visit *v, const struct flow_run *run)
{
    struct flow_prune *p = v->p;

    if (prune_holds(&p->going, run->row.id))
        return;
    if (p->used.n == 0 || strcmp(p->used.v[p->used.n - 1], run->spec.package_sha256) != 0)
        act_strv_push(&p->used, run->spec.package_sha256);
    p->others += run->row.found && is_of_project(v->flow, run) && prune_is_old(p, run) &&
                 (!p->cluster || act_streq(run->row.cluster, p->cluster));
}

static int prune_visit_rest(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        prune_add_rest(arg, &runs[i]);
    return 0;
}

static int find_packages(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    const struct flow_table table = {.as_known = true, .with_spec = true, .without_config = true};

    prune_note_going(p);
    int rc = prune_each(flow, &table, prune_visit_rest, &(struct prune_visit){flow, p}, err);
    act_strv_sort(&p->used);
    return rc;
}

/* Tells whether no run that stays has it, as far as the ledger knows. */
static bool is_unused(const struct flow_prune *p, const char *sha256, bool is_old)
{
    return *sha256 && !prune_holds(&p->used, sha256) && (is_old || prune_holds(&p->packages, sha256));
}

static void count_package(struct flow_prune *p, uint64_t bytes)
{
    p->n_packages++;
    p->bytes += bytes;
}

/* ---- at each place */

static int sweep_packages(struct platform *platform, struct flow_prune *p, bool dry_run, struct act_error *err)
{
    struct platform_packages unused;
    struct platform_kept kept = {0};
    int rc = platform_unused_packages(platform, p->older_s, &p->going, &unused, err);

    p->unknown = p->unknown || (rc == 0 && unused.unknown);
    for (size_t i = 0; rc == 0 && i < unused.n; i++) {
        if (!is_unused(p, unused.v[i].sha256, unused.v[i].is_old))
            continue;
        rc = dry_run ? 0 : platform_remove_package(platform, unused.v[i].sha256, false, &kept, err);
        if (rc == 0 && (dry_run || kept.n > 0))
            count_package(p, unused.v[i].bytes);
    }
    platform_packages_release(&unused);
    return rc;
}

/* Asks ahead what else is left at a place, where each question is a round trip. */
static int sweep_measure_ahead(struct platform *platform, const struct flow_prune *p, struct act_error *err)
{
    struct platform_packages packages = {0};
    struct platform_kept kept;
    struct act_error ignored;
    bool busy;
    int rc = platform_ahead(platform, err);

    if (rc <= 0)
        return rc;
    (void)!platform_clear(platform, true, &kept, &ignored); /* it is not known yet */
    (void)!platform_remove_agents(platform, p->older_s, true, &kept, &busy, &ignored);
    (void)!platform_remove_environments(platform, p->older_s, true, &kept, &ignored);
    (void)!platform_unused_packages(platform, p->older_s, &p->going, &packages, &ignored);
    platform_packages_release(&packages);
    platform_ahead_end(platform);
    return 0;
}

static int sweep_place(struct platform *platform, struct flow_prune *p, bool dry_run, struct act_error *err)
{
    struct platform_kept kept, left = {0};
    bool busy = false;
    int rc = dry_run ? sweep_measure_ahead(platform, p, err) : 0;

    if (rc == 0)
        rc = platform_clear(platform, dry_run, &left, err);
    p->n_left += left.n;
    p->bytes += left.bytes;
    if (rc < 0)
        return rc;
    rc = platform_remove_agents(platform, p->older_s, dry_run, &kept, &busy, err);

    p->busy = p->busy || busy;
    p->n_agents += kept.n;
    p->bytes += kept.bytes;
    if (rc == 0)
        rc = platform_remove_environments(platform, p->older_s, dry_run, &kept, err);
    if (rc < 0)
        return rc;
    p->n_environments += kept.n;
    p->bytes += kept.bytes;
    return sweep_packages(platform, p, dry_run, err);
}

struct prune_places {
    struct platform **v;
    size_t n;
};

static bool prune_has_place(struct platform *platform, const struct prune_places *places)
{
    for (size_t i = 0; i < places->n; i++)
        if (platform_is_same_machine(places->v[i], platform))
            return true;
    return false;
}

static void prune_add_place(struct platform *platform, struct prune_places *places)
{
    struct platform *one;

    for (size_t i = 0; (one = platform_machine(platform, i)); i++)
        if (!prune_has_place(one, places))
            ACT_PUSH(places->v, places->n, one);
}

/* Sweeps the places of the runs that go, this machine and the cluster of the project: something may be left there of a
 * prune that did not come to its end. */
static void sweep_places(struct flow *flow, struct flow_prune *p, bool dry_run)
{
    struct prune_places places = {0};
    struct platform *one;
    struct act_error err;

    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].platform)
            prune_add_place(p->v[i].platform, &places);
    if (!p->cluster && flow_platform_here(flow, &one, &err) == 0)
        prune_add_place(one, &places);
    if (flow_platform(flow, &one, &err) == 0)
        prune_add_place(one, &places);
    for (size_t i = 0; i < places.n; i++)
        if (sweep_place(places.v[i], p, dry_run, &err) < 0)
            act_warn("packages and agents on %s stay: %s", platform_row(places.v[i])->kind->name, act_error_text(&err));
    free(places.v);
}

/* ---- here */

struct sweep {
    struct flow_prune *p;
    bool dry_run;
};

static void sweep_file(const struct sweep *s, const char *dir, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name), *sha256 = act_strndup(name, strcspn(name, "."));
    struct stat st;

    if (!act_ends_with(name, ".zip") || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    if (is_unused(s->p, sha256, st.st_mtime < act_now_unix_s() - s->p->older_s) && (s->dry_run || unlink(path) == 0))
        count_package(s->p, (uint64_t)st.st_size);
}

static void sweep_folder(const struct sweep *s, const char *dir)
{
    DIR *folder = opendir(dir);

    for (struct dirent *entry; folder && (entry = readdir(folder));)
        sweep_file(s, dir, entry->d_name);
    if (folder)
        closedir(folder);
}

/* The built-in store, below ACT's own folder, is nobody else's. What was packed last is named there by a pointer. */
static void sweep_store(struct flow *flow, const struct sweep *s)
{
    const struct config_folder *code = &flow->config->code;
    ACT_AUTOFREE char *state = act_state_dir(), *base = flow_code_base(flow->config);
    CODEC_AUTOJSON json_t *latest = NULL;
    ACT_AUTO(config_account) a = {0};
    struct store *store = NULL;
    struct act_error err;

    if (!base || !config_is_built_in(code) || config_account(flow->config, code, &a, &err) < 0 || !a.folder ||
        !act_path_is_within(a.folder, state) || access(a.folder, F_OK) < 0)
        return;
    int rc = flow_store(flow, code, &store, &err);
    if (rc == 0)
        rc = flow_read_pointer(flow, store, &latest, &err);
    store_free(store);
    if (rc < 0)
        return;
    act_strv_push(&s->p->used, codec_json_str(latest, "sha256", ""));
    act_strv_sort(&s->p->used);
    ACT_AUTOFREE char *dir = act_path_join(a.folder, base);
    sweep_folder(s, dir);
}

static void prune_sweep(struct flow *flow, struct flow_prune *p, bool dry_run)
{
    const struct sweep here = {p, dry_run};
    ACT_AUTOFREE char *cache = flow_packages_dir();

    sweep_places(flow, p, dry_run);
    sweep_store(flow, &here);
    sweep_folder(&here, cache);
}

int flow_prune_find(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    int rc = prune_find_runs(flow, p, err);

    if (rc == 0)
        ask_again(p);
    if (rc == 0)
        rc = find_packages(flow, p, err);
    if (rc == 0)
        prune_sweep(flow, p, true);
    return rc;
}

/* ---- doing it */

struct gone {
    const char **ids;
    size_t n;
};

/* Removes the logs that the nodes have sent. If the project does not name their store any more, nobody can. */
static int remove_sent(struct flow *flow, const struct flow_run *run, struct act_error *err)
{
    struct transfer_report report = {0};
    struct flow_sent sent;
    int rc = flow_sent_open(flow, run, &sent, err);

    if (rc == -ACT_NOT_FOUND) {
        act_warn("%s", act_error_text(err));
        return 0;
    }
    if (rc < 0 || !sent.store)
        return rc;
    struct transfer_path what = {.store = sent.store, .path = sent.path, .is_folder = true};
    rc = transfer_remove(flow_engine(flow), &what, &(struct transfer_options){0}, &report, err);
    transfer_report_release(&report);
    flow_sent_close(&sent);
    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

static int remove_copies(const struct flow_run *run, struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run), *root = flow_log_folder(run->row.project);
    int fd = act_folder_below(root, folder, false, err);

    if (fd < 0)
        return 0;
    close(fd);
    return act_remove_tree(folder, err);
}

static void say_what_stays(const struct flow_pruned *v, const char *what, const char *why)
{
    act_warn("of run '%s' stays %s: %s", v->id, what, why);
}

/* Removes what the nodes have sent, and what is where the run was; run: {0} where nothing was sent. */
static int remove_elsewhere(struct flow *flow, const struct flow_pruned *v, const struct flow_run *run,
                            struct act_error *err)
{
    int rc = v->has_sent ? remove_sent(flow, run, err) : 0;

    if (rc < 0 && v->unreached) {
        say_what_stays(v, "what its nodes have sent", act_error_text(err));
        rc = 0;
    }
    if (v->unreached)
        say_what_stays(
            v, v->has_ended ? "what is left of it where it ran" : "what there is of it where it ran, or still runs",
            v->unreached);
    if (rc == 0 && v->platform)
        rc = platform_remove(v->platform, v->id, err);
    return rc;
}

static int remove_run(struct flow *flow, const struct flow_pruned *v, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = v->has_sent     ? flow_find_known(flow, v->id, &run, err)
             : v->has_copies ? flow_find_unasked(flow, v->id, &run, err)
                             : 0;

    if (rc == 0)
        rc = remove_elsewhere(flow, v, &run, err);
    return rc == 0 && v->has_copies ? remove_copies(&run, err) : rc;
}

/* Sends the removal of the first of n runs, of which nothing else is to be removed before. */
static void remove_ahead(const struct flow_pruned *v, size_t n)
{
    struct act_error ignored;

    for (size_t i = 0; i < n && i < ASKED_TOGETHER; i++) {
        int rc = v[i].has_sent || !v[i].platform ? 0 : platform_ahead(v[i].platform, &ignored);
        if (rc < 0)
            return;
        if (rc == 0)
            continue;
        (void)!platform_remove(v[i].platform, v[i].id, &ignored); /* it is not known yet */
        platform_ahead_end(v[i].platform);
    }
}

/* Removes runs; gone gets those that could be removed. */
static void remove_runs(struct flow *flow, struct flow_prune *p, struct gone *gone)
{
    struct act_error err;

    for (size_t i = 0; i < p->n; i++) {
        struct flow_pruned *v = &p->v[i];
        if (i % ASKED_TOGETHER == 0)
            remove_ahead(v, p->n - i);
        if (remove_run(flow, v, &err) == 0) {
            gone->ids[gone->n++] = v->id;
            p->bytes += v->bytes;
            p->n_copies += v->has_copies;
            p->n_sent += v->has_sent;
        } else {
            act_warn("run '%s' stays: %s", v->id, act_error_text(&err));
        }
    }
}

/* The packages that go now: a run that was submitted since they were found may have one of them. */
static int find_packages_again(struct flow *flow, struct flow_prune *p, struct act_error *err)
{
    size_t others = p->others;

    act_strv_release(&p->packages);
    act_strv_release(&p->used);
    act_strv_release(&p->going);
    p->packages = p->used = p->going = (struct act_strv){0};
    int rc = find_packages(flow, p, err);
    p->others = others;
    return rc;
}

/* ---- of runs that were named */

static bool prune_has(const struct flow_prune *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (act_streq(p->v[i].id, id))
            return true;
    return false;
}

/* err says why its place cannot be reached. */
static int take_unreached(struct flow_prune *p, struct flow_run *run, struct act_error *err)
{
    const char *id = run->row.id;

    if (!p->force) {
        act_error_prefix(err, "cannot remove run '%s'", id);
        return act_error_hint(err,
                              "'a rm --force %s:' removes its row and its logs here all the same; what is left where "
                              "it ran stays",
                              id);
    }
    prune_take(p, &(struct prune_look){.run = run}, act_strdup(act_error_text(err)));
    return 0;
}

static int take_reached(struct flow_prune *p, const struct prune_look *look, struct act_error *err)
{
    const char *id = look->run->row.id;

    if (look->size.others)
        return act_error_set(err, ACT_DENIED, "cannot remove run '%s': its folder is another user's", id);
    if (is_kept_by_service(look->platform))
        return act_error_set(err, ACT_USAGE, "cannot remove run '%s': its service keeps its runs itself", id);
    p->n_found += look->run->row.found;
    prune_take(p, look, NULL);
    return 0;
}

void flow_remove_expect(struct flow *flow, const struct act_strv *pieces)
{
    struct act_error ignored;

    for (size_t i = 0; i < pieces->n && i < ASKED_TOGETHER; i++) {
        ACT_AUTO(flow_run) run = {0};
        ACT_AUTOFREE char *piece = act_strndup(pieces->v[i], strcspn(pieces->v[i], ":"));
        if (flow_find_unasked(flow, piece, &run, &ignored) == 0 && !prune_measure_ahead(flow, &run))
            return;
    }
}

int flow_remove_find(struct flow *flow, const char *piece, struct flow_prune *p, struct act_error *err)
{
    ACT_AUTO(flow_run) known = {0}, run = {0};
    struct prune_look look = {.run = &run};
    struct act_error ignored;
    int rc = flow_find_row(flow, piece, true, &known, err);

    if (rc < 0 || prune_has(p, known.row.id))
        return rc;
    if (flow_find_run(flow, known.row.id, &run, err) < 0) {
        (void)!flow_load_spec(&known, &ignored); /* its record may be damaged */
        return take_unreached(p, &known, err);
    }
    const char *id = run.row.id;
    if (!prune_may_go(&run.status))
        return act_error_set(err, ACT_USAGE, "run '%s' is %s; 'a abort %s' ends it, then it can be removed", id,
                             run_state_name(run.status.state), id);
    prune_measure(flow, &look, 1);
    if (look.rc == 0)
        return take_reached(p, &look, err);
    *err = look.err;
    return take_unreached(p, &run, err);
}

/* A copy of the ledger, which is used where the file cannot be written, goes with this process. */
static int forget_runs(struct flow *flow, const struct gone *gone, struct act_error *err)
{
    size_t n = gone->n;
    int rc = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_remove(ledger, gone->ids, n, err);
    if (rc < 0 || n == 0 || !flow->ledger_copy)
        return rc;
    return act_error_set(err, ACT_PARTIAL,
                         "%zu run%s removed, but for the row%s in the table of runs, as the ledger cannot be written: "
                         "the same command again removes %s",
                         n, n == 1 ? " is" : "s are", n == 1 ? "" : "s", n == 1 ? "it" : "them");
}

/* The user may have taken hours to say yes, so that all is asked about again. *out_all: none stays. */
static int remove_and_forget(struct flow *flow, struct flow_prune *p, size_t *out_n, bool *out_all,
                             struct act_error *err)
{
    ask_again(p);
    struct gone gone = {.ids = act_calloc(p->n + 1, sizeof(const char *))};
    p->bytes = p->n_packages = p->n_agents = p->n_environments = p->n_left = p->n_copies = p->n_sent = 0;
    remove_runs(flow, p, &gone);
    int rc = forget_runs(flow, &gone, err);
    *out_n = gone.n;
    *out_all = gone.n == p->n;
    free(gone.ids);
    return rc;
}

static int some_stay(size_t n_stay, size_t n, struct act_error *err)
{
    return act_error_set(err, ACT_PARTIAL, "%zu of %zu runs could not be removed", n_stay, n);
}

int flow_remove(struct flow *flow, struct flow_prune *p, size_t *out_n, struct act_error *err)
{
    size_t n = p->n;
    bool all;
    int rc = remove_and_forget(flow, p, out_n, &all, err);

    return rc == 0 && *out_n < n ? some_stay(n - *out_n, n, err) : rc;
}

int flow_prune(struct flow *flow, struct flow_prune *p, size_t *out_n, struct act_error *err)
{
    bool all;
    int rc = remove_and_forget(flow, p, out_n, &all, err);

    if (rc == 0 && all)
        rc = find_packages_again(flow, p, err);
    if (rc == 0 && all)
        prune_sweep(flow, p, false);
    return rc == 0 && !all ? some_stay(p->n - *out_n, p->n, err) : rc;
}
