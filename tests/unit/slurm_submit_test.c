/* slurm_submit_test.c - one run, one job, whatever happens: several clients at once, clients that are killed, answers
 * that are lost, refusals; and what Slurm is asked afterwards. Slurm's programs are stand-ins that do as the file
 * "mode" says. */
#define TEST_SETUP    slurm_submit_test_begin
#define TEST_TEARDOWN slurm_submit_test_end
#include "unit/test.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "config/config.h"
#include "platform/platform.h"
#include "platform/slurm/keys.h"

/* Each line of "jobs" is a job, its number that of the line, its text the name. A mode is taken once. */
static const char stand_in[] =
    "#!/bin/sh\n"
    "D=${0%/*}/..\n"
    "for w in \"$@\"; do case $w in --job-name=*|--name=*) name=${w#*=};; esac; done\n"
    "refuse() { echo \"${0##*/}: error: $*\" >&2; exit 1; }\n"
    "case ${0##*/}$* in sbatch*--test-only*) exit 0;; esac\n"
    "case ${0##*/} in\n"
    "sbatch)\n"
    "  cat > $D/script; mode=$(cat $D/mode 2>/dev/null); rm -f $D/mode\n"
    "  case $mode in\n"
    "  refuse*) refuse \"Batch job submission failed:${mode#refuse}\";;\n"
    "  nothing) refuse 'Batch job submission failed: Socket timed out on send/recv operation';;\n"
    "  die_before) kill -9 $PPID; exit 1;;\n"
    "  esac\n"
    "  echo $name >> $D/jobs; grep -nx $name $D/jobs | head -n 1 | cut -d: -f1 > $D/answer.$$\n"
    "  case $mode in\n"
    "  lost) refuse 'Batch job submission failed: Socket timed out on send/recv operation';;\n"
    "  silent) exit 0;;\n"
    "  says*) echo \"${mode#says }\"; exit 0;;\n"
    "  dead) exit 137;;\n"
    "  die_after) kill -9 $PPID; exit 1;;\n"
    "  full) mkdir $D/root/runs/$name/job.json;;\n"
    "  esac\n"
    "  cat $D/answer.$$; rm $D/answer.$$;;\n"
    "squeue) echo squeue >> $D/asked; [ -e $D/queue ] && { cat $D/queue; exit; }\n"
    "  touch $D/jobs\n"
    "  if [ \"$name\" ]; then grep -nx $name $D/jobs | cut -d: -f1\n"
    "  else n=0; S=$(cat $D/state 2>/dev/null || echo PENDING)\n"
    "    while read -r job; do n=$((n + 1))\n"
    "      echo \"$n^$n^$S^Resources^N/A^N/A^0^0^^$job^\" | tr ^ '\\037'; done < $D/jobs\n"
    "  fi;;\n"
    "sacct) echo sacct >> $D/asked; [ -e $D/past ] && { cat $D/past; exit; }\n"
    "  echo 'Slurm accounting storage is disabled' >&2; exit 1;;\n"
    "scancel) echo \"$*\" >> $D/scancel; mode=$(cat $D/mode 2>/dev/null); rm -f $D/mode\n"
    "  case $mode in\n"
    "  moved*) echo ${mode#moved } > $D/state; refuse 'Kill job error on job id 1: Invalid job id specified';;\n"
    "  denied) refuse 'Kill job error on job id 1: Access/permission denied';;\n"
    "  esac\n"
    "  echo CANCELLED > $D/state;;\n"
    "scontrol) [ -e $D/config ] && cat $D/config || exit 1;;\n"
    "sinfo) case $* in *%R*) printf 'main\\nlow\\nmain\\n';; *%G*) printf 'gpu:2\\n(null)\\n';; esac;;\n"
    "esac\n";

