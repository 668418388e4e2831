/* supervisor.h - the parts of "act-node supervise".
 *
 *   supervise.c   the program and its loop
 *   start.c       until the ranks run
 *   others.c      the runs for which it waits before
 *   ranks.c       what is known about the ranks
 *   judge.c       what the end of the ranks means
 *   hang.c        whether the run hangs
 *   attempt.c     what is recorded: status, failure, what earlier attempts left
 *   again.c       another attempt after one that failed; retry.h decides
 *   launcher.c    how the ranks are started
 *   job.c         what Slurm reports about the job that this is
 */
#ifndef ACT_NODE_SUPERVISOR_H
#define ACT_NODE_SUPERVISOR_H

#include "node/cgroup.h"
#include "node/child.h"
#include "node/devices.h"
#include "node/hang.h"
#include "node/job.h"
#include "node/link.h"
#include "node/node.h"
#include "node/record.h"
#include "node/slots.h"

/* The place where the ranks run, and so who has allocated the run's resources. */
enum where {
    IN_SLOTS, /* of this machine, which are still to be taken */
    IN_SLURM, /* this is the batch step of a job, or another one */
    IN_PODS,  /* this is the first pod or machine; pod.h has started us, and counts the attempts */
};

struct supervise_options {
    const char *run_dir, *slots_dir;
    int slots;   /* of this machine */
    int lock_fd; /* of supervisor.lock, locked; -1: still to be taken */
    bool gpus;   /* the slots are GPUs */
    bool shared; /* with the other users of the machine */
    /* "job 4711 of Slurm": of a batch system, whose end is that of the run; NULL: none. With IN_SLURM this is a step of
     * that job. */
    const char *within;
    enum where where;
    const char *pods;  /* the name that all pods have in common, or the addresses of machines (pod_host()) */
    const char *group; /* which of them the attempt has, "0,2,3"; NULL: all */
    /* The file of the run folder that gets the final status, which whoever has started us judges; NULL: status.json */
    const char *outcome;
    int left_s; /* of the run's time; 0: it has no limit, or whoever has allocated the nodes ends it */
};

struct rank_state {
    struct node_record record;
    enum { RANK_AWAITED, RANK_CAME, RANK_SAID_BYE } presence;
};

/* The phases of the ranks. Each leads to any later one, and RANKS_GIVEN_UP, if more ranks come after all, to
 * RANKS_STOPPING. */
enum ranks_phase {
    RANKS_RUN,
    RANKS_LATE,     /* some have ended, others have not come: soon we look whether their nodes are blind */
    RANKS_SEEING,   /* they are not, so we go on waiting */
    RANKS_STOPPING, /* told to end; then they are given up */
    RANKS_GIVEN_UP, /* cut off; the launcher has a moment left */
    RANKS_GONE,
};

/* The things that are due at a time. */
enum alarm {
    ALARM_PHASE,    /* the phase of the ranks is over */
    ALARM_LAUNCHER, /* it is killed */
    ALARM_SEND,     /* the run's folders are sent */
    ALARM_STACKS,   /* the agents have had the time to take stacks of a run that hangs */
    ALARM_BEAT,     /* status.json says that we live */
    ALARM_WARN,     /* the time limit is near */
    ALARM_LIMIT,    /* it is reached */
    ALARM_LOOK,     /* the user may have asked to abort a step, which only he signals */
    N_ALARMS
};

struct supervisor {
    struct supervise_options options;
    struct node node;
    struct watch watch;
    struct gpu_masks masks; /* of the environment in which the run was submitted */
    struct devices devices;
    struct slots slots;
    struct job job;
    struct cgroup cgroup; /* of everything started for the ranks */
    struct run_status status;
    char *status_path;

    struct link_server *link;
    struct rank_state *ranks; /* of all ranks */
    int first_failed;         /* rank; -1: none */
    struct hang hang;

    enum ranks_phase phase;
    int64_t alarms_ms[N_ALARMS]; /* monotonic; 0: not set */

    pid_t main_pid;   /* mpirun, srun or the only rank; 0: not running */
    int main_status;  /* when it has ended */
    bool main_killed; /* by us */
    pid_t send_pid;   /* the process that sends folders */
    bool aborted;     /* by the user */
    char limit[160];  /* that the time limit has ended the run, in words; empty: it has not */
    char unsent[400]; /* why something that the run wrote is not in the store; may be empty */
    /* The id of a rule of diagnose.h: the class of the failure, if whoever ended the attempt knows it without the logs.
     * Not owned; NULL: the logs say it. */
    const char *end_class;
};

