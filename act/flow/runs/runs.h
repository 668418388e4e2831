/* runs.h - runs that are there: found, listed, waited for, ended. */
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

/* Where text of a log goes. */
struct flow_sink {
    int (*write)(void *arg, const char *data, size_t len, struct act_error *err);
    void *arg;
};

struct flow_run {
    struct ledger_run row;
    struct run_spec spec; /* only where it was asked for */
    struct run_status status;
    bool changed; /* internal: the ledger does not know this status yet */
    bool fresh;   /* internal: its platform told it a moment ago */
};

struct flow_runs {
    struct flow_run *v;
    size_t n;
    size_t total; /* how many there are, also beyond a maximum */
};
void flow_run_release(struct flow_run *run);
void flow_runs_release(struct flow_runs *runs);
/* The one run that piece means, its status fresh from its platform. A run that the ledger does not know, because it was
 * lost, never written, or another machine's, is taken into it from this machine or the cluster. Ambiguous: -ACT_USAGE
 * with the candidates. */
int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;
/* The same as the ledger knows it, without asking anybody, and without spec. */
int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out,
                      struct act_error *err) ACT_NODISCARD;
/* The same for who watches it: while the platform cannot be asked, this goes on, and the user is told. */
int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out,
                      struct act_error *err) ACT_NODISCARD;

struct flow_table {
    const char *cluster;  /* NULL: all */
    const char *platform; /* NULL: all */
    const char *state;    /* "Running", ...; NULL: all */
    int64_t max;          /* 0: all */
    bool with_spec;       /* fill in the specifications too */
    bool as_known;        /* ask no platform */
};
/* Takes the runs that the cluster of the command line, or of this project, has and the ledger lacks, as after it was
 * lost. Those of a service are in every table, and not taken. */
int flow_rebuild(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* The runs of the ledger, newest first, the active ones refreshed from their platforms (many in one call); of a table
 * of all states and platforms no more of them than max. A platform that cannot be asked leaves its runs as they were,
 * with a warning. */
int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err) ACT_NODISCARD;
/* The page where a run can be looked at with a browser. New string; NULL: there is none. */
char *flow_page(struct flow *flow, const struct flow_run *run);
/* Waits until the run has ended, also while the platform cannot be asked. */
int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* The same for the one run that piece means, found first. */
struct flow_waiting {
    int64_t timeout_s; /* 0: for ever, else -ACT_TIMEOUT */
    /* Once it is found, and after each look that does not find it ended; may be NULL. */
    void (*each)(void *arg, const struct flow_run *run);
    void *arg;
};
int flow_wait_for(struct flow *flow, const char *piece, const struct flow_waiting *how, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;
/* Cancels. *out_was_final: it had ended before. */
int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final,
               struct act_error *err) ACT_NODISCARD;
/* Of a cluster that does not answer: the run counts as Canceled here; one that answers is an error. As flow_abort()
 * otherwise. */
int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final,
                struct act_error *err) ACT_NODISCARD;
/* The parameters of a command "python src/....py -bp BASE64", decoded: YAML. New string; NULL: it is no such
 * command. */
char *flow_batch_param(const struct act_strv *argv);
/* What a shell would give for the run: 0, the exit status of the first failing rank, 143 when cancelled. */
int flow_exit_status(const struct run_status *status);

#endif
