/* why.c - why a run failed, from the agent's record, the status and the ends of the logs.
 *
 * What is read of the logs, and in which order, diagnose/attempt.c says, for the agent too.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "flow/code/code_internal.h"
#include "flow/why/ranks.h"

enum {
    METRICS_TAIL = 32 << 10,
    SHOWN_LINES = 20,
};

struct asking {
    struct flow_source from;
    const struct flow_run *run;
    const char *prefix; /* "", or "attempts/<n>/" */
    struct store_page logs;
    struct run_status status; /* of the attempt that failed */
    bool has_record;          /* the agent wrote down why */
    struct flow_why *out;
    struct diagnose_verdict verdict;
    uint64_t slurm_from;      /* where the attempt's part of RUN_FILE_SLURM begins */
    char *class, *class_line; /* as the agent has judged it; NULL: it has not */
};

/* ---- reading */

static const struct store_entry *find_log(const struct asking *a, const char *name)
{
    ACT_AUTOFREE char *full = act_sprintf("%s%s", a->prefix, name);

    for (size_t i = 0; i < a->logs.n; i++)
        if (strcmp(a->logs.v[i].key, full) == 0)
            return &a->logs.v[i];
    return NULL;
}

static const struct store_entry *find_rank_log(const struct asking *a, int rank)
{
    return rank >= 0 ? flow_find_rank_log(&a->logs, a->prefix, rank) : NULL;
}

/* Returns the name of a log without the prefix; NULL: there is no such log. */
static const char *name_in_attempt(const struct asking *a, const struct store_entry *log)
{
    return log ? log->key + strlen(a->prefix) : NULL;
}

/* ---- the record */

static void take_record(struct asking *a, const struct run_failure *failure)
{
    const struct act_strv *said = &failure->lines;
    struct flow_why *out = a->out;

    a->slurm_from = (uint64_t)failure->slurm_from;
    a->class = act_strdup(failure->class);
    a->class_line = act_strdup(failure->class_line);
    out->rank = failure->rank;
    out->exit_status = failure->exit_status;
    out->signal = failure->signal;
    out->failed_unix_s = failure->unix_s;
    if (failure->node && *failure->node)
        act_str_replace(&out->node, failure->node);
    if (failure->reason && *failure->reason)
        act_str_replace(&out->reason, failure->reason);
    for (size_t i = said->n > SHOWN_LINES ? said->n - SHOWN_LINES : 0; i < said->n; i++) {
        said->v[i][diagnose_clean(said->v[i], strlen(said->v[i]))] = '\0';
        act_strv_push(&out->lines, said->v[i]);
    }
}

/* Finds the rank that failed first by what the agents of the ranks wrote, if there is no record. */
static int find_failed_rank(struct asking *a, struct act_error *err)
{
    struct flow_why *out = a->out;
    struct flow_last_words words;
    int rc = flow_find_last_words(&a->from, a->run, &a->logs, a->prefix, &words, err);

    if (rc < 0 || words.rank < 0)
        return rc;
    out->rank = words.rank;
    out->exit_status = words.exit_status;
    out->signal = words.signal;
    out->failed_unix_s = words.unix_ns / 1000000000;
    free(out->node);
    out->node = act_strdup(words.node);
    if (words.reason) {
        free(out->reason);
        out->reason = words.reason;
    }
    return 0;
}

/* Takes the reason from the log of the first pod, "act: pod 1 was lost: attempt 2 ends": if pods share nothing, an
 * attempt that lost one has no status. */
static int take_agents_word(struct asking *a, struct act_error *err)
{
    static const char name[] = RUN_DIR_SYSTEM "/agent_0.txt", from[] = "act: ", mark[] = ": attempt ";
    const struct store_entry *log = find_log(a, name);
    ACT_AUTO(act_buf) text = {0};
    int rc = log ? flow_log_tail(&a->from, log, DIAGNOSE_OTHER_TAIL, &text, err) : 0;

    for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));)
        if (act_starts_with(line, from) && strstr(line, mark))
            act_str_replace(&a->out->reason, line + strlen(from));
    return rc;
}

