#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/page/page.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"

enum {
    KEYS_SHOWN = 48,
    KEY_POINTS = 60000, /* of all charts of keys together */
    LEAST_POINTS = 50,
    MOST_POINTS = 600,
};

/* ---- texts */

static void add_field(struct act_buf *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    act_buf_addf(out, "<tr><th scope=\"row\">%s</th><td>", name);
    page_add_short(out, "", value, "</td></tr>\n");
}

static void page_add_time(struct act_buf *out, const char *name, int64_t unix_s)
{
    char text[ACT_TIME_TEXT];

    if (unix_s <= 0)
        return;
    act_time_to_local(unix_s, text);
    add_field(out, name, text);
}

static void add_paragraph(struct act_buf *out, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    act_buf_addf(out, "<p><strong>%s</strong> ", name);
    page_add_short(out, "", text, "</p>\n");
}

static void add_lines(struct act_buf *out, const struct act_strv *lines)
{
    if (lines->n == 0)
        return;
    act_buf_adds(out, "<pre>");
    for (size_t i = 0; i < lines->n; i++) {
        page_add_short(out, "", lines->v[i], "");
        act_buf_addc(out, '\n');
    }
    act_buf_adds(out, "</pre>\n");
}

/* ---- what it is */

static void add_elapsed(struct act_buf *out, const struct run_status *s)
{
    int64_t end = s->ended_unix_s ? s->ended_unix_s : act_now_unix_s();
    char text[ACT_UNIT_TEXT];

    if (s->started_unix_s <= 0 || end < s->started_unix_s)
        return;
    act_duration_to_text(end - s->started_unix_s, text);
    add_field(out, s->ended_unix_s ? "took" : "running for", text);
}

static void add_overview(struct act_buf *out, const struct flow_report *r)
{
    const struct flow_run *run = r->run;
    const struct run_status *s = &run->status;
    ACT_AUTOFREE char *size =
        act_sprintf("%d, with %d process%s%s", run->spec.nodes, run_spec_processes(&run->spec),
                    run_spec_processes(&run->spec) == 1 ? "" : "es", run->spec.nodes == 1 ? "" : " each");
    ACT_AUTOFREE char *status = act_sprintf("%d", s->exit_status);
    ACT_AUTOFREE char *tags = cli_tags_text(&run->row);

    act_buf_adds(out, "<table><tbody>\n");
    add_field(out, "id", run->row.id);
    add_field(out, "tags", tags);
    act_buf_adds(out, "<tr><th scope=\"row\">state</th><td>");
    page_add_state(out, s->state);
    act_buf_adds(out, "</td></tr>\n");
    add_field(out, "reason", s->reason);
    add_field(out, "command", run->row.command);
    add_field(out, "project", run->row.project);
    add_field(out, "cluster", run->row.cluster);
    add_field(out, "platform", run->row.platform);
    if (run->spec.nodes > 0)
        add_field(out, "nodes", size);
    add_field(out, "package", run->spec.package_sha256);
    add_field(out, "repeats", run->spec.resubmit_of);
    page_add_time(out, "created", run->row.created_unix_s);
    page_add_time(out, "started", s->started_unix_s);
    page_add_time(out, "ended", s->ended_unix_s);
    add_elapsed(out, s);
    if (cli_has_exit_status(s))
        add_field(out, "exit status", status);
    act_buf_adds(out, "</tbody></table>\n");
}

static void add_attempts(struct act_buf *out, const struct flow_report *r)
{
    if (r->n_attempts < 2)
        return;
    act_buf_adds(out, "<h3>Attempts</h3>\n<table><thead><tr><th scope=\"col\">attempt</th><th scope=\"col\">state</th>"
                      "<th scope=\"col\">started</th><th scope=\"col\">reason</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < r->n_attempts; i++) {
        const struct run_status *s = &r->attempts[i].status;
        char started[ACT_TIME_TEXT] = "-";
        if (s->started_unix_s > 0)
            act_time_to_local(s->started_unix_s, started);
        act_buf_addf(out, "<tr><td>%d</td><td>", r->attempts[i].number);
        page_add_state(out, s->state);
        act_buf_addf(out, "</td><td>%s</td><td>", started);
        page_add_short(out, "", s->reason, "</td></tr>\n");
    }
    act_buf_adds(out, "</tbody></table>\n");
}

