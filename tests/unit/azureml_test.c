/* azureml_test.c - runs as jobs of Azure Machine Learning and back, names and URLs, states; and the reading of logs,
 * from a service of this process that answers as the emulator never does. */
#include "auth/services.h"
#include "config/config.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/source/source.h"
#include "platform/azureml/azureml_internal.h"
#include "store/store.h"

#define WORKSPACE "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"
/* A text that stays, for members that are not const. */
#define FIXED(text)                                                                                                    \
    ({                                                                                                                 \
        static char text_[] = text;                                                                                    \
        text_;                                                                                                         \
    })

#define RUN "exp_1795300000_0123abcd"

/* ---- a configuration and a run ---- */

static struct config azureml_test_config_of(const char *platform)
{
    static char name[16]; /* of the last one, as are its parts */
    static struct aml_config_keys workspace;
    static struct azureml_keys keys;
    static struct config_part_values parts[] = {{&aml_config_keys_part, &workspace}, {&azureml_keys_part, &keys}};

    workspace = (struct aml_config_keys){FIXED("s"), FIXED("rg"), FIXED("ws")};
    keys = (struct azureml_keys){.priority = -1, .scale_interval = 480};
    snprintf(name, sizeof(name), "%s", platform);
    return (struct config){.cluster = FIXED("c1"),
                           .file = FIXED("c1.yaml"),
                           .project_root = FIXED("/project"),
                           .platform = name,
                           .compute_target = FIXED("gpu"),
                           .docker = {.image = FIXED("debian:12")},
                           .parts = parts,
                           .n_parts = 2,
                           .singularity_sla_tier = FIXED("Premium"),
                           .singularity_instance_type = FIXED("Singularity.ND40rs_v2"),
                           .experiment_name = FIXED("exp"),
                           .multi_process = true,
                           .gpu_per_node = 4};
}

static struct services services;

static struct azureml *azureml_test_open_it(const struct config *config)
{
    struct platform *p = NULL;

    assert_ok(platform_open(&services, config, &p, &err), err);
    return azureml_of(p);
}

static void close_it(struct azureml *a)
{
    platform_free(&a->base);
    services_close(&services);
}

static struct run_spec spec_of(int nodes, int procs, int gpus)
{
    struct run_spec spec = {.id = act_strdup(RUN),
                            .experiment = act_strdup("exp"),
                            .cluster = act_strdup("c1"),
                            .project_root = act_strdup("/project"),
                            .package_key = act_strdup("code/p.zip"),
                            .nodes = nodes,
                            .procs_per_node = procs,
                            .gpus_per_node = gpus};

    memset(spec.package_sha256, 'a', ACT_SHA256_HEX - 1);
    act_strv_push(&spec.argv, "python");
    act_strv_push(&spec.argv, "it's ${{inputs.x}}\xff");
    return spec;
}

static void azureml_test_add_folder(struct run_spec *spec, const char *name, const char *path,
                                    enum run_folder_mode mode)
{
    spec->folders = act_realloc(spec->folders, (spec->n_folders + 1) * sizeof(*spec->folders));
    spec->folders[spec->n_folders++] = (struct run_folder){
        .name = act_strdup(name), .store = act_strdup("blob:a/c"), .path = act_strdup(path), .mode = mode};
}

static int make_body(const struct azureml *a, const struct run_spec *spec, json_t **out, struct act_error *e)
{
    char uri[] = "azureml://datastores/ds/paths/x";
    struct azureml_place folders[] = {{uri}, {uri}, {uri}, {uri}};
    ACT_AUTOFREE char *compute = azureml_compute_id(a);
    struct azureml_job_places places = {.environment_id = FIXED("/env/1"),
                                        .compute_id = compute,
                                        .agent = {uri},
                                        .package = {uri},
                                        .spec = {uri},
                                        .folders = folders};

    return azureml_job_body(a, spec, &places, out, e);
}

/* The body of a run of so many nodes with a configuration, which may have been changed. A new reference. */
static json_t *body_of(const struct config *config, struct run_spec *spec)
{
    struct azureml *a = azureml_test_open_it(config);
    json_t *body = NULL;

    assert_ok(make_body(a, spec, &body, &err), err);
    close_it(a);
    run_spec_release(spec);
    return body;
}

/* That there is no body, and that the error has this text. */
static void azureml_test_refused(const struct config *config, struct run_spec *spec, const char *part)
{
    struct azureml *a = azureml_test_open_it(config);
    json_t *body = NULL;

    err = (struct act_error){0};
    assert_int_equal(make_body(a, spec, &body, &err), -ACT_CONFIG);
    assert_null(body);
    if (!strstr(act_error_text(&err), part) || !act_utf8_valid(act_error_text(&err), strlen(act_error_text(&err))))
        fail_msg("'%s' is not in '%s'", part, act_error_text(&err));
    close_it(a);
    run_spec_release(spec);
}

/* That the member at "a/b/c" below properties is this JSON, with ' for ". NULL: it is not there. */
static void azureml_test_expect(const json_t *body, const char *path, const char *wanted)
{
    const json_t *at = json_object_get(body, "properties");
    ACT_AUTOFREE char *want = act_strdup(wanted);
    ACT_AUTOFREE char *rest = act_strdup(path);

    for (char *save, *name = strtok_r(rest, "/", &save); name; name = strtok_r(NULL, "/", &save))
        at = json_object_get(at, name);
    ACT_AUTOFREE char *text = at ? json_dumps(at, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    for (char *c = want; c && *c; c++)
        *c = *c == '\'' ? '"' : *c;
    if (!act_streq(text, want))
        fail_msg("%s is %s, not %s", path, text ? text : "not there", want ? want : "absent");
}

/* ---- bodies ---- */

TEST(folders_that_cannot_be)
{
    static const struct {
        const char *path, *link, *said;
    } rows[] = {{"a/${{name}}", NULL, "'data' has the path 'a/${{name}}'"},
                {"a\xff", NULL, "folder 'data' is not UTF-8"},
                {"a", "/store/a", "'data' is in a folder store"}};
    struct config config = azureml_test_config_of("aml");

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = spec_of(1, 1, 1);
        azureml_test_add_folder(&spec, "data", rows[i].path, RUN_FOLDER_RW_MOUNT);
        spec.folders[0].link = act_strdup(rows[i].link);
        azureml_test_refused(&config, &spec, rows[i].said);
    }
}

TEST(environment_that_is_not_utf8)
{
    static const char *const rows[][3] = {{"MY_TOKEN", "a\xff", "'MY_TOKEN' is not UTF-8"},
                                          {"A\xff", "a", "the name of environment variable 1 is not UTF-8"}};
    struct config config = azureml_test_config_of("aml");

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = spec_of(1, 1, 1);
        run_spec_add_env(&spec, rows[i][0], rows[i][1]);
        azureml_test_refused(&config, &spec, rows[i][2]);
    }
}

/* Open MPI waits twice as long as it is told, and only where it is there. */
TEST(time_to_end)
{
    static const struct {
        const char *grace, *own; /* ACT_ABORT_GRACE, and the user's own word */
        const char *seconds;
    } rows[] = {{NULL, NULL, "'5'"}, {"30", NULL, "'15'"},  {"0", NULL, "'0'"},        {"5", NULL, "'3'"},
                {"-1", NULL, "'5'"}, {"long", NULL, "'5'"}, {"99999999", NULL, "'5'"}, {"30", "7", "'7'"}};
    struct config config = azureml_test_config_of("aml");

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_spec spec = spec_of(1, 2, 2);
        if (rows[i].grace)
            run_spec_add_env(&spec, "ACT_ABORT_GRACE", rows[i].grace);
        if (rows[i].own)
            run_spec_add_env(&spec, "OMPI_MCA_odls_base_sigkill_timeout", rows[i].own);
        CODEC_AUTOJSON json_t *body = body_of(&config, &spec);
        azureml_test_expect(body, "environmentVariables/OMPI_MCA_odls_base_sigkill_timeout", rows[i].seconds);
        azureml_test_expect(body, "environmentVariables/PRTE_MCA_odls_base_sigkill_timeout",
                            rows[i].own ? "'15'" : rows[i].seconds);
    }
}

