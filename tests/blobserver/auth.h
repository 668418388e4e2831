/* auth.h - who may do what: shared keys, shared access signatures and tokens, as the service verifies them. */
#ifndef BLOBSERVER_AUTH_H
#define BLOBSERVER_AUTH_H

#include "http.h"

/* Adds an account; false when the key is no base64. The first one starts the list. */
bool auth_add(const char *account, const char *key);
/* The i-th account, or NULL. */
const char *auth_account(size_t i);
void auth_off(void);
/* From now on by the rules of the File service. */
void auth_of_files(void);
bool auth_are_files(void);

/* Checks the credentials of a request and notes in it what they allow. Returns 0, or the status of an error that it
 * put into the reply. */
int auth_check(struct request *r, struct reply *reply);
/* Whether the credentials give one of these permission letters. */
bool auth_allows(const struct request *r, const char *letters);

/* ---- login.c */

/* From now on tokens that are signed with this key (base64) and of this tenant are taken; false: it is no base64. */
bool login_set(const char *key, const char *tenant);
/* As auth_check(), for the value of a bearer token. */
int login_check(struct request *r, struct reply *reply, const char *token);
/* Whether the URL is signed with a key that a login was given. */
bool login_signed(const struct request *r);

#endif
