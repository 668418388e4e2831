#include <math.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/page/options.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

enum { COLUMNS = 80, ROWS = 18, SVG_POINTS = 2000, POINTS_PER_COLUMN = 8 };

struct plot {
    const struct flow_runs *runs;
    const struct flow_run **of; /* each run */
    struct numbers **numbers;   /* of each run */
    struct draw_curve *curves;
    const struct flow_run **drawn; /* of each curve */
    struct act_strv labels;        /* for people */
    struct draw_chart chart;
};

/* ---- what is printed */

static void cmd_plot_print_csv(const struct plot *p)
{
    printf("run,%s,%s\n", p->chart.x_name, p->chart.title);
    for (size_t i = 0; i < p->chart.n; i++)
        for (size_t k = 0; k < p->chart.curves[i].series->n; k++) {
            const struct series_point *point = &p->chart.curves[i].series->v[k];
            printf("%s,%.15g,%.15g\n", p->drawn[i]->row.id, point->x, point->y);
        }
}

static json_t *point_json(const struct series_point *p)
{
    return json_pack("[f,f]", p->x, p->y);
}

/* Adds what is known of all values of a curve, with and without its points. */
static void plot_describe(const struct series *s, json_t *out)
{
    json_object_set_new(out, "values", json_integer((json_int_t)s->count));
    json_object_set_new(out, "min", cli_number_json(s->count > 0, s->low));
    json_object_set_new(out, "max", cli_number_json(s->count > 0, s->high));
    json_object_set_new(out, "last", cli_number_json(true, s->ended_y));
    json_object_set_new(out, "not_finite", json_integer((json_int_t)s->odd));
}

static json_t *curve_json(const struct flow_run *run, const struct series *s)
{
    json_t *json = json_pack("{s:s}", "run", run->row.id);

    plot_describe(s, json);
    json_object_set_new(json, "points", CLI_JSON_LIST(s->v, s->n, point_json));
    return json;
}

static int cmd_plot_print_json(const struct plot *p, struct act_error *err)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < p->chart.n; i++)
        json_array_append_new(runs, curve_json(p->drawn[i], p->chart.curves[i].series));
    return cli_print_pack(err, "{s:s,s:s,s:o}", "key", p->chart.title, "by", p->chart.x_name, "runs", runs);
}

static void cmd_plot_print_text(const struct plot *p)
{
    int width = cli_width();
    struct draw_text how = {
        .columns = width ? width : COLUMNS, .rows = ROWS, .plain = !cli_utf8(), .coloured = cli_colour(stdout)};
    ACT_AUTO(act_buf) text = {0};

    draw_text(&p->chart, &how, &text);
    act_terminal_show(stdout, ACT_SHOW_LINES | ACT_SHOW_COLOURS);
    fwrite(text.data, 1, text.len, stdout);
    act_terminal_show(stdout, ACT_SHOW_LINES);
}

static void print_svg(const struct plot *p)
{
    ACT_AUTO(act_buf) text = {0};

    draw_svg(&p->chart, &text);
    fwrite(text.data, 1, text.len, stdout);
}

static size_t cmd_plot_points_of(const struct cli *cli)
{
    if (CLI_OPTIONS(cli, page)->csv || cli->options.json)
        return 0;
    return CLI_OPTIONS(cli, page)->svg ? SVG_POINTS : (size_t)(cli_width() ? cli_width() : COLUMNS) * POINTS_PER_COLUMN;
}

/* Labels each curve with the name of its run, or with its id, where another curve has that name or it has none. */
static void cmd_plot_label(struct plot *p)
{
    for (size_t i = 0; i < p->chart.n; i++) {
        const char *name = p->drawn[i]->row.name, *id = p->drawn[i]->row.id;
        bool is_shared = false;
        for (size_t k = 0; k < p->chart.n && name; k++)
            is_shared = is_shared || (k != i && act_streq(p->drawn[k]->row.name, name));
        act_strv_pushf(&p->labels, is_shared ? "%s (%s)" : "%s", name ? name : id, cli_short_id(id));
    }
    for (size_t i = 0; i < p->chart.n; i++)
        p->curves[i].label = p->labels.v[i];
}

/* Makes the chart, and notes whose its curves are. */
static void cmd_plot_make(const struct cli *cli, struct plot *p, const char *key)
{
    size_t n = 0;

    page_key_chart(p->numbers, p->of, p->runs->n, key, cmd_plot_points_of(cli), p->curves, &p->chart);
    for (size_t i = 0; i < p->runs->n; i++)
        if (numbers_find(p->numbers[i], key))
            p->drawn[n++] = p->of[i];
    cmd_plot_label(p);
}

static int cmd_plot_print(const struct cli *cli, const struct plot *p, struct act_error *err)
{
    cli_buffer_stdout();
    if (cli->options.json)
        return cmd_plot_print_json(p, err);
    if (CLI_OPTIONS(cli, page)->csv)
        cmd_plot_print_csv(p);
    else if (CLI_OPTIONS(cli, page)->svg)
        print_svg(p);
    else
        cmd_plot_print_text(p);
    fflush(stdout);
    return cli_check_stdout(err);
}

/* ---- which numbers there are */

static int no_such_key(const struct plot *p, const char *key, struct act_error *err)
{
    ACT_AUTOFREE char *where = act_sprintf("'%s'", p->runs->v[0].row.id);

    return cli_find_metric(key, p->numbers, p->runs->n, where, err);
}

static json_t *plot_key_json(const struct flow_run *run, const struct numbers_key *key)
{
    json_t *json = json_pack("{s:s,s:s,s:s}", "run", run->row.id, "key", key->name, "by", numbers_by_name(key->by));

    plot_describe(&key->series, json);
    return json;
}

