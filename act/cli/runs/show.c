/* show.c - runs as a table, in lines and as JSON. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/runs/runs.h"

static int64_t show_elapsed_at(const struct run_status *s, int64_t now_unix_s)
{
    bool is_over = run_state_is_final(s->state);

    if (!s->started_unix_s || (is_over && !s->ended_unix_s)) /* a lost one: nobody saw its end */
        return -1;
    return (s->ended_unix_s ? s->ended_unix_s : now_unix_s) - s->started_unix_s;
}

int64_t cli_age_s(int64_t created_unix_s, int64_t now_unix_s)
{
    return now_unix_s > created_unix_s ? now_unix_s - created_unix_s : 0;
}

int64_t cli_elapsed_s(const struct run_status *s)
{
    return show_elapsed_at(s, act_now_unix_s());
}

static void render_set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, cli_text_json(text));
}

/* Sets a line that may have been cut, within a character too. */
static void set_line(json_t *object, const char *key, const char *text)
{
    ACT_AUTOFREE char *line = act_one_line(text, strlen(text));

    render_set_text(object, key, line);
}

bool cli_has_exit_status(const struct run_status *s)
{
    return run_state_is_final(s->state) && s->state != RUN_CANCELED && s->exit_status >= 0;
}

json_t *cli_run_json(const struct flow_run *run)
{
    const struct run_status *s = &run->status;
    json_t *j = json_object();

    render_set_text(j, "id", run->row.id);
    render_set_text(j, "state", run_state_name(s->state));
    render_set_text(j, "name", run->row.name);
    json_object_set_new(j, "tags", run_tags_parse(run->row.tags));
    render_set_text(j, "cluster", run->row.cluster);
    render_set_text(j, "platform", run->row.platform);
    render_set_text(j, "project", run->row.project);
    json_object_set_new(j, "command", codec_json_strv_new(&run->spec.argv));
    render_set_text(j, "title", run->spec.title);
    ACT_AUTOFREE char *tool = flow_tool(&run->spec);
    render_set_text(j, "tool", tool);
    ACT_AUTOFREE char *param = flow_batch_param(&run->spec.argv);
    json_object_set_new(j, "param", param ? codec_json_bytes_new(param) : json_null());
    json_object_set_new(j, "num_gpu", json_integer(cli_gpus(run)));
    json_object_set_new(j, "created", cli_time_json(run->row.created_unix_s));
    json_object_set_new(j, "started", cli_time_json(s->started_unix_s));
    json_object_set_new(j, "ended", cli_time_json(s->ended_unix_s));
    json_object_set_new(j, "exit_status", cli_has_exit_status(s) ? json_integer(s->exit_status) : json_null());
    json_object_set_new(j, "failed_rank", s->failed_rank >= 0 ? json_integer(s->failed_rank) : json_null());
    set_line(j, "reason", s->reason);
    json_object_set_new(j, "attempts", s->attempts ? json_integer(s->attempts) : json_null());
    set_line(j, "retry", s->retry);
    json_object_set_new(j, "attempt", json_integer(s->attempt));
    render_set_text(j, "package", run->spec.package_sha256);
    render_set_text(j, "package_key", run->spec.package_key);
    render_set_text(j, "resubmit_of", run->spec.resubmit_of);
    render_set_text(j, "replaced_by", run->replaced_by);
    json_object_set_new(j, "after", codec_json_strv_new(&run->spec.needs));
    json_object_set_new(j, "nodes", json_integer(run->spec.nodes));
    json_object_set_new(j, "processes_per_node", json_integer(run->spec.procs_per_node));
    return j;
}

json_t *cli_spec_json(const struct run_spec *spec)
{
    json_t *j = json_object();

    json_object_set_new(j, "version", json_integer(1));
    render_set_text(j, "id", spec->id);
    render_set_text(j, "cluster", spec->cluster);
    render_set_text(j, "platform", spec->platform);
    json_object_set_new(j, "nodes", json_integer(spec->nodes));
    json_object_set_new(j, "processes_per_node", json_integer(spec->procs_per_node));
    render_set_text(j, "package", spec->package_sha256);
    render_set_text(j, "resubmit_of", spec->resubmit_of);
    json_object_set_new(j, "after", codec_json_strv_new(&spec->needs));
    render_set_text(j, "name", spec->name);
    json_object_set_new(j, "tags", spec->tags ? json_incref(spec->tags) : json_object());
    return j;
}

