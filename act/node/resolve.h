/* resolve.h - the addresses of a host name, for a program without the modules of the system's resolver: those that
 * /etc/hosts has, else those that DNS has, with the name servers and the search list of /etc/resolv.conf
 * (resolv.conf(5)), which is how Kubernetes makes names known to its pods. */
#ifndef ACT_NODE_RESOLVE_H
#define ACT_NODE_RESOLVE_H

#include <stdint.h>

#include "base/text.h"

/* Appends them as numbers, IPv4 first; none: the name is not known, or nobody answers within some seconds. */
void resolve_host(const char *name, struct act_strv *out);

/* Appends the addresses of a name in a text of the form of /etc/hosts. */
void resolve_in_hosts(const char *hosts, const char *name, struct act_strv *out);

/* Appends the addresses in a name server's response (RFC 1035; RFC 3596 for IPv6). type: 1 (A) or 28 (AAAA). */
void resolve_in_answer(const uint8_t *answer, int len, int type, struct act_strv *out);

#endif
