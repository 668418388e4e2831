/* run.h - a run as the use cases know it: its row of the ledger, its specification and its status. */
#ifndef ACT_FLOW_RUN_H
#define ACT_FLOW_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "ledger/ledger.h"
#include "run/run.h"

struct flow_run {
    struct ledger_run row;
    struct run_spec spec; /* only if requested */
    struct run_status status;
    char *replaced_by; /* the id of the run that took its place; NULL: none did, or nobody asked */
    bool changed;      /* status is newer than what the ledger has */
    bool fresh;        /* the platform reported status just now */
    bool is_brief;     /* status has only the state */
    bool is_pointed;   /* row says where the user has the run looked for (-c), and not yet where it is */
};
/* Frees what run holds. */
void flow_run_release(struct flow_run *run);
/* Returns a command as one would type it, quoted where necessary, as a new string; "" where it has no words. */
char *flow_command_line(const struct act_strv *argv);
/* Returns the folder for the copies of its logs, assets/<run id>, whether or not it is there, as a new string. */
char *flow_assets(const struct flow_run *run);

struct flow_runs {
    struct flow_run *v;
    size_t n;
    size_t total; /* how many there are, even beyond a maximum */
};
/* Frees the runs. */
void flow_runs_release(struct flow_runs *runs);
/* Appends run, which runs owns then. If runs has it already, as of two pieces of one id, it releases run instead. */
void flow_runs_take(struct flow_runs *runs, struct flow_run *run);

#endif
