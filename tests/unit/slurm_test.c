/* slurm_test.c - what Slurm's programs print and what follows from it, over recorded text: of 22.05.8 on a cluster of
 * two nodes with four GPUs each, and in the forms that the manual pages of other versions show. '^' stands for the
 * separator. */
#include "unit/test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "platform/slurm/slurm_internal.h"

static char *recorded(const char *text)
{
    char *copy = act_strdup(text);

    for (char *c = copy; *c; c++)
        if (*c == '^')
            *c = SLURM_SEPARATOR[0];
    return copy;
}

/* ---- text ---- */

TEST(test_squeue)
{
    static const char text[] =
        "2^2^PENDING^Resources^2026-11-21T22:22:29^2026-11-21T23:22:29^0^0^^odd \"n|m\" it's^\n"
        "5_[2-3%2]^5^PENDING^JobArrayTaskLimit^N/A^N/A^0^0^^arr^\n"
        "1^1^RUNNING^None^2026-11-21T21:22:29^2026-11-21T22:22:29^0^2^n[1-2]^a_1795296149_0123abcd^\n"
        "5_0^5^RUNNING^None^2026-11-21T21:22:29^2026-11-21T22:22:29^0^0^n2^arr^\n"
        "9^9^FAILED^JobLaunchFailure^2026-11-21T21:26:27^2026-11-21T21:26:28^9^0^n1^kill9^\n"
        "10^10^FAILED^NonZeroExitCode^2026-11-21T21:26:27^2026-11-21T21:26:28^768^0^n1^a\nb^\n"
        "11^11^FAILED^RaisedSignal:53(Real-time_signal_19)^2026-11-21T21:26:27^2026-11-21T21:26:28^0:53^0^n1^new^\n"
        "12^12^RUNNING^None^N/A^N/A^0^999999999999^n1^x^\n"
        "13^13^RUN";
    ACT_AUTOFREE char *copy = recorded(text);
    struct slurm_jobs jobs;
    struct run_status status;

    slurm_jobs_from_squeue(copy, &jobs);
    assert_int_equal(jobs.n, 8);
    slurm_status_of(&jobs.v[7], &status);
    assert_in_range(status.attempt, 1000000, 1000001);
    assert_int_equal(jobs.v[0].id, 2);
    assert_string_equal(jobs.v[0].name, "odd \"n|m\" it's");
    assert_string_equal(jobs.v[0].nodes, "");
    assert_int_equal(jobs.v[0].start_unix_s, 1795299749);
    assert_true(jobs.v[1].in_array && jobs.v[1].id == 5 && jobs.v[1].start_unix_s == 0);
    assert_int_equal(jobs.v[2].restarts, 2);
    assert_false(jobs.v[2].in_array);
    assert_int_equal(jobs.v[4].exit_signal, SIGKILL);
    assert_int_equal(jobs.v[5].exit_status, 3);
    assert_string_equal(jobs.v[5].name, "a"); /* the rest of the name is a line of its own, and none of a job */
    assert_int_equal(jobs.v[6].exit_signal, 53);
    slurm_jobs_combine(&jobs);
    assert_int_equal(jobs.n, 7);
    const struct slurm_job *array = slurm_jobs_find(&jobs, 5);
    assert_non_null(array);
    assert_string_equal(array->state, "RUNNING"); /* as long as one task runs */
    assert_true(array->in_array);
    assert_null(slurm_jobs_find(&jobs, 3));
    assert_int_equal(slurm_jobs_find_name(&jobs, "a_1795296149_0123abcd")->id, 1);
    assert_null(slurm_jobs_find_name(&jobs, "b"));
    slurm_jobs_release(&jobs);
}

TEST(test_sacct)
{
    static const char text[] = "12^COMPLETED^0:0^2026-11-20T09:31:20^2026-11-20T09:32:20^n[1-2]^x\n"
                               "13^CANCELLED by 1000^0:15^2026-11-20T09:31:20^2026-11-20T09:32:20^n1^x\n"
                               "14^CANCELLED+^0:0^Unknown^2026-11-20T09:32:20^None assigned^x\n"
                               "34_1^OUT_OF_MEMORY^0:125^2026-11-20T09:31:20^2026-11-20T09:32:20^n1^x\n"
                               "34_2^COMPLETED^0:0^2026-11-20T09:31:20^2026-11-20T09:32:20^n1^x\n";
    ACT_AUTOFREE char *copy = recorded(text);
    struct slurm_jobs jobs;

    slurm_jobs_from_sacct(copy, &jobs);
    assert_int_equal(jobs.n, 5);
    assert_int_equal(jobs.v[0].uid, -1);
    assert_string_equal(jobs.v[1].state, "CANCELLED");
    assert_int_equal(jobs.v[1].uid, 1000);
    assert_string_equal(jobs.v[2].state, "CANCELLED");
    assert_int_equal(jobs.v[2].uid, -1);
    slurm_jobs_combine(&jobs);
    assert_string_equal(slurm_jobs_find(&jobs, 34)->state, "OUT_OF_MEMORY"); /* one task has failed */
    slurm_jobs_release(&jobs);
}

TEST(test_sbatch_answers)
{
    static const struct {
        const char *text;
        int64_t id;
    } rows[] = {
        {"123\n", 123},
        {"123;cluster\n", 123},
        {"Welcome to node 5\n 77 users\n123\n", 123},
        {"123\n456;c\n", 456},
        {"", 0},
        {"12a\n", 0},
        {"9 lives\n", 0},
        {"99999999999999999999999\n", 0},
        {"-1\n", 0},
        {"0\n", 0},
        {"+5\n", 0},
        {" 5\n", 0},
        {"4294967280\n", 4294967280},
        {"4294967295\n", 0}, /* what Slurm says for no job, without its sign */
    };
    static const struct {
        const char *text;
        int64_t id;
        bool is_array;
    } numbers[] = {{"123", 123, false},      {"123_[0-7]", 123, true}, {"123_4\n", 123, false}, {"-1", 0, false},
                   {"4294967295", 0, false}, {"", 0, false},           {"junk", 0, false},      {NULL, 0, false}};

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(slurm_id_from_sbatch(rows[i].text), rows[i].id);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        bool is_array;
        assert_int_equal(slurm_job_number(numbers[i].text, &is_array), numbers[i].id);
        assert_int_equal(is_array, numbers[i].is_array);
    }
    ACT_AUTOFREE char *said = slurm_complaint(
        "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid "
        "partition "
        "name specified\n");
    assert_string_equal(said, "invalid partition specified: nope; Batch job submission failed: Invalid partition name "
                              "specified");
    ACT_AUTOFREE char *plain = slurm_complaint("\nsbatch: unrecognized option '--foo'\n\n");
    assert_string_equal(plain, "sbatch: unrecognized option '--foo'");
}

