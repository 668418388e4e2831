/* api_diff.c - in what runs differ, as data: each of them from the first one, as 'a diff --json' says it; and what all
 * of them have. */
#include <string.h>

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"

/* Returns what two runs have both: {"configuration": {"retry": "3"}}. A part as a whole has its own name. */
static json_t *api_diff_same_json(const struct flow_diff *diff)
{
    json_t *same = json_object();

    for (size_t i = 0; i < diff->n_same; i++) {
        const struct flow_difference *d = &diff->same[i];
        const char *name = *d->name ? d->name : d->part;
        json_t *part = json_object_get(same, d->part);
        if (!part)
            json_object_set_new(same, d->part, part = json_object());
        if (d->to && act_utf8_valid(name, strlen(name)))
            json_object_set_new(part, name, codec_json_bytes_new(d->to));
    }
    return same;
}

/* Leaves of same what other has, too. */
static void api_diff_keep(json_t *same, const json_t *other)
{
    const char *part, *name;
    json_t *values, *value;
    void *next, *next_value;

    json_object_foreach_safe(same, next, part, values) json_object_foreach_safe(
        values, next_value, name, value) if (!json_object_get(json_object_get(other, part), name))
        json_object_del(values, name);
}

int page_make_api_diff(struct page_job *job, struct act_error *err)
{
    json_t *diffs = json_array(), *same = NULL;
    ACT_AUTO(flow_runs) runs = {0};
    int rc = page_find_runs(job, false, &runs, err);

    for (size_t i = 1; i < runs.n && rc == 0; i++) {
        struct flow_diff diff = {0};
        flow_diff(&job->cli->flow, &runs.v[0], &runs.v[i], &diff);
        json_array_append_new(diffs, json_pack("{s:s,s:s,s:o}", "from", runs.v[0].row.id, "to", runs.v[i].row.id,
                                               "differences", cli_diff_json(&diff)));
        CODEC_AUTOJSON json_t *both = api_diff_same_json(&diff);
        if (same)
            api_diff_keep(same, both);
        else
            same = json_incref(both);
        flow_diff_release(&diff);
    }
    job->json = json_pack("{s:o,s:o}", "diffs", diffs, "same", same ? same : json_object());
    return rc;
}
