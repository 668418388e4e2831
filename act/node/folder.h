/* folder.h - the mapped folders in the code root. */
#ifndef ACT_NODE_FOLDER_H
#define ACT_NODE_FOLDER_H

#include "node/node.h"

/* Links, makes or fetches every mapped folder. One of mode upload is the same folder on all nodes, in the run
 * folder. */
int folder_prepare_all(const struct node *node, struct act_error *err) ACT_NODISCARD;

/* Has act move a folder of the run between its store and dir: direction is "download", "upload" or "changes". */
int folder_move(const struct node *node, const char *direction, const char *name, const char *dir,
                struct act_error *err) ACT_NODISCARD;

/* Fetches the package if it was not handed over, which only nodes that send their logs may lack. */
int folder_fetch_package(const struct node *node, struct act_error *err) ACT_NODISCARD;

/* Tells whether there is something to send back. */
bool folder_any_to_send(const struct node *node);
/* Sends the contents of the folders of mode upload. For struct child. Returns an exit status. */
int folder_send_all(void *node);
/* Sends the logs of this attempt and of earlier ones to the place that the run's stores.json names. Only nodes that do
 * not share the run folder need it. */
int folder_send_logs(const struct node *node, int attempt);

/* Returns the last attempt whose logs were sent, by pods that are no more; 0: of none, or it cannot be found out. */
int folder_find_sent(const struct node *node);

/* Returns why not all were sent: FOLDER_UNSENT, and what was said last. New string. */
char *folder_why_unsent(const struct node *node);

/* The words for a run that could not send all, and the reason of its failure if its command succeeded. */
#define FOLDER_UNSENT "not all folders could be sent; see " RUN_DIR_SYSTEM "/folders_*.txt"
#define FOLDER_LOG    RUN_DIR_SYSTEM "/folders_%s.txt" /* with the name of the node */

#endif