/* ---- start.c ---- */

/* Starts the ranks, once the slots are ours and unless the user has asked to abort (-ACT_INTERRUPTED). */
int start_run(struct supervisor *s, struct act_error *err) ACT_NODISCARD;
/* Waits for the runs that this one follows, and takes the slots of this machine; s->status says meanwhile what it waits
 * for. What is started from now on sees the GPUs. */
int start_take_slots(struct supervisor *s, struct act_error *err) ACT_NODISCARD;
/* Says in the status why the supervisor, arg, waits. */
void start_tell_waiting(void *arg, const char *why);

/* ---- others.c ---- */

/* Waits for the runs on this machine that this one follows: for the end of those that it replaces (run_spec.after),
 * then for what it is to run after (run_spec.needs). -ACT_INTERRUPTED: the user has asked to abort, or one of the
 * latter did not complete, which the error names; then this run is canceled. */
int others_wait(struct supervisor *s, struct act_error *err) ACT_NODISCARD;

/* ---- ranks.c ---- */

/* Listens for them; what they say comes through s->watch. */
int ranks_open(struct supervisor *s, struct act_error *err) ACT_NODISCARD;
void ranks_close(struct supervisor *s);
/* Asks all ranks to end; after grace_ms the agents kill what is left, and a moment later it stops waiting for the
 * agents. */
void ranks_stop(struct supervisor *s, int64_t grace_ms);
/* Sends a signal to those processes of the commands that catch it. */
void ranks_signal(struct supervisor *s, int sig);

/* Appends the last lines of a rank's log, if they are here. */
void ranks_last_lines(const struct supervisor *s, int rank, struct act_strv *out);

/* ---- judge.c ---- */

/* Returns how many ranks have said hello. */
int judge_count_came(const struct supervisor *s);
/* Tells whether the first failure is only a SIGTERM, which Slurm sends to everything at once when it ends a job or a
 * step. */
bool judge_only_terminated(const struct supervisor *s);
/* Sets the final status after all ranks are gone. */
void judge_run(struct supervisor *s);
/* Says in the status that logs are not whole, because the disk was full. */
void judge_cut_logs(struct supervisor *s);
/* Something that the run wrote is not in the store; afterwards, with that, whatever became of the run otherwise, no run
 * has completed, and its status says it. */
void judge_note_unsent(struct supervisor *s, const char *reason);
void judge_unsent(struct supervisor *s);
/* Tells whether nodes whose ranks have not come do not see the run's folder. */
bool judge_is_blind(const struct supervisor *s);
/* Ends processes left behind on nodes whose agents died before they could. */
void judge_sweep(struct supervisor *s);

/* ---- attempt.c ---- */

/* Only one job may execute a run; a job requeued by Slurm is the same job. */
int attempt_claim(const struct supervisor *s, struct act_error *err) ACT_NODISCARD;
/* Finds out which attempt this is: as Slurm counts, or one more than the last if its controller has lost count.
 * Waits for a supervisor that is still at the same one. False: that attempt has ended already, s->status says how,
 * and there is nothing to do. */
bool attempt_find(struct supervisor *s);
/* Tells whether the client has asked to abort. */
bool attempt_abort_is_asked(const struct supervisor *s);
/* Puts away what an earlier attempt left, and makes the folders of this one. */
int attempt_begin(struct supervisor *s, struct act_error *err) ACT_NODISCARD;
void attempt_set_reason(struct supervisor *s, const char *reason);
/* Sets the final state, exit status and reason, without writing them. */
void attempt_finish(struct supervisor *s, enum run_state state, int exit_status, const char *reason);
/* Writes status.json; when the disk is full, with the help of the reserve. */
void attempt_save_status(struct supervisor *s);
/* Appends a line to ranks.jsonl. */
void attempt_note(const struct supervisor *s, const char *event, const struct node_record *record);
/* Writes failure.json; synced to disk when it returns. record NULL: not the failure of one rank. */
void attempt_save_failure(const struct supervisor *s, const struct node_record *record, const char *reason);
/* Remembers that these nodes have failed. */
void attempt_note_failed_nodes(struct run_status *status, const struct act_strv *nodes);
/* Removes the reserve, whose room the last records of an attempt may need. */
void attempt_drop_reserve(const struct supervisor *s);

/* ---- again.c ---- */

/* Call it when the final status is known and nothing of the attempt is left. If another attempt follows it either does
 * not return, as this process begins it, or the status says what has been arranged. */
void again_consider(struct supervisor *s);

#endif
