/* grep.c - lines of the logs of runs that match a regular expression, with the rank that said them and when.
 *
 * Nearly all of a log is passed over. Lines are looked at where they are read, only those with a text that every match
 * has (needle.h) are given to the expression, and the time of a line is looked for when it is found. A line that begins
 * in one chunk and ends in another is put together first.
 */
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "base/log.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/logs/needle.h"
#include "flow/source/source.h"
#include "flow/trust.h"

enum {
    CHUNK = 1 << 20,
    LINE_MAX_BYTES = 64 << 10, /* a longer line comes in pieces */
    TIME_WITHIN = 100,         /* bytes of a line: further behind it is not the time of the line */
};

struct flow_grep {
    regex_t regex;
    struct act_strv needles; /* every match has one of them in it; none: nothing is known */
    struct needle_search search;
};

int flow_grep_open(const char *pattern, bool ignore_case, struct flow_grep **out, struct act_error *err)
{
    struct flow_grep *grep = act_calloc(1, sizeof(*grep));
    char why[200];
    int rc = regcomp(&grep->regex, pattern, REG_EXTENDED | REG_NEWLINE | (ignore_case ? REG_ICASE : 0));

    *out = rc == 0 ? grep : NULL;
    if (rc == 0) {
        if (!ignore_case)
            flow_needles(pattern, &grep->needles);
        flow_needles_prepare(&grep->needles, &grep->search);
        return 0;
    }
    regerror(rc, &grep->regex, why, sizeof(why));
    free(grep);
    return act_error_set(err, ACT_USAGE, "'%s' is not a regular expression (POSIX extended): %s", pattern, why);
}

void flow_grep_close(struct flow_grep *grep)
{
    if (!grep)
        return;
    regfree(&grep->regex);
    act_strv_release(&grep->needles);
    free(grep);
}

/* ---- one log */

struct reading {
    struct grep_logs *all;
    uint64_t size; /* as it was listed; 0: nothing, or not known */
    const struct flow_grep *grep;
    const struct flow_grep_sink *sink;
    struct flow_match match;
    struct act_buf line;
    bool continued; /* the line is a further piece of the one before */
    size_t *n_found;
};

/* "2026-11-24T22:25:00", with any one character in the middle. */
static bool grep_is_time(const char *s)
{
    static const char form[] = "0000-00-00?00:00:00";

    for (size_t i = 0; form[i]; i++) {
        bool fits = form[i] == '0'   ? isdigit((unsigned char)s[i])
                    : form[i] == '?' ? s[i] == 'T' || s[i] == ' ' || s[i] == '_'
                                     : s[i] == form[i];
        if (!fits)
            return false;
    }
    return true;
}

/* Notes the last time in these lines that is the first one in its line, if there is one: a line without a time is as
 * old as the last one with one. A time is found by the colon in its middle. */
static void note_time(struct reading *r, const char *text, size_t len)
{
    enum { COLON = sizeof("0000-00-00?00") - 1, FORM = sizeof(r->match.time) - 1 };

    for (const char *p, *end = text + len; (p = memrchr(text, ':', (size_t)(end - text))); end = p) {
        const char *time = p - COLON;
        if (p - text < COLON || text + len - time < FORM || !grep_is_time(time))
            continue;
        const char *before = memrchr(text, '\n', (size_t)(time - text)), *line = before ? before + 1 : text;
        if (time - line >= TIME_WITHIN)
            continue;
        for (; line < time && !grep_is_time(line);)
            line++;
        memcpy(r->match.time, line, FORM);
        r->match.time[FORM] = '\0';
        return;
    }
}

/* Looks closely at a line, or a piece of one. */
static int grep_end_line(struct reading *r, const char *text, size_t len, struct act_error *err)
{
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)len};

    r->match.line += !r->continued;
    note_time(r, text, len);
    if (regexec(&r->grep->regex, text, 1, &range, REG_STARTEND) != 0)
        return 0;
    r->match.text = text;
    r->match.len = len;
    ++*r->n_found;
    return r->sink->found(r->sink->arg, &r->match, err);
}

