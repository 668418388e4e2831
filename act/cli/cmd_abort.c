#include "base/log.h"
#include "cli/cli.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

static json_t *aborted_json(const struct flow_run *run, bool had_ended)
{
    return json_pack("{s:s,s:s,s:b}", "id", run->row.id, "state", run_state_name(run->status.state), "had_ended",
                     had_ended);
}

static const char *outcome(const struct cli *cli, const struct flow_run *run, bool had_ended)
{
    if (had_ended)
        return cli->options.forget ? ": it had ended already, so nothing was changed" : ": it had ended already";
    if (!run_state_is_final(run->status.state))
        return ": it is being aborted";
    return cli->options.forget ? ": forgotten here; its cluster does not answer" : "";
}

static void say_plan(const struct cli *cli, const struct flow_run *run)
{
    const char *verb = cli->options.forget ? "forget" : "abort", *state = run_state_name(run->status.state);

    if (run_state_is_final(run->status.state))
        act_note("would not %s %s: it has ended (%s)", verb, run->row.id, state);
    else
        act_note("would %s %s (%s)%s", verb, run->row.id, state,
                 cli->options.forget ? ", unless its cluster answers" : "");
}

static int abort_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    bool had_ended = run_state_is_final(run->status.state);
    int rc = 0;

    if (!cli->options.dry_run)
        rc = (cli->options.forget ? flow_forget : flow_abort)(&cli->flow, run, &had_ended, err);
    if (rc < 0)
        return rc;
    if (cli->options.dry_run)
        say_plan(cli, run);
    else
        act_note("%s  %s%s", run->row.id, run_state_name(run->status.state), outcome(cli, run, had_ended));
    if (list)
        json_array_append_new(list, aborted_json(run, had_ended));
    return 0;
}

/* Runs of a cluster that is gone for good could otherwise never be ended. */
static int find_run_to_end(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
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
        .act = abort_run, .find = cli->options.forget ? flow_find_unasked : find_run_to_end, .list = cli->options.json};

    return cli_each_run(cli, &each, err);
}
