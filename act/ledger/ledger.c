/* ledger.c - see ledger.h. Every call is one statement or one transaction, and nothing stays open in between, so
 * other processes never wait for this one. */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"

#define BUSY_TIMEOUT_MS 10000

/* Runs of before schema version 4 have no place of their own, but the configuration that they were submitted with: all
 * of it that may say where they went. */
#define PLACE_OF_SPEC                                                                                                  \
    "CASE WHEN json_valid(spec) AND json_type(spec, '$.config') = 'object' THEN json_object('config',"                 \
    " json_remove(json_extract(spec, '$.config'), '$.config_param', '$.docker', '$.env', '$.zip_options')) END"

/* migrations[n] leads from schema version n to n + 1. spec is the last column, because it is long: a table
 * of runs is read without touching the pages that hold it. */
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
     " command, status, name, tags, found, " PLACE_OF_SPEC ", spec FROM runs ORDER BY rowid;"
     "DROP TABLE runs;"
     "ALTER TABLE new_runs RENAME TO runs;"
     "CREATE INDEX runs_by_time ON runs (created_unix_s);"
     "CREATE INDEX runs_by_name ON runs (name) WHERE name IS NOT NULL;"
     "ALTER TABLE bad_nodes ADD COLUMN place TEXT;"),
};
enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* The rollback journal works where homes are on NFS; FULL keeps a run that was recorded over a power cut. */
static const char sql_settings[] = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;";
static const char sql_version[] = "PRAGMA user_version";

#define HAS_ENDED "state IN ('Completed', 'Failed', 'Canceled')"
#define REPEATS(id)                                                                                                    \
    "NOT " HAS_ENDED " AND CASE WHEN json_valid(spec) THEN json_extract(spec, '$.resubmit_of') END = " id
static const char sql_add[] =
    "INSERT INTO runs (id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command,"
    " status, name, tags, found, place, spec) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15"
    " WHERE ?16 IS NULL OR NOT EXISTS (SELECT 1 FROM runs WHERE " REPEATS("?16") ")"
                                                                                 " ON CONFLICT (id) DO NOTHING";
static const char sql_update[] = "UPDATE runs SET state = ?2, status = COALESCE(?3, status) WHERE id = ?1"
                                 " AND (state <> ?2 OR (?3 IS NOT NULL AND status IS NOT ?3))";

#define SELECT_FIRST                                                                                                   \
    "SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command, status, "
#define SELECT_RUNS  SELECT_FIRST "name, tags, found, place, "
#define NEWEST_FIRST " ORDER BY created_unix_s DESC, rowid DESC"
/* Only specifications of runs that are asked about are read. */
static const char sql_list[] =
    SELECT_RUNS "CASE WHEN ?2 AND " HAS_ENDED
                " THEN NULL ELSE spec END FROM runs WHERE (?1 IS NULL OR cluster = ?1)" NEWEST_FIRST " LIMIT ?3";
static const char sql_spec[] = "SELECT spec FROM runs WHERE id = ?1";
/* Of every schema version. */
static const char sql_first[] = SELECT_FIRST "spec FROM runs";
/* Two, because an index alone answers the first. */
static const char sql_count[] = "SELECT count(*) FROM runs";
static const char sql_count_cluster[] = "SELECT count(*) FROM runs WHERE cluster = ?1";
static const char sql_count_id[] = "SELECT count(*) FROM runs WHERE id = ?1";
static const char sql_nth[] =
    SELECT_RUNS "spec FROM runs WHERE (?1 IS NULL OR cluster = ?1)" NEWEST_FIRST " LIMIT 1 OFFSET ?2";
static const char sql_find_exact[] = SELECT_RUNS "spec FROM runs WHERE id = ?1";
static const char sql_find_name[] = SELECT_RUNS "spec FROM runs WHERE name = ?1" NEWEST_FIRST;
static const char sql_find_piece[] = SELECT_RUNS "spec FROM runs WHERE instr(id, ?1) > 0" NEWEST_FIRST;
static const char sql_repeats[] = SELECT_RUNS "spec FROM runs WHERE " REPEATS("?1") NEWEST_FIRST;
static const char sql_move[] = "UPDATE runs SET cluster = ?2, project = ?3, place = ?4 WHERE id = ?1";

