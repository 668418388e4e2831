/* bad_nodes.c - writes and reads the notes about nodes that were to blame for failures. */
#include <stdlib.h>

#include "base/text.h"
#include "ledger/ledger_internal.h"

static const char sql_add_bad[] =
    "INSERT OR IGNORE INTO bad_nodes (cluster, node, class, run, unix_s, place) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
#define OF_WHOM "(?1 IS NULL OR CASE WHEN place IS NULL OR ?2 IS NULL THEN cluster = ?1 ELSE place = ?2 END)"
/* Takes from each group the row with the largest time: sqlite.org/lang_select.html#bareagg */
static const char sql_list_bads[] =
    "SELECT cluster, node, class, run, max(unix_s) FROM bad_nodes WHERE " OF_WHOM " AND unix_s >= ?3 AND NOT forgotten"
    " GROUP BY coalesce(place, cluster), node ORDER BY max(unix_s) DESC, node";
static const char sql_forget_bad[] =
    "UPDATE bad_nodes SET forgotten = 1 WHERE " OF_WHOM " AND node = ?3 AND NOT forgotten";

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

    ledger_bind_text(statement, 1, bad->cluster);
    ledger_bind_text(statement, 2, bad->node);
    ledger_bind_text(statement, 3, bad->class);
    ledger_bind_text(statement, 4, bad->run);
    sqlite3_bind_int64(statement, 5, bad->unix_s);
    ledger_bind_text(statement, 6, bad->place);
}

int ledger_add_bads(struct ledger *ledger, const struct ledger_bads *bads, struct act_error *err)
{
    return ledger_write_each(ledger, sql_add_bad, bind_bad, bads->v, bads->n, err);
}

int ledger_list_bads(struct ledger *ledger, const struct ledger_whose *whose, int64_t since_unix_s,
                     struct ledger_bads *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0, step = sqlite3_prepare_v2(ledger->db, sql_list_bads, -1, &statement, NULL);

    *out = (struct ledger_bads){0};
    ledger_bind_text(statement, 1, whose->cluster);
    ledger_bind_text(statement, 2, whose->place);
    sqlite3_bind_int64(statement, 3, since_unix_s);
    while ((step == SQLITE_OK || step == SQLITE_ROW) && (step = sqlite3_step(statement)) == SQLITE_ROW)
        ACT_PUSH(out->v, out->n,
                 (struct ledger_bad){ledger_column_some(statement, 0), ledger_column_some(statement, 1),
                                     ledger_column_some(statement, 2), ledger_column_some(statement, 3),
                                     sqlite3_column_int64(statement, 4), NULL});
    if (step != SQLITE_DONE)
        rc = ledger_fail(ledger, "read", err);
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

    ledger_bind_text(statement, 1, whose->cluster);
    ledger_bind_text(statement, 2, whose->place);
    ledger_bind_text(statement, 3, node);
    if (step == SQLITE_OK)
        step = sqlite3_step(statement);
    int rc = step == SQLITE_DONE ? 0 : ledger_fail(ledger, "write to", err);
    sqlite3_finalize(statement);
    *out_n = rc == 0 ? sqlite3_changes(ledger->db) : 0;
    return rc;
}
