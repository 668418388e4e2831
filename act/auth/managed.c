/* managed.c - the managed identity of this machine or job.
 *
 * Source: learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token,
 * learn.microsoft.com/azure/app-service/overview-managed-identity.
 */
#include <string.h>
#include <unistd.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "codec/json.h"

#define IMDS      "http://169.254.169.254"
#define IMDS_PATH "/metadata/identity/oauth2/token?api-version=2018-02-01"

enum {
    MAX_RESPONSE = 1 << 20,
    PROBE_S = 1,
    TRIES = 3,
    TRIES_OF_GONE = 7, /* 410: the service is being updated, which takes up to 70 s */
    GONE_MS = 10000,
};

/* ---- requests ---- */

/* Appends "&name=value", encoded. */
static void add_parameter(struct act_buf *url, const char *name, const char *value)
{
    if (!value)
        return;
    ACT_AUTOFREE char *encoded = http_encode(value, false);
    act_buf_addf(url, "&%s=%s", name, encoded);
}

static void managed_get(struct token_ask *ask, const char *base, const char *client_name, const char *client,
                        void (*ended)(struct http_call *))
{
    ACT_AUTOFREE char *resource = token_resource(ask->want.scope);
    struct act_buf url = {0};

    act_buf_adds(&url, base);
    add_parameter(&url, "resource", resource);
    add_parameter(&url, client_name, client);
    http_call_release(&ask->call);
    ask->call = (struct http_call){.method = "GET",
                                   .url = act_buf_steal(&url),
                                   .max_body = MAX_RESPONSE,
                                   .direct = true,
                                   .done = ended,
                                   .arg = ask};
}

static void managed_answered(struct http_call *call)
{
    token_settle(call->arg);
}

/* ---- hosted: the environment names an endpoint ---- */

static void ask_app_service(struct token_ask *ask)
{
    ACT_AUTOFREE char *base = act_sprintf("%s?api-version=2019-08-01", act_env("IDENTITY_ENDPOINT"));

    managed_get(ask, base, "client_id", act_env("AZURE_CLIENT_ID"), managed_answered);
    http_header_set(&ask->call.headers, "X-IDENTITY-HEADER", act_env("IDENTITY_HEADER"));
    http_start(ask->http, &ask->call);
}

static const char *azureml_client(void)
{
    const char *client = act_env("AZURE_CLIENT_ID");

    return client ? client : act_env("DEFAULT_IDENTITY_CLIENT_ID");
}

static void ask_azureml(struct token_ask *ask)
{
    ACT_AUTOFREE char *base = act_sprintf("%s?api-version=2017-09-01", act_env("MSI_ENDPOINT"));

    managed_get(ask, base, "clientid", azureml_client(), managed_answered);
    http_header_set(&ask->call.headers, "secret", act_env("MSI_SECRET"));
    http_header_set(&ask->call.headers, "Metadata", "true");
    http_start(ask->http, &ask->call);
}

static bool has_app_service(void)
{
    return act_env("IDENTITY_ENDPOINT") && act_env("IDENTITY_HEADER");
}

static bool has_azureml(void)
{
    return act_env("MSI_ENDPOINT") && act_env("MSI_SECRET");
}

/* ---- virtual machines: the metadata service ---- */

static const char *imds_host(void)
{
    const char *host = act_env("AZURE_POD_IDENTITY_AUTHORITY_HOST");

    return host ? host : IMDS;
}

int64_t token_imds_delay_ms(int status, int tries)
{
    if (status == 410)
        return tries < TRIES_OF_GONE ? GONE_MS : -1;
    if (status != 404 && status != 408 && status != 429 && status < 500)
        return -1;
    return tries < TRIES ? (int64_t)1000 << (tries - 1) : -1;
}

static void send_to_imds(void *arg);

static void imds_answered(struct http_call *call)
{
    struct token_ask *ask = call->arg;
    int64_t delay_ms = call->rc == 0 ? token_imds_delay_ms(call->status, ++ask->tries) : -1;

    if (delay_ms >= 0) {
        engine_timer(http_engine(ask->http), delay_ms, send_to_imds, ask);
    } else if (call->rc == 0 && call->status == 400) {
        struct act_error why;
        token_describe_response(call, "this machine has no such identity", &why);
        token_absent(ask, "%s", act_error_text(&why));
    } else {
        token_settle(ask);
    }
}

static void send_to_imds(void *arg)
{
    struct token_ask *ask = arg;
    ACT_AUTOFREE char *base = act_sprintf("%s" IMDS_PATH, imds_host());

    managed_get(ask, base, "client_id", act_env("AZURE_CLIENT_ID"), imds_answered);
    ask->call.no_retry = true;
    http_header_set(&ask->call.headers, "Metadata", "true");
    http_start(ask->http, &ask->call);
}

/* Azure's service refuses a request without the header, with a JSON error. Other clouds have their own service at
 * this address, and Docker Desktop answers there, too. */
static bool is_azure(const struct http_call *call)
{
    CODEC_AUTOJSON json_t *response = token_json_of(call);
    bool is_busy = call->status == 408 || call->status == 410 || call->status == 429 || call->status >= 500;

    return is_busy || call->status == 200 || codec_json_str(response, "error", NULL);
}

static void probed(struct http_call *call)
{
    struct token_ask *ask = call->arg;

    if (call->rc < 0)
        token_absent(ask, "this machine has none, no metadata service answers");
    else if (!is_azure(call))
        token_absent(ask, "this machine has none, its metadata service is not Azure's (HTTP %d)", call->status);
    else
        send_to_imds(ask);
}

static void ask_imds(struct token_ask *ask)
{
    struct http_options once = {.connect_timeout_s = PROBE_S, .stall_timeout_s = PROBE_S, .max_retries = -1};

    ask->probe = http_new(http_engine(ask->http), &once);
    ask->call = (struct http_call){.method = "GET",
                                   .url = act_sprintf("%s" IMDS_PATH, imds_host()),
                                   .no_retry = true,
                                   .direct = true,
                                   .max_body = MAX_RESPONSE,
                                   .done = probed,
                                   .arg = ask};
    http_start(ask->probe, &ask->call);
}

/* ---- the sources ---- */

/* The cache may be on a file system that machines share, each with an identity of its own. */
static char *machine(const char *client)
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    return act_sprintf("%s|%s", host, client ? client : "");
}

static char *own_identity(const struct token_want *want)
{
    (void)want;
    return machine(act_env("AZURE_CLIENT_ID"));
}

static char *azureml_identity(const struct token_want *want)
{
    (void)want;
    return machine(azureml_client());
}

#define MANAGED .credential = "ManagedIdentityCredential", .is_for_jobs = true, .has_half_life = true

const struct token_source token_app_service = {.name = "managed identity (IDENTITY_ENDPOINT)",
                                               MANAGED,
                                               .is_set = has_app_service,
                                               .identity = own_identity,
                                               .ask = ask_app_service};

const struct token_source token_azureml = {.name = "managed identity (MSI_ENDPOINT)",
                                           MANAGED,
                                           .is_set = has_azureml,
                                           .identity = azureml_identity,
                                           .ask = ask_azureml};

const struct token_source token_imds = {.name = "managed identity", MANAGED, .identity = own_identity, .ask = ask_imds};
