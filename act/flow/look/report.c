
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"

enum {
    RANKS_ASKED = 8, /* for numbers, and for tails */
    SYSTEM_TAILS = 4,
    TAIL_BYTES = 64 << 10,
    TAIL_LINES = 40,
    FILES_SHOWN = 2000,
};

/* ---- numbers */

static void report_take(void *numbers, const char *text, size_t len)
{
    numbers_feed(numbers, text, len);
}

static int report_read_rank(const struct flow_here *here, int rank, struct numbers *n, struct act_error *err)
{
    int rc = 0;

    for (int attempt = 1; attempt <= here->attempt && rc == 0; attempt++) {
        ACT_AUTOFREE char *prefix = flow_here_prefix(here, attempt);
        const struct store_entry *log = flow_find_rank_log(&here->files, prefix, rank);
        rc = log ? flow_here_read(here, log->key, report_take, n, err) : 0;
        numbers_end(n);
    }
    return rc;
}

static int world_of(const struct flow_run *run)
{
    int64_t world = (int64_t)run->spec.nodes * run->spec.procs_per_node;

    return world < 1 ? 1 : world > RANKS_ASKED ? RANKS_ASKED : (int)world;
}

static int read_ranks(const struct flow_here *here, int first, int end, struct series_range range, struct numbers **out,
                      int *out_rank, struct act_error *err)
{
    int rc = 0;

    for (int rank = first; rank < end && rc == 0; rank++) {
        numbers_free(*out);
        *out = numbers_new();
        numbers_set_range(*out, range);
        *out_rank = rank;
        rc = report_read_rank(here, rank, *out, err);
        if (numbers_count(*out) > 0)
            break;
    }
    return rc;
}

static int read_numbers(struct flow *flow, const struct flow_here *here, const struct flow_run *run, int rank,
                        struct series_range range, struct numbers **out, int *out_rank, struct act_error *err)
{
    int64_t from = run->status.started_unix_s, until = run->status.ended_unix_s;
    int rc = rank >= 0 ? read_ranks(here, rank, rank + 1, range, out, out_rank, err)
                       : read_ranks(here, 0, world_of(run), range, out, out_rank, err);

    if (rc == 0 && rank < 0 && flow)
        flow_add_events(flow, run, *out);
    numbers_sort(*out, (double)from, (double)(until > 0 ? until : act_now_unix_s()));
    return rc;
}

void flow_say_more_numbers(const struct flow_run *run, const struct numbers *numbers)
{
    if (numbers_has_more(numbers))
        act_warn(
            "'%s' has more names of numbers than are shown: only %zu are, the first ones and usual ones such as loss",
            run->row.id, numbers_count(numbers));
}

int flow_read_numbers(struct flow *flow, const struct flow_run *run, int rank, struct series_range range,
                      struct numbers **out, int *out_rank, struct act_error *err)
{
    struct flow_here here;
    int rc = flow_here_open(run, &here, err);

