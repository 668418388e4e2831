#include "config/config.h"
#include "flow/runs/watch.h"

#include "base/clock.h"
#include "flow/flow_internal.h"
#include "flow/place.h"

enum { REMEMBERED_S = 7 * 86400 };

/* Returns where the cluster of this name leads today, as a new string; NULL: it is not here. */
static char *where_is(const char *cluster)
{
    const struct config_request request = {.cluster = cluster, .quiet = true};
    struct act_error ignored;
    ACT_AUTO(config) config = {0};

    return cluster && config_load(&request, &config, &ignored) == 0 ? flow_where(&config) : NULL;
}

static int bad_list(struct flow *flow, const struct ledger_whose *whose, struct ledger_bads *out, struct act_error *err)
{
    int rc = 0;

    *out = (struct ledger_bads){0};
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_list_bads(ledger, whose, act_now_unix_s() - REMEMBERED_S, out, err);
    return rc;
}

int flow_bad_nodes(struct flow *flow, const char *cluster, struct ledger_bads *out, struct act_error *err)
{
    ACT_AUTOFREE char *place = where_is(cluster);

    return bad_list(flow, &(struct ledger_whose){cluster, place}, out, err);
}

int flow_bad_nodes_here(struct flow *flow, struct ledger_bads *out, struct act_error *err)
{
    ACT_AUTOFREE char *place = flow_where(flow->config);

    return bad_list(flow, &(struct ledger_whose){flow->config->cluster, place}, out, err);
}

int flow_look_for_bad_nodes(struct flow *flow, const char *cluster, struct act_error *err)
{
    const struct flow_table active = {.cluster = cluster, .own = true, .active = true};
    ACT_AUTO(flow_runs) runs = {0};

    return flow_list_runs(flow, &active, &runs, err);
}

int flow_forget_bad_node(struct flow *flow, const char *cluster, const char *node, struct act_error *err)
{
    ACT_AUTOFREE char *place = where_is(cluster);
    const struct ledger_whose whose = {cluster, place};
    int rc = 0, n = 0;

    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_forget_bad(ledger, &whose, node, &n, err);
    if (rc == 0 && n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "no failure of node '%s' is remembered%s%s%s; see 'a nodes --bad'", node,
                           cluster ? " on cluster '" : "", cluster ? cluster : "", cluster ? "'" : "");
    return rc;
}

int flow_note_bad_nodes(struct flow *flow, const struct flow_run *run, struct act_error *err)
{
    ACT_AUTO(ledger_bads) bads = {0};
    int rc = 0;

    for (int i = 0; i < run->status.n_bad; i++)
        ACT_PUSH(bads.v, bads.n,
                 (struct ledger_bad){act_strdup(run->row.cluster), act_strdup(run->status.bad[i].node),
                                     act_strdup(run->status.bad[i].class), act_strdup(run->row.id),
                                     run->status.bad[i].unix_s, flow_where_it_went(&run->row)});
    for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
        rc = ledger_add_bads(ledger, &bads, err);
    return rc;
}
