/* runs.c - the runs of the ledger and what has become of them. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/runs/logs_internal.h"
#include "flow/runs/runs.h"
#include "flow/runs/runs_internal.h"
#include "flow/runs/submit_internal.h"
#include "ledger/ledger.h"
#include "platform/platform.h"
#include "run/run.h"

void flow_run_release(struct flow_run *run)
{
    ledger_run_release(&run->row);
    run_spec_release(&run->spec);
}

void flow_runs_release(struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        flow_run_release(&runs->v[i]);
    free(runs->v);
    *runs = (struct flow_runs){0};
}

static void status_of_row(const struct ledger_run *row, struct run_status *out)
{
    struct act_error ignored;
    CODEC_AUTOJSON json_t *json = NULL;

    *out = (struct run_status){.failed_rank = -1, .attempt = 1};
    if (row->status && codec_json_parse(row->status, strlen(row->status), "ledger", &json, &ignored) == 0)
        run_status_from_json(json, out);
    out->state = run_state_from_name(row->state);
}

/* A run is written down before it is submitted. One that its platform still does not know after this time never was:
 * its 'a submit' was killed in between. */
enum { SUBMIT_GRACE_S = 30 };

static void judge_unknown(const struct flow_run *run, struct run_status *now)
{
    if (run->status.state != RUN_QUEUED)
        return;
    *now = run->status;
    if (run->row.created_unix_s + SUBMIT_GRACE_S > act_now_unix_s())
        return;
    now->state = RUN_FAILED;
    now->exit_status = -1;
    now->unsubmitted = true;
    snprintf(now->reason, sizeof(now->reason),
             "never submitted: 'a submit' was interrupted; submit it again");
}

/* A table asks the service only for its own word: what the ranks have said of the same end stays. */
static void keep_words(const struct run_status *old, struct run_status *now)
{
    if (!old->ranks_asked || now->ranks_asked || now->state != old->state || now->attempt != old->attempt)
        return;
    now->ranks_asked = true;
    now->failed_rank = old->failed_rank;
    now->exit_status = old->exit_status;
    memcpy(now->reason, old->reason, sizeof(now->reason));
}

/* A service may say only that a run was cancelled. */
static void keep_abort(const struct run_status *old, struct run_status *now)
{
    now->aborted = now->aborted || old->aborted;
    if (now->aborted && now->state == RUN_CANCELED && !*now->reason)
        snprintf(now->reason, sizeof(now->reason), "aborted");
}

/* Notes a status that was asked for just now. A platform that no longer knows a run does not change what is known. */
static void take_status(struct flow_run *run, struct run_status *now)
{
    const struct run_status *old = &run->status;

    if (now->state == RUN_UNKNOWN && run_state_is_final(old->state))
        return;
    if (now->state == RUN_UNKNOWN &&
        !now->reason[0]) /* it knows of none, not only of a state that has no name here */
        judge_unknown(run, now);
    keep_words(old, now);
    keep_abort(old, now);
    run->changed = run->changed || now->state != old->state || now->started_unix_s != old->started_unix_s ||
                   now->ended_unix_s != old->ended_unix_s || now->attempt != old->attempt ||
                   now->ranks_asked != old->ranks_asked || strcmp(now->reason, old->reason) != 0;
    run->status = *now;
}

struct changes {
    struct ledger_update *v;
    size_t n;
};

static int write_changes(struct ledger *ledger, void *arg, struct act_error *err)
{
    const struct changes *changes = arg;

    return ledger_update(ledger, changes->v, changes->n, err);
}

/* Writes what changed among the runs to the ledger. */
static int store_changes(struct flow *flow, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct ledger_update *updates = act_calloc(n, sizeof(*updates));
    struct act_strv lines = {0};
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        if (!runs[i].changed)
            continue;
        CODEC_AUTOJSON json_t *json = run_status_to_json(&runs[i].status);
        act_strv_take(&lines, codec_json_line(json));
        updates[lines.n - 1] = (struct ledger_update){runs[i].row.id, run_state_name(runs[i].status.state),
                                                      lines.v[lines.n - 1]};
        runs[i].changed = false;
    }
    if (lines.n > 0)
        rc = flow_with_ledger(flow, write_changes, &(struct changes){updates, lines.n}, err);
    act_strv_release(&lines);
    free(updates);
    return rc;
}