static const char sql_add_bad[] =
    "INSERT OR IGNORE INTO bad_nodes (cluster, node, class, run, unix_s, place) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
#define OF_WHOM "(?1 IS NULL OR CASE WHEN place IS NULL OR ?2 IS NULL THEN cluster = ?1 ELSE place = ?2 END)"
/* Of each group the row with the largest time: sqlite.org/lang_select.html#bareagg */
static const char sql_list_bads[] =
    "SELECT cluster, node, class, run, max(unix_s) FROM bad_nodes WHERE " OF_WHOM " AND unix_s >= ?3 AND NOT forgotten"
    " GROUP BY coalesce(place, cluster), node ORDER BY max(unix_s) DESC, node";
static const char sql_forget_bad[] =
    "UPDATE bad_nodes SET forgotten = 1 WHERE " OF_WHOM " AND node = ?3 AND NOT forgotten";

struct ledger {
    sqlite3 *db;
    char *path;
    int64_t locked_ms; /* when the wait for it began */
    bool told;         /* that it is waited for */
    bool is_new;
};

void ledger_run_release(struct ledger_run *run)
{
    char *const strings[] = {run->id,   run->cluster, run->platform, run->experiment, run->project,
                             run->spec, run->state,   run->status,   run->command,    run->place,
                             run->name, run->tags,    run->replaces};

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

static int fail_ledger(const struct ledger *ledger, const char *what, struct act_error *err)
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
        return act_error_set(err, ACT_DENIED, "cannot %s the ledger '%s': %s; the file and its folder must be writable",
                             what, ledger->path, sqlite3_errmsg(ledger->db));
    default:
        return act_error_set(err, ACT_FAIL, "cannot %s the ledger '%s': %s", what, ledger->path,
                             sqlite3_errmsg(ledger->db));
    }
}

static int run_sql(struct ledger *ledger, const char *sql, const char *what, struct act_error *err)
{
    if (sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail_ledger(ledger, what, err);
    return 0;
}

/* Ends a transaction: commits what went well, takes back what did not. */
static int finish_statement(struct ledger *ledger, int rc, const char *what, struct act_error *err)
{
    if (rc == 0)
        rc = run_sql(ledger, "COMMIT", what, err);
    if (rc < 0 && !sqlite3_get_autocommit(ledger->db))
        sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* Opening and the schema */

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC); /* NULL binds as NULL */
}

/* What a statement that gives one number says; text: what its ?1 stands for, or NULL. */
static int ask_number(const struct ledger *ledger, const char *sql, const char *text, int *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0, step = sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL);

    if (step == SQLITE_OK && text)
        bind_text(statement, 1, text);
    if (step == SQLITE_OK)
        step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int(statement, 0);
    else
        rc = fail_ledger(ledger, "read", err);
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
    int rc = ask_number(ledger, sql_version, NULL, &version, err);

    if (rc == 0)
        rc = check_version(ledger, version, err);
    for (; rc == 0 && version < SCHEMA_VERSION; version++) {
        ACT_AUTOFREE char *mark = act_sprintf("PRAGMA user_version = %d", version + 1);
        rc = run_sql(ledger, migrations[version], "set up", err);
        if (rc == 0)
            rc = run_sql(ledger, mark, "set up", err);
        ledger->is_new = ledger->is_new || version == 0;
    }
    return rc;
}

/* Whether the statement fits the tables that are there. */
static bool fits(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK;

    sqlite3_finalize(statement);
    return good;
}

static int check_tables(struct ledger *ledger, struct act_error *err)
{
    return fits(ledger->db, sql_add) && fits(ledger->db, sql_list) ? 0 : fail_ledger(ledger, "use", err);
}

static int migrate(struct ledger *ledger, struct act_error *err)
{
    int version = 0;
    int rc = ask_number(ledger, sql_version, NULL, &version, err);

    if (rc == 0 && version == SCHEMA_VERSION)
        return check_tables(ledger, err);
    if (rc == 0)
        rc = check_version(ledger, version, err);
    if (rc == 0)
        rc = run_sql(ledger, "BEGIN IMMEDIATE", "set up", err);
    if (rc == 0)
        rc = finish_statement(ledger, migrate_steps(ledger, err), "set up", err);
    return rc;
}

