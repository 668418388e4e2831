/* platform_test.c - what every platform must do, over the public interface; then what only "local" can show:
 * locks, killed agents, a machine that is too small. Commands are small scripts.
 *
 * ACT_TEST_PLATFORM names the platform, "local" without it. A cluster has at least two nodes with four GPUs each and
 * shares the temporary folder with this machine: run_platform.py starts one. A service is the cluster "aml" of the
 * project around the current folder. What its nodes fetch is stored, and which rank failed is found out, by flow/, as
 * it is for users. */
#include "auth/services.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"
#include "flow/source/source.h"
#include "flow/submit/parts.h"
#include "package/package.h"
#include "platform/platform.h"
#include "platform/slurm/keys.h"
#include "platform/ssh/keys.h"
#include "proc/proc.h"
#include "run/run.h"
#include "store/store.h"

enum { GPUS = 4, MAX_NODES = 2 };

static char *home;       /* a temporary folder: ACT_HOME is below it */
static char *build_path; /* PATH with the agent in it */
static struct platform *platform;
static struct services services;
static struct flow flow; /* of a service: the platform is its */
static const struct world {
    const char *name;
    const char *root;        /* of the run folders, below home; NULL: there are none */
    const char *master_addr; /* of a run on one node (with has_pods), or on any; NULL: the first node's name */
    int nodes;
    long step_ms; /* between two looks at a state */
    bool is_service;
    bool has_pods; /* nodes with names and process ids of their own */
    bool is_sent;  /* packages are sent there, and checked when they come */
} worlds[] =
    {
        {"local", "act", "127.0.0.1", 1, 3, false, false, false},
        {"slurm", "shared", NULL, MAX_NODES, 50, false, false, false},
        {"ssh", "shared", "127.0.0.1", 1, 20, false, false, true},
        {"azureml", NULL, "127.0.0.1", MAX_NODES, 20, true, false, false},
        {"kubernetes", NULL, "127.0.0.1", MAX_NODES, 20, true, true, false},
},
  *world;

/* ---- helpers ---- */

static char *temp_file(const char *name)
{
    return act_path_join(home, name);
}

/* The configuration outlives the platform that is opened with it, until another one is opened. */
static int conform_platform_open(struct platform **out, struct act_error *e)
{
    static char *root, *name, mpirun[] = "mpirun";
    static char *hosts[1];
    static struct slurm_keys slurm;
    static struct ssh_keys ssh;
    static struct config_part_values parts[] = {{&slurm_keys_part, &slurm}, {&ssh_keys_part, &ssh}};
    static struct config config;

    free(root);
    free(name);
    root = world->root ? temp_file(world->root) : NULL;
    name = act_strdup(world->name);
    hosts[0] = getenv("ACT_TEST_HOST");
    slurm = (struct slurm_keys){.root = root, .launcher = mpirun};
    ssh = (struct ssh_keys){.root = root, .hosts = {.v = hosts, .n = 1}};
    config =
        (struct config){.platform = name, .gpu_per_node = -1, .num_gpu = -1, .parts = parts, .n_parts = COUNT(parts)};
    return platform_open(&services, world->is_service ? flow.config : &config, out, e);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Under a service, mpirun lets the last second of this pass at every end that it makes: no test needs the usual ten. */
#define SERVICE_GRACE_S "2"

/* On nodes of the platform, procs processes on each. */
static struct run_spec make_wide_spec(int nodes, int procs, const char *const *argv)
{
    struct run_spec spec = {
        .id = run_id_new("conformance", act_now_unix_s()),
        .experiment = act_strdup("conformance"),
        .cluster = act_strdup("test"),
        .platform = act_strdup(platform_row(platform)->kind->name),
        .is_here = platform_row(platform)->about.is_here,
        .agent_mounts = platform_row(platform)->about.agent_mounts,
        .created_unix_s = act_now_unix_s(),
        .nodes = nodes,
        .procs_per_node = procs,
        .gpus_per_node = procs,
    };

    for (; *argv; argv++)
        act_strv_push(&spec.argv, *argv);
    if (world->is_service)
        run_spec_add_env(&spec, "ACT_ABORT_GRACE", SERVICE_GRACE_S);
    return spec;
}

static struct run_spec conform_platform_make_spec(int procs, const char *const *argv)
{
    return make_wide_spec(1, procs, argv);
}

static struct run_spec wide_shell_spec(int nodes, int procs, const char *script)
{
    return make_wide_spec(nodes, procs, (const char *const[]){"/bin/sh", "-c", script, NULL});
}

static struct run_spec shell_spec(int procs, const char *script)
{
    return wide_shell_spec(1, procs, script);
}

/* What a platform needs from the client before it can start the run. */
static void store_files(struct run_spec *spec, const char *package, struct flow_job_files *out)
{
    *out = (struct flow_job_files){0};
    if (platform_row(platform)->about.nodes_fetch)
        assert_ok(flow_store_job(&flow, spec, package, out, &err), err);
}

static int conform_platform_hand_over(struct platform *to, const struct run_spec *spec, const char *package,
                                      const struct flow_job_files *files, struct act_error *e)
{
    struct platform_submission submission = {
        .spec = spec, .package = package, .agent_key = files->agent_key, .spec_key = files->spec_key};

    return platform_submit(to, &submission, e);
}

static void conform_platform_submit(struct run_spec *spec, const char *package)
{
    ACT_AUTO(flow_job_files) files = {0};

    store_files(spec, package, &files);
    assert_ok(conform_platform_hand_over(platform, spec, package, &files, &err), err);
}

/* Which rank failed first is in the logs only, where a service started the ranks. */
static void add_last_words(const char *id, struct run_status *status)
{
    struct flow_run run = {.row = {.id = act_strdup(id),
                                   .platform = act_strdup(flow.config->platform),
                                   .cluster = act_strdup(flow.config->cluster),
                                   .project = act_strdup(flow.config->project_root)}};

    assert_ok(platform_spec(platform, id, &run.spec, &err), err);
    flow_add_last_words(&flow, &run, status);
    flow_run_release(&run);
}

static struct run_status conform_platform_status_of(const char *id)
{
    struct run_status status;

    assert_ok(platform_status(platform, &id, 1, &status, &err), err);
    if (!platform_row(platform)->about.keeps_record && status.state == RUN_FAILED)
        add_last_words(id, &status);
    return status;
}

/* Waits for a state (or any final one); a run that hangs fails the test. */
static struct run_status wait_state(const char *id, enum run_state state)
{
    for (long ms = 0; ms < PATIENCE_MS; ms += world->step_ms) {
        struct run_status status = conform_platform_status_of(id);
        if (status.state == state || run_state_is_final(status.state))
            return status;
        pause_ms(world->step_ms);
    }
    fail_msg("run '%s' hangs: %s", id, conform_platform_status_of(id).reason);
    return (struct run_status){0};
}

static struct run_status conform_platform_wait_end(const char *id)
{
    return wait_state(id, RUN_COMPLETED);
}

/* Waits until there is a reason why it is in this state. */
static struct run_status wait_reason(const char *id, enum run_state state)
{
    for (long ms = 0; ms < PATIENCE_MS; ms += world->step_ms) {
        struct run_status status = conform_platform_status_of(id);
        if (run_state_is_final(status.state) || (status.state == state && status.reason[0]))
            return status;
        pause_ms(world->step_ms);
    }
    fail_msg("run '%s' says nothing: %s", id, run_state_name(conform_platform_status_of(id).state));
    return (struct run_status){0};
}

static int conform_platform_get_log(const char *id, const char *name, uint64_t offset, void *data, size_t len,
                                    size_t *got, struct act_error *e)
{
    struct store *store = platform_open_logs(platform, id, false);
    struct store_call call = {.op = STORE_GET, .key = name, .get = {.offset = offset, .sink = data, .sink_cap = len}};
    int rc = store_do(store, &call, e);

    *got = call.get.got;
    store_call_release(&call);
    store_free(store);
    return rc;
}

/* The page is in call. */
static int conform_platform_list_logs(const char *id, struct store_call *call, struct act_error *e)
{
    struct store *store = platform_open_logs(platform, id, false);

    *call = (struct store_call){.op = STORE_LIST, .key = ""};
    int rc = store_do(store, call, e);
    store_free(store);
    return rc;
}

static char *conform_platform_read_log(const char *id, const char *name)
{
    enum { LOG_MAX = 1 << 20 };
    char *text = act_calloc(1, LOG_MAX + 1);
    size_t got;

    assert_ok(conform_platform_get_log(id, name, 0, text, LOG_MAX, &got, &err), err);
    return text;
}

/* What the platform calls the log of a rank; NULL: it has none yet. New string. */
static char *rank_log_name(const char *id, int rank)
{
    ACT_AUTO(store_call) call = {0};
    int rc = conform_platform_list_logs(id, &call, &err);

    assert_true(rc == 0 || rc == -ACT_NOT_FOUND);
    const struct store_entry *log = flow_find_rank_log(&call.list.page, "", rank);
    char *name = log ? act_strdup(log->key) : NULL;
    return name;
}

static char *rank_log(const char *id, int rank)
{
    ACT_AUTOFREE char *name = rank_log_name(id, rank);

    if (!name)
        fail_msg("run '%s' has no log of rank %d", id, rank);
    return conform_platform_read_log(id, name);
}

/* Waits until the rank's log holds the text; returns the log's name. */
static char *wait_rank_log(const char *id, int rank, const char *part)
{
    for (long ms = 0; ms < PATIENCE_MS; ms += world->step_ms) {
        char *name = rank_log_name(id, rank);
        ACT_AUTOFREE char *text = name ? conform_platform_read_log(id, name) : act_strdup("");
        if (strstr(text, part))
            return name;
        free(name);
        pause_ms(world->step_ms);
    }
    fail_msg("rank %d of '%s' does not say: %s", rank, id, part);
    return NULL;
}

static void assert_state(const struct run_status *status, enum run_state state)
{
    if (status->state != state)
        fail_msg("%s instead of %s: %s", run_state_name(status->state), run_state_name(state), status->reason);
}

/* Submits, waits, checks the state and the exit status; returns the status. */
static struct run_status run_to_end(struct run_spec *spec, const char *package, enum run_state state, int exit_status)
{
    conform_platform_submit(spec, package);
    struct run_status status = conform_platform_wait_end(spec->id);
    assert_state(&status, state);
    assert_int_equal(status.exit_status, exit_status);
    return status;
}

static char *conform_platform_run_file(const char *id, const char *name)
{
    return act_sprintf("%s/%s/runs/%s/%s", home, world->root, id, name);
}

/* Waits until the file has at least that many lines; returns its text. */
static char *wait_lines(const char *path, int lines)
{
    enum { STEP_MS = 3 };

    for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
        char *text = NULL;
        int found = 0;
        if (act_file_read(path, 1 << 20, &text, NULL, NULL) == 0)
            for (const char *c = text; *c; c++)
                found += *c == '\n';
        if (found >= lines)
            return text;
        free(text);
        pause_ms(STEP_MS);
    }
    fail_msg("'%s' does not get %d lines", path, lines);
    return NULL;
}

