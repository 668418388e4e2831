#include "node/retry.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"

enum {
    AT_ONCE_S = 30, /* an attempt of less has done nothing */
    SAME_MOST = 3,
};

/* ---- the class ---- */

/* Reads the end of a file, not before from; one that is not there is empty. */
static void retry_read_tail(const char *path, size_t max, int64_t from, struct act_buf *out)
{
    ACT_AUTOFREE char *bytes = act_alloc(max);
    struct stat st;
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* the command may have put anything there */
    ssize_t n = 0;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        off_t start = st.st_size > (off_t)max ? st.st_size - (off_t)max : 0;
        n = act_pread_all(fd, bytes, max, start > from ? start : from);
    }
    if (n > 0)
        act_buf_add(out, bytes, (size_t)n);
}

/* The logs and notes of a failed attempt in the run's folder. */
struct left {
    const struct node *node;
    const struct retry_facts *facts;
};

static int retry_read_log(void *arg, const char *log, struct act_buf *out, struct act_error *err)
{
    const struct left *left = arg;
    ACT_AUTOFREE char *path = node_path(left->node, log);

    (void)err;
    retry_read_tail(path, DIAGNOSE_OTHER_TAIL, strcmp(log, RUN_FILE_SLURM) == 0 ? left->facts->slurm_from : 0, out);
    return 0;
}

static int retry_read_rank(void *arg, int rank, struct act_buf *out, const char **out_log, struct act_error *err)
{
    ACT_AUTOFREE char *name = run_rank_log(rank);

    *out_log = NULL;
    return retry_read_log(arg, name, out, err);
}

static void retry_read_failed_rank(const struct left *left, struct act_buf *out)
{
    const struct retry_facts *facts = left->facts;
    ACT_AUTOFREE char *name = facts->rank >= 0 ? run_rank_log(facts->rank) : NULL;
    ACT_AUTOFREE char *path = name ? node_path(left->node, name) : NULL;

    if (path)
        retry_read_tail(path, DIAGNOSE_FAILED_TAIL, 0, out);
    size_t n = out->len == 0 && facts->lines ? facts->lines->n : 0;
    for (size_t i = 0; i < n; i++)
        act_buf_addf(out, "%s\n", facts->lines->v[i]);
}

static void list_system_logs(const struct node *node, struct act_strv *out)
{
    ACT_AUTOFREE char *folder = node_path(node, RUN_DIR_SYSTEM);
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(folder, &names);
    for (size_t i = 0; i < names.n; i++)
        act_strv_pushf(out, RUN_DIR_SYSTEM "/%s", names.v[i]);
}

static void retry_ask_logs(const struct node *node, const struct retry_facts *facts, struct diagnose_verdict *v)
{
    struct left left = {node, facts};
    ACT_AUTO(act_buf) said = {0};
    ACT_AUTO(act_strv) logs = {0};
    struct act_error err;
    const struct diagnose_attempt attempt = {.reason = facts->reason,
                                             .rank = facts->rank,
                                             .ranks = node_world_size(node),
                                             .node = facts->node,
                                             .said = &said,
                                             .logs = &logs,
                                             .read_log = retry_read_log,
                                             .read_rank = retry_read_rank,
                                             .arg = &left};

    retry_read_failed_rank(&left, &said);
    list_system_logs(node, &logs);
    if (diagnose_judge_attempt(v, &attempt, &err) < 0)
        node_say("%s", act_error_text(&err));
}

static bool retry_is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool node_retry_names(const char *line, const char *host)
{
    size_t len = strlen(host);

    for (const char *at = line; len > 0 && (at = strstr(at, host)); at += len)
        if ((at == line || !retry_is_of_name(at[-1])) && !retry_is_of_name(at[len]))
            return true;
    return false;
}

/* An error of the network may name the node at the other end, which is the one to blame. */
static void find_peer(const struct retry_facts *facts, const char *line, struct retry_class *out)
{
    for (size_t i = 0; facts->hosts && i < facts->hosts->n; i++)
        if (strcmp(facts->hosts->v[i], facts->node) != 0 && node_retry_names(line, facts->hosts->v[i])) {
            act_copy_line(out->peer, sizeof(out->peer), facts->hosts->v[i]);
            out->blames_node = true;
            return;
        }
}

static void retry_take_rule(const struct retry_facts *facts, const struct diagnose_rule *rule, const char *line,
                            struct retry_class *out)
{
    if (!rule)
        return;
    ACT_AUTOFREE char *whole = act_one_line(line, strlen(line));
    act_copy_line(out->id, sizeof(out->id), rule->id);
    act_copy_line(out->title, sizeof(out->title), rule->title);
    act_copy_line(out->line, sizeof(out->line), whole);
    out->line_is_cut = strlen(whole) > strlen(out->line);
    out->blames_node = rule->bad_node;
    if (rule->retry == DIAGNOSE_RETRY_OTHER_NODE)
        find_peer(facts, line, out);
}

