#include "node/env.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "gpus/gpus.h"
#include "node/launcher.h"
#include "proc/environment.h"

static bool env_get_int(const char *name, int *out)
{
    int64_t value;
    const char *text = getenv(name);

    if (!text || !act_int_from_text(text, &value) || value < 0 || value > 1 << 24)
        return false;
    *out = (int)value;
    return true;
}

/* The variables in which launchers pass a rank's numbers. Those of srun are right only under srun: mpirun starts its
 * daemons with srun, so its ranks see the daemons' numbers. */
struct names {
    const char *launcher, *rank, *size, *local_rank;
};

static bool get_place(const struct names *names, struct rank_place *out)
{
    return env_get_int(names->rank, &out->rank) && env_get_int(names->size, &out->world_size) &&
           env_get_int(names->local_rank, &out->local_rank);
}

/* A launcher that places ranks round-robin gives other local ranks than one that fills node by node; then the service's
 * node number counts. So does one above 0: the first node's may reach all ranks with its environment. */
static int node_rank_of(const struct node *node, const struct rank_place *place)
{
    int per_node = node->spec.procs_per_node, n;
    bool by_node = place->rank % per_node != place->local_rank;

    if (env_get_int("AZUREML_CR_NODE_RANK", &n) && n < node->spec.nodes && (n > 0 || by_node))
        return n;
    return place->rank / per_node;
}

int env_find_place(const struct node *node, struct rank_place *out, struct act_error *err)
{
    static const struct names srun = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
                              mpirun = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK"};
    bool by_srun = strcmp(launcher_name(node), "srun") == 0;
    const struct names *names = by_srun ? &srun : &mpirun;
    int world = node_world_size(node), per_node = node->spec.procs_per_node;

    *out = (struct rank_place){.world_size = 1, .local_size = per_node};
    if (getenv(names->rank) && !get_place(names, out))
        return act_error_set(err, ACT_FAIL, "%s does not say which rank this is", names->launcher);
    if (out->world_size != world || out->rank >= world)
        return act_error_set(err, ACT_FAIL, "the run has %d processes, and %d were started", world, out->world_size);
    out->node_rank = node_rank_of(node, out);
    return 0;
}

void env_set_int(const char *name, int value)
{
    ACT_AUTOFREE char *text = act_sprintf("%d", value);

    setenv(name, text, 1);
}

static void set_missing(const char *name, const char *value)
{
    if (!act_env(name))
        setenv(name, value, 1);
}

static void set_path(const struct node *node, const char *name, const char *below)
{
    ACT_AUTOFREE char *path = node_path(node, below);

    setenv(name, path, 1);
}

/* Returns the hosts of the run, separated by commas. New string. */
static char *host_list(const struct node *node)
{
    ACT_AUTO(act_strv) hosts = {0};

    launcher_read_hosts(node, &hosts);
    return hosts.n ? node_list_text(&hosts, ",") : act_strdup(node->name);
}

