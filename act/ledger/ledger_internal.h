/* ledger_internal.h - what the files of this module share: ledger.c opens and closes, schema.c makes and migrates the
 * tables, damage.c copies and repairs, runs.c, bad_nodes.c and notes.c read and write. */
#ifndef ACT_LEDGER_LEDGER_INTERNAL_H
#define ACT_LEDGER_LEDGER_INTERNAL_H

#include <sqlite3.h>

#include "ledger/ledger.h"

enum {
    LEDGER_BUSY_MS = 10000,     /* how long to wait for another process */
    LEDGER_BUSY_SHORT_MS = 200, /* the same where the caller has waited already */
};

struct ledger {
    sqlite3 *db;
    char *path;
    int64_t locked_ms; /* when the wait for another process began */
    bool told;         /* whether the user was told of that wait */
    bool is_new;
};

/* ledger.c */

/* Sets the error of the last call to SQLite; what: what could not be done, "read" or "write to". */
int ledger_fail(const struct ledger *ledger, const char *what, struct act_error *err);
/* Runs SQL that yields no rows; what: as for ledger_fail(). */
int ledger_run_sql(struct ledger *ledger, const char *sql, const char *what, struct act_error *err) ACT_NODISCARD;
/* Ends a transaction: commits it if rc is 0, else rolls it back. Returns rc, or the failure of the commit. */
int ledger_end(struct ledger *ledger, int rc, const char *what, struct act_error *err) ACT_NODISCARD;
/* Refuses a path, or a journal beside it, that is not a regular file: SQLite would wait forever for a writer at the
 * other end of a pipe. */
int ledger_check_files(const char *path, struct act_error *err) ACT_NODISCARD;
/* Binds text, which must outlive the statement, as ?at; NULL binds as NULL. */
void ledger_bind_text(sqlite3_stmt *statement, int at, const char *text);
/* Reads the one number that a statement yields; text: what its ?1 stands for, or NULL. */
int ledger_ask_number(const struct ledger *ledger, const char *sql, const char *text, int *out,
                      struct act_error *err) ACT_NODISCARD;
/* Returns the text of a column, a new string; NULL stays NULL. */
char *ledger_column(sqlite3_stmt *statement, int at);
/* Does the same with a column that is never NULL, unless another program wrote it: then the text is empty. */
char *ledger_column_some(sqlite3_stmt *statement, int at);

/* Binds the values of items[i]. */
typedef void ledger_bind_item(sqlite3_stmt *statement, const void *items, size_t i);
/* Executes a statement for each of n items, within the transaction of the caller. */
int ledger_do_each(struct ledger *ledger, const char *sql, ledger_bind_item *bind, const void *items, size_t n,
                   struct act_error *err) ACT_NODISCARD;
/* Executes it for each in a transaction of its own: for all of them or, when one fails, for none. */
int ledger_write_each(struct ledger *ledger, const char *sql, ledger_bind_item *bind, const void *items, size_t n,
                      struct act_error *err) ACT_NODISCARD;

/* schema.c */

extern const int ledger_schema_version;
extern const char ledger_sql_version[]; /* yields the schema version of a file */
/* Refuses a schema version that this program does not know. */
int ledger_check_version(const struct ledger *ledger, int version, struct act_error *err) ACT_NODISCARD;
/* Leads the file to the schema of this program; one that is empty gets the runs of first (NULL: none), too. */
int ledger_migrate(struct ledger *ledger, const struct ledger_first *first, struct act_error *err) ACT_NODISCARD;
/* Tells whether the tables of the file are those that a ledger of this version, from 1 up, has. */
bool ledger_tables_fit(sqlite3 *db, int version);

/* A run of before schema version 4 has no place of its own, but the configuration that it was submitted with. This is
 * all of it that may say where the run went. */
#define LEDGER_PLACE_OF_SPEC                                                                                           \
    "CASE WHEN json_valid(spec) AND json_type(spec, '$.config') = 'object' THEN json_object('config',"                 \
    " json_remove(json_extract(spec, '$.config'), '$.config_param', '$.docker', '$.env', '$.zip_options')) END"

/* runs.c */

/* The columns of a run that a file of any schema version has, and those of this one; spec follows. */
#define LEDGER_SELECT_FIRST                                                                                            \
    "SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command, status, "
#define LEDGER_SELECT_RUNS LEDGER_SELECT_FIRST "name, tags, found, place, "
extern const char ledger_sql_add[], ledger_sql_list[];
/* Binds a run (struct ledger_run) for ledger_sql_add. */
ledger_bind_item ledger_bind_run;
/* Appends all rows of a statement that selects those columns. Returns the result of its last step. */
int ledger_add_rows(sqlite3_stmt *statement, struct ledger_runs *out);

#endif
