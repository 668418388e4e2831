/* api_runs.c - the list of runs as data: the rows of 'a q --json', and what a table shows besides. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/groups.h"
#include "cli/page/job.h"
#include "cli/page/rows.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"
#include "flow/sweep/grid.h"

enum { DEFAULT_MAX = 200, MOST = 1000, WHY_BYTES = 100, KEYS_SHOWN = 32, SPARKS = 4, SOON_S = 2 };

/* ---- a row */

/* Returns why a run failed, in a few words: by the rules (NULL: none are known) if the agent knows the class. */
static json_t *api_runs_why_json(const struct flow_run *run, const struct diagnose *rules)
{
    const struct run_status *s = &run->status;
    const struct diagnose_rule *rule = rules && *s->class ? diagnose_find(rules, s->class) : NULL;
    char text[WHY_BYTES];

    if (s->state != RUN_FAILED)
        return json_null();
    act_copy_line(text, sizeof(text), rule ? rule->title : s->reason);
    return cli_text_json(text);
}

/* Returns the heights of a small curve, from 0 to FLOW_NOTE_HIGH. */
static json_t *api_runs_spark_json(const char *text)
{
    static json_t *heights[FLOW_NOTE_HIGH + 1]; /* made once: a list has thousands of them */
    json_t *list = json_array();

    for (; text && *text >= FLOW_NOTE_LOW && *text <= FLOW_NOTE_LOW + FLOW_NOTE_HIGH; text++) {
        json_t **height = &heights[*text - FLOW_NOTE_LOW];
        *height = *height ? *height : json_integer(*text - FLOW_NOTE_LOW);
        json_array_append(list, *height);
    }
    return list;
}

/* Adds the last values of numbers, and small curves of those among keys. */
static void api_runs_add_numbers(json_t *row, const json_t *note, const struct act_strv *keys)
{
    json_t *last = json_object(), *spark = json_object(), *number;
    const char *name;

    json_object_foreach(json_object_get(note, "numbers"), name, number)
    {
        json_t *value = json_array_get(number, 0);
        json_object_set_new(last, name, json_is_number(value) ? json_incref(value) : json_null());
        if (keys && act_strv_has(keys, name))
            json_object_set_new(spark, name, api_runs_spark_json(json_string_value(json_array_get(number, 1))));
    }
    json_object_set_new(row, "last", last);
    json_object_set_new(row, "spark", spark);
}

json_t *api_row_json(const struct flow_run *run, const json_t *note, const struct act_strv *keys,
                     const struct diagnose *rules)
{
    json_t *json = cli_run_json(run), *why = json_object_get(note, "why"), *busy = json_object_get(note, "busy");
    const char *sweep = codec_json_str(json_object_get(json, "tags"), FLOW_SWEEP_TAG, NULL);
    bool failed = run->status.state == RUN_FAILED, runs = run->status.state == RUN_RUNNING;

    json_object_set_new(json, "command_line", cli_text_json(run->row.command));
    json_object_set_new(json, "created_s", cli_count_json(run->row.created_unix_s));
    json_object_set_new(json, "elapsed_s", cli_count_json(cli_elapsed_s(&run->status)));
    json_object_set_new(json, "why", failed && json_is_string(why) ? json_incref(why) : api_runs_why_json(run, rules));
    json_object_set_new(json, "sweep", cli_text_json(sweep));
    json_object_set_new(json, "gpus", json_integer(cli_gpus(run)));
    json_object_set_new(json, "gpu_busy", runs && json_is_number(busy) ? json_incref(busy) : json_null());
    api_runs_add_numbers(json, note, keys);
    return json;
}

/* ---- what is asked */

struct list {
    struct flow_table table;
    int64_t max, offset, since_s;
    struct page_filter_words filter;
    struct page_order order;
    bool is_ordered, is_grouped;
    struct page_groups groups;
    struct act_strv ids, keys, open; /* empty: all; those that are shared most; no group */
    size_t n_listed;                 /* the newest runs that are wanted whether or not they are lines */
};

