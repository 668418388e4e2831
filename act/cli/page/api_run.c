/* api_run.c - one run as data: its row, and all that its page shows but curves. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/look/look.h"

enum { RANKS_SHOWN = 4096, SECONDS_OF_AN_HOUR = 3600 };

/* ---- what became of it */

/* Lines of logs may be cut within a character. */
static json_t *lines_json(const struct act_strv *lines)
{
    json_t *list = json_array();

    for (size_t i = 0; i < lines->n; i++) {
        ACT_AUTOFREE char *line = act_one_line(lines->v[i], strlen(lines->v[i]));
        json_array_append_new(list, json_string(line));
    }
    return list;
}

/* Adds to what 'a why --json' says what a page shows first. */
static json_t *api_run_why_json(const struct flow_report *r)
{
    const struct flow_why *why = &r->why;
    const struct diagnose_rule *rule = why->rule;

    if (!r->has_why || (why->attempt == 0 && !rule && why->said.n == 0))
        return json_null();
    json_t *json = cli_why_json(r->run, why);
    json_object_update_new(json, json_pack("{s:o,s:o,s:o,s:o}", "class", cli_text_json(rule ? rule->title : NULL),
                                           "explanation", cli_text_json(rule ? rule->summary : NULL), "advice",
                                           cli_text_json(why->advice), "lines", lines_json(&why->lines)));
    return json;
}

static json_t *attempt_json(const struct flow_attempt *a)
{
    const struct run_status *s = &a->status;

    return json_pack("{s:i,s:s,s:o,s:o,s:o,s:o,s:o}", "attempt", a->number, "state", run_state_name(s->state),
                     "started_s", cli_count_json(s->started_unix_s ? s->started_unix_s : -1), "ended_s",
                     cli_count_json(s->ended_unix_s ? s->ended_unix_s : -1), "reason", cli_text_json(s->reason),
                     "exit_status", cli_has_exit_status(s) ? json_integer(s->exit_status) : json_null(), "failed_rank",
                     cli_count_json(s->failed_rank));
}

static void api_run_add_event(json_t *list, int64_t unix_s, const char *what, int attempt, const char *text)
{
    if (unix_s > 0)
        json_array_append_new(list,
                              json_pack("{s:I,s:s,s:o,s:o}", "unix_s", (json_int_t)unix_s, "what", what, "attempt",
                                        cli_count_json(attempt ? attempt : -1), "text", cli_text_json(text)));
}

/* Lists what happened when, in the order of the attempts. */
static json_t *api_run_events_json(const struct flow_report *r)
{
    json_t *list = json_array();

    api_run_add_event(list, r->run->row.created_unix_s, "created", 0, NULL);
    for (size_t i = 0; i < r->n_attempts; i++) {
        const struct run_status *s = &r->attempts[i].status;
        api_run_add_event(list, s->started_unix_s, "started", r->attempts[i].number, NULL);
        api_run_add_event(list, s->ended_unix_s, "ended", r->attempts[i].number, s->reason);
    }
    if (r->has_why && r->why.attempt > 0)
        api_run_add_event(list, r->why.failed_unix_s, "failed", r->why.attempt, r->why.reason);
    return list;
}

/* ---- its ranks and files */

static const struct flow_rank_line *api_run_said(const struct flow_report *r, int rank)
{
    for (size_t i = 0; r->has_why && i < r->why.said.n; i++)
        if (r->why.said.v[i].rank == rank)
            return &r->why.said.v[i];
    return NULL;
}

static json_t *rank_json(const struct flow_report *r, int rank, const struct flow_file *log)
{
    const struct run_status *s = &r->run->status;
    const struct flow_rank_line *said = api_run_said(r, rank);
    int per_node = r->run->spec.procs_per_node > 0 ? r->run->spec.procs_per_node : 1;
    bool is_first = rank == s->failed_rank, is_blamed = is_first && r->has_why && r->why.rank == rank;

    return json_pack("{s:i,s:i,s:o,s:s,s:o,s:b,s:o,s:o,s:o,s:o}", "rank", rank, "node_rank", rank / per_node, "node",
                     cli_text_json(is_blamed ? r->why.node : NULL), "state", run_state_name(s->state), "exit_status",
                     is_first && cli_has_exit_status(s) ? json_integer(s->exit_status) : json_null(), "failed_first",
                     is_first, "log", cli_text_json(log ? log->name : NULL), "size",
                     log ? json_integer((json_int_t)log->size) : json_null(), "last_line",
                     cli_text_json(said ? said->line : NULL), "silent_s", cli_count_json(said ? said->silent_s : -1));
}

static json_t *api_run_ranks_json(const struct flow_report *r)
{
    int64_t world = (int64_t)r->run->spec.nodes * r->run->spec.procs_per_node;
    int n = world < 1 ? 1 : world > RANKS_SHOWN ? RANKS_SHOWN : (int)world;
    ACT_AUTOFREE const struct flow_file **logs = act_calloc((size_t)n, sizeof(const struct flow_file *));
    json_t *list = json_array();

    for (size_t i = 0; i < r->n_files; i++) {
        int choice, rank = run_log_rank(r->files[i].name, &choice);
        if (rank >= 0 && rank < n && !logs[rank])
            logs[rank] = &r->files[i];
    }
    for (int rank = 0; rank < n; rank++)
        json_array_append_new(list, rank_json(r, rank, logs[rank]));
    return list;
}

