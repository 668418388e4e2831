/* config_test.c - configuration files: what the original took, what everybody gets wrong, who wins, and that
 * no secret comes out. */
#define TEST_SETUP    config_test_set_up
#define TEST_TEARDOWN config_test_tear_down
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config_internal.h"
#include "platform/azureml/keys.h"
#include "platform/kubernetes/keys.h"
#include "platform/platform.h"
#include "platform/slurm/keys.h"

#define PROJECT TEST_DATA "/fixtures/config/project"

static char dir[64];  /* a fresh folder for each test */
static char *project; /* dir/proj */
static int saved_stderr = -1;

/* -- helpers -- */

static void clean_environment(void)
{
    static const char *const names[] = {"ACT_CLUSTER",
                                        "AML_CONFIG_PATH",
                                        "XDG_CONFIG_HOME",
                                        "AZURE_STORAGE_KEY",
                                        "AZURE_STORAGE_SAS_TOKEN",
                                        "AZURE_STORAGE_ACCOUNT",
                                        "ACT_HOME",
                                        "ACT_TRACE",
                                        "ACT_VERSION",
                                        "ACT_NUM_GPU",
                                        "ACT_GPU_PER_NODE",
                                        "ACT_MULTI_PROCESS",
                                        "ACT_EXPERIMENT_NAME",
                                        "ACT_PLATFORM",
                                        "ACT_ENV",
                                        "XDG_DATA_HOME",
                                        "ACT_COMPUTE_TARGET"};

    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
}

static int config_test_set_up(void **state)
{
    (void)state;
    clean_environment();
    strcpy(dir, "/tmp/config-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    project = act_sprintf("%s/proj", dir);
    setenv("HOME", dir, 1);
    setenv("USER", "tester", 1);
    setenv("LOGNAME", "tester", 1);
    return act_mkdir_all(project, 0755, &err);
}

static int config_test_tear_down(void **state)
{
    (void)state;
    free(project);
    return act_remove_tree(dir, &err);
}

static char *put_mode(const char *name, const char *text, mode_t mode)
{
    char *path = act_path_join(project, name);

    assert_ok(act_file_write(path, text, strlen(text), mode, &err), err);
    return path;
}

static void config_test_put(const char *name, const char *text)
{
    free(put_mode(name, text, 0600));
}

static void put_cluster(const char *text)
{
    config_test_put("aux_data/aml/aml.yaml", text);
}

static int config_test_load(const char *start, const char *cluster, struct config *out)
{
    return config_load(&(struct config_request){.start_dir = start, .cluster = cluster}, out, &err);
}

static const struct config_folder *folder(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_folders; i++)
        if (strcmp(c->folders[i].name, name) == 0)
            return &c->folders[i];
    fail_msg("no folder %s", name);
    return NULL;
}

/* What goes to stderr from here on is kept; captured_end() gives it. */
static void capture_begin(void)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/stderr", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    fflush(stderr);
    saved_stderr = dup(2);
    dup2(fd, 2);
    close(fd);
}

static char *capture_end(void)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/stderr", dir);
    char *text = NULL;

    dup2(saved_stderr, 2);
    close(saved_stderr);
    assert_ok(act_file_read(path, 1 << 20, &text, NULL, &err), err);
    return text;
}

/* -- files of the original -- */

TEST(reads_the_sample)
{
    static const char *const options[] = {"-x", "\\*src/one/\\*", "-x", "\\*src/two/\\*"};
    ACT_AUTO(config) c = {0};

    capture_begin();
    int rc = config_test_load(PROJECT, NULL, &c);
    ACT_AUTOFREE char *said = capture_end();
    assert_ok(rc, err);
    assert_string_equal(said, "");
    assert_string_equal(c.cluster, "aml");
    assert_string_equal(c.file, PROJECT "/aux_data/aml/aml.yaml");
    assert_string_equal(c.project_root, PROJECT);
    assert_string_equal(c.platform, "singularity");
    assert_string_equal(aml_config_keys(&c)->subscription_id, "00000000-1111-2222-3333-444444444444");
    assert_string_equal(aml_config_keys(&c)->resource_group, "vision-group");
    assert_string_equal(aml_config_keys(&c)->workspace_name, "vision-workspace");
    assert_string_equal(c.code.name, "code");
    assert_string_equal(c.code.path, "team/me/code.zip");
    assert_string_equal(c.code.account_file, PROJECT "/aux_data/configs/east_account.yaml");
    assert_int_equal(c.n_folders, 2);
    assert_string_equal(folder(&c, "data")->path, "team/data");
    assert_string_equal(folder(&c, "data")->mode, "rw_mount");
    assert_string_equal(folder(&c, "data")->storage_type, "blob");
    assert_null(folder(&c, "data")->datastore_name);
    assert_int_equal(folder(&c, "data")->blob_cache_timeout, -1);
    assert_string_equal(c.compute_target, "NC24RSV3");
    assert_string_equal(c.singularity_instance_type, "AISupercomputer.ND40rs_v2");
    assert_string_equal(c.singularity_sla_tier, "Premium");
    assert_string_equal(c.docker.image, "example/setup:py38");
    assert_null(c.docker.password);
    assert_string_equal(c.experiment_name, "my_experiment");
    assert_true(c.use_cli_auth && c.multi_process);
    assert_false(c.preemption_allowed || c.sleep_if_fail || c.sleep_if_succeed);
    assert_int_equal(c.gpu_per_node, 4);
    assert_int_equal(c.num_gpu, -1);
    assert_int_equal(c.process_count_per_node, -1);
    assert_int_equal(c.env.n, 1);
    assert_string_equal(c.env.v[0], "NCCL_IB_DISABLE=0");
    assert_int_equal(c.zip_options.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(c.zip_options.v[i], options[i]);
}

TEST(reads_every_key)
{
    static const char *const env[] = {"TEXT=words and more",
                                      "QUOTED=0",
                                      "NUMBER=017",
                                      "FLOAT=1.50",
                                      "FLAG=True",
                                      "EMPTY=",
                                      "LINES=a\nb",
                                      "MY_API_TOKEN=env-secret-word",
                                      "DATA_URL=https://x.example.org/?sv=1&sig=env-secret-sig"};
    ACT_AUTO(config) c = {0};

    assert_ok(config_test_load(PROJECT, "full", &c), err);
    assert_string_equal(c.platform, "itp");
    assert_string_equal(aml_config_keys(&c)->workspace_name, "space");
    assert_string_equal(c.code.path, "short/code.zip");
    assert_string_equal(c.code.account_file, PROJECT "/aux_data/configs/sas_account.yaml");
    assert_string_equal(c.code.datastore_name, "top_store");
    assert_string_equal(folder(&c, "data")->path, "short/data");
    assert_string_equal(folder(&c, "models")->account_file, PROJECT "/aux_data/configs/folder_account.yaml");
    assert_string_equal(folder(&c, "models")->datastore_name, "models_store");
    assert_int_equal(folder(&c, "models")->blob_cache_timeout, 120);
    assert_true(folder(&c, "models")->submit_with_url);
    assert_string_equal(folder(&c, "models")->mode, "ro_mount");
    assert_string_equal(folder(&c, "in")->mode, "download");
    assert_string_equal(folder(&c, "in")->account_file, "built-in");
    assert_null(folder(&c, "in")->datastore_name); /* that of the top level is of another account */
    assert_string_equal(folder(&c, "out")->mode, "upload");
    assert_string_equal(folder(&c, "out")->account_file, PROJECT "/aux_data/configs/sas_account.yaml");
    assert_int_equal(folder(&c, "rw")->blob_cache_timeout, 7);
    assert_true(config_is_share(folder(&c, "share")) && !config_is_share(folder(&c, "data")));
    assert_string_equal(folder(&c, "share")->file_share, "files");
    assert_string_equal(c.compute_target, "gpu-cluster");
    assert_string_equal(c.docker.address, "registry.example.org");
    assert_string_equal(c.docker.username, "puller");
    assert_string_equal(c.docker.password, "docker-secret-word");
    assert_string_equal(c.experiment_name, "exp-1.x_y");
    assert_true(c.use_cli_auth && c.preemption_allowed && c.sleep_if_fail && c.sleep_if_succeed);
    assert_false(c.multi_process);
    assert_int_equal(c.gpu_per_node, 8);
    assert_int_equal(c.num_gpu, 16);
    assert_int_equal(c.process_count_per_node, 2);
    assert_int_equal(c.elastic_num_gpu.n, 3);
    assert_string_equal(c.elastic_num_gpu.v[1], "8");
    assert_string_equal(c.singularity_sla_tier, "Basic");
    assert_int_equal(c.env.n, COUNT(env));
    for (size_t i = 0; i < COUNT(env); i++)
        assert_string_equal(c.env.v[i], env[i]);
    assert_int_equal(c.zip_options.n, 3);
    assert_string_equal(c.zip_options.v[2], "-9");
    assert_string_equal(c.compile_args, "--fast --with \"x y\"");
}

TEST(reads_other_spellings)
{
    ACT_AUTO(config) c = {0};

    capture_begin();
    int rc = config_test_load(PROJECT, "other", &c);
    ACT_AUTOFREE char *said = capture_end();
    assert_ok(rc, err);
    assert_string_equal(said, "");
    assert_string_equal(c.platform, "itp");
    assert_int_equal(c.gpu_per_node, 2);
    assert_int_equal(c.num_gpu, 16);
    assert_int_equal(c.process_count_per_node, -1);
    assert_false(c.multi_process || c.use_cli_auth || c.preemption_allowed || c.sleep_if_fail);
    assert_true(c.sleep_if_succeed);
    assert_string_equal(c.experiment_name, "tester");
    ACT_AUTOFREE char *account = act_sprintf("%s/account.yaml", dir);
    assert_string_equal(c.code.account_file, account);
}

TEST(reads_platforms_and_bases)
{
    static const char *const platforms[] = {"aml", "itp", "singularity", "slurm", "ssh", "k8s", "local"};
    enum { FIRST_WITH_A_STORE = 3, SSH = 4 };
    struct config c;

    for (size_t i = 0; i < COUNT(platforms); i++) {
        ACT_AUTOFREE char *cluster = act_sprintf("p_%s", platforms[i]);
        assert_ok(config_test_load(PROJECT, cluster, &c), err);
        assert_string_equal(c.platform, platforms[i]);
        assert_int_equal(c.gpu_per_node, i == SSH || strcmp(platforms[i], "local") == 0 ? -1 : 4);
        assert_int_equal(c.code.path != NULL, i >= FIRST_WITH_A_STORE);
        config_release(&c);
    }
    assert_ok(config_test_load(PROJECT, "derived", &c), err);
    assert_int_equal(c.num_gpu, 32);
    assert_int_equal(c.gpu_per_node, 8);
    assert_string_equal(c.docker.image, "other:2");
    assert_string_equal(c.docker.address, "registry.example.org");
    config_release(&c);
}

/* -- which file -- */

TEST(looks_upwards)
{
    ACT_AUTO(config) c = {0};

    assert_ok(config_test_load(PROJECT "/src/deep", "full", &c), err);
    assert_string_equal(c.project_root, PROJECT);
}

TEST(variable_names_the_file)
{
    struct config c;

    setenv("AML_CONFIG_PATH", PROJECT "/aux_data/aml/full.yaml", 1);
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_string_equal(c.cluster, "full");
    assert_string_equal(c.project_root, PROJECT);
    config_release(&c);
    config_test_put("elsewhere.yaml", "platform: slurm\n");
    setenv("AML_CONFIG_PATH", "elsewhere.yaml", 1);
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_string_equal(c.cluster, "elsewhere");
    assert_string_equal(c.project_root, project);
    config_release(&c);
    assert_ok(config_test_load(PROJECT, "p_k8s", &c), err); /* -c wins */
    assert_string_equal(c.platform, "k8s");
    config_release(&c);
    setenv("AML_CONFIG_PATH", "nowhere.yaml", 1);
    assert_fails(config_test_load(project, NULL, &c), err, ACT_NOT_FOUND, "AML_CONFIG_PATH");
    assert_contains(act_error_text(&err), "nowhere.yaml");
}

TEST(unknown_cluster)
{
    struct config c;

    assert_fails(config_test_load(PROJECT "/src", "ful", &c), err, ACT_NOT_FOUND,
                 "no cluster 'ful': no file 'aux_data/aml/ful.yaml' in '" PROJECT "/src' or above");
    assert_contains(act_error_text(&err), "did you mean 'full'?");
    assert_contains(act_error_text(&err), "'derived'");
    assert_int_equal(config_test_load(PROJECT, "../aml/full", &c), -ACT_NOT_FOUND);
    assert_int_equal(config_test_load(PROJECT, "/etc/passwd", &c), -ACT_NOT_FOUND);
    assert_int_equal(config_test_load(PROJECT, "", &c), -ACT_NOT_FOUND);
    assert_int_equal(config_test_load("/nonexistent/project", NULL, &c), -ACT_NOT_FOUND);
}

TEST(lists_clusters)
{
    struct act_strv names = {0};

    config_clusters(PROJECT "/src", &names);
    assert_true(act_strv_has(&names, "aml") && act_strv_has(&names, "p_slurm"));
    assert_false(act_strv_has(&names, "config"));
    assert_string_equal(names.v[names.n - 1], "local");
    act_strv_release(&names);
    config_clusters("/nonexistent/project", &names);
    assert_int_equal(names.n, 1);
    act_strv_release(&names);
}

TEST(link_names_the_cluster)
{
    ACT_AUTO(config) c = {0};
    ACT_AUTOFREE char *link = act_path_join(project, "aux_data/aml/aml.yaml");

    config_test_put("aux_data/aml/eu.yaml", "platform: slurm\n");
    assert_int_equal(symlink("eu.yaml", link), 0);
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_string_equal(c.cluster, "eu");
}

/* -- clusters of the user -- */

/* A file below the user's own folder. */
static void put_own(const char *name, const char *text, mode_t mode)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/.config/act/%s", dir, name);

    assert_ok(act_file_write(path, text, strlen(text), mode, &err), err);
}

