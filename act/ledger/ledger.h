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
    char *state;   /* a run_state_name() */
    char *status;  /* run_status_to_json() as one line, or NULL */
    int64_t created_unix_s;
    int64_t num_gpu; /* nodes x GPUs; 0: without GPUs */
    char *command;   /* for people, one line */
    char *place;     /* where it was sent, as JSON of flow/place.h; NULL: not known */
    char *name;      /* the name that its user gave it; NULL: none */
    char *tags;      /* the JSON of run_tags_line(); NULL: none */
    bool found;      /* it was found at a service that others use too, so it may be somebody else's */
    char *replaces;  /* for ledger_add(): the id of a run that goes on and whose place this one takes; NULL: of none. It
                      * is never read */
};
void ledger_run_release(struct ledger_run *run);

struct ledger_runs {
    struct ledger_run *v;
    size_t n;
};
void ledger_runs_release(struct ledger_runs *runs);

/* What a new ledger begins with. */
struct ledger_first {
    void (*list)(void *arg, struct ledger_runs *out); /* lists these runs; called while others wait for the ledger */
    void *arg;
};
/* Opens the ledger at path, and makes or migrates it as needed. A new one has the runs of first (NULL: none) as soon as
 * anybody can see it. */
int ledger_open(const char *path, const struct ledger_first *first, struct ledger **out,
                struct act_error *err) ACT_NODISCARD;
/* Closes it; ledger may be NULL. */
void ledger_close(struct ledger *ledger);
/* Tells whether ledger_open() made the tables, as in a new file. */
bool ledger_is_new(const struct ledger *ledger);

/* Copies what can be read of the file at path into memory and opens the copy, for when the file cannot be written or
 * another process keeps it locked. If nothing can be read, the copy is empty. A newer schema is an error. */
int ledger_copy(const char *path, struct ledger **out, struct act_error *err) ACT_NODISCARD;

/* Checks that the file at path can be read, and writes nothing. -ACT_NOT_FOUND: it does not exist; -ACT_FAIL: it is
 * damaged. */
int ledger_look(const char *path, struct act_error *err) ACT_NODISCARD;

/* Renames a damaged ledger and its journal, one process at a time. *out_name is the new path, which the caller frees;
 * or NULL if the file is sound, perhaps because another process has just created a new one, and keeps its name.
 * -ACT_TEMPORARY: another process keeps it locked. */
int ledger_set_aside(const char *path, char **out_name, struct act_error *err) ACT_NODISCARD;
/* Reads the rows that can still be read from a file that was set aside, in no order, some perhaps twice. */
void ledger_salvage(const char *path, struct ledger_runs *out);

/* Adds run; a run of this id that is there already stays as it is, and nothing is added if another run takes the place
 * of run->replaces already. The strings that may be NULL by struct ledger_run stay NULL, others become empty. */
int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err) ACT_NODISCARD;
/* Does the same with many runs, in one transaction. */
int ledger_add_all(struct ledger *ledger, const struct ledger_runs *runs, struct act_error *err) ACT_NODISCARD;

struct ledger_update {
    const char *id, *state;
    const char *status; /* NULL keeps the stored one */
};
/* Stores n new states in one transaction, and skips ids that are not in the ledger. */
int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n,
                  struct act_error *err) ACT_NODISCARD;

/* Stores the cluster, project and place of run, for a run that turned out to be elsewhere. Does nothing if its id is
 * not in the ledger. */
int ledger_move(struct ledger *ledger, const struct ledger_run *run, struct act_error *err) ACT_NODISCARD;

/* Removes n runs in one transaction, and skips ids that are not in the ledger. */
int ledger_remove(struct ledger *ledger, const char *const *ids, size_t n, struct act_error *err) ACT_NODISCARD;

/* A node that was to blame for the failure of a run. */
struct ledger_bad {
    char *cluster, *node, *class, *run;
    int64_t unix_s;
    char *place; /* in words, where the run was; NULL: not known. ledger_list_bads() does not read it */
};
struct ledger_bads {
    struct ledger_bad *v;
    size_t n;
};
void ledger_bads_release(struct ledger_bads *bads);
/* Adds notes in one transaction. A note that is there already, even a forgotten one, stays as it is. */
int ledger_add_bads(struct ledger *ledger, const struct ledger_bads *bads, struct act_error *err) ACT_NODISCARD;
/* Selects nodes: those of the place or, of notes without a place or if place is NULL, those of the cluster of that
 * name. */
