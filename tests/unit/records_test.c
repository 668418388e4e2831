/* records_test.c - the bytes of the records that the program writes down: tests/fixtures/records/ has each as an
 * earlier version wrote it. What is written today must be the same, and what is read from there must be whole. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include "base/path.h"
#include "codec/json.h"
#include "node/record.h"
#include "node/retry.h"
#include "node/supervisor.h"
#include "run/run.h"

static char *records_text(const char *folder, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(folder, name);
    char *text = NULL;

    assert_ok(act_file_read(path, 1 << 20, &text, NULL, &err), err);
    return text;
}

/* Compares the file of that name in the folder of the test, or the text, with the record. */
static void expect_record(const char *name, const char *text)
{
    ACT_AUTOFREE char *written = text ? act_sprintf("%s\n", text) : records_text(dir, name);
    ACT_AUTOFREE char *wanted = records_text(TEST_DATA "/fixtures/records", name);

    assert_string_equal(written, wanted);
}

static struct run_folder folder_of(const char *name, const char *link, const char *datastore, enum run_folder_mode mode)
{
    return (struct run_folder){.name = act_strdup(name),
                               .store = act_strdup("blob:a/c"),
                               .path = act_strdup("p/q"),
                               .link = act_strdup(link),
                               .datastore = act_strdup(datastore),
                               .mode = mode};
}

static struct run_spec small_spec(void)
{
    struct run_spec spec = {.id = act_strdup("exp_1700000000_0123abcd"),
                            .experiment = act_strdup("exp"),
                            .cluster = act_strdup("local"),
                            .platform = act_strdup("local"),
                            .nodes = 1,
                            .procs_per_node = 1};

    act_strv_push(&spec.argv, "ls");
    return spec;
}

static struct run_spec full_spec(void)
{
    struct run_spec spec = small_spec();
    char **const texts[] = {&spec.title,     &spec.package_store, &spec.package_key, &spec.logs_store,
                            &spec.logs_path, &spec.launcher,      &spec.mpi,         &spec.container,
                            &spec.image,     &spec.timeout,       &spec.shm_size,    &spec.scratch,
                            &spec.mount,     &spec.name,          &spec.own_rules,   &spec.resubmit_of};

    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = act_sprintf("text%zu", i);
    spec.project_root = act_strdup("/tmp/non-utf8-\xff");
    spec.compile_args = act_strdup("");
    spec.created_unix_s = 1700000000;
    spec.package_bytes = 42;
    memset(spec.package_sha256, 'a', ACT_SHA256_HEX - 1);
    spec.nodes = 2;
    spec.procs_per_node = 8;
    spec.gpus_per_node = 4;
    spec.on_processors = true;
    spec.min_nodes = 1;
    spec.max_nodes = 3;
    spec.started_per_node = 8;
    spec.hang_s = 1200;
    spec.hang_any_gpus = true;
    spec.limit_s = 7200;
    spec.warn_s = 120;
    spec.sleep_if_fail = true;
    spec.own_image = true;
    spec.foreign = true;
    spec.takes_input = true;
    spec.retry_times = 3;
    spec.tags = json_pack("{s:s}", "team", "b");
    spec.config = json_pack("{s:s, s:{s:i}}", "key", "value", "map", "number", 7);
    act_strv_push(&spec.argv, "");
    act_strv_push(&spec.argv, "\xff\xfe");
    act_strv_push(&spec.argv, "a\nb");
    act_strv_push(&spec.retry_on, "xid");
    act_strv_push(&spec.avoid, "n7");
    act_strv_push(&spec.after, "exp_1600000000_0123abcd");
    act_strv_push(&spec.needs, "exp_1600000000_89abcdef");
    spec.needs_any = true;
    ACT_PUSH(spec.folders, spec.n_folders, folder_of("data", "/s/p/q", NULL, RUN_FOLDER_RO_MOUNT));
    ACT_PUSH(spec.folders, spec.n_folders, folder_of("output", NULL, "a_c_1", RUN_FOLDER_UPLOAD));
    run_spec_add_output(&spec, "model", "outputs/model");
    run_spec_add_env(&spec, "A", "1 2");
    run_spec_add_env(&spec, "B", "");
    run_spec_add_env(&spec, "API_KEY", "hush");
    return spec;
}

static void check_spec(struct run_spec spec, const char *name)
{
    ACT_AUTOFREE char *path = test_path(name);
    ACT_AUTOFREE char *again = act_path_join(TEST_DATA "/fixtures/records", name);
    struct run_spec back = {0};

    assert_ok(run_spec_write(&spec, path, &err), err);
    expect_record(name, NULL);
    assert_ok(run_spec_read(again, &back, &err), err);
    assert_ok(run_spec_write(&back, path, &err), err);
    expect_record(name, NULL);
    run_spec_release(&spec);
    run_spec_release(&back);
}

TEST(a_specification_is_written_as_ever)
{
    check_spec(small_spec(), "run_small.json");
    check_spec(full_spec(), "run.json");
}