TEST(attached_kubernetes)
{
    struct config config = azureml_test_config_of("itp");
    struct run_spec spec = spec_of(2, 4, 4);
    azureml_keys(&config)->instance_type = FIXED("gpu4");
    CODEC_AUTOJSON json_t *body = body_of(&config, &spec);

    azureml_test_expect(body, "resources/instanceType", "'gpu4'");
    azureml_test_expect(body, "resources/properties/itp",
                        "{'priority_configuration':{'is_preemptible':false,'job_priority':200},"
                        "'resource_configuration':{'gpu_count':4}}");
    config.preemption_allowed = true;
    act_strv_push(&config.elastic_num_gpu, "6");
    spec = spec_of(1, 1, 0);
    azureml_test_refused(&config, &spec, "multiple of the 0 GPUs");
    config.preemption_allowed = false;
    spec = spec_of(2, 4, 4);
    azureml_test_refused(&config, &spec, "needs 'preemption_allowed: true'");
    act_strv_release(&config.elastic_num_gpu);
    azureml_keys(&config)->priority = 3;
    spec = spec_of(2, 4, 4);
    azureml_test_refused(&config, &spec, "azureml.priority is 3: on the platform 'itp' it is 100 to 200");
    azureml_keys(&config)->priority = -1;
    azureml_keys(&config)->docker_args = FIXED("--rm");
    spec = spec_of(2, 4, 4);
    azureml_test_refused(&config, &spec, "docker_args is for managed clusters");
}

TEST(durations)
{
    static const char *const rows[][2] = {{"90m", "PT5400S"},
                                          {"7d", "PT604800S"},
                                          {"5400", "PT5400S"},
                                          {"30s", "PT30S"},
                                          {"PT72H", "PT72H"},
                                          {"P1DT2H", "P1DT2H"},
                                          {"P2D", "P2D"},
                                          {"PT1H2M3S", "PT1H2M3S"},
                                          {"0", NULL},
                                          {"-5m", NULL},
                                          {"", NULL},
                                          {"soon", NULL},
                                          {"PT", NULL},
                                          {"P", NULL},
                                          {"PTH", NULL},
                                          {"P1H", NULL},
                                          {"PT1S2H", NULL},
                                          {"P1DT", NULL},
                                          {"PT1.5H", NULL},
                                          {"1h30m", NULL},
                                          {"999999999999999999d", NULL}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *iso = azureml_iso_duration(rows[i][0]);
        if (!act_streq(iso, rows[i][1]))
            fail_msg("'%s' is '%s'", rows[i][0], iso ? iso : "nothing");
    }
}

TEST(shared_memory)
{
    static const char *const wrong[] = {"64", "g", "64gb", "64 g", "1.5g", ""};
    struct config config = azureml_test_config_of("aml");

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct run_spec spec = spec_of(1, 1, 1);
        azureml_keys(&config)->shm_size = act_strdup(wrong[i]);
        azureml_test_refused(&config, &spec, "azureml.shm_size is '");
        free(azureml_keys(&config)->shm_size);
    }
}

/* ---- a job is a run again ---- */

TEST(run_comes_back)
{
    struct config config = azureml_test_config_of("aml");
    struct run_spec spec = spec_of(2, 4, 4), back;
    spec.resubmit_of = act_strdup("exp_1_0123abcd");
    run_spec_add_env(&spec, "N", "1");
    CODEC_AUTOJSON json_t *job = body_of(&config, &spec);
    struct azureml *a = azureml_test_open_it(&config);

    json_object_set_new(job, "systemData", json_pack("{s:s}", "createdAt", "2026-05-01T12:34:56.999Z"));
    assert_ok(azureml_read_spec(a, RUN, job, &back, &err), err);
    assert_string_equal(back.id, RUN);
    assert_string_equal(back.experiment, "exp");
    assert_string_equal(back.cluster, "c1");
    assert_string_equal(back.resubmit_of, "exp_1_0123abcd");
    assert_string_equal(back.package_key, "code/p.zip");
    assert_int_equal(back.package_sha256[63], 'a');
    assert_true(back.nodes == 2 && back.procs_per_node == 4 && back.gpus_per_node == 4);
    assert_int_equal(back.created_unix_s, 1777638896);
    assert_int_equal(back.argv.n, 2);
    assert_string_equal(back.argv.v[1], "it's ${{inputs.x}}\xff");
    assert_int_equal(back.n_env, 1);
    run_spec_release(&back);
    close_it(a);
}

TEST(job_of_another_tool)
{
    struct config config = azureml_test_config_of("aml");
    struct azureml *a = azureml_test_open_it(&config);
    struct run_spec back = {0};
    CODEC_AUTOJSON json_t *job =
        json_pack("{s:{s:s, s:s, s:n, s:{s:i}, s:{s:i}, s:n, s:{s:s}}}", "properties", "command", "python x.py | tee y",
                  "experimentName", "other", "properties", "resources", "instanceCount", 3, "distribution",
                  "processCountPerInstance", 2, "environmentVariables", "tags", "a", "b");

    assert_ok(azureml_read_spec(a, RUN, job, &back, &err), err);
    assert_int_equal(back.argv.n, 3);
    assert_string_equal(back.argv.v[2], "python x.py | tee y");
    assert_string_equal(back.cluster, "c1");
    assert_true(back.nodes == 3 && back.procs_per_node == 2 && back.gpus_per_node == 2 && !back.package_key);
    run_spec_release(&back);
    CODEC_AUTOJSON json_t *empty = json_pack("{s:{s:s, s:i}}", "properties", "jobType", "AutoML", "resources", 1);
    assert_int_equal(azureml_read_spec(a, RUN, empty, &back, &err), -ACT_FAIL);
    close_it(a);
}

/* ---- states ---- */

