/* cgroup.h - a cgroup (version 2) for the processes of one run, where this user may make one. What is started in it stays in
 * it with all that it starts, whatever parent, session or environment that gives itself, as long as it does not move to another
 * cgroup; so nothing is left behind even when the agents are killed. No controller is switched on: it only holds processes together. All of it is best effort, without
 * messages: where there is none, a run goes on as well.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.12. */
#ifndef ACT_NODE_CGROUP_H
#define ACT_NODE_CGROUP_H

#include <stdbool.h>

struct cgroup {
    char *path;   /* NULL: there is none */
    int fd;       /* for struct child; 0: there is none */
    char *record; /* the file in the run's folder that says where it is: RUN_FILE_CGROUP */
};

/* Makes one below that of this process, which stays outside, for the run of this folder. End it in every case. */
void cgroup_make(struct cgroup *c, const char *run_dir);
/* Kills what is in it, waits some seconds at most until it is empty, and removes it. False: it could not be emptied. */
bool cgroup_end(struct cgroup *c);

/* The same for one whose supervisor was killed. False: the run's folder names none that is the run's and this user's. */
bool cgroup_sweep(const char *run_dir);

/* Where this process's cgroup is to be seen: mounts is the text of /proc/self/mountinfo, groups that of /proc/self/cgroup. New
 * string; NULL: nowhere. */
char *cgroup_find(const char *mounts, const char *groups);
/* Kills all processes in and below a cgroup one by one, for kernels that have no cgroup.kill (before Linux 5.14). Those that are
 * forked meanwhile stay. */
void cgroup_kill_each(const char *path);

#endif
