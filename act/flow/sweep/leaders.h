/* leaders.h - runs that were tried with different parameters, the best one first: by a number of their logs. Pure. The
 * caller sets what is his in struct flow_leaders, adds all runs, ends it, and releases it in every case. */
#ifndef ACT_FLOW_SWEEP_LEADERS_H
#define ACT_FLOW_SWEEP_LEADERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "flow/runs/runs.h"
#include "numbers/numbers.h"

enum flow_best { FLOW_LOWEST, FLOW_HIGHEST };

/* A run, by what is shown of it: there may be 100,000. */
struct flow_leader_row {
    char *id, *name, *tags; /* name, tags: as in struct ledger_run */
    enum run_state state;
    int64_t created_unix_s;
    bool has_number;           /* it has a finite value of it */
    bool ends_odd;             /* the last value is not finite */
    double best, best_x, last; /* best_x: where: step, epoch or value */
    size_t at;                 /* internal: the place in which it was added */
};

struct flow_leaders {
    const char *key; /* of the number, set by the caller; NULL: none */
    enum flow_best best;
    bool newest_first;          /* runs are added so, and come out oldest first */
    struct act_strv parameters; /* keys of the tags that tell the runs apart, but FLOW_SWEEP_TAG */
    struct flow_leader_row *v;  /* as they were added; with a key the best first, runs that end in NaN, then those
                                   without it last */
    size_t n;
    enum numbers_by by; /* what best_x counts: they run one program, so that the last one with the number says it */
};

/* Adds a run. numbers are those of its log, NULL: none; neither has to stay. */
void flow_leaders_add(struct flow_leaders *leaders, const struct flow_run *run, struct numbers *numbers);
/* Puts the runs into their order, and finds the parameters, when all runs are there. */
void flow_leaders_end(struct flow_leaders *leaders);
void flow_leaders_release(struct flow_leaders *leaders);

#endif
