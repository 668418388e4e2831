/* kubernetes_test.c - runs as objects of Kubernetes, the states of their Jobs and pods, and what pods print. */
#include "config/config.h"
#include "unit/test.h"

#include "base/hash.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/kubernetes/kubernetes_internal.h"

/* A text that stays, for members that are not const. */
#define FIXED(text)                                                                                                    \
    ({                                                                                                                 \
        static char text_[] = text;                                                                                    \
        text_;                                                                                                         \
    })

/* The same outside of functions. */
#define TEXT(text) ((char[]){text})

#define RUN  "exp_1795300000_0123abcd"
#define NAME "exp-1795300000-0123abcd"

/* JSON with apostrophes for quotes. A new reference. */
static json_t *kubernetes_test_json_of(const char *text)
{
    json_t *json = NULL;
    ACT_AUTOFREE char *copy = act_strdup(text);

    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_ok(codec_json_parse(copy, strlen(copy), "test", &json, &err), err);
    return json;
}

static void kubernetes_test_assert_json(const json_t *value, const char *wanted)
{
    CODEC_AUTOJSON json_t *other = kubernetes_test_json_of(wanted);

    if (!json_equal(value, other)) {
        ACT_AUTOFREE char *text = value ? codec_json_line(value) : act_strdup("nothing");
        fail_msg("%s\nis not\n%s", text, wanted);
    }
}

/* The member at "spec.template.0.name". */
static json_t *kubernetes_test_at(json_t *value, const char *path)
{
    ACT_AUTOFREE char *copy = act_strdup(path);

    for (char *save, *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save))
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(name)) : json_object_get(value, name);
    return value;
}

/* ---- names ---- */

TEST(names_are_fit_for_services)
{
    static const char *const rows[][2] = {
        {RUN, NAME},
        {"Me.And_You_1795300000_0123abcd", "me-and-you-1795300000-0123abcd"},
        {"_x__1795300000_0123abcd", "x-1795300000-0123abcd"},
        {"7b_1795300000_0123abcd", "r7b-1795300000-0123abcd"},
        {"____1795300000_0123abcd", "run-1795300000-0123abcd"},
        {"abcdefghijklmnopqrstuvwxyz_1795300000_0123abcd", "abcdefghijklmnopqrst-1795300000-0123abcd"},
        {"abcdefghijklmnopqrs_uvwxyz_1795300000_0123abcd", "abcdefghijklmnopqrs-1795300000-0123abcd"},
        {"brave", "brave"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *name = kubernetes_name(rows[i][0]);
        assert_string_equal(name, rows[i][1]);
        assert_true(strlen(name) <= KUBERNETES_NAME_MAX);
    }
}

/* ---- quantities, merging ---- */

TEST(quantities_are_read_as_the_server_reads_them)
{
    static const struct {
        const char *text;
        int64_t thousandths;
    } rows[] = {{"4", 4000},     {"500m", 500},    {"1.5", 1500},
                {"2k", 2000000}, {"1Ki", 1024000}, {"16Gi", INT64_C(17179869184000)},
                {"0", 0},        {"", -1},         {"much", -1},
                {"4 Gi", -1},    {"-1", -1},       {"9999999999Pi", INT64_MAX},
                {"1.2.3", -1},   {"0x10", -1},     {"16GB", -1},
                {"1.5.Gi", -1}};

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(act_quantity_from_text(rows[i].text), rows[i].thousandths);
}

TEST(a_patch_is_merged_as_kubectl_does)
{
    static const char *const rows[][3] = {
        {"{'a':1,'b':2}", "{'a':null,'c':3}", "{'b':2,'c':3}"},
        {"{'a':{'b':1}}", "{'a':{'c':2}}", "{'a':{'b':1,'c':2}}"},
        {"{'a':[1,2]}", "{'a':[3]}", "{'a':[3]}"},
        {"{'c':[{'name':'main','x':1}]}", "{'c':[{'name':'main','y':2},{'name':'side'}]}",
         "{'c':[{'name':'main','x':1,'y':2},{'name':'side'}]}"},
        {"{'a':1}", "{'a':{'b':{'c':2}}}", "{'a':{'b':{'c':2}}}"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *object = kubernetes_test_json_of(rows[i][0]),
                              *patch = kubernetes_test_json_of(rows[i][1]);
        kubernetes_merge(object, patch);
        kubernetes_test_assert_json(object, rows[i][2]);
    }
}

TEST(what_a_server_dropped_is_found)
{
    static const char *const rows[][3] = {
        {"{'a':1,'b':{'c':'x'}}", "{'a':1,'b':{'c':'x','d':2}}", NULL},
        {"{'a':{'b':{'typo':1}}}", "{'a':{'b':{}}}", "typo"},
        /* what is left out is nothing, and what is normalized is there */
        {"{'a':null,'b':false,'c':0,'d':'','e':[],'f':{},'g':0.0,'h':'1000m'}", "{'h':'1'}", NULL},
        {"{'l':[{'name':'y','k':1},{'name':'x','typo':true}]}", "{'l':[{'name':'x'},{'name':'y','k':1}]}", "typo"},
        {"{'l':[{'k':1},{'typo':1.5}]}", "{'l':[{'k':1},{'k':2}]}", "typo"},
        {"{'l':['a','b']}", "{'l':['a']}", NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *patch = kubernetes_test_json_of(rows[i][0]), *made = kubernetes_test_json_of(rows[i][1]);
        const char *dropped = kubernetes_dropped(patch, made);
        assert_true(act_streq(dropped, rows[i][2]));
    }
}

/* ---- the objects ---- */

static struct k8s_keys keys;
static struct config config = {.cluster = TEXT("c1"),
                               .file = TEXT("c1.yaml"),
                               .platform = TEXT("k8s"),
                               .parts = (struct config_part_values[]){{&k8s_keys_part, &keys}},
                               .n_parts = 1};
static struct run_env env[] = {{.name = TEXT("ACT_ABORT_GRACE"), .value = TEXT("40")}};
static char *argv[] = {TEXT("python"), TEXT("train.py"), TEXT("a\nb"), NULL};
static struct run_spec spec = {.id = TEXT(RUN),
                               .experiment = TEXT("exp"),
                               .cluster = TEXT("c1"),
                               .platform = TEXT("k8s"),
                               .project_root = TEXT("/project"),
                               .created_unix_s = 1795300000,
                               .argv = {argv, 3},
                               .nodes = 2,
                               .procs_per_node = 4,
                               .gpus_per_node = 4};

static struct kubernetes_run run_new(void)
{
    spec.env = NULL;
    spec.n_env = 0;
    spec.image = NULL;
    keys = (struct k8s_keys){.image = FIXED("debian:12"), .gpu_resource = FIXED("nvidia.com/gpu")};
    config.docker = (struct config_docker){0};
    return (struct kubernetes_run){.config = &config,
                                   .spec = &spec,
                                   .name = NAME,
                                   .program = "act-program-0123456789ab",
                                   .user = "me",
                                   .program_sha256 = "0123456789ab1"};
}

TEST(a_run_is_an_indexed_job_that_is_suspended)
{
    struct kubernetes_run run = run_new();
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true);

    kubernetes_test_assert_json(kubernetes_test_at(job, "metadata/labels"),
                                "{'app.kubernetes.io/managed-by':'act','act/run':'" RUN "'}");
    kubernetes_test_assert_json(kubernetes_test_at(job, "metadata/annotations"),
                                "{'act/run':'" RUN "','act/title':'python train.py a b','act/user':'me',"
                                "'act/cluster':'c1','act/num-gpu':'8'}");
    json_object_del(kubernetes_test_at(job, "spec"), "template");
    kubernetes_test_assert_json(
        kubernetes_test_at(job, "spec"),
        "{'completionMode':'Indexed','completions':2,'parallelism':2,'suspend':true,'backoffLimit':12,"
        "'backoffLimitPerIndex':12,'ttlSecondsAfterFinished':604800,'podFailurePolicy':{'rules':[{'action':'Ignore',"
        "'onPodConditions':"
        "[{'type':'DisruptionTarget','status':'True'}]},{'action':'FailJob','onExitCodes':{'containerName':"
        "'main','operator':'NotIn','values':[121]}}]}}");
}

TEST(pods_check_the_agent_before_it_runs)
{
    struct kubernetes_run run = run_new();
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true);
    const char *script = json_string_value(kubernetes_test_at(job, "spec/template/spec/containers/0/command/2"));
    const char *checked = strstr(script, "check /run/act/node/act-node 0123456789ab1 'act-program-0123456789ab'\n");

    assert_non_null(checked);
    assert_non_null(strstr(checked, "exec /run/act/node/act-node pod"));
}

TEST(a_program_of_others_is_known_by_its_labels)
{
    CODEC_AUTOJSON json_t *ours = kubernetes_program("act-program-0123456789ab", "0123456789abcdef", "k", "x", 1);
    CODEC_AUTOJSON json_t *other = kubernetes_program("act-program-0123456789ab", "1123456789abcdef", "k", "x", 1);

    assert_ok(kubernetes_check_program(ours, "0123456789abcdef", &err), err);
    assert_int_equal(kubernetes_check_program(other, "0123456789abcdef", &err), -ACT_FAIL);
    json_object_del(kubernetes_test_at(ours, "metadata"), "labels");
    assert_int_equal(kubernetes_check_program(ours, "0123456789abcdef", &err), -ACT_FAIL);
    assert_contains(act_error_text(&err),
                    "the namespace has a Secret 'act-program-0123456789ab' that ACT has not made");
}

TEST(an_elastic_run_ends_with_its_first_pod)
{
    struct kubernetes_run run = run_new();

    spec.min_nodes = 1;
    spec.max_nodes = 2;
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true);
    spec.min_nodes = spec.max_nodes = 0;
    kubernetes_test_assert_json(kubernetes_test_at(job, "spec/successPolicy"), "{'rules':[{'succeededIndexes':'0'}]}");
    assert_string_equal(kubernetes_annotation(job, KUBERNETES_MIN_NODES), "1");
}

