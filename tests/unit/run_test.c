/* run_test.c - states, ids, masks, the GPU arithmetic, run.json and status.json. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "run/run.h"
#include "run/shell.h"

TEST(the_words_of_a_shell)
{
    static const struct {
        const char *words[8];
        bool is_shell;
    } cases[] = {
        {{"act-node", "keep", "1", "2", "3", "ends"}, true},
        {{"act-node", "keep", "0", "0", "300", "stays", "sh"}, true},
        {{"act-node", "host", "0", "0", "300", "ends", "python3"}, true},
        {{"act-node", "keep", "1", "2", "3"}, false},
        {{"act-node", "keep", "-1", "2", "3", "ends"}, false},
        {{"act-node", "keep", "1", "2h", "3", "ends"}, false},
        {{"act-node", "keep", "1", "2", "99999999999", "ends"}, false},
        {{"act-node", "rank", "1", "2", "3", "ends"}, false},
        {{"./act-node", "keep", "1", "2", "3", "ends"}, false},
        {{"act-node"}, false},
        {{NULL}, false},
    };
    const struct run_shell shell = {.idle_s = 600, .limit_s = 7200, .away_s = 300, .stays = true};
    ACT_AUTO(act_strv) words = {0};
    struct run_shell read;
    size_t first;

    for (size_t i = 0; i < COUNT(cases); i++) {
        ACT_AUTO(act_strv) argv = {0};
        act_strv_add(&argv, cases[i].words);
        assert_int_equal(run_shell_is(&argv), cases[i].is_shell);
        assert_int_equal(run_shell_of(&argv, &read), cases[i].is_shell);
    }
    run_shell_words(&shell, &words);
    assert_string_equal(words.v[1], "keep");
    act_strv_push(&words, "htop");
    assert_true(run_shell_read(words.v + 1, words.n - 1, &read, &first));
    assert_int_equal(read.idle_s, 600);
    assert_int_equal(read.limit_s, 7200);
    assert_int_equal(read.away_s, 300);
    assert_true(read.stays);
    assert_false(read.serves);
    assert_true(run_shell_of(&words, &read));
    assert_true(read.stays && read.idle_s == 600);
    assert_string_equal(words.v[1 + first], "htop");
    act_strv_release(&words);
    run_shell_words(&(struct run_shell){.serves = true}, &words);
    assert_true(run_shell_read(words.v + 1, words.n - 1, &read, &first));
    assert_true(read.serves);
}

TEST(test_states)
{
    static const enum run_state final[] = {RUN_COMPLETED, RUN_FAILED, RUN_CANCELED};

    for (int s = RUN_QUEUED; s <= RUN_UNKNOWN; s++)
        assert_int_equal(run_state_from_name(run_state_name((enum run_state)s)), s);
    for (size_t i = 0; i < COUNT(final); i++)
        assert_true(run_state_is_final(final[i]));
    assert_false(run_state_is_final(RUN_UNKNOWN));
    assert_int_equal(run_state_from_name("running"), RUN_UNKNOWN);
    assert_int_equal(run_state_from_name(NULL), RUN_UNKNOWN);
}

TEST(test_abort_grace)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {{NULL, 10}, {"", 10}, {"x", 10}, {"-1", 10}, {"86400", 10}, {"0", 0}, {"86399", 86399}};

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(run_abort_grace_s(rows[i].text), rows[i].seconds);
    setenv("ACT_ABORT_GRACE", "1", 1);
    assert_int_equal(run_abort_wait_ms(), 15000);
    setenv("ACT_ABORT_GRACE", "100", 1);
    assert_int_equal(run_abort_wait_ms(), 105000);
    unsetenv("ACT_ABORT_GRACE");
}

TEST(test_shape)
{
    static const struct {
        int64_t num_gpu;
        int per_node;
        bool multi;
        int rc, nodes, procs, gpus;
    } rows[] = {
        {0, 4, true, 0, 1, 1, 0},
        {0, 4, false, 0, 1, 1, 0},
        {1, 4, true, 0, 1, 1, 1},
        {3, 4, true, 0, 1, 3, 3},
        {4, 4, true, 0, 1, 4, 4},
        {8, 4, true, 0, 2, 4, 4},
        {64, 8, true, 0, 8, 8, 8},
        {3, 4, false, 0, 1, 1, 3},
        {8, 4, false, 0, 2, 1, 4},
        {5, 1, true, 0, 5, 1, 1},
        {5, 4, true, -ACT_USAGE, 0, 0, 0},
        {6, 4, false, -ACT_USAGE, 0, 0, 0},
        {-1, 4, true, -ACT_USAGE, 0, 0, 0},
        {1, 0, true, -ACT_USAGE, 0, 0, 0},
        {INT64_MAX, 4, true, -ACT_USAGE, 0, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_shape shape = {0};
        assert_int_equal(run_shape_of(rows[i].num_gpu, rows[i].per_node, rows[i].multi, &shape, &err), rows[i].rc);
        assert_int_equal(shape.nodes, rows[i].nodes);
        assert_int_equal(shape.procs_per_node, rows[i].procs);
        assert_int_equal(shape.gpus_per_node, rows[i].gpus);
    }
    struct run_shape shape;
    assert_fails(run_shape_of(6, 4, true, &shape, &err), err, ACT_USAGE, "use -n 4 or -n 8");
}

TEST(test_names_of_logs)
{
    static const struct {
        const char *name;
        int rank;
    } rows[] = {
        {"user_logs/std_log.txt", 0},
        {"user_logs/std_log_process_0.txt", 0},
        {"user_logs/std_log_process_00.txt", 0},
        {"user_logs/std_log_process_07.txt", 7},
        {"user_logs/std_log_process_123.txt", 123},
        {"user_logs/std_log_process_.txt", -1},
        {"user_logs/std_log_process_1x.txt", -1},
        {"user_logs/std_log_process_123456789.txt", -1},
        {"user_logs/retry_001/std_log_process_0.txt", -1},
        {"user_logs/std_log_process_0.txt.old", -1},
        {"user_logs/mpi_log.txt", -1},
        {"system_logs/std_log.txt", -1},
        {"azureml-logs/70_driver_log_3.txt", 3},
        {"azureml-logs/70_driver_log_rank_3.txt", 3},
        {"azureml-logs/70_driver_log-worker-2.txt", 2},
        {"azureml-logs/70_driver_log-ps-0.txt", -1},
        {"azureml-logs/70_driver_log.txt", 0},
        {"azureml-logs/75_job_post-tvmps_1_d.txt", -1},
        {"x/00_stdout.txt", 0},
        {"x/ps-0_stdout.txt", 0},
        {".txt", -1},
        {"", -1},
    };
    int first, second;

    for (size_t i = 0; i < COUNT(rows); i++)
        if (run_log_rank(rows[i].name, NULL) != rows[i].rank)
            fail_msg("'%s' is of rank %d", rows[i].name, run_log_rank(rows[i].name, NULL));
    for (int rank = 0; rank < 1000; rank += 333) {
        ACT_AUTOFREE char *name = run_rank_log(rank);
        assert_int_equal(run_log_rank(name, NULL), rank);
    }
    assert_int_equal(run_log_rank("azureml-logs/70_driver_log_0.txt", &second), 0);
    assert_int_equal(run_log_rank("user_logs/std_log_process_0.txt", &first), 0);
    assert_true(first < second);
}

TEST(test_ids)
{
    static const struct {
        const char *id;
        bool valid;
    } rows[] = {
        {"exp_1700000000_0123abcd", true},  {"a_1_00000000", true},
        {"a-b_c_1_00000000", true},         {"_x_1_00000000", true},
        {"exp_1700000000_0123ABCD", false}, {"exp_1700000000_0123abc", false},
        {"exp__0123abcd", false},           {"_1_00000000", false},
        {"exp_17x_0123abcd", false},        {"-x_1_00000000", false},
        {"a/b_1_00000000", false},          {"../x_1_00000000", false},
        {"a b_1_00000000", false},          {"", false},
        {"exp-1700000000-0123abcd", false}, {"ex\xc3\xa4_1_00000000", false},
    };
    static const struct {
        const char *experiment, *prefix;
    } names[] = {
        {"jan", "jan_1700000000_"},   {"a b/c.d", "a-b-c-d_1700000000_"}, {"", "run_1700000000_"},
        {"--rm", "_-rm_1700000000_"}, {"\xc3\xa4", "_-_1700000000_"},
    };
    char wide[1000];

    for (size_t i = 0; i < COUNT(rows); i++)
        if (run_id_valid(rows[i].id) != rows[i].valid)
            fail_msg("'%s'", rows[i].id);
    for (size_t i = 0; i < COUNT(names); i++) {
        ACT_AUTOFREE char *id = run_id_new(names[i].experiment, 1700000000);
        ACT_AUTOFREE char *other = run_id_new(names[i].experiment, 1700000000);
        assert_true(act_starts_with(id, names[i].prefix));
        assert_true(run_id_valid(id));
        assert_string_not_equal(id, other);
    }
    memset(wide, 'x', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    ACT_AUTOFREE char *id = run_id_new(wide, INT64_MAX);
    assert_true(run_id_valid(id));
}

static struct run_spec full_spec(void)
{
    struct run_spec spec = {
        .id = act_strdup("exp_1700000000_0123abcd"),
        .experiment = act_strdup("exp"),
        .cluster = act_strdup("local"),
        .platform = act_strdup("local"),
        .project_root = act_strdup("/tmp/non-utf8-\xff"),
        .created_unix_s = 1700000000,
        .package_store = act_strdup("blob:acct/cont"),
        .package_key = act_strdup("code/x.zip"),
        .package_bytes = 42,
        .nodes = 2,
        .procs_per_node = 4,
        .gpus_per_node = 4,
        .on_processors = true,
        .is_here = true,
        .agent_mounts = true,
        .compile_args = act_strdup(""),
        .sleep_if_fail = true,
        .resubmit_of = act_strdup("exp_1600000000_0123abcd"),
        .config = json_pack("{s:s}", "key", "value"),
    };

    memset(spec.package_sha256, 'a', ACT_SHA256_HEX - 1);
    act_strv_push(&spec.argv, "python");
    act_strv_push(&spec.argv, "");
    act_strv_push(&spec.argv, "\xff\xfe");
    act_strv_push(&spec.argv, "a\nb");
    spec.folders = act_calloc(2, sizeof(*spec.folders));
    spec.n_folders = 2;
    spec.folders[0] = (struct run_folder){.name = act_strdup("data"),
                                          .store = act_strdup("folder:/s"),
                                          .path = act_strdup("p/q"),
                                          .link = act_strdup("/s/p/q"),
                                          .mode = RUN_FOLDER_RO_MOUNT};
    spec.folders[1] = (struct run_folder){.name = act_strdup("output"),
                                          .store = act_strdup("blob:a/c"),
                                          .path = act_strdup("o"),
                                          .datastore = act_strdup("a_c_1"),
                                          .mode = RUN_FOLDER_UPLOAD};
    run_spec_add_env(&spec, "A", "1 2");
    run_spec_add_env(&spec, "B", "");
    return spec;
}

TEST(what_is_said_of_runs_that_are_waited_for)
{
    static const struct {
        size_t n;
        bool any_end;
        const char *says;
    } rows[] = {
        {1, false, "waits for 'a' to complete"},
        {1, true, "waits for the end of 'a'"},
        {2, false, "waits for 'a' and 'b' to complete"},
        {3, false, "waits for 'a', 'b' and 'c' to complete"},
        {5, true, "waits for the end of 'a', 'b' and 3 more"},
    };
    static const struct {
        int state; /* -1: there is no record */
        const char *says;
    } ends[] = {
        {RUN_FAILED, "'a', which it was to run after, failed"},
        {RUN_CANCELED, "'a', which it was to run after, was canceled"},
        {RUN_RUNNING, "'a', which it was to run after, was lost"},
        {-1, "'a', which it was to run after, is gone"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_strv) ids = {0};
        for (size_t k = 0; k < rows[i].n; k++)
            act_strv_push(&ids, (char[]){(char)('a' + k), '\0'});
        ACT_AUTOFREE char *says = run_waits_for(&ids, rows[i].any_end);
        assert_string_equal(says, rows[i].says);
    }
    for (size_t i = 0; i < COUNT(ends); i++) {
        const struct run_status status = {.state = (enum run_state)ends[i].state};
        char says[128];
        run_say_unmet("a", ends[i].state < 0 ? NULL : &status, says, sizeof(says));
        assert_string_equal(says, ends[i].says);
    }
}

