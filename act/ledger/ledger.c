/* ledger.c - opens the file, and has the calls of SQLite that the other files share. Every call of ledger.h is one
 * statement or one transaction, and nothing stays open in between, so other processes never wait for this one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "ledger/ledger_internal.h"

/* The rollback journal works where homes are on NFS; FULL keeps a run that was recorded over a power cut. */
static const char sql_settings[] = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;";

/* ---- errors and statements ---- */

int ledger_fail(const struct ledger *ledger, const char *what, struct act_error *err)
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

int ledger_run_sql(struct ledger *ledger, const char *sql, const char *what, struct act_error *err)
{
    if (sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return ledger_fail(ledger, what, err);
    return 0;
}

int ledger_end(struct ledger *ledger, int rc, const char *what, struct act_error *err)
{
    if (rc == 0)
        rc = ledger_run_sql(ledger, "COMMIT", what, err);
    if (rc < 0 && !sqlite3_get_autocommit(ledger->db))
        sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

void ledger_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

int ledger_ask_number(const struct ledger *ledger, const char *sql, const char *text, int *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0, step = sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL);

    if (step == SQLITE_OK && text)
        ledger_bind_text(statement, 1, text);
    if (step == SQLITE_OK)
        step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int(statement, 0);
    else
        rc = ledger_fail(ledger, "read", err);
    sqlite3_finalize(statement);
    return rc;
}

char *ledger_column(sqlite3_stmt *statement, int at)
{
    return act_strdup((const char *)sqlite3_column_text(statement, at));
}

char *ledger_column_some(sqlite3_stmt *statement, int at)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);

    return act_strdup(text ? text : "");
}

int ledger_do_each(struct ledger *ledger, const char *sql, ledger_bind_item *bind, const void *items, size_t n,
                   struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) != SQLITE_OK)
        rc = ledger_fail(ledger, "write to", err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        bind(statement, items, i);
        if (sqlite3_step(statement) != SQLITE_DONE)
            rc = ledger_fail(ledger, "write to", err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return rc;
}

int ledger_write_each(struct ledger *ledger, const char *sql, ledger_bind_item *bind, const void *items, size_t n,
                      struct act_error *err)
{
    static const char what[] = "write to";
    int rc = n == 0 ? 0 : ledger_run_sql(ledger, "BEGIN IMMEDIATE", what, err);

    if (n == 0 || rc < 0)
        return rc;
    return ledger_end(ledger, ledger_do_each(ledger, sql, bind, items, n, err), what, err);
}

/* ---- opening ---- */

int ledger_check_files(const char *path, struct act_error *err)
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
    ACT_AUTOCLOSE int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return act_error_errno(err, errno, "cannot make the ledger '%s'", path);
    return ledger_check_files(path, err);
}

/* SQLite calls this while another process has the lock. Returns 0 to give up. */
static int wait_for_lock(void *arg, int tries)
{
    enum { PAUSE_MS = 20, TOLD_AFTER_MS = 1000 };
    struct ledger *ledger = arg;
    int64_t now_ms = act_now_monotonic_ms();

    if (tries == 0)
        ledger->locked_ms = now_ms;
    if (now_ms - ledger->locked_ms >= LEDGER_BUSY_MS)
        return 0;
    if (now_ms - ledger->locked_ms >= TOLD_AFTER_MS && !ledger->told) {
        act_note("waiting for the ledger '%s', which another process keeps locked ...", ledger->path);
        ledger->told = true;
    }
    usleep(PAUSE_MS * 1000);
    return 1;
}

int ledger_open(const char *path, const struct ledger_first *first, struct ledger **out, struct act_error *err)
{
    struct ledger *ledger;
    int rc = make_file(path, err);

    if (rc < 0)
        return rc;
    ledger = act_calloc(1, sizeof(*ledger));
    ledger->path = act_strdup(path);
    if (sqlite3_open_v2(path, &ledger->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        rc = ledger_fail(ledger, "open", err);
        goto out;
    }
    sqlite3_busy_handler(ledger->db, wait_for_lock, ledger);
    rc = ledger_run_sql(ledger, sql_settings, "open", err);
    if (rc == 0)
        rc = ledger_migrate(ledger, first, err);
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
