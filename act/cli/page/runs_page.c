#include "base/clock.h"
#include "base/units.h"
#include "cli/page/job.h"
#include "cli/page/page.h"
#include "cli/print/print.h"
#include "cli/screen/live.h"
#include "codec/json.h"

enum {
    MOST_SHOWN = 2000,   /* runs of a table, which is a page of at most 8 MiB */
    MOST_DATA = 1 << 20, /* bytes of what comes with it; more is asked for */
};

static void add_input(struct act_buf *out, const char *name, const char *label, const char *value)
{
    act_buf_addf(out, "<label class=\"field\"><span>%s</span><input name=\"%s\" value=\"", label, name);
    page_add_text(out, "", value ? value : "", "\"></label>\n");
}

/* Adds as many fields as there are tags, and one more. */
static void add_filter(struct act_buf *out, const struct page_filter *filter)
{
    act_buf_adds(out, "<form class=\"bar\" action=\"./\" method=\"get\">\n");
    add_input(out, "name", "Name", filter->name);
    for (size_t i = 0; i < filter->tags->n; i++)
        add_input(out, "tag", "Tag", filter->tags->v[i]);
    add_input(out, "tag", filter->tags->n > 0 ? "And tag" : "Tag, as key=value", NULL);
    add_input(out, "cluster", "Cluster", filter->cluster);
    act_buf_adds(out, "<button>Filter</button>\n<a href=\"./\">No filter</a>\n</form>\n");
}

static void page_runs_add_link(struct act_buf *out, const char *path, const char *class, const struct act_buf *query,
                               const char *text)
{
    act_buf_addf(out, "<a class=\"%s\" href=\"%s?", class, path);
    draw_escaped(out, query->data);
    page_add_short(out, "\">", text, "</a>");
}

/* Adds a link to the page of a run. A run of another machine is looked for on the table's cluster. */
static void add_run_link(struct act_buf *out, const struct flow_run *run, const struct page_filter *filter)
{
    ACT_AUTO(act_buf) query = {0};

    page_add_query(&query, "id", run->row.id);
    page_add_query(&query, "cluster", filter->cluster);
    page_runs_add_link(out, "run", "run-name", &query, run->row.name ? run->row.name : run->row.id);
}

/* Adds the tags, each a link to the table of the runs tagged so. */
static void page_runs_add_tags(struct act_buf *out, const struct flow_run *run)
{
    CODEC_AUTOJSON json_t *tags = run_tags_parse(run->row.tags);
    const char *key;
    json_t *value;

    json_object_foreach(tags, key, value)
    {
        ACT_AUTOFREE char *tag = act_sprintf("%s=%s", key, json_string_value(value));
        ACT_AUTO(act_buf) query = {0};
        page_add_query(&query, "tag", tag);
        page_runs_add_link(out, "./", "tag", &query, tag);
        act_buf_addc(out, ' ');
    }
}

