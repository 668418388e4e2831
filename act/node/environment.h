/* environment.h - the environment that is made from what the project says that it needs (requirements.txt, a lock
 * file): once for all runs that need the same, by content, and never in a place that is somebody else's.
 *
 *   <home>/<key>             a link to the whole environment, made last: 16 hex digits (environment_key.c)
 *   <home>/<key>-<14 hex>/   8 of the node that makes it, by which it knows what its killed makers have left, and 6
 *                            at random; env/: the environment, in the place where it was made
 *                            about.json: what it was made from; runs/<run id>: who uses it, changed at each use
 *                            maker: the node that makes it, or made it
 *   <home>/<key>.lock        locked (flock) by who makes it, with the name of its node
 *   <home>/cache/            of tools that have one
 *   <home>/no-index          the name of a node that has reached no index
 *
 * home is "environments" beside the runs of a site, which nodes of Slurm share; on a node without a site it is on its
 * own disk (place.h). Where a file system locks for one node only, or not at all, two nodes may make the same: each in
 * a folder of its own, and the first that is whole is used by both.
 */
#ifndef ACT_NODE_ENVIRONMENT_H
#define ACT_NODE_ENVIRONMENT_H

#include "node/node.h"
#include "run/environments.h"

/* Finds what counts in the code root of the node; false: the project says nothing, or the run wants no environment. */
bool environment_source(const struct node *node, struct environment_source *out);

/* Tells whether a run's environment sees the packages that its Python has already. */
bool environment_sees_system(const struct node *node);

enum { ENVIRONMENT_KEY = 16 + 1 };
/* Makes the key of an environment: of the content of its source, the Python, what was set up before, the platform.
 * Returns whether other runs may have the same. */
bool environment_key(const struct node *node, const struct environment_source *source, char out[ENVIRONMENT_KEY]);

/* Returns the folder of all environments of this node's user, a new string; NULL: it is not known before
 * place_open(). */
char *environment_home(const struct node *node);

/* Finds the environment of the run on this node, or makes it, or waits for who makes it, and writes down where it is;
 * then applies it to this process. Does nothing for a run that needs none. log_fd gets what its tools print. Errors:
 * -ACT_FAIL when it cannot be made, with *out_exit_status that of the tool; others as they come. */
int environment_take(const struct node *node, int log_fd, int *out_exit_status, struct act_error *err) ACT_NODISCARD;

/* Does the same on the login node, for the nodes of a run that is about to be submitted: it is there then. */
int environment_make_ahead(const struct node *node, int log_fd, int *out_exit_status,
                           struct act_error *err) ACT_NODISCARD;

/* Gives this process the environment that environment_take() has written down in this attempt; not in a container. */
void environment_apply(const struct node *node);

/* Appends the words that precede all that runs in a container; none where there is nothing to do. */
void environment_words(const struct node *node, struct act_strv *out);

/* Returns a path in the layer of the run (layer.h) as that of the environment which the layer lies on, and which other
 * runs have, too; any other path as it is. New string. */
char *environment_below_layer(const struct node *node, const char *path);

#endif