static bool conform_platform_is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* A zombie that its new parent has not collected yet counts as gone. */
static bool is_zombie(pid_t pid)
{
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/stat", (int)pid);
    ACT_AUTOFREE char *text = NULL;

    if (act_file_read(path, 4096, &text, NULL, NULL) < 0)
        return true;
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'Z';
}

static void assert_all_gone(const char *pids)
{
    enum { STEP_MS = 3 };

    for (const char *line = pids; *line; line = strchr(line, '\n') + 1) {
        pid_t pid = atoi(line);
        assert_true(pid > 1);
        int ms = 0;
        while (ms < PATIENCE_MS && !conform_platform_is_gone(pid) && !is_zombie(pid)) {
            pause_ms(STEP_MS);
            ms += STEP_MS;
        }
        if (ms >= PATIENCE_MS)
            fail_msg("process %d is left", (int)pid);
    }
}

/* Runs Python, which makes the package: z is an open zipfile.ZipFile, add(name, text, mode) is there. */
static char *conform_platform_make_package(struct run_spec *spec, const char *python)
{
    char *path = temp_file("package.zip");
    ACT_AUTOFREE char *script =
        act_sprintf("import zipfile, stat, sys\n"
                    "z = zipfile.ZipFile(sys.argv[1], 'w')\n"
                    "def add(name, text='', mode=0o100644):\n"
                    "    i = zipfile.ZipInfo(name); i.create_system = 3; i.external_attr = mode << 16\n"
                    "    i.compress_type = zipfile.ZIP_DEFLATED; z.writestr(i, text)\n"
                    "%s\nz.close()\n",
                    python);
    const char *const argv[] = {"/usr/bin/python3", "-c", script, path, NULL};
    ACT_AUTO(act_strv) words = {0};
    int status;

    unlink(path);
    for (size_t i = 0; argv[i]; i++)
        act_strv_push(&words, argv[i]);
    assert_ok(proc_run(words.v, PATIENCE_S, 1 << 16, NULL, &status, &err), err);
    assert_int_equal(status, 0);
    assert_ok(act_sha256_file(path, spec->package_sha256, &err), err);
    return path;
}

/* ---- every platform ---- */

TEST(test_completes)
{
    ACT_AUTO(run_spec) spec = conform_platform_make_spec(1, (const char *const[]){"echo", "hello", NULL}), again = {0};
    ACT_AUTO(act_strv) ids = {0};

    struct run_status status = run_to_end(&spec, NULL, RUN_COMPLETED, 0);
    assert_int_equal(status.failed_rank, -1);
    assert_true(status.started_unix_s > 0 && status.ended_unix_s >= status.started_unix_s);
    assert_string_equal(status.reason, "");
    ACT_AUTOFREE char *log = rank_log(spec.id, 0);
    assert_string_equal(log, "hello\n");
    assert_ok(platform_spec(platform, spec.id, &again, &err), err);
    assert_string_equal(again.argv.v[1], "hello");
    assert_ok(platform_list(platform, &ids, &err), err);
    assert_true(act_strv_has(&ids, spec.id));
}

