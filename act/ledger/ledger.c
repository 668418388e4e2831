/* ledger.c - see ledger.h. Every call is one statement or one transaction; nothing is kept open in between,
 * so that other processes never wait for this one. */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

#define BUSY_TIMEOUT_MS 10000

/* migrations[n] leads from schema version n to n + 1. spec is the last column, because it is long: a table
 * of runs is read without touching the pages that hold it. */
static const char *const migrations[] = {
    "CREATE TABLE runs (id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, platform TEXT NOT NULL,"
    " experiment TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL, created_unix_s INTEGER NOT NULL,"
    " num_gpu INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, spec TEXT NOT NULL);"
    "CREATE INDEX runs_by_time ON runs (created_unix_s);",
};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* The rollback journal works where homes are on NFS; FULL keeps a run that was recorded over a power cut. */
static const char sql_settings[] = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;";
static const char sql_version[] = "PRAGMA user_version";

static const char sql_add[] =
    "INSERT INTO runs (id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command,"
    " status, spec) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO NOTHING";
static const char sql_update[] = "UPDATE runs SET state = ?2, status = COALESCE(?3, status) WHERE id = ?1"
                                 " AND (state <> ?2 OR (?3 IS NOT NULL AND status IS NOT ?3))";

#define SELECT_RUNS                                                                                          \
    "SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command, status, "
#define NEWEST_FIRST  " ORDER BY created_unix_s DESC, rowid DESC"
#define SLURM_OF_SPEC "CASE WHEN json_valid(spec) THEN json_extract(spec, '$.config.slurm') END"
/* Only specifications of runs that are asked about are read. */
static const char sql_list[] = SELECT_RUNS
    "CASE WHEN ?2 THEN NULL ELSE spec END, CASE WHEN platform = 'slurm' AND state NOT IN ('Completed', 'Failed',"
    " 'Canceled') THEN " SLURM_OF_SPEC " END FROM runs WHERE (?1 IS NULL OR cluster = ?1)" NEWEST_FIRST;
static const char sql_find_exact[] = SELECT_RUNS "spec, " SLURM_OF_SPEC " FROM runs WHERE id = ?1";
static const char sql_find_piece[] =
    SELECT_RUNS "spec, " SLURM_OF_SPEC " FROM runs WHERE instr(id, ?1) > 0" NEWEST_FIRST;

struct ledger {
    sqlite3 *db;
    char *path;
};

void ledger_run_release(struct ledger_run *run)
{
    char *const strings[] = {run->id,   run->cluster, run->platform, run->experiment, run->project,
                             run->spec, run->state,   run->status,   run->command,    run->slurm};

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        free(strings[i]);
    *run = (struct ledger_run){0};
}

void ledger_runs_release(struct ledger_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        ledger_run_release(&runs->v[i]);
    free(runs->v);
    *runs = (struct ledger_runs){0};
}

/* Errors */

