/* attempt.h - the folders of an attempt at a run, and what is kept of earlier ones. */
#ifndef ACT_NODE_ATTEMPT_H
#define ACT_NODE_ATTEMPT_H

#include "node/node.h"
#include "node/place.h"

/* Moves the logs of an earlier attempt to attempts/<n>/ of the run folder, and writes its last status there, which is
 * NULL if none is known. A call that was interrupted can be repeated. */
int attempt_put_away(const struct node *node, int attempt, const struct run_status *status,
                     struct act_error *err) ACT_NODISCARD;
/* Makes the folders of the run folder that every attempt needs. */
int attempt_make_folders(const struct node *node, struct act_error *err) ACT_NODISCARD;
/* Opens the place of a rank whose node's private folder is the folder of the run, with its folders and the own log. */
int attempt_open_private(struct node *node, const struct rank_place *place, struct act_error *err) ACT_NODISCARD;

#endif