static int api_runs_read_order(const struct page_job *job, struct list *l, struct act_error *err)
{
    const char *sort = page_asked(job, "sort", 0), *direction = page_asked(job, "order", 0);

    l->is_ordered = sort != NULL;
    if (sort && !page_order_read(sort, &l->order))
        return act_error_set(err, ACT_USAGE, "runs cannot be sorted by '%s'", sort);
    if (direction && strcmp(direction, "asc") != 0 && strcmp(direction, "desc") != 0)
        return act_error_set(err, ACT_USAGE, "'order' is asc or desc, not '%s'", direction);
    l->order.descends = act_streq(direction, "desc");
    return 0;
}

static int api_runs_read_group(const struct page_job *job, struct list *l, struct act_error *err)
{
    const char *group = page_asked(job, "group", 0), *name;

    l->is_grouped = group != NULL;
    if (group && !page_groups_read(group, &l->groups))
        return act_error_set(err, ACT_USAGE, "runs are grouped by sweep, day or tag:NAME, not by '%s'", group);
    for (size_t i = 0; (name = page_asked(job, "open", i)); i++)
        act_strv_push(&l->open, name);
    return 0;
}

/* Tells whether all runs have to be looked at to know which are shown. */
static bool api_runs_picks(const struct list *l)
{
    return l->filter.n > 0 || l->is_ordered || l->is_grouped || l->since_s > 0 || l->ids.n > 0;
}

static int api_runs_read(const struct page_job *job, struct list *l, struct act_error *err)
{
    const char *q = page_asked(job, "q", 0), *text;
    int rc = page_asked_labels(job, &l->table.labels, err);

    page_filter_read(q ? q : "", &l->filter);
    for (size_t i = 0; (text = page_asked(job, "id", i)); i++)
        act_strv_push(&l->ids, text);
    for (size_t i = 0; (text = page_asked(job, "key", i)); i++)
        act_strv_push(&l->keys, text);
    if (rc == 0)
        rc = page_asked_number(job, "max", 1, MOST, &l->max, err);
    if (rc == 0)
        rc = page_asked_number(job, "offset", 0, INT32_MAX, &l->offset, err);
    if (rc == 0)
        rc = page_asked_number(job, "since", 0, INT64_MAX, &l->since_s, err);
    if (rc == 0)
        rc = api_runs_read_order(job, l, err);
    if (rc == 0)
        rc = api_runs_read_group(job, l, err);
    l->table.cluster = job->cli->options.cluster;
    l->table.max = api_runs_picks(l) ? 0 : l->offset + l->max;
    l->table.recent = l->filter.n > 0 || l->is_ordered ? 0 : l->offset + l->max;
    return rc;
}

static void api_runs_release(struct list *l)
{
    page_filter_words_release(&l->filter);
    act_strv_release(&l->ids);
    act_strv_release(&l->keys);
    act_strv_release(&l->open);
    page_groups_release(&l->groups);
}

/* ---- the rows */

/* Lends the runs of rows to those who want a list of runs, until they are given back; lines: only those that are shown.
 */
static struct flow_runs api_runs_lend(const struct page_rows *rows, bool lines)
{
    struct flow_runs runs = {.v = act_calloc(rows->n + 1, sizeof(*runs.v))};

    for (size_t i = 0; i < rows->n; i++)
        if (!lines || rows->v[i].is_line)
            runs.v[runs.n++] = rows->v[i].run;
    return runs;
}

static void api_runs_give_back(struct flow_runs *runs, struct page_rows *rows, bool lines)
{
    for (size_t i = 0, n = 0; i < rows->n; i++)
        if (!lines || rows->v[i].is_line)
            rows->v[i].run = runs->v[n++];
    free(runs->v);
}

/* Reads the notes of runs into notes[n], which are NULL. */
static void api_runs_read_notes(struct flow *flow, const struct flow_run *runs, size_t n, json_t **notes)
{
    struct act_error err;

    if (flow_read_notes(flow, runs, n, notes, &err) < 0)
        act_warn("the numbers of runs are not known: %s", act_error_text(&err));
}

