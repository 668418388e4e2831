/* submit.h - starting runs: on a cluster, on this machine, again.
 *
 *   steps.c      the one table of steps that leads from words to a run (passage.h)
 *   submit.c     the steps that describe a new run, from a command or a job file
 *   resubmit.c   those of a run that is repeated; repeat.c says what it keeps of the first one
 *   local.c      the same command on this machine
 *   after.c      the runs that it is to run after
 *   folders.c    its mapped folders
 *   shape.c      nodes and processes, and the sizes that an elastic run may have
 *   starter.c    commands that start the processes of a node themselves
 *   hang.c       whether it is watched for hangs
 *   input.c      whether its commands have an input
 *   setup.c      what its nodes set up before the command
 *   retry.c      after what it is tried again, and which nodes it is kept off
 *   project.c    says which folder the project is
 *   pin.c        the package that it is pinned to
 *   unused.c     settings that have no effect on it
 *   hand_over.c  a finished specification goes to its platform
 *   job_files.c  what its nodes fetch from the store of the code
 *   again.c      goes on with a submission of which nobody knows what became of it
 */
#ifndef ACT_FLOW_SUBMIT_SUBMIT_H
#define ACT_FLOW_SUBMIT_SUBMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "run/run.h"

struct flow_submit {
    const struct act_strv *argv;               /* empty with a job file, and only then */
    const char *title;                         /* what it is for people, who never see argv then; NULL: argv says it */
    const char *job_file;                      /* a job file of Batch AI that says what to run and where; NULL: none */
    const char *storage_account, *storage_key; /* struct flow_job_storage of its volumes; may be NULL */
    bool own_size; /* nodes and processes come from the configuration, not from the job file */
    bool dry_run;  /* only fill spec; what would be refused is */
    /* How to pack the code first, and the result. NULL: the package stored last; of a repeated run its own. */
    struct flow_init *code;
    struct flow_labels labels;
    struct act_strv after; /* the runs that it begins after, as the user names them, RUN[,RUN...] each; not owned */
    bool takes_input;      /* its commands read what is typed into 'a attach' */
    bool after_any;        /* when they have ended, whatever became of them; else only if they complete */
    /* Asked about a lot of data that 'mount: copy' would bring to the nodes, and about a run that another one has
     * replaced; its error ends the submission. NULL: never asked. */
    int (*confirm)(void *arg, const char *question, struct act_error *err);
    void *arg;
    struct run_spec spec; /* out; release with run_spec_release() */
    json_t *preview;      /* out, of a dry run: what the platform would get; NULL: spec says it all. The caller's */
};
/* Submits a run, or with dry_run only describes it. The caller releases io->spec in every case. */
int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err) ACT_NODISCARD;

/* Submits old again, with the same command, package and size, and on the same cluster also the same image, environment
 * and folders (repeat.c). If old is still active, it is aborted when the platform has the new run, so
 * that nothing is lost if that is refused; where both are in one place that can wait, the new one begins when the old
 * one has ended. home is the configuration of its cluster, to that of the new run; they may be the same. io says what
 * is asked for besides; its command and job file are not used. The caller releases io->spec in every case. */
int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to, struct flow_submit *io,
                  struct act_error *err) ACT_NODISCARD;

/* A command on this machine, on the platform local, with the project's own folders and the image (in docker or podman)
 * of flow's cluster. */
struct flow_local {
    const struct act_strv *argv;
    bool no_container;
    bool stored_folders;    /* the mapped folders are those in the cluster's stores, as runs of the platform local have
                          * them; -ACT_CONFIG: this machine cannot get at one */
    bool dry_run;           /* only fill spec */
    struct flow_init *code; /* as in struct flow_submit */
    int (*confirm)(void *arg, const char *question, struct act_error *err); /* as in struct flow_submit */
    void *arg;
    struct flow_sink sink;                    /* gets rank 0's output */
    const volatile sig_atomic_t *interrupted; /* when it becomes true, the run is aborted */
    int exit_status;                          /* out: as flow_exit_status() */
    char reason[512];                         /* out: why it did not complete; may be empty */
    struct run_spec spec;                     /* out; release with run_spec_release() */
};
/* Starts the command, and returns when it has begun. */
int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;
/* Follows the output of the command, and returns when it has ended. */
int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;

#endif