static void check_status(const struct run_status *status, const char *name)
{
    ACT_AUTOFREE char *path = test_path(name);
    ACT_AUTOFREE char *again = act_path_join(TEST_DATA "/fixtures/records", name);
    struct run_status back;

    assert_ok(run_status_write(path, status, &err), err);
    expect_record(name, NULL);
    assert_ok(run_status_read(again, &back, &err), err);
    assert_ok(run_status_write(path, &back, &err), err);
    expect_record(name, NULL);
}

TEST(a_status_is_written_as_ever)
{
    const struct run_status small = {.state = RUN_COMPLETED, .failed_rank = -1, .attempt = 1};
    struct run_status full = {.state = RUN_FAILED,
                              .started_unix_s = 10,
                              .ended_unix_s = 20,
                              .exit_status = 137,
                              .failed_rank = 3,
                              .attempt = 2,
                              .heartbeat_unix_s = 19,
                              .reason = "said \xff\tand\n\"more\"",
                              .unsubmitted = true,
                              .seen = true,
                              .aborted = true,
                              .ranks_asked = true,
                              .class = "ecc",
                              .attempts = 4,
                              .retry = "attempt 1 failed"};

    run_status_add_bad(&full, &(struct run_bad_node){.node = "n1", .class = "ecc", .unix_s = 100});
    run_status_add_bad(&full, &(struct run_bad_node){.node = "n2", .class = "xid", .unix_s = 101});
    check_status(&small, "status_small.json");
    check_status(&full, "status.json");
}

TEST(a_record_of_a_rank_is_written_as_ever)
{
    struct node_record r = {.rank = 3,
                            .node = "n2",
                            .pid = 42,
                            .started_unix_ns = 1700000000123456789,
                            .ended_unix_ns = 1700000001123456789,
                            .exit_status = 139,
                            .signal = 11,
                            .kept = true,
                            .no_room = 28,
                            .room_again = true,
                            .reason = "why"};

    act_strv_push(&r.lines, "last");
    CODEC_AUTOJSON json_t *json = record_to_json(&r);
    ACT_AUTOFREE char *line = codec_json_line(json);
    expect_record("rank.json", line);
    record_release(&r);
}

TEST(a_history_of_tries_is_written_as_ever)
{
    const struct node node = {.dir = dir};
    struct retry_history history = {0};
    const struct retry_try tries[] = {{1, 30, "ecc", "n1", "words 0"}, {2, 3000000000, "xid", "", ""}};

    for (size_t i = 0; i < COUNT(tries); i++)
        assert_ok(retry_history_add(&node, &history, &tries[i], &err), err);
    expect_record(RUN_FILE_RETRY, NULL);
    retry_history_read(&node, &history);
    assert_int_equal(history.n, 2);
    assert_memory_equal(&history.v[1], &tries[1], sizeof(tries[1]));
}

/* The time of the failure is that of the test, so it is replaced. */
static void check_failure(const struct supervisor *s, const struct node_record *r, const char *name)
{
    enum { FILE_MAX = 4096 };
    ACT_AUTOFREE char *path = test_path(RUN_FILE_FAILURE);
    ACT_AUTOFREE char *copy = test_path(name);
    CODEC_AUTOJSON json_t *json = NULL;

    attempt_save_failure(s, r, "why \xff");
    assert_ok(codec_json_read(path, FILE_MAX, &json, &err), err);
    assert_true(codec_json_int(json, "time", 0) > 1700000000);
    json_object_set_new(json, "time", json_integer(1700000000));
    assert_ok(codec_json_write(copy, json, 0600, &err), err);
    expect_record(name, NULL);
}

TEST(a_failure_is_written_as_ever)
{
    struct supervisor s = {.node = {.dir = dir, .name = "n1"}, .status = {.exit_status = 7, .attempt = 2}};
    struct node_record r = {.rank = 5, .node = "n2", .exit_status = 137, .signal = 9};

    act_strv_push(&r.lines, "Traceback");
    check_failure(&s, NULL, "failure_small.json");
    s.job.output_from = 99;
    snprintf(s.status.class, sizeof(s.status.class), "hang");
    check_failure(&s, &r, "failure.json");
    record_release(&r);
}

TEST(what_a_run_ran_with_is_written_as_ever)
{
    struct run_environment e = {.attempt = 1,
                                .node = act_strdup("n1"),
                                .python = act_strdup("/opt/venv/bin/python3"),
                                .python_version = act_strdup("3.11.2"),
                                .driver = act_strdup("535.104.05"),
                                .mpi = act_strdup("Open MPI 4.1.4")};
    ACT_AUTOFREE char *path = test_path("environment.json");

    ACT_STRV_PUSH(&e.packages, "numpy==1.26.4", "torch==2.2.0+cu121");
    act_strv_push(&e.modules, "cuda/12.1");
    assert_ok(run_environment_write(&e, path, &err), err);
    expect_record("environment.json", NULL);
    run_environment_release(&e);
}

TEST_MAIN(NULL, NULL)