int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run, struct act_error *err)
{
    const char *id = run->row.id;
    struct run_status now;
    int rc = platform_status(platform, &id, 1, &now, err);

    if (rc < 0)
        return rc;
    if (now.state == RUN_FAILED && !run->status.ranks_asked && !platform_row(platform)->keeps_record)
        flow_add_last_words(flow, run, &now);
    take_status(run, &now);
    return store_changes(flow, run, 1, err);
}

/* What a table learned of a run that failed is what its service says. Who looks at that one run asks its ranks too. */
static int ask_ranks(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    struct run_status now = run->status;
    struct platform *platform;
    struct act_error why;

    if (now.state != RUN_FAILED || now.ranks_asked || now.unsubmitted)
        return 0;
    if (flow_platform_of(flow, &run->row, &platform, &why) < 0) {
        act_note("cannot find out which rank failed: %s", why.text);
        return 0;
    }
    if (!platform_row(platform)->keeps_record)
        flow_add_last_words(flow, run, &now);
    take_status(run, &now);
    return store_changes(flow, run, 1, err);
}

/* ---- the table */

/* Runs that one call can tell of. */
struct group {
    struct platform *platform;
    struct flow_run **v;
    size_t n;
};

static int refresh_group(const struct group *group, struct act_error *err)
{
    const char **ids = act_calloc(group->n, sizeof(*ids));
    struct run_status *now = act_calloc(group->n, sizeof(*now));

    for (size_t i = 0; i < group->n; i++)
        ids[i] = group->v[i]->row.id;
    int rc = platform_status(group->platform, ids, group->n, now, err);
    for (size_t i = 0; i < group->n && rc == 0; i++)
        take_status(group->v[i], &now[i]);
    free(ids);
    free(now);
    return rc;
}

static void warn_old(size_t n, const struct act_error *err)
{
    act_warn("the state of %zu run%s may be old: %s", n, n == 1 ? "" : "s", err->text);
}

static bool same_cluster(const struct ledger_run *a, const struct ledger_run *b)
{
    return strcmp(a->platform, b->platform) == 0 && strcmp(a->cluster, b->cluster) == 0 &&
           strcmp(a->project, b->project) == 0 && act_streq(a->settings, b->settings);
}

/* Takes the runs of the first one's cluster off the list of active ones. Returns how many there are. */
static size_t split_cluster(struct flow_run **active, size_t *n_active, struct flow_run **out)
{
    const struct ledger_run *first = &active[0]->row;
    size_t n = 0, rest = 0;

    for (size_t i = 0; i < *n_active; i++) {
        if (same_cluster(first, &active[i]->row))
            out[n++] = active[i];
        else
            active[rest++] = active[i];
    }
    *n_active = rest;
    return n;
}

/* Several clusters may be one place: the same runs, one question. */
static struct group *group_of(struct group *groups, size_t *n_groups, struct platform *platform)
{
    for (size_t i = 0; i < *n_groups; i++)
        if (groups[i].platform == platform)
            return &groups[i];
    groups[*n_groups] = (struct group){.platform = platform};
    return &groups[(*n_groups)++];
}

static void add_to_group(struct group *group, struct flow_run *const *runs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ACT_PUSH(group->v, group->n, runs[i]);
}

/* The active runs by the platform they are on. Returns the number of groups; those of a platform that cannot be
 * opened are in none. */
static size_t make_groups(struct flow *flow, struct flow_run **active, size_t n_active, struct group *groups)
{
    struct flow_run **same = act_calloc(n_active + 1, sizeof(*same));
    struct platform *platform;
    struct act_error err;
    size_t n_groups = 0;

    while (n_active > 0) {
        size_t n = split_cluster(active, &n_active, same);
        if (flow_platform_of(flow, &same[0]->row, &platform, &err) < 0)
            warn_old(n, &err);
        else
            add_to_group(group_of(groups, &n_groups, platform), same, n);
    }
    free(same);
    return n_groups;
}

