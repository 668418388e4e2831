/* folder_write.c - writing whole objects to the folder.
 *
 * A new object is a file without a name until it is linked to its place: nothing is left when this process is
 * killed. To replace one, or where the file system has no such files, it is a part file that is renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/file.h"
#include "base/log.h"
#include "store/folder.h"

void folder_part_name(const char *key, const struct store_upload_id *id, char out[FOLDER_PART_NAME])
{
    char key_hex[ACT_SHA256_HEX], id_hex[2 * sizeof(id->bytes) + 1];
    struct act_sha256 hash;

    act_sha256_init(&hash);
    act_sha256_add(&hash, key, strlen(key));
    act_sha256_done(&hash, key_hex);
    act_hex(id->bytes, sizeof(id->bytes), id_hex);
    snprintf(out, FOLDER_PART_NAME, FOLDER_PART "%.16s-%s", key_hex, id_hex);
}

struct store_sums folder_begin_sums(const struct store_data *data)
{
    struct store_sums sums = {.want_md5 = data->md5 != NULL};

    act_md5_init(&sums.md5);
    return sums;
}

int folder_check_sums(const struct store_data *data, struct store_sums *sums, struct act_error *err)
{
    char md5[ACT_MD5_BASE64];

    if (data->crc64 && sums->crc64 != *data->crc64)
        return act_error_set(err, ACT_TEMPORARY, "its bytes are damaged: their CRC64 is not the one they had");
    if (!data->md5)
        return 0;
    act_md5_done(&sums->md5, md5);
    if (strcmp(md5, data->md5) != 0)
        return act_error_set(err, ACT_TEMPORARY, "its bytes are damaged: their MD5 is not the one they had");
    return 0;
}

int folder_check_data(const struct store_data *data, struct act_error *err)
{
    struct store_sums sums = folder_begin_sums(data);

    if (data->crc64)
        sums.crc64 = act_crc64(0, data->bytes, data->len);
    if (data->md5)
        act_md5_add(&sums.md5, data->bytes, data->len);
    return folder_check_sums(data, &sums, err);
}

static void random_part_name(const char *key, char out[FOLDER_PART_NAME])
{
    struct store_upload_id id;

    act_random(id.bytes, sizeof(id.bytes));
    folder_part_name(key, &id, out);
}

static mode_t folder_mode_of(const struct store_attributes *attr)
{
    return attr->mode >= 0 ? (mode_t)attr->mode & 0777 : 0666;
}

static int folder_set_time(const struct store_attributes *attr, int fd)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, act_ns_timespec(attr->mtime_ns)};

    return attr->mtime_ns ? futimens(fd, times) : 0;
}

int folder_set_attributes(const struct store_attributes *attr, int fd)
{
    struct stat st;

    /* a new file has its mode already, unless the umask or the folder took something from it */
    if (attr->mode >= 0 && (fstat(fd, &st) || ((st.st_mode & 0777) != folder_mode_of(attr) &&
                                               fchmod(fd, (st.st_mode & 07000) | folder_mode_of(attr)))))
        return -1;
    return folder_set_time(attr, fd);
}

int folder_flush(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -1 : close(copy);
}

/* Shows, to anyone who looks for leftovers, that a file with the name of a part file is in use. Where a file system
 * has no locks, its age has to tell. */
static void folder_hold_part(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB))
        act_trace("store", "a part file is not locked: %s", strerrordesc_np(errno));
}

static int folder_in_the_way(struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "there is a folder of this name: move it away first");
}

/* Says why the place is taken: by an object, or by a folder, which is in the way and not an object. */
static int folder_place_exists(const struct folder_place *place, struct act_error *err)
{
    struct stat st;

    if (!place->is_folder && fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return folder_in_the_way(err);
    return act_error_set(err, ACT_PARTIAL, "it exists already");
}

/* Makes the finished part file the object. */
int folder_put_in_place(struct store_call *call, struct folder_place *place, const char *part, struct act_error *err)
{
    const struct store_condition *condition = store_condition_of(call);
    struct stat st;

    if (condition->if_match && (fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW) ||
                                folder_check_match(condition->if_match, &st, err)))
        return folder_changed(err);
    int failed = condition->if_absent ? act_rename_new(place->fd, part, place->name)
                                      : renameat(place->fd, part, place->fd, place->name);
    if (failed && condition->if_absent && errno == EEXIST)
        return folder_place_exists(place, err);
    if (failed && (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST))
        return folder_in_the_way(err);
    if (failed || fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW))
        return act_error_errno(err, errno, "cannot move the finished file into place");
    folder_dir_changed(place);
    folder_fill(&call->entry, call->key, &st);
    return 0;
}

int folder_name_part(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    return folder_put_in_place(job->call, place, job->landing.part, err);
}

static int open_part(int dir, const char *part, mode_t mode)
{
    int fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd >= 0)
        folder_hold_part(fd);
    return fd;
}

/* Opens the file of a PUT. Where the file system can, it has no name, so that nothing is left when this process is
 * killed; elsewhere it is a part file. */
