/* notes.c - writes and reads what was found out about a run and can be found out again. */
#include <stdlib.h>

#include "base/text.h"
#include "ledger/ledger_internal.h"

/* Only of a run that is there, and only if it says something new: a ledger that stays as it is costs no writing. */
static const char sql_set_note[] = "INSERT INTO notes (run, text) SELECT ?1, ?2"
                                   " WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1)"
                                   " ON CONFLICT (run) DO UPDATE SET text = ?2 WHERE text <> ?2";
static const char sql_get_note[] = "SELECT text FROM notes WHERE run = ?1";

static void bind_note(sqlite3_stmt *statement, const void *notes, size_t i)
{
    const struct ledger_note *note = (const struct ledger_note *)notes + i;

    ledger_bind_text(statement, 1, note->run);
    ledger_bind_text(statement, 2, note->text);
}

int ledger_set_notes(struct ledger *ledger, const struct ledger_note *notes, size_t n, struct act_error *err)
{
    return ledger_write_each(ledger, sql_set_note, bind_note, notes, n, err);
}

static int notes_read(struct ledger *ledger, sqlite3_stmt *statement, const char *run, char **out,
                      struct act_error *err)
{
    ledger_bind_text(statement, 1, run);
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        *out = ledger_column(statement, 0);
    sqlite3_reset(statement);
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : ledger_fail(ledger, "read", err);
}

int ledger_get_notes(struct ledger *ledger, const char *const *runs, size_t n, char **out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = n == 0 ? 0 : ledger_run_sql(ledger, "BEGIN", "read", err);

    if (n == 0 || rc < 0)
        return rc;
    if (sqlite3_prepare_v2(ledger->db, sql_get_note, -1, &statement, NULL) != SQLITE_OK)
        rc = ledger_fail(ledger, "read", err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!out[i])
            rc = notes_read(ledger, statement, runs[i], &out[i], err);
    sqlite3_finalize(statement);
    return ledger_end(ledger, rc, "read", err);
}
