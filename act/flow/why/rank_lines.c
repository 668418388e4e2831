/* rank_lines.c - what the ranks said last, and how long ago: of ranks that wait for each other, one is somewhere else.
 *
 * Logs are told apart by their ages, which come with the list, so that of many only the ends of some are read: those of
 * the ranks that are silent longest, and of a few that spoke last.
 */
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "flow/why/ranks.h"

enum {
    ASKED = 32,      /* ranks whose logs are read */
    LATEST = 8,      /* of these, the ones that spoke last */
    TAIL = 64 << 10, /* holds what the agent adds to the log of a rank that is silent for days */
    TAIL_LINES = 1024,
    RANKS_MAX = 1 << 16,
};

struct end {
    struct flow_rank_line said;
    const struct store_entry *log; /* NULL: none */
    int choice;                    /* as run_log_rank() */
    size_t same;                   /* how many ranks are at the same place, by what they say */
};

/* The log of each rank, in one pass. New; *n is how many ranks there are. */
static struct end *find_logs(const struct flow_run *run, const struct store_page *logs, const char *prefix, size_t *n)
{
    int64_t world = (int64_t)run->spec.nodes * run->spec.procs_per_node;
    int choice;

    *n = world < 1 ? 1 : world > RANKS_MAX ? RANKS_MAX : (size_t)world;
    struct end *ends = act_calloc(*n, sizeof(*ends));
    for (size_t i = 0; i < *n; i++)
        ends[i].said = (struct flow_rank_line){.rank = (int)i, .silent_s = -1};
    for (size_t i = 0; i < logs->n; i++) {
        const char *name = logs->v[i].key;
        int rank = act_starts_with(name, prefix) ? run_log_rank(name + strlen(prefix), &choice) : -1;
        struct end *end = rank >= 0 && (size_t)rank < *n ? &ends[rank] : NULL;
        if (end && (!end->log || choice < end->choice)) {
            end->log = &logs->v[i];
            end->choice = choice;
        }
    }
    return ends;
}

/* Returns when a log last changed; one of which that is not known counts as new. */
static int64_t rank_lines_changed_s(const struct store_entry *log)
{
    return log->last_modified_s > 0 ? log->last_modified_s : INT64_MAX;
}

/* Rank 0, which people look at first, then those without a log, then those that are silent longest. */
static int to_be_asked_first(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if ((x->said.rank == 0) != (y->said.rank == 0))
        return x->said.rank == 0 ? -1 : 1;
    if (!x->log != !y->log)
        return x->log ? 1 : -1;
    if (x->log && rank_lines_changed_s(x->log) != rank_lines_changed_s(y->log))
        return rank_lines_changed_s(x->log) < rank_lines_changed_s(y->log) ? -1 : 1;
    return x->said.rank - y->said.rank;
}

/* Leaves the ones that are asked; returns how many. */
static size_t choose_asked(struct end *ends, size_t n)
{
    if (n <= ASKED)
        return n;
    memmove(ends + ASKED - LATEST, ends + n - LATEST, LATEST * sizeof(*ends));
    return ASKED;
}

/* Tells whether the agent wrote a line into the rank's log, and when. */
static bool agent_wrote(const char *line, int64_t *out_unix_s)
{
    const char *at = strrchr(line, ' ');
    int64_t ns;

    if (!act_starts_with(line, RUN_LOG_AGENT))
        return false;
    *out_unix_s = at && act_time_from_iso_ns(at + 1, &ns) ? ns / 1000000000 : 0;
    return true;
}

/* Takes the last line of the rank. Lines that the agent added since show that the rank is silent for longer than its
 * log. */
static void rank_lines_take_end(struct end *end, const struct act_strv *lines, int64_t until_unix_s)
{
    size_t i = lines->n;
    int64_t agents = 0, unix_s;

    for (; i > 0 && agent_wrote(lines->v[i - 1], &unix_s); i--) {
        agents = unix_s > 0 ? unix_s : agents;
        end->said.longer = true;
    }
    if (agents > 0 && until_unix_s - agents > end->said.silent_s)
        end->said.silent_s = until_unix_s - agents;
    end->said.line = act_strdup(i > 0 ? lines->v[i - 1] : "");
}

static void rank_lines_note_end(struct end *end, const struct act_buf *text, int64_t until_unix_s)
{
    ACT_AUTO(act_strv) lines = {0};

    if (!end->log)
        return;
    int64_t changed = end->log->last_modified_s;
    if (changed > 0)
        end->said.silent_s = changed < until_unix_s ? until_unix_s - changed : 0;
    if (text->len > 0)
        flow_last_lines(text, TAIL_LINES, &lines);
    rank_lines_take_end(end, &lines, until_unix_s);
}

/* Reads the ends of the logs of at most ASKED ranks. */
static int ask_log_ends(const struct flow_source *from, struct end *ends, size_t n, int64_t until_unix_s,
                        struct act_error *err)
{
    const struct store_entry *logs[ASKED] = {0};
    struct act_buf texts[ASKED] = {0};

    for (size_t i = 0; i < n; i++)
        logs[i] = ends[i].log;
    int rc = flow_log_tails(from, logs, n, TAIL, texts, err);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0)
            rank_lines_note_end(&ends[i], &texts[i], until_unix_s);
        act_buf_release(&texts[i]);
    }
    return rc;
}

/* Tells whether two lines are of one place in the program: they differ in numbers at most. */
static bool is_same_place(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    for (;;) {
        bool digits = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
        if (!digits && *a != *b)
            return false;
        if (!*a)
            return true;
        a += digits ? strspn(a, "0123456789") : 1;
        b += digits ? strspn(b, "0123456789") : 1;
    }
}

static void count_same(struct end *ends, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            ends[i].same += is_same_place(ends[i].said.line, ends[k].said.line);
}

static int to_be_shown_first(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->same != y->same)
        return x->same < y->same ? -1 : 1;
    if (x->said.silent_s != y->said.silent_s)
        return x->said.silent_s < y->said.silent_s ? 1 : -1;
    return x->said.rank - y->said.rank;
}

int flow_find_rank_lines(const struct flow_source *from, const struct flow_run *run, const struct store_page *logs,
                         const char *prefix, int64_t ended_unix_s, struct flow_rank_lines *out, struct act_error *err)
{
    int64_t until_unix_s = ended_unix_s > 0 ? ended_unix_s : act_now_unix_s();

    flow_rank_lines_release(out);
    ACT_AUTOFREE struct end *ends = find_logs(run, logs, prefix, &out->ranks);
    qsort(ends, out->ranks, sizeof(*ends), to_be_asked_first);
    size_t n = choose_asked(ends, out->ranks);
    int rc = ask_log_ends(from, ends, n, until_unix_s, err);
    count_same(ends, n);
    qsort(ends, n, sizeof(*ends), to_be_shown_first);
    out->v = act_calloc(n, sizeof(*out->v));
    for (; out->n < n; out->n++)
        out->v[out->n] = ends[out->n].said;
    return rc;
}

void flow_rank_lines_release(struct flow_rank_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        free(lines->v[i].line);
    free(lines->v);
    *lines = (struct flow_rank_lines){0};
}