static void page_runs_add_cell(struct act_buf *out, const char *class, const char *text)
{
    act_buf_addf(out, "</td><td%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    page_add_short(out, "", text ? text : "", "");
}

static void add_age(struct act_buf *out, const struct flow_run *run)
{
    int64_t age_s = act_now_unix_s() - run->row.created_unix_s;
    char created[ACT_TIME_TEXT], age[ACT_UNIT_TEXT] = "-";

    act_time_to_iso(run->row.created_unix_s, created);
    if (age_s >= 0 && run->row.created_unix_s > 0)
        act_duration_to_text(age_s, age);
    act_buf_addf(out, "</td><td class=\"n c-age\"><time datetime=\"%s\">%s</time>", created, age);
}

static void page_runs_add_row(struct act_buf *out, const struct flow_run *run, const struct page_filter *filter)
{
    const char *name = run->row.name ? run->row.name : run->row.id;

    page_add_text(out, "<tr><td class=\"mark\"><input type=\"checkbox\" name=\"id\" value=\"", run->row.id,
                  "\" aria-label=\"compare ");
    page_add_text(out, "", name, "\"></td><th scope=\"row\">");
    add_run_link(out, run, filter);
    act_buf_adds(out, "<small class=\"run-id\">");
    if (run->row.name)
        page_add_text(out, "<code>", run->row.id, "</code>\n");
    page_runs_add_tags(out, run);
    act_buf_adds(out, "</small></th><td class=\"c-state\">");
    page_add_state(out, run->status.state);
    if (run->status.state == RUN_FAILED || run->status.state == RUN_QUEUED)
        page_add_short(out, "<span class=\"why-text\">", run->status.reason, "</span>");
    page_runs_add_cell(out, "c-cluster", run->row.cluster);
    add_age(out, run);
    page_add_short(out, "</td><td class=\"c-command\"><code>", run->row.command, "</code></td></tr>\n");
}

static void page_runs_add_table(struct act_buf *out, const struct flow_runs *runs, const struct page_filter *filter)
{
    act_buf_adds(out, "<form action=\"compare\" method=\"get\">\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                      "aria-label=\"runs\">\n<table class=\"runs\"><thead><tr><td class=\"mark\"></td>"
                      "<th scope=\"col\">Run</th><th scope=\"col\">State</th><th scope=\"col\">Cluster</th>"
                      "<th scope=\"col\" class=\"n\">Age</th><th scope=\"col\">Command</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < runs->n; i++)
        page_runs_add_row(out, &runs->v[i], filter);
    act_buf_adds(out, "</tbody></table>\n</div>\n");
    if (filter->cluster)
        page_add_text(out, "<input type=\"hidden\" name=\"cluster\" value=\"", filter->cluster, "\">\n");
    act_buf_adds(out, "<p><button>Compare the marked runs</button></p>\n</form>\n");
}

static void page_runs_add_count(struct act_buf *out, const struct flow_runs *runs, const struct page_filter *filter)
{
    ACT_AUTO(act_buf) query = {0};

    if (runs->n == runs->total) {
        act_buf_addf(out, "<p class=\"dim\">%zu run%s</p>\n", runs->n, cli_plural(runs->n));
        return;
    }
    page_add_query(&query, "cluster", filter->cluster);
    page_add_query(&query, "name", filter->name);
    for (size_t i = 0; i < filter->tags->n; i++)
        page_add_query(&query, "tag", filter->tags->v[i]);
    bool fits = runs->total <= MOST_SHOWN;
    ACT_AUTOFREE char *more = fits ? act_strdup("Show all") : act_sprintf("Show %d", MOST_SHOWN);
    ACT_AUTOFREE char *max = fits ? act_strdup("0") : act_sprintf("%d", MOST_SHOWN);
    page_add_query(&query, "max", max);
    act_buf_addf(out, "<p class=\"dim\">The newest %zu of %zu runs. ", runs->n, runs->total);
    page_runs_add_link(out, "./", "", &query, more);
    act_buf_adds(out, "</p>\n");
}

/* Appends what a browser without scripts shows of the runs. */
static void page_runs_add_all(struct act_buf *out, const struct flow_runs *runs, const struct page_filter *filter)
{
    add_filter(out, filter);
    page_runs_add_count(out, runs, filter);
    if (runs->n > 0)
        page_runs_add_table(out, runs, filter);
}

void page_runs(const struct flow_runs *runs, const struct page_filter *filter, const struct page_live *live,
               const json_t *data, struct act_buf *out)
{
    ACT_AUTO(act_buf) text = {0};

    page_begin(&(struct page_head){.kind = PAGE_RUNS, .title = "Runs", .refresh_s = live->changes ? PAGE_REFRESH_S : 0},
               out);
    page_add_live(live, out);
    act_buf_adds(out, "<h1>Runs</h1>\n");
    if (data)
        page_add_data(&text, data);
    bool is_drawn = text.len > 0 && text.len <= MOST_DATA; /* by the script, at once: nothing is laid out twice */
    act_buf_adds(out, is_drawn ? "<noscript>\n" : "");
    page_runs_add_all(out, runs, filter);
    act_buf_adds(out, is_drawn ? "</noscript>\n" : "");
    if (is_drawn)
        act_buf_add(out, text.data, text.len);
    page_end(out);
}