/* SQLite would wait forever for a writer at the other end of a pipe. */
static int check_files(const char *path, struct act_error *err)
{
    static const char *const ends[] = {"", "-journal", "-wal"};
    struct stat st;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        ACT_AUTOFREE char *file = act_sprintf("%s%s", path, ends[i]);
        if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
            return act_error_set(err, ACT_DENIED,
                                 "cannot open the ledger '%s': '%s' is not a regular file; move it away", path, file);
    }
    return 0;
}

/* The commands of runs are private, so the file is created before SQLite would, with a mode of its own. SQLite gives
 * its journal the same mode. */
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
    return check_files(path, err);
}

/* Called by SQLite while another process has the lock; 0: no longer. */
static int wait_for_lock(void *arg, int tries)
{
    enum { PAUSE_MS = 20, TOLD_AFTER_MS = 1000 };
    struct ledger *ledger = arg;
    int64_t now_ms = act_now_monotonic_ms();

    if (tries == 0)
        ledger->locked_ms = now_ms;
    if (now_ms - ledger->locked_ms >= BUSY_TIMEOUT_MS)
        return 0;
    if (now_ms - ledger->locked_ms >= TOLD_AFTER_MS && !ledger->told) {
        act_note("waiting for the ledger '%s', which another process keeps locked ...", ledger->path);
        ledger->told = true;
    }
    usleep(PAUSE_MS * 1000);
    return 1;
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
        rc = fail_ledger(ledger, "open", err);
        goto out;
    }
    sqlite3_busy_handler(ledger->db, wait_for_lock, ledger);
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

bool ledger_is_new(const struct ledger *ledger)
{
    return ledger->is_new;
}

/* A copy of what can be read */

enum { SHORT_TIMEOUT_MS = 200 }; /* the caller has waited already */

/* Opens the file for reading, without locks: "immutable" is SQLite's word for a file that nobody changes. NULL if
 * that fails. */
static sqlite3 *open_without_locks(const char *path)
{
    ACT_AUTO(act_buf) uri = {0};
    sqlite3 *db = NULL;

    act_buf_adds(&uri, "file:");
    for (const char *c = path; *c; c++) {
        if (strchr("?#%", *c))
            act_buf_addf(&uri, "%%%02X", (unsigned char)*c);
        else
            act_buf_addc(&uri, *c);
    }
    act_buf_adds(&uri, "?immutable=1");
    if (sqlite3_open_v2(uri.data, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) != SQLITE_OK) {
        sqlite3_close(db);
        db = NULL;
    }
    return db;
}

/* Closes from. */
static bool take_pages(struct ledger *to, sqlite3 *from)
{
    sqlite3_busy_timeout(from, SHORT_TIMEOUT_MS);
    sqlite3_backup *backup = sqlite3_backup_init(to->db, "main", from, "main");
    bool done = backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE;

    sqlite3_backup_finish(backup);
    sqlite3_close(from);
    return done;
}

static struct ledger *in_memory(const char *path)
{
    struct ledger *ledger = act_calloc(1, sizeof(*ledger));

    ledger->path = act_strdup(path);
    if (sqlite3_open(":memory:", &ledger->db) != SQLITE_OK) {
        ledger_close(ledger);
        return NULL;
    }
    return ledger;
}

/* With locks if possible, else without. */
static bool copy_pages(struct ledger *ledger, const char *path)
{
    sqlite3 *from = NULL;

    if (sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK && take_pages(ledger, from))
        return true;
    sqlite3_close(from);
    from = open_without_locks(path);
    return from && take_pages(ledger, from);
}

/* Whether the copy is that of a ledger; -ACT_FAIL: of a newer one. */
static int judge_copy(struct ledger *copy, bool *out_good, struct act_error *err)
{
    int version = 0;

    *out_good = false;
    if (ask_number(copy, sql_version, NULL, &version, err) < 0)
        return 0;
    if (version > SCHEMA_VERSION)
        return check_version(copy, version, err);
    *out_good = version > 0 && migrate(copy, err) == 0;
    return 0;
}