TEST(test_failures)
{
    static const struct {
        int nodes, procs;
        const char *script;
        int exit_status, failed_rank;
        const char *reason;
    } rows[] = {
        {1, 1, "exit 3", 3, 0, "rank 0 exited with status 3"},
        {1, 1, "kill -KILL $$", 137, 0, "rank 0 was killed by signal 9 (Killed)"},
        {1, 1, "kill -SEGV $$", 139, 0, "rank 0 was killed by signal 11"},
        {1, 2, "[ $RANK = 1 ] && exit 5; exec sleep 1000", 5, 1, "rank 1 exited with status 5"},
        {1, 2, "[ $RANK = 0 ] && kill -KILL $$; exec sleep 1000", 137, 0, "rank 0 was killed by signal 9 (Killed)"},
        {1, 4, "[ $RANK = 2 ] && exit 1; trap 'exit 0' TERM; sleep 1000 & wait", 1, 2, "rank 2 exited with status 1"},
        {2, 2, "[ $RANK = 3 ] && exit 6; exec sleep 1000", 6, 3, "rank 3 exited with status 6"},
        {2, 2, "[ $RANK = 2 ] && kill -KILL $$; trap '' TERM; sleep 1000 & wait", 137, 2,
         "rank 2 was killed by signal 9 (Killed)"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].nodes > world->nodes)
            continue;
        struct run_spec spec = wide_shell_spec(rows[i].nodes, rows[i].procs, rows[i].script);
        struct run_status status = run_to_end(&spec, NULL, RUN_FAILED, rows[i].exit_status);
        assert_int_equal(status.failed_rank, rows[i].failed_rank);
        assert_contains(status.reason, rows[i].reason);
        run_spec_release(&spec);
    }
}

TEST(test_cannot_start)
{
    ACT_AUTO(run_spec) missing = conform_platform_make_spec(1, (const char *const[]){"no-such-command-xyz", NULL});
    ACT_AUTO(run_spec) in_code = conform_platform_make_spec(1, (const char *const[]){"run.sh", NULL});
    ACT_AUTO(run_spec) no_mode = conform_platform_make_spec(1, (const char *const[]){"./run.sh", NULL});

    struct run_status status = run_to_end(&missing, NULL, RUN_FAILED, 127);
    assert_contains(status.reason, "cannot start 'no-such-command-xyz': No such file or directory");
    ACT_AUTOFREE char *log = rank_log(missing.id, 0);
    assert_contains(log, "cannot start 'no-such-command-xyz'");

    ACT_AUTOFREE char *zip = conform_platform_make_package(&in_code, "add('run.sh', 'echo hi')");
    status = run_to_end(&in_code, zip, RUN_FAILED, 127);
    assert_contains(status.reason, "write './' before it");
    ACT_AUTOFREE char *again = conform_platform_make_package(&no_mode, "add('run.sh', 'echo hi')");
    status = run_to_end(&no_mode, again, RUN_FAILED, 126);
    assert_contains(status.reason, "Permission denied");
}

/* Every rank prints exactly what was given: length and bytes of every argument. */
TEST(test_awkward_arguments)
{
    static const char *const words[] = {
        "",
        " ",
        "a b",
        "tab\there",
        "line\nbreak",
        "\n",
        "'",
        "\"",
        "\\",
        "$HOME",
        "${X}",
        "$(id)",
        "`id`",
        "*",
        "?",
        "[a-z]",
        "~",
        "-n",
        "--",
        "--help",
        "a=b",
        "|&;<>()",
        "#no",
        "!!",
        "{a,b}",
        "%s%n",
        "\xc3\xa4\xe2\x82\xac",
        "\xff\xfe\x80",
        "\x01\x1b[31m",
        "it's \"$1\"\r\n",
        "end\\",
    };
    static const char *const print[] = {"/usr/bin/python3", "-c",
                                        "import sys, os\n"
                                        "w = [os.fsencode(a) for a in sys.argv[1:]]\n"
                                        "os.write(1, b''.join(b'%d:' % len(a) + a + b'\\n' for a in w))",
                                        NULL};
    ACT_AUTO(act_buf) expected = {0};

    assert_int_equal(COUNT(words), 31);
    for (size_t i = 0; i < COUNT(words); i++)
        act_buf_addf(&expected, "%zu:%s\n", strlen(words[i]), words[i]);
    for (int nodes = 1; nodes <= world->nodes; nodes++) {
        struct run_spec spec = make_wide_spec(nodes, 2, print);
        for (size_t i = 0; i < COUNT(words); i++)
            act_strv_push(&spec.argv, words[i]);
        run_to_end(&spec, NULL, RUN_COMPLETED, 0);
        for (int rank = 0; rank < 2 * nodes; rank++) {
            ACT_AUTOFREE char *log = rank_log(spec.id, rank);
            assert_string_equal(log, expected.data);
        }
        run_spec_release(&spec);
    }
}

/* The value of a variable in the output of env; NULL: not there. New string. */
static char *conform_platform_value_in(const char *log, const char *name)
{
    ACT_AUTOFREE char *start = act_sprintf("\n%s=", name);
    const char *found = strstr(log, start);

    if (!found)
        return NULL;
    found += strlen(start);
    return act_strndup(found, strcspn(found, "\n"));
}

static void assert_variable(const char *log, const char *name, const char *value)
{
    ACT_AUTOFREE char *found = conform_platform_value_in(log, name);

    if (!found || strcmp(found, value) != 0)
        fail_msg("%s is '%s' instead of '%s' in: %s", name, found ? found : "(not set)", value, log);
}

static void assert_number(const char *log, const char *name, int value)
{
    ACT_AUTOFREE char *text = act_sprintf("%d", value);

    assert_variable(log, name, text);
}

/* Secrets are masked in the agent's own words. */
static void assert_masked(const char *id)
{
    ACT_AUTO(store_call) call = {0};
    bool seen = false;

    assert_ok(conform_platform_list_logs(id, &call, &err), err);
    for (size_t i = 0; i < call.list.page.n; i++) {
        ACT_AUTOFREE char *text = conform_platform_read_log(id, call.list.page.v[i].key);
        assert_true(i == 0 || strcmp(call.list.page.v[i - 1].key, call.list.page.v[i].key) < 0);
        if (!act_starts_with(call.list.page.v[i].key, "system_logs/"))
            continue;
        assert_null(strstr(text, "hush-hush"));
        seen = seen || strstr(text, "MY_TOKEN=***");
    }
    assert_true(seen || world->is_service); /* whose logs are not the agent's */
}

static void conform_platform_check_environment(const struct run_spec *spec, int rank, const char *log,
                                               const char *master)
{
    static const char *const lines[] = {
        "\nMASTER_PORT=",          "\nAZ_BATCHAI_MPI_HOST_FILE=/",
        "\nAZ_BATCHAI_JOB_TEMP=/", "\nAZ_BATCHAI_STDOUTERR_DIR=/",
        "\nstdin=/dev/null\n",     "\ntemp is there\n",
        "\nto stderr\n",
    };
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"RANK", rank},
        {"LOCAL_RANK", rank % 2},
        {"NODE_RANK", rank / 2},
        {"WORLD_SIZE", 2 * spec->nodes},
        {"LOCAL_WORLD_SIZE", 2},
        {"OMPI_COMM_WORLD_SIZE", 2 * spec->nodes},
        {"AZ_BATCHAI_NUM_GPUS", 2},
        {"hosts", spec->nodes},
    };

    for (size_t i = 0; i < COUNT(lines); i++)
        assert_contains(log, lines[i]);
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_number(log, numbers[i].name, numbers[i].value);
    assert_variable(log, "ACT_RUN_ID", spec->id);
    assert_variable(log, "PLAIN", "a b $c");
    assert_variable(log, "MY_TOKEN", "hush-hush");
    assert_variable(log, "MASTER_ADDR", master);
    assert_variable(log, "AZ_BATCHAI_JOB_MASTER_NODE_IP", master);
}

