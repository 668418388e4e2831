/* host.h - which names of hosts mean this machine, and sockets that only this machine can reach. */
#ifndef ACT_BASE_HOST_H
#define ACT_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* Tells whether the host of a URL is this machine, whatever a resolver says: localhost and names below it, 127.x.x.x,
 * [::1]. */
bool act_host_is_loopback(const char *host);
/* Tells whether host is an IPv4 address that begins with start ("169.254."), and not a name that does. */
bool act_host_is_below(const char *host, const char *start);

/* Listens at 127.0.0.1; *port 0: any that is free, which it becomes. Returns a non-blocking descriptor, which no child
 * inherits, or a negative errno. */
int act_listen_here(uint16_t *port, int backlog);
/* Tells whether the other end of a connection that was accepted there is open, and a process's of this user or root:
 * every user of this machine can connect. By /proc/net/tcp and tcp6; proc(5). */
bool act_is_own_peer(int fd);

#endif
