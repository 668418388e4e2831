#include "node/launcher.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "node/container.h"
#include "node/link.h"
#include "proc/proc.h"
#include "run/machines.h"

const char *const launcher_passed_on[] = {LINK_ENV,      NODE_ENV_ATTEMPT, NODE_ENV_GPUS,
                                          "MASTER_ADDR", "MASTER_PORT",    NULL};

const char *launcher_name(const struct node *node)
{
    if (node->spec.launcher && strcmp(node->spec.launcher, "srun") == 0)
        return "srun";
    if (node_world_size(node) == 1)
        return "rank";
    return act_streq(node->spec.launcher, "direct") ? "direct" : "mpirun";
}

/* ---- mpirun ---- */

int launcher_mpirun_version(const char *text)
{
    static const char *const marks[] = {"(Open MPI) ", "(OpenRTE) "};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        const char *at = strstr(text, marks[i]);
        if (at)
            return atoi(at + strlen(marks[i]));
    }
    return 0;
}

static int find_version(char *mpirun, int *out, struct act_error *err)
{
    enum { TIMEOUT_S = 60, OUTPUT_MAX = 64 * 1024 };
    char *argv[] = {mpirun, (char[]){"--version"}, NULL};
    ACT_AUTOFREE char *text = NULL;
    int status, rc = proc_run(argv, TIMEOUT_S, OUTPUT_MAX, &text, &status, err);

    if (rc < 0)
        return rc;
    *out = launcher_mpirun_version(text);
    if (*out < 1)
        return act_error_set(err, ACT_FAIL, "'%s' is not Open MPI; put Open MPI's mpirun first in PATH", mpirun);
    return 0;
}

static int mpirun_words(const struct node *node, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *mpirun = proc_find_in_path("mpirun");
    ACT_AUTOFREE char *hosts = node_path(node, RUN_FILE_HOSTS);
    int version;

    if (!mpirun)
        return act_error_set(err, ACT_NOT_FOUND, "mpirun not found in PATH; install Open MPI");
    int rc = find_version(mpirun, &version, err);
    if (rc < 0)
        return rc;

    /* by its name: with a path Open MPI puts its own folders first in the ranks' PATH (its --prefix) */
    act_strv_push(out, "mpirun");
    if (geteuid() == 0)
        act_strv_push(out, "--allow-run-as-root");
    ACT_STRV_PUSH(out, "--hostfile", hosts, version >= 5 ? "--map-by" : "--npernode");
    act_strv_pushf(out, version >= 5 ? "ppr:%d:node" : "%d", node->spec.procs_per_node);
    ACT_STRV_PUSH(out, "--bind-to", "none");
    for (const char *const *name = launcher_passed_on; *name; name++)
        if (getenv(*name))
            ACT_STRV_PUSH(out, "-x", *name); /* its daemons on other nodes need not have our environment */
    return 0;
}

/* ---- srun ---- */

/* The job was requested with one task per process; a starter has those of its node. */
static int tasks_per_rank(const struct run_spec *spec)
{
    return run_spec_processes(spec) / spec->procs_per_node;
}

/* An agent exits with an error only if it could not join the run: then srun ends the others. It reports its command's
 * result to the supervisor, which gives the others time to save. */
static int srun_words(const struct node *node, const char *program, struct act_strv *out, struct act_error *err)
{
    const struct run_spec *spec = &node->spec;
    ACT_AUTOFREE char *srun = proc_find_in_path("srun");
    const char *cpus = getenv("SLURM_CPUS_PER_TASK"), *hosts = getenv("SLURM_JOB_NODELIST");

    if (!srun)
        return act_error_set(err, ACT_NOT_FOUND, "srun not found in PATH; set 'slurm.launcher' to mpirun");
    act_strv_push(out, "srun");
    act_strv_pushf(out, "--nodes=%d", spec->nodes);
    if (hosts) /* of a larger job that the run is a step of, not any */
        act_strv_pushf(out, "--nodelist=%s", hosts);
    act_strv_pushf(out, "--ntasks=%d", node_world_size(node));
    act_strv_pushf(out, "--ntasks-per-node=%d", spec->procs_per_node);
    if (cpus) /* since Slurm 22.05 steps do not inherit it from their job */
        act_strv_pushf(out, "--cpus-per-task=%lld", strtoll(cpus, NULL, 10) * tasks_per_rank(spec));
    ACT_STRV_PUSH(out, "--distribution=block", "--cpu-bind=none", "--kill-on-bad-exit=1", "--wait=0", "--input=none",
                  "--chdir=/");
    if (spec->mpi)
        act_strv_pushf(out, "--mpi=%s", spec->mpi);
    return container_srun_options(node, program, out, err);
}

void launcher_rank_words(const struct node *node, const char *program, struct act_strv *out)
{
    if (run_has_machines(node->dir)) {
        ACT_STRV_PUSH(out, "/bin/sh", "-c", "exec \"$" LAUNCHER_ENV_PROGRAM "\" rank \"$" LAUNCHER_ENV_DIR "\"");
    } else {
        ACT_STRV_PUSH(out, program, "rank", node->dir);
    }
}

