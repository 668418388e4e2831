/* login.h - the user's identity in Azure. */
#ifndef ACT_FLOW_LOGIN_H
#define ACT_FLOW_LOGIN_H

#include <stdbool.h>

#include "base/error.h"
#include "flow/flow.h"

struct token_identity;

/* Tells the identity in a token for this cluster's storage, from whatever issues tokens here; requests one if none is
 * cached.
 * -ACT_DENIED: there is no credential; the text says what was tried. */
int flow_identify(struct flow *flow, struct token_identity *out, struct act_error *err) ACT_NODISCARD;
/* Logs in with a code that the user types into a browser; show() gets the message for the user. Like
 * token_device_login(). */
int flow_login(struct flow *flow, const char *tenant, void (*show)(void *arg, const char *message), void *arg,
               struct act_error *err) ACT_NODISCARD;
/* Deletes all tokens and logins that ACT keeps; with dry_run none. *out_had: there were some. */
int flow_logout(bool dry_run, bool *out_had, struct act_error *err) ACT_NODISCARD;

#endif
