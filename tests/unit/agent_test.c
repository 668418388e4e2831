/* agent_test.c - what the agent reads out of other programs' words, and how it puts earlier attempts away. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/env.h"
#include "node/job.h"
#include "node/launcher.h"
#include "node/record.h"
#include "node/supervisor.h"

static bool agent_test_is_there(const char *name)
{
    ACT_AUTOFREE char *path = test_path(name);

    return access(path, F_OK) == 0;
}

/* ---- Slurm ---- */

TEST(test_job_end)
{
    static const struct {
        const char *text;
        int attempt;
        enum job_end end;
    } rows[] = {
        {"JobId=3 JobName=x\n   JobState=COMPLETING Reason=None Dependency=(null)\n"
         "   Requeue=1 Restarts=0 BatchFlag=1\n",
         1, JOB_CANCELLED},
        {"JobId=1 JobName=x\n   JobState=COMPLETING Reason=TimeLimit Dependency=(null)\n   Requeue=1 Restarts=0\n", 1,
         JOB_TIME_LIMIT},
        {"   JobState=TIMEOUT Reason=None\n   Requeue=1 Restarts=2\n", 3, JOB_TIME_LIMIT},
        {"   JobState=COMPLETING Reason=None\n   Requeue=1 Restarts=1 BatchFlag=1\n", 1, JOB_REQUEUED},
        {"   JobState=COMPLETING Reason=None\n   Requeue=1 Restarts=1 BatchFlag=1\n", 2, JOB_CANCELLED},
        {"   JobState=COMPLETING Reason=TimeLimit\n   Requeue=1 Restarts=1 BatchFlag=1\n", 2, JOB_TIME_LIMIT},
        {"   JobState=PREEMPTED Reason=None\n   Requeue=0 Restarts=0\n", 1, JOB_PREEMPTED},
        {"JobId=1 JobName=Reason=TimeLimit\n", 1, JOB_CANCELLED},
        {"", 1, JOB_CANCELLED},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(job_parse_end(rows[i].text, rows[i].attempt), rows[i].end);
}

TEST(test_nodes_that_are_down)
{
    static const char sinfo[] =
        "n1 completing\nn2 down\nn2 down\nn3 idle*\nn4 mixed\nn5 down*\nn6 drained\nn7 failing\n";
    ACT_AUTO(act_strv) down = {0};
    char text[160];

    job_parse_down(sinfo, &down);
    ACT_AUTOFREE char *found = act_sprintf("%s %s %s %s", down.v[0], down.v[1], down.v[2], down.v[3]);
    assert_int_equal(down.n, 4);
    assert_string_equal(found, "n2 n3 n5 n7");
    job_say_failed(&down, text, sizeof(text));
    assert_string_equal(text, "node 'n2' and 3 more of it failed (NODE_FAIL)");
    act_strv_release(&down);
    job_say_failed(&down, text, sizeof(text));
    assert_string_equal(text, "a node of it failed (NODE_FAIL)");
    job_parse_down("", &down);
    job_parse_down("n1", &down);
    assert_int_equal(down.n, 0);
}

TEST(test_nodes_that_srun_lost)
{
    ACT_AUTO(act_strv) lists = {0};

    job_parse_failed("srun: error: Node failure on n2\nsrun: x\nsrun: error: Node failure on n[4-5]\n"
                     "srun: error: Node failure on n2",
                     &lists);
    assert_int_equal(lists.n, 2);
    assert_string_equal(lists.v[0], "n2");
    assert_string_equal(lists.v[1], "n[4-5]");
}

/* A program of the test plays squeue: it lists jobs, or steps where it is asked for these, or it fails. */
TEST(test_jobs_that_are_gone)
{
    static const struct {
        const char *job;
        bool gone;
    } rows[] = {{"7", false}, {"8", true}, {"9_1", false}, {"9_2", true}, {"7.0", false}, {"7.1", true}, {"70", true}};
    ACT_AUTOFREE char *old = act_strdup(getenv("PATH")), *path = act_sprintf("%s/slurm:%s", dir, old);
    ACT_AUTOFREE char *program = test_path("slurm/squeue");

    test_write("slurm/squeue", "#!/bin/sh\ncase \"$*\" in *--steps*) printf '7.0\\n7.batch\\n' ;; "
                               "*) printf '7\\n9_1\\n' ;; esac\n");
    assert_int_equal(chmod(program, 0755), 0);
    setenv("PATH", path, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(job_is_gone(rows[i].job), rows[i].gone);
    test_write("slurm/squeue", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(program, 0755), 0);
    assert_false(job_is_gone("8"));
    setenv("PATH", old, 1);
}

TEST(test_job_end_in_words)
{
    static const struct {
        enum job_end end;
        bool preempted;
        const char *text;
    } rows[] = {
        {JOB_TIME_LIMIT, false, "time limit reached"},
        {JOB_PREEMPTED, true, "preempted"},
        {JOB_REQUEUED, true, "preempted"},
        {JOB_REQUEUED, false, "requeued by Slurm or an administrator"},
        {JOB_CANCELLED, false, "canceled by Slurm or an administrator"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(job_end_text(&(struct job){.end = rows[i].end, .preempted = rows[i].preempted}),
                            rows[i].text);
    assert_null(job_end_text(&(struct job){.end = JOB_GOES_ON}));
}

TEST(test_kill_wait)
{
    assert_int_equal(job_parse_kill_wait("KillOnBadExit           = 0\nKillWait                = 30 sec\n"), 30);
    assert_int_equal(job_parse_kill_wait("KillWait = 5 sec"), 5);
    assert_int_equal(job_parse_kill_wait("KillWait"), -1);
    assert_int_equal(job_parse_kill_wait("KillWait = soon"), -1);
    assert_int_equal(job_parse_kill_wait("KillWait = 9223372036854775807 sec"), -1);
    assert_int_equal(job_parse_kill_wait(""), -1);
}

/* ---- the environment of ranks ---- */

TEST(test_place)
{
    struct node node = {.spec = {.nodes = 2, .procs_per_node = 2}};
    struct rank_place place;

    setenv("SLURM_PROCID", "1", 1); /* of mpirun's daemon */
    setenv("SLURM_LOCALID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    assert_ok(env_find_place(&node, &place, &err), err);
    assert_int_equal(place.rank, 3);
    assert_int_equal(place.local_rank, 1);
    assert_int_equal(place.node_rank, 1);

    node.spec.launcher = (char[]){"srun"};
    assert_fails(env_find_place(&node, &place, &err), err, ACT_FAIL, "the run has 4 processes, and 2 were started");
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "2", 1);
    assert_ok(env_find_place(&node, &place, &err), err);
    assert_int_equal(place.rank, 2);
    assert_int_equal(place.local_rank, 0);
    assert_int_equal(place.local_size, 2);
    assert_int_equal(place.world_size, 4);
    setenv("SLURM_PROCID", "4", 1);
    assert_int_equal(env_find_place(&node, &place, &err), -ACT_FAIL);

    node.spec = (struct run_spec){.nodes = 1, .procs_per_node = 1};
    unsetenv("OMPI_COMM_WORLD_RANK");
    assert_ok(env_find_place(&node, &place, &err), err); /* SLURM_PROCID of the batch step says nothing */
    assert_int_equal(place.rank, 0);
}

/* What logs in for the submitter is kept for ACT itself; what the run has of its own stays, and so does all that did
 * not come from the submitter's shell. */
TEST(test_credentials)
{
    struct run_env own = {.name = (char[]){"AZURE_CLIENT_SECRET"}, .value = (char[]){"of the run"}};
    struct node node = {.dir = (char[]){"/run"},
                        .code = (char[]){"/run/code"},
                        .spec = {.id = (char[]){"r"}, .nodes = 1, .procs_per_node = 1, .env = &own, .n_env = 1}};
    struct rank_place place = {.world_size = 1, .local_size = 1};

    setenv("AZURE_CLIENT_SECRET", "of the submitter", 1);
    setenv("AZURE_STORAGE_KEY", "k", 1);
    env_set(&node, &place);
    assert_string_equal(getenv("AZURE_STORAGE_KEY"), "k");
    assert_null(env_credentials());
    setenv("AZURE_CLIENT_SECRET", "of the submitter", 1);
    node.spec.is_here = true;
    env_set(&node, &place);
    assert_null(getenv("AZURE_STORAGE_KEY"));
    assert_string_equal(getenv("AZURE_CLIENT_SECRET"), "of the run");
    bool secret_first = act_starts_with(env_credentials()[0], "AZURE_CLIENT");
    assert_string_equal(env_credentials()[secret_first ? 0 : 1], "AZURE_CLIENT_SECRET=of the submitter");
    assert_string_equal(env_credentials()[secret_first ? 1 : 0], "AZURE_STORAGE_KEY=k");
    assert_null(env_credentials()[2]);
}

TEST(test_launcher_name)
{
    struct node node = {.spec = {.nodes = 1, .procs_per_node = 1}};

    assert_string_equal(launcher_name(&node), "rank");
    node.spec.launcher = (char[]){"srun"};
    assert_string_equal(launcher_name(&node), "srun");
    node.spec.launcher = (char[]){"mpirun"};
    assert_string_equal(launcher_name(&node), "rank");
    node.spec.nodes = 2;
    assert_string_equal(launcher_name(&node), "mpirun");
}

/* ---- signals ---- */

TEST(test_masks)
{
    assert_true(child_mask_has("\t0000000000000200\n", SIGUSR1)); /* bit 9 is signal 10 */
    assert_false(child_mask_has("\t0000000000000200\n", SIGUSR2));
    assert_false(child_mask_has("\t0000000000000000\n", SIGUSR1));
    assert_true(child_mask_has("\t8000000000000001\n", 64));
    assert_true(child_mask_has("\t8000000000000001\n", 1));
    assert_false(child_mask_has("\tffffffffffffffff\n", 0));
    assert_false(child_mask_has("\tffffffffffffffff\n", 65));
}

/* Only those that handle a signal get it. The one that does starts no program: its copy would handle it, too, until
 * that program is there. */
TEST(test_signal_catchers)
{
    static const char *const scripts[] = {"trap 'exit 3' USR1; echo >&3; while :; do :; done",
                                          "echo >&3; exec sleep 1000"};
    pid_t pids[COUNT(scripts)];
    int ends[2], status;
    char byte;

    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < COUNT(scripts); i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            dup2(ends[1], 3);
            execl("/bin/sh", "sh", "-c", scripts[i], NULL);
            _exit(1);
        }
        assert_int_equal(read(ends[0], &byte, 1), 1);
    }
    assert_int_equal(child_signal_catchers(SIGUSR1), 1);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_int_equal(child_exit_status(status), 3);
    assert_int_equal(waitpid(pids[1], &status, WNOHANG), 0);
    kill(pids[1], SIGKILL);
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    close(ends[0]);
    close(ends[1]);
}

/* Two processes, of which one leaves the other's group. *out_fd: ends when neither is left. */
static pid_t start_two(const char *id, int *out_fd)
{
    static const char script[] =
        "trap '' TERM; (setsid sh -c 'echo >&3; exec sleep 1000' &) ; echo >&3; exec sleep 1000";
    int ends[2];
    char byte;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 3);
        setenv("ACT_RUN_ID", id, 1);
        execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(1);
    }
    close(ends[1]);
    for (int lines = 0; lines < 2; lines++)
        assert_int_equal(read(ends[0], &byte, 1), 1);
    *out_fd = ends[0];
    return pid;
}

