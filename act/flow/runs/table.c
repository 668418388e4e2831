/* table.c - many runs at once: those of the ledger, with fresh states, and those that only a service knows. */
#include <string.h>

#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/jobfile/jobfile.h"
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

static bool same_cluster(const struct ledger_run *a, const struct ledger_run *b)
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
        if (same_cluster(first, &active[i]->row))
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

static bool has_tags(const struct ledger_run *row, json_t *wanted)
{
    CODEC_AUTOJSON json_t *tags = json_object_size(wanted) ? run_tags_parse(row->tags) : NULL;

    return run_tags_have(tags, wanted);
}

static bool is_wanted_state(const struct flow_table *table, enum run_state state)
{
    return (!table->state || strcmp(run_state_name(state), table->state) == 0) &&
           !(table->active && run_state_is_final(state));
}

static bool is_wanted_row(const struct flow_table *table, const struct ledger_run *row)
{
    return !(table->own && row->found) && (!table->labels.name || act_streq(row->name, table->labels.name)) &&
           has_tags(row, table->labels.tags);
}

static bool wanted(const struct flow_table *table, const struct flow_run *run)
{
    return is_wanted_state(table, run->status.state) && is_wanted_row(table, &run->row);
}

/* Tells whether a row may be wanted when the states are known. A damaged one is taken, and said. */
static bool may_be_wanted(const void *table, const struct ledger_run *row)
{
    enum run_state state = run_state_from_name(row->state);

    return !*row->id || !*row->platform ||
           (is_wanted_row(table, row) && (!run_state_is_final(state) || is_wanted_state(table, state)));
}

static bool is_labelled(const struct flow_table *table)
{
    return table->labels.name || json_object_size(table->labels.tags) > 0;
}

/* Drops the runs that are not asked for, and those beyond the maximum. */
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

/* A damaged row is one row. */
static void load_spec(struct flow_run *run)
{
    struct act_error err;

    if (flow_load_spec(run, &err) < 0)
        act_warn("the ledger's row of run '%s' is damaged, and only a part of it is shown: %s", run->row.id,
                 act_error_text(&err));
}

/* Fills in the specifications that rows lack. */
static int fill_specs(struct flow *flow, struct ledger_run *const *rows, size_t n, struct act_error *err)
{
    int rc = 0;

    for (struct ledger *ledger = NULL; n > 0 && flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_fill_specs(ledger, rows, n, err);
    return rc;
}

/* The command of a run of a job file looks like one; that of another run may, too. */
static int load_specs(struct flow *flow, bool all, struct flow_runs *runs, struct act_error *err)
{
    struct flow_run **wanting = act_calloc(runs->n + 1, sizeof(*wanting));
    struct ledger_run **rows = act_calloc(runs->n + 1, sizeof(*rows));
    size_t n = 0;

    for (size_t i = 0; i < runs->n; i++) {
        struct flow_run *run = &runs->v[i];
        ACT_AUTOFREE char *tool = all ? NULL : flow_job_tool(run->row.command);
        if (!all && !tool)
            continue;
        wanting[n] = run;
        rows[n++] = &run->row;
    }
    int rc = fill_specs(flow, rows, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        load_spec(wanting[i]);
    free(wanting);
    free(rows);
    return rc;
}

/* Leaves the configuration out, which is most of the text. */
static void cut_spec(struct flow_run *run)
{
    char *spec = run->row.spec;

    run->row.spec = spec ? codec_json_without(spec, "config") : NULL;
    free(spec);
}

int flow_each_spec(struct flow *flow, struct flow_runs *runs, flow_spec_visit *each, void *arg, struct act_error *err)
{
    enum { FEW = 64 };
    int rc = 0;

    for (size_t at = 0; at < runs->n && rc == 0; at += FEW) {
        struct flow_run *few = &runs->v[at];
        size_t n = runs->n - at < FEW ? runs->n - at : FEW;
        struct ledger_run *rows[FEW];
        bool had[FEW];
        for (size_t i = 0; i < n; i++) {
            rows[i] = &few[i].row;
            had[i] = rows[i]->spec != NULL;
        }
        rc = fill_specs(flow, rows, n, err);
        for (size_t i = 0; i < n && rc == 0; i++) {
            if (!had[i])
                cut_spec(&few[i]);
            load_spec(&few[i]);
            rc = each(arg, &few[i], err);
            if (!had[i])
                flow_drop_spec(&few[i]);
        }
    }
    return rc;
}

/* Moves the rows of a platform (NULL: all) into out. */
static void take_rows(struct ledger_runs *rows, const char *platform, struct flow_runs *out)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (!*rows->v[i].id || !*rows->v[i].platform) {
            act_warn("a row of the ledger is damaged, and is not shown: id '%s', platform '%s'", rows->v[i].id,
                     rows->v[i].platform);
            ledger_run_release(&rows->v[i]);
            continue;
        }
        if (platform && strcmp(rows->v[i].platform, platform) != 0) {
            ledger_run_release(&rows->v[i]);
            continue;
        }
        ACT_PUSH(out->v, out->n, (struct flow_run){.row = rows->v[i]});
        flow_status_of_row(&rows->v[i], &out->v[out->n - 1].status);
    }
    free(rows->v);
}