int ledger_copy(const char *path, struct ledger **out, struct act_error *err)
{
    struct ledger *copy = in_memory(path);
    bool good = false;
    int rc = 0;

    *out = NULL;
    if (copy && check_files(path, err) == 0 && copy_pages(copy, path))
        rc = judge_copy(copy, &good, err);
    if (rc == 0 && !good) {
        ledger_close(copy);
        copy = in_memory(path);
        rc = copy ? migrate(copy, err) : act_error_set(err, ACT_FAIL, "cannot make a ledger in memory");
    }
    if (rc < 0)
        ledger_close(copy);
    else
        *out = copy;
    return rc;
}

int ledger_look(const char *path, struct act_error *err)
{
    bool good = false;
    int rc = 0;

    if (access(path, F_OK) < 0)
        return act_error_errno(err, errno, "the ledger '%s'", path);
    struct ledger *copy = in_memory(path);
    if (copy && copy_pages(copy, path))
        rc = judge_copy(copy, &good, err);
    ledger_close(copy);
    return rc < 0 || good ? rc : act_error_set(err, ACT_FAIL, "the ledger '%s' is damaged", path);
}

/* Damaged files */

enum condition { SOUND, DAMAGED, LOCKED };

/* The result of a statement that yields one text; NULL: an error, which is in the connection. New string. */
static char *ask_database(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        text = act_strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

/* A sound file of a newer program is left alone; the tables of another program count as damage. */
static enum condition examine_schema(sqlite3 *db)
{
    ACT_AUTOFREE char *version = ask_database(db, sql_version);
    ACT_AUTOFREE char *tables = ask_database(db, "SELECT count(*) FROM sqlite_master");
    long n = version ? strtol(version, NULL, 10) : 0;

    if (!version || !tables || n > SCHEMA_VERSION)
        return SOUND;
    if (n == 0)
        return strcmp(tables, "0") == 0 ? SOUND : DAMAGED;
    if (n < SCHEMA_VERSION)
        return fits(db, sql_first) ? SOUND : DAMAGED;
    return fits(db, sql_add) && fits(db, sql_list) ? SOUND : DAMAGED;
}

/* In case of doubt a file counts as sound and stays where it is. */
static enum condition examine(const char *path)
{
    enum condition condition = SOUND;
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, SHORT_TIMEOUT_MS);
        ACT_AUTOFREE char *word = ask_database(db, "PRAGMA quick_check(1)");
        int code = sqlite3_errcode(db);
        if (word)
            condition = strcmp(word, "ok") == 0 ? examine_schema(db) : DAMAGED;
        else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
            condition = DAMAGED;
        else if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
            condition = LOCKED;
    }
    sqlite3_close(db);
    return condition;
}

/* The journal first: one that is left behind would be taken for that of the next file. */
static int move_aside(const char *path, char **out_name, struct act_error *err)
{
    uint16_t random;

    act_random(&random, sizeof(random));
    ACT_AUTOFREE char *name = act_sprintf("%s.damaged-%lld-%04x", path, (long long)act_now_unix_s(), random);
    ACT_AUTOFREE char *journal = act_sprintf("%s-journal", path);
    ACT_AUTOFREE char *journal_name = act_sprintf("%s-journal", name);

    if ((rename(journal, journal_name) && errno != ENOENT) || rename(path, name))
        return act_error_errno(err, errno, "cannot move the damaged ledger '%s' aside", path);
    *out_name = act_strdup(name);
    return 0;
}

/* Locks the folder, if the file system can, until the descriptor is closed. */
static int lock_folder(const char *path)
{
    enum { PAUSE_MS = 20 };
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && ms < BUSY_TIMEOUT_MS;
         ms += PAUSE_MS)
        usleep(PAUSE_MS * 1000);
    return fd;
}