/* Refreshes the active runs, one call for each platform. */
static int refresh_active(struct flow *flow, struct flow_runs *runs, struct act_error *err)
{
    struct flow_run **active = act_calloc(runs->n + 1, sizeof(*active));
    struct group *groups = act_calloc(runs->n + 1, sizeof(*groups));
    size_t n_active = 0;

    for (size_t i = 0; i < runs->n; i++)
        if (!run_state_is_final(runs->v[i].status.state) && !runs->v[i].fresh)
            active[n_active++] = &runs->v[i];
    size_t n_groups = make_groups(flow, active, n_active, groups);
    for (size_t i = 0; i < n_groups; i++) {
        if (refresh_group(&groups[i], err) < 0)
            warn_old(groups[i].n, err);
        free(groups[i].v);
    }
    free(active);
    free(groups);
    return store_changes(flow, runs->v, runs->n, err);
}

static bool wanted(const struct flow_table *table, const struct flow_run *run)
{
    return !table->state || strcmp(run_state_name(run->status.state), table->state) == 0;
}

/* Drops the runs that are in another state than asked for, and those beyond the maximum. */
static void filter(const struct flow_table *table, struct flow_runs *runs)
{
    size_t n = 0;

    runs->total = 0;
    for (size_t i = 0; i < runs->n; i++) {
        bool keep = wanted(table, &runs->v[i]);
        runs->total += keep;
        if (keep && (table->max == 0 || n < (size_t)table->max))
            runs->v[n++] = runs->v[i];
        else
            flow_run_release(&runs->v[i]);
    }
    runs->n = n;
}

static int load_spec(struct flow_run *run, struct act_error *err)
{
    if (!run->row.spec) /* one that only its platform knows */
        return 0;
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_parse(run->row.spec, strlen(run->row.spec), run->row.id, &json, err);

    return rc < 0 ? rc : run_spec_from_json(json, &run->spec, err);
}

/* A damaged row is one row. */
static void load_specs(struct flow_runs *runs)
{
    struct act_error err;

    for (size_t i = 0; i < runs->n; i++) {
        if (load_spec(&runs->v[i], &err) == 0)
            continue;
        act_warn("the ledger's row of run '%s' is damaged, and only a part of it is shown: %s",
                 runs->v[i].row.id, err.text);
        run_spec_release(&runs->v[i].spec);
        runs->v[i].spec = (struct run_spec){0};
    }
}

/* Moves the rows of a platform (NULL: all) into out. */
static void take_rows(struct ledger_runs *rows, const char *platform, struct flow_runs *out)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (!*rows->v[i].id || !*rows->v[i].platform) {
            act_warn("a row of the ledger is damaged, and is not shown: id '%s', platform '%s'",
                     rows->v[i].id, rows->v[i].platform);
            ledger_run_release(&rows->v[i]);
            continue;
        }
        if (platform && strcmp(rows->v[i].platform, platform) != 0) {
            ledger_run_release(&rows->v[i]);
            continue;
        }
        ACT_PUSH(out->v, out->n, (struct flow_run){.row = rows->v[i]});
        status_of_row(&rows->v[i], &out->v[out->n - 1].status);
    }
    free(rows->v);
}

/* What is asked of the ledger. */
struct question {
    struct ledger_query query;
    const char *piece;
    char *named; /* the id of the run whose name holds the piece */
    struct ledger_runs rows;
    size_t beyond; /* how many match that are older than the rows, which were not to be more */
    bool known;
};

/* ---- runs that the ledger does not know */

