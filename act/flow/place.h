/* place.h - where runs went. What a run is tied to is the place that it was sent to, and not the name of a cluster
 * file, which may be renamed, moved or changed.
 *
 * A row of the ledger has its place: {"where": "'/home/u/.act' on u@login", "config": {"slurm": {...}}}, in which
 * config has the values of the platform's place.keys, without secrets. It says where a run is; with what to log in
 * there is as on the day it is asked. Rows of before schema version 4 of the ledger have no "where".
 */
#ifndef ACT_FLOW_PLACE_H
#define ACT_FLOW_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "flow/flow.h"
#include "run/run.h"

struct config;
struct config_request;
struct ledger_run;

/* Writes into a configuration as config_resolved() has it, perhaps of another machine, what says where runs of config
 * go. */
void flow_record_place(const struct config *config, json_t *resolved);
/* Returns the place that a specification tells of, as a row of the ledger has it; a new string; NULL: it tells none. */
char *flow_place_of_spec(const struct run_spec *spec);
/* Returns the place where a configuration leads, as a row of the ledger has it, as a new string. */
char *flow_place_of_config(const struct config *config);

/* Returns in words where a configuration leads, as a new string; NULL: it cannot be told. */
char *flow_where(const struct config *config);
/* Returns in words where a run went, as a new string; NULL: it is not known. */
char *flow_where_it_went(const struct ledger_run *row);

/* Makes a trusted configuration that leads to where a run is, from its row or else from its cluster file. */
int flow_config_at(const struct ledger_run *row, struct config *out, struct act_error *err) ACT_NODISCARD;

/* Opens the whole configuration of a run, with its stores. Returns 0 for that of its cluster file, if that leads to
 * where the run is, else 1 for the one that the run wrote down. with: what else is said of it (params, overrides), or
 * NULL. */
int flow_open_of_run(const struct ledger_run *row, const struct config_request *with, struct flow *out,
                     struct act_error *err) ACT_NODISCARD;

/* Points the row at the cluster of the command line, if there is one: that is where the run is asked for. *out_pointed:
 * the row has changed, and is to be written down when the run is found there. */
int flow_point_at(const struct flow *flow, struct ledger_run *row, bool *out_pointed,
                  struct act_error *err) ACT_NODISCARD;
/* Tells whether a configuration leads to where a run went. */
bool flow_leads_to(const struct config *config, const struct ledger_run *row);
/* Says so if the cluster file of a run leads elsewhere today. */
void flow_say_elsewhere(const struct ledger_run *row);

#endif
