/* text.c - makes the lines. From the top: what they are about, the clusters, the GPUs of this machine, the runs, more
 * about the chosen run, keys. On few rows only the runs are left. */
#include "cli/top/text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/print/gpus.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "codec/json.h"
#include "draw/draw.h"

enum {
    CLUSTER_ROWS = 8, /* rows of a screen that show clusters at all */
    GPU_ROWS = 20,    /* and the GPUs of this machine */
    CHOSEN_ROWS = 16, /* and more about the chosen run */
    CHOSEN_LINES = 5,
    SILENT_S = 60, /* then it is said for how long */
    BAR = 5,
    SPARK = 8,
    LONG_SPARK = 24,
    COLUMNS = 9,
    FOLLOWED = 8, /* of a folded sweep: each costs reading its log */
};

const char *top_sort_name(enum top_sort sort)
{
    static const char *const names[TOP_SORTS] = {
        [TOP_BY_STATE] = "state",     [TOP_BY_TIME] = "newest",     [TOP_BY_USE] = "use",
        [TOP_BY_SILENCE] = "silence", [TOP_BY_CLUSTER] = "cluster",
    };

    return names[sort];
}

/* ---- lines */

static void add_cut_line(struct act_strv *lines, const struct top_look *look, const char *text, enum cli_cut cut)
{
    struct act_buf line = {0};

    cli_add_line(&line, text, look->columns, cut);
    act_strv_take(lines, line.data ? act_buf_steal(&line) : act_strdup(""));
}

ACT_PRINTF(3, 4)
static void add_line(struct act_strv *lines, const struct top_look *look, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *text = act_vsprintf(fmt, ap);
    va_end(ap);
    add_cut_line(lines, look, text, CLI_CUT_WORDS);
}

static void top_text_add_table(struct act_strv *lines, const struct act_buf *text)
{
    ACT_AUTOFREE char *copy = act_strdup(text->data ? text->data : "");
    char *rest = copy, *line;

    while ((line = strsep(&rest, "\n")))
        if (rest)
            act_strv_push(lines, line);
}

static void top_text_add_head(const struct flow_board_view *view, const struct top_look *look, struct act_strv *lines)
{
    size_t counts[RUN_UNKNOWN + 1] = {0};
    char now[ACT_TIME_TEXT];
    ACT_AUTO(act_buf) text = {0};

    act_time_to_local(look->now_unix_s, now);
    for (size_t i = 0; i < view->n; i++)
        counts[view->runs[i]->run.status.state]++;
    act_buf_addf(&text, "%zu running, %zu queued, %zu failed", counts[RUN_RUNNING], counts[RUN_QUEUED],
                 counts[RUN_FAILED]);
    if (look->filter)
        act_buf_addf(&text, "  /%s", look->filter);
    if (view->n < view->total)
        act_buf_addf(&text, "  the newest %zu of %zu", view->n, view->total);
    if (look->sort != TOP_BY_STATE)
        act_buf_addf(&text, "  sorted by %s", top_sort_name(look->sort));
    act_buf_addf(&text, "  %s", strlen(now) > 11 ? now + 11 : now);
    add_cut_line(lines, look, text.data, CLI_CUT_PARTS);
}

/* ---- clusters */

/* Adds "3/8": how many of all are idle. */
static void push_share(struct act_strv *cells, bool known, int idle, int all)
{
    if (!known || idle < 0 || all < 0)
        act_strv_push(cells, "-");
    else
        act_strv_pushf(cells, "%d/%d", idle, all);
}

/* Tells whether of all clusters that have told what is idle, none has GPUs, so that all of them count processors. */
static bool have_no_gpus(const struct flow_board_view *view)
{
    bool any = false;

    for (size_t i = 0; i < view->n_clusters; i++) {
        const struct flow_board_cluster *c = view->clusters[i];
        if (c->has_summary && c->summary.has_gpus)
            return false;
        any = any || c->has_summary;
    }
    return any;
}

