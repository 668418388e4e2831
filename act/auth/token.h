/* token.h - access tokens of Microsoft Entra, from the sources that the environment offers.
 *
 * One of these sources issues a token, the first that is set up:
 *
 *   client secret     AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET
 *   federated token   AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE
 *   managed identity  IDENTITY_ENDPOINT and IDENTITY_HEADER (App Service), MSI_ENDPOINT and MSI_SECRET (AzureML)
 *   device login      what 'a login --device-code' left in the cache
 *   virtual machine   the metadata service answers (its address: AZURE_POD_IDENTITY_AUTHORITY_HOST)
 *   Azure CLI         'az login' was done
 *
 * The first three are settings: if one is set up, its refusal is final. The others are tried in turn.
 * AZURE_TOKEN_CREDENTIALS (prod, dev, or the name of a credential, as the official libraries know it) limits which are
 * looked at. AZURE_CLIENT_ID also names a managed identity that a user assigned.
 *
 * Tokens are kept in <act_cache_dir()>/tokens.json (0600), which all processes of the user share: of many that need the
 * same token, one asks for it. It is renewed five minutes before it ends, that of a managed identity after half of its
 * life. An unusable cache only costs time and a warning.
 *
 * Everything runs on the engine. No token, secret or code goes into arguments, traces or error texts.
 *
 * Source: learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow, v2-oauth2-device-code (RFC
 * 8628), learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token.
 */
#ifndef ACT_AUTH_TOKEN_H
#define ACT_AUTH_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/cloud.h"
#include "base/error.h"

struct http;

/* The tokens of one process. */
struct tokens;
struct tokens *tokens_new(struct http *http);
/* Frees tokens with nothing under way, before their http; tokens may be NULL. */
void tokens_free(struct tokens *tokens);

/* A token that is wanted. Strings stay the caller's; those of a call that is started must live until done. */
struct token_want {
    const struct auth_cloud *cloud;
    const char *scope;  /* "https://storage.azure.com/.default" */
    const char *tenant; /* where none is set: the tenant to ask, as the service named it; NULL: not known */
    bool use_cli;       /* only the Azure CLI is asked */
};

struct token_call {
    struct token_want want;
    void (*done)(struct token_call *call); /* on the loop, exactly once */
    void *arg;
    int rc; /* 0: token_now() has one. -ACT_DENIED: there is no credential, or it was refused */
    struct act_error error;
};
/* Makes sure that there is a token that need not be renewed yet. Calls for the same token wait for one refresh. */
void token_start(struct tokens *tokens, struct token_call *call);
/* Does the same, and runs the engine until there is one. */
int token_wait(struct tokens *tokens, const struct token_want *want, struct act_error *err) ACT_NODISCARD;

/* Tells whether there is a token that need not be renewed yet, so that token_start() is not needed. */
bool token_is_fresh(struct tokens *tokens, const struct token_want *want);
/* Returns the token, as long as it is valid; NULL: there is none. The text is secret, and stays until the loop runs
 * again. */
const char *token_now(struct tokens *tokens, const struct token_want *want);
/* Forgets a token that a service refused (401), here and in the cache. */
void token_refused(struct tokens *tokens, const struct token_want *want, const char *text);

/* The owner of a token, by its claims, which nobody has verified: for display only. Members may be NULL. */
struct token_identity {
    char *name; /* of a user: "ann@contoso.com" */
    char *app_id, *object_id, *tenant;
    char *audience;
    char *source; /* "Azure CLI" */
    int64_t expires_s;
};
/* Reads it from a token; false: text is not a JSON web token. */
bool token_read_identity(const char *text, struct token_identity *out);
void token_identity_release(struct token_identity *identity);
/* Gets a token and says whose it is. */
int token_identify(struct tokens *tokens, const struct token_want *want, struct token_identity *out,
                   struct act_error *err) ACT_NODISCARD;

/* Logs in with a device code: show(arg, message) tells the user where to type it, then this waits for the user. tenant
 * NULL: AZURE_TENANT_ID, else any. The application is that of the Azure CLI unless ACT_LOGIN_CLIENT_ID names another.
 * It keeps the refresh token in the cache, and fails if that cannot be written. */
int token_device_login(struct http *http, const struct token_want *want, const char *tenant,
                       void (*show)(void *arg, const char *message), void *arg, struct act_error *err) ACT_NODISCARD;

/* Forgets everything in the cache, or with dry_run nothing. *out_had: it was not empty. */
int token_forget_all(bool dry_run, bool *out_had, struct act_error *err) ACT_NODISCARD;

/* The challenge of a 401, as WWW-Authenticate has it. */
struct token_challenge {
    char *tenant; /* of the account; NULL: it does not say */
    char *claims; /* base64: conditional access wants more proof, which only a new login gives; NULL: none */
};
void token_read_challenge(const char *header, struct token_challenge *out);
/* Tells whether to ask the tenant of the challenge: none is set, and it is not that of the refused token text. */
bool token_follows(const struct token_challenge *challenge, const struct token_want *want, const char *text);
/* Tells whether a token is of that tenant, by its claims, which nobody has verified. */
bool token_is_of_tenant(const char *text, const char *tenant);
void token_challenge_release(struct token_challenge *challenge);
/* Returns the command that gives the proof: "az login --claims-challenge ... --scope ...". New string. */
char *token_claims_command(const struct token_challenge *challenge, const struct token_want *want);

#endif
