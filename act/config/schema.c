/* schema.c - every key there is. See config/cluster.schema.json and config/account.schema.json, which a test
 * keeps equal to these tables. */
#include <string.h>

#include "config/config_internal.h"

#define CLUSTER(member) offsetof(struct config, member)
#define FOLDER(member)  offsetof(struct config_folder, member)
#define ACCOUNT(member) offsetof(struct config_account, member)
#define USER(member)    offsetof(struct config_user, member)
#define PLATFORMS       "aml|itp|singularity|slurm|k8s|local"

// clang-format off
const struct config_key config_cluster_keys[] = {
    {"platform", CONFIG_CHOICE, CLUSTER(platform), "aml", .choices = PLATFORMS,
     .help = "the kind of place where runs execute"},
    {"aks_compute", CONFIG_BOOL, CONFIG_NOWHERE, .instead = "platform: itp",
     .help = "legacy: true means 'platform: itp'"},
    {"aml_config", CONFIG_MAP_FILE, CONFIG_NOWHERE,
     .help = "the Azure Machine Learning workspace: a JSON file, or the members; those of -p come before the file"},
    {"aml_config.subscription_id", CONFIG_TEXT, CLUSTER(workspace.subscription_id),
     .help = "the Azure subscription of the workspace"},
    {"aml_config.resource_group", CONFIG_TEXT, CLUSTER(workspace.resource_group),
     .help = "the resource group of the workspace"},
    {"aml_config.workspace_name", CONFIG_TEXT, CLUSTER(workspace.workspace_name),
     .help = "the name of the workspace"},
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
    {"slurm", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Slurm"},
    {"slurm.login", CONFIG_TEXT, CLUSTER(slurm.login),
     .help = "user@host of a login node, reached with ssh; by default this machine is one"},
    {"slurm.root", CONFIG_TEXT, CLUSTER(slurm.root),
     .help = "a folder on the shared file system for the runs; by default ~/.act on the cluster"},
    {"slurm.partition", CONFIG_TEXT, CLUSTER(slurm.partition),
     .help = "the partition; by default compute_target, else the cluster's own default"},
    {"slurm.account", CONFIG_TEXT, CLUSTER(slurm.account), .help = "the account that is charged"},
    {"slurm.qos", CONFIG_TEXT, CLUSTER(slurm.qos), .help = "the quality of service"},
    {"slurm.time", CONFIG_TEXT, CLUSTER(slurm.time),
     .help = "the time limit, as sbatch takes it: 90 (minutes), 12:00:00, 3-00:00:00"},
    {"slurm.constraint", CONFIG_TEXT, CLUSTER(slurm.constraint), .help = "features the nodes must have"},
    {"slurm.gres", CONFIG_TEXT, CLUSTER(slurm.gres),
     .help = "how GPUs are asked for: gpu or gpu:TYPE for --gres, none for nodes without; by default "
             "--gpus-per-node"},
    {"slurm.reservation", CONFIG_TEXT, CLUSTER(slurm.reservation), .help = "the reservation"},
    {"slurm.exclude", CONFIG_TEXT, CLUSTER(slurm.exclude), .help = "nodes not to use: n1,n[5-8]"},
    {"slurm.nodelist", CONFIG_TEXT, CLUSTER(slurm.nodelist), .help = "nodes to use: n1,n[5-8]"},
    {"slurm.sbatch_options", CONFIG_TEXTS, CLUSTER(slurm.sbatch_options),
     .help = "further options of sbatch, passed as they are"},
    {"slurm.launcher", CONFIG_CHOICE, CLUSTER(slurm.launcher), "mpirun", .choices = "mpirun|srun",
     .help = "what starts the processes on the nodes"},
    {"slurm.mpi", CONFIG_CHOICE, CLUSTER(slurm.mpi), .choices = "pmix|pmi2|none",
     .help = "with launcher srun: its --mpi; by default as the cluster has it"},
    {"slurm.container", CONFIG_CHOICE, CLUSTER(slurm.container), .choices = "apptainer|pyxis|none",
     .help = "what runs docker.image; none: the image is not used"},
    {"slurm.scratch", CONFIG_TEXT, CLUSTER(slurm.scratch),
     .help = "a folder on each node's own disk, where the code is unpacked; by default it is in the run's folder"},
    {"slurm.warn_seconds", CONFIG_INT, CLUSTER(slurm.warn_seconds), "120", .min = 0,
     .help = "how long before the time limit processes that catch SIGUSR1 get it; 0: never"},
    {"azureml", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Azure Machine Learning"},
    {"azureml.endpoint", CONFIG_TEXT, CLUSTER(azureml.endpoint),
     .help = "the URL of Azure Resource Manager; by default that of the cloud"},
    {"azureml.history_endpoint", CONFIG_TEXT, CLUSTER(azureml.history_endpoint),
     .help = "the URL of the run history; by default what the workspace says"},
    {"azureml.api_version", CONFIG_TEXT, CLUSTER(azureml.api_version),
     .help = "the api-version of all requests; by default one that has what is asked for"},
    {"azureml.shm_size", CONFIG_TEXT, CLUSTER(azureml.shm_size), "1024g",
     .help = "the shared memory of the container: a number and b, k, m or g"},
    {"azureml.timeout", CONFIG_TEXT, CLUSTER(azureml.timeout),
     .help = "when a run is ended: 90m, 24h, 7d; by default never"},
    {"azureml.docker_args", CONFIG_TEXT, CLUSTER(azureml.docker_args),
     .help = "further arguments of docker run, on managed clusters"},
    {"azureml.instance_type", CONFIG_TEXT, CLUSTER(azureml.instance_type),
     .help = "the instance type of an attached Kubernetes cluster, or the VM size without compute_target"},
    {"azureml.identity", CONFIG_TEXT, CLUSTER(azureml.identity),
     .help = "who the run is to Azure: managed, the client id of a managed identity, or user"},
    {"azureml.priority", CONFIG_INT, CLUSTER(azureml.priority), .min = 0,
     .help = "the priority of the run: 100 to 200 on itp, 1 to 3 on singularity; by default the highest"},
    {"azureml.scale_interval", CONFIG_INT, CLUSTER(azureml.scale_interval), "480", .min = 1,
     .help = "minutes between changes of the size of an elastic run (elastic_num_gpu) on itp"},
    {"azureml.ssh", CONFIG_BOOL, CLUSTER(azureml.ssh), "false",
     .help = "the nodes of a run take ssh with the user's public key, on aml and itp"},
    {"azureml.settle_seconds", CONFIG_INT, CLUSTER(azureml.settle_seconds), "300", .min = 0,
     .help = "how long after its end, and the last change of a log, the logs of a run are taken for complete"},
    {"k8s", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Kubernetes"},
    {"k8s.kubeconfig", CONFIG_TEXT, CLUSTER(k8s.kubeconfig),
     .help = "the file that says where clusters are and how to log in; by default as kubectl finds it"},
    {"k8s.context", CONFIG_TEXT, CLUSTER(k8s.context), .help = "the context of that file; by default its current one"},
    {"k8s.namespace", CONFIG_TEXT, CLUSTER(k8s.namespace_),
     .help = "the namespace; by default that of the context, else default"},
    {"k8s.image", CONFIG_TEXT, CLUSTER(k8s.image), .help = "the image that runs execute in; by default docker.image"},
    {"k8s.queue", CONFIG_TEXT, CLUSTER(k8s.queue), .help = "the local queue of Kueue that runs wait in"},
    {"k8s.node_selector", CONFIG_OBJECT, CLUSTER(k8s.node_selector), .help = "labels that the nodes must have"},
    {"k8s.tolerations", CONFIG_OBJECTS, CLUSTER(k8s.tolerations), .help = "taints of nodes that runs put up with"},
    {"k8s.priority_class", CONFIG_TEXT, CLUSTER(k8s.priority_class), .help = "the priority class of the pods"},
    {"k8s.service_account", CONFIG_TEXT, CLUSTER(k8s.service_account),
     .help = "the service account of the pods"},
    {"k8s.gpu_resource", CONFIG_TEXT, CLUSTER(k8s.gpu_resource), "nvidia.com/gpu",
     .help = "what the cluster calls its GPUs; none: its nodes have none, and gpu_per_node is the processes on each"},
    {"k8s.cpu", CONFIG_TEXT, CLUSTER(k8s.cpu), .help = "the processors of a pod: 16, 500m; by default any number"},
    {"k8s.memory", CONFIG_TEXT, CLUSTER(k8s.memory), .help = "the memory of a pod: 200Gi; by default any amount"},
    {"k8s.shm_size", CONFIG_TEXT, CLUSTER(k8s.shm_size),
     .help = "the size of /dev/shm: 16Gi; by default that of the cluster's container runtime, often 64 MiB"},
    {"k8s.time", CONFIG_TEXT, CLUSTER(k8s.time),
     .help = "for how long a run may run, after which it is ended: 90m, 24h, 7d; by default for ever"},
    {"k8s.warn_seconds", CONFIG_INT, CLUSTER(k8s.warn_seconds), "120", .min = 0,
     .help = "how long before the time limit processes that catch SIGUSR1 get it; 0: never"},
    {"k8s.gang_wait", CONFIG_TEXT, CLUSTER(k8s.gang_wait), "1h",
     .help = "for how long a run of several nodes holds those that it got while others are missing, after which it "
             "gives them back and fails; 0s: for ever"},
    {"k8s.launcher", CONFIG_CHOICE, CLUSTER(k8s.launcher), "mpirun", .choices = "mpirun|direct",
     .help = "what starts the processes: Open MPI's mpirun of the image, or the agent itself"},
    {"k8s.volumes", CONFIG_OBJECTS, CLUSTER(k8s.volumes),
     .help = "volumes as a pod names them, each with its mount_path and, if need be, sub_path and read_only"},
    {"k8s.pod", CONFIG_OBJECT, CLUSTER(k8s.pod),
     .help = "what has no key here: it is merged into the template of the pods as 'kubectl patch --type merge' would"},
    {"aks", CONFIG_MAP, CONFIG_NOWHERE,
     .help = "where the nodes of the cluster come from, for 'a cluster': a cluster of Azure Kubernetes Service"},
    {"aks.subscription", CONFIG_TEXT, CLUSTER(aks.subscription), .help = "the Azure subscription of the cluster"},
    {"aks.resource_group", CONFIG_TEXT, CLUSTER(aks.resource_group), .help = "the resource group of the cluster"},
    {"aks.cluster", CONFIG_TEXT, CLUSTER(aks.cluster), .help = "the name of the cluster"},
    {"aks.pool", CONFIG_TEXT, CLUSTER(aks.pool), .help = "the node pool that 'a cluster' means when none is named"},
    {"aks.vm_size", CONFIG_TEXT, CLUSTER(aks.vm_size),
     .help = "the size of the nodes of a new pool: Standard_ND96asr_v4"},
    {"aks.min", CONFIG_INT, CLUSTER(aks.min), "0", .min = 0, .help = "a new pool has at least so many nodes"},
    {"aks.max", CONFIG_INT, CLUSTER(aks.max), .min = 1, .help = "and at most so many"},
    {"aks.node_taints", CONFIG_TEXTS, CLUSTER(aks.node_taints),
     .help = "what keeps other pods off the nodes of a new pool: sku=gpu:NoSchedule; runs need it in k8s.tolerations"},
    {"aks.node_labels", CONFIG_OBJECT, CLUSTER(aks.node_labels), .help = "labels of the nodes of a new pool"},
    {"aks.location", CONFIG_TEXT, CLUSTER(aks.location),
     .help = "the region of a new cluster; by default that of the resource group"},
    {"aks.system_vm_size", CONFIG_TEXT, CLUSTER(aks.system_vm_size), "Standard_D2s_v5",
     .help = "the size of the node that a new cluster has for itself"},
    {"aks.endpoint", CONFIG_TEXT, CLUSTER(aks.endpoint),
     .help = "the URL of Azure Resource Manager; by default that of the cloud"},
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
    {"sleep_if_fail", CONFIG_BOOL, CLUSTER(sleep_if_fail), "false",
     .help = "keep the node for a look when the run fails"},
    {"sleep_if_succeed", CONFIG_BOOL, CLUSTER(sleep_if_succeed), "false",
     .help = "keep the node for a look when the run succeeds"},
    {"hang", CONFIG_TEXT, CLUSTER(hang),
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

const struct config_key *config_key_find(const struct config_key *keys, const char *prefix, const char *key)
{
    for (; keys->path; keys++) {
        const char *member = config_key_member(keys, prefix);
        if (member && strcmp(member, key) == 0)
            return keys;
    }
    return NULL;
}

const char *config_key_member(const struct config_key *key, const char *prefix)
{
    size_t n = strlen(prefix);

    if (strncmp(key->path, prefix, n) != 0 || strchr(key->path + n, '.'))
        return NULL;
    return key->path + n;
}

void config_each_key(enum config_file file, void (*each)(void *arg, const struct config_key_text *key), void *arg)
{
    static const struct config_key *const files[] = {[CONFIG_CLUSTER_FILE] = config_cluster_keys,
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
        if (!act_starts_with(key->help, "legacy"))
            each(arg, &text);
    }
}

/* ---- keys by their names */

/* The row of "docker.image"; a star of the table stands for any name, and what is in a map of any form has its row. */
static const struct config_key *row_of(const struct config_key *keys, const char *key)
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

    if (row_of(config_user_keys, key))
        return CONFIG_IN_SETTINGS;
    if (row_of(config_cluster_keys, key))
        return CONFIG_IN_CLUSTER;
    for (const struct config_key *k = config_cluster_keys; k->path; k++)
        act_strv_push(&names, k->path);
    if (out_near)
        *out_near = act_strdup(act_nearest(key, (const char *const *)names.v));
    return CONFIG_NO_KEY;
}

bool config_is_text_key(const char *key)
{
    const struct config_key *row = row_of(config_user_keys, key);

    row = row ? row : row_of(config_cluster_keys, key);
    return row && (row->type == CONFIG_TEXT || row->type == CONFIG_CHOICE ||
                   (row->type == CONFIG_ENV && strcmp(row->path, key) != 0));
}