TEST(states)
{
    static const struct {
        const char *run; /* ' for " */
        enum run_state state;
        const char *part; /* of the reason */
        int exit_status;
    } rows[] = {
        {"{'status':'NotStarted'}", RUN_QUEUED, "NotStarted", 0},
        {"{'status':'Queued'}", RUN_QUEUED, "free nodes", 0},
        {"{'status':'Running'}", RUN_RUNNING, "", 0},
        {"{'status':'CancelRequested'}", RUN_RUNNING, "is being canceled", 0},
        {"{'status':'CANCELED'}", RUN_CANCELED, "", 0},
        {"{'status':'Sleeping'}", RUN_UNKNOWN, "'Sleeping'", 0},
        {"{'status':'Queued','tags':{'amlk8s status':'RUNNING'}}", RUN_RUNNING, "", 0},
        {"{'status':'Canceled','tags':{'amlk8s status':'Killing'}}", RUN_FAILED, "", ACT_FAIL},
        {"{'status':'Canceled','tags':{'amlk8s status':'failed'}}", RUN_FAILED, "the cluster ended it", ACT_FAIL},
        {"{'status':'Completed','tags':{'amlk8s status':'failed'}}", RUN_COMPLETED, "", 0},
        {"{'status':'Queued','tags':{'_aml_system_ComputeTargetStatus':'{\\'CurrentNodeCount\\':3,"
         "\\'PreparingNodeCount\\':2}'}}",
         RUN_QUEUED, "(Queued); nodes: 3 in the cluster, 2 starting", 0},
        {"{'status':'Queued','tags':{'_aml_system_ComputeTargetStatus':'{\\'RunningNodeCount\\':\\'4\\'}'}}",
         RUN_QUEUED, "(Queued); nodes: 4 running", 0},
        {"{'status':'Queued','tags':{'_aml_system_ComputeTargetStatus':'{\\'RunningNodeCount\\':null}'}}", RUN_QUEUED,
         "(Queued)", 0},
        {"{'status':'Queued','tags':{'_aml_system_ComputeTargetStatus':'{'}}", RUN_QUEUED, "free nodes", 0},
        {"{'status':'Queued','tags':{'_aml_system_ComputeTargetStatus':'[1]'}}", RUN_QUEUED, "free nodes", 0},
        {"{'status':'Queued','tags':null,'queueingInfo':null}", RUN_QUEUED, "free nodes", 0},
        {"{'status':'Queued','tags':[],'queueingInfo':{'code':null,'message':'2 jobs are before it'}}", RUN_QUEUED,
         "(Queued); 2 jobs are before it", 0},
        {"{'status':'Running','queueingInfo':{'message':'of old'}}", RUN_RUNNING, "", 0},
        {"{'status':'Canceled','cancelationReason':'by Jane'}", RUN_CANCELED, "by Jane", 0},
        {"{'status':null}", RUN_UNKNOWN, "does not say its state", 0},
        {"{'status':7}", RUN_UNKNOWN, "does not say its state", 0},
        {"{}", RUN_UNKNOWN, "does not say its state", 0},
        {"{'status':'Failed'}", RUN_FAILED, "", ACT_FAIL},
        {"{'status':'Failed','error':null}", RUN_FAILED, "", ACT_FAIL},
        {"{'status':'Failed','error':{'error':{'code':'UserError','message':'Execution failed. User process "
         "python exited with status code 7. Please look.','innerError':{'code':'Inner'}}}}",
         RUN_FAILED, "Inner: Execution failed", 7},
        {"{'status':'Failed','error':{'error':{'message':'exited with status code 70000'}}}", RUN_FAILED, "", ACT_FAIL},
        {"{'status':'Failed','error':{'error':{'code':'UserError','message':'No cores.','innerError':{'code':"
         "'QuotaExceeded'}}}}",
         RUN_FAILED, "QuotaExceeded: No cores", ACT_NO_CAPACITY},
        {"{'status':'Failed','error':'text'}", RUN_FAILED, "text", ACT_FAIL},
        {"{'status':'Failed','error':'exited with status code 3'}", RUN_FAILED, "status code 3", 3},
        {"{'status':'Failed','error':[7],'startTimeUtc':7,'endTimeUtc':null}", RUN_FAILED, "", ACT_FAIL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_strdup(rows[i].run);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        CODEC_AUTOJSON json_t *run = json_loads(text, 0, NULL);
        struct run_status status;
        assert_non_null(run);
        azureml_read_run(run, &status);
        if (status.state != rows[i].state || !strstr(status.reason, rows[i].part) ||
            status.exit_status != rows[i].exit_status)
            fail_msg("%s is %s, '%s', %d", text, run_state_name(status.state), status.reason, status.exit_status);
        assert_int_equal(azureml_state_of(codec_json_str(run, "status", "")) == RUN_UNKNOWN,
                         rows[i].state == RUN_UNKNOWN);
    }
}

TEST(times)
{
    static const struct {
        const char *text;
        int64_t unix_s;
    } rows[] = {{"2026-04-07T19:01:34.968669Z", 1775588494},
                {"2026-04-07T19:01:34.9686691Z", 1775588494},
                {"2026-04-07T19:01:34.9686691", 1775588494},
                {"2026-04-07T19:01:34", 1775588494},
                {"2026-04-07T21:01:34+02:00", 1775588494},
                {"yesterday", 0},
                {"", 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *run = json_pack("{s:s, s:s}", "status", "Running", "startTimeUtc", rows[i].text);
        struct run_status status;
        azureml_read_run(run, &status);
        assert_int_equal(status.started_unix_s, rows[i].unix_s);
        assert_int_equal(status.ended_unix_s, 0);
    }
}

/* The words of a state, which the clusters of itp correct later. */
TEST(filters)
{
    static const struct {
        enum azureml_kind kind;
        enum run_state state;
        const char *filter;
    } rows[] = {
        {AZUREML_MANAGED, RUN_FAILED, "(Status eq Failed)"},
        {AZUREML_ITP, RUN_FAILED, "(Status eq Failed) or (Status eq Canceled)"},
        {AZUREML_ITP, RUN_CANCELED, "(Status eq Canceled)"},
        {AZUREML_SINGULARITY, RUN_RUNNING,
         "(Status eq Running) or (Status eq Finalizing) or (Status eq CancelRequested) or (Status eq "
         "NotResponding)"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct azureml a = {.kind = rows[i].kind};
        ACT_AUTOFREE char *filter = azureml_state_filter(&a, rows[i].state);
        assert_string_equal(filter, rows[i].filter);
    }
}

/* ---- datastores, images, URLs ---- */

TEST(datastores)
{
    struct config_folder row = {.name = FIXED("data")};
    struct config_account account = {.account_name = FIXED("acct"),
                                     .account_key = FIXED("a2V5"),
                                     .container_name = FIXED("my-data"),
                                     .endpoint = FIXED("https://acct.blob.core.windows.net")};
    ACT_AUTOFREE char *name = azureml_datastore_name(&row, &account);
    CODEC_AUTOJSON json_t *body = azureml_datastore_body(&row, &account);

    assert_memory_equal(name, "acct_my_data_", 13);
    assert_int_equal(strlen(name), 13 + 16);
    azureml_test_expect(body, "endpoint", "'core.windows.net'");
    azureml_test_expect(body, "protocol", "'https'");
    azureml_test_expect(body, "containerName", "'my-data'");
    ACT_AUTOFREE char *tags = act_sprintf("{'act.credential':'%s'}", name + 13);
    azureml_test_expect(body, "tags", tags);
    azureml_test_expect(body, "credentials",
                        "{'credentialsType':'AccountKey','secrets':{'key':'a2V5','secretsType':'AccountKey'}}");
    account.account_key = FIXED("b3RoZXI=");
    ACT_AUTOFREE char *rotated = azureml_datastore_name(&row, &account);
    assert_string_not_equal(name, rotated);

    account.sas_token = FIXED("sv=1&sig=x"); /* the key is preferred, unless auth says otherwise */
    CODEC_AUTOJSON json_t *both = azureml_datastore_body(&row, &account);
    azureml_test_expect(both, "credentials/credentialsType", "'AccountKey'");
    account.auth = FIXED("sas");
    CODEC_AUTOJSON json_t *sas = azureml_datastore_body(&row, &account);
    ACT_AUTOFREE char *of_sas = azureml_datastore_name(&row, &account);
    azureml_test_expect(sas, "credentials",
                        "{'credentialsType':'Sas','secrets':{'sasToken':'?sv=1&sig=x','secretsType':'Sas'}}");
    assert_string_not_equal(of_sas, rotated);
    account.sas_token = FIXED("sv=2&sig=y");
    ACT_AUTOFREE char *renewed = azureml_datastore_name(&row, &account);
    assert_string_not_equal(of_sas, renewed);
    account.auth = FIXED("login");
    CODEC_AUTOJSON json_t *login = azureml_datastore_body(&row, &account);
    azureml_test_expect(login, "credentials", "{'credentialsType':'None'}");

    account.endpoint = FIXED("http://127.0.0.1:10000/acct"); /* an emulator */
    CODEC_AUTOJSON json_t *emulated = azureml_datastore_body(&row, &account);
    azureml_test_expect(emulated, "endpoint", "'127.0.0.1:10000'");
    azureml_test_expect(emulated, "protocol", "'http'");
    char far[600];
    memset(far, 'x', sizeof(far) - 1);
    far[sizeof(far) - 1] = '\0';
    account.account_name = account.container_name = far;
    ACT_AUTOFREE char *longest = azureml_datastore_name(&row, &account);
    assert_true(strlen(longest) <= 255);
    row.datastore_name = FIXED("mine-1");
    ACT_AUTOFREE char *named = azureml_datastore_name(&row, &account);
    assert_string_equal(named, "mine-1");
}

TEST(shares)
{
    struct config_folder row = {.name = FIXED("data"), .storage_type = FIXED("file"), .file_share = FIXED("my-files")};
    struct config_account account = {.account_name = FIXED("acct"),
                                     .account_key = FIXED("a2V5"),
                                     .endpoint = FIXED("https://acct.blob.core.chinacloudapi.cn")};
    ACT_AUTOFREE char *name = azureml_datastore_name(&row, &account);
    CODEC_AUTOJSON json_t *body = azureml_datastore_body(&row, &account);

    assert_memory_equal(name, "file_acct_my_files_", 19);
    assert_int_equal(strlen(name), 19 + 16);
    azureml_test_expect(body, "datastoreType", "'AzureFile'");
    azureml_test_expect(body, "accountName", "'acct'");
    azureml_test_expect(body, "fileShareName", "'my-files'");
    azureml_test_expect(body, "containerName", NULL);
    azureml_test_expect(body, "endpoint", "'core.chinacloudapi.cn'");
    azureml_test_expect(body, "credentials",
                        "{'credentialsType':'AccountKey','secrets':{'key':'a2V5','secretsType':'AccountKey'}}");
    row.file_share = FIXED("my-other");
    ACT_AUTOFREE char *other = azureml_datastore_name(&row, &account);
    assert_string_not_equal(name + 19, strrchr(other, '_') + 1);
    row.storage_type = FIXED("blob"); /* a container of the name of the share is another place */
    account.container_name = FIXED("my-other");
    ACT_AUTOFREE char *container = azureml_datastore_name(&row, &account);
    assert_string_not_equal(strrchr(container, '_'), strrchr(other, '_'));
}

TEST(images)
{
    static const char *const rows[][3] = {{NULL, "debian:12", "debian:12"},
                                          {"", "debian:12", "debian:12"},
                                          {"reg.io", "a/b:1", "reg.io/a/b:1"},
                                          {"reg.io", "reg.io/a/b:1", "reg.io/a/b:1"},
                                          {"reg", "registry/a", "reg/registry/a"},
                                          {"https://reg.io/", "a", "reg.io/a"},
                                          {"reg.io:5000", "a@sha256:0", "reg.io:5000/a@sha256:0"},
                                          {"http://reg.io:5000//", "reg.io:5000/a", "reg.io:5000/a"},
                                          {"docker.io", "me/a", "me/a"},
                                          {"https://index.docker.io/v1/", "me/a", "me/a"},
                                          {"docker.io.example", "me/a", "docker.io.example/me/a"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config_docker docker = {.address = act_strdup(rows[i][0]), .image = act_strdup(rows[i][1])};
        ACT_AUTOFREE char *image = config_docker_image(&docker);
        assert_string_equal(image, rows[i][2]);
        free(docker.address);
        free(docker.image);
    }
}

TEST(registries)
{
    static const char hub[] = "https://index.docker.io/v1/";
    static const char *const rows[][3] = {
        {"reg.io", "a", "https://reg.io"},
        {"https://reg.io:5000/", "a", "https://reg.io:5000"},
        {"http://reg.io/", "a", "http://reg.io"},
        {"reg.io/team", "a", "https://reg.io/team"},
        {NULL, "reg.io/a:1", "https://reg.io"},
        {NULL, "reg:5000/a:1", "https://reg:5000"},
        {"", "localhost/a", "https://localhost"},
        {NULL, "me/a:1.2", hub},
        {NULL, "debian:12.1", hub},
        {NULL, "localhosts/a", hub},
        {"docker.io", "me/a", hub},
        {"https://index.docker.io/v1/", "me/a", hub},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config_docker docker = {.address = act_strdup(rows[i][0]), .image = act_strdup(rows[i][1])};
        ACT_AUTOFREE char *target = azureml_registry_target(&docker);
        assert_string_equal(target, rows[i][2]);
        free(docker.address);
        free(docker.image);
    }
}

TEST(environments_that_are_there)
{
    static const char bad[] = "";
    static const char *const rows[][2] = {
        {"debian:12", NULL},
        {"azureml/image:1", NULL},
        {"azureml:mine:3", WORKSPACE "/environments/mine/versions/3"},
        {"azureml:AzureML-x_y.z:12.1", WORKSPACE "/environments/AzureML-x_y.z/versions/12.1"},
        {"azureml://registries/azureml/environments/e/versions/5",
         "azureml://registries/azureml/environments/e/versions/5"},
        {"azureml:" WORKSPACE "/environments/e/versions/1", WORKSPACE "/environments/e/versions/1"},
        {WORKSPACE "/environments/e/versions/1", WORKSPACE "/environments/e/versions/1"},
        {"azureml:mine", bad},
        {"azureml:mine@latest", bad},
        {"azureml::3", bad},
        {"azureml:mine:", bad},
        {"azureml:mine/x:3", bad},
        {"azureml:mine:3?x", bad},
        {"azureml://registries/azureml/models/e/versions/5", bad},
        {"azureml://datastores/d/paths/environments/x/versions/1", bad},
        {WORKSPACE "/environments/e", bad},
        {WORKSPACE "/environments/../versions/1", bad},
        {WORKSPACE "/environments/e/versions/1?x=y", bad},
        {"/images/a", bad},
    };
    struct config config = azureml_test_config_of("aml");

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        ACT_AUTOFREE char *id = NULL;
        config.docker.image = act_strdup(rows[i][0]);
        struct azureml *a = azureml_test_open_it(&config);
        int rc = azureml_environment_id(a, &id, &err);
        if (rc != (rows[i][1] == bad ? -ACT_CONFIG : 0) || (rc == 0 && !act_streq(id, rows[i][1]) && rows[i][1]))
            fail_msg("'%s' is '%s' (%s)", rows[i][0], id ? id : "none", act_error_text(&err));
        assert_true(rc < 0 || !rows[i][1] == !id);
        close_it(a);
        free(config.docker.image);
    }
}

TEST(names_are_escaped)
{
    struct config config = azureml_test_config_of("aml");
    aml_config_keys(&config)->workspace_name = FIXED("my ws/../x?");
    aml_config_keys(&config)->resource_group = FIXED("r(g)\xc3\xbc");
    config.compute_target = FIXED("a b");
    struct azureml *a = azureml_test_open_it(&config);
    ACT_AUTOFREE char *url = azureml_url(a, "/jobs/%s", "j");
    ACT_AUTOFREE char *compute = azureml_compute_id(a);

    assert_string_equal(url, "/subscriptions/s/resourceGroups/r(g)%C3%BC/providers/"
                             "Microsoft.MachineLearningServices/workspaces/my%20ws%2F..%2Fx%3F/jobs/j");
    assert_true(act_ends_with(compute, "/computes/a%20b"));
    close_it(a);
    struct run_spec spec = spec_of(1, 1, 1);
    CODEC_AUTOJSON json_t *body = body_of(&config, &spec); /* ids in it are texts */
    azureml_test_expect(body, "computeId",
                        "'/subscriptions/s/resourceGroups/r(g)\xc3\xbc/providers/Microsoft.MachineLearningServices/"
                        "workspaces/my ws/../x?/computes/a b'");
    config.compute_target = FIXED("/subscriptions/o/virtualclusters/vc"); /* an id is itself */
    a = azureml_test_open_it(&config);
    ACT_AUTOFREE char *id = azureml_compute_id(a);
    assert_string_equal(id, config.compute_target);
    close_it(a);
}

TEST(run_history)
{
    static const char *const rows[][4] = {
        {"azureml://eastus.api.azureml.ms/mlflow/v1.0/x", "westus", "AzureCloud", "https://eastus.api.azureml.ms"},
        {"azureml://private.link:8443/x", "", "AzureCloud", "https://private.link:8443"},
        {"azureml://evil@host/x", "East US", "AzureCloud", "https://eastus.api.azureml.ms"},
        {"", "East US 2", "AzureCloud", "https://eastus2.api.azureml.ms"},
        {"https://other", "usgovvirginia", "AzureUSGovernment", "https://usgovvirginia.api.ml.azure.us"},
        {"", "chinaeast2", "AzureChinaCloud", "https://chinaeast2.api.ml.azure.cn"},
        {"azureml:///x", "", "AzureCloud", NULL}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct auth_cloud *cloud;
        setenv("AZURE_CLOUD", rows[i][2], 1);
        assert_ok(auth_cloud_find(NULL, &cloud, &err), err);
        CODEC_AUTOJSON json_t *workspace =
            json_pack("{s:s, s:{s:s}}", "location", rows[i][1], "properties", "mlFlowTrackingUri", rows[i][0]);
        char *tracking = azureml_tracking_history(workspace);
        ACT_AUTOFREE char *history = tracking ? tracking : azureml_region_history(workspace, cloud);
        if (!act_streq(history, rows[i][3]))
            fail_msg("'%s' and '%s' give '%s'", rows[i][0], rows[i][1], history ? history : "nothing");
    }
    unsetenv("AZURE_CLOUD");
}

TEST(discovered_run_history)
{
    static const char *const rows[][2] = {
        {"{\"api\": \"https://eastus.api.azureml.ms\", \"history\": \"https://h.example\"}",
         "https://eastus.api.azureml.ms"},
        {"{\"api\": \"https://a.example/\"}", "https://a.example"},
        {"{\"history\": \"https://h.example:8443/x//\"}", "https://h.example:8443/x"},
        {"{\"api\": 7, \"history\": \"https://h.example\"}", "https://h.example"},
        {"{\"api\": \"http://open.example\"}", NULL},
        {"{\"api\": \"https://a.example?x\"}", NULL},
        {"{\"api\": \"https://me@a.example\"}", NULL},
        {"{\"api\": {\"url\": \"https://a.example\"}}", NULL},
        {"{}", NULL},
        {"[\"https://a.example\"]", NULL},
        {"null", NULL}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *answer = json_loads(rows[i][0], JSON_DECODE_ANY, NULL);
        ACT_AUTOFREE char *history = azureml_discovered_history(answer);
        if (!act_streq(history, rows[i][1]))
            fail_msg("%s gives '%s'", rows[i][0], history ? history : "nothing");
    }
    assert_null(azureml_discovered_history(NULL));
}

/* ---- a service: one connection for each answer ---- */

static struct {
    int socket;
    uint16_t port;
    pthread_t thread;
    size_t size;                       /* of the log */
    size_t short_at;                   /* the part that begins there brings one byte less; 0: none */
    int valid_from;                    /* the signatures of URLs before that are refused */
    bool ignores_ranges, sends_others; /* others: the bytes behind those that were asked for */
    int64_t ended, changed, now;       /* of the run, the log, the store's clock; 0: not said */
    int details, parts, workspaces;    /* how often they were asked for */
    size_t asked_behind;               /* parts that begin behind the end */
} service;

static char azureml_test_byte_at(size_t i)
{
    return (char)('a' + i * 7 / 5 % 26);
}

static void azureml_test_answer(int fd, int status, const char *headers, const char *body, size_t len)
{
    ACT_AUTOFREE char *head =
        act_sprintf("HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n", status, len, headers);

    if (send(fd, head, strlen(head), MSG_NOSIGNAL) < 0)
        return;
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, body + sent, len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        sent += (size_t)n;
    }
}

/* "" without a time. New string. */
static char *time_header(const char *name, int64_t unix_s)
{
    char text[ACT_TIME_TEXT];

    if (!unix_s)
        return act_strdup("");
    act_time_to_http(unix_s, text);
    return act_sprintf("%s: %s\r\n", name, text);
}

static void answer_head(int fd)
{
    ACT_AUTOFREE char *date = time_header("Date", service.now);
    ACT_AUTOFREE char *changed = time_header("Last-Modified", service.changed);
    ACT_AUTOFREE char *head = act_sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n%s%s\r\n",
                                          service.size, date, changed);

    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
}

static void answer_part(int fd, const char *request)
{
    const char *range = strstr(request, "bytes="), *sig = strstr(request, "sig=");
    size_t from = 0, to = service.size;

    service.parts++;
    if (strstr(request, "Authorization")) { /* a URL that is signed needs no more, and the token is not for it */
        azureml_test_answer(fd, 400, "", "", 0);
        return;
    }
    if (sig && atoi(sig + 4) < service.valid_from) {
        azureml_test_answer(fd, 403, "", "", 0);
        return;
    }
    if (range && !service.ignores_ranges && sscanf(range, "bytes=%zu-%zu", &from, &to) == 2)
        to = to + 1 < service.size ? to + 1 : service.size;
    if (from >= service.size) {
        service.asked_behind++;
        azureml_test_answer(fd, 416, "", "", 0);
        return;
    }
    from += service.sends_others;
    size_t len = to - from - (service.short_at && from == service.short_at ? 1 : 0);
    ACT_AUTOFREE char *body = act_alloc(len);
    for (size_t i = 0; i < len; i++)
        body[i] = azureml_test_byte_at(from + i);
    ACT_AUTOFREE char *headers =
        act_sprintf("Content-Range: bytes %zu-%zu/%zu\r\n", from, from + len - 1, service.size);
    azureml_test_answer(fd, service.ignores_ranges ? 200 : 206, service.ignores_ranges ? "" : headers, body, len);
}

static void answer_one(int fd, const char *request)
{
    ACT_AUTOFREE char *body = NULL;

    if (act_starts_with(request, "HEAD")) {
        answer_head(fd);
        return;
    }
    if (strstr(request, "/log?sig=")) {
        answer_part(fd, request);
        return;
    }
    if (strstr(request, "/oauth2/"))
        body = act_strdup("{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"t\"}");
    else if (strstr(request, "/details")) {
        char ended[ACT_TIME_TEXT];
        act_time_to_iso(service.ended, ended);
        ACT_AUTOFREE char *log = act_sprintf("\"user_logs/std_log.txt\":\"http://127.0.0.1:%d/log?sig=%d\"",
                                             service.port, ++service.details);
        body = act_sprintf("{\"status\":\"%s\",\"endTimeUtc\":\"%s\",\"logFiles\":{%s}}",
                           service.ended ? "Completed" : "Running", service.ended ? ended : "", log);
    } else
        body = act_sprintf("{\"location\":\"x\",\"n\":%d}", ++service.workspaces);
    azureml_test_answer(fd, 200, "Content-Type: application/json\r\n", body, strlen(body));
}

static void *azureml_test_serve(void *arg)
{
    enum { REQUEST_MAX = 16 << 10 };
    ACT_AUTOFREE char *request = act_alloc(REQUEST_MAX);
    int fd;

    (void)arg;
    while ((fd = accept(service.socket, NULL, NULL)) >= 0) {
        size_t have = 0;
        const char *end = NULL;
        for (ssize_t n = 1; n > 0 && !end && have<REQUEST_MAX - 1; have += n> 0 ? (size_t)n : 0) {
            n = recv(fd, request + have, REQUEST_MAX - 1 - have, 0);
            request[have + (n > 0 ? (size_t)n : 0)] = '\0';
            end = strstr(request, "\r\n\r\n");
        }
        if (end && !act_starts_with(request, "POST"))
            answer_one(fd, request);
        else if (end) { /* the body of the login, so that no reset follows */
            const char *length = strcasestr(request, "content-length:");
            size_t want = (size_t)(end + 4 - request) + (length ? strtoul(length + 15, NULL, 10) : 0);
            while (have < want && recv(fd, request + have, REQUEST_MAX - 1 - have, 0) > 0)
                break;
            answer_one(fd, request);
        }
        close(fd);
    }
    return NULL;
}

static char home[] = "/tmp/act-azureml-test-XXXXXX";

static int azureml_test_start(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);

    (void)state;
    service.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(service.socket, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(service.socket, 64) < 0 ||
        getsockname(service.socket, (struct sockaddr *)&address, &len) < 0 || !mkdtemp(home))
        return -1;
    service.port = ntohs(address.sin_port);
    ACT_AUTOFREE char *url = act_sprintf("http://127.0.0.1:%d", service.port);
    setenv("ACT_HOME", home, 1);
    setenv("AZURE_AUTHORITY_HOST", url, 1);
    setenv("ACT_TRUSTED_HOSTS", "127.0.0.1", 1);
    setenv("AZURE_TENANT_ID", "t", 1);
    setenv("AZURE_CLIENT_ID", "c", 1);
    setenv("AZURE_CLIENT_SECRET", "s", 1);
    setenv("NO_PROXY", "127.0.0.1", 1);
    return pthread_create(&service.thread, NULL, azureml_test_serve, NULL);
}

