/* leaders.h - runs that were tried with different parameters, the best one first: by a number of their logs. Pure. */
#ifndef ACT_FLOW_SWEEP_LEADERS_H
#define ACT_FLOW_SWEEP_LEADERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "flow/runs/runs.h"
#include "numbers/numbers.h"

enum flow_best { FLOW_LOWEST, FLOW_HIGHEST };

struct flow_leader_row {
    const struct flow_run *run;
    json_t *tags;               /* its parameters, and more */
    const struct series *curve; /* of the number; NULL: it has none, or no finite value of it */
    double best, best_x;        /* of a curve; where: step, epoch or value */
    bool ends_odd;              /* the last value is not finite */
};

struct flow_leaders {
    struct act_strv parameters; /* keys of the tags that tell the runs apart, but FLOW_SWEEP_TAG */
    struct flow_leader_row *v;  /* as the runs; with a key the best first, runs that end in NaN, then those without it
                                   last */
    size_t n;
    enum numbers_by by; /* what best_x counts: they run one program, so that the last one with the number says it */
};

/* Puts the runs into the order of their best value of the number key; NULL: leaves them as they are. numbers has those
 * of each run, NULL for none; they and the runs must live as long as out. The caller releases out. */
void flow_leaders(const struct flow_runs *runs, struct numbers *const *numbers, const char *key, enum flow_best best,
                  struct flow_leaders *out);
void flow_leaders_release(struct flow_leaders *leaders);
/* Returns the value of a parameter of a row; NULL: it has none. */
const char *flow_leader_value(const struct flow_leader_row *row, const char *parameter);

#endif