/* Reads the notes of rows that have none yet. */
static void api_runs_add_notes(struct flow *flow, struct page_rows *rows)
{
    struct flow_runs runs = api_runs_lend(rows, false);
    ACT_AUTOFREE json_t **notes = act_calloc(rows->n + 1, sizeof(json_t *));

    api_runs_read_notes(flow, runs.v, runs.n, notes);
    api_runs_give_back(&runs, rows, false);
    for (size_t i = 0; i < rows->n; i++) {
        json_decref(rows->v[i].note);
        rows->v[i].note = notes[i];
    }
}

static bool api_runs_wants(const struct list *l, const struct page_row *row)
{
    return row->run.row.created_unix_s >= l->since_s && (l->ids.n == 0 || act_strv_has(&l->ids, row->run.row.id)) &&
           page_filter_passes(&l->filter, row);
}

/* Tells whether the next row in order is kept. */
static bool api_runs_keeps(struct list *l, struct page_row *row)
{
    bool is_needed = page_groups_take(&l->groups, row);

    return is_needed || row->at < l->n_listed;
}

/* The rows that are wanted, while they are found. */
struct api_runs_finding {
    struct flow *flow;
    struct list *list;
    bool with_notes; /* it takes them to know what is wanted */
    struct page_rows *rows;
    size_t at;
};

/* Takes those of a few runs that are wanted; where they are sorted first, all that pass. */
static int api_runs_visit(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct api_runs_finding *f = arg;
    json_t *notes[FLOW_ROWS_FEW] = {0};

    (void)err;
    if (f->with_notes)
        api_runs_read_notes(f->flow, runs, n, notes);
    for (size_t i = 0; i < n; i++) {
        struct page_row row = {.run = runs[i], .note = notes[i], .at = f->at++};
        if (!api_runs_wants(f->list, &row) || !(f->list->is_ordered || api_runs_keeps(f->list, &row))) {
            json_decref(row.note);
            continue;
        }
        flow_load_status(&row.run);
        ACT_PUSH(f->rows->v, f->rows->n, row);
        runs[i] = (struct flow_run){0};
    }
    return 0;
}

/* Sorts the rows, and leaves those that are kept. */
static void api_runs_sort(struct list *l, struct page_rows *rows)
{
    size_t n = 0;

    page_order_sort(&l->order, rows);
    for (size_t i = 0; i < rows->n; i++) {
        if (api_runs_keeps(l, &rows->v[i]))
            rows->v[n++] = rows->v[i];
        else
            page_row_release(&rows->v[i]);
    }
    rows->n = n;
}

/* Finds the rows that are wanted, with their notes, and how many runs there are of that kind. */
static int api_runs_find(struct page_job *job, struct list *l, struct page_rows *rows, size_t *out_total,
                         struct act_error *err)
{
    struct api_runs_finding finding = {.flow = &job->cli->flow,
                                       .list = l,
                                       .rows = rows,
                                       .with_notes = page_filter_needs_notes(&l->filter) ||
                                                     (l->is_ordered && page_order_needs_notes(&l->order))};
    struct flow_rows_count count = {0};
    struct flow_rows *list;

    l->table.without_status = !finding.with_notes && !l->is_ordered;
    l->groups.open = &l->open;
    l->groups.first = (size_t)l->offset;
    l->groups.max = (size_t)l->max;
    int rc = flow_rows_open(finding.flow, &l->table, &list, err);
    if (rc == 0)
        rc = flow_rows_each(list, api_runs_visit, &finding, &count, err);
    flow_rows_close(list);
    if (l->is_ordered)
        api_runs_sort(l, rows);
    if (rc == 0 && !finding.with_notes)
        api_runs_add_notes(finding.flow, rows);
    *out_total = api_runs_picks(l) ? l->groups.runs : count.total;
    return rc;
}