/* ---- why */

static void add_why(struct act_buf *out, const struct flow_report *r)
{
    const struct flow_why *why = &r->why;

    bool failed = r->run->status.state == RUN_FAILED;

    if (!r->has_why || !(failed || r->run->status.state == RUN_QUEUED) ||
        (why->attempt == 0 && !why->rule && why->said.n == 0))
        return;
    act_buf_addf(out, "<h2>%s</h2>\n<div class=\"why%s\">\n", failed ? "Why it failed" : "What it waits for",
                 failed ? " bad" : "");
    if (why->attempt > 0 && why->rank >= 0) {
        act_buf_addf(out, "<p><strong>rank %d</strong>%s", why->rank, why->node ? " on node " : "");
        page_add_short(out, "", why->node ? why->node : "", " failed first</p>\n");
    }
    if (why->attempt > 0)
        add_paragraph(out, "how", why->reason);
    if (why->rule) {
        add_paragraph(out, "class", why->rule->title);
        add_paragraph(out, "why", why->rule->summary);
        add_paragraph(out, "again", diagnose_retry_name(why->rule->retry));
        add_paragraph(out, "next", why->advice);
        add_paragraph(out, "evidence", why->line);
    }
    for (size_t i = 0; i < why->notes.n; i++)
        add_paragraph(out, "also", why->notes.v[i]);
    add_lines(out, &why->lines);
    for (size_t i = 0; i < why->said.n; i++) {
        ACT_AUTOFREE char *rank = act_sprintf("rank %d", why->said.v[i].rank);
        add_paragraph(out, rank, why->said.v[i].line);
    }
    act_buf_adds(out, "</div>\n");
}

/* ---- settings */

static bool page_differs(const struct flow_setting *s)
{
    return !act_streq(s->value, s->before);
}

static void add_setting(struct act_buf *out, const struct flow_setting *s, bool with_before)
{
    page_add_short(out, "<tr><th scope=\"row\">", s->name, "</th><td>");
    page_add_short(out, "", s->value ? s->value : "-", "");
    if (with_before)
        page_add_short(out, "</td><td>", s->before ? s->before : "-", "");
    act_buf_adds(out, "</td></tr>\n");
}

