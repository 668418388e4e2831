/* runs.h - existing runs: found, listed, waited for, ended. */
#ifndef ACT_FLOW_RUNS_RUNS_H
#define ACT_FLOW_RUNS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "ledger/ledger.h"
#include "run/run.h"

/* Receives the text of a log. */
struct flow_sink {
    int (*write)(void *arg, const char *data, size_t len, struct act_error *err);
    void *arg;
};

struct flow_run {
    struct ledger_run row;
    struct run_spec spec; /* only if requested */
    struct run_status status;
    bool changed;    /* status is newer than what the ledger has */
    bool fresh;      /* the platform reported status just now */
    bool is_pointed; /* row says where the user has the run looked for (-c), and not yet where it is */
};

struct flow_runs {
    struct flow_run *v;
    size_t n;
    size_t total; /* how many there are, even beyond a maximum */
};
void flow_run_release(struct flow_run *run);
void flow_runs_release(struct flow_runs *runs);
/* Appends a run, which runs owns then; one that is there already, as of two pieces of one id, is released. */
void flow_runs_take(struct flow_runs *runs, struct flow_run *run);
/* Finds the one run that piece identifies, with a fresh status from its platform. A run missing from the ledger
 * (because the ledger was lost or never written, or is another machine's) is added from this machine or the cluster.
 * Ambiguous: -ACT_USAGE with the candidates. */
int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Likewise, as recorded in the ledger, without asking the platform and without spec. */
int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Likewise, with spec. */
int flow_find_known(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;
/* Likewise for watching it: if the platform cannot be reached, the user is told and this succeeds anyway. */
int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out, struct act_error *err) ACT_NODISCARD;

/* What a run is called; not owned. */
struct flow_labels {
    const char *name; /* NULL: none */
    json_t *tags;     /* an object of texts; NULL: none */
};

struct flow_table {
    const char *cluster;       /* NULL: all */
    const char *platform;      /* NULL: all */
    const char *state;         /* "Running", ...; NULL: all */
    struct flow_labels labels; /* only runs of this name, with all these tags */
    int64_t max;               /* 0: all */
    bool own;                  /* only those of the ledger that are surely the user's */
    bool active;               /* only those that have not ended */
    bool with_spec;            /* fill in all specifications; else only those of job files */
    bool as_known;             /* do not ask the platforms */
};
/* Adds to the ledger the runs of the command line's or this project's cluster that it lacks, as after it was lost. A
 * service's own runs are not added: every table shows them anyway. */
int flow_rebuild(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* The runs of the ledger, newest first, the active ones refreshed from their platforms (many per call); in a table of
 * all states and platforms, at most max of them are. If a platform cannot be reached, its runs keep their last known
 * status, with a warning. */
int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err) ACT_NODISCARD;
/* The URL of a run's web page. New string; NULL: none. */
char *flow_page(struct flow *flow, const struct flow_run *run);
/* Waits until the run has ended, even while the platform cannot be reached. */
int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* Likewise for several, but first finds the runs that the pieces identify: if one is none, nothing is waited for. */
struct flow_waiting {
    int64_t timeout_s; /* then -ACT_TIMEOUT; 0: no limit */
    bool any;          /* only until one of them has ended, which is the first of *out then */
    /* Called when they are found, and after each check that finds some not ended; may be NULL. */
    void (*each)(void *arg, const struct flow_runs *runs, size_t n_ended);
    void (*ended)(void *arg,
                  const struct flow_run *run); /* once for each that has ended, any: for the first; may be NULL */
    void *arg;
};
/* Release *out in every case. */
int flow_wait_for(struct flow *flow, const struct act_strv *pieces, const struct flow_waiting *how,
                  struct flow_runs *out, struct act_error *err) ACT_NODISCARD;
/* Cancels the run. *out_was_final: it had already ended. */
int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err) ACT_NODISCARD;
/* Changes the size of an elastic run to so many GPUs; dry_run: only says whether it could. *out_nodes: on so many
 * nodes. A run of a fixed size, one that has ended, or a number outside its range: -ACT_USAGE. */
int flow_scale(struct flow *flow, struct flow_run *run, int64_t num_gpu, bool dry_run, int *out_nodes,
               struct act_error *err) ACT_NODISCARD;
/* For a cluster that does not answer: records the run as Canceled here; if the cluster answers, that is an error.
 * Otherwise like flow_abort(). */
int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err) ACT_NODISCARD;
/* The parameters of a command "python src/....py -bp BASE64", decoded: YAML. New string; NULL: not such a command. */
char *flow_batch_param(const struct act_strv *argv);
/* The toolkit of the job file that the run is of, "pyTorch". New string; NULL: of none. */
char *flow_tool(const struct run_spec *spec);
/* The run's exit status, as from a shell: 0, the exit status of the first failing rank, 143 if cancelled. */
int flow_exit_status(const struct run_status *status);

#endif