int launcher_command(const struct node *node, const char *program, struct act_strv *out, struct act_error *err)
{
    const char *name = launcher_name(node);
    int rc = strcmp(name, "mpirun") == 0 ? mpirun_words(node, out, err)
             : strcmp(name, "srun") == 0 ? srun_words(node, program, out, err)
                                         : 0;

    if (rc < 0)
        return rc;
    if (strcmp(name, "direct") == 0)
        ACT_STRV_PUSH(out, program, "direct", node->dir);
    else
        launcher_rank_words(node, program, out);
    return 0;
}

/* ---- the environment of the ranks ---- */

int launcher_write_hosts(const struct node *node, const struct act_strv *hosts, struct act_error *err)
{
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_HOSTS);
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0; i < hosts->n; i++)
        act_buf_addf(&text, "%s slots=%d\n", hosts->v[i], node->spec.procs_per_node);
    if (hosts->n == 0)
        act_buf_addf(&text, "localhost slots=%d\n", node->spec.procs_per_node);
    return act_file_write_quickly(path, text.data, text.len, 0644, err);
}

void launcher_read_hosts(const struct node *node, struct act_strv *out)
{
    enum { HOSTFILE_MAX = 16 * 1024 * 1024 };
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_HOSTS);
    ACT_AUTOFREE char *text = NULL;

    if (act_file_read(path, HOSTFILE_MAX, &text, NULL, NULL) < 0)
        return;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strcspn(line, " "))
            act_strv_take(out, act_strndup(line, strcspn(line, " ")));
}

static bool port_is_free(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    ACT_AUTOCLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

/* Returns a port below the system's ephemeral ports, so that it stays free until rank 0 listens. */
static int choose_port(void)
{
    enum { LOW = 20000, HIGH = 32000, TRIES = 64 };
    int port = LOW;

    for (int i = 0; i < TRIES; i++) {
        uint16_t random;
        act_random(&random, sizeof(random));
        port = LOW + random % (HIGH - LOW);
        if (port_is_free(port))
            break;
    }
    return port;
}

/* Variables of Open MPI 4 and of the runtime (PRRTE) of Open MPI 5. */
enum setting { KILL_TIMEOUT, REMOTE_AGENT, NO_TREE, WHOLE_NAMES, N_SETTINGS };

static const struct {
    const char *in_4, *in_5;
} settings[N_SETTINGS] = {
    [KILL_TIMEOUT] = {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"},
    [REMOTE_AGENT] = {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"},
    [NO_TREE] = {"OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn"},
    [WHOLE_NAMES] = {"OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"},
};

static void set_for_mpirun(enum setting which, const char *value)
{
    setenv(settings[which].in_4, value, 1);
    setenv(settings[which].in_5, value, 1);
}

/* All ranks of a node see all GPUs that the run has there, and LOCAL_RANK is the number of one. Where a job binds GPUs
 * to tasks, by options or a site's settings, srun takes that from the environment and shows each task, or mpirun's
 * daemon, one of them alone. */
static void launcher_unbind_gpus(void)
{
    static const char *const names[] = {"SLURM_GPU_BIND", "SLURM_GPUS_PER_TASK", "SLURM_TRES_BIND",
                                        "SLURM_TRES_PER_TASK"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

void launcher_set_environment(const char *master, int64_t grace_ms)
{
    ACT_AUTOFREE char *port = act_sprintf("%d", choose_port());
    ACT_AUTOFREE char *seconds = act_sprintf("%lld", (long long)(grace_ms + 999) / 1000 + 1);

    launcher_unbind_gpus();
    setenv("MASTER_ADDR", master, 1);
    setenv("MASTER_PORT", port, 1);
    /* by default it leaves a second between SIGTERM and SIGKILL */
    set_for_mpirun(KILL_TIMEOUT, seconds);
}

/* The daemons on other nodes look whether they would find the first word there. */
void launcher_set_remote_start(const struct node *node, const char *program)
{
    ACT_AUTOFREE char *agent =
        act_sprintf("%s%s rsh %s", run_has_machines(node->dir) ? "env " : "", program, node->dir);

    set_for_mpirun(REMOTE_AGENT, agent);
    set_for_mpirun(NO_TREE, "1");
    set_for_mpirun(WHOLE_NAMES, "1");
}

static void launcher_forget(enum setting which)
{
    unsetenv(settings[which].in_4);
    unsetenv(settings[which].in_5);
}

/* Removes our settings of the launcher from the environment; a site's own way to start daemons stays. */
void launcher_forget_settings(const struct node *node)
{
    const char *agent = getenv(settings[REMOTE_AGENT].in_4);
    ACT_AUTOFREE char *ours = act_sprintf(" rsh %s", node->dir);

    launcher_forget(KILL_TIMEOUT);
    unsetenv(LAUNCHER_ENV_PROGRAM);
    unsetenv(LAUNCHER_ENV_DIR);
    if (!agent || !act_ends_with(agent, ours))
        return;
    launcher_forget(REMOTE_AGENT);
    launcher_forget(NO_TREE);
    launcher_forget(WHOLE_NAMES);
}
