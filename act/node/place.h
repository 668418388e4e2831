/* place.h - where a node of the run keeps things: the code root, and a private folder on the node's own disk.
 *
 *   <scratch, or $TMPDIR, or /tmp>/act-<uid>/<run id>/<node rank>/     0700
 *     users                    the name of the node; locked (shared) by every rank of the node while it lives
 *     ended.<attempt>          a byte for every rank of the node that has ended
 *     prepare.lock, prepared.<attempt>.json   see prepare.h
 *     code/                    with scratch; else it is in the run folder
 *     mounts/<name>/           see mount.h
 *
 * The job of a service has no run folder: this one, "<node rank>-<launch>", is in its place, so that what an earlier
 * start of the same job left is never taken for this one's.
 *
 * Locks are here because those of a shared file system may hold on this node only, or not at all. The last rank of a
 * node removes the folder; leftovers of a killed run are removed when another run prepares the node, at the earliest
 * ten minutes after the last rank ended, because nothing is locked between one rank's end and the next one's start.
 */
#ifndef ACT_NODE_PLACE_H
#define ACT_NODE_PLACE_H

#include "node/env.h"
#include "node/node.h"

/* Sets the node's rank, attempt (from 1), code root and private folder, and makes that folder. If "act-<uid>" is not
 * ours alone, a folder "act-<uid>.<random>" beside it is used, the same for all ranks of the node. */
int place_open(struct node *node, const struct rank_place *place, int attempt, struct act_error *err) ACT_NODISCARD;

/* Call it when the rank has ended, and so have its processes. The last rank of the node ends the mounts and removes the
 * folder. Fails with the reason why something written to a mounted folder is not in the store. */
int place_close(struct node *node, const struct rank_place *place, struct act_error *err) ACT_NODISCARD;

/* Unmounts, for the supervisor, what the ranks have left mounted on this node. Fails as place_close() does. */
int place_end_mounts(const struct node *node, struct act_error *err) ACT_NODISCARD;

/* Removes the private folders of this node that no living rank uses, except those where a rank has just ended. */
void place_sweep(const struct node *node);

#endif
