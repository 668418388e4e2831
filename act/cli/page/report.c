#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/page/options.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

/* Checks that a file may be written there, before anything is fetched. A missing folder is more often misspelt than
 * meant, and a device must not be replaced by a file. */
static int check_output(const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return act_error_set(err, ACT_USAGE, "cannot write '%s': it is a folder; name a file in it", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return act_error_set(err, ACT_USAGE, "cannot write '%s': it is not a regular file; '> %s' may do", path, path);
    if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
        return act_error_set(err, ACT_NOT_FOUND, "cannot write '%s': there is no folder '%s'", path, folder);
    return 0;
}

static int cmd_report_write_file(const char *path, const struct act_buf *page, struct act_error *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    ACT_AUTOFREE char *real = exists ? realpath(path, NULL) : NULL; /* a link stays one */

    return act_file_write(real ? real : path, page->data, page->len, exists ? st.st_mode & 0777 : 0666 & ~act_umask(),
                          err);
}

static int cmd_report_write_page(const struct cli *cli, const struct act_buf *page, struct act_error *err)
{
    const char *output = CLI_OPTIONS(cli, page)->output;
    char size[ACT_UNIT_TEXT];

    if (output) {
        int rc = cmd_report_write_file(output, page, err);
        act_size_to_text(page->len, size);
        if (rc == 0)
            act_note("wrote '%s', %s", output, size);
        return rc;
    }
    cli_buffer_stdout();
    fwrite(page->data, 1, page->len, stdout);
    fflush(stdout);
    return cli_check_stdout(err);
}

/* Finds the best of them, if a number was given to compare them by. */
static int cmd_report_compare(const struct cli *cli, const struct flow_runs *runs, const struct flow_report *reports,
                              struct page_leaders *out, struct act_error *err)
{
    const char *key = CLI_OPTIONS(cli, metric)->metric;
    struct flow_leaders leaders = {.key = key, .best = CLI_OPTIONS(cli, metric)->highest ? FLOW_HIGHEST : FLOW_LOWEST};
    struct cli_metric_names names = {0};

    if (!key)
        return 0;
    for (size_t i = 0; i < runs->n; i++) {
        cli_metric_look(&names, key, reports[i].numbers);
        flow_leaders_add(&leaders, &runs->v[i], reports[i].numbers);
    }
    int rc = cli_metric_check(&names, key, "these runs", err);
    if (rc == 0) {
        flow_leaders_end(&leaders);
        cli_leaders_heads(&leaders, &out->heads);
        const int64_t now_unix_s = act_now_unix_s();
        for (size_t i = 0; i < leaders.n; i++)
            cli_leaders_cells(&leaders, i, now_unix_s, &out->cells);
        out->key = key;
    }
    flow_leaders_release(&leaders);
    act_strv_release(&names.others);
    return rc;
}

static int report(struct cli *cli, const struct flow_runs *runs, struct act_error *err)
{
    ACT_AUTOFREE struct flow_report *reports = act_calloc(runs->n, sizeof(*reports));
    ACT_AUTO(act_buf) page = {0};
    struct page_leaders leaders = {0};
    size_t n = 0;
    int rc = 0;

    for (; n < runs->n && rc == 0; n++)
        rc = flow_report(&cli->flow, &runs->v[n], (int)CLI_OPTIONS(cli, logs)->rank, n > 0 ? &runs->v[0] : NULL,
                         &reports[n], err);
    if (rc == 0)
        rc = cmd_report_compare(cli, runs, reports, &leaders, err);
    if (rc == 0)
        page_write(reports, n, CLI_OPTIONS(cli, metric)->metric ? &leaders : NULL, NULL, &page);
    act_strv_release(&leaders.heads);
    act_strv_release(&leaders.cells);
    for (size_t i = 0; i < n; i++)
        flow_report_release(&reports[i]);
    return rc < 0 ? rc : cmd_report_write_page(cli, &page, err);
}

int cmd_report(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_runs) runs = {0};

    if (!CLI_OPTIONS(cli, page)->output && isatty(STDOUT_FILENO))
        return act_error_set(err, ACT_USAGE,
                             "a report is a page for a browser, not for a terminal: add -o run.html or > run.html");
    int rc = cli_check_metric(cli, err);
    if (rc == 0 && CLI_OPTIONS(cli, page)->output)
        rc = check_output(CLI_OPTIONS(cli, page)->output, err);
    if (rc == 0)
        rc = cli_find_with_logs(cli, 0, &runs, err);
    return rc < 0 ? rc : report(cli, &runs, err);
}