/* Takes a part of the log that begins or ends within a line. */
static int grep_put_together(struct reading *r, const char *text, size_t len, struct act_error *err)
{
    int rc = 0;

    while (len > 0 && rc == 0) {
        const char *end = memchr(text, '\n', len);
        size_t room = LINE_MAX_BYTES - r->line.len, n = end ? (size_t)(end - text) : len;
        bool whole = end && n <= room;
        n = n < room ? n : room;
        act_buf_add(&r->line, text, n);
        if (whole || r->line.len == LINE_MAX_BYTES) {
            rc = grep_end_line(r, r->line.data ? r->line.data : "", r->line.len, err);
            r->line.len = 0;
            r->continued = !whole;
        }
        text += n + whole;
        len -= n + whole;
    }
    return rc;
}

/* Passes over whole lines that do not match. */
static void grep_pass_over(struct reading *r, const char *text, size_t len)
{
    const char *end = text + len;

    note_time(r, text, len);
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        r->match.line++;
}

/* Returns the next place where the line may match; end: there is none. */
static const char *grep_next_hit(const struct flow_grep *grep, const char *text, const char *end)
{
    return grep->search.n > 0 ? flow_needles_find(&grep->search, text, end) : text;
}

/* Takes whole lines. */
static int grep_take_lines(struct reading *r, const char *text, size_t len, struct act_error *err)
{
    const char *end = text + len;
    int rc = 0;

    while (text < end && rc == 0) {
        const char *hit = grep_next_hit(r->grep, text, end);
        const char *before = memrchr(text, '\n', (size_t)(hit - text)), *line = before ? before + 1 : text;
        grep_pass_over(r, text, (size_t)(line - text));
        text = hit < end ? (const char *)memchr(hit, '\n', (size_t)(end - hit)) + 1 : end;
        rc = grep_put_together(r, line, (size_t)(text - line), err);
    }
    return rc;
}

static int grep_take_text(struct reading *r, const char *text, size_t len, struct act_error *err)
{
    bool within = r->line.len > 0 || r->continued;
    const char *first = within ? memchr(text, '\n', len) : NULL;
    size_t begun = within ? first ? (size_t)(first + 1 - text) : len : 0;
    const char *last = memrchr(text + begun, '\n', len - begun);
    size_t end = last ? (size_t)(last + 1 - text) : begun;
    int rc = grep_put_together(r, text, begun, err);

    if (rc == 0)
        rc = grep_take_lines(r, text + begun, end - begun, err);
    return rc < 0 ? rc : grep_put_together(r, text + end, len - end, err);
}

/* Finds what is left of the log, a line without an end. */
static int grep_end_log(struct reading *r, struct act_error *err)
{
    int rc = r->line.len > 0 ? grep_end_line(r, r->line.data, r->line.len, err) : 0;

    act_buf_release(&r->line);
    return rc;
}

/* Searches a log whose size may be unknown. */
static int grep_read_log(const struct flow_source *source, struct reading *r, struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    uint64_t at = 0;
    size_t got = 1;
    int rc = 0;

    while (rc == 0 && got > 0) {
        rc = flow_source_read(source, r->match.log, at, chunk, CHUNK, &got, err);
        if (rc == -ACT_NOT_FOUND) /* it was listed, and is gone */
            return 0;
        if (rc == 0)
            rc = grep_take_text(r, chunk, got, err);
        at += got;
    }
    return rc < 0 ? rc : grep_end_log(r, err);
}

/* The rank of a log, whichever attempt it is of. */
static int grep_rank_of(const char *name)
{
    const char *slash =
        act_starts_with(name, RUN_DIR_ATTEMPTS "/") ? strchr(name + sizeof(RUN_DIR_ATTEMPTS), '/') : NULL;

    return run_log_rank(slash ? slash + 1 : name, NULL);
}

/* ---- all logs of a run */

/* All logs, in order. */
struct grep_logs {
    struct flow *flow;
    const struct flow_source *source;
    struct reading *v;
    size_t n;
    size_t now; /* the log whose lines are found: those before it have ended */
};

static int grep_go_to(struct grep_logs *logs, size_t i, struct act_error *err)
{
    int rc = 0;

    for (; logs->now < i && rc == 0; logs->now++)
        rc = grep_end_log(&logs->v[logs->now], err);
    return rc;
}

static int grep_write(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err)
{
    struct reading *r = arg;
    int rc = grep_go_to(r->all, (size_t)(r - r->all->v), err);

    (void)at;
    return rc < 0 ? rc : grep_take_text(r, data, len, err);
}

