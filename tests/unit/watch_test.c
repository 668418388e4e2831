/* Watching runs, on a platform that goes away, forgets, and starts runs anew on command. usleep() is replaced: nobody
 * waits here. */
#define TEST_SETUP    watch_test_set_up
#define TEST_TEARDOWN watch_test_tear_down
#include "unit/test.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "config/config.h"
#include "fake/platform.h"
#include "flow/board/board.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/submit/parts.h"
#include "ledger/ledger.h"
#include "platform/platform.h"
#include "run/run.h"
#include "transfer/transfer.h"

enum { PAUSES_MAX = 64 };

/* What usleep() was asked for. */
static useconds_t pauses[PAUSES_MAX];
static size_t n_pauses;

static char *scratch; /* a temporary folder: ACT_HOME and the projects are below it */
static struct act_buf out;

int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
    if (n_pauses < PAUSES_MAX)
        pauses[n_pauses++] = us;
    return 0;
}

/* ---- helpers ---- */

static void set_logs(size_t n, const char *const (*logs)[2])
{
    fake.n_logs = n;
    for (size_t i = 0; i < n; i++) {
        fake.logs[i].name = logs[i][0];
        fake.logs[i].text = logs[i][1];
    }
}
#define LOGS(...)                                                                                                      \
    set_logs(sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(const char *const[2]),                             \
             (const char *const[][2]){__VA_ARGS__})

#define USER0 "user_logs/std_log_process_0.txt"
#define USER1 "user_logs/std_log_process_1.txt"

static int watch_test_collect(void *arg, const char *data, size_t len, struct act_error *e)
{
    (void)arg;
    (void)e;
    act_buf_add(&out, data, len);
    return 0;
}

static int collect_line(void *arg, int rank, const char *text, size_t len, struct act_error *e)
{
    (void)arg;
    (void)e;
    act_buf_addf(&out, "%d:%.*s;", rank, (int)len, text);
    return 0;
}

/* A run of a cluster of a project, with a cluster file that names this login. */
static struct flow_run watch_test_make_run(const char *project, const char *login)
{
    ACT_AUTOFREE char *root = act_path_join(scratch, project);
    ACT_AUTOFREE char *file = act_path_join(root, "aux_data/aml/lab.yaml");
    ACT_AUTOFREE char *yaml = act_sprintf("platform: fake\nfake:\n  login: %s\n", login);
    struct flow_run run = {
        .row = {.id = run_id_new("watched", 1700000000),
                .cluster = act_strdup("lab"),
                .platform = act_strdup("fake"),
                .experiment = act_strdup("watched"),
                .project = act_strdup(root),
                .spec = act_strdup("{}"),
                .state = act_strdup("Queued"),
                .created_unix_s = act_now_unix_s()},
        .status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1},
    };

    assert_ok(act_file_write(file, yaml, strlen(yaml), 0600, &err), err);
    return run;
}

static struct flow flow;
static struct flow_run run;

/* What goes to stderr between these two. */
static int saved_stderr;

static void watch_test_catch_stderr(void)
{
    ACT_AUTOFREE char *path = act_path_join(scratch, "stderr");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    close(fd);
}

static char *caught_stderr(void)
{
    ACT_AUTOFREE char *path = act_path_join(scratch, "stderr");
    char *text;

    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    assert_ok(act_file_read(path, 1 << 20, &text, NULL, &err), err);
    return text;
}

/* Follows the run, and returns what is said of that. */
static char *follow_watched(const struct flow_follow *what)
{
    watch_test_catch_stderr();
    int rc = flow_follow_log(&flow, &run, what, &err);
    char *said = caught_stderr();

    assert_ok(rc, err);
    return said;
}

static int watch_test_count_of(const char *text, const char *piece)
{
    int n = 0;

    for (; (text = strstr(text, piece)); text++)
        n++;
    return n;
}

/* A new ledger asks this machine for runs, once: before a test counts who is asked. */
static void make_ledger(void)
{
    struct ledger *ledger;

    flow_open_bare(NULL, &flow);
    assert_ok(flow_ledger(&flow, &ledger, &err), err);
    flow_close(&flow);
}

static int watch_test_set_up(void **state)
{
    ACT_AUTOFREE char *home = act_path_join(scratch, "home");

    (void)state;
    assert_ok(act_remove_tree(home, &err), err);
    setenv("ACT_HOME", home, 1);
    setenv("ACT_TRUSTED_PROJECTS", "*", 1); /* its login node is this machine */
    make_ledger();
    fake_reset();
    n_pauses = 0;
    flow_open_bare(NULL, &flow);
    run = watch_test_make_run("project", "me@here");
    return 0;
}