TEST(test_complaints)
{
    static const struct {
        const char *program, *text;
        enum act_code code;
        const char *hint;
    } rows[] = {
        {"sbatch", "Batch job submission failed: Requested node configuration is not available", ACT_NO_CAPACITY, ""},
        {"sbatch", "Batch job submission failed: Invalid partition name specified", ACT_CONFIG, ""},
        {"sbatch", "Batch job submission failed: Invalid account or account/partition combination specified",
         ACT_CONFIG, "slurm.account"},
        {"sbatch", "Batch job submission failed: Invalid qos specification", ACT_CONFIG, "slurm.qos"},
        {"sbatch", "Batch job submission failed: Unable to contact slurm controller (connect failure)", ACT_TEMPORARY,
         "try again"},
        {"sbatch", "Batch job submission failed: Socket timed out on send/recv operation", ACT_TEMPORARY, ""},
        {"sbatch", "Batch job submission failed: Access/permission denied", ACT_DENIED, ""},
        {"sbatch", "Batch job submission failed: something nobody has seen", ACT_FAIL, "something nobody has seen"},
        {"sbatch",
         "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time "
         "limits)",
         ACT_NO_CAPACITY, "fewer GPUs"},
        {"squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", ACT_TEMPORARY,
         "try again"},
        {"squeue", "something nobody has seen", ACT_TEMPORARY, ""},
        {"squeue", "Could not establish a configuration source", ACT_NOT_FOUND, "slurm.login"},
        {"scancel", "", ACT_FAIL, "did not say why"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(slurm_refuse(rows[i].program, rows[i].text, &err), -(int)rows[i].code);
        assert_contains(act_error_text(&err), rows[i].program);
        assert_contains(act_error_text(&err), rows[i].text);
        assert_contains(act_error_text(&err), rows[i].hint);
    }
}

TEST(test_times)
{
    static const struct {
        const char *text;
        int64_t s;
    } durations[] = {{"0:03", 3},
                     {"59:59", 3599},
                     {"1:02:03", 3723},
                     {"2-03:04:05", 183845},
                     {"365-00:00:00", 31536000},
                     {"UNLIMITED", 0},
                     {"INVALID", 0},
                     {"N/A", 0},
                     {"", 0},
                     {"5", 0},
                     {"1:2:3:4", 0},
                     {"1:2:3:4:5:6:7:8:9:10:11:12:13", 0},
                     {"999999999999999999:00:00", 0},
                     {"999999999999999999-00:00:00", 0}};

    assert_int_equal(slurm_time("2026-11-20T09:31:20"), 1795167080);
    assert_int_equal(slurm_time("N/A"), 0);
    assert_int_equal(slurm_time("Unknown"), 0);
    assert_int_equal(slurm_time("2026-11-20T09:31:20Z"), 0);
    assert_int_equal(slurm_time(""), 0);
    for (size_t i = 0; i < COUNT(durations); i++)
        assert_int_equal(slurm_duration(durations[i].text), durations[i].s);
}

TEST(test_time_limits)
{
    static const struct {
        const char *text;
        int64_t s;
    } limits[] = {{"30", 1800},
                  {"1:30", 90},
                  {"1:30:00", 5400},
                  {"2-12", 216000},
                  {"2-12:30", 217800},
                  {"1-00:00:10", 86410},
                  {"UNLIMITED", 0},
                  {"INFINITE", 0},
                  {"", 0},
                  {NULL, 0},
                  {"0", 0},
                  {"-1", 0},
                  {"now+1hour", 0},
                  {"1:2:3:4", 0},
                  {"999999999999999999-0", 0}};

    for (size_t i = 0; i < COUNT(limits); i++)
        assert_int_equal(slurm_limit(limits[i].text), limits[i].s);
}

TEST(test_gpus)
{
    static const struct {
        const char *text;
        int gpus;
        const char *ids;
    } rows[] = {
        {"gpu:4", 4, NULL},
        {"gpu:0", 0, NULL},
        {"gpu:a100:8(S:0-1)", 8, NULL},
        {"gpu:2(IDX:0-1)", 2, "0,1"},
        {"gpu:a100:3(IDX:0-1,5)", 3, "0,1,5"},
        {"gpu:a100:2(IDX:0,2),gpu:h100:1(IDX:7)", 3, "0,2,7"},
        {"lscratch:100,gpu:v100:4(S:0,1),craynetwork:4", 4, NULL},
        {"gres:gpu:2", 2, NULL},
        {"gres:gpu:a100:2", 2, NULL},
        {"gres/gpu:4", 4, NULL},
        {"cpu=4,mem=256M,node=2,billing=4", 0, NULL},
        {"cpu=4,mem=256M,node=2,billing=4,gres/gpu=8,gres/gpu:a100=8", 8, NULL},
        {"gres/gpu:a100=8", 8, NULL},
        {"gpu", 1, NULL},
        {"(null)", 0, NULL},
        {"N/A", 0, NULL},
        {"mps:100,gpumem:5", 0, NULL},
        {"gpu:(null):0(IDX:N/A)", 0, NULL},
        {"gpu:99999999999,gpu:a:4", 1000000, NULL},
        {"gpu:4(IDX:0-3", 4, "0,1,2,3"},
        {"", 0, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *ids = slurm_gpu_ids(rows[i].text);
        if (slurm_gpus(rows[i].text) != rows[i].gpus)
            fail_msg("'%s': %d", rows[i].text, slurm_gpus(rows[i].text));
        if (rows[i].ids)
            assert_string_equal(ids, rows[i].ids);
        else
            assert_null(ids);
    }
}

TEST(test_hosts)
{
    static const struct {
        const char *list, *names;
    } rows[] = {
        {"n1", "n1"},
        {"n[1-2]", "n1 n2"},
        {"n[1-2,07-09],gpu3", "n1 n2 n07 n08 n09 gpu3"},
        {"r[1-2]n[01-02].site", "r1n01.site r1n02.site r2n01.site r2n02.site"},
        {"a-1,b_2", "a-1 b_2"},
        {"n[1-2", "n[1-2"},
        {"n[1]", "n1"},
        {"a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]", "a1b1c1d1e1f1g1h1i[1]"},
        {"n[x,]", "n0"},
        {"", ""},
        {",,n1,", "n1"},
        {"n[008-011]", "n008 n009 n010 n011"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv names = {0};
        struct act_buf all = {0};
        slurm_hosts(rows[i].list, &names);
        for (size_t k = 0; k < names.n; k++)
            act_buf_addf(&all, "%s%s", k ? " " : "", names.v[k]);
        ACT_AUTOFREE char *text = act_buf_steal(&all);
        assert_string_equal(text, rows[i].names);
        act_strv_release(&names);
    }
    ACT_AUTO(act_strv) many = {0};
    slurm_hosts("n[1-999999999999],m[1-2],o,p", &many);
    assert_int_equal(many.n, 65536);
}

/* Whatever is printed, no parser reads beyond it (the sanitizers look). */
TEST(test_garbage)
{
    static const char alphabet[] = "^^^^\n:-,[]()0123456789gpu=_/ nIDX.NodeList";
    unsigned seed = 1;

    for (int round = 0; round < 3000; round++) {
        enum { MAX = 160 };
        char text[MAX + 1];
        struct slurm_jobs jobs;
        struct act_strv hosts = {0};
        struct platform_nodes nodes = {0};
        struct platform_summary summary = {0};
        struct platform_jobs all = {0};
        seed = seed * 1103515245 + 12345;
        size_t len = (seed >> 16) % MAX;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        text[len] = '\0';
        char *copies[] = {recorded(text), recorded(text), recorded(text), recorded(text), recorded(text)};
        slurm_jobs_from_squeue(copies[0], &jobs);
        slurm_jobs_combine(&jobs);
        slurm_jobs_release(&jobs);
        slurm_jobs_from_sacct(copies[1], &jobs);
        slurm_jobs_release(&jobs);
        slurm_summary_from_sinfo(copies[2], round % 2, &summary);
        slurm_summary_add_queue(copies[3], &summary);
        slurm_jobs_of_all(copies[4], &all);
        slurm_nodes_from_scontrol(text, 2, &nodes);
        if (!strchr(text, '-')) /* ranges may be long */
            slurm_hosts(text, &hosts);
        free(slurm_gpu_ids(text));
        free(slurm_complaint(text));
        assert_true(slurm_gpus(text) >= 0);
        assert_true(slurm_id_from_sbatch(text) >= 0);
        platform_nodes_release(&nodes);
        platform_summary_release(&summary);
        platform_jobs_release(&all);
        act_strv_release(&hosts);
        for (size_t i = 0; i < COUNT(copies); i++)
            free(copies[i]);
    }
}

/* ---- states ---- */

/* Every state of the manual, and that those that end say so. */
TEST(test_states)
{
    static const struct {
        const char *words;
        enum run_state state;
    } rows[] = {
        {"PENDING CONFIGURING POWER_UP_NODE REQUEUED REQUEUE_HOLD REQUEUE_FED RESV_DEL_HOLD SPECIAL_EXIT "
         "SUSPENDED STOPPED",
         RUN_QUEUED},
        {"RUNNING SIGNALING STAGE_OUT RESIZING COMPLETING", RUN_RUNNING},
        {"COMPLETED", RUN_COMPLETED},
        {"FAILED TIMEOUT DEADLINE OUT_OF_MEMORY NODE_FAIL BOOT_FAIL LAUNCH_FAILED RECONFIG_FAIL PREEMPTED", RUN_FAILED},
        {"CANCELLED REVOKED", RUN_CANCELED},
        {"SOMETHING_NEW running", RUN_UNKNOWN},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char copy[256];
        snprintf(copy, sizeof(copy), "%s", rows[i].words);
        for (char *at = copy, *word; (word = strsep(&at, " "));)
            if (slurm_state_of(word) != rows[i].state)
                fail_msg("%s is %s", word, run_state_name(slurm_state_of(word)));
    }
}

static struct slurm_job make_job(const char *state, const char *reason)
{
    return (struct slurm_job){.id = 7, .state = state, .reason = reason, .nodes = "", .name = "x", .uid = -1};
}

TEST(test_ends)
{
    static const struct {
        const char *state, *reason;
        int status, signal, uid;
        enum run_state end;
        int exit_status;
        const char *says;
    } rows[] = {
        {"COMPLETED", "None", 0, 0, -1, RUN_COMPLETED, 0, ""},
        {"TIMEOUT", "TimeLimit", 0, 15, -1, RUN_FAILED, 143, "time limit reached"},
        {"OUT_OF_MEMORY", "OutOfMemory", 0, 125, -1, RUN_FAILED, 137, "out of memory"},
        {"NODE_FAIL", "NodeDown", 0, 0, -1, RUN_FAILED, 137, "a node of it failed (NODE_FAIL)"},
        {"PREEMPTED", "None", 0, 15, -1, RUN_FAILED, 143, "preempted"},
        {"BOOT_FAIL", "None", 0, 0, -1, RUN_FAILED, 1, "could not be started"},
        {"FAILED", "JobLaunchFailure", 0, 53, -1, RUN_FAILED, 181, "set slurm.root"},
        {"FAILED", "RaisedSignal:53(Real-time_signal_19)", 0, 53, -1, RUN_FAILED, 181, "set slurm.root"},
        {"FAILED", "JobLaunchFailure", 0, 9, -1, RUN_FAILED, 137, "its agent was killed by signal 9 (Killed)"},
        {"FAILED", "NonZeroExitCode", 3, 0, -1, RUN_FAILED, 3, "ended with status 3"},
        {"FAILED", "RaisedSignal:12(User_defined_signal_2)", 0, SIGUSR2, -1, RUN_CANCELED, 143, "aborted"},
        {"CANCELLED", "None", 0, 15, 1000, RUN_CANCELED, 143, "canceled in Slurm by uid 1000"},
        {"CANCELLED", "None", 0, 15, 0, RUN_CANCELED, 143, "canceled by an administrator"},
        {"CANCELLED", "None", 0, 0, -1, RUN_CANCELED, 143, "canceled in Slurm"},
        {"WHATEVER", "None", 0, 0, -1, RUN_UNKNOWN, 0, "'WHATEVER'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct slurm_job job = make_job(rows[i].state, rows[i].reason);
        struct run_status status;
        job.exit_status = rows[i].status;
        job.exit_signal = rows[i].signal;
        job.uid = rows[i].uid;
        slurm_status_of(&job, &status);
        assert_int_equal(status.state, rows[i].end);
        assert_int_equal(status.exit_status, rows[i].exit_status);
        assert_contains(status.reason, rows[i].says);
    }
}

TEST(test_waiting)
{
    static const struct {
        const char *word, *says;
    } rows[] = {
        {"Resources", "waits for free nodes (Resources); Slurm expects to start it at 2026-11-21 14:05 UTC"},
        {"Priority", "waits behind runs of higher priority (Priority)"},
        {"PartitionNodeLimit", "will not start: the partition does not have"},
        {"PartitionConfig", "will not start"},
        {"PartitionTimeLimit", "will not start: slurm.time"},
        {"DependencyNeverSatisfied", "will never start"},
        {"Dependency", "waits for another job"},
        {"BadConstraints", "slurm.constraint"},
        {"JobHeldAdmin", "administrator holds it"},
        {"JobHeldUser", "'scontrol release'"},
        {"QOSMaxGRESPerUser", "waits: your runs in this QOS are at their limit (QOSMaxGRESPerUser)"},
        {"QOSMaxNodePerJobLimit", "will not start"},
        {"QOSMaxWallDurationPerJobLimit", "slurm.time"},
        {"QOSGrpGRES", "waits: all runs of its QOS"},
        {"AssocGrpCPUMinutesLimit", "used up its time"},
        {"AssocGrpGRES", "waits: all runs of its account"},
        {"AssocMaxJobsLimit", "waits: your runs in this account"},
        {"ReqNodeNotAvail, UnavailableNodes:n[1-2]",
         "down, drained or reserved (ReqNodeNotAvail, UnavailableNodes:n[1-2])"},
        {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "waits: nodes"},
        {"launch_failed_requeued_held", "'scontrol release'"},
        {"NewInVersion99", "waits (NewInVersion99)"},
        {"None", "waits to be looked at by the scheduler"},
        {"", "waits"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct slurm_job job = make_job("PENDING", rows[i].word);
        struct run_status status;
        job.start_unix_s = i == 0 ? slurm_time("2026-11-21T14:05:44") : 0;
        slurm_status_of(&job, &status);
        assert_int_equal(status.state, RUN_QUEUED);
        assert_int_equal(status.started_unix_s, 0);
        assert_contains(status.reason, rows[i].says);
    }
}

/* ---- the agent's record and Slurm's word ---- */

enum { NOW = 1795300000 };
#define RUN_ID "x_1795299000_0123abcd"

static const struct merge_row {
    const char *what;
    /* the record: state, attempt, heartbeat's age in s (-1: never) */
    enum run_state said;
    int attempt;
    int silent_s;
    /* Slurm's queue and accounting: NULL is not known there; how long ago it ended; restarts */
    const char *queue, *past;
    int ended_s, restarts;
    /* what follows */
    enum run_state state;
    int out_attempt;
    bool kept;
    const char *says;
} merge_rows[] = {
    {"ended", RUN_COMPLETED, 1, 5, NULL, NULL, 0, 0, RUN_COMPLETED, 1, false, ""},
    {"ended, Slurm is still ending it", RUN_FAILED, 1, 5, "COMPLETING", NULL, 0, 0, RUN_FAILED, 1, false, "said"},
    {"ended, Slurm runs it still", RUN_FAILED, 1, 5, "RUNNING", NULL, 0, 0, RUN_FAILED, 1, false, "said"},
    {"ended, Slurm has another opinion", RUN_FAILED, 1, 5, "CANCELLED", NULL, 0, 0, RUN_FAILED, 1, false, "said"},
    {"ended, and queued again", RUN_FAILED, 1, 5, "PENDING", NULL, 0, 1, RUN_QUEUED, 2, false, "waits"},
    {"an earlier attempt ended, the next runs", RUN_FAILED, 1, 5, "RUNNING", NULL, 0, 1, RUN_RUNNING, 2, false, ""},
    {"waits", RUN_QUEUED, 1, -1, "PENDING", NULL, 0, 0, RUN_QUEUED, 1, false, "waits"},
    {"preempted, queued again", RUN_QUEUED, 1, 30, "PENDING", NULL, 0, 1, RUN_QUEUED, 2, false, "waits"},
    {"preempted, and not yet gone", RUN_QUEUED, 1, 5, "COMPLETING", NULL, 0, 1, RUN_RUNNING, 1, false, "queued again"},
    {"starting", RUN_QUEUED, 1, -1, "RUNNING", NULL, 0, 0, RUN_RUNNING, 1, false, ""},
    {"runs", RUN_RUNNING, 1, 5, "RUNNING", NULL, 0, 0, RUN_RUNNING, 1, false, "said"},
    {"suspended", RUN_RUNNING, 1, 500, "SUSPENDED", NULL, 0, 0, RUN_QUEUED, 1, false, "suspended"},
    {"canceled while it waited", RUN_QUEUED, 1, -1, "CANCELLED", NULL, 0, 0, RUN_CANCELED, 1, true, "canceled"},
    {"not launched", RUN_QUEUED, 1, -1, "FAILED", NULL, 0, 0, RUN_FAILED, 1, true, ""},
    {"ended a moment ago, the record is on its way", RUN_RUNNING, 1, 5, "FAILED", NULL, 2, 0, RUN_RUNNING, 1, false,
     "awaited"},
    {"ended, the agent will say no more", RUN_RUNNING, 1, 100, "NODE_FAIL", NULL, 30, 0, RUN_FAILED, 1, true, "node"},
    {"forgotten by the queue, in the accounting", RUN_RUNNING, 1, 4000, NULL, "TIMEOUT", 900, 0, RUN_FAILED, 1, true,
     "time limit reached"},
    {"forgotten, and lives", RUN_RUNNING, 1, 20, NULL, NULL, 0, 0, RUN_RUNNING, 1, false, "said"},
    {"forgotten, and lives whatever the accounting thinks", RUN_RUNNING, 1, 20, NULL, "RUNNING", 0, 0, RUN_RUNNING, 1,
     false, "said"},
    {"forgotten", RUN_RUNNING, 1, 90, NULL, NULL, 0, 0, RUN_FAILED, 1, false,
     "lost: Slurm no longer knows job 7 and its "
     "agent has not said how it ended"},
    {"forgotten before it began", RUN_QUEUED, 1, -1, NULL, NULL, 0, 0, RUN_FAILED, 1, false, "has never begun"},
};

TEST(test_merge)
{
    for (size_t i = 0; i < COUNT(merge_rows); i++) {
        const struct merge_row *r = &merge_rows[i];
        struct run_status out, said = {.state = r->said, .attempt = r->attempt, .failed_rank = -1};
        struct slurm_job queue = make_job(r->queue, "Priority"), past = make_job(r->past, "");
        struct slurm_known known = {.id = RUN_ID, .job = 7, .said = &said, .now_unix_s = NOW};
        snprintf(said.reason, sizeof(said.reason), "said");
        said.heartbeat_unix_s = r->silent_s < 0 ? 0 : NOW - r->silent_s;
        queue.restarts = r->restarts;
        queue.end_unix_s = past.end_unix_s = NOW - r->ended_s;
        known.queue = r->queue ? &queue : NULL;
        known.past = r->past ? &past : NULL;
        bool kept = slurm_merge(&known, &out);
        if (out.state != r->state || out.attempt != r->out_attempt || kept != r->kept || !strstr(out.reason, r->says))
            fail_msg("%s: %s, attempt %d, kept %d: %s", r->what, run_state_name(out.state), out.attempt, kept,
                     out.reason);
    }
}

TEST(test_merge_array)
{
    struct run_status out, said = {.state = RUN_COMPLETED, .attempt = 1, .heartbeat_unix_s = NOW - 5};
    struct slurm_job queue = make_job("RUNNING", "None");
    struct slurm_known known = {.id = RUN_ID, .job = 7, .said = &said, .queue = &queue, .now_unix_s = NOW};

    queue.in_array = true; /* one task has written its end, another one runs */
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_RUNNING);
    queue.state = "FAILED"; /* the last one has failed */
    queue.exit_status = 3;
    slurm_merge(&known, &out);
    assert_int_equal(out.state, RUN_FAILED);
    assert_contains(out.reason, "a task of its array ended with status 3");
    said.state = RUN_CANCELED; /* which stays so when it was aborted */
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_CANCELED);
    said.state = RUN_COMPLETED;
    queue.state = "COMPLETED";
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_COMPLETED);
}

TEST(test_merge_step)
{
    struct run_status out, said = {.state = RUN_RUNNING, .attempt = 2, .heartbeat_unix_s = NOW - 5};
    struct slurm_known known = {
        .id = RUN_ID, .job = 7, .is_step = true, .step_there = true, .said = &said, .now_unix_s = NOW};

    assert_false(slurm_needs_past(&known)); /* of the job around it */
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_RUNNING);
    assert_int_equal(out.attempt, 2);
    assert_string_equal(out.reason, "a step of job 7");
    known.step_there = false; /* the agent may be writing its last word */
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_RUNNING);
    known.now_unix_s += 20;
    assert_true(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_FAILED);
    assert_contains(out.reason, "lost: its step of job 7 is gone");
    said.state = RUN_COMPLETED;
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_COMPLETED);
}

