/* retry_test.c - of what class a failed attempt is, and whether another one follows it. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <stdlib.h>

#include "diagnose/diagnose.h"
#include "node/retry.h"

static struct node retry_test_node_of(int times, const char *class)
{
    struct node node = {.dir = dir, .name = "n1"};

    node.spec.nodes = 1;
    node.spec.procs_per_node = 2;
    node.spec.retry_times = times;
    if (class)
        act_strv_push(&node.spec.retry_on, class);
    return node;
}

static void retry_test_forget_all(void)
{
    assert_ok(act_remove_tree(dir, &err), err);
    assert_ok(act_mkdir_all(dir, 0700, &err), err);
}

TEST(the_class_comes_from_the_logs)
{
    static const struct {
        const char *log, *text, *reason, *class;
        bool blames_node;
    } rows[] = {
        {"user_logs/std_log_process_0.txt", "x\nWatchdog caught collective operation timeout: W\n", "rank 0 exited",
         "nccl_timeout", false},
        {"user_logs/std_log_process_0.txt", "CUDA error: an illegal ECC error\n", "rank 0 exited", "ecc", true},
        {"user_logs/std_log_process_0.txt", "ImportError: cannot import name 'x' from 'y'\n", "rank 0 exited",
         "import_error", false},
        {"user_logs/std_log_process_1.txt", "NVRM: Xid (PCI:0000:3b:00): 79, GPU\n", "rank 0 exited", "gpu_lost", true},
        {"user_logs/std_log_process_0.txt", "fine\n", "rank 0 is lost: its node 'n1' does not answer any more",
         "node_failure", true},
        {"system_logs/slurm.txt", "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT x DUE TO NODE FAILURE ***\n", "gone",
         "node_failure", true},
        {"user_logs/std_log_process_0.txt", "fine\n", "nobody knows", "", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = retry_test_node_of(0, NULL);
        const struct retry_facts facts = {.attempt = 1, .rank = 0, .reason = rows[i].reason, .node = "n1"};
        struct retry_class class;
        retry_test_forget_all();
        test_write(rows[i].log, rows[i].text);
        retry_classify(&node, &facts, &class);
        if (strcmp(class.id, rows[i].class) != 0 || class.blames_node != rows[i].blames_node)
            fail_msg("'%s' is '%s', not '%s'", rows[i].text, class.id, rows[i].class);
    }
}

TEST(the_logs_of_many_nodes_do_not_hide_what_the_scheduler_says)
{
    struct node node = retry_test_node_of(0, NULL);
    struct retry_class class;

    retry_test_forget_all();
    for (int i = 0; i < 20; i++) {
        ACT_AUTOFREE char *folders = act_sprintf("system_logs/folders_n%d.txt", i);
        ACT_AUTOFREE char *prepare = act_sprintf("system_logs/prepare_n%d.txt", i);
        test_write(folders, "download of 'data' ended\n");
        test_write(prepare, "Requirement already satisfied: numpy\n");
    }
    test_write("system_logs/slurm.txt", "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT x DUE TO NODE FAILURE ***\n");
    for (size_t i = 0; i < 2; i++) {
        const char *reason = i ? "the preparation failed" : "gone";
        retry_classify(&node, &(struct retry_facts){.rank = -1, .reason = reason, .node = "n1"}, &class);
        assert_string_equal(class.id, "node_failure");
    }
}

TEST(a_rank_on_another_machine_is_known_by_its_last_lines)
{
    struct node node = retry_test_node_of(0, NULL);
    ACT_AUTO(act_strv) lines = {0};
    struct retry_class class;

    retry_test_forget_all();
    act_strv_push(&lines, "epoch 3");
    act_strv_push(&lines, "Watchdog caught collective operation timeout: W");
    act_strv_push(&lines, "terminate called");
    retry_classify(&node, &(struct retry_facts){.rank = 1, .reason = "", .lines = &lines, .node = ""}, &class);
    assert_string_equal(class.id, "nccl_timeout");
}

TEST(an_error_of_the_network_blames_the_other_end)
{
    static const struct {
        const char *line, *node;
    } rows[] = {
        {"ncclRemoteError: remote process exited, peer n2<33>", "n2"},
        {"ncclRemoteError: remote process exited, peer n22", ""},
        {"ncclRemoteError: n1 lost a connection", ""},
        {"Watchdog caught collective operation timeout on n2", ""}, /* whoever is slow */
    };
    struct node node = retry_test_node_of(0, NULL);
    ACT_AUTO(act_strv) hosts = {0};

    act_strv_push(&hosts, "n1");
    act_strv_push(&hosts, "n2");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct retry_facts facts = {.attempt = 1, .rank = 0, .reason = "", .node = "n1", .hosts = &hosts};
        struct run_status status = {.state = RUN_FAILED};
        retry_test_forget_all();
        test_write("user_logs/std_log_process_0.txt", rows[i].line);
        assert_int_equal(retry_consider(&node, &facts, &status), 0);
        assert_string_equal(status.n_bad ? status.bad[0].node : "", rows[i].node);
    }
}

