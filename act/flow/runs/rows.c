/* rows.c - lists of runs whose rows are read as they are needed, newest first: all those of 100,000 runs would be
 * hundreds of megabytes, and with their specifications gigabytes. */
#include <string.h>

#include "base/log.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/jobfile/jobfile.h"
#include "flow/runs/rows.h"
#include "flow/runs/watch.h"

/* ---- which runs are wanted */

static bool rows_has_tags(const struct ledger_run *row, json_t *wanted)
{
    CODEC_AUTOJSON json_t *tags = json_object_size(wanted) ? run_tags_parse(row->tags) : NULL;

    return run_tags_have(tags, wanted);
}

static bool rows_is_wanted_state(const struct flow_table *table, enum run_state state)
{
    return (!table->state || strcmp(run_state_name(state), table->state) == 0) &&
           !(table->active && run_state_is_final(state));
}

static bool rows_is_wanted_row(const struct flow_table *table, const struct ledger_run *row)
{
    return !(table->own && row->found) && (!table->platform || strcmp(row->platform, table->platform) == 0) &&
           (!table->labels.name || act_streq(row->name, table->labels.name)) && rows_has_tags(row, table->labels.tags);
}

bool flow_may_be_wanted(const void *table, const struct ledger_run *row)
{
    enum run_state state = run_state_from_name(row->state);

    return !*row->id || !*row->platform ||
           (rows_is_wanted_row(table, row) && (!run_state_is_final(state) || rows_is_wanted_state(table, state)));
}

bool flow_table_is_labelled(const struct flow_table *table)
{
    return table->labels.name || json_object_size(table->labels.tags) > 0;
}

bool flow_table_has_all(const struct flow_table *table)
{
    return !table->state && !table->platform && !table->own && !table->active && !flow_table_is_labelled(table);
}

/* ---- those that were asked about */

void flow_rows_add_asked(struct flow_rows *rows, struct ledger_run *row)
{
    ACT_GROW(rows->asked.v, rows->asked.n);
    struct flow_run *run = &rows->asked.v[rows->asked.n++];
    *run = (struct flow_run){.row = *row};
    flow_status_of_row(row, &run->status);
}

static int rows_by_id(const void *a, const void *b)
{
    const struct rows_known *x = a, *y = b;

    return strcmp(x->id, y->id);
}

static int rows_compare_id(const void *id, const void *known)
{
    return strcmp(id, ((const struct rows_known *)known)->id);
}

void flow_rows_index(struct flow_rows *rows)
{
    for (; rows->n_known < rows->asked.n; rows->n_known++) {
        struct rows_known one = {act_strdup(rows->asked.v[rows->n_known].row.id), rows->n_known};
        size_t n = rows->n_known;
        ACT_PUSH(rows->known, n, one);
    }
    if (rows->n_known > 0)
        qsort(rows->known, rows->n_known, sizeof(*rows->known), rows_by_id);
}

struct flow_run *flow_rows_find(const struct flow_rows *rows, const char *id)
{
    const struct rows_known *found =
        rows->n_known > 0 ? bsearch(id, rows->known, rows->n_known, sizeof(*rows->known), rows_compare_id) : NULL;

    return found ? &rows->asked.v[found->at] : NULL;
}

/* ---- their specifications */

/* Warns of a damaged row; the others are shown as usual. */
static void rows_warn_damaged(const struct flow_run *run, const struct act_error *err)
{
    act_warn("the ledger's row of run '%s' is damaged, and only a part of it is shown: %s", run->row.id,
             act_error_text(err));
}

static void rows_load_spec(struct flow_run *run, bool quiet)
{
    struct act_error err;

    if (flow_load_spec(run, &err) < 0 && !quiet)
        rows_warn_damaged(run, &err);
}

/* Fills in the specifications that rows lack. */
static int rows_fill_specs(struct flow *flow, struct ledger_run *const *rows, size_t n, struct act_error *err)
{
    int rc = 0;

    for (struct ledger *ledger = NULL; n > 0 && flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_fill_specs(ledger, rows, n, err);
    return rc;
}

/* Leaves the configuration out, which is most of the text. */
static void rows_cut_spec(struct flow_run *run)
{
    char *spec = run->row.spec;

    run->row.spec = spec ? codec_json_without(spec, "config") : NULL;
    free(spec);
}

/* Fills in the specifications of runs; of a table without any, those of job files. The command of a run of a job file
 * looks like one; that of another run may, too. */
static int rows_load_specs(struct flow *flow, const struct flow_table *table, bool quiet, struct flow_run *runs,
                           size_t n, struct act_error *err)
{
    struct flow_run **wanting = act_calloc(n + 1, sizeof(*wanting));
    struct ledger_run **rows = act_calloc(n + 1, sizeof(*rows));
    ACT_AUTOFREE bool *had = act_calloc(n + 1, sizeof(*had));
    size_t n_wanting = 0;

    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *tool = table->with_spec ? NULL : flow_job_tool(runs[i].row.command);
        if (!table->with_spec && !tool)
            continue;
        had[n_wanting] = runs[i].row.spec != NULL;
        wanting[n_wanting] = &runs[i];
        rows[n_wanting++] = &runs[i].row;
    }
    int rc = rows_fill_specs(flow, rows, n_wanting, err);
    for (size_t i = 0; i < n_wanting && rc == 0; i++) {
        if (table->without_config && !had[i])
            rows_cut_spec(wanting[i]);
        rows_load_spec(wanting[i], quiet);
    }
    free(wanting);
    free(rows);
    return rc;
}

