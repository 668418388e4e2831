/* trusted.h - says where credentials may go: tokens of a login, and the key or SAS of the environment.
 *
 * They go to Azure's own hosts (over https) and to the hosts that the user trusts: 'trusted_hosts' in the user's own
 * configuration file and ACT_TRUSTED_HOSTS (separated by commas or blanks). A project's files have no say, as a project
 * may come from anybody. An entry is a name, an address (IPv6 in brackets), or "*.domain" for all names below a domain;
 * a port behind it (":10000") limits it to that one.
 *
 * This machine is a host like any other: whoever else works on it may listen on its ports. Nothing is looked up: a name
 * counts as what it says, wherever it leads. Over https the certificate proves it; in clear text the user has trusted
 * the name, or it is localhost, which libcurl never looks up.
 */
#ifndef ACT_AUTH_TRUSTED_H
#define ACT_AUTH_TRUSTED_H

#include <stdbool.h>

#include "auth/cloud.h"
#include "base/error.h"

/* Where the credential of a request comes from. */
enum auth_owner {
    AUTH_OF_NOBODY, /* there is none */
    AUTH_OF_FILE,   /* it is in the file that names the address: it may go there, but for plain http elsewhere */
    AUTH_OF_USER,   /* of a login, or of the environment */
};

/* An address, and what refers requests to it. */
struct auth_address {
    const char *url;
    const struct auth_cloud *cloud; /* that the credential is for; NULL: any */
    const char *said_by;            /* for messages: "'endpoint' in aux_data/configs/a.yaml" */
    enum auth_owner owner;
    bool is_own; /* the user names it, outside of all projects: what is on this machine may have the credential */
};

/* Refuses, with -ACT_DENIED, an address where the credential may not go. The error names the host, who wants it, and
 * the line to add if the user trusts it. If the user's list is needed but cannot be read, that is an error, too. */
int auth_check_address(const struct auth_address *address, struct act_error *err) ACT_NODISCARD;

/* Tells whether a URL leads to one of the hosts of cloud (NULL: of any cloud of Azure) over https, or to a host that
 * the user trusts. Returns 1, 0, or an error if the user's list cannot be read. */
int auth_trusts(const struct auth_cloud *cloud, const char *url, struct act_error *err) ACT_NODISCARD;

#endif
