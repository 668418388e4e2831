/* flow.c - what the use cases share. */

#include <stdlib.h>

#include "auth/services.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "ledger/ledger.h"
#include "site/site.h"

/* The configuration of a bare flow; nobody writes to it. */
static struct config flow_nothing;

static void flow_unload(struct flow *flow)
{
    if (flow->config && flow->config != &flow_nothing) {
        config_release(flow->config);
        free(flow->config);
    }
    flow->config = &flow_nothing;
}

int flow_load(struct flow *flow, const struct config_request *request, struct act_error *err)
{
    flow->config = act_calloc(1, sizeof(*flow->config));
    int rc = config_load(request, flow->config, err);

    if (rc < 0)
        flow_unload(flow);
    return rc;
}

int flow_open(const struct config_request *request, struct flow *out, struct act_error *err)
{
    int rc = flow_open_to_look(request, out, err);

    if (rc == 0)
        rc = flow_trust(out->config, err);
    if (rc == 0)
        flow_use_vaults(out, out->config);
    else
        flow_unload(out);
    return rc;
}

int flow_open_to_look(const struct config_request *request, struct flow *out, struct act_error *err)
{
    flow_open_bare(request->cluster, out);
    return flow_load(out, request, err);
}

void flow_open_bare(const char *cluster, struct flow *out)
{
    *out = (struct flow){.config = &flow_nothing, .cluster = cluster};
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
    flow_unload(flow);
    *flow = (struct flow){0};
}
