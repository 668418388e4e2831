/* The ledger: rows in and out, concurrent and killed writers, files that are not what they should be. */
#define TEST_SETUP    ledger_test_make_dir
#define TEST_TEARDOWN ledger_test_remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "ledger/ledger.h"

enum { NOBODY = 65534 };

static char *path; /* the ledger in the folder of the test */

static int ledger_test_make_dir(void **state)
{
    int rc = make_dir(state);

    path = test_path("ledger.db");
    return rc;
}

static int ledger_test_remove_dir(void **state)
{
    free(path);
    return remove_dir(state);
}

static struct ledger *open_ledger(void)
{
    struct ledger *ledger = NULL;

    assert_ok(ledger_open(path, NULL, &ledger, &err), err);
    return ledger;
}

static int ledger_test_add(struct ledger *ledger, const char *id, const char *cluster, const char *run_state,
                           int64_t created_unix_s, struct act_error *e)
{
    char *copies[] = {act_strdup(id),    act_strdup(cluster),   act_strdup(run_state),
                      act_strdup("exp"), act_strdup("/home/u"), act_strdup("{\"v\":1}")};
    struct ledger_run run = {.id = copies[0],
                             .cluster = copies[1],
                             .platform = copies[1],
                             .experiment = copies[3],
                             .project = copies[4],
                             .spec = copies[5],
                             .state = copies[2],
                             .created_unix_s = created_unix_s,
                             .num_gpu = 4,
                             .command = copies[3]};
    int rc = ledger_add(ledger, &run, e);

    for (size_t i = 0; i < COUNT(copies); i++)
        free(copies[i]);
    return rc;
}

static void ledger_test_put(const char *file, const char *text)
{
    assert_ok(act_file_write(file, text, strlen(text), 0600, &err), err);
}

static void assert_ids(const struct ledger_runs *runs, const char *expected)
{
    struct act_buf ids = {0};

    for (size_t i = 0; i < runs->n; i++)
        act_buf_addf(&ids, "%s%s", i ? " " : "", runs->v[i].id);
    ACT_AUTOFREE char *text = act_buf_steal(&ids);
    assert_string_equal(text, expected);
}

/* Adds a run that repeats "old", and takes its place if it replaces that. */
static void add_repeat(struct ledger *ledger, char *id, const char *of, char *replaces)
{
    ACT_AUTOFREE char *spec =
        act_sprintf("{\"resubmit_of\": \"%s\", \"after\": [\"%s\"]}", of, replaces ? replaces : "");
    char queued[] = "Queued";
    const struct ledger_run run = {.id = id, .state = queued, .spec = spec, .replaces = replaces};

    assert_ok(ledger_add(ledger, &run, &err), err);
}

/* Whatever else repeats it, and whichever run another one replaces. */
TEST(a_run_is_replaced_by_one_other)
{
    char ids[][16] = {"a", "b", "c", "d", "e"}, old[] = "old";
    struct ledger *ledger = open_ledger();
    struct ledger_update ended = {"b", "Canceled", NULL};
    ACT_AUTO(ledger_runs) runs = {0}, now = {0}, ended_too = {0}, none = {0};
    bool there;

    add_repeat(ledger, ids[0], "another", NULL);
    add_repeat(ledger, ids[1], old, old);
    add_repeat(ledger, ids[2], old, old);
    add_repeat(ledger, ids[1], old, old); /* again the same */
    assert_ok(ledger_repeats(ledger, old, &runs, &err), err);
    assert_ids(&runs, "b");
    assert_ok(ledger_has(ledger, "c", &there, &err), err);
    assert_false(there);
    add_repeat(ledger, ids[3], old, NULL); /* when that one has ended, it is replaced no more but repeated */
    assert_ok(ledger_update(ledger, &ended, 1, &err), err);
    assert_ok(ledger_remove(ledger, (const char *[]){"d"}, 1, &err), err);
    add_repeat(ledger, ids[4], old, old);
    assert_ok(ledger_repeats(ledger, old, &now, &err), err);
    assert_ids(&now, "e");
    assert_ok(ledger_replacement(ledger, old, &ended_too, &err), err);
    assert_ids(&ended_too, "e");
    assert_ok(ledger_replacement(ledger, "another", &none, &err), err); /* which had ended */
    assert_ids(&none, "");
    ledger_close(ledger);
}

TEST(a_run_comes_back_as_it_went_in)
{
    char values[][24] = {"exp_1_0a", "c",         "local",  "exp",     "/p \xc3\xa9'\"", "{\"a\":[1]}",
                         "Running",  "{\"x\":0}", "echo ;", "my-name", "{\"k\":\"v\"}"};
    struct ledger_run run = {values[0], values[1], values[2], values[3], values[4], values[5],  values[6], values[7],
                             INT64_MAX, -1,        values[8], NULL,      values[9], values[10], true,      NULL};
    ACT_AUTO(ledger_runs) runs = {0};
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_add(ledger, &run, &err), err);
    ledger_close(ledger);
    ledger = open_ledger();
    assert_ok(ledger_find(ledger, "exp_1_0a", &runs, &err), err);
    assert_int_equal(runs.n, 1);
    const struct ledger_run *got = &runs.v[0];
    const char *const texts[] = {got->id,    got->cluster, got->platform, got->experiment, got->project, got->spec,
                                 got->state, got->status,  got->command,  got->name,       got->tags};
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_string_equal(texts[i], values[i]);
    assert_true(got->created_unix_s == INT64_MAX);
    assert_int_equal(got->num_gpu, -1);
    assert_true(got->found);
    ledger_close(ledger);
}