TEST(an_elastic_run_takes_part_of_what_its_queue_could_give)
{
    struct kubernetes_run run = run_new();
    static char queue[] = "team";

    spec.min_nodes = 1;
    spec.max_nodes = 2;
    keys.queue = queue;
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, false);
    keys.queue = NULL;
    spec.min_nodes = spec.max_nodes = 0;
    assert_string_equal(kubernetes_annotation(job, "kueue.x-k8s.io/job-min-parallelism"), "1");
    assert_string_equal(kubernetes_annotation(job, "kueue.x-k8s.io/job-completions-equal-parallelism"), "true");
    assert_string_equal(kubernetes_label(job, KUBERNETES_QUEUE), "team");
    assert_true(json_is_true(kubernetes_test_at(job, "spec/suspend")));
}

TEST(a_pod_has_the_agent_the_secret_and_room_to_work)
{
    struct kubernetes_run run = run_new();
    run.parts = 2;
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true);
    json_t *pod = kubernetes_test_at(job, "spec/template/spec"), *main = kubernetes_test_at(pod, "containers/0");

    kubernetes_test_assert_json(
        kubernetes_test_at(pod, "volumes"),
        "[{'name':'act-program','secret':{'secretName':'act-program-0123456789ab'}},{'name':'act-run',"
        "'projected':{'sources':[{'secret':{'name':'" NAME "'}},{'secret':{'name':'" NAME "-package-0'}},"
        "{'secret':{'name':'" NAME "-package-1'}}]}},{'name':'act-node','emptyDir':{}}]");
    kubernetes_test_assert_json(kubernetes_test_at(main, "volumeMounts"),
                                "[{'name':'act-program','mountPath':'/run/act/program','readOnly':true},"
                                "{'name':'act-run','mountPath':'/run/act/secret','readOnly':true},"
                                "{'name':'act-node','mountPath':'/run/act/node'}]");
    kubernetes_test_assert_json(kubernetes_test_at(main, "resources"),
                                "{'limits':{'nvidia.com/gpu':'4'},'requests':{}}");
    assert_contains(json_string_value(kubernetes_test_at(main, "command/2")),
                    "act-node pod --job " NAME " --nodes 2 --secret /run/act/secret --work /run/act/node");
    assert_string_equal(json_string_value(kubernetes_test_at(pod, "subdomain")), NAME);
    assert_string_equal(json_string_value(kubernetes_test_at(pod, "restartPolicy")), "Never");
    assert_int_equal(json_integer_value(kubernetes_test_at(pod, "terminationGracePeriodSeconds")), 30);
    assert_true(json_is_false(kubernetes_test_at(pod, "enableServiceLinks")));
}

