/* secrets.h - guesses from names and looks what is a secret. Pure functions, any thread.
 *
 * The words are those that the denylists of detect-secrets, TruffleHog, Sentry and Datadog share, and names that are
 * common in machine learning: WANDB_KEY, HF_TOKEN, PGPASS, MY_CREDS, ...
 */
#ifndef ACT_BASE_SECRETS_H
#define ACT_BASE_SECRETS_H

#include <stdbool.h>

/* The value of an environment variable, or "***" when its name or act_text_is_secret() says that it is secret. */
const char *act_env_shown(const char *name, const char *value);
/* Whether a variable would give away a secret: as act_env_shown(), except for switches and numbers whose names only
 * sound like one (MAX_TOKENS: 4096, USE_AUTH: false). */
bool act_env_gives_away(const char *name, const char *value);
/* Whether a URL in the text holds a password ("https://user:password@host") or a signature ("...&sig=..."), or the
 * text is an Azure connection string with its key. */
bool act_text_is_secret(const char *text);

#endif
