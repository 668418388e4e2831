/* api_diff.c - in what runs differ, as data: each of them from the first one, as 'a diff --json' says it. */
#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/look/look.h"

int page_make_api_diff(struct page_job *job, struct act_error *err)
{
    json_t *diffs = json_array();
    ACT_AUTO(flow_runs) runs = {0};
    int rc = page_find_runs(job, false, &runs, err);

    job->json = json_pack("{s:o}", "diffs", diffs);
    for (size_t i = 1; i < runs.n && rc == 0; i++) {
        struct flow_diff diff = {0};
        flow_diff(&job->cli->flow, &runs.v[0], &runs.v[i], &diff);
        json_array_append_new(diffs, json_pack("{s:s,s:s,s:o}", "from", runs.v[0].row.id, "to", runs.v[i].row.id,
                                               "differences", cli_diff_json(&diff)));
        flow_diff_release(&diff);
    }
    return rc;
}
