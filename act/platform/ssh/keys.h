/* keys.h - the part 'ssh' of a cluster file, and what the platform's name there means. */
#ifndef ACT_PLATFORM_SSH_KEYS_H
#define ACT_PLATFORM_SSH_KEYS_H

#include "base/text.h"
#include "config/kind.h"

struct ssh_keys {
    struct act_strv hosts; /* "user@host" of each machine, in the order in which they are tried */
    char *root;            /* the folder of the runs on each; "~/" is the home folder there */
};

extern const struct config_part ssh_keys_part;
static inline struct ssh_keys *ssh_keys(const struct config *config)
{
    return config_part(config, &ssh_keys_part);
}

extern const struct config_kind ssh_kind;

#endif
