#include "base/log.h"
#include "cli/cli.h"

static int abort_run(struct cli *cli, const char *piece, struct act_error *err)
{
    struct flow_run run;
    bool was_final = false;
    int rc = flow_find_run(&cli->flow, piece, &run, err);

    if (rc < 0)
        return rc;
    if (cli->options.dry_run)
        act_note("would abort %s (%s)", run.row.id, run_state_name(run.status.state));
    else
        rc = flow_abort(&cli->flow, &run, &was_final, err);
    if (rc == 0 && !cli->options.dry_run)
        act_note("%s  %s%s", run.row.id, run_state_name(run.status.state),
                 was_final                               ? ": it had ended already"
                 : !run_state_is_final(run.status.state) ? ": it is being cancelled"
                                                         : "");
    flow_run_release(&run);
    return rc;
}

int cmd_abort(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = abort_run(cli, cli->words.v[i], err);
    return rc;
}