static int azureml_test_stop(void **state)
{
    (void)state;
    shutdown(service.socket, SHUT_RDWR);
    pthread_join(service.thread, NULL);
    close(service.socket);
    return act_remove_tree(home, &err);
}

/* ---- logs ---- */

enum { MIB = 1 << 20 };

struct reader {
    struct config config;
    struct azureml *a;
    struct store *store;
    char *url, *data;
};

static struct reader reader_of(size_t size)
{
    struct reader r = {.config = azureml_test_config_of("aml"),
                       .url = act_sprintf("http://127.0.0.1:%d", service.port)};

    azureml_keys(&r.config)->endpoint = r.url;
    azureml_keys(&r.config)->history_endpoint = r.url;
    service.size = size;
    service.short_at = 0;
    service.valid_from = 0;
    service.ignores_ranges = service.sends_others = false;
    service.ended = service.changed = service.now = 0;
    service.details = service.parts = 0;
    service.asked_behind = 0;
    r.data = act_calloc(8, MIB);
    return r;
}

#define LOG "user_logs/std_log.txt"

static struct store *azureml_test_store_of(struct reader *r)
{
    if (!r->store) {
        r->a = azureml_test_open_it(&r->config);
        r->store = platform_open_logs(&r->a->base, RUN, false);
    }
    return r->store;
}