TEST(settings_become_fields_of_the_pod)
{
    struct kubernetes_run run = run_new();
    CODEC_AUTOJSON json_t *selector = kubernetes_test_json_of("{'gpu':true,'size':2,'pool':'a'}"),
                          *tolerations = kubernetes_test_json_of("[{'key':'sku'}]"),
                          *patch = kubernetes_test_json_of(
                              "{'spec':{'hostIPC':true,'containers':[{'name':'main','tty':true}]}}");

    spec.env = env;
    spec.n_env = 1;
    spec.limit_s = 7200;
    keys = (struct k8s_keys){.image = FIXED("debian:12"),
                             .gpu_resource = FIXED("none"),
                             .cpu = FIXED("16"),
                             .memory = FIXED("200Gi"),
                             .shm_size = FIXED("8Gi"),
                             .time = FIXED("2h"),
                             .queue = FIXED("team"),
                             .priority_class = FIXED("high"),
                             .service_account = FIXED("runner"),
                             .node_selector = selector,
                             .tolerations = tolerations,
                             .pod = patch};
    config.docker = (struct config_docker){.username = FIXED("me"), .password = FIXED("p")};
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, false);
    json_t *pod = kubernetes_test_at(job, "spec/template/spec"), *main = kubernetes_test_at(pod, "containers/0");

    kubernetes_test_assert_json(kubernetes_test_at(main, "resources"),
                                "{'limits':{'cpu':'16','memory':'200Gi'},'requests':{'cpu':'16','memory':'200Gi'}}");
    kubernetes_test_assert_json(kubernetes_test_at(pod, "volumes/3"),
                                "{'name':'act-shm','emptyDir':{'medium':'Memory','sizeLimit':'8Gi'}}");
    kubernetes_test_assert_json(kubernetes_test_at(pod, "nodeSelector"), "{'gpu':'true','size':'2','pool':'a'}");
    kubernetes_test_assert_json(kubernetes_test_at(pod, "tolerations"), "[{'key':'sku'}]");
    kubernetes_test_assert_json(kubernetes_test_at(pod, "imagePullSecrets"), "[{'name':'" NAME "-registry'}]");
    assert_string_equal(json_string_value(kubernetes_test_at(pod, "priorityClassName")), "high");
    assert_string_equal(json_string_value(kubernetes_test_at(pod, "serviceAccountName")), "runner");
    assert_int_equal(json_integer_value(kubernetes_test_at(pod, "terminationGracePeriodSeconds")), 60);
    assert_true(json_is_true(kubernetes_test_at(pod, "hostIPC")) && json_is_true(kubernetes_test_at(main, "tty")));
    assert_int_equal(json_integer_value(kubernetes_test_at(job, "spec/activeDeadlineSeconds")), 7200 + 7 * 86400);
    assert_true(json_is_true(kubernetes_test_at(job, "spec/suspend"))); /* Kueue lets it go */
    assert_string_equal(kubernetes_label(job, KUBERNETES_QUEUE), "team");
}

TEST(a_run_is_kept_off_nodes_whatever_else_it_asks_for)
{
    struct kubernetes_run run = run_new();
    CODEC_AUTOJSON json_t *patch =
        kubernetes_test_json_of("{'spec':{'affinity':{'nodeAffinity':{"
                                "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
                                "{'matchExpressions':[{'key':'a','operator':'Exists'}]}]}}}}}");
    static const char *const where =
        "spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

    act_strv_push(&spec.avoid, "n1");
    act_strv_push(&spec.avoid, "n2");
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, false);
    kubernetes_test_assert_json(kubernetes_test_at(job, where),
                                "[{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['n1']},"
                                "{'key':'metadata.name','operator':'NotIn','values':['n2']}]}]");
    keys.pod = patch;
    CODEC_AUTOJSON json_t *patched = kubernetes_job(&run, false);
    kubernetes_test_assert_json(kubernetes_test_at(patched, where),
                                "[{'matchExpressions':[{'key':'a','operator':'Exists'}],"
                                "'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['n1']},"
                                "{'key':'metadata.name','operator':'NotIn','values':['n2']}]}]");
    act_strv_release(&spec.avoid);
    keys.pod = NULL;
}

TEST(the_job_owns_what_its_pods_need)
{
    struct kubernetes_run run = run_new();
    CODEC_AUTOJSON json_t *service = kubernetes_service(&run, "u1");

    kubernetes_test_assert_json(kubernetes_test_at(service, "metadata/ownerReferences"),
                                "[{'apiVersion':'batch/v1','kind':'Job','name':'" NAME
                                "','uid':'u1','controller':false}]");
    kubernetes_test_assert_json(kubernetes_test_at(service, "spec"),
                                "{'clusterIP':'None','publishNotReadyAddresses':true,'selector':{'job-name':'" NAME
                                "'}}");
}

TEST(the_secret_holds_what_it_should_and_shows_only_the_specification)
{
    struct kubernetes_run run = run_new();
    struct kubernetes_content content = {
        .spec = "{}", .secrets = "{\"A\":\"b\"}", .token = "t0ken", .package = "PK", .package_len = 2};
    CODEC_AUTOJSON json_t *secret = kubernetes_secret(&run, &content, NULL);

    kubernetes_test_assert_json(
        kubernetes_test_at(secret, "data"),
        "{'run.json':'e30=','token':'dDBrZW4=','secrets.json':'eyJBIjoiYiJ9','package.zip':'UEs='}");
    assert_true(json_is_true(kubernetes_test_at(secret, "immutable")));
    assert_null(kubernetes_test_at(secret, "metadata/ownerReferences"));
    kubernetes_mask(secret);
    assert_null(kubernetes_test_at(secret, "data"));
    kubernetes_test_assert_json(kubernetes_test_at(secret, "stringData"),
                                "{'run.json':'{}','token':'***','secrets.json':'***','package.zip':'***'}");
}

TEST(the_login_of_a_registry_is_a_pull_secret)
{
    struct kubernetes_run run = run_new();
    assert_null(kubernetes_registry(&run, NULL));
    keys.image = FIXED("reg.example.com/a/b:1");
    config.docker = (struct config_docker){.username = FIXED("me"), .password = FIXED("p")};
    CODEC_AUTOJSON json_t *secret = kubernetes_registry(&run, "u1");
    size_t len;
    ACT_AUTOFREE uint8_t *text =
        act_base64_decode(json_string_value(kubernetes_test_at(secret, "data/.dockerconfigjson")), &len);

    assert_string_equal(json_string_value(kubernetes_test_at(secret, "type")), "kubernetes.io/dockerconfigjson");
    assert_contains((char *)text,
                    "{\"auths\":{\"reg.example.com\":{\"username\":\"me\",\"password\":\"p\",\"auth\":\"bWU6cA==\"}}}");
}