static void add_differences(struct act_buf *out, const char *compared, const struct flow_setting *v, size_t n)
{
    size_t n_differ = 0;

    page_add_text(out, "<h3>What differs from ", compared, "</h3>\n");
    for (size_t i = 0; i < n; i++)
        n_differ += page_differs(&v[i]);
    if (n_differ == 0) {
        act_buf_adds(out, "<p>nothing</p>\n");
        return;
    }
    act_buf_adds(out, "<table><thead><tr><th scope=\"col\">name</th><th scope=\"col\">this run</th>"
                      "<th scope=\"col\">that run</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < n; i++)
        if (page_differs(&v[i]))
            add_setting(out, &v[i], true);
    act_buf_adds(out, "</tbody></table>\n");
}

static void add_all_settings(struct act_buf *out, const struct flow_setting *v, size_t n)
{
    act_buf_addf(out, "<details><summary>all %zu values</summary>\n<table><tbody>\n", n);
    for (size_t i = 0; i < n; i++)
        if (v[i].value)
            add_setting(out, &v[i], false);
    act_buf_adds(out, "</tbody></table></details>\n");
}

static void add_settings(struct act_buf *out, const struct flow_report *r)
{
    act_buf_adds(out, "<h2>Configuration</h2>\n");
    if (r->compared)
        add_differences(out, r->compared, r->settings, r->n_settings);
    add_all_settings(out, r->settings, r->n_settings);
    if (r->n_software == 0)
        return;
    act_buf_adds(out, "<h2>Software</h2>\n");
    if (r->n_compared_software)
        add_differences(out, r->compared, r->compared_software, r->n_compared_software);
    add_all_settings(out, r->software, r->n_software);
}

/* ---- numbers */

void page_key_chart(struct numbers *const *numbers, const struct flow_run *const *runs, size_t n, const char *key,
                    size_t points, struct draw_curve *curves, struct draw_chart *out)
{
    *out = (struct draw_chart){.title = key, .curves = curves};
    for (size_t i = 0; i < n; i++) {
        struct numbers_key *found = numbers_find(numbers[i], key);
        if (!found)
            continue;
        if (points > 0)
            series_reduce(&found->series, points);
        if (out->n == 0) {
            out->title = found->name;
            out->x_name = numbers_by_name(found->by);
        }
        curves[out->n++] = (struct draw_curve){.label = runs[i]->row.name ? runs[i]->row.name : runs[i]->row.id,
                                               .series = &found->series};
    }
}

/* Lists the keys of all runs that have a curve, measures first. */
static void page_list_keys(struct numbers *const *numbers, size_t n, struct act_strv *out)
{
    for (int measures = 1; measures >= 0; measures--)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < numbers_count(numbers[i]); k++) {
                const struct numbers_key *key = numbers_key(numbers[i], k);
                size_t at = 0;
                while (at < out->n && strcasecmp(out->v[at], key->name) != 0)
                    at++;
                if (at == out->n && key->is_measure == measures && key->series.n > 1)
                    act_strv_push(out, key->name);
            }
}

static void add_odd_note(struct act_buf *out, const struct draw_chart *chart)
{
    for (size_t i = 0; i < chart->n; i++) {
        const struct series *s = chart->curves[i].series;
        if (s->odd == 0)
            continue;
        act_buf_addf(out,
                     "<p class=\"note\">%llu value%s not finite, the first at %s %.10g: ", (unsigned long long)s->odd,
                     s->odd == 1 ? " is" : "s are", chart->x_name, s->odd_x[0]);
        page_add_text(out, "", chart->curves[i].label, "</p>");
    }
}

static void add_numbers(struct act_buf *out, struct flow_report *reports, size_t n)
{
    ACT_AUTOFREE struct numbers **numbers = act_calloc(n, sizeof(struct numbers *));
    ACT_AUTOFREE const struct flow_run **runs = act_calloc(n, sizeof(struct flow_run *));
    ACT_AUTOFREE struct draw_curve *curves = act_calloc(n, sizeof(*curves));
    ACT_AUTO(act_strv) keys = {0};
    struct draw_chart chart;

    for (size_t i = 0; i < n; i++) {
        numbers[i] = reports[i].numbers;
        runs[i] = reports[i].run;
    }
    page_list_keys(numbers, n, &keys);
    size_t shown = keys.n < KEYS_SHOWN ? keys.n : KEYS_SHOWN, points = KEY_POINTS / n / (shown ? shown : 1);
    points = points < LEAST_POINTS ? LEAST_POINTS : points > MOST_POINTS ? MOST_POINTS : points;
    act_buf_adds(out, "<h2>Curves</h2>\n<div data-tools=\"curves\"></div>\n");
    if (keys.n == 0)
        act_buf_adds(out, "<p class=\"dim\">The logs have no numbers with names.</p>\n");
    act_buf_adds(out, "<div class=\"grid-of\">\n");
    for (size_t i = 0; i < shown; i++) {
        page_key_chart(numbers, runs, n, keys.v[i], points, curves, &chart);
        page_add_text(out, "<div data-key=\"", chart.title, "\">");
        draw_figure(&chart, out);
        add_odd_note(out, &chart);
        act_buf_adds(out, "</div>\n");
    }
    act_buf_adds(out, "</div>\n");
    if (shown < keys.n)
        act_buf_addf(out, "<p class=\"note\">and %zu more names, which 'a plot' draws</p>\n", keys.n - shown);
}

