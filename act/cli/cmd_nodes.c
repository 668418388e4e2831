#include "cli/cli.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

static json_t *node_json(const struct platform_node *n)
{
    return json_pack("{s:i,s:s,s:s?,s:i,s:i,s:i,s:s?}", "node", n->rank, "name", n->name, "state", n->state,
                     "first_rank", n->first_rank, "ranks", n->n_ranks, "gpus", n->gpus, "gpu_ids", n->gpu_ids);
}

static int print_nodes_json(const struct flow_run *run, const struct platform_nodes *nodes, struct act_error *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < nodes->n; i++)
        json_array_append_new(list, node_json(&nodes->v[i]));
    return cli_print_json(json_pack("{s:i,s:s,s:s,s:o}", "version", 1, "id", run->row.id, "state",
                                    run_state_name(run->status.state), "nodes", list),
                          err);
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

static void print_table(const struct platform_nodes *nodes)
{
    static const struct cli_column columns[] = {
        {"NODE", 'r', .rank = 0},  {"NAME", 'l', .rank = 1}, {"STATE", 'l', .rank = 0},
        {"RANKS", 'l', .rank = 2}, {"GPUS", 'r', .rank = 3}, {"GPU IDS", 'l', .rank = 4, .min = 8},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < nodes->n; i++) {
        const struct platform_node *n = &nodes->v[i];
        act_strv_pushf(&cells, "%d", n->rank);
        act_strv_push(&cells, n->name);
        act_strv_push(&cells, n->state ? n->state : "-");
        push_ranks(&cells, n);
        act_strv_pushf(&cells, "%d", n->gpus);
        act_strv_push(&cells, n->gpu_ids ? n->gpu_ids : "-");
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

int cmd_nodes(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc == 0)
        rc = flow_nodes(&cli->flow, &run, &nodes, err);
    if (rc == 0 && cli->options.json)
        rc = print_nodes_json(&run, &nodes, err);
    else if (rc == 0 && nodes.n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "run '%s' is %s and has no nodes%s%s", run.row.id,
                           run_state_name(run.status.state), run.status.reason[0] ? ": " : "", run.status.reason);
    else if (rc == 0)
        print_table(&nodes);
    return rc;
}