TEST(the_class_may_be_known_without_the_logs)
{
    struct node node = retry_test_node_of(1, "hang");
    const struct retry_facts facts = {
        .attempt = 1, .rank = -1, .reason = "no line for 20 min", .node = "", .class_of_elsewhere = "hang"};
    struct run_status status = {.state = RUN_FAILED, .attempt = 1};

    retry_test_forget_all();
    assert_int_equal(retry_consider(&node, &facts, &status), 2);
    assert_contains(status.retry, "(hang)");
    act_strv_release(&node.spec.retry_on);
}

TEST(whether_another_attempt_follows)
{
    static const struct {
        int times, before; /* as many tries before, each of so many seconds, with these words */
        int64_t seconds;
        const char *words, *class;
        enum retry_verdict verdict;
    } rows[] = {
        {0, 0, 0, "a", "xid", RETRY_NOT_ASKED}, {3, 0, 0, "a", "xid", RETRY_AGAIN},
        {3, 0, 0, "a", "other", RETRY_OTHER},   {3, 0, 0, "a", "", RETRY_OTHER},
        {3, 3, 99, "a", "xid", RETRY_USED_UP},  {9, 2, 1, "a", "xid", RETRY_FUTILE},
        {9, 1, 1, "a", "xid", RETRY_AGAIN},     {9, 2, 1, "b", "xid", RETRY_AGAIN},
        {9, 2, 99, "a", "xid", RETRY_AGAIN},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = retry_test_node_of(rows[i].times, "xid");
        struct retry_history history = {.n = rows[i].before};
        for (int n = 0; n < rows[i].before; n++)
            history.v[n] =
                (struct retry_try){.attempt = n + 1, .seconds = rows[i].seconds, .class = "xid", .words = "a"};
        struct retry_try failed = {.attempt = rows[i].before + 1, .seconds = 1};
        snprintf(failed.class, sizeof(failed.class), "%s", rows[i].class);
        snprintf(failed.words, sizeof(failed.words), "%s", rows[i].words);
        if (retry_decide(&node.spec, false, &history, &failed) != rows[i].verdict)
            fail_msg("row %zu", i);
        act_strv_release(&node.spec.retry_on);
    }
}