TEST(a_long_run_id_is_an_annotation_but_no_label)
{
    struct kubernetes_run run = run_new();
    static char id[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz_1795300000_0123abcd";
    spec.id = id;
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true);

    assert_null(kubernetes_label(job, KUBERNETES_RUN));
    assert_string_equal(kubernetes_run_of(job), id);
    spec.id = FIXED(RUN);
}

TEST(a_container_of_blobs_is_a_volume_of_the_driver)
{
    struct kubernetes_run run = run_new();
    struct run_folder folders[] = {
        {.name = FIXED("data"), .store = FIXED("blob:acc/cont"), .path = FIXED("a/b"), .mode = RUN_FOLDER_RO_MOUNT}};
    CODEC_AUTOJSON json_t *volumes = json_array(), *mounts = json_array();
    struct config_account account = {.account_name = FIXED("acc"), .account_key = FIXED("key")};

    spec.folders = folders;
    spec.n_folders = 1;
    kubernetes_add_volumes(&run, volumes, mounts);
    CODEC_AUTOJSON json_t *secret = kubernetes_folder_secret(&run, 0, &account, NULL, &err);
    CODEC_AUTOJSON json_t *json = kubernetes_spec_json(&spec);
    assert_ok(kubernetes_check_folders(&config, &spec, &err), err);
    spec.folders = NULL;
    spec.n_folders = 0;
    kubernetes_test_assert_json(
        volumes, "[{'name':'folder-0','csi':{'driver':'blob.csi.azure.com','readOnly':true,'volumeAttributes':{"
                 "'containerName':'cont','secretName':'" NAME "-folder-0','mountOptions':'-o allow_other "
                 "--file-cache-timeout-in-seconds=120'}}}]");
    kubernetes_test_assert_json(
        mounts, "[{'name':'folder-0','mountPath':'/run/act/folders/data','readOnly':true,'subPath':'a/b'}]");
    kubernetes_test_assert_json(kubernetes_test_at(secret, "data"),
                                "{'azurestorageaccountname':'YWNj','azurestorageaccountkey':'a2V5'}");
    assert_string_equal(json_string_value(kubernetes_test_at(json, "folders/0/link")), "/run/act/folders/data");
}

TEST(folders_on_a_claim_share_its_volume)
{
    struct kubernetes_run run = run_new();
    struct run_folder folders[] = {
        {.name = FIXED("data"), .store = FIXED("pvc:team.a"), .path = FIXED("a/b"), .mode = RUN_FOLDER_RO_MOUNT},
        {.name = FIXED("models"), .store = FIXED("pvc:models"), .path = FIXED(""), .mode = RUN_FOLDER_RO_MOUNT},
        {.name = FIXED("output"), .store = FIXED("pvc:team.a"), .path = FIXED("out")}};
    CODEC_AUTOJSON json_t *volumes = json_array(), *mounts = json_array();

    spec.folders = folders;
    spec.n_folders = COUNT(folders);
    kubernetes_add_volumes(&run, volumes, mounts);
    CODEC_AUTOJSON json_t *json = kubernetes_spec_json(&spec);
    assert_ok(kubernetes_check_folders(&config, &spec, &err), err);
    spec.folders = NULL;
    spec.n_folders = 0;
    kubernetes_test_assert_json(volumes,
                                "[{'name':'folder-0','persistentVolumeClaim':{'claimName':'team.a','readOnly':false}},"
                                "{'name':'folder-1','persistentVolumeClaim':{'claimName':'models','readOnly':true}}]");
    kubernetes_test_assert_json(
        mounts, "[{'name':'folder-0','mountPath':'/run/act/folders/data','readOnly':true,'subPath':'a/b'},"
                "{'name':'folder-1','mountPath':'/run/act/folders/models','readOnly':true},"
                "{'name':'folder-0','mountPath':'/run/act/folders/output','readOnly':false,'subPath':'out'}]");
    assert_string_equal(json_string_value(kubernetes_test_at(json, "folders/2/link")), "/run/act/folders/output");
}

TEST(a_folder_that_is_moved_needs_act_in_the_pods)
{
    struct kubernetes_run run = run_new();
    struct run_folder folders[] = {
        {.name = FIXED("data"), .store = FIXED("blob:acc/cont"), .path = FIXED("a/b"), .mode = RUN_FOLDER_DOWNLOAD}};
    struct kubernetes_content content = {.spec = "{}", .stores = "{}", .token = "t0ken"};

    spec.folders = folders;
    spec.n_folders = 1;
    run.client = "act-client-0123456789ab";
    run.client_parts = 2;
    run.client_sha256 = "0123456789ab2";
    CODEC_AUTOJSON json_t *job = kubernetes_job(&run, true), *json = kubernetes_spec_json(&spec);
    CODEC_AUTOJSON json_t *secret = kubernetes_secret(&run, &content, NULL);
    assert_ok(kubernetes_check_folders(&config, &spec, &err), err);
    spec.folders = NULL;
    spec.n_folders = 0;
    json_t *pod = kubernetes_test_at(job, "spec/template/spec");
    kubernetes_test_assert_json(kubernetes_test_at(pod, "volumes/2"),
                                "{'name':'act-client','projected':{'sources':[{'secret':{'name':"
                                "'act-client-0123456789ab-0'}},{'secret':{'name':'act-client-0123456789ab-1'}}]}}");
    assert_int_equal(json_array_size(kubernetes_test_at(pod, "volumes")), 4); /* it is not mounted */
    assert_int_equal(json_integer_value(kubernetes_test_at(pod, "terminationGracePeriodSeconds")), 10 + 20 + 300);
    const char *script = json_string_value(kubernetes_test_at(pod, "containers/0/command/2"));
    const char *checked = strstr(script, "check /run/act/node/act 0123456789ab2 'act-client-0123456789ab-*'");
    assert_non_null(checked);
    assert_non_null(strstr(checked, "/run/act/node/act --version"));
    assert_null(kubernetes_test_at(json, "folders/0/link"));
    assert_string_equal(json_string_value(json_object_get(kubernetes_test_at(secret, "data"), "stores.json")), "e30=");
}