static int read_it(struct reader *r, uint64_t offset, size_t len, size_t *got, struct act_error *e)
{
    struct store_call call = {.op = STORE_GET, .key = LOG, .get = {.offset = offset, .sink = r->data, .sink_cap = len}};
    int rc = store_do(azureml_test_store_of(r), &call, e);

    *got = call.get.got;
    store_call_release(&call);
    for (size_t i = 0; rc == 0 && i < *got; i++)
        if (r->data[i] != azureml_test_byte_at(offset + i))
            fail_msg("byte %zu of the %zu from %llu is wrong", i, *got, (unsigned long long)offset);
    return rc;
}

static void end_reader(struct reader *r)
{
    store_free(r->store);
    close_it(r->a);
    free(r->url);
    free(r->data);
}

TEST(ranges_of_a_log)
{
    struct reader r = reader_of(3 * MIB + 17);
    size_t got;

    assert_ok(read_it(&r, 0, 8 * MIB, &got, &err), err);
    assert_int_equal(got, 3 * MIB + 17);
    assert_int_equal(service.parts, 1);
    assert_int_equal(service.asked_behind, 0);
    assert_ok(read_it(&r, 5, 2 * MIB, &got, &err), err); /* not to the end */
    assert_int_equal(got, 2 * MIB);
    assert_int_equal(service.details, 1); /* the URLs are kept */
    assert_ok(read_it(&r, 100, 10, &got, &err), err);
    assert_int_equal(got, 10);
    end_reader(&r);
}