/* The note says "CPUs" beside clusters that have GPUs. */
static void push_cluster(struct act_strv *cells, const struct flow_board_cluster *c, bool no_gpus)
{
    const struct platform_pool *t = &c->summary.total;

    act_strv_push(cells, c->name);
    push_share(cells, c->has_summary, t->nodes_idle, t->nodes);
    push_share(cells, c->has_summary, t->gpus_idle, t->gpus);
    cli_push_count(cells, c->has_summary ? t->jobs_queued : -1);
    act_strv_pushf(cells, "%zu+%zu", c->running, c->queued);
    act_strv_push(cells, c->error                                             ? c->error
                         : !c->asked                                          ? "..."
                         : c->has_summary && !c->summary.has_gpus && !no_gpus ? "CPUs"
                                                                              : "-");
}

static void add_clusters(const struct flow_board_view *view, const struct top_look *look, size_t most,
                         struct act_strv *lines)
{
    bool no_gpus = have_no_gpus(view);
    const struct cli_column columns[] = {
        {"CLUSTER", 'l', .rank = 0, .min = 8},
        {"IDLE NODES", 'r', .rank = 2},
        {no_gpus ? "IDLE CPUS" : "IDLE GPUS", 'r', .rank = 3},
        {"QUEUE", 'r', .rank = 4},
        {"YOURS", 'r', .rank = 5},
        {"NOTE", 'l', .rank = 1, .min = 8, .cut = CLI_CUT_WORDS},
    };
    enum { N = sizeof(columns) / sizeof(columns[0]) };
    size_t n = view->n_clusters <= most ? view->n_clusters : most - 1;
    ACT_AUTO(act_strv) cells = {0};
    ACT_AUTO(act_buf) text = {0};

    if (view->n_clusters == 0)
        return;
    for (size_t i = 0; i < n; i++)
        push_cluster(&cells, view->clusters[i], no_gpus);
    cli_table_text(columns, N, &cells, look->columns, look->coloured, &text);
    top_text_add_table(lines, &text);
    if (n < view->n_clusters)
        add_line(lines, look, "and %zu more clusters", view->n_clusters - n);
    act_strv_push(lines, "");
}

/* ---- GPUs */

static void top_text_add_gpus(const struct platform_gpus *gpus, const struct top_look *look, size_t most,
                              struct act_strv *lines)
{
    size_t n = gpus->n <= most ? gpus->n : most - 1;
    ACT_AUTO(act_strv) cells = {0};
    ACT_AUTO(act_buf) text = {0};

    if (gpus->n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        cli_push_gpu(&cells, &gpus->v[i]);
    cli_table_text(cli_gpu_columns, CLI_GPU_COLUMNS, &cells, look->columns, look->coloured, &text);
    top_text_add_table(lines, &text);
    if (n < gpus->n)
        add_line(lines, look, "and %zu more GPUs; 'a summary' shows all", gpus->n - n);
    if (gpus->note)
        add_line(lines, look, "%s", gpus->note);
    act_strv_push(lines, "");
}

/* ---- runs */

static int64_t since(const struct top_look *look, int64_t unix_s)
{
    return look->now_unix_s > unix_s ? look->now_unix_s - unix_s : 0;
}

/* Adds how long a run runs, waits, or has been over. */
static void push_age(struct act_strv *cells, const struct flow_run *run, const struct top_look *look)
{
    const struct run_status *s = &run->status;
    int64_t from = s->ended_unix_s ? s->ended_unix_s : s->started_unix_s ? s->started_unix_s : run->row.created_unix_s;
    char text[ACT_UNIT_TEXT];

    act_duration_to_text(since(look, from), text);
    act_strv_push(cells, text);
}

/* Returns what a run uses, and means over those of a folded sweep that run. */
static struct flow_live top_text_use_of(const struct top_row *row)
{
    struct flow_live use = {.busy = -1, .memory = -1};
    double busy = 0, memory = 0;
    int n_busy = 0, n_memory = 0;

    for (size_t i = 0; i < (row->folded ? row->n_folded : 1); i++) {
        const struct flow_board_run *run = row->folded ? row->folded[i] : row->run;
        const struct flow_live *live = run->live;
        if (!live || run->run.status.state != RUN_RUNNING)
            continue;
        use.has_gpus = use.has_gpus || live->has_gpus;
        busy += live->busy >= 0 ? live->busy : 0;
        memory += live->memory >= 0 ? live->memory : 0;
        n_busy += live->busy >= 0;
        n_memory += live->memory >= 0;
    }
    use.busy = n_busy ? busy / n_busy : -1;
    use.memory = n_memory ? memory / n_memory : -1;
    return use;
}

/* Tells whether processors are all that runs use, as far as is known: then the column is about those. */
static bool use_is_of_cpus(const struct top_row *rows, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        const struct flow_live use = top_text_use_of(&rows[i]);
        if (use.busy >= 0 && use.has_gpus)
            return false;
        any = any || use.busy >= 0;
    }
    return any;
}

