/* software.h - what a run ran with: Python and its packages, modules, driver, CUDA, NCCL, MPI, image, as
 * RUN_FILE_ENVIRONMENT, from which two runs are compared later.
 *
 * It is found out beside the command, which has begun by then: first what files and variables say, which is written
 * down at once, then what programs say of themselves. Nothing ever waits for these, and nothing depends on any of it.
 */
#ifndef ACT_NODE_SOFTWARE_H
#define ACT_NODE_SOFTWARE_H

#include "node/node.h"

/* Starts a child that writes it down. The first rank of the run does so, in the environment of its command. If it
 * cannot be started, the log says why. */
void software_start(struct node *node);

/* Finds out what files and variables say. root: before the paths of files of the system, "". The caller releases out.
 */
void software_take(const struct node *node, const char *root, struct run_environment *out);

/* Adds what the Python and mpirun of the run say, within seconds. False: they had nothing to add. */
bool software_ask(const struct node *node, struct run_environment *out);

/* Returns the version in the first line of /proc/driver/nvidia/version, "535.104.05", a new string; NULL: none. */
char *software_driver(const char *line);

/* Returns the release of an MPI by what its mpirun prints, "Open MPI 4.1.4", a new string; NULL: it is not known. */
char *software_mpi(const char *text);

#endif