/* The status of the attempt, and what the agent wrote down besides. A record of another attempt does not count. */
static int why_read_record(struct asking *a, struct act_error *err)
{
    struct flow_why *out = a->out;
    CODEC_AUTOJSON json_t *record = NULL;
    CODEC_AUTOJSON json_t *status = NULL;
    ACT_AUTO(run_failure) failure = {0};
    struct run_status then;
    struct act_error ignored;
    int rc = *a->prefix ? flow_log_json(&a->from, find_log(a, RUN_FILE_STATUS), &status, err) : 0;

    if (status && run_status_from_json(status, &then, &ignored) == 0)
        a->status = then;
    out->rank = a->status.failed_rank;
    out->exit_status = a->status.exit_status;
    out->failed_unix_s = a->status.ended_unix_s;
    out->reason = act_strdup(a->status.reason);
    if (rc == 0)
        rc = flow_log_json(&a->from, find_log(a, RUN_FILE_FAILURE), &record, err);
    memcpy(out->class, a->status.class, sizeof(out->class));
    a->has_record = record && run_failure_from_json(record, &failure, &ignored) == 0 && failure.attempt == out->attempt;
    if (a->has_record)
        take_record(a, &failure);
    if (!a->class && *out->class) {
        a->class = act_strdup(out->class);
        a->class_line = act_strdup(out->reason);
    }
    bool failed = a->status.state == RUN_FAILED || *a->prefix;
    if (rc == 0 && !a->has_record && !out->node && failed && !platform_row(a->from.platform)->about.keeps_record)
        rc = find_failed_rank(a, err);
    if (rc == 0 && *a->prefix && !*out->reason)
        rc = take_agents_word(a, err);
    return rc;
}

/* ---- the places */

/* Takes the last lines of the rank, without the numbers of the node that the agent adds there. */
static void take_last_lines(struct flow_why *out, const struct act_buf *text)
{
    ACT_AUTO(act_strv) lines = {0};

    flow_last_lines(text, SHOWN_LINES, &lines);
    for (size_t i = 0; i < lines.n; i++)
        if (!act_starts_with(lines.v[i], RUN_LOG_METRICS))
            act_strv_push(&out->lines, lines.v[i]);
}

static int read_failed_rank(struct asking *a, struct act_buf *out, const char **out_log, struct act_error *err)
{
    const struct store_entry *log = find_rank_log(a, a->out->rank);
    int rc = flow_log_tail(&a->from, log, DIAGNOSE_FAILED_TAIL, out, err);

    *out_log = name_in_attempt(a, log);
    a->out->rank_log = act_strdup(*out_log ? *out_log : name_in_attempt(a, find_rank_log(a, 0)));
    if (rc == 0 && out->len > 0 && a->out->lines.n == 0)
        take_last_lines(a->out, out);
    return rc;
}

/* Reads a log; of Slurm's output only the part of this attempt. */
static int why_read_log(void *arg, const char *name, struct act_buf *out, struct act_error *err)
{
    const struct asking *a = arg;
    const struct store_entry *log = find_log(a, name);
    uint64_t from = strcmp(name, RUN_FILE_SLURM) == 0 ? a->slurm_from : 0;
    uint64_t size = log && log->size > from ? log->size - from : 0;

    return size > 0 ? flow_log_tail(&a->from, log, size < DIAGNOSE_OTHER_TAIL ? size : DIAGNOSE_OTHER_TAIL, out, err)
                    : 0;
}

static int why_read_rank(void *arg, int rank, struct act_buf *out, const char **out_log, struct act_error *err)
{
    const struct asking *a = arg;
    const struct store_entry *log = find_rank_log(a, rank);

    *out_log = name_in_attempt(a, log);
    return flow_log_tail(&a->from, log, DIAGNOSE_OTHER_TAIL, out, err);
}

static void why_list_logs(const struct asking *a, struct act_strv *out)
{
    for (size_t i = 0; i < a->logs.n; i++)
        if (act_starts_with(a->logs.v[i].key, a->prefix))
            act_strv_push(out, a->logs.v[i].key + strlen(a->prefix));
}

static int ask_logs(struct asking *a, struct act_error *err)
{
    ACT_AUTOFREE char *reason = act_sprintf("%s\n%s", a->out->reason, a->status.reason);
    ACT_AUTO(act_buf) said = {0};
    ACT_AUTO(act_strv) logs = {0};
    struct diagnose_attempt attempt = {.reason = reason,
                                       .rank = a->out->rank,
                                       .ranks = a->run->spec.nodes * a->run->spec.procs_per_node,
                                       .node = a->out->node,
                                       .said = &said,
                                       .logs = &logs,
                                       .read_log = why_read_log,
                                       .read_rank = why_read_rank,
                                       .arg = a};
    int rc = read_failed_rank(a, &said, &attempt.said_log, err);

    why_list_logs(a, &logs);
    return rc < 0 ? rc : diagnose_judge_attempt(&a->verdict, &attempt, err);
}

/* ---- what was full */