TEST(the_file_is_private_and_its_folder_is_made)
{
    struct ledger *ledger = NULL;
    struct stat st;
    ACT_AUTOFREE char *deep = act_sprintf("%s/a/b/ledger.db", dir);

    umask(022);
    assert_ok(ledger_open(deep, NULL, &ledger, &err), err);
    ledger_close(ledger);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

TEST(adding_twice_changes_nothing)
{
    ACT_AUTO(ledger_runs) runs = {0};
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_test_add(ledger, "a", "one", "Queued", 1, &err), err);
    assert_ok(ledger_test_add(ledger, "a", "two", "Failed", 2, &err), err);
    assert_ok(ledger_find(ledger, "a", &runs, &err), err);
    assert_int_equal(runs.n, 1);
    assert_string_equal(runs.v[0].cluster, "one");
    assert_null(runs.v[0].status);
    ledger_close(ledger);
}

TEST(what_is_removed_is_gone)
{
    const char *const ids[] = {"a", "nobody", "c"};
    ACT_AUTO(ledger_runs) runs = {0};
    struct ledger *ledger = open_ledger();

    for (size_t i = 0; i < COUNT(ids); i++)
        assert_ok(ledger_test_add(ledger, (const char *[]){"a", "b", "c"}[i], "one", "Failed", (int64_t)i, &err), err);
    assert_ok(ledger_remove(ledger, ids, COUNT(ids), &err), err);
    assert_ok(ledger_remove(ledger, NULL, 0, &err), err);
    assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err);
    assert_ids(&runs, "b");
    ledger_close(ledger);
}

TEST(updates_store_state_and_status)
{
    const struct ledger_update first[] = {
        {"a", "Running", "{\"n\":1}"}, {"nobody", "Failed", NULL}, {"b", "Failed", NULL}};
    const struct ledger_update second[] = {{"a", "Completed", NULL}};
    ACT_AUTO(ledger_runs) runs = {0};
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_test_add(ledger, "a", "c", "Queued", 2, &err), err);
    assert_ok(ledger_test_add(ledger, "b", "c", "Queued", 1, &err), err);
    assert_ok(ledger_update(ledger, NULL, 0, &err), err);
    assert_ok(ledger_update(ledger, first, COUNT(first), &err), err);
    assert_ok(ledger_update(ledger, second, COUNT(second), &err), err);
    assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err);
    assert_ids(&runs, "a b");
    assert_string_equal(runs.v[0].state, "Completed");
    assert_string_equal(runs.v[0].status, "{\"n\":1}");
    assert_string_equal(runs.v[1].state, "Failed");
    assert_null(runs.v[1].status);
    ledger_close(ledger);
}

TEST(list_table)
{
    static const struct {
        struct ledger_query query;
        const char *ids;
    } rows[] = {
        {{0}, "r5 r4 r3 r2 r1"},           {{.cluster = "x"}, "r5 r3 r1"},        {{.max = 2}, "r5 r4"},
        {{.max = 5}, "r5 r4 r3 r2 r1"},    {{.cluster = "x", .max = 2}, "r5 r3"}, {{.cluster = "X"}, ""},
        {{.cluster = "x' OR 1=1 --"}, ""},
    };
    struct ledger_runs runs;
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_test_add(ledger, "r3", "x", "Completed", 30, &err), err);
    assert_ok(ledger_test_add(ledger, "r1", "x", "Queued", 10, &err), err);
    assert_ok(ledger_test_add(ledger, "r2", "y", "Running", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r4", "y", "Failed", 40, &err), err);
    assert_ok(ledger_test_add(ledger, "r5", "x", "Unknown", 40, &err), err); /* same second: the later one is newer */
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_ok(ledger_list(ledger, &rows[i].query, &runs, &err), err);
        assert_ids(&runs, rows[i].ids);
        ledger_runs_release(&runs);
    }
    assert_ok(ledger_list(ledger, &(struct ledger_query){.without_spec = true}, &runs, &err), err);
    assert_int_equal(runs.n, 5);
    for (size_t i = 0; i < runs.n; i++) /* newest first: r5, r2 and r1 have not ended */
        assert_int_equal(runs.v[i].spec != NULL, i == 0 || i >= 3);
    assert_string_equal(runs.v[0].command, "exp");
    ACT_AUTOFREE char *none = act_strdup("none");
    struct ledger_run gone = {.id = none};
    struct ledger_run *const rest[] = {&runs.v[0], &gone, &runs.v[1]};
    assert_ok(ledger_fill_specs(ledger, rest, COUNT(rest), &err), err);
    assert_non_null(runs.v[1].spec);
    assert_null(runs.v[2].spec);
    assert_null(gone.spec);
    ledger_runs_release(&runs);
    ledger_close(ledger);
}

