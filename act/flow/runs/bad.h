/* bad.h - nodes that were to blame for the failure of a run of this user, in the last week. */
#ifndef ACT_FLOW_RUNS_BAD_H
#define ACT_FLOW_RUNS_BAD_H

#include "base/error.h"
#include "flow/flow.h"
#include "ledger/ledger.h"

struct flow_run;

/* Of the place that a cluster is (NULL: of all), newest first, each node once: those that this machine has seen by now,
 * whenever it asked what became of a run. Contacts no host. */
int flow_bad_nodes(struct flow *flow, const char *cluster, struct ledger_bads *out,
                   struct act_error *err) ACT_NODISCARD;
/* Likewise where the configuration of flow leads. */
int flow_bad_nodes_here(struct flow *flow, struct ledger_bads *out, struct act_error *err) ACT_NODISCARD;
/* Asks the platforms what became of the runs that have not ended, as far as is known, so that flow_bad_nodes() knows
 * their nodes, too. */
int flow_look_for_bad_nodes(struct flow *flow, const char *cluster, struct act_error *err) ACT_NODISCARD;
/* A node of a cluster (NULL: of all) is good again. There is no such node: -ACT_NOT_FOUND. */
int flow_forget_bad_node(struct flow *flow, const char *cluster, const char *node, struct act_error *err) ACT_NODISCARD;
/* Remembers the nodes that the status of a run blames. */
int flow_note_bad_nodes(struct flow *flow, const struct flow_run *run, struct act_error *err) ACT_NODISCARD;

#endif
