/* env.h - the environment of every rank. */
#ifndef ACT_NODE_ENV_H
#define ACT_NODE_ENV_H

#include "node/node.h"

struct rank_place {
    int rank, world_size, local_rank, local_size, node_rank;
};

/* From the launcher, srun or Open MPI; without one it is the only rank of a run of one process. Ranks are counted
 * node by node, unless AZUREML_CR_NODE_RANK says otherwise. */
int env_find_place(const struct node *node, struct rank_place *out, struct act_error *err) ACT_NODISCARD;

/* Sets all of it in the environment of this process. */
void env_set(const struct node *node, const struct rank_place *place);

/* The same in the job of a service, which has set some of it: what is there stays. The first node's address is that of
 * the service's list of hosts, else what the service calls the master; the port is the one that goes with the master,
 * else one that follows from the run's id. Writes the host file where there is none. */
int env_set_of_service(const struct node *node, const struct rank_place *place,
                       struct act_error *err) ACT_NODISCARD;

/* Within a rank of another run: removes the variables that made it one, so that mpirun and srun start afresh. */
void env_scrub(void);

#endif
