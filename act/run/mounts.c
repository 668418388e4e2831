/* mounts.c - what is left in the folder of a mount. */
#include <dirent.h>
#include <fts.h>
#include <string.h>

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

    return run_mount_unsent(dir) > 0 || count_files(point, is_any) > 0;
}