void retry_classify(const struct node *node, const struct retry_facts *facts, struct retry_class *out)
{
    struct diagnose *rules = NULL;
    struct act_error err;

    *out = (struct retry_class){0};
    if (diagnose_open_text(node->spec.own_rules, &rules, &err) < 0 && diagnose_open_text(NULL, &rules, &err) < 0) {
        node_say("%s", act_error_text(&err));
        return;
    }
    if (facts->class_of_elsewhere) {
        retry_take_rule(facts, diagnose_find(rules, facts->class_of_elsewhere), facts->reason, out);
    } else {
        ACT_AUTO(diagnose_verdict)
        v = {.rules = rules,
             .exit_status = facts->exit_status,
             .signal = facts->signal,
             .quality = DIAGNOSE_NOTHING,
             .rank = -1};
        retry_ask_logs(node, facts, &v);
        retry_take_rule(facts, v.rule, v.line ? v.line : "", out);
    }
    diagnose_free(rules);
}

/* ---- what was before ---- */

static const struct field try_rows[] = {
    FIELD_INT(struct retry_try, attempt, "attempt"),   FIELD_CHARS(struct retry_try, class, "class"),
    FIELD_CHARS(struct retry_try, node, "node"),       FIELD_CHARS(struct retry_try, words, "words"),
    FIELD_INT64(struct retry_try, seconds, "seconds"),
};
static const struct fields try_fields = FIELDS("try", struct retry_try, try_rows, NULL);

static const struct field history_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_ARRAY(struct retry_history, v, n, struct retry_try, &try_fields, "tries"),
};
static const struct fields history_fields = FIELDS("the history of tries", struct retry_history, history_rows, NULL);

void retry_history_read(const struct node *node, struct retry_history *out)
{
    enum { FILE_MAX = 256 * 1024 };
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_RETRY);
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error err;

    fields_init(&history_fields, out);
    if (codec_json_read(path, FILE_MAX, &json, NULL) == 0 && fields_from_json(&history_fields, json, out, &err) < 0)
        node_say("%s", act_error_text(&err));
}

static int history_write(const struct node *node, const struct retry_history *history, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_RETRY);
    CODEC_AUTOJSON json_t *json = fields_to_json(&history_fields, history);

    return codec_json_write(path, json, 0600, err);
}

static bool ends_with_attempt(const struct retry_history *history, int attempt)
{
    return history->n > 0 && history->v[history->n - 1].attempt == attempt;
}

int retry_history_add(const struct node *node, struct retry_history *history, const struct retry_try *try,
                      struct act_error *err)
{
    if (ends_with_attempt(history, try->attempt))
        history->n--;
    if (history->n < RUN_RETRY_MOST)
        history->v[history->n++] = *try;
    return history_write(node, history, err);
}

void retry_forget(const struct node *node, int attempt)
{
    struct retry_history history;
    struct act_error err;

    retry_history_read(node, &history);
    if (!ends_with_attempt(&history, attempt))
        return;
    history.n--;
    if (history_write(node, &history, &err) < 0)
        node_say("%s", act_error_text(&err));
}

int retry_attempts(const struct node *node, int attempt)
{
    struct retry_history history;

    if (node->spec.retry_times == 0)
        return 0;
    retry_history_read(node, &history);
    return attempt + node->spec.retry_times - history.n;
}

bool retry_follows(const struct node *node, int attempt, int *out_tries)
{
    struct retry_history history;

    retry_history_read(node, &history);
    *out_tries = history.n;
    return ends_with_attempt(&history, attempt);
}

/* ---- the decision ---- */

void retry_same_words(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        bool digit = isxdigit((unsigned char)*from) && (isdigit((unsigned char)*from) || (to > text && to[-1] == '0'));
        char c = digit ? '0' : *from;
        if (!(digit && to > text && to[-1] == '0'))
            *to++ = c;
    }
    *to = '\0';
}

static bool is_futile(const struct retry_history *history, const struct retry_try *failed)
{
    int same = failed->seconds < AT_ONCE_S;

    for (int i = history->n; same && i-- > 0 && history->v[i].seconds < AT_ONCE_S &&
                             strcmp(history->v[i].class, failed->class) == 0 &&
                             strcmp(history->v[i].words, failed->words) == 0;)
        same++;
    return same >= SAME_MOST;
}

enum retry_verdict retry_decide(const struct run_spec *spec, bool is_requeued, const struct retry_history *history,
                                const struct retry_try *failed)
{
    bool by_slurm = is_requeued && strcmp(failed->class, CLASS_NODE_FAILURE) == 0;
    int most = by_slurm ? RUN_RETRY_MOST : spec->retry_times;

    if (most == 0)
        return RETRY_NOT_ASKED;
    if (!by_slurm && !act_strv_has(&spec->retry_on, failed->class))
        return RETRY_OTHER;
    if (history->n >= most)
        return RETRY_USED_UP;
    return is_futile(history, failed) ? RETRY_FUTILE : RETRY_AGAIN;
}

