/* runs.c - writes and reads the rows of runs. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/ledger_internal.h"

#define HAS_ENDED "state IN ('Completed', 'Failed', 'Canceled')"
/* Holds for a run that repeats the one of that id and has not ended. */
#define REPEATS(id)                                                                                                    \
    "NOT " HAS_ENDED " AND CASE WHEN json_valid(spec) THEN json_extract(spec, '$.resubmit_of') END = " id
const char ledger_sql_add[] =
    "INSERT INTO runs (id, cluster, platform, experiment, project, state, created_unix_s, num_gpu, command,"
    " status, name, tags, found, place, spec) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15"
    " WHERE ?16 IS NULL OR NOT EXISTS (SELECT 1 FROM runs WHERE " REPEATS("?16") ")"
                                                                                 " ON CONFLICT (id) DO NOTHING";
static const char sql_update[] = "UPDATE runs SET state = ?2, status = COALESCE(?3, status) WHERE id = ?1"
                                 " AND (state <> ?2 OR (?3 IS NOT NULL AND status IS NOT ?3))";
static const char sql_move[] = "UPDATE runs SET cluster = ?2, project = ?3, place = ?4 WHERE id = ?1";

#define NEWEST_FIRST " ORDER BY created_unix_s DESC, rowid DESC"
/* ?2 leaves out the specifications that nobody asks about; ?4 and ?5 are where the list goes on. */
const char ledger_sql_list[] = LEDGER_SELECT_RUNS
    "CASE WHEN ?2 AND " HAS_ENDED " THEN NULL ELSE spec END, rowid FROM runs WHERE (?1 IS NULL OR cluster = ?1)"
    " AND created_unix_s <= ?4 AND (created_unix_s < ?4 OR rowid < ?5)" NEWEST_FIRST " LIMIT ?3";
static const char sql_get[] = LEDGER_SELECT_RUNS "NULL FROM runs WHERE id = ?1";
static const char sql_spec[] = "SELECT spec FROM runs WHERE id = ?1";
/* Two statements, because an index alone answers the first. */
static const char sql_count[] = "SELECT count(*) FROM runs";
static const char sql_count_cluster[] = "SELECT count(*) FROM runs WHERE cluster = ?1";
static const char sql_count_id[] = "SELECT count(*) FROM runs WHERE id = ?1";
static const char sql_nth[] =
    LEDGER_SELECT_RUNS "spec FROM runs WHERE (?1 IS NULL OR cluster = ?1)" NEWEST_FIRST " LIMIT 1 OFFSET ?2";
static const char sql_find_exact[] = LEDGER_SELECT_RUNS "spec FROM runs WHERE id = ?1";
/* A run that is repeated under its name gives that on: the name means the run that nobody repeats. */
static const char sql_find_name[] = LEDGER_SELECT_RUNS
    "spec FROM runs WHERE name = ?1 AND id NOT IN (SELECT json_extract(spec, '$.resubmit_of') FROM runs"
    " WHERE name = ?1 AND CASE WHEN json_valid(spec) THEN json_extract(spec, '$.resubmit_of') IS NOT NULL END"
    ")" NEWEST_FIRST " LIMIT ?2";
static const char sql_find_piece[] =
    LEDGER_SELECT_RUNS "spec FROM runs WHERE instr(id, ?1) > 0" NEWEST_FIRST " LIMIT ?2";
/* A run that waits for the one that it repeats takes the place of that. */
static const char sql_replacement[] = LEDGER_SELECT_RUNS
    "spec FROM runs WHERE CASE WHEN json_valid(spec) THEN json_extract(spec, '$.resubmit_of') = ?1"
    " AND EXISTS (SELECT 1 FROM json_each(spec, '$.after') WHERE value = ?1) END" NEWEST_FIRST " LIMIT 1";
static const char sql_repeats[] = LEDGER_SELECT_RUNS "spec FROM runs WHERE " REPEATS("?1") NEWEST_FIRST;

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

/* ---- writing ---- */

void ledger_bind_run(sqlite3_stmt *statement, const void *runs, size_t i)
{
    const struct ledger_run *run = (const struct ledger_run *)runs + i;
    const char *const strings[] = {run->id, run->cluster, run->platform, run->experiment, run->project, run->state};
    int at = 1;

    for (size_t k = 0; k < sizeof(strings) / sizeof(strings[0]); k++)
        ledger_bind_text(statement, at++, strings[k] ? strings[k] : "");
    sqlite3_bind_int64(statement, at++, run->created_unix_s);
    sqlite3_bind_int64(statement, at++, run->num_gpu);
    ledger_bind_text(statement, at++, run->command ? run->command : "");
    ledger_bind_text(statement, at++, run->status);
    ledger_bind_text(statement, at++, run->name);
    ledger_bind_text(statement, at++, run->tags);
    sqlite3_bind_int(statement, at++, run->found);
    ledger_bind_text(statement, at++, run->place);
    ledger_bind_text(statement, at++, run->spec ? run->spec : "");
    ledger_bind_text(statement, at, run->replaces);
}

