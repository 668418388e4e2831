/* schema.c - every key there is. See config/cluster.schema.json and config/account.schema.json, which a test
 * keeps equal to these tables. */
#include <string.h>

#include "config/config_internal.h"

#define CLUSTER(member) offsetof(struct config, member)
#define FOLDER(member)  offsetof(struct config_folder, member)
#define ACCOUNT(member) offsetof(struct config_account, member)
#define USER(member)    offsetof(struct config_user, member)

// clang-format off
const struct config_key config_general_keys[] = {
    {"platform", CONFIG_CHOICE, CLUSTER(platform), .choices = "", /* config_use_kinds() says which */
     .help = "the kind of place where runs execute"},
    {"aks_compute", CONFIG_BOOL, CONFIG_NOWHERE, .instead = "platform: itp",
     .help = "legacy: true means 'platform: itp'"},
    {"azure_blob_config_file", CONFIG_TEXT, CONFIG_NOWHERE,
     .help = "the account file of the rows of config_param that name none"},
    {"datastore_name", CONFIG_TEXT, CONFIG_NOWHERE,
     .help = "the datastore of the rows of config_param that name neither it nor an account file"},
    {"config_param", CONFIG_MAP, CONFIG_NOWHERE,
     .help = "where the code ('code_path') and the mapped folders ('<name>_folder') are stored"},
    {"config_param.*.azure_blob_config_file", CONFIG_TEXT, FOLDER(account_file),
     .help = "the account file of this row"},
    {"config_param.*.path", CONFIG_TEXT, FOLDER(path),
     .help = "the path in the store, '' for all of it; on the platform k8s also pvc:NAME/path, a path in a "
             "PersistentVolumeClaim"},
    {"config_param.*.storage_type", CONFIG_CHOICE, FOLDER(storage_type), "blob", .choices = "blob|file",
     .help = "the kind of storage: blob, or file, a share of Azure Files, which only jobs of Azure Machine Learning "
             "mount"},
    {"config_param.*.datastore_name", CONFIG_TEXT, FOLDER(datastore_name),
     .help = "the name of the datastore in the workspace"},
    {"config_param.*.blob_cache_timeout", CONFIG_INT, FOLDER(blob_cache_timeout), .min = 0,
     .help = "seconds for which a mount caches"},
    {"config_param.*.submit_with_url", CONFIG_BOOL, FOLDER(submit_with_url), "false",
     .help = "of code_path: give the job URLs of the files, without a datastore"},
    {"config_param.*.mode", CONFIG_CHOICE, FOLDER(mode), "rw_mount",
     .choices = "rw_mount|ro_mount|download|upload|path",
     .help = "how the job gets at the folder; path: the nodes have it already, as the absolute path that 'path' is"},
    {"config_param.*.file_share", CONFIG_TEXT, FOLDER(file_share),
     .help = "with storage_type file: the name of the share"},
    {"compute_target", CONFIG_TEXT, CLUSTER(compute_target),
     .help = "the compute target, virtual cluster or partition"},
    {"docker", CONFIG_MAP, CONFIG_NOWHERE, .help = "the container image that runs execute in"},
    {"docker.image", CONFIG_TEXT, CLUSTER(docker.image), .help = "the name of the image"},
    {"docker.address", CONFIG_TEXT, CLUSTER(docker.address), .help = "the registry of the image"},
    {"docker.username", CONFIG_TEXT, CLUSTER(docker.username), .help = "the user at the registry"},
    {"docker.password", CONFIG_TEXT, CLUSTER(docker.password), .secret = true,
     .help = "the password at the registry, or keyvault:URL"},
    {"experiment_name", CONFIG_TEXT, CLUSTER(experiment_name),
     .help = "the experiment of the runs; by default the name of the user"},
    {"use_cli_auth", CONFIG_BOOL, CLUSTER(use_cli_auth), "false",
     .help = "only use the login of the Azure CLI (az login)"},
    {"multi_process", CONFIG_BOOL, CLUSTER(multi_process), "true",
     .help = "start one process per GPU, else one per node"},
    {"gpu_per_node", CONFIG_INT, CLUSTER(gpu_per_node), "4", .min = 0,
     .help = "the GPUs of a node; on the platform local what the machine has"},
    {"num_gpu", CONFIG_INT, CLUSTER(num_gpu), .min = 0,
     .help = "the GPUs of a run; by default those of one node"},
    {"gpus", CONFIG_TEXTS, CLUSTER(gpus),
     .help = "on the platform local, which of the machine's GPUs runs may have, by number or UUID; by default all that "
             "are given"},
    {"gpu_free_memory", CONFIG_INT, CLUSTER(gpu_free_memory), "5", .min = 1, .max = 100,
     .help = "on the platform local, a GPU counts as free while at most so many percent of its memory are in use and "
             "nobody else computes on it"},
    {"process_count_per_node", CONFIG_INT, CLUSTER(process_count_per_node), .min = 1,
     .help = "the processes per node; by default one per GPU"},
    {"preemption_allowed", CONFIG_BOOL, CLUSTER(preemption_allowed), "false",
     .help = "the run may be preempted"},
    {"retry", CONFIG_MAP_INT, CONFIG_NOWHERE,
     .help = "try a run again that has failed; a number alone is retry.times"},
    {"retry.times", CONFIG_INT, CLUSTER(retry.times), .min = 0, .max = CONFIG_RETRY_MOST,
     .help = "how often; by default never"},
    {"retry.on", CONFIG_TEXTS, CLUSTER(retry.on),
     .help = "after which failures: what 'a why' calls them (nccl_timeout), or infrastructure; by default "
             "infrastructure, all that are not the command's own fault"},
    {"elastic_num_gpu", CONFIG_INTS, CLUSTER(elastic_num_gpu), .min = 1,
     .help = "the numbers of GPUs an elastic run can work with; on k8s the smallest and the largest"},
    {"singularity_sla_tier", CONFIG_TEXT, CLUSTER(singularity_sla_tier), "Premium",
     .help = "the service level on the platform singularity"},
    {"singularity_instance_type", CONFIG_TEXT, CLUSTER(singularity_instance_type),
     "AISupercomputer.ND96amr_A100_v4", .help = "the instance type on the platform singularity"},
    {"env", CONFIG_ENV, CLUSTER(env), .help = "environment variables of the run"},
    {"zip_options", CONFIG_TEXTS, CLUSTER(zip_options), .help = "options of zip for the code package"},
    {"gitignore", CONFIG_BOOL, CLUSTER(gitignore), "true",
     .help = "what git ignores stays out of the code package"},
    {"mount", CONFIG_CHOICE, CLUSTER(mount), .choices = "blobfuse2|rclone|copy",
     .help = "on the platforms local and slurm, what mounts folders, by default the first that the node has; copy "
             "brings them before the command, and sends changes after it"},
    {"compile_args", CONFIG_TEXT, CLUSTER(compile_args), .help = "arguments of compile.aml.sh"},
    {"modules", CONFIG_TEXTS, CLUSTER(setup.modules),
     .in_project = true,
     .help = "modules that every node loads before the command, by Environment Modules or Lmod: [cuda/12.1]"},
    {"modules_purge", CONFIG_BOOL, CLUSTER(setup.modules_purge), "false",
     .in_project = true,
     .help = "unload all modules of the node first"},
    {"conda", CONFIG_TEXT, CLUSTER(setup.conda),
     .in_project = true,
     .help = "an environment of conda on the nodes that is activated before the command: its name or its folder; "
             "environment.yml: the one that is made from that file of the project, also where others would count"},
    {"venv", CONFIG_TEXT, CLUSTER(setup.venv),
     .in_project = true,
     .help = "the folder of a virtual environment on the nodes that is activated before the command"},
    {"setup", CONFIG_TEXT, CLUSTER(setup.lines),
     .in_project = true,
     .help = "lines for bash, once on each node before the command; what they export reaches the command"},
    {"setup_rank", CONFIG_TEXT, CLUSTER(setup.rank_lines),
     .in_project = true,
     .help = "lines for bash, by every rank before its command"},
    {"setup_timeout", CONFIG_TEXT, CLUSTER(setup.timeout), "10m",
     .in_project = true,
     .help = "modules, conda, venv and setup must be ready within this time: 90s, 20m"},
    {"environment", CONFIG_MAP_NONE, CONFIG_NOWHERE,
     .in_project = true,
     .help = "the environment that is made from requirements.txt or a lock file; none: nothing is made"},
    {"environment.make", CONFIG_CHOICE, CLUSTER(environment.make), "auto", .choices = "auto|none",
     .help = "auto: where the project says what it needs"},
    {"environment.system_packages", CONFIG_BOOL, CLUSTER(environment.system_packages),
     .help = "whether it sees the packages that its Python has already; by default those of an image, a conda "
             "environment or a virtual environment"},
    {"environment.wheels_folder", CONFIG_TEXT, CLUSTER(environment.wheels_folder),
     .help = "a folder of wheels, below the code (so in a mapped folder) or on the nodes, in place of an index"},
    {"environment.where", CONFIG_CHOICE, CLUSTER(environment.where), "auto", .choices = "auto|nodes|login",
     .help = "login: on Slurm, on the login node, before the run is queued; auto: on the nodes, and on the login node "
             "once a node has reached no index"},
    {"sleep_if_fail", CONFIG_BOOL, CLUSTER(sleep_if_fail), "false",
     .help = "keep the node for a look when the run fails"},
    {"sleep_if_succeed", CONFIG_BOOL, CLUSTER(sleep_if_succeed), "false",
     .help = "keep the node for a look when the run succeeds"},
    {"hang", CONFIG_TEXT, CLUSTER(hang), .form = &config_duration,
     .help = "a run hangs, and is ended, if for so long no rank writes a line and all GPUs are idle: 20m; by default "
             "nobody looks"},
    {"hang_gpus", CONFIG_CHOICE, CLUSTER(hang_gpus), "idle", .choices = "idle|any",
     .help = "any: a run hangs also while GPUs work, as kernels of NCCL do that wait for another rank"},
    {"_base_", CONFIG_ANY, CONFIG_NOWHERE,
     .help = "another file, relative to this one, whose keys this one completes"},
    {"cluster", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy: the name of the file says it"},
    {"is_ssh_scheduler", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"interpreter_path", CONFIG_ANY, CONFIG_NOWHERE,
     .help = "legacy: the Python of the original's own script on the nodes; the agent needs none"},
    {"use_custom_docker", CONFIG_BOOL, CLUSTER(use_custom_docker), "true",
     .help = "legacy: docker.image is used as it is in any case, submit says so where this is false"},
    {"source_directory", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"entry_script", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"with_log", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"aks_compute_global_dispatch", CONFIG_BOOL, CLUSTER(aks_compute_global_dispatch), "false",
     .help = "legacy: runs of attached Kubernetes went to whatever cluster was free; not used, submit says so"},
    {"aks_compute_global_dispatch_arg", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"unique_gjd_cluster", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {"inject_collection", CONFIG_ANY, CONFIG_NOWHERE, .help = "legacy"},
    {0},
};

// clang-format on
const char *const config_general_maps[] = {"docker", "environment", "retry", NULL};

// clang-format off
const struct config_key config_account_keys[] = {
    {"account_name", CONFIG_TEXT, ACCOUNT(account_name), .help = "the storage account"},
    {"account_key", CONFIG_TEXT, ACCOUNT(account_key), .secret = true,
     .help = "its key, base64, or keyvault:URL; else $AZURE_STORAGE_KEY"},
    {"sas_token", CONFIG_TEXT, ACCOUNT(sas_token), .secret = true,
     .help = "a shared access signature, with or without '?', or keyvault:URL; else $AZURE_STORAGE_SAS_TOKEN"},
    {"container_name", CONFIG_TEXT, ACCOUNT(container_name), .help = "the container"},
    {"endpoint", CONFIG_TEXT, ACCOUNT(endpoint),
     .help = "the URL of the service, for sovereign clouds, emulators and private links"},
    {"file_endpoint", CONFIG_TEXT, ACCOUNT(file_endpoint),
     .help = "likewise the URL of its Azure Files; by default it follows from 'endpoint'"},
    {"auth", CONFIG_CHOICE, ACCOUNT(auth), .choices = "key|sas|login|anonymous",
     .help = "which of them to use; by default what is there, else a login"},
    {"folder", CONFIG_TEXT, ACCOUNT(folder), .help = "a folder that serves as the store, instead of an account"},
    {0},
};

const struct config_key config_user_keys[] = {
    {"default_cluster", CONFIG_TEXT, USER(default_cluster),
     .help = "the cluster without -c, where the project has none of its own: 'a cluster use' sets it"},
    {"trusted_hosts", CONFIG_TEXTS, USER(trusted_hosts),
     .help = "hosts besides Azure's that logins, and the keys of the environment, may go to"},
    {0},
};
// clang-format on

const struct config_key *config_key_find(const struct config_key *keys, const char *map, const char *key)
{
    for (; keys->path; keys++) {
        const char *member = config_key_member(keys, map);
        if (member && strcmp(member, key) == 0)
            return keys;
    }
    return NULL;
}

const char *config_key_member(const struct config_key *key, const char *map)
{
    size_t n = strlen(map);

    if (strncmp(key->path, map, n) != 0 || (n > 0 && key->path[n] != '.'))
        return NULL;
    const char *name = key->path + n + (n > 0);
    return strchr(name, '.') ? NULL : name;
}

void config_each_key(enum config_file file, void (*each)(void *arg, const struct config_key_text *key), void *arg)
{
    const struct config_key *const files[] = {[CONFIG_OWN_FILE] = config_cluster_keys,
                                              [CONFIG_CLUSTER_FILE] = config_cluster_keys,
                                              [CONFIG_ACCOUNT_FILE] = config_account_keys,
                                              [CONFIG_USER_FILE] = config_user_keys};
    static const char *const kinds[] = {[CONFIG_TEXTS] = "[TEXT, ...]",
                                        [CONFIG_INTS] = "[NUMBER, ...]",
                                        [CONFIG_ENV] = "{NAME: VALUE, ...}",
                                        [CONFIG_OBJECT] = "{...}",
                                        [CONFIG_OBJECTS] = "[{...}, ...]",
                                        [CONFIG_MAP] = "{...}",
                                        [CONFIG_MAP_FILE] = "FILE|{...}",
                                        [CONFIG_BOOL] = "true|false",
                                        [CONFIG_INT] = "NUMBER",
                                        [CONFIG_TEXT] = "TEXT",
                                        [CONFIG_ANY] = "TEXT"};

    for (const struct config_key *key = files[file]; key->path; key++) {
        struct config_key_text text = {.path = key->path,
                                       .values = key->choices ? key->choices : kinds[key->type],
                                       .fallback = key->fallback,
                                       .help = key->help};
        if (!act_starts_with(key->help, "legacy") && (file != CONFIG_OWN_FILE || key->in_project))
            each(arg, &text);
    }
}

/* ---- keys by their names */

/* Returns the row of "docker.image"; a star of the table stands for any name, and what is in a map of any form has its
 * row. */
static const struct config_key *config_schema_row_of(const struct config_key *keys, const char *key)
{
    for (; keys->path; keys++) {
        const char *star = strchr(keys->path, '*');
        size_t n = star ? (size_t)(star - keys->path) : strlen(keys->path);
        bool open = keys->type == CONFIG_ENV || keys->type == CONFIG_OBJECT;
        if (strncmp(keys->path, key, n) != 0)
            continue;
        if (star ? strcmp(key + n + strcspn(key + n, "."), star + 1) == 0 : key[n] == '\0' || (open && key[n] == '.'))
            return keys;
    }
    return NULL;
}

enum config_home config_home_of(const char *key, char **out_near)
{
    ACT_AUTO(act_strv) names = {0};

    if (config_schema_row_of(config_user_keys, key))
        return CONFIG_IN_SETTINGS;
    if (config_schema_row_of(config_cluster_keys, key))
        return CONFIG_IN_CLUSTER;
    for (const struct config_key *k = config_cluster_keys; k->path; k++)
        act_strv_push(&names, k->path);
    if (out_near)
        *out_near = act_strdup(act_nearest(key, (const char *const *)names.v));
    return CONFIG_NO_KEY;
}

bool config_is_text_key(const char *key)
{
    const struct config_key *row = config_schema_row_of(config_user_keys, key);

    row = row ? row : config_schema_row_of(config_cluster_keys, key);
    return row && (row->type == CONFIG_TEXT || row->type == CONFIG_CHOICE ||
                   (row->type == CONFIG_ENV && strcmp(row->path, key) != 0));
}
