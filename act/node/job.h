/* job.h - the Slurm job of which a supervisor is the batch step, or one of the other steps. Uses Slurm's own programs;
 * their output is described in the manual pages of scontrol and srun, and was observed with Slurm 22.05. */
#ifndef ACT_NODE_JOB_H
#define ACT_NODE_JOB_H

#include "node/node.h"

enum job_end { JOB_GOES_ON, JOB_TIME_LIMIT, JOB_PREEMPTED, JOB_REQUEUED, JOB_NODE_FAILED, JOB_CANCELLED };

struct job {
    char *id;               /* NULL: there is no job */
    char *step;             /* "5.3", if this is a step of somebody's job, which is not the run's; else NULL */
    int starts;             /* how often Slurm has started it, from 1 */
    struct act_strv hosts;  /* in the order of the node ranks */
    int64_t kill_wait_ms;   /* between SIGTERM and SIGKILL when Slurm ends a job */
    off_t output_from;      /* the start of this attempt's part of Slurm's output */
    enum job_end end;       /* why Slurm ends it */
    bool preempted;         /* preempted by another job */
    bool node_failed;       /* it ends because nodes of it failed */
    struct act_strv failed; /* these, as far as Slurm knows */
    char failed_text[160];  /* what that means, in words; "": nothing failed */
};

/* Reads what the environment of a batch step says of its job; within: of another step. */
int job_open(struct job *job, const struct node *node, bool within, struct act_error *err) ACT_NODISCARD;
/* Asks Slurm for the names of the job's nodes. A step takes the first ones, and what it starts sees a job of these
 * alone. */
int job_find_hosts(struct job *job, const struct node *node, struct act_error *err) ACT_NODISCARD;
void job_release(struct job *job);

/* Finds out why Slurm ends the job, once it has sent SIGTERM, and sets job->end. */
void job_find_end(struct job *job, const struct node *node);
/* Parses what "scontrol show job" printed while the job was being ended; starts: how often it was started, from 1. */
enum job_end job_parse_end(const char *show_job, int starts);
/* Appends the lists of nodes that calls of srun say they have lost: "srun: error: Node failure on n[2-3]". */
void job_parse_failed(const char *said, struct act_strv *out);
/* Appends the nodes that are down or do not answer, from the lines "<node> <state>" of sinfo. */
void job_parse_down(const char *sinfo, struct act_strv *out);
/* Asks Slurm which of these hosts are down or do not answer. */
void job_find_down(const struct act_strv *hosts, struct act_strv *out);
/* Says "node 'n2' of it failed (NODE_FAIL)", and how many more did. */
void job_say_failed(const struct act_strv *failed, char *out, size_t size);
/* Tells whether a program can be started on a node of the job now. */
bool job_answers(const char *node);
/* Tells whether Slurm has neither this job nor, of "5.3", this step of it any more. In doubt, it has. */
bool job_is_gone(const char *id);
/* Tells whether Slurm itself queues the job again when a node fails. */
bool job_is_requeued(const struct job *job);
/* Returns KillWait from the output of "scontrol show config", in seconds; -1: it is missing. */
int64_t job_parse_kill_wait(const char *show_config);
/* Returns why the job ends, "time limit reached"; NULL: it goes on. */
const char *job_end_text(const struct job *job);

/* Appends to out_blind those nodes (separated by commas) that do not see the run's folder. False: this could not be
 * determined. */
bool job_find_blind(const struct node *node, const char *nodes, int n_nodes, struct act_strv *out_blind);
/* Runs "act-node sweep" on these nodes. */
void job_sweep(const struct node *node, const char *nodes, int n_nodes);
/* Appends to out the nodes that the job excludes already, and of nodes, the latest first, as many as it can do without.
 * *out_short: it cannot do without the latest. */
void job_choose_excluded(const struct job *job, const struct node *node, const struct act_strv *nodes,
                         struct act_strv *out, bool *out_short);
/* Puts the job into the queue again, to begin after pause_s, on none of these nodes. Slurm then ends this process. */
int job_requeue(const struct job *job, const struct act_strv *excluded, int64_t pause_s,
                struct act_error *err) ACT_NODISCARD;
/* Makes Slurm end the job, this process included. */
void job_cancel(const struct job *job);

#endif
