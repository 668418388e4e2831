/* keep.h - what ACT keeps, here and on clusters: how much it is, and removing what is old. */
#ifndef ACT_FLOW_KEEP_KEEP_H
#define ACT_FLOW_KEEP_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

/* ---- how much */

struct flow_kept {
    /* "runs", "packages", "agents", "environments", "leftovers" of commands that were killed, "copies of logs",
     * "built-in store", "package cache", "ledger" */
    const char *what;
    char *where;
    uint64_t bytes;
    size_t n; /* how many of what; of the built-in store: projects */
};
struct flow_keeps {
    struct flow_kept *v;
    size_t n;
};
/* Measures what ACT keeps of this user: on this machine, and where the runs of the ledger are (cluster: only those on
 * it; NULL: all). A place that cannot be asked is a warning. */
int flow_keeps(struct flow *flow, const char *cluster, struct flow_keeps *out, struct act_error *err) ACT_NODISCARD;
void flow_keeps_release(struct flow_keeps *keeps);

/* ---- removing what is old, or was named */

/* A run that goes: no more of it than is needed, because there may be 100,000. */
struct flow_pruned {
    char *id;
    char *package;             /* its SHA-256 */
    struct platform *platform; /* NULL: it never got there, or that cannot be reached */
    char *unreached;           /* why that cannot be: what is left there stays; else NULL */
    uint64_t bytes;
    bool has_copies; /* of its logs, in the project */
    bool has_sent;   /* its nodes sent logs to the store of the code */
    bool has_ended, unsubmitted;
};
/* The things that go, and those that are left although they are old. */
struct flow_prune {
    const char *cluster; /* in: NULL: all */
    int64_t older_s;     /* in: since they ended */
    bool force;          /* in: named ones go also where their place cannot be reached */

    struct flow_pruned *v;
    size_t n;
    struct act_strv going;    /* the ids of those runs, sorted */
    struct act_strv packages; /* of those runs, by SHA-256, sorted */
    struct act_strv used;     /* of all other runs in the ledger, likewise */
    uint64_t bytes;           /* of runs, copies of logs, packages, agents, environments and leftovers */
    size_t n_packages, n_agents, n_environments;
    size_t n_left;   /* what commands that were killed have left where runs are, of whatever age */
    size_t n_copies; /* runs whose logs were copied to this project */
    size_t n_sent;   /* runs whose logs are in the store of the code */

    size_t active;      /* not ended */
    size_t others;      /* another user's, or perhaps: found on the cluster */
    size_t service;     /* their service keeps them itself */
    size_t unreachable; /* their cluster does not answer */
    size_t n_found;     /* of v: found on a service that others use too */
    bool busy;          /* agents stay where a run has not ended */
    bool unknown;       /* packages stay where a folder of a run cannot be read */
};
/* Finds and measures what there is to remove of this project's runs: their folders or objects where they ran, their
 * logs in the project and in the store of the code, their rows in the ledger; packages here and there that no run has,
 * if these runs had them or they are old; agents of other versions; environments not used for as long; and what
 * commands that were killed have left. Changes nothing. Release *p in every case. */
int flow_prune_find(struct flow *flow, struct flow_prune *p, struct act_error *err) ACT_NODISCARD;
/* Reads the rows of n of the runs that go, from p->v[at] on, as far as the ledger still has them. */
int flow_prune_rows(struct flow *flow, const struct flow_prune *p, size_t at, size_t n, struct ledger_runs *out,
                    struct act_error *err) ACT_NODISCARD;
/* Removes that. One run that cannot be removed does not stop the others: -ACT_PARTIAL. *out_n: runs removed. */
int flow_prune(struct flow *flow, struct flow_prune *p, size_t *out_n, struct act_error *err) ACT_NODISCARD;
/* Adds to *p ({0} begins) the run that piece means, as flow_find_run() does, whatever its age and project; once.
 * Changes nothing. It has not ended: -ACT_USAGE. If its place cannot be reached, that is an error without p->force;
 * with it, what is here and in the store goes, and what is left there is warned about. Release *p in every case. */
int flow_remove_find(struct flow *flow, const char *piece, struct flow_prune *p, struct act_error *err) ACT_NODISCARD;
/* Asks ahead, where each question is a round trip, for what flow_remove_find() asks of the first few dozens of these
 * pieces, each with or without the colon of "RUN:". */
void flow_remove_expect(struct flow *flow, const struct act_strv *pieces);
/* Removes what flow_remove_find() has found: of these runs all but packages, which flow_prune() removes. As
 * flow_prune(), and one that goes on again stays. */
int flow_remove(struct flow *flow, struct flow_prune *p, size_t *out_n, struct act_error *err) ACT_NODISCARD;
void flow_prune_release(struct flow_prune *p);

#endif
