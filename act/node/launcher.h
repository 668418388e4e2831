/* launcher.h - how the ranks are started, by mpirun, Slurm's srun or our pods, and in which environment. */
#ifndef ACT_NODE_LAUNCHER_H
#define ACT_NODE_LAUNCHER_H

#include "node/node.h"

/* Returns "mpirun", "srun", "direct" (see pod_launch.c), or "rank" for a run of one process, which needs no
 * launcher. */
const char *launcher_name(const struct node *node);

/* The variables that every rank gets from the supervisor's environment. Ends with NULL. */
extern const char *const launcher_passed_on[];

/* Set on each of several machines of a run: the program there, and the run folder there, which may have other paths. */
#define LAUNCHER_ENV_PROGRAM "ACT_RANK_PROGRAM"
#define LAUNCHER_ENV_DIR     "ACT_RANK_RUN"
/* Appends the words of a rank, "program rank <run folder>", as they are right on all nodes. */
void launcher_rank_words(const struct node *node, const char *program, struct act_strv *out);

/* Makes the command that starts these words once for each rank of the run. */
int launcher_command(const struct node *node, const char *program, struct act_strv *out,
                     struct act_error *err) ACT_NODISCARD;

/* Writes the host file; hosts are in the order of the node ranks, none: this machine. */
int launcher_write_hosts(const struct node *node, const struct act_strv *hosts, struct act_error *err) ACT_NODISCARD;
/* Appends the hosts of that file, by their names there; none if there is no such file. */
void launcher_read_hosts(const struct node *node, struct act_strv *out);

/* Sets in the environment where rank 0 may listen, and how long a launcher waits for ranks that it ends itself. */
void launcher_set_environment(const char *master, int64_t grace_ms);

/* Sets in the environment of mpirun how it starts its daemons on the other pods of a run: by "program rsh". */
void launcher_set_remote_start(const struct node *node, const char *program);
/* Removes from the environment what was for our mpirun, and not for one that the command starts. */
void launcher_forget_settings(const struct node *node);

/* Returns the major version in the output of "mpirun --version"; 0: it is not Open MPI. */
int launcher_mpirun_version(const char *text);

#endif
