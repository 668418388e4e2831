#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "cli/screen/screen.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "numbers/numbers.h"

enum {
    DEFAULT_MAX = 30,
    SHOWN_LINES = 100, /* of the log of rank 0 */
    SHOWN_ALIKE = 4,   /* logs whose names differ in numbers */
    SHOWN_LOGS = 24,
};

/* ---- the table, redrawn in place */

struct watched {
    struct live live;
    bool coloured;
};

/* Returns the last line of the screen; shown runs are above it. */
static char *cmd_query_bottom_of(const struct watched *w, const struct flow_board_view *view, size_t shown)
{
    if (view->error || w->live.said || !view->listed)
        return act_strdup(view->error ? view->error : w->live.said ? w->live.said : "...");
    return view->total > shown ? act_sprintf("%zu more, q quits", view->total - shown) : act_strdup("q quits");
}

static void draw_table(void *arg, const struct flow_board_view *view, struct act_strv *lines)
{
    const struct watched *w = arg;
    const struct screen *screen = &w->live.screen;
    size_t room = screen->rows > 1 ? (size_t)screen->rows - 1 : 1;
    ACT_AUTOFREE struct flow_run *runs = act_calloc(view->n + 1, sizeof(*runs));
    size_t shown = view->n < room - 1 ? view->n : room - 1; /* below the heads */
    ACT_AUTO(act_buf) text = {0};
    struct act_buf last = {0};

    for (size_t i = 0; i < shown; i++)
        runs[i] = view->runs[i]->run;
    cli_runs_text(&(struct flow_runs){.v = runs, .n = shown}, false, screen->columns, w->coloured, &text);
    char *rest = text.data, *line;
    while ((line = strsep(&rest, "\n")) && rest && lines->n < room)
        act_strv_push(lines, line);
    while (lines->n < room)
        act_strv_push(lines, "");
    ACT_AUTOFREE char *bottom = cmd_query_bottom_of(w, view, shown);
    cli_add_line(&last, bottom, screen->columns, CLI_CUT_WORDS);
    if (screen->rows > 1)
        act_strv_take(lines, act_buf_steal(&last));
    act_buf_release(&last);
}

static void cmd_query_take_key(void *arg, int key)
{
    struct watched *w = arg;

    if (key == 'q')
        live_quit(&w->live);
    else
        flow_board_hurry(w->live.board);
}

static int watch_table(struct cli *cli, const struct flow_table *table, struct act_error *err)
{
    int64_t interval_s =
        CLI_OPTIONS(cli, query)->interval_s > 0 ? CLI_OPTIONS(cli, query)->interval_s : LIVE_INTERVAL_S;
    struct watched w = {.coloured = cli_colour(stdout),
                        .live = {.options = {.table = *table, .table_only = true, .interval_ms = interval_s * 1000},
                                 .draw = draw_table,
                                 .key = cmd_query_take_key,
                                 .arg = &w}};

    return live_run(&w.live, cli, "without --watch the table is printed once", err);
}

static int cmd_query_print_some(void *rows, struct flow_run *runs, size_t n, struct act_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        cli_rows_add(rows, cli_run_json(&runs[i]));
    return 0;
}

static int cmd_query_print_json(struct flow_rows *runs, struct flow_rows_count *count, struct act_error *err)
{
    struct cli_rows rows;
    int rc = flow_rows_each(runs, NULL, NULL, count, err);

    if (rc < 0)
        return rc;
    cli_rows_begin(&rows, json_pack("{s:I}", "total", (json_int_t)count->total), "runs");
    rc = flow_rows_each(runs, cmd_query_print_some, &rows, NULL, err);
    return rc < 0 ? rc : cli_rows_end(&rows, err);
}

