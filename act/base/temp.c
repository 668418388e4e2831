#include "base/temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

int act_temp_open_unlocked(const char *folder, char **out_path)
{
    char *path = act_sprintf("%s/" ACT_TEMP_PREFIX "XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0) {
        int saved = errno;
        free(path);
        errno = saved;
        return -1;
    }
    *out_path = path;
    return fd;
}

/* Fails if a sweep has removed the file before we locked it. Where locks do not exist, nothing is swept. */
static bool temp_take_lock(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int act_temp_open(const char *folder, char **out_path)
{
    for (;;) {
        int fd = act_temp_open_unlocked(folder, out_path);
        if (fd < 0 || temp_take_lock(fd))
            return fd;
        free(*out_path);
        close(fd);
    }
}

static bool temp_is_old(int fd, int64_t older_s)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtime <= act_now_unix_s() - older_s;
}

void act_temp_sweep(const char *folder, int64_t older_s)
{
    DIR *d = opendir(folder);

    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!act_starts_with(e->d_name, ACT_TEMP_PREFIX))
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && temp_is_old(fd, older_s) && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

/* ---- folders */

enum { SUFFIX = 6, YOUNG_S = 60 /* its maker may not have locked it yet */ };

static bool temp_folder_is_left(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_mtime <= act_now_unix_s() - YOUNG_S &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void temp_sweep_folders(const char *prefix)
{
    const char *name = strrchr(prefix, '/') + 1;
    ACT_AUTOFREE char *parent = act_strndup(prefix, (size_t)(name - prefix));
    DIR *d = opendir(parent);
    struct act_error ignored;

    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!act_starts_with(e->d_name, name) || strlen(e->d_name) != strlen(name) + SUFFIX)
            continue;
        ACT_AUTOFREE char *path = act_sprintf("%s%s", parent, e->d_name);
        ACT_AUTOCLOSE int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && temp_folder_is_left(fd))
            (void)!act_remove_tree(path, &ignored);
    }
    if (d)
        closedir(d);
}

int act_temp_folder(const char *prefix, char **out_path)
{
    char *path = act_sprintf("%sXXXXXX", prefix);

    temp_sweep_folders(prefix);
    int fd = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
        *out_path = path;
        return fd;
    }
    int saved = errno;
    free(path);
    errno = saved;
    return -1;
}
