/* state.h - translates Slurm's state of a job into ACT's terms, and combines it with what the run's agent wrote. Pure.
 *
 * Words: https://slurm.schedmd.com/job_state_codes.html, https://slurm.schedmd.com/job_reason_codes.html
 */
#ifndef ACT_PLATFORM_SLURM_STATE_H
#define ACT_PLATFORM_SLURM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/slurm/text.h"
#include "run/run.h"

/* A word that is not in the table, as a later version may use: RUN_UNKNOWN. */
enum run_state slurm_state_of(const char *word);
/* The status of the job from Slurm alone. */
void slurm_status_of(const struct slurm_job *job, struct run_status *out);

/* Sorts jobs by id and merges the tasks of each array into one: running while any task runs, failed if any has
 * failed. */
void slurm_jobs_combine(struct slurm_jobs *jobs);
/* The tasks of arrays among the jobs, before these are combined: each as a job of its own, sorted. */
void slurm_jobs_tasks(const struct slurm_jobs *jobs, struct slurm_jobs *out);
/* Finds a task among these; NULL: none. */
const struct slurm_job *slurm_jobs_find_task(const struct slurm_jobs *tasks, int64_t id, int64_t task);
/* Likewise that of the run of this id (run_id_in_row()) by the array's name: the newest. */
const struct slurm_job *slurm_jobs_find_run(const struct slurm_jobs *tasks, const char *id);
/* Finds a job in a combined list; NULL: none. */
const struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id);
/* Likewise by name: the newest. */
const struct slurm_job *slurm_jobs_find_name(const struct slurm_jobs *jobs, const char *name);

/* What is known about one run. */
struct slurm_known {
    const char *id;
    int64_t job;                   /* 0: it has none yet */
    int64_t task;                  /* which one of an array; -1: the job is the run's alone */
    const struct run_status *said; /* by its agent, or at submission */
    const struct slurm_job *queue; /* from squeue; NULL: it does not know the job */
    const struct slurm_job *past;  /* from sacct; NULL: it does not know the job, or there is no accounting */
    bool array_there;              /* squeue knows the array of the task */
    bool is_step, step_there;      /* it is a step of another job; squeue knows that */
    int64_t now_unix_s;
};
/* Returns whether *out is Slurm's status of an ended job, which should be kept: Slurm will forget it. */
bool slurm_merge(const struct slurm_known *known, struct run_status *out);
/* Tells whether sacct might know more. */
bool slurm_needs_past(const struct slurm_known *known);
/* Tells whether the agent may have recorded the end since its record was read. */
bool slurm_needs_record(const struct slurm_known *known);
/* Tells whether an agent has been at work on the run. */
bool slurm_has_begun(const struct run_status *said);

/* When a run was created, from its id; 0: not known. */
int64_t slurm_run_created(const char *id);

#endif