static int watch_test_tear_down(void **state)
{
    (void)state;
    flow_run_release(&run);
    flow_close(&flow);
    act_buf_release(&out);
    assert_int_equal(fake.n_close, fake.n_open);
    return 0;
}

static void end_run(int call, const char *name)
{
    (void)call;
    (void)name;
    fake.status.state = RUN_COMPLETED;
}

/* ---- the tests ---- */

TEST(wait_survives_an_outage)
{
    static const useconds_t longer[] = {500000, 1000000, 2000000, 4000000, 8000000, 10000000, 10000000};
    size_t at = 0;

    fake.status.state = RUN_COMPLETED;
    fake.fail_status = COUNT(longer);
    watch_test_catch_stderr();
    int rc = flow_wait(&flow, &run, &err);
    ACT_AUTOFREE char *said = caught_stderr();
    assert_ok(rc, err);
    assert_int_equal(run.status.state, RUN_COMPLETED);
    assert_int_equal(watch_test_count_of(said, "the controller does not answer"), 1);
    assert_int_equal(watch_test_count_of(said, "answers again"), 1);
    while (at < n_pauses && pauses[at] < longer[0])
        at++;
    assert_int_equal(n_pauses - at, COUNT(longer));
    assert_memory_equal(pauses + at, longer, sizeof(longer));
}

TEST(wait_tells_what_does_not_pass)
{
    fake.fail_status = 1;
    fake.fail_code = ACT_DENIED;
    assert_int_equal(flow_wait(&flow, &run, &err), -ACT_DENIED);
    assert_int_equal(fake.fail_status, 0);
}

static struct run_spec start_run(int code);

TEST(first_question_is_as_patient)
{
    static const useconds_t longer[] = {500000, 1000000, 2000000};
    ACT_AUTO(run_spec) spec = start_run(0);
    ACT_AUTO(flow_runs) found = {0};
    struct act_strv ids = {.v = &spec.id, .n = 1};

    fake.status.state = RUN_COMPLETED;
    fake.fail_status = COUNT(longer);
    watch_test_catch_stderr();
    int rc = flow_wait_for(&flow, &ids, &(struct flow_waiting){.timeout_s = 0}, &found, &err);
    ACT_AUTOFREE char *said = caught_stderr();
    assert_ok(rc, err);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.v[0].status.state, RUN_COMPLETED);
    assert_int_equal(watch_test_count_of(said, "the controller does not answer (this goes on"), 1);
    assert_int_equal(watch_test_count_of(said, "answers again"), 1);
    assert_int_equal(n_pauses, COUNT(longer));
    assert_memory_equal(pauses, longer, sizeof(longer));
}

TEST(first_question_has_an_end)
{
    ACT_AUTO(run_spec) spec = start_run(0);
    ACT_AUTO(flow_runs) runs = {0};
    struct flow_run found;
    struct act_strv ids = {.v = &spec.id, .n = 1};

    fake.fail_status = INT_MAX;
    watch_test_catch_stderr();
    int rc = flow_wait_for(&flow, &ids, &(struct flow_waiting){.timeout_s = 1}, &runs, &err);
    free(caught_stderr());
    assert_fails(rc, err, ACT_TIMEOUT, "the controller does not answer");

    fake.fail_code = ACT_DENIED;
    fake.n_status = 0;
    assert_int_equal(flow_wait_for(&flow, &ids, &(struct flow_waiting){.timeout_s = 0}, &runs, &err), -ACT_DENIED);
    assert_int_equal(flow_find_watched(&flow, spec.id, &found, &err), -ACT_DENIED);
    assert_int_equal(fake.n_status, 2);
}

static void finish_later(int call)
{
    if (call == 6)
        end_run(0, NULL);
}

TEST(follow_survives_an_outage)
{
    struct flow_follow what = {.tail = -1, .follow = true, .sink = {.write = watch_test_collect}};

    LOGS({USER0, "one\ntwo\n"});
    fake.fail_logs = 2;
    fake.before_logs = finish_later;
    ACT_AUTOFREE char *said = follow_watched(&what);
    assert_string_equal(out.data, "one\ntwo\n");
    assert_int_equal(watch_test_count_of(said, "the controller does not answer"), 1);
    assert_int_equal(watch_test_count_of(said, "answers again"), 1);
}