/* Which columns a table of runs has besides those that all have, and whether it has to be brief. */
struct show_columns {
    bool names, tools, reasons, short_ids, brief;
    bool narrow;        /* there is room for the name or the command of a run, not for both */
    int64_t now_unix_s; /* the same when a row is measured and when it is printed */
};

static void push_times(struct act_strv *cells, const struct flow_run *run, const struct show_columns *has)
{
    enum { MINUTE_S = 60 };
    char created[ACT_TIME_TEXT], age[ACT_UNIT_TEXT], elapsed[ACT_UNIT_TEXT] = "-";

    int64_t age_s = cli_age_s(run->row.created_unix_s, has->now_unix_s),
            elapsed_s = show_elapsed_at(&run->status, has->now_unix_s);
    act_time_to_local(run->row.created_unix_s, created);
    if (age_s < MINUTE_S)
        snprintf(age, sizeof(age), "%d s", (int)age_s);
    else
        act_duration_to_words(age_s, age);
    act_strv_push(cells, has->brief ? age : created);
    if (elapsed_s >= 0)
        act_duration_to_text(elapsed_s, elapsed);
    if (!has->reasons)
        act_strv_push(cells, elapsed);
}

static void push_tool(struct act_strv *cells, const struct flow_run *run)
{
    ACT_AUTOFREE char *tool = flow_tool(&run->spec);

    cli_push_count(cells, cli_has_exit_status(&run->status) ? run->status.exit_status : -1);
    cli_push_text(cells, tool);
}

const char *cli_short_id(const char *id)
{
    const char *piece = strrchr(id, '_');

    return piece && strlen(piece + 1) == 8 ? piece + 1 : id;
}

char *cli_called(const struct ledger_run *row)
{
    return row->name ? act_sprintf("%s (%s)", row->id, row->name) : act_strdup(row->id);
}

void cli_note_end(const struct flow_run *run, const char *called)
{
    const struct run_status *s = &run->status;
    bool failed = s->state == RUN_FAILED;

    act_note("%s%s%s%s%s%s%s%s", called, *called ? "  " : "", run_state_name(s->state), *s->reason ? ": " : "",
             s->reason, failed ? "; 'a why " : "", failed ? run->row.id : "", failed ? "' explains it" : "");
}

/* Tells whether the status knows the size. A run waits at first for what it was submitted with. */
static bool shows_size(const struct run_status *s)
{
    return s->has_size && (s->num_gpu > 0 || s->started_unix_s);
}

int64_t cli_gpus(const struct flow_run *run)
{
    return run->row.num_gpu > 0 && shows_size(&run->status) ? run->status.num_gpu : run->row.num_gpu;
}

static void render_add_tags(json_t *tags, struct act_buf *out)
{
    const char *key;
    json_t *value;

    json_object_foreach(tags, key, value)
        act_buf_addf(out, "%s%s=%s", out->len ? ", " : "", key, json_string_value(value));
}

char *cli_tags_text(const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    struct act_buf text = {0};

    render_add_tags(tags, &text);
    return text.len ? act_buf_steal(&text) : NULL;
}

/* The words of a note that there is no run of a state. */
struct show_state {
    const char *word, *verb;
};

static struct show_state show_state_of(const char *name)
{
    static const struct show_state states[] = {[RUN_QUEUED] = {"queued ", "is queued"},
                                               [RUN_RUNNING] = {"running ", "is running"},
                                               [RUN_FAILED] = {"failed ", "has failed"}};
    enum run_state state = name ? run_state_from_name(name) : RUN_UNKNOWN;

    return state < sizeof(states) / sizeof(states[0]) && states[state].word ? states[state]
                                                                            : (struct show_state){"", NULL};
}

