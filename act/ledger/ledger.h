/* ledger.h - the SQLite file of the runs this user submitted, "ledger.db" in the state folder.
 *
 * Rollback journal (homes are often on NFS), a busy timeout of 10 s (the user is told after one second), the schema
 * version in user_version; an older schema is migrated, a newer one is an error that says so. Concurrent processes
 * are fine. Only a regular file is opened. A broken or busy database is an error, never an empty one: the caller
 * decides whether to set a damaged file aside and start a new one, or to continue with a copy of what can be read.
 */
#ifndef ACT_LEDGER_LEDGER_H
#define ACT_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ledger;

struct ledger_run {
    char *id, *cluster, *platform, *experiment;
    char *project; /* absolute path it was submitted from */
    char *spec;    /* run.json as one line */
    char *state;   /* run_state_name() */
    char *status;  /* run_status_to_json() as one line, or NULL */
    int64_t created_unix_s;
    int64_t num_gpu; /* nodes x GPUs; 0: without GPUs */
    char *command;   /* for people, one line */
    char *place;     /* where it was sent, JSON, as flow/place.h has it; NULL: not known */
    char *name;      /* that its user gave it; NULL: none */
    char *tags;      /* JSON, as run_tags_line(); NULL: none */
    bool found;      /* at a service that others use too, so that it may be somebody else's */
    char *replaces;  /* for ledger_add(): the id of a run that goes on, whose place it takes; else NULL. Not read */
};
void ledger_run_release(struct ledger_run *run);

struct ledger_runs {
    struct ledger_run *v;
    size_t n;
};
void ledger_runs_release(struct ledger_runs *runs);

int ledger_open(const char *path, struct ledger **out, struct act_error *err) ACT_NODISCARD;
void ledger_close(struct ledger *ledger);
/* Whether this call created it, so that it has no runs. */
bool ledger_is_new(const struct ledger *ledger);

/* Opens a copy in memory of what can be read, for when the file cannot be written or another process keeps it
 * locked; an empty one if nothing can be read. A newer schema is an error. */
int ledger_copy(const char *path, struct ledger **out, struct act_error *err) ACT_NODISCARD;

/* Whether the file can be read; nothing is written. -ACT_NOT_FOUND: it does not exist; -ACT_FAIL: it is damaged. */
int ledger_look(const char *path, struct act_error *err) ACT_NODISCARD;

/* Renames a damaged ledger, with its journal. One process does so at a time; if the file is sound, perhaps because
 * another process has just created a new one, nothing is renamed and *out_name is NULL. Else it is the new path, the
 * caller's. -ACT_TEMPORARY: another process keeps it locked. */
int ledger_set_aside(const char *path, char **out_name, struct act_error *err) ACT_NODISCARD;
/* The rows that can still be read from a file that was set aside, in no order, some perhaps twice. */
void ledger_salvage(const char *path, struct ledger_runs *out);

/* Adds a run; an existing one with this id is left as it is, and nothing is added if another run takes the place of
 * run->replaces already. NULL strings count as empty, except status. */
int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err) ACT_NODISCARD;
/* The same for many, all in one transaction. */
int ledger_add_all(struct ledger *ledger, const struct ledger_runs *runs, struct act_error *err) ACT_NODISCARD;

/* Stores new states, all in one transaction. A status of NULL keeps the stored one; an id that is not in the ledger
 * is skipped. */
struct ledger_update {
    const char *id, *state, *status;
};
int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n,
                  struct act_error *err) ACT_NODISCARD;

/* Where a run really is: its cluster, project and place from now on. An id that is not in the ledger is skipped. */
int ledger_move(struct ledger *ledger, const struct ledger_run *run, struct act_error *err) ACT_NODISCARD;

/* Takes runs out, all in one transaction; an id that is not in the ledger is skipped. */
int ledger_remove(struct ledger *ledger, const char *const *ids, size_t n, struct act_error *err) ACT_NODISCARD;

/* A node that was to blame for the failure of a run. */
struct ledger_bad {
    char *cluster, *node, *class, *run;
    int64_t unix_s;
    char *place; /* in words, where the run was; NULL: not known. Not read */
};
struct ledger_bads {
    struct ledger_bad *v;
    size_t n;
};
void ledger_bads_release(struct ledger_bads *bads);
/* Notes them, all in one transaction; what is there already, even forgotten, is left as it is. */
int ledger_add_bads(struct ledger *ledger, const struct ledger_bads *bads, struct act_error *err) ACT_NODISCARD;
/* Whose nodes: those of the place; where one of the two is not known, those of the cluster of that name. */
struct ledger_whose {
    const char *cluster; /* NULL: all nodes */
    const char *place;
};
/* Those since then that were not forgotten, newest first: each node once. */
int ledger_list_bads(struct ledger *ledger, const struct ledger_whose *whose, int64_t since_unix_s,
                     struct ledger_bads *out, struct act_error *err) ACT_NODISCARD;
/* Forgets a node; *out_n: how many notes of it there were. */
int ledger_forget_bad(struct ledger *ledger, const struct ledger_whose *whose, const char *node, int *out_n,
                      struct act_error *err) ACT_NODISCARD;

struct ledger_query {
    const char *cluster; /* NULL: all */
    bool without_spec;   /* leave spec NULL of runs that have ended: much cheaper for tables */
    size_t max;          /* no more than that, and no others are read; 0: all */
};
/* Newest first. */
int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out,
                struct act_error *err) ACT_NODISCARD;
/* Fills in spec of these rows where such a list has left it out; of those that have gone meanwhile it stays NULL. */
int ledger_fill_specs(struct ledger *ledger, struct ledger_run *const *runs, size_t n,
                      struct act_error *err) ACT_NODISCARD;
/* How many runs there are; cluster NULL: on all. */
int ledger_count(struct ledger *ledger, const char *cluster, size_t *out, struct act_error *err) ACT_NODISCARD;
/* The n-th run of that list, from 1; cluster NULL: of all. None: the list is empty, which is success. */
int ledger_nth(struct ledger *ledger, const char *cluster, int64_t n, struct ledger_runs *out,
               struct act_error *err) ACT_NODISCARD;
/* The runs that repeat that one and have not ended, newest first. */
int ledger_repeats(struct ledger *ledger, const char *id, struct ledger_runs *out, struct act_error *err) ACT_NODISCARD;
/* Whether there is a run of exactly this id. */
int ledger_has(struct ledger *ledger, const char *id, bool *out, struct act_error *err) ACT_NODISCARD;

/* The run whose id is the piece, or else the runs of that name, or else those whose id contains it (literally, no
 * wildcards), newest first. If nothing matches, or the piece is empty, the list is empty; that is success. */
int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out, struct act_error *err) ACT_NODISCARD;

#endif