/* ---- nodes */

/* The time that all nodes of a run have in common, and the attempts in it. */
struct timeline {
    double from, until;
    struct draw_mark *marks;
    size_t n_marks;
    struct act_strv labels;
};

static void find_timeline(const struct flow_report *r, struct timeline *out)
{
    *out = (struct timeline){0};
    for (size_t i = 0; i < r->n_nodes; i++)
        for (int what = 0; what < SAMPLES_CURVES; what++) {
            const struct series *s = &r->nodes[i].curves[what];
            if (s->n == 0)
                continue;
            out->from = out->from == 0 || s->v[0].x < out->from ? s->v[0].x : out->from;
            out->until = s->v[s->n - 1].x > out->until ? s->v[s->n - 1].x : out->until;
        }
    out->marks = act_calloc(r->n_attempts + 1, sizeof(*out->marks));
    for (size_t i = 1; i < r->n_attempts; i++)
        if (r->attempts[i].status.started_unix_s > out->from && r->attempts[i].status.started_unix_s < out->until) {
            act_strv_pushf(&out->labels, "attempt %d", r->attempts[i].number);
            out->marks[out->n_marks++] =
                (struct draw_mark){(double)r->attempts[i].status.started_unix_s, out->labels.v[out->labels.n - 1]};
        }
}

static void release_timeline(struct timeline *t)
{
    free(t->marks);
    act_strv_release(&t->labels);
}

/* Returns how far apart two points may be: more is time in which nothing was known. */
static double gap_of(const struct series *s)
{
    enum { LEAST_S = 60, TIMES = 4 };
    double usual = (s->v[s->n - 1].x - s->v[0].x) / (double)s->n;

    return usual * TIMES > LEAST_S ? usual * TIMES : LEAST_S;
}

/* Adds the chart that n quantities share. */
static void add_use_chart(struct act_buf *out, const struct flow_node_use *node, const struct timeline *t,
                          const struct api_use *uses, size_t n)
{
    struct draw_curve curves[SAMPLES_GPUS] = {0};
    ACT_AUTO(act_strv) labels = {0};
    struct draw_chart chart = {.title = uses->chart,
                               .x_name = "",
                               .curves = curves,
                               .marks = t->marks,
                               .n_marks = t->n_marks,
                               .x_unit = DRAW_DURATION,
                               .y_unit = uses->unit,
                               .x_origin = t->from,
                               .x_low = t->from,
                               .x_high = t->until,
                               .y_high = uses->unit == DRAW_SHARE ? 1 : 0};

    for (size_t i = 0; i < n; i++)
        for (int nth = 0; nth < api_use_curves(&uses[i], node); nth++) {
            const struct series *s = &node->curves[uses[i].what + nth];
            if (s->n < 2) /* one sample is no curve */
                continue;
            act_strv_take(&labels, api_use_label(&uses[i], nth));
            curves[chart.n++] = (struct draw_curve){.series = s, .label = labels.v[labels.n - 1]};
        }
    if (chart.n == 0)
        return;
    chart.gap = gap_of(curves[0].series);
    act_buf_addf(out, "<div data-unit=\"%s\">", uses->unit == DRAW_SHARE ? "share" : "bytes");
    draw_figure(&chart, out);
    act_buf_adds(out, "</div>\n");
}

static void add_use_charts(struct act_buf *out, const struct flow_node_use *node, const struct timeline *t)
{
    for (size_t i = 0, n; i < API_USES; i += n) {
        for (n = 1; i + n < API_USES && strcmp(api_uses[i + n].chart, api_uses[i].chart) == 0;)
            n++;
        add_use_chart(out, node, t, &api_uses[i], n);
    }
}

static void add_attempts_note(struct act_buf *out, const struct timeline *t)
{
    char text[ACT_UNIT_TEXT];

    if (t->n_marks == 0)
        return;
    act_buf_adds(out, "<p class=\"note\">The dotted lines are");
    for (size_t i = 0; i < t->n_marks; i++) {
        act_duration_to_text((int64_t)(t->marks[i].x - t->from), text);
        act_buf_addf(out, "%s the beginning of %s (%s)", i ? "," : "", t->marks[i].label, text);
    }
    act_buf_adds(out, ".</p>\n");
}

