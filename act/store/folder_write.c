/* folder_write.c - objects come into the folder as part files that are renamed into place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/folder.h"

#define PART_NAME 80

static void part_name(const char *key, const struct store_upload_id *id, char out[PART_NAME])
{
    char key_hex[ACT_SHA256_HEX], id_hex[2 * sizeof(id->bytes) + 1];
    struct act_sha256 hash;

    act_sha256_init(&hash);
    act_sha256_add(&hash, key, strlen(key));
    act_sha256_done(&hash, key_hex);
    act_hex(id->bytes, sizeof(id->bytes), id_hex);
    snprintf(out, PART_NAME, FOLDER_PART "%.16s-%s", key_hex, id_hex);
}

static int set_attributes(const struct store_call *call, int fd)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, act_ns_timespec(call->attr.mtime_ns)};

    if (call->attr.mode >= 0 && fchmod(fd, (mode_t)call->attr.mode & 0777))
        return -1;
    return call->attr.mtime_ns ? futimens(fd, times) : 0;
}

/* As renameat2(RENAME_NOREPLACE), also where the file system does not have it. */
static int rename_new(int dir, const char *from, const char *to)
{
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return linkat(dir, from, dir, to, 0) ? -1 : unlinkat(dir, from, 0);
}

/* Makes the finished part file the object. */
static int put_in_place(struct store_call *call, struct folder_place *place, const char *part,
                        struct act_error *err)
{
    struct stat st;

    if (call->if_match &&
        (fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW) || folder_check_match(call, &st, err)))
        return folder_changed(err);
    int failed = call->if_absent ? rename_new(place->fd, part, place->name)
                                 : renameat(place->fd, part, place->fd, place->name);
    if (failed && call->if_absent && errno == EEXIST)
        return act_error_set(err, ACT_PARTIAL, "it exists already");
    if (failed && (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST))
        return act_error_set(err, ACT_FAIL, "there is a folder of this name");
    if (failed || fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW))
        return act_error_errno(err, errno, "cannot move the finished file into place");
    folder_fill(&call->entry, call->key, &st);
    return 0;
}

/* Writes the part file of a PUT. close() tells of errors that a network file system kept back. */
static int write_part(const struct store_call *call, int dir, const char *part)
{
    int fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

    if (fd < 0)
        return -1;
    int failed = act_write_all(fd, call->data, call->len) || set_attributes(call, fd);
    int saved = errno;
    if (close(fd) && !failed)
        return -1;
    errno = saved;
    return failed ? -1 : 0;
}

static int make_link(const struct store_call *call, int dir, const char *part)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, act_ns_timespec(call->attr.mtime_ns)};
    ACT_AUTOFREE char *target = act_strndup(call->data, call->len);

    if (symlinkat(target, dir, part))
        return -1;
    return call->attr.mtime_ns ? utimensat(dir, part, times, AT_SYMLINK_NOFOLLOW) : 0;
}