/* records_test says which bytes are written. */
TEST_IN(test_spec_round_trip, make_dir, remove_dir)
{
    ACT_AUTO(run_spec) spec = full_spec(), back = {0};
    spec.min_nodes = 1;
    spec.max_nodes = spec.nodes + 1;
    spec.hang_s = 1200;
    spec.hang_any_gpus = true;
    spec.limit_s = 7200;
    spec.warn_s = 120;
    spec.retry_times = 3;
    spec.own_rules = act_strdup("version: 1");
    spec.setup = (struct run_setup){.modules_purge = true, .conda = act_strdup("torch"), .timeout_s = 60};
    act_strv_push(&spec.setup.modules, "cuda/12.1");
    act_strv_push(&spec.retry_on, "xid");
    act_strv_push(&spec.avoid, "n7");
    ACT_AUTOFREE char *path = test_path("run.json");
    struct stat st;

    assert_ok(run_spec_write(&spec, path, &err), err);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(run_spec_read(path, &back, &err), err);
    CODEC_AUTOJSON json_t *a = run_spec_to_json(&spec);
    CODEC_AUTOJSON json_t *b = run_spec_to_json(&back);
    assert_true(json_equal(a, b));
    assert_null(back.setup.venv);
    assert_null(back.folders[1].link);
    assert_string_equal(back.compile_args, "");
}

