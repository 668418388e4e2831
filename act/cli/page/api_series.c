/* api_series.c - curves as data: the numbers of runs, and what their nodes used. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/page/rows.h"
#include "cli/print/print.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"

enum {
    USUAL_POINTS = 600,
    MOST_POINTS = SERIES_MAX,
};

json_t *api_number_json(double value)
{
    enum { DIGITS = 10 /* more than a picture shows */, TEXT = 32 };
    static const double exact = 9007199254740992 /* 2^53 */, moment = 1e9 /* from here on it may be a time */;
    char text[TEXT];

    if (!isfinite(value))
        return json_null();
    if (value == floor(value) && fabs(value) < exact)
        return json_integer((json_int_t)value);
    snprintf(text, sizeof(text), "%.*g", DIGITS, value);
    return json_real(fabs(value) < moment ? strtod(text, NULL) : value);
}

/* ---- the numbers */

/* A value that is not finite is a gap: its y is null. The first ones of them are known. */
static void add_points(const struct series *s, json_t *x, json_t *y)
{
    for (size_t i = 0, odd = 0; i < s->n || odd < s->n_odd;) {
        bool gap = odd < s->n_odd && (i == s->n || s->odd_x[odd] < s->v[i].x);
        json_array_append_new(x, api_number_json(gap ? s->odd_x[odd] : s->v[i].x));
        json_array_append_new(y, gap ? json_null() : api_number_json(s->v[i].y));
        i += !gap;
        odd += gap;
    }
}

/* Returns the times at these places of a curve; null: they are not known. */
static json_t *api_series_times_json(const json_t *x, const struct series *times)
{
    json_t *list = times->n > 0 ? json_array() : json_null(), *place;
    size_t i, at = 0;

    json_array_foreach(x, i, place)
    {
        while (at + 1 < times->n && times->v[at + 1].x <= json_number_value(place))
            at++;
        if (times->n > 0)
            json_array_append_new(list, api_number_json(times->v[at].y));
    }
    return list;
}

/* Returns the epochs at these places of a curve; null: they are not known. */
static json_t *api_series_epochs_json(const json_t *x, const struct numbers *numbers, enum numbers_by by)
{
    json_t *list = json_array(), *place;
    size_t i;

    if (by == NUMBERS_BY_COUNT || (by == NUMBERS_BY_STEP && !isfinite(numbers_epoch_at(numbers, 0)))) {
        json_decref(list);
        return json_null();
    }
    json_array_foreach(x, i, place)
    {
        double at = json_number_value(place);
        json_array_append_new(list, api_number_json(by == NUMBERS_BY_EPOCH ? at : numbers_epoch_at(numbers, at)));
    }
    return list;
}

static json_t *api_series_curve_json(const struct flow_run *run, const struct numbers *numbers, struct numbers_key *key,
                                     size_t points)
{
    const struct series *s = &key->series;
    json_t *x = json_array(), *y = json_array();

    series_reduce(&key->series, points);
    add_points(s, x, y);
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o}", "id", run->row.id, "key", key->name, "x_name",
                     numbers_by_name(key->by), "x", x, "y", y, "t", api_series_times_json(x, &key->times), "e",
                     api_series_epochs_json(x, numbers, key->by), "points", (json_int_t)s->count, "not_finite",
                     (json_int_t)s->odd, "last", api_number_json(s->ended_y), "min",
                     s->count ? api_number_json(s->low) : json_null(), "max",
                     s->count ? api_number_json(s->high) : json_null());
}

void api_add_series(const struct flow_run *run, struct numbers *numbers, const struct act_strv *keys, size_t points,
                    json_t *list)
{
    size_t n = keys->n ? keys->n : numbers_count(numbers);

    for (size_t i = 0; i < n; i++) {
        struct numbers_key *key = keys->n ? numbers_find(numbers, keys->v[i]) : numbers_key(numbers, i);
        if (key)
            json_array_append_new(list, api_series_curve_json(run, numbers, key, points));
    }
}

/* ---- what the nodes used */

const struct api_use api_uses[API_USES] = {
    {SAMPLES_GPU_BUSY, "gpu_busy", DRAW_SHARE, "GPUs, busy", NULL},
    {SAMPLES_GPU_MEMORY, "gpu_memory", DRAW_SHARE, "GPUs, memory", NULL},
    {SAMPLES_CPU_BUSY, "cpu_busy", DRAW_SHARE, "CPU, memory, disks", "CPU busy"},
    {SAMPLES_MEMORY, "memory", DRAW_SHARE, "CPU, memory, disks", "memory used"},
    {SAMPLES_DISK_FULL, "disk_full", DRAW_SHARE, "CPU, memory, disks", "disk of the code used"},
    {SAMPLES_RUN_FULL, "run_disk_full", DRAW_SHARE, "CPU, memory, disks", "disk of the run used"},
    {SAMPLES_DISK_READ, "disk_read", DRAW_BYTES, "Disk", "read"},
    {SAMPLES_DISK_WRITTEN, "disk_written", DRAW_BYTES, "Disk", "written"},
    {SAMPLES_NET_RECEIVED, "net_received", DRAW_BYTES, "Network", "received"},
    {SAMPLES_NET_SENT, "net_sent", DRAW_BYTES, "Network", "sent"},
    {SAMPLES_IB_RECEIVED, "ib_received", DRAW_BYTES, "Network", "InfiniBand received"},
    {SAMPLES_IB_SENT, "ib_sent", DRAW_BYTES, "Network", "InfiniBand sent"},
};

