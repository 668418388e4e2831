/* Job files of Azure Batch AI: the shell line, the size and the words that they come to. */
#include "config/config.h"
#include "unit/test.h"

#include <string.h>

#include "codec/json.h"
#include "flow/jobfile/build.h"
#include "platform/azureml/keys.h"
#include "platform/slurm/keys.h"

#define HEAD                                                                                                           \
    "export AZ_BATCHAI_MOUNT_ROOT=\"$PWD\" AZ_BATCHAI_JOB_MOUNT_ROOT=\"$PWD\" "                                        \
    "AZ_BATCHAI_TASK_INDEX=\"${RANK:-0}\" AZ_BATCHAI_NUM_GPUS_PER_NODE=\"$AZ_BATCHAI_NUM_GPUS\" "                      \
    "AZ_BATCHAI_SHARED_JOB_TEMP=\"$AZ_BATCHAI_JOB_TEMP\" AZ_BATCHAI_JOB_TEMP_DIR=\"$AZ_BATCHAI_JOB_TEMP\" "            \
    "AZ_BATCHAI_JOB_TEMP=\"$AZ_BATCHAI_JOB_TEMP/node-${NODE_RANK:-0}\"\n"                                              \
    "mkdir -p \"$AZ_BATCHAI_JOB_TEMP\" || exit\n"
#define FIRST                                                                                                          \
    "[ \"${RANK:-0}\" = 0 ] || exit 0\n"                                                                               \
    "unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE ${!PMI_@} ${!PMIX_@} ${!PRTE_@}\n"                              \
    "unset ${!OMPI_COMM_WORLD_@} ${!OMPI_UNIVERSE_@} ${!OMPI_APP_CTX_@} OMPI_FIRST_RANKS "                             \
    "OMPI_NUM_APP_CTX OMPI_ARGV OMPI_COMMAND OMPI_FILE_LOCATION\n"                                                     \
    "unset ${!OMPI_MCA_orte_@} ${!OMPI_MCA_ess_@} ${!OMPI_MCA_rmaps_@} "                                               \
    "${!OMPI_MCA_hwloc_base_binding_@} OMPI_MCA_ess OMPI_MCA_pmix OMPI_MCA_initial_wdir "                              \
    "OMPI_MCA_mpi_oversubscribe\n"                                                                                     \
    "unset SLURM_MEM_PER_CPU; export SLURM_OVERLAP=1 SLURM_MEM_PER_NODE=0\n"

/* Parses a job file, in whose text single quotes stand for double ones. */
static int job_file_test_parse(const char *quoted, struct flow_job_file *out)
{
    struct config_folder folders[] = {{.name = (char[]){"data"}}, {.name = (char[]){"output"}}};
    struct config config = {.folders = folders, .n_folders = 2};
    ACT_AUTOFREE char *text = act_strdup(quoted);
    CODEC_AUTOJSON json_t *json = NULL;

    for (char *c = text; (c = strchr(c, '\''));)
        *c = '"';
    assert_ok(codec_json_parse(text, strlen(text), "job.json", &json, &err), err);
    return flow_job_file_parse(json, "job.json", &config, NULL, out, &err);
}