static void expect_cluster(const char *cluster, const char *name, const char *platform)
{
    ACT_AUTO(config) c = {0};

    assert_ok(config_test_load(project, cluster, &c), err);
    assert_string_equal(c.cluster, name);
    assert_string_equal(c.platform, platform);
    assert_string_equal(c.project_root, project);
}

TEST(clusters_of_the_user)
{
    config_test_put(".git/config", "");
    put_own("clusters/lab.yaml", "platform: slurm\n", 0600);
    put_own("clusters/big.yaml", "platform: k8s\n", 0600);
    expect_cluster("lab", "lab", "slurm");
    expect_cluster(NULL, "local", "local");
    put_own("config.yaml", "default_cluster: big\n", 0600);
    expect_cluster(NULL, "big", "k8s");
    config_test_put("aux_data/aml/big.yaml", "platform: aml\n");
    expect_cluster(NULL, "big", "aml"); /* the project's wins, by name */
    put_cluster("platform: itp\n");
    expect_cluster(NULL, "aml", "itp"); /* and as the default */
    setenv("ACT_CLUSTER", "lab", 1);
    setenv("AML_CONFIG_PATH", "nowhere.yaml", 1);
    expect_cluster(NULL, "lab", "slurm");
    expect_cluster("big", "big", "aml");
    setenv("ACT_CLUSTER", "", 1);
    setenv("AML_CONFIG_PATH", "", 1);
    expect_cluster(NULL, "aml", "itp");
}

TEST(clusters_of_the_user_that_are_refused)
{
    struct config c;

    put_own("clusters/lab.yaml", "platform: slurm\n", 0602);
    assert_fails(config_test_load(project, "lab", &c), err, ACT_DENIED, "can be written by everybody");
    assert_fails(config_test_load(project, "lob", &c), err, ACT_NOT_FOUND, "did you mean 'lab'?");
    put_own("config.yaml", "default_cluster: gone\n", 0600);
    assert_fails(config_test_load(project, NULL, &c), err, ACT_NOT_FOUND, "config.yaml names it");
    put_own("config.yaml", "default_cluster: [a]\n", 0600);
    assert_fails(config_test_load(project, NULL, &c), err, ACT_CONFIG, "'default_cluster' must be text");
}

TEST(lists_all_clusters)
{
    ACT_AUTO(config_listing) all = {0};

    put_own("clusters/lab.yaml", "", 0600);
    put_own("clusters/eu.yaml", "", 0600);
    put_own("clusters/.eu.yaml", "", 0600);
    config_test_put("aux_data/aml/eu.yaml", "");
    put_own("config.yaml", "default_cluster: lab\n", 0600);
    config_list(project, &all);
    assert_int_equal(all.n, 4);
    for (size_t i = 0; i < all.n; i++) {
        static const struct {
            const char *name;
            bool users, hidden, is_default;
        } wanted[] = {{"eu", 0, 0, 0}, {"eu", 1, 1, 0}, {"lab", 1, 0, 1}, {"local", 0, 0, 0}};
        assert_string_equal(all.v[i].name, wanted[i].name);
        assert_int_equal(all.v[i].is_users, wanted[i].users);
        assert_int_equal(all.v[i].is_hidden, wanted[i].hidden);
        assert_int_equal(all.v[i].is_default, wanted[i].is_default);
    }
}

