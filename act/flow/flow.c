/* flow.c - what the use cases share. */

#include "auth/services.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "site/site.h"

int flow_open(const struct config_request *request, struct flow *out, struct act_error *err)
{
    int rc = flow_open_to_look(request, out, err);

    if (rc == 0)
        rc = flow_trust(&out->config, err);
    if (rc == 0)
        flow_use_vaults(out, &out->config);
    else
        config_release(&out->config);
    return rc;
}

int flow_open_to_look(const struct config_request *request, struct flow *out, struct act_error *err)
{
    *out = (struct flow){.cluster = request->cluster};
    return config_load(request, &out->config, err);
}

void flow_open_bare(const char *cluster, struct flow *out)
{
    *out = (struct flow){.cluster = cluster};
}

/* Tells whether the ledger has runs on the cluster: that is how clusters of other projects are known. */
static bool flow_has_runs(struct flow *flow, const char *cluster)
{
    struct act_error ignored;
    size_t n = 0;
    int rc = 0;

    for (struct ledger *ledger = NULL; cluster && flow_next_ledger(flow, &ledger, &rc, &ignored);)
        rc = ledger_count(ledger, cluster, &n, &ignored);
    return rc == 0 && n > 0;
}

int flow_check_cluster(struct flow *flow, struct act_error *err)
{
    const struct config_request request = {.cluster = flow->cluster};
    int rc = config_is_there(&request, err);

    return rc < 0 && flow_has_runs(flow, flow->cluster) ? 0 : rc;
}

void flow_never_share(void)
{
    site_never_share();
}

void flow_close(struct flow *flow)
{
    flow_close_platforms(flow);
    flow_forget_secrets(flow);
    ledger_close(flow->ledger);
    ledger_close(flow->ledger_copy);
    if (flow->own)
        services_close(flow->own);
    free(flow->own);
    config_release(&flow->config);
    *flow = (struct flow){0};
}