static bool ledger_test_is_wanted(const void *state, const struct ledger_run *run)
{
    return strcmp(run->state, state) == 0;
}

TEST(list_those_that_are_wanted)
{
    const struct ledger_query failed = {.wanted = ledger_test_is_wanted, .arg = "Failed"};
    struct ledger *ledger = open_ledger();
    struct ledger_runs runs;

    assert_ok(ledger_test_add(ledger, "r1", "x", "Failed", 10, &err), err);
    assert_ok(ledger_test_add(ledger, "r2", "x", "Running", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r3", "x", "Failed", 30, &err), err);
    assert_ok(ledger_list(ledger, &failed, &runs, &err), err);
    assert_ids(&runs, "r3 r1");
    ledger_runs_release(&runs);
    ledger_close(ledger);
}

TEST(list_a_few_at_a_time_from_where_the_last_ones_ended)
{
    static const char *const few[] = {"r5 r4", "r2", ""};
    struct ledger *ledger = open_ledger();
    struct ledger_place place = {0};
    const struct ledger_query query = {.wanted = ledger_test_is_wanted, .arg = "Failed", .few = 2, .place = &place};
    struct ledger_runs runs;

    assert_ok(ledger_test_add(ledger, "r1", "x", "Running", 10, &err), err);
    assert_ok(ledger_test_add(ledger, "r2", "x", "Failed", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r3", "x", "Running", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r4", "x", "Failed", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r5", "x", "Failed", 30, &err), err);
    for (size_t i = 0; i < COUNT(few); i++) {
        assert_ok(ledger_list(ledger, &query, &runs, &err), err);
        assert_ids(&runs, few[i]);
        ledger_runs_release(&runs);
        assert_int_equal(place.ended, i > 0);
        if (i == 0) /* it is newer than where the list is */
            assert_ok(ledger_test_add(ledger, "r6", "x", "Failed", 40, &err), err);
    }
    ledger_close(ledger);
}

/* A damaged row is one row, and the list goes on behind it. */
TEST(list_a_few_at_a_time_past_times_that_are_damaged)
{
    static const char *const few[] = {"text", "new", "half", "old", ""};
    struct ledger *ledger = open_ledger();
    struct ledger_place place = {0};
    const struct ledger_query query = {.few = 1, .place = &place};
    struct ledger_runs runs;
    sqlite3 *db = NULL;

    for (size_t i = 0; i < COUNT(few) - 1; i++)
        assert_ok(ledger_test_add(ledger, few[i], "x", "Failed", 40 - (int64_t)i, &err), err);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE runs SET created_unix_s = 'then' WHERE id = 'text';"
                                  "UPDATE runs SET created_unix_s = 38.5 WHERE id = 'half'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    for (size_t i = 0; i < COUNT(few); i++) {
        assert_ok(ledger_list(ledger, &query, &runs, &err), err);
        assert_ids(&runs, few[i]);
        ledger_runs_release(&runs);
    }
    assert_true(place.ended);
    ledger_close(ledger);
}

TEST(get_rows_by_their_ids)
{
    static const char *const ids[] = {"r2", "r", "r1"};
    struct ledger *ledger = open_ledger();
    struct ledger_runs runs;

    assert_ok(ledger_test_add(ledger, "r1", "x", "Running", 10, &err), err);
    assert_ok(ledger_test_add(ledger, "r2", "x", "Failed", 20, &err), err);
    assert_ok(ledger_get(ledger, ids, COUNT(ids), &runs, &err), err);
    assert_ids(&runs, "r2 r1");
    assert_null(runs.v[0].spec);
    ledger_runs_release(&runs);
    ledger_close(ledger);
}

TEST(count_table)
{
    static const struct {
        const char *cluster;
        size_t n;
    } counts[] = {{NULL, 3}, {"x", 2}, {"y", 1}, {"X", 0}, {"x' OR 1=1 --", 0}};
    static const struct {
        const char *id;
        bool known;
    } ids[] = {{"r1", true}, {"r3", true}, {"r", false}, {"R1", false}, {"", false}};
    struct ledger *ledger = open_ledger();
    size_t n;
    bool known;

    assert_ok(ledger_test_add(ledger, "r1", "x", "Running", 10, &err), err);
    assert_ok(ledger_test_add(ledger, "r2", "y", "Failed", 20, &err), err);
    assert_ok(ledger_test_add(ledger, "r3", "x", "Queued", 30, &err), err);
    for (size_t i = 0; i < COUNT(counts); i++) {
        assert_ok(ledger_count(ledger, counts[i].cluster, &n, &err), err);
        assert_int_equal(n, counts[i].n);
    }
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_ok(ledger_has(ledger, ids[i].id, &known, &err), err);
        assert_int_equal(known, ids[i].known);
    }
    ledger_close(ledger);
}

TEST(the_place_of_a_run_is_in_every_list_and_changes_when_it_is_moved)
{
    struct ledger_query query = {.without_spec = true};
    struct ledger_run run = {.id = (char[]){"r1"}, .state = (char[]){"Failed"}, .place = (char[]){"{\"where\":\"a\"}"}};
    struct ledger_run bare = {.id = (char[]){"r2"}, .state = (char[]){"Queued"}};
    struct ledger_run moved = {
        .id = (char[]){"r1"}, .cluster = (char[]){"new"}, .project = (char[]){"/p"}, .place = (char[]){"{}"}};
    ACT_AUTO(ledger_runs) runs = {0}, after = {0};
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_add(ledger, &run, &err), err);
    assert_ok(ledger_add(ledger, &bare, &err), err);
    assert_ok(ledger_list(ledger, &query, &runs, &err), err);
    assert_null(runs.v[0].place);
    assert_string_equal(runs.v[1].place, run.place);
    assert_ok(ledger_move(ledger, &moved, &err), err);
    assert_ok(ledger_find(ledger, "r1", &after, &err), err);
    assert_string_equal(after.v[0].cluster, "new");
    assert_string_equal(after.v[0].project, "/p");
    assert_string_equal(after.v[0].place, "{}");
    assert_string_equal(after.v[0].state, "Failed");
    ledger_close(ledger);
}

TEST(find_table)
{
    static const struct {
        const char *piece, *ids;
    } rows[] = {
        {"exp_1_aa", "exp_1_aa"}, /* exactly it, though another contains it */
        {"exp_1_aab", "exp_1_aab"},
        {"exp_1", "exp_1_aab exp_1_aa"},
        {"_2_", "exp_2_%z"},
        {"aab", "exp_1_aab"},
        {"%", "exp_2_%z"},
        {"exp_1_a_", ""},
        {"exp_", "exp_2_%z exp_1_aab exp_1_aa"},
        {"EXP_1", ""},
        {"nothing", ""},
        {"", ""},
        {"' OR '1'='1", ""},
    };
    struct ledger_runs runs;
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_test_add(ledger, "exp_1_aa", "x", "Queued", 1, &err), err);
    assert_ok(ledger_test_add(ledger, "exp_1_aab", "x", "Queued", 2, &err), err);
    assert_ok(ledger_test_add(ledger, "exp_2_%z", "x", "Queued", 3, &err), err);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_ok(ledger_find(ledger, rows[i].piece, &runs, &err), err);
        assert_ids(&runs, rows[i].ids);
        ledger_runs_release(&runs);
    }
    ledger_close(ledger);
}

