/* trusted.c - whether a host is Azure's, this machine, or trusted by the user. */
#include "auth/trusted.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/config.h"
#include "http/http.h"

#define BELOW      "*."
#define SEPARATORS " \t\r\n,;"

/* "*.example.com" are the names below it, but not example.com itself. 1 or 0, or an error when the entry is no host. */
static int matches(const char *host, const char *entry, struct act_error *err)
{
    bool below = act_starts_with(entry, BELOW);
    const char *name = below ? entry + strlen(BELOW) : entry;
    ACT_AUTOFREE char *url = act_sprintf("https://%s", name);
    ACT_AUTOFREE char *wanted = http_host(url);
    size_t n = strlen(host), len = strlen(name);

    if (!wanted || strcasecmp(wanted, name) != 0)
        return act_error_set(err, ACT_CONFIG,
                             "'%s' among the trusted hosts is none: it must be a name ('storage.example.com'), "
                             "'*.' and a domain for all names in it, or an address, without a port",
                             entry);
    if (!below)
        return strcmp(host, wanted) == 0;
    return n > len + 1 && host[n - len - 1] == '.' && strcmp(host + n - len, wanted) == 0;
}

static int is_in_list(const char *host, const struct act_strv *list, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++)
        rc = matches(host, list->v[i], err);
    return rc;
}

static void add_hosts_of_environment(struct act_strv *list)
{
    const char *text = getenv("ACT_TRUSTED_HOSTS");

    while (text && *(text += strspn(text, SEPARATORS))) {
        size_t n = strcspn(text, SEPARATORS);
        act_strv_take(list, act_strndup(text, n));
        text += n;
    }
}

static int user_trusts(const char *host, struct act_error *err)
{
    ACT_AUTO(config_user) user = {0};
    int rc = config_user_read(&user, err);

    if (rc == 0) {
        add_hosts_of_environment(&user.trusted_hosts);
        rc = is_in_list(host, &user.trusted_hosts, err);
    }
    return rc;
}

int auth_trusts(const struct auth_cloud *cloud, const char *url, struct act_error *err)
{
    ACT_AUTOFREE char *host = http_host(url);

    if (!host)
        return 0;
    if (http_is_here(url) || (auth_cloud_has(cloud, host) && http_is_private(url)))
        return 1;
    return user_trusts(host, err);
}

static int refuse_address(const struct auth_address *a, struct act_error *err)
{
    ACT_AUTOFREE char *host = http_host(a->url);
    ACT_AUTOFREE char *shown = http_redact_url(a->url);
    ACT_AUTOFREE char *file = config_user_file();

    if (!host)
        return act_error_set(err, ACT_DENIED, "%s is '%.200s', which names no host that a credential may go to",
                             a->said_by, shown);
    act_error_set(err, ACT_DENIED,
                  a->owner == AUTH_OF_USER && !auth_cloud_has(a->cloud, host)
                      ? "%s is '%.200s': your credentials go to Azure's own hosts and to those that you trust, "
                        "and '%s' is none of them"
                      : "%s is '%.200s': not encrypted, so everybody on the way could read the credential, and "
                        "'%s' is not a host that you trust",
                  a->said_by, shown, host);
    return act_error_hint(err, "if it is to have them, add 'trusted_hosts: [\"%s\"]' to '%s'", host, file);
}

int auth_check_address(const struct auth_address *address, struct act_error *err)
{
    if (address->owner == AUTH_OF_NOBODY || (address->owner == AUTH_OF_FILE && http_is_private(address->url)))
        return 0;
    int rc = auth_trusts(address->cloud, address->url, err);
    if (rc < 0)
        return rc;
    return rc ? 0 : refuse_address(address, err);
}
