/* hang_test.c - when a run hangs, and what is said of where its ranks wait. */
#include "unit/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "node/gpu.h"
#include "node/hang.h"
#include "node/processes.h"
#include "node/pulse.h"
#include "node/stacks.h"

enum { T = 60 * 1000, NOW = 1000 * 1000, WORLD = 4 };

/* Of two nodes with two ranks each. */
static const struct run_spec spec = {.hang_s = T / 1000, .nodes = 2, .procs_per_node = 2};

/* All run, are silent and idle for long enough, and have just reported. */
static void make_hanging(struct hang_rank ranks[WORLD])
{
    for (int i = 0; i < WORLD; i++)
        ranks[i] = (struct hang_rank){
            .started = true, .heard = true, .heard_ms = NOW - 1000, .silent_ms = T + i % 3, .idle_ms = T};
}

TEST(test_all_silent_and_idle)
{
    struct hang_rank ranks[WORLD];

    make_hanging(ranks);
    assert_int_equal(hang_judge(&spec, ranks, NOW, 0), 2);
    ranks[1].silent_ms = 10 * T;
    assert_int_equal(hang_judge(&spec, ranks, NOW, 0), 1);
}

/* Each row is one difference from a run that hangs. */
TEST(test_one_sign_of_life)
{
    static const struct {
        const char *what;
        int rank;
        struct hang_rank as;
        int64_t last_end_ms;
        bool hangs, hangs_any;
    } rows[] = {
        {"has written", 3, {true, false, true, NOW, T - 1, T, false}, 0, false, false},
        {"has computed", 3, {true, false, true, NOW, T, T - 1, false}, 0, false, true},
        {"prepares its node", 3, {.started = false}, 0, false, false},
        {"has ended long ago", 3, {true, true, true, 1, 0, 0, false}, NOW - T, true, true},
        {"has just ended", 3, {true, true, true, NOW, 0, 0, false}, NOW - T + 1, false, false},
        {"reports nothing for long", 3, {true, false, true, NOW - T, 0, 0, false}, 0, true, true},
        {"has never reported", 3, {true, false, false, 0, 0, 0, false}, 0, true, true},
        {"reported not long ago", 3, {true, false, true, NOW - T + 1, 0, 0, false}, 0, false, false},
        {"its GPUs work", 2, {true, false, true, NOW, T, 0, true}, 0, false, true},
        {"its GPUs are idle", 2, {true, false, true, NOW, T, T, true}, 0, true, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec any = spec;
        struct hang_rank ranks[WORLD];
        any.hang_any_gpus = true;
        make_hanging(ranks);
        ranks[rows[i].rank] = rows[i].as;
        if ((hang_judge(&spec, ranks, NOW, rows[i].last_end_ms) >= 0) != rows[i].hangs ||
            (hang_judge(&any, ranks, NOW, rows[i].last_end_ms) >= 0) != rows[i].hangs_any)
            fail_msg("%s", rows[i].what);
    }
}

/* Where GPUs are, processors do not count: a rank that waits for a GPU keeps one busy. */
TEST(test_gpus_count_for_their_node)
{
    struct hang_rank ranks[WORLD];

    make_hanging(ranks);
    ranks[0].by_gpus = true;
    ranks[1].idle_ms = 0;
    assert_true(hang_judge(&spec, ranks, NOW, 0) >= 0);
    ranks[3].idle_ms = 0; /* the other node has none */
    assert_int_equal(hang_judge(&spec, ranks, NOW, 0), -1);
}

TEST(test_nobody_is_left)
{
    struct hang_rank ranks[WORLD];

    make_hanging(ranks);
    for (int i = 0; i < WORLD; i++)
        ranks[i].ended = true;
    assert_int_equal(hang_judge(&spec, ranks, NOW, 1), -1);
}

/* What was stopped in between does not age. */
TEST(test_time_in_steps)
{
    struct hang_clock clock = {0};

    assert_int_equal(hang_clock_step(&clock, 5000, 200), 0);
    assert_int_equal(hang_clock_step(&clock, 5100, 200), 100);
    assert_int_equal(hang_clock_step(&clock, 9999999, 200), 200);
    assert_int_equal(hang_clock_step(&clock, 10, 200), 0);
    assert_int_equal(hang_clock_step(&clock, 20, 200), 10);
    assert_int_equal(clock.counted_ms, 310);
    assert_int_equal(hang_step_ms(&(struct run_spec){.hang_s = 1200}), 10000);
    assert_int_equal(hang_step_ms(&(struct run_spec){.hang_s = 4}), 500);
}

TEST(test_what_counts_as_computing)
{
    assert_false(pulse_computed(0, 10000, 100));
    assert_false(pulse_computed(50, 10000, 100));
    assert_true(pulse_computed(51, 10000, 100));
    assert_true(pulse_computed(1 << 20, 10000, 100));
}

TEST(test_use_of_gpus)
{
    static const struct {
        const char *gpus, *visible;
        enum gpu_use use;
    } rows[] = {
        {NULL, NULL, GPU_UNKNOWN},
        {"null", NULL, GPU_UNKNOWN},
        {"[]", NULL, GPU_UNKNOWN},
        {"[{\"index\": 0, \"busy\": 0}]", NULL, GPU_IDLE},
        {"[{\"index\": 0, \"busy\": 0}, {\"index\": 1, \"busy\": 0.01}]", NULL, GPU_BUSY},
        {"[{\"index\": 0, \"busy\": 0}, {\"index\": 1, \"busy\": 1}]", "0", GPU_IDLE},
        {"[{\"index\": 0, \"busy\": 0}, {\"index\": 11, \"busy\": 1}]", "0,1", GPU_IDLE},
        {"[{\"index\": 0, \"busy\": 0}, {\"index\": 11, \"busy\": 1}]", "0,11", GPU_BUSY},
        {"[{\"index\": 0, \"busy\": 1}]", "7", GPU_UNKNOWN},
        {"[{\"index\": 0, \"busy\": 1}]", "GPU-8f2a", GPU_BUSY},
        {"[{\"index\": 0, \"busy\": 1}]", "", GPU_BUSY},
        {"[{\"index\": 0, \"busy\": null}]", NULL, GPU_UNKNOWN},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *gpus = rows[i].gpus ? json_loads(rows[i].gpus, JSON_DECODE_ANY, NULL) : NULL;
        if (gpu_use_of(gpus, rows[i].visible) != rows[i].use)
            fail_msg("row %zu", i);
        json_decref(gpus);
    }
}

TEST(test_place_in_python)
{
    static const char dump[] = "Process 4711: python3 train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
                               "Thread 4720 (idle): \"Thread-1\"\n    run (worker.py:3)\n"
                               "Thread 4711 (idle): \"MainThread\"\n    wait (threading.py:320)\n"
                               "    main (train.py:12)\n    <module> (train.py:20)\n";
    char place[64];

    assert_true(stacks_python_place(dump, place, sizeof(place)));
    assert_string_equal(place, "wait (threading.py:320), called by main (train.py:12)");
    assert_true(stacks_python_place("Thread 1 (idle): \"MainThread\"\n    f (a.py:1)\nThread 2\n", place, 9));
    assert_string_equal(place, "f (a.py:");
    assert_true(stacks_python_place("\"MainThread\"\n    f (a.py:1)", place, sizeof(place)));
    assert_string_equal(place, "f (a.py:1)");
    assert_false(stacks_python_place("\"MainThread\"", place, sizeof(place)));
    assert_false(stacks_python_place("\"MainThread\"\n", place, sizeof(place)));
    assert_false(stacks_python_place("Error: Permission Denied\n", place, sizeof(place)));
    assert_false(stacks_python_place("", place, sizeof(place)));
}

/* What this process has forked is no command; what it has executed is one. */
TEST(test_commands_of_an_agent)
{
    struct processes list;
    int n = 0, status;
    pid_t own = fork();

    if (own == 0) {
        pause();
        _exit(0);
    }
    pid_t command = fork();
    if (command == 0) {
        execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    for (bool there = false; !there;) { /* the fork becomes the command */
        processes_list(&list);
        processes_mark_commands(&list, getpid());
        for (size_t i = 0; i < list.n; i++)
            there = there || (list.v[i].pid == command && list.v[i].ours);
        if (!there)
            processes_release(&list);
    }
    for (size_t i = 0; i < list.n; i++)
        n += list.v[i].ours;
    assert_int_equal(n, 1);
    processes_release(&list);
    kill(own, SIGKILL);
    kill(command, SIGKILL);
    waitpid(own, &status, 0);
    waitpid(command, &status, 0);
}

TEST_MAIN(NULL, NULL)
