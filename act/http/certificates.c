/* certificates.c - where this machine keeps the CA certificates that it trusts. A static libcurl has no default path,
 * and it differs between distributions. */
#include <stdlib.h>
#include <unistd.h>

#include "base/dirs.h"
#include "http/http_internal.h"

const char *http_ca_file(void)
{
    static const char *const variables[] = {"ACT_CA_FILE", "SSL_CERT_FILE"};
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* RHEL, Fedora */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, newer */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        "/etc/ssl/cert.pem",                                 /* OpenSSL's default elsewhere */
    };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *file = act_env(variables[i]);
        if (file)
            return file;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}