static void page_add_nodes(struct act_buf *out, const struct flow_report *r)
{
    struct timeline t;
    char from[ACT_TIME_TEXT];

    if (r->n_nodes == 0)
        return;
    find_timeline(r, &t);
    act_time_to_local((int64_t)t.from, from);
    act_buf_addf(
        out, "<h2>Nodes</h2>\n<div data-tools=\"use\"></div>\n<p class=\"note\">Time is counted from %s.</p>\n", from);
    add_attempts_note(out, &t);
    for (size_t i = 0; i < r->n_nodes; i++) {
        page_add_text(out, "<section>\n<h3>Node ", r->nodes[i].name, "</h3>\n<div class=\"grid-of\">\n");
        add_use_charts(out, &r->nodes[i], &t);
        act_buf_adds(out, "</div>\n");
        if (r->nodes[i].bad > 0)
            act_buf_addf(out, "<p class=\"note\">%llu line%s of its metrics could not be read</p>\n",
                         (unsigned long long)r->nodes[i].bad, cli_plural(r->nodes[i].bad));
        act_buf_adds(out, "</section>\n");
    }
    if (r->n_nodes < r->n_all_nodes)
        act_buf_addf(out, "<p class=\"note\">and %zu more nodes</p>\n", r->n_all_nodes - r->n_nodes);
    release_timeline(&t);
}

/* ---- logs */

static void page_add_tails(struct act_buf *out, const struct flow_report *r)
{
    if (r->n_tails == 0)
        return;
    act_buf_adds(out, "<h2>Ends of the logs</h2>\n");
    for (size_t i = 0; i < r->n_tails; i++) {
        act_buf_addf(out, "<details%s><summary>", i == 0 ? " open" : "");
        page_add_text(out, "", r->tails[i].log, "</summary>\n");
        add_lines(out, &r->tails[i].lines);
        act_buf_adds(out, "</details>\n");
    }
}

static void page_add_file(struct act_buf *out, const char *name, uint64_t size)
{
    char text[ACT_UNIT_TEXT];

    act_size_to_text(size, text);
    page_add_short(out, "<tr><td>", name, "");
    act_buf_addf(out, "</td><td class=\"n\">%s</td></tr>\n", text);
}

/* Begins a table of files that can be folded; its summary is not escaped. */
static void ACT_PRINTF(3, 4) begin_files(struct act_buf *out, bool is_open, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *summary = act_vsprintf(fmt, ap);
    va_end(ap);
    act_buf_addf(out,
                 "<details%s><summary>%s</summary>\n<table><thead><tr><th scope=\"col\">name</th>"
                 "<th scope=\"col\" class=\"n\">size</th></tr></thead><tbody>\n",
                 is_open ? " open" : "", summary);
}

static const char FILES_END[] = "</tbody></table></details>\n";

static void page_add_outputs(struct act_buf *out, const struct flow_report *r)
{
    char size[ACT_UNIT_TEXT];

    if (r->n_outputs == 0)
        return;
    act_size_to_text(r->output_bytes, size);
    begin_files(out, r->n_outputs <= 20, "%zu file%s in its folders, written while it ran, %s%s", r->n_all_outputs,
                cli_plural(r->n_all_outputs), size, r->n_outputs < r->n_all_outputs ? "; the biggest:" : "");
    for (size_t i = 0; i < r->n_outputs; i++)
        page_add_file(out, r->outputs[i].name, r->outputs[i].size);
    act_buf_adds(out, FILES_END);
}

