/* folder_part.c - the files in which blocks are gathered: part files and the maps beside them.
 *
 * Whoever works with a part file has it locked. What interrupted uploads left is removed only under that lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "store/folder.h"

void folder_map_name(const char *part, char out[NAME_MAX + 1])
{
    snprintf(out, NAME_MAX + 1, "%s" FOLDER_MAP, part);
}

/* Says why an upload cannot be locked. Without locks nobody can go on with one, but an upload under another id needs
 * none. */
static int part_lock_error(int errnum, struct act_error *err)
{
    if (errnum == EWOULDBLOCK)
        return act_error_set(err, ACT_TEMPORARY, "another process has this upload under way");
    return act_error_set(err, ACT_TEMPORARY, "its part file cannot be locked: %s", strerrordesc_np(errnum));
}

/* The holder of the lock may rename or remove the file, so it must still be there once locked. */
int folder_part_open(int dir, const char *part, int flags, mode_t mode, int *rc, struct act_error *err)
{
    enum { TRIES = 10 };
    struct stat there, own;

    for (int i = 0; i < TRIES; i++) {
        int fd = openat(dir, part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, mode);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
            *rc = fd < 0 ? act_error_errno(err, errno, "cannot open the part file") : part_lock_error(errno, err);
            if (fd >= 0)
                close(fd);
            return -1;
        }
        if (fstat(fd, &own) == 0 && S_ISREG(own.st_mode) && fstatat(dir, part, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            there.st_ino == own.st_ino)
            return fd;
        close(fd);
    }
    *rc = act_error_set(err, ACT_TEMPORARY, "its part file does not stay; upload it again");
    return -1;
}

/* Returns whether it is a symbolic link on its way to its place, which cannot be locked, and is there for a moment
 * only. */
static bool part_is_link(int dir, const char *part)
{
    struct stat st;

    return fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

int folder_part_remove(int dir, const char *part, struct act_error *err)
{
    char map[NAME_MAX + 1];
    int rc = 0, fd = folder_part_open(dir, part, 0, 0, &rc, err);

    if (fd < 0 && part_is_link(dir, part) && unlinkat(dir, part, 0) == 0)
        return 0;
    if (fd < 0)
        return rc;
    folder_map_name(part, map);
    if ((unlinkat(dir, map, 0) && errno != ENOENT) || unlinkat(dir, part, 0))
        rc = act_error_errno(err, errno, "cannot remove the part file");
    close(fd);
    return rc;
}

int folder_part_finish(const struct store_commit *commit, int fd, struct act_error *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return act_error_errno(err, errno, "cannot stat the part file");
    if ((uint64_t)st.st_size != commit->total)
        return act_error_set(err, ACT_TEMPORARY, "its part file has %jd of %ju bytes; upload it again from the start",
                             (intmax_t)st.st_size, (uintmax_t)commit->total);
    if (folder_set_attributes(&commit->attr, fd))
        return act_error_errno(err, errno, "cannot set mode and time");
    return folder_flush(fd) ? act_error_errno(err, errno, "cannot write") : 0;
}

/* ---- what interrupted uploads left */

bool folder_is_part(const char *name)
{
    const size_t key_hex = 16, id_hex = 2 * sizeof(struct store_upload_id);

    if (!act_starts_with(name, FOLDER_PART))
        return false;
    name += strlen(FOLDER_PART);
    ACT_AUTOFREE char *key = act_strndup(name, key_hex);
    return act_is_hex(key, key_hex) && name[key_hex] == '-' && act_is_hex(name + key_hex + 1, id_hex);
}

bool folder_is_temporary(const char *name)
{
    size_t len = strlen(name) - (act_ends_with(name, FOLDER_MAP) ? strlen(FOLDER_MAP) : 0);
    ACT_AUTOFREE char *part = act_strndup(name, len);

    return act_starts_with(name, FOLDER_PART) && folder_is_part(part);
}

bool folder_part_is_free(int dir, const char *part)
{
    struct act_error err;
    int rc = 0, fd = folder_part_open(dir, part, 0, 0, &rc, &err);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || part_is_link(dir, part);
}

int folder_clear(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    (void)job;
    return folder_part_remove(place->fd, place->name, err);
}

/* ---- uploads that were not begun: nobody has their id but the caller */

int folder_block(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    const struct store_put_block *block = &job->call->block;
    const struct store_data *data = &block->data;
    char part[FOLDER_PART_NAME];
    int rc = block->block_len ? 0 : folder_check_data(data, err);

    if (rc)
        return rc;
    folder_part_name(job->call->key, &block->upload_id, part);
    int fd = openat(place->fd, part, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return act_error_errno(err, errno, "cannot open the part file");
    int failed = act_pwrite_all(fd, data->bytes, data->len, (off_t)block->offset);
    int saved = errno;
    if (close(fd) && !failed)
        return act_error_errno(err, errno, "cannot write");
    if (failed)
        return act_error_errno(err, saved, "cannot write");
    store_sums_add(data->sums, data->bytes, data->len);
    return 0;
}

int folder_commit(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    const struct store_commit *commit = &job->call->commit;
    char part[FOLDER_PART_NAME];
    int create = commit->n_blocks == 0 ? O_CREAT : 0;

    folder_part_name(job->call->key, &commit->upload_id, part);
    int fd = openat(place->fd, part, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | create, 0666);
    if (fd < 0 && errno == ENOENT)
        return act_error_set(err, ACT_TEMPORARY, "the blocks of this upload are gone; upload it again");
    if (fd < 0)
        return act_error_errno(err, errno, "cannot open the part file");
    int rc = folder_part_finish(commit, fd, err);
    if (rc) {
        close(fd);
        return rc;
    }
    job->landing = (struct folder_landing){.fd = fd, .stays = true, .name = folder_name_part};
    memcpy(job->landing.part, part, sizeof(part));
    return 0;
}

int folder_drop(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    char part[FOLDER_PART_NAME];

    if (job->call->drop.keep)
        return 0;
    folder_part_name(job->call->key, &job->call->drop.upload_id, part);
    int rc = folder_part_remove(place->fd, part, err);
    return rc == -(int)ACT_NOT_FOUND ? 0 : rc;
}
