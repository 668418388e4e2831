/* login.h - who the user is to Azure. */
#ifndef ACT_FLOW_LOGIN_H
#define ACT_FLOW_LOGIN_H

#include <stdbool.h>

#include "auth/token.h"
#include "base/error.h"
#include "flow/flow.h"

/* Who one is to Azure: the identity of a token for the storage of this cluster, from whatever issues one here. Asks
 * when the cache has none. -ACT_DENIED: there is no credential, the text says what was tried. */
int flow_identify(struct flow *flow, struct token_identity *out, struct act_error *err) ACT_NODISCARD;
/* Logs in with a code that is typed into a browser; show() gets the message for the user. As token_device_login(). */
int flow_login(struct flow *flow, const char *tenant, void (*show)(void *arg, const char *message), void *arg,
               struct act_error *err) ACT_NODISCARD;
/* Forgets all tokens and logins that ACT keeps; with dry_run none. *out_had: there was something. */
int flow_logout(bool dry_run, bool *out_had, struct act_error *err) ACT_NODISCARD;

#endif