/* ssh without a network: what is to run there runs here. */
static const char stand_in_ssh[] = "#!/bin/sh\n"
                                   "while [ $# -gt 0 ]; do\n"
                                   "  case $1 in -o) shift 2;; --) shift; break;; -*) shift;; *) break;; esac\n"
                                   "done\n"
                                   "shift\n"
                                   "exec sh -c \"$*\"\n";

static char *home;
static struct platform *platform;

static char *file(const char *name)
{
    return act_path_join(home, name);
}

static void slurm_submit_test_write_file(const char *name, const char *text, mode_t mode)
{
    ACT_AUTOFREE char *path = file(name);

    assert_ok(act_file_write(path, text, strlen(text), mode, &err), err);
}

/* '^' stands for the separator; text is changed. */
static void slurm_submit_test_write_rows(const char *name, char *text)
{
    for (char *c = text; *c; c++)
        *c = *c == '^' ? '\x1f' : *c;
    slurm_submit_test_write_file(name, text, 0600);
}

static char *slurm_submit_test_read_file(const char *name)
{
    ACT_AUTOFREE char *path = file(name);
    char *text = NULL;

    return act_file_read(path, 1 << 20, &text, NULL, NULL) == 0 ? text : act_strdup("");
}

static char *slurm_submit_test_run_file(const char *id, const char *name)
{
    ACT_AUTOFREE char *path = act_sprintf("root/runs/%s/%s", id, name);

    return slurm_submit_test_read_file(path);
}

static struct run_spec slurm_submit_test_make_spec(void)
{
    struct run_spec spec = {.id = run_id_new("x", act_now_unix_s()),
                            .experiment = act_strdup("x"),
                            .cluster = act_strdup("c"),
                            .platform = act_strdup("slurm"),
                            .created_unix_s = act_now_unix_s(),
                            .nodes = 1,
                            .procs_per_node = 4,
                            .gpus_per_node = 4};

    act_strv_push(&spec.argv, "true");
    return spec;
}

static int slurm_submit_test_submit(const struct run_spec *spec, struct act_error *e)
{
    return platform_submit(platform, &(struct platform_submission){.spec = spec}, e);
}

/* In a process of its own; returns its status as from waitpid(). */
static int submit_in_child(const struct run_spec *spec)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(slurm_submit_test_submit(spec, &err) == 0 ? 0 : 1);
    waitpid(pid, &status, 0);
    return status;
}

static struct run_status slurm_submit_test_status_of(const char *id)
{
    struct run_status status;

    assert_ok(platform_status(platform, &id, 1, &status, &err), err);
    return status;
}

static void assert_jobs(const struct run_spec *spec, const char *job)
{
    ACT_AUTOFREE char *jobs = slurm_submit_test_read_file("jobs");
    ACT_AUTOFREE char *line = act_sprintf("%s\n", spec->id);
    ACT_AUTOFREE char *text = slurm_submit_test_run_file(spec->id, RUN_FILE_JOB);

    assert_string_equal(jobs, line);
    assert_contains(text, job);
}

static int slurm_submit_test_open_platform(char *login)
{
    ACT_AUTOFREE char *root = file("root");
    struct slurm_keys keys = {.login = login, .root = root, .launcher = (char[]){"mpirun"}};
    struct config config = {.platform = (char[]){"slurm"},
                            .gpu_per_node = -1,
                            .num_gpu = -1,
                            .parts = &(struct config_part_values){&slurm_keys_part, &keys},
                            .n_parts = 1};

    return platform_open(NULL, &config, &platform, &err);
}

/* Slurm without jobs, and a client that knows nothing yet. */
static int slurm_submit_test_begin(void **state)
{
    static const char *const names[] = {"jobs", "mode", "state", "scancel", "past", "queue", "asked", "config"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        ACT_AUTOFREE char *path = file(names[i]);
        unlink(path);
    }
    return slurm_submit_test_open_platform(NULL);
}

/* The same behind a login node. */
static int begin_far(void **state)
{
    char login[] = "me@there";

    int rc = slurm_submit_test_begin(state);
    platform_free(platform);
    return rc < 0 ? rc : slurm_submit_test_open_platform(login);
}