static void add_foreign(const struct platform_run *run, const struct config *config, struct flow_runs *out)
{
    ACT_PUSH(out->v, out->n,
             (struct flow_run){.row = {.id = act_strdup(run->id),
                                       .cluster = act_strdup(run->cluster),
                                       .platform = act_strdup(config->platform),
                                       .project = act_strdup(config->project_root),
                                       .state = act_strdup(run_state_name(run->status.state)),
                                       .command = run->title    ? act_strdup(run->title)
                                                  : run->argv.n ? flow_command_line(&run->argv)
                                                                : act_strdup("(of another tool)"),
                                       .created_unix_s = run->created_unix_s,
                                       .num_gpu = run->num_gpu},
                               .status = run->status,
                               .fresh = true});
    act_strv_copy(&out->v[out->n - 1].spec.argv, run->argv.v, run->argv.n);
    out->v[out->n - 1].spec.title = act_strdup(run->title);
}

static int by_id(const void *a, const void *b)
{
    struct flow_run *const *x = a, *const *y = b;

    return strcmp((*x)->row.id, (*y)->row.id);
}

static int compare_id(const void *id, const void *run)
{
    return strcmp(id, (*(struct flow_run *const *)run)->row.id);
}

static int newest_first(const void *a, const void *b)
{
    const struct flow_run *x = a, *y = b;

    return x->row.created_unix_s < y->row.created_unix_s   ? 1
           : x->row.created_unix_s > y->row.created_unix_s ? -1
                                                           : 0;
}

static int look_for_id(struct ledger *ledger, void *arg, struct act_error *err)
{
    struct question *q = arg;

    return ledger_has(ledger, q->piece, &q->known, err);
}

/* Whether the ledger has a run that is not among the rows taken of it. It is older than they are, and never shown. */
static bool is_beyond(struct flow *flow, const struct question *rows, const char *id)
{
    struct question q = {.piece = id};
    struct act_error ignored;

    return rows->beyond > 0 && flow_with_ledger(flow, look_for_id, &q, &ignored) == 0 && q.known;
}

/* Notes the fresh states of known runs, and which runs are of other machines. Returns how many those are; they come
 * first then. */
static size_t take_known(struct flow *flow, const struct question *rows, struct platform_runs *recent,
                         struct flow_runs *out)
{
    struct flow_run **known = act_calloc(out->n + 1, sizeof(struct flow_run *));
    size_t foreign = 0;

    for (size_t i = 0; i < out->n; i++)
        known[i] = &out->v[i];
    qsort(known, out->n, sizeof(struct flow_run *), by_id);
    for (size_t i = 0; i < recent->n; i++) {
        struct platform_run *run = &recent->v[i];
        struct flow_run **found = bsearch(run->id, known, out->n, sizeof(struct flow_run *), compare_id);
        if (found && !run->is_partial) {
            take_status(*found, &run->status);
            (*found)->fresh = true;
        } else if (!found && !is_beyond(flow, rows, run->id)) {
            struct platform_run swapped = recent->v[foreign];
            recent->v[foreign++] = *run;
            *run = swapped;
        }
    }
    free(known);
    return foreign;
}

/* What the platform lists: fresh states of known runs, and those of other machines. */
static void merge_recent(struct flow *flow, const struct question *rows, struct platform_runs *recent,
                         const struct config *config, struct flow_runs *out)
{
    size_t foreign = take_known(flow, rows, recent, out);

    for (size_t i = 0; i < foreign; i++)
        add_foreign(&recent->v[i], config, out);
    if (foreign > 0)
        qsort(out->v, out->n, sizeof(*out->v), newest_first);
}

/* Asks the cluster of the command line, or of this project, for the runs that it has. */
static void add_recent(struct flow *flow, const struct flow_table *table, const struct question *rows,
                       struct flow_runs *out)
{
    struct config_request request = {.cluster = table->cluster};
    enum run_state state = run_state_from_name(table->state);
    struct platform_runs recent = {0};
    struct platform *platform;
    struct config config;
    struct act_error err;