static int folder_open_new(const struct store_call *call, int dir, char part[FOLDER_PART_NAME])
{
    int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, folder_mode_of(&call->put.attr));

    *part = '\0';
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    random_part_name(call->key, part);
    return open_part(dir, part, folder_mode_of(&call->put.attr));
}

/* Gives a file without a name its first one, which nothing else has. Before Linux 6.10 the direct way is open only
 * to those who may read everything. */
static int name_file(int fd, int dir, const char *name)
{
    char path[32];

    if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW);
}

/* Removes what a killed process left under this name, unless a living process uses it. Returns whether it did. */
static bool folder_remove_stale(int dir, const char *part)
{
    int fd = openat(dir, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool removed = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(dir, part, 0) == 0;

    if (fd >= 0)
        close(fd);
    return removed;
}

/* Gives a file without a name one that it is renamed from. The name is the same each time, so that what a killed
 * process left there goes when the object is written again; while somebody uses it, it is another one. */
static int name_part(int fd, int dir, const char *key, char part[FOLDER_PART_NAME])
{
    folder_hold_part(fd);
    folder_part_name(key, &(struct store_upload_id){{0}}, part);
    if (name_file(fd, dir, part) == 0)
        return 0;
    if (errno == EEXIST && folder_remove_stale(dir, part) && name_file(fd, dir, part) == 0)
        return 0;
    random_part_name(key, part);
    return name_file(fd, dir, part);
}

/* Makes a file without a name the object. To replace one it needs a name that it is renamed from. */
static int name_unnamed(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct store_call *call = job->call;
    const struct store_condition *condition = &call->put.condition;
    char *part = job->landing.part;
    int fd = job->landing.fd;
    struct stat st;

    if (!condition->if_match && name_file(fd, place->fd, place->name) == 0) {
        if (fstat(fd, &st))
            return act_error_errno(err, errno, "cannot stat");
        folder_dir_changed(place);
        folder_fill(&call->entry, call->key, &st);
        return 0;
    }
    if (!condition->if_match && errno != EEXIST)
        return act_error_errno(err, errno, "cannot move the finished file into place");
    if (!condition->if_match && condition->if_absent)
        return folder_place_exists(place, err);
    if (name_part(fd, place->fd, call->key, part))
        return act_error_errno(err, errno, "cannot name the finished file");
    return folder_put_in_place(call, place, part, err);
}

static int folder_write_new(int fd, const void *data, size_t len)
{
    bool holes = false;

    if (folder_write_sparse(fd, data, len, 0, true, &holes))
        return -1;
    return holes ? ftruncate(fd, (off_t)len) : 0;
}

static int folder_put_file(struct folder_job *job, const struct folder_place *place, struct act_error *err)
{
    const struct store_call *call = job->call;
    struct folder_landing *l = &job->landing;
    int rc = 0;

    *l = (struct folder_landing){0};
    l->fd = folder_open_new(call, place->fd, l->part);
    bool unnamed = *l->part == '\0';
    if (l->fd < 0)
        return act_error_errno(err, errno, "cannot write");
    if (folder_write_new(l->fd, call->put.data.bytes, call->put.data.len) ||
        folder_set_attributes(&call->put.attr, l->fd) || (!unnamed && folder_flush(l->fd))) {
        rc = act_error_errno(err, errno, "cannot write");
        folder_landing_end(l, place, true);
        return rc;
    }
    l->name = unnamed ? name_unnamed : folder_name_part;
    return 0;
}

enum { LINK_TRIES = 20 };

static int make_symlink(const char *target, const struct store_attributes *attr, int dir, const char *part)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, act_ns_timespec(attr->mtime_ns)};

    if (symlinkat(target, dir, part))
        return -1;
    return attr->mtime_ns ? utimensat(dir, part, times, AT_SYMLINK_NOFOLLOW) : 0;
}

/* Sets mode (-1: none) and time of a folder, which only its owner can. */
static int set_folder_attributes(struct folder_job *job, int fd, int mode)
{
    struct store_call *call = job->call;
    struct stat st;

    if (mode >= 0 && folder_set_mode(job->folder, fd, call->key, strlen(call->key) - 1, mode))
        return -1;
    if ((folder_set_time(&call->put.attr, fd) && errno != EPERM) || fstat(fd, &st))
        return -1;
    folder_fill(&call->entry, call->key, &st);
    if (mode >= 0 && call->entry.mode == (mode | S_IWUSR)) /* it is what it will be */
        call->entry.mode = mode;
    return 0;
}

