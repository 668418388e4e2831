/* trusted.c - decides whether a host is Azure's, or one that the user trusts. */
#include "auth/trusted.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/config.h"
#include "http/http.h"

#define BELOW      "*."
#define SEPARATORS " \t\r\n,;"

/* The host and port to which a URL leads. */
struct trusted_target {
    char *host;
    int port;
};

static void trusted_target_release(struct trusted_target *target)
{
    free(target->host);
}

/* Returns where the port of "host:10000" begins, with its colon, or else the end of name. The address in "[::1]" has
 * colons as well. */
static const char *port_of_entry(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon && !strchr(colon, ']') ? colon : name + strlen(name);
}

static bool trusted_is_port(const char *text)
{
    return *text && strlen(text) <= strlen("65535") && text[strspn(text, "0123456789")] == '\0';
}

static bool is_host_of(const char *host, const char *wanted, bool below)
{
    size_t n = strlen(host), len = strlen(wanted);

    if (!below)
        return strcmp(host, wanted) == 0;
    return n > len + 1 && host[n - len - 1] == '.' && strcmp(host + n - len, wanted) == 0;
}

/* Tells whether an entry matches the target: 1, 0, or an error if the entry is not a host. "*.example.com" matches the
 * names below it, but not example.com itself. */
static int trusted_matches(const struct trusted_target *target, const char *entry, struct act_error *err)
{
    bool below = act_starts_with(entry, BELOW);
    const char *begin = below ? entry + strlen(BELOW) : entry, *port = port_of_entry(begin);
    ACT_AUTOFREE char *name = act_strndup(begin, (size_t)(port - begin));
    ACT_AUTOFREE char *url = act_sprintf("https://%s", name);
    ACT_AUTOFREE char *wanted = http_host(url);

    if (!wanted || strcasecmp(wanted, name) != 0 || (*port && !trusted_is_port(port + 1)))
        return act_error_set(err, ACT_CONFIG,
                             "'%s' in trusted_hosts is not a host: it must be a name ('storage.example.com'), "
                             "'*.' and a domain for all names in it, or an address; a port may follow (':10000')",
                             entry);
    return is_host_of(target->host, wanted, below) && (!*port || atoi(port + 1) == target->port);
}

static int is_in_list(const struct trusted_target *target, const struct act_strv *list, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++)
        rc = trusted_matches(target, list->v[i], err);
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

static int user_trusts(const struct trusted_target *target, struct act_error *err)
{
    ACT_AUTO(config_user) user = {0};
    int rc = config_user_read(&user, err);

    if (rc == 0) {
        add_hosts_of_environment(&user.trusted_hosts);
        rc = is_in_list(target, &user.trusted_hosts, err);
    }
    return rc;
}

int auth_trusts(const struct auth_cloud *cloud, const char *url, struct act_error *err)
{
    ACT_AUTO(trusted_target) target = {.host = http_host(url), .port = http_port(url)};

    if (!target.host)
        return 0;
    if (auth_cloud_has(cloud, target.host) && http_is_private(url))
        return 1;
    return user_trusts(&target, err);
}

/* Returns the entry to add, a new string. On this machine it has the port, because others may be other users'. */
static char *entry_for(const char *url, const char *host)
{
    return http_is_here(url) ? act_sprintf("%s:%d", host, http_port(url)) : act_strdup(host);
}

/* Sets the error that says why not. */
static void say_why(const struct auth_address *a, const char *host, const char *entry, struct act_error *err)
{
    ACT_AUTOFREE char *shown = http_redact_url(a->url);

    if (http_is_here(a->url))
        act_error_set(err, ACT_DENIED,
                      "%s is '%.200s': any user of this machine may listen there, so your credentials go to '%s' only "
                      "if you trust it",
                      a->said_by, shown, entry);
    else if (a->owner == AUTH_OF_USER && !auth_cloud_has(a->cloud, host))
        act_error_set(err, ACT_DENIED,
                      "%s is '%.200s': your credentials go to Azure's own hosts and to those that you trust, and '%s' "
                      "is none of them",
                      a->said_by, shown, host);
    else
        act_error_set(err, ACT_DENIED,
                      "%s is '%.200s': not encrypted, so everybody on the way could read the credential, and '%s' is "
                      "not a host that you trust",
                      a->said_by, shown, host);
}

static int refuse_address(const struct auth_address *a, struct act_error *err)
{
    ACT_AUTOFREE char *host = http_host(a->url);
    ACT_AUTOFREE char *file = config_user_file();

    if (!host) {
        ACT_AUTOFREE char *shown = http_redact_url(a->url);
        return act_error_set(err, ACT_DENIED, "%s is '%.200s', which names no host that a credential may go to",
                             a->said_by, shown);
    }
    ACT_AUTOFREE char *entry = entry_for(a->url, host);
    say_why(a, host, entry, err);
    return act_error_hint(err, "if it is to have them, add 'trusted_hosts: [\"%s\"]' to '%s'", entry, file);
}

int auth_check_address(const struct auth_address *address, struct act_error *err)
{
    if (address->owner == AUTH_OF_NOBODY || (address->owner == AUTH_OF_FILE && http_is_private(address->url)) ||
        (address->is_own && http_is_here(address->url)))
        return 0;
    int rc = auth_trusts(address->cloud, address->url, err);
    if (rc < 0)
        return rc;
    return rc ? 0 : refuse_address(address, err);
}
