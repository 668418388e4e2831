#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/why/why.h"

/* ---- for programs */

static json_t *failure_json(const struct flow_why *why)
{
    if (why->attempt == 0)
        return json_null();
    return json_pack("{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "attempt", why->attempt, "rank", cli_count_json(why->rank),
                     "node", cli_text_json(why->node), "exit_status", cli_count_json(why->exit_status), "signal",
                     cli_count_json(why->signal > 0 ? why->signal : -1), "reason", cli_text_json(why->reason), "time",
                     cli_time_json(why->failed_unix_s), "lines", codec_json_strv_new(&why->lines));
}

static json_t *diagnosis_json(const struct flow_why *why)
{
    const struct diagnose_rule *rule = why->rule;

    if (!rule)
        return json_null();
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o}", "id", rule->id, "code", rule->code, "class", rule->title,
                     "summary", rule->summary, "retry", diagnose_retry_name(rule->retry), "advice", why->advice, "rank",
                     cli_count_json(why->cause_rank), "log", cli_text_json(why->log), "line", cli_text_json(why->line));
}

static json_t *said_json(const struct flow_rank_line *l)
{
    return json_pack("{s:i,s:o,s:o,s:b}", "rank", l->rank, "line", cli_text_json(l->line), "silent_s",
                     cli_count_json(l->silent_s), "longer", l->longer);
}

static const char *last_line_of_rank_0(const struct flow_rank_lines *said)
{
    for (size_t i = 0; i < said->n; i++)
        if (said->v[i].rank == 0)
            return said->v[i].line;
    return NULL;
}

json_t *cli_why_json(const struct flow_run *run, const struct flow_why *why)
{
    const struct run_status *s = &run->status;

    return json_pack("{s:s,s:s,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "run", run->row.id, "state",
                     run_state_name(s->state), "replaced_by", cli_text_json(run->replaced_by), "reason",
                     cli_text_json(s->reason), "attempt", s->attempt, "attempts",
                     cli_count_json(s->attempts ? s->attempts : -1), "retry", cli_text_json(s->retry), "heartbeat",
                     cli_time_json(s->heartbeat_unix_s), "last_line", cli_text_json(last_line_of_rank_0(&why->said)),
                     "ranks", CLI_JSON_LIST(why->said.v, why->said.n, said_json), "failure", failure_json(why),
                     "diagnosis", diagnosis_json(why), "notes", codec_json_strv_new(&why->notes));
}

static int print_why_json(const struct flow_run *run, const struct flow_why *why, struct act_error *err)
{
    json_t *json = json_pack("{s:i}", "version", 1);

    json_object_update_new(json, cli_why_json(run, why));
    return cli_print_json(json, err);
}

/* ---- for people */

/* Returns text from a log as one line of reasonable length. New string. */
static char *cmd_why_text(const char *text)
{
    enum { SHOWN = 400 };
    size_t len = strlen(text), n = len < SHOWN ? len : SHOWN;

    while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    ACT_AUTOFREE char *cut = act_strndup(text, n);
    ACT_AUTOFREE char *shown = cli_name(cut);
    bool utf8 = act_utf8_valid(shown, strlen(shown));
    for (char *c = shown; *c && !utf8; c++)
        if ((unsigned char)*c & 0x80)
            *c = '?';
    return act_sprintf("%s%s", shown, n < len ? "..." : "");
}

static void cmd_why_put_text(const char *text)
{
    ACT_AUTOFREE char *line = cmd_why_text(text);

    puts(line);
}

enum { FIELD = 10 }; /* how wide a name and its blank are */

/* Prints a field in ACT's own words. */
static void cmd_why_put_field(const char *name, const char *text)
{
    ACT_AUTOFREE char *shown = cli_name(text);

    printf("%-9s ", name);
    cli_put_prose(shown, FIELD, FIELD);
}

/* Returns what the agent reports about a rank, without its name: "exited with status 1", "killed by signal 9
 * (Killed)", "lost: its agent was killed". NULL: it is about something else. */
static const char *without_rank(const char *reason, int rank)
{
    static const char *const links[] = {": ", " is ", " was ", " "};
    ACT_AUTOFREE char *name = act_sprintf("rank %d", rank);

    if (!reason || !act_starts_with(reason, name))
        return NULL;
    reason += strlen(name);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if (act_starts_with(reason, links[i]))
            return reason + strlen(links[i]);
    return NULL;
}

