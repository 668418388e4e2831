/* runs_internal.h - for the files of flow/ only: the state of a run, asked for and watched. */
#ifndef ACT_FLOW_RUNS_RUNS_INTERNAL_H
#define ACT_FLOW_RUNS_RUNS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

struct platform;

/* Fresh status of one run, also into the ledger when it changed. */
int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run,
                 struct act_error *err) ACT_NODISCARD;
/* Whether a platform that failed so may answer later, and may have done what it was asked for. */
bool flow_may_pass(int rc);

/* Watching a run until it ends; {0} begins. */
struct flow_watch {
    int64_t begun_ms;        /* of the first look */
    int64_t due_ms, look_ms; /* when the state is asked for next (monotonic), and how long that was put off */
    int64_t pause_ms;        /* between two rounds */
    int64_t trial_ms;        /* the same while the platform cannot be asked; 0: it can */
    int64_t round_ms;        /* what a round takes, where it is many requests to a service; else 0 */
};
/* flow_refresh() when it is time for it, else nothing. */
int flow_watch_look(struct flow_watch *w, struct flow *flow, struct platform *platform, struct flow_run *run,
                    struct act_error *err) ACT_NODISCARD;
/* Takes what came of a round. A failure that passes is told to the user, once, and becomes 0. */
int flow_watch_took(struct flow_watch *w, int rc, const struct act_error *err) ACT_NODISCARD;
/* Waits until the next round, at most until until_ms (0: no limit); moved: there was something new in this one. */
void flow_watch_pause(struct flow_watch *w, bool moved, int64_t until_ms);

#endif
