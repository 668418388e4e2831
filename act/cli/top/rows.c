/* rows.c - which rows there are, in which order. */
#include "cli/top/text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "cli/screen/live.h"
#include "flow/sweep/sweep.h"

/* ---- which runs, in which order */

static bool top_rows_has_word(const struct flow_run *run, const char *word)
{
    const char *const texts[] = {run->row.id,      run->row.name, run->row.cluster, run_state_name(run->status.state),
                                 run->row.command, run->row.tags};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i] && strcasestr(texts[i], word))
            return true;
    return false;
}

/* Tells whether a run has a tag, which is in the ledger as JSON: "sweep=7" means "sweep":"7". */
static bool has_tag(const struct flow_run *run, const char *word)
{
    const char *equals = strchr(word, '=');

    if (!equals || !run->row.tags)
        return false;
    ACT_AUTOFREE char *member = act_sprintf("\"%.*s\":\"%s", (int)(equals - word), word, equals + 1);
    return strcasestr(run->row.tags, member) != NULL;
}

static bool passes(const struct flow_run *run, const char *filter)
{
    ACT_AUTOFREE char *words = act_strdup(filter ? filter : "");
    char *rest = words, *word;
    bool pass = true;

    while ((word = strsep(&rest, " ")))
        pass = pass && (top_rows_has_word(run, word) || has_tag(run, word));
    return pass;
}

static int state_order(enum run_state state)
{
    static const int order[] = {[RUN_RUNNING] = 0,   [RUN_QUEUED] = 1, [RUN_UNKNOWN] = 2,
                                [RUN_COMPLETED] = 3, [RUN_FAILED] = 3, [RUN_CANCELED] = 3};

    return order[state];
}

static double top_rows_use_of(const struct flow_board_run *run)
{
    return run->live && run->run.status.state == RUN_RUNNING ? run->live->busy : -2;
}

static int64_t spoke_of(const struct flow_board_run *run)
{
    bool runs = run->live && run->run.status.state == RUN_RUNNING && run->live->spoke_unix_s > 0;

    return runs ? run->live->spoke_unix_s : INT64_MAX;
}

/* Equal ones stay in the order of the ledger. */
static int top_rows_compare(const struct flow_board_run *x, const struct flow_board_run *y, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_STATE:
        return state_order(x->run.status.state) - state_order(y->run.status.state);
    case TOP_BY_USE:
        return top_rows_use_of(x) > top_rows_use_of(y) ? -1 : top_rows_use_of(x) < top_rows_use_of(y);
    case TOP_BY_SILENCE:
        return spoke_of(x) < spoke_of(y) ? -1 : spoke_of(x) > spoke_of(y);
    case TOP_BY_CLUSTER:
        return strcmp(x->run.row.cluster, y->run.row.cluster);
    default:
        return 0;
    }
}

struct ordered {
    const struct flow_board_run *run;
    size_t at;
    enum top_sort sort;
};

static int by_sort(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    int order = top_rows_compare(x->run, y->run, x->sort);

    return order ? order : x->at < y->at ? -1 : 1;
}

const struct flow_board_run **top_order(const struct flow_board_view *view, const struct top_look *look, size_t *out_n)
{
    ACT_AUTOFREE struct ordered *order = act_calloc(view->n + 1, sizeof(*order));
    const struct flow_board_run **out = act_calloc(view->n + 1, sizeof(*out));
    size_t n = 0;

    for (size_t i = 0; i < view->n; i++)
        if (passes(&view->runs[i]->run, look->filter))
            order[n++] = (struct ordered){view->runs[i], i, look->sort};
    qsort(order, n, sizeof(*order), by_sort);
    for (size_t i = 0; i < n; i++)
        out[i] = order[i].run;
    *out_n = n;
    return out;
}

/* ---- sweeps */

static bool is_unfolded(const struct top_look *look, const char *sweep)
{
    return !look->folds || act_strv_has(&look->unfolded, sweep);
}

/* Returns the row of a folded sweep; NULL: there is none yet. */
static struct top_row *find_folded(struct top_rows *rows, const char *sweep)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->v[i].folded && strcmp(rows->v[i].sweep, sweep) == 0)
            return &rows->v[i];
    return NULL;
}