TEST(a_text_in_the_place_of_a_file)
{
    ACT_AUTOFREE char *file = act_path_join(project, "aux_data/aml/new.yaml");
    const struct config_request request = {.start_dir = project, .file = file, .text = "platform: slurm\nnum_gpu: x\n"};
    ACT_AUTO(config_report) report = {0};

    assert_ok(config_check(&request, &report, &err), err);
    assert_string_equal(report.cluster, "new");
    assert_string_equal(report.platform, "slurm");
    assert_int_equal(report.problems.n, 1);
    assert_contains(report.problems.v[0], "aux_data/aml/new.yaml:2:1: 'num_gpu'");
}

TEST(an_account_for_all_projects)
{
    ACT_AUTO(config) c = {0};
    ACT_AUTOFREE char *prefix = config_built_in_prefix(project);

    config_test_put(".git/config", "");
    put_own("clusters/gpu.yaml", "platform: aml\nazure_blob_config_file: ~/.config/act/accounts/gpu.yaml\n", 0600);
    assert_ok(config_test_load(project, "gpu", &c), err);
    ACT_AUTOFREE char *code = act_path_join(prefix, "code.zip"), *data = act_path_join(prefix, "data");
    assert_string_equal(c.code.path, code);
    assert_string_equal(folder(&c, "data")->path, data);
    assert_true(act_ends_with(folder(&c, "data")->account_file, "/.config/act/accounts/gpu.yaml"));
    assert_true(config_account_is_own(&c, folder(&c, "data")));
}

TEST(keys_by_their_names)
{
    ACT_AUTOFREE char *near = NULL;

    assert_int_equal(config_home_of("docker.image", NULL), CONFIG_IN_CLUSTER);
    assert_int_equal(config_home_of("env.ANY_NAME", NULL), CONFIG_IN_CLUSTER);
    assert_int_equal(config_home_of("k8s.pod.spec.x", NULL), CONFIG_IN_CLUSTER);
    assert_int_equal(config_home_of("config_param.data_folder.path", NULL), CONFIG_IN_CLUSTER);
    assert_int_equal(config_home_of("config_param.data_folder.pat", NULL), CONFIG_NO_KEY);
    assert_int_equal(config_home_of("trusted_hosts", NULL), CONFIG_IN_SETTINGS);
    assert_int_equal(config_home_of("num_gpus", &near), CONFIG_NO_KEY);
    assert_string_equal(near, "num_gpu");
    assert_true(config_is_text_key("docker.image") && config_is_text_key("env.A"));
    assert_false(config_is_text_key("num_gpu") || config_is_text_key("env"));
}

TEST(names_of_new_clusters)
{
    static const char *const wrong[] = {"", ".x", "-x", "a/b", "..", "a b", "x.yaml", "\xc3\xa9", "a\n"};

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(config_check_name(wrong[i], &err), -ACT_USAGE);
    assert_ok(config_check_name("Lab_1.eu-west", &err), err);
}

/* -- the built-in cluster -- */

TEST(built_in_cluster)
{
    static const char *const names[] = {"data", "output"};
    struct config c;
    struct config_account account;
    ACT_AUTOFREE char *sub = act_sprintf("%s/a/b", project);
    ACT_AUTOFREE char *git = act_sprintf("%s/.git", project);
    ACT_AUTOFREE char *store = act_sprintf("%s/.local/share/act/store", dir);

    assert_ok(act_mkdir_all(sub, 0755, &err), err);
    assert_ok(config_test_load(sub, NULL, &c), err);
    assert_string_equal(c.project_root, sub); /* nothing marks a project */
    config_release(&c);
    assert_ok(act_mkdir_all(git, 0755, &err), err);
    for (int i = 0; i < 2; i++) {
        assert_ok(config_test_load(sub, i ? "local" : NULL, &c), err);
        assert_string_equal(c.cluster, "local");
        assert_null(c.file);
        assert_string_equal(c.project_root, project);
        assert_string_equal(c.platform, "local");
        assert_true(act_starts_with(c.code.path, "proj-"));
        assert_int_equal(strlen(c.code.path), strlen("proj-01234567/code.zip"));
        assert_true(act_ends_with(c.code.path, "/code.zip"));
        assert_int_equal(c.n_folders, 2);
        for (size_t k = 0; k < COUNT(names); k++) {
            ACT_AUTOFREE char *path = act_sprintf("%.13s/%s", c.code.path, names[k]);
            assert_string_equal(folder(&c, names[k])->path, path);
        }
        assert_ok(config_account(&c, &c.code, &account, &err), err);
        assert_string_equal(account.file, "built-in");
        assert_string_equal(account.folder, store);
        assert_null(account.account_name);
        assert_null(account.endpoint);
        config_account_release(&account);
        config_release(&c);
    }
}

TEST(home_bounds_the_project)
{
    ACT_AUTO(config) c = {0};
    ACT_AUTOFREE char *git = act_sprintf("%s/.git", dir);

    setenv("HOME", project, 1);
    assert_ok(act_mkdir_all(git, 0755, &err), err);
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_string_equal(c.project_root, project);
}

TEST(local_files_get_built_in_rows)
{
    struct config c;

    config_test_put("aux_data/aml/local.yaml", "platform: local\n");
    assert_ok(config_test_load(project, NULL, &c), err); /* no aml.yaml: local.yaml is next */
    assert_string_equal(c.cluster, "local");
    assert_non_null(c.file);
    assert_int_equal(c.n_folders, 2);
    config_release(&c);
    config_test_put("aux_data/aml/local.yaml",
                    "platform: local\nconfig_param: {x_folder: {azure_blob_config_file: a.yaml, path: x}}\n");
    assert_ok(config_test_load(project, "local", &c), err);
    assert_int_equal(c.n_folders, 1);
    assert_string_equal(c.code.account_file, "built-in");
    config_release(&c);
    const char *const params[] = {"config_param: {data_folder: {mode: download}}", NULL};
    config_test_put("aux_data/aml/local.yaml", "platform: local\n");
    assert_ok(config_load(&(struct config_request){.start_dir = project, .params = params}, &c, &err), err);
    assert_int_equal(c.n_folders, 2);
    assert_string_equal(folder(&c, "data")->mode, "download");
    config_release(&c);
}

/* -- who wins -- */

static void expect_num_gpu(const struct config_request *request, int64_t value, const char *origin)
{
    ACT_AUTO(config) c = {0};

    assert_ok(config_load(request, &c, &err), err);
    assert_int_equal(c.num_gpu, value);
    CODEC_AUTOJSON json_t *all = config_show(&c);
    const json_t *row = json_object_get(all, "num_gpu");
    assert_string_equal(codec_json_str(row, "origin", "none"), origin);
    assert_int_equal(codec_json_int(row, "value", -1), value);
}

TEST(precedence)
{
    static const char *const params[] = {"num_gpu: 4", "{num_gpu: 5, env: {B: 2}}", NULL};
    static const struct config_override overrides[] = {{"num_gpu", "6", "-n"},
                                                       {"multi_process", "false", "-single"},
                                                       {"compile_args", "a: [b", "-ca"},
                                                       {"docker.image", "x:1", "--image"}};
    struct config_request request = {.start_dir = project};
    ACT_AUTO(config) c = {0};

    put_cluster("platform: slurm\n");
    expect_num_gpu(&request, -1, "default");
    put_cluster("platform: slurm\nenv: {A: 1}\nnum_gpu: 2\n");
    expect_num_gpu(&request, 2, "aux_data/aml/aml.yaml:3");
    setenv("ACT_NUM_GPU", "3", 1);
    expect_num_gpu(&request, 3, "$ACT_NUM_GPU");
    request.params = params;
    expect_num_gpu(&request, 5, "-p");
    request.overrides = overrides;
    request.n_overrides = COUNT(overrides);
    expect_num_gpu(&request, 6, "-n");
    assert_ok(config_load(&request, &c, &err), err);
    assert_false(c.multi_process);
    assert_string_equal(c.compile_args, "a: [b");
    assert_string_equal(c.docker.image, "x:1");
    assert_int_equal(c.env.n, 2);
    assert_string_equal(c.env.v[1], "B=2");
}