/* Runs write() in a child that leaves without the test's own clean-up. */
static pid_t ledger_test_start_child(void (*work)(int), int argument)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        work(argument);
        _exit(0);
    }
    return pid;
}

static void ledger_test_write_rows(int writer)
{
    struct ledger *ledger;
    char id[32];

    err = (struct act_error){0};
    if (ledger_open(path, NULL, &ledger, &err) < 0)
        _exit(2);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof(id), "w%d_%d", writer, i);
        const struct ledger_update update = {id, "Running", "{}"};
        if (ledger_test_add(ledger, id, "x", "Queued", i, &err) < 0 || ledger_update(ledger, &update, 1, &err) < 0) {
            fprintf(stderr, "writer %d: %s\n", writer, act_error_text(&err));
            _exit(1);
        }
    }
    ledger_close(ledger);
}

TEST(two_writers_make_the_file_and_lose_nothing)
{
    ACT_AUTO(ledger_runs) runs = {0};
    pid_t pids[2];
    int status;

    for (int i = 0; i < 2; i++)
        pids[i] = ledger_test_start_child(ledger_test_write_rows, i);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct ledger *ledger = open_ledger();
    assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err);
    assert_int_equal(runs.n, 400);
    for (size_t i = 0; i < runs.n; i++)
        assert_string_equal(runs.v[i].state, "Running");
    ledger_close(ledger);
}

/* Looks at a ledger that another process is filling, once the pipe says so: its runs are there, or it is not there
 * yet. SQLite wants the process to be forked before. */
static void look_at_a_new_one(int pipe_fd)
{
    ACT_AUTO(ledger_runs) runs = {0};
    struct ledger *ledger;
    char byte;

    err = (struct act_error){0};
    if (read(pipe_fd, &byte, 1) != 1 || ledger_open(path, NULL, &ledger, &err) < 0 ||
        ledger_list(ledger, &(struct ledger_query){0}, &runs, &err) < 0)
        _exit(2);
    _exit(runs.n == 1 ? 0 : 1);
}

static void list_first(void *arg, struct ledger_runs *out)
{
    enum { LOOKS_MS = 100 };
    struct ledger_run row = {.id = act_strdup("first"),
                             .cluster = act_strdup("x"),
                             .platform = act_strdup("x"),
                             .experiment = act_strdup("exp"),
                             .project = act_strdup("/home/u"),
                             .spec = act_strdup("{}"),
                             .state = act_strdup("Completed"),
                             .created_unix_s = 1,
                             .command = act_strdup("true")};

    assert_int_equal(write(*(const int *)arg, "+", 1), 1);
    usleep(LOOKS_MS * 1000); /* for it to look while the runs are missing; if it is slower, it sees them */
    *out = (struct ledger_runs){0};
    ACT_PUSH(out->v, out->n, row);
}

