/* runs_internal.h - for the files of flow/ only: the state of a run, asked for and watched. */
#ifndef ACT_FLOW_RUNS_RUNS_INTERNAL_H
#define ACT_FLOW_RUNS_RUNS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

struct platform;

/* ---- state.c */

/* The status that the ledger has of a run. */
void flow_status_of_row(const struct ledger_run *row, struct run_status *out);
/* Notes a status that was asked for just now. A platform that no longer knows a run does not change what is known. */
void flow_take_status(struct flow_run *run, struct run_status *now);
/* Writes what changed among the runs to the ledger. */
int flow_store_changes(struct flow *flow, struct flow_run *runs, size_t n,
                       struct act_error *err) ACT_NODISCARD;
/* What a table learned of a run that failed is what its service says. Who looks at that one run asks its ranks too. */
int flow_ask_ranks(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Fills in the specification that the ledger has of a run. */
int flow_load_spec(struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Fresh status of one run, also into the ledger when it changed. */
int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run,
                 struct act_error *err) ACT_NODISCARD;
/* ---- watch.c */

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
