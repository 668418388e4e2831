/* auth.h - credentials for Azure Blob Storage: shared key and shared access signatures.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key, create-service-sas.
 */
#ifndef ACT_AUTH_AUTH_H
#define ACT_AUTH_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "http/http.h"

enum auth_kind { AUTH_ANONYMOUS, AUTH_KEY, AUTH_SAS };

struct auth;

/* Exactly one of key (base64) and sas (a query string without '?') is used, the key when both are given
 * unless prefer is AUTH_SAS. A malformed key is -ACT_CONFIG. Secrets are wiped by auth_free(). */
int auth_new(const char *account, const char *key, const char *sas, enum auth_kind prefer, struct auth **out,
             struct act_error *err) ACT_NODISCARD;
void auth_free(struct auth *auth);
enum auth_kind auth_kind_of(const struct auth *auth);
const char *auth_account(const struct auth *auth);

/* Puts the credential on a request that is about to be sent: x-ms-date and Authorization, or the SAS behind
 * the URL (once). clock_offset_s is added to the local time. As http_call.sign. */
int auth_sign(const struct auth *auth, struct http_call *call, int64_t clock_offset_s,
              struct act_error *err) ACT_NODISCARD;

/* The string to sign and the signature of a request as they stand, for tests. New strings. */
char *auth_string_to_sign(const char *account, const struct http_call *call);
char *auth_signature(const struct auth *auth, const char *string_to_sign);

/* A service SAS (sv=2021-12-02) for one blob (blob != NULL) or the container, signed with the account key.
 * permissions in the documented order ("racwdl" subset), times in unix seconds, start 0: none; https_only.
 * Without a key: -ACT_DENIED. New string, a query without '?'. */
int auth_service_sas(const struct auth *auth, const char *container, const char *blob,
                     const char *permissions, int64_t start_s, int64_t expiry_s, bool https_only, char **out,
                     struct act_error *err) ACT_NODISCARD;

#endif
