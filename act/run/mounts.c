/* mounts.c - what is left in the folder of a mount. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc64.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "run/run.h"

/* What rclone writes down of each file in its cache (vfs/vfscache/item.go, Info). One that cannot be read is being
 * written at the moment, as its file is written to. */
static bool is_unsent(const char *path)
{
    enum { INFO_MAX = 1 << 20 };
    CODEC_AUTOJSON json_t *info = NULL;
    int rc = codec_json_read(path, INFO_MAX, &info, NULL);

    return rc < 0 ? rc != -ACT_NOT_FOUND : json_is_true(json_object_get(info, "Dirty"));
}

/* Counts the files below a folder that counts() says; a folder that is not there has none. */
static size_t count_files(const char *folder, bool (*counts)(const char *path))
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

/* One name of the copy, as it was changed last. The kernel alone sets this time, and it may go back with the clock. */
static uint64_t sum_of(const FTSENT *e, size_t root_len)
{
    const struct stat *st = e->fts_statp;
    ACT_AUTOFREE char *text = act_sprintf("%s %llu %lld.%09ld", e->fts_path + root_len, (unsigned long long)st->st_ino,
                                          (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);

    return act_crc64(0, text, strlen(text));
}

/* Of all names together, in whatever order they come. New string; NULL: it is not known. */
static char *state_of_copy(const char *dir)
{
    ACT_AUTOFREE char *root = act_path_join(dir, RUN_DIR_MOUNT_COPY);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    bool is_known = tree != NULL;
    uint64_t sum = 0;

    for (const FTSENT *e; is_known && (e = fts_read(tree));) {
        is_known = e->fts_info != FTS_NS && e->fts_info != FTS_DNR && e->fts_info != FTS_ERR;
        sum += is_known && e->fts_info != FTS_DP ? sum_of(e, strlen(root)) : 0;
    }
    if (tree)
        fts_close(tree);
    return is_known ? act_sprintf("%016llx\n", (unsigned long long)sum) : NULL;
}

int run_mount_note_fetched(const char *dir, struct act_error *err)
{
    enum { PAUSE_MS = 50 }; /* a change within one tick of the kernel's clock would not be seen */
    ACT_AUTOFREE char *fetched = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);
    ACT_AUTOFREE char *state = state_of_copy(dir);

    if (!state)
        return act_error_set(err, ACT_FAIL, "cannot read what was fetched into '%s'", dir);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return act_file_write_quickly(fetched, state, strlen(state), 0600, err);
}

bool run_mount_changed(const char *dir)
{
    enum { STATE_MAX = 64 };
    ACT_AUTOFREE char *fetched = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);
    ACT_AUTOFREE char *then = NULL;

    if (access(fetched, F_OK) < 0 && errno == ENOENT)
        return false;
    if (act_file_read(fetched, STATE_MAX, &then, NULL, NULL) < 0)
        return true;
    ACT_AUTOFREE char *now = state_of_copy(dir);
    return !act_streq(now, then);
}

size_t run_mount_waiting(const char *dir)
{
    ACT_AUTOFREE char *notes = act_path_join(dir, RUN_DIR_MOUNT_CACHE "/vfsMeta");

    return count_files(notes, is_unsent);
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
        n += act_starts_with(e->d_name, "blobfuse2.") ? count_files(cache, is_any) : 0;
    }
    if (d)
        closedir(d);
    return n;
}

bool run_mount_holds(const char *dir)
{
    ACT_AUTOFREE char *point = act_path_join(dir, RUN_DIR_MOUNT_POINT);

    return run_mount_unsent(dir) > 0 || run_mount_changed(dir) || count_files(point, is_any) > 0;
}
