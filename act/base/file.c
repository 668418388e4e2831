#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/temp.h"
#include "base/text.h"

/* Reads all of fd, and closes it. */
static int read_and_close(int fd, const char *path, size_t max, char **out, size_t *out_len, struct act_error *err)
{
    struct act_buf b = {0};
    char chunk[65536];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0 && b.len <= max)
        act_buf_add(&b, chunk, (size_t)n);
    int saved = errno;
    close(fd);
    explicit_bzero(chunk, sizeof(chunk)); /* it may have been a key */
    if (n < 0 || b.len > max) {
        act_buf_wipe(&b);
        return n < 0 ? act_error_errno(err, saved, "cannot read '%s'", path)
                     : act_error_set(err, ACT_FAIL, "cannot read '%s': larger than %zu bytes", path, max);
    }
    if (out_len)
        *out_len = b.len;
    *out = act_buf_steal(&b);
    return 0;
}

int act_file_read(const char *path, size_t max, char **out, size_t *out_len, struct act_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot read '%s'", path);
    return read_and_close(fd, path, max, out, out_len, err);
}

int act_file_read_regular(const char *path, size_t max, char **out, size_t *out_len, struct act_error *err)
{
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* opening a FIFO would wait, too */

    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = act_error_errno(err, errno, "cannot read '%s'", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) { /* read() itself refuses a folder */
        close(fd);
        return act_error_set(err, ACT_FAIL, "cannot read '%s': it is not a regular file", path);
    }
    return read_and_close(fd, path, max, out, out_len, err);
}

void act_close_at_exit(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

void act_folder_names(const char *dir, struct act_strv *out)
{
    DIR *d = opendir(dir);

    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            act_strv_push(out, e->d_name);
    if (d)
        closedir(d);
    act_strv_sort(out);
}

/* Writes all bytes at *offset, which moves on; NULL: where the file is. */
static int file_put_all(int fd, const char *p, size_t len, off_t *offset)
{
    while (len > 0) {
        ssize_t n = offset ? pwrite(fd, p, len, *offset) : write(fd, p, len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
            if (offset)
                *offset += n;
        }
    }
    return 0;
}

int act_write_all(int fd, const void *data, size_t len)
{
    return file_put_all(fd, data, len, NULL);
}

int act_pwrite_all(int fd, const void *data, size_t len, off_t offset)
{
    return file_put_all(fd, data, len, &offset);
}

ssize_t act_pread_all(int fd, void *data, size_t len, off_t offset)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, (char *)data + done, len - done, offset + (off_t)done);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Makes the rename durable. Best effort: some file systems cannot sync a folder. */
static void sync_folder_of(const char *path)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

int act_rename_new(int dir, const char *from, const char *to)
{
    struct stat st;

    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (linkat(dir, from, dir, to, 0) == 0)
        return unlinkat(dir, from, 0);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) /* without links it can only be looked at before */
        errno = EEXIST;
    return errno == ENOENT ? renameat(dir, from, dir, to) : -1;
}

/* A file that act_file_write() and its like put in its place. */
struct landing {
    const char *path;
    mode_t mode;
    bool durable;      /* also after a power cut */
    bool *out_existed; /* set: it replaces nothing */
};

/* 0, or -1 with errno. */
static int fill_landing(const struct landing *l, int fd, const void *data, size_t len)
{
    return act_write_all(fd, data, len) < 0 || fchmod(fd, l->mode) < 0 || (l->durable && fsync(fd) < 0) ? -1 : 0;
}

/* Some file systems notice a quota only when a file is closed. The lock goes with a copy of the descriptor. */
static int check_close(int fd)
{
    int copy = dup(fd);

    return copy < 0 || close(copy) < 0 ? -1 : 0;
}

static int file_take_name(const struct landing *l, const char *temp)
{
    return l->out_existed ? act_rename_new(AT_FDCWD, temp, l->path) : rename(temp, l->path);
}

/* 0, or -1 with errno. */
static int land(const struct landing *l, const char *dir, const void *data, size_t len)
{
    ACT_AUTOFREE char *temp = NULL;
    int fd = l->durable ? act_temp_open(dir, &temp) : act_temp_open_unlocked(dir, &temp), saved;

    if (fd < 0)
        return -1;
    int rc = fill_landing(l, fd, data, len) < 0 || check_close(fd) < 0 || file_take_name(l, temp) < 0 ? -1 : 0;
    saved = errno;
    if (rc < 0)
        unlink(temp);
    else if (l->durable)
        sync_folder_of(l->path);
    close(fd);
    errno = saved;
    return rc;
}

static int write_whole(const struct landing *l, const void *data, size_t len, struct act_error *err)
{
    enum { OLD_S = 60 };
    ACT_AUTOFREE char *dir = act_path_dirname(l->path);
    int rc = act_mkdir_all(dir, 0777, err);

    if (rc == 0 && l->durable)
        act_temp_sweep(dir, OLD_S);
    if (rc < 0 || land(l, dir, data, len) == 0)
        return rc;
    if (l->out_existed && errno == EEXIST) {
        *l->out_existed = true;
        return 0;
    }
    return act_error_errno(err, errno, "cannot write '%s'", l->path);
}