/* ---- the answer */

struct shared {
    const char *key;
    size_t runs, at; /* at: in the order in which runs have them, a loss first */
};

static int api_runs_by_share(const void *a, const void *b)
{
    const struct shared *x = a, *y = b;

    return x->runs != y->runs ? (x->runs < y->runs ? 1 : -1) : x->at < y->at ? -1 : 1;
}

/* Lists the numbers that the rows have, those that most of them have first. */
static void api_runs_list_keys(const struct page_rows *rows, struct act_strv *out)
{
    CODEC_AUTOJSON json_t *counts = json_object();
    struct shared *shared = NULL;
    size_t n = 0;
    const char *name;
    json_t *value;

    for (size_t i = 0; i < rows->n; i++)
        json_object_foreach(json_object_get(rows->v[i].note, "numbers"), name, value)
            json_object_set_new(counts, name, json_integer(codec_json_int(counts, name, 0) + 1));
    json_object_foreach(counts, name, value)
    {
        struct shared one = {name, (size_t)json_integer_value(value), n};
        ACT_PUSH(shared, n, one);
    }
    if (n > 0)
        qsort(shared, n, sizeof(*shared), api_runs_by_share);
    for (size_t i = 0; i < n && i < KEYS_SHOWN; i++)
        act_strv_push(out, shared[i].key);
    free(shared);
}

/* Opens the rules if a row needs them; NULL: none does. */
static struct diagnose *api_runs_rules(const struct page_rows *rows)
{
    struct diagnose *rules = NULL;
    struct act_error ignored;

    for (size_t i = 0; i < rows->n; i++)
        if (*rows->v[i].run.status.class && !json_is_string(json_object_get(rows->v[i].note, "why")))
            return diagnose_open(NULL, &rules, &ignored) == 0 ? rules : NULL;
    return NULL;
}

/* The rows as they become data, one by one. */
struct made_rows {
    const struct page_rows *rows;
    const struct page_groups *groups;
    const struct act_strv *keys; /* of small curves */
    const struct diagnose *rules;
    size_t at;
    json_t *list;
};

static int api_runs_add_row(void *arg, struct flow_run *run, struct act_error *err)
{
    struct made_rows *made = arg;

    (void)err;
    while (!made->rows->v[made->at].is_line)
        made->at++;
    const struct page_row *row = &made->rows->v[made->at++];
    const char *group = page_groups_of(made->groups, row);
    json_t *json = api_row_json(run, row->note, made->keys, made->rules);
    json_object_set_new(json, "group", group ? json_string(group) : json_null());
    json_array_append_new(made->list, json);
    return 0;
}

static int api_runs_add_rows(struct flow *flow, struct page_rows *rows, struct made_rows *made, struct act_error *err)
{
    struct flow_runs runs = api_runs_lend(rows, true);
    int rc = flow_each_brief(flow, &runs, api_runs_add_row, made, err);

    api_runs_give_back(&runs, rows, true);
    return rc;
}

/* Tells whether numbers of these runs are about to be read. */
static bool api_runs_is_incomplete(const struct page_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (flow_is_unseen(&rows->v[i].run, rows->v[i].note))
            return true;
    return false;
}

static json_t *api_runs_better_json(const struct act_strv *keys)
{
    json_t *json = json_object();

    for (size_t i = 0; i < keys->n; i++)
        json_object_set_new(json, keys->v[i], page_better_json(keys->v[i]));
    return json;
}

static int api_runs_make(struct page_job *job, const struct list *l, struct page_rows *rows, size_t total, json_t **out,
                         struct act_error *err)
{
    struct diagnose *rules = api_runs_rules(rows);
    struct made_rows made = {.rows = rows, .groups = &l->groups, .rules = rules, .list = json_array()};
    ACT_AUTO(act_strv) keys = {0}, few = {0};

