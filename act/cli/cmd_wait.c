#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

/* The status line on the terminal while waiting for a run. */
struct shown {
    bool terminal;
    int64_t at_s; /* when it was written: once a second is enough; 0: none */
};

static void show_state(void *arg, const struct flow_run *run)
{
    struct shown *shown = arg;
    int64_t now_s = act_now_unix_s();
    int64_t since_s = run->status.started_unix_s > 0 ? run->status.started_unix_s : run->row.created_unix_s;
    char time[ACT_UNIT_TEXT];

    if (!shown->terminal || now_s == shown->at_s)
        return;
    shown->at_s = now_s;
    act_duration_to_text(now_s > since_s ? now_s - since_s : 0, time);
    ACT_AUTOFREE char *line = act_sprintf("%s  %s  %s", run->row.id, run_state_name(run->status.state), time);
    cli_put_in_place(line);
}

int cmd_wait(struct cli *cli, struct act_error *err)
{
    struct shown shown = {.terminal = isatty(STDERR_FILENO) && !cli->options.quiet};
    struct flow_waiting how = {.timeout_s = cli->options.timeout_s, .each = show_state, .arg = &shown};
    ACT_AUTO(flow_run) run = {0};

    cli_end_with(CLI_RUN_GOES_ON);
    int rc = flow_wait_for(&cli->flow, cli->words.v[0], &how, &run, err);
    if (shown.at_s)
        cli_put_in_place("");
    if (rc < 0)
        return rc;
    rc = flow_exit_status(&run.status);
    act_note("%s  %s%s%s", run.row.id, run_state_name(run.status.state), run.status.reason[0] ? ": " : "",
             run.status.reason);
    int printed =
        cli->options.json ? cli_print_json(json_pack("{s:i,s:o}", "version", 1, "run", cli_run_json(&run)), err) : 0;
    return printed < 0 ? printed : rc;
}