void cli_note_no_runs(const struct flow_table *table)
{
    struct show_state state = show_state_of(table->state);
    const char *name = table->labels.name;
    ACT_AUTO(act_buf) tags = {0};
    ACT_AUTOFREE char *where = table->cluster ? act_sprintf(" on cluster '%s'", table->cluster) : act_strdup("");

    render_add_tags(table->labels.tags, &tags);
    if (name && tags.len)
        act_note("no %srun%s is named '%s' and tagged '%s'", state.word, where, name, tags.data);
    else if (name || tags.len)
        act_note("no %srun%s is %s '%s'", state.word, where, name ? "named" : "tagged", name ? name : tags.data);
    else if (state.verb)
        act_note("no run%s %s", where, state.verb);
    else
        act_note("no runs%s yet; 'a submit COMMAND' starts one", where);
}

/* Tells whether a terminal is so narrow that a table of runs is brief: its ids and times are short. */
static bool show_is_brief(int room)
{
    enum { ROOMY = 120 };

    return room > 0 && room < ROOMY;
}

static bool show_is_narrow(int room)
{
    enum { BOTH = 60 };

    return room > 0 && room < BOTH;
}

static void show_add_end(struct act_strv *ends, const struct flow_run *run)
{
    act_strv_push(ends, cli_short_id(run->row.id));
}

/* Tells whether the ends of ids differ, and sorts them. */
static bool show_ends_differ(struct act_strv *ends)
{
    act_strv_sort(ends);
    for (size_t i = 1; i < ends->n; i++)
        if (strcmp(ends->v[i - 1], ends->v[i]) == 0)
            return false;
    return true;
}

bool cli_short_ids(struct act_strv *ends, int room)
{
    return show_is_brief(room) && show_ends_differ(ends);
}

static void show_push_run(struct act_strv *cells, const struct flow_run *run, const struct show_columns *has)
{
    act_strv_push(cells, has->short_ids ? cli_short_id(run->row.id) : run->row.id);
    if (has->names && !has->narrow)
        cli_push_text(cells, run->row.name);
    act_strv_push(cells, run_state_name(run->status.state));
    if (has->tools)
        push_tool(cells, run);
    act_strv_push(cells, run->row.cluster);
    cli_push_count(cells, run->row.num_gpu > 0 ? cli_gpus(run) : -1);
    push_times(cells, run, has);
    if (has->reasons)
        cli_push_text(cells, run->status.reason);
    act_strv_push(cells, has->narrow && run->row.name ? run->row.name : run->row.command);
}

/* Looks which columns the table needs. Only a table of Azure Batch AI had exit status and tool of its jobs. Returns
 * whether there is one more. */
static bool show_look(struct show_columns *has, const struct flow_run *runs, size_t n)
{
    const bool had_names = has->names, had_tools = has->tools;

    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *tool = has->tools ? NULL : flow_tool(&runs[i].spec);
        has->names = has->names || runs[i].row.name;
        has->tools = has->tools || tool;
    }
    return has->names != had_names || has->tools != had_tools;
}

static struct cli_table *show_table_new(const struct show_columns *has, int room, bool coloured)
{
    const struct {
        bool is_there;
        struct cli_column column;
    } all[] = {
        {true, {"ID", 'l', .rank = 0}},
        {has->names && !has->narrow, {"NAME", 'l', .rank = 0, .min = 8}},
        {true, {"STATUS", 'l', .is_state = true}},
        {has->tools, {"EXIT", 'r', .rank = 6}},
        {has->tools, {"TOOL", 'l', .rank = 6}},
        {true, {"CLUSTER", 'l', .rank = 3, .min = 8}},
        {true, {"GPUS", 'r', .rank = 4}},
        {true, {has->brief ? "AGE" : "CREATED", has->brief ? 'r' : 'l', .rank = 5}},
        {!has->reasons, {"ELAPSED", 'r', .rank = 2}},
        {has->reasons, {"REASON", 'l', .rank = 1, .pad = 80, .below = true}},
        {true,
         {has->names && has->narrow ? "NAME, COMMAND" : "COMMAND", 'l', .rank = has->reasons ? 2 : 1, .min = 12,
          .cut = CLI_CUT_COMMAND}},
    };
    struct cli_column columns[sizeof(all) / sizeof(all[0])];
    size_t n = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].is_there)
            columns[n++] = all[i].column;
    return cli_table_new(columns, n, room, coloured);
}

static void show_cells(const struct show_columns *has, const struct flow_run *runs, size_t n, struct act_strv *cells)
{
    for (size_t i = 0; i < n; i++)
        show_push_run(cells, &runs[i], has);
}