TEST(test_step)
{
    static const struct {
        const char *text;
        int64_t step, number;
    } rows[] = {{"7.3", 3, 7}, {"7.0", 0, 7}, {"7", -1, 7}, {"7_3", -1, 7}, {"7.batch", -1, 7}, {"", -1, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(slurm_step(rows[i].text), rows[i].step);
        assert_int_equal(slurm_job_number(rows[i].text, NULL), rows[i].number);
    }
}

TEST(test_silence)
{
    struct run_status out, said = {.state = RUN_RUNNING, .attempt = 1, .heartbeat_unix_s = NOW - 20};
    struct slurm_job queue = make_job("RUNNING", "None");
    struct slurm_known known = {.id = RUN_ID, .job = 7, .said = &said, .queue = &queue, .now_unix_s = NOW};

    assert_false(slurm_merge(&known, &out));
    assert_string_equal(out.reason, "");
    known.now_unix_s += 300;
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_RUNNING);
    assert_string_equal(out.reason, "its agent was last heard of at 2026-11-21 22:26:20 UTC");
}

TEST(test_never_handed_over)
{
    struct run_status out, said = {.state = RUN_QUEUED, .attempt = 1};
    struct slurm_known known = {.id = RUN_ID, .said = &said};

    assert_int_equal(slurm_run_created(RUN_ID), 1795299000);
    assert_int_equal(slurm_run_created("a_b-c_1795299001_0123abcd"), 1795299001);
    assert_int_equal(slurm_run_created("nothing"), 0);
    assert_int_equal(slurm_run_created("a_-1795299001_0123abcd"), 0);
    known.now_unix_s = 1795299000 + 5;
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_QUEUED);
    known.now_unix_s = 1795299000 + 3600;
    assert_false(slurm_merge(&known, &out));
    assert_int_equal(out.state, RUN_FAILED);
    assert_contains(out.reason, "never handed to Slurm");
}

