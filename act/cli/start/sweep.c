#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command/options.h"
#include "cli/command/signal.h"
#include "cli/page/options.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "cli/start/options.h"
#include "cli/start/start.h"
#include "codec/json.h"
#include "flow/look/look.h"
#include "flow/sweep/leaders.h"
#include "flow/sweep/sweep.h"

enum { ASKED_FROM = 100 };

/* ---- starting one */

struct shown {
    const struct cli *cli;
    int64_t total, done;
    int64_t said_ms; /* when */
    bool terminal;
};

static int confirm_copies(void *arg, const char *question, struct act_error *err)
{
    const struct shown *shown = arg;

    return cli_confirm(shown->cli, question, err);
}

/* Draws a line now and then, or prints one if there are more: there may be a million runs. */
static void cmd_sweep_show(void *arg, int64_t done)
{
    enum { DRAWN_MS = 200, PRINTED_MS = 10000 };
    struct shown *shown = arg;
    int64_t now_ms = act_now_monotonic_ms();

    if (now_ms < shown->said_ms + (shown->terminal ? DRAWN_MS : PRINTED_MS) || done == shown->total)
        return;
    if (shown->terminal)
        cli_put_count("submitting", done, shown->total, "runs");
    else if (done != shown->done)
        act_note("%lld of %lld runs are submitted", (long long)done, (long long)shown->total);
    shown->said_ms = now_ms;
    shown->done = done;
}

static int cmd_sweep_confirm(const struct cli *cli, const struct flow_grids *grids, struct act_error *err)
{
    ACT_AUTOFREE char *question = act_sprintf("Submit %lld runs?", (long long)grids->points);

    return grids->points <= ASKED_FROM || cli->options.dry_run ? 0 : cli_confirm(cli, question, err);
}

static void print_points(const struct flow_grids *grids, const struct act_strv *command)
{
    cli_buffer_stdout();
    for (int64_t i = 0; i < grids->points; i++) {
        ACT_AUTOFREE char *line = flow_grids_line(grids, i, command);
        ACT_AUTOFREE char *one = cli_name(line);
        puts(one);
    }
}

static json_t *cmd_sweep_json(const struct flow_sweep *io)
{
    json_t *parameters = json_object();

    for (size_t i = 0; i < io->grids->n; i++)
        json_object_set_new(parameters, io->grids->v[i].name, codec_json_strv_new(&io->grids->v[i].values));
    return json_pack("{s:i, s:s?, s:s, s:I, s:I, s:I, s:o}", "version", 1, "sweep", *io->id ? io->id : NULL, "cluster",
                     io->spec.cluster, "points", (json_int_t)io->grids->points, "kept", (json_int_t)io->kept,
                     "submitted", (json_int_t)io->submitted, "parameters", parameters);
}

static void say_more(const struct flow_sweep *io)
{
    if (io->submitted == 0)
        act_note("all %lld runs of this sweep were submitted before; another --name makes another sweep",
                 (long long)io->kept);
    else
        act_note("sweep %s on %s: %lld run%s submitted%s", io->id, io->spec.cluster, (long long)io->submitted,
                 cli_plural(io->submitted), io->kept ? ", the others were there" : "");
    act_note("'a q --tag sweep=%s' lists them, 'a sweep --show %s' compares them, 'a wait %s' waits, 'a abort %s' ends "
             "them",
             io->id, io->id, io->id, io->id);
}

static int cmd_sweep_print(const struct cli *cli, const struct flow_sweep *io, struct act_error *err)
{
    if (io->dry_run && cli->options.json)
        return cli_print_json(cmd_sweep_json(io), err);
    if (io->dry_run) {
        print_points(io->grids, io->argv);
        act_note("would be %lld runs on %s, %s", (long long)io->grids->points, io->spec.cluster,
                 *io->id ? io->id : "of a package that is not made yet");
        return cli_check_stdout(err);
    }
    int rc = cli_print_id("sweep", io->id, cli->options.json ? cmd_sweep_json(io) : NULL, err);
    if (rc == 0 && !cli->options.json)
        say_more(io);
    return rc;
}

/* Opens the project, which is not needed to look at a sweep. */
static int open_project(struct cli *cli, struct act_error *err)
{
    flow_close(&cli->flow);
    cli->flow_is_open = false;
    return cli_open(cli, err);
}

