/* run_internal.h - what the files of this module share. */
#ifndef ACT_RUN_RUN_INTERNAL_H
#define ACT_RUN_RUN_INTERNAL_H

#include "run/run.h"

/* The words for each state and each mode in records. */
extern const char *const run_state_names[RUN_UNKNOWN + 1], *const run_folder_mode_names[RUN_FOLDER_PATH + 1];

/* Tells whether a member of an object may be a tag: its key is a label, its value one line of a limited length. */
bool run_tag_valid(const char *key, const json_t *value);

#endif