/* Adds "2.31"; "-" for a value that is not there, "nan" for one that is no number. */
static void plot_push_value(struct act_strv *cells, bool is_there, double value)
{
    if (is_there && !isnan(value))
        act_strv_pushf(cells, "%.6g", value);
    else
        act_strv_push(cells, is_there ? "nan" : "-");
}

static void plot_push_key(const struct flow_run *run, const struct numbers_key *key, struct act_strv *cells)
{
    const struct series *s = &key->series;

    act_strv_push(cells, key->name);
    act_strv_pushf(cells, "%zu", s->count);
    plot_push_value(cells, s->count > 0, s->low);
    plot_push_value(cells, s->count > 0, s->high);
    plot_push_value(cells, true, s->ended_y);
    act_strv_push(cells, run->row.id);
}

static int plot_print_keys(const struct cli *cli, const struct plot *p, struct act_error *err)
{
    static const struct cli_column columns[] = {
        {"KEY", 'l', .rank = 0}, {"VALUES", 'r', .rank = 2}, {"MIN", 'r', .rank = 3},
        {"MAX", 'r', .rank = 3}, {"LAST", 'r', .rank = 1},   {"RUN", 'l', .rank = 1},
    };
    ACT_AUTO(act_strv) cells = {0};
    json_t *list = json_array();
    int rc = 0;

    for (size_t i = 0; i < p->runs->n; i++)
        for (size_t k = 0; k < numbers_count(p->numbers[i]); k++) {
            plot_push_key(p->of[i], numbers_key(p->numbers[i], k), &cells);
            json_array_append_new(list, plot_key_json(p->of[i], numbers_key(p->numbers[i], k)));
        }
    if (cells.n == 0)
        rc = no_such_key(p, "", err);
    else if (cli->options.json)
        return cli_print_pack(err, "{s:o}", "keys", list);
    else
        cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
    json_decref(list);
    return rc;
}

/* ---- what is drawn */

/* Says which of the runs are not drawn. */
static int say_missing(const struct plot *p, const char *key, struct act_error *err)
{
    ACT_AUTO(act_buf) ids = {0};
    size_t n = 0;

    for (size_t i = 0; i < p->runs->n; i++)
        if (!numbers_find(p->numbers[i], key))
            act_buf_addf(&ids, "%s%s", n++ ? ", " : "", p->runs->v[i].row.id);
    if (n == 0)
        return 0;
    return act_error_set(err, ACT_PARTIAL, "%zu of %zu runs are drawn: there is no '%s' in the log of %s",
                         p->runs->n - n, p->runs->n, key, ids.data);
}

static int cmd_plot_read_all(struct cli *cli, struct plot *p, struct act_error *err)
{
    int rc = 0, rank;

    for (size_t i = 0; i < p->runs->n && rc == 0; i++) {
        p->of[i] = &p->runs->v[i];
        rc = flow_read_numbers(&cli->flow, p->of[i], (int)CLI_OPTIONS(cli, logs)->rank, (struct series_range){0},
                               &p->numbers[i], &rank, err);
    }
    return rc;
}

static int plot_key(const struct cli *cli, struct plot *p, const char *key, struct act_error *err)
{
    cmd_plot_make(cli, p, key);
    int rc = p->chart.n > 0 ? cmd_plot_print(cli, p, err) : no_such_key(p, key, err);
    return rc == 0 ? say_missing(p, key, err) : rc;
}

/* Draws the number; key NULL: lists those that there are. */
static int plot(struct cli *cli, const struct flow_runs *runs, const char *key, struct act_error *err)
{
    struct plot p = {.runs = runs,
                     .of = act_calloc(runs->n, sizeof(struct flow_run *)),
                     .numbers = act_calloc(runs->n, sizeof(struct numbers *)),
                     .curves = act_calloc(runs->n, sizeof(struct draw_curve)),
                     .drawn = act_calloc(runs->n, sizeof(struct flow_run *))};
    int rc = cmd_plot_read_all(cli, &p, err);

    if (rc == 0)
        rc = key ? plot_key(cli, &p, key, err) : plot_print_keys(cli, &p, err);
    for (size_t i = 0; i < runs->n; i++) {
        if (rc == 0 && !key)
            flow_say_more_numbers(p.of[i], p.numbers[i]);
        numbers_free(p.numbers[i]);
    }
    free(p.of);
    free(p.numbers);
    free(p.curves);
    free(p.drawn);
    act_strv_release(&p.labels);
    return rc;
}

int cmd_plot(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_runs) runs = {0};
    bool has_key = cli->words.n > 0 && *cli->words.v[0] != '@';
    const char *option = CLI_OPTIONS(cli, page)->svg ? "--svg" : "--csv";
    bool labelled = cli->options.name || cli->options.tags.n > 0;

    if (CLI_OPTIONS(cli, page)->svg + CLI_OPTIONS(cli, page)->csv + cli->options.json > 1)
        return act_error_set(err, ACT_USAGE, "--svg, --csv and --json exclude each other");
    if (!has_key && (CLI_OPTIONS(cli, page)->svg || CLI_OPTIONS(cli, page)->csv))
        return act_error_set(err, ACT_USAGE,
                             "%s needs the name of a number, as in 'a plot loss %s': 'a plot' lists them", option,
                             option);
    if (has_key && cli->words.n == 1 && !labelled)
        act_strv_push(&cli->words, "@");
    int rc = cli_find_with_logs(cli, has_key, &runs, err);
    return rc < 0 ? rc : plot(cli, &runs, has_key ? cli->words.v[0] : NULL, err);
}