static void top_rows_fold(struct top_row *row, const struct flow_board_run *run)
{
    ACT_PUSH(row->folded, row->n_folded, run);
    row->counts[run->run.status.state]++;
}

static void top_rows_add_row(struct top_rows *rows, const struct flow_board_run *run, const struct top_look *look)
{
    ACT_AUTOFREE char *sweep = flow_sweep_of(&run->run.row);
    bool folds = sweep && !is_unfolded(look, sweep);
    struct top_row *row = folds ? find_folded(rows, sweep) : NULL;

    if (!row) {
        ACT_PUSH(rows->v, rows->n, (struct top_row){.run = run, .sweep = act_strdup(sweep)});
        row = &rows->v[rows->n - 1];
    }
    if (folds)
        top_rows_fold(row, run);
}

void top_rows(const struct flow_board_view *view, const struct top_look *look, struct top_rows *out)
{
    size_t n;
    ACT_AUTOFREE const struct flow_board_run **runs = top_order(view, look, &n);

    *out = (struct top_rows){0};
    for (size_t i = 0; i < n; i++)
        top_rows_add_row(out, runs[i], look);
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].n_folded == 1) { /* which is as short as the run */
            free(out->v[i].folded);
            out->v[i].folded = NULL;
            out->v[i].n_folded = 0;
        }
}

void top_rows_release(struct top_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->v[i].folded);
        free(rows->v[i].sweep);
    }
    free(rows->v);
    *rows = (struct top_rows){0};
}

void top_toggle(struct top_look *look, const char *sweep)
{
    struct act_strv left = {0};

    for (size_t i = 0; i < look->unfolded.n; i++)
        if (strcmp(look->unfolded.v[i], sweep) != 0)
            act_strv_push(&left, look->unfolded.v[i]);
    if (left.n == look->unfolded.n)
        act_strv_push(&left, sweep);
    act_strv_release(&look->unfolded);
    look->unfolded = left;
}

/* Returns 1 if a lower value of a number is better, -1 if a higher one is, by its name; 0: it does not say. */
static int sign_of(const char *name)
{
    static const struct {
        const char *piece;
        int sign;
    } known[] = {{"loss", 1}, {"err", 1}, {"ppl", 1}, {"perplexity", 1}, {"acc", -1}, {"f1", -1}, {"auc", -1}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcasestr(name, known[i].piece))
            return known[i].sign;
    return 0;
}

static bool is_better(const struct flow_live_number *a, const struct flow_live_number *b)
{
    return strcmp(a->name, b->name) == 0 && (a->last - b->last) * sign_of(b->name) < 0;
}

const struct flow_live_number *top_best(const struct top_row *row)
{
    const struct flow_live_number *best = NULL;

    for (size_t i = 0; i < row->n_folded; i++) {
        const struct flow_live *live = row->folded[i]->live;
        for (size_t k = 0; live && k < live->n_numbers; k++) {
            const struct flow_live_number *number = &live->numbers[k];
            if (isfinite(number->last) && sign_of(number->name) && (!best || is_better(number, best)))
                best = number;
        }
    }
    return best;
}

/* ---- the chosen one */

static bool top_rows_is_of(const struct top_row *row, const char *id)
{
    for (size_t i = 0; i < row->n_folded; i++)
        if (strcmp(row->folded[i]->run.row.id, id) == 0)
            return true;
    return strcmp(row->run->run.row.id, id) == 0;
}

size_t top_find(const struct top_rows *rows, const char *chosen)
{
    for (size_t i = 0; i < rows->n && chosen; i++)
        if (top_rows_is_of(&rows->v[i], chosen))
            return i;
    return 0;
}

void top_move(const struct flow_board_view *view, struct top_look *look, int64_t by)
{
    struct top_rows rows;

    top_rows(view, look, &rows);
    int64_t to = (int64_t)top_find(&rows, look->chosen) + by, last = (int64_t)rows.n - 1;
    if (rows.n > 0)
        act_str_replace(&look->chosen, rows.v[to < 0 ? 0 : to > last ? last : to].run->run.row.id);
    top_rows_release(&rows);
}
