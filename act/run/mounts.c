/* mounts.c - finds what is left in the folder of a mount. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "run/run.h"

/* Reads what rclone notes of each file in its cache (vfs/vfscache/item.go, Info). A note that cannot be read is being
 * written at the moment, because somebody writes to its file. */
static bool is_unsent(const char *path)
{
    enum { INFO_MAX = 1 << 20 };
    CODEC_AUTOJSON json_t *info = NULL;
    int rc = codec_json_read(path, INFO_MAX, &info, NULL);

    return rc < 0 ? rc != -ACT_NOT_FOUND : json_is_true(json_object_get(info, "Dirty"));
}

/* Counts the files below a folder that counts() says; a folder that is not there has none. */
static size_t unsent_count_files(const char *folder, bool (*counts)(const char *path))
{
    ACT_AUTOFREE char *root = act_strdup(folder);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    const FTSENT *e;
    size_t n = 0;

    while (tree && (e = fts_read(tree)))
        n += e->fts_info == FTS_F && counts(e->fts_path);
    if (tree)
        fts_close(tree);
    return n;
}

bool run_folder_is_copied(const struct run_spec *spec, const struct run_folder *folder)
{
    return act_streq(spec->mount, RUN_MOUNT_COPY) && !folder->link &&
           (folder->mode == RUN_FOLDER_RW_MOUNT || folder->mode == RUN_FOLDER_RO_MOUNT);
}

/* ---- copies */

/* A command that writes to a file changes its size or its time of writing. */
static char *written_of(uint64_t size, int64_t mtime_ns)
{
    return act_sprintf("%" PRIu64 " %" PRId64 " ", size, mtime_ns);
}

/* Any change of a file changes the last two numbers: the kernel alone sets that time, though it may go back with the
 * clock. */
static void mounts_note_name(struct act_buf *note, const char *path, const struct stat *st)
{
    ACT_AUTOFREE char *written = written_of((uint64_t)st->st_size, act_timespec_ns(st->st_mtim));
    ACT_AUTOFREE char *known =
        act_sprintf("%s%" PRIu64 " %" PRId64, written, (uint64_t)st->st_ino, act_timespec_ns(st->st_ctim));

    act_buf_add(note, path, strlen(path) + 1);
    act_buf_add(note, known, strlen(known) + 1);
}

static int unsent_by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Notes all names of the copy, in an order that is always the same. */
static int note_copy(const char *dir, struct act_buf *note, struct act_error *err)
{
    ACT_AUTOFREE char *root = act_path_join(dir, RUN_DIR_MOUNT_COPY);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, unsent_by_name);
    int rc = tree ? 0 : act_error_errno(err, errno, "cannot read '%s'", root);

    for (const FTSENT *e; rc == 0 && (e = fts_read(tree));) {
        if (e->fts_info == FTS_NS || e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
            rc = act_error_errno(err, e->fts_errno, "cannot read '%s'", e->fts_path);
        else if (e->fts_info != FTS_DP && e->fts_level > FTS_ROOTLEVEL)
            mounts_note_name(note, e->fts_path + strlen(root) + 1, e->fts_statp);
    }
    if (tree)
        fts_close(tree);
    return rc;
}

int run_mount_note_fetched(const char *dir, struct act_error *err)
{
    enum { PAUSE_MS = 50 }; /* a change within one tick of the kernel's clock would not be seen */
    ACT_AUTOFREE char *fetched = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);
    ACT_AUTO(act_buf) note = {0};
    int rc = note_copy(dir, &note, err);

    if (rc < 0)
        return rc;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return act_file_write_quickly(fetched, note.data ? note.data : "", note.len, 0600, err);
}

static int unsent_by_path(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int run_fetched_read(const char *dir, struct run_fetched *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);
    size_t len = 0;

    *out = (struct run_fetched){0};
    int rc = act_file_read(path, SIZE_MAX - 1, &out->text, &len, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < len; i++)
        out->n += out->text[i] == '\0';
    out->n /= 2;
    out->paths = act_calloc(out->n + 1, sizeof(*out->paths));
    const char *at = out->text;
    for (size_t i = 0; i < out->n; i++, at += strlen(at) + 1, at += strlen(at) + 1)
        out->paths[i] = at;
    qsort(out->paths, out->n, sizeof(*out->paths), unsent_by_path);
    return 0;
}

void run_fetched_release(struct run_fetched *fetched)
{
    free(fetched->text);
    free(fetched->paths);
    *fetched = (struct run_fetched){0};
}

bool run_fetched_has(const struct run_fetched *fetched, const char *path, uint64_t size, int64_t mtime_ns)
{
    ACT_AUTOFREE char *written = written_of(size, mtime_ns);
    const char *const *found = bsearch(&path, fetched->paths, fetched->n, sizeof(*fetched->paths), unsent_by_path);

    return found && act_starts_with(*found + strlen(*found) + 1, written);
}

bool run_mount_changed(const char *dir)
{
    ACT_AUTOFREE char *fetched = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);
    ACT_AUTOFREE char *then = NULL;
    ACT_AUTO(act_buf) now = {0};
    size_t len = 0;

    if (access(fetched, F_OK) < 0 && errno == ENOENT)
        return false;
    if (act_file_read(fetched, SIZE_MAX - 1, &then, &len, NULL) < 0 || note_copy(dir, &now, NULL) < 0)
        return true;
    return len != now.len || (len && memcmp(then, now.data, len) != 0);
}

/* ---- mounts */

size_t run_mount_waiting(const char *dir)
{
    ACT_AUTOFREE char *notes = act_path_join(dir, RUN_DIR_MOUNT_CACHE "/vfsMeta");

    return unsent_count_files(notes, is_unsent);
}

static bool is_any(const char *path)
{
    return *path;
}

size_t run_mount_unsent(const char *dir)
{
    ACT_AUTOFREE char *all = act_path_join(dir, RUN_DIR_MOUNT_CACHE);
    DIR *d = opendir(all);
    const struct dirent *e;
    size_t n = run_mount_waiting(dir);

    while (d && (e = readdir(d))) {
        ACT_AUTOFREE char *cache = act_path_join(all, e->d_name);
        n += act_starts_with(e->d_name, "blobfuse2.") ? unsent_count_files(cache, is_any) : 0;
    }
    if (d)
        closedir(d);
    return n;
}

bool run_mount_holds(const char *dir)
{
    ACT_AUTOFREE char *point = act_path_join(dir, RUN_DIR_MOUNT_POINT);

    return run_mount_unsent(dir) > 0 || run_mount_changed(dir) || unsent_count_files(point, is_any) > 0;
}