static const struct {
    struct run_folder folder;
    const char *match;
} refused[] = {
    {{.name = TEXT("d"), .store = TEXT("folder:/x"), .path = TEXT("a"), .link = TEXT("/x/a")},
     "which the pods do not have"},
    {{.name = TEXT("d"), .store = TEXT("file:acc/share"), .path = TEXT("a")},
     "it takes 'mode: download' or 'mode: upload'"},
};

TEST(folders_that_pods_cannot_have_are_refused)
{
    run_new();
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct run_folder folder = refused[i].folder;
        spec.folders = &folder;
        spec.n_folders = 1;
        assert_fails(kubernetes_check_folders(&config, &spec, &err), err, ACT_CONFIG, refused[i].match);
    }
    struct run_folder folder = refused[0].folder;
    CODEC_AUTOJSON json_t *volumes =
        kubernetes_test_json_of("[{'mount_path':'/x','persistentVolumeClaim':{'claimName':'c'}}]");
    keys.volumes = volumes;
    spec.folders = &folder;
    assert_ok(kubernetes_check_folders(&config, &spec, &err), err);
    spec.folders = NULL;
    spec.n_folders = 0;
}

/* ---- which pod took the place of which ---- */

#define AGED(time, version, phase)                                                                                     \
    "{'metadata':{'creationTimestamp':'2026-11-22T10:00:" time "Z','resourceVersion':'" version "'},"                  \
    "'status':{'phase':'" phase "'}}"

TEST(of_two_pods_of_a_second_the_last_change_tells)
{
    static const struct {
        const char *before, *after;
    } pods[] = {
        {AGED("01", "99", "Failed"), AGED("02", "7", "Failed")},
        {AGED("01", "99", "Failed"), AGED("01", "100", "Failed")},
        {AGED("01", "100", "Failed"), AGED("01", "101", "Failed")},
        {AGED("01", "100", "Failed"), AGED("01", "99", "Running")},
        {AGED("02", "99", "Failed"), AGED("01", "98", "Running")},
    };

    for (size_t i = 0; i < COUNT(pods); i++) {
        CODEC_AUTOJSON json_t *before = kubernetes_test_json_of(pods[i].before);
        CODEC_AUTOJSON json_t *after = kubernetes_test_json_of(pods[i].after);
        assert_true(kubernetes_is_newer(after, before) && !kubernetes_is_newer(before, after));
        assert_false(kubernetes_is_newer(after, after));
    }
}

/* ---- states ---- */

#define JOB(status) "{'metadata':{'name':'" NAME "','uid':'u1'},'spec':{'completions':2},'status':" status "}"
#define POD(index, status)                                                                                             \
    "{'metadata':{'name':'p" index "','annotations':{'batch.kubernetes.io/job-completion-index':'" index "'}},"        \
    "'status':" status "}"
#define MADE(time, index, status)                                                                                      \
    "{'metadata':{'name':'p" index "','creationTimestamp':'2026-11-22T" time                                           \
    "Z','annotations':{'batch.kubernetes.io/job-completion-index':'" index "'}},'status':" status "}"
#define RUNNING                                                                                                        \
    "{'phase':'Running','containerStatuses':[{'name':'main','state':{'running':{'startedAt':'2026-11-22T10:00:00Z'}}}]}"
#define WAITING(reason, message)                                                                                       \
    "{'phase':'Pending','containerStatuses':[{'name':'main','state':{'waiting':{'reason':'" reason                     \
    "','message':'" message "'}}}]}"
#define UNSCHEDULABLE                                                                                                  \
    "{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':"     \
    "'0/2 nodes are available'}]}"
#define ENDED(more) "{'phase':'Failed','containerStatuses':[{'name':'main','state':{'terminated':{" more "}}}]}"
#define EVENT(kind, name, reason, message)                                                                             \
    "{'involvedObject':{'kind':'" kind "','name':'" name "'},'reason':'" reason "','message':'" message                \
    "','lastTimestamp':null,'eventTime':'2026-11-22T10:00:00.000000Z'}"
#define FAILED(reason)                                                                                                 \
    "{'conditions':[{'type':'Failed','status':'True','reason':'" reason                                                \
    "','message':'m','lastTransitionTime':'2026-11-22T11:00:00Z'}]}"

#define WORDS    "word word word word word word word word word word "
#define LONG     WORDS WORDS WORDS WORDS WORDS WORDS WORDS WORDS
#define LONG_CUT WORDS WORDS WORDS WORDS WORDS WORDS "word"