TEST(test_who_is_asked)
{
    struct run_status said = {.state = RUN_RUNNING, .attempt = 1};
    struct slurm_job job = make_job("RUNNING", "None");
    struct slurm_known known = {.id = RUN_ID, .job = 7, .said = &said, .now_unix_s = NOW};

    assert_true(slurm_needs_past(&known)); /* the queue does not know it */
    known.queue = &job;
    assert_false(slurm_needs_past(&known));
    assert_false(slurm_needs_record(&known));
    job.state = "CANCELLED"; /* by whom? */
    assert_true(slurm_needs_past(&known));
    assert_true(slurm_needs_record(&known));
    said.state = RUN_CANCELED;
    assert_false(slurm_needs_past(&known));
    assert_false(slurm_needs_record(&known));
    known.queue = NULL;
    assert_false(slurm_needs_past(&known));
    said.state = RUN_QUEUED;
    known.job = 0;
    assert_false(slurm_needs_past(&known));
}

/* ---- submitting ---- */

static struct slurm make_slurm(void)
{
    static char launcher[] = "mpirun";

    return (struct slurm){.config = {.launcher = launcher, .warn_seconds = 120}, .gpu_per_node = -1};
}

static struct run_spec slurm_test_make_spec(void)
{
    static char id[] = RUN_ID, word[] = "true", *words[] = {word, NULL};