static int cmd_query_print_table(struct cli *cli, const char *state, struct act_error *err)
{
    bool with_reason = act_streq(state, run_state_name(RUN_QUEUED)) || act_streq(state, run_state_name(RUN_FAILED));
    struct flow_table table = {.cluster = cli->options.cluster,
                               .state = state,
                               .max = cli->options.max >= 0 ? cli->options.max
                                      : state               ? 0
                                                            : DEFAULT_MAX,
                               .with_spec = cli->options.json,
                               .without_config = true};
    struct flow_rows_count count = {0};
    struct flow_rows *runs = NULL;
    int rc = cli_labels(cli, &table.labels, err);

    if (rc == 0 && CLI_OPTIONS(cli, query)->watch)
        return watch_table(cli, &table, err);
    if (rc == 0)
        rc = flow_rows_open(&cli->flow, &table, &runs, err);
    if (rc == 0)
        rc = cli->options.json ? cmd_query_print_json(runs, &count, err)
                               : cli_print_runs(runs, with_reason, &count, err);
    flow_rows_close(runs);
    if (rc < 0)
        return rc;
    if (count.total == 0 && !cli->options.json)
        cli_note_no_runs(&table);
    if (count.n < count.total)
        act_note("%zu of %zu runs; --max 0 shows all", count.n, count.total);
    return 0;
}

/* ---- the logs of one run, of which there may be thousands: those that differ only in numbers are one line */

static void cmd_query_put_line(const char *name, size_t more)
{
    fputs("  ", stdout);
    cli_put_name(name);
    if (more > 0)
        printf("  (%zu files)", more);
    putchar('\n');
}

/* Returns the path with a '*' for each number in its last part. New string. */
static char *pattern_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
    struct act_buf out = {0};

    act_buf_add(&out, path, (size_t)(at - path));
    while (*at) {
        size_t digits = strspn(at, "0123456789");
        act_buf_addc(&out, digits ? '*' : *at);
        at += digits ? digits : 1;
    }
    return act_buf_steal(&out);
}

/* Counts the logs from the first on that stand beside each other and have its pattern. */
static size_t count_alike(const struct flow_logs *logs, size_t first, const char *pattern)
{
    size_t n = 1;

    for (; first + n < logs->n; n++) {
        ACT_AUTOFREE char *next = pattern_of(logs->v[first + n].path);
        if (strcmp(next, pattern) != 0)
            break;
    }
    return n;
}

/* Says which logs follow: on a terminal their folder, as whole paths would not fit. */
static void print_logs_head(const struct flow_logs *logs, bool is_terminal)
{
    fputs(is_terminal ? "log files in " : "log files:", stdout);
    if (is_terminal)
        cli_put_name(logs->folder);
    puts(is_terminal ? ":" : "");
}

static void print_logs(const struct flow_logs *logs)
{
    size_t shown = 0, i = 0;
    bool is_terminal = cli_width() > 0;
    size_t folder = is_terminal && logs->n > 0 ? strlen(logs->folder) + 1 : 0;

    if (logs->n > 0)
        print_logs_head(logs, is_terminal);
    while (i < logs->n && shown < SHOWN_LOGS) {
        ACT_AUTOFREE char *pattern = pattern_of(logs->v[i].path);
        size_t alike = count_alike(logs, i, pattern);
        cmd_query_put_line(logs->v[i].path + folder, 0);
        if (alike > SHOWN_ALIKE)
            cmd_query_put_line(pattern + folder, alike);
        for (size_t k = 1; k < alike && alike <= SHOWN_ALIKE; k++)
            cmd_query_put_line(logs->v[i + k].path + folder, 0);
        shown += alike <= SHOWN_ALIKE ? alike : 2;
        i += alike;
    }
    if (i < logs->n)
        printf("  and %zu more: --json lists all\n", logs->n - i);
}

/* The end of the log that was printed, where a progress bar is. */
struct query_end {
    char text[2048];
    size_t len;
};

