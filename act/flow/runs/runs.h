/* runs.h - the existing runs: found, listed, waited for, changed in size; and the nodes that failed under them.
 *
 *   find.c         the one run that a piece of an id or a name means, taken into the ledger if that does not know it
 *   near.c         what a word that names no run may mean
 *   named.c        runs by the names that a service shows for them
 *   rows.c         many runs at once
 *   table.c        what platforms say of them
 *   state.c        the status of a run: as the ledger has it, and as its platform says now
 *   watch.c        how often a watched run is asked about, and what happens while its platform does not answer
 *   wait.c         waiting for runs
 *   scale.c        another size for an elastic run
 *   bad.c          nodes that failed lately
 *   batch_param.c  what commands of the original ACT say in base64
 *
 * A run is ended in logs/, because its logs may go with it. watch.h is for the rooms behind this one.
 */
#ifndef ACT_FLOW_RUNS_RUNS_H
#define ACT_FLOW_RUNS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "flow/run.h"
#include "ledger/ledger.h"
#include "run/run.h"

/* ---- one run */

/* Finds the one run that piece means, with its specification and a fresh status from its platform. piece is the id, a
 * part of it, or a name. A run that the ledger lacks (it was lost, or another machine submitted the run) is taken from
 * this machine or the cluster. Several: -ACT_USAGE, which lists them. The caller releases out. */
int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* The outcome of a search for a run: rc below 0 and why, or the run, which the caller releases. */
struct flow_found {
    struct flow_run run;
    int rc;
    struct act_error err;
    bool was_final, asks; /* internal */
};
/* Does what flow_find_run() does for n pieces, and asks each cluster in one request about its runs. */
void flow_find_runs(struct flow *flow, const char *const *pieces, size_t n, struct flow_found *out);
/* Finds the run in the ledger alone, as that has it, without its specification. */
int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Does what flow_find_unasked() does, and reads the specification. */
int flow_find_known(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Does what flow_find_run() does for somebody who watches the run: while its platform cannot be reached, the user is
 * told, and this goes on asking. */
int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Adds the names and tags ("KEY=VALUE") of the runs of the ledger, the newest first, each once, without asking anybody
 * else. */
void flow_known_labels(struct flow *flow, struct act_strv *names, struct act_strv *tags);
/* Returns what to say of a word that names no run, or none that goes on: "; did you mean 'ddp1'? 'a q' lists the runs".
 * New string. */
char *flow_near_run(struct flow *flow, const char *word);
/* Returns the URL of the run's web page, a new string; NULL: it has none. */
char *flow_page(struct flow *flow, const struct flow_run *run);
/* Returns the folder where a run that has begun works, its own copy of the project, as a new string; NULL: it is not
 * known. */
char *flow_code_folder(struct flow *flow, const struct flow_run *run);
/* Returns the exit status that stands for the run, as a shell has it: 0, that of the first rank that failed, or 143 if
 * the run was canceled. */
int flow_exit_status(const struct run_status *status);
/* Gives an elastic run num_gpu GPUs; with dry_run it only tells whether that can be. *out_nodes is on how many nodes
 * they are. A run of a fixed size, one that has ended, or a number outside its range: -ACT_USAGE. */
int flow_scale(struct flow *flow, struct flow_run *run, int64_t num_gpu, bool dry_run, int *out_nodes,
               struct act_error *err) ACT_NODISCARD;
/* Returns the parameters of a command "python src/....py -bp BASE64", decoded, which are YAML, as a new string; NULL:
 * it is no such command. */
char *flow_batch_param(const struct act_strv *argv);
/* Returns the toolkit ("pyTorch") of the job file that the run is of, as a new string; NULL: it is of none. */
char *flow_tool(const struct run_spec *spec);

/* ---- many runs */

/* The labels of a run, which are not owned. */
struct flow_labels {
    const char *name; /* NULL: none */
    json_t *tags;     /* an object of texts; NULL: none */
};

struct flow_rows;

/* Selects runs. */
struct flow_table {
    const char *cluster;       /* NULL: all */
    const char *platform;      /* NULL: all */
    const char *state;         /* "Running", ...; NULL: all */
    struct flow_labels labels; /* only runs of this name, with all these tags */
    int64_t max;               /* 0: all */
    int64_t recent;            /* of the runs that a service lists, with max 0: so many are asked for; 0: all */
    bool own;                  /* only those of the ledger that are surely the user's */
    bool active;               /* only those that have not ended */
    bool with_spec;            /* fill in all specifications; else only those of job files */
    bool without_config;       /* without the configurations in them, which are most of their text */
    bool without_status;       /* of runs that have ended, only their state, until flow_load_status() */
    bool as_known;             /* do not ask the platforms */
};
/* Lists the runs of the ledger, newest first, the active ones refreshed from their platforms (many per call). In a
 * table of all states and platforms at most max of them are refreshed. Runs whose platform cannot be reached keep the
 * last known status, with a warning. The caller releases out. */
int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err) ACT_NODISCARD;
/* Is told of the next few runs of a list; those that it takes become {0}. Below 0 ends the visits. */
typedef int flow_rows_visit(void *arg, struct flow_run *runs, size_t n, struct act_error *err);
enum { FLOW_ROWS_FEW = 48 }; /* at most */
struct flow_rows_count {
    size_t n, total; /* n: at most the maximum of the table */
};
/* Does what flow_list_runs() does for those who need not have all runs at once: the platforms are asked once, and the
 * rows are read as they are needed, so that 100,000 runs take no more memory than a few. *out is NULL after a failure.
 * table's labels must outlive the list. */
