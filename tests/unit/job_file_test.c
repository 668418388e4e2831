/* Job files of Azure Batch AI: the shell line, the size and the words that they come to. */
#include "unit/test.h"

#include "codec/json.h"
#include "flow/job_file.h"

#define HEAD                                                                                                 \
    "export AZ_BATCHAI_MOUNT_ROOT=\"$PWD\" AZ_BATCHAI_JOB_MOUNT_ROOT=\"$PWD\" "                              \
    "AZ_BATCHAI_TASK_INDEX=\"${RANK:-0}\"\n"

static int parse(const char *text, struct flow_job_file *out, struct act_error *err)
{
    struct config_folder folders[] = {{.name = (char[]){"data"}}, {.name = (char[]){"output"}}};
    struct config config = {.folders = folders, .n_folders = 2};
    CODEC_AUTOJSON json_t *json = NULL;

    assert_int_equal(codec_json_parse(text, strlen(text), "job.json", &json, err), 0);
    return flow_job_file_parse(json, "job.json", &config, out, err);
}

static void lines_table(void **state)
{
    static const struct {
        const char *properties; /* without nodeCount */
        const char *line;       /* behind HEAD */
        size_t notes;
    } rows[] = {
        {"'customToolkitSettings': {'commandLine': 'a | b'}", "a | b", 0},
        {"'customMpiSettings': {'commandLine': 'a \\\"$B\\\"'}", "a \"$B\"", 0},
        {"'horovodSettings': {'pythonScriptFilePath': '$AZ_BATCHAI_INPUT_S/a b.py', 'commandLineArgs': '-x 1'}",
         "python \"$AZ_BATCHAI_INPUT_S/a b.py\" -x 1", 0},
        {"'chainerSettings': {'pythonScriptFilePath': 'a`b.py', 'pythonInterpreterPath': '/opt/py 3'}",
         "\"/opt/py 3\" \"a\\`b.py\"", 0},
        {"'cntkSettings': {'configFilePath': 'c.cntk', 'languageType': 'BrainScript', 'commandLineArgs': 'x=1'}",
         "cntk configFile=\"c.cntk\" x=1", 0},
        {"'caffeSettings': {'configFilePath': 's.prototxt'}", "caffe train --solver=\"s.prototxt\"", 0},
        {"'pyTorchSettings': {'pythonScriptFilePath': 'a.py', 'communicationBackend': 'TCP'}",
         "export AZ_BATCHAI_PYTORCH_BACKEND=\"tcp\"\n"
         "export AZ_BATCHAI_PYTORCH_INIT_METHOD=\"tcp://${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-23456}\"\n"
         "python \"a.py\"",
         0},
        {"'inputDirectories': [{'id': 'A', 'path': '$AZ_BATCHAI_MOUNT_ROOT/data/x'},"
         " {'id': 'B', 'path': 'output'}, {'id': 'C', 'path': '/mnt/nfs'},"
         " {'id': 'D', 'path': '${AZ_BATCHAI_JOB_MOUNT_ROOT}/database'}],"
         "'customToolkitSettings': {'commandLine': 'a'}",
         "export AZ_BATCHAI_INPUT_A=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"data/x\"\n"
         "export AZ_BATCHAI_INPUT_B=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"output\"\n"
         "export AZ_BATCHAI_INPUT_C=\"/mnt/nfs\"\n"
         "export AZ_BATCHAI_INPUT_D=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"database\"\n"
         "a",
         2},
        {"'outputDirectories': [{'id': 'M', 'pathPrefix': '$AZ_BATCHAI_MOUNT_ROOT/output/', 'pathSuffix': 'm'}],"
         "'customToolkitSettings': {'commandLine': 'a'}",
         "export AZ_BATCHAI_OUTPUT_M=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"output/$ACT_RUN_ID/m\"\n"
         "mkdir -p \"$AZ_BATCHAI_OUTPUT_M\" || exit\na",
         0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *text = act_sprintf("{'properties': {'nodeCount': 1, %s}}", rows[i].properties);
        ACT_AUTOFREE char *line = act_sprintf(HEAD "%s", rows[i].line);
        struct flow_job_file job;
        struct act_error err;
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        if (parse(text, &job, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_string_equal(job.line, line);
        assert_int_equal(job.notes.n, rows[i].notes);
        flow_job_file_release(&job);
    }
}

static void sizes_table(void **state)
{
    static const struct {
        const char *count, *processes;
        int nodes, procs_per_node; /* 0: an error */
    } rows[] = {{"1", "null", 1, 1}, {"4", "null", 4, 1}, {"2", "8", 2, 4},   {"2", "3", 0, 0},
                {"2", "1", 0, 0},    {"0", "null", 0, 0}, {"1.5", "1", 0, 0}, {"99999999999", "1", 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *text = act_sprintf("{\"properties\": {\"nodeCount\": %s, \"customMpiSettings\": "
                                              "{\"commandLine\": \"a\", \"processCount\": %s}}}",
                                              rows[i].count, rows[i].processes);
        struct flow_job_file job;
        struct act_error err;
        int rc = parse(text, &job, &err);
        assert_int_equal(rc, rows[i].nodes ? 0 : -ACT_CONFIG);
        assert_int_equal(job.nodes, rows[i].nodes);
        assert_int_equal(job.procs_per_node, rows[i].procs_per_node);
        flow_job_file_release(&job);
    }
}

/* Others than the first node are there for what the command starts itself. */
static void a_custom_command_is_for_the_first_node(void **state)
{
    struct flow_job_file job;
    struct act_error err;

    (void)state;
    assert_int_equal(
        parse("{\"properties\": {\"nodeCount\": 2, \"customToolkitSettings\": {\"commandLine\": \"a\"}}}",
              &job, &err),
        0);
    assert_string_equal(job.line, HEAD "[ \"${RANK:-0}\" = 0 ] || exit 0\na");
    assert_int_equal(job.notes.n, 1);
    flow_job_file_release(&job);
}

static void environment_and_image(void **state)
{
    struct flow_job_file job;
    struct act_error err;

    (void)state;
    assert_int_equal(
        parse("{\"properties\": {\"nodeCount\": 1, \"customToolkitSettings\": {\"commandLine\": \"a\"},"
              "\"environmentVariables\": [{\"name\": \"A\", \"value\": \"1=2 $B\"}],"
              "\"secrets\": [{\"name\": \"MY_KEY\", \"value\": \"s\"}],"
              "\"constraints\": {\"maxWallClockTime\": \"P7D\"},"
              "\"containerSettings\": {\"imageSourceRegistry\": "
              "{\"serverUrl\": \"https://r.io/\", \"image\": \"i:1\"}}}}",
              &job, &err),
        0);
    assert_int_equal(job.env.n, 2);
    assert_string_equal(job.env.v[0], "A=1=2 $B");
    assert_string_equal(job.env.v[1], "MY_KEY=s");
    assert_string_equal(job.image, "r.io/i:1");
    assert_string_equal(job.timeout, "P7D");
    assert_int_equal(job.notes.n, 0);
    flow_job_file_release(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_table),
        cmocka_unit_test(sizes_table),
        cmocka_unit_test(a_custom_command_is_for_the_first_node),
        cmocka_unit_test(environment_and_image),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