static int folder_write_put(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    int wanted = job->call->put.attr.mode, mode = wanted < 0 ? -1 : store_folder_mode((unsigned)wanted);
    bool made = mkdirat(place->fd, place->name, mode < 0 ? 0777 : (mode_t)mode | S_IRWXU) == 0;

    if (!made && errno != EEXIST)
        return act_error_errno(err, errno, "cannot make the folder");
    int fd = openat(place->fd, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return act_error_set(err, ACT_FAIL, "there is a file of this name, not a folder: move it away first");
    int rc = set_folder_attributes(job, fd, mode);
    if (rc)
        rc = act_error_errno(err, errno, "cannot set mode and time of the folder");
    folder_dir_changed(place);
    close(fd);
    return rc;
}

static int put_link(struct store_call *call, struct folder_place *place, struct act_error *err)
{
    char part[FOLDER_PART_NAME];
    const struct store_put *put = &call->put;
    const char *problem = folder_link_problem(call->key, put->data.bytes, put->data.len);
    ACT_AUTOFREE char *target = act_strndup(put->data.bytes, put->data.len);

    if (problem)
        return act_error_set(err, ACT_DENIED, "%s", problem);
    /* Every link of this key has one temporary name, so that the next one replaces what a kill leaves behind.
     * Another process may do the same just now, and take our link away or put it in place for its own. */
    folder_part_name(call->key, &(struct store_upload_id){{0}}, part);
    for (int tries = 0;; tries++) {
        unlinkat(place->fd, part, 0);
        bool made = make_symlink(target, &put->attr, place->fd, part) == 0;
        int rc = made ? folder_put_in_place(call, place, part, err) : act_error_errno(err, errno, "cannot write");
        bool disturbed = rc == -(int)ACT_NOT_FOUND || (!made && errno == EEXIST);
        if (rc == 0 || !disturbed || tries == LINK_TRIES) {
            if (rc)
                unlinkat(place->fd, part, 0);
            return rc;
        }
    }
}

int folder_put(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct store_call *call = job->call;
    int rc = folder_check_data(&call->put.data, err);

    if (rc)
        return rc;
    if (place->is_folder)
        return folder_write_put(job, place, err);
    return call->put.attr.kind == STORE_SYMLINK ? put_link(call, place, err) : folder_put_file(job, place, err);
}

/* ---- copying */

/* Returns the attributes of what is at the source. */
static struct store_attributes folder_attributes_of(const struct stat *st)
{
    return (struct store_attributes){.mode = (int)(st->st_mode & 0777), .mtime_ns = act_timespec_ns(st->st_mtim)};
}

/* Copies into a part file, which it gives in *to and which is held until it is in its place. */
static int copy_file(const struct store_call *call, const struct folder_place *source, const struct folder_place *place,
                     const char *part, int *to, struct act_error *err)
{
    struct stat st;
    int rc = 0, from = openat(source->fd, source->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (from < 0 || fstat(from, &st)) {
        rc = act_error_errno(err, errno, "cannot open '%s'", call->copy.source);
        goto out;
    }
    struct store_attributes attr = folder_attributes_of(&st);
    *to = open_part(place->fd, part, folder_mode_of(&attr));
    if (*to < 0 || act_copy_content(from, *to) || folder_set_attributes(&attr, *to) || folder_flush(*to))
        rc = act_error_errno(err, errno, "cannot copy '%s'", call->copy.source);
out:
    if (from >= 0)
        close(from);
    return rc;
}

static int copy_link(const struct store_call *call, const struct folder_place *source, const struct folder_place *place,
                     const struct stat *st, const char *part, struct act_error *err)
{
    char target[PATH_MAX + 1];
    ssize_t n = readlinkat(source->fd, source->name, target, sizeof(target) - 1);
    struct store_attributes attr = folder_attributes_of(st);

    if (n < 0)
        return act_error_errno(err, errno, "cannot read the link '%s'", call->copy.source);
    const char *problem = folder_link_problem(call->key, target, (size_t)n);
    if (problem)
        return act_error_set(err, ACT_DENIED, "%s", problem);
    target[n] = '\0';
    return make_symlink(target, &attr, place->fd, part) ? act_error_errno(err, errno, "cannot write") : 0;
}

static int copy_to_part(struct folder *folder, struct store_call *call, const struct folder_place *place,
                        const char *part, int *to, struct act_error *err)
{
    struct folder_place source;
    struct stat st;
    int rc = folder_find(folder, call->copy.source, false, true, &source, err);

    if (rc)
        return rc;
    rc = folder_stat(&source, &st, err);
    if (rc)
        act_error_prefix(err, "'%s'", call->copy.source);
    else if (S_ISDIR(st.st_mode))
        rc = act_error_set(err, ACT_USAGE, "'%s' is a folder", call->copy.source);
    else if (S_ISLNK(st.st_mode))
        rc = copy_link(call, &source, place, &st, part, err);
    else
        rc = copy_file(call, &source, place, part, to, err);
    folder_place_release(&source);
    return rc;
}

int folder_copy(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct store_call *call = job->call;
    struct folder_landing *l = &job->landing;
    const char *problem = folder_key_problem(call->copy.source);

    if (problem)
        return act_error_set(err, ACT_FAIL, "the name '%s' %s", call->copy.source, problem);
    *l = (struct folder_landing){.fd = -1, .name = folder_name_part};
    random_part_name(call->key, l->part);
    int rc = copy_to_part(job->folder, call, place, l->part, &l->fd, err);
    if (rc)
        folder_landing_end(l, place, true);
    return rc;
}
