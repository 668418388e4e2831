#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/print/gpus.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"

/* ---- as JSON */

static json_t *counts_json(int total, int idle, int busy, int down)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "total", cli_count_json(total), "idle", cli_count_json(idle), "busy",
                     cli_count_json(busy), "down", cli_count_json(down));
}

json_t *cli_node_states_json(const struct platform_summary *s)
{
    json_t *states = s->n_node_states ? json_object() : json_null();

    for (size_t i = 0; i < s->n_node_states; i++)
        json_object_set_new(states, s->node_states[i].state, json_integer(s->node_states[i].n));
    return states;
}

static json_t *cmd_summary_pool_json(const struct platform_pool *p)
{
    json_t *nodes = counts_json(p->nodes, p->nodes_idle, p->nodes_busy, p->nodes_down);
    json_t *gpus = counts_json(p->gpus, p->gpus_idle, p->gpus_busy, p->gpus_down);

    return json_pack("{s:s?, s:b, s:o, s:o, s:{s:o,s:o,s:o}}", "name", p->name, "default", p->is_default, "nodes",
                     nodes, "gpus", gpus, "jobs", "running", cli_count_json(p->jobs_running), "queued",
                     cli_count_json(p->jobs_queued), "queued_gpus", cli_count_json(p->gpus_queued));
}

json_t *cli_pools_json(const struct platform_summary *s)
{
    return CLI_JSON_LIST(s->pools, s->n_pools, cmd_summary_pool_json);
}

static int cmd_summary_print_json(const struct config *config, const struct flow_summary *s, struct act_error *err)
{
    return cli_print_pack(
        err, "{s:s,s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:{s:I,s:I}}", "cluster", config->cluster, "platform", config->platform,
        "has_gpus", s->cluster.has_gpus, "load", s->cluster.has_load ? json_real(s->cluster.load) : json_null(),
        "total", cmd_summary_pool_json(&s->cluster.total), "partitions", cli_pools_json(&s->cluster), "node_states",
        cli_node_states_json(&s->cluster), "devices", CLI_JSON_LIST(s->gpus.v, s->gpus.n, cli_gpu_json), "own_runs",
        "running", (json_int_t)s->running, "queued", (json_int_t)s->queued);
}

/* ---- for people */

static void push_pool(struct act_strv *cells, const struct platform_pool *p, const char *name)
{
    const int counts[] = {p->nodes,     p->nodes_idle, p->nodes_busy,   p->nodes_down,  p->gpus,       p->gpus_idle,
                          p->gpus_busy, p->gpus_down,  p->jobs_running, p->jobs_queued, p->gpus_queued};

    act_strv_pushf(cells, "%s%s", name, p->is_default ? "*" : "");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        cli_push_count(cells, counts[i]);
}

static void cmd_summary_print_table(const struct platform_summary *s)
{
    const struct cli_column columns[] = {
        {s->n_pools ? "PARTITION" : "MACHINE", 'l', .rank = 0},
        {"NODES", 'r', .rank = 5},
        {"IDLE", 'r', .rank = 6},
        {"IN USE", 'r', .rank = 9},
        {"DOWN", 'r', .rank = 10},
        {s->has_gpus ? "GPUS" : "CPUS", 'r', .rank = 1},
        {s->has_gpus ? "GPUS IDLE" : "CPUS IDLE", 'r', .rank = 2},
        {s->has_gpus ? "GPUS IN USE" : "CPUS IN USE", 'r', .rank = 7},
        {s->has_gpus ? "GPUS DOWN" : "CPUS DOWN", 'r', .rank = 8},
        {"RUNNING", 'r', .rank = 4},
        {"QUEUED", 'r', .rank = 3},
        {s->has_gpus ? "GPUS QUEUED" : "CPUS QUEUED", 'r', .rank = 11},
    };
    ACT_AUTO(act_strv) cells = {0};
    struct platform_pool total = s->total;

    for (size_t i = 0; i < s->n_pools; i++)
        push_pool(&cells, &s->pools[i], s->pools[i].name);
    total.is_default = false;
    push_pool(&cells, &total, s->n_pools || !total.name ? "total" : total.name);
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

static void print_node_states(const struct platform_summary *s)
{
    for (size_t i = 0; i < s->n_node_states; i++)
        printf("%s%d %s", i ? ", " : "nodes: ", s->node_states[i].n, s->node_states[i].state);
    if (s->n_node_states)
        putchar('\n');
}

static void print_gpus(const struct platform_gpus *gpus)
{
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < gpus->n; i++)
        cli_push_gpu(&cells, &gpus->v[i]);
    if (gpus->n)
        cli_print_table(cli_gpu_columns, CLI_GPU_COLUMNS, &cells);
    if (gpus->n && gpus->note)
        act_note("%s", gpus->note);
}

int cmd_summary(struct cli *cli, struct act_error *err)
{
    const struct config *config = cli->flow.config;
    struct flow_summary s;
    int rc = flow_summary(&cli->flow, &s, err);

    if (rc < 0)
        return rc;
    if (cli->options.json) {
        rc = cmd_summary_print_json(config, &s, err);
    } else {
        printf("cluster %s (%s)\n", config->cluster, config->platform);
        cmd_summary_print_table(&s.cluster);
        print_node_states(&s.cluster);
        print_gpus(&s.gpus);
        if (s.cluster.has_load)
            printf("load: %.2f\n", s.cluster.load);
        printf("your runs: %zu running, %zu queued\n", s.running, s.queued);
    }
    platform_summary_release(&s.cluster);
    platform_gpus_release(&s.gpus);
    return rc;
}