TEST(environment_keys)
{
    struct config c = {0};

    put_cluster("platform: slurm\n");
    setenv("ACT_EXPERIMENT_NAME", "null", 1);
    setenv("ACT_MULTI_PROCESS", "off", 1);
    setenv("ACT_COMPUTE_TARGET", "", 1);
    setenv("ACT_ENV", "nonsense", 1);
    setenv("ACT_TRACE", "http", 1);
    setenv("ACT_VERSION", "9", 1);
    setenv("ACT_HOME", "/x", 1);
    capture_begin();
    int rc = config_test_load(project, NULL, &c);
    ACT_AUTOFREE char *said = capture_end();
    assert_ok(rc, err);
    assert_string_equal(said, "");
    assert_string_equal(c.experiment_name, "null");
    assert_false(c.multi_process);
    assert_null(c.compute_target);
    assert_int_equal(c.env.n, 0);
    config_release(&c);
    setenv("ACT_GPU_PER_NODE", "many", 1);
    assert_int_equal(config_test_load(project, NULL, &c), -ACT_CONFIG);
    assert_string_equal(act_error_text(&err),
                        "$ACT_GPU_PER_NODE: 'gpu_per_node' must be a whole number from 0 to 1000000000, "
                        "not 'many'");
}

TEST(bad_flags)
{
    static const struct {
        const char *param, *error;
    } rows[] = {
        {"num_gpu", "-p:1:1: must be a map"},
        {"[1]", "-p:1:1: must be a map"},
        {"a: [", "-p:"},
        {"platfrom: local", "-p:1:1: unknown key 'platfrom'; did you mean 'platform'?"},
        {"num_gpu: x", "-p:1:1: 'num_gpu' must be a whole number from 0 to 1000000000, not 'x'"},
    };
    struct config c;

    put_cluster("platform: slurm\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const params[] = {rows[i].param, NULL};
        assert_int_equal(config_load(&(struct config_request){.start_dir = project, .params = params}, &c, &err),
                         -ACT_USAGE);
        assert_contains(act_error_text(&err), rows[i].error);
    }
    const struct config_override override = {"num_gpu", "-3", "-n"};
    const struct config_request request = {.start_dir = project, .overrides = &override, .n_overrides = 1};
    assert_int_equal(config_load(&request, &c, &err), -ACT_USAGE);
    assert_string_equal(act_error_text(&err), "-n: 'num_gpu' must be a whole number from 0 to 1000000000, not '-3'");
}

/* -- what is wrong -- */

TEST(refuses_cluster_files)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"a: 1\na: 2\n", "aux_data/aml/aml.yaml:2:1: the key is given twice"},
        {"env:\n\tA: 1\n", "aux_data/aml/aml.yaml:2:1: "},
        {"- a\n", "aux_data/aml/aml.yaml:1:1: must be a map"},
        {"x\xff: 1\n", "aux_data/aml/aml.yaml:1:1: the line is not UTF-8"},
        {"platform: amll\n", "aml.yaml:1:1: unknown platform 'amll'; it is one of local, slurm, ssh, k8s, "
                             "aml, itp, singularity; did you mean 'aml'?"},
        {"platform: [aml]\n", "aml.yaml:1:1: 'platform' must be text, not a list"},
        {"\nmulti_process: 'true'\n", "aml.yaml:2:1: 'multi_process' must be true or false, not 'true'"},
        {"multi_process: 2\n", "'multi_process' must be true or false, not '2'"},
        {"gpu_per_node: 1.5\n", "'gpu_per_node' must be a whole number from 0"},
        {"gpu_per_node: {}\n", "'gpu_per_node' must be a whole number from 0 to 1000000000, not a map"},
        {"process_count_per_node: 0\n", "'process_count_per_node' must be a whole number from 1"},
        {"num_gpu: 99999999999999999999\n", "'num_gpu' must be a whole number"},
        {"retry: often\n",
         "aml.yaml:1:1: 'retry' must be a whole number from 0 to 100 or a map, {times: 3, on: [ecc]}, "
         "not 'often'"},
        {"retry: 101\n", "'retry' must be a whole number from 0 to 100 or a map, {times: 3, on: [ecc]}, not '101'"},
        {"retry: {times: 101}\n", "aml.yaml:1:9: 'times' must be a whole number from 0 to 100, not '101'"},
        {"platfrom: local\n", "aml.yaml:1:1: unknown key 'platfrom'; did you mean 'platform'?"},
        {"elastic_num_gpu: 4\n", "'elastic_num_gpu' must be a list of whole numbers, such as [4], not '4'"},
        {"elastic_num_gpu: [4, x]\n", "aml.yaml:1:22: 'elastic_num_gpu' must be a list of whole numbers"},
        {"zip_options: -x\n", "'zip_options' must be a list of texts, such as [-x], not '-x'"},
        {"platform: local\ngpus: 0\n", "'gpus' must be a list of texts, such as [0], not '0'"},
        {"platform: local\ngpus: [0, 0]\n", "'gpus' names '0' twice"},
        {"platform: local\ngpus: [0, x]\n", "'gpus' names GPUs by their numbers or UUIDs, not by 'x'"},
        {"platform: local\ngpus: [-1]\n", "'gpus' names GPUs by their numbers or UUIDs, not by '-1'"},
        {"zip_options: [[a]]\n", "aml.yaml:1:15: 'zip_options' must be a list of texts"},
        {"env: [A]\n", "'env' must be a map of names and values, not a list"},
        {"env: {A: {B: 1}}\n", "aml.yaml:1:7: the environment variable 'A' must be text"},
        {"env: {'A=B': 1}\n", "'A=B' cannot be the name of an environment variable"},
        {"env: {'': 1}\n", "'' cannot be the name of an environment variable"},
        {"docker: image\n", "aml.yaml:1:1: 'docker' must be a map, not 'image'"},
        {"docker: {password: [docker-secret-word]}\n", "'password' must be text, not a list"},
        {"aml_config: [1]\n", "'aml_config' must be a map or the name of a file, not a list"},
        {"aml_config: no.json\n", "aml.yaml:1:1: 'aml_config': cannot read '"},
        {"experiment_name: a/b\n", "aml.yaml:1:1: 'experiment_name' must consist of"},
        {"experiment_name: -x\n", "'experiment_name' must consist of"},
        {"config_param: x\n", "'config_param' must be a map, not 'x'"},
        {"config_param:\n  data: {azure_blob_config_file: a, path: x}\n",
         "aml.yaml:2:3: unknown key 'data' in 'config_param': a folder 'data' is 'data_folder'"},
        {"config_param: {data_foldr: x}\n", "aml.yaml:1:16: unknown key 'data_foldr' in 'config_param'"},
        {"config_param: {data: null}\n", "aml.yaml:1:16: unknown key 'data' in 'config_param'"},
        {"config_param: {code_path: c.zip}\n",
         "aml.yaml:1:16: 'code_path' has no 'azure_blob_config_file', and there is none at the top level"},
        {"config_param:\n  data_folder: {azure_blob_config_file: a.yaml}\n",
         "aml.yaml:2:3: 'data_folder' has no 'path'"},
        {"config_param: {code_path: {azure_blob_config_file: a, path: ''}}\n", "must be that of a zip file"},
        {"config_param: {data_folder: {azure_blob_config_file: a, path: x/../y}}\n",
         "aml.yaml:1:57: the path of 'data_folder' must not contain '..'"},
        {"config_param: {data_folder: {azure_blob_config_file: a, path: x, mode: ro_mout}}\n",
         "aml.yaml:1:66: unknown mode 'ro_mout'; it is one of rw_mount, ro_mount, download, upload, path; did you mean "
         "'ro_mount'?"},
        {"config_param: {data_folder: {azure_blob_config_file: a, path: x, storage_type: file}}\n",
         "'file_share' must be the name of a share"},
        {"config_param: {data_folder: {azure_blob_config_file: a, path: x, storage_type: file, file_share: A_b}}\n",
         "'file_share' must be the name of a share"},
        {"config_param: {code_path: {azure_blob_config_file: a, path: x.zip, storage_type: file, file_share: abc}}\n",
         "'code_path' cannot be in a share of Azure Files: put it into a container or a folder"},
        {"config_param: {data_folder: {azure_blob_config_file: a, path: x, storage_type: s3}}\n",
         "; it is one of blob, file"},
        {"config_param: {data_folder: 'pvc:claim'}\n",
         "'data_folder' is on the claim 'claim', which only the platform 'k8s' can have, not 'aml'"},
        {"platform: k8s\nconfig_param: {data_folder: 'pvc:'}\n", "must be 'pvc:NAME' or 'pvc:NAME/path'"},
        {"platform: k8s\nconfig_param: {data_folder: 'pvc:My_Claim/x'}\n", "must be 'pvc:NAME' or 'pvc:NAME/path'"},
        {"platform: k8s\nconfig_param: {data_folder: 'pvc:claim/../x'}\n",
         "the path of 'data_folder' must not contain '..'"},
        {"platform: k8s\nconfig_param: {code_path: 'pvc:claim/code.zip'}\n",
         "'code_path' must be in a store: this machine does not see the claim 'claim'"},
        {"platform: k8s\nconfig_param: {data_folder: {path: 'pvc:claim/x', mode: download}}\n",
         "'data_folder' is on a claim, which is mounted: 'mode' must be rw_mount or ro_mount"},
        {"platform: k8s\nconfig_param: {data_folder: {path: 'pvc:claim/x', azure_blob_config_file: a}}\n",
         "'azure_blob_config_file' has no meaning for 'data_folder', which is on the claim 'claim'"},
        {"config_param: {data_folder: [a]}\n", "'data_folder' must be a map with 'azure_blob_config_file'"},
        {"config_param: {a/b_folder: {azure_blob_config_file: a, path: x}}\n",
         "'a/b' cannot be a folder of the project"},
        {"config_param: {.._folder: {azure_blob_config_file: a, path: x}}\n", "'..' cannot be a folder"},
        {"config_param: {code_path: {azure_blob_config_file: a, path: /}}\n", "must be that of a zip file"},
        {"_base_: nope.yaml\n", "aml.yaml:1:1: '_base_': cannot read '"},
        {"_base_: aml.yaml\n", "too many files, each the '_base_' of another"},
        {"_base_: [a]\n", "aml.yaml:1:1: '_base_' must be the name of a file"},
    };
    struct config c;

    for (size_t i = 0; i < COUNT(rows); i++) {
        put_cluster(rows[i].text);
        int rc = config_test_load(project, NULL, &c);
        if (rc >= 0 || !strstr(act_error_text(&err), rows[i].error))
            fail_msg("'%s' gives %d '%s', not '%s'", rows[i].text, rc, act_error_text(&err), rows[i].error);
        assert_null(c.values);
        assert_lacks(act_error_text(&err), "docker-secret-word");
    }
}