static int slurm_submit_test_end(void **state)
{
    (void)state;
    platform_free(platform);
    return 0;
}

/* ---- one job */

TEST(test_one_job)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();

    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    assert_jobs(&spec, "\"1\"");
    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    assert_jobs(&spec, "\"1\"");
    struct run_status status = slurm_submit_test_status_of(spec.id);
    assert_int_equal(status.state, RUN_QUEUED);
    assert_contains(status.reason, "waits for free nodes (Resources)");
    ACT_AUTOFREE char *script = slurm_submit_test_read_file("script");
    assert_contains(script, "#!/bin/bash\nexport SLURM_EXPORT_ENV=ALL\nrun='");
    assert_contains(script, spec.id);
}

/* Before and after Slurm had the job; the next client goes on. */
TEST(test_killed)
{
    static const char *const modes[] = {"die_before", "die_after"};

    for (size_t i = 0; i < COUNT(modes); i++) {
        struct run_spec spec = slurm_submit_test_make_spec();
        slurm_submit_test_write_file("jobs", "", 0600);
        slurm_submit_test_write_file("mode", modes[i], 0600);
        assert_true(WIFSIGNALED(submit_in_child(&spec)));
        ACT_AUTOFREE char *none = slurm_submit_test_run_file(spec.id, RUN_FILE_JOB);
        assert_string_equal(none, "");
        assert_ok(slurm_submit_test_submit(&spec, &err), err);
        assert_jobs(&spec, "\"1\"");
        run_spec_release(&spec);
    }
}

/* Nobody submits it again, but somebody looks. */
TEST(test_killed_and_looked_at)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec(), other = slurm_submit_test_make_spec();

    slurm_submit_test_write_file("mode", "die_after", 0600);
    assert_true(WIFSIGNALED(submit_in_child(&spec)));
    assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_QUEUED);
    assert_jobs(&spec, "\"1\"");
    slurm_submit_test_write_file("mode", "die_before", 0600);
    assert_true(WIFSIGNALED(submit_in_child(&other)));
    struct run_status status = slurm_submit_test_status_of(other.id);
    assert_int_equal(status.state, RUN_QUEUED);
    assert_contains(status.reason, "handed to Slurm");
}

/* The run ends before any client has written down its job, which Slurm may have forgotten by then. */
TEST(test_killed_and_the_run_has_ended)
{
    static const struct {
        const char *queue, *job;
    } rows[] = {{"1\n", "\"1\""}, {"", ""}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();
        struct run_status status = {.state = RUN_COMPLETED, .failed_rank = -1, .attempt = 1, .started_unix_s = 1};
        ACT_AUTOFREE char *name = act_sprintf("root/runs/%s/" RUN_FILE_STATUS, spec.id);
        ACT_AUTOFREE char *path = file(name);
        slurm_submit_test_write_file("jobs", "", 0600);
        slurm_submit_test_write_file("mode", "die_after", 0600);
        assert_true(WIFSIGNALED(submit_in_child(&spec)));
        assert_ok(run_status_write(path, &status, &err), err);
        slurm_submit_test_write_file("queue", rows[i].queue, 0600);
        assert_ok(slurm_submit_test_submit(&spec, &err), err);
        assert_jobs(&spec, rows[i].job);
        assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_COMPLETED);
    }
}

TEST(test_lost_answers)
{
    static const char *const modes[] = {"lost", "nothing", "silent", "dead"};

    for (size_t i = 0; i < COUNT(modes); i++) {
        struct run_spec spec = slurm_submit_test_make_spec();
        slurm_submit_test_write_file("jobs", "", 0600);
        slurm_submit_test_write_file("mode", modes[i], 0600);
        assert_ok(slurm_submit_test_submit(&spec, &err), err);
        assert_jobs(&spec, "\"1\"");
        run_spec_release(&spec);
    }
}