/* Adds "##... 40%"; "cpu  40%" of processors in a column about GPUs. */
static void push_use(struct act_strv *cells, const struct flow_live *live, bool of_cpus, const struct top_look *look)
{
    ACT_AUTO(act_buf) bar = {0};

    if (!live || live->busy < 0) {
        act_strv_push(cells, "-");
        return;
    }
    int full = (int)lround(fmin(live->busy, 1) * BAR);
    bool has_bar = live->has_gpus || of_cpus;
    for (int i = 0; has_bar && i < BAR; i++)
        act_buf_adds(&bar, i < full ? (look->plain ? "#" : "\u2588") : look->plain ? "." : "\u2591");
    act_buf_addf(&bar, "%*s%4.0f%%", has_bar ? 0 : -BAR, has_bar ? "" : "cpu", fmin(live->busy, 9.99) * 100);
    act_strv_push(cells, bar.data);
}

static void push_memory(struct act_strv *cells, const struct flow_live *live)
{
    if (live && live->memory >= 0)
        act_strv_pushf(cells, "%.0f%%", fmin(live->memory, 9.99) * 100);
    else
        act_strv_push(cells, "-");
}

static void add_number(struct act_buf *out, const struct flow_live_number *number, size_t spark,
                       const struct top_look *look)
{
    char value[DRAW_NUMBER_TEXT];

    if (isfinite(number->last))
        draw_number(number->last, DRAW_NUMBER, value);
    else
        snprintf(value, sizeof(value), "%s", isnan(number->last) ? "NaN" : number->last > 0 ? "inf" : "-inf");
    act_buf_addf(out, "%s%s %s", out->len ? "  " : "", number->name, value);
    if (spark > 0 && number->curve.n > 1) {
        act_buf_adds(out, "  ");
        draw_spark(&number->curve, spark, look->plain, out);
    }
}

static void push_numbers(struct act_strv *cells, const struct flow_live *live, const struct top_look *look)
{
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0; live && i < live->n_numbers; i++)
        add_number(&text, &live->numbers[i], i == 0 ? SPARK : 0, look);
    act_strv_push(cells, text.len ? text.data : "-");
}

static void top_text_add_said(struct act_buf *out, const struct flow_live *live, const struct top_look *look)
{
    char age[ACT_UNIT_TEXT];
    int64_t silent_s = live->spoke_unix_s > 0 ? since(look, live->spoke_unix_s) : 0;

    if (!live->line)
        return;
    ACT_AUTOFREE char *progress = numbers_progress(live->line);
    act_duration_to_text(silent_s, age);
    if (live->spoke_unix_s > 0 && (!progress || silent_s >= SILENT_S))
        act_buf_addf(out, silent_s >= SILENT_S ? "silent for %s" : "%s ago", age);
    if (live->held_up_by >= 0)
        act_buf_addf(out, "%srank %d holds it up", out->len ? ", " : "", live->held_up_by);
    act_buf_addf(out, "%s%s", out->len ? ": " : "", progress ? progress : live->line);
}

/* Returns the line that explains a failure, where "rank 0 exited with status 1: " stands before it. */
static const char *what_explains(const char *reason)
{
    static const char exited[] = " exited with status ";
    const char *status = act_starts_with(reason, "rank ") ? strstr(reason, exited) : NULL;
    const char *colon = status ? status + strlen(exited) + strspn(status + strlen(exited), "0123456789") : "";

    return act_starts_with(colon, ": ") ? colon + strlen(": ") : reason;
}

/* Adds what a run says; if it does not run, why. */
static void push_said(struct act_strv *cells, const struct flow_board_run *run, const struct top_look *look)
{
    const struct run_status *s = &run->run.status;
    ACT_AUTO(act_buf) text = {0};

    if (s->state == RUN_RUNNING && run->live)
        top_text_add_said(&text, run->live, look);
    else if (*s->reason)
        act_buf_adds(&text, look->columns > 0 ? what_explains(s->reason) : s->reason);
    act_strv_push(cells, text.len ? text.data : "-");
}

