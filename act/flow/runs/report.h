/* report.h - all that is known about a run, from its fetched logs, the ledger and its platform: facts for a page. */
#ifndef ACT_FLOW_RUNS_REPORT_H
#define ACT_FLOW_RUNS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/runs/why.h"
#include "numbers/numbers.h"
#include "numbers/samples.h"

/* A value of the run's specification or configuration. A secret has the value "(secret)". */
struct flow_setting {
    char *name;   /* "nodes", "env.NCCL_DEBUG", "config.slurm.partition" */
    char *value;  /* NULL: the run has none */
    char *before; /* of the run it is compared with; NULL: that has none, or there is no such run */
};

/* What a node used, over all attempts: Unix seconds against values. */
struct flow_node_use {
    char *name;
    struct series curves[SAMPLES_CURVES]; /* by enum samples_what; sorted and reduced */
    int gpus;
    uint64_t bad; /* lines that were no samples */
};

struct flow_attempt {
    int number;
    struct run_status status;
};

struct flow_tail {
    char *log;
    struct act_strv lines;
};

struct flow_file {
    char *name;
    uint64_t size;
};

struct flow_report {
    const struct flow_run *run;
    char *compared; /* the id of the run that "before" is of; NULL: none */
    struct flow_setting *settings;
    size_t n_settings;
    struct numbers *numbers; /* the curves in a rank's log, sorted; never NULL */
    int numbers_rank;
    struct flow_node_use *nodes; /* by name, at most FLOW_REPORT_NODES */
    size_t n_nodes, n_all_nodes;
    struct flow_attempt *attempts; /* from the first; the last one is the run's own status */
    size_t n_attempts;
    struct flow_why why;
    bool has_why; /* why could be asked */
    struct flow_tail *tails;
    size_t n_tails;
    struct flow_file *files; /* the copies of logs, by name */
    size_t n_files;
    struct flow_file *outputs; /* what was written into its mapped folders while it ran: "output/model.pt", the biggest
                                  ones first */
    size_t n_outputs, n_all_outputs;
    uint64_t output_bytes; /* of all */
};

enum { FLOW_REPORT_NODES = 128 };

/* Only the numbers of a rank's log, over all attempts; rank -1: of the first rank that has any. They are read from the
 * fetched logs in pieces, whatever their size. */
int flow_read_numbers(const struct flow_run *run, int rank, struct numbers **out, int *out_rank,
                      struct act_error *err) ACT_NODISCARD;

/* rank as above. compared: what the settings are compared with, if the run repeats none; may be NULL. run must live as
 * long as out. No fetched logs: still a report, without curves. Release out in every case. */
int flow_report(struct flow *flow, const struct flow_run *run, int rank, const struct flow_run *compared,
                struct flow_report *out, struct act_error *err) ACT_NODISCARD;
void flow_report_release(struct flow_report *report);

#endif
