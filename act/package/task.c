/* task.c - what workers do: read and compress files, read and verify blocks of the last package.
 *
 * Each file is compared with the scan before and after it is read, and so is each piece of a large one, so that all
 * of them come from one state. A log that somebody writes to is never the same twice: where the caller says so, of a
 * file that has only become longer the bytes that it had are taken, as tar does.
 */
#include "package/task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

/* Changes */

static bool is_unchanged(const struct package_entry *entry, const struct stat *st)
{
    return (st->st_mode & (S_IFMT | 0777)) == entry->mode && (uint64_t)st->st_size == entry->size &&
           act_timespec_ns(st->st_mtim) == entry->mtime_ns && act_timespec_ns(st->st_ctim) == entry->ctime_ns &&
           st->st_ino == entry->inode;
}

static bool has_grown(const struct package_entry *entry, const struct stat *st)
{
    return (st->st_mode & (S_IFMT | 0777)) == entry->mode && (uint64_t)st->st_size > entry->size &&
           act_timespec_ns(st->st_mtim) >= entry->mtime_ns && st->st_ino == entry->inode;
}

static int fail_changed(struct package_task *task, const struct package_entry *entry)
{
    ACT_AUTOFREE char *name = package_printable(entry->path);

    return act_error_set(&task->error, ACT_TEMPORARY,
                         "'%s' changed while it was packaged; try again when nothing writes to it, or leave it out in "
                         "'.actignore'",
                         name);
}

/* A file that is gone or was replaced counts as changed. */
static int fail_errno(struct package_task *task, const struct package_entry *entry, int errnum)
{
    if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
        return fail_changed(task, entry);
    ACT_AUTOFREE char *name = package_printable(entry->path);
    return act_error_errno(&task->error, errnum, "cannot read '%s'", name);
}

/* Files */

static int task_check(struct package_task *task, const struct package_entry *entry, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return fail_errno(task, entry, errno);
    if (is_unchanged(entry, &st))
        return 0;
    if (!task->grew || !has_grown(entry, &st))
        return fail_changed(task, entry);
    atomic_store(&task->grew[entry - task->entries], true);
    return 0;
}

static int read_checked(struct package_task *task, const struct package_entry *entry, int fd, uint64_t offset,
                        void *data, size_t len)
{
    int rc = task_check(task, entry, fd);

    if (rc < 0)
        return rc;
    ssize_t n = act_pread_all(fd, data, len, (off_t)offset);
    if (n < 0)
        return fail_errno(task, entry, errno);
    return (size_t)n < len ? fail_changed(task, entry) : task_check(task, entry, fd);
}