    if (config_load(&request, &config, &err) < 0)
        return; /* without a cluster there is none to ask; 'a config check' says what is wrong with one */
    struct ledger_run row = {
        .platform = config.platform, .cluster = config.cluster, .project = config.project_root};
    if (!platform_find(config.platform)->is_here &&
        (!table->platform || act_streq(table->platform, config.platform))) {
        int rc = flow_platform_of(flow, &row, &platform, &err);
        if (rc == 0)
            rc = platform_recent(platform, table->state ? &state : NULL, (size_t)table->max, &recent, &err);
        if (rc < 0)
            act_warn("only runs of this machine are shown: %s", err.text);
        merge_recent(flow, rows, &recent, &config, out);
    }
    platform_runs_release(&recent);
    config_release(&config);
}

static int list_rows(struct ledger *ledger, void *arg, struct act_error *err)
{
    struct question *q = arg;
    size_t n = 0;
    int rc = ledger_list(ledger, &q->query, &q->rows, err);

    if (rc == 0 && q->query.max > 0 && q->rows.n == q->query.max)
        rc = ledger_count(ledger, q->query.cluster, &n, err);
    q->beyond = n > q->rows.n ? n - q->rows.n : 0;
    if (rc < 0)
        ledger_runs_release(&q->rows);
    return rc;
}

/* Of a table of all states the newest rows are enough: the rest is only counted. */
static struct question question_of(const struct flow_table *table)
{
    bool all_count = !table->state && !table->platform;

    return (struct question){.query = {.cluster = table->cluster,
                                       .without_spec = !table->with_spec,
                                       .max = all_count ? (size_t)table->max : 0}};
}

int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err)
{
    struct question q = question_of(table);
    int rc = flow_with_ledger(flow, list_rows, &q, err);

    *out = (struct flow_runs){0};
    if (rc < 0)
        return rc;
    take_rows(&q.rows, table->platform, out);
    if (!table->as_known)
        add_recent(flow, table, &q, out);
    rc = table->as_known ? 0 : refresh_active(flow, out, err);
    if (rc == 0) {
        filter(table, out);
        out->total += q.beyond;
        if (table->with_spec)
            load_specs(out);
    }
    if (rc < 0)
        flow_runs_release(out);
    return rc;
}

/* ---- one run */