static const struct {
    const char *job, *pods, *events;
    enum run_state state;
    const char *reason;
    int exit_status;
} states[] = {
    {NULL, NULL, NULL, RUN_UNKNOWN, "", 0},
    {JOB("{}"), "[]", NULL, RUN_QUEUED, "", 0},
    {JOB("{}"), "[" POD("0", RUNNING) "," POD("1", RUNNING) "]", NULL, RUN_RUNNING, "", 0},
    {JOB("{}"), "[" POD("0", RUNNING) "," POD("1", UNSCHEDULABLE) "]", NULL, RUN_QUEUED,
     "1 of its 2 pods run; no node takes it: 0/2 nodes are available; 'a summary' shows what is free", 0},
    {JOB("{}"), "[" POD("0", UNSCHEDULABLE) "]", "[" EVENT("Pod", "p0", "TriggeredScaleUp", "1->2") "]", RUN_QUEUED,
     "no node takes it: 0/2 nodes are available; the cluster adds nodes for it", 0},
    {JOB("{}"), "[" POD("0", WAITING("ImagePullBackOff", "Back-off")) "]", NULL, RUN_QUEUED,
     "the image cannot be pulled: Back-off; look at k8s.image, and docker.username and password", 0},
    {JOB("{}"), "[" POD("0", WAITING("ContainerCreating", "")) "]",
     "[" EVENT("Pod", "p1", "FailedMount", "no") "," EVENT("Pod", "p0", "FailedMount", "key missing") "]", RUN_QUEUED,
     "a volume cannot be mounted: key missing; look at the Secret and the names in k8s.volumes or config_param", 0},
    {JOB("{}"), "[]", "[" EVENT("Job", NAME, "FailedCreate", "exceeded quota") "]", RUN_QUEUED,
     "it waits for room in the namespace's quota: exceeded quota", 0},
    {JOB("{}"), "[]", "[" EVENT("Job", NAME, "FailedCreate", "no webhook") "]", RUN_QUEUED,
     "no pod can be made: no webhook; look at the quota, k8s.priority_class and k8s.service_account", 0},
    {JOB("{}"), "[]", "[" EVENT("Job", NAME, "FailedCreate", "maximum memory usage per Container is 1Gi") "]",
     RUN_QUEUED,
     "a LimitRange of the namespace forbids its memory: maximum memory usage per Container is 1Gi; set k8s.memory", 0},
    {JOB("{}"), "[]", "[" EVENT("Job", NAME, "FailedCreate", "it violates PodSecurity " LONG) "]", RUN_QUEUED,
     "the namespace's PodSecurity forbids its pods: it violates PodSecurity " LONG_CUT " ...; set securityContext in "
     "k8s.pod",
     0},
    /* a pod was replaced: it runs, and is in its second attempt */
    {JOB("{}"), "[" POD("0", RUNNING) "," POD("1", ENDED("'exitCode':121")) "," POD("1", UNSCHEDULABLE) "]", NULL,
     RUN_RUNNING, "1 of its 2 pods run; no node takes it: 0/2 nodes are available; 'a summary' shows what is free", 0},
    /* likewise, and the one before it is gone; but the pods of a Job are made one after the other */
    {JOB("{'startTime':'2026-11-22T09:59:58Z'}"),
     "[" MADE("09:59:59", "0", RUNNING) "," MADE("10:01:00", "1", UNSCHEDULABLE) "]", NULL, RUN_RUNNING,
     "1 of its 2 pods run; no node takes it: 0/2 nodes are available; 'a summary' shows what is free", 0},
    {JOB("{'startTime':'2026-11-22T09:59:58Z'}"),
     "[" MADE("09:59:59", "0", RUNNING) "," MADE("10:00:30", "1", UNSCHEDULABLE) "]", NULL, RUN_QUEUED,
     "1 of its 2 pods run; no node takes it: 0/2 nodes are available; 'a summary' shows what is free", 0},
    /* nothing of it has run yet */
    {JOB("{'startTime':'2026-11-22T09:59:58Z'}"),
     "[" MADE("09:59:59", "0", UNSCHEDULABLE) "," MADE("10:05:00", "1", UNSCHEDULABLE) "]", NULL, RUN_QUEUED,
     "no node takes it: 0/2 nodes are available; 'a summary' shows what is free", 0},
    {"{'metadata':{'name':'x'},'spec':{'suspend':true}}", NULL, NULL, RUN_QUEUED,
     "its Job is suspended; where 'a submit' was interrupted, the same command again completes it", 0},
    {"{'metadata':{'name':'x','deletionTimestamp':'2026-11-22T10:00:00Z'},'spec':{}}", NULL, NULL, RUN_QUEUED,
     "it is being ended", 0},
    {"{'metadata':{'name':'x','deletionTimestamp':'2026-11-22T10:00:00Z'},'spec':{},"
     "'status':{'startTime':'2026-11-22T09:00:00Z'}}",
     NULL, NULL, RUN_RUNNING, "it is being ended", 0},
    {JOB("{'conditions':[{'type':'Complete','status':'True'}],'startTime':'2026-11-22T10:00:00Z',"
         "'completionTime':'2026-11-22T11:00:00Z'}"),
     NULL, NULL, RUN_COMPLETED, "", 0},
    {JOB(FAILED("DeadlineExceeded")), "[]", NULL, RUN_FAILED, "the time limit is over: m; k8s.time sets it", 1},
    {JOB(FAILED("PodFailurePolicy")), "[" POD("0", ENDED("'exitCode':137,'reason':'OOMKilled'")) "]", NULL, RUN_FAILED,
     "a pod used more memory than it may and was killed; raise k8s.memory", 137},
    {JOB(FAILED("PodFailurePolicy")), "[" POD("0", ENDED("'exitCode':128,'reason':'StartError','message':'no sh'")) "]",
     NULL, RUN_FAILED, "the container cannot be started: no sh; the image needs /bin/sh, for the processor of the node",
     128},
    {JOB(FAILED("PodFailurePolicy")),
     "[" POD("0", ENDED("'exitCode':143,'reason':'Error'")) "," POD("1",
                                                                    ENDED("'exitCode':137,'reason':'OOMKilled'")) "]",
     NULL, RUN_FAILED, "a pod used more memory than it may and was killed; raise k8s.memory", 137},
    {JOB(FAILED("PodFailurePolicy")),
     "[" POD("0", ENDED("'exitCode':128,'reason':'StartError','message':'exec: /bin/sh: stat /bin/sh: no such file or "
                        "directory: unknown'")) "]",
     NULL, RUN_FAILED, "the image has no /bin/sh; use an image with /bin/sh, gzip and sha256sum", 128},
    {JOB(FAILED("PodFailurePolicy")),
     "[" POD("0", ENDED("'exitCode':255,'reason':'Error','message':'exec /bin/sh: exec format error'")) "]", NULL,
     RUN_FAILED,
     "the image is for another processor than the node's; use an image for it, or choose nodes by k8s.node_selector "
     "(kubernetes.io/arch)",
     255},
    {JOB(FAILED("PodFailurePolicy")),
     "[" POD("0", ENDED("'exitCode':125,'message':'act: the image has no gzip, which unpacks the agent; add it'")) "]",
     NULL, RUN_FAILED, "the image has no gzip, which unpacks the agent; add it to the image", 125},
    {JOB(FAILED("PodFailurePolicy")), "[" POD("0", ENDED("'exitCode':125")) "]", NULL, RUN_FAILED,
     "pod 'p0' could not start the agent: the image needs gzip and sha256sum; 'a logs' shows its last words", 125},
    {JOB(FAILED("PodFailurePolicy")), "[" POD("0", ENDED("'exitCode':124")) "]", NULL, RUN_FAILED,
     "pod 'p0' found another program than the submitted one in a Secret 'act-program-...' or 'act-client-...', which "
     "its log names: delete that",
     124},
    {JOB(FAILED("PodFailurePolicy")), "[" POD("0", ENDED("'exitCode':256")) "]", NULL, RUN_FAILED, /* no success */
     "pod 'p0' ended with exit status 256", 1},
    {JOB(FAILED("BackoffLimitExceeded")), NULL, NULL, RUN_FAILED,
     "too many of its pods failed: m; 'a logs' shows their last words", 1},
    {JOB(FAILED("PodFailurePolicy")),
     "[{'metadata':{'name':'p0'},'status':{'phase':'Failed','reason':'Evicted',"
     "'message':'low on memory'}}]",
     NULL, RUN_FAILED, "its node ran out of something and evicted a pod: low on memory; k8s.memory reserves memory", 1},
};

