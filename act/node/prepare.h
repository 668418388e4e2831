/* prepare.h - once on every node, before its first command: code, folders, environment, compile.aml.sh. */
#ifndef ACT_NODE_PREPARE_H
#define ACT_NODE_PREPARE_H

#include "node/node.h"

/* Runs in a child, after place_open(): the first one on this node prepares it, the others wait for the result. A
 * later attempt finds what earlier ones left in the code root. Returns 0, or the exit status of what failed. */
int prepare_node(void *node);

/* Reads how the preparation ended. Returns false if it has not. */
bool prepare_result(const struct node *node, int *out_exit_status, char *out_reason, size_t size);

/* Says what the preparation does now, which may take long: in the node's log, and for prepare_doing(). */
void prepare_tell(const struct node *node, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Reads it; empty: nothing that takes long. */
void prepare_doing(const struct node *node, char *out, size_t size);

/* Appends the words that precede a command with its own container (container_is_fresh()), to prepare that container
 * first; none if there is nothing to do. */
void prepare_words(const struct node *node, struct act_strv *out);

/* Runs a step whose programs print into the preparation's log, and whose last words there are the error.
 * *out_exit_status: of the program that failed. */
int prepare_logged(const struct node *node,
                   int (*step)(const struct node *, int log_fd, int *out_exit_status, struct act_error *),
                   int *out_exit_status, struct act_error *err) ACT_NODISCARD;

/* Returns the file with the output of its programs, relative to the run folder. New string. */
char *prepare_log(const struct node *node);

#endif
