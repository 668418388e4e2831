/* attempt.c - reads the logs of an attempt, beginning with those that explain most. */
#include <string.h>

#include "diagnose/diagnose_internal.h"

enum {
    OTHER_RANKS = 64,
    PREPARE_LOGS = 16, /* a node has two of them */
};

/* The output of the preparation counts only if the preparation failed: pip warns about many things. */
static bool is_asked(const struct diagnose_attempt *a, unsigned where)
{
    if (where & (DIAGNOSE_MPIRUN | DIAGNOSE_SLURM))
        return true;
    return (where & DIAGNOSE_PREPARE) && strstr(a->reason, "preparation");
}

static int ask_log(struct diagnose_verdict *v, const struct diagnose_attempt *a, const char *log, struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};
    int rc = a->read_log(a->arg, log, &text, err);

    if (rc == 0 && text.len > 0)
        diagnose_judge_text(v, (enum diagnose_where)diagnose_where_of(log, a->rank), text.data, text.len, log);
    return rc;
}

/* Tells whether a log is one of the node that failed. */
static bool is_of_node(const struct diagnose_attempt *a, const char *log)
{
    ACT_AUTOFREE char *name = act_sprintf("_%s.", a->node ? a->node : "");

    return strstr(log, name) != NULL;
}

/* Reads the logs that many nodes have: those of the node that failed first, and not all of the rest. */
static int attempt_ask_logs(struct diagnose_verdict *v, const struct diagnose_attempt *a, bool of_node, int *budget,
                            struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < a->logs->n && rc == 0; i++) {
        const char *log = a->logs->v[i];
        unsigned where = diagnose_where_of(log, a->rank);
        if (is_asked(a, where) && is_of_node(a, log) == of_node && (!(where & DIAGNOSE_PREPARE) || (*budget)-- > 0))
            rc = ask_log(v, a, log, err);
    }
    return rc;
}

static int ask_other_ranks(struct diagnose_verdict *v, const struct diagnose_attempt *a, struct act_error *err)
{
    int rc = 0;

    for (int rank = 0; rank < a->ranks && rank < OTHER_RANKS && rc == 0; rank++) {
        ACT_AUTO(act_buf) text = {0};
        const char *log = NULL;
        if (rank == a->rank)
            continue;
        rc = a->read_rank(a->arg, rank, &text, &log, err);
        if (rc == 0 && text.len > 0)
            diagnose_judge_other_rank(v, text.data, text.len, log, rank);
    }
    return rc;
}

int diagnose_judge_attempt(struct diagnose_verdict *v, const struct diagnose_attempt *a, struct act_error *err)
{
    int budget = PREPARE_LOGS;

    if (a->said->len > 0)
        diagnose_judge_failed_rank(v, a->said->data, a->said->len, a->said_log, a->rank);
    diagnose_judge_end(v, a->reason, a->rank);
    int rc = attempt_ask_logs(v, a, true, &budget, err);
    if (rc == 0)
        rc = attempt_ask_logs(v, a, false, &budget, err);
    return rc < 0 || diagnose_is_settled(v) ? rc : ask_other_ranks(v, a, err);
}