int ledger_set_aside(const char *path, char **out_name, struct act_error *err)
{
    int rc = 0, fd = lock_folder(path);

    *out_name = NULL;
    switch (examine(path)) {
    case SOUND:
        break;
    case DAMAGED:
        rc = move_aside(path, out_name, err);
        break;
    case LOCKED:
        rc = act_error_set(err, ACT_TEMPORARY, "another process keeps the ledger '%s' locked", path);
        break;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Writing */

/* Binds what is written of items[i]. */
typedef void bind_item(sqlite3_stmt *statement, const void *items, size_t i);

/* A statement for each of n items: all of them or none. */
static int write_each(struct ledger *ledger, const char *sql, bind_item *bind, const void *items, size_t n,
                      struct act_error *err)
{
    static const char what[] = "write to";
    sqlite3_stmt *statement = NULL;
    int rc = n == 0 ? 0 : run_sql(ledger, "BEGIN IMMEDIATE", what, err);

    if (n == 0 || rc < 0)
        return rc;
    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) != SQLITE_OK)
        rc = fail_ledger(ledger, what, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        bind(statement, items, i);
        if (sqlite3_step(statement) != SQLITE_DONE)
            rc = fail_ledger(ledger, what, err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return finish_statement(ledger, rc, what, err);
}

static void bind_run(sqlite3_stmt *statement, const void *runs, size_t i)
{
    const struct ledger_run *run = (const struct ledger_run *)runs + i;
    const char *const strings[] = {run->id, run->cluster, run->platform, run->experiment, run->project, run->state};
    int at = 1;

    for (size_t k = 0; k < sizeof(strings) / sizeof(strings[0]); k++)
        bind_text(statement, at++, strings[k] ? strings[k] : "");
    sqlite3_bind_int64(statement, at++, run->created_unix_s);
    sqlite3_bind_int64(statement, at++, run->num_gpu);
    bind_text(statement, at++, run->command ? run->command : "");
    bind_text(statement, at++, run->status);
    bind_text(statement, at++, run->name);
    bind_text(statement, at++, run->tags);
    sqlite3_bind_int(statement, at++, run->found);
    bind_text(statement, at++, run->place);
    bind_text(statement, at++, run->spec ? run->spec : "");
    bind_text(statement, at, run->replaces);
}

int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err)
{
    return write_each(ledger, sql_add, bind_run, run, 1, err);
}

int ledger_add_all(struct ledger *ledger, const struct ledger_runs *runs, struct act_error *err)
{
    return write_each(ledger, sql_add, bind_run, runs->v, runs->n, err);
}

static void bind_update(sqlite3_stmt *statement, const void *updates, size_t i)
{
    const struct ledger_update *update = (const struct ledger_update *)updates + i;

    bind_text(statement, 1, update->id);
    bind_text(statement, 2, update->state);
    bind_text(statement, 3, update->status);
}

int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n, struct act_error *err)
{
    return write_each(ledger, sql_update, bind_update, updates, n, err);
}

static void bind_move(sqlite3_stmt *statement, const void *runs, size_t i)
{
    const struct ledger_run *run = (const struct ledger_run *)runs + i;

    bind_text(statement, 1, run->id);
    bind_text(statement, 2, run->cluster);
    bind_text(statement, 3, run->project);
    bind_text(statement, 4, run->place);
}

int ledger_move(struct ledger *ledger, const struct ledger_run *run, struct act_error *err)
{
    return write_each(ledger, sql_move, bind_move, run, 1, err);
}

static void bind_id(sqlite3_stmt *statement, const void *ids, size_t i)
{
    bind_text(statement, 1, ((const char *const *)ids)[i]);
}

int ledger_remove(struct ledger *ledger, const char *const *ids, size_t n, struct act_error *err)
{
    return write_each(ledger, "DELETE FROM runs WHERE id = ?1", bind_id, ids, n, err);
}

/* Reading */

static char *column_text(sqlite3_stmt *statement, int at)
{
    return act_strdup((const char *)sqlite3_column_text(statement, at)); /* NULL stays NULL */
}

/* For a column that is never NULL, unless another program wrote it. */
static char *column_some_text(sqlite3_stmt *statement, int at)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);

    return act_strdup(text ? text : "");
}