    return (struct run_spec){.id = id, .argv = {words, 1}, .nodes = 2, .procs_per_node = 4, .gpus_per_node = 4};
}

static char *sbatch_lines(const struct slurm *s, const struct run_spec *spec)
{
    ACT_AUTO(act_strv) words = {0};
    struct act_buf all = {0};

    slurm_sbatch_words(s, spec, "/home/me/50% a/runs/x", NULL, &words);
    for (size_t i = 0; i < words.n; i++)
        act_buf_addf(&all, "%s\n", words.v[i]);
    return act_buf_steal(&all);
}

TEST(test_words)
{
    struct slurm s = make_slurm();
    struct run_spec spec = slurm_test_make_spec();

    ACT_AUTOFREE char *plain = sbatch_lines(&s, &spec);
    assert_string_equal(plain, "sbatch\n--parsable\n--job-name=" RUN_ID "\n--comment=act:" RUN_ID
                               "\n--nodes=2\n--ntasks-per-node=4\n--gpus-per-node=4\n"
                               "--output=/home/me/50%% a/runs/x/system_logs/slurm.txt\n--open-mode=append\n"
                               "--signal=B:USR1@120\n--no-requeue\n--chdir=/home/me/50% a/runs/x\n/dev/stdin\n");
    spec.procs_per_node = 1;
    spec.started_per_node = 4; /* one starter, and the processors of four processes */
    ACT_AUTOFREE char *of_starter = sbatch_lines(&s, &spec);
    assert_string_equal(of_starter, plain);
    s.config = (struct slurm_keys){.partition = (char[]){"gpu"},
                                   .account = (char[]){"a"},
                                   .qos = (char[]){"q"},
                                   .time = (char[]){"1-0"},
                                   .constraint = (char[]){"x&y"},
                                   .gres = (char[]){"gpu:a100"},
                                   .reservation = (char[]){"r"},
                                   .exclude = (char[]){"n1"},
                                   .nodelist = (char[]){"n[2-3]"},
                                   .sbatch_options = {(char *[]){(char[]){"--mem=1 G"}, NULL}, 1}};
    s.preemption_allowed = true;
    ACT_AUTOFREE char *full = sbatch_lines(&s, &spec);
    assert_contains(full, "\n--gres=gpu:a100:4\n");
    assert_contains(full,
                    "\n--requeue\n--chdir=/home/me/50% a/runs/x\n--mem=1 G\n--time=1-0\n--partition=gpu\n--account=a\n"
                    "--qos=q\n--constraint=x&y\n--reservation=r\n--exclude=n1\n--nodelist=n[2-3]\n/dev/stdin\n");
    s.options_are_said = true; /* the last one counts */
    ACT_AUTOFREE char *said = sbatch_lines(&s, &spec);
    assert_contains(said, "\n--nodelist=n[2-3]\n--mem=1 G\n/dev/stdin\n");
    assert_null(strstr(full, "--signal"));
    assert_null(strstr(full, "--gpus-per-node"));
    s.config.gres = (char[]){"none"};
    ACT_AUTOFREE char *without = sbatch_lines(&s, &spec);
    assert_null(strstr(without, "--g"));
    ACT_AUTOFREE char *script = slurm_job_script("/a b/act-node", "/it's/runs/x");
    assert_string_equal(script, "#!/bin/bash\nexport SLURM_EXPORT_ENV=ALL\nrun='/it'\"'\"'s/runs/x'\n"
                                "exec '/a b/act-node' supervise --slurm \"$run\"\n");
    ACT_AUTOFREE char *array = slurm_array_script("/act-node", "/runs", "x_1_abcde");
    assert_string_equal(array, "#!/bin/bash\nexport SLURM_EXPORT_ENV=ALL\n"
                               "run='/runs/x_1_abcde'$(printf %03d \"$SLURM_ARRAY_TASK_ID\")\n"
                               "cd -- \"$run\" || exit\nexec '/act-node' supervise --slurm \"$run\"\n");
}

