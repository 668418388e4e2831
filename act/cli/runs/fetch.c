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

static int cmd_report_find_all(struct cli *cli, size_t first, struct flow_runs *out, struct act_error *err)
{
    int rc = 0;

    for (size_t i = first; i < cli->words.n && rc == 0; i++) {
        struct flow_run run;
        rc = flow_find_run(&cli->flow, cli->words.v[i], &run, err);
        if (rc == 0)
            flow_runs_take(out, &run);
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