/* "python3 -u train.py --lr 3" is more easily known as "train.py --lr 3". */
static const char *without_interpreter(const char *command)
{
    static const char *const names[] = {"python", "python3", "bash", "sh"};
    const char *at = command;
    size_t len = strcspn(at, " ");
    bool is_one = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_one = is_one || (strlen(names[i]) == len && strncmp(at, names[i], len) == 0);
    if (!is_one)
        return command;
    for (at += len + (at[len] == ' '); *at == '-'; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' '))
        ;
    return *at ? at : command;
}

/* Adds what a run is called; a long command leaves room for what the run says. */
static void push_name(struct act_strv *cells, const struct ledger_run *row, const struct top_look *look)
{
    enum { NAMES = 4 }; /* would fit beside one another */
    const char *name = row->name ? row->name : look->columns > 0 ? without_interpreter(row->command) : row->command;
    struct act_buf cut = {0};

    cli_add_line(&cut, name, look->columns / NAMES, CLI_CUT_WORDS);
    act_strv_take(cells, cut.data ? act_buf_steal(&cut) : act_strdup(""));
}

static void push_run(struct act_strv *cells, const struct flow_board_run *run, bool chosen, bool of_cpus,
                     const struct top_look *look)
{
    const struct ledger_run *row = &run->run.row;
    const struct flow_live *live = run->run.status.state == RUN_RUNNING ? run->live : NULL;
    const char *id = look->columns > 0 ? cli_short_id(row->id) : row->id;

    act_strv_pushf(cells, "%s%s", look->columns == 0 ? "" : chosen ? ">" : " ", id);
    act_strv_push(cells, run_state_name(run->run.status.state));
    push_age(cells, &run->run, look);
    act_strv_push(cells, row->cluster);
    push_use(cells, live, of_cpus, look);
    push_memory(cells, live);
    push_numbers(cells, live, look);
    push_name(cells, row, look);
    push_said(cells, run, look);
}

/* Adds "4 done  6 running  1 failed", without those that are none. */
static void top_text_add_counts(struct act_buf *out, const struct top_row *row)
{
    static const struct {
        enum run_state state;
        const char *what;
    } counted[] = {{RUN_COMPLETED, "done"}, {RUN_RUNNING, "running"},   {RUN_FAILED, "failed"},
                   {RUN_QUEUED, "queued"},  {RUN_CANCELED, "canceled"}, {RUN_UNKNOWN, "not known"}};

    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
        if (row->counts[counted[i].state])
            act_buf_addf(out, "%s%zu %s", out->len ? "  " : "", row->counts[counted[i].state], counted[i].what);
}

/* Returns what the runs are called without their numbers: "first" for "first.12". New string. */
static char *name_of_sweep(const struct top_row *row)
{
    const char *name = row->run->run.row.name ? row->run->run.row.name : row->sweep, *dot = strrchr(name, '.');

    return dot ? act_strndup(name, (size_t)(dot - name)) : act_strdup(name);
}

static void push_sweep(struct act_strv *cells, const struct top_row *row, bool chosen, bool of_cpus,
                       const struct top_look *look)
{
    const struct flow_live_number *best = top_best(row);
    const struct flow_live use = top_text_use_of(row);
    struct flow_run oldest = row->run->run;
    ACT_AUTO(act_buf) counts = {0};
    ACT_AUTO(act_buf) number = {0};

    for (size_t i = 0; i < row->n_folded; i++)
        if (row->folded[i]->run.row.created_unix_s < oldest.row.created_unix_s)
            oldest = row->folded[i]->run;
    act_strv_pushf(cells, "%s%s", look->columns == 0 ? "sweep " : chosen ? ">" : " ", row->sweep);
    act_strv_pushf(cells, "%zud %zur %zuf", row->counts[RUN_COMPLETED], row->counts[RUN_RUNNING],
                   row->counts[RUN_FAILED]);
    push_age(cells, &oldest, look);
    act_strv_push(cells, row->run->run.row.cluster);
    push_use(cells, &use, of_cpus, look);
    push_memory(cells, &use);
    if (best)
        add_number(&number, best, 0, look);
    act_strv_pushf(cells, "%s%s", best ? number.data : "-", best ? "  best" : "");
    act_strv_take(cells, name_of_sweep(row));
    top_text_add_counts(&counts, row);
    act_strv_pushf(cells, "sweep of %zu: %s", row->n_folded, counts.data);
}