TEST(log_ends_or_shrank)
{
    struct reader r = reader_of(MIB);
    size_t got;

    assert_ok(read_it(&r, MIB, MIB, &got, &err), err);
    assert_int_equal(got, 0);
    assert_ok(read_it(&r, 0, MIB, &got, &err), err); /* exactly one part */
    assert_int_equal(got, MIB);
    service.size = 10;
    assert_ok(read_it(&r, 100, MIB, &got, &err), err);
    assert_int_equal(got, 0);
    assert_ok(read_it(&r, 0, MIB, &got, &err), err);
    assert_int_equal(got, 10);
    end_reader(&r);
}

TEST(log_whose_signature_ended)
{
    struct reader r = reader_of(100);
    size_t got;

    service.valid_from = 2;
    assert_ok(read_it(&r, 0, 100, &got, &err), err);
    assert_int_equal(got, 100);
    assert_int_equal(service.details, 2);
    service.valid_from = 99;
    assert_int_equal(read_it(&r, 0, 100, &got, &err), -ACT_DENIED);
    assert_null(strstr(act_error_text(&err), "sig="));
    assert_int_equal(service.details, 3);
    end_reader(&r);
}

TEST(log_of_a_service_without_ranges)
{
    struct reader r = reader_of(100);
    size_t got;

    service.ignores_ranges = true;
    assert_ok(read_it(&r, 0, 100, &got, &err), err);
    assert_int_equal(got, 100);
    assert_int_equal(read_it(&r, 50, 100, &got, &err), -ACT_FAIL); /* else the first bytes would come twice */
    end_reader(&r);
}

TEST(log_that_is_not_there)
{
    struct reader r = reader_of(100);
    struct store_call call = {.op = STORE_GET, .key = "user_logs/other.txt", .get = {.sink = r.data, .sink_cap = 10}};

    for (int i = 1; i <= 2; i++) { /* the second time, it may be new */
        assert_int_equal(store_do(azureml_test_store_of(&r), &call, &err), -ACT_NOT_FOUND);
        assert_int_equal(service.details, i);
        store_call_release(&call);
    }
    end_reader(&r);
}

TEST(log_of_which_other_bytes_come)
{
    struct reader r = reader_of(100);
    size_t got;

    service.sends_others = true;
    assert_int_equal(read_it(&r, 10, 20, &got, &err), -ACT_FAIL);
    assert_non_null(strstr(act_error_text(&err), "another part"));
    end_reader(&r);
}

