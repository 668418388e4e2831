/* doctor.c - whether all that runs of a cluster need is there: its configuration, its stores, what its platform says. */
#include <string.h>

#include "flow/flow_internal.h"
#include "flow/trust.h"

/* Whether there is a configuration to go on with. */
static bool examine_config(struct flow *flow, const struct config_request *request,
                           struct platform_findings *findings)
{
    static const char what[] = "configuration";
    struct act_strv problems = {0};
    struct act_error err;
    int rc = flow_check_config(request, &problems, &err);

    for (size_t i = 0; i < problems.n; i++)
        platform_findings_add(findings, false, what, "%s", problems.v[i]);
    if (rc == 0)
        rc = config_load(request, &flow->config, &err);
    if (rc == 0)
        rc = flow_trust(&flow->config, &err);
    if (rc < 0 && (problems.n == 0 || rc == -ACT_DENIED))
        platform_findings_add(findings, false, what, "%s", err.text);
    if (rc == 0 && problems.n == 0)
        platform_findings_add(findings, true, what, "cluster '%s', platform %s, %s", flow->config.cluster,
                              flow->config.platform, flow->config.file ? flow->config.file : "built-in");
    act_strv_release(&problems);
    return rc == 0;
}

/* Asks for a key that need not be there: who answers is reached, and accepts the credentials. */
static void examine_store(struct flow *flow, const struct config_folder *folder,
                          struct platform_findings *findings)
{
    ACT_AUTOFREE char *what = act_sprintf("store of '%s'", folder->name ? folder->name : "code");
    const char *key = folder->path && *folder->path ? folder->path : "act";
    char etag[STORE_ETAG];
    uint64_t size;
    struct store *store;
    struct act_error err = {0};
    int rc = flow_store(flow, folder, &store, &err);

    if (rc == 0) {
        rc = flow_exists(store, key, etag, &size, &err);
        if (rc >= 0)
            platform_findings_add(findings, true, what, "%s answers", store_name(store));
        store_free(store);
    }
    if (rc < 0)
        platform_findings_add(findings, false, what, "%s", err.text);
}

/* Each account once: several folders may be in it. Shares are none of ours to look at. */
static void examine_stores(struct flow *flow, struct platform_findings *findings)
{
    const struct config *c = &flow->config;

    examine_store(flow, &c->code, findings); /* one that is not configured is what is found */
    for (size_t i = 0; i < c->n_folders; i++) {
        const char *file = c->folders[i].account_file;
        bool known = config_is_share(&c->folders[i]) || act_streq(file, c->code.account_file);
        for (size_t k = 0; k < i && !known; k++)
            known = !config_is_share(&c->folders[k]) && act_streq(file, c->folders[k].account_file);
        if (!known)
            examine_store(flow, &c->folders[i], findings);
    }
}

static void examine_platform(struct flow *flow, struct platform_findings *findings)
{
    struct platform *platform;
    struct act_error err;

    if (flow_platform(flow, &platform, &err) < 0)
        platform_findings_add(findings, false, "platform", "%s", err.text);
    else
        platform_examine(platform, findings);
}

static void examine_ledger(struct flow *flow, struct platform_findings *findings)
{
    struct ledger *ledger;
    struct act_error err;

    if (flow_ledger(flow, &ledger, &err) < 0)
        platform_findings_add(findings, false, "ledger", "%s", err.text);
    else
        platform_findings_add(findings, true, "ledger", "can be read and written");
}

void flow_doctor(struct flow *flow, const struct config_request *request, struct platform_findings *out)
{
    *out = (struct platform_findings){0};
    bool sound = examine_config(flow, request, out);
    examine_ledger(flow, out);
    if (sound) {
        examine_stores(flow, out);
        examine_platform(flow, out);
    }
}