TEST(nobody_sees_a_new_one_before_it_is_filled)
{
    struct ledger *ledger = NULL;
    int ends[2], status = -1;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = ledger_test_start_child(look_at_a_new_one, ends[0]);
    assert_ok(ledger_open(path, &(struct ledger_first){list_first, &ends[1]}, &ledger, &err), err);
    assert_true(ledger_is_new(ledger));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    ledger_close(ledger);
    close(ends[0]);
    close(ends[1]);
}

/* Adds rows until it is killed; says each one that is in the ledger through the pipe. */
static void write_until_killed(int pipe_fd)
{
    struct ledger *ledger;
    char id[32];

    if (ledger_open(path, NULL, &ledger, &err) < 0)
        _exit(2);
    for (int i = 0;; i++) {
        snprintf(id, sizeof(id), "k%d_%d", (int)getpid(), i);
        if (ledger_test_add(ledger, id, "x", "Queued", i, &err) < 0 || write(pipe_fd, "+", 1) != 1)
            _exit(1);
    }
}

static void assert_intact(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *check = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(check), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(check, 0), "ok");
    sqlite3_finalize(check);
    sqlite3_close(db);
}

TEST(a_killed_writer_leaves_all_it_reported)
{
    struct ledger_runs runs;
    size_t reported = 0;
    char said[4096];

    for (unsigned round = 0; round < 10; round++) {
        int fds[2], status;
        assert_int_equal(pipe(fds), 0);
        pid_t pid = ledger_test_start_child(write_until_killed, fds[1]);
        close(fds[1]);
        assert_int_equal(read(fds[0], said, 1), 1); /* it is at work */
        reported++;
        usleep(round * 1700);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        for (ssize_t n; (n = read(fds[0], said, sizeof(said))) > 0;)
            reported += (size_t)n;
        close(fds[0]);

        struct ledger *ledger = open_ledger();
        assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err);
        assert_true(runs.n >= reported && runs.n <= reported + round + 1);
        ledger_runs_release(&runs);
        ledger_close(ledger);
        assert_intact();
    }
}

static void hold_lock(int ready_fd)
{
    sqlite3 *db = NULL;

    sqlite3_open(path, &db);
    sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
    if (write(ready_fd, "+", 1) == 1)
        pause();
    _exit(1);
}

/* Starts a process that holds the lock until let_go(). */
static pid_t lock_ledger(void)
{
    int fds[2];
    char said;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = ledger_test_start_child(hold_lock, fds[1]);
    assert_int_equal(read(fds[0], &said, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void let_go(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(a_lock_that_stays_is_temporary)
{
    struct ledger *ledger = open_ledger();
    struct ledger_runs runs;
    pid_t pid = lock_ledger();

    assert_fails(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err, ACT_TEMPORARY, path);
    assert_int_equal(runs.n, 0);
    let_go(pid);
    assert_ok(ledger_test_add(ledger, "a", "x", "Queued", 1, &err), err);
    ledger_close(ledger);
}

TEST(a_file_that_is_no_ledger_is_an_error_and_stays)
{
    static const char text[] = "this is not a database, it is a shopping list that is longer than a header: "
                               "apples, pears, plums, cherries, quinces\n";
    struct ledger *ledger = (struct ledger *)&err;
    ACT_AUTOFREE char *content = NULL;

    ledger_test_put(path, text);
    assert_int_equal(ledger_open(path, NULL, &ledger, &err), -ACT_FAIL);
    assert_null(ledger);
    assert_contains(act_error_text(&err), path);
    assert_contains(act_error_text(&err), "move the file away");
    assert_ok(act_file_read(path, 4096, &content, NULL, &err), err);
    assert_string_equal(content, text);
}

TEST(a_damaged_ledger_is_an_error_not_an_empty_list)
{
    struct ledger_runs runs;
    struct ledger *ledger = open_ledger();
    char garbage[4096];
    char id[16];

    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "r%d", i);
        assert_ok(ledger_test_add(ledger, id, "x", "Queued", i, &err), err);
    }
    ledger_close(ledger);
    memset(garbage, 0xa5, sizeof(garbage));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (off_t page = 1; page < 4; page++) /* all but the header */
        assert_int_equal(act_pwrite_all(fd, garbage, sizeof(garbage), page * 4096), 0);
    close(fd);
    ledger = open_ledger();
    assert_fails(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err, ACT_FAIL, path);
    assert_int_equal(runs.n, 0);
    assert_null(runs.v);
    ledger_close(ledger);
}

/* A ledger of so many rows whose last page is broken. */
static void make_broken_ledger(size_t n)
{
    ACT_AUTO(ledger_runs) rows = {.v = act_calloc(n, sizeof(*rows.v)), .n = n};
    struct ledger *ledger = open_ledger();
    char garbage[4096];

    for (size_t i = 0; i < n; i++)
        rows.v[i] =
            (struct ledger_run){.id = act_sprintf("r%zu", i), .command = act_sprintf("%0200zu", i), .num_gpu = 1};
    assert_ok(ledger_add_all(ledger, &rows, &err), err);
    ledger_close(ledger);
    memset(garbage, 0xa5, sizeof(garbage));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    off_t end = lseek(fd, 0, SEEK_END);
    assert_true(end > (off_t)20 * 4096);
    assert_int_equal(act_pwrite_all(fd, garbage, sizeof(garbage), end - 4096), 0);
    close(fd);
}

TEST(a_damaged_file_is_set_aside)
{
    struct ledger *ledger;
    struct ledger_runs rows, again;
    char *aside = NULL, *none = NULL;

    make_broken_ledger(600);
    ACT_AUTOFREE char *journal = act_sprintf("%s-journal", path);
    ledger_test_put(journal, "of the one before");
    assert_ok(ledger_set_aside(path, &aside, &err), err);
    assert_non_null(aside);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(journal, F_OK), 0);

    ledger_salvage(aside, &rows);
    assert_true(rows.n > 100);
    ledger = open_ledger();
    assert_true(ledger_is_new(ledger));
    assert_ok(ledger_add_all(ledger, &rows, &err), err); /* twice is once */
    assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &again, &err), err);
    assert_true(again.n > 100 && again.n <= 600);
    ledger_runs_release(&rows);
    ledger_runs_release(&again);
    ledger_close(ledger);

    assert_ok(ledger_set_aside(path, &none, &err), err);
    assert_null(none); /* it is sound */
    ledger = open_ledger();
    assert_false(ledger_is_new(ledger));
    ledger_close(ledger);
    free(aside);
}