/* Every round asks a service about every log: the longer that takes, the fewer rounds there are. */
TEST(following_leaves_a_service_alone)
{
    enum {
        COST_MS = 20,
        MOVED_US = 10 * COST_MS * 1000,
        QUIET_US = 50 * COST_MS * 1000,
        MOST_US = 10000000,
        USUAL_US = 500000
    };
    struct flow_follow what = {.tail = -1, .follow = true, .sink = {.write = watch_test_collect}};

    for (int service = 0; service < 2; service++) {
        fake.status.state = run.status.state = RUN_RUNNING;
        n_pauses = 0;
        fake.n_logs_calls = 0;
        fake.row.about.answers_by_request = service;
        fake.logs_take_ms = COST_MS;
        fake.before_logs = finish_later;
        LOGS({USER0, "one\n"});
        assert_ok(flow_follow_log(&flow, &run, &what, &err), err);
        assert_true(n_pauses >= 3);
        for (size_t i = 1; i < n_pauses; i++)
            assert_true(service ? pauses[i] >= QUIET_US && pauses[i] <= MOST_US : pauses[i] <= USUAL_US);
        assert_true(!service || (pauses[0] >= MOVED_US && pauses[0] <= MOST_US));
    }
}

static void begin_log_anew(int call)
{
    if (call == 3)
        LOGS({USER0, "2\n"});
    if (call == 4)
        LOGS({USER0, ""});
    if (call == 5)
        LOGS({USER0, "2\n3\n"});
    if (call == 6)
        end_run(0, NULL);
}

TEST(log_that_begins_anew_is_followed)
{
    struct flow_follow what = {.tail = -1, .follow = true, .sink = {.write = watch_test_collect}};

    LOGS({USER0, "a long first line\n"});
    fake.before_logs = begin_log_anew;
    ACT_AUTOFREE char *said = follow_watched(&what);
    assert_string_equal(out.data, "a long first line\n2\n3\n");
    assert_string_equal(said, "log '" USER0 "' begins anew\n");
}

TEST(reading_once_does_not_wait)
{
    struct flow_follow what = {.tail = -1, .sink = {.write = watch_test_collect}};

    LOGS({USER0, "one\n"});
    fake.fail_logs = 1;
    assert_int_equal(flow_follow_log(&flow, &run, &what, &err), -ACT_TEMPORARY);
    assert_int_equal(n_pauses, 0);
}

/* Two attempts end between two looks. */
static void watch_test_begin_anew(int call)
{
    if (call == 1)
        LOGS({USER0, "1a\n1"}, {USER1, "x"});
    if (call == 2)
        LOGS({"attempts/1/status.json", "{}"}, {"attempts/1/" USER0, "1a\n1b"}, {"attempts/1/" USER1, "x\ny\n"},
             {"attempts/2/status.json", "{}"}, {"attempts/2/" USER0, "2, which is quite long\n"},
             {USER0, "3, even longer than that one\n3"});
    if (call == 3)
        end_run(0, NULL);
}

TEST(follow_goes_through_attempts)
{
    struct flow_follow what = {.tail = -1, .follow = true, .sink = {.write = watch_test_collect}};

    fake.before_logs = watch_test_begin_anew;
    ACT_AUTOFREE char *said = follow_watched(&what);
    assert_string_equal(out.data, "1a\n1b2, which is quite long\n3, even longer than that one\n3");
    assert_string_equal(said, "attempt 2 begins\nattempt 3 begins\n");
}

TEST(all_ranks_go_through_attempts)
{
    struct flow_follow what = {
        .all = true, .line = collect_line, .tail = -1, .follow = true, .sink = {.write = watch_test_collect}};

    fake.before_logs = watch_test_begin_anew;
    ACT_AUTOFREE char *said = follow_watched(&what);
    assert_string_equal(out.data, "0:1a;1:x;1:y;0:1b;0:2, which is quite long;0:3, even longer than that one;0:3;");
    assert_string_equal(said, "attempt 2 begins\nattempt 3 begins\n");
}

