/* host.h - which hosts are this machine by their name. */
#ifndef ACT_BASE_HOST_H
#define ACT_BASE_HOST_H

#include <stdbool.h>

/* Whether a host of a URL is this machine, whatever a resolver says: localhost and names below it, 127.x.x.x, [::1]. */
bool act_host_is_loopback(const char *host);
/* Whether it is an IPv4 address that begins so ("169.254."), not a name that does. */
bool act_host_is_below(const char *host, const char *start);

#endif