int flow_load_specs(struct flow *flow, struct flow_runs *runs, struct act_error *err)
{
    return rows_load_specs(flow, &(struct flow_table){.with_spec = true}, false, runs->v, runs->n, err);
}

/* Reads the part of a specification that lists show. It warns of a damaged one, which the run then lacks. */
static void rows_load_brief(struct flow_run *run)
{
    ACT_AUTOFREE char *text = run->row.spec ? codec_json_only(run->row.spec, run_brief_members) : NULL;
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error err;

    if (!text) /* only its platform knows it, and what that said stays */
        return;
    run_spec_release(&run->spec);
    run->spec = (struct run_spec){0};
    if (codec_json_parse(text, strlen(text), run->row.id, &json, &err) == 0 &&
        run_brief_from_json(json, &run->spec, &err) == 0)
        return;
    run_spec_release(&run->spec);
    run->spec = (struct run_spec){0};
    rows_warn_damaged(run, &err);
}

int flow_each_brief(struct flow *flow, struct flow_runs *runs, flow_brief_visit *each, void *arg, struct act_error *err)
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
            had[i] = few[i].row.spec != NULL;
        }
        rc = rows_fill_specs(flow, rows, n, err);
        for (size_t i = 0; i < n && rc == 0; i++) {
            rows_load_brief(&few[i]);
            rc = each(arg, &few[i], err);
            if (!had[i])
                flow_drop_spec(&few[i]);
        }
    }
    return rc;
}

/* ---- the list */

int flow_rows_open(struct flow *flow, const struct flow_table *table, struct flow_rows **out, struct act_error *err)
{
    struct flow_rows *rows = act_calloc(1, sizeof(*rows));

    *out = rows;
    rows->flow = flow;
    rows->table = *table;
    int rc = flow_rows_ask(rows, err);
    if (rc < 0) {
        flow_rows_close(rows);
        *out = NULL;
    }
    return rc;
}

void flow_rows_close(struct flow_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < rows->n_known; i++)
        free(rows->known[i].id);
    free(rows->known);
    flow_runs_release(&rows->asked);
    flow_runs_release(&rows->foreign);
    free(rows);
}

/* One way through the list. */
struct rows_pass {
    struct flow_rows *rows;
    flow_rows_visit *each; /* NULL: the runs are only counted */
    void *arg;
    size_t n_foreign;        /* of those of the platforms have had their turn */
    size_t n_given, n_total; /* n_given: of those that match, at most the maximum */
    struct flow_run few[FLOW_ROWS_FEW];
    struct flow_run *owner[FLOW_ROWS_FEW]; /* where each of few is kept; NULL: here */
    size_t n_few;
};

/* Shows the runs that wait for it, unless rc is below 0, and puts them back, or releases them. */
static int rows_flush(struct rows_pass *p, int rc, struct act_error *err)
{
    const struct flow_rows *rows = p->rows;

    if (rc == 0 && p->n_few > 0)
        rc = rows_load_specs(rows->flow, &rows->table, rows->said_specs, p->few, p->n_few, err);
    if (rc == 0 && p->n_few > 0)
        rc = p->each(p->arg, p->few, p->n_few, err);
    for (size_t i = 0; i < p->n_few; i++) {
        if (p->owner[i])
            *p->owner[i] = p->few[i];
        else
            flow_run_release(&p->few[i]);
    }
    p->n_few = 0;
    return rc;
}

static bool rows_is_full(const struct rows_pass *p)
{
    return p->rows->table.max > 0 && p->n_given == (size_t)p->rows->table.max;
}

/* Counts a run, and shows it if it is wanted; owner: where it is kept, or NULL. */
static int rows_give(struct rows_pass *p, struct flow_run *run, struct flow_run *owner, struct act_error *err)
{
    const struct flow_table *table = &p->rows->table;
    bool wanted = rows_is_wanted_state(table, run->status.state) && rows_is_wanted_row(table, &run->row);
    bool given = wanted && p->each && !rows_is_full(p);

    p->n_total += wanted;
    p->n_given += wanted && !rows_is_full(p);
    if (!given) {
        if (!owner)
            flow_run_release(run);
        return 0;
    }
    p->owner[p->n_few] = owner;
    p->few[p->n_few++] = *run;
    return p->n_few == FLOW_ROWS_FEW ? rows_flush(p, 0, err) : 0;
}

