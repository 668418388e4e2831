/* table.c - asks the platforms about the runs of a table: for fresh states, and for runs that only a service knows. */
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/runs/rows.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"

/* Runs that one call can tell of. */
struct group {
    struct platform *platform;
    struct flow_run **v;
    const char **ids; /* of these runs, while they are asked about */
    size_t n;
};

static struct platform_query group_question(struct group *group)
{
    group->ids = act_calloc(group->n, sizeof(*group->ids));
    for (size_t i = 0; i < group->n; i++)
        group->ids[i] = group->v[i]->row.id;
    return (struct platform_query){.platform = group->platform,
                                   .ids = group->ids,
                                   .n = group->n,
                                   .out = act_calloc(group->n, sizeof(struct run_status))};
}

static void warn_old(size_t n, const struct act_error *err)
{
    act_warn("the state of %zu run%s may be old: %s", n, n == 1 ? "" : "s", act_error_text(err));
}

bool flow_rows_same_cluster(const struct ledger_run *a, const struct ledger_run *b)
{
    return strcmp(a->platform, b->platform) == 0 && strcmp(a->cluster, b->cluster) == 0 &&
           strcmp(a->project, b->project) == 0 && act_streq(a->place, b->place);
}

/* Takes the runs of the first one's cluster off the list of active ones. Returns how many there are. */
static size_t split_cluster(struct flow_run **active, size_t *n_active, struct flow_run **out)
{
    const struct ledger_run *first = &active[0]->row;
    size_t n = 0, rest = 0;

    for (size_t i = 0; i < *n_active; i++) {
        if (flow_rows_same_cluster(first, &active[i]->row))
            out[n++] = active[i];
        else
            active[rest++] = active[i];
    }
    *n_active = rest;
    return n;
}

/* Several clusters may be one place: the same runs, one question. */
static struct group *runs_table_group_of(struct group *groups, size_t *n_groups, struct platform *platform)
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
static size_t runs_table_make_groups(struct flow *flow, struct flow_run **active, size_t n_active, struct group *groups)
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
            add_to_group(runs_table_group_of(groups, &n_groups, platform), same, n);
    }
    free(same);
    return n_groups;
}

/* Takes the answer, and releases the question. */
static void group_take_answer(struct flow *flow, struct group *group, struct platform_query *q)
{
    for (size_t i = 0; i < group->n && q->rc == 0; i++) {
        flow_add_sent_status(flow, group->v[i], &q->out[i]);
        flow_take_status(group->v[i], &q->out[i]);
    }
    if (q->rc < 0)
        warn_old(group->n, &q->err);
    free(group->ids);
    free(q->out);
    free(group->v);
}

/* Refreshes the active runs, one call for each platform. */
static int refresh_active(struct flow *flow, struct flow_runs *runs, struct act_error *err)
{
    struct flow_run **active = act_calloc(runs->n + 1, sizeof(*active));
    ACT_AUTOFREE struct group *groups = act_calloc(runs->n + 1, sizeof(*groups));
    size_t n_active = 0;

    for (size_t i = 0; i < runs->n; i++)
        if (!run_state_is_final(runs->v[i].status.state) && !runs->v[i].fresh)
            active[n_active++] = &runs->v[i];
    size_t n_groups = runs_table_make_groups(flow, active, n_active, groups);
    ACT_AUTOFREE struct platform_query *questions = act_calloc(n_groups + 1, sizeof(*questions));
    for (size_t i = 0; i < n_groups; i++)
        questions[i] = group_question(&groups[i]);
    platform_ask_all(questions, n_groups);
    for (size_t i = 0; i < n_groups; i++)
        group_take_answer(flow, &groups[i], &questions[i]);
    free(active);
    return flow_store_changes(flow, runs->v, runs->n, err);
}

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
                                       .name = act_strdup(run->label),
                                       .tags = act_strdup(run->tags),
                                       .created_unix_s = run->created_unix_s,
                                       .num_gpu = run->num_gpu},
                               .status = run->status,
                               .fresh = true});
    act_strv_copy(&out->v[out->n - 1].spec.argv, run->argv.v, run->argv.n);
    out->v[out->n - 1].spec.title = act_strdup(run->title);
}

static int newest_first(const void *a, const void *b)
{
    const struct flow_run *x = a, *y = b;

    return x->row.created_unix_s < y->row.created_unix_s ? 1 : x->row.created_unix_s > y->row.created_unix_s ? -1 : 0;
}

/* Reads the row of a run of the ledger; *out stays empty where that has none. */
static int runs_table_get(struct flow *flow, const char *id, struct ledger_runs *out)
{
    struct act_error ignored;
    int rc = 0;

    *out = (struct ledger_runs){0};
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, &ignored);)
        rc = ledger_get(ledger, &id, 1, out, &ignored);
    return rc;
}