static void assert_swept(pid_t pid, int fd)
{
    char byte;
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(child_exit_status(status), 128 + SIGKILL);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

/* Whatever belongs to the run ends, whatever it did; others stay. One that takes its time to end is counted again. */
TEST(test_sweep)
{
    static const char *const ids[] = {"exp_1700000000_0123abcd", "exp_1700000000_0123abce"};
    int fds[COUNT(ids)], status;
    pid_t pids[COUNT(ids)];

    for (size_t i = 0; i < COUNT(ids); i++)
        pids[i] = start_two(ids[i], &fds[i]);
    assert_true(sweep_processes(NODE_ENV_RUN, ids[0]) >= 2);
    assert_swept(pids[0], fds[0]);
    assert_int_equal(waitpid(pids[1], &status, WNOHANG), 0);
    assert_true(sweep_processes(NODE_ENV_RUN, ids[1]) >= 2);
    assert_swept(pids[1], fds[1]);
    assert_int_equal(sweep_processes(NODE_ENV_RUN, ids[1]), 0);
}

/* ---- records ---- */

static struct act_strv tail_of(const char *text, size_t len)
{
    ACT_AUTOFREE char *path = test_path("log");
    struct act_strv lines = {0};

    assert_ok(act_file_write(path, text, len, 0600, &err), err);
    record_tail(path, &lines);
    return lines;
}

TEST(test_tail)
{
    static const struct {
        const char *text;
        size_t n;
        const char *first, *last;
    } rows[] = {
        {"one\n", 1, "one", "one"},
        {"one\ntwo", 2, "one", "two"},
        {"one\n\nthree\r\n", 3, "one", "three"},
        {"bad \xff\xc3 utf\n", 1, "bad ?? utf", "bad ?? utf"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n", 1, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", NULL},
        {"\x1b[31mred\tx\n", 1, "?[31mred x", NULL},
        {"cut \xe2\x82", 1, "cut ??", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv lines = tail_of(rows[i].text, strlen(rows[i].text));
        assert_int_equal(lines.n, rows[i].n);
        assert_string_equal(lines.v[0], rows[i].first);
        if (rows[i].last)
            assert_string_equal(lines.v[lines.n - 1], rows[i].last);
        act_strv_release(&lines);
    }
    struct act_strv none = tail_of("", 0), nul = tail_of("a\0b\n", 4);
    assert_int_equal(none.n, 0);
    assert_string_equal(nul.v[0], "a?b");
    act_strv_release(&nul);
}

TEST(test_tail_is_bounded)
{
    ACT_AUTO(act_buf) text = {0};

    for (int i = 0; i < 1000; i++)
        act_buf_addf(&text, "line %d\n", i);
    struct act_strv lines = tail_of(text.data, text.len);
    assert_int_equal(lines.n, RECORD_LINES);
    assert_string_equal(lines.v[0], "line 980");
    assert_string_equal(lines.v[lines.n - 1], "line 999");
    act_strv_release(&lines);

    text.len = 0; /* 10 lines of 3000 bytes: two are whole */
    for (int i = 0; i < 10; i++)
        act_buf_addf(&text, "%d%02998d\n", i, 0);
    lines = tail_of(text.data, text.len);
    assert_int_equal(lines.n, 2);
    assert_int_equal(lines.v[0][0], '8');
    act_strv_release(&lines);

    text.len = 0; /* a line without end: what fits */
    act_buf_addf(&text, "%020000d", 0);
    lines = tail_of(text.data, text.len);
    assert_int_equal(lines.n, 1);
    assert_int_equal(strlen(lines.v[0]), RECORD_LINES_BYTES);
    act_strv_release(&lines);
}

TEST(test_record)
{
    struct node_record r = {.rank = 3,
                            .node = "n2",
                            .pid = 42,
                            .started_unix_ns = 1700000000123456789,
                            .ended_unix_ns = 1700000001123456789,
                            .exit_status = 139,
                            .signal = 11,
                            .kept = true,
                            .reason = "not \xff UTF-8"};
    struct node_record back;
    char text[200];

    act_strv_push(&r.lines, "last");
    CODEC_AUTOJSON json_t *json = record_to_json(&r);
    assert_ok(record_from_json(json, &back, &err), err);
    assert_true(back.started_unix_ns == r.started_unix_ns && back.ended_unix_ns == r.ended_unix_ns);
    assert_true(back.kept && !back.stopped && record_failed(&back) && !record_succeeded(&back));
    assert_string_equal(back.reason, "not ? UTF-8");
    assert_string_equal(back.lines.v[0], "last");
    record_describe(&back, text, sizeof(text));
    assert_string_equal(text, "rank 3: not ? UTF-8");
    back.reason[0] = '\0';
    record_describe(&back, text, sizeof(text));
    assert_string_equal(text, "rank 3 was killed by signal 11 (Segmentation fault)");
    record_release(&r);
    record_release(&back);

    CODEC_AUTOJSON json_t *strange =
        json_pack("{s:s, s:i, s:s, s:[i]}", "rank", "x", "exit_status", 7, "node", "n", "lines", 1);
    assert_fails(record_from_json(strange, &back, &err), err, ACT_FAIL, "'rank' must be a whole number");
    json_object_set_new(strange, "rank", json_integer(INT64_C(1) << 32));
    assert_fails(record_from_json(strange, &back, &err), err, ACT_FAIL, "'rank' must be a whole number from 0 to 2147");
    json_object_set_new(strange, "rank", json_integer(1));
    assert_fails(record_from_json(strange, &back, &err), err, ACT_FAIL, "'lines' must be a list of texts");
    assert_int_equal(back.lines.n, 0);
    record_release(&back);
}

/* ---- attempts ---- */

static struct supervisor make_attempt(int attempt)
{
    static char id[] = "exp_1700000000_0123abcd";
    struct supervisor s = {.first_failed = -1, .status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = attempt}};

    s.node.dir = dir;
    s.node.spec = (struct run_spec){.id = id, .nodes = 1, .procs_per_node = 1};
    s.status_path = test_path(RUN_FILE_STATUS);
    return s;
}

/* What an attempt left is moved, Slurm's open output stays, code and claim too; doing it again changes nothing. */
TEST(test_attempts)
{
    struct supervisor first = make_attempt(1), second = make_attempt(2);

    first.status.state = RUN_RUNNING;
    attempt_save_status(&first);
    test_write("user_logs/std_log_process_0.txt", "first\n");
    test_write("system_logs/slurm.txt", "both\n");
    test_write("system_logs/failure.json", "{}\n");
    test_write("metrics/n1.jsonl", "{}\n");
    test_write("code/checkpoint", "1\n");
    for (int i = 0; i < 2; i++) {
        assert_ok(attempt_begin(&second, &err), err);
        assert_true(agent_test_is_there("attempts/1/user_logs/std_log_process_0.txt"));
        assert_true(agent_test_is_there("attempts/1/system_logs/failure.json"));
        assert_true(agent_test_is_there("attempts/1/metrics/n1.jsonl"));
        assert_true(agent_test_is_there("system_logs/slurm.txt") && agent_test_is_there("code/checkpoint") &&
                    agent_test_is_there("user_logs"));
        assert_false(agent_test_is_there("attempts/1/system_logs/slurm.txt"));
        assert_false(agent_test_is_there("user_logs/std_log_process_0.txt") ||
                     agent_test_is_there("system_logs/failure.json"));
        assert_true(agent_test_is_there(RUN_FILE_STATUS)); /* there always is one */
    }
    ACT_AUTOFREE char *old = test_read("attempts/1/status.json");
    assert_non_null(strstr(old, "\"attempt\":1"));
    attempt_save_status(&second);
    test_write("user_logs/std_log_process_0.txt", "second\n");
    assert_ok(attempt_begin(&second, &err), err); /* of this attempt: nothing is moved */
    assert_true(agent_test_is_there("user_logs/std_log_process_0.txt"));
    assert_true(agent_test_is_there("reserve"));
    attempt_drop_reserve(&second);
    assert_false(agent_test_is_there("reserve"));
    free(first.status_path);
    free(second.status_path);
}

/* Slurm's count decides, except when its controller has lost count. */
TEST(test_which_attempt)
{
    static const struct {
        struct run_status last;
        int starts;
        bool goes_on;
        int attempt;
    } rows[] = {
        {{.state = RUN_QUEUED, .attempt = 1}, 1, true, 1},
        {{.state = RUN_RUNNING, .attempt = 1, .started_unix_s = 1}, 2, true, 2}, /* its node failed */
        {{.state = RUN_QUEUED, .attempt = 1, .started_unix_s = 1}, 2, true, 2},  /* preempted */
        {{.state = RUN_QUEUED, .attempt = 2, .started_unix_s = 1}, 2, true, 3},
        {{.state = RUN_COMPLETED, .attempt = 1, .started_unix_s = 1}, 2, true, 2}, /* an administrator's wish */
        {{.state = RUN_COMPLETED, .attempt = 1, .started_unix_s = 1}, 1, false, 1},
        {{.state = RUN_FAILED, .attempt = 2, .started_unix_s = 1, .exit_status = 7}, 1, false, 2},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct supervisor s = make_attempt(1);
        s.options.where = IN_SLURM;
        s.job.starts = rows[i].starts;
        assert_ok(run_status_write(s.status_path, &rows[i].last, &err), err);
        assert_int_equal(attempt_find(&s), rows[i].goes_on);
        assert_int_equal(s.status.attempt, rows[i].attempt);
        if (!rows[i].goes_on)
            assert_int_equal(s.status.exit_status, rows[i].last.exit_status);
        free(s.status_path);
    }
}

TEST(test_claim)
{
    struct supervisor s = make_attempt(1);

    s.job.id = (char[]){"12"};
    assert_ok(attempt_claim(&s, &err), err);
    assert_ok(attempt_claim(&s, &err), err); /* requeued */
    s.job.id = (char[]){"13"};
    assert_int_equal(attempt_claim(&s, &err), -ACT_FAIL);
    assert_string_equal(act_error_text(&err), "run 'exp_1700000000_0123abcd' belongs to job 12: job 13 ends");
    free(s.status_path);
}

/* In a process of its own, whose mounts end with it. 77: not allowed to mount. */
static int end_on_full_disk(const char *disk)
{
    static char bytes[2 << 20];
    struct supervisor s = make_attempt(1);
    struct node_record r = {.rank = 0, .node = "n1", .ended_unix_ns = 1, .exit_status = 9};
    struct run_status back;

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", disk, "tmpfs", 0, "size=1m") < 0)
        return 77;
    s.node.dir = act_strdup(disk);
    s.status_path = act_path_join(disk, RUN_FILE_STATUS);
    ACT_AUTOFREE char *big = act_path_join(disk, "big");
    ACT_AUTOFREE char *failure = act_path_join(disk, RUN_FILE_FAILURE);
    if (attempt_begin(&s, &err) < 0)
        return 1;
    int fd = open(big, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (act_write_all(fd, bytes, sizeof(bytes)) == 0 || errno != ENOSPC)
        return 2;
    attempt_save_failure(&s, &r, "rank 0 exited with status 9");
    attempt_finish(&s, RUN_FAILED, 9, "rank 0 exited with status 9");
    attempt_save_status(&s);
    if (access(failure, F_OK) < 0)
        return 3;
    if (run_status_read(s.status_path, &back, &err) < 0 || back.state != RUN_FAILED || back.exit_status != 9)
        return 4;
    return 0;
}

/* The end is written also when the run has filled the disk. */
TEST(test_full_disk)
{
    ACT_AUTOFREE char *disk = test_path("disk");
    int status;

    assert_int_equal(mkdir(disk, 0700), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(end_on_full_disk(disk));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (child_exit_status(status) == 77) {
        print_message("skipped: no permission to mount\n");
        skip();
    }
    assert_int_equal(child_exit_status(status), 0);
}

/* ---- all of it ---- */

TEST_MAIN(make_dir, remove_dir)
