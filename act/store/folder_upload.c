/* folder_upload.c - objects that come in blocks.
 *
 * The blocks of an upload are written at their offsets into one part file beside the object's place. An upload
 * that was begun with STORE_BLOCKS is locked for as long as this store has it open, and a map beside its part
 * file has a record of each block that is complete, appended when the block's bytes were written. So an upload
 * that was interrupted goes on where it ended. A record is only a claim: it is believed when the bytes on disk
 * have its checksum, whatever became of them in the meantime.
 *
 * A map is removed before its part file is, and made after it: every map has its part file. What is known of
 * the uploads that are open is changed on the loop only; the workers have the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/crc64.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/engine.h"
#include "store/folder.h"

enum {
    CHECK_BYTES = 1 << 20,             /* read at once to check a block */
    MAX_RECORDS = 2 * STORE_MAX_BLOCKS /* read from a map: blocks that were sent twice have two */
};

struct folder_upload {
    char *key;
    struct store_upload_id id;
    struct folder_place place;
    char part[FOLDER_PART_NAME];
    int fd, map_fd;
    uint64_t total;               /* bytes of the whole, 0: not known */
    struct folder_record *blocks; /* by index; len 0: not complete */
    uint32_t n_blocks;            /* room in blocks */
    bool resumed;                 /* it has blocks of another process */
    atomic_bool holes;            /* some of it was not written, as it is zeros */
    int calls;                    /* under way */
    struct engine_lane *writes;   /* of blocks */
    bool over;                    /* committed or dropped */
    struct folder_upload *next;
};

/* ---- the open uploads, on the loop */

/* Returns the upload that the call belongs to; NULL: none. */
static const struct store_upload_id *folder_own_upload(const struct store_call *call)
{
    return call->op == STORE_BLOCKS   ? &call->blocks.upload_id
           : call->op == STORE_BLOCK  ? &call->block.upload_id
           : call->op == STORE_COMMIT ? &call->commit.upload_id
           : call->op == STORE_DROP   ? &call->drop.upload_id
           : call->op == STORE_GET    ? call->get.upload
                                      : NULL;
}

static struct folder_upload *folder_find_upload(const struct folder *folder, const char *key,
                                                const struct store_upload_id *id)
{
    struct folder_upload *u = folder->uploads;

    while (u && (memcmp(&u->id, id, sizeof(u->id)) != 0 || strcmp(u->key, key) != 0))
        u = u->next;
    return u;
}

static void close_files(struct folder_upload *u)
{
    if (u->map_fd >= 0)
        close(u->map_fd);
    if (u->fd >= 0)
        close(u->fd);
    u->fd = u->map_fd = -1;
    folder_place_release(&u->place);
}

static void folder_free_upload(struct folder_upload *u)
{
    if (!u)
        return;
    close_files(u);
    engine_lane_free(u->writes);
    free(u->blocks);
    free(u->key);
    free(u);
}

/* Takes note of a complete block. */
static void note_record(struct folder_upload *u, const struct folder_record *record)
{
    if (record->index >= u->n_blocks) {
        uint32_t n = 2 * record->index + 16;
        u->blocks = act_realloc(u->blocks, n * sizeof(*u->blocks));
        memset(u->blocks + u->n_blocks, 0, (n - u->n_blocks) * sizeof(*u->blocks));
        u->n_blocks = n;
    }
    u->blocks[record->index] = *record;
}

static void forget_record(struct folder_upload *u, uint32_t index)
{
    if (index < u->n_blocks)
        u->blocks[index].len = 0;
}

/* Returns the end of the complete blocks that follow one another from `offset` on. */
static uint64_t complete_from(const struct folder_upload *u, uint64_t offset)
{
    for (uint32_t i = 0; i < u->n_blocks; i++) {
        const struct folder_record *b = &u->blocks[i];
        if (b->len && b->offset <= offset && offset - b->offset < b->len)
            offset = b->offset + b->len;
    }
    return offset;
}

