#include "node/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "node/node.h"

enum { OPEN_FOLDERS = 16 };

/* ---- where ---- */

/* The part of the file system below "root" appears below the mount point (proc_pid_mountinfo(5)). */
static char *seen_at(const char *mount, const char *group)
{
    ACT_AUTOFREE char *root = NULL;
    ACT_AUTOFREE char *at = NULL;

    if (sscanf(mount, "%*s %*s %*s %ms %ms", &root, &at) != 2 || strchr(at, '\\') || !act_path_is_within(group, root))
        return NULL;
    const char *rest = group + (strcmp(root, "/") == 0 ? 0 : strlen(root));
    return act_path_join(at, rest + strspn(rest, "/"));
}

/* Returns the path in the line "<number>:<controller>:<path>" of /proc/self/cgroup (cgroups(7)); version 2 has no
 * controller. New string. */
static char *cgroup_group_of(const char *groups, const char *controller)
{
    ACT_AUTOFREE char *mark = act_sprintf(":%s:/", controller);

    for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *colon = strchr(line, ':');
        if (!colon || !act_starts_with(colon, mark))
            continue;
        const char *path = colon + strlen(mark) - 1;
        ACT_AUTOFREE char *group = act_strndup(path, strcspn(path, "\n"));
        return strstr(group, "/..") ? NULL : act_strdup(group); /* else it is outside what this process can see */
    }
    return NULL;
}

/* Returns where the first mount of a type (" - cgroup2 ") with an option at its end (NULL: any) shows a group. New
 * string. */
static char *find_mounted(const char *mounts, const char *type, const char *option, const char *group)
{
    char *found = NULL;

    for (const char *line = mounts; group && !found && *line; line += strspn(line, "\n")) {
        size_t len = strcspn(line, "\n");
        ACT_AUTOFREE char *mount = act_strndup(line, len);
        if (strstr(mount, type) && (!option || act_ends_with(mount, option)))
            found = seen_at(mount, group);
        line += len;
    }
    return found;
}

char *cgroup_find(const char *mounts, const char *groups)
{
    ACT_AUTOFREE char *group = cgroup_group_of(groups, "");

    return find_mounted(mounts, " - cgroup2 ", NULL, group);
}

char *cgroup_find_memory(const char *mounts, const char *groups)
{
    ACT_AUTOFREE char *group = cgroup_group_of(groups, "memory");
    char *found = find_mounted(mounts, " - cgroup ", ",memory", group);

    return found ? found : cgroup_find(mounts, groups);
}

static char *find_own(char *(*find)(const char *mounts, const char *groups))
{
    ACT_AUTOFREE char *mounts = node_read_text("/proc/self/mountinfo");
    ACT_AUTOFREE char *groups = node_read_text("/proc/self/cgroup");

    return find(mounts, groups);
}

char *cgroup_of_memory(void)
{
    return find_own(cgroup_find_memory);
}

static char *name_for(const char *run_dir)
{
    return act_sprintf("act-%s", act_path_basename(run_dir));
}

/* ---- make ---- */

/* Is not synced to the disk: no cgroup outlives the machine. */
static bool cgroup_write_record(const struct cgroup *c)
{
    ACT_AUTOCLOSE int fd = open(c->record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd >= 0 && act_write_all(fd, c->path, strlen(c->path)) == 0;
}

static void cgroup_forget(struct cgroup *c)
{
    free(c->path);
    free(c->record);
    *c = (struct cgroup){0};
}

/* The record comes first: an unrecorded cgroup would never be removed. */
void cgroup_make(struct cgroup *c, const char *run_dir)
{
    ACT_AUTOFREE char *parent = find_own(cgroup_find);
    ACT_AUTOFREE char *name = name_for(run_dir);

    *c = (struct cgroup){0};
    if (!parent)
        return;
    c->path = act_path_join(parent, name);
    c->record = act_path_join(run_dir, RUN_FILE_CGROUP);
    if (cgroup_write_record(c) && mkdir(c->path, 0755) == 0) {
        int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd > 0) {
            c->fd = fd;
            return;
        }
        rmdir(c->path);
    }
    unlink(c->record);
    cgroup_forget(c);
}

/* ---- end ---- */

static int kill_in(const char *path, const struct stat *st, int type, struct FTW *at)
{
    enum { PIDS_MAX = 64 << 20 };
    ACT_AUTOFREE char *list = type == FTW_D ? act_path_join(path, "cgroup.procs") : NULL;
    ACT_AUTOFREE char *pids = NULL;

    (void)st;
    (void)at;
    if (!list || act_file_read(list, PIDS_MAX, &pids, NULL, NULL) < 0)
        return 0;
    for (char *line = pids, *end; *line; line = end + strspn(end, "\n")) {
        long pid = strtol(line, &end, 10);
        if (end == line)
            break;
        if (pid > 1) /* 0: one that this process cannot see */
            kill((pid_t)pid, SIGKILL);
    }
    return 0;
}

void cgroup_kill_each(const char *path)
{
    (void)nftw(path, kill_in, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT);
}

static void kill_all(const char *path)
{
    ACT_AUTOFREE char *file = act_path_join(path, "cgroup.kill");
    ACT_AUTOCLOSE int fd = open(file, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || act_write_all(fd, "1", 1) < 0)
        cgroup_kill_each(path);
}

static int cgroup_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_DP)
        rmdir(path);
    return 0;
}

/* Removes a cgroup, and those that a command has made in it; its files go with it. One with processes stays. */
static bool cgroup_remove_all(const char *path)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    (void)nftw(path, cgroup_remove_one, OPEN_FOLDERS, FTW_PHYS | FTW_MOUNT | FTW_DEPTH);
    return access(path, F_OK) < 0;
}

static bool empty_and_remove(const char *path, const char *record)
{
    enum { LIMIT_MS = 5000, PAUSE_MS = 2 };
    int64_t deadline = act_now_monotonic_ms() + LIMIT_MS;

    while (!cgroup_remove_all(path)) {
        if (act_now_monotonic_ms() >= deadline)
            return false;
        kill_all(path);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    unlink(record);
    return true;
}

bool cgroup_end(struct cgroup *c)
{
    bool empty = !c->path || empty_and_remove(c->path, c->record);

    if (c->fd > 0)
        close(c->fd);
    cgroup_forget(c);
    return empty;
}

/* ---- after a killed supervisor ---- */

/* Tells whether the record names a cgroup of this run and user. One that is gone is fine. */
static bool belongs(const char *path, const char *name)
{
    struct statfs fs;
    struct stat st;

    if (path[0] != '/' || strcmp(act_path_basename(path), name) != 0)
        return false;
    if (lstat(path, &st) < 0)
        return errno == ENOENT;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

bool cgroup_sweep(const char *run_dir)
{
    enum { PATH_BYTES_MAX = 16 * 1024 };
    ACT_AUTOFREE char *record = act_path_join(run_dir, RUN_FILE_CGROUP);
    ACT_AUTOFREE char *name = name_for(run_dir);
    ACT_AUTOFREE char *path = NULL;

    if (act_file_read_regular(record, PATH_BYTES_MAX, &path, NULL, NULL) < 0 || !belongs(path, name))
        return false;
    (void)empty_and_remove(path, record);
    return true;
}