/* Searches n logs of known sizes as they were listed, of which many are read at once. */
static int grep_read_known(struct grep_logs *logs, size_t first, size_t n, struct act_error *err)
{
    enum { MEMORY = 32 << 20 };
    ACT_AUTOFREE struct transfer_stretch *stretches = act_calloc(n, sizeof(*stretches));

    for (size_t i = 0; i < n; i++)
        stretches[i] = (struct transfer_stretch){.key = logs->v[first + i].match.log,
                                                 .end = logs->v[first + i].size,
                                                 .in_turn = true,
                                                 .write = grep_write,
                                                 .arg = &logs->v[first + i]};
    int rc = transfer_stretches(flow_engine(logs->flow), logs->source->store, stretches, n, MEMORY, NULL, NULL, err);
    return rc < 0 ? rc : grep_go_to(logs, first + n, err);
}

static int grep_read_all(struct grep_logs *logs, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0, n; i < logs->n && rc == 0; i += n > 0 ? n : 1) {
        logs->now = i;
        for (n = 0; i + n < logs->n && logs->v[i + n].size > 0;)
            n++;
        rc = n > 0 ? grep_read_known(logs, i, n, err) : grep_read_log(logs->source, &logs->v[i], err);
    }
    return rc;
}

static int search(struct flow *flow, const struct flow_source *source, const struct flow_run *run,
                  const struct reading *as, struct act_error *err)
{
    ACT_AUTO(store_page) page = {0};
    int rc = flow_source_list(source, &page, err);
    struct grep_logs logs = {.flow = flow, .source = source, .v = act_calloc(page.n + 1, sizeof(*logs.v))};

    for (size_t i = 0; i < page.n; i++) {
        const char *name = page.v[i].key;
        if (*name == '.' || page.v[i].kind != STORE_FILE) /* what is written about the copies */
            continue;
        struct reading *r = &logs.v[logs.n++];
        *r = *as;
        r->all = &logs;
        r->size = page.v[i].size;
        r->match = (struct flow_match){.run = run,
                                       .log = name,
                                       .rank = grep_rank_of(name),
                                       .attempt = flow_log_attempt(name) ?: run->status.attempt,
                                       .changed_unix_s = page.v[i].last_modified_s};
    }
    if (rc == 0)
        rc = grep_read_all(&logs, err);
    for (size_t i = 0; i < logs.n; i++)
        act_buf_release(&logs.v[i].line);
    free(logs.v);
    return rc;
}

/* Searches the logs where open() finds them. */
static int search_in(struct flow *flow, const struct flow_run *run,
                     int (*open)(struct flow *, const struct flow_run *, struct flow_source *, struct act_error *),
                     const struct flow_grep *grep, const struct flow_grep_sink *sink, size_t *n_found,
                     struct act_error *err)
{
    struct flow_source source = {0};
    int rc = open(flow, run, &source, err);

    source.with_ends = true;
    if (rc == 0 && source.store)
        rc = search(flow, &source, run, &(struct reading){.grep = grep, .sink = sink, .n_found = n_found}, err);
    flow_source_close(&source);
    return rc;
}

/* Opens the copies, which were fetched before the cluster or the run there went away. */
static int open_trusted_copies(struct flow *flow, const struct flow_run *run, struct flow_source *out,
                               struct act_error *err)
{
    int rc = flow_trust_logs(run->row.project, err);

    return rc < 0 ? rc : flow_source_open_here(flow, run, out, err);
}

int flow_grep_run(struct flow *flow, const struct flow_run *run, const struct flow_grep *grep,
                  const struct flow_grep_sink *sink, size_t *n_found, struct act_error *err)
{
    struct act_error why;
    size_t before = *n_found;
    int rc = search_in(flow, run, flow_source_open, grep, sink, n_found, err);

    if (rc == 0 || *n_found > before)
        return rc;
    int here = search_in(flow, run, open_trusted_copies, grep, sink, n_found, &why);
    if (here == -ACT_NOT_FOUND || here == -ACT_DENIED)
        return rc == -ACT_NOT_FOUND ? 0 : rc; /* a run that is gone has no logs */
    if (rc != -ACT_NOT_FOUND)
        act_warn("only the copies here are searched for run '%s': %s", run->row.id, act_error_text(err));
    if (here < 0)
        *err = why;
    return here;
}