/* What is no number of a job is none, whichever program prints it. */
TEST(test_numbers_that_are_none)
{
    static const char *const said[] = {"-1", "0", "4294967295", "99999999999999999999", "1 job", "+1"};

    for (size_t i = 0; i < COUNT(said); i++) {
        ACT_AUTOFREE char *mode = act_sprintf("says %s", said[i]), *past = act_sprintf("%s\n", said[i]);
        const char *const modes[] = {mode, "nothing"}; /* the second time Slurm has no job, and sacct says so */
        slurm_submit_test_write_file("past", past, 0600);
        for (size_t k = 0; k < COUNT(modes); k++) {
            struct run_spec spec = slurm_submit_test_make_spec();
            slurm_submit_test_write_file("jobs", "", 0600);
            slurm_submit_test_write_file("mode", modes[k], 0600);
            assert_ok(slurm_submit_test_submit(&spec, &err), err);
            assert_jobs(&spec, "\"1\"");
            run_spec_release(&spec);
        }
    }
}

/* The connection breaks, before and after Slurm had the job: what ends is the other side of it. */
TEST_IN(test_connection_lost, begin_far, slurm_submit_test_end)
{
    static const char *const modes[] = {"", "die_before", "die_after"};

    for (size_t i = 0; i < COUNT(modes); i++) {
        struct run_spec spec = slurm_submit_test_make_spec();
        slurm_submit_test_write_file("jobs", "", 0600);
        slurm_submit_test_write_file("mode", modes[i], 0600);
        assert_ok(slurm_submit_test_submit(&spec, &err), err);
        assert_jobs(&spec, "\"1\"");
        assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_QUEUED);
        run_spec_release(&spec);
    }
}

/* ---- no job */

TEST(test_refusals)
{
    static const struct {
        const char *mode;
        enum act_code code;
        const char *says, *hint;
    } rows[] = {
        {"refuse Invalid partition name specified", ACT_CONFIG, "Invalid partition name specified",
         "there are main, low; set slurm.partition"},
        {"refuse Requested node configuration is not available", ACT_NO_CAPACITY,
         "Requested node configuration is not available",
         "a node has at most 2 GPUs, and the run asks for 4 on each: set gpu_per_node to 2"},
        {"refuse Unable to contact slurm controller (connect failure)", ACT_TEMPORARY, "Unable to contact",
         "try again"},
        {"refuse Plugin says: no jobs on Saturdays", ACT_FAIL, "Plugin says: no jobs on Saturdays", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = slurm_submit_test_make_spec();
        slurm_submit_test_write_file("mode", rows[i].mode, 0600);
        assert_int_equal(slurm_submit_test_submit(&spec, &err), -(int)rows[i].code);
        assert_contains(act_error_text(&err), rows[i].says);
        assert_contains(act_error_text(&err), rows[i].hint);
        struct run_status status = slurm_submit_test_status_of(spec.id);
        assert_int_equal(status.state, RUN_FAILED);
        assert_contains(status.reason, "not submitted: ");
        assert_contains(status.reason, rows[i].says);
        ACT_AUTOFREE char *jobs = slurm_submit_test_read_file("jobs");
        assert_string_equal(jobs, "");
        assert_int_equal(slurm_submit_test_submit(&spec, &err), -ACT_FAIL); /* it stays as it is */
        assert_contains(act_error_text(&err), "was submitted before: not submitted");
        run_spec_release(&spec);
    }
}

/* Slurm has the job, and its number cannot be written down. */
TEST(test_not_written)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();

    slurm_submit_test_write_file("mode", "full", 0600);
    assert_true(slurm_submit_test_submit(&spec, &err) < 0);
    assert_contains(act_error_text(&err), "job.json");
    assert_contains(act_error_text(&err), "its job 1 was canceled");
    ACT_AUTOFREE char *told = slurm_submit_test_read_file("scancel");
    assert_string_equal(told, "1\n");
    assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_FAILED);
}

