/* mpirun.h - how Open MPI starts the ranks. */
#ifndef ACT_NODE_MPIRUN_H
#define ACT_NODE_MPIRUN_H

#include "node/node.h"

/* The words that start "program rank <run folder>" once for each rank of the run. */
int mpirun_command(const struct node *node, const char *program, struct act_strv *out,
                   struct act_error *err) ACT_NODISCARD;

/* The major version in what "mpirun --version" prints; 0 when it is not Open MPI. */
int mpirun_major_version(const char *text);

#endif