TEST(ranks_come_in_their_order)
{
    struct flow_follow what = {.all = true, .line = collect_line, .tail = -1, .sink = {.write = watch_test_collect}};

    LOGS({"system_logs/x.txt", "no\n"}, {USER0, "a\n"}, {USER0 ".old", "no\n"},
         {"user_logs/std_log_process_007.txt", "e\n"}, {USER1, "b\n"}, {"user_logs/std_log_process_10.txt", "d\n"},
         {"user_logs/std_log_process_2.txt", "c\n"}, {"user_logs/std_log_process_x.txt", "no\n"});
    assert_ok(flow_follow_log(&flow, &run, &what, &err), err);
    assert_string_equal(out.data, "0:a;1:b;2:c;7:e;10:d;");
}

/* While the first log is read, a new attempt moves everything away. */
static void move_away(int call, const char *name)
{
    (void)name;
    if (call == 1)
        LOGS({"attempts/1/" USER0, "old rank 0\n"}, {"attempts/1/" USER1, "old rank 1\n"}, {USER0, "new rank 0\n"},
             {USER1, "new rank 1, longer than before\n"});
}

static void assert_copy(const struct flow_logs *logs, const char *name, const char *content)
{
    ACT_AUTOFREE char *path = act_path_join(logs->folder, name);
    ACT_AUTOFREE char *text = NULL;

    assert_ok(act_file_read(path, 1 << 20, &text, NULL, &err), err);
    assert_string_equal(text, content);
}

TEST(copies_are_never_a_mixture)
{
    struct flow_logs logs;

    LOGS({USER0, "old rank 0\n"}, {USER1, "old rank 1\n"});
    fake.before_read = move_away;
    assert_ok(flow_fetch_logs(&flow, &run, &(struct flow_fetch){0}, &logs, &err), err);
    assert_int_equal(logs.n, 4);
    assert_copy(&logs, USER0, "new rank 0\n");
    assert_copy(&logs, USER1, "new rank 1, longer than before\n");
    assert_copy(&logs, "attempts/1/" USER1, "old rank 1\n");
    flow_logs_release(&logs);

    fake.n_read = 1; /* nothing moves now, and nothing is read twice */
    assert_ok(flow_fetch_logs(&flow, &run, &(struct flow_fetch){0}, &logs, &err), err);
    assert_int_equal(fake.n_read, 1);
    assert_copy(&logs, USER0, "new rank 0\n");
    flow_logs_release(&logs);
}

/* A log that another one replaces while it is fetched is fetched again from its beginning; not for ever. */
TEST(replaced_logs_begin_anew)
{
    struct flow_logs logs;

    fake.status.state = run.status.state = RUN_COMPLETED;
    LOGS({USER0, "rank 0\n"});
    fake.shrinks = 1;
    assert_ok(flow_fetch_logs(&flow, &run, &(struct flow_fetch){0}, &logs, &err), err);
    assert_copy(&logs, USER0, "rank 0\n");
    assert_int_equal(fake.n_read, 2);
    flow_logs_release(&logs);

    LOGS({USER0, "rank 0\nand more\n"});
    fake.shrinks = 100;
    assert_ok(flow_fetch_logs(&flow, &run, &(struct flow_fetch){0}, &logs, &err), err);
    assert_copy(&logs, USER0, ""); /* of one log or the other it would be a mixture */
    assert_true(fake.n_read < 10);
    flow_logs_release(&logs);
}

static void watch_test_count_bytes(void *arg, const struct transfer_progress *now)
{
    *(uint64_t *)arg = now->done_bytes;
    assert_int_equal(now->found_objects, 2);
    assert_int_equal(now->found_bytes, 9);
}

TEST(fetching_tells_how_far_it_is)
{
    uint64_t bytes = 0;
    struct flow_fetch what = {.progress = watch_test_count_bytes, .arg = &bytes, .max_bytes = 5};
    ACT_AUTO(flow_logs) logs = {0};

    LOGS({USER0, "rank 0 is long\n"}, {USER1, "two\n"});
    assert_ok(flow_fetch_logs(&flow, &run, &what, &logs, &err), err);
    assert_copy(&logs, USER0, "rank ");
    assert_in_range(bytes, 1, 9);
}

static void watch_test_add_run(const struct flow_run *what)
{
    struct ledger *ledger;

    assert_ok(flow_ledger(&flow, &ledger, &err), err);
    assert_ok(ledger_add(ledger, &what->row, &err), err);
}