/* Lets programs that know only Open MPI find their place, however they were started. */
static void set_rank(const struct rank_place *place)
{
    const struct {
        const char *name, *of_open_mpi;
        int value;
    } numbers[] = {
        {"RANK", "OMPI_COMM_WORLD_RANK", place->rank},
        {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", place->world_size},
        {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", place->local_rank},
        {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", place->local_size},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        env_set_int(numbers[i].name, numbers[i].value);
        env_set_int(numbers[i].of_open_mpi, numbers[i].value);
    }
}

void env_forget_rank(void)
{
    static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

    environment_reduce(OF_STARTER, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

/* Other runs of the same job have the rest of its GPUs. And a process sees one instance of MIG, however many its list
 * has. */
static void set_gpus(const struct node *node, const struct rank_place *place)
{
    const char *name = gpus_mask_name(MASK_CUDA), *ours = getenv(NODE_ENV_GPUS);

    if (ours)
        gpus_narrow(ours);
    unsetenv(NODE_ENV_GPUS);
    ACT_AUTOFREE char *own = node->spec.started_per_node ? NULL : gpus_of_rank(getenv(name), place->local_rank);
    if (own)
        setenv(name, own, 1);
}

static void set_numbers(const struct node *node, const struct rank_place *place)
{
    if (node->spec.started_per_node)
        env_forget_rank();
    else
        set_rank(place);
    env_set_int("NODE_RANK", place->node_rank);
    env_set_int("AZ_BATCHAI_NUM_GPUS", node->spec.gpus_per_node);
    setenv(NODE_ENV_RUN, node->spec.id, 1);
    setenv(RUN_ENV_CODE, node->code, 1);
}

static void set_users(const struct node *node)
{
    for (size_t i = 0; i < node->spec.n_env; i++)
        if (node->spec.env[i].value)
            setenv(node->spec.env[i].name, node->spec.env[i].value, 1);
}

/* Keeps models downloaded by PyTorch after the run: in "output", if the run has that folder. */
static void set_torch_home(const struct node *node)
{
    for (size_t i = 0; i < node->spec.n_folders; i++) {
        const struct run_folder *f = &node->spec.folders[i];
        if (strcmp(f->name, "output") != 0 || (f->mode != RUN_FOLDER_RW_MOUNT && f->mode != RUN_FOLDER_UPLOAD))
            continue;
        ACT_AUTOFREE char *path = act_path_join(node->code, "output/torch_home");
        set_missing("TORCH_HOME", path);
    }
}

/* Sets PYTHONPATH: the first folder is that of the images, and an empty rest is the current folder, so that scripts in
 * any folder of the code can import from its root. */
static void set_python(const struct node *node)
{
    static const char caffe[] = "/app/caffe/python:";
    const char *rest = getenv("PYTHONPATH");
    ACT_AUTOFREE char *all = act_sprintf("%s%s", caffe, rest ? rest : "");

    if (!rest || !act_starts_with(rest, caffe))
        setenv("PYTHONPATH", all, 1);
    set_torch_home(node);
}

/* The variables that log in for the submitter, from whose shell a run on this machine has them. */
static struct act_strv credentials;

static void hide_credentials(const struct node *node)
{
    if (node->spec.is_here)
        environment_reduce(OF_COMMAND, &credentials);
}

char *const *env_credentials(void)
{
    return credentials.v;
}

void env_set(const struct node *node, const struct rank_place *place)
{
    const char *master = getenv("MASTER_ADDR");
    ACT_AUTOFREE char *hosts = host_list(node);

    set_numbers(node, place);
    set_gpus(node, place);
    setenv("AZ_BATCH_HOST_LIST", hosts, 1);
    setenv("AZ_BATCHAI_JOB_MASTER_NODE_IP", master ? master : "127.0.0.1", 1);
    set_path(node, "AZ_BATCHAI_MPI_HOST_FILE", RUN_FILE_HOSTS);
    set_path(node, "AZ_BATCHAI_JOB_TEMP", RUN_DIR_TEMP);
    set_path(node, "AZ_BATCHAI_STDOUTERR_DIR", RUN_DIR_USER);
    launcher_forget_settings(node);
    hide_credentials(node); /* before those that the run itself has */
    set_users(node);
    set_python(node);
}

/* ---- in the job of a service ---- */

/* Returns the colon in "10.0.0.4:6105"; NULL: there is none. */
static const char *colon_of_master(void)
{
    const char *master = getenv("AZ_BATCH_MASTER_NODE");

    return master ? strrchr(master, ':') : NULL;
}

/* Returns the address of the first node, a new string; NULL: it is not known. */
static char *find_master(const struct node *node)
{
    const char *hosts = getenv("AZ_BATCH_HOST_LIST"), *master = getenv("AZ_BATCH_MASTER_NODE");

    if (hosts && strcspn(hosts, ",;"))
        return act_strndup(hosts, strcspn(hosts, ",;"));
    if (act_env("AZ_BATCHAI_JOB_MASTER_NODE_IP"))
        return act_strdup(getenv("AZ_BATCHAI_JOB_MASTER_NODE_IP"));
    if (master && *master)
        return act_strndup(master, colon_of_master() ? (size_t)(colon_of_master() - master) : strlen(master));
    if (act_env("MASTER_ADDR"))
        return act_strdup(getenv("MASTER_ADDR"));
    return node->spec.nodes == 1 ? act_strdup("127.0.0.1") : NULL;
}

static bool env_is_port(const char *text)
{
    int64_t port;

    return text && act_int_from_text(text, &port) && port > 0 && port < 65536;
}

/* Returns the port that all ranks derive without communicating, below the system's ephemeral ports. New string. */
static char *find_port(const struct node *node)
{
    enum { LOW = 20000, HIGH = 32000 };
    const char *colon = colon_of_master();
    struct act_sha256 h;
    uint32_t digest;

    if (colon && env_is_port(colon + 1))
        return act_strdup(colon + 1);
    if (env_is_port(getenv("MASTER_PORT")))
        return act_strdup(getenv("MASTER_PORT"));
    act_sha256_init(&h);
    act_sha256_add(&h, node->spec.id, strlen(node->spec.id));
    act_sha256_bytes(&h, (uint8_t *)&digest, sizeof(digest));
    return act_sprintf("%u", LOW + le32toh(digest) % (HIGH - LOW));
}

/* Returns the hosts, separated by commas, a new string; NULL: they are not known. */
static char *find_hosts(const struct node *node, const char *master)
{
    static const char *const lists[] = {"AZ_BATCH_HOST_LIST", "AZ_BATCH_NODE_LIST"};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (!act_env(lists[i]))
            continue;
        char *list = act_strdup(getenv(lists[i]));
        for (char *at = list; (at = strchr(at, ';'));)
            *at = ',';
        return list;
    }
    return node->spec.nodes == 1 ? act_strdup(master) : NULL;
}

static int set_host_file(const struct node *node, const char *hosts, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_HOSTS);
    ACT_AUTO(act_buf) text = {0};

    if (!hosts || act_env("AZ_BATCHAI_MPI_HOST_FILE"))
        return 0;
    for (const char *at = hosts; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (len)
            act_buf_addf(&text, "%.*s slots=%d\n", (int)len, at, node->spec.procs_per_node);
        at += len;
    }
    int rc = act_file_write(path, text.data ? text.data : "", text.len, 0644, err);
    setenv("AZ_BATCHAI_MPI_HOST_FILE", path, 1);
    return rc;
}

int env_set_of_service(const struct node *node, const struct rank_place *place, struct act_error *err)
{
    ACT_AUTOFREE char *master = find_master(node);
    ACT_AUTOFREE char *port = find_port(node);
    ACT_AUTOFREE char *hosts = find_hosts(node, master);
    ACT_AUTOFREE char *temp = node_path(node, RUN_DIR_TEMP);
    ACT_AUTOFREE char *user = node_path(node, RUN_DIR_USER);

    if (!master)
        return act_error_set(err, ACT_FAIL,
                             "cannot find the address of the first of %d nodes: the service sets none of "
                             "AZ_BATCH_HOST_LIST, AZ_BATCHAI_JOB_MASTER_NODE_IP, AZ_BATCH_MASTER_NODE and "
                             "MASTER_ADDR",
                             node->spec.nodes);
    int rc = set_host_file(node, hosts, err);
    set_numbers(node, place);
    setenv("MASTER_ADDR", master, 1);
    setenv("MASTER_PORT", port, 1);
    if (hosts)
        set_missing("AZ_BATCH_HOST_LIST", hosts);
    set_missing("AZ_BATCHAI_JOB_MASTER_NODE_IP", master);
    set_missing("AZ_BATCHAI_JOB_TEMP", temp);
    set_missing("AZ_BATCHAI_STDOUTERR_DIR", user);
    launcher_forget_settings(node);
    set_users(node);
    set_python(node);
    return rc;
}
