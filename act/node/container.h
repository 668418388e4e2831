/* container.h - the run's image on a node: the words that go before a command to run it there.
 *
 * "apptainer": every command of the run is started by "apptainer exec" ("singularity exec" where there is only that).
 * The environment of the caller reaches it. "pyxis": srun itself starts the agents in the image, and commands stay as
 * they are. "docker", "podman" (of "a local"): the same as apptainer, but that each command gets a container of its
 * own, in which nothing is left of the one before, and that they get only what they need of the environment. All see
 * the run's folder, the code root and the linked folders under the same paths as without.
 *
 * Sources: apptainer.org/docs/user/main/cli/apptainer_exec.html; github.com/NVIDIA/pyxis (README, "Usage");
 * github.com/NVIDIA/enroot doc/cmd/import.md (image names).
 */
#ifndef ACT_NODE_CONTAINER_H
#define ACT_NODE_CONTAINER_H

#include "node/node.h"

/* Tells whether commands have to be wrapped. */
bool container_is_used(const struct node *node);

/* Tells whether each command has a container of its own, so that what prepares it has to run in the same one. */
bool container_is_fresh(const struct node *node);

/* Appends the words that run argv (ends with NULL) in the code root: argv itself without a container. rank: whose
 * command it is; -1: no rank's. Neither program in PATH: -ACT_NOT_FOUND. A path that cannot be bound (it contains
 * ':' or ','): -ACT_CONFIG. */
int container_wrap(const struct node *node, int rank, const char *const *argv, struct act_strv *out,
                   struct act_error *err) ACT_NODISCARD;

/* Removes the containers of the run's commands, which outlive a docker client that was killed. Ignores those that
 * are gone and a docker that does not answer. */
void container_remove_all(const struct node *node);

/* Appends srun's options for pyxis; nothing for all other runs. program is the agent, which must be visible in the
 * container. */
int container_srun_options(const struct node *node, const char *program, struct act_strv *out,
                           struct act_error *err) ACT_NODISCARD;

#endif