int act_file_write(const char *path, const void *data, size_t len, mode_t mode, struct act_error *err)
{
    return write_whole(&(struct landing){.path = path, .mode = mode, .durable = true}, data, len, err);
}

int act_file_write_quickly(const char *path, const void *data, size_t len, mode_t mode, struct act_error *err)
{
    return write_whole(&(struct landing){.path = path, .mode = mode}, data, len, err);
}

int act_file_create(const char *path, const void *data, size_t len, mode_t mode, bool *out_existed,
                    struct act_error *err)
{
    const struct landing l = {.path = path, .mode = mode, .durable = true, .out_existed = out_existed};

    *out_existed = false;
    return write_whole(&l, data, len, err);
}

uint64_t act_allow_files(uint64_t needed)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return UINT64_MAX;
    const rlim_t before = limit.rlim_cur;
    if (before >= needed)
        return before;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? before : limit.rlim_cur;
}

mode_t act_umask(void)
{
    enum { USUAL = 022, MOST = 64 << 10 };
    ACT_AUTOFREE char *text = NULL;
    size_t len;

    if (act_file_read("/proc/self/status", MOST, &text, &len, NULL) < 0 || !text)
        return USUAL;
    const char *line = strstr(text, "\nUmask:");
    return line ? (mode_t)strtoul(line + strlen("\nUmask:"), NULL, 8) & 0777 : USUAL;
}

int act_mkdir_all(const char *path, mode_t mode, struct act_error *err)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno == ENOENT) {
        ACT_AUTOFREE char *parent = act_path_dirname(path);
        int rc = strcmp(parent, path) == 0 ? -ACT_NOT_FOUND : act_mkdir_all(parent, mode, err);
        if (rc < 0)
            return rc;
        if (mkdir(path, mode) == 0)
            return 0;
    }
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return act_error_errno(err, errno, "cannot make the folder '%s'", path);
}

int act_can_write_in(const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *there = act_strdup(path);
    struct stat st;

    while (stat(there, &st) < 0 && errno == ENOENT && strcmp(there, "/") != 0) {
        char *above = act_path_dirname(there);
        free(there);
        there = above;
    }
    if (access(there, W_OK | X_OK) < 0)
        return act_error_errno(err, errno, "cannot write in '%s'", there);
    if (stat(there, &st) == 0 && !S_ISDIR(st.st_mode))
        return act_error_set(err, ACT_FAIL, "'%s' is not a folder", there);
    return 0;
}

bool act_is_foreign(const char *path, uid_t *out_owner)
{
    struct stat st;

    if (lstat(path, &st) < 0 || st.st_uid == 0 || st.st_uid == geteuid())
        return false;
    if (out_owner)
        *out_owner = st.st_uid;
    return true;
}

/* Copies a range to the same place, where the kernel cannot do it by itself. */
static int copy_by_hand(int in, int out, off_t at, off_t end)
{
    char chunk[65536];

    while (at < end) {
        size_t want = end - at < (off_t)sizeof(chunk) ? (size_t)(end - at) : sizeof(chunk);
        ssize_t n = act_pread_all(in, chunk, want, at);
        if (n < 0 || act_pwrite_all(out, chunk, (size_t)n, at) < 0)
            return -1;
        if (n == 0)
            break;
        at += n;
    }
    return 0;
}

static int copy_range(int in, int out, off_t at, off_t end)
{
    off_t to = at;
    ssize_t n = 1;

    while (at < end && n > 0)
        n = copy_file_range(in, &at, out, &to, (size_t)(end - at), 0);
    return n >= 0 ? 0 : copy_by_hand(in, out, at, end);
}

int act_copy_content(int in, int out)
{
    struct stat st;

    if (ioctl(out, FICLONE, in) == 0)
        return 0;
    if (fstat(in, &st) < 0)
        return -1;
    for (off_t at = 0, data, hole; at < st.st_size; at = hole) {
        data = lseek(in, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) /* only a hole is left */
            break;
        hole = data < 0 ? -1 : lseek(in, data, SEEK_HOLE);
        if (hole < 0) { /* it does not know of holes */
            data = at;
            hole = st.st_size;
        }
        if (copy_range(in, out, data, hole) < 0)
            return -1;
    }
    return ftruncate(out, st.st_size);
}

int act_file_copy(const char *from, const char *to, mode_t mode, struct act_error *err)
{
    int rc = 0;
    int in = open(from, O_RDONLY | O_CLOEXEC);

    if (in < 0)
        return act_error_errno(err, errno, "cannot read '%s'", from);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (out < 0) {
        rc = act_error_errno(err, errno, "cannot write '%s'", to);
        close(in);
        return rc;
    }
    int copied = act_copy_content(in, out);
    if (copied == 0)
        copied = fdatasync(out);
    int saved = errno;
    if (close(out) < 0 && copied == 0) { /* some file systems notice a quota only now */
        copied = -1;
        saved = errno;
    }
    if (copied < 0) {
        rc = act_error_errno(err, saved, "cannot copy '%s' to '%s'", from, to);
        unlink(to);
    }
    close(in);
    return rc;
}
