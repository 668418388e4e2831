/* api_clusters.c - the clusters as data, as 'a top --json' and 'a summary --json' have them, and as a page. */
#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/page/page.h"
#include "cli/print/print.h"
#include "cli/screen/live.h"
#include "cli/top/text.h"
#include "codec/json.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"

enum { RUNS_ASKED = 1000, JOBS_SHOWN = 500 };

/* Adds to the row of a cluster what 'a summary' says of it, and which of the user's runs it has. */
static void api_clusters_complete(json_t *row, const struct flow_board_view *view, size_t i)
{
    const struct flow_board_cluster *c = view->clusters[i];
    json_t *own = json_array();

    for (size_t k = 0; k < view->n; k++)
        if (view->runs[k]->cluster == i && !run_state_is_final(view->runs[k]->run.status.state))
            json_array_append_new(own, api_row_json(&view->runs[k]->run, NULL, NULL, NULL));
    json_object_set_new(row, "own_runs", own);
    json_object_set_new(row, "partitions", c->has_summary ? cli_pools_json(&c->summary) : json_array());
    json_object_set_new(row, "node_states", c->has_summary ? cli_node_states_json(&c->summary) : json_null());
    json_object_set_new(row, "load",
                        c->has_summary && c->summary.has_load ? api_number_json(c->summary.load) : json_null());
}

/* Asks all clusters once, and returns the rows. */
static json_t *api_clusters_ask(struct page_job *job)
{
    const char *cluster = job->cli->options.cluster;
    struct live live = {.options = {.table = {.cluster = cluster, .active = true, .max = RUNS_ASKED},
                                    .cluster = cluster,
                                    .interval_ms = INT32_MAX}};

    live_settle(&live, job->cli);
    job->board = live.board;
    const struct flow_board_view *view = flow_board_lock(live.board);
    CODEC_AUTOJSON json_t *all = top_json(view);
    json_t *rows = json_incref(json_object_get(all, "clusters"));
    for (size_t i = 0; i < view->n_clusters; i++)
        api_clusters_complete(json_array_get(rows, i), view, i);
    if (view->error)
        act_warn("%s", view->error);
    flow_board_unlock(live.board);
    return rows;
}

/* Asks the one cluster that is named for the jobs of all its users. */
static json_t *api_clusters_jobs(struct page_job *job)
{
    ACT_AUTO(platform_jobs) jobs = {0};
    struct flow flow = {0};
    struct act_error err;
    json_t *list = NULL;

    if (cli_open_flow(job->cli, job->cli->options.cluster, &flow, &err) == 0 && flow_jobs(&flow, &jobs, &err) == 0)
        list = cli_jobs_json(&jobs, JOBS_SHOWN);
    else
        act_warn("the jobs of others are not known: %s", act_error_text(&err));
    flow_close(&flow);
    return list ? list : json_null();
}

static int api_clusters_read(struct page_job *job, struct act_error *err)
{
    int64_t jobs = 0;
    int rc = page_asked_number(job, "jobs", 0, 1, &jobs, err);

    if (rc == 0 && jobs && !job->cli->options.cluster)
        rc = act_error_set(err, ACT_USAGE, "the jobs of which cluster? 'cluster' names it");
    if (rc < 0)
        return rc;
    job->json = json_pack("{s:o}", "clusters", api_clusters_ask(job));
    if (jobs)
        json_object_set_new(job->json, "jobs", api_clusters_jobs(job));
    job->refresh_s = PAGE_REFRESH_S;
    return 0;
}

int page_make_api_clusters(struct page_job *job, struct act_error *err)
{
    return api_clusters_read(job, err);
}

int page_make_clusters(struct page_job *job, struct act_error *err)
{
    ACT_AUTOFREE char *query = page_asked_query(job);
    int rc = api_clusters_read(job, err);

    if (rc == 0)
        page_clusters(json_object_get(job->json, "clusters"), &(struct page_live){page_job_said(job), false, query},
                      &job->body);
    json_decref(job->json);
    job->json = NULL;
    return rc;
}