/* A FIFO that nobody writes to would be waited for. */
TEST(refuses_what_is_no_file)
{
    struct config c;
    ACT_AUTOFREE char *fifo = act_path_join(project, "fifo");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    put_cluster("_base_: ../../fifo\n");
    assert_true(config_test_load(project, NULL, &c) < 0);
    assert_contains(act_error_text(&err), "it is not a regular file");
    put_cluster("platform: aml\naml_config: fifo\n");
    assert_true(config_test_load(project, NULL, &c) < 0);
    assert_contains(act_error_text(&err), "it is not a regular file");
    assert_int_equal(unlink(fifo), 0);
}

TEST(refuses_workspace_files)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{\"workspace_name\": \"x\"", "aml.yaml:1:1: 'aml_config': w.json:1:"},
        {"[]", "w.json: must be an object"},
        {"{\"workspace_name\": 1}", "w.json: 'workspace_name' must be text"},
    };
    ACT_AUTO(config) c = {0};

    put_cluster("aml_config: w.json\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        config_test_put("w.json", rows[i].text);
        assert_fails(config_test_load(project, NULL, &c), err, ACT_CONFIG, rows[i].error);
    }
    put_cluster("aml_config: no.json\nplatform: slurm\n"); /* which needs none */
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_null(aml_config_keys(&c)->workspace_name);
}

TEST(unreadable_files)
{
    struct config c;
    ACT_AUTO(act_buf) huge = {0};
    ACT_AUTOFREE char *path = put_mode("aux_data/aml/aml.yaml", "a: 1\n", 0);

    if (geteuid() != 0)
        assert_int_equal(config_test_load(project, NULL, &c), -ACT_DENIED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(config_test_load(project, NULL, &c) < 0);
    assert_contains(act_error_text(&err), "aux_data/aml/aml.yaml");
    assert_int_equal(rmdir(path), 0);
    while (huge.len <= 1 << 20)
        act_buf_adds(&huge, "# a long comment\n");
    put_cluster(huge.data);
    assert_true(config_test_load(project, NULL, &c) < 0);
    assert_contains(act_error_text(&err), "larger than");
}

TEST(unknown_keys_warn)
{
    ACT_AUTO(config) c = {0};

    put_cluster("platform: slurm\nnum_gpus: 3\ndocker:\n  imagee: x\nfrobnicate: 1\n"
                "config_param: {d_folder: {azure_blob_config_file: a, path: b, pth: c}, "
                "s_folder: {azure_blob_config_file: a, path: b, file_share: abc}, "
                "o_folder: {azure_blob_config_file: a, path: /b//c/./d/}, "
                "p_folder: {azure_blob_config_file: a, path: /b/c//}}\n");
    capture_begin();
    int rc = config_test_load(project, NULL, &c);
    ACT_AUTOFREE char *said = capture_end();
    assert_ok(rc, err);
    assert_contains(said, "aux_data/aml/aml.yaml:2:1: unknown key 'num_gpus'; did you mean 'num_gpu'?");
    assert_contains(said, "aux_data/aml/aml.yaml:4:3: unknown key 'imagee'; did you mean 'image'?");
    assert_contains(said, "aux_data/aml/aml.yaml:5:1: unknown key 'frobnicate'\n");
    assert_contains(said, "unknown key 'pth'; did you mean 'path'?");
    assert_contains(said, "'file_share' has no effect on 's_folder' without 'storage_type: file'");
    assert_contains(said, "the path of 'o_folder' is taken for 'b/c/d', without empty segments and '.'");
    assert_null(strstr(said, "p_folder"));
}

/* -- accounts -- */

static int load_account(const char *text, struct config_account *out)
{
    ACT_AUTO(config) c = {0};

    config_test_put("a.yaml", text);
    put_cluster("platform: slurm\nconfig_param:\n  data_folder: {azure_blob_config_file: a.yaml, path: x}\n");
    assert_ok(config_test_load(project, NULL, &c), err);
    return config_account(&c, folder(&c, "data"), out, &err);
}

TEST(reads_accounts)
{
    struct config c;
    struct config_account a;

    assert_ok(config_test_load(PROJECT, "full", &c), err);
    assert_ok(config_account(&c, &c.code, &a, &err), err);
    assert_string_equal(a.account_name, "devstoreaccount1");
    assert_string_equal(a.container_name, "data-1");
    assert_string_equal(a.sas_token, "sv=2021-08-06&ss=b&sig=secretsigofdev%3D");
    assert_string_equal(a.endpoint, "http://127.0.0.1:10000/devstoreaccount1");
    assert_string_equal(a.auth, "sas");
    assert_null(a.account_key);
    config_account_release(&a);
    assert_ok(config_account(&c, folder(&c, "models"), &a, &err), err);
    assert_string_equal(a.folder, PROJECT "/store");
    config_account_release(&a);
    assert_ok(config_account(&c, folder(&c, "share"), &a, &err), err);
    assert_string_equal(a.account_name, "devstoreaccount1");
    assert_null(a.file_endpoint); /* an emulator's does not follow */
    config_account_release(&a);
    config_release(&c);
    assert_ok(config_test_load(PROJECT, NULL, &c), err);
    capture_begin();
    int rc = config_account(&c, &c.code, &a, &err);
    free(capture_end());
    assert_ok(rc, err);
    assert_string_equal(a.account_key, "c2VjcmV0LWtleS1vZi1lYXN0");
    assert_string_equal(a.sas_token, "sv=2021-08-06&ss=b&sig=secretsigofeast%3D");
    assert_string_equal(a.endpoint, "https://eaststore.blob.core.windows.net");
    assert_string_equal(a.file_endpoint, "https://eaststore.file.core.windows.net");
    assert_null(a.auth);
    config_account_release(&a);
    config_release(&c);
}

TEST(folder_accounts)
{
    struct config_account a;
    ACT_AUTOFREE char *home = act_sprintf("%s/st/x", dir);

    assert_ok(load_account("folder: ~/st/./x/\n", &a), err);
    assert_string_equal(a.folder, home);
    config_account_release(&a);
    assert_ok(load_account("folder: /srv/store\n", &a), err);
    assert_string_equal(a.folder, "/srv/store");
    config_account_release(&a);
}

TEST(refuses_accounts)
{
#define GOOD "account_name: acct\ncontainer_name: cont\n"
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"account_name: acct\n", "a.yaml:1:1: 'container_name' is missing"},
        {"container_name: cont\n", "a.yaml:1:1: 'account_name' is missing"},
        {"", "'account_name' is missing"},
        {"account_key hidden-secret==\n", "a.yaml:1:1: must be a map"},
        {"account_name: My_Account\ncontainer_name: cont\n", "a.yaml:1:1: 'My_Account' cannot be the name of"},
        {"account_name: acct\ncontainer_name: Con/t\n", "a.yaml:2:1: 'Con/t' cannot be the name of a container"},
        {"account_name: acct\ncontainer_name: c\n", "'c' cannot be the name of a container"},
        {GOOD "account_key: hidden-secret\n", "a.yaml:3:1: 'account_key' is not base64"},
        {GOOD "account_key: [hidden-secret]\n", "a.yaml:3:1: 'account_key' must be text, not a list"},
        {GOOD "sas_token: hidden-secret\n", "a.yaml:3:1: 'sas_token' is not of the form"},
        {GOOD "sas_token: *hidden-secret\n", "a.yaml:3:12: an alias"},
        {GOOD "sas_token: https://acct.blob.core.windows.net/c?sv=1&sig=hidden-secret\n",
         "a.yaml:3:1: 'sas_token' is a whole URL: only what follows its '?'"},
        {GOOD "sas_token: BlobEndpoint=https://acct.x/;SharedAccessSignature=sv=1&sig=hidden-secret\n",
         "'sas_token' is a connection string: only what follows 'SharedAccessSignature='"},
        {GOOD "sas_token: '\"sv=1&sig=hidden-secret\"'\n", "'sas_token' has quotes in it"},
        {GOOD "sas_token: \"'?sv=1&sig=hidden-secret'\"\n", "'sas_token' has quotes in it"},
        {GOOD "sas_token: sv=1&amp;sig=hidden-secret\n", "'sas_token' has '&amp;' in it"},
        {GOOD "sas_token: sv=1&se=2&sp=hidden-secret\n", "'sas_token' is not of the form 'sv=...&sig=...': there is"},
        {GOOD "sas_token: '?sig=&sv=hidden-secret'\n", "there is nothing for 'sig'"},
        {GOOD "sas_token: '?sv=1&sig=hidden+secret&sp=r'\n", "the 'sig' of 'sas_token' has a '+' in it"},
        {GOOD "sas_token: sig=hidden-secret%252B%253D\n", "the 'sig' of 'sas_token' was encoded twice"},
        {GOOD "account_key: !hidden-secret x\n", "a.yaml:3:14: a tag"},
        {GOOD "auth: key\n", "a.yaml:3:1: 'auth: key' without 'account_key'"},
        {GOOD "auth: sas\n", "'auth: sas' without 'sas_token'"},
        {GOOD "auth: kye\n", "unknown auth 'kye'; it is one of key, sas, login, anonymous; did you mean 'key'?"},
        {GOOD "endpoint: ftp://x\n", "a.yaml:3:1: 'endpoint' must be a URL"},
        {GOOD "endpoint: https://\n", "'endpoint' must be a URL"},
        {GOOD "file_endpoint: https://\n", "'file_endpoint' must be a URL"},
        {GOOD "endpoint: https://h/?sig=x\n", "'endpoint' must be a URL"},
        {GOOD "endpoint: https://user:pw@h/\n", "'endpoint' must be a URL"},
        {GOOD "auth: login\nendpoint: http://h\n", "a.yaml:4:1: 'auth: login' needs an 'endpoint' that is encrypted"},
        {GOOD "folder: /x\n", "a.yaml:1:1: 'account_name' beside 'folder'"},
    };
    struct config_account a;

    for (size_t i = 0; i < COUNT(rows); i++) {
        int rc = load_account(rows[i].text, &a);
        if (rc != -ACT_CONFIG || !strstr(act_error_text(&err), rows[i].error))
            fail_msg("'%s' gives %d '%s', not '%s'", rows[i].text, rc, act_error_text(&err), rows[i].error);
        assert_lacks(act_error_text(&err), "hidden-secret");
        assert_null(a.file);
    }
}

