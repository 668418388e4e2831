/* toolkit.c - turns the settings of a toolkit into a command, and decides how often it runs. */
#include <ctype.h>
#include <string.h>

#include "codec/json.h"
#include "flow/jobfile/build.h"

/* The shell line for the settings of a toolkit. */
typedef int toolkit_fn(struct job_build *b, const json_t *settings);

static int run_python(struct job_build *b, const json_t *settings)
{
    job_add_script(&b->line, settings, "commandLineArgs");
    return 0;
}

/* This is a single process that is not started by mpirun, so that it can start an mpirun itself. That inner mpirun must
 * not see the environment and options of the outer one; the user's settings for Open MPI stay. On Slurm, the srun with
 * which it reaches other nodes shares the resources of the run instead of waiting for more. */
static const char alone[] =
    "[ \"${RANK:-0}\" = 0 ] || exit 0\n"
    "unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE ${!PMI_@} ${!PMIX_@} ${!PRTE_@}\n"
    "unset ${!OMPI_COMM_WORLD_@} ${!OMPI_UNIVERSE_@} ${!OMPI_APP_CTX_@} OMPI_FIRST_RANKS OMPI_NUM_APP_CTX OMPI_ARGV "
    "OMPI_COMMAND OMPI_FILE_LOCATION\n"
    "unset ${!OMPI_MCA_orte_@} ${!OMPI_MCA_ess_@} ${!OMPI_MCA_rmaps_@} ${!OMPI_MCA_hwloc_base_binding_@} OMPI_MCA_ess "
    "OMPI_MCA_pmix OMPI_MCA_initial_wdir OMPI_MCA_mpi_oversubscribe\n"
    "unset SLURM_MEM_PER_CPU; export SLURM_OVERLAP=1 SLURM_MEM_PER_NODE=0\n";

/* Batch AI ran the command on the first node only; the others were there for what it starts itself. */
static int run_custom(struct job_build *b, const json_t *settings)
{
    act_buf_adds(&b->line, alone);
    if (b->out->nodes > 1)
        job_note(b, "customToolkitSettings: the command runs on the first node only, as it did there; an mpirun of its "
                    "own reaches the others by $AZ_BATCHAI_MPI_HOST_FILE, where the nodes let each other in; "
                    "customMpiSettings runs it on all");
    act_buf_adds(&b->line, job_text(settings, "commandLine"));
    return 0;
}

static int run_mpi(struct job_build *b, const json_t *settings)
{
    act_buf_adds(&b->line, job_text(settings, "commandLine"));
    return 0;
}

static int run_pytorch(struct job_build *b, const json_t *settings)
{
    const char *backend = job_text(settings, "communicationBackend");

    if (backend) {
        act_buf_adds(&b->line, "export AZ_BATCHAI_PYTORCH_BACKEND=\"");
        for (const char *c = backend; *c; c++)
            if (isalnum((unsigned char)*c))
                act_buf_addc(&b->line, (char)tolower((unsigned char)*c));
        act_buf_adds(&b->line, "\"\nexport AZ_BATCHAI_PYTORCH_INIT_METHOD="
                               "\"tcp://${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-23456}\"\n");
    }
    return run_python(b, settings);
}

static int run_tensorflow(struct job_build *b, const json_t *settings)
{
    if (job_is_distributed(b, settings))
        return job_add_distributed(b, settings);
    job_add_script(&b->line, settings, "masterCommandLineArgs");
    return 0;
}

/* A program that reads a configuration file, or a script. */
static int run_configured(struct job_build *b, const json_t *settings, const char *toolkit, const char *program)
{
    const char *config = job_text(settings, "configFilePath"), *arguments = job_text(settings, "commandLineArgs");

    if (!config == !job_text(settings, "pythonScriptFilePath"))
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.%s' needs either 'configFilePath' or 'pythonScriptFilePath'", b->file,
                             toolkit);
    if (!config)
        return run_python(b, settings);
    act_buf_adds(&b->line, program);
    job_add_quoted(&b->line, config);
    if (arguments)
        act_buf_addf(&b->line, " %s", arguments);
    return 0;
}