static int cmd_sweep_submit(struct cli *cli, const struct flow_grids *grids, struct act_error *err)
{
    struct cli_packing packing;
    ACT_AUTO(flow_init) code = {0};
    struct shown shown = {.cli = cli,
                          .total = grids->points,
                          .said_ms = act_now_monotonic_ms(),
                          .terminal = isatty(STDERR_FILENO) && !cli->options.quiet};
    struct flow_sweep io = {
        .grids = grids,
        .argv = &cli->words,
        .max_parallel = CLI_OPTIONS(cli, sweep)->max_parallel > 0 ? (int)CLI_OPTIONS(cli, sweep)->max_parallel : 0,
        .after = CLI_OPTIONS(cli, start)->after,
        .after_any = CLI_OPTIONS(cli, start)->after_any,
        .dry_run = cli->options.dry_run,
        .code = CLI_OPTIONS(cli, start)->last_package ? NULL : &code,
        .each = cmd_sweep_show,
        .confirm = confirm_copies,
        .arg = &shown};
    int rc = cli_labels(cli, &io.labels, err);

    if (rc == 0)
        rc = cmd_sweep_confirm(cli, grids, err);
    if (rc == 0)
        rc = open_project(cli, err);
    if (rc == 0)
        rc = cli_check_words(cli, err);
    if (rc == 0) {
        cli_packing_start(&packing, cli, &code);
        cli_end_with("interrupted; what is submitted goes on, and the same command submits the rest");
        rc = flow_sweep(&cli->flow, &io, err);
        if (shown.terminal && shown.done > 0)
            cli_put_in_place("");
    }
    if (rc == 0)
        rc = cmd_sweep_print(cli, &io, err);
    run_spec_release(&io.spec);
    return rc;
}

/* ---- looking at one */

struct show {
    struct cli *cli;
    char *sweep;
    struct flow_leaders leaders;
    struct cli_metric_names names;
    size_t n_queued;
};

/* Reads the numbers of a run; one whose log cannot be had has none. */
static struct numbers *numbers_of(struct cli *cli, struct flow_run *run)
{
    ACT_AUTO(flow_logs) logs = {0};
    struct numbers *numbers = NULL;
    struct act_error err;
    int rank, rc = 0;

    if (run->status.state == RUN_QUEUED)
        return NULL;
    rc = cli_fetch_logs(cli, run, &logs, &err);
    if (rc == 0)
        rc = cli_check_kept(run, &logs, &err);
    if (rc == 0)
        rc = flow_read_numbers(&cli->flow, run, (int)CLI_OPTIONS(cli, logs)->rank, (struct series_range){0}, &numbers,
                               &rank, &err);
    if (rc < 0)
        act_warn("%s: %s", run->row.id, act_error_text(&err));
    return numbers;
}

static json_t *cmd_sweep_row_json(const struct show *s, const struct flow_leader_row *row)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    json_t *parameters = json_object();
    json_t *json =
        json_pack("{s:s, s:s?, s:s, s:I, s:o}", "id", row->id, "name", row->name, "state", run_state_name(row->state),
                  "age_s", (json_int_t)cli_age_s(row->created_unix_s, act_now_unix_s()), "parameters", parameters);

    for (size_t i = 0; i < s->leaders.parameters.n; i++) {
        const char *value = codec_json_str(tags, s->leaders.parameters.v[i], NULL);
        json_object_set_new(parameters, s->leaders.parameters.v[i], value ? json_string(value) : json_null());
    }
    json_object_set_new(json, "best", cli_number_json(row->has_number, row->best));
    json_object_set_new(json, "best_at", cli_number_json(row->has_number, row->best_x));
    json_object_set_new(json, "last", cli_number_json(row->has_number && !row->ends_odd, row->last));
    return json;
}

static int cmd_sweep_print_json(const struct show *s, struct act_error *err)
{
    static const char *const names[] = {[FLOW_LOWEST] = "min", [FLOW_HIGHEST] = "max"};
    const struct flow_leaders *leaders = &s->leaders;
    const char *key = leaders->key;
    struct cli_rows rows;

    cli_rows_begin(&rows,
                   json_pack("{s:s, s:s?, s:s?, s:s?}", "sweep", s->sweep, "metric", key, "by",
                             key ? names[leaders->best] : NULL, "at", key ? numbers_by_name(leaders->by) : NULL),
                   "runs");
    for (size_t i = 0; i < leaders->n; i++)
        cli_rows_add(&rows, cmd_sweep_row_json(s, &leaders->v[i]));
    return cli_rows_end(&rows, err);
}

static bool cmd_sweep_has_short_ids(const struct flow_leaders *leaders)
{
    ACT_AUTO(act_strv) ends = {0};

    for (size_t i = 0; i < leaders->n; i++)
        act_strv_push(&ends, cli_short_id(leaders->v[i].id));
    return cli_short_ids(&ends, cli_width());
}