TEST(one_question_for_each_place)
{
    /* two projects whose cluster is the same place, and one that is elsewhere */
    static const struct {
        const char *project, *login;
        int runs;
    } rows[] = {{"one", "me@here", 100}, {"two", "me@here", 50}, {"three", "me@there", 7}};
    struct flow_table table = {0};
    struct flow_runs runs;

    for (size_t i = 0; i < COUNT(rows); i++)
        for (int k = 0; k < rows[i].runs; k++) {
            struct flow_run added = watch_test_make_run(rows[i].project, rows[i].login);
            watch_test_add_run(&added);
            flow_run_release(&added);
        }
    assert_ok(flow_list_runs(&flow, &table, &runs, &err), err);
    assert_int_equal(runs.n, 157);
    for (size_t i = 0; i < runs.n; i++)
        assert_int_equal(runs.v[i].status.state, RUN_RUNNING);
    assert_int_equal(fake.n_open, 2);
    assert_int_equal(fake.n_status, 2);
    flow_runs_release(&runs);

    fake.fail_status = 1;
    watch_test_catch_stderr();
    int rc = flow_list_runs(&flow, &table, &runs, &err);
    ACT_AUTOFREE char *said = caught_stderr();
    assert_ok(rc, err);
    assert_int_equal(watch_test_count_of(said, "may be old"), 1);
    assert_int_equal(runs.n, 157);
    flow_runs_release(&runs);

    table.as_known = true;
    fake.n_status = 0;
    assert_ok(flow_list_runs(&flow, &table, &runs, &err), err);
    assert_int_equal(fake.n_status, 0);
    flow_runs_release(&runs);
}

/* ---- a board ---- */

static struct flow_board *new_board(void)
{
    return flow_board_new(&(struct flow_board_options){.cluster = "none", .interval_ms = 3600000});
}

/* Until every place was asked, and so often. */
static const struct flow_board_view *lock_settled(struct flow_board *board, int n_status)
{
    for (;;) {
        const struct flow_board_view *view = flow_board_lock(board);
        if (view->settled && fake.n_status >= n_status)
            return view;
        flow_board_unlock(board);
        poll(NULL, 0, 1);
    }
}

TEST(a_board_asks_each_place_once)
{
    static const struct {
        const char *project, *login;
        int runs;
    } rows[] = {{"one", "me@here", 30}, {"two", "me@here", 5}, {"three", "me@there", 7}};

    for (size_t i = 0; i < COUNT(rows); i++)
        for (int k = 0; k < rows[i].runs; k++) {
            struct flow_run added = watch_test_make_run(rows[i].project, rows[i].login);
            watch_test_add_run(&added);
            flow_run_release(&added);
        }
    struct flow_board *board = new_board();
    const struct flow_board_view *view = lock_settled(board, 2);
    assert_int_equal(view->n, 42);
    assert_int_equal(view->n_clusters, 2);
    assert_int_equal(view->clusters[0]->running + view->clusters[1]->running, 42);
    assert_true(view->clusters[0]->running == 7 || view->clusters[0]->running == 35);
    for (size_t i = 0; i < view->n; i++)
        assert_int_equal(view->runs[i]->run.status.state, RUN_RUNNING);
    flow_board_unlock(board);
    assert_true(flow_board_free(board));
    assert_int_equal(fake.n_status, 2);
    assert_int_equal(fake.n_open, 2);
}

TEST(a_place_that_fails_is_asked_again)
{
    watch_test_add_run(&run);
    fake.fail_status = 1;
    struct flow_board *board = new_board();
    const struct flow_board_view *view = lock_settled(board, 1);
    assert_non_null(view->clusters[0]->error);
    assert_int_equal(view->runs[0]->run.status.state, RUN_QUEUED);
    flow_board_unlock(board);
    for (bool fails = true; fails; flow_board_unlock(board)) {
        flow_board_hurry(board);
        poll(NULL, 0, 1);
        view = lock_settled(board, 2);
        fails = view->clusters[0]->error;
    }
    view = flow_board_lock(board);
    assert_int_equal(view->runs[0]->run.status.state, RUN_RUNNING);
    flow_board_unlock(board);
    assert_true(flow_board_free(board));
}

/* Waits until rank 0 said this, asking again and again. */
static void until_line(struct flow_board *board, const char *line, double loss)
{
    bool found = false;

    while (!found) {
        flow_board_hurry(board);
        poll(NULL, 0, 1);
        const struct flow_board_view *view = lock_settled(board, 1);
        const struct flow_live *live = view->runs[0]->live;
        found = live && act_streq(live->line, line);
        if (found && !isnan(loss))
            assert_true(live->n_numbers == 1 && strcmp(live->numbers[0].name, "loss") == 0 &&
                        fabs(live->numbers[0].last - loss) < 1e-9);
        flow_board_unlock(board);
    }
}