static struct ledger_run read_run(sqlite3_stmt *statement)
{
    return (struct ledger_run){
        .id = column_some_text(statement, 0),
        .cluster = column_some_text(statement, 1),
        .platform = column_some_text(statement, 2),
        .experiment = column_some_text(statement, 3),
        .project = column_some_text(statement, 4),
        .state = column_some_text(statement, 5),
        .created_unix_s = sqlite3_column_int64(statement, 6),
        .num_gpu = sqlite3_column_int64(statement, 7),
        .command = column_some_text(statement, 8),
        .status = column_text(statement, 9),
        .name = column_text(statement, 10),
        .tags = column_text(statement, 11),
        .found = sqlite3_column_int(statement, 12) != 0,
        .place = column_text(statement, 13),
        .spec = column_text(statement, 14),
    };
}

/* Adds all rows of a statement. Returns the result of its last step. */
static int add_rows(sqlite3_stmt *statement, struct ledger_runs *out)
{
    int step;

    while ((step = sqlite3_step(statement)) == SQLITE_ROW)
        ACT_PUSH(out->v, out->n, read_run(statement));
    return step;
}

/* Reads from both ends as far as possible. */
void ledger_salvage(const char *path, struct ledger_runs *out)
{
#define BOTH_ENDS(select) select "spec FROM runs ORDER BY rowid", select "spec FROM runs ORDER BY rowid DESC"
    static const char *const orders[] = {BOTH_ENDS(SELECT_RUNS),
                                         BOTH_ENDS(SELECT_FIRST "name, tags, found, " PLACE_OF_SPEC ", "),
                                         BOTH_ENDS(SELECT_FIRST "NULL, NULL, 0, " PLACE_OF_SPEC ", ")};
    sqlite3 *db = open_without_locks(path);

    *out = (struct ledger_runs){0};
    for (size_t i = 0; db && i < sizeof(orders) / sizeof(orders[0]); i++) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(db, orders[i], -1, &statement, NULL) == SQLITE_OK &&
            add_rows(statement, out) == SQLITE_DONE)
            i = sizeof(orders) / sizeof(orders[0]); /* that was all */
        sqlite3_finalize(statement);
    }
    sqlite3_close(db);
}

/* Takes every row of a bound statement and finalizes it. A failure leaves out empty. */
static int take_rows(struct ledger *ledger, sqlite3_stmt *statement, struct ledger_runs *out, struct act_error *err)
{
    int step = add_rows(statement, out), rc = 0;

    if (step != SQLITE_DONE) {
        rc = fail_ledger(ledger, "read", err);
        ledger_runs_release(out);
    }
    sqlite3_finalize(statement);
    return rc;
}

int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, sql_list, -1, &statement, NULL) != SQLITE_OK)
        return fail_ledger(ledger, "read", err);
    bind_text(statement, 1, query->cluster);
    sqlite3_bind_int(statement, 2, query->without_spec);
    sqlite3_bind_int64(statement, 3, query->max ? (int64_t)query->max : -1);
    return take_rows(ledger, statement, out, err);
}

static int fill_spec(struct ledger *ledger, sqlite3_stmt *statement, struct ledger_run *run, struct act_error *err)
{
    bind_text(statement, 1, run->id);
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        run->spec = column_text(statement, 0);
    sqlite3_reset(statement);
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : fail_ledger(ledger, "read", err);
}

int ledger_fill_specs(struct ledger *ledger, struct ledger_run *const *runs, size_t n, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = n == 0 ? 0 : run_sql(ledger, "BEGIN", "read", err);

    if (n == 0 || rc < 0)
        return rc;
    if (sqlite3_prepare_v2(ledger->db, sql_spec, -1, &statement, NULL) != SQLITE_OK)
        rc = fail_ledger(ledger, "read", err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!runs[i]->spec)
            rc = fill_spec(ledger, statement, runs[i], err);
    sqlite3_finalize(statement);
    return finish_statement(ledger, rc, "read", err);
}

int ledger_nth(struct ledger *ledger, const char *cluster, int64_t n, struct ledger_runs *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, sql_nth, -1, &statement, NULL) != SQLITE_OK)
        return fail_ledger(ledger, "read", err);
    bind_text(statement, 1, cluster);
    sqlite3_bind_int64(statement, 2, n - 1);
    return take_rows(ledger, statement, out, err);
}