/* Returns the columns that something is known for. Those for which something was once known are shown until the
 * width is another one: a column that comes and goes with what runs say just now would move all others. */
static unsigned known_columns(const struct cli_column *columns, const struct act_strv *cells, struct top_look *look)
{
    look->known = look->known_for == look->columns ? look->known : 0;
    look->known_for = look->columns;
    for (size_t k = 0; k < cells->n; k++)
        if (columns[k % COLUMNS].rank == 0 || strcmp(cells->v[k], "-") != 0)
            look->known |= 1U << k % COLUMNS;
    return look->known;
}

/* Leaves out the columns that nothing is known for, so that there is room for others. Returns how many are left. */
static size_t drop_empty(struct cli_column *columns, struct act_strv *cells, struct top_look *look)
{
    unsigned known = known_columns(columns, cells, look);
    ACT_AUTO(act_strv) kept = {0};
    size_t left = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        if (known & 1U << i)
            columns[left++] = columns[i];
    for (size_t k = 0; k < cells->n; k++)
        if (known & 1U << k % COLUMNS)
            act_strv_push(&kept, cells->v[k]);
    act_strv_release(cells);
    *cells = kept;
    kept = (struct act_strv){0};
    return left;
}

static void rows_text(const struct top_row *rows, size_t n, struct top_look *look, struct act_buf *out)
{
    bool of_cpus = use_is_of_cpus(rows, n);
    struct cli_column columns[COLUMNS] = {
        {"RUN", 'l', .rank = 0, .wide = 9},
        {"STATE", 'l', .rank = 0, .wide = 9, .is_state = true},
        {"AGE", 'r', .rank = 2, .wide = 6},
        {"CLUSTER", 'l', .rank = 7, .min = 7, .wide = 7},
        {of_cpus ? "CPU" : "GPU", 'l', .rank = 3, .wide = 10},
        {"MEM", 'r', .rank = 6, .wide = 4},
        {"NUMBERS", 'l', .rank = 4, .min = 12, .wide = 12, .cut = CLI_CUT_PARTS},
        {"NAME", 'l', .rank = 1, .min = 8, .wide = 8, .cut = CLI_CUT_WORDS},
        {"SAYS", 'l', .rank = 5, .min = 12, .wide = 12, .cut = CLI_CUT_WORDS},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < n; i++) {
        bool chosen = act_streq(rows[i].run->run.row.id, look->chosen);
        if (rows[i].folded)
            push_sweep(&cells, &rows[i], chosen, of_cpus, look);
        else
            push_run(&cells, rows[i].run, chosen, of_cpus, look);
    }
    size_t left = look->columns > 0 ? drop_empty(columns, &cells, look) : COLUMNS;
    cli_table_text(columns, left, &cells, look->columns, look->coloured, out);
}

/* Returns the line that keys are for, inverted and without colours of its own. */
static char *inverse(const char *line)
{
    ACT_AUTO(act_buf) text = {0};

    act_buf_adds(&text, "\033[7m");
    for (const char *at = line; *at; at++) {
        if (*at == '\033')
            at += strcspn(at, "m");
        else
            act_buf_addc(&text, *at);
    }
    act_buf_adds(&text, "\033[0m");
    return act_buf_steal(&text);
}

/* Scrolls so that the chosen run is among the shown ones. */
static size_t scroll(struct top_look *look, size_t n, size_t chosen, size_t shown)
{
    if (chosen < look->first)
        look->first = chosen;
    if (chosen >= look->first + shown)
        look->first = chosen - shown + 1;
    if (look->first + shown > n)
        look->first = n > shown ? n - shown : 0;
    return n - look->first < shown ? n - look->first : shown;
}

static void push_seen(struct act_strv *seen, const struct flow_board_run *run)
{
    if (run->run.status.state == RUN_RUNNING)
        act_strv_push(seen, run->run.row.id);
}

static void push_row_seen(struct act_strv *seen, const struct top_row *row)
{
    size_t before = seen->n;

    if (!row->folded) {
        push_seen(seen, row->run);
        return;
    }
    for (size_t i = 0; i < row->n_folded && seen->n - before < FOLLOWED; i++)
        push_seen(seen, row->folded[i]);
}

