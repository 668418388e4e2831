/* env.h - the environment of every rank. */
#ifndef ACT_NODE_ENV_H
#define ACT_NODE_ENV_H

#include "node/node.h"

struct rank_place {
    int rank, world_size, local_rank, local_size, node_rank;
};

/* Finds the rank's place by the variables of the launcher, srun or Open MPI; without one, it is the only rank of a
 * single-process run. Ranks are numbered node by node, unless AZUREML_CR_NODE_RANK says otherwise. */
int env_find_place(const struct node *node, struct rank_place *out, struct act_error *err) ACT_NODISCARD;

/* Sets all of it in the environment of this process. */
void env_set(const struct node *node, const struct rank_place *place);

/* Sets the rank's environment in the job of a service, which has set some of it: existing values stay. The first node's
 * address comes from the service's host list, else from its master address; the port is the one that goes with the
 * master, else one derived from the run's id. Writes the host file if there is none. */
int env_set_of_service(const struct node *node, const struct rank_place *place, struct act_error *err) ACT_NODISCARD;

/* Sets a variable to a number. */
void env_set_int(const char *name, int value);
/* Removes the numbers of the rank, which the processes of a starter, or of a shell, would take for theirs. */
void env_forget_rank(void);

/* Returns the variables that env_set() has taken from the environment of a run on this machine: ACT itself needs
 * them to move and mount folders there, programs of the run do not. NULL: none. */
char *const *env_credentials(void);

#endif