static int query_write(void *arg, const char *data, size_t len, struct act_error *err)
{
    struct query_end *end = arg;
    size_t n = len < sizeof(end->text) ? len : sizeof(end->text);
    size_t kept = end->len < sizeof(end->text) - n ? end->len : sizeof(end->text) - n;

    memmove(end->text, end->text + end->len - kept, kept);
    memcpy(end->text + kept, data + len - n, n);
    end->len = kept + n;
    return cli_write_stdout(NULL, data, len, err);
}

/* Returns how far the program says that it is, in one of its last lines, as a new string; NULL: it does not say. */
static char *query_progress(const struct query_end *end)
{
    enum { LOOKS = 4 };
    size_t len = end->len;

    for (int i = 0; i < LOOKS && len > 0; i++) {
        size_t begin = len;
        while (begin > 0 && end->text[begin - 1] != '\n' && end->text[begin - 1] != '\r')
            begin--;
        ACT_AUTOFREE char *line = act_strndup(end->text + begin, len - begin);
        char *progress = numbers_progress(line);
        if (progress)
            return progress;
        len = begin > 0 ? begin - 1 : 0;
    }
    return NULL;
}

static int print_tail(struct cli *cli, struct flow_run *run, const struct flow_logs *logs, struct query_end *end,
                      struct act_error *err)
{
    bool fetched = logs->n > 0 && !logs->unkept_errno && !CLI_OPTIONS(cli, logs)->no_full_logs;
    struct flow_follow tail = {.tail = SHOWN_LINES, .fetched = fetched, .sink = {.write = query_write, .arg = end}};

    int rc = flow_follow_log(&cli->flow, run, &tail, err);
    cli_end_text();
    return rc;
}

static int cmd_query_print_for_people(struct cli *cli, struct flow_run *run, const struct flow_logs *logs,
                                      bool with_tail, struct act_error *err)
{
    struct query_end end = {.len = 0};
    int rc = with_tail ? print_tail(cli, run, logs, &end, err) : 0;

    print_logs(logs);
    if (CLI_OPTIONS(cli, query)->no_details) {
        printf("%s  %s\n", run->row.id, run_state_name(run->status.state));
        return rc;
    }
    ACT_AUTOFREE char *page = flow_page(&cli->flow, run);
    ACT_AUTOFREE char *code = run->spec.is_here ? flow_code_folder(&cli->flow, run) : NULL;
    ACT_AUTOFREE char *progress = run->status.state == RUN_RUNNING ? query_progress(&end) : NULL;
    cli_print_run(run, progress, page, code);
    return rc;
}

static void warn_unkept(struct cli *cli, const struct flow_logs *logs)
{
    if (logs->unkept_errno && !cli->said_unkept)
        act_warn("copies of logs cannot be kept in '%s': %s; AML_LOG_FOLDER names another folder", logs->root,
                 strerror(logs->unkept_errno));
    cli->said_unkept = cli->said_unkept || logs->unkept_errno;
}

/* Shows what is known of a run even if its logs cannot be had, which then is the error. */
static int query_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    ACT_AUTO(flow_logs) logs = {0};
    int rc = cli_fetch_logs(cli, run, &logs, err);

    warn_unkept(cli, &logs);
    if (list) {
        json_t *json = cli_run_json(run), *paths = json_array();
        for (size_t i = 0; i < logs.n; i++)
            json_array_append_new(paths, codec_json_bytes_new(logs.v[i].path));
        json_object_set_new(json, "logs", paths);
        ACT_AUTOFREE char *page = flow_page(&cli->flow, run);
        json_object_set_new(json, "page", page ? json_string(page) : json_null());
        json_array_append_new(list, json);
        return rc;
    }
    int printed = cmd_query_print_for_people(cli, run, &logs, rc == 0 && !CLI_OPTIONS(cli, logs)->no_logs, err);
    return rc < 0 ? rc : printed;
}

/* Fetches the logs of one of several runs: what differs between them would be lost among the ends of their logs. */
static int fetch_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    ACT_AUTO(flow_logs) logs = {0};
    int rc = cli_fetch_logs(cli, run, &logs, err);

    (void)list;
    warn_unkept(cli, &logs);
    return rc;
}