/* Adds the rows in room lines; look->rows 0: in as many as it takes. */
static void add_rows(const struct top_rows *rows, size_t chosen, size_t room, struct top_look *look,
                     struct act_strv *lines, struct act_strv *out_seen)
{
    bool has_head = look->rows == 0 || room > 1;
    size_t shown = look->rows == 0 ? rows->n : scroll(look, rows->n, chosen, room - has_head);
    ACT_AUTO(act_buf) text = {0};
    ACT_AUTO(act_strv) table = {0};

    rows_text(rows->v + look->first, shown, look, &text);
    top_text_add_table(&table, &text);
    for (size_t i = !has_head; i < table.n; i++) {
        bool inverted = look->rows > 0 && i == chosen - look->first + 1;
        act_strv_take(lines, inverted ? inverse(table.v[i]) : act_strdup(table.v[i]));
    }
    for (size_t i = 0; i < shown; i++)
        push_row_seen(out_seen, &rows->v[look->first + i]);
}

/* ---- more about the chosen run */

/* Adds "ID  NAME  on CLUSTER  KEY=VALUE". */
static void top_text_add_labels(struct act_buf *out, const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    const char *key;
    json_t *value;

    act_buf_addf(out, "%s%s%s  on %s", row->id, row->name ? "  " : "", row->name ? row->name : "", row->cluster);
    json_object_foreach(tags, key, value)
    {
        act_buf_addf(out, "  %s=%s", key, json_string_value(value));
    }
}

static void add_chosen(const struct flow_board_run *run, const struct top_look *look, struct act_strv *lines)
{
    const struct ledger_run *row = &run->run.row;
    ACT_AUTO(act_buf) numbers = {0};
    ACT_AUTO(act_buf) said = {0};
    ACT_AUTO(act_buf) labels = {0};

    top_text_add_labels(&labels, row);
    for (size_t i = 0; run->live && i < run->live->n_numbers; i++)
        add_number(&numbers, &run->live->numbers[i], LONG_SPARK, look);
    if (run->live && run->run.status.state == RUN_RUNNING)
        top_text_add_said(&said, run->live, look);
    act_strv_push(lines, "");
    add_cut_line(lines, look, labels.data, CLI_CUT_PARTS);
    add_line(lines, look, "%s", row->command);
    add_cut_line(lines, look, numbers.len ? numbers.data : "", CLI_CUT_PARTS);
    add_line(lines, look, "%s", said.len ? said.data : run->run.status.reason);
}

static void add_chosen_sweep(const struct top_row *row, const struct top_look *look, struct act_strv *lines)
{
    const struct flow_live_number *best = top_best(row);
    ACT_AUTOFREE char *name = name_of_sweep(row);
    ACT_AUTO(act_buf) counts = {0};
    ACT_AUTO(act_buf) number = {0};

    top_text_add_counts(&counts, row);
    ACT_AUTOFREE char *head = act_sprintf("sweep %s  %s  %zu runs  %s", row->sweep, name, row->n_folded, counts.data);
    if (best)
        add_number(&number, best, LONG_SPARK, look);
    act_strv_push(lines, "");
    add_cut_line(lines, look, head, CLI_CUT_PARTS);
    add_line(lines, look, "%s", row->run->run.row.command);
    add_cut_line(lines, look, number.len ? number.data : "", CLI_CUT_PARTS);
    add_line(lines, look, "f unfolds it; 'a sweep --show %s' compares all", row->sweep);
}

/* ---- all of it */

static void add_wrapped(struct act_strv *lines, const char *text, int indent, int columns)
{
    char *wrapped = NULL, *line;
    size_t len = 0;
    FILE *out = open_memstream(&wrapped, &len);

    if (!out)
        return;
    fprintf(out, "%.*s", indent, text);
    cli_wrap(out, text + indent, strlen(text + indent), indent, indent, columns);
    fclose(out);
    for (char *rest = wrapped; (line = strsep(&rest, "\n")) && rest;)
        act_strv_push(lines, line);
    free(wrapped);
}