static int fail(const struct ledger *ledger, const char *what, struct act_error *err)
{
    switch (sqlite3_errcode(ledger->db)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return act_error_set(err, ACT_TEMPORARY,
                             "cannot %s the ledger '%s': another process keeps it locked; try again", what,
                             ledger->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return act_error_set(err, ACT_FAIL,
                             "cannot %s the ledger '%s': %s; move the file away to start a new one, the runs "
                             "themselves are not touched",
                             what, ledger->path, sqlite3_errmsg(ledger->db));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return act_error_set(err, ACT_DENIED,
                             "cannot %s the ledger '%s': %s; the file and its folder must be writable", what,
                             ledger->path, sqlite3_errmsg(ledger->db));
    default:
        return act_error_set(err, ACT_FAIL, "cannot %s the ledger '%s': %s", what, ledger->path,
                             sqlite3_errmsg(ledger->db));
    }
}

static int run_sql(struct ledger *ledger, const char *sql, const char *what, struct act_error *err)
{
    if (sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(ledger, what, err);
    return 0;
}

/* Ends a transaction: commits what went well, takes back what did not. */
static int finish(struct ledger *ledger, int rc, const char *what, struct act_error *err)
{
    if (rc == 0)
        rc = run_sql(ledger, "COMMIT", what, err);
    if (rc < 0 && !sqlite3_get_autocommit(ledger->db))
        sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* Opening and the schema */

static int read_version(struct ledger *ledger, int *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(ledger->db, sql_version, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        rc = fail(ledger, "read", err);
    else
        *out = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

static int check_version(const struct ledger *ledger, int version, struct act_error *err)
{
    if (version >= 0 && version <= SCHEMA_VERSION)
        return 0;
    return act_error_set(err, ACT_FAIL,
                         "cannot use the ledger '%s': it has schema version %d and this program knows up to "
                         "%d; update act",
                         ledger->path, version, SCHEMA_VERSION);
}

/* Inside the transaction: another process may have migrated meanwhile, so the version is read again. */
static int migrate_steps(struct ledger *ledger, struct act_error *err)
{
    int version = 0;
    int rc = read_version(ledger, &version, err);

    if (rc == 0)
        rc = check_version(ledger, version, err);
    for (; rc == 0 && version < SCHEMA_VERSION; version++) {
        ACT_AUTOFREE char *mark = act_sprintf("PRAGMA user_version = %d", version + 1);
        rc = run_sql(ledger, migrations[version], "set up", err);
        if (rc == 0)
            rc = run_sql(ledger, mark, "set up", err);
    }
    return rc;
}

static int migrate(struct ledger *ledger, struct act_error *err)
{
    int version = 0;
    int rc = read_version(ledger, &version, err);

    if (rc < 0 || version == SCHEMA_VERSION)
        return rc;
    rc = check_version(ledger, version, err);
    if (rc == 0)
        rc = run_sql(ledger, "BEGIN IMMEDIATE", "set up", err);
    if (rc == 0)
        rc = finish(ledger, migrate_steps(ledger, err), "set up", err);
    return rc;
}

/* Commands of runs are nobody else's business: the file is made before SQLite would, with a mode of its own.
 * SQLite gives its journal the same mode. */
static int make_file(const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int rc = act_mkdir_all(dir, 0700, err);

    if (rc < 0)
        return act_error_prefix(err, "cannot open the ledger '%s'", path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return act_error_errno(err, errno, "cannot make the ledger '%s'", path);
    if (fd >= 0)
        close(fd);
    return 0;
}

int ledger_open(const char *path, struct ledger **out, struct act_error *err)
{
    struct ledger *ledger;
    int rc = make_file(path, err);

    if (rc < 0)
        return rc;
    ledger = act_calloc(1, sizeof(*ledger));
    ledger->path = act_strdup(path);
    if (sqlite3_open_v2(path, &ledger->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        rc = fail(ledger, "open", err);
        goto out;
    }
    sqlite3_busy_timeout(ledger->db, BUSY_TIMEOUT_MS);
    rc = run_sql(ledger, sql_settings, "open", err);
    if (rc == 0)
        rc = migrate(ledger, err);
out:
    if (rc < 0) {
        ledger_close(ledger);
        ledger = NULL;
    }
    *out = ledger;
    return rc;
}

void ledger_close(struct ledger *ledger)
{
    if (!ledger)
        return;
    sqlite3_close(ledger->db);
    free(ledger->path);
    free(ledger);
}

/* Writing */

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC); /* NULL binds as NULL */
}

static void bind_run(sqlite3_stmt *statement, const struct ledger_run *run)
{
    const char *const strings[] = {run->id,         run->cluster, run->platform,
                                   run->experiment, run->project, run->state};
    int at = 1;

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        bind_text(statement, at++, strings[i] ? strings[i] : "");
    sqlite3_bind_int64(statement, at++, run->created_unix_s);
    sqlite3_bind_int64(statement, at++, run->num_gpu);
    bind_text(statement, at++, run->command ? run->command : "");
    bind_text(statement, at++, run->status);
    bind_text(statement, at, run->spec ? run->spec : "");
}

int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(ledger->db, sql_add, -1, &statement, NULL) != SQLITE_OK) {
        rc = fail(ledger, "write to", err);
        goto out;
    }
    bind_run(statement, run);
    if (sqlite3_step(statement) != SQLITE_DONE)
        rc = fail(ledger, "write to", err);
out:
    sqlite3_finalize(statement);
    return rc;
}

static int update_all(struct ledger *ledger, const struct ledger_update *updates, size_t n,
                      struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(ledger->db, sql_update, -1, &statement, NULL) != SQLITE_OK)
        rc = fail(ledger, "write to", err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        bind_text(statement, 1, updates[i].id);
        bind_text(statement, 2, updates[i].state);
        bind_text(statement, 3, updates[i].status);
        if (sqlite3_step(statement) != SQLITE_DONE)
            rc = fail(ledger, "write to", err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return rc;
}

int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n, struct act_error *err)
{
    if (n == 0)
        return 0;
    int rc = run_sql(ledger, "BEGIN IMMEDIATE", "write to", err);
    return rc < 0 ? rc : finish(ledger, update_all(ledger, updates, n, err), "write to", err);
}

/* Reading */

static char *column_text(sqlite3_stmt *statement, int at)
{
    return act_strdup((const char *)sqlite3_column_text(statement, at)); /* NULL stays NULL */
}

static struct ledger_run read_run(sqlite3_stmt *statement)
{
    return (struct ledger_run){
        .id = column_text(statement, 0),
        .cluster = column_text(statement, 1),
        .platform = column_text(statement, 2),
        .experiment = column_text(statement, 3),
        .project = column_text(statement, 4),
        .state = column_text(statement, 5),
        .created_unix_s = sqlite3_column_int64(statement, 6),
        .num_gpu = sqlite3_column_int64(statement, 7),
        .command = column_text(statement, 8),
        .status = column_text(statement, 9),
        .spec = column_text(statement, 10),
        .slurm = column_text(statement, 11),
    };
}

/* Takes every row of a bound statement and finalizes it. A failure leaves out empty. */
static int take_rows(struct ledger *ledger, sqlite3_stmt *statement, struct ledger_runs *out,
                     struct act_error *err)
{
    size_t cap = 0;
    int step, rc = 0;

    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        if (out->n == cap) {
            cap = cap ? 2 * cap : 16;
            out->v = act_realloc(out->v, cap * sizeof(*out->v));
        }
        out->v[out->n++] = read_run(statement);
    }
    if (step != SQLITE_DONE) {
        rc = fail(ledger, "read", err);
        ledger_runs_release(out);
    }
    sqlite3_finalize(statement);
    return rc;
}

int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out,
                struct act_error *err)
{
    sqlite3_stmt *statement = NULL;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, sql_list, -1, &statement, NULL) != SQLITE_OK)
        return fail(ledger, "read", err);
    bind_text(statement, 1, query->cluster);
    sqlite3_bind_int(statement, 2, query->without_spec);
    return take_rows(ledger, statement, out, err);
}

static int find_by(struct ledger *ledger, const char *sql, const char *piece, struct ledger_runs *out,
                   struct act_error *err)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail(ledger, "read", err);
    bind_text(statement, 1, piece);
    return take_rows(ledger, statement, out, err);
}

int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out, struct act_error *err)
{
    *out = (struct ledger_runs){0};
    if (piece[0] == '\0')
        return 0;
    int rc = find_by(ledger, sql_find_exact, piece, out, err);
    return rc < 0 || out->n > 0 ? rc : find_by(ledger, sql_find_piece, piece, out, err);
}
