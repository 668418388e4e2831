/* fetch.c - fetches the logs of runs, with progress. */
#include "cli/print/progress.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"

int cli_check_kept(const struct flow_run *run, const struct flow_logs *logs, struct act_error *err)
{
    if (!logs->unkept_errno)
        return 0;
    act_error_errno(err, logs->unkept_errno, "cannot fetch the logs of '%s' into '%s'", run->row.id, logs->root);
    return act_error_hint(err, "AML_LOG_FOLDER names another folder");
}

int cli_fetch_logs(struct cli *cli, struct flow_run *run, struct flow_logs *out, struct act_error *err)
{
    const struct cli_logs_options *o = CLI_OPTIONS(cli, logs);
    enum { PART_OF_A_LOG = 10 << 20 };
    struct transfer_options shown = {0};
    struct cli_progress progress;

    if (o->no_logs)
        return 0;
    cli_progress_start(&progress, "fetching logs", cli->options.quiet, &shown);
    struct flow_fetch what = {.max_bytes = o->no_full_logs ? PART_OF_A_LOG : 0,
                              .refresh = o->refresh,
                              .progress = shown.progress,
                              .arg = shown.arg};
    int rc = flow_fetch_logs(&cli->flow, run, &what, out, err);
    cli_progress_clear(&progress);
    return rc;
}

/* Finds the runs that are named, about which each cluster is asked at once. */
static int cmd_report_find_all(struct cli *cli, size_t first, struct flow_runs *out, struct act_error *err)
{
    const size_t n = cli->words.n - first;
    ACT_AUTOFREE struct flow_found *found = act_calloc(n, sizeof(*found));
    int rc = 0;

    flow_find_runs(&cli->flow, (const char *const *)cli->words.v + first, n, found);
    for (size_t i = 0; i < n; i++) {
        if (found[i].rc == 0)
            flow_runs_take(out, &found[i].run);
        else if (rc == 0)
            *err = found[i].err;
        rc = rc < 0 ? rc : found[i].rc;
    }
    return rc;
}

int cli_find_with_logs(struct cli *cli, size_t first, struct flow_runs *out, struct act_error *err)
{
    bool named = cli->words.n > first;
    int rc = cli_check_which(cli, first, err);

    if (rc == 0)
        rc = named ? cmd_report_find_all(cli, first, out, err) : cli_labelled_runs(cli, true, out, err);
    for (size_t i = 0; i < out->n && rc == 0; i++) {
        ACT_AUTO(flow_logs) logs = {0};
        if (out->n > 1 && i % FLOW_ROWS_FEW == 0 && !CLI_OPTIONS(cli, logs)->no_logs)
            flow_expect_logs_of(&cli->flow, &out->v[i], out->n - i < FLOW_ROWS_FEW ? out->n - i : FLOW_ROWS_FEW);
        rc = cli_check_rank(cli, &out->v[i], err);
        if (rc == 0)
            rc = cli_fetch_logs(cli, &out->v[i], &logs, err);
        if (rc == 0)
            rc = cli_check_kept(&out->v[i], &logs, err);
    }
    return rc;
}

int cli_check_rank(const struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    int world = run->spec.nodes * run->spec.procs_per_node;

    if (CLI_OPTIONS(cli, logs)->rank < world)
        return 0;
    return act_error_set(err, ACT_USAGE, "run '%s' has ranks 0 to %d, not %lld", run->row.id, world - 1,
                         (long long)CLI_OPTIONS(cli, logs)->rank);
}
