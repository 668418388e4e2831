/* damage.c - files that cannot be used as they are: a copy in memory of what can be read, moving a damaged file aside,
 * and reading what is left of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "ledger/ledger_internal.h"

/* ---- a copy of what can be read ---- */

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

/* Copies all pages; closes from. */
static bool take_pages(struct ledger *to, sqlite3 *from)
{
    sqlite3_busy_timeout(from, LEDGER_BUSY_SHORT_MS);
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

/* Reads with locks if possible, else without. */
static bool copy_pages(struct ledger *ledger, const char *path)
{
    sqlite3 *from = NULL;

    if (sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK && take_pages(ledger, from))
        return true;
    sqlite3_close(from);
    from = open_without_locks(path);
    return from && take_pages(ledger, from);
}

/* Tells whether what was copied is a ledger. Fails if it is one of a newer program. */
static int judge_copy(struct ledger *copy, bool *out_good, struct act_error *err)
{
    int version = 0;

    *out_good = false;
    if (ledger_ask_number(copy, ledger_sql_version, NULL, &version, err) < 0)
        return 0;
    if (version > ledger_schema_version)
        return ledger_check_version(copy, version, err);
    *out_good = version > 0 && ledger_migrate(copy, NULL, err) == 0;
    return 0;
}

int ledger_copy(const char *path, struct ledger **out, struct act_error *err)
{
    struct ledger *copy = in_memory(path);
    bool good = false;
    int rc = 0;

    *out = NULL;
    if (copy && ledger_check_files(path, err) == 0 && copy_pages(copy, path))
        rc = judge_copy(copy, &good, err);
    if (rc == 0 && !good) {
        ledger_close(copy);
        copy = in_memory(path);
        rc = copy ? ledger_migrate(copy, NULL, err) : act_error_set(err, ACT_FAIL, "cannot make a ledger in memory");
    }
    if (rc < 0)
        ledger_close(copy);
    else
        *out = copy;
    return rc;
}

/* ---- damaged files ---- */

enum damage { SOUND, DAMAGED, LOCKED };

/* Returns the text that a statement yields, a new string, or NULL after an error, which the connection then holds. */
static char *ask_database(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        text = act_strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

/* Opens the file for reading with locks if possible, else without. NULL if it cannot be read. */
static sqlite3 *damage_open_to_read(const char *path)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, LEDGER_BUSY_SHORT_MS);
        ACT_AUTOFREE char *version = ask_database(db, ledger_sql_version);
        if (version)
            return db;
    }
    sqlite3_close(db);
    return open_without_locks(path);
}

int ledger_look(const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *its_path = act_strdup(path);
    struct ledger look = {.path = its_path};
    int version = 0, rc = 0;

    if (access(path, F_OK) < 0)
        return act_error_errno(err, errno, "the ledger '%s'", path);
    look.db = damage_open_to_read(path);
    ACT_AUTOFREE char *word = look.db ? ask_database(look.db, "PRAGMA quick_check(1)") : NULL;
    bool good = act_streq(word, "ok") && ledger_ask_number(&look, ledger_sql_version, NULL, &version, err) == 0;
    if (good && version > ledger_schema_version)
        rc = ledger_check_version(&look, version, err);
    good = good && version > 0 && ledger_tables_fit(look.db, version);
    sqlite3_close(look.db);
    return rc < 0 || good ? rc : act_error_set(err, ACT_FAIL, "the ledger '%s' is damaged", path);
}

/* A sound file of a newer program is left alone; the tables of another program count as damage. */
static enum damage examine_schema(sqlite3 *db)
{
    ACT_AUTOFREE char *version = ask_database(db, ledger_sql_version);
    ACT_AUTOFREE char *tables = ask_database(db, "SELECT count(*) FROM sqlite_master");
    long n = version ? strtol(version, NULL, 10) : 0;

    if (!version || !tables || n > ledger_schema_version)
        return SOUND;
    if (n == 0)
        return strcmp(tables, "0") == 0 ? SOUND : DAMAGED;
    return ledger_tables_fit(db, (int)n) ? SOUND : DAMAGED;
}

/* A file counts as sound and stays where it is unless it is surely damaged. */
static enum damage damage_examine(const char *path)
{
    enum damage condition = SOUND;
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, LEDGER_BUSY_SHORT_MS);
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

/* Moves the journal first: SQLite would take one that stays behind for that of the next file. */
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
static int damage_lock_folder(const char *path)
{
    enum { PAUSE_MS = 20 };
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && ms < LEDGER_BUSY_MS;
         ms += PAUSE_MS)
        usleep(PAUSE_MS * 1000);
    return fd;
}

int ledger_set_aside(const char *path, char **out_name, struct act_error *err)
{
    int rc = 0, fd = damage_lock_folder(path);

    *out_name = NULL;
    switch (damage_examine(path)) {
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

/* Reads from both ends as far as possible. */
void ledger_salvage(const char *path, struct ledger_runs *out)
{
#define BOTH_ENDS(select) select "spec FROM runs ORDER BY rowid", select "spec FROM runs ORDER BY rowid DESC"
    static const char *const orders[] = {BOTH_ENDS(LEDGER_SELECT_RUNS),
                                         BOTH_ENDS(LEDGER_SELECT_FIRST "name, tags, found, " LEDGER_PLACE_OF_SPEC ", "),
                                         BOTH_ENDS(LEDGER_SELECT_FIRST "NULL, NULL, 0, " LEDGER_PLACE_OF_SPEC ", ")};
    sqlite3 *db = open_without_locks(path);

    *out = (struct ledger_runs){0};
    for (size_t i = 0; db && i < sizeof(orders) / sizeof(orders[0]); i++) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(db, orders[i], -1, &statement, NULL) == SQLITE_OK &&
            ledger_add_rows(statement, out) == SQLITE_DONE)
            i = sizeof(orders) / sizeof(orders[0]); /* that was all */
        sqlite3_finalize(statement);
    }
    sqlite3_close(db);
}
