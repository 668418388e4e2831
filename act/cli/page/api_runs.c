/* api_runs.c - the list of runs as data: the rows of 'a q --json', and what a table shows besides. */
#include <string.h>

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/sweep/grid.h"

enum { DEFAULT_MAX = 200, MOST = 1000, WHY_BYTES = 100 };

/* ---- a row */

json_t *api_why_json(const struct flow_run *run, const struct diagnose *rules)
{
    const struct run_status *s = &run->status;
    const struct diagnose_rule *rule = rules && *s->class ? diagnose_find(rules, s->class) : NULL;
    char text[WHY_BYTES];

    if (s->state != RUN_FAILED)
        return json_null();
    act_copy_line(text, sizeof(text), rule ? rule->title : s->reason);
    return cli_text_json(text);
}

json_t *api_row_json(const struct flow_run *run, const struct diagnose *rules)
{
    json_t *json = cli_run_json(run);
    const char *sweep = codec_json_str(json_object_get(json, "tags"), FLOW_SWEEP_TAG, NULL);

    json_object_set_new(json, "command_line", cli_text_json(run->row.command));
    json_object_set_new(json, "created_s", cli_count_json(run->row.created_unix_s));
    json_object_set_new(json, "elapsed_s", cli_count_json(cli_elapsed_s(&run->status)));
    json_object_set_new(json, "why", api_why_json(run, rules));
    json_object_set_new(json, "sweep", cli_text_json(sweep));
    json_object_set_new(json, "gpus", json_integer(cli_gpus(run)));
    json_object_set_new(json, "gpu_busy", json_null());
    json_object_set_new(json, "last", json_object());
    json_object_set_new(json, "spark", json_object());
    return json;
}

/* ---- the list */

struct list {
    int64_t max, offset, since_s;
};

static int api_runs_read(const struct page_job *job, struct list *l, struct act_error *err)
{
    int rc = page_asked_number(job, "max", 1, MOST, &l->max, err);

    if (rc == 0)
        rc = page_asked_number(job, "offset", 0, INT32_MAX, &l->offset, err);
    return rc < 0 ? rc : page_asked_number(job, "since", 0, INT64_MAX, &l->since_s, err);
}

/* Leaves the runs that the list shows. */
static void api_runs_cut(const struct list *l, struct flow_runs *runs)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < runs->n; i++) {
        bool is_old = runs->v[i].row.created_unix_s < l->since_s;
        bool shown = !is_old && at >= (size_t)l->offset && n < (size_t)l->max;
        at += !is_old;
        if (shown)
            runs->v[n++] = runs->v[i];
        else
            flow_run_release(&runs->v[i]);
    }
    runs->n = n;
}

/* Opens the rules if a row needs them; NULL: none does. */
static struct diagnose *api_runs_rules(const struct flow_runs *runs)
{
    struct diagnose *rules = NULL;
    struct act_error ignored;

    for (size_t i = 0; i < runs->n; i++)
        if (*runs->v[i].status.class)
            return diagnose_open(NULL, &rules, &ignored) == 0 ? rules : NULL;
    return NULL;
}

static json_t *api_runs_json(const struct flow_runs *runs)
{
    struct diagnose *rules = api_runs_rules(runs);
    json_t *list = json_array();

    for (size_t i = 0; i < runs->n; i++)
        json_array_append_new(list, api_row_json(&runs->v[i], rules));
    diagnose_free(rules);
    return json_pack("{s:I,s:o,s:[]}", "total", (json_int_t)runs->total, "runs", list, "keys");
}

int page_make_api_runs(struct page_job *job, struct act_error *err)
{
    struct flow *flow = &job->cli->flow;
    struct list list = {.max = DEFAULT_MAX};
    struct flow_table table = {.cluster = job->cli->options.cluster};
    ACT_AUTO(flow_runs) runs = {0};

    int rc = page_asked_labels(job, &table.labels, err);
    if (rc == 0)
        rc = api_runs_read(job, &list, err);
    table.max = list.since_s > 0 ? 0 : list.offset + list.max;
    if (rc == 0)
        rc = flow_list_runs(flow, &table, &runs, err);
    if (rc < 0)
        return rc;
    api_runs_cut(&list, &runs);
    rc = flow_load_specs(flow, &runs, err);
    job->refresh_s = PAGE_REFRESH_S;
    if (rc == 0)
        job->json = api_runs_json(&runs);
    return rc;
}
