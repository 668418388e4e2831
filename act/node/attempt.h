/* attempt.h - the folders of an attempt at a run, and what is kept of earlier ones. */
#ifndef ACT_NODE_ATTEMPT_H
#define ACT_NODE_ATTEMPT_H

#include "node/node.h"

/* Moves the logs of an earlier attempt to attempts/<n>/ of the run folder, and writes its last status there, which is
 * NULL if none is known. A call that was interrupted can be repeated. */
int attempt_put_away(const struct node *node, int attempt, const struct run_status *status,
                     struct act_error *err) ACT_NODISCARD;
/* Makes the folders of the run folder that every attempt needs. */
int attempt_make_folders(const struct node *node, struct act_error *err) ACT_NODISCARD;

#endif
