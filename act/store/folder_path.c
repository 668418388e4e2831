#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"

/* ---- names */

static const char *folder_segment_problem(const char *s, size_t n)
{
    const char *problem = store_segment_problem(s, n);

    return !problem && n > NAME_MAX ? "contains a segment of more than 255 bytes" : problem;
}

/* Checks the segments of the first len bytes. */
static const char *path_problem(const char *path, size_t len)
{
    const char *problem = NULL;

    if (*path == '/')
        return "is absolute";
    if (len >= PATH_MAX)
        return "is longer than 4095 bytes";
    if (!act_utf8_valid(path, len))
        return "is not valid UTF-8";
    for (const char *s = path; !problem && s < path + len;) {
        const char *slash = memchr(s, '/', (size_t)(path + len - s));
        size_t n = slash ? (size_t)(slash - s) : (size_t)(path + len - s);
        problem = folder_segment_problem(s, n);
        s += n + 1;
    }
    return problem;
}

const char *folder_key_problem(const char *key)
{
    const char *problem = *key ? path_problem(key, strlen(key)) : "is empty";

    return !problem && folder_is_temporary(act_path_basename(key)) ? "is one that ACT gives to uploads under way"
                                                                   : problem;
}

const char *folder_part_problem(const char *key)
{
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

    if (!folder_is_part(name))
        return "is not that of an interrupted upload";
    return slash ? path_problem(key, (size_t)(slash - key)) : NULL;
}

const char *folder_prefix_problem(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');

    return slash ? path_problem(prefix, (size_t)(slash - prefix) + 1) : NULL;
}

/* The target may climb only at its beginning: from the link's own folder, which is a real one. "x/.." could
 * be anywhere when x is a link itself. */
const char *folder_link_problem(const char *key, const char *target, size_t len)
{
    size_t depth = 0;
    bool climbing = true;

    if (len == 0 || memchr(target, '\0', len) || len >= PATH_MAX)
        return "a link cannot have this target";
    if (target[0] == '/')
        return "it is a link to an absolute path";
    for (const char *c = key; *c; c++)
        depth += *c == '/';
    for (size_t i = 0; i < len;) {
        const char *slash = memchr(target + i, '/', len - i);
        size_t n = slash ? (size_t)(slash - target) - i : len - i;
        bool up = n == 2 && target[i] == '.' && target[i + 1] == '.';
        if (up && (!climbing || depth == 0))
            return "it is a link that leads out of the folder, or may do so";
        if (up)
            depth--;
        else if (n > 1 || (n == 1 && target[i] != '.'))
            climbing = false;
        i += n + 1;
    }
    return NULL;
}

/* ---- folders */

static int open_step(const struct folder *folder, int fd, const char *name)
{
    return openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (folder->store.follow ? 0 : O_NOFOLLOW));
}

/* Opens, or makes, the folder `name` in the folder fd, whose path is the len bytes of `path`. */
static int open_or_make(struct folder *folder, int fd, const char *path, size_t len, const char *name, bool create)
{
    int next = open_step(folder, fd, name);

    if (next >= 0 || errno != ENOENT || !create)
        return next;
    int failed, tries = 0;
    do {
        bool can = folder_open_up(folder, fd, path, len);
        failed = mkdirat(fd, name, 0777) && errno != EEXIST;
        tries = failed && errno == EACCES && can ? tries + 1 : FOLDER_TRIES;
    } while (tries < FOLDER_TRIES); /* another process may have closed it in between */
    if (failed)
        return -1;
    folder->made = true;
    return open_step(folder, fd, name);
}