TEST(lines_table)
{
    static const struct {
        const char *properties; /* without nodeCount */
        const char *line;       /* behind HEAD */
        size_t notes;
    } rows[] = {
        {"'customToolkitSettings': {'commandLine': 'a | b'}", FIRST "a | b", 0},
        {"'customMpiSettings': {'commandLine': 'a \\\"$B\\\"'}", "a \"$B\"", 0},
        {"'horovodSettings': {'pythonScriptFilePath': '$AZ_BATCHAI_INPUT_S/a b.py', 'commandLineArgs': '-x 1'}",
         "python \"$AZ_BATCHAI_INPUT_S/a b.py\" -x 1", 1},
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
         "export AZ_BATCHAI_INPUT_D=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"database\"\n" FIRST "a",
         2},
        {"'outputDirectories': [{'id': 'M', 'pathPrefix': '$AZ_BATCHAI_MOUNT_ROOT/output/', 'pathSuffix': 'm'}],"
         "'customToolkitSettings': {'commandLine': 'a'}",
         "export AZ_BATCHAI_OUTPUT_M=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"output/$ACT_RUN_ID/m\"\n"
         "mkdir -p \"$AZ_BATCHAI_OUTPUT_M\" || exit\n" FIRST "a",
         0},
        {"'outputDirectories': [{'id': 'M', 'pathPrefix': 'output', 'createNew': false}],"
         "'customMpiSettings': {'commandLine': 'a'}",
         "export AZ_BATCHAI_OUTPUT_M=\"$AZ_BATCHAI_MOUNT_ROOT\"/\"output\"\na", 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_sprintf("{'properties': {'nodeCount': 1, %s}}", rows[i].properties);
        ACT_AUTOFREE char *line = act_sprintf(HEAD "%s", rows[i].line);
        struct flow_job_file job;
        if (job_file_test_parse(text, &job) < 0)
            fail_msg("row %zu: %s", i, act_error_text(&err));
        assert_string_equal(job.line, line);
        assert_int_equal(job.notes.n, rows[i].notes);
        flow_job_file_release(&job);
    }
}