static int run_cntk(struct job_build *b, const json_t *settings)
{
    return run_configured(b, settings, "cntkSettings", "cntk configFile=");
}

static int run_caffe(struct job_build *b, const json_t *settings)
{
    return run_configured(b, settings, "caffeSettings", "caffe train --solver=");
}

static const struct {
    const char *name;
    toolkit_fn *run;
} toolkits[] = {
    {"customToolkitSettings", run_custom},  {"customMpiSettings", run_mpi},  {"pyTorchSettings", run_pytorch},
    {"tensorFlowSettings", run_tensorflow}, {"horovodSettings", run_python}, {"cntkSettings", run_cntk},
    {"chainerSettings", run_python},        {"caffeSettings", run_caffe},    {"caffe2Settings", run_python},
};

/* processCount is that of all nodes together. */
static int jobfile_toolkit_take_size(struct job_build *b, const char *toolkit, const json_t *settings)
{
    int64_t nodes = codec_json_int(b->job, "nodeCount", 1), n = codec_json_int(settings, "processCount", nodes);

    if (n % nodes != 0)
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.%s.processCount' is %lld, which %lld nodes cannot share evenly", b->file,
                             toolkit, (long long)n, (long long)nodes);
    b->out->nodes = (int)nodes;
    b->out->procs_per_node = (int)(n / nodes);
    return 0;
}

static int find_toolkit(struct job_build *b, size_t *out)
{
    enum { N = sizeof(toolkits) / sizeof(toolkits[0]) };
    size_t found = N;

    for (size_t i = 0; i < N; i++) {
        if (!json_is_object(json_object_get(b->job, toolkits[i].name)))
            continue;
        if (found < N)
            return act_error_set(b->err, ACT_CONFIG, "%s: 'properties' has both '%s' and '%s': a job has one of them",
                                 b->file, toolkits[found].name, toolkits[i].name);
        found = i;
    }
    *out = found;
    return found < N ? 0
                     : act_error_set(b->err, ACT_CONFIG,
                                     "%s: 'properties' says nothing to run, such as 'customToolkitSettings' or "
                                     "'pyTorchSettings'",
                                     b->file);
}

static size_t jobfile_toolkit_name_length(size_t kit)
{
    return strlen(toolkits[kit].name) - strlen("Settings");
}

char *flow_job_tool(const char *title)
{
    for (const char *at = title; at && (at = strstr(at, ", "));) {
        at += strlen(", ");
        for (size_t i = 0; i < sizeof(toolkits) / sizeof(toolkits[0]); i++)
            if (strncmp(at, toolkits[i].name, jobfile_toolkit_name_length(i)) == 0 &&
                at[jobfile_toolkit_name_length(i)] == ':')
                return act_strndup(at, jobfile_toolkit_name_length(i));
    }
    return NULL;
}

/* The toolkit, and what the user himself wrote: the line has much around it. */
static char *jobfile_toolkit_title_of(size_t kit, const json_t *settings)
{
    static const char *const members[] = {"commandLine",    "pythonInterpreterPath", "pythonScriptFilePath",
                                          "configFilePath", "commandLineArgs",       "masterCommandLineArgs"};
    struct act_buf title = {0};

    act_buf_addf(&title, "%.*s:", (int)jobfile_toolkit_name_length(kit), toolkits[kit].name);
    if (job_text(settings, "pythonScriptFilePath") && !job_text(settings, "pythonInterpreterPath"))
        act_buf_adds(&title, " python");
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (job_text(settings, members[i]))
            act_buf_addf(&title, " %s", job_text(settings, members[i]));
    return act_buf_steal(&title);
}

int job_add_command(struct job_build *b)
{
    size_t kit = 0;
    int rc = find_toolkit(b, &kit);

    if (rc < 0)
        return rc;
    const json_t *settings = json_object_get(b->job, toolkits[kit].name);
    b->out->title = jobfile_toolkit_title_of(kit, settings);
    rc = jobfile_toolkit_take_size(b, toolkits[kit].name, settings);
    return rc < 0 ? rc : toolkits[kit].run(b, settings);
}