/* Takes what a platform's list says of a run that the ledger knows. */
static void runs_table_take_known(struct flow_run *known, struct platform_run *listed)
{
    if (listed->is_partial)
        return;
    flow_take_status(known, &listed->status);
    known->fresh = true;
}

/* Tells whether the list reads this row of the ledger: that of a run of another cluster at the same place is not, and
 * the run is shown as those that the ledger lacks. */
static bool runs_table_reads(const struct flow_table *table, const struct ledger_run *row)
{
    return !flow_table_has_all(table) || !table->cluster || strcmp(row->cluster, table->cluster) == 0;
}

/* Takes a run that a platform lists, and that was not asked about: one that has ended, or one of another machine. */
static void runs_table_take_other(struct flow_rows *rows, struct platform_run *listed, const struct config *config)
{
    ACT_AUTO(ledger_runs) found;

    if (runs_table_get(rows->flow, listed->id, &found) < 0 || found.n == 0 ||
        !runs_table_reads(&rows->table, &found.v[0])) {
        add_foreign(listed, config, &rows->foreign);
        return;
    }
    flow_rows_add_asked(rows, &found.v[0]);
    found.n = 0;
    runs_table_take_known(&rows->asked.v[rows->asked.n - 1], listed);
}

/* Takes what the platform lists: fresh states of known runs, and the runs of other machines. */
static void merge_recent(struct flow_rows *rows, struct platform_runs *recent, const struct config *config)
{
    flow_rows_index(rows);
    for (size_t i = 0; i < recent->n; i++) {
        struct flow_run *known = flow_rows_find(rows, recent->v[i].id);
        if (known)
            runs_table_take_known(known, &recent->v[i]);
        else
            runs_table_take_other(rows, &recent->v[i], config);
    }
    if (rows->foreign.n > 0)
        qsort(rows->foreign.v, rows->foreign.n, sizeof(*rows->foreign.v), newest_first);
}

/* Asks the cluster of the command line, or of this project, for the runs that it has. */
static void add_recent(struct flow_rows *rows)
{
    const struct flow_table *table = &rows->table;
    struct config_request request = {.cluster = table->cluster};
    enum run_state state = run_state_from_name(table->state);
    const int64_t most = table->max ? table->max : table->recent;
    ACT_AUTO(platform_runs) recent = {0};
    struct platform *platform;
    ACT_AUTO(config) config = {0};
    struct act_error err;

    if (config_load(&request, &config, &err) < 0)
        return; /* there is no cluster to ask; 'a config check' reports a broken one */
    if (!platform_find(config.platform)->about.is_here &&
        (!table->platform || act_streq(table->platform, config.platform))) {
        int rc = flow_platform_named(rows->flow, table->cluster, &platform, &err);
        if (rc == 0)
            rc = platform_recent(platform, table->state ? &state : NULL,
                                 flow_table_is_labelled(table) ? 0 : (size_t)most, &recent, &err);
        if (rc < 0)
            act_warn("only runs of this machine are shown: %s", act_error_text(&err));
        merge_recent(rows, &recent, &config);
    }
}

/* Tells whether a row is one to ask about. */
static bool runs_table_is_asked(const void *table, const struct ledger_run *row)
{
    return *row->id && *row->platform && !run_state_is_final(run_state_from_name(row->state)) &&
           flow_may_be_wanted(table, row);
}

/* Reads the rows of the runs to ask about: for a table of all runs, those among its newest ones. */
static int runs_table_read_asked(struct flow_rows *rows, struct act_error *err)
{
    const struct flow_table *table = &rows->table;
    const struct ledger_query query = {.cluster = table->cluster,
                                       .without_spec = true,
                                       .max = flow_table_has_all(table) ? (size_t)table->max : 0,
                                       .wanted = runs_table_is_asked,
                                       .arg = table};
    struct ledger_runs found = {0};
    int rc = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(rows->flow, &ledger, &rc, err);)
        rc = ledger_list(ledger, &query, &found, err);
    for (size_t i = 0; rc == 0 && i < found.n; i++)
        flow_rows_add_asked(rows, &found.v[i]);
    free(found.v);
    return rc;
}

int flow_rows_ask(struct flow_rows *rows, struct act_error *err)
{
    int rc = rows->table.as_known ? 0 : runs_table_read_asked(rows, err);

    if (rc == 0 && !rows->table.as_known && !rows->table.own)
        add_recent(rows);
    if (rc == 0)
        rc = refresh_active(rows->flow, &rows->asked, err);
    flow_rows_index(rows);
    return rc;
}
