/* dirs.h - where things of this user live. */
#ifndef ACT_BASE_DIRS_H
#define ACT_BASE_DIRS_H

/* The user's home folder; ACT's own: $ACT_HOME, or "<data home>/act" by the XDG base directory rules, where
 * "cache" is below $XDG_CACHE_HOME, and what the user sets below $XDG_CONFIG_HOME, unless ACT_HOME is set. New strings. */
char *act_home_dir(void);
char *act_state_dir(void);
char *act_cache_dir(void);
char *act_config_dir(void);

#endif
