#include "base/log.h"
#include "cli/cli.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

static json_t *aborted_json(const struct flow_run *run, bool had_ended)
{
    return json_pack("{s:s,s:s,s:b}", "id", run->row.id, "state", run_state_name(run->status.state), "had_ended",
                     had_ended);
}

static int say(struct cli *cli, const struct flow_run *run, bool was_final, json_t *list)
{
    const char *more = was_final                                ? ": it had ended already"
                       : !run_state_is_final(run->status.state) ? ": it is being cancelled"
                       : cli->options.forget                    ? ": forgotten here; its cluster does not answer"
                                                                : "";

    if (!cli->options.dry_run)
        act_note("%s  %s%s", run->row.id, run_state_name(run->status.state), more);
    if (list)
        json_array_append_new(list, aborted_json(run, was_final));
    return 0;
}

static int abort_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    bool was_final = run_state_is_final(run->status.state);
    int rc = 0;

    if (cli->options.dry_run)
        act_note("would %s %s (%s)", cli->options.forget ? "forget" : "abort", run->row.id,
                 run_state_name(run->status.state));
    else
        rc = (cli->options.forget ? flow_forget : flow_abort)(&cli->flow, run, &was_final, err);
    return rc < 0 ? rc : say(cli, run, was_final, list);
}

/* Runs of a cluster that is gone for good could otherwise never be ended. */
static int find(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    struct act_error ignored;
    struct flow_run known;
    int rc = flow_find_run(flow, piece, out, err);

    if (rc == 0 || flow_find_unasked(flow, piece, &known, &ignored) < 0)
        return rc;
    act_error_hint(err, "if its cluster is gone for good: a abort --forget %s", piece);
    flow_run_release(&known);
    return rc;
}

int cmd_abort(struct cli *cli, struct act_error *err)
{
    struct cli_each_run each = {
        .act = abort_run, .find = cli->options.forget ? flow_find_unasked : find, .list = cli->options.json};

    return cli_each_run(cli, &each, err);
}
