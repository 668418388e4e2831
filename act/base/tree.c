/* tree.c - removes whole trees, and measures them. */
#include <errno.h>
#include <fts.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static bool tree_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

int act_remove_tree(const char *path, struct act_error *err)
{
    enum { OPEN_FOLDERS = 32 };

    /* A folder that somebody else removes meanwhile ends the walk, but not the work. */
    while (nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) < 0) {
        if (errno != ENOENT)
            return act_error_errno(err, errno, "cannot remove '%s'", path);
        if (!tree_exists(path))
            break;
    }
    return 0;
}

uint64_t act_tree_size(const char *path)
{
    enum { BLOCK = 512 };
    ACT_AUTOFREE char *root = act_strdup(path);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t blocks = 0;

    for (FTSENT *e; tree && (e = fts_read(tree));)
        if (e->fts_info != FTS_DP && e->fts_info != FTS_NS && e->fts_info != FTS_ERR)
            blocks += (uint64_t)e->fts_statp->st_blocks;
    if (tree)
        fts_close(tree);
    return blocks * BLOCK;
}