/* Says why the step to name in the folder fd failed; path of len bytes names it from the root. */
static int folder_step_error(int fd, const char *name, const char *path, size_t len, bool create, struct act_error *err)
{
    int saved = errno;
    struct stat st;

    if ((saved != ENOTDIR && saved != ELOOP) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return act_error_errno(err, saved, "folder '%.*s'", (int)len, path);
    if (S_ISLNK(st.st_mode))
        return act_error_set(err, ACT_FAIL, "'%.*s' leads through a symbolic link%s", (int)len, path,
                             create ? "; what is behind it was left as it is" : "");
    return act_error_set(err, create ? ACT_FAIL : ACT_NOT_FOUND, "'%.*s' is a file, not a folder%s", (int)len, path,
                         create ? ": move it away first" : "");
}

static int open_by_steps(struct folder *folder, const char *path, size_t len, bool create, int *out_fd,
                         struct act_error *err)
{
    int fd = openat(folder->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return act_error_errno(err, errno, "folder '%s'", folder->root);
    for (size_t i = 0; i < len;) {
        char name[NAME_MAX + 1];
        const char *slash = memchr(path + i, '/', len - i);
        size_t n = slash ? (size_t)(slash - path) - i : len - i;

        memcpy(name, path + i, n); /* a segment is at most NAME_MAX bytes: path_problem() */
        name[n] = '\0';
        int next = open_or_make(folder, fd, path, i ? i - 1 : 0, name, create);
        if (next < 0) {
            int rc = folder_step_error(fd, name, path, i + n, create, err);
            close(fd);
            return rc;
        }
        close(fd);
        fd = next;
        i += n + 1;
    }
    *out_fd = fd;
    return 0;
}

/* Opens a path by one system call instead of one for each segment, on Linux 5.6 and later. Why it fails, the single
 * steps find out. */
static int open_at_once(const struct folder *folder, const char *path, size_t len)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = folder->store.follow ? 0 : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char text[PATH_MAX];

    if (len >= sizeof(text)) { /* a listing goes as deep as the tree does */
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(text, path, len);
    text[len] = '\0';
    return (int)syscall(SYS_openat2, folder->root_fd, len ? text : ".", &how, sizeof(how));
}

int folder_open_dir(struct folder *folder, const char *path, size_t len, bool create, int *out_fd,
                    struct act_error *err)
{
    *out_fd = open_at_once(folder, path, len);
    if (*out_fd >= 0)
        return 0;
    return open_by_steps(folder, path, len, create, out_fd, err);
}

int folder_find(struct folder *folder, const char *key, bool create, bool fresh, struct folder_place *out,
                struct act_error *err)
{
    size_t len = strlen(key);

    out->is_folder = key[len - 1] == '/';
    len -= out->is_folder;
    const char *slash = memrchr(key, '/', len);
    const char *name = slash ? slash + 1 : key;
    size_t n = len - (size_t)(name - key);

    memcpy(out->name, name, n); /* at most NAME_MAX bytes: folder_key_problem() */
    out->name[n] = '\0';
    return folder_dir_open(folder, key, slash ? (size_t)(slash - key) : 0, create, fresh, out, err);
}

/* ---- attributes */

void folder_etag(const struct stat *st, char out[STORE_ETAG])
{
    snprintf(out, STORE_ETAG, "\"%jx-%jx-%" PRIx64 "-%" PRIx64 "\"", (uintmax_t)st->st_ino, (uintmax_t)st->st_size,
             (uint64_t)act_timespec_ns(st->st_mtim), (uint64_t)act_timespec_ns(st->st_ctim));
}

void folder_fill(struct store_entry *entry, const char *key, const struct stat *st)
{
    entry->key = act_strdup(key);
    entry->kind = S_ISLNK(st->st_mode) ? STORE_SYMLINK : S_ISDIR(st->st_mode) ? STORE_FOLDER : STORE_FILE;
    entry->size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size;
    entry->mtime_ns = act_timespec_ns(st->st_mtim);
    entry->last_modified_s = st->st_ctim.tv_sec;
    entry->mode = S_ISLNK(st->st_mode)   ? -1
                  : S_ISDIR(st->st_mode) ? store_folder_mode(st->st_mode)
                                         : (int)(st->st_mode & 0777);
    folder_etag(st, entry->etag);
}
