/* host.c - compares names of hosts by their letters alone, without asking a resolver. */
#include "base/host.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

#define LOCAL       "localhost"
#define BELOW_LOCAL "." LOCAL

bool act_host_is_below(const char *host, const char *start)
{
    return act_starts_with(host, start) && host[strspn(host, "0123456789.")] == '\0';
}

bool act_host_is_loopback(const char *host)
{
    size_t n = strlen(host), below = strlen(BELOW_LOCAL);

    return strcasecmp(host, LOCAL) == 0 || (n > below && strcasecmp(host + n - below, BELOW_LOCAL) == 0) ||
           act_host_is_below(host, "127.") || strcmp(host, "[::1]") == 0;
}