/* Checks that the blocks of a COMMIT are all there, one after another. */
static int folder_upload_check_whole(const struct folder_upload *u, struct store_call *call)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < call->commit.n_blocks; i++) {
        if (i >= u->n_blocks || u->blocks[i].len == 0 || u->blocks[i].offset != end) {
            act_error_set(&call->error, ACT_TEMPORARY, "block %u of its upload is missing; upload it again", i);
            call->error.fact = ACT_FACT_BLOCKS_MISSING;
            return -ACT_TEMPORARY;
        }
        end += u->blocks[i].len;
    }
    if (end != call->commit.total)
        return act_error_set(&call->error, ACT_TEMPORARY,
                             "its blocks have %ju of %ju bytes; upload it again from the start", (uintmax_t)end,
                             (uintmax_t)call->commit.total);
    return 0;
}

/* Checks that the bytes of a GET are there. */
static int upload_check_range(const struct folder_upload *u, struct store_call *call)
{
    uint64_t end = call->get.offset + call->get.sink_cap;

    if (u->total && end > u->total)
        end = u->total;
    if (call->get.offset < end && complete_from(u, call->get.offset) < end)
        return act_error_set(&call->error, ACT_NOT_FOUND, "these bytes were not uploaded yet");
    return 0;
}

void folder_upload_attach(struct folder_job *job)
{
    struct store_call *call = job->call;
    const struct store_upload_id *id = folder_own_upload(call);

    if (!id)
        return;
    job->upload = folder_find_upload(job->folder, call->key, id);
    if (!job->upload) {
        if (call->op == STORE_GET)
            call->rc = act_error_set(&call->error, ACT_NOT_FOUND, "this upload was not begun");
        return;
    }
    job->upload->calls++;
    if (call->op == STORE_COMMIT)
        call->rc = folder_upload_check_whole(job->upload, call);
    else if (call->op == STORE_GET)
        call->rc = upload_check_range(job->upload, call);
    else if (call->op == STORE_BLOCK)
        forget_record(job->upload, call->block.index);
}

struct engine_lane *folder_upload_lane(const struct folder_job *job)
{
    return job->call->op == STORE_BLOCK && job->upload ? job->upload->writes : NULL;
}

static void unlink_upload(struct folder *folder, struct folder_upload *u)
{
    struct folder_upload **at = &folder->uploads;

    while (*at && *at != u)
        at = &(*at)->next;
    if (*at)
        *at = u->next;
}

/* Tells the caller which blocks are complete. */
static void tell_blocks(const struct folder_upload *u, struct store_blocks *out)
{
    out->found = act_calloc(u->n_blocks + 1, sizeof(*out->found));
    out->n_found = 0;
    for (uint32_t i = 0; i < u->n_blocks; i++) {
        const struct folder_record *b = &u->blocks[i];
        if (b->len == 0)
            continue;
        struct store_block *found = &out->found[out->n_found++];
        *found = (struct store_block){.len = b->len, .has_crc64 = true, .crc64 = b->crc64};
        store_block_id(&u->id, i, found->id);
    }
}

void folder_upload_detach(struct folder_job *job)
{
    struct folder_upload *u = job->upload;
    struct store_call *call = job->call;

    if (job->begun) {
        u = job->begun;
        u->next = job->folder->uploads;
        job->folder->uploads = u;
    }
    if (!u)
        return;
    if (call->rc == 0 && call->op == STORE_BLOCKS)
        tell_blocks(u, &call->blocks);
    if (call->rc == 0 && call->op == STORE_BLOCK && !call->block.more)
        note_record(u, &job->record);
    if (call->rc == 0 && (call->op == STORE_COMMIT || call->op == STORE_DROP)) {
        u->over = true; /* its files are closed with it */
        unlink_upload(job->folder, u);
    }
    if (--u->calls == 0 && u->over)
        folder_free_upload(u);
}

void folder_uploads_close(struct folder *folder)
{
    while (folder->uploads) {
        struct folder_upload *u = folder->uploads;
        folder->uploads = u->next;
        folder_free_upload(u);
    }
}

/* ---- its part file and its map, on a worker */

/* Returns whether a name in the folder is a part file of this object, or the map of one, but not of this upload.
 * Gives the name of the part file. */
static bool is_of_another(const struct folder_upload *u, const char *name, char part[FOLDER_PART_NAME])
{
    size_t len = strlen(name) - (act_ends_with(name, FOLDER_MAP) ? strlen(FOLDER_MAP) : 0);

    if (len != strlen(u->part) || strncmp(name, u->part, len - 2 * sizeof(u->id)) != 0 ||
        strncmp(name, u->part, len) == 0)
        return false;
    snprintf(part, FOLDER_PART_NAME, "%.*s", (int)len, name);
    return folder_is_part(part);
}

