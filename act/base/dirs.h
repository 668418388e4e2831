/* dirs.h - reads variables of the environment, and finds the folders of this user. */
#ifndef ACT_BASE_DIRS_H
#define ACT_BASE_DIRS_H

#include "base/error.h"

/* Returns the value of an environment variable, or NULL if it is not set or empty. */
const char *act_env(const char *name);

/* Returns the user's home folder, a new string. */
char *act_home_dir(void);
/* Return the folders of ACT's state, of what it can make again, and of the user's settings, new strings: $ACT_HOME,
 * "cache" and "config" in it or, if that is not set, "act" in the folders of the XDG base directory rules. */
char *act_state_dir(void);
char *act_cache_dir(void);
char *act_config_dir(void);

/* Closes the state and cache folders to other users if they exist, are ours and are open to anybody. A folder that
 * ACT_HOME names but that is not ACT's alone stays as it is: the home folder, the root, a folder like /tmp. */
void act_close_own_dirs(void);

/* Adds to an error for want of permission (ACT_DENIED) what to do if ACT's own folders cannot be written, as in a
 * read-only home. Leaves other errors alone. */
void act_hint_at_own_dirs(struct act_error *err);

#endif
