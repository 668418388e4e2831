#include "node/env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "node/launcher.h"

static bool get_int(const char *name, int *out)
{
    int64_t value;
    const char *text = getenv(name);

    if (!text || !act_int_from_text(text, &value) || value < 0 || value > 1 << 24)
        return false;
    *out = (int)value;
    return true;
}

/* What a launcher calls the numbers of a rank. Those of srun are right only under srun: mpirun starts its daemons with
 * it, so that its ranks find the daemons' numbers. */
struct names {
    const char *launcher, *rank, *size, *local_rank;
};

static bool get_place(const struct names *names, struct rank_place *out)
{
    return get_int(names->rank, &out->rank) && get_int(names->size, &out->world_size) &&
           get_int(names->local_rank, &out->local_rank);
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
        return act_error_set(err, ACT_FAIL, "the run has %d processes, and %d were started", world,
                             out->world_size);
    out->node_rank = out->rank / per_node;
    return 0;
}

static void set_int(const char *name, int value)
{
    ACT_AUTOFREE char *text = act_sprintf("%d", value);

    setenv(name, text, 1);
}

static void set_path(const struct node *node, const char *name, const char *below)
{
    ACT_AUTOFREE char *path = node_path(node, below);

    setenv(name, path, 1);
}

/* The first word of every line of the hostfile, with commas. New string. */
static char *host_list(const struct node *node)
{
    enum { HOSTFILE_MAX = 16 * 1024 * 1024 };
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_HOSTS);
    ACT_AUTOFREE char *text = NULL;
    struct act_buf list = {0};

    if (act_file_read(path, HOSTFILE_MAX, &text, NULL, NULL) < 0)
        return act_strdup(node->name);
    for (const char *line = text; *line;) {
        size_t word = strcspn(line, " \n");
        if (word > 0) {
            act_buf_adds(&list, list.len ? "," : "");
            act_buf_add(&list, line, word);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return act_buf_steal(&list);
}

void env_set(const struct node *node, const struct rank_place *place)
{
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"RANK", place->rank},
        {"WORLD_SIZE", place->world_size},
        {"LOCAL_RANK", place->local_rank},
        {"LOCAL_WORLD_SIZE", place->local_size},
        {"NODE_RANK", place->node_rank},
        {"AZ_BATCHAI_NUM_GPUS", node->spec.gpus_per_node},
    };
    const char *master = getenv("MASTER_ADDR");
    ACT_AUTOFREE char *hosts = host_list(node);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        set_int(numbers[i].name, numbers[i].value);
    setenv("ACT_RUN_ID", node->spec.id, 1);
    setenv("AZ_BATCH_HOST_LIST", hosts, 1);
    setenv("AZ_BATCHAI_JOB_MASTER_NODE_IP", master ? master : "127.0.0.1", 1);
    set_path(node, "AZ_BATCHAI_MPI_HOST_FILE", RUN_FILE_HOSTS);
    set_path(node, "AZ_BATCHAI_JOB_TEMP", RUN_DIR_TEMP);
    set_path(node, "AZ_BATCHAI_STDOUTERR_DIR", RUN_DIR_USER);
    unsetenv(
        "OMPI_MCA_odls_base_sigkill_timeout"); /* they were for our mpirun, see launcher.h; not for the command's own */
    unsetenv("PRTE_MCA_odls_base_sigkill_timeout");
    for (size_t i = 0; i < node->spec.n_env; i++)
        if (node->spec.env[i].value)
            setenv(node->spec.env[i].name, node->spec.env[i].value, 1);
}

void env_scrub(void)
{
    static const char *const prefixes[] = {
        "OMPI_COMM_WORLD_", "PMIX_",         "OMPI_UNIVERSE_",   "PRTE_LAUNCHED",   "OMPI_MCA_orte_",
        "OMPI_MCA_ess",     "OMPI_APP_CTX_", "OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX"};

    unsetenv("ACT_RUN_ID"); /* of the run that has submitted this one */
    if (!getenv("OMPI_COMM_WORLD_RANK") &&
        !getenv("PMIX_RANK")) /* what is there was set by the site or the user */
        return;
    for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++)
        for (size_t i = 0; environ[i];) {
            if (!act_starts_with(environ[i], prefixes[p])) {
                i++;
                continue;
            }
            ACT_AUTOFREE char *name = act_strndup(environ[i], strcspn(environ[i], "="));
            unsetenv(name); /* the next one moves here */
        }
}
