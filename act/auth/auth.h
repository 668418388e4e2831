/* auth.h - credentials for Azure Blob Storage and Azure Files: shared key, shared access signatures, and the token of a
 * login.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key, create-service-sas,
 * create-user-delegation-sas, authorize-with-azure-active-directory.
 */
#ifndef ACT_AUTH_AUTH_H
#define ACT_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/token.h"
#include "base/error.h"

struct http_call;

enum auth_kind { AUTH_ANONYMOUS, AUTH_KEY, AUTH_SAS, AUTH_LOGIN };

struct auth;

/* Makes credentials of a key (base64) or a sas (a query string without '?'); of both it uses the key, unless prefer is
 * AUTH_SAS. A malformed key is -ACT_CONFIG. auth_free() wipes secrets. */
int auth_new(const char *account, const char *key, const char *sas, enum auth_kind prefer, struct auth **out,
             struct act_error *err) ACT_NODISCARD;
/* Makes credentials whose requests carry a token for want, which it copies except for the cloud. tokens must outlive
 * them. */
struct auth *auth_new_login(const char *account, struct tokens *tokens, const struct token_want *want);
void auth_free(struct auth *auth);
enum auth_kind auth_kind_of(const struct auth *auth);
const char *auth_account(const struct auth *auth);

/* Tells whether requests can be signed now, as they always can except with a login. */
bool auth_is_ready(const struct auth *auth);
/* Starts to get a token if they cannot. Fills in call except for done and arg. */
void auth_get_ready(const struct auth *auth, struct token_call *call);
/* Returns "Bearer <token>" of a login that is ready, for the source of a copy: a new string, secret; NULL: none. */
char *auth_bearer(const struct auth *auth);
/* Takes note that a service responded 401 to a request with this Authorization: forgets the token, and if no tenant
 * is set and the service named another one than the token's, uses that one from now on. */
void auth_refused(struct auth *auth, const char *authorization, const struct token_challenge *challenge);
const struct token_want *auth_want(const struct auth *auth);

/* Puts the credential on a request that is about to be sent, for http_call.sign: x-ms-date and Authorization, or the
 * SAS after the URL (once). Adds clock_offset_s to the local time. */
int auth_sign(const struct auth *auth, struct http_call *call, int64_t clock_offset_s,
              struct act_error *err) ACT_NODISCARD;

/* Return the string to sign and the signature of a request as they stand, new strings, for tests. */
char *auth_string_to_sign(const char *account, const struct http_call *call);
char *auth_signature(const struct auth *auth, const char *string_to_sign);

/* A SAS that is to be made (sv=2021-12-02). */
struct auth_sas {
    bool is_share;             /* of Azure Files */
    const char *container;     /* or the share */
    const char *name;          /* of a blob or a file; NULL: all of the container or share */
    const char *permissions;   /* a part of "racwdl", of a share of "rcwdl", in this order */
    int64_t start_s, expiry_s; /* Unix seconds; start_s 0: it has no start */
    bool https_only;
};

/* Makes a service SAS, signed with the account key. -ACT_DENIED: there is no key. *out: a new string, a query without
 * '?'. */
int auth_service_sas(const struct auth *auth, const struct auth_sas *sas, char **out,
                     struct act_error *err) ACT_NODISCARD;

/* The key that a service gives a login to sign with, valid for at most 7 days. Members as it sent them. */
struct auth_delegation {
    char *object_id, *tenant, *start, *expiry, *service, *version;
    uint8_t *key; /* secret */
    size_t key_len;
    int64_t expiry_s;
};
void auth_delegation_release(struct auth_delegation *delegation);

/* Returns a SAS as auth_service_sas() makes it, for a container, signed with such a key of a login, a new string. Its
 * expiry_s must lie before the end of the key. */
char *auth_delegation_sas(const struct auth_delegation *delegation, const char *account, const struct auth_sas *sas);

#endif