TEST(test_environment)
{
    static const char script[] =
        "echo; env; echo stdin=$(readlink /proc/self/fd/0); test -d \"$AZ_BATCHAI_JOB_TEMP\" && "
        "echo temp is there; echo hosts=$(echo $AZ_BATCH_HOST_LIST | tr , '\\n' | grep -c .); "
        "echo first=$(cut -d' ' -f1 \"$AZ_BATCHAI_MPI_HOST_FILE\" | head -n1); echo to stderr >&2";

    for (int nodes = 1; nodes <= world->nodes; nodes++) {
        struct run_spec spec = wide_shell_spec(nodes, 2, script);
        run_spec_add_env(&spec, "PLAIN", "a b $c");
        run_spec_add_env(&spec, "MY_TOKEN", "hush-hush");
        run_to_end(&spec, NULL, RUN_COMPLETED, 0);
        ACT_AUTOFREE char *zero = rank_log(spec.id, 0);
        ACT_AUTOFREE char *first = conform_platform_value_in(zero, "first");
        for (int rank = 0; rank < 2 * nodes; rank++) {
            ACT_AUTOFREE char *log = rank_log(spec.id, rank);
            bool named = !world->master_addr || (world->has_pods && nodes > 1);
            conform_platform_check_environment(&spec, rank, log, named ? first : world->master_addr);
        }
        assert_masked(spec.id);
        run_spec_release(&spec);
    }
}

/* A folder store, which the nodes see where it is; a service's are the cluster's own. */
static void map_data(struct run_spec *spec, const char *root, const char *store)
{
    spec->folders = act_calloc(1, sizeof(*spec->folders));
    spec->n_folders = 1;
    spec->folders[0] = (struct run_folder){.name = act_strdup("data"), .mode = RUN_FOLDER_RW_MOUNT};
    if (platform_row(platform)->about.nodes_fetch) {
        spec->folders[0].store = act_strdup("blob");
        spec->folders[0].path = act_strdup(flow.config->folders[0].path);
        return;
    }
    spec->folders[0].store = act_sprintf("folder:%s", root);
    spec->folders[0].path = act_strdup("data");
    spec->folders[0].link = act_strdup(store);
}

/* What is in the store of the mapped folder. New string. */
static char *read_data(const char *folder, const char *name)
{
    bool here = !platform_row(platform)->about.nodes_fetch;
    ACT_AUTOFREE char *path = act_path_join(here ? folder : flow.config->folders[0].path, name);
    struct store *store = NULL;
    char *text = NULL;

    if (here) {
        assert_ok(act_file_read(path, 100, &text, NULL, &err), err);
        return text;
    }
    assert_ok(flow_store(&flow, &flow.config->folders[0], &store, &err), err);
    assert_ok(flow_get_text(store, path, &text, &err), err);
    store_free(store);
    return text;
}

TEST(test_code_and_folders)
{
    ACT_AUTOFREE char *root = temp_file("store");
    ACT_AUTOFREE char *store = temp_file("store/data");
    struct run_spec spec = shell_spec(
        2, "cat sub/file.txt; readlink link; ls -l run.sh | cut -c1-10; ls -ld empty | cut -c1-10; ./run.sh; "
           "cat compiled; readlink data; [ $RANK = 1 ] || echo new > data/made");

    assert_ok(act_mkdir_all(root, 0755, &err), err);
    map_data(&spec, root, store);
    spec.compile_args = act_strdup("one 'two three'");
    ACT_AUTOFREE char *zip =
        conform_platform_make_package(&spec, "add('sub/file.txt', 'content\\n')\n"
                                             "add('link', 'sub/file.txt', 0o120777)\n"
                                             "add('run.sh', '#!/bin/sh\\necho runs in $(pwd)\\n', 0o100755)\n"
                                             "add('empty/', '', 0o40750)\n"
                                             "add('data/old', 'gives way')\n"
                                             "add('compile.aml.sh', 'printf \"%s.\" \"$@\" >> compiled')");
    run_to_end(&spec, zip, RUN_COMPLETED, 0);
    ACT_AUTOFREE char *log = rank_log(spec.id, 0);
    ACT_AUTOFREE char *expected =
        act_sprintf("one.two three.%s",
                    platform_row(platform)->about.nodes_fetch ? "/" : store); /* compiled once, not for each rank */
    assert_contains(log, "content\nsub/file.txt\n-rwxr-xr-x\ndrwxr-x---\nruns in /");
    assert_contains(log, expected);
    ACT_AUTOFREE char *text = read_data(store, "made");
    assert_string_equal(text, "new\n");
    run_spec_release(&spec);
}

/* The code is unpacked and compiled once on each node, however many ranks it has. */
TEST(test_prepared_once_on_each_node)
{
    ACT_AUTOFREE char *count = temp_file("prepared");
    ACT_AUTOFREE char *python = act_sprintf("add('compile.aml.sh', 'echo once >> %s; echo once >> mine')", count);

    for (int nodes = 1; nodes <= world->nodes; nodes++) {
        struct run_spec spec = wide_shell_spec(nodes, 2, "cat mine");
        ACT_AUTOFREE char *text = NULL;
        ACT_AUTOFREE char *zip = conform_platform_make_package(&spec, python);
        unlink(count);
        run_to_end(&spec, zip, RUN_COMPLETED, 0);
        for (int rank = 0; rank < 2 * nodes; rank++) {
            ACT_AUTOFREE char *log = rank_log(spec.id, rank);
            assert_string_equal(log, "once\n");
        }
        assert_ok(act_file_read(count, 1000, &text, NULL, &err), err);
        assert_string_equal(text, nodes == 1 ? "once\n" : "once\nonce\n");
        run_spec_release(&spec);
    }
}

