/* ledger.h - the SQLite file of the runs this user submitted, "ledger.db" in the state folder.
 *
 * Rollback journal (homes are often on NFS), a busy timeout of 10 s, of which the user is told after one, the schema version in user_version; an
 * older schema is migrated, a newer one is an error that says so. Concurrent processes are fine. What is no regular file is
 * never opened. A broken or busy database is an error, never an empty one: who opened it decides whether to set a damaged file aside and begin
 * anew, or to go on with a copy of what can be read.
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
    int64_t num_gpu; /* nodes x GPUs, or processes without GPUs */
    char *command;   /* for people, one line */
    char *
        settings; /* out: of spec the member of config that has the name of the platform, JSON; NULL: there is none, or in
                        a list a run that has ended */
};
void ledger_run_release(struct ledger_run *run);

struct ledger_runs {
    struct ledger_run *v;
    size_t n;
};
void ledger_runs_release(struct ledger_runs *runs);

int ledger_open(const char *path, struct ledger **out, struct act_error *err) ACT_NODISCARD;
void ledger_close(struct ledger *ledger);
/* Whether it was begun only now, so that it has no runs. */
bool ledger_is_new(const struct ledger *ledger);

/* A copy in memory, for when the file cannot be written, or another process keeps it locked: what can be read of it, also
 * without the lock; new where nothing can. An error when it has a newer schema. */
int ledger_copy(const char *path, struct ledger **out, struct act_error *err) ACT_NODISCARD;

/* Whether the file is there, and can be read; nothing is written. -ACT_NOT_FOUND: it is not there; -ACT_FAIL: it is damaged. */
int ledger_look(const char *path, struct act_error *err) ACT_NODISCARD;

/* Moves a file that is no sound ledger to another name beside it, with its journal. One process does so at a time; when
 * the file is sound, as when another process has just begun a new one, nothing is moved and *out_name is NULL. Else it is
 * the new path, the caller's. -ACT_TEMPORARY: another process keeps it locked. */
int ledger_set_aside(const char *path, char **out_name, struct act_error *err) ACT_NODISCARD;
/* The rows that can still be read of a file that was set aside, in no order, some maybe twice. */
void ledger_salvage(const char *path, struct ledger_runs *out);

/* Adds a run; one with this id already there is left as it is. Strings that are NULL count as empty, except
 * status. */
int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err) ACT_NODISCARD;
/* The same for many, all in one transaction. */
int ledger_add_all(struct ledger *ledger, const struct ledger_runs *runs,
                   struct act_error *err) ACT_NODISCARD;

/* Stores new states, all in one transaction. A status of NULL keeps the one that is there; an id that is not
 * in the ledger is passed over. */
struct ledger_update {
    const char *id, *state, *status;
};
int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n,
                  struct act_error *err) ACT_NODISCARD;

struct ledger_query {
    const char *cluster; /* NULL: all */
    bool without_spec;   /* leave spec NULL: much cheaper for tables */
    size_t max;          /* no more than that, and no others are read; 0: all */
};
/* Newest first. */
int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out,
                struct act_error *err) ACT_NODISCARD;
/* How many runs there are; cluster NULL: on all. */
int ledger_count(struct ledger *ledger, const char *cluster, size_t *out,
                 struct act_error *err) ACT_NODISCARD;
/* Whether there is a run of exactly this id. */
int ledger_has(struct ledger *ledger, const char *id, bool *out, struct act_error *err) ACT_NODISCARD;

/* The run whose id is the piece, or else the runs whose id contains it (as it is, no wildcards), newest
 * first. No match, also of an empty piece, is an empty list and success. */
int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out,
                struct act_error *err) ACT_NODISCARD;

#endif
