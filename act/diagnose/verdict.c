/* verdict.c - chooses the best explanation of a failure among all that the rules find. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/diagnose_internal.h"

enum { NEAR_LINES = 200 /* so many lines are the end of a log */ };

void diagnose_verdict_release(struct diagnose_verdict *v)
{
    free(v->log);
    free(v->line);
    *v = (struct diagnose_verdict){0};
}

static void consider(struct diagnose_verdict *v, enum diagnose_quality quality, const struct diagnose_hit *hit,
                     const char *log, int rank)
{
    if (quality > v->quality || (quality == v->quality && hit->rule->order >= v->rule->order))
        return;
    v->quality = quality;
    v->rule = hit->rule;
    v->rank = rank;
    free(v->log);
    free(v->line);
    v->log = act_strdup(log);
    v->line = act_strdup(hit->line);
}

static void verdict_scan(const struct diagnose_verdict *v, enum diagnose_where where, const char *text, size_t len,
                         struct diagnose_hits *out)
{
    struct diagnose_scan *s = diagnose_scan_new(v->rules, where);

    if (len > 0)
        diagnose_scan_feed(s, text, len);
    diagnose_scan_end(s, out);
}

/* Some rules tell only how a process ended: those of the agent's last resort. */
static bool is_ending(const struct diagnose_rule *rule)
{
    return rule->kind == DIAGNOSE_LAST_RESORT && (rule->where & DIAGNOSE_AGENT);
}

/* A signal from outside says more than the complaint of the rank; an abort is the rank's own answer to the
 * complaint. */
static enum diagnose_quality ending_quality(const struct diagnose_verdict *v, enum diagnose_quality otherwise)
{
    bool has_aborted = v->signal == SIGABRT || v->exit_status == 128 + SIGABRT;

    return has_aborted && v->said_effect ? DIAGNOSE_AFTERMATH : otherwise;
}

static bool verdict_is_near(const struct diagnose_hits *hits, size_t i)
{
    return hits->lines - hits->v[i].line_no < NEAR_LINES;
}

static bool says_effect(const struct diagnose_hits *hits)
{
    for (size_t i = 0; i < hits->n; i++)
        if (hits->v[i].rule->kind == DIAGNOSE_EFFECT && verdict_is_near(hits, i))
            return true;
    return false;
}

/* Returns how well an exception explains a chain. The last one counts, or the one before it, where no rule explains the
 * last and that one has a cause to tell: a program often puts better words to a key that is missing. */
static enum diagnose_quality cause_quality(const struct diagnose_hit *hit, enum diagnose_quality otherwise)
{
    static const enum diagnose_quality replaced[] = {[DIAGNOSE_CAUSE] = DIAGNOSE_REPLACED,
                                                     [DIAGNOSE_EFFECT] = DIAGNOSE_FOLLOWS,
                                                     [DIAGNOSE_LAST_RESORT] = DIAGNOSE_ENDING};

    return hit->is_replaced ? replaced[hit->rule->kind] : otherwise;
}

void diagnose_judge_text(struct diagnose_verdict *v, enum diagnose_where where, const char *text, size_t len,
                         const char *log)
{
    static const enum diagnose_quality qualities[] = {[DIAGNOSE_CAUSE] = DIAGNOSE_NEAR,
                                                      [DIAGNOSE_EFFECT] = DIAGNOSE_FOLLOWS,
                                                      [DIAGNOSE_LAST_RESORT] = DIAGNOSE_ENDING};
    ACT_AUTO(diagnose_hits) hits = {0};

    verdict_scan(v, where, text, len, &hits);
    for (size_t i = 0; i < hits.n; i++) {
        enum diagnose_quality quality = cause_quality(&hits.v[i], qualities[hits.v[i].rule->kind]);
        consider(v, quality == DIAGNOSE_ENDING ? ending_quality(v, quality) : quality, &hits.v[i], log, -1);
    }
}

void diagnose_judge_failed_rank(struct diagnose_verdict *v, const char *text, size_t len, const char *log, int rank)
{
    static const enum diagnose_quality near[] = {[DIAGNOSE_CAUSE] = DIAGNOSE_NEAR,
                                                 [DIAGNOSE_EFFECT] = DIAGNOSE_FOLLOWS,
                                                 [DIAGNOSE_LAST_RESORT] = DIAGNOSE_UNEXPLAINED};
    ACT_AUTO(diagnose_hits) hits = {0};

    verdict_scan(v, DIAGNOSE_FAILED_RANK, text, len, &hits);
    v->said_effect = says_effect(&hits);
    for (size_t i = 0; i < hits.n; i++) {
        enum diagnose_quality quality = cause_quality(&hits.v[i], near[hits.v[i].rule->kind]);
        if (verdict_is_near(&hits, i))
            consider(v, is_ending(hits.v[i].rule) ? ending_quality(v, quality) : quality, &hits.v[i], log, rank);
        else if (hits.v[i].rule->kind == DIAGNOSE_CAUSE)
            consider(v, DIAGNOSE_FAR, &hits.v[i], log, rank);
    }
}

void diagnose_judge_other_rank(struct diagnose_verdict *v, const char *text, size_t len, const char *log, int rank)
{
    static const enum diagnose_quality near[] = {[DIAGNOSE_CAUSE] = DIAGNOSE_OTHERS_NEAR,
                                                 [DIAGNOSE_EFFECT] = DIAGNOSE_OTHERS_FOLLOW,
                                                 [DIAGNOSE_LAST_RESORT] = DIAGNOSE_OTHERS_UNEXPLAINED};
    ACT_AUTO(diagnose_hits) hits = {0};

    verdict_scan(v, DIAGNOSE_OTHER_RANK, text, len, &hits);
    bool has_effect = says_effect(&hits);
    for (size_t i = 0; i < hits.n; i++)
        if (!(has_effect && is_ending(hits.v[i].rule)) && verdict_is_near(&hits, i))
            consider(v, near[hits.v[i].rule->kind], &hits.v[i], log, rank);
}

void diagnose_judge_end(struct diagnose_verdict *v, const char *reason, int rank)
{
    ACT_AUTO(act_buf) text = {0};

    act_buf_addf(&text, "%s\n", reason);
    if (rank >= 0 && v->signal)
        act_buf_addf(&text, "rank %d was killed by signal %d\n", rank, v->signal);
    else if (rank >= 0)
        act_buf_addf(&text, "rank %d exited with status %d\n", rank, v->exit_status);
    diagnose_judge_text(v, DIAGNOSE_AGENT, text.data, text.len, NULL);
}

bool diagnose_is_settled(const struct diagnose_verdict *v)
{
    return v->quality <= DIAGNOSE_ENDING;
}