TEST(test_preparation_fails)
{
    static const struct {
        const char *package;
        int exit_status;
        const char *reason, *log;
    } rows[] = {
        {"add('compile.aml.sh', 'echo first\\necho no compiler here; exit 3')", 3,
         "compile.aml.sh ended with status 3: no compiler here", "first\nno compiler here\n"},
        {"add('../evil', 'x')", 125, "leads out of the target", "leads out of the target"},
        {"add('requirements.txt', '/no/such/wheel-1.0-py3-none-any.whl')", 1,
         "cannot make the environment from requirements.txt: ", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = shell_spec(2, "echo must not run");
        ACT_AUTOFREE char *zip = conform_platform_make_package(&spec, rows[i].package);
        struct run_status status = run_to_end(&spec, zip, RUN_FAILED, rows[i].exit_status);
        assert_contains(status.reason, "preparation failed: ");
        assert_contains(status.reason, rows[i].reason);
        assert_true(status.failed_rank >= 0);
        ACT_AUTOFREE char *log = rank_log(spec.id, status.failed_rank);
        assert_contains(log, rows[i].log);
        assert_null(strstr(log, "must not run"));
        run_spec_release(&spec);
    }

    struct run_spec spec = shell_spec(1, "echo must not run");
    ACT_AUTOFREE char *zip = conform_platform_make_package(&spec, "add('a', 'b')");
    memset(spec.package_sha256, '0', ACT_SHA256_HEX - 1);
    if (world->is_sent) {
        const struct platform_submission submission = {.spec = &spec, .package = zip};
        assert_int_equal(platform_submit(platform, &submission, &err), -ACT_TEMPORARY);
        assert_contains(act_error_text(&err), "did not arrive as it was sent");
    } else {
        struct run_status status = run_to_end(&spec, zip, RUN_FAILED, 125);
        assert_contains(status.reason, "its SHA-256 is ");
    }
    run_spec_release(&spec);
}

TEST(test_same_id_twice)
{
    ACT_AUTOFREE char *count = temp_file("count");
    ACT_AUTOFREE char *script = act_sprintf("echo started >> %s", count);
    ACT_AUTO(run_spec) spec = shell_spec(1, script);
    ACT_AUTO(flow_job_files) files = {0};
    pid_t children[6];

    unlink(count);
    store_files(&spec, NULL, &files);
    for (size_t i = 0; i < COUNT(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct platform *own; /* connections cannot be shared */
            int rc = conform_platform_open(&own, &err);
            _exit(rc == 0 && conform_platform_hand_over(own, &spec, NULL, &files, &err) == 0 ? 0 : 1);
        }
    }
    for (size_t i = 0; i < COUNT(children); i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    struct run_status status = conform_platform_wait_end(spec.id);
    assert_state(&status, RUN_COMPLETED);
    conform_platform_submit(&spec, NULL); /* and after its end */
    status = conform_platform_wait_end(spec.id);
    assert_state(&status, RUN_COMPLETED);
    ACT_AUTOFREE char *text = wait_lines(count, 1);
    assert_string_equal(text, "started\n");
}

TEST(test_abort)
{
    static const struct {
        int nodes, procs;
        const char *script;
    } rows[] = {
        {1, 1, "echo up; exec sleep 1000"}, {1, 1, "trap '' TERM; echo up; while :; do sleep 1000; done"},
        {1, 2, "echo up; exec sleep 1000"}, {1, 2, "trap 'exit 0' TERM; echo up; sleep 1000 & wait"},
        {2, 2, "echo up; exec sleep 1000"},
    };
    bool was_final;

    setenv("ACT_ABORT_GRACE", "1", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].nodes > world->nodes)
            continue;
        struct run_spec spec = wide_shell_spec(rows[i].nodes, rows[i].procs, rows[i].script);
        conform_platform_submit(&spec, NULL);
        struct run_status status = wait_state(spec.id, RUN_RUNNING);
        assert_state(&status, RUN_RUNNING);
        for (int rank = 0; rank < rows[i].nodes * rows[i].procs; rank++)
            free(wait_rank_log(spec.id, rank, "up\n"));
        assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
        assert_false(was_final);
        status = conform_platform_wait_end(spec.id);
        assert_state(&status, RUN_CANCELED);
        assert_true(status.ended_unix_s > 0);
        assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
        assert_true(was_final);
        run_spec_release(&spec);
    }
    unsetenv("ACT_ABORT_GRACE");
    assert_int_equal(platform_abort(platform, "no-such_1_00000000", &was_final, &err), -ACT_NOT_FOUND);
}

/* Right behind the submission, when nothing has started yet. */
TEST(test_abort_at_once)
{
    bool was_final;

    for (int i = 0; i < 10; i++) {
        struct run_spec spec = shell_spec(1, "exec sleep 1000");
        conform_platform_submit(&spec, NULL);
        assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
        struct run_status status = conform_platform_wait_end(spec.id);
        assert_state(&status, RUN_CANCELED);
        run_spec_release(&spec);
    }
}

/* A run that waits for what another one holds. */
TEST(test_abort_while_queued)
{
    ACT_AUTO(run_spec) first = wide_shell_spec(world->nodes, 1, "exec sleep 1000");
    ACT_AUTO(run_spec) second = wide_shell_spec(world->nodes, 1, "echo must not run");
    ACT_AUTOFREE char *log = run_rank_log(0);
    bool was_final;
    char byte;
    size_t got;

    first.gpus_per_node = second.gpus_per_node = GPUS;
    conform_platform_submit(&first, NULL);
    struct run_status status = wait_state(first.id, RUN_RUNNING);
    assert_state(&status, RUN_RUNNING);
    conform_platform_submit(&second, NULL);
    status = wait_reason(second.id, RUN_QUEUED);
    assert_state(&status, RUN_QUEUED);
    assert_int_equal(status.started_unix_s, 0);
    assert_ok(platform_abort(platform, second.id, &was_final, &err), err);
    assert_false(was_final);
    status = conform_platform_wait_end(second.id);
    assert_state(&status, RUN_CANCELED);
    assert_int_equal(conform_platform_get_log(second.id, log, 0, &byte, 1, &got, &err), -ACT_NOT_FOUND);
    status = conform_platform_status_of(first.id);
    assert_state(&status, RUN_RUNNING);
    assert_ok(platform_abort(platform, first.id, &was_final, &err), err);
    status = conform_platform_wait_end(first.id);
    assert_state(&status, RUN_CANCELED);
}

/* Submits a run that needs the others, up to NULL. */
static struct run_spec submit_after(bool any_end, const char *const *others)
{
    struct run_spec spec = shell_spec(1, "exit 0");

    for (; *others; others++)
        act_strv_push(&spec.needs, *others);
    spec.needs_any = any_end;
    conform_platform_submit(&spec, NULL);
    return spec;
}

/* Down the chain of those that follow, with a reason that names the one before. */
TEST(test_runs_after_others)
{
    bool was_final;

    if (!platform_row(platform)->about.runs_after)
        skip(); /* which frees nothing */
    ACT_AUTO(run_spec) first = shell_spec(1, "exec sleep 1000");
    conform_platform_submit(&first, NULL);
    struct run_status status = wait_state(first.id, RUN_RUNNING);
    assert_state(&status, RUN_RUNNING);
    ACT_AUTO(run_spec) second = submit_after(false, (const char *const[]){first.id, NULL});
    ACT_AUTO(run_spec) third = submit_after(false, (const char *const[]){second.id, NULL});
    ACT_AUTO(run_spec) fourth = submit_after(true, (const char *const[]){first.id, NULL});
    status = wait_reason(second.id, RUN_QUEUED);
    assert_state(&status, RUN_QUEUED);
    assert_non_null(strstr(status.reason, first.id));
    assert_ok(platform_abort(platform, first.id, &was_final, &err), err);
    status = conform_platform_wait_end(second.id);
    assert_state(&status, RUN_CANCELED);
    assert_non_null(strstr(status.reason, first.id));
    assert_int_equal(status.started_unix_s, 0);
    status = conform_platform_wait_end(third.id);
    assert_state(&status, RUN_CANCELED);
    assert_non_null(strstr(status.reason, second.id));
    status = conform_platform_wait_end(fourth.id);
    assert_state(&status, RUN_COMPLETED);
    ACT_AUTO(run_spec) fifth = submit_after(false, (const char *const[]){fourth.id, NULL});
    status = conform_platform_wait_end(fifth.id);
    assert_state(&status, RUN_COMPLETED);
}

