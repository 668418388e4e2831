/* cloud.c - the table of clouds, and which of them it is. */
#include "auth/cloud.h"

#include <string.h>
#include <strings.h>

#include "base/dirs.h"
#include "base/text.h"
#include "http/http.h"

static const struct auth_cloud clouds[] = {
    {"AzureCloud", "AzurePublicCloud", "https://login.microsoftonline.com", "https://management.azure.com/.default",
     "https://ml.azure.com/.default", "core.windows.net", "management.azure.com", "api.azureml.ms", "vault.azure.net",
     "https://vault.azure.net/.default", "storage.azure.net"},
    {"AzureUSGovernment", "AzureUSGovernmentCloud", "https://login.microsoftonline.us",
     "https://management.usgovcloudapi.net/.default", "https://ml.azure.us/.default", "core.usgovcloudapi.net",
     "management.usgovcloudapi.net", "api.ml.azure.us", "vault.usgovcloudapi.net",
     "https://vault.usgovcloudapi.net/.default", NULL},
    {"AzureChinaCloud", "AzureChinaCloud", "https://login.chinacloudapi.cn",
     "https://management.chinacloudapi.cn/.default", "https://ml.azure.cn/.default", "core.chinacloudapi.cn",
     "management.chinacloudapi.cn", "api.ml.azure.cn", "vault.azure.cn", "https://vault.azure.cn/.default", NULL},
};

enum { CLOUDS = sizeof(clouds) / sizeof(clouds[0]) };

/* Tells whether a host is this domain, or lies in it. */
static bool cloud_is_in(const char *host, const char *domain)
{
    size_t n = strlen(domain), len = strlen(host);

    return len >= n && strcasecmp(host + len - n, domain) == 0 && (len == n || host[len - n - 1] == '.');
}

static bool cloud_has(const struct auth_cloud *cloud, const char *host)
{
    const char *const domains[] = {cloud->suffix, cloud->zone_suffix, cloud->arm_domain, cloud->azureml_domain,
                                   cloud->vault_domain};

    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++)
        if (domains[i] && cloud_is_in(host, domains[i]))
            return true;
    return false;
}

static const struct auth_cloud *by_host(const char *host)
{
    for (size_t i = 0; host && i < CLOUDS; i++)
        if (cloud_has(&clouds[i], host))
            return &clouds[i];
    return NULL;
}

static const struct auth_cloud *by_endpoint(const char *endpoint)
{
    ACT_AUTOFREE char *host = endpoint ? http_host(endpoint) : NULL;

    return by_host(host);
}

bool auth_cloud_has(const struct auth_cloud *cloud, const char *host)
{
    return cloud ? cloud_has(cloud, host) : by_host(host) != NULL;
}

bool auth_cloud_is_vault(const struct auth_cloud *cloud, const char *host)
{
    return cloud_is_in(host, cloud->vault_domain) && strcasecmp(host, cloud->vault_domain) != 0;
}

static const struct auth_cloud *cloud_named(const char *name)
{
    for (size_t i = 0; i < CLOUDS; i++)
        if (strcasecmp(name, clouds[i].name) == 0 || strcasecmp(name, clouds[i].other) == 0)
            return &clouds[i];
    return NULL;
}

/* Returns the authority as a URL without a final slash, a new string: some users give only the host, some add a
 * slash. */
static char *normal_authority(const char *text)
{
    char *url = strstr(text, "://") ? act_strdup(text) : act_sprintf("https://%s", text);
    size_t n = strlen(url);

    while (n && url[n - 1] == '/')
        url[--n] = '\0';
    return url;
}

static const struct auth_cloud *by_authority(const char *text)
{
    ACT_AUTOFREE char *url = normal_authority(text);

    for (size_t i = 0; i < CLOUDS; i++)
        if (strcasecmp(url, clouds[i].authority) == 0)
            return &clouds[i];
    return NULL;
}

int auth_cloud_find(const char *endpoint, const struct auth_cloud **out, struct act_error *err)
{
    const char *name = act_env("AZURE_CLOUD"), *authority = act_env("AZURE_AUTHORITY_HOST");
    const struct auth_cloud *named = name ? cloud_named(name) : NULL;

    if (name && !named)
        return act_error_set(err, ACT_CONFIG, "AZURE_CLOUD is '%s'; it can be %s, %s or %s", name, clouds[0].name,
                             clouds[1].name, clouds[2].name);
    *out = named ? named : by_endpoint(endpoint);
    if (!*out && authority)
        *out = by_authority(authority);
    if (!*out)
        *out = &clouds[0];
    if (auth_cloud_check(*out, endpoint, err) < 0)
        return act_error_hint(err, "AZURE_CLOUD names that one");
    return 0;
}

int auth_cloud_check(const struct auth_cloud *cloud, const char *url, struct act_error *err)
{
    const struct auth_cloud *other = by_endpoint(url);

    if (!other || other == cloud)
        return 0;
    ACT_AUTOFREE char *shown = http_redact_url(url);
    return act_error_set(err, ACT_CONFIG, "'%s' is in %s, but the login is for %s, whose tokens stay there", shown,
                         other->name, cloud->name);
}

int auth_cloud_authority(const struct auth_cloud *cloud, char **out, struct act_error *err)
{
    const char *given = act_env("AZURE_AUTHORITY_HOST");
    ACT_AUTOFREE char *url = normal_authority(given ? given : cloud->authority);
    const struct auth_cloud *other = by_authority(url);

    if (!http_is_private(url))
        return act_error_set(err, ACT_CONFIG,
                             "AZURE_AUTHORITY_HOST is '%s': secrets go there, so it must begin with 'https://'", url);
    if (other && other != cloud)
        return act_error_set(err, ACT_CONFIG,
                             "AZURE_AUTHORITY_HOST is '%s', that of %s; a login for %s is asked of '%s'", url,
                             other->name, cloud->name, cloud->authority);
    *out = act_strdup(url);
    return 0;
}
