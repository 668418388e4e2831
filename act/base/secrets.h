/* secrets.h - what sounds like a secret: there is nothing to go by but names and looks. Pure functions, of any thread.
 *
 * The words are those that the denylists of detect-secrets, TruffleHog, Sentry and Datadog have in common, and what users of
 * machine learning set: WANDB_KEY, HF_TOKEN, PGPASS, MY_CREDS, ...
 */
#ifndef ACT_BASE_SECRETS_H
#define ACT_BASE_SECRETS_H

#include <stdbool.h>

/* Masks the value of an environment variable that is secret, because its name says so or because it is text as
 * act_text_is_secret() knows it: returns "***", else value itself. */
const char *act_env_shown(const char *name, const char *value);
/* Whether a variable would give away a secret: as act_env_shown(), but for switches and numbers of variables that only sound so
 * (MAX_TOKENS: 4096, USE_AUTH: false). */
bool act_env_gives_away(const char *name, const char *value);
/* Whether a URL in the text has a password ("https://user:password@host") or a signature ("...&sig=..."), or the text is a
 * connection string of Azure with its key. */
bool act_text_is_secret(const char *text);

#endif
