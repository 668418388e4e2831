/* below.c - opens what lies below a folder without following a symbolic link. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

/* Reports why name could not be opened in the folder fd, to which the first len bytes of path lead. */
static int below_step_error(int fd, const char *name, const char *path, size_t len, struct act_error *err)
{
    int saved = errno;
    struct stat st;

    if ((saved == ENOTDIR || saved == ELOOP) && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode)) {
        act_error_set(err, ACT_DENIED, "'%.*s' is a symbolic link, which is not followed there", (int)len, path);
        (void)act_error_hint(err, "remove the link");
        return -ACT_DENIED;
    }
    return act_error_errno(err, saved, "cannot open '%.*s'", (int)len, path);
}

static int below_open_folder(int fd, const char *name, bool make)
{
    enum { FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int next = openat(fd, name, FLAGS);

    if (next >= 0 || errno != ENOENT || !make || (mkdirat(fd, name, 0777) < 0 && errno != EEXIST))
        return next;
    return openat(fd, name, FLAGS);
}

static int open_root(const char *root, bool make, struct act_error *err)
{
    int rc = make ? act_mkdir_all(root, 0777, err) : 0;
    int fd = rc < 0 ? rc : open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return rc == 0 && fd < 0 ? act_error_errno(err, errno, "cannot open '%s'", root) : fd;
}

/* Opens the folder that the first len bytes of path name. */
static int below_walk(const char *root, const char *path, size_t len, bool make, struct act_error *err)
{
    int fd = open_root(root, make, err);

    for (size_t at = strlen(root); fd >= 0 && at < len;) {
        size_t n = strcspn(path + at, "/");
        n = n < len - at ? n : len - at;
        if (n > 0) {
            ACT_AUTOFREE char *name = act_strndup(path + at, n);
            int next = below_open_folder(fd, name, make);
            if (next < 0)
                next = below_step_error(fd, name, path, at + n, err);
            close(fd);
            fd = next;
        }
        at += n + 1;
    }
    return fd;
}

int act_folder_below(const char *root, const char *path, bool make, struct act_error *err)
{
    return below_walk(root, path, strlen(path), make, err);
}

int act_open_below(const char *root, const char *path, int flags, struct act_error *err)
{
    const char *name = act_path_basename(path);
    int dir = below_walk(root, path, (size_t)(name - path), flags & O_CREAT, err);

    if (dir < 0)
        return dir;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        fd = below_step_error(dir, name, path, strlen(path), err);
    close(dir);
    return fd;
}

char *act_held_path(int fd, const char *name)
{
    return act_sprintf("/proc/self/fd/%d/%s", fd, name);
}