/* The log of a rank is there while it runs, on whichever node. */
TEST(test_logs_grow)
{
    ACT_AUTOFREE char *gate = temp_file("gate");
    ACT_AUTOFREE char *script = act_sprintf("echo first; while [ ! -e %s ]; do sleep 0.01; done; echo second", gate);
    ACT_AUTO(run_spec) spec = wide_shell_spec(world->nodes, 2, script);
    char text[64] = "";
    size_t got = 0;

    unlink(gate);
    conform_platform_submit(&spec, NULL);
    ACT_AUTOFREE char *name = wait_rank_log(spec.id, world->nodes * 2 - 1, "first\n");
    assert_int_equal(conform_platform_status_of(spec.id).state, RUN_RUNNING);
    close(open(gate, O_CREAT | O_WRONLY, 0600));
    conform_platform_wait_end(spec.id);
    assert_ok(conform_platform_get_log(spec.id, name, 6, text, sizeof(text), &got, &err), err);
    assert_int_equal(got, 7);
    assert_memory_equal(text, "second\n", 7);
    assert_ok(conform_platform_get_log(spec.id, name, 13, text, sizeof(text), &got, &err), err);
    assert_int_equal(got, 0);

    static const char *const bad[] = {"user_logs/none.txt", "../run.json",   "user_logs/../run.json",
                                      "/etc/passwd",        "run.json",      "user_logs",
                                      "user_logs/",         "system_logs//x"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(conform_platform_get_log(spec.id, bad[i], 0, text, sizeof(text), &got, &err), -ACT_NOT_FOUND);
}

TEST(test_unknown_run)
{
    const char *ids[] = {"none_1700000000_0123abcd", "../../etc", ""};
    struct run_status status[COUNT(ids)];
    struct store_call call;
    struct run_spec spec;

    assert_ok(platform_status(platform, ids, COUNT(ids), status, &err), err);
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_int_equal(status[i].state, RUN_UNKNOWN);
        assert_int_equal(conform_platform_list_logs(ids[i], &call, &err), -ACT_NOT_FOUND);
        store_call_release(&call);
        assert_int_equal(platform_spec(platform, ids[i], &spec, &err), -ACT_NOT_FOUND);
    }
}

/* What a command leaves behind ends with the run: in the background, in a session of its own, deaf to TERM. */
TEST(test_leaves_nobody)
{
    if (world->has_pods) { /* nothing outlives the namespace of its processes */
        print_message("skipped: the ids of processes are those of a pod\n");
        skip();
    }
    ACT_AUTOFREE char *pids = temp_file("pids");
    int all = world->nodes * 2 * 2; /* two of each rank */
    ACT_AUTOFREE char *script =
        act_sprintf("(trap '' TERM; setsid sh -c 'echo $$ >> %s; exec sleep 1000' &) & sleep 1000 & echo $! >> "
                    "%s; until [ $(wc -l < %s) = %d ]; do sleep 0.01; done; exit 0",
                    pids, pids, pids, all);
    ACT_AUTO(run_spec) spec = wide_shell_spec(world->nodes, 2, script);

    unlink(pids);
    run_to_end(&spec, NULL, RUN_COMPLETED, 0);
    ACT_AUTOFREE char *text = wait_lines(pids, all);
    assert_all_gone(text);
}

TEST(test_kept_for_a_look)
{
    static const struct {
        const char *script, *reason;
        bool if_fail;
        enum run_state end;
    } rows[] = {
        {"exit 4", "kept after rank 0 exited with status 4", true, RUN_FAILED},
        {"exit 0", "kept after rank 0 exited with status 0", false, RUN_COMPLETED},
    };
    bool was_final;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = shell_spec(1, rows[i].script);
        spec.sleep_if_fail = rows[i].if_fail;
        spec.sleep_if_succeed = !rows[i].if_fail;
        conform_platform_submit(&spec, NULL);
        if (world->has_pods) { /* what the agent does not print nobody knows before the end */
            wait_state(spec.id, RUN_RUNNING);
        } else if (world->is_service) { /* it only sees that its process goes on */
            free(wait_rank_log(spec.id, 0, "kept for a look"));
        } else {
            struct run_status kept = wait_reason(spec.id, RUN_RUNNING);
            assert_string_equal(kept.reason, rows[i].reason);
        }
        struct run_status status = conform_platform_status_of(spec.id);
        assert_state(&status, RUN_RUNNING);
        assert_ok(platform_abort(platform, spec.id, &was_final, &err), err);
        status = conform_platform_wait_end(spec.id);
        assert_state(&status, world->is_service ? RUN_CANCELED : rows[i].end);
        run_spec_release(&spec);
    }
}

TEST(test_mpi_reduces)
{
    static const char *const reduce[] = {"/usr/bin/python3", "-c",
                                         "from mpi4py import MPI\n"
                                         "c = MPI.COMM_WORLD\n"
                                         "print(c.Get_size(), c.allreduce(c.Get_rank() + 20))",
                                         NULL};
    static const char *const sums[] = {"2 41\n", "4 86\n"};

    if (access("/usr/lib/python3/dist-packages/mpi4py", F_OK) < 0) {
        print_message("skipped: python3-mpi4py is not installed\n");
        skip();
    }
    for (int nodes = 1; nodes <= world->nodes; nodes++) {
        struct run_spec spec = make_wide_spec(nodes, 2, reduce);
        run_to_end(&spec, NULL, RUN_COMPLETED, 0);
        for (int rank = 0; rank < 2 * nodes; rank++) {
            ACT_AUTOFREE char *log = rank_log(spec.id, rank);
            assert_string_equal(log, sums[nodes - 1]);
        }
        run_spec_release(&spec);
    }
}

/* ---- local ---- */

TEST(test_local_limits)
{
    struct config config = {.platform = (char[]){"local"}, .gpu_per_node = 5, .num_gpu = -1};
    struct platform *small;
    struct platform_limits limits;
    ACT_AUTO(run_spec) spec = shell_spec(1, "exit 0");

    assert_ok(platform_limits(platform, &limits, &err), err);
    assert_int_equal(limits.gpu_per_node, 4);
    assert_int_equal(limits.max_nodes, 1);
    assert_ok(platform_open(&services, &config, &small, &err), err);
    assert_fails(platform_limits(small, &limits, &err), err, ACT_NO_CAPACITY,
                 "gpu_per_node is 5, and this machine has 4");
    platform_free(small);

    spec.gpus_per_node = spec.procs_per_node = 5;
    assert_int_equal(platform_submit(platform, &(struct platform_submission){.spec = &spec}, &err), -ACT_NO_CAPACITY);
    assert_contains(act_error_text(&err), "use at most -n 4");
    spec.gpus_per_node = spec.procs_per_node = 4;
    spec.nodes = 2;
    assert_int_equal(platform_submit(platform, &(struct platform_submission){.spec = &spec}, &err), -ACT_NO_CAPACITY);
    setenv("ACT_LOCAL_SLOTS", "many", 1);
    assert_int_equal(platform_open(&services, &config, &small, &err), -ACT_CONFIG);
    setenv("ACT_LOCAL_SLOTS", "4", 1);
    config.platform = (char[]){"moon"};
    assert_fails(platform_open(&services, &config, &small, &err), err, ACT_CONFIG, "use -c local");
}

TEST(test_local_refuses_mounts_without_a_tool)
{
    ACT_AUTO(run_spec) spec = shell_spec(1, "exit 0");
    ACT_AUTOFREE char *path = act_strdup(getenv("PATH"));

    spec.folders = act_calloc(1, sizeof(*spec.folders));
    spec.n_folders = 1;
    spec.folders[0] = (struct run_folder){.name = act_strdup("data"),
                                          .store = act_strdup("blob:acct/cont"),
                                          .path = act_strdup("data"),
                                          .mode = RUN_FOLDER_RO_MOUNT};
    setenv("PATH", "/nowhere", 1);
    int rc = platform_submit(platform, &(struct platform_submission){.spec = &spec}, &err);
    setenv("PATH", path, 1);
    assert_int_equal(rc, -ACT_CONFIG);
    assert_contains(act_error_text(&err), "install blobfuse2, or rclone and fuse3; or set 'mount: copy'");
    assert_int_equal(conform_platform_status_of(spec.id).state, RUN_UNKNOWN);
}

