/* mapped.h - for the files of flow/data/ only: a mapped path, as the user types it. */
#ifndef ACT_FLOW_DATA_MAPPED_H
#define ACT_FLOW_DATA_MAPPED_H

#include <stdbool.h>

#include "base/error.h"
#include "flow/data/data.h"
#include "flow/flow.h"

struct config;
struct config_folder;

/* A mapped path: its folder, the local path and the key. */
struct mapped {
    const struct config_folder *folder;
    char *rest;  /* after the folder's name, cleaned */
    char *local; /* absolute */
    char *key;   /* in the store; a trailing slash of the path is kept */
};
/* Finds the folder of a path, which must be trusted. The caller releases out in every case. */
int mapped_find(const struct config *config, const char *path, struct mapped *out, struct act_error *err) ACT_NODISCARD;
void mapped_release(struct mapped *m);
/* Tells whether a file on this machine can have the name. */
bool mapped_has_local_name(const struct mapped *m);
/* Checks the same: -ACT_USAGE. path is what the user typed. */
int mapped_check_local_name(const struct mapped *m, const char *path, struct act_error *err) ACT_NODISCARD;
/* Returns where the mapped folder is on this machine, as a new string. */
char *mapped_root(const struct mapped *m);
/* Returns a key without the trailing slash, as a new string. */
char *mapped_bare_key(const char *key);
/* Finds out what a mapped path is in its store, and says where it is instead if it is not there. */
int mapped_resolve(struct flow *flow, struct store *store, const struct mapped *m, const char *path,
                   struct transfer_path *out, struct act_error *err) ACT_NODISCARD;

#endif
