/* keys.c - the keys of the parts 'k8s' and 'aks'. */
#include "platform/kubernetes/keys.h"
#include "config/config.h"

#include "base/units.h"

#define AT(member) offsetof(struct k8s_keys, member)
// clang-format off
static const struct config_key keys[] = {
    {"k8s", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Kubernetes"},
    {"k8s.kubeconfig", CONFIG_TEXT, AT(kubeconfig),
     .help = "the file that says where clusters are and how to log in; by default as kubectl finds it"},
    {"k8s.context", CONFIG_TEXT, AT(context), .help = "the context of that file; by default its current one"},
    {"k8s.namespace", CONFIG_TEXT, AT(namespace_),
     .help = "the namespace; by default that of the context, else default"},
    {"k8s.image", CONFIG_TEXT, AT(image), .help = "the image that runs execute in; by default docker.image"},
    {"k8s.queue", CONFIG_TEXT, AT(queue), .help = "the local queue of Kueue that runs wait in"},
    {"k8s.node_selector", CONFIG_OBJECT, AT(node_selector), .help = "labels that the nodes must have"},
    {"k8s.tolerations", CONFIG_OBJECTS, AT(tolerations), .help = "taints of nodes that runs put up with"},
    {"k8s.priority_class", CONFIG_TEXT, AT(priority_class), .help = "the priority class of the pods"},
    {"k8s.service_account", CONFIG_TEXT, AT(service_account),
     .help = "the service account of the pods"},
    {"k8s.gpu_resource", CONFIG_TEXT, AT(gpu_resource), "nvidia.com/gpu",
     .help = "what the cluster calls its GPUs; none: its nodes have none, and gpu_per_node is the processes on each"},
    {"k8s.cpu", CONFIG_TEXT, AT(cpu), .form = &config_quantity,
     .help = "the processors of a pod: 16, 500m; by default any number"},
    {"k8s.memory", CONFIG_TEXT, AT(memory), .form = &config_quantity,
     .help = "the memory of a pod: 200Gi; by default any amount"},
    {"k8s.shm_size", CONFIG_TEXT, AT(shm_size), .form = &config_quantity,
    
     .help = "the size of /dev/shm: 16Gi; by default that of the cluster's container runtime, often 64 MiB"},
    {"k8s.time", CONFIG_TEXT, AT(time), .form = &config_duration,
     .help = "for how long a run may run, after which it is ended: 90m, 24h, 7d; by default for ever"},
    {"k8s.warn_seconds", CONFIG_INT, AT(warn_seconds), "120", .min = 0,
     .help = "how long before the time limit processes that catch SIGUSR1 get it; 0: never"},
    {"k8s.gang_wait", CONFIG_TEXT, AT(gang_wait), "1h", .form = &config_duration_or_zero,
     .help = "for how long a run of several nodes holds those that it got while others are missing, after which it "
             "gives them back and fails; 0s: for ever"},
    {"k8s.larger_nodes", CONFIG_BOOL, AT(larger_nodes), "false",
     .help = "whether the cluster may bring larger nodes than it has now, so that a pod that fits none of these waits "
             "instead of being refused"},
    {"k8s.launcher", CONFIG_CHOICE, AT(launcher), "mpirun", .choices = "mpirun|direct",
     .help = "what starts the processes: Open MPI's mpirun of the image, or the agent itself"},
    {"k8s.volumes", CONFIG_OBJECTS, AT(volumes),
     .help = "volumes as a pod names them, each with its mount_path and, if need be, sub_path and read_only"},
    {"k8s.pod", CONFIG_OBJECT, AT(pod),
     .help = "what has no key here: it is merged into the template of the pods as 'kubectl patch --type merge' would"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct aks_keys, member)
static const struct config_key keys_of_aks[] = {
    {"aks", CONFIG_MAP, CONFIG_NOWHERE,
     .help = "where the nodes of the cluster come from, for 'a cluster': a cluster of Azure Kubernetes Service"},
    {"aks.subscription", CONFIG_TEXT, AT(subscription), .help = "the Azure subscription of the cluster"},
    {"aks.resource_group", CONFIG_TEXT, AT(resource_group), .help = "the resource group of the cluster"},
    {"aks.cluster", CONFIG_TEXT, AT(cluster), .help = "the name of the cluster"},
    {"aks.pool", CONFIG_TEXT, AT(pool), .help = "the node pool that 'a cluster' means when none is named"},
    {"aks.vm_size", CONFIG_TEXT, AT(vm_size),
     .help = "the size of the nodes of a new pool: Standard_ND96asr_v4"},
    {"aks.min", CONFIG_INT, AT(min), "0", .min = 0, .help = "a new pool has at least so many nodes"},
    {"aks.max", CONFIG_INT, AT(max), .min = 1, .help = "and at most so many"},
    {"aks.node_taints", CONFIG_TEXTS, AT(node_taints),
     .help = "what keeps other pods off the nodes of a new pool: sku=gpu:NoSchedule; runs need it in k8s.tolerations"},
    {"aks.node_labels", CONFIG_OBJECT, AT(node_labels), .help = "labels of the nodes of a new pool"},
    {"aks.location", CONFIG_TEXT, AT(location),
     .help = "the region of a new cluster; by default that of the resource group"},
    {"aks.system_vm_size", CONFIG_TEXT, AT(system_vm_size), "Standard_D2s_v5",
     .help = "the size of the node that a new cluster has for itself"},
    {"aks.endpoint", CONFIG_TEXT, AT(endpoint),
     .help = "the URL of Azure Resource Manager; by default that of the cloud"},
    {0},
};
// clang-format on

/* The number of GPUs of an elastic run is a range here. */
static void check_range(const struct config *config, struct config_findings *f)
{
    const struct act_strv *range = &config->elastic_num_gpu;
    int64_t least, most;

    if (!act_streq(config->platform, kubernetes_kind.name) || range->n < 2)
        return;
    bool is_read = act_int_from_text(range->v[0], &least) && act_int_from_text(range->v[1], &most);
    if (range->n > 2 || (is_read && least > most))
        config_problem(f, config_value(config, "elastic_num_gpu"),
                       "'elastic_num_gpu' must be the smallest and the largest number on the platform '%s', as [8, 16]",
                       config->platform);
}

static void k8s_check(struct config *config, struct config_findings *f)
{
    config_make_absolute(config, &k8s_keys(config)->kubeconfig);
    check_range(config, f);
}

const struct config_part k8s_keys_part = {"k8s", keys, sizeof(struct k8s_keys), k8s_check};
const struct config_part aks_keys_part = {"aks", keys_of_aks, sizeof(struct aks_keys), NULL};

/* Either of them will do. */
static void k8s_keys_check(const struct config *config, struct config_findings *f)
{
    const char *own = k8s_keys(config)->image, *other = config->docker.image;

    if (!(own && *own) && !(other && *other) && !config_is_faulty(config, "k8s.image", f))
        config_problem(f, config_value(config, own ? "k8s.image" : "platform"),
                       "the platform '%s' needs 'k8s.image' or 'docker.image'", config->platform);
}

const struct config_kind kubernetes_kind = {
    .name = "k8s",
    .parts = (const struct config_part *const[]){&k8s_keys_part, &aks_keys_part, NULL},
    .has_store = true,
    .has_claims = true,
    .login_file_key = "k8s.kubeconfig",
    .check = k8s_keys_check,
};