TEST(test_local_needs_mpirun)
{
    ACT_AUTO(run_spec) one = conform_platform_make_spec(1, (const char *const[]){"/bin/true", NULL});
    ACT_AUTO(run_spec) two = conform_platform_make_spec(2, (const char *const[]){"/bin/true", NULL});
    ACT_AUTOFREE char *old = act_strdup(getenv("PATH"));

    setenv("PATH", build_path, 1); /* the agent only */
    assert_int_equal(platform_submit(platform, &(struct platform_submission){.spec = &two}, &err), -ACT_NOT_FOUND);
    assert_string_equal(strstr(act_error_text(&err), "mpirun not found"),
                        "mpirun not found: install Open MPI (Debian: openmpi-bin) or use -n 1");
    run_to_end(&one, NULL, RUN_COMPLETED, 0);
    setenv("PATH", old, 1);
}

TEST(test_local_queue)
{
    ACT_AUTOFREE char *gate = temp_file("gate2");
    ACT_AUTOFREE char *script = act_sprintf("while [ ! -e %s ]; do sleep 0.01; done", gate);
    struct run_spec first = shell_spec(1, script), second = shell_spec(2, "exit 0"), third = shell_spec(1, "exit 0"),
                    cpu = shell_spec(1, "exit 0");
    bool was_final;

    unlink(gate);
    first.gpus_per_node = 3; /* of 4 */
    conform_platform_submit(&first, NULL);
    struct run_status status = wait_state(first.id, RUN_RUNNING);
    assert_state(&status, RUN_RUNNING);

    conform_platform_submit(&second, NULL); /* needs one more than is free */
    do
        status = conform_platform_status_of(second.id);
    while (!status.reason[0]);
    assert_state(&status, RUN_QUEUED);
    assert_contains(status.reason, "waits for 1 of 2 ");

    conform_platform_submit(&third, NULL); /* would fit, but its turn comes after the second's */
    do
        status = conform_platform_status_of(third.id);
    while (!status.reason[0]);
    assert_state(&status, RUN_QUEUED);
    ACT_AUTOFREE char *behind = act_sprintf("waits behind '%s', which waits for 1 of 2 ", second.id);
    assert_contains(status.reason, behind);
    cpu.gpus_per_node = 0; /* needs nothing */
    run_to_end(&cpu, NULL, RUN_COMPLETED, 0);

    assert_ok(platform_abort(platform, third.id, &was_final, &err), err); /* in the queue */
    status = conform_platform_status_of(third.id);
    assert_state(&status, RUN_CANCELED);
    ACT_AUTO(run_spec) fourth = shell_spec(4, "exit 0");
    conform_platform_submit(&fourth, NULL);

    close(open(gate, O_CREAT | O_WRONLY, 0600));
    status = conform_platform_wait_end(first.id);
    assert_state(&status, RUN_COMPLETED);
    status = conform_platform_wait_end(second.id);
    assert_state(&status, RUN_COMPLETED);
    status = conform_platform_wait_end(fourth.id);
    assert_state(&status, RUN_COMPLETED);
    run_spec_release(&first);
    run_spec_release(&second);
    run_spec_release(&third);
    run_spec_release(&cpu);
}

/* A waiting run takes part in the slots that it was the first to wait for; an aborted one gives them back. */
TEST(test_local_abort_while_collecting)
{
    ACT_AUTO(run_spec) first = shell_spec(1, "exec sleep 1000"), second = shell_spec(1, "exit 0");
    struct run_status status;
    bool was_final;

    first.gpus_per_node = 2;
    second.gpus_per_node = 4;
    conform_platform_submit(&first, NULL);
    wait_state(first.id, RUN_RUNNING);
    conform_platform_submit(&second, NULL);
    do
        status = conform_platform_status_of(second.id);
    while (!status.reason[0]);
    assert_contains(status.reason, "waits for 2 of 4 ");
    assert_ok(platform_abort(platform, second.id, &was_final, &err), err);
    status = conform_platform_status_of(second.id);
    assert_state(&status, RUN_CANCELED);
    ACT_AUTO(run_spec) third = shell_spec(2, "exit 0");
    run_to_end(&third, NULL, RUN_COMPLETED, 0);
    assert_ok(platform_abort(platform, first.id, &was_final, &err), err);
}

static pid_t supervisor_of(const char *id)
{
    ACT_AUTOFREE char *path = conform_platform_run_file(id, RUN_FILE_LOCK);
    ACT_AUTOFREE char *text = wait_lines(path, 1);

    return atoi(text);
}

TEST(test_local_supervisor_killed)
{
    ACT_AUTOFREE char *pids = temp_file("pids2");
    ACT_AUTOFREE char *script = act_sprintf("(setsid sh -c 'echo $$ >> %s; exec sleep 1000' &) & sleep 1000 & "
                                            "echo $! >> %s; echo $$ >> %s; echo $PPID >> %s; exec sleep 1000",
                                            pids, pids, pids, pids);

    for (int procs = 1; procs <= 2; procs++) {
        struct run_spec spec = shell_spec(procs, script);
        unlink(pids);
        conform_platform_submit(&spec, NULL);
        ACT_AUTOFREE char *text = wait_lines(pids, 4 * procs);
        assert_int_equal(kill(supervisor_of(spec.id), SIGKILL), 0);
        struct run_status status = conform_platform_wait_end(spec.id);
        assert_state(&status, RUN_FAILED);
        assert_string_equal(status.reason, "lost: the supervisor is gone (killed, or the machine restarted)");
        assert_all_gone(text);
        status = conform_platform_status_of(spec.id); /* written down */
        assert_state(&status, RUN_FAILED);
        run_spec_release(&spec);
    }
    ACT_AUTO(run_spec) all = shell_spec(4, "exit 0"); /* the slots are free again */
    run_to_end(&all, NULL, RUN_COMPLETED, 0);
}

TEST(test_local_rank_killed)
{
    for (int procs = 1; procs <= 2; procs++)
        for (int agent = 0; agent < 2; agent++) {
            ACT_AUTOFREE char *pids = temp_file("pids3");
            ACT_AUTOFREE char *script = act_sprintf("[ $RANK = %d ] && echo %s >> %s; exec sleep 1000", procs - 1,
                                                    agent ? "$PPID" : "$$", pids);
            struct run_spec spec = shell_spec(procs, script);
            unlink(pids);
            conform_platform_submit(&spec, NULL);
            ACT_AUTOFREE char *text = wait_lines(pids, 1);
            assert_int_equal(kill(atoi(text), SIGKILL), 0);
            struct run_status status = conform_platform_wait_end(spec.id);
            assert_state(&status, RUN_FAILED);
            assert_int_equal(status.exit_status, 137);
            assert_int_equal(status.failed_rank, procs - 1);
            assert_contains(status.reason, agent ? "is lost: its agent was killed" : "killed by signal 9");
            run_spec_release(&spec);
        }
}

/* The client died between the rename and the start: the same submission again starts it; otherwise it is
 * lost.
 */
TEST(test_local_submission_interrupted)
{
    static const struct {
        bool again;
        enum run_state end;
    } rows[] = {{true, RUN_COMPLETED}, {false, RUN_FAILED}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = shell_spec(1, "exit 0");
        ACT_AUTOFREE char *json = conform_platform_run_file(spec.id, RUN_FILE_SPEC);
        ACT_AUTOFREE char *status_path = conform_platform_run_file(spec.id, RUN_FILE_STATUS);
        ACT_AUTOFREE char *logs = conform_platform_run_file(spec.id, RUN_DIR_SYSTEM);
        struct run_status status = {.state = RUN_QUEUED, .failed_rank = -1, .attempt = 1};
        assert_ok(act_mkdir_all(logs, 0755, &err), err);
        assert_ok(run_spec_write(&spec, json, &err), err);
        assert_ok(run_status_write(status_path, &status, &err), err);
        if (rows[i].again)
            conform_platform_submit(&spec, NULL);
        status = conform_platform_wait_end(spec.id);
        assert_state(&status, rows[i].end);
        run_spec_release(&spec);
    }
}

