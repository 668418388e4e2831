/* temp.c - unfinished files. A lock shows that their process lives; it ends with the process, even by kill -9 or
 * when another machine that shares the folder is switched off. */
#include "package/package_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define PREFIX "new-"
#define SUFFIX ".zip"

/* A sweep may have removed the file before we locked it. Where locks do not exist, nothing is swept. */
static bool take_lock(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int package_temp(const char *folder, char **out_path)
{
    for (;;) {
        char *path = act_sprintf("%s/" PREFIX "XXXXXX" SUFFIX, folder);
        int fd = mkostemps(path, strlen(SUFFIX), O_CLOEXEC);
        if (fd >= 0 && take_lock(fd)) {
            *out_path = path;
            return fd;
        }
        free(path);
        if (fd < 0)
            return -1;
        close(fd);
    }
}

void package_sweep(const char *folder)
{
    DIR *d = opendir(folder);

    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!act_starts_with(e->d_name, PREFIX))
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}