static int put_folder(struct store_call *call, struct folder_place *place, struct act_error *err)
{
    struct stat st;
    bool made = mkdirat(place->fd, place->name, 0777) == 0;

    if (!made && errno != EEXIST)
        return act_error_errno(err, errno, "cannot make the folder");
    if (!made && call->if_absent)
        return act_error_set(err, ACT_PARTIAL, "it exists already");

    int fd = openat(place->fd, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return act_error_set(err, ACT_FAIL, "there is a file of this name, not a folder");
    int rc = 0;
    if (set_attributes(call, fd) || fstat(fd, &st))
        rc = act_error_errno(err, errno, "cannot set mode and time of the folder");
    else
        folder_fill(&call->entry, call->key, &st);
    close(fd);
    return rc;
}

int folder_put(struct folder *folder, struct store_call *call, struct folder_place *place,
               struct act_error *err)
{
    struct store_upload_id id;
    char part[PART_NAME];
    bool is_link = call->attr.kind == STORE_SYMLINK;
    const char *problem = is_link ? folder_link_problem(call->key, call->data, call->len) : NULL;

    (void)folder;
    if (problem)
        return act_error_set(err, ACT_DENIED, "%s", problem);
    if (place->is_folder)
        return put_folder(call, place, err);

    act_random(id.bytes, sizeof(id.bytes));
    part_name(call->key, &id, part);
    int rc = 0;
    if (is_link ? make_link(call, place->fd, part) : write_part(call, place->fd, part))
        rc = act_error_errno(err, errno, "cannot write");
    if (rc == 0)
        rc = put_in_place(call, place, part, err);
    if (rc)
        unlinkat(place->fd, part, 0);
    return rc;
}

int folder_block(struct folder *folder, struct store_call *call, struct folder_place *place,
                 struct act_error *err)
{
    char part[PART_NAME];

    (void)folder;
    part_name(call->key, &call->upload_id, part);
    int fd = openat(place->fd, part, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return act_error_errno(err, errno, "cannot open the part file");
    int failed = act_pwrite_all(fd, call->data, call->len, (off_t)call->offset);
    int saved = errno;
    if (close(fd) && !failed)
        return act_error_errno(err, errno, "cannot write");
    return failed ? act_error_errno(err, saved, "cannot write") : 0;
}

/* Checks the length of the part file and gives it its attributes. */
static int finish_part(const struct store_call *call, int fd, struct act_error *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return act_error_errno(err, errno, "cannot stat the part file");
    if ((uint64_t)st.st_size != call->total)
        return act_error_set(err, ACT_TEMPORARY,
                             "its part file has %jd of %ju bytes; upload it again from the start",
                             (intmax_t)st.st_size, (uintmax_t)call->total);
    return set_attributes(call, fd) ? act_error_errno(err, errno, "cannot set mode and time") : 0;
}

int folder_commit(struct folder *folder, struct store_call *call, struct folder_place *place,
                  struct act_error *err)
{
    char part[PART_NAME];
    int create = call->n_blocks == 0 ? O_CREAT : 0;

    (void)folder;
    part_name(call->key, &call->upload_id, part);
    int fd = openat(place->fd, part, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | create, 0666);
    if (fd < 0 && errno == ENOENT)
        return act_error_set(err, ACT_TEMPORARY, "the blocks of this upload are gone; upload it again");
    if (fd < 0)
        return act_error_errno(err, errno, "cannot open the part file");
    int rc = finish_part(call, fd, err);
    close(fd);
    return rc ? rc : put_in_place(call, place, part, err);
}

int folder_drop(struct folder *folder, struct store_call *call, struct folder_place *place,
                struct act_error *err)
{
    char part[PART_NAME];

    (void)folder;
    part_name(call->key, &call->upload_id, part);
    if (unlinkat(place->fd, part, 0) && errno != ENOENT)
        return act_error_errno(err, errno, "cannot remove the part file");
    return 0;
}

/* ---- copying */

static int copy_bytes(int from, int to)
{
    char buf[1 << 16];
    ssize_t n = 0;

    while ((n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n == 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
        return n == 0 ? 0 : -1;
    while ((n = read(from, buf, sizeof(buf))) > 0)
        if (act_write_all(to, buf, (size_t)n))
            return -1;
    return n == 0 ? 0 : -1;
}

/* The call that the attributes of what is at source would have come with. */
static struct store_call like_source(const struct store_call *call, const struct stat *st)
{
    struct store_call like = *call;

    like.attr.mode = (int)(st->st_mode & 0777);
    like.attr.mtime_ns = act_timespec_ns(st->st_mtim);
    return like;
}

static int copy_file(const struct store_call *call, const struct folder_place *source,
                     const struct folder_place *place, const char *part, struct act_error *err)
{
    int rc = 0, to = -1;
    struct stat st;
    int from = openat(source->fd, source->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (from < 0 || fstat(from, &st)) {
        rc = act_error_errno(err, errno, "cannot open '%s'", call->source);
        goto out;
    }
    to = openat(place->fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    struct store_call like = like_source(call, &st);
    if (to < 0 || copy_bytes(from, to) || set_attributes(&like, to))
        rc = act_error_errno(err, errno, "cannot copy '%s'", call->source);
out:
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return rc;
}

static int copy_link(const struct store_call *call, const struct folder_place *source,
                     const struct folder_place *place, const struct stat *st, const char *part,
                     struct act_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(source->fd, source->name, target, sizeof(target));
    struct store_call like = like_source(call, st);

    if (n < 0)
        return act_error_errno(err, errno, "cannot read the link '%s'", call->source);
    const char *problem = folder_link_problem(call->key, target, (size_t)n);
    if (problem)
        return act_error_set(err, ACT_DENIED, "%s", problem);
    like.data = target;
    like.len = (size_t)n;
    return make_link(&like, place->fd, part) ? act_error_errno(err, errno, "cannot write") : 0;
}

static int copy_to_part(struct folder *folder, struct store_call *call, const struct folder_place *place,
                        const char *part, struct act_error *err)
{
    struct folder_place source;
    struct stat st;
    int rc = folder_find(folder, call->source, false, &source, err);

    if (rc)
        return rc;
    rc = folder_stat(&source, &st, err);
    if (rc)
        act_error_prefix(err, "'%s'", call->source);
    else if (S_ISDIR(st.st_mode))
        rc = act_error_set(err, ACT_USAGE, "'%s' is a folder", call->source);
    else if (S_ISLNK(st.st_mode))
        rc = copy_link(call, &source, place, &st, part, err);
    else
        rc = copy_file(call, &source, place, part, err);
    folder_place_release(&source);
    return rc;
}

int folder_copy(struct folder *folder, struct store_call *call, struct folder_place *place,
                struct act_error *err)
{
    struct store_upload_id id;
    char part[PART_NAME];
    const char *problem = folder_key_problem(call->source);

    if (problem)
        return act_error_set(err, ACT_FAIL, "the name '%s' %s", call->source, problem);
    act_random(id.bytes, sizeof(id.bytes));
    part_name(call->key, &id, part);
    int rc = copy_to_part(folder, call, place, part, err);
    if (rc == 0)
        rc = put_in_place(call, place, part, err);
    if (rc)
        unlinkat(place->fd, part, 0);
    return rc;
}