TEST(states_and_reasons)
{
    for (size_t i = 0; i < COUNT(states); i++) {
        CODEC_AUTOJSON json_t *job = states[i].job ? kubernetes_test_json_of(states[i].job) : NULL,
                              *pods = states[i].pods ? kubernetes_test_json_of(states[i].pods) : NULL,
                              *events = states[i].events ? kubernetes_test_json_of(states[i].events) : NULL;
        struct run_status status;
        kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods, .events = events}, &status);
        assert_string_equal(status.reason, states[i].reason);
        assert_string_equal(run_state_name(status.state), run_state_name(states[i].state));
        assert_int_equal(status.exit_status, states[i].exit_status);
    }
}

TEST(the_size_of_a_job_is_bounded)
{
    static const struct {
        const char *job;
        int n;
    } rows[] = {
        {"{'spec':{'completions':3}}", 3},
        {"{'spec':{}}", 1},
        {"{'spec':{'completions':'3'}}", 1},
        {"{'spec':{'completions':-1}}", 0},
        {"{'spec':{'completions':2147483647}}", 100000},
        {"{'spec':{'completions':-2147483649}}", 0},
        {"{'spec':{'completions':4294967297}}", 100000},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *job = kubernetes_test_json_of(rows[i].job);
        assert_int_equal(kubernetes_completions(job), rows[i].n);
    }
}

/* A failed pod that left these words as it ended. */
static json_t *pod_that_said(const char *index, int exit_status, const char *reason, const struct run_status *words)
{
    CODEC_AUTOJSON json_t *text = words ? run_status_to_json(words) : json_object();
    ACT_AUTOFREE char *line = codec_json_line(text), *name = act_sprintf("p%s", index);

    return json_pack("{s:{s:s, s:{s:s}}, s:{s:s, s:[{s:s, s:{s:{s:i, s:s, s:s}}}]}}", "metadata", "name", name,
                     "annotations", "batch.kubernetes.io/job-completion-index", index, "status", "phase", "Failed",
                     "containerStatuses", "name", "main", "state", "terminated", "exitCode", exit_status, "reason",
                     reason, "message", line);
}

TEST(the_last_words_of_the_first_pod_are_the_status)
{
    CODEC_AUTOJSON json_t *job = kubernetes_test_json_of(JOB(FAILED("PodFailurePolicy"))),
                          *pods = kubernetes_test_json_of("[]");
    struct run_status words = {.state = RUN_FAILED,
                               .exit_status = 3,
                               .failed_rank = 1,
                               .attempt = 2,
                               .started_unix_s = 1000,
                               .ended_unix_s = 2000,
                               .reason = "rank 1 ended with exit status 3"};
    struct run_status status;

    json_array_append_new(pods, pod_that_said("0", 3, "Error", &words));
    kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods}, &status);
    assert_string_equal(status.reason, words.reason);
    assert_int_equal(status.failed_rank, 1);
    assert_int_equal(status.attempt, 2);
    assert_int_equal(status.ended_unix_s, 2000);
}

/* When one pod fails, its Job ends the others. The first one may hear of that before it misses the one that failed. */
TEST(a_first_pod_that_was_told_to_end_does_not_explain_the_failure)
{
    static const struct {
        int exit_status;
        const char *why, *reason;
    } rows[] = {
        {137, "OOMKilled", "a pod used more memory than it may and was killed; raise k8s.memory"},
        {7, "Error", "pod 'p1' ended with exit status 7"},
        {121, "Error", "one of its pods failed: m; 'a logs' shows its last words"},
    };
    struct run_status words = {.state = RUN_CANCELED, .exit_status = 143, .attempt = 2, .reason = "aborted"};

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *job = kubernetes_test_json_of(JOB(FAILED("PodFailurePolicy"))),
                              *pods = kubernetes_test_json_of("[]");
        struct run_status status;
        json_array_append_new(pods, pod_that_said("0", 121, "Error", &words));
        json_array_append_new(pods, pod_that_said("1", rows[i].exit_status, rows[i].why, NULL));
        kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods}, &status);
        assert_string_equal(status.reason, rows[i].reason);
        assert_string_equal(run_state_name(status.state), "Failed");
        assert_int_equal(status.attempt, 2);
    }
}

TEST(a_queue_says_why_a_run_waits)
{
    CODEC_AUTOJSON json_t *job = kubernetes_test_json_of(
                              "{'metadata':{'name':'x','labels':{'kueue.x-k8s.io/queue-name':'team'}},"
                              "'spec':{'suspend':true}}"),
                          *workload = kubernetes_test_json_of(
                              "{'status':{'conditions':[{'type':'QuotaReserved','status':'False',"
                              "'message':'insufficient quota'}]}}");
    struct run_status status;

    kubernetes_read_status(&(struct kubernetes_view){.job = job, .workload = workload}, &status);
    assert_string_equal(status.reason, "it waits in the queue 'team': insufficient quota");
    assert_true(kubernetes_wants_workload(job));
    assert_false(kubernetes_wants_events(job, &status));
}

TEST(a_queue_that_took_the_pods_away_says_so)
{
    CODEC_AUTOJSON json_t *job = kubernetes_test_json_of(
                              "{'metadata':{'name':'x','labels':{'kueue.x-k8s.io/queue-name':'team'}},"
                              "'spec':{'suspend':true}}"),
                          *workload = kubernetes_test_json_of(
                              "{'status':{'conditions':[{'type':'QuotaReserved','status':'False',"
                              "'message':'no room'},{'type':'Evicted','status':'True','reason':"
                              "'Preempted','message':'x'}]}}");
    struct run_status status;

    kubernetes_read_status(&(struct kubernetes_view){.job = job, .workload = workload}, &status);
    assert_string_equal(status.reason,
                        "it waits in the queue 'team' again, as Kueue took its pods away (Preempted); it "
                        "begins anew: no room");
    assert_int_equal(status.state, RUN_QUEUED);
}

