/* scan.c - finds the rules that match the lines of a text.
 *
 * One pass finds the words of all patterns; only a line that holds one is cleaned and looked at.
 */
#include <ctype.h>
#include <string.h>

#include "diagnose/diagnose_internal.h"
#include "run/run.h"

enum { CONTEXT_LINES = 100 };

/* The state of one rule so far. Lines are counted from 1; 0: never. */
struct progress {
    uint64_t after, not_after; /* the last line that held that text */
    uint64_t times;
    uint64_t line_no;
    char *line;
};

struct diagnose_scan {
    const struct diagnose *d;
    enum diagnose_where where;
    struct progress *of; /* of each rule */
    uint64_t *found_at;  /* of each pattern: the last line where its word was found */
    size_t *found;       /* the patterns found in this line */
    size_t n_found;
    size_t *matched; /* the rules that match this line */
    size_t n_matched;
    uint64_t line_no;
    struct traceback traceback;
    /* Exceptions that led to one another: the first line of the first, the lines of all that another one followed, and
     * whether another one is to come. */
    uint64_t chain_from, replaced_from, replaced_to;
    bool is_linked;
    char *part; /* DIAGNOSE_LINE bytes: the beginning of a line whose end has not come yet */
    size_t part_len;
};

/* ---- names */

unsigned diagnose_where_of(const char *log_name, int failed_rank)
{
    static const struct {
        const char *prefix;
        unsigned where;
    } rows[] = {
        {"system_logs/prepare_", DIAGNOSE_PREPARE}, {"system_logs/mpirun", DIAGNOSE_MPIRUN},
        {"system_logs/srun", DIAGNOSE_MPIRUN},      {"system_logs/slurm", DIAGNOSE_SLURM},
        {"system_logs/supervisor", DIAGNOSE_AGENT}, {"system_logs/node_", DIAGNOSE_AGENT},
        {"system_logs/folders", DIAGNOSE_PREPARE},  {"user_logs/mpi_log", DIAGNOSE_MPIRUN},
        {"azureml-logs/55_", DIAGNOSE_PREPARE},     {"azureml-logs/65_", DIAGNOSE_PREPARE},
    };
    int rank = run_log_rank(log_name, NULL);

    if (rank >= 0)
        return rank == failed_rank ? DIAGNOSE_FAILED_RANK : DIAGNOSE_OTHER_RANK;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (act_starts_with(log_name, rows[i].prefix))
            return rows[i].where;
    return 0;
}

/* ---- cleaning */

/* Returns the length of an escape sequence at text: "ESC [ ... letter", or ESC and the character behind it. */
static size_t escape_length(const char *text, size_t len)
{
    size_t i = 2;

    if (len < 2 || text[1] != '[')
        return len < 2 ? len : 2;
    while (i < len && !(text[i] >= 0x40 && text[i] <= 0x7e))
        i++;
    return i < len ? i + 1 : len;
}

static size_t digits(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && isdigit((unsigned char)text[n]))
        n++;
    return n;
}

/* Returns the length of "[1,0]<stderr>:", as mpirun --tag-output writes. */
static size_t mpirun_prefix(const char *text, size_t len)
{
    size_t i = 1;

    if (len < 4 || text[0] != '[')
        return 0;
    i += digits(text + i, len - i);
    if (i >= len || text[i++] != ',')
        return 0;
    i += digits(text + i, len - i);
    if (i + 1 >= len || text[i] != ']' || text[i + 1] != '<')
        return 0;
    const char *end = memmem(text + i, len - i, ">:", 2);
    return end ? (size_t)(end - text) + 2 : 0;
}

/* Returns the length of "[rank3]: ", as PyTorch writes. */
static size_t torch_prefix(const char *text, size_t len)
{
    static const char word[] = "[rank";
    size_t i = sizeof(word) - 1;

    if (len < i || memcmp(text, word, i) != 0)
        return 0;
    i += digits(text + i, len - i);
    if (i + 1 >= len || text[i] != ']' || text[i + 1] != ':')
        return 0;
    i += 2;
    return i < len && text[i] == ' ' ? i + 1 : i; /* what is indented stays so */
}

