/* host.h - tells which names of hosts mean this machine. */
#ifndef ACT_BASE_HOST_H
#define ACT_BASE_HOST_H

#include <stdbool.h>

/* Tells whether the host of a URL is this machine, whatever a resolver says: localhost and names below it, 127.x.x.x,
 * [::1]. */
bool act_host_is_loopback(const char *host);
/* Tells whether host is an IPv4 address that begins with start ("169.254."), and not a name that does. */
bool act_host_is_below(const char *host, const char *start);

#endif
