/* login.c - the user's identity in Azure, logging in and out. */
#include "flow/login.h"
#include "auth/cloud.h"
#include "auth/services.h"
#include "auth/token.h"
#include "config/config.h"
#include "flow/flow_internal.h"

/* Describes a token for the storage of this cluster, in the cloud of its account or else of its workspace. */
static int want_of(struct flow *flow, struct token_want *out, struct act_error *err)
{
    const struct config *config = flow->config;
    ACT_AUTO(config_account) account = {0};
    bool has_account = config->code.path && config->code.account_file;

    *out = (struct token_want){.scope = AUTH_STORAGE_SCOPE, .use_cli = config->use_cli_auth};
    if (has_account && !config_account_peek(config, &config->code, &account)) /* its key may be in a key vault */
        return config_account(config, &config->code, &account, err);
    return auth_cloud_find(account.endpoint ? account.endpoint : config_text(config, "azureml.endpoint"), &out->cloud,
                           err);
}

int flow_identify(struct flow *flow, struct token_identity *out, struct act_error *err)
{
    struct token_want want;
    int rc = want_of(flow, &want, err);

    *out = (struct token_identity){0};
    if (rc == 0)
        rc = token_identify(services_tokens(flow_services(flow)), &want, out, err);
    return rc;
}

int flow_login(struct flow *flow, const char *tenant, void (*show)(void *arg, const char *message), void *arg,
               struct act_error *err)
{
    struct token_want want;
    int rc = want_of(flow, &want, err);

    return rc < 0 ? rc : token_device_login(services_http(flow_services(flow)), &want, tenant, show, arg, err);
}

int flow_logout(bool dry_run, bool *out_had, struct act_error *err)
{
    return token_forget_all(dry_run, out_had, err);
}