static int ambiguous(const char *piece, const struct ledger_runs *rows, struct act_error *err)
{
    enum { SHOWN = 5 };
    struct act_buf names = {0};

    for (size_t i = 0; i < rows->n && i < SHOWN; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", rows->v[i].id);
    int rc = act_error_set(err, ACT_USAGE, "'%s' could be any of %zu runs: %s%s", piece, rows->n, names.data,
                           rows->n > SHOWN ? ", ..." : "");
    act_buf_release(&names);
    return rc;
}

/* The ids that people paste have slashes around them when they come from a folder name. */
static char *clean_piece(const char *piece)
{
    size_t len;

    piece += strspn(piece, " \t/");
    len = strlen(piece);
    while (len > 0 && strchr(" \t/\n", piece[len - 1]))
        len--;
    return act_strndup(piece, len);
}

static int refresh_row(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc = flow_platform_of(flow, &run->row, &platform, err);

    return rc < 0 ? rc : flow_refresh(flow, platform, run, err);
}

static int complete_row(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    int rc = load_spec(run, err);

    if (rc == 0)
        rc = run_state_is_final(run->status.state) ? ask_ranks(flow, run, err) : refresh_row(flow, run, err);
    if (rc < 0)
        flow_run_release(run);
    return rc;
}

static int add_row(struct ledger *ledger, void *row, struct act_error *err)
{
    return ledger_add(ledger, row, err);
}

/* Whether the cluster that a run names is one of its project here. */
static bool knows_cluster(const struct run_spec *spec)
{
    struct config_request request = {.cluster = spec->cluster, .start_dir = spec->project_root};
    struct act_error ignored;

    return config_is_there(&request, &ignored) == 0;
}

/* Takes a run into the ledger, as its platform describes it. One that was submitted on another machine belongs to this
 * project, where its own is not here, and to the cluster that it was found in, where this project has none of its name.
 * found_in NULL: on this machine. */
static int adopt(struct flow *flow, struct platform *platform, const char *id, const struct config *found_in,
                 struct act_error *err)
{
    struct run_spec spec = {0};
    int rc = platform_spec(platform, id, &spec, err);

    if (rc == 0 && found_in && (!spec.project_root || access(spec.project_root, F_OK) < 0))
        act_str_replace(&spec.project_root, found_in->project_root);
    if (rc == 0 && found_in && !knows_cluster(&spec))
        act_str_replace(&spec.cluster, found_in->cluster);
    if (rc == 0) {
        struct ledger_run row = flow_row_of(&spec);
        rc = flow_with_ledger(flow, add_row, &row, err);
        ledger_run_release(&row);
    }
    run_spec_release(&spec);
    return rc;
}

static int adopt_if_there(struct flow *flow, struct platform *platform, const char *id,
                          const struct config *found_in, struct act_error *err)
{
    int rc = adopt(flow, platform, id, found_in, err);

    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

/* Takes the runs of a platform whose id holds the piece; where there are none, the one whose name does. */
static int adopt_matching(struct flow *flow, struct platform *platform, struct question *q,
                          const struct config *found_in, struct act_error *err)
{
    struct act_strv ids = {0};
    size_t n = 0;

    if (run_id_valid(q->piece)) /* need not be searched for */
        return adopt_if_there(flow, platform, q->piece, found_in, err);
    int rc = platform_list(platform, &ids, err);
    for (size_t i = 0; i < ids.n && rc == 0; i++)
        if (strstr(ids.v[i], q->piece)) {
            rc = adopt(flow, platform, ids.v[i], found_in, err);
            n++;
        }
    act_strv_release(&ids);
    if (rc < 0 || n > 0 || !platform_row(platform)->keeps_list)
        return rc;
    rc = flow_find_named(platform, q->piece, &q->named, err);
    return rc == 0 && q->named ? adopt_if_there(flow, platform, q->named, found_in, err) : rc;
}

static int adopt_here(struct flow *flow, struct question *q, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc = flow_platform_here(flow, &platform, err);

    return rc < 0 ? rc : adopt_matching(flow, platform, q, NULL, err);
}

/* Looks on the cluster of the command line, or of this project: another machine may have submitted it. */
static int adopt_from_cluster(struct flow *flow, struct question *q, struct act_error *err)
{
    enum { PIECE_MIN = 4 }; /* less would take half of what is there */
    struct config_request request = {.cluster = flow->cluster};
    struct platform *platform = NULL;
    struct config config;
    int rc = config_load(&request, &config, err);

    if (rc < 0)
        return flow->cluster ? rc : 0; /* without a cluster there is none to look on */
    struct ledger_run row = {
        .platform = config.platform, .cluster = config.cluster, .project = config.project_root};
    if (!platform_find(config.platform)->is_here && strlen(q->piece) >= PIECE_MIN) {
        rc = flow_platform_of(flow, &row, &platform, err);
        if (rc == 0)
            rc = adopt_matching(flow, platform, q, &config, err);
        if (rc < 0 && rc != -ACT_USAGE)
            act_error_prefix(err, "no run '%s' is known here, and cluster '%s' does not tell", q->piece,
                             config.cluster);
    }
    config_release(&config);
    return rc;
}

static int find_piece(struct ledger *ledger, void *arg, struct act_error *err)
{
    struct question *q = arg;

    return ledger_find(ledger, q->named ? q->named : q->piece, &q->rows, err);
}

/* What is wrong with one run is told, and no reason to leave out the others. */
static int adopt_unknown(struct flow *flow, struct platform *platform, const struct act_strv *ids,
                         const struct config *config, struct act_error *err)
{
    size_t n = 0, n_failed = 0;

    for (size_t i = 0; i < ids->n; i++) {
        struct question q = {.piece = ids->v[i]};
        struct act_error why;
        int rc = flow_with_ledger(flow, find_piece, &q, &why);
        if (rc == 0 && q.rows.n == 0)
            rc = adopt(flow, platform, ids->v[i], config, &why);
        if (rc == 0 && q.rows.n == 0)
            n++;
        if (rc < 0)
            act_warn("run '%s' is not in the ledger: %s", ids->v[i], why.text);
        n_failed += rc < 0;
        ledger_runs_release(&q.rows);
    }
    act_note("%zu run%s of cluster '%s' came into the ledger", n, n == 1 ? "" : "s", config->cluster);
    return n_failed ? act_error_set(err, ACT_PARTIAL, "%zu of %zu runs could not be taken into the ledger",
                                    n_failed, ids->n)
                    : 0;
}

int flow_rebuild(struct flow *flow, struct act_error *err)
{
    struct config_request request = {.cluster = flow->cluster};
    struct platform *platform = NULL;
    struct act_strv ids = {0};
    struct config config;
    int rc = config_load(&request, &config, err);

    if (rc < 0)
        return rc;
    struct ledger_run row = {
        .platform = config.platform, .cluster = config.cluster, .project = config.project_root};
    rc = flow_platform_of(flow, &row, &platform, err);
    if (rc == 0 && !platform_row(platform)->keeps_list) {
        rc = platform_list(platform, &ids, err);
        if (rc == 0)
            rc = adopt_unknown(flow, platform, &ids, &config, err);
    }
    act_strv_release(&ids);
    config_release(&config);
    return rc;
}

static int find_rows(struct flow *flow, struct question *q, struct act_error *err)
{
    static int (*const adopters[])(struct flow *, struct question *,
                                   struct act_error *) = {adopt_here, adopt_from_cluster};
    int rc = flow_with_ledger(flow, find_piece, q, err);

    for (size_t i = 0; rc == 0 && q->rows.n == 0 && i < sizeof(adopters) / sizeof(adopters[0]); i++) {
        rc = adopters[i](flow, q, err);
        if (rc == 0)
            rc = flow_with_ledger(flow, find_piece, q, err);
    }
    return rc;
}

/* The one run that piece means, as out->row alone; asked: it may be taken into the ledger from elsewhere. */
static int find_row(struct flow *flow, const char *piece, bool asked, struct flow_run *out,
                    struct act_error *err)
{
    ACT_AUTOFREE char *wanted_piece = clean_piece(piece);
    struct question q = {.piece = wanted_piece};

    *out = (struct flow_run){0};
    if (*wanted_piece == '\0')
        return act_error_set(err, ACT_USAGE, "an empty run id");
    int rc = asked ? find_rows(flow, &q, err) : flow_with_ledger(flow, find_piece, &q, err);
    if (rc == 0 && q.rows.n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "no run '%s'; 'a q' lists the runs", wanted_piece);
    if (rc == 0 && q.rows.n > 1)
        rc = ambiguous(wanted_piece, &q.rows, err);
    if (rc == 0) {
        out->row = q.rows.v[0];
        q.rows.v[0] = (struct ledger_run){0};
        status_of_row(&out->row, &out->status);
    }
    ledger_runs_release(&q.rows);
    free(q.named);
    return rc;
}

int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    int rc = find_row(flow, piece, true, out, err);

    return rc < 0 ? rc : complete_row(flow, out, err);
}

int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    return find_row(flow, piece, false, out, err);
}

