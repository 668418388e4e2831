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

/* Exactly one of key (base64) and sas (a query string without '?') is used, the key when both are given
 * unless prefer is AUTH_SAS. A malformed key is -ACT_CONFIG. Secrets are wiped by auth_free(). */
int auth_new(const char *account, const char *key, const char *sas, enum auth_kind prefer, struct auth **out,
             struct act_error *err) ACT_NODISCARD;
/* Requests carry a token for want, which is copied except for the cloud. tokens must outlive it. */
struct auth *auth_new_login(const char *account, struct tokens *tokens, const struct token_want *want);
void auth_free(struct auth *auth);
enum auth_kind auth_kind_of(const struct auth *auth);
const char *auth_account(const struct auth *auth);

/* Whether requests can be signed now; if not, auth_get_ready() starts to get a token. call is filled in except for
 * done and arg. Always true except for a login. */
bool auth_is_ready(const struct auth *auth);
void auth_get_ready(const struct auth *auth, struct token_call *call);
/* "Bearer <token>" of a login that is ready, for the source of a copy. New string, secret; NULL: none. */
char *auth_bearer(const struct auth *auth);
/* Takes note that a service responded 401 to a request with this Authorization: forgets the token, and if no tenant
 * is set and the service named another one than the token's, uses that one from now on. */
void auth_refused(struct auth *auth, const char *authorization, const struct token_challenge *challenge);
const struct token_want *auth_want(const struct auth *auth);

/* Puts the credential on a request that is about to be sent: x-ms-date and Authorization, or the SAS after
 * the URL (once). clock_offset_s is added to the local time. As http_call.sign. */
int auth_sign(const struct auth *auth, struct http_call *call, int64_t clock_offset_s,
              struct act_error *err) ACT_NODISCARD;

/* The string to sign and the signature of a request as they stand, for tests. New strings. */
char *auth_string_to_sign(const char *account, const struct http_call *call);
char *auth_signature(const struct auth *auth, const char *string_to_sign);

/* A service SAS (sv=2021-12-02) for one blob (blob != NULL) or the container, signed with the account key.
 * permissions in the documented order ("racwdl" subset), times in unix seconds, start 0: none; https_only.
 * Without a key: -ACT_DENIED. New string, a query without '?'. */
int auth_service_sas(const struct auth *auth, const char *container, const char *blob, const char *permissions,
                     int64_t start_s, int64_t expiry_s, bool https_only, char **out,
                     struct act_error *err) ACT_NODISCARD;

/* Likewise for a share of Azure Files (path NULL), or a file in it. Permissions in the order "rcwdl". */
int auth_share_sas(const struct auth *auth, const char *share, const char *path, const char *permissions,
                   int64_t start_s, int64_t expiry_s, bool https_only, char **out, struct act_error *err) ACT_NODISCARD;

/* The key that a service gives a login to sign with, valid for at most 7 days. Members as it sent them. */
struct auth_delegation {
    char *object_id, *tenant, *start, *expiry, *service, *version;
    uint8_t *key; /* secret */
    size_t key_len;
    int64_t expiry_s;
};
void auth_delegation_release(struct auth_delegation *delegation);

/* The same SAS for a login, signed with such a key; expiry_s lies before its end. New string. */
char *auth_delegation_sas(const struct auth_delegation *delegation, const char *account, const char *container,
                          const char *blob, const char *permissions, int64_t start_s, int64_t expiry_s,
                          bool https_only);

#endif
