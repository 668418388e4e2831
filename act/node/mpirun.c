#include "node/mpirun.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"

int mpirun_major_version(const char *text)
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
    *out = mpirun_major_version(text);
    if (*out < 1)
        return act_error_set(err, ACT_FAIL, "'%s' is not Open MPI; put Open MPI's mpirun first in PATH",
                             mpirun);
    return 0;
}

int mpirun_command(const struct node *node, const char *program, struct act_strv *out, struct act_error *err)
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
    act_strv_push(out, "--hostfile");
    act_strv_push(out, hosts);
    act_strv_push(out, version >= 5 ? "--map-by" : "--npernode");
    act_strv_pushf(out, version >= 5 ? "ppr:%d:node" : "%d", node->spec.procs_per_node);
    act_strv_push(out, "--bind-to");
    act_strv_push(out, "none");
    act_strv_push(out, program);
    act_strv_push(out, "rank");
    act_strv_push(out, node->dir);
    return 0;
}