int ledger_count(struct ledger *ledger, const char *cluster, size_t *out, struct act_error *err)
{
    int n = 0, rc = ask_number(ledger, cluster ? sql_count_cluster : sql_count, cluster, &n, err);

    *out = (size_t)n;
    return rc;
}

int ledger_has(struct ledger *ledger, const char *id, bool *out, struct act_error *err)
{
    int n = 0, rc = ask_number(ledger, sql_count_id, id, &n, err);

    *out = n > 0;
    return rc;
}

static int find_by(struct ledger *ledger, const char *sql, const char *piece, struct ledger_runs *out,
                   struct act_error *err)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail_ledger(ledger, "read", err);
    bind_text(statement, 1, piece);
    return take_rows(ledger, statement, out, err);
}

int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out, struct act_error *err)
{
    *out = (struct ledger_runs){0};
    if (piece[0] == '\0')
        return 0;
    static const char *const ways[] = {sql_find_exact, sql_find_name, sql_find_piece};
    int rc = 0;

    for (size_t i = 0; rc == 0 && out->n == 0 && i < sizeof(ways) / sizeof(ways[0]); i++)
        rc = find_by(ledger, ways[i], piece, out, err);
    return rc;
}

int ledger_repeats(struct ledger *ledger, const char *id, struct ledger_runs *out, struct act_error *err)
{
    *out = (struct ledger_runs){0};
    return find_by(ledger, sql_repeats, id, out, err);
}

/* Bad nodes */

void ledger_bads_release(struct ledger_bads *bads)
{
    for (size_t i = 0; i < bads->n; i++) {
        free(bads->v[i].cluster);
        free(bads->v[i].node);
        free(bads->v[i].class);
        free(bads->v[i].run);
        free(bads->v[i].place);
    }
    free(bads->v);
    *bads = (struct ledger_bads){0};
}

static void bind_bad(sqlite3_stmt *statement, const void *bads, size_t i)
{
    const struct ledger_bad *bad = (const struct ledger_bad *)bads + i;

    bind_text(statement, 1, bad->cluster);
    bind_text(statement, 2, bad->node);
    bind_text(statement, 3, bad->class);
    bind_text(statement, 4, bad->run);
    sqlite3_bind_int64(statement, 5, bad->unix_s);
    bind_text(statement, 6, bad->place);
}

int ledger_add_bads(struct ledger *ledger, const struct ledger_bads *bads, struct act_error *err)
{
    return write_each(ledger, sql_add_bad, bind_bad, bads->v, bads->n, err);
}

int ledger_list_bads(struct ledger *ledger, const struct ledger_whose *whose, int64_t since_unix_s,
                     struct ledger_bads *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0, step = sqlite3_prepare_v2(ledger->db, sql_list_bads, -1, &statement, NULL);

    *out = (struct ledger_bads){0};
    bind_text(statement, 1, whose->cluster);
    bind_text(statement, 2, whose->place);
    sqlite3_bind_int64(statement, 3, since_unix_s);
    while ((step == SQLITE_OK || step == SQLITE_ROW) && (step = sqlite3_step(statement)) == SQLITE_ROW)
        ACT_PUSH(out->v, out->n,
                 (struct ledger_bad){column_some_text(statement, 0), column_some_text(statement, 1),
                                     column_some_text(statement, 2), column_some_text(statement, 3),
                                     sqlite3_column_int64(statement, 4), NULL});
    if (step != SQLITE_DONE)
        rc = fail_ledger(ledger, "read", err);
    sqlite3_finalize(statement);
    if (rc < 0)
        ledger_bads_release(out);
    return rc;
}

int ledger_forget_bad(struct ledger *ledger, const struct ledger_whose *whose, const char *node, int *out_n,
                      struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int step = sqlite3_prepare_v2(ledger->db, sql_forget_bad, -1, &statement, NULL);

    bind_text(statement, 1, whose->cluster);
    bind_text(statement, 2, whose->place);
    bind_text(statement, 3, node);
    if (step == SQLITE_OK)
        step = sqlite3_step(statement);
    int rc = step == SQLITE_DONE ? 0 : fail_ledger(ledger, "write to", err);
    sqlite3_finalize(statement);
    *out_n = rc == 0 ? sqlite3_changes(ledger->db) : 0;
    return rc;
}