TEST(what_is_no_file_is_not_opened)
{
    static const char *const ends[] = {"", "-journal"};
    struct ledger *ledger = NULL;

    alarm(PATIENCE_S); /* it would wait for ever */
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        ACT_AUTOFREE char *file = act_sprintf("%s%s", path, ends[i]);
        assert_int_equal(i == 0 ? mkfifo(file, 0600) : mkdir(file, 0700), 0);
        assert_fails(ledger_open(path, NULL, &ledger, &err), err, ACT_DENIED, "is not a regular file");
        assert_contains(act_error_text(&err), file);
        assert_ok(ledger_copy(path, &ledger, &err), err);
        assert_true(ledger_is_new(ledger));
        ledger_close(ledger);
        assert_int_equal(i == 0 ? unlink(file) : rmdir(file), 0);
    }
    alarm(0);
    ledger_close(open_ledger());
}

TEST(a_locked_ledger_can_be_copied)
{
    struct ledger *ledger = open_ledger(), *copy = NULL;
    ACT_AUTO(ledger_runs) runs = {0};
    char *aside = NULL;

    assert_ok(ledger_test_add(ledger, "a", "x", "Queued", 1, &err), err);
    ledger_close(ledger);
    pid_t pid = lock_ledger();
    assert_ok(ledger_copy(path, &copy, &err), err);
    assert_false(ledger_is_new(copy));
    assert_ok(ledger_test_add(copy, "b", "x", "Queued", 2, &err), err);
    assert_ok(ledger_list(copy, &(struct ledger_query){0}, &runs, &err), err);
    assert_int_equal(runs.n, 2);
    ledger_close(copy);
    assert_int_equal(ledger_set_aside(path, &aside, &err), -ACT_TEMPORARY);
    assert_null(aside);
    let_go(pid);
}

TEST(a_copy_of_no_ledger_is_new)
{
    static const char *const texts[] = {NULL, "",
                                        "no database, but a text that is longer than what SQLite looks at: "
                                        "apples, pears, plums, cherries and a lot of quinces"};
    struct ledger *copy;

    for (size_t i = 0; i < COUNT(texts); i++) {
        if (texts[i])
            ledger_test_put(path, texts[i]);
        assert_ok(ledger_copy(path, &copy, &err), err);
        assert_true(ledger_is_new(copy));
        ledger_close(copy);
    }
}

TEST(an_empty_file_becomes_a_ledger)
{
    ledger_test_put(path, "");
    struct ledger *ledger = open_ledger();
    assert_ok(ledger_test_add(ledger, "a", "x", "Queued", 1, &err), err);
    ledger_close(ledger);
}