/* A copy that lives as long as keep; NULL stays NULL. */
static char *slurm_test_kept(struct act_strv *keep, const char *text)
{
    if (!text)
        return NULL;
    act_strv_push(keep, text);
    return keep->v[keep->n - 1];
}

TEST(test_checks)
{
    static const struct {
        const char *image, *container, *launcher, *mpi, *option;
        enum act_code code;
        const char *says;
    } rows[] = {
        {NULL, NULL, "mpirun", NULL, NULL, ACT_OK, ""},
        {"i:1", NULL, "mpirun", NULL, NULL, ACT_CONFIG,
         "docker.image is 'i:1', and slurm.container does not say what runs it: set it to apptainer, pyxis or none"},
        {"i:1", "none", "mpirun", NULL, NULL, ACT_OK, ""},
        {"i:1", "apptainer", "mpirun", NULL, NULL, ACT_OK, ""},
        {"i:1", "pyxis", "mpirun", NULL, NULL, ACT_CONFIG, "set slurm.launcher to srun"},
        {"i:1", "pyxis", "srun", NULL, NULL, ACT_OK, ""},
        {NULL, "apptainer", "mpirun", NULL, NULL, ACT_CONFIG, "no docker.image"},
        {NULL, NULL, "mpirun", "pmix", NULL, ACT_CONFIG, "set slurm.launcher to srun"},
        {NULL, NULL, "srun", "pmix", NULL, ACT_OK, ""},
        {NULL, NULL, "mpirun", NULL, "--wrap=true", ACT_CONFIG, "'--wrap=true'"},
        {NULL, NULL, "mpirun", NULL, "-Jname", ACT_CONFIG, "'-Jname'"},
        {NULL, NULL, "mpirun", NULL, "--wait-all-nodes=1", ACT_OK, ""},
        {NULL, NULL, "mpirun", NULL, "--exclusive", ACT_OK, ""},
        {NULL, NULL, "mpirun", NULL, "--array=0-3", ACT_OK, ""},
    };
    struct run_spec spec = slurm_test_make_spec();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct slurm s = make_slurm();
        err = (struct act_error){0};
        struct act_strv keep = {0};
        char *option = slurm_test_kept(&keep, rows[i].option);
        s.image = slurm_test_kept(&keep, rows[i].image);
        s.config.container = slurm_test_kept(&keep, rows[i].container);
        s.config.launcher = slurm_test_kept(&keep, rows[i].launcher);
        s.config.mpi = slurm_test_kept(&keep, rows[i].mpi);
        s.config.sbatch_options = (struct act_strv){&option, option != NULL};
        assert_int_equal(slurm_check_settings(&s.base, &spec, &err), -(int)rows[i].code);
        assert_contains(act_error_text(&err), rows[i].says);
        act_strv_release(&keep);
    }
}