/* ---- many logs into files ---- */

/* A part of a log that is to be copied; end: the size that it was listed with. */
struct part {
    struct flow_copy copy;
    const char *name;
    uint64_t end;
    struct transfer_stretch stretch;
};

/* Its file has what comes before offset. */
static struct part part_of(const char *name, uint64_t offset, uint64_t end)
{
    static char paths[32][64];
    static size_t n;
    assert_true(n < COUNT(paths));
    snprintf(paths[n], sizeof(paths[n]), "%s/copy%zu", home, n);
    struct part part = {.name = name, .copy = {.path = paths[n++], .root = home}, .end = end};
    ACT_AUTOFREE char *before = act_calloc(1, offset + 1);

    for (size_t i = 0; i < offset; i++)
        before[i] = azureml_test_byte_at(i);
    assert_ok(act_file_write(part.copy.path, before, offset, 0600, &err), err);
    return part;
}

/* The file is the beginning of the log, so long. */
static void assert_beginning(const struct part *part, uint64_t size)
{
    enum { FILE_MAX = 64 * MIB };
    ACT_AUTOFREE char *text = NULL;
    size_t len;

    assert_ok(act_file_read(part->copy.path, FILE_MAX, &text, &len, &err), err);
    assert_int_equal(len, size);
    for (size_t i = 0; i < len; i++)
        if (text[i] != azureml_test_byte_at(i))
            fail_msg("byte %zu is wrong", i);
}

static void add_moved(void *arg, const struct transfer_stretch *stretch, size_t bytes)
{
    assert_true(stretch->got >= bytes);
    *(uint64_t *)arg += bytes;
}

static void begin_part(struct part *part)
{
    assert_ok(flow_begin_copy(&part->copy, part->name, part->end, INT64_MAX, &part->stretch, &err), err);
}

static uint64_t memory; /* for copies; 0: the default */

static int copy_parts(struct reader *r, struct part *parts, size_t n, uint64_t *moved, struct act_error *e)
{
    struct transfer_stretch stretches[8];
    struct store *store = azureml_test_store_of(r);

    for (size_t i = 0; i < n; i++)
        stretches[i] = parts[i].stretch;
    *moved = 0;
    int rc = transfer_stretches(services_engine(&services), store, stretches, n, memory, add_moved, moved, e);
    for (size_t i = 0; i < n; i++)
        parts[i].stretch = stretches[i];
    return rc;
}

static int fetch_them(struct reader *r, struct part *parts, size_t n, uint64_t *moved, struct act_error *e)
{
    for (size_t i = 0; i < n; i++)
        begin_part(&parts[i]);
    return copy_parts(r, parts, n, moved, e);
}

TEST(logs_into_files)
{
    const uint64_t size = 9 * MIB + 5;
    struct reader r = reader_of(size);
    struct part parts[] = {part_of(LOG, 0, size), part_of("user_logs/other.txt", 0, 10),
                           part_of(LOG, 5 * MIB + 1, size), part_of(LOG, 7, 8), part_of(LOG, 0, MIB)};
    uint64_t moved;

    assert_ok(fetch_them(&r, parts, COUNT(parts), &moved, &err), err);
    assert_beginning(&parts[0], size);
    assert_beginning(&parts[1], 0); /* it is not there */
    assert_beginning(&parts[2], size);
    assert_beginning(&parts[3], 8);
    assert_beginning(&parts[4], MIB);
    assert_int_equal(parts[2].stretch.got, size - 5 * MIB - 1);
    assert_int_equal(moved, parts[0].stretch.got + parts[2].stretch.got + parts[3].stretch.got + parts[4].stretch.got);
    assert_int_equal(service.details, 2); /* one of them may be new */
    assert_int_equal(service.asked_behind, 0);
    assert_ok(fetch_them(&r, NULL, 0, &moved, &err), err);
    end_reader(&r);
}

TEST(logs_into_files_in_little_memory)
{
    struct reader r = reader_of(3 * MIB + 1);
    struct part parts[] = {part_of(LOG, 0, 3 * MIB + 1), part_of(LOG, 2 * MIB, 3 * MIB + 1)};
    uint64_t moved;

    memory = MIB;
    assert_ok(fetch_them(&r, parts, COUNT(parts), &moved, &err), err);
    memory = 0;
    assert_beginning(&parts[0], 3 * MIB + 1);
    assert_beginning(&parts[1], 3 * MIB + 1);
    assert_int_equal(service.parts, 4 + 2);
    end_reader(&r);
}

TEST(files_have_no_holes)
{
    struct reader r = reader_of(20 * MIB);
    struct part parts[] = {part_of(LOG, 0, 20 * MIB), part_of(LOG, 8 * MIB, 20 * MIB)};
    uint64_t moved;

    service.short_at = 4 * MIB; /* what comes behind it has come too, and is left out */
    assert_ok(fetch_them(&r, parts, COUNT(parts), &moved, &err), err);
    assert_beginning(&parts[0], 8 * MIB - 1);
    assert_beginning(&parts[1], 20 * MIB);
    assert_false(parts[0].stretch.replaced);
    end_reader(&r);
}

TEST(files_of_logs_whose_signature_ended)
{
    struct reader r = reader_of(9 * MIB);
    struct part parts[] = {part_of(LOG, 0, 9 * MIB), part_of(LOG, 1, 9 * MIB)};
    uint64_t moved;

    service.valid_from = 2;
    assert_ok(fetch_them(&r, parts, COUNT(parts), &moved, &err), err);
    assert_beginning(&parts[0], 9 * MIB);
    assert_beginning(&parts[1], 9 * MIB);
    assert_int_equal(service.details, 2);
    service.valid_from = 99;
    assert_int_equal(truncate(parts[0].copy.path, 0), 0);
    assert_int_equal(fetch_them(&r, parts, 1, &moved, &err), -ACT_DENIED);
    assert_null(strstr(act_error_text(&err), "sig="));
    assert_non_null(strstr(act_error_text(&err), LOG));
    assert_int_equal(service.details, 3);
    end_reader(&r);
}

TEST(logs_that_shrank)
{
    static const uint64_t sizes[] = {9 * MIB, 3 * MIB, 0}; /* within a slice, before it, empty */
    uint64_t moved;

    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct reader r = reader_of(sizes[i]);
        struct part part = part_of(LOG, 4 * MIB, 20 * MIB);
        assert_ok(fetch_them(&r, &part, 1, &moved, &err), err);
        assert_true(part.stretch.replaced);
        end_reader(&r);
    }
}

/* Another log under the same name, which is longer than the copy. */
TEST(logs_that_are_others)
{
    struct reader r = reader_of(9 * MIB);
    struct part parts[] = {part_of(LOG, 6, 9 * MIB), part_of(LOG, 3 * MIB, 9 * MIB), part_of(LOG, 3 * MIB, 9 * MIB)};
    const struct {
        size_t i, at;
    } changes[] = {{0, 0}, {1, 3 * MIB - 1}};
    uint64_t moved;

    for (size_t i = 0; i < COUNT(changes); i++) {
        int fd = open(parts[changes[i].i].copy.path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "#", 1, (off_t)changes[i].at), 1);
        close(fd);
    }
    assert_ok(fetch_them(&r, parts, COUNT(parts), &moved, &err), err);
    assert_true(parts[0].stretch.replaced && parts[1].stretch.replaced && !parts[2].stretch.replaced);
    assert_int_equal(parts[0].stretch.got + parts[1].stretch.got, 0);
    assert_beginning(&parts[2], 9 * MIB);
    end_reader(&r);
}