TEST(times_are_those_of_this_machine_and_the_size_is_what_there_is)
{
    CODEC_AUTOJSON json_t *job = kubernetes_test_json_of("{'metadata':{'name':'x','annotations':{'act/min-nodes':'1',"
                                                         "'act/num-gpu-per-node':'4'}},'spec':{'completions':3}}"),
                          *pods = kubernetes_test_json_of(
                              "[{'metadata':{'name':'x-0','labels':{'batch.kubernetes.io/"
                              "job-completion-index':'0'}},'status':{'phase':'Running',"
                              "'containerStatuses':[{'name':'main','state':{'running':{'startedAt':"
                              "'1970-01-01T00:20:00Z'}}}]}}]");
    struct run_status status;

    kubernetes_read_status(&(struct kubernetes_view){.job = job, .pods = pods, .ahead_s = 200}, &status);
    assert_int_equal(status.state, RUN_RUNNING);
    assert_int_equal(status.started_unix_s, 1000);
    assert_int_equal(status.num_gpu, 4);
}

/* ---- what pods print ---- */

#define T0 "2026-11-22T10:00:00.000000001Z "
#define T1 "2026-11-22T10:00:00.100000000Z "
#define T2 "2026-11-22T10:00:01.500000000Z "

static void note_text(void *arg, int attempt, int rank, const char *text, size_t len)
{
    act_buf_addf(arg, "%d/%d:", attempt, rank);
    act_buf_add(arg, text, len);
    if (len == 0 || text[len - 1] != '\n')
        act_buf_addc(arg, '|');
}

/* What comes of bytes that come in pieces of this size. */
static void assert_log(const char *bytes, size_t piece, const char *wanted)
{
    struct act_buf out = {0};
    struct kubernetes_pod_log *log = kubernetes_pod_log_new(note_text, &out);

    for (size_t i = 0, len = strlen(bytes); i < len; i += piece)
        kubernetes_pod_log_take(log, bytes + i, len - i < piece ? len - i : piece);
    kubernetes_pod_log_end(log);
    assert_string_equal(out.data ? out.data : "", wanted);
    kubernetes_pod_log_free(log);
    act_buf_release(&out);
}

TEST(the_output_of_ranks_is_taken_apart)
{
    static const char *const rows[][2] = {
        {T0 "[0] hello\n" T1 "[12] there\n", "1/0:hello\n1/12:there\n"},
        {T0 "[3+] a piece\n" T1 "[3] and the rest\n", "1/3:a piece|1/3:and the rest\n"},
        {T0 "act: all pods are there\n", "1/-1:act: all pods are there\n"},
        {T0 "gzip: not found\n", "1/-1:gzip: not found\n"},
        {T0 "[0] one\n" T1 "act: attempt 2\n" T2 "[0] two\n", "1/0:one\n2/-1:act: attempt 2\n2/0:two\n"},
        {T0 "[0] \n", "1/0:\n"},
        {T0 "[0] 2026-11-22T10:00:00Z x\n", "1/0:2026-11-22T10:00:00Z x\n"},
        {"[0] without a time\n", "1/0:without a time\n"},
        {T0 "[x] no rank\n" T0 "[1]\n", "1/-1:[x] no rank\n1/-1:[1]\n"},
        {T0 "[0] the end has no line end", "1/0:the end has no line end\n"},
        {T0 "[0] 12345\n" T0 "act: log 0 at 6\n", "1/0:12345\n"},
        {T0 "[0] 12345\n" T0 "act: log 0 at 100\n" T0 "[0] x\n" T0 "act: log 0 at 102\n",
         "1/0:12345\n1/0:[94 bytes are gone: the node rotated its log]\n1/0:x\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t piece = 1; piece < 40; piece += 3)
            assert_log(rows[i][0], piece, rows[i][1]);
}

TEST(nothing_is_lost_or_doubled_where_a_connection_ends)
{
    static const char before[] = T0 "[0] a\n" T1 "[0] b\n" T1 "[0] c\n" T1 "[0] half";
    static const struct {
        const char *again, *wanted;
    } rows[] = {
        {T0 "[0] a\n" T1 "[0] b\n" T1 "[0] c\n" T1 "[0] half a line\n" T2 "[0] d\n", "1/0:half a line\n1/0:d\n"},
        {T0 "[0] a\n" T1 "[0] b\n" T1 "[0] c\n", ""},
        {T2 "[0] d\n", "1/0:d\n"},
        {T1 "[0] b\n" T1 "[0] c\n" T0 "[0] a clock that was set back\n", "1/0:a clock that was set back\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_buf out = {0};
        struct kubernetes_pod_log *log = kubernetes_pod_log_new(note_text, &out);
        assert_null(kubernetes_pod_log_resume(log));
        kubernetes_pod_log_take(log, before, strlen(before));
        assert_string_equal(out.data, "1/0:a\n1/0:b\n1/0:c\n");
        out.len = 0;
        out.data[0] = '\0';
        ACT_AUTOFREE char *since = kubernetes_pod_log_resume(log);
        assert_string_equal(since, "2026-11-22T10:00:00Z");
        kubernetes_pod_log_take(log, rows[i].again, strlen(rows[i].again));
        assert_string_equal(out.data, rows[i].wanted);
        kubernetes_pod_log_free(log);
        act_buf_release(&out);
    }
}

/* ---- Kueue ---- */

TEST(what_kueue_says_of_pods_that_it_took)
{
    static const char *const rows[][2] = {
        {"{'type':'QuotaReserved','status':'True','message':'Quota reserved'}", NULL},
        {"{'type':'Evicted','status':'True','reason':'Preempted','message':'for another'}", "for another"},
        {"{'type':'Evicted','status':'False','reason':'QuotaReserved','message':'Previously: for another'}",
         "for another"},
        {"{'type':'Evicted','status':'True','reason':'Preempted'}", "Preempted"},
        {"{'type':'Evicted','status':'True'}", "it does not say why"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *text = act_sprintf("[{'metadata':{'ownerReferences':[{'uid':'u1'}]},'status':{'conditions':"
                                              "[%s]}}]",
                                              rows[i][0]);
        CODEC_AUTOJSON json_t *workloads = kubernetes_test_json_of(text);
        ACT_AUTOFREE char *said = kubernetes_eviction(kubernetes_workload_of(workloads, "u1"));
        assert_true(act_streq(said, rows[i][1]));
        assert_null(kubernetes_workload_of(workloads, "u2"));
    }
}

TEST_MAIN(NULL, NULL)
