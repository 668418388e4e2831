/* mount.h - the mapped folders that "act" mounts on a node: one mount for all ranks of the node.
 *
 * The first rank has them mounted while it prepares the node; the last one that ends has them unmounted, and waits
 * until all that was written is in the store. Each is kept by a process of its own (flow/data/mount.h), which the
 * agents do not end as they end what commands leave behind. If all ranks were killed it ends by itself, and what the
 * kill of everything leaves mounted, a sweep unmounts.
 */
#ifndef ACT_NODE_MOUNT_H
#define ACT_NODE_MOUNT_H

#include "node/node.h"

/* Tells whether the agent has to mount this folder, or to copy it instead (run_folder_is_copied()). */
bool mount_is_for(const struct node *node, const struct run_folder *folder);
/* Tells whether there is such a folder. */
bool mount_any(const struct node *node);
/* Returns where its files are then. New string. */
char *mount_point(const struct node *node, const struct run_folder *folder);

/* Downloads a folder with 'mount: copy', after it has sent what an earlier attempt had not. */
int mount_copy(const struct node *node, const struct run_folder *folder, struct act_error *err) ACT_NODISCARD;

/* Ends the mounts below a private folder of this node, sends the changes of copies, and waits for both. Fails with the
 * first reason why something that was written is not in the store. */
int mount_end_all(const struct node *node, const char *node_dir, struct act_error *err) ACT_NODISCARD;

/* Unmounts what nobody keeps mounted any more below node_dir. Returns false if something is still mounted there, or is
 * nowhere else, so that the folder must not be removed. */
bool mount_clear(const char *node_dir);

#endif
