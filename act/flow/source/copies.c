/* copies.c - copies of logs in files. Each is a prefix of its log at every moment, whatever fails and whichever process
 * is killed: nothing needs repair, and its length says where to continue.
 *
 * A job that is started again may write another log under the same name. It is known by being shorter; or, where a file
 * is gone on with, by other bytes before those that are new: a few of them are read too, and compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "flow/source/source.h"

/* A file that lacks the bytes before these is left alone: there is never a hole. */
static int write_copy(void *arg, uint64_t at, const void *data, size_t len, struct act_error *err)
{
    const struct flow_copy *copy = arg;
    int fd = act_open_below(copy->root, copy->path, O_WRONLY, err), rc = 0;
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", copy->path);
    else if ((uint64_t)st.st_size < at)
        rc = act_error_set(err, ACT_TEMPORARY, "cannot write '%s': something else made it shorter meanwhile",
                           copy->path);
    else if (act_pwrite_all(fd, data, len, (off_t)at) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", copy->path);
    close(fd);
    return rc;
}

/* Returns how many bytes of its log a file of this state has. */
static uint64_t copied(const struct stat *st, uint64_t size, int64_t whole_ns)
{
    bool is_another = (uint64_t)st->st_size > size || act_timespec_ns(st->st_mtim) > whole_ns;

    return is_another ? 0 : (uint64_t)st->st_size;
}

uint64_t flow_copied(const char *root, const char *path, uint64_t size, int64_t whole_ns)
{
    int fd = act_open_below(root, path, O_PATH, NULL);
    struct stat st;
    bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

    if (fd >= 0)
        close(fd);
    return is_file ? copied(&st, size, whole_ns) : 0;
}

int flow_begin_copy(struct flow_copy *copy, const char *name, uint64_t size, int64_t whole_ns,
                    struct transfer_stretch *out, struct act_error *err)
{
    struct stat st = {0};
    int fd = act_open_below(copy->root, copy->path, O_RDWR | O_CREAT, err);

    if (fd < 0)
        return fd;
    int rc = fstat(fd, &st);
    uint64_t have = copied(&st, size, whole_ns);
    size_t before = have < sizeof(copy->before) ? (size_t)have : sizeof(copy->before);
    if (rc < 0 || ((uint64_t)st.st_size > have && ftruncate(fd, 0) < 0) ||
        act_pread_all(fd, copy->before, before, (off_t)(have - before)) != (ssize_t)before)
        rc = act_error_errno(err, errno, "cannot write '%s'", copy->path);
    close(fd);
    *out = (struct transfer_stretch){.key = name,
                                     .offset = have,
                                     .end = size,
                                     .before = copy->before,
                                     .before_len = before,
                                     .write = write_copy,
                                     .arg = copy};
    return rc;
}
