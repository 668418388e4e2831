/* page.c - the pages of 'a ui', which can be read without scripts. */
#include "cli/page/page.h"

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

enum { DEFAULT_MAX = 100 };

/* Tells whether a page that may change is to be asked for again by itself. */
static bool page_is_live(const struct page_job *job)
{
    return job->refresh_s > 0 && !act_streq(page_asked(job, "live", 0), "0");
}

int page_make_table(struct page_job *job, struct act_error *err)
{
    struct cli *cli = job->cli;
    struct page_filter filter = {.cluster = cli->options.cluster, .tags = &cli->options.tags};
    int64_t max = DEFAULT_MAX;
    ACT_AUTOFREE char *query = page_asked_query(job);
    CODEC_AUTOJSON json_t *data = NULL;
    ACT_AUTO(flow_runs) runs = {0};

    int rc = page_asked_number(job, "max", 0, INT32_MAX, &max, err);
    job->refresh_s = PAGE_REFRESH_S;
    if (rc == 0)
        rc = api_newest(job, max, max == DEFAULT_MAX, &runs, &data, err);
    filter.name = cli->options.name;
    if (rc < 0)
        return rc;
    if (data)
        page_complete_json(job, data);
    page_runs(&runs, &filter, &(struct page_live){page_job_said(job), page_is_live(job), query}, data, &job->body);
    return 0;
}

int page_make_reports(struct page_job *job, struct act_error *err)
{
    ACT_AUTOFREE struct flow_report *reports = act_calloc(PAGE_IDS, sizeof(*reports));
    ACT_AUTOFREE char *query = page_asked_query(job);
    ACT_AUTO(flow_runs) runs = {0};
    size_t n = 0;

    int rc = page_find_runs(job, true, &runs, err);
    job->refresh_s = page_is_one_active(&runs) ? PAGE_REFRESH_S : 0;
    for (; n < runs.n && rc == 0; n++)
        rc = flow_report(&job->cli->flow, &runs.v[n], -1, n > 0 ? &runs.v[0] : NULL, &reports[n], err);
    const struct page_live live = {page_job_said(job), page_is_live(job), query};
    if (rc == 0 && n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "no run is tagged so, or has such a name");
    if (rc == 0)
        page_write(reports, n, NULL, &live, &job->body);
    for (size_t i = 0; i < n; i++)
        flow_report_release(&reports[i]);
    return rc;
}