/* The table of a sweep. */
struct board {
    const struct flow_leaders *leaders;
    size_t n_columns;
    bool short_ids;
    int64_t now_unix_s; /* the same when a row is measured and when it is printed */
    struct cli_table *table;
};

/* Makes the columns wide enough for all rows, or prints them: a few at a time. */
static void cmd_sweep_pass(const struct board *board, bool prints)
{
    const struct flow_leaders *leaders = board->leaders;
    size_t i = 0;

    do {
        ACT_AUTO(act_strv) cells = {0};
        ACT_AUTO(act_buf) text = {0};
        for (size_t few = 0; few < FLOW_ROWS_FEW && i < leaders->n; few++, i++) {
            cli_leaders_cells(leaders, i, board->now_unix_s, &cells);
            if (board->short_ids)
                act_str_replace(&cells.v[few * board->n_columns], cli_short_id(leaders->v[i].id));
        }
        if (prints)
            cli_table_add(board->table, &cells, &text);
        else
            cli_table_measure(board->table, &cells);
        cli_put_table(&text);
    } while (i < leaders->n);
}

static void cmd_sweep_print_table(const struct flow_leaders *leaders)
{
    ACT_AUTO(act_strv) heads = {0};

    cli_leaders_heads(leaders, &heads);
    ACT_AUTOFREE struct cli_column *columns = act_calloc(heads.n, sizeof(*columns));
    const size_t state = 2 + leaders->parameters.n;
    for (size_t i = 0; i < heads.n; i++)
        columns[i] = (struct cli_column){.head = heads.v[i],
                                         .align = i == state || i < 2 ? 'l' : 'r',
                                         .rank = i < 2 || i == state + 2 ? 0
                                                 : i < state             ? 1
                                                 : i == state            ? 2
                                                                         : 3,
                                         .min = i > 1 && i < state ? 6 : 0,
                                         .is_state = i == state};
    const struct board board = {.leaders = leaders,
                                .n_columns = heads.n,
                                .short_ids = cmd_sweep_has_short_ids(leaders),
                                .now_unix_s = act_now_unix_s(),
                                .table = cli_table_new(columns, heads.n, cli_width(), cli_colour(stdout))};
    cmd_sweep_pass(&board, false);
    cmd_sweep_pass(&board, true);
    cli_table_free(board.table);
}

/* Tells whether none of the runs has begun, so that there is no number yet. */
static bool all_queued(const struct show *s)
{
    return s->leaders.n > 0 && s->n_queued == s->leaders.n;
}

/* Prints a field. A value with a comma or a quote is quoted, as in RFC 4180; one that a spreadsheet would take for a
 * formula is not changed. */
static void cmd_sweep_put_field(const char *text, bool last)
{
    if (text[strcspn(text, ",\"\n\r")]) {
        putchar('"');
        for (; *text; text++)
            printf(*text == '"' ? "\"\"" : "%c", *text);
        putchar('"');
    } else {
        fputs(text, stdout);
    }
    putchar(last ? '\n' : ',');
}

static void cmd_sweep_put_fields(const struct act_strv *cells)
{
    for (size_t i = 0; i < cells->n; i++)
        cmd_sweep_put_field(cells->v[i], i + 1 == cells->n);
}

static void cmd_sweep_print_csv(const struct flow_leaders *leaders)
{
    ACT_AUTO(act_strv) heads = {0};

    cli_leaders_heads(leaders, &heads);
    cmd_sweep_put_fields(&heads);
    for (size_t i = 0; i < leaders->n; i++) {
        ACT_AUTO(act_strv) cells = {0};
        cli_leaders_cells(leaders, i, act_now_unix_s(), &cells);
        cmd_sweep_put_fields(&cells);
    }
}

static int print_leaders(const struct show *s, struct act_error *err)
{
    cli_buffer_stdout();
    if (s->cli->options.json)
        return cmd_sweep_print_json(s, err);
    if (CLI_OPTIONS(s->cli, page)->csv)
        cmd_sweep_print_csv(&s->leaders);
    else
        cmd_sweep_print_table(&s->leaders);
    fflush(stdout);
    if (all_queued(s))
        act_note("all %zu runs are still queued; 'a qq --tag sweep=%s' says what they wait for", s->leaders.n,
                 s->sweep);
    return cli_check_stdout(err);
}

