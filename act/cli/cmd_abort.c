#include "base/log.h"
#include "cli/cli.h"

static json_t *aborted_json(const struct flow_run *run, bool had_ended)
{
    return json_pack("{s:s,s:s,s:b}", "id", run->row.id, "state", run_state_name(run->status.state),
                     "had_ended", had_ended);
}

static int abort_run(struct cli *cli, const char *piece, json_t *list, struct act_error *err)
{
    struct flow_run run;
    bool was_final = false;
    int rc = flow_find_run(&cli->flow, piece, &run, err);

    if (rc < 0)
        return rc;
    if (cli->options.dry_run)
        was_final = run_state_is_final(run.status.state);
    if (cli->options.dry_run)
        act_note("would abort %s (%s)", run.row.id, run_state_name(run.status.state));
    else
        rc = flow_abort(&cli->flow, &run, &was_final, err);
    if (rc == 0 && !cli->options.dry_run)
        act_note("%s  %s%s", run.row.id, run_state_name(run.status.state),
                 was_final                               ? ": it had ended already"
                 : !run_state_is_final(run.status.state) ? ": it is being cancelled"
                                                         : "");
    if (rc == 0 && list)
        json_array_append_new(list, aborted_json(&run, was_final));
    flow_run_release(&run);
    return rc;
}

int cmd_abort(struct cli *cli, struct act_error *err)
{
    json_t *list = cli->options.json ? json_array() : NULL;
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = abort_run(cli, cli->words.v[i], list, err);
    return cli_print_list("runs", list, rc, err);
}
