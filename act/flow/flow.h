/* flow.h - what the use cases share: a configuration, and what is opened for it on first use. The use cases are in
 * rooms, whose headers are their manuals: code/, data/, runs/, logs/, why/, submit/, sweep/, look/, board/, keep/,
 * cluster/. Nothing here uses the terminal: results are returned as data, messages to the user go through act_note()
 * and act_warn(). */
#ifndef ACT_FLOW_FLOW_H
#define ACT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct config;
struct config_request;
struct ledger;
struct platform;
struct services;

/* A configuration, and what is opened for it. {0} is one that is not open, which flow_close() takes. */
struct flow {
    struct config *config;     /* never NULL while it is open: flow_open_bare() gives an empty one */
    const char *cluster;       /* that was asked for; NULL: none */
    bool cluster_is_target;    /* it is not where to look for the last runs, "@" */
    struct services *services; /* shared by the whole command; set before first use; NULL: its own */
    struct services *own;      /* made when they are needed */
    struct ledger *ledger;
    struct ledger *ledger_copy; /* used once the file could not be read or written; not for new runs */
    struct flow_opened *opened; /* platforms */
    size_t n_opened;
    bool use_bad_nodes;          /* runs may be on nodes that failed lately */
    struct flow_secret *secrets; /* of key vaults, that were asked for */
    size_t n_secrets;
    bool reads_logs;       /* of each run whose state is asked for, next */
    bool limits_mentioned; /* the user was told that --bwlimit and --transfers have no effect */
};
/* Loads the configuration; whatever in it leads out of the project must be trusted (flow/trust.h). The caller closes
 * out. */
int flow_open(const struct config_request *request, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Only loads the configuration, for commands that just show it. */
int flow_open_to_look(const struct config_request *request, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Checks that the cluster of flow_open_bare(), or the file that AML_CONFIG_PATH names, exists; a cluster with runs in
 * the ledger counts as existing. */
int flow_check_cluster(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Begins a flow without a configuration, for commands that need only the ledger. cluster, which may be NULL and is not
 * copied, is where to look for a run that the ledger does not know. */
void flow_open_bare(const char *cluster, struct flow *out);
/* Gives each connection over ssh a login of its own. Call it before anything is opened. */
void flow_never_share(void);
/* Closes all that was opened. */
void flow_close(struct flow *flow);
/* Opens the platform of flow's configuration. flow owns it and keeps it open. */
int flow_platform(struct flow *flow, struct platform **out, struct act_error *err) ACT_NODISCARD;

#endif