/* Removes leftovers of this object's earlier uploads from another source: nobody will resume them. */
static void upload_remove_stale(const struct folder_upload *u)
{
    const struct act_strv *names = folder_dir_parts(&u->place);
    char part[FOLDER_PART_NAME];

    for (size_t i = 0; i < names->n; i++)
        if (is_of_another(u, names->v[i], part) && folder_part_remove(u->place.fd, part, NULL) == -(int)ACT_NOT_FOUND &&
            act_ends_with(names->v[i], FOLDER_MAP))
            unlinkat(u->place.fd, names->v[i], 0);
}

/* Returns 0, or -1 with errno when there is less room than what is still to come needs. */
static int look_for_room(const struct folder_upload *u, const struct statfs *fs)
{
    struct stat st;

    if (fstat(u->fd, &st))
        return -1;
    uint64_t has = (uint64_t)st.st_blocks * 512, room = (uint64_t)fs->f_bavail * (uint64_t)fs->f_bsize;
    bool limited = fs->f_blocks > 0;
    if (!limited || u->total <= has || u->total - has <= room)
        return 0;
    errno = ENOSPC;
    return -1;
}

/* Takes the room of the whole file at once, where the file system can, so that a full disk shows before anything was
 * sent. The length stays that of what was written: should the power fail, it tells what is missing. On tmpfs taking
 * room is as much work as writing, so there this only looks how much is free. */
static int take_room(const struct folder_upload *u, struct act_error *err)
{
    struct statfs fs;

    if (u->total == 0)
        return 0;
    bool in_memory = fstatfs(u->fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
    int failed = in_memory ? look_for_room(u, &fs) : fallocate(u->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)u->total);
    if (failed && errno != EOPNOTSUPP && errno != ENOSYS)
        return act_error_errno(err, errno, "cannot take %ju bytes", (uintmax_t)u->total);
    return 0;
}

static uint32_t check_of(const struct folder_record *r)
{
    return (uint32_t)act_crc64(0, r, offsetof(struct folder_record, check));
}

/* Returns whether the record is intact and matches the bytes on disk. Zeros at the end were not written: behind the end
 * of the file all bytes are zeros, as they are when it gets its length. */
static bool record_is_true(const struct folder_upload *u, const struct folder_record *r, char *buf)
{
    uint64_t crc = 0, done = 0, end = u->total ? u->total : INT64_MAX;

    if (r->check != check_of(r) || r->len == 0 || r->index >= STORE_MAX_BLOCKS || r->offset > end ||
        r->len > end - r->offset)
        return false;
    while (done < r->len) {
        size_t want = r->len - done < CHECK_BYTES ? r->len - done : CHECK_BYTES;
        ssize_t got = act_pread_all(u->fd, buf, want, (off_t)(r->offset + done));
        if (got < 0)
            return false;
        memset(buf + got, 0, want - (size_t)got);
        crc = act_crc64(crc, buf, want);
        done += want;
    }
    return crc == r->crc64;
}

/* Reads the records of a map and keeps those that are true, in the map as well. */
static int upload_read_map(struct folder_upload *u, struct act_error *err)
{
    size_t size = MAX_RECORDS * sizeof(struct folder_record), kept = 0;
    ACT_AUTOFREE struct folder_record *records = act_alloc(size);
    ACT_AUTOFREE char *buf = act_alloc(CHECK_BYTES);
    ssize_t got = act_pread_all(u->map_fd, records, size, 0);

    if (got < 0)
        return act_error_errno(err, errno, "cannot read the map of its part file");
    for (size_t i = 0; i < (size_t)got / sizeof(*records); i++)
        if (record_is_true(u, &records[i], buf)) {
            note_record(u, &records[i]);
            records[kept++] = records[i];
            u->resumed = true;
        }
    if ((size_t)got == kept * sizeof(*records))
        return 0;
    if (ftruncate(u->map_fd, 0) || act_write_all(u->map_fd, records, kept * sizeof(*records)))
        return act_error_errno(err, errno, "cannot write the map of its part file");
    return 0;
}

