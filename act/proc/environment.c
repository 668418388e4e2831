#include "proc/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_JOB       "SLURM_JOB_ID" /* which every job has, and nothing else */
#define BIT(program) (1U << (program))

/* Programs that begin a job or a run, and so decide where it is and how large. */
#define BEGINNERS (BIT(OF_SLURM) | BIT(OF_JOB) | BIT(OF_RUN))
/* Programs that find out by variables that they are one of many processes. */
#define RANKS (BEGINNERS | BIT(OF_STARTER))
/* Programs that do not speak to Azure for the user, or have their own way to log in. */
#define STRANGERS (BIT(OF_SLURM) | BIT(OF_JOB) | BIT(OF_COMMAND) | BIT(OF_SSH) | BIT(OF_AZ) | BIT(OF_MOUNT))

/* The first row that has a name counts. What is in no row is seen by all. */
static const struct environment_row rows[] = {
    {"SLURM_CONF SLURM_CONF_SERVER SLURM_CLUSTERS SLURM_JWT SLURM_SACK_*", 0,
     "say which Slurm it is, and who you are to it"},
    {"SBATCH_ACCOUNT SBATCH_PARTITION SBATCH_QOS SBATCH_RESERVATION SBATCH_CONSTRAINT SBATCH_CLUSTER_CONSTRAINT "
     "SBATCH_WCKEY",
     0, "say for whom a job counts and where it may run; keys of the cluster file come before them"},
    {"SBATCH_TIMELIMIT SBATCH_EXCLUSIVE SBATCH_MEM_PER_NODE SBATCH_MEM_PER_CPU SBATCH_NETWORK SBATCH_REQ_SWITCH "
     "SBATCH_WAIT4SWITCH SBATCH_BURST_BUFFER SBATCH_ACCTG_FREQ SBATCH_PROFILE",
     0, "say what else a job needs; `sbatch_options` come before them"},
    {"SBATCH_EXPORT SBATCH_GET_USER_ENV", 0, "say what of your environment a job gets, which a site may want"},
    {"SBATCH_*", BEGINNERS,
     "would change the number of jobs, their GPUs, names, files or signals, which ACT itself says; `sbatch_options` "
     "of the cluster file can say the others"},
    {"SLURM_MPI_TYPE SLURM_PMIX_* SLURM_CPU_BIND SLURM_MEM_BIND SLURM_GPU_BIND SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE "
     "SLURM_CPU_FREQ_REQ SLURM_GPU_FREQ SLURM_NETWORK SLURM_TASK_PROLOG SLURM_TASK_EPILOG SLURM_TMPDIR",
     BEGINNERS | ENVIRONMENT_IN_JOB,
     "may belong to that job; elsewhere a site or you have set them, to say how `srun` starts processes and where "
     "their files go"},
    {"SLURM_* SLURMD_* SRUN_* SALLOC_*", BEGINNERS,
     "belong to the job in which you type the command; the new job gets its own from Slurm, and a run on this machine "
     "is in none"},
    {"SQUEUE_* SACCT_* SINFO_* SCONTROL_* SCANCEL_*", BIT(OF_SLURM) | BIT(OF_JOB),
     "would change what these tools print, or leave out jobs that ACT asks for"},
    {"PBS_DEFAULT PBS_SERVER PBS_CONF_FILE PBS_EXEC PBS_HOME", 0, "say which PBS it is"},
    {"PBS_* LSB_* PE_HOSTFILE SGE_TASK_* FLUX_URI FLUX_JOB_* FLUX_ENCLOSING_ID FLUX_TASK_* FLUX_KVS_NAMESPACE "
     "FLUX_PMI_* LOADL_STEP_ID COBALT_JOBID COBALT_NODEFILE CSM_ALLOCATION_ID",
     BEGINNERS, "belong to a job of another batch system, whose nodes Open MPI would take for the run's"},
    {"PMIX_MCA_* PMIX_PREFIX PMIX_INSTALL_PREFIX", 0, "are settings of PMIx"},
    {"OMPI_COMM_WORLD_* OMPI_UNIVERSE_SIZE OMPI_APP_CTX_* OMPI_FIRST_RANKS OMPI_NUM_APP_CTX OMPI_COMMAND OMPI_ARGV "
     "OMPI_FILE_LOCATION OMPI_MCA_ess OMPI_MCA_ess_* OMPI_MCA_orte_ess_* OMPI_MCA_orte_hnp_uri "
     "OMPI_MCA_orte_local_daemon_uri OMPI_MCA_orte_jobfam_session_dir OMPI_MCA_orte_top_session_dir "
     "OMPI_MCA_orte_app_num OMPI_MCA_orte_num_nodes OMPI_MCA_orte_launch OMPI_MCA_orte_bound_at_launch "
     "OMPI_MCA_orte_precondition_transports OMPI_MCA_initial_wdir PRTE_LAUNCHED PMIX_*",
     RANKS, "make a program one of the processes of the mpirun that has started it; other settings of Open MPI stay"},
    {"PMI_RANK PMI_SIZE PMI_ID PMI_FD PMI_PORT PMI_SPAWNED PMI_APPNUM PMI_JOBID PMI_UNIVERSE_SIZE PMI_LOCAL_* "
     "PMI_CONTROL_* PMI2_* PALS_APID PALS_RANKID PALS_NODEID PALS_LOCAL_* PALS_SPOOL_DIR ALPS_APP_* JSM_NAMESPACE_* "
     "MV2_COMM_WORLD_* MPI_LOCALRANKID MPI_LOCALNRANKS",
     RANKS, "do the same for other starters of processes"},
    {"TORCHELASTIC_* GROUP_RANK GROUP_WORLD_SIZE ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE", RANKS,
     "do the same for `torchrun`, so that PyTorch would look for the store of the one around it"},
    {"ACT_RUN_* ACT_ATTEMPT ACT_LINK ACT_SITE_*", BEGINNERS, "belong to the run in which you type the command"},
    {"AZUREML_CR_*", BEGINNERS, "say which node this is of a job of Azure Machine Learning"},
    {"AZURE_STORAGE_KEY AZURE_STORAGE_SAS_TOKEN AZURE_BATCHAI_STORAGE_KEY", STRANGERS | BIT(OF_PLUGIN) | BIT(OF_DOCKER),
     "open an account of yours; nodes get a SAS for a container, and `env` can give a run what its command needs"},
    {"AZURE_CLIENT_SECRET", STRANGERS,
     "logs in as a service principal: those that log in to a cluster or a registry for you may; for a command say it "
     "in `env`"},
    {"IDENTITY_HEADER MSI_SECRET", BIT(OF_SLURM) | BIT(OF_JOB) | BIT(OF_SSH) | BIT(OF_MOUNT),
     "open the managed identity of this machine alone"},
    {"AZURE_STORAGE_* AZURE_OAUTH_TOKEN_FILE", BIT(OF_MOUNT),
     "come before its configuration to blobfuse2, which would mount another account"},
    {"RCLONE_*", BIT(OF_MOUNT), "are options for your own calls of rclone, such as what to leave out"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- the table */

bool environment_get_row(int i, struct environment_row *out)
{
    if (i < 0 || i >= N_ROWS)
        return false;
    *out = rows[i];
    return true;
}

const char *environment_name(enum environment_of program)
{
    static const char *const names[N_ENVIRONMENTS] = {
        [OF_USER] = "your own programs", [OF_SLURM] = "Slurm's tools", [OF_JOB] = "jobs",        [OF_RUN] = "runs here",
        [OF_COMMAND] = "commands here",  [OF_STARTER] = "starters",    [OF_SSH] = "`ssh`",       [OF_AZ] = "`az`",
        [OF_PLUGIN] = "plugins",         [OF_MOUNT] = "mounts",        [OF_DOCKER] = "`docker`",
    };

    return names[program];
}

/* pattern: of this length, and not of the length of a name. */
static bool environment_matches(const char *pattern, size_t len, const char *name)
{
    size_t name_len = strcspn(name, "=");

    if (pattern[len - 1] == '*')
        return name_len >= len - 1 && memcmp(pattern, name, len - 1) == 0;
    return name_len == len && memcmp(pattern, name, len) == 0;
}

static bool row_has(const struct environment_row *row, const char *name)
{
    for (const char *pattern = row->names; *pattern;) {
        size_t len = strcspn(pattern, " ");
        if (environment_matches(pattern, len, name))
            return true;
        pattern += len + strspn(pattern + len, " ");
    }
    return false;
}

static bool keeps(const struct environment_row *row, enum environment_of program, bool in_job)
{
    return (row->kept_from & BIT(program)) && (in_job || !(row->kept_from & ENVIRONMENT_IN_JOB));
}

static bool shows(enum environment_of program, const char *name, bool in_job)
{
    for (int i = 0; i < N_ROWS; i++)
        if (row_has(&rows[i], name))
            return !keeps(&rows[i], program, in_job);
    return true;
}

static bool is_in_job(void)
{
    return getenv(IN_JOB) != NULL;
}

bool environment_shows(enum environment_of program, const char *name)
{
    return shows(program, name, is_in_job());
}

/* ---- environments */

static bool environment_is_set(char *const *set, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;

    for (; set && *set; set++)
        if (strncmp(*set, variable, len) == 0)
            return true;
    return false;
}

void environment_make(enum environment_of program, char *const *set, struct act_strv *out)
{
    for (char *const *variable = set; variable && *variable; variable++)
        act_strv_push(out, *variable);
    for (char **variable = environ; variable && *variable; variable++)
        if (environment_shows(program, *variable) && !environment_is_set(set, *variable))
            act_strv_push(out, *variable);
}

/* Not by unsetenv(), which leaves what has no '='. */
void environment_reduce(enum environment_of program, struct act_strv *out_taken)
{
    char **kept = environ;
    bool in_job = is_in_job(); /* which is one of them */

    for (char **variable = environ; variable && *variable; variable++)
        if (shows(program, *variable, in_job))
            *kept++ = *variable;
        else if (out_taken)
            act_strv_push(out_taken, *variable);
    if (kept)
        *kept = NULL;
}

/* A row as a pattern of the shell's 'case', whose globs are the same. */
static void add_case(const struct environment_row *row, const char *then, struct act_buf *out)
{
    for (const char *c = row->names; *c; c++)
        act_buf_addc(out, *c == ' ' ? '|' : *c);
    act_buf_addf(out, ") %s;;\n", then);
}

char *environment_script(enum environment_of program)
{
    struct act_buf script = {0};

    act_buf_adds(&script, "j=${" IN_JOB "-}\n");
    act_buf_adds(&script, "for v in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/\\1/p'); do case $v in\n");
    for (int i = 0; i < N_ROWS; i++)
        add_case(&rows[i],
                 keeps(&rows[i], program, false)  ? "unset \"$v\""
                 : keeps(&rows[i], program, true) ? "[ -z \"$j\" ] || unset \"$v\""
                                                  : ":",
                 &script);
    act_buf_adds(&script, "esac; done\n");
    return act_buf_steal(&script);
}
