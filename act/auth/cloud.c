/* cloud.c - which cloud it is. */
#include "auth/cloud.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "http/http.h"

static const struct auth_cloud clouds[] = {
    {"AzureCloud", "AzurePublicCloud", "https://login.microsoftonline.com",
     "https://management.azure.com/.default", "https://ml.azure.com/.default", "core.windows.net"},
    {"AzureUSGovernment", "AzureUSGovernmentCloud", "https://login.microsoftonline.us",
     "https://management.usgovcloudapi.net/.default", "https://ml.azure.us/.default",
     "core.usgovcloudapi.net"},
    {"AzureChinaCloud", "AzureChinaCloud", "https://login.chinacloudapi.cn",
     "https://management.chinacloudapi.cn/.default", "https://ml.azure.cn/.default", "core.chinacloudapi.cn"},
};

enum { CLOUDS = sizeof(clouds) / sizeof(clouds[0]) };

static const char *setting(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static const struct auth_cloud *by_endpoint(const char *endpoint)
{
    const char *host = endpoint ? strstr(endpoint, "://") : NULL;

    if (!host)
        return NULL;
    ACT_AUTOFREE char *name = act_strndup(host + 3, strcspn(host + 3, ":/"));
    for (size_t i = 0; i < CLOUDS; i++) {
        size_t n = strlen(clouds[i].suffix), len = strlen(name);
        if (len > n && name[len - n - 1] == '.' && strcasecmp(name + len - n, clouds[i].suffix) == 0)
            return &clouds[i];
    }
    return NULL;
}

static const struct auth_cloud *by_name(const char *name)
{
    for (size_t i = 0; i < CLOUDS; i++)
        if (strcasecmp(name, clouds[i].name) == 0 || strcasecmp(name, clouds[i].other) == 0)
            return &clouds[i];
    return NULL;
}

/* Some give the host alone, some with a slash behind it. New string. */
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
    const char *name = setting("AZURE_CLOUD"), *authority = setting("AZURE_AUTHORITY_HOST");

    *out = by_endpoint(endpoint);
    if (!*out && name && !(*out = by_name(name)))
        return act_error_set(err, ACT_CONFIG, "AZURE_CLOUD is '%s'; it can be %s, %s or %s", name,
                             clouds[0].name, clouds[1].name, clouds[2].name);
    if (!*out && authority)
        *out = by_authority(authority);
    if (!*out)
        *out = &clouds[0];
    return 0;
}

int auth_cloud_authority(const struct auth_cloud *cloud, char **out, struct act_error *err)
{
    const char *given = setting("AZURE_AUTHORITY_HOST");
    char *url = normal_authority(given ? given : cloud->authority);

    if (!http_is_private(url)) {
        int rc = act_error_set(
            err, ACT_CONFIG,
            "AZURE_AUTHORITY_HOST is '%s': secrets go there, so it must begin with 'https://'", url);
        free(url);
        return rc;
    }
    *out = url;
    return 0;
}