int64_t retry_pause_s(int n_tries)
{
    enum { FIRST_S = 10, MOST_S = 300, GROWS = 3 };
    const char *text = getenv("ACT_RETRY_PAUSE");
    int64_t pause;

    if (!text || !act_int_from_text(text, &pause) || pause < 0 || pause > MOST_S)
        pause = FIRST_S;
    for (int i = 1; i < n_tries && pause < MOST_S; i++)
        pause *= GROWS;
    return pause < MOST_S ? pause : MOST_S;
}

/* ---- in words ---- */

static void retry_say(const struct retry_facts *facts, const struct retry_class *class, enum retry_verdict verdict,
                      struct run_status *status)
{
    static const char *const whys[] = {
        [RETRY_OTHER] = "not tried again: retry.on does not list this failure",
        [RETRY_USED_UP] = "not tried again: all attempts are used up",
        [RETRY_FUTILE] = "not tried again: it failed at once three times in a row, with the same words"};
    ACT_AUTOFREE char *where = *facts->node ? act_sprintf(" on %s", facts->node) : act_strdup("");
    ACT_AUTOFREE char *what =
        *class->id ? act_sprintf("%s (%s)", class->title, class->id) : act_strdup("no rule explains this failure");

    if (verdict == RETRY_AGAIN)
        snprintf(status->retry, sizeof(status->retry), "attempt %d failed%s: %.120s", facts->attempt, where, what);
    else if (whys[verdict])
        snprintf(status->retry, sizeof(status->retry), "%.120s; %s", what, whys[verdict]);
}

static void note_bad_node(const char *node, const struct retry_class *class, struct run_status *status)
{
    struct run_bad_node bad = {.unix_s = act_now_unix_s()};

    if (!class->blames_node || !*node || strlen(node) >= sizeof(bad.node))
        return;
    act_copy_line(bad.node, sizeof(bad.node), node);
    act_copy_line(bad.class, sizeof(bad.class), class->id);
    run_status_add_bad(status, &bad);
}

/* Notes the class for "a why", which then explains the failure as it was judged here. */
static void note_class(const struct node *node, const struct retry_class *class)
{
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_FAILURE);
    ACT_AUTO(run_failure) failure = {0};
    struct act_error err;

    if (!*class->id || run_failure_read(path, &failure, &err) < 0)
        return;
    act_str_replace(&failure.class, class->id);
    act_str_replace(&failure.class_line, class->line);
    if (run_failure_write(&failure, path, &err) < 0)
        node_say("%s", act_error_text(&err));
}

/* Has the reason end with the line that explains why a rank failed, so that a table of runs says more than its exit
 * status. What the agent says of a failure of another kind explains that already. */
static void retry_add_line(const struct retry_facts *facts, const struct retry_class *class, struct run_status *status)
{
    /* The agent's own lines in the log mostly repeat the reason. */
    const char *line = class->line + (act_starts_with(class->line, RUN_LOG_AGENT) ? strlen(RUN_LOG_AGENT) : 0);

    line += strspn(line, " "); /* as in a traceback */
    if (facts->rank < 0 || !*line || strstr(status->reason, line))
        return;
    ACT_AUTOFREE char *text = act_sprintf("%s: %s%s", status->reason, line, class->line_is_cut ? "..." : "");
    act_copy_line(status->reason, sizeof(status->reason), text);
}

int retry_consider(const struct node *node, const struct retry_facts *facts, struct run_status *status)
{
    struct retry_try failed = {.attempt = facts->attempt, .seconds = facts->seconds};
    struct retry_history history;
    struct retry_class class;
    struct act_error err;

    retry_history_read(node, &history);
    retry_classify(node, facts, &class);
    const char *culprit = *class.peer ? class.peer : facts->node;
    note_bad_node(culprit, &class, status);
    act_copy_line(failed.class, sizeof(failed.class), class.id);
    act_copy_line(failed.node, sizeof(failed.node), culprit);
    act_copy_line(failed.words, sizeof(failed.words), *class.line ? class.line : facts->reason);
    retry_same_words(failed.words);
    enum retry_verdict verdict = retry_decide(&node->spec, facts->is_requeued, &history, &failed);
    retry_add_line(facts, &class, status);
    if (verdict == RETRY_NOT_ASKED && !facts->class_of_elsewhere)
        return 0;
    note_class(node, &class);
    retry_say(facts, &class, verdict, status);
    if (verdict != RETRY_AGAIN)
        return 0;
    if (retry_history_add(node, &history, &failed, &err) < 0) {
        snprintf(status->retry, sizeof(status->retry), "not tried again: %.250s", act_error_text(&err));
        return 0;
    }
    return facts->attempt + 1;
}
