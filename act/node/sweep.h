/* sweep.h - processes of a run whose agent was killed. */
#ifndef ACT_NODE_SWEEP_H
#define ACT_NODE_SWEEP_H

/* Kills all processes of this user that were started with ACT_RUN_ID=<run_id> in their environment, until none is left.
 * The agents of the run are not among them. Returns how often it killed one: one that takes its time to end counts
 * again. */
int sweep_processes(const char *run_id);

#endif