void cli_runs_text(const struct flow_runs *runs, bool with_reason, int room, bool coloured, struct act_buf *out)
{
    struct show_columns has = {.reasons = with_reason,
                               .brief = show_is_brief(room),
                               .narrow = show_is_narrow(room),
                               .now_unix_s = act_now_unix_s()};
    ACT_AUTO(act_strv) ends = {0};
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < runs->n; i++)
        show_add_end(&ends, &runs->v[i]);
    has.short_ids = cli_short_ids(&ends, room);
    show_look(&has, runs->v, runs->n);
    struct cli_table *table = show_table_new(&has, room, coloured);
    show_cells(&has, runs->v, runs->n, &cells);
    cli_table_measure(table, &cells);
    cli_table_add(table, &cells, out);
    cli_table_free(table);
}

struct show_rows {
    struct show_columns *has;
    struct cli_table *table;
    bool lacks; /* a column that was not known to be needed: it begins again */
};

static int show_add_ends(void *ends, struct flow_run *runs, size_t n, struct act_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        show_add_end(ends, &runs[i]);
    return 0;
}

/* Looks whether the ids can be short. */
static int show_look_at_ids(struct show_columns *has, struct flow_rows *runs, struct act_error *err)
{
    ACT_AUTO(act_strv) ends = {0};
    int rc = has->brief ? flow_rows_each(runs, show_add_ends, &ends, NULL, err) : 0;

    has->short_ids = cli_short_ids(&ends, cli_width());
    return rc;
}

static int show_measure(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    struct show_rows *rows = arg;
    ACT_AUTO(act_strv) cells = {0};

    rows->lacks = show_look(rows->has, runs, n);
    if (rows->lacks)
        return act_error_set(err, ACT_INTERRUPTED, "the table has one more column");
    show_cells(rows->has, runs, n, &cells);
    cli_table_measure(rows->table, &cells);
    return 0;
}

static int show_print(void *arg, struct flow_run *runs, size_t n, struct act_error *err)
{
    const struct show_rows *rows = arg;
    ACT_AUTO(act_strv) cells = {0};
    ACT_AUTO(act_buf) text = {0};

    (void)err;
    show_cells(rows->has, runs, n, &cells);
    cli_table_add(rows->table, &cells, &text);
    cli_put_table(&text);
    return 0;
}

int cli_print_runs(struct flow_rows *runs, bool with_reason, struct flow_rows_count *out, struct act_error *err)
{
    int room = cli_width();
    struct show_columns has = {.reasons = with_reason,
                               .brief = show_is_brief(room),
                               .narrow = show_is_narrow(room),
                               .now_unix_s = act_now_unix_s()};
    struct show_rows rows = {.has = &has};
    int rc = show_look_at_ids(&has, runs, err);

    while (rc == 0 && (!rows.table || rows.lacks)) {
        cli_table_free(rows.table);
        rows.table = show_table_new(&has, room, cli_colour(stdout));
        rows.lacks = false;
        rc = flow_rows_each(runs, show_measure, &rows, out, err);
        rc = rows.lacks ? 0 : rc;
    }
    if (rc == 0)
        rc = flow_rows_each(runs, show_print, &rows, NULL, err); /* the first of them decide where commands are cut */
    if (rc == 0)
        rc = show_print(&rows, NULL, 0, err); /* the header, where there was no run */
    cli_table_free(rows.table);
    return rc;
}

void cli_push_affected(struct act_strv *cells, const struct ledger_run *row, const char *what)
{
    act_strv_take(cells, cli_called(row));
    act_strv_push(cells, what);
    act_strv_push(cells, row->cluster);
    act_strv_push(cells, row->command);
}

struct cli_table *cli_affected_table(int room)
{
    static const struct cli_column columns[] = {{NULL, 'l', .rank = 0},
                                                {NULL, 'r', .rank = 1},
                                                {NULL, 'l', .rank = 3, .min = 8},
                                                {NULL, 'l', .rank = 2, .min = 12, .cut = CLI_CUT_COMMAND}};

    return cli_table_new(columns, sizeof(columns) / sizeof(columns[0]), room, false);
}