int ledger_add(struct ledger *ledger, const struct ledger_run *run, struct act_error *err)
{
    return ledger_write_each(ledger, ledger_sql_add, ledger_bind_run, run, 1, err);
}

int ledger_add_all(struct ledger *ledger, const struct ledger_runs *runs, struct act_error *err)
{
    return ledger_write_each(ledger, ledger_sql_add, ledger_bind_run, runs->v, runs->n, err);
}

static void bind_update(sqlite3_stmt *statement, const void *updates, size_t i)
{
    const struct ledger_update *update = (const struct ledger_update *)updates + i;

    ledger_bind_text(statement, 1, update->id);
    ledger_bind_text(statement, 2, update->state);
    ledger_bind_text(statement, 3, update->status);
}

int ledger_update(struct ledger *ledger, const struct ledger_update *updates, size_t n, struct act_error *err)
{
    return ledger_write_each(ledger, sql_update, bind_update, updates, n, err);
}

static void bind_move(sqlite3_stmt *statement, const void *runs, size_t i)
{
    const struct ledger_run *run = (const struct ledger_run *)runs + i;

    ledger_bind_text(statement, 1, run->id);
    ledger_bind_text(statement, 2, run->cluster);
    ledger_bind_text(statement, 3, run->project);
    ledger_bind_text(statement, 4, run->place);
}

int ledger_move(struct ledger *ledger, const struct ledger_run *run, struct act_error *err)
{
    return ledger_write_each(ledger, sql_move, bind_move, run, 1, err);
}

static void bind_id(sqlite3_stmt *statement, const void *ids, size_t i)
{
    ledger_bind_text(statement, 1, ((const char *const *)ids)[i]);
}

int ledger_remove(struct ledger *ledger, const char *const *ids, size_t n, struct act_error *err)
{
    return ledger_write_each(ledger, "DELETE FROM runs WHERE id = ?1", bind_id, ids, n, err);
}

/* ---- reading ---- */

enum { AT_CREATED = 6, AT_SPEC = 14, AT_ROW }; /* columns */

static struct ledger_run read_run(sqlite3_stmt *statement)
{
    return (struct ledger_run){
        .id = ledger_column_some(statement, 0),
        .cluster = ledger_column_some(statement, 1),
        .platform = ledger_column_some(statement, 2),
        .experiment = ledger_column_some(statement, 3),
        .project = ledger_column_some(statement, 4),
        .state = ledger_column_some(statement, 5),
        .created_unix_s = sqlite3_column_int64(statement, AT_CREATED),
        .num_gpu = sqlite3_column_int64(statement, 7),
        .command = ledger_column_some(statement, 8),
        .status = ledger_column(statement, 9),
        .name = ledger_column(statement, 10),
        .tags = ledger_column(statement, 11),
        .found = sqlite3_column_int(statement, 12) != 0,
        .place = ledger_column(statement, 13),
        .spec = ledger_column(statement, AT_SPEC),
    };
}

int ledger_add_rows(sqlite3_stmt *statement, struct ledger_runs *out)
{
    int step;

    while ((step = sqlite3_step(statement)) == SQLITE_ROW)
        ACT_PUSH(out->v, out->n, read_run(statement));
    return step;
}

/* Reads the rows of a query: text stands for its ?1, and second for ?2, if it has that. A failure leaves out empty. */
static int runs_query(struct ledger *ledger, const char *sql, const char *text, int64_t second, struct ledger_runs *out,
                      struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return ledger_fail(ledger, "read", err);
    ledger_bind_text(statement, 1, text);
    sqlite3_bind_int64(statement, 2, second);
    if (ledger_add_rows(statement, out) != SQLITE_DONE) {
        rc = ledger_fail(ledger, "read", err);
        ledger_runs_release(out);
    }
    sqlite3_finalize(statement);
    return rc;
}

static void runs_bind_list(sqlite3_stmt *statement, const struct ledger_query *query)
{
    static const char first[] = "\xff"; /* as bytes, which stand behind all numbers and texts: a time may be damaged */
    const struct ledger_place *place = query->place;

    ledger_bind_text(statement, 1, query->cluster);
    sqlite3_bind_int64(statement, 2, query->without_spec);
    sqlite3_bind_int64(statement, 3, query->max ? (int64_t)query->max : -1);
    if (place && place->begun)
        sqlite3_bind_int64(statement, 4, place->created_unix_s);
    else
        sqlite3_bind_blob(statement, 4, first, (int)strlen(first), SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, place ? place->row : 0);
}

