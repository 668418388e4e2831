/* flow.h - what the use cases share: a configuration, and what is opened for it when it is first needed.
 * The use cases are in rooms, each with a header for each kind of thing a user can ask for: code/, runs/,
 * data/, jobfile/, cluster/. No terminal here: results come back as data, words for the user go through
 * act_note() and act_warn().
 */
#ifndef ACT_FLOW_FLOW_H
#define ACT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "auth/services.h"
#include "base/error.h"
#include "config/config.h"
#include "ledger/ledger.h"

/* What the use cases share; everything but the configuration is opened when it is first needed. */
struct flow {
    struct config config;
    const char *cluster;       /* of flow_open_bare() */
    struct services *services; /* of the whole command, to be set before the first use; NULL: its own */
    struct services own;
    struct ledger *ledger;
    bool ledger_filled;         /* with the runs that are there, as it was new */
    struct ledger *ledger_copy; /* used instead, once it could not be read or written; not for new runs */
    struct flow_opened *opened; /* platforms */
    size_t n_opened;
    bool limits_mentioned; /* that --bwlimit and --transfers have no effect */
};
/* Loads the configuration, which must not lead out of the project where that is not trusted (flow/trust.h). */
int flow_open(const struct config_request *request, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Only loads it, for what shows it. */
int flow_open_to_look(const struct config_request *request, struct flow *out,
                      struct act_error *err) ACT_NODISCARD;
/* Whether the cluster of flow_open_bare(), or the file that AML_CONFIG_PATH names, is there; a cluster that has runs in
 * the ledger is. */
int flow_check_cluster(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Without a configuration: for what only needs the ledger. cluster (may be NULL, not copied): where a run that the
 * ledger does not know is looked for. */
void flow_open_bare(const char *cluster, struct flow *out);
void flow_close(struct flow *flow);

#endif