    *out = numbers_new();
    if (rc == 0)
        rc = read_numbers(flow, &here, run, rank, range, out, out_rank, err);
    flow_here_close(&here);
    if (rc < 0) {
        numbers_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- attempts */

/* Reads a small JSON file; NULL: there is none, or no whole one. */
static json_t *report_read_json(const struct flow_here *here, const char *name)
{
    enum { JSON_MAX = 1 << 20 };
    const struct store_entry *file = flow_here_find(here, name);
    ACT_AUTO(act_buf) text = {0};
    struct act_error ignored;
    json_t *json = NULL;

    if (!file || file->size > JSON_MAX || flow_here_tail(here, file, JSON_MAX, &text, &ignored) < 0 || text.len == 0 ||
        codec_json_parse(text.data, text.len, name, &json, &ignored) < 0)
        return NULL;
    return json;
}

static bool report_read_status(const struct flow_here *here, int attempt, struct run_status *out)
{
    ACT_AUTOFREE char *name = act_sprintf(RUN_DIR_ATTEMPTS "/%d/" RUN_FILE_STATUS, attempt);
    CODEC_AUTOJSON json_t *json = report_read_json(here, name);
    struct act_error ignored;

    return json && run_status_from_json(json, out, &ignored) == 0;
}

static void list_attempts(const struct flow_here *here, struct flow_report *out)
{
    const struct run_status *now = &out->run->status;
    int last = here->attempt > now->attempt ? here->attempt : now->attempt;

    for (int n = 1; n < here->attempt; n++) {
        struct flow_attempt attempt = {.number = n};
        if (report_read_status(here, n, &attempt.status))
            ACT_PUSH(out->attempts, out->n_attempts, attempt);
    }
    ACT_PUSH(out->attempts, out->n_attempts, (struct flow_attempt){.number = last, .status = *now});
}

/* ---- ends of logs */

static int add_tail(const struct flow_here *here, const struct store_entry *log, struct flow_report *out,
                    struct act_error *err)
{
    struct act_buf text = {0};
    int rc = flow_here_tail(here, log, TAIL_BYTES, &text, err);

    if (rc == 0 && text.len > 0) {
        ACT_PUSH(out->tails, out->n_tails, (struct flow_tail){.log = act_strdup(log->key)});
        flow_last_lines(&text, TAIL_LINES, &out->tails[out->n_tails - 1].lines);
    }
    act_buf_release(&text);
    return rc;
}

static int report_add_tails(const struct flow_here *here, struct flow_report *out, struct act_error *err)
{
    int failed = out->run->status.failed_rank, rc = 0, world = world_of(out->run);
    size_t system = 0;

    for (int rank = 0; rank < world && rc == 0; rank++) {
        const struct store_entry *log = flow_find_rank_log(&here->files, "", rank);
        if (log)
            rc = add_tail(here, log, out, err);
    }
    const struct store_entry *log = failed >= world ? flow_find_rank_log(&here->files, "", failed) : NULL;
    if (log && rc == 0)
        rc = add_tail(here, log, out, err);
    for (size_t i = 0; i < here->files.n && system < SYSTEM_TAILS && rc == 0; i++) {
        const struct store_entry *file = &here->files.v[i];
        if (act_starts_with(file->key, RUN_DIR_SYSTEM "/") && act_ends_with(file->key, ".txt") && file->size > 0) {
            rc = add_tail(here, file, out, err);
            system++;
        }
    }
    return rc;
}

static void list_files(const struct flow_here *here, struct flow_report *out)
{
    size_t n = here->files.n < FILES_SHOWN ? here->files.n : FILES_SHOWN;

    out->files = act_calloc(n + 1, sizeof(*out->files));
    for (; out->n_files < n; out->n_files++)
        out->files[out->n_files] =
            (struct flow_file){act_strdup(here->files.v[out->n_files].key), here->files.v[out->n_files].size};
}

/* ---- the whole */

/* The run that it repeats, or else compared. found: what was found, to be released. */
static const struct flow_run *find_compared(struct flow *flow, const struct flow_run *run,
                                            const struct flow_run *compared, struct flow_run *found)
{
    struct act_error err;

    if (!run->spec.resubmit_of)
        return compared;
    if (flow_find_known(flow, run->spec.resubmit_of, found, &err) == 0)
        return found;
    act_note("the run that '%s' repeats is not known here: %s", run->row.id, act_error_text(&err));
    return NULL;
}

/* Reads what a run ran with from the copies of its logs. Release *out in any case. */
static bool read_software(const struct flow_here *here, struct run_environment *out)
{
    CODEC_AUTOJSON json_t *json = report_read_json(here, RUN_FILE_ENVIRONMENT);
    struct act_error ignored;

    *out = (struct run_environment){0};
    return json && run_environment_from_json(json, out, &ignored) == 0;
}

static void compare_software(const struct run_environment *environment, const struct flow_run *before,
                             struct flow_report *out)
{
    ACT_AUTO(run_environment) then = {0};
    struct flow_here here;
    struct act_error ignored;

    if (flow_here_open(before, &here, &ignored) == 0 && read_software(&here, &then))
        flow_list_software(environment, &then, &out->compared_software, &out->n_compared_software);
    flow_here_close(&here);
}

static void list_settings(struct flow *flow, const struct flow_here *here, const struct flow_run *compared,
                          struct flow_report *out)
{
    ACT_AUTO(flow_run) found = {0};
    ACT_AUTO(run_environment) environment = {0};
    const struct flow_run *before = find_compared(flow, out->run, compared, &found);

    out->compared = before ? act_strdup(before->row.id) : NULL;
    flow_list_settings(&out->run->spec, before ? &before->spec : NULL, out);
    if (!read_software(here, &environment))
        return;
    flow_list_software(&environment, NULL, &out->software, &out->n_software);
    if (before)
        compare_software(&environment, before, out);
}

/* A platform that cannot be asked is no reason to have no page. */
static void report_ask_why(struct flow *flow, struct flow_report *out)
{
    struct act_error err;

    out->has_why = flow_why(flow, out->run, &out->why, &err) == 0;
    if (!out->has_why)
        act_warn("%s", act_error_text(&err));
}

int flow_report(struct flow *flow, const struct flow_run *run, int rank, const struct flow_run *compared,
                struct flow_report *out, struct act_error *err)
{
    struct flow_here here;

    *out = (struct flow_report){.run = run, .numbers = numbers_new()};
    int rc = flow_here_open(run, &here, err);
    if (rc == 0)
        rc = read_numbers(flow, &here, run, rank, (struct series_range){0}, &out->numbers, &out->numbers_rank, err);
    if (rc == 0)
        flow_say_more_numbers(run, out->numbers);
    if (rc == 0)
        rc = flow_read_use(flow, &here, out, err);
    if (rc == 0)
        rc = report_add_tails(&here, out, err);
    if (rc == 0) {
        list_attempts(&here, out);
        list_files(&here, out);
        flow_list_outputs(flow, out);
        list_settings(flow, &here, compared, out);
        report_ask_why(flow, out);
    }
    flow_here_close(&here);
    if (rc == 0 && rank < 0)
        flow_note_numbers(flow, run, out->numbers);
    return rc;
}

int flow_report_use(struct flow *flow, const struct flow_run *run, struct series_range range, struct flow_report *out,
                    struct act_error *err)
{
    struct flow_here here;

    *out = (struct flow_report){.run = run, .numbers = numbers_new(), .use_range = range};
    int rc = flow_here_open(run, &here, err);
    if (rc == 0)
        rc = flow_read_use(flow, &here, out, err);
    flow_here_close(&here);
    return rc;
}

static void release_node(struct flow_node_use *node)
{
    for (int i = 0; i < SAMPLES_CURVES; i++)
        series_release(&node->curves[i]);
    free(node->name);
}

void flow_report_release(struct flow_report *report)
{
    flow_settings_release(report->settings, report->n_settings);
    flow_settings_release(report->software, report->n_software);
    flow_settings_release(report->compared_software, report->n_compared_software);
    for (size_t i = 0; i < report->n_nodes; i++)
        release_node(&report->nodes[i]);
    for (size_t i = 0; i < report->n_tails; i++) {
        free(report->tails[i].log);
        act_strv_release(&report->tails[i].lines);
    }
    for (size_t i = 0; i < report->n_files; i++)
        free(report->files[i].name);
    free(report->nodes);
    free(report->tails);
    free(report->files);
    for (size_t i = 0; i < report->n_outputs; i++)
        free(report->outputs[i].name);
    free(report->outputs);
    act_strv_release(&report->beyond);
    free(report->attempts);
    free(report->compared);
    numbers_free(report->numbers);
    if (report->has_why)
        flow_why_release(&report->why);
    *report = (struct flow_report){0};
}
