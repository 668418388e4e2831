/* keys.c - the keys of the parts 'aml_config' and 'azureml'. */
#include "platform/azureml/keys.h"
#include "config/config.h"

#include "platform/azureml/azureml_internal.h"

#define AT(member) offsetof(struct aml_config_keys, member)
// clang-format off
static const struct config_key keys_of_workspace[] = {
    {"aml_config", CONFIG_MAP_FILE, CONFIG_NOWHERE,
     .help = "the Azure Machine Learning workspace: a JSON file, or the members; those of -p come before the file"},
    {"aml_config.subscription_id", CONFIG_TEXT, AT(subscription_id),
     .help = "the Azure subscription of the workspace"},
    {"aml_config.resource_group", CONFIG_TEXT, AT(resource_group),
     .help = "the resource group of the workspace"},
    {"aml_config.workspace_name", CONFIG_TEXT, AT(workspace_name),
     .help = "the name of the workspace"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct azureml_keys, member)
static const struct config_key keys[] = {
    {"azureml", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Azure Machine Learning"},
    {"azureml.endpoint", CONFIG_TEXT, AT(endpoint),
     .help = "the URL of Azure Resource Manager; by default that of the cloud"},
    {"azureml.history_endpoint", CONFIG_TEXT, AT(history_endpoint),
     .help = "the URL of the run history; by default what the workspace says"},
    {"azureml.api_version", CONFIG_TEXT, AT(api_version),
     .help = "the api-version of all requests; by default one that has what is asked for"},
    {"azureml.shm_size", CONFIG_TEXT, AT(shm_size), "1024g",
     .help = "the shared memory of the container: a number and b, k, m or g"},
    {"azureml.timeout", CONFIG_TEXT, AT(timeout),
     .help = "when a run is ended: 90m, 24h, 7d; by default never"},
    {"azureml.docker_args", CONFIG_TEXT, AT(docker_args),
     .help = "further arguments of docker run, on managed clusters"},
    {"azureml.instance_type", CONFIG_TEXT, AT(instance_type),
     .help = "the instance type of an attached Kubernetes cluster, or the VM size without compute_target"},
    {"azureml.identity", CONFIG_TEXT, AT(identity),
     .help = "who the run is to Azure: managed, the client id of a managed identity, or user"},
    {"azureml.priority", CONFIG_INT, AT(priority), .min = 0,
     .help = "the priority of the run: 100 to 200 on itp, 1 to 3 on singularity; by default the highest"},
    {"azureml.scale_interval", CONFIG_INT, AT(scale_interval), "480", .min = 1,
     .help = "minutes between changes of the size of an elastic run (elastic_num_gpu) on itp"},
    {"azureml.ssh", CONFIG_BOOL, AT(ssh), "false",
     .help = "the nodes of a run take ssh with the user's public key, on aml and itp"},
    {"azureml.settle_seconds", CONFIG_INT, AT(settle_seconds), "300", .min = 0,
     .help = "how long after its end, and the last change of a log, the logs of a run are taken for complete"},
    {0},
};
// clang-format on

const struct config_part aml_config_keys_part = {"aml_config", keys_of_workspace, sizeof(struct aml_config_keys), NULL};
const struct config_part azureml_keys_part = {"azureml", keys, sizeof(struct azureml_keys), NULL};

static void aml_keys_check_workspace(const struct config *config, struct config_findings *f)
{
    const struct aml_config_keys *w = aml_config_keys(config);

    config_need(config, "aml_config.subscription_id", w->subscription_id, f);
    config_need(config, "aml_config.resource_group", w->resource_group, f);
    config_need(config, "aml_config.workspace_name", w->workspace_name, f);
}

static void aml_keys_check(const struct config *config, struct config_findings *f)
{
    aml_keys_check_workspace(config, f);
    config_need(config, "compute_target", config->compute_target, f);
    config_need(config, "docker.image", config->docker.image, f);
}

/* Checks a cluster file of managed computes. A run with an instance type and without a compute target is serverless. */
static void check_managed(const struct config *config, struct config_findings *f)
{
    aml_keys_check_workspace(config, f);
    if (!azureml_keys(config)->instance_type)
        config_need(config, "compute_target", config->compute_target, f);
    config_need(config, "docker.image", config->docker.image, f);
}

static const struct config_part *const parts[] = {&aml_config_keys_part, &azureml_keys_part, NULL};

const struct config_kind azureml_kinds[] = {
    [AZUREML_MANAGED] =
        {.name = "aml", .parts = parts, .is_default = true, .has_account = true, .check = check_managed},
    [AZUREML_ITP] =
        {.name = "itp", .parts = parts, .legacy_flag = "aks_compute", .has_account = true, .check = aml_keys_check},
    [AZUREML_SINGULARITY] = {.name = "singularity", .parts = parts, .has_account = true, .check = aml_keys_check},
};