static int upload_open_map(struct folder_upload *u, const char *map, struct act_error *err)
{
    u->map_fd = openat(u->place.fd, map, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    return u->map_fd < 0 ? act_error_errno(err, errno, "cannot open the map of its part file") : 0;
}

/* Frees the space reserved beyond what was written. */
static void give_back_room(const struct folder_upload *u)
{
    struct stat st;

    if (fstat(u->fd, &st) || ftruncate(u->fd, st.st_size))
        act_trace("store", "the room of '%s' is not given back", u->part);
}

/* Ends an upload that cannot begin: removes what it made, and gives back the room that it took. */
static void upload_give_up(const struct folder_upload *u, const char *map)
{
    struct stat st;

    give_back_room(u);
    if (fstat(u->fd, &st) || st.st_size > 0)
        return;
    unlinkat(u->place.fd, map, 0);
    unlinkat(u->place.fd, u->part, 0);
}

static int open_upload(struct folder_upload *u, mode_t mode, struct act_error *err)
{
    char map[NAME_MAX + 1];
    int rc = 0;

    u->fd = folder_part_open(u->place.fd, u->part, O_CREAT, mode, &rc, err);
    if (u->fd < 0)
        return rc;
    upload_remove_stale(u);
    folder_map_name(u->part, map);
    rc = upload_open_map(u, map, err);
    if (rc == 0)
        rc = take_room(u, err);
    if (rc == 0)
        rc = upload_read_map(u, err);
    if (rc)
        upload_give_up(u, map);
    return rc;
}

int folder_blocks(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct store_call *call = job->call;
    struct folder_upload *u = act_calloc(1, sizeof(*u));

    *u = (struct folder_upload){.key = act_strdup(call->key),
                                .id = call->blocks.upload_id,
                                .place = *place,
                                .fd = -1,
                                .map_fd = -1,
                                .total = call->blocks.total,
                                .writes = engine_lane_new(),
                                .calls = 1};
    place->dir = NULL; /* it is the upload's now */
    folder_part_name(call->key, &u->id, u->part);
    /* who may not read the object may not read parts of it either */
    int rc = open_upload(u, call->blocks.mode > 0 ? (mode_t)(call->blocks.mode & 0666) | 0600 : 0666, err);
    if (rc) {
        folder_free_upload(u);
        return rc;
    }
    job->begun = u;
    return 0;
}

/* ---- calls of an open upload, on a worker */

/* Adds the sums of this block to the caller's, which may chain them. */
static void give_sums(const struct store_data *data, uint64_t crc64)
{
    struct store_sums *sums = data->sums;

    if (!sums)
        return;
    sums->crc64 = act_crc64_combine(sums->crc64, crc64, data->len);
    if (sums->want_md5)
        act_md5_add(&sums->md5, data->bytes, data->len);
}

/* Records that a block is complete. If it came in pieces, data is the last one, which ends where the block does. */
static int record_block(struct folder_job *job, uint64_t crc64, struct act_error *err)
{
    const struct folder_upload *u = job->upload;
    const struct store_put_block *block = &job->call->block;
    uint64_t len = block->block_len ? block->block_len : block->data.len;

    job->record = (struct folder_record){
        .index = block->index, .offset = block->offset + block->data.len - len, .len = len, .crc64 = crc64};
    job->record.check = check_of(&job->record);
    if (act_write_all(u->map_fd, &job->record, sizeof(job->record)))
        return act_error_errno(err, errno, "cannot write");
    if (folder_syncs(job->folder, &u->place))
        folder_write_back(u->fd);
    return 0;
}

/* Writes a block. Its bytes may be written before they are known to be sound: only the record makes them a block. */
static int write_block(struct folder_job *job, struct act_error *err)
{
    struct folder_upload *u = job->upload;
    const struct store_put_block *block = &job->call->block;
    struct store_sums sums = folder_begin_sums(&block->data);
    bool holes = false;

    int failed = folder_write(u->fd, block, &sums, &holes);
    if (holes)
        u->holes = true;
    if (failed)
        return act_error_errno(err, errno, "cannot write");
    int rc = folder_check_sums(&block->data, &sums, err);
    if (rc)
        return rc;
    give_sums(&block->data, sums.crc64);
    return record_block(job, sums.crc64, err);
}

/* Writes a piece of a block. The checksum of the block comes with the last one. */
static int upload_write_piece(struct folder_job *job, struct act_error *err)
{
    struct folder_upload *u = job->upload;
    const struct store_put_block *block = &job->call->block;
    bool holes = false;

    int failed = folder_write(u->fd, block, block->data.sums, &holes);
    if (holes)
        u->holes = true;
    if (failed)
        return act_error_errno(err, errno, "cannot write");
    return block->more ? 0 : record_block(job, block->data.sums->crc64, err);
}

static int read_block(struct folder_job *job, struct act_error *err)
{
    const struct folder_upload *u = job->upload;
    struct store_call *call = job->call;
    ssize_t n = folder_read(u->fd, call->get.sink, call->get.sink_cap, (off_t)call->get.offset, call->get.sums);

    if (n < 0)
        return act_error_errno(err, errno, "cannot read the part file");
    call->get.got = (size_t)n;
    call->entry = (struct store_entry){.key = act_strdup(call->key), .size = u->total, .mode = -1};
    return 0;
}

/* Writes all records again, into a new map. Where that fails, a later process sends the blocks again. */
static void restore_map(struct folder_upload *u, const char *map)
{
    close(u->map_fd);
    u->map_fd = openat(u->place.fd, map, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    for (uint32_t i = 0; u->map_fd >= 0 && i < u->n_blocks; i++)
        if (u->blocks[i].len && act_write_all(u->map_fd, &u->blocks[i], sizeof(u->blocks[i])))
            break;
}

static int name_upload(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct folder_upload *u = job->upload;
    char map[NAME_MAX + 1];

    (void)place;
    folder_map_name(u->part, map);
    if (unlinkat(u->place.fd, map, 0) && errno != ENOENT)
        return act_error_errno(err, errno, "cannot remove the map of its part file");
    int rc = folder_put_in_place(job->call, &u->place, u->part, err);
    if (rc)
        restore_map(u, map);
    return rc;
}

static int commit_upload(struct folder_job *job, struct act_error *err)
{
    struct folder_upload *u = job->upload;
    const struct store_commit *commit = &job->call->commit;
    struct stat st;

    /* what lies behind the end is not of this upload, whose blocks all lie before it; the last may be a hole */
    if (fstat(u->fd, &st) || ((uint64_t)st.st_size != commit->total && ftruncate(u->fd, (off_t)commit->total)))
        return act_error_errno(err, errno, "cannot set the length of its part file");
    if (u->holes || u->resumed)
        folder_give_back_holes(u->fd, (off_t)commit->total);
    int rc = folder_part_finish(commit, u->fd, err);
    if (rc)
        return rc;
    job->landing = (struct folder_landing){.fd = u->fd, .borrowed = true, .name = name_upload};
    return folder_land(job, &u->place, err);
}

/* Returns whether DROP keeps the part file: an empty one is not worth it. */
static bool upload_is_kept(const struct folder_upload *u, const struct store_call *call)
{
    struct stat st;

    return call->drop.keep && fstat(u->fd, &st) == 0 && st.st_size > 0;
}

static int drop_upload(struct folder_job *job, struct act_error *err)
{
    struct folder_upload *u = job->upload;
    char map[NAME_MAX + 1];

    if (upload_is_kept(u, job->call)) {
        give_back_room(u);
        close_files(u);
        return 0;
    }
    folder_map_name(u->part, map);
    if ((unlinkat(u->place.fd, map, 0) && errno != ENOENT) || (unlinkat(u->place.fd, u->part, 0) && errno != ENOENT))
        return act_error_errno(err, errno, "cannot remove the part file");
    close_files(u);
    return 0;
}

int folder_upload_run(struct folder_job *job, struct act_error *err)
{
    switch (job->call->op) {
    case STORE_BLOCKS:
        return 0;
    case STORE_BLOCK:
        return job->call->block.block_len ? upload_write_piece(job, err) : write_block(job, err);
    case STORE_COMMIT:
        return commit_upload(job, err);
    case STORE_DROP:
        return drop_upload(job, err);
    default:
        return read_block(job, err);
    }
}