    api_runs_list_keys(rows, &keys);
    act_strv_copy(&few, keys.v, keys.n < SPARKS ? keys.n : SPARKS);
    made.keys = l->keys.n ? &l->keys : &few;
    *out = json_pack("{s:I,s:I,s:o,s:o,s:o,s:o}", "total", (json_int_t)total, "lines",
                     (json_int_t)(l->is_grouped ? l->groups.lines : total), "runs", made.list, "groups",
                     page_groups_json(&l->groups, rows, &keys), "keys", codec_json_strv_new(&keys), "better",
                     api_runs_better_json(&keys));
    int rc = api_runs_add_rows(&job->cli->flow, rows, &made, err);
    diagnose_free(rules);
    page_job_repeat(job);
    job->refresh_s = api_runs_is_incomplete(rows) && !job->heard ? SOON_S : PAGE_REFRESH_S;
    return rc;
}

/* Moves the newest runs out of the rows. */
static void api_runs_take_newest(struct page_rows *rows, size_t most, size_t total, struct flow_runs *out)
{
    *out = (struct flow_runs){.v = act_calloc(rows->n + 1, sizeof(*out->v)), .total = total};
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->v[i].at >= most)
            continue;
        out->v[out->n++] = rows->v[i].run;
        rows->v[i].run = (struct flow_run){0};
    }
}

int api_newest(struct page_job *job, int64_t max, bool with_data, struct flow_runs *out, json_t **out_data,
               struct act_error *err)
{
    struct list list = {.max = with_data ? max : INT32_MAX, .n_listed = (size_t)max, .is_grouped = with_data};
    struct page_rows rows = {0};
    size_t total = 0;

    list.table = (struct flow_table){.cluster = job->cli->options.cluster, .max = with_data ? 0 : max, .recent = max};
    if (with_data)
        page_groups_read(FLOW_SWEEP_TAG, &list.groups);
    int rc = page_asked_labels(job, &list.table.labels, err);
    if (rc == 0)
        rc = api_runs_find(job, &list, &rows, &total, err);
    if (rc == 0 && with_data)
        rc = api_runs_make(job, &list, &rows, total, out_data, err);
    api_runs_take_newest(&rows, max > 0 ? (size_t)max : SIZE_MAX, total, out);
    page_rows_release(&rows);
    api_runs_release(&list);
    return rc;
}

int page_make_api_runs(struct page_job *job, struct act_error *err)
{
    struct list list = {.max = DEFAULT_MAX};
    struct page_rows rows = {0};
    size_t total = 0;

    int rc = api_runs_read(job, &list, err);
    if (rc == 0)
        rc = api_runs_find(job, &list, &rows, &total, err);
    if (rc == 0)
        rc = api_runs_make(job, &list, &rows, total, &job->json, err);
    page_rows_release(&rows);
    api_runs_release(&list);
    return rc;
}

/* ---- reading their numbers */

/* Reads the numbers of the runs that a list shows. */
static int api_runs_gather(struct page_job *job, struct list *list, int64_t time_ms, bool *out_more,
                           struct act_error *err)
{
    struct page_rows rows = {0};
    size_t total;

    list->table.as_known = true;
    int rc = api_runs_find(job, list, &rows, &total, err);
    struct flow_runs runs = api_runs_lend(&rows, false);
    if (rc == 0)
        rc = flow_gather_notes(&job->cli->flow, &runs, time_ms, out_more, err);
    api_runs_give_back(&runs, &rows, false);
    page_rows_release(&rows);
    return rc;
}

int page_gather(struct page_job *job, struct act_error *err)
{
    enum { TIME_MS = 5000 };
    struct list shown = {.max = DEFAULT_MAX}, newest = {.table.max = MOST, .max = MOST};
    bool more = false;

    int rc = api_runs_read(job, &shown, err);
    if (rc == 0)
        rc = api_runs_gather(job, &shown, TIME_MS, &more, err);
    if (rc == 0 && !more)
        rc = api_runs_gather(job, &newest, TIME_MS, &more, err);
    job->refresh_s = 1; /* as often as somebody asks for the list */
    api_runs_release(&shown);
    return rc;
}