TEST(test_abort_waiting)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();
    bool was_final;

    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
    assert_false(was_final);
    ACT_AUTOFREE char *told = slurm_submit_test_read_file("scancel");
    assert_string_equal(told, "--state=PENDING 1\n");
    slurm_submit_test_write_file("jobs", "", 0600); /* Slurm forgets it, its end stays known */
    struct run_status status = slurm_submit_test_status_of(spec.id);
    assert_int_equal(status.state, RUN_CANCELED);
    assert_string_equal(status.reason, "aborted");
    assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
    assert_true(was_final);
}

/* ---- afterwards */

/* The file "abort" cannot be written: nobody waits for the agent. */
TEST(test_abort_full)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();
    bool was_final;

    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    slurm_submit_test_write_file("state", "RUNNING", 0600);
    ACT_AUTOFREE char *in_the_way = act_sprintf("%s/root/runs/%s/%s/x", home, spec.id, RUN_FILE_ABORT);
    assert_ok(act_mkdir_all(in_the_way, 0700, &err), err);
    assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
    ACT_AUTOFREE char *told = slurm_submit_test_read_file("scancel");
    assert_string_equal(told, "1\n");
    assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_CANCELED);
}

/* It starts between the look and the word; and a job of somebody else. */
TEST(test_abort_moves)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();
    bool was_final;

    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    slurm_submit_test_write_file("mode", "denied", 0600);
    assert_int_equal(platform_abort(platform, spec.id, &was_final, &err), -ACT_DENIED);
    slurm_submit_test_write_file("scancel", "", 0600);
    slurm_submit_test_write_file("mode", "moved RUNNING", 0600);
    assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
    assert_false(was_final);
    ACT_AUTOFREE char *told = slurm_submit_test_read_file("scancel");
    assert_string_equal(told, "--state=PENDING 1\n--batch --signal=USR2 1\n");
    assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_CANCELED);
}

/* ---- several runs */

/* The indexes of an array are below the site's MaxArraySize, and the ids of runs have room for 1000 of them. */
TEST(test_how_many_are_one_array)
{
    static const struct {
        const char *config;
        int most;
    } rows[] = {
        {"", 1},
        {"MaxArraySize            = 1001\nMaxBatchRequeue = 5\n", 1000},
        {"Configuration data as of x\nMaxArraySize = 4000001\n", 1000},
        {"MaxArraySize            = 5\n", 5},
        {"MaxArraySize            = 1\n", 1},
        {"MaxArraySize            = 0\n", 1}, /* no arrays there */
        {"MaxArraySize\n", 1},
    };

    assert_int_equal(platform_most_together(platform), 1); /* Slurm does not say */
    for (size_t i = 0; i < COUNT(rows); i++) {
        slurm_submit_test_write_file("config", rows[i].config, 0600);
        assert_int_equal(platform_most_together(platform), rows[i].most);
    }
}

/* ---- what Slurm is asked afterwards */

/* Slurm's queue has forgotten the job, its agent was killed: the accounting knows, and what it says is written down. */
TEST(test_accounting)
{
    ACT_AUTO(run_spec) spec = slurm_submit_test_make_spec();

    assert_ok(slurm_submit_test_submit(&spec, &err), err);
    ACT_AUTOFREE char *past =
        act_sprintf("1^CANCELLED by 0^0:15^2026-11-20T09:31:20^2026-11-20T09:32:20^n1^%s\n", spec.id);
    slurm_submit_test_write_rows("past", past);
    slurm_submit_test_write_file("jobs", "", 0600);
    slurm_submit_test_write_file("asked", "", 0600);
    struct run_status status = slurm_submit_test_status_of(spec.id);
    assert_int_equal(status.state, RUN_CANCELED);
    assert_string_equal(status.reason, "canceled by an administrator (uid 0)");
    assert_int_equal(status.ended_unix_s - status.started_unix_s, 60);
    ACT_AUTOFREE char *asked = slurm_submit_test_read_file("asked");
    assert_string_equal(asked, "squeue\nsacct\n");
    assert_int_equal(slurm_submit_test_status_of(spec.id).state, RUN_CANCELED);
    ACT_AUTOFREE char *again = slurm_submit_test_read_file("asked");
    assert_string_equal(again, asked); /* nobody is asked about a run that has ended */
}