TEST(missing_accounts)
{
    ACT_AUTO(config) c = {0};
    struct config_account a;

    put_cluster("platform: itp\nconfig_param:\n  data_folder: {azure_blob_config_file: no.yaml, path: x}\n");
    assert_ok(config_test_load(project, NULL, &c), err);
    assert_fails(config_account(&c, folder(&c, "data"), &a, &err), err, ACT_NOT_FOUND,
                 "aux_data/aml/aml.yaml:3:17: 'azure_blob_config_file' of 'data': cannot read '");
    assert_contains(act_error_text(&err), "no.yaml'");
    assert_null(c.code.path);
    assert_fails(config_account(&c, &c.code, &a, &err), err, ACT_CONFIG,
                 "aux_data/aml/aml.yaml: no 'code_path' in 'config_param'");
}

TEST(secrets_from_the_environment)
{
    struct config_account a;

    setenv("AZURE_STORAGE_KEY", "ZW52LWtleQ==", 1);
    setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=env", 1);
    assert_ok(load_account(GOOD, &a), err);
    assert_string_equal(a.account_key, "ZW52LWtleQ==");
    assert_string_equal(a.sas_token, "sv=1&sig=env");
    config_account_release(&a);
    assert_ok(load_account(GOOD "auth: sas\n", &a), err);
    assert_null(a.account_key);
    assert_string_equal(a.sas_token, "sv=1&sig=env");
    config_account_release(&a);
    assert_ok(load_account(GOOD "auth: login\n", &a), err);
    assert_true(!a.account_key && !a.sas_token);
    config_account_release(&a);
    assert_ok(load_account(GOOD "account_key: b3du\n", &a), err); /* the file's own is enough */
    assert_string_equal(a.account_key, "b3du");
    assert_null(a.sas_token);
    config_account_release(&a);
    setenv("AZURE_STORAGE_ACCOUNT", "another", 1);
    assert_ok(load_account(GOOD, &a), err);
    assert_true(!a.account_key && !a.sas_token);
    config_account_release(&a);
    setenv("AZURE_STORAGE_ACCOUNT", "acct", 1);
    assert_ok(load_account(GOOD, &a), err);
    assert_non_null(a.account_key);
    config_account_release(&a);
}

TEST(account_warnings)
{
    struct config c;
    struct config_account a;
    ACT_AUTOFREE char *path = act_path_join(project, "a.yaml");

    put_cluster("platform: slurm\nazure_blob_config_file: a.yaml\nconfig_param: {code_path: c.zip, x_folder: x}\n");
    config_test_put("a.yaml", GOOD "account_key: b3du\nendpoint: http://store.example.org\nacount: x\n");
    assert_int_equal(chmod(path, 0644), 0);
    assert_ok(config_test_load(project, NULL, &c), err);
    capture_begin();
    assert_ok(config_account(&c, &c.code, &a, &err), err);
    config_account_release(&a);
    ACT_AUTOFREE char *said = capture_end();
    assert_contains(said, "a.yaml: holds secrets and can be read by other users; run 'chmod 600 ");
    assert_contains(said, "a.yaml:4:1: 'endpoint' is not encrypted");
    assert_contains(said, "a.yaml:5:1: unknown key 'acount'");
    assert_lacks(said, "b3du");
    capture_begin();
    assert_ok(config_account(&c, folder(&c, "x"), &a, &err), err);
    config_account_release(&a);
    ACT_AUTOFREE char *again = capture_end();
    assert_lacks(again, "chmod"); /* once per file */
    config_release(&c);
    config_test_put("a.yaml", GOOD "account_key: b3du\nendpoint: http://127.0.0.1:10000/acct\n");
    assert_ok(config_test_load(project, NULL, &c), err);
    capture_begin();
    assert_ok(config_account(&c, &c.code, &a, &err), err);
    config_account_release(&a);
    ACT_AUTOFREE char *quiet = capture_end();
    assert_string_equal(quiet, "");
    config_release(&c);
}

/* -- show -- */

static void expect_row(const json_t *all, const char *key, const char *value, const char *origin)
{
    const json_t *row = json_object_get(all, key);
    ACT_AUTOFREE char *line = codec_json_line(json_object_get(row, "value"));

    if (!row || strcmp(line, value) != 0 || strcmp(codec_json_str(row, "origin", ""), origin) != 0)
        fail_msg("%s: %s from %s, not %s from %s", key, line, codec_json_str(row, "origin", "nowhere"), value, origin);
}