/* Logs that are written one after the other, although they are read at once. */
struct in_turn {
    size_t at; /* the log that is written */
    uint64_t got[3];
    uint64_t fails_at; /* of the second one */
};

struct turn {
    struct in_turn *all;
    size_t i;
};

static int write_in_turn(void *arg, uint64_t at, const void *data, size_t len, struct act_error *e)
{
    const struct turn *turn = arg;
    struct in_turn *all = turn->all;

    (void)data;
    assert_true(turn->i >= all->at);
    all->at = turn->i;
    assert_int_equal(at, all->got[turn->i]);
    if (turn->i == 1 && all->fails_at && at >= all->fails_at)
        return act_error_set(e, ACT_FAIL, "it is full");
    all->got[turn->i] += len;
    return 0;
}

TEST(logs_one_after_the_other)
{
    static const struct {
        uint64_t fails_at, got[3];
        int rc;
    } rows[] = {{0, {9 * MIB, 9 * MIB, 3}, 0}, {4 * MIB, {9 * MIB, 4 * MIB, 0}, -ACT_FAIL}};

    for (size_t row = 0; row < COUNT(rows); row++) {
        struct reader r = reader_of(9 * MIB);
        struct in_turn all = {.fails_at = rows[row].fails_at};
        struct turn turns[] = {{&all, 0}, {&all, 1}, {&all, 2}};
        struct transfer_stretch stretches[COUNT(turns)];
        for (size_t i = 0; i < COUNT(turns); i++)
            stretches[i] = (struct transfer_stretch){
                .key = LOG, .end = i < 2 ? 9 * MIB : 3, .in_turn = true, .write = write_in_turn, .arg = &turns[i]};
        int rc = transfer_stretches(services_engine(&services), azureml_test_store_of(&r), stretches, COUNT(turns), 0,
                                    NULL, NULL, &err);
        assert_int_equal(rc, rows[row].rc);
        assert_memory_equal(all.got, rows[row].got, sizeof(all.got));
        end_reader(&r);
    }
}

TEST(files_that_cannot_be_written)
{
    struct reader r = reader_of(MIB);
    struct part part = part_of(LOG, 10, MIB);
    uint64_t moved;

    begin_part(&part);
    assert_int_equal(truncate(part.copy.path, 5), 0); /* it would have a hole */
    assert_int_equal(copy_parts(&r, &part, 1, &moved, &err), -ACT_TEMPORARY);
    assert_beginning(&part, 5);
    assert_int_equal(unlink(part.copy.path), 0);
    assert_int_equal(copy_parts(&r, &part, 1, &moved, &err), -ACT_NOT_FOUND);
    assert_non_null(strstr(act_error_text(&err), part.copy.path));
    assert_int_equal(symlink("/dev/full", part.copy.path), 0);
    assert_true(copy_parts(&r, &part, 1, &moved, &err) < 0);
    assert_int_equal(part.stretch.got, 0);
    end_reader(&r);
}

/* ---- when logs are complete ---- */

TEST(logs_are_settled)
{
    static const struct {
        int64_t ended, changed, now;
        bool settled;
    } rows[] = {
        {1000, 900, 1300, true},   {1000, 900, 1299, false}, /* the run has just ended */
        {1000, 1200, 1499, false}, {1000, 1200, 1500, true}, /* something was added */
        {0, 900, 5000, false},                               /* it still runs */
        {1000, 900, 0, false},                               /* nobody knows what time it is there */
        {1000, 0, 1300, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct reader r = reader_of(10);
        struct store_call call = {.op = STORE_LIST, .key = ""};
        azureml_keys(&r.config)->settle_seconds = 300;
        service.ended = rows[i].ended;
        service.changed = rows[i].changed;
        service.now = rows[i].now;
        assert_ok(store_do(azureml_test_store_of(&r), &call, &err), err);
        assert_int_equal(call.list.page.n, 1);
        assert_int_equal(call.list.page.v[0].size, 10);
        if (call.list.page.v[0].grows == rows[i].settled)
            fail_msg("row %zu: %ssettled", i, rows[i].settled ? "not " : "");
        store_call_release(&call);
        end_reader(&r);
    }
}

/* ---- attempts ---- */

TEST(names_of_attempts)
{
    static const struct {
        const char *listed, *shown;
    } rows[] = {
        {"user_logs/std_log_process_0.txt", "attempts/1/user_logs/std_log_process_0.txt"},
        {"user_logs/retry_001/std_log_process_0.txt", "attempts/2/user_logs/std_log_process_0.txt"},
        {"user_logs/retry_012/std_log_process_0.txt", "user_logs/std_log_process_0.txt"},
        {"user_logs/retry_012/a/b.txt", "user_logs/a/b.txt"},
        {"user_logs/retry_x/a.txt", "attempts/1/user_logs/retry_x/a.txt"},
        {"user_logs/retry_99999999999999999999/a.txt", "attempts/1/user_logs/retry_99999999999999999999/a.txt"},
        {"system_logs/lifecycler.log", "system_logs/lifecycler.log"},
        {"azureml-logs/retry_003/x.txt", "azureml-logs/retry_003/x.txt"},
        {"user_logs/retry_013/../../x.txt", NULL},
        {"/etc/passwd", NULL},
    };
    json_t *listed = json_object();
    size_t shown = 0;

    for (size_t i = 0; i < COUNT(rows); i++)
        json_object_set_new(listed, rows[i].listed, json_string(rows[i].listed));
    json_object_set_new(listed, "no URL", json_integer(5));
    CODEC_AUTOJSON json_t *details = json_pack("{s:o}", "logFiles", listed);
    CODEC_AUTOJSON json_t *files = azureml_log_files(details);
    assert_int_equal(azureml_last_retry(details), 12);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].shown)
            assert_string_equal(codec_json_str(files, rows[i].shown, ""), rows[i].listed);
        shown += rows[i].shown != NULL;
    }
    assert_int_equal(json_object_size(files), shown);
}

TEST(names_of_a_run_with_one_attempt)
{
    CODEC_AUTOJSON json_t *details =
        json_pack("{s:[{s:s, s:s}, {s:s}]}", "logFiles", "name", "user_logs/std_log.txt", "url", "x", "name", "y");
    CODEC_AUTOJSON json_t *files = azureml_log_files(details);
    CODEC_AUTOJSON json_t *none = azureml_log_files(NULL);

    assert_int_equal(azureml_last_retry(details), 0);
    assert_int_equal(json_object_size(files), 1);
    assert_string_equal(codec_json_str(files, "user_logs/std_log.txt", ""), "x");
    assert_int_equal(json_object_size(none), 0);
}

/* ---- where the history is, is known for a day ---- */

TEST(history_is_remembered)
{
    struct reader r = reader_of(1);
    const char *history;

    azureml_keys(&r.config)->history_endpoint = NULL;
    for (int i = 0; i < 2; i++) {
        r.a = azureml_test_open_it(&r.config);
        assert_ok(azureml_history(r.a, &history, &err), err);
        assert_string_equal(history, "https://x.api.azureml.ms");
        assert_int_equal(service.workspaces, 1);
        if (i == 0)
            close_it(r.a);
    }
    close_it(r.a);
    aml_config_keys(&r.config)->workspace_name = FIXED("other"); /* another one is not mistaken for it */
    r.a = azureml_test_open_it(&r.config);
    assert_ok(azureml_history(r.a, &history, &err), err);
    assert_int_equal(service.workspaces, 2);
    end_reader(&r);
}

TEST_MAIN(azureml_test_start, azureml_test_stop)
