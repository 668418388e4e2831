#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"

enum { DEFAULT_MAX = 20 };

static json_t *job_json(const struct platform_job *j)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "job", codec_json_bytes_new(j->id), "user",
                     codec_json_bytes_new(j->user), "experiment", cli_text_json(j->experiment), "name",
                     codec_json_bytes_new(j->name), "node_names", codec_json_bytes_new(j->nodes_text), "nodes",
                     cli_count_json(j->nodes), "gpus", cli_count_json(j->gpus), "running_s",
                     cli_count_json(j->running_s), "limit_s", j->limit_s > 0 ? json_integer(j->limit_s) : json_null());
}

json_t *cli_jobs_json(const struct platform_jobs *jobs, size_t max)
{
    return CLI_JSON_LIST(jobs->v, max < jobs->n ? max : jobs->n, job_json);
}

static int print_jobs_json(const struct config *config, const struct platform_jobs *jobs, size_t n,
                           struct act_error *err)
{
    return cli_print_pack(err, "{s:s,s:s,s:I,s:o}", "cluster", config->cluster, "platform", config->platform, "total",
                          (json_int_t)jobs->n, "jobs", cli_jobs_json(jobs, n));
}

static void push_duration(struct act_strv *cells, int64_t seconds)
{
    char text[ACT_UNIT_TEXT] = "-";

    if (seconds >= 0)
        act_duration_to_text(seconds, text);
    act_strv_push(cells, text);
}

static void cmd_blame_print_table(const struct platform_jobs *jobs, size_t n)
{
    static const struct cli_column columns[] = {
        {"RUNNING", 'r', .rank = 2},         {"LIMIT", 'r', .rank = 7},
        {"USER", 'l', .rank = 1, .min = 8},  {"JOB", 'l', .rank = 0},
        {"NODES", 'r', .rank = 5},           {"GPUS", 'r', .rank = 3},
        {"ON", 'l', .rank = 6, .min = 8},    {"EXPERIMENT", 'l', .rank = 4, .min = 8},
        {"NAME", 'l', .rank = 4, .min = 10},
    };
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < n; i++) {
        const struct platform_job *j = &jobs->v[i];
        push_duration(&cells, j->running_s);
        push_duration(&cells, j->limit_s > 0 ? j->limit_s : -1);
        act_strv_push(&cells, j->user);
        act_strv_push(&cells, j->id);
        cli_push_count(&cells, j->nodes);
        cli_push_count(&cells, j->gpus);
        act_strv_push(&cells, j->nodes_text);
        cli_push_text(&cells, j->experiment);
        act_strv_push(&cells, j->name);
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

int cmd_blame(struct cli *cli, struct act_error *err)
{
    size_t max = cli->options.max >= 0 ? (size_t)cli->options.max : DEFAULT_MAX;
    ACT_AUTO(platform_jobs) jobs = {0};
    int rc = flow_jobs(&cli->flow, &jobs, err);

    if (rc < 0)
        return rc;
    size_t n = max && max < jobs.n ? max : jobs.n;
    if (cli->options.json)
        rc = print_jobs_json(cli->flow.config, &jobs, n, err);
    else
        cmd_blame_print_table(&jobs, n);
    if (jobs.n == 0 && !cli->options.json)
        act_note("nothing is running on cluster '%s'", cli->flow.config->cluster);
    if (n < jobs.n)
        act_note("%zu of %zu jobs; --max 0 shows all", n, jobs.n);
    return rc;
}
