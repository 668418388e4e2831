/* state.h - what Slurm says about a job, in ACT's words, and what follows from that and from what the run's agent
 * wrote. Pure.
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

/* A word that is in no table, as a later version may bring: RUN_UNKNOWN. */
enum run_state slurm_state_of(const char *word);
/* The job as far as Slurm alone knows it. */
void slurm_status_of(const struct slurm_job *job, struct run_status *out);

/* Sorts jobs by id, makes one of the tasks of each array: running while one of them runs, failed when one has
 * failed. */
void slurm_jobs_combine(struct slurm_jobs *jobs);
/* The job of a combined list; NULL: it is not there. */
const struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id);
/* The same by name, the newest. */
const struct slurm_job *slurm_jobs_find_name(const struct slurm_jobs *jobs, const char *name);

/* What is known about one run. */
struct slurm_known {
    const char *id;
    int64_t job;                   /* 0: it has none yet */
    const struct run_status *said; /* by its agent, or at the submission */
    const struct slurm_job *queue; /* squeue's word; NULL: it does not know the job */
    const struct slurm_job *past;  /* sacct's; NULL: it does not know it, or there is no accounting */
    int64_t now_unix_s;
};
/* Whether *out is what Slurm says of a job that has ended, so that it should be kept: Slurm will forget it. */
bool slurm_merge(const struct slurm_known *known, struct run_status *out);
/* Whether sacct could tell more. */
bool slurm_needs_past(const struct slurm_known *known);
/* Whether the agent may have written its end since its record was read. */
bool slurm_needs_record(const struct slurm_known *known);

/* When a run was made, from its id; 0: not known. */
int64_t slurm_run_created(const char *id);

#endif
