/* rows.h - for the files of runs/ only: a list of runs whose rows are read as they are needed. */
#ifndef ACT_FLOW_RUNS_ROWS_H
#define ACT_FLOW_RUNS_ROWS_H

#include "flow/runs/runs.h"

/* A run that was asked about, by its id: who visits it may take it. */
struct rows_known {
    char *id;
    size_t at;
};

struct flow_rows {
    struct flow *flow;
    struct flow_table table;
    struct flow_runs asked;   /* runs of the ledger, with what the platforms say of them now */
    struct flow_runs foreign; /* runs that only a platform knows, newest first */
    struct rows_known *known; /* those of asked, sorted by id */
    size_t n_known;
    bool said_rows, said_specs; /* which ones are damaged */
};

/* ---- rows.c */

/* Adds a run of the ledger to those that are asked about, and takes its row. */
void flow_rows_add_asked(struct flow_rows *rows, struct ledger_run *row);
/* Sorts those that are asked about, for flow_rows_find(). */
void flow_rows_index(struct flow_rows *rows);
/* Returns the run of this id; NULL: it was not asked about when they were sorted. */
struct flow_run *flow_rows_find(const struct flow_rows *rows, const char *id);
/* Tells whether a row (struct ledger_run) of a table (struct flow_table) may be wanted when the states are known. A
 * damaged one is taken, and said. */
bool flow_may_be_wanted(const void *table, const struct ledger_run *row);
/* Tells whether the table has runs of all kinds, so that the newest rows of the ledger are enough for its maximum. */
bool flow_table_has_all(const struct flow_table *table);
/* Tells whether the table has only runs of a name, or with tags. */
bool flow_table_is_labelled(const struct flow_table *table);

/* ---- table.c */

/* Tells whether two runs were sent to one cluster of one project, and are there. */
bool flow_rows_same_cluster(const struct ledger_run *a, const struct ledger_run *b);

/* Asks the platforms for the states of the runs that have not ended, and for the runs that the ledger lacks. */
int flow_rows_ask(struct flow_rows *rows, struct act_error *err) ACT_NODISCARD;

#endif