/* Gives the runs that only platforms know, as far as they are newer than this. */
static int rows_give_foreign(struct rows_pass *p, int64_t created_unix_s, struct act_error *err)
{
    const struct flow_runs *foreign = &p->rows->foreign;
    int rc = 0;

    while (rc == 0 && p->n_foreign < foreign->n && foreign->v[p->n_foreign].row.created_unix_s > created_unix_s) {
        struct flow_run *run = &foreign->v[p->n_foreign++];
        rc = rows_give(p, run, run, err);
    }
    return rc;
}

/* Gives the run of a row, which it takes. */
static int rows_give_row(struct rows_pass *p, struct ledger_run *row, struct act_error *err)
{
    int rc = rows_give_foreign(p, row->created_unix_s, err);

    if (!*row->id || !*row->platform) {
        if (!p->rows->said_rows)
            act_warn("a row of the ledger is damaged, and is not shown: id '%s', platform '%s'", row->id,
                     row->platform);
        ledger_run_release(row);
        return rc;
    }
    struct flow_run *asked = flow_rows_find(p->rows, row->id);
    struct flow_run run = {.row = *row};
    if (rc < 0 || asked)
        ledger_run_release(row);
    if (rc < 0)
        return rc;
    if (asked)
        return rows_give(p, asked, asked, err);
    run.status.state = run_state_from_name(run.row.state);
    run.is_brief = p->rows->table.without_status && run_state_is_final(run.status.state);
    if (!run.is_brief)
        flow_status_of_row(&run.row, &run.status);
    return rows_give(p, &run, NULL, err);
}

/* Reads the next few rows of the ledger, and gives their runs. */
static int rows_give_some(struct rows_pass *p, struct ledger_place *place, struct act_error *err)
{
    const struct flow_table *table = &p->rows->table;
    struct ledger_place next = *place;
    const struct ledger_query query = {.cluster = table->cluster,
                                       .without_spec = true,
                                       .wanted = flow_table_has_all(table) ? NULL : flow_may_be_wanted,
                                       .arg = table,
                                       .few = FLOW_ROWS_FEW,
                                       .place = &next};
    struct ledger_runs found = {0};
    int rc = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(p->rows->flow, &ledger, &rc, err);) {
        next = *place;
        rc = ledger_list(ledger, &query, &found, err);
    }
    *place = next;
    for (size_t i = 0; i < found.n; i++) {
        if (rc == 0)
            rc = rows_give_row(p, &found.v[i], err);
        else
            ledger_run_release(&found.v[i]);
    }
    free(found.v);
    return rc;
}

static int rows_count_all(const struct flow_rows *rows, size_t *out, struct act_error *err)
{
    int rc = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(rows->flow, &ledger, &rc, err);)
        rc = ledger_count(ledger, rows->table.cluster, out, err);
    *out += rows->foreign.n;
    return rc;
}

int flow_rows_each(struct flow_rows *rows, flow_rows_visit *each, void *arg, struct flow_rows_count *out,
                   struct act_error *err)
{
    struct rows_pass pass = {.rows = rows, .each = each, .arg = arg};
    bool has_all = flow_table_has_all(&rows->table); /* their number is known without reading them */
    bool only_counts = has_all && !each;
    const size_t most = rows->table.max > 0 ? (size_t)rows->table.max : SIZE_MAX;
    struct ledger_place place = {0};
    int rc = 0;

    while (rc == 0 && !only_counts && !place.ended && !(has_all && rows_is_full(&pass)))
        rc = rows_give_some(&pass, &place, err);
    if (rc == 0 && place.ended)
        rc = rows_give_foreign(&pass, INT64_MIN, err);
    rc = rows_flush(&pass, rc, err);
    if (rc == 0 && !place.ended)
        rc = rows_count_all(rows, &pass.n_total, err);
    if (only_counts)
        pass.n_given = pass.n_total < most ? pass.n_total : most;
    rows->said_rows = rows->said_rows || (rc == 0 && !only_counts);
    rows->said_specs = rows->said_specs || (rc == 0 && each);
    if (out)
        *out = (struct flow_rows_count){pass.n_given, pass.n_total};
    return rc;
}

static int rows_collect(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct flow_runs *out = arg;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        ACT_PUSH(out->v, out->n, runs[i]);
        runs[i] = (struct flow_run){0};
    }
    return 0;
}

int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out, struct act_error *err)
{
    struct flow_rows_count count = {0};
    struct flow_rows *rows;
    int rc = flow_rows_open(flow, table, &rows, err);

    *out = (struct flow_runs){0};
    if (rc == 0)
        rc = flow_rows_each(rows, rows_collect, out, &count, err);
    out->total = count.total;
    flow_rows_close(rows);
    if (rc < 0)
        flow_runs_release(out);
    return rc;
}