/* Whether its platform tells of the run, and what: what goes on must not be forgotten. */
static bool still_tells(struct flow *flow, struct flow_run *run)
{
    struct act_error ignored;
    struct platform *platform;

    return flow_platform_of(flow, &run->row, &platform, &ignored) == 0 &&
           flow_refresh(flow, platform, run, &ignored) == 0;
}

int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err)
{
    bool tells = !run_state_is_final(run->status.state) && still_tells(flow, run);

    *out_was_final = run_state_is_final(run->status.state);
    if (*out_was_final)
        return 0;
    if (tells)
        return act_error_set(err, ACT_USAGE,
                             "cannot forget '%s': its cluster answers, and 'a abort %s' ends it", run->row.id,
                             run->row.id);
    run->status.state = RUN_CANCELED;
    run->status.aborted = run->changed = true;
    snprintf(run->status.reason, sizeof(run->status.reason), "forgotten here; its cluster does not answer");
    int rc = store_changes(flow, run, 1, err);
    if (rc == 0 && flow->ledger_copy)
        rc = act_error_set(err, ACT_FAIL, "cannot forget '%s': the ledger cannot be written", run->row.id);
    return rc;
}

int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err)
{
    struct platform *platform = NULL;
    int rc;

    *out_was_final = run_state_is_final(run->status.state);
    if (*out_was_final)
        return 0;
    rc = flow_platform_of(flow, &run->row, &platform, err);
    if (rc < 0)
        return rc;
    rc = platform_abort(platform, run->row.id, out_was_final, err);
    if (rc == 0 && !*out_was_final)
        run->status.aborted = run->changed = true;
    if (rc == 0)
        rc = flow_refresh(flow, platform, run, err);
    return rc < 0 ? act_error_prefix(err, "cannot abort '%s'", run->row.id) : 0;
}