void cli_affected_text(const struct act_strv *cells, int room, struct act_buf *out)
{
    struct cli_table *table = cli_affected_table(room);

    cli_table_measure(table, cells);
    cli_table_add(table, cells, out);
    cli_table_free(table);
}

char *cli_attempt(const struct run_status *status, int attempt)
{
    return status->attempts ? act_sprintf("%d of %d", attempt, status->attempts) : act_sprintf("%d", attempt);
}

static void print_field(const char *name, const char *value)
{
    if (!value || !*value)
        return;
    ACT_AUTOFREE char *line = act_one_line(value, strlen(value));
    printf("%-9s %s\n", name, line);
}

/* Prints a sentence, on a terminal in lines that fit. */
static void print_sentence(const char *name, const char *text)
{
    enum { AT = 10 };

    if (!text || !*text)
        return;
    ACT_AUTOFREE char *line = act_one_line(text, strlen(text));
    printf("%-9s ", name);
    cli_put_prose(line, AT, AT);
}

static void print_time(const char *name, int64_t unix_s)
{
    char text[ACT_TIME_TEXT];

    if (!unix_s)
        return;
    act_time_to_local(unix_s, text);
    print_field(name, text);
}

static void print_tags(const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(row->tags);
    const char *key;
    json_t *value;

    json_object_foreach(tags, key, value)
    {
        ACT_AUTOFREE char *tag = act_sprintf("%s=%s", key, json_string_value(value));
        print_field("tag", tag);
    }
}

static void print_param(const struct act_strv *argv)
{
    ACT_AUTOFREE char *param = flow_batch_param(argv);
    char *rest = param;

    if (param)
        puts("param");
    for (char *line; (line = strsep(&rest, "\n"));)
        print_field(" ", line);
}

/* Prints the size in GPUs, or else in processes. */
static void render_print_size(const struct flow_run *run)
{
    int64_t all = (int64_t)run->spec.nodes * run_spec_processes(&run->spec);
    int64_t processes = shows_size(&run->status) ? run->status.num_gpu : all;
    ACT_AUTOFREE char *number = act_sprintf("%lld", (long long)(run->row.num_gpu > 0 ? cli_gpus(run) : processes));

    if (run->row.num_gpu > 0 || processes > 0 || shows_size(&run->status))
        print_field(run->row.num_gpu > 0 ? "gpus" : "processes", number);
}

static void print_attempt(const struct run_status *s)
{
    ACT_AUTOFREE char *text = cli_attempt(s, s->attempt);

    if (s->attempt > 1 || s->attempts > 1)
        print_field("attempt", text);
}

void cli_print_run(const struct flow_run *run, const char *progress, const char *page, const char *code)
{
    const struct run_status *s = &run->status;
    char elapsed[ACT_UNIT_TEXT], number[32];

    printf("%-9s ", "status");
    cli_print_coloured(stdout, cli_state_colour(s->state), "%s", run_state_name(s->state));
    putchar('\n');
    print_field("progress", progress);
    print_sentence("reason", s->reason);
    print_attempt(s);
    print_sentence("retry", s->retry);
    print_field("id", run->row.id);
    print_field("name", run->row.name);
    print_tags(&run->row);
    print_field("command", run->row.command);
    print_param(&run->spec.argv);
    print_field("cluster", run->row.cluster);
    print_time("created", run->row.created_unix_s);
    print_time("start", s->started_unix_s);
    print_time("end", s->ended_unix_s);
    if (cli_elapsed_s(s) >= 0) {
        act_duration_to_text(cli_elapsed_s(s), elapsed);
        print_field("elapsed", elapsed);
    }
    render_print_size(run);
    if (cli_has_exit_status(s)) {
        snprintf(number, sizeof(number), "%d", s->exit_status);
        print_field("exit", number);
    }
    print_field("package", run->spec.package_sha256);
    print_field("repeats", run->spec.resubmit_of);
    for (size_t i = 0; i < run->spec.needs.n; i++)
        print_field("after", run->spec.needs.v[i]);
    print_field("replaced", run->replaced_by); /* by that run */
    print_field("works in", code);
    print_field("page", page);
    if (s->state == RUN_FAILED)
        printf("%-9s a why %s\n", "next", run->row.id);
}