static void page_add_files(struct act_buf *out, const struct flow_report *r)
{
    const struct run_spec *spec = &r->run->spec;

    act_buf_adds(out, "<h2>Artefacts</h2>\n");
    page_add_outputs(out, r);
    begin_files(out, r->n_files <= 20, "%zu logs and other files", r->n_files);
    if (spec->package_key)
        page_add_file(out, spec->package_key, spec->package_bytes > 0 ? (uint64_t)spec->package_bytes : 0);
    for (size_t i = 0; i < r->n_files; i++)
        page_add_file(out, r->files[i].name, r->files[i].size);
    act_buf_adds(out, FILES_END);
}

/* ---- the page */

static void page_add_run(struct act_buf *out, struct flow_report *r, bool is_alone)
{
    act_buf_addf(out, "<section>\n<h%d>", is_alone ? 1 : 2);
    page_add_short(out, "", r->run->row.name ? r->run->row.name : r->run->row.id, "");
    act_buf_addf(out, "</h%d>\n", is_alone ? 1 : 2);
    add_overview(out, r);
    add_attempts(out, r);
    add_why(out, r);
    if (is_alone)
        add_numbers(out, r, 1);
    page_add_nodes(out, r);
    add_settings(out, r);
    page_add_tails(out, r);
    page_add_files(out, r);
    act_buf_adds(out, "</section>\n");
}

static void add_leaders(struct act_buf *out, const struct page_leaders *leaders)
{
    page_add_text(out, "<h2>Best ", leaders->key, "</h2>\n<table><thead><tr>");
    for (size_t i = 0; i < leaders->heads.n; i++)
        page_add_short(out, "<th scope=\"col\">", leaders->heads.v[i], "</th>");
    act_buf_adds(out, "</tr></thead><tbody>");
    for (size_t row = 0; row < leaders->cells.n; row += leaders->heads.n) {
        act_buf_adds(out, "\n<tr>");
        for (size_t i = 0; i < leaders->heads.n; i++)
            page_add_short(out, "<td>", leaders->cells.v[row + i], "</td>");
        act_buf_adds(out, "</tr>");
    }
    act_buf_adds(out, "\n</tbody></table>\n");
}

/* ---- the numbers of a report as data; what nodes used is read off their pictures, which is as exact as they need */

static void page_add_numbers_data(struct act_buf *out, struct flow_report *reports, size_t n, size_t points)
{
    json_t *runs = json_array(), *series = json_array();
    CODEC_AUTOJSON json_t *data = json_pack("{s:o,s:o}", "runs", runs, "series", series);

    for (size_t i = 0; i < n; i++) {
        const struct flow_run *run = reports[i].run;
        json_array_append_new(runs, json_pack("{s:s,s:o}", "id", run->row.id, "name", cli_text_json(run->row.name)));
        api_add_series(run, reports[i].numbers, &(struct act_strv){0}, points, series);
    }
    page_add_data(out, data);
}

/* Returns "NAME", or "NAME and 2 more". New string. */
static char *page_title_of(const struct flow_report *reports, size_t n)
{
    const struct flow_run *run = reports[0].run;
    const char *name = run->row.name ? run->row.name : run->row.id;

    return n > 1 ? act_sprintf("%s and %zu more", name, n - 1) : act_strdup(name);
}

void page_write(struct flow_report *reports, size_t n, const struct page_leaders *leaders, const struct page_live *live,
                struct act_buf *out)
{
    ACT_AUTOFREE char *title = page_title_of(reports, n);

    page_begin(&(struct page_head){.kind = !live   ? PAGE_REPORT
                                           : n > 1 ? PAGE_COMPARE
                                                   : PAGE_RUN,
                                   .title = title,
                                   .refresh_s = live && live->changes ? PAGE_REFRESH_S : 0},
               out);
    page_add_live(live, out);
    if (n > 1)
        act_buf_addf(out, "<h1>%zu runs</h1>\n", n);
    if (leaders)
        add_leaders(out, leaders);
    if (n > 1)
        add_numbers(out, reports, n);
    for (size_t i = 0; i < n; i++)
        page_add_run(out, &reports[i], n == 1);
    if (!live)
        page_add_numbers_data(out, reports, n, MOST_POINTS);
    page_end(out);
}