/* Reads exactly the range of a file, which must be as it was when it was scanned. */
static int read_range(struct package_task *task, const struct package_entry *entry, uint64_t offset, void *data,
                      size_t len)
{
    int fd = openat(task->root_fd, entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return fail_errno(task, entry, errno);
    int rc = read_checked(task, entry, fd, offset, data, len);
    close(fd);
    return rc;
}

/* Reads the target of a link. */
static int read_link(struct package_task *task, const struct package_entry *entry, char *data)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t len = readlinkat(task->root_fd, entry->path, target, sizeof(target));

    if (len < 0)
        return errno == EINVAL ? fail_changed(task, entry) : fail_errno(task, entry, errno);
    if (fstatat(task->root_fd, entry->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_errno(task, entry, errno);
    if (!is_unchanged(entry, &st) || (uint64_t)len != entry->size)
        return fail_changed(task, entry);
    memcpy(data, target, (size_t)len);
    return 0;
}

/* Batches */

static uint64_t task_largest(const struct package_task *task)
{
    uint64_t most = 0;

    for (size_t i = 0; i < task->n; i++)
        if (task->entries[i].size > most)
            most = task->entries[i].size;
    return most;
}

static size_t batch_bound(const struct package_task *task)
{
    size_t bound = 1;

    for (size_t i = 0; i < task->n; i++)
        bound += package_piece_bound(task->entries[i].size);
    return bound;
}

/* Refuses a file that judge() keeps out: nobody looked at it before, or its secret is new. */
static int judge_entry(struct package_task *task, const struct package_entry *entry, const void *data)
{
    char *rule = task->judge && entry->size > 0 ? task->judge(entry->path, data, entry->size) : NULL;

    if (!rule)
        return 0;
    free(rule);
    fail_changed(task, entry);
    return -ACT_PARTIAL;
}

/* Stores whatever is not a file, or an empty one. data holds the largest entry, out the rest of the bound. */
static int task_add_entry(struct package_task *task, size_t i, struct package_deflater *d, uint8_t *data, size_t at,
                          uint8_t *out)
{
    const struct package_entry *entry = &task->entries[i];
    size_t len = entry->size, packed = len;
    int rc = 0;

    if (S_ISLNK(entry->mode))
        rc = read_link(task, entry, (char *)data);
    else if (S_ISREG(entry->mode))
        rc = read_range(task, entry, 0, data, len);
    if (rc == 0 && S_ISREG(entry->mode))
        rc = judge_entry(task, entry, data);
    if (rc < 0)
        return rc;
    if (package_is_deflated(entry))
        packed = package_deflate_whole(d, data, len, out);
    else
        memcpy(out, data, len);
    task->items[i] = (struct package_item){.data = at, .packed = packed, .crc = package_crc(data, len)};
    return 0;
}

static int run_batch(struct package_task *task)
{
    ACT_AUTOFREE uint8_t *data = act_alloc(task_largest(task) + 1);
    struct package_deflater *d = package_deflater_take(task->deflaters);
    int rc = 0;

    task->buffer = act_alloc(batch_bound(task));
    task->bytes = task->buffer;
    for (size_t i = 0; i < task->n && rc == 0; i++) {
        rc = task_add_entry(task, i, d, data, task->n_bytes, (uint8_t *)task->buffer + task->n_bytes);
        task->n_bytes += task->items[i].packed;
    }
    package_deflater_give(task->deflaters, d);
    return rc;
}

/* Pieces and blocks */

static int run_piece(struct package_task *task)
{
    size_t before = task->offset < PACKAGE_DICTIONARY ? task->offset : PACKAGE_DICTIONARY;
    ACT_AUTOFREE uint8_t *data = act_alloc(before + task->len);
    int rc = read_range(task, task->entries, task->offset - before, data, before + task->len);

    if (rc < 0)
        return rc;
    task->crc = package_crc(data + before, task->len);
    task->buffer = act_alloc(package_piece_bound(task->len));
    task->bytes = task->buffer;
    struct package_deflater *d = package_deflater_take(task->deflaters);
    task->n_bytes = package_deflate_piece(d, data + before, task->len, before, task->last, (uint8_t *)task->buffer);
    package_deflater_give(task->deflaters, d);
    return 0;
}

static void block_id(const void *data, size_t len, uint8_t out[PACKAGE_BLOCK_ID])
{
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, data, len);
    act_sha256_bytes(&h, out, PACKAGE_BLOCK_ID);
}

void package_block_sum(struct package_block *block, const void *data)
{
    block_id(data, block->len, block->id);
    block->crc64 = act_crc64(0, data, block->len);
}

/* Reads all of the block, to verify it, unless that was done before. */
static int run_copy(struct package_task *task)
{
    const struct package_block *block = task->block;
    uint64_t from = task->is_good ? task->offset : block->offset;
    size_t len = task->is_good ? task->len : block->len;
    uint8_t id[PACKAGE_BLOCK_ID];

    task->buffer = act_alloc(len);
    task->bytes = task->buffer + (task->offset - from);
    task->n_bytes = task->len;
    task->is_damaged = act_pread_all(task->last_fd, task->buffer, len, (off_t)from) != (ssize_t)len;
    if (!task->is_damaged && !task->is_good) {
        block_id(task->buffer, len, id);
        task->is_damaged = memcmp(id, block->id, sizeof(id)) != 0;
    }
    return task->is_damaged ? -ACT_FAIL : 0;
}

size_t package_task_memory(const struct package_task *task)
{
    switch (task->kind) {
    case PACKAGE_BATCH:
        return task_largest(task) + batch_bound(task);
    case PACKAGE_PIECE:
        return PACKAGE_DICTIONARY + task->len + package_piece_bound(task->len);
    case PACKAGE_COPY:
        return task->is_good ? task->len : task->block->len;
    }
    return 0;
}

void package_task_run(struct package_task *task)
{
    static int (*const runs[])(struct package_task *) = {
        [PACKAGE_BATCH] = run_batch, [PACKAGE_PIECE] = run_piece, [PACKAGE_COPY] = run_copy};

    task->rc = runs[task->kind](task);
}
