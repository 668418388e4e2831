/* diff.h - in what two runs differ. */
#ifndef ACT_FLOW_RUNS_DIFF_H
#define ACT_FLOW_RUNS_DIFF_H

#include <stddef.h>

#include "flow/flow.h"
#include "flow/runs/runs.h"

struct flow_difference {
    const char *part; /* "command", "code", "configuration", "environment", "nodes" */
    char *name;       /* of a file, key or variable; empty: the part as a whole */
    char *from, *to;  /* NULL: the run does not have it */
};
struct flow_diff {
    struct flow_difference *v; /* by part in that order, then by name */
    size_t n;
};
/* Both need their specification. Code is compared by file if both packages can be had, else as a whole, with a
 * warning; the names of nodes where both platforms can tell them. Of secrets only the names are known. */
void flow_diff(struct flow *flow, const struct flow_run *from, const struct flow_run *to, struct flow_diff *out);
void flow_diff_release(struct flow_diff *diff);

#endif