/* Returns the name of the state that is asked for; NULL: all are. */
static const char *query_state(const struct cli_query_options *o)
{
    return o->running  ? run_state_name(RUN_RUNNING)
           : o->queued ? run_state_name(RUN_QUEUED)
           : o->failed ? run_state_name(RUN_FAILED)
                       : NULL;
}

/* Refuses options that say nothing about the table, about a run, or beside each other. */
static int check_query(const struct cli *cli, struct act_error *err)
{
    const struct cli_query_options *o = CLI_OPTIONS(cli, query);
    const struct cli_logs_options *logs = CLI_OPTIONS(cli, logs);
    bool named = cli->words.n > 0, json = cli->options.json;
    const struct {
        bool is_wrong;
        const char *option, *why;
    } rows[] = {
        {!named && logs->refresh, "--refresh", "is about the logs of a run: which one?"},
        {!named && o->no_details, "--no-details", "is about a run that is named: which one?"},
        {named && cli->options.name, "--name", "is about the table of runs, and a run is named"},
        {named && cli->options.tags.n, "--tag", "is about the table of runs, and a run is named"},
        {named && cli->options.max >= 0, "--max", "is about the table of runs, and a run is named"},
        {named && query_state(o), "--running, --queued and --failed",
         "are about the table of runs, and a run is named"},
        {o->running + o->queued + o->failed > 1, "--running, --queued, --failed", "exclude each other"},
        {named && o->rebuild, "--rebuild", "is about all runs; a run that is named is looked for anyway"},
        {named && o->watch, "--watch", "is about the table of runs; 'a logs -f RUN' follows the log of one"},
        {o->interval_s > 0 && !o->watch, "-n (--interval)",
         "is how often --watch redraws the table; --max says how many runs it has"},
        {o->watch && json, "--watch", "redraws a terminal and --json is for programs: which one?"},
        {o->no_details && json, "--no-details", "is for people, and --json prints every detail: which one?"},
        {logs->no_logs && logs->refresh, "--refresh", "fetches logs again, and --no-logs fetches none: which one?"},
        {logs->no_logs && logs->no_full_logs, "--no-full-logs",
         "fetches a part of the logs, and --no-logs none: which one?"},
        {logs->refresh && logs->no_full_logs, "--no-full-logs",
         "fetches a part of the logs, and --refresh all: which one?"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_wrong)
            return act_error_set(err, ACT_USAGE, "%s %s", rows[i].option, rows[i].why);
    return 0;
}

int cmd_query(struct cli *cli, struct act_error *err)
{
    const struct cli_query_options *o = CLI_OPTIONS(cli, query);
    int rc = check_query(cli, err);

    if (rc == 0 && o->rebuild)
        rc = flow_rebuild(&cli->flow, err);
    if (rc < 0)
        return rc;
    if (cli->words.n == 0)
        return cmd_query_print_table(cli, query_state(o), err);
    cli->flow.reads_logs = !CLI_OPTIONS(cli, logs)->no_logs;
    if (cli->words.n > 1 && !cli->options.json && !o->no_details)
        return cli_each_run(cli, &(struct cli_each_run){.act = fetch_run, .after = cli_compare_runs}, err);
    return cli_each_run(cli, &(struct cli_each_run){.act = query_run, .list = cli->options.json}, err);
}

int cmd_query_running(struct cli *cli, struct act_error *err)
{
    return cmd_query_print_table(cli, run_state_name(RUN_RUNNING), err);
}

int cmd_query_queued(struct cli *cli, struct act_error *err)
{
    return cmd_query_print_table(cli, run_state_name(RUN_QUEUED), err);
}

int cmd_query_failed(struct cli *cli, struct act_error *err)
{
    return cmd_query_print_table(cli, run_state_name(RUN_FAILED), err);
}