/* The rows of a table. */
struct question {
    struct ledger_query query;
    struct ledger_runs rows;
    size_t beyond; /* how many match that are older than the rows, which were not to be more */
    bool is_part;  /* the ledger may have runs that are not among the rows */
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
                                       .name = act_strdup(run->label),
                                       .tags = act_strdup(run->tags),
                                       .created_unix_s = run->created_unix_s,
                                       .num_gpu = run->num_gpu},
                               .status = run->status,
                               .fresh = true});
    act_strv_copy(&out->v[out->n - 1].spec.argv, run->argv.v, run->argv.n);
    out->v[out->n - 1].spec.title = act_strdup(run->title);
}

static int runs_table_by_id(const void *a, const void *b)
{
    struct flow_run *const *x = a, *const *y = b;

    return strcmp((*x)->row.id, (*y)->row.id);
}

static int runs_table_compare_id(const void *id, const void *run)
{
    return strcmp(id, (*(struct flow_run *const *)run)->row.id);
}

static int newest_first(const void *a, const void *b)
{
    const struct flow_run *x = a, *y = b;

    return x->row.created_unix_s < y->row.created_unix_s ? 1 : x->row.created_unix_s > y->row.created_unix_s ? -1 : 0;
}

/* Tells whether the ledger has a run that is not among the rows taken of it: it is never shown. */
static bool is_beyond(struct flow *flow, const struct question *rows, const char *id)
{
    struct act_error ignored;
    bool is_known = false;
    int rc = 0;

    for (struct ledger *ledger = NULL; rows->is_part && flow_next_ledger(flow, &ledger, &rc, &ignored);)
        rc = ledger_has(ledger, id, &is_known, &ignored);
    return rc == 0 && is_known;
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
    qsort(known, out->n, sizeof(struct flow_run *), runs_table_by_id);
    for (size_t i = 0; i < recent->n; i++) {
        struct platform_run *run = &recent->v[i];
        struct flow_run **found = bsearch(run->id, known, out->n, sizeof(struct flow_run *), runs_table_compare_id);
        if (found && !run->is_partial) {
            flow_take_status(*found, &run->status);
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

/* Takes what the platform lists: fresh states of known runs, and the runs of other machines. */
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
    ACT_AUTO(platform_runs) recent = {0};
    struct platform *platform;
    ACT_AUTO(config) config = {0};
    struct act_error err;

    if (config_load(&request, &config, &err) < 0)
        return; /* there is no cluster to ask; 'a config check' reports a broken one */
    if (!platform_find(config.platform)->about.is_here &&
        (!table->platform || act_streq(table->platform, config.platform))) {
        int rc = flow_platform_named(flow, table->cluster, &platform, &err);
        if (rc == 0)
            rc = platform_recent(platform, table->state ? &state : NULL, is_labelled(table) ? 0 : (size_t)table->max,
                                 &recent, &err);
        if (rc < 0)
            act_warn("only runs of this machine are shown: %s", act_error_text(&err));
        merge_recent(flow, rows, &recent, &config, out);
    }
}

static int runs_table_list_rows(struct ledger *ledger, struct question *q, struct act_error *err)
{
    size_t n = 0;
    int rc = ledger_list(ledger, &q->query, &q->rows, err);

    if (rc == 0 && q->query.max > 0 && q->rows.n == q->query.max)
        rc = ledger_count(ledger, q->query.cluster, &n, err);
    q->beyond = n > q->rows.n ? n - q->rows.n : 0;
    q->is_part = q->is_part || q->beyond > 0;
    if (rc < 0)
        ledger_runs_release(&q->rows);
    return rc;
}

/* For a table of all runs the newest rows are enough; the others are only counted. */
static struct question runs_table_question_of(const struct flow_table *table)
{
    bool all_count = !table->state && !table->platform && !table->own && !table->active && !is_labelled(table);

    return (struct question){.query = {.cluster = table->cluster,
                                       .without_spec = true,
                                       .max = all_count ? (size_t)table->max : 0,
                                       .wanted = all_count ? NULL : may_be_wanted,
                                       .arg = table},
                             .is_part = !all_count};
}

int flow_load_specs(struct flow *flow, struct flow_runs *runs, struct act_error *err)
{
    return load_specs(flow, true, runs, err);
}

int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out, struct act_error *err)
{
    struct question q = runs_table_question_of(table);
    int rc = 0;

    *out = (struct flow_runs){0};
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = runs_table_list_rows(ledger, &q, err);
    if (rc < 0)
        return rc;
    take_rows(&q.rows, table->platform, out);
    if (!table->as_known && !table->own)
        add_recent(flow, table, &q, out);
    rc = table->as_known ? 0 : refresh_active(flow, out, err);
    if (rc == 0) {
        filter(table, out);
        out->total += q.beyond;
        rc = load_specs(flow, table->with_spec, out, err);
    }
    if (rc < 0)
        flow_runs_release(out);
    return rc;
}