/* Slurm queues such a job again itself when it notices; the ranks notice first. */
TEST(a_failed_node_of_a_job_that_slurm_requeues_is_tried_again_without_retry)
{
    static const struct {
        bool is_requeued;
        const char *class;
        int before;
        enum retry_verdict verdict;
    } rows[] = {
        {true, "node_failure", 0, RETRY_AGAIN},
        {true, "node_failure", RUN_RETRY_MOST, RETRY_USED_UP},
        {false, "node_failure", 0, RETRY_NOT_ASKED},
        {true, "rank_lost", 0, RETRY_NOT_ASKED},
        {true, "", 0, RETRY_NOT_ASKED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = retry_test_node_of(0, NULL);
        struct retry_history history = {.n = rows[i].before};
        struct retry_try failed = {.attempt = 1, .seconds = 99};
        snprintf(failed.class, sizeof(failed.class), "%s", rows[i].class);
        if (retry_decide(&node.spec, rows[i].is_requeued, &history, &failed) != rows[i].verdict)
            fail_msg("row %zu", i);
    }
}

TEST(words_that_differ_in_numbers_are_the_same)
{
    static const char *const rows[][2] = {
        {"at 0x7f3a: pid 4711, 12:30:05", "at 0x0: pid 0, 0:0:0"},
        {"no numbers", "no numbers"},
        {"", ""},
        {"9", "0"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_strdup(rows[i][0]);
        retry_same_words(text);
        assert_string_equal(text, rows[i][1]);
    }
}

TEST(pauses_grow_to_five_minutes)
{
    static const int64_t expected[] = {10, 30, 90, 270, 300, 300};

    unsetenv("ACT_RETRY_PAUSE");
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(retry_pause_s((int)i + 1), expected[i]);
    assert_int_equal(retry_pause_s(RUN_RETRY_MOST), 300);
    setenv("ACT_RETRY_PAUSE", "0", 1);
    assert_int_equal(retry_pause_s(9), 0);
    unsetenv("ACT_RETRY_PAUSE");
}

TEST(what_was_tried_is_written_once_and_may_be_taken_back)
{
    struct node node = retry_test_node_of(3, "ecc");
    const struct retry_facts facts = {.attempt = 1, .rank = 0, .reason = "rank 0 exited", .node = "n1", .seconds = 5};
    struct run_status status = {.state = RUN_FAILED, .attempt = 1};
    int tries = 0;

    retry_test_forget_all();
    test_write("user_logs/std_log_process_0.txt", "uncorrectable ECC error 4711\n");
    assert_int_equal(retry_attempts(&node, 1), 4);
    assert_int_equal(retry_consider(&node, &facts, &status), 2);
    assert_int_equal(retry_consider(&node, &facts, &status), 2); /* as after a crash in between */
    assert_true(retry_follows(&node, 1, &tries));
    assert_int_equal(tries, 1);
    assert_int_equal(retry_attempts(&node, 2), 4);
    assert_int_equal(status.n_bad, 1);
    assert_string_equal(status.bad[0].node, "n1");
    assert_string_equal(status.bad[0].class, "ecc");
    retry_forget(&node, 7);
    assert_true(retry_follows(&node, 1, &tries));
    retry_forget(&node, 1);
    assert_false(retry_follows(&node, 1, &tries));
    assert_int_equal(retry_attempts(&node, 2), 5); /* the first one does not count */
    act_strv_release(&node.spec.retry_on);
}

TEST(a_line_that_explains_a_failure_ends_in_dots_only_if_it_was_cut)
{
    enum { FITS = sizeof(((struct retry_class *)0)->line) - 1 };

    for (int len = FITS - 2; len <= FITS + 1; len++) {
        struct node node = retry_test_node_of(1, "hang");
        const struct retry_facts facts = {.attempt = 1, .rank = 0, .reason = "", .node = ""};
        struct run_status status = {.state = RUN_FAILED, .attempt = 1, .reason = "rank 0 exited"};
        ACT_AUTOFREE char *line = act_sprintf("CUDA error: an illegal ECC error%*s", len, "");
        memset(line + strlen("CUDA error: an illegal ECC error"), 'x', (size_t)len);
        line[len] = '\0';
        ACT_AUTOFREE char *said = act_sprintf("rank 0 exited: %.*s%s", FITS, line, len > FITS ? "..." : "");
        retry_test_forget_all();
        test_write("user_logs/std_log_process_0.txt", line);
        assert_int_equal(retry_consider(&node, &facts, &status), 0);
        assert_string_equal(status.reason, said);
        act_strv_release(&node.spec.retry_on);
    }
}

/* A history that lacks tries would let a run be tried again for ever. */
TEST(a_try_with_words_that_are_not_utf8_counts)
{
    struct node node = retry_test_node_of(3, "ecc");
    struct retry_history history = {0};
    const struct retry_try good = {.attempt = 1, .class = "ecc"}, odd = {.attempt = 2, .words = "cut \xc3"};
    int tries;

    retry_test_forget_all();
    assert_ok(retry_history_add(&node, &history, &good, &err), err);
    assert_ok(retry_history_add(&node, &history, &odd, &err), err);
    assert_true(retry_follows(&node, 2, &tries));
    assert_int_equal(tries, 2);
    retry_history_read(&node, &history);
    assert_string_equal(history.v[1].words, "cut ?");
    act_strv_release(&node.spec.retry_on);
}

TEST(why_it_is_not_tried_again_is_said_plainly)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"nothing special", "no rule explains this failure; not tried again: retry.on does not list this failure"},
        {"CUDA error: an illegal ECC error", "(ecc); not tried again: retry.on does not list this failure"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = retry_test_node_of(1, "hang");
        const struct retry_facts facts = {.attempt = 1, .rank = 0, .reason = "", .node = ""};
        struct run_status status = {.state = RUN_FAILED, .attempt = 1};
        retry_test_forget_all();
        test_write("user_logs/std_log_process_0.txt", rows[i].line);
        assert_int_equal(retry_consider(&node, &facts, &status), 0);
        assert_contains(status.retry, rows[i].says);
        act_strv_release(&node.spec.retry_on);
    }
}

TEST_MAIN(make_dir, remove_dir)
