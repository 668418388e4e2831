/* json.c - one look at all runs and clusters, for programs: 'a top --json'. */
#include <string.h>

#include "cli/print/gpus.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "cli/top/text.h"
#include "codec/json.h"

/* Returns an error as JSON: what it quotes need not be UTF-8. NULL: there is none. */
static json_t *error_json(const char *error)
{
    ACT_AUTOFREE char *line = error ? act_one_line(error, strlen(error)) : NULL;

    return line ? json_string(line) : json_null();
}

static json_t *top_json_cluster(const struct flow_board_cluster *c)
{
    const struct platform_pool unknown = {
        .nodes = -1, .nodes_idle = -1, .gpus = -1, .gpus_idle = -1, .jobs_queued = -1};
    const struct platform_pool *t = c->has_summary ? &c->summary.total : &unknown;

    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:o}", "name", codec_json_bytes_new(c->name), "error",
                     error_json(c->error), "has_gpus", c->has_summary ? json_boolean(c->summary.has_gpus) : json_null(),
                     "nodes", cli_count_json(t->nodes), "nodes_idle", cli_count_json(t->nodes_idle), "gpus",
                     cli_count_json(t->gpus), "gpus_idle", cli_count_json(t->gpus_idle), "queue",
                     cli_count_json(t->jobs_queued), "running", (json_int_t)c->running, "queued", (json_int_t)c->queued,
                     "devices", CLI_JSON_LIST(c->gpus.v, c->gpus.n, cli_gpu_json));
}

static json_t *top_json_number(const struct flow_live_number *number)
{
    return json_pack("{s:s,s:o}", "name", number->name, "last", cli_number_json(true, number->last));
}

static json_t *live_json(const struct flow_live *live)
{
    return json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "has_gpus", live->has_gpus, "busy",
                     cli_number_json(live->busy >= 0, live->busy), "memory",
                     cli_number_json(live->memory >= 0, live->memory), "last_line", cli_text_json(live->line),
                     "log_changed", cli_time_json(live->spoke_unix_s), "held_up_by", cli_count_json(live->held_up_by),
                     "numbers", CLI_JSON_LIST(live->numbers, live->n_numbers, top_json_number));
}

static json_t *run_json(const struct flow_board_run *run)
{
    bool runs = run->live && run->run.status.state == RUN_RUNNING;
    json_t *json = cli_run_json(&run->run);

    json_object_set_new(json, "live", runs ? live_json(run->live) : json_null());
    return json;
}

static json_t *top_json_sweep(const struct top_row *row)
{
    const struct flow_live_number *best = top_best(row);
    json_t *counts = json_object();

    for (int state = 0; state <= RUN_UNKNOWN; state++)
        json_object_set_new(counts, run_state_name((enum run_state)state),
                            json_integer((json_int_t)row->counts[state]));
    return json_pack("{s:s,s:I,s:o,s:o}", "id", row->sweep, "runs", (json_int_t)row->n_folded, "states", counts, "best",
                     best ? json_pack("{s:s,s:f}", "name", best->name, "value", best->last) : json_null());
}

json_t *top_json(const struct flow_board_view *view)
{
    json_t *clusters = json_array(), *runs = json_array(), *sweeps = json_array();
    struct top_rows rows;

    top_rows(view, &(struct top_look){.sort = TOP_BY_TIME, .folds = true}, &rows);
    for (size_t i = 0; i < view->n_clusters; i++)
        json_array_append_new(clusters, top_json_cluster(view->clusters[i]));
    for (size_t i = 0; i < view->n; i++)
        json_array_append_new(runs, run_json(view->runs[i]));
    for (size_t i = 0; i < rows.n; i++)
        if (rows.v[i].folded)
            json_array_append_new(sweeps, top_json_sweep(&rows.v[i]));
    top_rows_release(&rows);
    return json_pack("{s:i,s:o,s:I,s:o,s:o}", "version", 1, "clusters", clusters, "total", (json_int_t)view->total,
                     "runs", runs, "sweeps", sweeps);
}
