/* layer.h - the part of an environment that a run may change: a virtual environment of its own, in the node's private
 * folder, which sees the packages of the one that is shared (environment.h). What compile.aml.sh or the command
 * installs lands in it and goes with the run. It is a few links and two files, so that it costs no run anything:
 *
 *   <local>/python.<attempt>/pyvenv.cfg            makes Python take the folder for a virtual environment
 *                            environment           a link to the shared one
 *                            bin/python3, ...      links to those of the shared one
 *                            lib/python3.11/site-packages/act.pth   names the packages of the shared one
 *                            share/, etc/          folders with links to the files of the shared one's
 *
 * Sources: docs.python.org/3/library/site.html; docs.python.org/3/library/venv.html. pip leaves packages outside
 * sys.prefix alone when it runs in a virtual environment.
 */
#ifndef ACT_NODE_LAYER_H
#define ACT_NODE_LAYER_H

#include "node/node.h"

/* The name of the link in a layer to the environment below it. */
#define LAYER_BELOW "environment"

/* Returns the folder of the layer of this attempt, whether it is there or not: in the private folder, or in that of the
 * run if no program may be started from the private one (noexec). New string. */
char *layer_path(const struct node *node);

/* Makes the layer on an environment; what was left half made goes first. An environment without Python gets none. */
int layer_make(const struct node *node, const char *env, struct act_error *err) ACT_NODISCARD;

#endif