/* The metrics of the failed rank's node, or of the only node. New string, or NULL. */
static char *metrics_log(const struct asking *a)
{
    ACT_AUTOFREE char *folder = act_sprintf("%s" RUN_DIR_METRICS "/", a->prefix);
    const char *only = NULL;

    if (a->out->node)
        return act_sprintf(RUN_DIR_METRICS "/%s.jsonl", a->out->node);
    for (size_t i = 0; i < a->logs.n; i++) {
        if (!act_starts_with(a->logs.v[i].key, folder))
            continue;
        if (only)
            return NULL;
        only = a->logs.v[i].key + strlen(a->prefix);
    }
    return act_strdup(only);
}

static int ask_metrics(struct asking *a, struct act_error *err)
{
    ACT_AUTOFREE char *name = metrics_log(a);
    struct flow_why *out = a->out;
    ACT_AUTO(act_buf) text = {0};
    int rc = name ? flow_log_tail(&a->from, find_log(a, name), METRICS_TAIL, &text, err) : 0;

    flow_note_fullness(&text, out->node ? out->node : "the node", &out->notes);
    /* a full memory explains only a process that was killed */
    bool was_killed = out->signal == 9 || out->exit_status == 128 + 9;
    for (size_t i = 0; i < out->notes.n && was_killed; i++)
        diagnose_judge_text(&a->verdict, DIAGNOSE_METRICS, out->notes.v[i], strlen(out->notes.v[i]), name);
    return rc;
}

/* ---- the result */

/* The advice with what it names in braces. New string. */
static char *fill_in(const char *advice, const struct flow_run *run, const struct flow_why *why)
{
    int rank = why->cause_rank >= 0 ? why->cause_rank : why->rank;
    ACT_AUTOFREE char *number = rank >= 0 ? act_sprintf("%d", rank) : act_strdup("N");
    const struct {
        const char *name, *value;
    } rows[] = {{"{run}", run->row.id}, {"{node}", why->node ? why->node : "NODE"}, {"{rank}", number}};
    struct act_buf out = {0};

    while (*advice) {
        size_t i = 0;
        while (i < sizeof(rows) / sizeof(rows[0]) && !act_starts_with(advice, rows[i].name))
            i++;
        if (i == sizeof(rows) / sizeof(rows[0])) {
            act_buf_addc(&out, *advice++);
            continue;
        }
        act_buf_adds(&out, rows[i].value);
        advice += strlen(rows[i].name);
    }
    return act_buf_steal(&out);
}

/* Shows what the agent decided by, whatever was written into the logs since. */
static void follow_agent(struct asking *a)
{
    const struct diagnose_rule *rule = a->class ? diagnose_find(a->out->rules, a->class) : NULL;

    if (!rule || rule == a->verdict.rule)
        return;
    diagnose_verdict_release(&a->verdict);
    a->verdict = (struct diagnose_verdict){.rule = rule, .line = act_strdup(a->class_line), .rank = -1};
}

static void take_verdict(struct asking *a)
{
    const struct diagnose_verdict *v = &a->verdict;

    follow_agent(a);
    free(a->class);
    free(a->class_line);

    a->out->rule = v->rule;
    a->out->cause_rank = v->rank;
    a->out->log = v->log ? act_sprintf("%s%s", a->prefix, v->log) : NULL;
    a->out->line = act_strdup(v->line);
    diagnose_verdict_release(&a->verdict);
}

static int ask_all_ranks(struct asking *a, int64_t ended_unix_s, struct act_error *err)
{
    return flow_find_rank_lines(&a->from, a->run, &a->logs, a->prefix, ended_unix_s, &a->out->said, err);
}

static int why_explain(struct asking *a, struct act_error *err)
{
    int rc = why_read_record(a, err);

    if (a->run->status.state != RUN_FAILED && !*a->prefix && !a->has_record) {
        a->out->attempt = 0;
        return rc;
    }
    a->verdict.exit_status = a->out->exit_status;
    a->verdict.signal = a->out->signal;
    if (rc == 0)
        rc = ask_metrics(a, err);
    if (rc == 0)
        rc = ask_logs(a, err);
    if (rc == 0 && a->verdict.rule && a->verdict.rule->compare && a->run->status.state != RUN_RUNNING)
        rc = ask_all_ranks(a, a->out->failed_unix_s, err);
    return rc;
}

/* Tells whether what an earlier attempt left was moved away, which happens when the next one begins. */
static bool why_is_moved(const struct asking *a, const char *folder)
{
    for (size_t i = 0; i < a->logs.n; i++)
        if (act_starts_with(a->logs.v[i].key, folder))
            return true;
    return false;
}

/* Returns which attempt has failed: the last one or, if that still runs or waits, the one before. 0: none. */
static int failed_attempt(const struct run_status *status)
{
    if (status->state == RUN_FAILED)
        return status->attempt > 0 ? status->attempt : 1;
    return run_state_is_final(status->state) || status->attempt < 2 ? 0 : status->attempt - 1;
}

