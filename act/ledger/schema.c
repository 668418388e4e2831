/* schema.c - the tables of the ledger, and how those of an older program become them. */
#include "base/text.h"
#include "ledger/ledger_internal.h"

/* migrations[n] leads from schema version n to n + 1. spec is the last column, because it is long: a table of runs is
 * read without touching the pages that hold it. */
static const char *const migrations[] = {
    "CREATE TABLE runs (id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, platform TEXT NOT NULL,"
    " experiment TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL, created_unix_s INTEGER NOT NULL,"
    " num_gpu INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, spec TEXT NOT NULL);"
    "CREATE INDEX runs_by_time ON runs (created_unix_s);",

    "CREATE TABLE new_runs (id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, platform TEXT NOT NULL,"
    " experiment TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL, created_unix_s INTEGER NOT NULL,"
    " num_gpu INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, name TEXT, tags TEXT,"
    " found INTEGER NOT NULL, spec TEXT NOT NULL);"
    "INSERT INTO new_runs SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu,"
    " command, status, NULL, NULL, 0, spec FROM runs ORDER BY rowid;"
    "DROP TABLE runs;"
    "ALTER TABLE new_runs RENAME TO runs;"
    "CREATE INDEX runs_by_time ON runs (created_unix_s);"
    "CREATE INDEX runs_by_name ON runs (name) WHERE name IS NOT NULL;",

    ("CREATE TABLE bad_nodes (cluster TEXT NOT NULL, node TEXT NOT NULL, class TEXT NOT NULL, run TEXT NOT NULL,"
     " unix_s INTEGER NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (cluster, node, run, unix_s));"),

    ("CREATE TABLE new_runs (id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, platform TEXT NOT NULL,"
     " experiment TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL, created_unix_s INTEGER NOT NULL,"
     " num_gpu INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, name TEXT, tags TEXT,"
     " found INTEGER NOT NULL, place TEXT, spec TEXT NOT NULL);"
     "INSERT INTO new_runs SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu,"
     " command, status, name, tags, found, " LEDGER_PLACE_OF_SPEC ", spec FROM runs ORDER BY rowid;"
     "DROP TABLE runs;"
     "ALTER TABLE new_runs RENAME TO runs;"
     "CREATE INDEX runs_by_time ON runs (created_unix_s);"
     "CREATE INDEX runs_by_name ON runs (name) WHERE name IS NOT NULL;"
     "ALTER TABLE bad_nodes ADD COLUMN place TEXT;"),

    ("CREATE TABLE notes (run TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL);"
     "CREATE TRIGGER notes_go AFTER DELETE ON runs BEGIN DELETE FROM notes WHERE run = OLD.id; END;"),
};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

const int ledger_schema_version = SCHEMA_VERSION;
const char ledger_sql_version[] = "PRAGMA user_version";
/* Fits the tables of every schema version. */
static const char sql_first[] = LEDGER_SELECT_FIRST "spec FROM runs";

int ledger_check_version(const struct ledger *ledger, int version, struct act_error *err)
{
    if (version >= 0 && version <= SCHEMA_VERSION)
        return 0;
    return act_error_set(err, ACT_FAIL,
                         "cannot use the ledger '%s': it has schema version %d and this program knows up to "
                         "%d; update act",
                         ledger->path, version, SCHEMA_VERSION);
}

/* Adds the first runs of a new file. Whoever waits for the transaction sees them from the start. */
static int schema_add_first(struct ledger *ledger, const struct ledger_first *first, struct act_error *err)
{
    ACT_AUTO(ledger_runs) runs = {0};

    first->list(first->arg, &runs);
    return ledger_do_each(ledger, ledger_sql_add, ledger_bind_run, runs.v, runs.n, err);
}

/* Runs inside the transaction. Another process may have migrated meanwhile, so this reads the version again. */
static int migrate_steps(struct ledger *ledger, const struct ledger_first *first, struct act_error *err)
{
    int version = 0;
    int rc = ledger_ask_number(ledger, ledger_sql_version, NULL, &version, err);

    if (rc == 0)
        rc = ledger_check_version(ledger, version, err);
    for (; rc == 0 && version < SCHEMA_VERSION; version++) {
        ACT_AUTOFREE char *mark = act_sprintf("PRAGMA user_version = %d", version + 1);
        rc = ledger_run_sql(ledger, migrations[version], "set up", err);
        if (rc == 0)
            rc = ledger_run_sql(ledger, mark, "set up", err);
        ledger->is_new = ledger->is_new || version == 0;
    }
    return rc == 0 && ledger->is_new && first ? schema_add_first(ledger, first, err) : rc;
}

/* Tells whether the statement fits the tables that are there. */
static bool schema_fits(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK;

    sqlite3_finalize(statement);
    return good;
}

bool ledger_tables_fit(sqlite3 *db, int version)
{
    if (version < SCHEMA_VERSION)
        return schema_fits(db, sql_first);
    return schema_fits(db, ledger_sql_add) && schema_fits(db, ledger_sql_list);
}

int ledger_migrate(struct ledger *ledger, const struct ledger_first *first, struct act_error *err)
{
    int version = 0;
    int rc = ledger_ask_number(ledger, ledger_sql_version, NULL, &version, err);

    if (rc == 0 && version == SCHEMA_VERSION)
        return ledger_tables_fit(ledger->db, version) ? 0 : ledger_fail(ledger, "use", err);
    if (rc == 0)
        rc = ledger_check_version(ledger, version, err);
    if (rc == 0)
        rc = ledger_run_sql(ledger, "BEGIN IMMEDIATE", "set up", err);
    if (rc == 0)
        rc = ledger_end(ledger, migrate_steps(ledger, first, err), "set up", err);
    return rc;
}