/* Returns the time by which a row stands in the list. A damaged one, which is no number, stands before all others. */
static int64_t runs_time_of(sqlite3_stmt *statement)
{
    int type = sqlite3_column_type(statement, AT_CREATED);

    return type == SQLITE_TEXT || type == SQLITE_BLOB ? INT64_MAX : sqlite3_column_int64(statement, AT_CREATED);
}

/* Appends the wanted rows, and says in *place where it stopped. Returns the result of the last step. */
static int runs_add_wanted(sqlite3_stmt *statement, const struct ledger_query *query, struct ledger_place *place,
                           struct ledger_runs *out)
{
    int step = SQLITE_ROW;

    while ((!query->few || out->n < query->few) && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct ledger_run run = read_run(statement);
        *place = (struct ledger_place){runs_time_of(statement), sqlite3_column_int64(statement, AT_ROW), .begun = true};
        if (!query->wanted || query->wanted(query->arg, &run))
            ACT_PUSH(out->v, out->n, run);
        else
            ledger_run_release(&run);
    }
    place->ended = step == SQLITE_DONE;
    return step;
}

int ledger_list(struct ledger *ledger, const struct ledger_query *query, struct ledger_runs *out, struct act_error *err)
{
    struct ledger_place place = {0};
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, ledger_sql_list, -1, &statement, NULL) != SQLITE_OK)
        return ledger_fail(ledger, "read", err);
    runs_bind_list(statement, query);
    int step = runs_add_wanted(statement, query, query->place ? query->place : &place, out);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        rc = ledger_fail(ledger, "read", err);
        ledger_runs_release(out);
    }
    sqlite3_finalize(statement);
    return rc;
}

int ledger_get(struct ledger *ledger, const char *const *ids, size_t n, struct ledger_runs *out, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    *out = (struct ledger_runs){0};
    if (sqlite3_prepare_v2(ledger->db, sql_get, -1, &statement, NULL) != SQLITE_OK)
        return ledger_fail(ledger, "read", err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        ledger_bind_text(statement, 1, ids[i]);
        if (ledger_add_rows(statement, out) != SQLITE_DONE)
            rc = ledger_fail(ledger, "read", err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    if (rc < 0)
        ledger_runs_release(out);
    return rc;
}

static int fill_spec(struct ledger *ledger, sqlite3_stmt *statement, struct ledger_run *run, struct act_error *err)
{
    ledger_bind_text(statement, 1, run->id);
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW)
        run->spec = ledger_column(statement, 0);
    sqlite3_reset(statement);
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : ledger_fail(ledger, "read", err);
}

int ledger_fill_specs(struct ledger *ledger, struct ledger_run *const *runs, size_t n, struct act_error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = n == 0 ? 0 : ledger_run_sql(ledger, "BEGIN", "read", err);

    if (n == 0 || rc < 0)
        return rc;
    if (sqlite3_prepare_v2(ledger->db, sql_spec, -1, &statement, NULL) != SQLITE_OK)
        rc = ledger_fail(ledger, "read", err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!runs[i]->spec)
            rc = fill_spec(ledger, statement, runs[i], err);
    sqlite3_finalize(statement);
    return ledger_end(ledger, rc, "read", err);
}

int ledger_nth(struct ledger *ledger, const char *cluster, int64_t n, struct ledger_runs *out, struct act_error *err)
{
    return runs_query(ledger, sql_nth, cluster, n - 1, out, err);
}

int ledger_count(struct ledger *ledger, const char *cluster, size_t *out, struct act_error *err)
{
    int n = 0, rc = ledger_ask_number(ledger, cluster ? sql_count_cluster : sql_count, cluster, &n, err);

    *out = (size_t)n;
    return rc;
}

int ledger_has(struct ledger *ledger, const char *id, bool *out, struct act_error *err)
{
    int n = 0, rc = ledger_ask_number(ledger, sql_count_id, id, &n, err);

    *out = n > 0;
    return rc;
}

int ledger_find(struct ledger *ledger, const char *piece, struct ledger_runs *out, struct act_error *err)
{
    static const char *const ways[] = {sql_find_exact, sql_find_name, sql_find_piece};
    int rc = 0;

    *out = (struct ledger_runs){0};
    for (size_t i = 0; *piece && rc == 0 && out->n == 0 && i < sizeof(ways) / sizeof(ways[0]); i++)
        rc = runs_query(ledger, ways[i], piece, LEDGER_FOUND_MOST, out, err);
    return rc;
}

int ledger_repeats(struct ledger *ledger, const char *id, struct ledger_runs *out, struct act_error *err)
{
    return runs_query(ledger, sql_repeats, id, 0, out, err);
}

int ledger_replacement(struct ledger *ledger, const char *id, struct ledger_runs *out, struct act_error *err)
{
    return runs_query(ledger, sql_replacement, id, 0, out, err);
}
