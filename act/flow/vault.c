/* vault.c - secrets that are in key vaults, by the user's login. Each is asked for once in a command.
 *
 * Source: learn.microsoft.com/rest/api/keyvault/secrets/get-secret, and key-vault/general/rest-error-codes; the hosts:
 * key-vault/general/about-keys-secrets-certificates (DNS suffixes for object identifiers).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "arm/arm.h"
#include "auth/cloud.h"
#include "auth/services.h"
#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "http/http.h"
#include "platform/platform.h"

#define API_VERSION "7.4"

struct flow_secret {
    char *url, *value;
};

/* Checks that the host is that of a vault, if it is a cloud's; whether the user trusts another one, arm_new() tells. */
static int vault_check_host(const struct auth_cloud *cloud, const char *url, struct act_error *err)
{
    ACT_AUTOFREE char *host = http_host(url);

    if (!host || !auth_cloud_has(NULL, host) || auth_cloud_is_vault(cloud, host))
        return 0;
    return act_error_set(err, ACT_CONFIG, "'%s' is not a key vault of %s: its host is not in '%s'", url, cloud->name,
                         cloud->vault_domain);
}

static int open_vault(struct flow *flow, const char *url, struct arm **out, struct act_error *err)
{
    ACT_AUTOFREE char *base = act_strndup(url, (size_t)(strstr(url, "/secrets/") - url));
    const struct auth_cloud *cloud;
    int rc = auth_cloud_find(base, &cloud, err);

    if (rc == 0)
        rc = vault_check_host(cloud, base, err);
    if (rc < 0)
        return rc;
    struct arm_options options = {.http = flow_http(flow),
                                  .tokens = services_tokens(flow_services(flow)),
                                  .endpoint = base,
                                  .scope = cloud->vault_scope,
                                  .cloud = cloud,
                                  .use_cli = flow->config->use_cli_auth,
                                  .said_by = "a secret's key vault"};
    return arm_new(&options, out, err);
}

/* Warns of a secret outside of its time, in which the service gives it, too. */
static void warn_of_time(const json_t *response, const char *url)
{
    const json_t *attributes = json_object_get(response, "attributes");
    int64_t ends = codec_json_int(attributes, "exp", INT64_MAX), begins = codec_json_int(attributes, "nbf", 0);
    bool is_over = act_now_unix_s() >= ends;
    char when[ACT_TIME_TEXT];

    if (!is_over && act_now_unix_s() >= begins)
        return;
    act_time_to_local(is_over ? ends : begins, when);
    act_warn("the secret '%s' %s %s", url, is_over ? "has expired, on" : "is to be used only from", when);
}

static int read_value(const json_t *response, const char *url, char **out, struct act_error *err)
{
    const char *value = codec_json_str(response, "value", NULL);

    if (!value || !*value)
        return act_error_set(err, ACT_FAIL, "the key vault's secret '%s' has no value", url);
    warn_of_time(response, url);
    *out = act_strdup(value);
    return 0;
}

static int vault_ask(struct flow *flow, const char *url, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *what = act_sprintf("get the secret '%s'", url);
    struct arm *arm = NULL;
    CODEC_AUTOJSON json_t *response = NULL;
    int rc = open_vault(flow, url, &arm, err);

    if (rc == 0)
        rc = arm_get(arm, url, API_VERSION, what, &response, err);
    if (rc == 0)
        rc = read_value(response, url, out, err);
    else if (err->http_status == 403)
        act_error_hint(err, "it must be enabled, and you need the role 'Key Vault Secrets User' on the vault, or its "
                            "access policy 'get' for secrets, and an address that its firewall lets in");
    arm_free(arm);
    return rc;
}

static int vault_get(void *arg, const char *url, char **out, struct act_error *err)
{
    struct flow *flow = arg;

    for (size_t i = 0; i < flow->n_secrets; i++)
        if (strcmp(flow->secrets[i].url, url) == 0) {
            *out = act_strdup(flow->secrets[i].value);
            return 0;
        }
    int rc = vault_ask(flow, url, out, err);
    if (rc == 0)
        ACT_PUSH(flow->secrets, flow->n_secrets,
                 ((struct flow_secret){.url = act_strdup(url), .value = act_strdup(*out)}));
    return rc;
}

void flow_use_vaults(struct flow *flow, struct config *config)
{
    config_use_vault(config, (struct config_vault){.get = vault_get, .arg = flow});
}

void flow_forget_secrets(struct flow *flow)
{
    for (size_t i = 0; i < flow->n_secrets; i++) {
        act_wipe(&flow->secrets[i].value);
        free(flow->secrets[i].url);
    }
    free(flow->secrets);
    flow->secrets = NULL;
    flow->n_secrets = 0;
}

int flow_fetch_secrets(struct flow *flow, struct run_spec *spec, struct act_error *err)
{
    struct config *config = flow->config;
    const struct platform_row *row = platform_find(config->platform);
    int rc = row->about.logs_in_to_registry ? config_fetch_credential(config, &config->docker.password, err) : 0;

    if (rc < 0)
        return act_error_prefix(err, "the password of the registry");
    for (size_t i = 0; rc == 0 && i < spec->n_env; i++)
        if (spec->env[i].secret && (rc = config_fetch_secret(config, &spec->env[i].value, err)) < 0)
            act_error_prefix(err, "the variable '%s'", spec->env[i].name);
    return rc;
}