TEST(shows_values_and_origins)
{
    struct config c;

    assert_ok(config_test_load(PROJECT, "full", &c), err);
    CODEC_AUTOJSON json_t *all = config_show(&c);
    expect_row(all, "cluster", "\"full\"", "-c");
    expect_row(all, "platform", "\"itp\"", "aux_data/aml/full.yaml:2");
    expect_row(all, "aml_config.workspace_name", "\"space\"", "aux_data/aml/full.yaml:6");
    expect_row(all, "config_param.code_path.path", "\"short/code.zip\"", "aux_data/aml/full.yaml:10");
    expect_row(all, "config_param.code_path.azure_blob_config_file", "\"aux_data/configs/sas_account.yaml\"",
               "aux_data/aml/full.yaml:7");
    expect_row(all, "config_param.code_path.account.account_name", "\"devstoreaccount1\"",
               "aux_data/configs/sas_account.yaml:2");
    expect_row(all, "config_param.code_path.account.sas_token", "\"***\"", "aux_data/configs/sas_account.yaml:3");
    expect_row(all, "config_param.code_path.account.account_key", "null", "default");
    expect_row(all, "config_param.models_folder.mode", "\"ro_mount\"", "aux_data/aml/full.yaml:19");
    expect_row(all, "docker.password", "\"***\"", "aux_data/aml/full.yaml:29");
    expect_row(all, "multi_process", "false", "aux_data/aml/full.yaml:32");
    expect_row(all, "elastic_num_gpu", "[\"16\",\"8\",\"24\"]", "aux_data/aml/full.yaml:37");
    expect_row(all, "env.NUMBER", "\"017\"", "aux_data/aml/full.yaml:44");
    expect_row(all, "env.MY_API_TOKEN", "\"***\"", "aux_data/aml/full.yaml:50");
    expect_row(all, "config_param.share_folder.file_share", "\"files\"", "aux_data/aml/full.yaml:23");
    expect_row(all, "config_param.in_folder.datastore_name", "null", "default");
    expect_row(all, "config_param.data_folder.datastore_name", "\"top_store\"", "aux_data/aml/full.yaml:8");
    config_release(&c);
    assert_ok(config_test_load(PROJECT, NULL, &c), err);
    CODEC_AUTOJSON json_t *sample = config_show(&c);
    expect_row(sample, "aml_config.workspace_name", "\"vision-workspace\"", "aux_data/aml/config.json");
    expect_row(sample, "num_gpu", "null", "default");
    expect_row(sample, "config_param.data_folder.account.account_key", "\"***\"",
               "aux_data/configs/east_account.yaml:2");
    config_release(&c);
    assert_ok(config_test_load(PROJECT, "other", &c), err);
    CODEC_AUTOJSON json_t *other = config_show(&c);
    expect_row(other, "platform", "\"itp\"", "aux_data/aml/other.yaml:1");
    config_release(&c);
}

/* What a layer says in short is completed by the next one as if it had been said in full. */
TEST(short_forms_are_completed)
{
    static const char *const params[] = {"{aml_config: {workspace_name: typed}, retry: {on: [ecc]}, "
                                         "config_param: {code_path: {submit_with_url: true}, data_folder: x/data}}",
                                         NULL};
    struct config c;

    config_test_put("w.json",
                    "{\"workspace_name\": \"said\", \"resource_group\": \"group\", \"subscription_id\": \"sub\"}");
    config_test_put("aux_data/aml/base.yaml", "aml_config: w.json\nretry: 3\nconfig_param:\n  code_path: a/code.zip\n"
                                              "  data_folder: {azure_blob_config_file: own.yaml, path: a/data}\n"
                                              "azure_blob_config_file: store.yaml\n");
    put_cluster("_base_: base.yaml\nplatform: aml\naml_config: {resource_group: other}\n");
    struct config_request request = {.start_dir = project, .params = params};
    assert_ok(config_load(&request, &c, &err), err);
    CODEC_AUTOJSON json_t *all = config_show(&c);
    expect_row(all, "aml_config.workspace_name", "\"typed\"", "-p");
    expect_row(all, "aml_config.resource_group", "\"other\"", "aux_data/aml/aml.yaml:3");
    expect_row(all, "aml_config.subscription_id", "\"sub\"", "w.json");
    expect_row(all, "retry.times", "3", "aux_data/aml/base.yaml:2");
    expect_row(all, "retry.on", "[\"ecc\"]", "-p");
    expect_row(all, "config_param.code_path.path", "\"a/code.zip\"", "aux_data/aml/base.yaml:4");
    expect_row(all, "config_param.code_path.submit_with_url", "true", "-p");
    expect_row(all, "config_param.data_folder.path", "\"x/data\"", "-p");
    expect_row(all, "config_param.data_folder.azure_blob_config_file", "\"own.yaml\"", "aux_data/aml/base.yaml:5");
    config_release(&c);
    put_cluster("_base_: base.yaml\nplatform: aml\naml_config: {workspace_name: said, resource_group: mine}\n");
    request.params = (const char *const[]){"aml_config: w.json", NULL}; /* another workspace, not some of its names */
    assert_ok(config_load(&request, &c, &err), err);
    assert_string_equal(aml_config_keys(&c)->resource_group, "group");
    config_release(&c);
}

TEST(shows_every_key)
{
    ACT_AUTO(config) c = {0};

    assert_ok(config_test_load(project, NULL, &c), err);
    CODEC_AUTOJSON json_t *all = config_show(&c);
    for (const struct config_key *key = config_cluster_keys; key->path; key++) {
        if (key->type == CONFIG_ANY || key->type == CONFIG_MAP || key->type == CONFIG_MAP_FILE ||
            key->type == CONFIG_MAP_INT || key->type == CONFIG_MAP_NONE || key->instead)
            continue;
        const char *star = strstr(key->path, ".*.");
        ACT_AUTOFREE char *path = star ? act_sprintf("config_param.data_folder.%s", star + 3) : act_strdup(key->path);
        if (!json_object_get(all, path))
            fail_msg("no %s", path);
    }
    expect_row(all, "config_param.data_folder.azure_blob_config_file", "\"built-in\"", "default");
    expect_row(all, "gpu_per_node", "null", "default");
}

TEST(no_secret_comes_out)
{
    static const char *const secrets[] = {"c2VjcmV0LWtleS1vZi1lYXN0", "secretsig", "docker-secret", "env-secret"};
    static const char *const clusters[] = {"aml", "full", "derived"};
    const struct config_override password = {"docker.password", "docker-secret-flag", "--password"};
    struct config c;

    for (size_t i = 0; i < COUNT(clusters); i++) {
        const struct config_request request = {
            .start_dir = PROJECT, .cluster = clusters[i], .overrides = &password, .n_overrides = 1};
        assert_ok(config_load(&request, &c, &err), err);
        CODEC_AUTOJSON json_t *show = config_show(&c), *resolved = config_resolved(&c);
        ACT_AUTOFREE char *shown = codec_json_line(show);
        ACT_AUTOFREE char *text = codec_json_line(resolved);
        for (size_t k = 0; k < COUNT(secrets); k++) {
            assert_lacks(shown, secrets[k]);
            assert_lacks(text, secrets[k]);
        }
        assert_contains(shown, "***");
        config_release(&c);
    }
}

TEST(resolved_is_nested)
{
    ACT_AUTO(config) c = {0};

    assert_ok(config_test_load(PROJECT, "full", &c), err);
    CODEC_AUTOJSON json_t *all = config_resolved(&c);
    assert_string_equal(codec_json_str(all, "cluster", ""), "full");
    assert_int_equal(codec_json_int(all, "num_gpu", 0), 16);
    assert_string_equal(codec_json_str(json_object_get(all, "docker"), "password", ""), "***");
    const json_t *rows = json_object_get(all, "config_param");
    assert_string_equal(codec_json_str(json_object_get(rows, "models_folder"), "path", ""), "models");
    assert_string_equal(codec_json_str(json_object_get(rows, "code_path"), "path", ""), "short/code.zip");
}

/* -- check -- */

TEST(check_collects)
{
    static const char *const expected[] = {
        "aux_data/aml/aml.yaml:1:1: 'multi_process' must be",
        "aux_data/aml/aml.yaml:2:1: 'gpu_per_node' must be",
        "aux_data/aml/aml.yaml:4:3: 'code_path' has no 'azure_blob_config_file'",
        "a.yaml:1:1: 'Bad' cannot be the name",
        "a.yaml:1:1: 'container_name' is missing",
        "'azure_blob_config_file' of 'gone': cannot read",
        "needs 'compute_target'",
        "needs 'aml_config.workspace_name'",
        "unknown key 'nonsens'",
    };
    struct config_report report = {0};

    put_cluster("multi_process: maybe\ngpu_per_node: lots\nconfig_param:\n  code_path: c.zip\n"
                "  data_folder: {azure_blob_config_file: a.yaml, path: x}\n"
                "  again_folder: {azure_blob_config_file: a.yaml, path: x}\n"
                "  gone_folder: {azure_blob_config_file: no.yaml, path: x}\nnonsens: 1\n");
    config_test_put("a.yaml", "account_name: Bad\n");
    assert_ok(config_check(&(struct config_request){.start_dir = project}, &report, &err), err);
    for (size_t i = 0; i < COUNT(expected); i++) {
        size_t found = 0;
        for (size_t k = 0; k < report.problems.n; k++)
            found += strstr(report.problems.v[k], expected[i]) != NULL;
        if (found != 1)
            fail_msg("%zu times '%s'", found, expected[i]);
    }
    for (int line = 0, last = 0, k = 0; k < 5; k++, last = line) { /* those of the cluster file come first */
        assert_int_equal(sscanf(report.problems.v[k], "aux_data/aml/aml.yaml:%d:", &line), 1);
        assert_true(line >= last);
    }
    config_report_release(&report);
    struct config c;
    assert_fails(config_test_load(project, NULL, &c), err, ACT_CONFIG, "2 more problems: 'a config check' lists them");
}