int flow_rows_open(struct flow *flow, const struct flow_table *table, struct flow_rows **out,
                   struct act_error *err) ACT_NODISCARD;
/* Visits all runs of the list, newest first, as often as it is called; who takes runs calls it once. each may be NULL,
 * which only counts them, and so may out. */
int flow_rows_each(struct flow_rows *rows, flow_rows_visit *each, void *arg, struct flow_rows_count *out,
                   struct act_error *err) ACT_NODISCARD;
/* Closes the list; rows may be NULL. */
void flow_rows_close(struct flow_rows *rows);
/* Is told of a run with what run_brief_from_json() reads of its specification, which is gone when this returns. Below 0
 * ends the visits. */
typedef int flow_brief_visit(void *arg, struct flow_run *run, struct act_error *err);
/* Calls each for every run of a list that has no specifications, which are read as they are needed: those of 100,000
 * runs would be gigabytes. Returns what each did, or why the ledger cannot be read. */
int flow_each_brief(struct flow *flow, struct flow_runs *runs, flow_brief_visit *each, void *arg,
                    struct act_error *err) ACT_NODISCARD;
/* Fills in the specifications of runs that flow_list_runs() has listed without. */
int flow_load_specs(struct flow *flow, struct flow_runs *runs, struct act_error *err) ACT_NODISCARD;
/* Fills in the status of a run that a list has without. */
void flow_load_status(struct flow_run *run);
/* Adds to the ledger the runs of the command line's or this project's cluster that it lacks, as after it was lost. The
 * runs that a service lists itself are not added: every table shows them anyway. */
int flow_rebuild(struct flow *flow, struct act_error *err) ACT_NODISCARD;

/* ---- waiting */

/* Waits until the run has ended, even while its platform cannot be reached. */
int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* Waits until the run runs or has ended, even while its platform cannot be reached; stops() is asked once a second at
 * least, and ends it when it is true. each() is called after each check that finds that it waits. */
struct flow_beginning {
    void (*each)(void *arg, const struct flow_run *run);
    bool (*stops)(void *arg);
    void *arg;
};
int flow_wait_begun(struct flow *flow, struct flow_run *run, const struct flow_beginning *how,
                    struct act_error *err) ACT_NODISCARD;

struct flow_waiting {
    int64_t timeout_s; /* then -ACT_TIMEOUT; 0: no limit */
    bool any;          /* only until one of them has ended, which is the first of *out then */
    /* Called when the runs are found, and after each check that finds some not ended; may be NULL. */
    void (*each)(void *arg, const struct flow_runs *runs, size_t n_ended);
    void (*ended)(void *arg,
                  const struct flow_run *run); /* once for each that has ended, any: for the first; may be NULL */
    void *arg;
};
/* Waits for the runs that the pieces mean. They are found first: if one is not, this waits for none. The caller
 * releases out in every case. */
int flow_wait_for(struct flow *flow, const struct act_strv *pieces, const struct flow_waiting *how,
                  struct flow_runs *out, struct act_error *err) ACT_NODISCARD;

/* ---- nodes that were to blame for the failure of a run of this user, in the last week */

/* Lists those of the place that cluster is (NULL: of all), newest first, each once, as far as this machine has seen
 * what became of runs. It contacts no host. */
int flow_bad_nodes(struct flow *flow, const char *cluster, struct ledger_bads *out,
                   struct act_error *err) ACT_NODISCARD;
/* Lists those of the place where the configuration of flow leads. */
int flow_bad_nodes_here(struct flow *flow, struct ledger_bads *out, struct act_error *err) ACT_NODISCARD;
/* Asks the platforms what became of the runs that have not ended, so that flow_bad_nodes() knows their nodes, too. */
int flow_look_for_bad_nodes(struct flow *flow, const char *cluster, struct act_error *err) ACT_NODISCARD;
/* Forgets the failures of node on cluster (NULL: on all). None is remembered: -ACT_NOT_FOUND. */
int flow_forget_bad_node(struct flow *flow, const char *cluster, const char *node, struct act_error *err) ACT_NODISCARD;

#endif