/* Notes what the environment has near a module that a line misses. */
static int note_missing_module(struct asking *a, struct act_error *err)
{
    ACT_AUTO(run_environment) environment = {0};
    CODEC_AUTOJSON json_t *json = NULL;
    ACT_AUTOFREE char *module = flow_missing_module(a->out->line);
    struct act_error ignored;
    int rc = module ? flow_log_json(&a->from, find_log(a, RUN_FILE_ENVIRONMENT), &json, err) : 0;

    if (json && run_environment_from_json(json, &environment, &ignored) == 0)
        flow_note_near(module, &environment, &a->out->notes);
    return rc;
}

static int why_ask(struct asking *a, struct act_error *err)
{
    const struct run_status *status = &a->run->status;
    int rc = flow_source_list(&a->from, &a->logs, err);

    if (rc == 0 && status->state == RUN_RUNNING && a->out->attempt == 0)
        a->out->attempt = flow_last_attempt(&a->logs) - 1; /* some platforms count only the attempts that they begin */
    ACT_AUTOFREE char *earlier = act_sprintf(RUN_DIR_ATTEMPTS "/%d/", a->out->attempt);
    if (rc == 0 && status->state == RUN_RUNNING)
        rc = ask_all_ranks(a, 0, err);
    if (status->state == RUN_FAILED)
        a->status = *status;
    else if (why_is_moved(a, earlier))
        a->prefix = earlier;
    if (rc == 0 && a->out->attempt > 0)
        rc = why_explain(a, err);
    take_verdict(a);
    if (rc == 0)
        rc = note_missing_module(a, err);
    a->prefix = "";
    store_page_release(&a->logs);
    return rc;
}

/* Notes files that a line misses and that were left out of the package. */
static void why_note_left_out(const struct flow_run *run, struct flow_why *out)
{
    if (out->line)
        flow_find_left_out(run->spec.package_sha256, out->line, &out->notes);
    for (size_t i = 0; i < out->lines.n; i++)
        flow_find_left_out(run->spec.package_sha256, out->lines.v[i], &out->notes);
}

/* Notes who else may reach the index of packages that a node does not. */
static void why_note_login(const struct flow_run *run, struct flow_why *out)
{
    const struct platform_row *row = platform_find(run->row.platform);

    if (out->rule && act_streq(out->rule->id, "package_index") && row && row->about.has_login_node)
        act_strv_pushf(&out->notes,
                       "the login node may reach one: a -p 'environment: {where: login}' resubmit %s has it make the "
                       "environment",
                       run->row.id);
}

int flow_why(struct flow *flow, const struct flow_run *run, struct flow_why *out, struct act_error *err)
{
    const struct run_status *status = &run->status;
    struct asking a = {.run = run, .prefix = "", .out = out};

    a.status = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1};
    *out = (struct flow_why){.attempt = status->unsubmitted ? 0 : failed_attempt(status), .rank = -1, .cause_rank = -1};
    bool asks_platform = status->state == RUN_RUNNING || out->attempt > 0;
    if (!asks_platform && !status->unsubmitted && status->state != RUN_CANCELED)
        return 0; /* the status says all */
    int rc = flow_rules(run, &out->rules, err);
    a.verdict = (struct diagnose_verdict){.rules = out->rules, .quality = DIAGNOSE_NOTHING, .rank = -1};
    if (rc == 0 && !asks_platform && !run->replaced_by)
        diagnose_judge_text(&a.verdict, DIAGNOSE_AGENT, status->reason, strlen(status->reason), NULL);
    if (rc == 0 && asks_platform)
        rc = flow_source_open(flow, run, &a.from, err);
    a.from.with_ends = true;
    if (rc == 0 && asks_platform)
        rc = why_ask(&a, err);
    flow_source_close(&a.from);
    if (!asks_platform)
        take_verdict(&a);
    if (rc == 0)
        why_note_left_out(run, out);
    if (rc == 0)
        why_note_login(run, out);
    if (rc == 0 && out->rule)
        out->advice = fill_in(out->rule->advice, run, out);
    if (rc < 0)
        flow_why_release(out);
    return rc < 0 ? act_error_prefix(err, "cannot explain '%s'", run->row.id) : 0;
}

void flow_why_release(struct flow_why *why)
{
    free(why->node);
    free(why->reason);
    free(why->advice);
    free(why->log);
    free(why->line);
    free(why->rank_log);
    flow_rank_lines_release(&why->said);
    act_strv_release(&why->lines);
    act_strv_release(&why->notes);
    diagnose_free(why->rules);
    *why = (struct flow_why){0};
}