TEST(check_of_kubernetes)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"platform: k8s\nk8s:\n  image: a\n  time: soon\n", "aml.yaml:4:3: 'k8s.time' must be a duration"},
        {"platform: k8s\nk8s:\n  image: a\n  cpu: lots\n", "aml.yaml:4:3: 'k8s.cpu' must be a quantity"},
        {"platform: k8s\nk8s:\n  image: a\n  memory: 16GB\n", "aml.yaml:4:3: 'k8s.memory' must be a quantity"},
        {"platform: k8s\nk8s:\n  image: a\n  shm_size: -1\n", "aml.yaml:4:3: 'k8s.shm_size' must be a quantity"},
        {"platform: k8s\nk8s:\n  image: a\n  time: 90\n",
         "'k8s.time' must be a duration such as 90s, 20m, 24h or 7d, not '90', which may mean 90s or 90m"},
        {"platform: k8s\nk8s:\n  image: a\n  gang_wait: 600\n", "not '600', which may mean 600s or 600m"},
        {"platform: k8s\nhang: 600\nk8s:\n  image: a\n  memory: 1e3\n", "not '600', which may mean 600s or 600m"},
        {"platform: k8s\nelastic_num_gpu: [16, 8]\nk8s: {image: a}\n", "must be the smallest and the largest number"},
        {"platform: k8s\nk8s: pods\n", "aml.yaml:2:1: 'k8s' must be a map"},
        {"platform: k8s\n", "aml.yaml:1:1: the platform 'k8s' needs 'k8s.image' or 'docker.image'"},
        {"platform: k8s\nk8s:\n  image: ''\n", "aml.yaml:3:3: the platform 'k8s' needs 'k8s.image'"},
        {"platform: k9s\n", "aml.yaml:1:1: unknown platform 'k9s'; it is one of local, "},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config_report report = {0};
        put_cluster(rows[i].text);
        assert_ok(config_check(&(struct config_request){.start_dir = project}, &report, &err), err);
        assert_int_equal(report.problems.n, 1);
        assert_contains(report.problems.v[0], rows[i].problem);
        config_report_release(&report);
    }
}

TEST(check_other_outcomes)
{
    struct config_report report = {0};

    assert_ok(config_check(&(struct config_request){.start_dir = project}, &report, &err), err);
    assert_int_equal(report.problems.n, 0);
    assert_string_equal(report.cluster, "local");
    assert_null(report.file);
    config_report_release(&report);
    put_cluster("a: [\n");
    assert_ok(config_check(&(struct config_request){.start_dir = project}, &report, &err), err);
    assert_int_equal(report.problems.n, 1);
    assert_contains(report.problems.v[0], "aux_data/aml/aml.yaml:2:1: ");
    assert_string_equal(report.cluster, "aml");
    assert_contains(report.file, "aux_data/aml/aml.yaml");
    config_report_release(&report);
    assert_int_equal(config_check(&(struct config_request){.start_dir = project, .cluster = "x"}, &report, &err),
                     -ACT_NOT_FOUND);
    assert_int_equal(report.problems.n, 0);
}

/* -- paths -- */

TEST(maps_paths)
{
    static const struct {
        const char *from, *path, *folder, *rest; /* folder NULL: refused with rest in the text */
        int code;
    } rows[] = {
        {"", "data", "data", "", 0},
        {"", "data/", "data", "", 0},
        {"", "./data/voc", "data", "voc", 0},
        {"", "data/voc/", "data", "voc/", 0},
        {"", "data/voc//a", "data", "voc//a", 0},
        {"", "data//voc/", "data", "/voc/", 0},
        {"", "data//", "data", "/", 0},
        {"", ".//./data/voc", "data", "voc", 0},
        {"", "@//./data//voc", "data", "/voc", 0},
        {"data/voc", ".//a", "data", "voc//a", 0},
        {"data/voc", "..//a", "data", "/a", 0},
        {"data/voc", "./", "data", "voc/", 0},
        {"", "data/./a", NULL, "are allowed only at the beginning", ACT_USAGE},
        {"", "data/.", NULL, "are allowed only at the beginning", ACT_USAGE},
        {"data", "./a/.", NULL, "are allowed only at the beginning", ACT_USAGE},
        {"", "output/x y/\xc3\xa9", "output", "x y/\xc3\xa9", 0},
        {"", "data/..x/y..", "data", "..x/y..", 0},
        {"", "@/data/voc", "data", "voc", 0},
        {"", "@/data/", "data", "", 0},
        {"sub/deep", "../../data/voc", "data", "voc", 0},
        {"data", "voc", "data", "voc", 0},
        {"data", ".", "data", "", 0},
        {"data", "./", "data", "", 0},
        {"data/voc", "..", "data", "", 0},
        {"", "dta/voc", NULL, "did you mean 'data'?", ACT_NOT_FOUND},
        {"", "database", NULL, "mapped folders: 'data', 'output'", ACT_NOT_FOUND},
        {"sub/deep", "data/voc", NULL, "is in no mapped folder", ACT_NOT_FOUND},
        {"", "code", NULL, "is in no mapped folder", ACT_NOT_FOUND},
        {"", ".", NULL, "is the project itself", ACT_NOT_FOUND},
        {"", "", NULL, "an empty path", ACT_USAGE},
        {"", "..", NULL, "outside of the project", ACT_USAGE},
        {"", "../proj2/data", NULL, "outside of the project", ACT_USAGE},
        {"", "@2/data", NULL, "outside of the project", ACT_USAGE},
        {"", "/etc/passwd", NULL, "outside of the project", ACT_USAGE},
        {"", "data/../data", NULL, "are allowed only at the beginning", ACT_USAGE},
        {"", "data/..", NULL, "are allowed only at the beginning", ACT_USAGE},
        {"", "@/data/../../x", NULL, "are allowed only at the beginning", ACT_USAGE},
    };

    config_test_put(".git/x", "");
    config_test_put("sub/deep/x", "");
    config_test_put("data/voc/x", "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config c;
        const struct config_folder *found = NULL;
        char *rest = NULL;
        ACT_AUTOFREE char *start = act_path_join(project, rows[i].from);
        ACT_AUTOFREE char *path =
            *rows[i].path == '@' ? act_sprintf("%s%s", project, rows[i].path + 1) : act_strdup(rows[i].path);
        assert_ok(config_test_load(start, NULL, &c), err);
        int rc = config_map_path(&c, path, &found, &rest, &err);
        if (rc != -rows[i].code)
            fail_msg("'%s': %d %s", path, rc, act_error_text(&err));
        if (rows[i].folder) {
            assert_string_equal(found->name, rows[i].folder);
            assert_string_equal(rest, rows[i].rest);
        } else {
            assert_contains(act_error_text(&err), rows[i].rest);
            assert_null(rest);
        }
        free(rest);
        config_release(&c);
    }
}

TEST(keys_of_kubernetes_are_maps_and_lists_of_any_form)
{
    struct config c;

    put_cluster("platform: k8s\nk8s:\n  kubeconfig: conf/kube\n  node_selector: {gpu: true, n: 2, quoted: '3'}\n"
                "  tolerations: [{key: sku, operator: Exists}]\n  pod: {spec: {hostIPC: yes, a: [1, b, null]}}\n");
    assert_ok(config_test_load(project, NULL, &c), err);
    ACT_AUTOFREE char *selector = codec_json_line(k8s_keys(&c)->node_selector),
                      *pod = codec_json_line(k8s_keys(&c)->pod),
                      *tolerations = codec_json_line(k8s_keys(&c)->tolerations),
                      *kubeconfig = act_path_join(project, "conf/kube");
    assert_string_equal(selector, "{\"gpu\":true,\"n\":2,\"quoted\":\"3\"}");
    assert_string_equal(tolerations, "[{\"key\":\"sku\",\"operator\":\"Exists\"}]");
    assert_string_equal(pod, "{\"spec\":{\"hostIPC\":true,\"a\":[1,\"b\",null]}}");
    assert_string_equal(k8s_keys(&c)->kubeconfig, kubeconfig);
    assert_string_equal(k8s_keys(&c)->gpu_resource, "nvidia.com/gpu");
    assert_null(k8s_keys(&c)->volumes);
    config_release(&c);
    put_cluster("platform: k8s\nk8s: {tolerations: {key: sku}, pod: [1], volumes: [a]}\n");
    assert_fails(config_test_load(project, NULL, &c), err, ACT_CONFIG, "'k8s.tolerations' must be a list of maps");
}

static int config_test_begin(void **state)
{
    (void)state;
    platform_begin();
    return 0;
}

TEST_MAIN(config_test_begin, NULL)