TEST(a_board_reads_what_is_new)
{
    watch_test_add_run(&run);
    LOGS({USER0, "step 1 loss 2.5\nstep 2 loss 2.25\nact: metrics: node n1, cpu"});
    struct flow_board *board = new_board();
    until_line(board, "step 2 loss 2.25", 2.25);
    assert_true(flow_board_free(board));

    LOGS({USER0, "step 1 loss 2.5\nstep 2 loss 2.25\nstep 3 loss 2."}); /* the end is still to come */
    board = new_board();
    until_line(board, "step 3 loss 2.", 2.25);
    assert_true(flow_board_free(board));

    LOGS({USER0, ""});
    board = new_board();
    const struct flow_board_view *view = lock_settled(board, 1);
    assert_true(!view->runs[0]->live || !view->runs[0]->live->line);
    flow_board_unlock(board);
    flow_board_abort(board, "no such run");
    view = flow_board_lock(board);
    assert_contains(view->said, "cannot abort");
    flow_board_unlock(board);
    assert_true(flow_board_free(board));
}

/* A root that was given on the command line, or a cluster file that has changed. */
TEST(runs_are_where_they_were_submitted)
{
    struct flow_table table = {0};
    struct flow_runs runs;

    run.row.place = act_strdup("{\"config\": {\"fake\": {\"login\": null, \"root\": \"/elsewhere\"}}}");
    watch_test_add_run(&run);
    assert_ok(flow_list_runs(&flow, &table, &runs, &err), err);
    assert_string_equal(fake.root, "/elsewhere");
    assert_int_equal(runs.v[0].status.state, RUN_RUNNING);
    flow_runs_release(&runs);

    flow_close(&flow);
    memset(fake.root, 0, sizeof(fake.root));
    ACT_AUTOFREE char *file = act_path_join(run.row.project, "aux_data/aml/lab.yaml");
    assert_int_equal(unlink(file), 0);
    assert_ok(flow_list_runs(&flow, &table, &runs, &err), err);
    assert_string_equal(fake.root, "/elsewhere");
    flow_runs_release(&runs);
}

/* Hands a run over, with this outcome. */
static struct run_spec start_run(int code)
{
    struct run_spec spec = {.experiment = act_strdup("watched"),
                            .cluster = act_strdup("lab"),
                            .platform = act_strdup("fake"),
                            .project_root = act_strdup(run.row.project),
                            .nodes = 1,
                            .procs_per_node = 1,
                            .created_unix_s = act_now_unix_s()};
    struct platform *platform;

    spec.id = run_id_new("watched", spec.created_unix_s);
    act_strv_push(&spec.argv, "true");
    assert_ok(flow_platform_of(&flow, &run.row, &platform, &err), err);
    fake.fail_submit = code;
    assert_int_equal(flow_start_run(&flow, platform, &spec, NULL, &err), -code);
    if (code)
        assert_contains(act_error_text(&err), "no answer");
    return spec;
}

/* What the ledger says of a run that was handed over with this outcome. */
static char *state_after(int code)
{
    ACT_AUTO(run_spec) spec = start_run(code);
    struct flow_table table = {.as_known = true};
    ACT_AUTO(flow_runs) runs = {0};

    assert_ok(flow_list_runs(&flow, &table, &runs, &err), err);
    char *state = NULL;
    for (size_t i = 0; i < runs.n; i++)
        if (strcmp(runs.v[i].row.id, spec.id) == 0)
            state = act_strdup(run_state_name(runs.v[i].status.state));
    return state;
}

TEST(unclear_submissions_stay_open)
{
    static const struct {
        int code;
        const char *state;
    } rows[] = {{0, "Queued"},
                {ACT_TEMPORARY, "Queued"},
                {ACT_TIMEOUT, "Queued"},
                {ACT_FAIL, "Failed"},
                {ACT_NO_CAPACITY, "Failed"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *found = state_after(rows[i].code);
        assert_string_equal(found, rows[i].state);
    }
}

int main(void)
{
    char folder[] = "/tmp/act-watch-XXXXXX";

    scratch = mkdtemp(folder);
    if (!scratch)
        return 1;
    fake_reset();
    platform_begin();
    int failed = tests_run(NULL, NULL);
    return act_remove_tree(scratch, &err) < 0 ? 1 : failed;
}
