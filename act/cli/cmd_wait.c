#include "base/log.h"
#include "cli/cli.h"

int cmd_wait(struct cli *cli, struct act_error *err)
{
    struct flow_run run;
    int rc = flow_wait_for(&cli->flow, cli->words.v[0], cli->options.timeout_s, &run, err);

    if (rc < 0)
        return rc;
    rc = flow_exit_status(&run.status);
    act_note("%s  %s%s%s", run.row.id, run_state_name(run.status.state), run.status.reason[0] ? ": " : "",
             run.status.reason);
    int printed = cli->options.json
                      ? cli_print_json(json_pack("{s:i,s:o}", "version", 1, "run", cli_run_json(&run)), err)
                      : 0;
    flow_run_release(&run);
    return printed < 0 ? printed : rc;
}
