#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
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
        return CLI_OPTIONS(cli, runs)->forget ? ": it had ended already, so nothing was changed"
                                              : ": it had ended already";
    if (!run_state_is_final(run->status.state))
        return ": it is being aborted";
    return CLI_OPTIONS(cli, runs)->forget ? ": forgotten here; its cluster does not answer" : "";
}

static void say_plan(const struct cli *cli, const struct flow_run *run)
{
    const char *verb = CLI_OPTIONS(cli, runs)->forget ? "forget" : "abort", *state = run_state_name(run->status.state);
    ACT_AUTOFREE char *called = cli_called(&run->row);

    if (run_state_is_final(run->status.state))
        act_note("would not %s %s: it has ended (%s)", verb, called, state);
    else
        act_note("would %s %s (%s)%s", verb, called, state,
                 CLI_OPTIONS(cli, runs)->forget ? ", unless its cluster answers" : "");
}

/* The outcomes for the runs that a command ends. */
struct abort_ends {
    const struct flow_run *runs;
    struct flow_end *v;
};

static void cmd_abort_begin(struct cli *cli, struct flow_runs *runs)
{
    struct abort_ends *ends = cli->arg;

    ends->runs = runs->v;
    ends->v = act_calloc(runs->n + 1, sizeof(*ends->v));
    flow_abort_all(&cli->flow, runs->v, runs->n, ends->v);
}

/* Returns what became of a run, or becomes of it now. */
static int abort_outcome(struct cli *cli, struct flow_run *run, bool *out_had_ended, struct act_error *err)
{
    const struct abort_ends *ends = cli->arg;

    *out_had_ended = run_state_is_final(run->status.state);
    if (cli->options.dry_run)
        return 0;
    if (CLI_OPTIONS(cli, runs)->forget)
        return flow_forget(&cli->flow, run, out_had_ended, err);
    const struct flow_end *end = &ends->v[run - ends->runs];
    *out_had_ended = end->was_final;
    *err = end->err;
    if (end->rc < 0 && end->rc != -ACT_TIMEOUT && end->rc != -ACT_NOT_FOUND) /* it could otherwise never be ended */
        act_error_hint(err, "if its cluster is gone for good: a abort --forget %s", run->row.id);
    return end->rc;
}

static int cmd_abort_run(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err)
{
    bool had_ended;
    int rc = abort_outcome(cli, run, &had_ended, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *called = cli_called(&run->row);
    if (cli->options.dry_run)
        say_plan(cli, run);
    else
        act_note("%s  %s%s", called, run_state_name(run->status.state), outcome(cli, run, had_ended));
    if (list)
        json_array_append_new(list, aborted_json(run, had_ended));
    return 0;
}

/* Finds a run, of which its cluster is not asked: that says how it is when it ends it. With -c the user says where to
 * look for it. */
static int find_run_to_end(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err)
{
    int rc = flow->cluster ? -ACT_NOT_FOUND : flow_find_unasked(flow, piece, out, err);

    return rc == -ACT_NOT_FOUND ? flow_find_run(flow, piece, out, err) : rc;
}

/* ---- all of a kind */

static void say_which(const struct flow_runs *runs)
{
    enum { SHOWN = 20 };
    ACT_AUTO(act_strv) cells = {0};
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0; i < runs->n && i < SHOWN; i++)
        cli_push_affected(&cells, &runs->v[i].row, run_state_name(runs->v[i].status.state));
    cli_affected_text(&cells, act_terminal_width(STDERR_FILENO), &text);
    for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) && rest;)
        act_note("%s", line);
    if (runs->n > SHOWN)
        act_note("and %zu more", runs->n - SHOWN);
}

static int cmd_abort_confirm(const struct cli *cli, const struct flow_runs *runs, struct act_error *err)
{
    if (cli->options.dry_run || cli->options.yes)
        return 0;
    say_which(runs);
    ACT_AUTOFREE char *question =
        act_sprintf("Abort %s %zu run%s?", runs->n == 1 ? "this" : "these", runs->n, cli_plural(runs->n));
    return cli_confirm(cli, question, err);
}

/* Asks when a word meant all runs of a sweep. */
static int cmd_abort_confirm_words(const struct cli *cli, struct act_error *err)
{
    ACT_AUTOFREE char *question =
        act_sprintf("Abort the %zu run%s of a sweep?", cli->words.n, cli_plural(cli->words.n));

    return cli->options.yes ? 0 : cli_confirm(cli, question, err);
}

/* Aborts all runs with the labels. What a service has of other machines and users is not in the ledger, or known to
 * be found there: it is left. */
static int abort_all(struct cli *cli, const struct cli_each_run *each, const struct flow_labels *labels,
                     struct act_error *err)
{
    const struct flow_table table = {
        .cluster = cli->options.cluster, .labels = *labels, .own = true, .active = true, .with_spec = true};
    ACT_AUTO(flow_runs) runs = {0};
    int rc = flow_list_runs(&cli->flow, &table, &runs, err);

    ACT_AUTOFREE char *near = rc == 0 && runs.n == 0 && labels->name ? flow_near_run(&cli->flow, labels->name) : NULL;
    if (rc == 0 && runs.n == 0)
        act_note("nothing to cancel: no such run of yours is active%s",
                 near ? near : "; 'a qr' and 'a qq' list those that are");
    else if (rc == 0)
        rc = cmd_abort_confirm(cli, &runs, err);
    return rc < 0 ? rc : cli_these_runs(cli, each, &runs, err);
}

int cmd_abort(struct cli *cli, struct act_error *err)
{
    bool is_told = !cli->options.dry_run && !CLI_OPTIONS(cli, runs)->forget;
    struct abort_ends ends = {0};
    struct cli_each_run each = {.before = is_told ? cmd_abort_begin : NULL,
                                .act = cmd_abort_run,
                                .find = CLI_OPTIONS(cli, runs)->forget ? flow_find_unasked
                                        : is_told                      ? find_run_to_end
                                                                       : flow_find_run,
                                .list = cli->options.json};
    bool many = cli->options.all || cli->options.name || cli->options.tags.n > 0;
    struct flow_labels labels;
    int rc = cli_labels(cli, &labels, err);

    if (rc < 0)
        return rc;
    if (!many && cli->words.n == 0)
        return cli_needs_more(cli, err);
    if (many && cli->words.n > 0)
        return act_error_set(err, ACT_USAGE, "--all, --name and --tag say which runs: '%s' cannot be named as well",
                             cli->words.v[0]);
    if (many && CLI_OPTIONS(cli, runs)->forget)
        return act_error_set(err, ACT_USAGE, "--forget is for runs that are named");
    if (cli->names_sweep && !cli->options.dry_run && !CLI_OPTIONS(cli, runs)->forget)
        rc = cmd_abort_confirm_words(cli, err);
    if (rc < 0)
        return rc;
    cli->arg = &ends;
    rc = many ? abort_all(cli, &each, &labels, err) : cli_each_run(cli, &each, err);
    free(ends.v);
    return rc;
}
