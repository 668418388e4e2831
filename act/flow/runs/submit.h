/* submit.h - starting runs: on a cluster, on this machine, again. */
#ifndef ACT_FLOW_RUNS_SUBMIT_H
#define ACT_FLOW_RUNS_SUBMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "run/run.h"

struct flow_submit {
    const struct act_strv *argv;               /* empty with a job file, and only then */
    const char *job_file;                      /* a job file of Batch AI that says what to run and where; NULL: none */
    const char *storage_account, *storage_key; /* struct flow_job_storage of its volumes; may be NULL */
    bool own_size; /* nodes and processes come from the configuration, not from the job file */
    bool dry_run;  /* only fill spec; what would be refused is */
    /* How to pack the code first, and the result. NULL: the package stored last; of a repeated run its own. */
    struct flow_init *code;
    struct flow_labels labels;
    /* Asked about a lot of data that 'mount: copy' would bring to the nodes; its error ends it. NULL: never asked. */
    int (*confirm)(void *arg, const char *question, struct act_error *err);
    void *arg;
    struct run_spec spec; /* out; release with run_spec_release() */
    json_t *preview;      /* out, of a dry run: what the platform would get; NULL: spec says it all. The caller's */
};
int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err) ACT_NODISCARD;

/* Runs the command on this machine, on the platform local, with the project's own folders and the image (in docker or
 * podman) of flow's cluster: _start() returns when it has begun, _attend() when it has ended. Rank 0's output goes to
 * the sink; when *interrupted becomes true the run is aborted. With stored_folders the mapped folders are those in the
 * cluster's stores, as runs of the platform local have them; -ACT_CONFIG: this machine cannot get at one. */
struct flow_local {
    const struct act_strv *argv;
    bool no_container;
    bool stored_folders;
    bool dry_run;                                                           /* only fill spec */
    struct flow_init *code;                                                 /* as in struct flow_submit */
    int (*confirm)(void *arg, const char *question, struct act_error *err); /* likewise */
    void *arg;
    struct flow_sink sink;
    const volatile sig_atomic_t *interrupted;
    int exit_status;      /* out: as flow_exit_status() */
    char reason[512];     /* out: why it did not complete; may be empty */
    struct run_spec spec; /* out; release with run_spec_release() */
};
int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;
int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;
/* Resubmits a run with the same command, package and size, and on the same cluster also the same image, environment and
 * folders (see flow_repeat_settings()). If the run is still active it is aborted when the platform has the new one, so
 * that nothing is lost if that is refused; where both are in one place that can wait, the new one begins when the old
 * one has ended. home is the configuration of its cluster, to that of the new one; they may be the same. io says what
 * is asked for besides; its command and job file are not used. Release io->spec in every case. */
int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to, struct flow_submit *io,
                  struct act_error *err) ACT_NODISCARD;

#endif
