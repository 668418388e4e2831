/* dirs.h - what the environment says, and where things of this user live. */
#ifndef ACT_BASE_DIRS_H
#define ACT_BASE_DIRS_H

#include "base/error.h"

/* The value of an environment variable; NULL: it is not set, or empty. */
const char *act_env(const char *name);

/* The user's home folder; ACT's own: $ACT_HOME, or "<data home>/act" by the XDG base directory rules, where "cache"
 * is below $XDG_CACHE_HOME, and the user's settings below $XDG_CONFIG_HOME, unless ACT_HOME is set. New strings. */
char *act_home_dir(void);
char *act_state_dir(void);
char *act_cache_dir(void);

/* Closes the state and cache folders to other users if they exist, are ours and are open to anybody. A folder that
 * ACT_HOME names but that is not ACT's alone stays as it is: the home folder, the root, a folder like /tmp. */
void act_close_own_dirs(void);
char *act_config_dir(void);

/* Behind an error for want of permission (ACT_DENIED): what to do where ACT's own folders cannot be written, as in a
 * home that is read-only. Other errors stay as they are. */
void act_hint_at_own_dirs(struct act_error *err);

#endif
