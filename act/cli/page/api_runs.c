/* api_runs.c - the list of runs as data: the rows of 'a q --json', and what a table shows besides. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command/command.h"
#include "cli/page/api.h"
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
    json_t *list = json_array();

    for (; text && *text >= FLOW_NOTE_LOW && *text <= FLOW_NOTE_LOW + FLOW_NOTE_HIGH; text++)
        json_array_append_new(list, json_integer(*text - FLOW_NOTE_LOW));
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
    bool is_ordered;
    struct act_strv ids, keys; /* empty: all; those that are shared most */
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

/* Tells whether all runs have to be looked at to know which are shown. */
static bool api_runs_picks(const struct list *l)
{
    return l->filter.n > 0 || l->is_ordered || l->since_s > 0 || l->ids.n > 0;
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
    l->table.cluster = job->cli->options.cluster;
    l->table.max = api_runs_picks(l) ? 0 : l->offset + l->max;
    return rc;
}

static void api_runs_release(struct list *l)
{
    page_filter_words_release(&l->filter);
    act_strv_release(&l->ids);
    act_strv_release(&l->keys);
}

/* ---- the rows */

/* Lends the runs of rows to those who want a list of runs, until they are given back. */
static struct flow_runs api_runs_lend(const struct page_rows *rows)
{
    struct flow_runs runs = {.v = act_calloc(rows->n + 1, sizeof(*runs.v)), .n = rows->n};

    for (size_t i = 0; i < rows->n; i++)
        runs.v[i] = rows->v[i].run;
    return runs;
}

static void api_runs_give_back(struct flow_runs *runs, struct page_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        rows->v[i].run = runs->v[i];
    free(runs->v);
}

/* Reads the notes of rows that have none yet. */
static void api_runs_add_notes(struct flow *flow, struct page_rows *rows)
{
    struct flow_runs runs = api_runs_lend(rows);
    ACT_AUTOFREE json_t **notes = act_calloc(rows->n + 1, sizeof(json_t *));
    struct act_error err;

    if (flow_read_notes(flow, runs.v, runs.n, notes, &err) < 0)
        act_warn("the numbers of runs are not known: %s", act_error_text(&err));
    api_runs_give_back(&runs, rows);
    for (size_t i = 0; i < rows->n; i++) {
        json_decref(rows->v[i].note);
        rows->v[i].note = notes[i];
    }
}

/* Moves the runs into rows. */
static void api_runs_take(struct flow_runs *runs, struct page_rows *out)
{
    out->v = act_calloc(runs->n + 1, sizeof(*out->v));
    for (size_t i = 0; i < runs->n; i++)
        out->v[out->n++] = (struct page_row){.run = runs->v[i], .at = i};
    runs->n = 0;
}

/* Leaves from the first on at most max rows for which keep() holds. Returns for how many it holds. */
static size_t api_runs_leave(const struct list *l, bool (*keep)(const struct list *l, const struct page_row *row),
                             struct page_rows *rows, size_t first, size_t max)
{
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < rows->n; i++) {
        bool holds = !keep || keep(l, &rows->v[i]);
        bool shown = holds && kept >= first && n < max;
        kept += holds;
        if (shown)
            rows->v[n++] = rows->v[i];
        else
            page_row_release(&rows->v[i]);
    }
    rows->n = n;
    return kept;
}

static bool api_runs_wants(const struct list *l, const struct page_row *row)
{
    return row->run.row.created_unix_s >= l->since_s && (l->ids.n == 0 || act_strv_has(&l->ids, row->run.row.id)) &&
           page_filter_passes(&l->filter, row);
}

/* Leaves the rows that are shown, and returns how many there are of that kind. */
static size_t api_runs_pick(struct flow *flow, const struct list *l, size_t total, struct page_rows *rows)
{
    bool with_notes = page_filter_needs_notes(&l->filter) || (l->is_ordered && page_order_needs_notes(&l->order));

    if (with_notes)
        api_runs_add_notes(flow, rows);
    if (api_runs_picks(l))
        total = api_runs_leave(l, api_runs_wants, rows, 0, SIZE_MAX);
    if (l->is_ordered)
        page_order_sort(&l->order, rows);
    api_runs_leave(l, NULL, rows, (size_t)l->offset, (size_t)l->max);
    if (!with_notes)
        api_runs_add_notes(flow, rows);
    return total;
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
    const struct act_strv *keys; /* of small curves */
    const struct diagnose *rules;
    json_t *list;
};

static int api_runs_add_row(void *arg, struct flow_run *run, struct act_error *err)
{
    const struct made_rows *made = arg;
    const json_t *note = made->rows->v[json_array_size(made->list)].note;

    (void)err;
    json_array_append_new(made->list, api_row_json(run, note, made->keys, made->rules));
    return 0;
}

static int api_runs_add_rows(struct flow *flow, struct page_rows *rows, struct made_rows *made, struct act_error *err)
{
    struct flow_runs runs = api_runs_lend(rows);
    int rc = flow_each_spec(flow, &runs, api_runs_add_row, made, err);

    api_runs_give_back(&runs, rows);
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

static int api_runs_make(struct page_job *job, const struct list *l, struct page_rows *rows, size_t total, json_t **out,
                         struct act_error *err)
{
    struct diagnose *rules = api_runs_rules(rows);
    struct made_rows made = {.rows = rows, .rules = rules, .list = json_array()};
    ACT_AUTO(act_strv) keys = {0}, few = {0};

    api_runs_list_keys(rows, &keys);
    act_strv_copy(&few, keys.v, keys.n < SPARKS ? keys.n : SPARKS);
    made.keys = l->keys.n ? &l->keys : &few;
    *out =
        json_pack("{s:I,s:o,s:o}", "total", (json_int_t)total, "runs", made.list, "keys", codec_json_strv_new(&keys));
    int rc = api_runs_add_rows(&job->cli->flow, rows, &made, err);
    diagnose_free(rules);
    job->refresh_s = api_runs_is_incomplete(rows) ? SOON_S : PAGE_REFRESH_S;
    return rc;
}

int api_table_json(struct page_job *job, struct flow_runs *runs, json_t **out, struct act_error *err)
{
    struct page_rows rows = {.v = act_calloc(runs->n + 1, sizeof(*rows.v)), .n = runs->n};

    for (size_t i = 0; i < runs->n; i++)
        rows.v[i].run = runs->v[i];
    api_runs_add_notes(&job->cli->flow, &rows);
    int rc = api_runs_make(job, &(struct list){0}, &rows, runs->total, out, err);
    for (size_t i = 0; i < runs->n; i++) {
        runs->v[i] = rows.v[i].run;
        json_decref(rows.v[i].note);
    }
    free(rows.v);
    return rc;
}

/* Finds the rows that are shown, and how many there are of that kind. */
static int api_runs_find(struct page_job *job, const struct list *l, struct page_rows *rows, size_t *out_total,
                         struct act_error *err)
{
    struct flow *flow = &job->cli->flow;
    ACT_AUTO(flow_runs) runs = {0};
    int rc = flow_list_runs(flow, &l->table, &runs, err);

    if (rc < 0)
        return rc;
    api_runs_take(&runs, rows);
    *out_total = api_runs_pick(flow, l, runs.total, rows);
    return 0;
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
    struct flow_runs runs = api_runs_lend(&rows);
    if (rc == 0)
        rc = flow_gather_notes(&job->cli->flow, &runs, time_ms, out_more, err);
    api_runs_give_back(&runs, &rows);
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