/* Returns how the rank ended that failed first. New string. */
static char *why_end_of_rank(const struct flow_why *why)
{
    const char *said = without_rank(why->reason, why->rank);

    if (said)
        return cmd_why_text(said);
    if (why->signal)
        return act_sprintf("killed by signal %d (%s)", why->signal, sigdescr_np(why->signal) ?: "unknown");
    return act_sprintf("exited with status %d", why->exit_status);
}

/* Prints how the run ended, behind a text that begins the line. */
static void put_how_it_ended(const char *attempt, const struct flow_why *why)
{
    bool is_of_rank = why->rank >= 0 && !why->class[0]; /* else which rank failed is not all there is to say */
    const char *reason = why->reason && *why->reason ? why->reason : "the run failed, and nobody wrote down why";
    ACT_AUTOFREE char *end = is_of_rank ? why_end_of_rank(why) : cmd_why_text(reason);
    ACT_AUTOFREE char *node = why->node ? cli_name(why->node) : NULL;
    ACT_AUTO(act_buf) line = {0};

    act_buf_adds(&line, attempt);
    if (is_of_rank)
        act_buf_addf(&line, "rank %d%s%s failed first: ", why->rank, node ? " on node " : "", node ? node : "");
    act_buf_adds(&line, end);
    cli_put_prose(line.data, 0, 0);
}

/* Tells whether the evidence is the last line that was shown of the rank that failed first. */
static bool why_shows_line(const struct flow_why *why)
{
    const char *last = why->lines.n ? why->lines.v[why->lines.n - 1] : "";

    return why->log && strcmp(last, why->line) == 0;
}

static void put_evidence(const struct flow_why *why)
{
    if (!why->line)
        return;
    bool is_others = why->cause_rank >= 0 && why->cause_rank != why->rank;
    if (!is_others && why_shows_line(why)) {
        ACT_AUTOFREE char *above = act_sprintf("the last line above, of %s", why->log);
        cmd_why_put_field("evidence", above);
        return;
    }
    ACT_AUTOFREE char *text = is_others ? act_sprintf("rank %d, %s: %s", why->cause_rank, why->log, why->line)
                                        : act_sprintf("%s: %s", why->log ? why->log : "the agent", why->line);
    printf("%-9s ", "evidence"); /* a line of a log, as it is */
    cmd_why_put_text(text);
}

static void put_where_to_look(const struct flow_run *run, const struct flow_why *why)
{
    if (!why->rank_log) {
        ACT_AUTOFREE char *look = act_sprintf("a q %s; it has no log of that rank", run->row.id);
        cmd_why_put_field("next", look);
        return;
    }
    ACT_AUTO(act_buf) text = {0};
    act_buf_addf(&text, "a logs --rank %d", why->rank >= 0 ? why->rank : 0);
    if (why->attempt != run->status.attempt)
        act_buf_addf(&text, " --attempt %d", why->attempt);
    act_buf_addf(&text, " %s; own rules can be added in aux_data/diagnosis.yaml", run->row.id);
    cmd_why_put_field("next", text.data);
}

static void put_diagnosis(const struct flow_run *run, const struct flow_why *why)
{
    static const char *const again[] = {
        [DIAGNOSE_RETRY_NO] = "no: it would fail the same way",
        [DIAGNOSE_RETRY_YES] = "yes: it may well work the next time",
        [DIAGNOSE_RETRY_OTHER_NODE] = "yes, better on another node",
        [DIAGNOSE_RETRY_AFTER_CHANGE] = "only after a change",
    };

    if (why->rule) {
        printf("%-9s %s\n", "class", why->rule->title);
        cmd_why_put_field("why", why->rule->summary);
        printf("%-9s %s\n", "again", again[why->rule->retry]);
        cmd_why_put_field("next", why->advice);
        put_evidence(why);
    } else if (why->attempt > 0) {
        printf("%-9s not known: no rule fits\n", "class");
        put_where_to_look(run, why);
    }
    for (size_t i = 0; i < why->notes.n; i++)
        cmd_why_put_field("also", why->notes.v[i]);
    if (why->attempt > 0 && *run->status.retry)
        cmd_why_put_field("retry", run->status.retry);
}

