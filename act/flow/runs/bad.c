#include "flow/runs/bad.h"

#include "base/clock.h"
#include "base/text.h"
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"

enum { REMEMBERED_S = 7 * 86400 };

struct asked {
    const char *cluster, *node;
    struct ledger_bads *bads;
    int n;
};

static int list(struct ledger *ledger, void *arg, struct act_error *err)
{
    const struct asked *a = arg;

    return ledger_list_bads(ledger, a->cluster, act_now_unix_s() - REMEMBERED_S, a->bads, err);
}

static int add(struct ledger *ledger, void *arg, struct act_error *err)
{
    return ledger_add_bads(ledger, ((struct asked *)arg)->bads, err);
}

static int forget(struct ledger *ledger, void *arg, struct act_error *err)
{
    struct asked *a = arg;

    return ledger_forget_bad(ledger, a->cluster, a->node, &a->n, err);
}

int flow_bad_nodes(struct flow *flow, const char *cluster, struct ledger_bads *out, struct act_error *err)
{
    *out = (struct ledger_bads){0};
    return flow_with_ledger(flow, list, &(struct asked){.cluster = cluster, .bads = out}, err);
}

int flow_look_for_bad_nodes(struct flow *flow, const char *cluster, struct act_error *err)
{
    const struct flow_table active = {.cluster = cluster, .own = true, .active = true};
    ACT_AUTO(flow_runs) runs = {0};

    return flow_list_runs(flow, &active, &runs, err);
}

int flow_forget_bad_node(struct flow *flow, const char *cluster, const char *node, struct act_error *err)
{
    struct asked a = {.cluster = cluster, .node = node};
    int rc = flow_with_ledger(flow, forget, &a, err);

    if (rc == 0 && a.n == 0)
        rc = act_error_set(err, ACT_NOT_FOUND, "no failure of node '%s' is remembered%s%s%s; see 'a nodes --bad'", node,
                           cluster ? " on cluster '" : "", cluster ? cluster : "", cluster ? "'" : "");
    return rc;
}

int flow_note_bad_nodes(struct flow *flow, const struct flow_run *run, struct act_error *err)
{
    ACT_AUTO(ledger_bads) bads = {0};

    for (int i = 0; i < run->status.n_bad; i++)
        ACT_PUSH(bads.v, bads.n,
                 (struct ledger_bad){act_strdup(run->row.cluster), act_strdup(run->status.bad[i].node),
                                     act_strdup(run->status.bad[i].class), act_strdup(run->row.id),
                                     run->status.bad[i].unix_s});
    return flow_with_ledger(flow, add, &(struct asked){.bads = &bads}, err);
}