/* After a power cut status.json may be empty. */
TEST(test_local_torn_status)
{
    ACT_AUTO(run_spec) spec = shell_spec(1, "exit 0");

    run_to_end(&spec, NULL, RUN_COMPLETED, 0);
    ACT_AUTOFREE char *path = conform_platform_run_file(spec.id, RUN_FILE_STATUS);
    assert_ok(act_file_write(path, "", 0, 0600, &err), err);
    struct run_status status =
        conform_platform_wait_end(spec.id); /* the supervisor may still hold the lock for a moment */
    assert_state(&status, RUN_FAILED);
    assert_contains(status.reason, "lost: ");
}

static void conform_platform_add_folder(struct run_spec *spec, const char *name, enum run_folder_mode mode)
{
    spec->folders = act_realloc(spec->folders, (spec->n_folders + 1) * sizeof(*spec->folders));
    spec->folders[spec->n_folders++] = (struct run_folder){
        .name = act_strdup(name), .store = act_strdup("blob:acct/cont"), .path = act_strdup(name), .mode = mode};
}

/* Folders that come and go with the help of act, here a script that notes what it is asked for: brought
 * before the command, sent however it ends, and a run whose results were not sent has not succeeded. */
TEST(test_local_moved_folders)
{
    static const char act[] = "#!/bin/sh\n"
                              "echo \"$1 $3 $4\" >> \"$ACT_HOME/calls\"\n"
                              "if [ $3 = download ]; then [ -z \"$NO_DOWN\" ] && echo fetched > \"$2/code/$4/in\"\n"
                              "else echo the disk over there is full; cat \"$2/code/$4/made\" >> "
                              "\"$ACT_HOME/sent\" && [ -z \"$NO_UP\" ]; fi\n";
    static const struct {
        const char *script, *fails;
        enum run_state end;
        int exit_status;
        const char *reason, *calls, *sent;
    } rows[] = {
        {"cat data/in > output/made", "NONE", RUN_COMPLETED, 0, "",
         "transfer-folder download data\ntransfer-folder upload output\n", "fetched\n"},
        {"echo half > output/made; exit 9", "NONE", RUN_FAILED, 9, "rank 0 exited with status 9",
         "transfer-folder download data\ntransfer-folder upload output\n", "half\n"},
        {"echo x > output/made", "NO_UP", RUN_FAILED, 125, "not all folders could be sent",
         "transfer-folder download data\ntransfer-folder upload output\n", "x\n"},
        {"echo not reached", "NO_DOWN", RUN_FAILED, 125, "download of 'data' failed", "transfer-folder download data\n",
         ""},
    };
    ACT_AUTOFREE char *bin = temp_file("bin");
    ACT_AUTOFREE char *program = temp_file("bin/act");
    ACT_AUTOFREE char *agent = temp_file("bin/act-node");
    ACT_AUTOFREE char *built = act_path_join(build_path, "act-node");
    ACT_AUTOFREE char *calls = temp_file("act/calls");
    ACT_AUTOFREE char *sent = temp_file("act/sent");
    ACT_AUTOFREE char *old = act_strdup(getenv("PATH"));
    ACT_AUTOFREE char *path = act_sprintf("%s:%s", bin, old);

    assert_ok(act_mkdir_all(bin, 0755, &err), err);
    assert_ok(act_file_copy(built, agent, 0755, &err), err);
    assert_ok(act_file_write(program, act, strlen(act), 0755, &err), err);
    setenv("PATH", path, 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = shell_spec(1, rows[i].script);
        conform_platform_add_folder(&spec, "data", RUN_FOLDER_DOWNLOAD);
        conform_platform_add_folder(&spec, "output", RUN_FOLDER_UPLOAD);
        assert_ok(act_file_write(calls, "", 0, 0600, &err), err);
        assert_ok(act_file_write(sent, "", 0, 0600, &err), err);
        setenv(rows[i].fails, "1", 1);
        struct run_status status = run_to_end(&spec, NULL, rows[i].end, rows[i].exit_status);
        unsetenv(rows[i].fails);
        assert_contains(status.reason, rows[i].reason);
        ACT_AUTOFREE char *called = NULL;
        ACT_AUTOFREE char *arrived = NULL;
        assert_ok(act_file_read(calls, 1000, &called, NULL, &err), err);
        assert_ok(act_file_read(sent, 1000, &arrived, NULL, &err), err);
        assert_string_equal(called, rows[i].calls);
        assert_string_equal(arrived, rows[i].sent);
        run_spec_release(&spec);
    }
    setenv("PATH", old, 1);
}

TEST(test_local_no_agent)
{
    ACT_AUTO(run_spec) spec = shell_spec(1, "exit 0");
    ACT_AUTOFREE char *old = act_strdup(getenv("PATH"));

    setenv("PATH", "/usr/bin:/bin", 1);
    assert_int_equal(platform_submit(platform, &(struct platform_submission){.spec = &spec}, &err), -ACT_NOT_FOUND);
    assert_contains(act_error_text(&err), "'act-node'");
    assert_int_equal(conform_platform_status_of(spec.id).state, RUN_UNKNOWN); /* nothing half-done is left */
    setenv("PATH", old, 1);
}

/* ---- all of it ---- */

static const struct world *find_world(void)
{
    const char *name = getenv("ACT_TEST_PLATFORM");

    for (size_t i = 0; i < COUNT(worlds); i++)
        if (strcmp(worlds[i].name, name ? name : "local") == 0)
            return &worlds[i];
    fprintf(stderr, "ACT_TEST_PLATFORM '%s': no such platform\n", name);
    exit(1);
}

static int open_world(struct act_error *e)
{
    struct config_request request = {.cluster = "aml"};

    if (!world->is_service)
        return conform_platform_open(&platform, e);
    int rc = flow_open(&request, &flow, e);
    return rc < 0 ? rc : flow_platform(&flow, &platform, e);
}

/* The agent is built beside: ../act/act-node. */
static int conform_platform_make_world(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char self[PATH_MAX] = "";

    (void)state;
    home = act_sprintf("%s/act-platform-test.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(home) || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return -1;
    ACT_AUTOFREE char *dir = act_path_dirname(self);
    ACT_AUTOFREE char *act_home = temp_file("act");
    build_path = act_sprintf("%s/../act", dir);
    ACT_AUTOFREE char *path = act_sprintf("%s:%s", build_path, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("ACT_HOME", act_home, 1);
    setenv("ACT_LOCAL_SLOTS", "4", 1);
    int rc = open_world(&err);
    if (rc < 0)
        fprintf(stderr, "%s\n", act_error_text(&err));
    return rc;
}

static int conform_platform_remove_world(void **state)
{
    (void)state;
    if (world->is_service)
        flow_close(&flow);
    else
        platform_free(platform);
    services_close(&services);
    int rc = act_remove_tree(home, &err);
    free(home);
    free(build_path);
    return rc;
}

int main(void)
{
    platform_begin();
    world = find_world();
    printf("platform: %s\n", world->name);
    if (world != &worlds[0])
        tests_leave_out("test_local_");
    return tests_run(conform_platform_make_world, conform_platform_remove_world);
}