size_t diagnose_clean(char *line, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        if (line[i] == '\033') {
            i += escape_length(line + i, len - i);
            continue;
        }
        unsigned char c = (unsigned char)line[i++];
        line[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    size_t from = mpirun_prefix(line, n);
    from += torch_prefix(line + from, n - from);
    while (n > from && line[n - 1] == ' ')
        n--;
    memmove(line, line + from, n - from);
    return n - from;
}

/* ---- lines */

static void note_word(void *arg, size_t pattern, const char *end)
{
    struct diagnose_scan *s = arg;
    const struct pattern *p = &s->d->patterns[pattern];
    size_t len = strnlen(p->text, WORD_MAX);

    if (s->found_at[pattern] == s->line_no || (!p->ignore_case && memcmp(end - len, p->text, len) != 0))
        return;
    s->found_at[pattern] = s->line_no;
    s->found[s->n_found++] = pattern;
}

static bool scan_is_near(uint64_t context, uint64_t line_no)
{
    return context > 0 && line_no - context <= CONTEXT_LINES;
}

static bool is_excluded(const struct diagnose_scan *s, size_t rule, const char *line, size_t len)
{
    for (size_t i = 0; i < s->d->n_patterns; i++) {
        const struct pattern *p = &s->d->patterns[i];
        if (p->rule == rule && p->role == PATTERN_UNLESS && pattern_matches(p, line, len))
            return true;
    }
    return false;
}

static bool has_matched(const struct diagnose_scan *s, size_t rule)
{
    for (size_t i = 0; i < s->n_matched; i++)
        if (s->matched[i] == rule)
            return true;
    return false;
}

/* Takes a pattern whose word the line holds. */
static void try_pattern(struct diagnose_scan *s, const struct pattern *p, const char *line, size_t len)
{
    const struct rule *rule = &s->d->rules[p->rule];
    struct progress *of = &s->of[p->rule];

    if (p->role != PATTERN_MATCH || !(rule->shown.where & s->where) || has_matched(s, p->rule))
        return;
    if ((rule->has_after && !scan_is_near(of->after, s->line_no)) ||
        (rule->has_not_after && scan_is_near(of->not_after, s->line_no)))
        return;
    if (!pattern_matches(p, line, len))
        return;
    if (is_excluded(s, p->rule, line, len))
        of->times = 0;
    else
        s->matched[s->n_matched++] = p->rule;
}

/* Takes a line that is the exception with which a traceback ends. */
static void take_exception(struct diagnose_scan *s)
{
    for (size_t i = 0; i < s->d->n_rules; i++)
        if (s->d->rules[i].traceback && (s->d->rules[i].shown.where & s->where) && !has_matched(s, i))
            s->matched[s->n_matched++] = i;
}

static void begin_traceback(struct diagnose_scan *s)
{
    if (!s->is_linked)
        s->chain_from = s->line_no;
    s->is_linked = false;
    traceback_begin(&s->traceback);
}

/* Takes the line between two exceptions of a chain. */
static void take_link(struct diagnose_scan *s)
{
    s->replaced_from = s->chain_from;
    s->replaced_to = s->line_no;
    s->is_linked = true;
}

static void note_context(struct diagnose_scan *s, const struct pattern *p, const char *line, size_t len)
{
    struct progress *of = &s->of[p->rule];

    if (p->role == PATTERN_TRACEBACK && pattern_matches(p, line, len))
        begin_traceback(s);
    if ((p->role != PATTERN_AFTER && p->role != PATTERN_NOT_AFTER) || !pattern_matches(p, line, len))
        return;
    if (p->role == PATTERN_AFTER)
        of->after = s->line_no;
    else
        of->not_after = s->line_no;
}

static void note_match(struct diagnose_scan *s, size_t rule, const char *line, size_t len)
{
    struct progress *of = &s->of[rule];

    if (++of->times < s->d->rules[rule].times)
        return;
    free(of->line);
    of->line = act_strndup(line, len);
    of->line_no = s->line_no;
}

static void note_matches(struct diagnose_scan *s, const char *line, size_t len)
{
    bool explained = false;

    for (size_t i = 0; i < s->n_matched; i++)
        explained |= s->d->rules[s->matched[i]].shown.kind != DIAGNOSE_LAST_RESORT;
    for (size_t i = 0; i < s->n_matched; i++)
        if (!explained || s->d->rules[s->matched[i]].shown.kind != DIAGNOSE_LAST_RESORT)
            note_match(s, s->matched[i], line, len);
}

static void scan_look_at(struct diagnose_scan *s, const char *text, size_t len)
{
    char line[DIAGNOSE_LINE + 1];

    memcpy(line, text, len);
    len = diagnose_clean(line, len);
    line[len] = '\0'; /* what checks the memory of programs looks for it, though regexec() is told the length */
    s->n_matched = 0;
    if (traceback_is_link(&s->traceback, line, len))
        take_link(s);
    size_t exception = traceback_take(&s->traceback, line, len), from = exception < len ? exception : 0;
    for (size_t i = 0; i < s->n_found; i++)
        try_pattern(s, &s->d->patterns[s->found[i]], line + from, len - from);
    if (exception < len)
        take_exception(s);
    note_matches(s, line + from, len - from);
    for (size_t i = 0; i < s->n_found; i++)
        note_context(s, &s->d->patterns[s->found[i]], line, len);
}

/* Takes a line, or a piece of at most DIAGNOSE_LINE bytes of a longer one. */
static void scan_take_line(struct diagnose_scan *s, const char *text, size_t len)
{
    s->line_no++;
    s->n_found = 0;
    words_find(s->d->words, text, len, note_word, s);
    if (s->n_found > 0 || s->traceback.phase != TRACEBACK_NONE)
        scan_look_at(s, text, len);
}

static void scan_take_part(struct diagnose_scan *s, const char *text, size_t len)
{
    while (len > 0) {
        size_t room = DIAGNOSE_LINE - s->part_len, n = len < room ? len : room;
        memcpy(s->part + s->part_len, text, n);
        s->part_len += n;
        text += n;
        len -= n;
        if (s->part_len == DIAGNOSE_LINE) {
            scan_take_line(s, s->part, s->part_len);
            s->part_len = 0;
        }
    }
}

static void scan_end_part(struct diagnose_scan *s)
{
    if (s->part_len > 0)
        scan_take_line(s, s->part, s->part_len);
    s->part_len = 0;
}

/* Ends a line at every carriage return too: progress bars write them. */
static void take_until_end(struct diagnose_scan *s, const char *data, size_t len)
{
    for (const char *end; (end = memchr(data, '\r', len));) {
        size_t n = (size_t)(end - data);
        scan_take_part(s, data, n);
        scan_end_part(s);
        data = end + 1;
        len -= n + 1;
    }
    scan_take_part(s, data, len);
}

void diagnose_scan_feed(struct diagnose_scan *s, const char *data, size_t len)
{
    for (const char *end; (end = memchr(data, '\n', len));) {
        size_t n = (size_t)(end - data);
        take_until_end(s, data, n);
        scan_end_part(s);
        data = end + 1;
        len -= n + 1;
    }
    take_until_end(s, data, len);
}

/* ---- the whole */

struct diagnose_scan *diagnose_scan_new(const struct diagnose *d, enum diagnose_where where)
{
    struct diagnose_scan *s = act_calloc(1, sizeof(*s));

    s->d = d;
    s->where = where;
    s->of = act_calloc(d->n_rules + 1, sizeof(*s->of));
    s->found_at = act_calloc(d->n_patterns + 1, sizeof(*s->found_at));
    s->found = act_calloc(d->n_patterns + 1, sizeof(*s->found));
    s->matched = act_calloc(d->n_rules + 1, sizeof(*s->matched));
    s->part = act_alloc(DIAGNOSE_LINE);
    return s;
}

void diagnose_scan_end(struct diagnose_scan *s, struct diagnose_hits *out)
{
    scan_end_part(s);
    *out = (struct diagnose_hits){.lines = s->line_no};
    out->v = act_calloc(s->d->n_rules + 1, sizeof(*out->v));
    for (size_t i = 0; i < s->d->n_rules; i++) {
        const struct progress *of = &s->of[i];
        bool is_replaced = of->line_no >= s->replaced_from && of->line_no < s->replaced_to;
        if (of->line)
            out->v[out->n++] = (struct diagnose_hit){&s->d->rules[i].shown, of->line, of->line_no, is_replaced};
    }
    free(s->of);
    free(s->found_at);
    free(s->found);
    free(s->matched);
    free(s->part);
    free(s);
}

void diagnose_hits_release(struct diagnose_hits *hits)
{
    for (size_t i = 0; i < hits->n; i++)
        free(hits->v[i].line);
    free(hits->v);
    *hits = (struct diagnose_hits){0};
}