int api_use_curves(const struct api_use *use, const struct flow_node_use *node)
{
    return use->label ? 1 : node->gpus;
}

char *api_use_label(const struct api_use *use, int nth)
{
    return use->label ? act_strdup(use->label) : act_sprintf("GPU %d", nth);
}

static void add_use_curve(const char *id, struct flow_node_use *node, const struct api_use *use, int nth, size_t points,
                          json_t *list)
{
    struct series *s = &node->curves[use->what + nth];
    ACT_AUTOFREE char *label = api_use_label(use, nth);

    if (s->n == 0)
        return;
    json_t *x = json_array(), *y = json_array();
    series_reduce(s, points);
    add_points(s, x, y);
    json_array_append_new(list, json_pack("{s:s,s:o,s:s,s:o,s:s,s:s,s:s,s:I,s:o,s:o}", "id", id, "node",
                                          codec_json_bytes_new(node->name), "what", use->name, "gpu",
                                          cli_count_json(use->label ? -1 : nth), "label", label, "chart", use->chart,
                                          "unit", use->unit == DRAW_SHARE ? "share" : "bytes_per_s", "points",
                                          (json_int_t)s->count, "x", x, "y", y));
}

static void api_series_add_use(struct flow_report *report, size_t points, json_t *list)
{
    for (size_t i = 0; i < report->n_nodes; i++)
        for (size_t k = 0; k < API_USES; k++)
            for (int nth = 0; nth < api_use_curves(&api_uses[k], &report->nodes[i]); nth++)
                add_use_curve(report->run->row.id, &report->nodes[i], &api_uses[k], nth, points, list);
}

/* ---- the answer */

struct api_series_asked {
    size_t points;
    struct series_range range;
};

static int api_series_read_numbers(const struct page_job *job, const struct flow_runs *runs,
                                   const struct api_series_asked *asked, json_t *list, struct act_error *err)
{
    ACT_AUTO(act_strv) keys = {0};
    const char *key;
    int rc = 0, rank;

    for (size_t i = 0; (key = page_asked(job, "key", i)); i++)
        act_strv_push(&keys, key);
    for (size_t i = 0; i < runs->n && rc == 0; i++) {
        struct numbers *numbers = NULL;
        rc = flow_read_numbers(&job->cli->flow, &runs->v[i], -1, asked->range, &numbers, &rank, err);
        if (rc == 0) {
            if (asked->range.from >= asked->range.to) /* else they are not all there */
                flow_note_numbers(&job->cli->flow, &runs->v[i], numbers);
            api_add_series(&runs->v[i], numbers, &keys, asked->points, list);
        }
        numbers_free(numbers);
    }
    return rc;
}

static int api_series_read_use(const struct page_job *job, const struct flow_runs *runs,
                               const struct api_series_asked *asked, json_t *list, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < runs->n && rc == 0; i++) {
        struct flow_report report;
        rc = flow_report_use(&job->cli->flow, &runs->v[i], asked->range, &report, err);
        if (rc == 0)
            api_series_add_use(&report, asked->points, list);
        flow_report_release(&report);
    }
    return rc;
}

/* Reads "from" and "to", of which neither or both are given. */
static int api_series_read_range(const struct page_job *job, struct series_range *out, struct act_error *err)
{
    const char *from = page_asked(job, "from", 0), *to = page_asked(job, "to", 0);

    if (!from && !to)
        return 0;
    if (!from || !to || !page_number_of(from, &out->from) || !page_number_of(to, &out->to) || out->from >= out->to)
        return act_error_set(err, ACT_USAGE, "'from' and 'to' are two numbers, the smaller one first");
    return 0;
}

int page_make_api_series(struct page_job *job, struct act_error *err)
{
    int64_t points = USUAL_POINTS, use = 0;
    struct api_series_asked asked = {0};
    ACT_AUTO(flow_runs) runs = {0};
    json_t *series = json_array(), *used = json_array();

    job->json = json_pack("{s:o,s:o}", "series", series, "use", used);
    int rc = page_asked_number(job, "points", 2, MOST_POINTS, &points, err);
    if (rc == 0)
        rc = page_asked_number(job, "use", 0, 1, &use, err);
    if (rc == 0)
        rc = api_series_read_range(job, &asked.range, err);
    asked.points = (size_t)points;
    if (rc == 0)
        rc = page_find_runs(job, true, &runs, err);
    if (rc == 0)
        rc = use ? api_series_read_use(job, &runs, &asked, used, err)
                 : api_series_read_numbers(job, &runs, &asked, series, err);
    job->refresh_s = page_is_one_active(&runs) ? PAGE_REFRESH_S : 0;
    return rc;
}