TEST(sizes_table)
{
    static const struct {
        const char *count, *processes;
        int nodes, procs_per_node; /* 0: an error */
    } rows[] = {{"1", "null", 1, 1}, {"4", "null", 4, 1}, {"2", "8", 2, 4},   {"2", "3", 0, 0},
                {"2", "1", 0, 0},    {"0", "null", 0, 0}, {"1.5", "1", 0, 0}, {"99999999999", "1", 0, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_sprintf(
            "{'properties': {'nodeCount': %s, 'customMpiSettings': {'commandLine': 'a', 'processCount': %s}}}",
            rows[i].count, rows[i].processes);
        struct flow_job_file job;
        int rc = job_file_test_parse(text, &job);
        assert_int_equal(rc, rows[i].nodes ? 0 : -ACT_CONFIG);
        assert_int_equal(job.nodes, rows[i].nodes);
        assert_int_equal(job.procs_per_node, rows[i].procs_per_node);
        flow_job_file_release(&job);
    }
}

/* Others than the first node are there for what the command starts itself. */
TEST(a_custom_command_is_for_the_first_node)
{
    struct flow_job_file job;

    assert_ok(
        job_file_test_parse("{'properties': {'nodeCount': 2, 'customToolkitSettings': {'commandLine': 'a'}}}", &job),
        err);
    assert_string_equal(job.line, HEAD FIRST "a");
    assert_int_equal(job.notes.n, 1);
    flow_job_file_release(&job);
}

TEST(the_title_is_what_the_user_wrote)
{
    static const struct {
        const char *settings, *title;
    } rows[] = {
        {"'customToolkitSettings': {'commandLine': 'mpirun a'}", "customToolkit: mpirun a"},
        {"'caffeSettings': {'configFilePath': 's.prototxt'}", "caffe: s.prototxt"},
        {"'tensorFlowSettings': {'pythonScriptFilePath': 'a b.py', 'masterCommandLineArgs': '-m'}",
         "tensorFlow: python a b.py -m"},
        {"'horovod_settings': {'python_script_file_path': 'a.py', 'pythonInterpreterPath': 'py', 'process_count': 1}",
         "horovod: py a.py"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text =
            act_sprintf("{'$comment': 1, 'properties': {'$comment2': {}, 'node_count': 1, %s}}", rows[i].settings);
        struct flow_job_file job;
        if (job_file_test_parse(text, &job) < 0)
            fail_msg("row %zu: %s", i, act_error_text(&err));
        assert_string_equal(job.title, rows[i].title);
        flow_job_file_release(&job);
    }
}

TEST(the_title_of_a_run_tells_the_tool)
{
    static const struct {
        const char *title, *tool;
    } rows[] = {
        {"job.json, pyTorch: python train.py --lr 1", "pyTorch"},
        {"a, b.json, customToolkit: echo a, caffe: b", "customToolkit"},
        {"job.json, caffe2: x", "caffe2"},
        {"job.json, caffe3: x", NULL},
        {"pyTorch: x", NULL},
        {"", NULL},
        {NULL, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *tool = flow_job_tool(rows[i].title);
        if (!act_streq(tool, rows[i].tool))
            fail_msg("row %zu: %s", i, tool ? tool : "none");
    }
}

/* A job of one command with these further members, in single quotes. */
static int parse_with(const char *members, struct flow_job_file *out)
{
    ACT_AUTOFREE char *text =
        act_sprintf("{'properties': {'nodeCount': 1, 'customMpiSettings': {'commandLine': 'a'}, %s}}", members);

    return job_file_test_parse(text, out);
}

TEST(environment_and_image)
{
    struct flow_job_file job;

    assert_ok(parse_with("'environmentVariables': [{'name': 'A', 'value': '1=2 $B'}],"
                         "'secrets': [{'name': 'MINE', 'value': 's'}],"
                         "'constraints': {'maxWallClockTime': 'P7D'},"
                         "'containerSettings': {'shmSize': '16gb', 'imageSourceRegistry': "
                         "{'serverUrl': 'https://r.io/', 'image': 'i:1',"
                         " 'credentials': {'username': 'u', 'password': 'p'}}}",
                         &job),
              err);
    assert_int_equal(job.env.n, 1);
    assert_string_equal(job.env.v[0], "A=1=2 $B");
    assert_int_equal(job.secrets.n, 1);
    assert_string_equal(job.secrets.v[0], "MINE=s");
    assert_string_equal(job.image, "r.io/i:1");
    assert_string_equal(job.registry, "r.io");
    assert_string_equal(job.username, "u");
    assert_string_equal(job.password, "p");
    assert_string_equal(job.shm_size, "16g");
    assert_int_equal(job.limit_s, 7 * 86400);
    assert_int_equal(job.notes.n, 0);
    flow_job_file_release(&job);
}

TEST(images_table)
{
    static const struct {
        const char *server, *image, *whole, *registry;
    } rows[] = {
        {"null", "tf:1", "tf:1", NULL},
        {"null", "library/tf:1", "library/tf:1", NULL},
        {"null", "r.io/tf", "r.io/tf", "r.io"},
        {"null", "localhost/tf", "localhost/tf", "localhost"},
        {"'demo.azurecr.io'", "demo.azurecr.io/tf", "demo.azurecr.io/tf", "demo.azurecr.io"},
        {"'https://demo.azurecr.io/'", "team/tf", "demo.azurecr.io/team/tf", "demo.azurecr.io"},
        {"''", "tf", "tf", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *members =
            act_sprintf("'containerSettings': {'imageSourceRegistry': {'serverUrl': %s, 'image': '%s'}}",
                        rows[i].server, rows[i].image);
        struct flow_job_file job;
        assert_ok(parse_with(members, &job), err);
        assert_string_equal(job.image, rows[i].whole);
        assert_true(act_streq(job.registry, rows[i].registry));
        flow_job_file_release(&job);
    }
}

TEST(times_table)
{
    static const struct {
        const char *text;
        int64_t seconds; /* 0: none */
    } rows[] = {
        {"P7D", 604800},
        {"PT1H", 3600},
        {"P1DT2H3M4S", 93784},
        {"PT90M", 5400},
        {"P1W", 604800},
        {"PT1.5S", 1},
        {"7.00:00:00", 604800},
        {"01:30:00", 5400},
        {"00:00:30.5000000", 30},
        {"1.02:03:04", 93784},
        {"10:30", 37800},
        {"7 days, 0:00:00", 604800},
        {"1 day, 2:03:04.500000", 93784},
        {"7 days", 0},
        {"7 days,0:00:00", 0},
        {" days, 0:00:00", 0},
        {"P", 0},
        {"PT", 0},
        {"P1DT", 0},
        {"P1Y", 0},
        {"P1M", 0},
        {"PT1M1H", 0},
        {"PT0S", 0},
        {"7d", 0},
        {"7", 0},
        {"", 0},
        {"24:00:00", 0},
        {"00:60:00", 0},
        {"1.00:00:00x", 0},
        {"-1.00:00:00", 0},
        {"PT99999999999S", 0},
        {"1..00:00:00", 0},
        {"00:00:00", 0},
    };
    int64_t seconds;

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (job_seconds(rows[i].text, &seconds) != (rows[i].seconds > 0))
            fail_msg("'%s'", rows[i].text);
        if (rows[i].seconds)
            assert_int_equal(seconds, rows[i].seconds);
    }
}

TEST(sizes_of_memory_table)
{
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: none */
    } rows[] = {{"16gb", 16ULL << 30},
                {"16g", 16ULL << 30},
                {"16GiB", 16ULL << 30},
                {"1.5G", 3ULL << 29},
                {"512M", 512 << 20},
                {"1024", 1024},
                {"64b", 64},
                {"0", 0},
                {"g", 0},
                {"16 cows", 0},
                {"", 0},
                {"b", 0}};
    uint64_t bytes;

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (job_bytes(rows[i].text, &bytes) != (rows[i].bytes > 0))
            fail_msg("'%s'", rows[i].text);
        if (rows[i].bytes)
            assert_int_equal(bytes, rows[i].bytes);
    }
}

/* Workers fill the nodes, one more process on each is for a parameter server. */
TEST(tasks_table)
{
    static const struct {
        const char *nodes, *workers, *servers;
        int procs_per_node; /* 0: an error */
        bool distributed;
    } rows[] = {
        {"1", "null", "null", 1, false}, {"1", "1", "null", 1, false},   {"1", "2", "1", 3, true},
        {"1", "1", "1", 2, true},        {"2", "null", "null", 2, true}, {"2", "3", "2", 3, true},
        {"2", "2", "3", 0, true},        {"2", "60000", "1", 0, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text =
            act_sprintf("{'properties': {'nodeCount': %s, 'tensorFlowSettings': {'pythonScriptFilePath': 'a', "
                        "'workerCount': %s, 'parameterServerCount': %s}}}",
                        rows[i].nodes, rows[i].workers, rows[i].servers);
        struct flow_job_file job;
        assert_int_equal(job_file_test_parse(text, &job), rows[i].procs_per_node ? 0 : -ACT_CONFIG);
        assert_int_equal(job.procs_per_node, rows[i].procs_per_node);
        assert_true(job.fixed_size == (rows[i].distributed && rows[i].procs_per_node));
        flow_job_file_release(&job);
    }
}

static void assert_notes(const char *members, const char *const *pieces)
{
    struct flow_job_file job;

    assert_ok(parse_with(members, &job), err);
    for (size_t i = 0; pieces[i]; i++) {
        assert_true(i < job.notes.n);
        if (!strstr(job.notes.v[i], pieces[i]))
            fail_msg("'%s' is not in '%s'", pieces[i], job.notes.v[i]);
        assert_true(i + 1 < job.notes.n || !pieces[i + 1]);
    }
    flow_job_file_release(&job);
}

TEST(variables_that_nothing_sets_are_named_once)
{
    assert_notes("'environmentVariables': [{'name': 'A', 'value': '$AZ_BATCHAI_INPUT_SET ${AZ_BATCHAI_JOB_TEMP}'},"
                 "{'name': 'B', 'value': 'AZ_BATCHAI_NO $AZ_BATCHAI_A'}, {'name': 'AZ_BATCHAI_A', 'value': ''}],"
                 "'jobPreparation': {'commandLine': 'ls ${AZ_BATCHAI_INPUT_SET} $AZ_BATCHAI_PS_HOSTS'}",
                 (const char *const[]){"environmentVariables[0].value: nothing sets '$AZ_BATCHAI_INPUT_SET'",
                                       "jobPreparation.commandLine: nothing sets '$AZ_BATCHAI_PS_HOSTS'", NULL});
}

TEST(a_volume_has_a_counterpart_or_a_note)
{
    assert_notes("'mountVolumes': {'azureFileShares': [{'relativeMountPath': 'logs'}],"
                 "'azureBlobFileSystems': [{'relativeMountPath': 'data'}],"
                 "'fileServers': [{'relativeMountPath': 'nfs'}],"
                 "'unmanagedFileSystems': [{'relativeMountPath': 'own', 'mountCommand': 'mount'}]}",
                 (const char *const[]){"'logs' is not mounted; map the share",
                                       "mapped folder stands for the volume "
                                       "at 'data'",
                                       "'nfs' is not mounted; file servers",
                                       "'own' is not mounted; "
                                       "the mount command",
                                       NULL});
}

/* What is told to the cluster, and what is left for the command. */
TEST(a_cluster_is_told_what_it_can_do)
{
    struct flow_job_file job;
    struct azureml_keys azureml = {0};
    struct slurm_keys slurm = {0};
    struct config config = {
        .platform = (char[]){"aml"},
        .cluster = (char[]){"eu"},
        .parts = (struct config_part_values[]){{&azureml_keys_part, &azureml}, {&slurm_keys_part, &slurm}},
        .n_parts = 2,
        .docker = {.image = act_strdup("old"),
                   .address = act_strdup("https://r.io"),
                   .username = act_strdup("me"),
                   .password = act_strdup("mine")}};

    assert_ok(parse_with("'constraints': {'maxWallClockTime': '01:00:00'}, 'containerSettings': "
                         "{'shmSize': '1g', 'imageSourceRegistry': {'image': 'r.io/i:1'}}",
                         &job),
              err);
    assert_int_equal(flow_job_file_apply(&job, &config), 0);
    assert_string_equal(config.docker.image, "r.io/i:1");
    assert_string_equal(config.docker.username, "me"); /* the same registry */
    assert_string_equal(azureml.shm_size, "1g");
    assert_string_equal(azureml.timeout, "PT3600S");
    assert_int_equal(job.notes.n, 0);

    config.platform = (char[]){"slurm"};
    assert_int_equal(flow_job_file_apply(&job, &config), 0);
    assert_string_equal(slurm.time, "0-01:00:00");
    assert_int_equal(job.notes.n, 2); /* no image, no shared memory */

    config.platform = (char[]){"local"};
    assert_int_equal(flow_job_file_apply(&job, &config), 3600);
    flow_job_file_release(&job);

    config.platform = (char[]){"aml"};
    assert_ok(parse_with("'containerSettings': {'imageSourceRegistry': {'image': 'tf:1'}}", &job), err);
    assert_int_equal(flow_job_file_apply(&job, &config), 0);
    assert_string_equal(config.docker.image, "tf:1");
    assert_null(config.docker.address); /* the image is not there */
    assert_null(config.docker.password);
    flow_job_file_release(&job);

    config.docker.username = act_strdup("me"); /* at Docker Hub, since the image is there */
    config.docker.password = act_strdup("mine");
    assert_ok(parse_with("'containerSettings': {'imageSourceRegistry': {'image': 'tf:2'}}", &job), err);
    assert_int_equal(flow_job_file_apply(&job, &config), 0);
    assert_string_equal(config.docker.image, "tf:2");
    assert_string_equal(config.docker.password, "mine");
    flow_job_file_release(&job);
    assert_ok(parse_with("'containerSettings': {'imageSourceRegistry': {'image': 'tf:3', 'credentials': "
                         "{'username': 'u', 'password': 'p'}}}",
                         &job),
              err);
    assert_int_equal(flow_job_file_apply(&job, &config), 0);
    assert_null(config.docker.address);
    assert_string_equal(config.docker.password, "p");
    flow_job_file_release(&job);
    free(config.docker.username);
    free(config.docker.password);
    free(config.docker.image);
    free(azureml.shm_size);
    free(azureml.timeout);
    free(slurm.time);
}

TEST_MAIN(NULL, NULL)