TEST(test_arrays)
{
    static const struct {
        const char *first, *second, *text;
    } rows[] = {
        {NULL, NULL, "5"},    {"--array=0-3%2", NULL, "5_[0-3%2]"}, {"--array", "1,7", "5_[1,7]"},
        {"-a", "1", "5_[1]"}, {"-a2-3", NULL, "5_[2-3]"},           {"--account=x", NULL, "5"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv keep = {0};
        char *options[] = {slurm_test_kept(&keep, rows[i].first), slurm_test_kept(&keep, rows[i].second)};
        struct slurm s = make_slurm();
        bool is_array;
        s.config.sbatch_options = (struct act_strv){options, (options[0] != NULL) + (options[1] != NULL)};
        ACT_AUTOFREE char *text = slurm_job_text(&s, 5);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(slurm_job_number(text, &is_array), 5);
        assert_int_equal(is_array, rows[i].text[1] != '\0');
        act_strv_release(&keep);
    }
    assert_int_equal(slurm_job_number(NULL, NULL), 0);
}

/* ---- the cluster ---- */

TEST(test_nodes)
{
    static const char text[] = "JobId=1 JobName=x NodeList=n9 y\n"
                               "   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
                               "   JobState=RUNNING Reason=None Dependency=(null)\n"
                               "   ReqNodeList=(null) ExcNodeList=(null)\n"
                               "   NodeList=n[1-3]\n"
                               "   BatchHost=n1\n"
                               "   JOB_GRES=gpu:7\n"
                               "     Nodes=n[1-2] CPU_IDs=6-7 Mem=128 GRES=gpu:2(IDX:0-1)\n"
                               "     Nodes=(null) CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)\n"
                               "     Nodes=n3 CPU_IDs=6-7 Mem=128 GRES=gpu:a100:3(IDX:0,2-3)\n"
                               "   MinCPUsNode=2 MinMemoryCPU=64M MinTmpDiskNode=0\n";
    struct platform_nodes nodes = {0}, none = {0};

    /* "JobName=x NodeList=n9 y" is a name that wants to be a key */
    slurm_nodes_from_scontrol(strchr(text, '\n'), 4, &nodes);
    assert_int_equal(nodes.n, 3);
    assert_string_equal(nodes.v[1].name, "n2");
    assert_int_equal(nodes.v[1].rank, 1);
    assert_int_equal(nodes.v[1].first_rank, 4);
    assert_int_equal(nodes.v[1].n_ranks, 4);
    assert_int_equal(nodes.v[1].gpus, 2);
    assert_string_equal(nodes.v[1].gpu_ids, "0,1");
    assert_string_equal(nodes.v[2].gpu_ids, "0,2,3");
    platform_nodes_release(&nodes);
    slurm_nodes_from_scontrol("JobId=3 JobName=y\n   NodeList=\n   NumNodes=1\n", 1, &none);
    assert_int_equal(none.n, 0);
    slurm_nodes_from_scontrol("JobId=3 JobName=y\n   NodeList=(null)\n   NumNodes=1\n", 1, &none);
    assert_int_equal(none.n, 0);
}

/* Counts that nothing has stay counts. */
TEST(test_large_counts)
{
    struct platform_summary s = {0};
    ACT_AUTOFREE char *nodes = recorded("n1^idle^-9/9/9/999999999^gpu:99999999999^gpu:0^main*^\n"
                                        "n2^idle^0/9/9/9^gpu:99999999999^gpu:0^main*^\n");
    ACT_AUTOFREE char *jobs = recorded("PENDING^99999999999^16^gres:gpu:99999999^N/A^cpu=1^main^\n"
                                       "PENDING^-2^16^gres:gpu:99999999^N/A^cpu=1^main^\n");

    slurm_summary_from_sinfo(nodes, true, &s);
    slurm_summary_add_queue(jobs, &s);
    assert_int_equal(s.total.gpus, 2000000);
    assert_int_equal(s.total.gpus_queued, 1000000);
    platform_summary_release(&s);
}

TEST(test_summary)
{
    static const char sinfo[] = "n1^mixed^2/6/0/8^gpu:4^gpu:2^main*^\n"
                                "n1^mixed^2/6/0/8^gpu:4^gpu:2^low^\n"
                                "n2^idle~^0/8/0/8^gpu:a100:4(S:0-1)^gpu:a100:0(IDX:N/A)^main*^\n"
                                "n3^down*^0/0/8/8^gpu:4^gpu:0^main*^\n"
                                "n4^draining^4/0/4/8^gpu:4^gpu:a:1(IDX:3)^low^\n"
                                "n5^idle$^0/8/0/8^(null)^(null)^low^\n";
    static const char squeue[] = "RUNNING^1^8^gres:gpu:2^N/A^cpu=1,mem=64M,node=1,billing=1^main^\n"
                                 "PENDING^2^16^gres:gpu:4^N/A^cpu=1,node=2^main,low^\n"
                                 "PENDING^1^1^N/A^gres:gpu:3^^low^\n"
                                 "COMPLETING^1^1^N/A^N/A^cpu=1,gres/gpu=1^gone^\n";
    ACT_AUTOFREE char *nodes = recorded(sinfo);
    ACT_AUTOFREE char *jobs = recorded(squeue);
    ACT_AUTOFREE char *again = recorded(sinfo);
    struct platform_summary s = {0}, cpus = {0};

    slurm_summary_from_sinfo(nodes, true, &s);
    slurm_summary_add_queue(jobs, &s);
    assert_int_equal(s.n_pools, 2);
    const struct platform_pool *t = &s.total, *main_pool = &s.pools[0], *low = &s.pools[1];
    assert_string_equal(main_pool->name, "main");
    assert_true(main_pool->is_default && !low->is_default);
    assert_int_equal(t->nodes, 5);
    assert_int_equal(t->nodes_idle, 2);
    assert_int_equal(t->nodes_busy, 1);
    assert_int_equal(t->nodes_down, 2);
    assert_int_equal(t->gpus, 16);
    assert_int_equal(t->gpus_busy, 3);
    assert_int_equal(t->gpus_idle, 6);
    assert_int_equal(t->gpus_down, 7);
    assert_int_equal(low->nodes, 3);
    assert_int_equal(main_pool->nodes, 3);
    assert_int_equal(t->jobs_running, 2);
    assert_int_equal(t->jobs_queued, 2);
    assert_int_equal(t->gpus_queued, 11);
    assert_int_equal(main_pool->gpus_queued, 8);
    assert_int_equal(low->gpus_queued, 11);
    slurm_summary_from_sinfo(again, false, &cpus);
    assert_int_equal(cpus.total.gpus, 40);
    assert_int_equal(cpus.total.gpus_busy, 6);
    assert_int_equal(cpus.total.gpus_idle, 22);
    platform_summary_release(&s);
    platform_summary_release(&cpus);
}

TEST(test_jobs_of_all)
{
    static const char squeue[] = "1^root^n[1-2]^0:03^1:00:00^2^gres:gpu:2^N/A^cpu=4,mem=256M,node=2,billing=4^x^\n"
                                 "5_0^eve^n2^1-00:00:03^UNLIMITED^1^N/A^gres:gpu:3^cpu=1^a \"b\" | c^\n"
                                 "7^bob^n3^2:00:00^5-00:00:00^1^N/A^N/A^cpu=1,gres/gpu=8^odd\nname^\n";
    ACT_AUTOFREE char *text = recorded(squeue);
    ACT_AUTO(platform_jobs) jobs = {0};

    slurm_jobs_of_all(text, &jobs);
    assert_int_equal(jobs.n, 3);
    assert_string_equal(jobs.v[0].id, "5_0");
    assert_string_equal(jobs.v[0].name, "a \"b\" | c");
    assert_int_equal(jobs.v[0].running_s, 86403);
    assert_int_equal(jobs.v[0].limit_s, 0);
    assert_int_equal(jobs.v[0].gpus, 3);
    assert_string_equal(jobs.v[1].user, "bob");
    assert_int_equal(jobs.v[1].gpus, 8);
    assert_int_equal(jobs.v[1].limit_s, 432000);
    assert_int_equal(jobs.v[2].gpus, 4);
    assert_string_equal(jobs.v[2].nodes_text, "n[1-2]");
}

/* ---- many */

/* The states of 1,000 runs among 10,000 jobs. Prints what it took. */
TEST(test_many)
{
    enum { JOBS = 10000, RUNS = 1000 };
    static const char *const words[] = {"PENDING", "RUNNING", "COMPLETED", "CANCELLED"};
    struct act_buf b = {0};
    struct slurm_jobs jobs;
    struct rusage before, after;

    for (int i = 0; i < JOBS; i++)
        act_buf_addf(&b, "%d^%d^%s^Priority^2026-11-21T21:22:29^2026-11-21T22:22:29^0^0^n[1-2]^exp_1795290000_%08x^\n",
                     JOBS - i, JOBS - i, words[i % (int)COUNT(words)], i);
    ACT_AUTOFREE char *plain = act_buf_steal(&b);
    ACT_AUTOFREE char *text = recorded(plain);
    getrusage(RUSAGE_SELF, &before);
    clock_t start = clock();
    slurm_jobs_from_squeue(text, &jobs);
    slurm_jobs_combine(&jobs);
    assert_int_equal(jobs.n, JOBS);
    for (int i = 0; i < RUNS; i++) {
        struct run_status out, said = {.state = RUN_QUEUED, .attempt = 1};
        struct slurm_known known = {.id = RUN_ID, .job = 1 + i * 10, .said = &said, .now_unix_s = NOW};
        known.queue = slurm_jobs_find(&jobs, known.job);
        assert_non_null(known.queue);
        slurm_merge(&known, &out);
        assert_int_equal(out.state, slurm_state_of(known.queue->state));
    }
    clock_t end = clock();
    getrusage(RUSAGE_SELF, &after);
    print_message("%d runs among %d jobs: %.1f ms, %ld KiB more memory\n", RUNS, JOBS,
                  (double)(end - start) * 1000 / CLOCKS_PER_SEC, after.ru_maxrss - before.ru_maxrss);
    slurm_jobs_release(&jobs);
}

TEST(the_nodes_of_a_partition)
{
    static const char text[] = "n1 main*\nn1 low\nn2 main*\nn3 low\nn3 low\n";
    static const struct {
        const char *partition, *nodes;
    } rows[] = {{NULL, "n1 n2"}, {"low", "n1 n3"}, {"low,main", "n1 n2 n3"}, {"lo", ""}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *copy = act_strdup(text);
        ACT_AUTO(act_strv) nodes = {0};
        ACT_AUTO(act_buf) list = {0};
        slurm_nodes_of_partition(copy, rows[i].partition, &nodes);
        for (size_t n = 0; n < nodes.n; n++)
            act_buf_addf(&list, "%s%s", n ? " " : "", nodes.v[n]);
        assert_string_equal(list.data ? list.data : "", rows[i].nodes);
    }
}

TEST(a_job_of_a_run_that_is_tried_again)
{
    struct slurm s = {.config = {.exclude = (char[]){"n9"}}};
    struct run_spec spec = {.id = (char[]){"x_1_00000000"}, .nodes = 1, .procs_per_node = 1, .retry_times = 2};
    ACT_AUTO(act_strv) avoid = {0}, on = {0}, plain = {0}, again = {0};

    act_strv_push(&avoid, "n1");
    act_strv_push(&on, "nccl_timeout");
    spec.avoid = avoid;
    spec.retry_on = on;
    slurm_sbatch_words(&s, &spec, "/run", NULL, &plain);
    assert_true(act_strv_has(&plain, "--exclude=n9,n1") && act_strv_has(&plain, "--no-requeue"));
    act_strv_push(&on, "node_failure");
    spec.retry_on = on;
    slurm_sbatch_words(&s, &spec, "/run", "afterany:7_3", &again);
    assert_true(act_strv_has(&again, "--requeue"));
    assert_string_equal(again.v[again.n - 2], "--dependency=afterany:7_3");
}

/* sbatch takes the last one alone. */
TEST(a_job_waits_for_the_one_before_besides_those_of_its_user)
{
    static const char *const forms[][2] = {
        {"--dependency=afterok:5", NULL}, {"--dependency", "afterok:5"}, {"-dafterok:5", NULL}, {"-d", "afterok:5"}};
    struct run_spec spec = {.id = (char[]){"x_1_00000000"}, .nodes = 1, .procs_per_node = 1};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        ACT_AUTO(act_strv) words = {0}, options = {0};
        for (int k = 0; k < 2 && forms[i][k]; k++)
            act_strv_push(&options, forms[i][k]);
        struct slurm s = {.config = {.sbatch_options = options}};
        slurm_sbatch_words(&s, &spec, "/run", "afterany:7", &words);
        assert_string_equal(words.v[words.n - 2], "--dependency=afterok:5,afterany:7");
    }
}

/* Else one that can never begin stays in the queue. */
TEST(a_job_that_needs_others_ends_when_they_cannot_complete)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(act_strv) needs = {0};
    struct slurm s = {0};

    act_strv_push(&needs, "x_1_00000001");
    const struct run_spec spec = {.id = (char[]){"x_1_00000000"}, .nodes = 1, .procs_per_node = 1, .needs = needs};
    slurm_sbatch_words(&s, &spec, "/run", "afterok:7", &words);
    assert_string_equal(words.v[words.n - 3], "--dependency=afterok:7");
    assert_string_equal(words.v[words.n - 2], "--kill-on-invalid-dep=yes");
}

TEST_MAIN(NULL, NULL)
