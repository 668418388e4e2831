/* sweep.h - processes of a run whose agent was killed. */
#ifndef ACT_NODE_SWEEP_H
#define ACT_NODE_SWEEP_H

/* Kills, until there are none, all processes of this user that began with ACT_RUN_ID=<run_id> in their environment. The
 * agents of the run are not among them. Returns how many were killed. */
int sweep_processes(const char *run_id);

#endif