static void add_help(const struct top_look *look, struct act_strv *lines)
{
    static const struct {
        const char *keys, *what;
    } help[] = {
        {"up, down", "choose a run; also j k, page up, page down, home, end"},
        {"l, Enter", "the end of its log, and what follows if it runs"},
        {"w", "why it failed, or waits"},
        {"a", "abort it; asks"},
        {"s", "sort by state, newest, use, silence, cluster"},
        {"/", "only runs with these words in id, name, cluster, state, command or tags; Esc shows all"},
        {"f", "fold a sweep, or unfold it"},
        {"r", "ask all clusters now"},
        {"h ?", "this help; any key leaves it"},
        {"q", "quit"},
        {"",
         "IDLE: of all. YOURS: running+queued. AGE: runs, waits, is over for so long. GPU, MEM: of its GPUs (cpu, "
         "CPU: of the processors). NUMBERS: what rank 0 repeats. SAYS: its last line, and how long ago. Of a sweep: "
         "d done, r running, f failed."},
    };
    enum { KEYS = 10 }; /* columns */

    for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++) {
        int indent = *help[i].keys ? KEYS : 0;
        ACT_AUTOFREE char *text = act_sprintf("%-*s%s", indent, help[i].keys, help[i].what);
        add_wrapped(lines, text, indent, look->columns);
    }
}

static const char *no_runs(const struct flow_board_view *view, const struct top_look *look)
{
    return view->error     ? view->error
           : !view->listed ? "..."
           : look->filter  ? "no run has these words; Esc shows all"
           : !look->folds  ? "no run has this name or tag; 'a q' lists the runs"
                           : "no runs yet; 'a submit COMMAND' starts one";
}

/* Keeps which row is chosen; row NULL: there is none. */
static void keep_chosen(struct top_look *look, const struct top_row *row)
{
    act_str_replace(&look->chosen, row ? row->run->run.row.id : NULL);
    act_str_replace(&look->sweep, row ? row->sweep : NULL);
    look->folded = row ? row->n_folded : 0;
}

/* Adds everything above the last line. */
static void add_body(const struct flow_board_view *view, struct top_look *look, struct act_strv *lines,
                     struct act_strv *out_seen)
{
    size_t room = look->rows > 1 ? (size_t)look->rows - 1 : 1; /* on a single row, instead of it */
    struct top_rows rows;

    top_rows(view, look, &rows);
    size_t chosen = top_find(&rows, look->chosen);
    const struct top_row *row = rows.n > 0 ? &rows.v[chosen] : NULL;
    bool with_chosen = look->rows >= CHOSEN_ROWS && row;
    keep_chosen(look, row);
    if (look->rows == 0 || look->rows >= CLUSTER_ROWS) {
        top_text_add_head(view, look, lines);
        add_clusters(view, look, look->rows == 0 ? SIZE_MAX : room / 3, lines);
        for (size_t i = 0; (look->rows == 0 || look->rows >= GPU_ROWS) && i < view->n_clusters; i++)
            top_text_add_gpus(&view->clusters[i]->gpus, look, look->rows == 0 ? SIZE_MAX : room / 3, lines);
    }
    room -= with_chosen ? CHOSEN_LINES : 0;
    if (!row)
        add_line(lines, look, "%s", no_runs(view, look));
    else
        add_rows(&rows, chosen, room > lines->n ? room - lines->n : 1, look, lines, out_seen);
    while (with_chosen && lines->n < room)
        act_strv_push(lines, "");
    if (with_chosen && row->folded)
        add_chosen_sweep(row, look, lines);
    else if (with_chosen)
        add_chosen(row->run, look, lines);
    top_rows_release(&rows);
}

static void add_bottom(const struct top_look *look, struct act_strv *lines)
{
    static const char keys[] = "q quit  h help  l log  w why  a abort  s sort  / filter  f fold";

    while (lines->n < (size_t)look->rows - 1)
        act_strv_push(lines, "");
    add_cut_line(lines, look, look->bottom ? look->bottom : keys, look->bottom ? CLI_CUT_WORDS : CLI_CUT_PARTS);
}

void top_lines(const struct flow_board_view *view, struct top_look *look, struct act_strv *lines,
               struct act_strv *out_seen)
{
    bool has_bottom = look->rows > 1 || (look->rows == 1 && look->bottom);

    if (look->help)
        add_help(look, lines);
    else
        add_body(view, look, lines, out_seen);
    while (look->rows > 0 && lines->n > (size_t)look->rows - has_bottom)
        free(lines->v[--lines->n]);
    if (has_bottom)
        add_bottom(look, lines);
}