/* Quickly: nothing here has to survive a power cut. */
static void slurm_submit_test_put(const char *dir, const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* 1,000 runs, 10,000 jobs: one call of squeue. Prints what it took. */
TEST(test_many)
{
    enum { RUNS = 1000, JOBS = 10000 };
    static char *ids[RUNS];
    static struct run_status status[RUNS];
    ACT_AUTO(act_buf) queue = {0};
    struct rusage before, after;

    for (int i = 0; i < JOBS; i++)
        act_buf_addf(&queue, "%d^%d^PENDING^Priority^N/A^N/A^0^0^^job%d^\n", i + 1, i + 1, i);
    slurm_submit_test_write_rows("queue", queue.data);
    for (int i = 0; i < RUNS; i++) {
        ids[i] = act_sprintf("x_1795290000_%08x", i);
        ACT_AUTOFREE char *dir = act_sprintf("%s/root/runs/%s", home, ids[i]);
        ACT_AUTOFREE char *job = act_sprintf("{\"job\": \"%d\"}", 1 + i * (JOBS / RUNS));
        assert_ok(act_mkdir_all(dir, 0700, &err), err);
        slurm_submit_test_put(dir, RUN_FILE_SPEC, "{}");
        slurm_submit_test_put(dir, RUN_FILE_STATUS, "{\"version\":1,\"state\":\"Queued\",\"attempt\":1}");
        slurm_submit_test_put(dir, RUN_FILE_JOB, job);
    }
    getrusage(RUSAGE_SELF, &before);
    clock_t from = clock();
    assert_ok(platform_status(platform, (const char *const *)ids, RUNS, status, &err), err);
    clock_t to = clock();
    getrusage(RUSAGE_SELF, &after);
    print_message("%d runs among %d jobs: %.1f ms, %ld KiB more memory\n", RUNS, JOBS,
                  (double)(to - from) * 1000 / CLOCKS_PER_SEC, after.ru_maxrss - before.ru_maxrss);
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(status[i].state, RUN_QUEUED);
        assert_contains(status[i].reason, "(Priority)");
        free(ids[i]);
    }
    ACT_AUTOFREE char *asked = slurm_submit_test_read_file("asked");
    assert_string_equal(asked, "squeue\n");
}

/* ---- all of it */

static int slurm_submit_test_make_world(void **state)
{
    static const char *const programs[] = {"sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol"};
    const char *tmp = getenv("TMPDIR");
    char self[PATH_MAX] = "";

    (void)state;
    home = act_sprintf("%s/act-slurm-test.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(home) || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(programs); i++) {
        ACT_AUTOFREE char *name = act_sprintf("bin/%s", programs[i]);
        slurm_submit_test_write_file(name, stand_in, 0755);
    }
    ACT_AUTOFREE char *ssh = file("ssh");
    slurm_submit_test_write_file("ssh", stand_in_ssh, 0755);
    setenv("ACT_SSH", ssh, 1);
    ACT_AUTOFREE char *dir = act_path_dirname(self);
    ACT_AUTOFREE char *path = act_sprintf("%s/bin:%s/../act:%s", home, dir, getenv("PATH"));
    setenv("PATH", path, 1);
    return 0;
}

static int slurm_submit_test_remove_world(void **state)
{
    (void)state;
    int rc = act_remove_tree(home, &err);
    free(home);
    return rc;
}

TEST_MAIN(slurm_submit_test_make_world, slurm_submit_test_remove_world)