static json_t *api_run_file_json(const struct flow_file *file)
{
    return json_pack("{s:o,s:I}", "name", codec_json_bytes_new(file->name), "size", (json_int_t)file->size);
}

/* Lists the folders into which the run wrote where only its nodes can look, each with a command that has one look. */
static json_t *api_run_beyond_json(const struct flow_report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->beyond.n; i++) {
        ACT_AUTOFREE char *command = act_sprintf("a submit ls -l %s", r->beyond.v[i]);
        json_array_append_new(list, json_pack("{s:o,s:o}", "folder", codec_json_bytes_new(r->beyond.v[i]), "command",
                                              cli_text_json(command)));
    }
    return list;
}

/* ---- its settings and numbers */

static json_t *settings_json(const struct flow_setting *v, size_t n)
{
    json_t *object = json_object();

    for (size_t i = 0; i < n; i++)
        if (v[i].value && act_utf8_valid(v[i].name, strlen(v[i].name)))
            json_object_set_new(object, v[i].name, codec_json_bytes_new(v[i].value));
    return object;
}

static json_t *api_run_key_json(const struct numbers_key *key)
{
    const struct series *s = &key->series;

    return json_pack("{s:s,s:s,s:I,s:I,s:o,s:o,s:o}", "name", key->name, "by", numbers_by_name(key->by), "points",
                     (json_int_t)s->count, "not_finite", (json_int_t)s->odd, "last", api_number_json(s->ended_y), "min",
                     s->count ? api_number_json(s->low) : json_null(), "max",
                     s->count ? api_number_json(s->high) : json_null());
}

static json_t *keys_json(struct numbers *numbers)
{
    json_t *list = json_array();

    for (size_t i = 0; i < numbers_count(numbers); i++)
        json_array_append_new(list, api_run_key_json(numbers_key(numbers, i)));
    return list;
}

/* Returns how far the run is, as the last line of rank 0's log that says so has it. */
static json_t *progress_json(const struct flow_report *r)
{
    const struct act_strv *lines = r->n_tails > 0 ? &r->tails[0].lines : NULL;

    for (size_t i = lines ? lines->n : 0; i > 0; i--) {
        ACT_AUTOFREE char *text = numbers_progress(lines->v[i - 1]);
        char *end;
        double done = text ? strtod(text, &end) : 0, of = text && *end == '/' ? strtod(end + 1, NULL) : 0;
        if (text)
            return json_pack("{s:o,s:o}", "text", cli_text_json(text), "done",
                             of > 0 ? api_number_json(done / of) : json_null());
    }
    return json_null();
}

static json_t *tail_json(const struct flow_tail *tail)
{
    return json_pack("{s:o,s:o}", "log", codec_json_bytes_new(tail->log), "lines", lines_json(&tail->lines));
}

/* ---- the whole */

static json_t *gpu_hours_json(const struct flow_run *run)
{
    int64_t elapsed_s = cli_elapsed_s(&run->status);

    return elapsed_s < 0 ? json_null() : json_real((double)elapsed_s * (double)cli_gpus(run) / SECONDS_OF_AN_HOUR);
}

static json_t *api_run_report_json(const struct flow_report *r)
{
    const struct flow_run *run = r->run;
    json_t *row = api_row_json(run, NULL, NULL, NULL), *why = api_run_why_json(r);
    ACT_AUTOFREE char *again = act_sprintf("a resubmit %s", run->row.id);
    json_t *json = json_object();
    const struct {
        const char *name;
        json_t *value;
    } members[] = {
        {"run", row},
        {"status", run_status_to_json(&run->status)},
        {"reason", cli_text_json(run->status.reason)},
        {"why", why},
        {"attempts", CLI_JSON_LIST(r->attempts, r->n_attempts, attempt_json)},
        {"events", api_run_events_json(r)},
        {"ranks", api_run_ranks_json(r)},
        {"files", CLI_JSON_LIST(r->files, r->n_files, api_run_file_json)},
        {"outputs", CLI_JSON_LIST(r->outputs, r->n_outputs, api_run_file_json)},
        {"outputs_beyond", api_run_beyond_json(r)},
        {"outputs_total", json_integer((json_int_t)r->n_all_outputs)},
        {"outputs_bytes", json_integer((json_int_t)r->output_bytes)},
        {"environment", settings_json(r->software, r->n_software)},
        {"spec", settings_json(r->settings, r->n_settings)},
        {"command", json_string(again)},
        {"progress", progress_json(r)},
        {"gpu_hours", gpu_hours_json(run)},
        {"tails", CLI_JSON_LIST(r->tails, r->n_tails, tail_json)},
        {"keys", keys_json(r->numbers)},
    };

    if (run->status.state == RUN_FAILED && json_is_string(json_object_get(why, "class")))
        json_object_set(row, "why", json_object_get(why, "class"));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        json_object_set_new(json, members[i].name, members[i].value);
    return json;
}

int page_make_api_run(struct page_job *job, struct act_error *err)
{
    struct flow_report report = {0};
    ACT_AUTO(flow_runs) runs = {0};
    int rc = page_find_runs(job, true, &runs, err);

    if (rc < 0)
        return rc;
    rc = flow_report(&job->cli->flow, &runs.v[0], -1, NULL, &report, err);
    job->refresh_s = page_is_one_active(&runs) ? PAGE_REFRESH_S : 0;
    if (rc == 0)
        job->json = api_run_report_json(&report);
    flow_report_release(&report);
    return rc;
}