/* Every row spoils one member of a good specification. */
TEST(test_spec_refused)
{
    static const struct {
        const char *change; /* JSON object merged into the good one; null removes */
        const char *text;
    } rows[] = {
        {"{\"version\": 2}", "has version 2"},
        {"{\"version\": null}", "'version'"},
        {"{\"id\": \"../x\"}", "'id'"},
        {"{\"id\": 7}", "'id'"},
        {"{\"experiment\": null}", "'experiment'"},
        {"{\"command\": []}", "'command'"},
        {"{\"command\": \"ls\"}", "'command'"},
        {"{\"command\": [1]}", "'command'"},
        {"{\"command\": [\"a\\u0000b\"]}", "'command'"},
        {"{\"nodes\": 0}", "'nodes'"},
        {"{\"nodes\": 1.5}", "'nodes'"},
        {"{\"processes_per_node\": 100000}", "'processes_per_node'"},
        {"{\"max_nodes\": 60000}", "'min_nodes'"},
        {"{\"max_nodes\": 60000, \"min_nodes\": 60001}", "'min_nodes'"},
        {"{\"max_nodes\": 0, \"min_nodes\": 1}", "'max_nodes'"},
        {"{\"hang\": {\"silent_s\": 0, \"gpus\": \"idle\"}}", "'silent_s'"},
        {"{\"hang\": {\"silent_s\": 9, \"gpus\": \"busy\"}}", "'gpus'"},
        {"{\"limit\": {\"seconds\": 0, \"warn_seconds\": 0}}", "'seconds'"},
        {"{\"limit\": {\"seconds\": 9, \"warn_seconds\": -1}}", "'warn_seconds'"},
        {"{\"gpus_per_node\": -1}", "'gpus_per_node'"},
        {"{\"on_processors\": 1}", "'on_processors'"},
        {"{\"package_sha256\": \"abc\"}", "'package_sha256'"},
        {"{\"package_bytes\": -1}", "'package_bytes'"},
        {"{\"folders\": {}}", "'folders'"},
        {"{\"folders\": [{}]}", "folder 1: "},
        {"{\"folders\": [{\"name\": \"..\", \"store\": \"s\", \"path\": \"p\", \"mode\": \"upload\"}]}", "'name'"},
        {"{\"folders\": [{\"name\": \"a/b\", \"store\": \"s\", \"path\": \"p\", \"mode\": \"upload\"}]}", "'name'"},
        {"{\"folders\": [{\"name\": \"a\", \"store\": \"s\", \"path\": \"p\", \"mode\": \"x\"}]}", "'mode'"},
        {"{\"folders\": [{\"name\": \"a\", \"store\": \"s\", \"path\": \"p\", \"link\": \"r\", \"mode\": "
         "\"upload\"}]}",
         "'link'"},
        {"{\"env\": [{\"name\": \"A=B\", \"value\": \"\"}]}", "variable 1: 'name' must be the name of a variable"},
        {"{\"env\": [{\"value\": \"x\"}]}", "variable 1: "},
        {"{\"sleep_if_fail\": 1}", "'sleep_if_fail'"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = full_spec(), back = {0};
        CODEC_AUTOJSON json_t *json = run_spec_to_json(&spec);
        CODEC_AUTOJSON json_t *change = json_loads(rows[i].change, JSON_ALLOW_NUL, NULL);
        err = (struct act_error){0};
        assert_non_null(change);
        json_object_update(json, change);
        assert_true(run_spec_from_json(json, &back, &err) < 0);
        if (!strstr(act_error_text(&err), rows[i].text))
            fail_msg("%s: %s", rows[i].change, act_error_text(&err));
        run_spec_release(&spec);
    }
    struct run_spec spec = full_spec(), back;
    CODEC_AUTOJSON json_t *json = run_spec_to_json(&spec);
    json_object_set_new(json, "from_the_future", json_true());
    assert_ok(run_spec_from_json(json, &back, &err), err);
    run_spec_release(&back);
    run_spec_release(&spec);
    assert_int_equal(run_spec_read("/nonexistent/run.json", &back, &err), -ACT_NOT_FOUND);
}

/* run.json names a secret; its value is in the other file only, and comes back from there. */
TEST_IN(test_secrets, make_dir, remove_dir)
{
    ACT_AUTO(run_spec) spec = full_spec(), back = {0};
    struct stat st;

    ACT_AUTOFREE char *json = test_path("run.json");
    ACT_AUTOFREE char *secrets = test_path("secrets.json");
    assert_ok(run_secrets_write(&spec, secrets, &err), err);
    assert_int_equal(access(secrets, F_OK), -1); /* there are none */

    run_spec_add_env(&spec, "WANDB_API_KEY", "hush \xff");
    run_spec_add_env(&spec, "PLAIN", "whisper");
    spec.env[3].secret = true;
    assert_ok(run_spec_write(&spec, json, &err), err);
    assert_ok(run_secrets_write(&spec, secrets, &err), err);
    assert_int_equal(stat(secrets, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    ACT_AUTOFREE char *text = NULL;
    assert_ok(act_file_read(json, 1 << 20, &text, NULL, &err), err);
    assert_non_null(strstr(text, "WANDB_API_KEY"));
    assert_null(strstr(text, "hush"));
    assert_null(strstr(text, "whisper"));

    assert_ok(run_spec_read(json, &back, &err), err);
    assert_null(back.env[2].value);
    assert_ok(run_secrets_read(&back, "/nonexistent/secrets.json", &err), err);
    assert_null(back.env[2].value);
    assert_ok(run_secrets_read(&back, secrets, &err), err);
    assert_string_equal(back.env[2].value, "hush \xff");
    assert_string_equal(back.env[3].value, "whisper");
    assert_true(run_env_is_secret(&back.env[3])); /* for whoever shows it there */
    assert_string_equal(back.env[0].value, "1 2");
}

TEST_IN(test_status, make_dir, remove_dir)
{
    struct run_status status = {0}, back;

    ACT_AUTOFREE char *path = test_path("status.json");
    for (int i = 0; i < RUN_BAD_NODES + 2; i++) {
        struct run_bad_node bad = {.class = "ecc", .unix_s = 100 + i};
        snprintf(bad.node, sizeof(bad.node), "n%d", i);
        run_status_add_bad(&status, &bad);
        run_status_add_bad(&status, &bad);
    }
    for (int s = RUN_QUEUED; s <= RUN_CANCELED; s++) {
        status.state = (enum run_state)s;
        assert_ok(run_status_write(path, &status, &err), err);
        assert_ok(run_status_read(path, &back, &err), err);
        assert_int_equal(back.state, s);
    }
    assert_int_equal(back.n_bad, RUN_BAD_NODES);
    assert_string_equal(back.bad[0].node, "n2"); /* the oldest two are gone */
    assert_string_equal(back.bad[RUN_BAD_NODES - 1].class, "ecc");
    assert_int_equal(back.bad[0].unix_s, 102);
    assert_ok(act_file_write(path, "{\"state\": \"Running\", \"exit_status\": 9999}", 40, 0600, &err), err);
    assert_true(run_status_read(path, &back, &err) < 0); /* torn: one byte short */
}

TEST(names_and_tags)
{
    static const char *const good[] = {"a", "sweep-7", "v1.2_x", "7"};
    static const char *const bad[] = {"", "-a", ".a", "@", "a:b", "a/b", "a b", "a=b", "\xc3\xa9"};
    ACT_AUTOFREE char *longest = act_strdup("0123456789012345678901234567890123456789012345678901234567890123");
    ACT_AUTOFREE char *longer = act_sprintf("%s4", longest);
    CODEC_AUTOJSON json_t *tags = json_object(), *wanted = json_object();

    for (size_t i = 0; i < COUNT(good); i++)
        assert_ok(run_check_name(good[i], &err), err);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(run_check_name(bad[i], &err), -ACT_USAGE);
    assert_true(run_label_valid(longest));
    assert_false(run_label_valid(longer));

    assert_ok(run_tags_add(tags, "lr=0.1", &err), err);
    assert_ok(run_tags_add(tags, "lr=0.1", &err), err);
    assert_ok(run_tags_add(tags, "empty=", &err), err);
    assert_ok(run_tags_add(tags, "b=c=d \xc3\xa9", &err), err);
    assert_int_equal(run_tags_add(tags, "lr=0.2", &err), -ACT_USAGE);
    assert_string_equal(act_error_text(&err), "tag 'lr' is given twice: '0.1' and '0.2'");
    assert_int_equal(run_tags_add(tags, "lr", &err), -ACT_USAGE);
    assert_string_equal(act_error_text(&err), "'lr' is not a tag: a tag is KEY=VALUE");
    assert_int_equal(run_tags_add(tags, "=x", &err), -ACT_USAGE);
    assert_int_equal(run_tags_add(tags, "k=a\nb", &err), -ACT_USAGE);
    assert_int_equal(run_tags_add(tags, "k=\xff", &err), -ACT_USAGE);

    ACT_AUTOFREE char *line = run_tags_line(tags);
    assert_string_equal(line, "{\"b\":\"c=d \xc3\xa9\",\"empty\":\"\",\"lr\":\"0.1\"}");
    CODEC_AUTOJSON json_t *back = run_tags_parse(line), *none = run_tags_parse("no JSON"),
                          *some = run_tags_parse("{\"a b\":\"x\",\"n\":1,\"k\":\"v\"}");
    assert_true(json_equal(back, tags));
    assert_int_equal(json_object_size(none), 0);
    assert_int_equal(json_object_size(some), 1);
    assert_null(run_tags_line(none));
    assert_true(run_tags_have(tags, NULL) && run_tags_have(NULL, wanted));
    assert_ok(run_tags_add(wanted, "lr=0.1", &err), err);
    assert_true(run_tags_have(tags, wanted) && !run_tags_have(some, wanted) && !run_tags_have(NULL, wanted));
}

/* A run that was never submitted has no exit status, and no attempt. */
TEST(the_status_of_a_run_that_never_began)
{
    CODEC_AUTOJSON json_t *json = json_pack("{s:s, s:i, s:i}", "state", "Failed", "exit_status", -1, "attempt", 0);
    struct run_status back;

    assert_ok(run_status_from_json(json, &back, &err), err);
    assert_true(back.state == RUN_FAILED && back.exit_status == -1 && back.attempt == 0);
}

/* What an older or a newer version wrote is read; what nobody wrote is an error that names the member. */
TEST(a_status_is_checked)
{
    static const struct {
        const char *json, *says; /* NULL: it is read */
    } rows[] = {
        {"{}", NULL},
        {"{\"state\": \"Running\", \"from_the_future\": 1, \"reason\": null}", NULL},
        {"{\"state\": \"Dreaming\"}", NULL},
        {"{\"version\": 2}", "the status has version 2, this program knows version 1"},
        {"{\"version\": 1.5}", "'version' must be a number from 1"},
        {"{\"state\": 1}", "'state' must be one of Queued, Running, Completed, Failed, Canceled, Unknown"},
        {"{\"failed_rank\": \"x\"}", "'failed_rank' must be a whole number from -1 to 16777216"},
        {"{\"exit_status\": -5}", "'exit_status'"},
        {"{\"exit_status\": 9223372036854775807}", "'exit_status' must be a whole number from -1 to 255"},
        {"{\"started\": 1e300}", "'started'"},
        {"{\"attempt\": -1}", "'attempt'"},
        {"{\"seen\": 1}", "'seen' must be true or false"},
        {"{\"reason\": 7}", "'reason' must be a text"},
        {"{\"bad_nodes\": {}}", "'bad_nodes' must be a list"},
        {"{\"bad_nodes\": [{}, {\"node\": 7}]}", "bad node 2: 'node' must be a text"},
        {"[]", "it is not an object"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *json = json_loads(rows[i].json, 0, NULL);
        struct run_status back;
        assert_non_null(json);
        int rc = run_status_from_json(json, &back, &err);
        if (rc != (rows[i].says ? -ACT_FAIL : 0) || (rows[i].says && !strstr(act_error_text(&err), rows[i].says)))
            fail_msg("%s: %d %s", rows[i].json, rc, act_error_text(&err));
        assert_int_equal(back.state, i == 1 ? RUN_RUNNING : RUN_UNKNOWN);
        assert_int_equal(back.failed_rank, -1);
        assert_int_equal(back.exit_status, 0);
        assert_int_equal(back.attempt, 1);
        assert_int_equal(back.n_bad, 0);
    }
}

/* Texts that are too long for their member are cut between characters, records too many for theirs are left out. */
TEST(a_long_status_is_cut)
{
    CODEC_AUTOJSON json_t *bads = json_array(), *json = NULL;
    struct run_status back;
    char longest[1000];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest + sizeof(back.reason) - 2, "\xc3\xa4", 2);
    for (int i = 0; i < RUN_BAD_NODES + 3; i++)
        json_array_append_new(bads, json_pack("{s:s, s:i}", "node", longest, "time", i));
    json = json_pack("{s:s, s:O}", "reason", longest, "bad_nodes", bads);
    assert_ok(run_status_from_json(json, &back, &err), err);
    assert_int_equal(strlen(back.reason), sizeof(back.reason) - 2);
    assert_int_equal(back.n_bad, RUN_BAD_NODES);
    assert_int_equal(strlen(back.bad[0].node), sizeof(back.bad[0].node) - 1);
    assert_int_equal(back.bad[RUN_BAD_NODES - 1].unix_s, RUN_BAD_NODES - 1);
}

/* ---- copies of folders */

static void run_test_put(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/" RUN_DIR_MOUNT_COPY "/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(act_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static void run_test_fetch(void)
{
    ACT_AUTOFREE char *below = test_path(RUN_DIR_MOUNT_COPY "/below");

    assert_ok(act_mkdir_all(below, 0700, &err), err);
    run_test_put("a", "a");
    run_test_put("below/b", "b");
    assert_ok(run_mount_note_fetched(dir, &err), err);
    assert_false(run_mount_changed(dir));
}

TEST_IN(every_change_of_a_copy_is_seen, make_dir, remove_dir)
{
    ACT_AUTOFREE char *a = test_path(RUN_DIR_MOUNT_COPY "/a"), *c = test_path(RUN_DIR_MOUNT_COPY "/c");

    assert_false(run_mount_changed(dir)); /* nothing was fetched */
    run_test_fetch();
    run_test_put("below/b", "c");
    assert_true(run_mount_changed(dir));
    run_test_fetch();
    assert_int_equal(rename(a, c), 0);
    assert_true(run_mount_changed(dir));
    assert_int_equal(rename(c, a), 0);
    run_test_fetch();
    assert_int_equal(chmod(a, 0640), 0);
    assert_true(run_mount_changed(dir));
    run_test_fetch();
    assert_int_equal(unlink(a), 0);
    assert_true(run_mount_changed(dir));
}

/* A node whose clock was ahead when the folder came, and was set right while the command ran. */
TEST_IN(a_change_of_a_copy_is_seen_when_the_clock_was_set_back, make_dir, remove_dir)
{
    ACT_AUTOFREE char *fetched = test_path(RUN_FILE_MOUNT_FETCHED);
    struct timespec hour_later[2] = {{.tv_sec = time(NULL) + 3600}, {.tv_sec = time(NULL) + 3600}};

    run_test_fetch();
    assert_int_equal(utimensat(AT_FDCWD, fetched, hour_later, 0), 0);
    run_test_put("a", "b");
    assert_true(run_mount_changed(dir));
}

TEST_MAIN(NULL, NULL)