/* As the first version of the program made it, with two runs. */
static void make_first_schema(void)
{
    static const char sql[] =
        "CREATE TABLE runs (id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, platform TEXT NOT NULL,"
        " experiment TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL, created_unix_s INTEGER NOT NULL,"
        " num_gpu INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, spec TEXT NOT NULL);"
        "CREATE INDEX runs_by_time ON runs (created_unix_s);"
        "INSERT INTO runs VALUES ('old_1', 'c', 'local', 'e', '/p', 'Completed', 5, 1, 'true', '{}', '{\"v\":1}');"
        "INSERT INTO runs VALUES ('old_2', 'c', 'slurm', 'e', '/p', 'Queued', 5, 1, 'true', NULL,"
        " '{\"v\":2,\"config\":{\"slurm\":{\"root\":\"/r\"},\"env\":{\"A\":\"1\"}}}');"
        "PRAGMA user_version = 1";
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* What is kept as the place of a run that has none. */
#define OLD_PLACE "{\"config\":{\"slurm\":{\"root\":\"/r\"}}}"

static void assert_old_runs(struct ledger *ledger)
{
    ACT_AUTO(ledger_runs) runs = {0};

    assert_ok(ledger_list(ledger, &(struct ledger_query){0}, &runs, &err), err);
    assert_ids(&runs, "old_2 old_1");
    assert_string_equal(runs.v[1].spec, "{\"v\":1}");
    assert_string_equal(runs.v[1].status, "{}");
    assert_null(runs.v[0].name);
    assert_null(runs.v[0].tags);
    assert_string_equal(runs.v[0].place, OLD_PLACE);
    assert_null(runs.v[1].place);
    assert_false(ledger_is_new(ledger));
}

TEST(an_older_schema_is_migrated)
{
    ACT_AUTO(ledger_runs) runs = {0}, saved = {0};
    struct ledger *ledger = NULL;
    char *aside = NULL;

    make_first_schema();
    assert_ok(ledger_look(path, &err), err);
    assert_ok(ledger_set_aside(path, &aside, &err), err);
    assert_null(aside);
    ledger_salvage(path, &saved);
    assert_ids(&saved, "old_1 old_2");
    assert_string_equal(saved.v[1].place, OLD_PLACE);
    assert_ok(ledger_copy(path, &ledger, &err), err);
    assert_old_runs(ledger);
    ledger_close(ledger);

    ledger = open_ledger();
    assert_old_runs(ledger);
    struct ledger_run run = {.id = (char[]){"new"}, .name = (char[]){"old_2"}, .created_unix_s = 6};
    assert_ok(ledger_add(ledger, &run, &err), err);
    assert_ok(ledger_nth(ledger, NULL, 2, &runs, &err), err);
    assert_ids(&runs, "old_2");
    ledger_close(ledger);
}

TEST(a_name_is_found_after_an_id_and_before_a_piece)
{
    struct ledger *ledger = open_ledger();
    static const struct {
        char id[8], name[8];
    } rows[] = {{"exp_1", "exp_2"}, {"exp_2", "twice"}, {"exp_3", "twice"}, {"a_twice", "xp"}};
    static const struct {
        const char *piece, *ids;
    } found[] = {{"exp_2", "exp_2"}, {"twice", "exp_3 exp_2"}, {"xp", "a_twice"}, {"exp", "exp_3 exp_2 exp_1"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *id = act_strdup(rows[i].id), *name = act_strdup(rows[i].name);
        struct ledger_run run = {.id = id, .name = name, .created_unix_s = (int64_t)i};
        assert_ok(ledger_add(ledger, &run, &err), err);
    }
    for (size_t i = 0; i < COUNT(found); i++) {
        ACT_AUTO(ledger_runs) runs = {0};
        assert_ok(ledger_find(ledger, found[i].piece, &runs, &err), err);
        assert_ids(&runs, found[i].ids);
    }
    ledger_close(ledger);
}

TEST(notes_are_of_runs_and_go_with_them)
{
    const struct ledger_note first[] = {{"a", "1"}, {"nobody", "2"}, {"b", "3"}}, second = {"a", "4"};
    const char *const ids[] = {"a", "nobody", "b", "c"};
    char *texts[COUNT(ids)] = {0};
    struct ledger *ledger = open_ledger();

    for (size_t i = 0; i < 3; i++)
        assert_ok(ledger_test_add(ledger, (const char *[]){"a", "b", "c"}[i], "one", "Failed", (int64_t)i, &err), err);
    assert_ok(ledger_set_notes(ledger, first, COUNT(first), &err), err);
    assert_ok(ledger_set_notes(ledger, &second, 1, &err), err);
    assert_ok(ledger_remove(ledger, (const char *[]){"b"}, 1, &err), err);
    assert_ok(ledger_get_notes(ledger, ids, COUNT(ids), texts, &err), err);
    assert_string_equal(texts[0], "4");
    assert_null(texts[1]);
    assert_null(texts[2]);
    assert_null(texts[3]);
    assert_ok(ledger_get_notes(ledger, NULL, 0, NULL, &err), err);
    free(texts[0]);
    ledger_close(ledger);
}

TEST(bad_nodes_are_listed_once_and_stay_forgotten)
{
    struct ledger_bad rows[] = {
        {(char[]){"a"}, (char[]){"n1"}, (char[]){"xid"}, (char[]){"r1"}, 100, NULL},
        {(char[]){"a"}, (char[]){"n1"}, (char[]){"ecc"}, (char[]){"r2"}, 200, NULL},
        {(char[]){"a"}, (char[]){"n2"}, (char[]){"ecc"}, (char[]){"r2"}, 150, NULL},
        {(char[]){"b"}, (char[]){"n1"}, (char[]){"ecc"}, (char[]){"r3"}, 50, NULL},
    };
    const struct ledger_bads all = {rows, COUNT(rows)};
    const struct ledger_whose nodes_of_a = {.cluster = "a"}, everybodys = {0};
    struct ledger *ledger = open_ledger();
    ACT_AUTO(ledger_bads) found = {0}, late = {0}, left = {0};
    int n = 0;

    assert_ok(ledger_add_bads(ledger, &all, &err), err);
    assert_ok(ledger_list_bads(ledger, &nodes_of_a, 0, &found, &err), err);
    assert_int_equal(found.n, 2);
    assert_string_equal(found.v[0].node, "n1");
    assert_string_equal(found.v[0].class, "ecc");
    assert_string_equal(found.v[0].run, "r2");
    assert_ok(ledger_list_bads(ledger, &everybodys, 180, &late, &err), err);
    assert_int_equal(late.n, 1);
    assert_ok(ledger_forget_bad(ledger, &nodes_of_a, "n1", &n, &err), err);
    assert_int_equal(n, 2);
    assert_ok(ledger_add_bads(ledger, &all, &err), err);
    assert_ok(ledger_list_bads(ledger, &everybodys, 0, &left, &err), err);
    assert_int_equal(left.n, 2);
    assert_string_equal(left.v[0].node, "n2");
    assert_string_equal(left.v[1].cluster, "b");
    ledger_close(ledger);
}

TEST(bad_nodes_are_those_of_the_place_and_not_of_the_name)
{
    struct ledger_bad rows[] = {
        {(char[]){"aml"}, (char[]){"n1"}, (char[]){"ecc"}, (char[]){"r1"}, 100, (char[]){"here"}},
        {(char[]){"new"}, (char[]){"n1"}, (char[]){"ecc"}, (char[]){"r2"}, 200, (char[]){"here"}},
        {(char[]){"aml"}, (char[]){"n2"}, (char[]){"ecc"}, (char[]){"r3"}, 300, (char[]){"there"}},
        {(char[]){"aml"}, (char[]){"n3"}, (char[]){"ecc"}, (char[]){"r4"}, 50, NULL}, /* of before there were places */
    };
    static const struct {
        struct ledger_whose whose;
        const char *runs;
    } asked[] = {
        {{"aml", "here"}, "r2 r4"},  {{"new", "here"}, "r2"},    {{"other", "there"}, "r3"},
        {{"aml", NULL}, "r3 r1 r4"}, {{NULL, NULL}, "r3 r2 r4"},
    };
    struct ledger *ledger = open_ledger();

    assert_ok(ledger_add_bads(ledger, &(struct ledger_bads){rows, COUNT(rows)}, &err), err);
    for (size_t i = 0; i < COUNT(asked); i++) {
        ACT_AUTO(ledger_bads) found = {0};
        ACT_AUTO(act_buf) runs = {0};
        assert_ok(ledger_list_bads(ledger, &asked[i].whose, 0, &found, &err), err);
        for (size_t k = 0; k < found.n; k++)
            act_buf_addf(&runs, "%s%s", k ? " " : "", found.v[k].run);
        assert_string_equal(runs.data, asked[i].runs);
    }
    ledger_close(ledger);
}

TEST(a_newer_schema_is_refused)
{
    struct ledger *ledger = open_ledger();
    sqlite3 *db = NULL;
    char *aside = NULL;

    ledger_close(ledger);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 7", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(ledger_open(path, NULL, &ledger, &err), -ACT_FAIL);
    assert_null(ledger);
    assert_contains(act_error_text(&err), "schema version 7");
    assert_contains(act_error_text(&err), path);
    assert_int_equal(ledger_copy(path, &ledger, &err), -ACT_FAIL);
    assert_null(ledger);
    assert_ok(ledger_set_aside(path, &aside, &err), err);
    assert_null(aside);
}

/* Runs as an ordinary user: a ledger in a folder without write permission can be read, not written. */
static void use_read_only_folder(int with_file)
{
    struct ledger *ledger = NULL;
    ACT_AUTO(ledger_runs) runs = {0};

    err = (struct act_error){0};
    if (getuid() == 0 && seteuid(NOBODY) < 0)
        _exit(10);
    int rc = ledger_open(path, NULL, &ledger, &err);
    if (!with_file)
        _exit(rc == -ACT_DENIED && strstr(act_error_text(&err), path) ? 0 : 11);
    if (rc < 0 || ledger_list(ledger, &(struct ledger_query){0}, &runs, &err) < 0 || runs.n != 1)
        _exit(12);
    rc = ledger_test_add(ledger, "b", "x", "Queued", 1, &err);
    _exit(rc == -ACT_DENIED && strstr(act_error_text(&err), path) && strstr(act_error_text(&err), "writable") ? 0 : 13);
}

TEST(a_read_only_folder_can_be_read)
{
    int status = 0;

    assert_int_equal(chmod(dir, 0555), 0);
    waitpid(ledger_test_start_child(use_read_only_folder, 0), &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);

    assert_int_equal(chmod(dir, 0755), 0);
    struct ledger *ledger = open_ledger();
    assert_ok(ledger_test_add(ledger, "a", "x", "Queued", 1, &err), err);
    ledger_close(ledger);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(dir, 0555), 0);
    waitpid(ledger_test_start_child(use_read_only_folder, 1), &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(chmod(dir, 0755), 0);
}

TEST_MAIN(NULL, NULL)
