/* page.c - the pages of 'a ui', each made by a process of its own. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

enum { REFRESH_S = 10, DEFAULT_MAX = 200, RUNS_MAX = 8, SAID_BYTES = 16 << 10, SAID_LINES = 20 };

/* ---- what is said meanwhile belongs on the page */

struct hush {
    int before, said; /* stderr as it was, and what was written to it; -1: it was not replaced */
};

static void hush_begin(struct hush *h)
{
    h->said = memfd_create("said", MFD_CLOEXEC);
    h->before = h->said < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (h->before >= 0)
        dup2(h->said, STDERR_FILENO);
}

static void hush_end(struct hush *h, struct act_strv *out)
{
    static const char prefix[] = "act: ", warning[] = "warning: ";
    char text[SAID_BYTES + 1];
    ssize_t n = h->before < 0 ? -1 : pread(h->said, text, SAID_BYTES, 0);
    char *rest = text;

    text[n > 0 ? n : 0] = '\0';
    for (char *line; out->n < SAID_LINES && (line = strsep(&rest, "\n"));) {
        line += act_starts_with(line, prefix) ? strlen(prefix) : 0;
        line += act_starts_with(line, warning) ? strlen(warning) : 0;
        if (*line && !act_strv_has(out, line))
            act_strv_push(out, line);
    }
    if (h->before >= 0) {
        dup2(h->before, STDERR_FILENO);
        close(h->before);
    }
    if (h->said >= 0)
        close(h->said);
}

/* ---- the query that leads to the same page */

static char *query_of(const struct cli *cli)
{
    ACT_AUTOFREE char *max = cli->options.max >= 0 ? act_sprintf("%lld", (long long)cli->options.max) : NULL;
    struct act_buf query = {0};

    for (size_t i = 0; i < cli->words.n; i++)
        page_add_query(&query, "id", cli->words.v[i]);
    page_add_query(&query, "cluster", cli->options.cluster);
    page_add_query(&query, "name", cli->options.name);
    for (size_t i = 0; i < cli->options.tags.n; i++)
        page_add_query(&query, "tag", cli->options.tags.v[i]);
    page_add_query(&query, "max", max);
    return act_buf_steal(&query);
}

static int cmd_page_print(const struct act_buf *page, int refresh_s, struct act_error *err)
{
    cli_buffer_stdout();
    printf(PAGE_REFRESH "%d\n", refresh_s);
    fwrite(page->data, 1, page->len, stdout);
    fflush(stdout);
    return cli_check_stdout(err);
}

/* ---- the table */

static int cmd_page_print_table(struct cli *cli, struct hush *hush, struct act_strv *said, struct act_error *err)
{
    struct page_filter filter = {.cluster = cli->options.cluster,
                                 .name = cli->options.name,
                                 .tags = &cli->options.tags,
                                 .max = cli->options.max >= 0 ? cli->options.max : DEFAULT_MAX};
    struct flow_table table = {.cluster = cli->options.cluster, .max = filter.max};
    ACT_AUTOFREE char *query = query_of(cli);
    ACT_AUTO(flow_runs) runs = {0};
    ACT_AUTO(act_buf) page = {0};

    int rc = cli_labels(cli, &table.labels, err);
    if (rc == 0)
        rc = flow_list_runs(&cli->flow, &table, &runs, err);
    hush_end(hush, said);
    if (rc < 0)
        return rc;
    page_runs(&runs, &filter, &(struct page_live){said, true, query}, &page);
    return cmd_page_print(&page, REFRESH_S, err);
}

/* ---- reports */

/* Finds a run. A cluster that cannot, or must not, be asked is no reason to show nothing. */
static int find_run(struct cli *cli, const char *word, struct flow_run *out, struct act_error *err)
{
    ACT_AUTO(flow_logs) logs = {0};
    struct act_error failed;

    cli->flow.reads_logs = true;
    int rc = flow_find_run(&cli->flow, word, out, err);
    if (rc == -ACT_NOT_FOUND || rc == -ACT_USAGE)
        return rc;
    if (rc < 0) {
        failed = *err;
        rc = flow_find_known(&cli->flow, word, out, err);
        if (rc == 0)
            act_warn("the state may be old: %s", act_error_text(&failed));
        return rc;
    }
    if (cli_fetch_logs(cli, out, &logs, &failed) < 0 || cli_check_kept(out, &logs, &failed) < 0)
        act_warn("the logs may be old: %s", act_error_text(&failed));
    return 0;
}

static int cmd_page_find_runs(struct cli *cli, struct flow_runs *out, struct act_error *err)
{
    int rc = cli->words.n <= RUNS_MAX
                 ? 0
                 : act_error_set(err, ACT_USAGE, "at most %d runs are shown in one picture", RUNS_MAX);

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        struct flow_run run = {0};
        rc = find_run(cli, cli->words.v[i], &run, err);
        if (rc == 0)
            ACT_PUSH(out->v, out->n, run);
    }
    return rc;
}

static bool is_one_active(const struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        if (!run_state_is_final(runs->v[i].status.state))
            return true;
    return false;
}

static int cmd_page_print_report(struct cli *cli, struct hush *hush, struct act_strv *said, struct act_error *err)
{
    ACT_AUTOFREE struct flow_report *reports = act_calloc(cli->words.n, sizeof(*reports));
    ACT_AUTOFREE char *query = query_of(cli);
    ACT_AUTO(flow_runs) runs = {0};
    ACT_AUTO(act_buf) page = {0};
    size_t n = 0;

    int rc = cmd_page_find_runs(cli, &runs, err), refresh_s = is_one_active(&runs) ? REFRESH_S : 0;
    for (; n < runs.n && rc == 0; n++)
        rc = flow_report(&cli->flow, &runs.v[n], -1, n > 0 ? &runs.v[0] : NULL, &reports[n], err);
    hush_end(hush, said);
    if (rc == 0)
        page_write(reports, n, NULL, &(struct page_live){said, refresh_s > 0, query}, &page);
    for (size_t i = 0; i < n; i++)
        flow_report_release(&reports[i]);
    return rc < 0 ? rc : cmd_page_print(&page, refresh_s, err);
}

int cmd_page(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(act_strv) said = {0};
    struct hush hush;

    hush_begin(&hush);
    return cli->words.n > 0 ? cmd_page_print_report(cli, &hush, &said, err)
                            : cmd_page_print_table(cli, &hush, &said, err);
}
