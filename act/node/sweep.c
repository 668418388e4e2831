/* sweep.c - act-node sweep RUN_DIR */
#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/cgroup.h"
#include "node/container.h"
#include "node/node.h"
#include "proc/mounts.h"

/* Tells whether the process's initial environment has this variable. */
static bool began_with(const char *pid, const char *variable)
{
    enum { ENVIRON_MAX = 8 * 1024 * 1024 };
    ACT_AUTOFREE char *path = act_sprintf("/proc/%s/environ", pid);
    ACT_AUTOFREE char *text = NULL;
    size_t len;

    if (act_file_read(path, ENVIRON_MAX, &text, &len, NULL) < 0)
        return false;
    for (const char *at = text; at < text + len; at += strlen(at) + 1)
        if (strcmp(at, variable) == 0)
            return true;
    return false;
}

static bool is_of_this_user(const char *pid)
{
    ACT_AUTOFREE char *path = act_sprintf("/proc/%s", pid);
    struct stat st;

    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Tells whether a process is an agent, which may have been started from inside another run. */
static bool sweep_is_agent(const char *pid)
{
    ACT_AUTOFREE char *path = act_sprintf("/proc/%s/exe", pid);
    char program[PATH_MAX] = "";

    return readlink(path, program, sizeof(program) - 1) > 0 && strcmp(act_path_basename(program), "act-node") == 0;
}

static int kill_once(const char *variable)
{
    ACT_AUTO(act_strv) names = {0};
    int killed = 0;

    act_folder_names("/proc", &names);
    for (size_t i = 0; i < names.n; i++) {
        const char *pid = names.v[i];
        killed += isdigit((unsigned char)*pid) && atoi(pid) != getpid() && is_of_this_user(pid) &&
                  !sweep_is_agent(pid) && began_with(pid, variable) && kill(atoi(pid), SIGKILL) == 0;
    }
    return killed;
}

int sweep_processes(const char *name, const char *value)
{
    enum { ROUNDS = 200, PAUSE_MS = 20 };
    ACT_AUTOFREE char *variable = act_sprintf("%s=%s", name, value);
    int all = 0, killed = 1;

    for (int i = 0; i < ROUNDS && killed > 0; i++) { /* including processes forked meanwhile */
        killed = kill_once(variable);
        all += killed;
        if (killed > 0)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    return all;
}

static void remove_containers(const char *dir)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_SPEC);
    struct act_error ignored;
    ACT_AUTO(node) node = {0};

    if (node_read(&node, path, "sweep", &ignored) == 0)
        container_remove_all(&node);
}

/* Unmounts all that the run has mounted here: its id is in the path, below a private folder (place.h). */
static void sweep_unmount(const char *dir)
{
    ACT_AUTOFREE char *part = act_sprintf("/%s/", act_path_basename(dir));
    ACT_AUTO(act_strv) points = {0};
    struct act_error ignored;

    mounts_below("/", &points);
    for (size_t i = 0; i < points.n; i++)
        if (strstr(points.v[i], part) && strstr(points.v[i], "/" RUN_DIR_MOUNTS "/") &&
            mounts_end(points.v[i], true, &ignored) < 0)
            continue; /* another process may just have ended it */
}

/* The id is the name of the run folder, which need not be readable for this. If the run had a cgroup, that contained
 * all its processes. */
int node_sweep(int argc, char **argv)
{
    if (argc != 2 || !run_id_valid(act_path_basename(argv[1])))
        return ACT_USAGE;
    if (!cgroup_sweep(argv[1]))
        sweep_processes(NODE_ENV_RUN, act_path_basename(argv[1]));
    sweep_unmount(argv[1]);
    remove_containers(argv[1]);
    return 0;
}
