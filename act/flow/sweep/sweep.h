/* sweep.h - one command for every point of its grids: a run each, of one package.
 *
 * A sweep is the same when project, cluster, size, command, grids, name, tags, configuration and package are: its id is
 * the hash of these, and <state folder>/sweeps/<id>.json says how far it has come and which ids the runs have that are
 * being submitted. So the same command goes on where it was interrupted, and no point is submitted twice: platforms
 * take an id once. Its runs have the tags sweep=<id> and, for each grid, NAME=VALUE.
 */
#ifndef ACT_FLOW_SWEEP_SWEEP_H
#define ACT_FLOW_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "flow/sweep/grid.h"
#include "run/run.h"

enum { FLOW_SWEEP_ID = 9 }; /* bytes, with the NUL */

struct flow_sweep {
    const struct flow_grids *grids;
    const struct act_strv *argv; /* with placeholders; checked by flow_grids_check() */
    struct flow_labels labels;   /* the runs are called "<name>.<number>"; name NULL: "sweep-<id>.<number>" */
    int max_parallel;            /* so many of its runs have not ended at any time; 0: no limit */
    struct act_strv after;       /* as in struct flow_submit, of every run */
    bool after_any;
    bool dry_run;           /* only fill spec */
    struct flow_init *code; /* as in struct flow_submit */
    /* Called after each step, and while there is no room for the next one, with how many points there are submitted
     * now; may be NULL. */
    void (*each)(void *arg, int64_t done);
    int (*confirm)(void *arg, const char *question, struct act_error *err); /* as in struct flow_submit */
    void *arg;
    char id[FLOW_SWEEP_ID];  /* out; "" after a dry run where the package is not known yet */
    int64_t kept, submitted; /* out: points that were there already, and that this call submitted */
    struct run_spec spec;    /* out: of the first point, or of the last that was submitted; release it */
};
/* Submits what is missing. A platform with arrays of its own (platform_several) gets many at once and sees to
 * max_parallel; elsewhere one after another, and with max_parallel it returns when the last one is submitted. On
 * failure what was submitted stays, and another call goes on. Another process that submits the same: -ACT_TEMPORARY. */
int flow_sweep(struct flow *flow, struct flow_sweep *io, struct act_error *err) ACT_NODISCARD;

/* Returns the id of the sweep that a run belongs to, as a new string; NULL: none. */
char *flow_sweep_of(const struct ledger_run *row);
/* Finds the sweep that piece means: "@" the last one, else the one with this id, else the one that --name called so,
 * else the one whose id begins with it. *out is a new string. Several: -ACT_USAGE; none: -ACT_NOT_FOUND. */
int flow_find_sweep(struct flow *flow, const char *piece, char **out, struct act_error *err) ACT_NODISCARD;
/* Adds the ids of the runs, the oldest first, of the sweep whose name or whole id word is, as the ledger knows them. It
 * is none: adds nothing. Several sweeps, or a run as well, have this name: -ACT_USAGE. */
int flow_runs_of_sweep(struct flow *flow, const char *word, struct act_strv *ids, struct act_error *err) ACT_NODISCARD;

#endif
