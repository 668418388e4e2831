/* cgroup.h - a cgroup (version 2) for the processes of one run, where this user may make one. Processes in it stay
 * there with all their descendants, whatever parent, session or environment they get, unless they move to another
 * cgroup; so nothing is left behind even if the agents are killed. No controller is enabled: it only groups processes.
 * All of it is best effort, without messages: a run works without it, too.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.12. */
#ifndef ACT_NODE_CGROUP_H
#define ACT_NODE_CGROUP_H

#include <stdbool.h>

struct cgroup {
    char *path;   /* NULL: none */
    int fd;       /* for struct child; 0: none */
    char *record; /* the file in the run's folder that says where it is: RUN_FILE_CGROUP */
};

/* Makes one for the run of this folder, below that of this process, which stays outside. End it in every case. */
void cgroup_make(struct cgroup *c, const char *run_dir);
/* Kills its processes, waits a few seconds at most until it is empty, and removes it. False: it could not be
 * emptied. */
bool cgroup_end(struct cgroup *c);

/* Does the same after the run's supervisor was killed. False: the run's folder names no cgroup that belongs to the run
 * and this user. */
bool cgroup_sweep(const char *run_dir);

/* Returns the path of this process's cgroup where its memory is counted, which may be one of version 1. New string;
 * NULL: it is not visible. */
char *cgroup_of_memory(void);

/* Returns the path of this process's cgroup: mounts is the text of /proc/self/mountinfo, groups that of
 * /proc/self/cgroup. New string; NULL: it is not visible. */
char *cgroup_find(const char *mounts, const char *groups);
/* Does the same for cgroup_of_memory(). */
char *cgroup_find_memory(const char *mounts, const char *groups);
/* Kills all processes in and below a cgroup one by one, for kernels that have no cgroup.kill (before Linux 5.14).
 * Those that are forked meanwhile survive. */
void cgroup_kill_each(const char *path);

#endif