char *flow_page(struct flow *flow, const struct flow_run *run)
{
    struct platform *platform;
    struct act_error ignored;

    if (run->status.unsubmitted || flow_platform_of(flow, &run->row, &platform, &ignored) < 0)
        return NULL;
    return platform_page(platform, run->row.id);
}

int flow_exit_status(const struct run_status *status)
{
    switch (status->state) {
    case RUN_COMPLETED:
        return 0;
    case RUN_CANCELED:
        return ACT_TERMINATED;
    default:
        return status->exit_status > 0 ? status->exit_status : ACT_FAIL;
    }
}

/* ---- watching */

/* How long a user is ready to wait; {0}: for ever. */
struct limit {
    int64_t seconds, end_ms;
};

static struct limit limit_of(int64_t timeout_s)
{
    return (struct limit){timeout_s, timeout_s ? act_now_monotonic_ms() + timeout_s * 1000 : 0};
}

static bool is_over(const struct limit *limit)
{
    return limit->end_ms && act_now_monotonic_ms() >= limit->end_ms;
}

static int find_patiently(struct flow *flow, const char *piece, const struct limit *limit,
                          struct flow_run *out, struct act_error *err)
{
    struct flow_watch watch = {0};

    for (;;) {
        int rc = flow_watch_took(&watch, flow_find_run(flow, piece, out, err), err);
        if (rc < 0 || !watch.trial_ms)
            return rc;
        if (is_over(limit)) {
            struct act_error why = *err;
            return act_error_set(err, ACT_TIMEOUT, "nobody could tell for %lld s what run '%s' does: %s",
                                 (long long)limit->seconds, piece, why.text);
        }
        flow_watch_pause(&watch, false, limit->end_ms);
    }
}

int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    return find_patiently(flow, piece, &(struct limit){0}, out, err);
}

static int wait_until(struct flow *flow, struct flow_run *run, const struct limit *limit,
                      const struct flow_waiting *how, struct act_error *err)
{
    struct flow_watch watch = {0};
    struct platform *platform;

    if (run_state_is_final(run->status.state))
        return 0;
    int rc = flow_platform_of(flow, &run->row, &platform, err);
    while (rc == 0) {
        if (how->each)
            how->each(how->arg, run);
        flow_watch_pause(&watch, false, limit->end_ms);
        rc = flow_watch_took(&watch, flow_watch_look(&watch, flow, platform, run, err), err);
        if (rc < 0 || run_state_is_final(run->status.state))
            break;
        if (is_over(limit))
            rc = act_error_set(err, ACT_TIMEOUT, "run '%s' is still %s after %lld s", run->row.id,
                               run_state_name(run->status.state), (long long)limit->seconds);
    }
    return rc;
}

int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err)
{
    return wait_until(flow, run, &(struct limit){0}, &(struct flow_waiting){0}, err);
}

int flow_wait_for(struct flow *flow, const char *piece, const struct flow_waiting *how, struct flow_run *out,
                  struct act_error *err)
{
    struct limit limit = limit_of(how->timeout_s);
    int rc = find_patiently(flow, piece, &limit, out, err);

    if (rc < 0)
        return rc;
    rc = wait_until(flow, out, &limit, how, err);
    if (rc < 0)
        flow_run_release(out);
    return rc;
}
