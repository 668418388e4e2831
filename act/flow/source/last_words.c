/* last_words.c - which rank failed, in the words that act/node/service.c prints. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "flow/source/source.h"

enum { TAIL = 8 << 10, LINES = 20, RANKS_MAX = 64 };

/* "act: rank 3 on node n1 exited with status 1 at 2026-01-01T00:00:00.000000000Z", or "... was killed by signal 9
 * (Killed) at ..." */
static bool read_line(const char *line, int rank, struct flow_last_words *out)
{
    const char *at = strrchr(line, ' ');
    int said, n = 0;

    *out = (struct flow_last_words){.rank = rank};
    if (sscanf(line, "act: rank %d on node %64s %n", &said, out->node, &n) != 2 || n == 0 || said != rank || !at ||
        !act_time_from_iso_ns(at + 1, &out->unix_ns))
        return false;
    if (sscanf(line + n, "exited with status %d at ", &out->exit_status) == 1)
        return out->exit_status > 0 && out->exit_status < 256;
    if (sscanf(line + n, "was killed by signal %d ", &out->signal) != 1)
        return false;
    out->exit_status = 128 + out->signal;
    return out->signal > 0 && out->signal < 128;
}

/* Takes it when it is of the rank that failed before all others that were looked at. What the agent said just before is
 * the reason. */
static void take_last_words(int rank, const struct act_strv *lines, struct flow_last_words *first)
{
    static const char agent[] = "act: ";
    struct flow_last_words words;
    size_t i = lines->n;

    while (i > 0 && !read_line(lines->v[i - 1], rank, &words))
        i--;
    if (i == 0 || (first->rank >= 0 && words.unix_ns >= first->unix_ns))
        return;
    if (i > 1 && act_starts_with(lines->v[i - 2], agent) && !act_starts_with(lines->v[i - 2], RUN_LOG_METRICS))
        words.reason = act_strdup(lines->v[i - 2] + strlen(agent));
    free(first->reason);
    *first = words;
}

/* Clocks of nodes differ, but ranks that are told to end because another one has failed say nothing. */
int flow_find_last_words(const struct flow_source *source, const struct flow_run *run, const struct store_page *logs,
                         const char *prefix, struct flow_last_words *out, struct act_error *err)
{
    const struct store_entry *of[RANKS_MAX] = {0};
    struct act_buf texts[RANKS_MAX] = {0};
    int world = run->spec.nodes * run->spec.procs_per_node, n = 0;

    *out = (struct flow_last_words){.rank = -1};
    for (; n < world && n < RANKS_MAX; n++)
        of[n] = flow_find_rank_log(logs, prefix, n);
    int rc = flow_log_tails(source, of, (size_t)n, TAIL, texts, err);
    for (int rank = 0; rank < n; rank++) {
        struct act_strv lines = {0};
        if (texts[rank].len > 0)
            flow_last_lines(&texts[rank], LINES, &lines);
        take_last_words(rank, &lines, out);
        act_strv_release(&lines);
        act_buf_release(&texts[rank]);
    }
    return rc;
}

/* Puts what the rank says before what the service says. */
static void add_reason(const struct flow_last_words *words, struct run_status *status)
{
    ACT_AUTOFREE char *service = act_strdup(status->reason);
    const char *signal = words->signal ? sigdescr_np(words->signal) : NULL;
    ACT_AUTOFREE char *ending = words->signal
                                    ? act_sprintf("rank %d was killed by signal %d (%s)", words->rank, words->signal,
                                                  signal ? signal : "unknown")
                                    : act_sprintf("rank %d exited with status %d", words->rank, words->exit_status);

    snprintf(status->reason, sizeof(status->reason), "%s%s%s", words->reason ? words->reason : ending,
             *service ? "; " : "", service);
}

void flow_add_last_words(struct flow *flow, const struct flow_run *run, struct run_status *status)
{
    struct flow_source source;
    ACT_AUTO(store_page) logs = {0};
    struct flow_last_words words = {.rank = -1};
    struct act_error err;
    int rc = flow_source_open(flow, run, &source, &err);

    source.with_ends = true;
    if (rc == 0 && !platform_row(source.platform)->about.keeps_record)
        rc = flow_source_list(&source, &logs, &err);
    if (rc == 0)
        rc = flow_find_last_words(&source, run, &logs, "", &words, &err);
    if (rc < 0)
        act_note("cannot find out which rank failed: %s", act_error_text(&err));
    status->ranks_asked = rc == 0;
    if (rc == 0 && words.rank >= 0) {
        status->failed_rank = words.rank;
        status->exit_status = words.exit_status;
        add_reason(&words, status);
    }
    free(words.reason);
    flow_source_close(&source);
}