static void put_failure(const struct flow_run *run, const struct flow_why *why)
{
    ACT_AUTOFREE char *which = cli_attempt(&run->status, why->attempt);
    bool is_one_of_several = run->status.attempt > 1 || run->status.attempts > 1;
    ACT_AUTOFREE char *attempt = is_one_of_several ? act_sprintf("attempt %s: ", which) : act_strdup("");

    put_how_it_ended(attempt, why);
    for (size_t i = 0; i < why->lines.n; i++) {
        fputs("  ", stdout);
        cmd_why_put_text(why->lines.v[i]);
    }
}

static void push_silence(struct act_strv *cells, const struct flow_rank_line *said)
{
    char text[ACT_UNIT_TEXT] = "-";

    if (said->silent_s >= 0)
        act_duration_to_text(said->silent_s, text);
    act_strv_pushf(cells, "%s%s", said->longer ? ">" : "", text);
}

/* Prints where the ranks are: most of them wait for one that is elsewhere or went silent first. */
static void put_what_ranks_said(const struct flow_why *why)
{
    enum { SHOWN = 16 };
    static const struct cli_column columns[] = {
        {"RANK", 'r', .rank = 0}, {"SILENT", 'r', .rank = 0}, {"LAST LINE", 'l', .rank = 1, .min = 20}};
    size_t n = why->said.n < SHOWN ? why->said.n : SHOWN;
    ACT_AUTO(act_strv) cells = {0};

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct flow_rank_line *said = &why->said.v[i];
        act_strv_pushf(&cells, "%d", said->rank);
        push_silence(&cells, said);
        act_strv_push(&cells, !said->line ? "(no log yet)" : *said->line ? said->line : "(nothing yet)");
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
    if (n < why->said.ranks)
        printf("and %zu more ranks\n", why->said.ranks - n);
}

static void put_running(const struct flow_run *run, const struct flow_why *why)
{
    const struct run_status *s = &run->status;
    char since[ACT_TIME_TEXT], ago[ACT_UNIT_TEXT];
    int64_t silent_s = act_now_unix_s() - s->heartbeat_unix_s;

    act_time_to_local(s->started_unix_s, since);
    act_duration_to_text(silent_s > 0 ? silent_s : 0, ago);
    bool has_beaten = s->heartbeat_unix_s > 0;
    ACT_AUTOFREE char *line =
        act_sprintf("running since %s%s%s%s", since, has_beaten ? "; its last sign of life was " : "",
                    has_beaten ? ago : "", has_beaten ? " ago" : "");
    cli_put_prose(line, 0, 0);
    if (*s->reason)
        cmd_why_put_field("reason", s->reason);
    put_what_ranks_said(why);
}

static void put_replacement(const struct flow_run *run)
{
    ACT_AUTOFREE char *text = run->replaced_by ? act_sprintf("by %s", run->replaced_by) : NULL;

    if (text)
        cmd_why_put_field("replaced", text);
}

static void put_state(const struct flow_run *run, const struct flow_why *why)
{
    const struct run_status *s = &run->status;

    switch (s->state) {
    case RUN_COMPLETED:
        if (*s->reason)
            cmd_why_put_field(run_state_name(s->state), s->reason);
        else
            puts("completed: there is nothing to explain");
        break;
    case RUN_CANCELED:
        cmd_why_put_field(run_state_name(s->state), *s->reason ? s->reason : "nobody wrote down why");
        put_replacement(run);
        break;
    case RUN_FAILED:
        if (s->unsubmitted)
            cmd_why_put_field(run_state_name(s->state), s->reason);
        break;
    case RUN_QUEUED:
        cmd_why_put_field(run_state_name(s->state), *s->reason ? s->reason : "waits for its turn");
        break;
    case RUN_RUNNING:
        put_running(run, why);
        break;
    case RUN_UNKNOWN:
        printf("its platform '%s' does not know this run (any more)\n", run->row.platform);
        break;
    }
}

int cmd_why(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_why) why = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc == 0)
        rc = flow_why(&cli->flow, &run, &why, err);
    if (rc == 0 && cli->options.json) {
        rc = print_why_json(&run, &why, err);
    } else if (rc == 0) {
        put_state(&run, &why);
        if (why.attempt > 0)
            put_failure(&run, &why);
        if (run.status.state != RUN_RUNNING)
            put_what_ranks_said(&why);
        put_diagnosis(&run, &why);
    }
    return rc;
}
