#include "base/clock.h"
#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

static int print_nodes_json(const struct flow_run *run, const struct platform_nodes *nodes, struct act_error *err)
{
    return cli_print_pack(err, "{s:s,s:s,s:o}", "id", run->row.id, "state", run_state_name(run->status.state), "nodes",
                          platform_nodes_to_json(nodes));
}

static void push_ranks(struct act_strv *cells, const struct platform_node *n)
{
    if (n->n_ranks > 1)
        act_strv_pushf(cells, "%d-%d", n->first_rank, n->first_rank + n->n_ranks - 1);
    else if (n->n_ranks == 1)
        act_strv_pushf(cells, "%d", n->first_rank);
    else
        act_strv_push(cells, "-");
}

static void cmd_nodes_print_table(const struct platform_nodes *nodes)
{
    static const struct cli_column columns[] = {
        {"NODE", 'r', .rank = 0}, {"NAME", 'l', .rank = 1},    {"STATE", 'l', .rank = 0},   {"RANKS", 'l', .rank = 2},
        {"GPUS", 'r', .rank = 3}, {"GPU IDS", 'l', .rank = 4}, {"ADDRESS", 'l', .rank = 5}, {"PORT", 'r', .rank = 6},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < nodes->n; i++) {
        const struct platform_node *n = &nodes->v[i];
        act_strv_pushf(&cells, "%d", n->rank);
        act_strv_push(&cells, n->name);
        cli_push_text(&cells, n->state);
        push_ranks(&cells, n);
        act_strv_pushf(&cells, "%d", n->gpus);
        cli_push_text(&cells, n->gpu_ids);
        cli_push_text(&cells, n->address);
        cli_push_count(&cells, n->port ? n->port : -1);
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

/* ---- those that failed lately */

static json_t *bad_json(const struct ledger_bad *b)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "node", b->node, "cluster", b->cluster, "class", b->class, "run",
                     b->run, "time", (json_int_t)b->unix_s);
}

static void print_bad(const struct ledger_bads *bads)
{
    static const struct cli_column columns[] = {
        {"NODE", 'l', .rank = 0}, {"CLUSTER", 'l', .rank = 1}, {"CLASS", 'l', .rank = 2},
        {"RUN", 'l', .rank = 3},  {"WHEN", 'l', .rank = 4},
    };
    ACT_AUTO(act_strv) cells = {0};
    char when[ACT_TIME_TEXT];

    for (size_t i = 0; i < bads->n; i++) {
        const struct ledger_bad *b = &bads->v[i];
        act_time_to_local(b->unix_s, when);
        act_strv_push(&cells, b->node);
        act_strv_push(&cells, b->cluster);
        act_strv_push(&cells, b->class);
        act_strv_push(&cells, b->run);
        act_strv_push(&cells, when);
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

static int forget_each(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    if (cli->words.n == 0) {
        act_error_set(err, ACT_USAGE, "which node? 'a nodes --bad' lists them");
        return cli_hint_help(cli, err);
    }
    for (size_t i = 0; rc == 0 && i < cli->words.n; i++)
        rc = flow_forget_bad_node(&cli->flow, cli->options.cluster, cli->words.v[i], err);
    return rc;
}

static int bad_nodes(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(ledger_bads) bads = {0};

    if (CLI_OPTIONS(cli, runs)->forget)
        return forget_each(cli, err);
    if (cli->words.n)
        return act_error_set(err, ACT_USAGE, "--bad is about all runs: there cannot be one, '%s', as well",
                             cli->words.v[0]);
    int rc = flow_look_for_bad_nodes(&cli->flow, cli->options.cluster, err);
    if (rc == 0)
        rc = flow_bad_nodes(&cli->flow, cli->options.cluster, &bads, err);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:o}", "nodes", CLI_JSON_LIST(bads.v, bads.n, bad_json));
    else if (rc == 0 && bads.n > 0)
        print_bad(&bads);
    else if (rc == 0)
        act_note("no node failed in the last week, as far as is known");
    return rc;
}

static int cmd_nodes_check_words(const struct cli *cli, struct act_error *err)
{
    if (CLI_OPTIONS(cli, runs)->forget)
        return act_error_set(err, ACT_USAGE, "--forget goes with --bad: 'a nodes --bad --forget NODE'");
    if (cli->words.n <= 1)
        return 0;
    act_error_set(err, ACT_USAGE, "'a nodes' takes one run; --bad lists nodes that failed lately");
    return cli_hint_help(cli, err);
}

int cmd_nodes(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    ACT_AUTO(flow_run) run = {0};

    if (CLI_OPTIONS(cli, nodes)->bad)
        return bad_nodes(cli, err);
    int rc = cmd_nodes_check_words(cli, err);
    if (rc == 0)
        rc = flow_find_run(&cli->flow, cli->words.n ? cli->words.v[0] : "@", &run, err);

    if (rc == 0)
        rc = flow_nodes(&cli->flow, &run, &nodes, err);
    if (rc == 0 && cli->options.json)
        rc = print_nodes_json(&run, &nodes, err);
    else if (rc == 0 && nodes.n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "run '%s' is %s and has no nodes%s%s", run.row.id,
                           run_state_name(run.status.state), run.status.reason[0] ? ": " : "", run.status.reason);
    else if (rc == 0)
        cmd_nodes_print_table(&nodes);
    return rc;
}
