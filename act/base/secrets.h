/* secrets.h - guesses from a name or a text whether it is a secret. Pure functions, any thread.
 *
 * The words are those that the denylists of detect-secrets, TruffleHog, Sentry and Datadog share, and names that are
 * common in machine learning: WANDB_KEY, HF_TOKEN, PGPASS, MY_CREDS, ...
 */
#ifndef ACT_BASE_SECRETS_H
#define ACT_BASE_SECRETS_H

#include <stdbool.h>

/* Returns the value of an environment variable, or "***" if its name or act_text_is_secret() says that it is secret. */
const char *act_env_shown(const char *name, const char *value);
/* Tells whether a variable would give away a secret. It is one for act_env_shown(), and no switch or number whose name
 * only sounds like one (MAX_TOKENS: 4096, USE_AUTH: false). */
bool act_env_gives_away(const char *name, const char *value);
/* Tells whether a URL in the text holds a password ("https://user:password@host") or a signature ("...&sig=..."), or
 * the text is an Azure connection string with its key. */
bool act_text_is_secret(const char *text);

#endif