/* Takes of a few runs what is shown. Their logs are asked for together. */
static int cmd_sweep_visit(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct show *s = arg;
    const char *key = s->leaders.key;

    (void)err;
    if (key && !CLI_OPTIONS(s->cli, logs)->no_logs)
        flow_expect_logs_of(&s->cli->flow, runs, n);
    for (size_t i = 0; i < n; i++) {
        struct numbers *numbers = key ? numbers_of(s->cli, &runs[i]) : NULL;
        if (key)
            cli_metric_look(&s->names, key, numbers);
        flow_leaders_add(&s->leaders, &runs[i], numbers);
        s->n_queued += runs[i].status.state == RUN_QUEUED;
        numbers_free(numbers);
    }
    return 0;
}

static int read_leaders(struct show *s, struct act_error *err)
{
    CODEC_AUTOJSON json_t *tags = json_pack("{s:s}", FLOW_SWEEP_TAG, s->sweep);
    const struct flow_table table = {
        .cluster = s->cli->options.cluster, .labels = {.tags = tags}, .own = true, .with_spec = s->leaders.key != NULL};
    ACT_AUTOFREE char *where = act_sprintf("sweep %s", s->sweep);
    struct flow_rows *runs;
    int rc = flow_rows_open(&s->cli->flow, &table, &runs, err);

    if (rc == 0)
        rc = flow_rows_each(runs, cmd_sweep_visit, s, NULL, err);
    flow_rows_close(runs);
    if (rc == 0 && s->leaders.key && !all_queued(s))
        rc = cli_metric_check(&s->names, s->leaders.key, where, err);
    flow_leaders_end(&s->leaders);
    return rc;
}

static int show_sweep(struct cli *cli, struct act_error *err)
{
    const struct cli_metric_options *o = CLI_OPTIONS(cli, metric);
    struct show s = {
        .cli = cli,
        .leaders = {.key = o->metric, .best = o->highest ? FLOW_HIGHEST : FLOW_LOWEST, .newest_first = true}};
    int rc = flow_find_sweep(&cli->flow, CLI_OPTIONS(cli, sweep)->show, &s.sweep, err);

    if (rc == 0)
        rc = read_leaders(&s, err);
    if (rc == 0)
        rc = print_leaders(&s, err);
    flow_leaders_release(&s.leaders);
    act_strv_release(&s.names.others);
    free(s.sweep);
    return rc;
}

/* ---- which of both */

static int check_show(const struct cli *cli, struct act_error *err)
{
    const struct cli_option *other =
        cli_given_beyond(cli, "cluster show metric lowest highest rank csv json no-logs no-full-logs yes");

    if (cli->words.n > 0)
        return act_error_set(err, ACT_USAGE, "--show looks at a sweep: there cannot be a command, '%s', as well",
                             cli->words.v[0]);
    if (other)
        return act_error_set(err, ACT_USAGE, "--show looks at a sweep, and --%s is for a new one", other->long_name);
    if (CLI_OPTIONS(cli, page)->csv && cli->options.json)
        return act_error_set(err, ACT_USAGE, "--csv and --json exclude each other");
    return cli_check_metric(cli, err);
}

static int check_new(const struct cli *cli, struct act_error *err)
{
    const struct cli_metric_options *o_metric = CLI_OPTIONS(cli, metric);
    const struct cli_logs_options *logs = CLI_OPTIONS(cli, logs);

    if (o_metric->metric || o_metric->lowest || o_metric->highest || CLI_OPTIONS(cli, page)->csv || logs->rank >= 0 ||
        logs->no_logs || logs->no_full_logs)
        return act_error_set(err, ACT_USAGE, "--metric, --min, --max, --rank, --csv and -no-wl go with --show SWEEP");
    if (CLI_OPTIONS(cli, sweep)->max_parallel == 0)
        return act_error_set(err, ACT_USAGE, "--max-parallel 0 would run nothing; without it all run at once");
    if (CLI_OPTIONS(cli, sweep)->max_parallel > FLOW_POINTS_MAX)
        return act_error_set(err, ACT_USAGE, "--max-parallel is at most %d", FLOW_POINTS_MAX);
    int rc = cli_check_after(cli, err);
    return rc < 0 ? rc : cli_check_command(cli, "a sweep --grid lr=0.1,0.01 python3 train.py --lr {lr}", err);
}

int cmd_sweep(struct cli *cli, struct act_error *err)
{
    const struct cli_sweep_options *o = CLI_OPTIONS(cli, sweep);
    struct flow_grids grids = {0};
    int rc = o->show ? check_show(cli, err) : check_new(cli, err);

    if (rc < 0)
        return rc;
    if (o->show)
        return show_sweep(cli, err);
    rc = flow_grids_read(&o->grids, &grids, err);
    if (rc == 0)
        rc = flow_grids_check(&grids, &cli->words, err);
    if (rc == 0)
        rc = cmd_sweep_submit(cli, &grids, err);
    flow_grids_release(&grids);
    return rc;
}