struct ledger_whose {
    const char *cluster; /* NULL: all nodes */
    const char *place;
};
/* Lists the nodes noted since since_unix_s and not forgotten, each once, newest first. */
int ledger_list_bads(struct ledger *ledger, const struct ledger_whose *whose, int64_t since_unix_s,
                     struct ledger_bads *out, struct act_error *err) ACT_NODISCARD;
/* Marks all notes about node as forgotten; *out_n: how many there were. */
int ledger_forget_bad(struct ledger *ledger, const struct ledger_whose *whose, const char *node, int *out_n,
                      struct act_error *err) ACT_NODISCARD;

/* Something that was found out about a run and can be found out again, such as its last numbers. Goes with the run. */
struct ledger_note {
    const char *run, *text;
};
/* Sets n notes in one transaction, in place of those before, and skips runs that are not in the ledger. */
int ledger_set_notes(struct ledger *ledger, const struct ledger_note *notes, size_t n,
                     struct act_error *err) ACT_NODISCARD;
/* Reads the notes of n runs into out[n], new strings, where that is NULL; it stays NULL where there is none. */
int ledger_get_notes(struct ledger *ledger, const char *const *runs, size_t n, char **out,
                     struct act_error *err) ACT_NODISCARD;

/* Where a list goes on; {0} begins. */
struct ledger_place {
    int64_t created_unix_s, row; /* of the last row that was read */
    bool begun, ended;           /* ended: there are no more */
};

struct ledger_query {
    const char *cluster; /* NULL: all */
    bool without_spec;   /* leaves spec of runs that have ended NULL: much cheaper for tables */
    size_t max;          /* reads no more rows than that; 0: all */
    /* Tells whether a row is wanted: others are never in memory together. NULL: all are. */
    bool (*wanted)(const void *arg, const struct ledger_run *run);
    const void *arg;
    size_t few;                 /* with place: lists no more wanted rows than that */
    struct ledger_place *place; /* lists what is older than this, which moves on; NULL: begins with the newest */
};
/* Lists runs, newest first. */
int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out,
                struct act_error *err) ACT_NODISCARD;
/* Reads the rows of those of n runs that are in the ledger, in this order, without their specs. */
int ledger_get(struct ledger *ledger, const char *const *ids, size_t n, struct ledger_runs *out,
               struct act_error *err) ACT_NODISCARD;
/* Fills in the specs that ledger_list() left out of these n runs. That of a run that has gone meanwhile stays NULL. */
int ledger_fill_specs(struct ledger *ledger, struct ledger_run *const *runs, size_t n,
                      struct act_error *err) ACT_NODISCARD;
/* Counts the runs of cluster, or all if it is NULL. */
int ledger_count(struct ledger *ledger, const char *cluster, size_t *out, struct act_error *err) ACT_NODISCARD;
/* Reads the n-th newest run, from 1, of cluster, or of all if it is NULL. If there is none, out is empty: that is
 * success. */
int ledger_nth(struct ledger *ledger, const char *cluster, int64_t n, struct ledger_runs *out,
               struct act_error *err) ACT_NODISCARD;
/* Lists the runs that repeat the run of this id and have not ended, newest first. */
int ledger_repeats(struct ledger *ledger, const char *id, struct ledger_runs *out, struct act_error *err) ACT_NODISCARD;
/* Finds the run that took the place of the run of this id while that was active, the last one of several, whatever
 * became of it. If there is none, out is empty: that is success. */
int ledger_replacement(struct ledger *ledger, const char *id, struct ledger_runs *out,
                       struct act_error *err) ACT_NODISCARD;
/* Tells in *out whether there is a run of exactly this id. */
int ledger_has(struct ledger *ledger, const char *id, bool *out, struct act_error *err) ACT_NODISCARD;

/* Finds the run whose id is piece, or else the runs of that name that no other run of it repeats, or else those whose
 * id contains it (literally, no wildcards): the newest ones, newest first. If nothing matches, or piece is empty, out
 * is empty: that is success. */
enum { LEDGER_FOUND_MOST = 100 };
int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out, struct act_error *err) ACT_NODISCARD;

#endif
