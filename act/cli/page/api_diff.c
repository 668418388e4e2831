/* api_diff.c - in what runs differ, as data: each of them from the first one, as 'a diff --json' says it, and all of them
 * side by side. */
#include <string.h>

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"

/* Returns the row of a part and name in a list, which is added if it is not there: n times the value of the first run. */
static json_t *api_diff_row(json_t *list, const json_t *difference, size_t n)
{
    json_t *part = json_object_get(difference, "part"), *name = json_object_get(difference, "name"), *row;
    size_t i;

    json_array_foreach(list, i, row) if (json_equal(json_object_get(row, "part"), part) &&
                                         json_equal(json_object_get(row, "name"), name)) return row;
    json_t *values = json_array();
    for (i = 0; i < n; i++)
        json_array_append(values, json_object_get(difference, "from"));
    row = json_pack("{s:O,s:O,s:o,s:O}", "part", part, "name", name, "values", values, "lines",
                    json_object_get(difference, "lines"));
    json_array_append_new(list, row);
    return row;
}

/* Adds in what the run at an index differs from the first one. Lines are those of the first run that has any. */
static void api_diff_add(json_t *list, const json_t *differences, size_t at, size_t n)
{
    json_t *difference;
    size_t i;

    json_array_foreach(differences, i, difference)
    {
        json_t *row = api_diff_row(list, difference, n);
        json_array_set(json_object_get(row, "values"), at, json_object_get(difference, "to"));
    }
}

int page_make_api_diff(struct page_job *job, struct act_error *err)
{
    json_t *diffs = json_array(), *side_by_side = json_array(), *ids = json_array();
    ACT_AUTO(flow_runs) runs = {0};
    int rc = page_find_runs(job, false, &runs, err);

    job->json = json_pack("{s:o,s:o,s:o}", "runs", ids, "differences", side_by_side, "diffs", diffs);
    for (size_t i = 0; i < runs.n && rc == 0; i++) {
        struct flow_diff diff = {0};
        json_array_append_new(ids, json_string(runs.v[i].row.id));
        if (i == 0)
            continue;
        flow_diff(&job->cli->flow, &runs.v[0], &runs.v[i], &diff);
        json_t *differences = cli_diff_json(&diff);
        api_diff_add(side_by_side, differences, i, runs.n);
        json_array_append_new(diffs, json_pack("{s:s,s:s,s:o}", "from", runs.v[0].row.id, "to", runs.v[i].row.id,
                                               "differences", differences));
        flow_diff_release(&diff);
    }
    return rc;
}
