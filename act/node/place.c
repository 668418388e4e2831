#include "node/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/mount.h"

#define FILE_USERS "users"
#define ENDED      "ended."

/* TMPDIR came from the first node, where it may have been made for this job alone. */
static bool place_is_usable(const char *temp)
{
    return temp && *temp == '/' && access(temp, W_OK | X_OK) == 0;
}

/* Returns the folder that contains the bases. */
static const char *find_disk(const struct node *node)
{
    const char *temp = getenv("TMPDIR");

    return node->spec.scratch ? node->spec.scratch : place_is_usable(temp) ? temp : "/tmp";
}

static char *find_code(const struct node *node)
{
    if (node->spec.scratch || !node->dir)
        return act_path_join(node->local, RUN_DIR_CODE);
    if (node->spec.nodes == 1)
        return act_path_join(node->dir, RUN_DIR_CODE);
    return act_sprintf("%s/" RUN_DIR_NODES "/%d/" RUN_DIR_CODE, node->dir, node->node_rank);
}

/* ---- the base ---- */

/* /tmp is world-writable: another user may have made the folder, or a link of that name, first. A folder that is ours,
 * and in which nobody else can have made anything, is safe from then on. */
static bool place_is_private(const char *base)
{
    struct stat st;

    return lstat(base, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 022) &&
           ((st.st_mode & 0777) == 0700 || chmod(base, 0700) == 0);
}

/* Returns the first by name of the bases with a random suffix. New string; NULL: none. */
static char *find_other_base(const char *disk)
{
    ACT_AUTOFREE char *start = act_sprintf("act-%u.", (unsigned)getuid());
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(disk, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *path = act_path_join(disk, names.v[i]);
        if (act_starts_with(names.v[i], start) && place_is_private(path))
            return act_strdup(path);
    }
    return NULL;
}

/* All ranks of a node have to find the same base, so only one at a time looks for or makes it. Others may lock that
 * folder, too, so the wait is limited. Returns a file descriptor to close, or -1. */
static int lock_disk(const char *disk)
{
    enum { TRIES = 100, PAUSE_MS = 20 };
    int fd = open(disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return fd;
}

/* Finds or makes a folder with an unpredictable name, and returns its path, a new string; NULL with errno. */
static char *make_other_base(const char *disk)
{
    ACT_AUTOCLOSE int lock = lock_disk(disk);
    char *base = find_other_base(disk);

    (void)lock; /* held until the end */
    if (!base) {
        base = act_sprintf("%s/act-%u.XXXXXX", disk, (unsigned)getuid());
        if (!mkdtemp(base)) {
            int saved = errno;
            free(base);
            base = NULL;
            errno = saved;
        }
    }
    return base;
}

/* Opens the folder above all private ones, and returns its path, a new string; NULL with err. */
static char *open_base(const struct node *node, struct act_error *err)
{
    const char *disk = find_disk(node);
    char *base = act_sprintf("%s/act-%u", disk, (unsigned)getuid());
    bool made = mkdir(base, 0700) == 0 || errno == EEXIST;

    if (made && place_is_private(base))
        return base;
    char *other = made ? make_other_base(disk) : NULL;
    if (!other)
        act_error_errno(err, errno, "cannot make the folder '%s' on node '%s'%s", base, node->name,
                        node->spec.scratch ? ", where 'slurm.scratch' wants the code" : "");
    free(base);
    return other;
}

/* Tells whether the opened file still has that name: the locked file may have been removed and created again. */
static bool place_is_current(int fd, const char *path)
{
    struct stat held, there;

    return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

/* A sweeper may have removed the folder between our creating and locking it: then try again. */
static int place_hold(const char *dir, const char *name, struct act_error *err)
{
    enum { TRIES = 100 };
    ACT_AUTOFREE char *path = act_path_join(dir, FILE_USERS);

    for (int i = 0; i < TRIES; i++) {
        int rc = act_mkdir_all(dir, 0700, err);
        if (rc < 0)
            return rc;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || flock(fd, LOCK_SH) < 0 || act_pwrite_all(fd, name, strlen(name), 0) < 0) {
            rc = act_error_errno(err, errno, "cannot lock '%s'", path);
            if (fd >= 0)
                close(fd);
            return rc;
        }
        if (place_is_current(fd, path))
            return fd;
        close(fd);
    }
    return act_error_set(err, ACT_TEMPORARY, "'%s' is removed again and again by another program", dir);
}

int place_open(struct node *node, const struct rank_place *place, int attempt, struct act_error *err)
{
    ACT_AUTOFREE char *base = open_base(node, err);

    if (!base)
        return -err->code;
    node->node_rank = place->node_rank;
    node->attempt = attempt;
    free(node->local);
    node->local = act_sprintf("%s/%s/%d%s%s", base, node->spec.id, place->node_rank, node->launch ? "-" : "",
                              node->launch ? node->launch : "");
    free(node->code);
    node->code = find_code(node);
    node->users_fd = place_hold(node->local, node->name, err);
    if (node->users_fd < 0)
        return act_error_hint(err, "%s names another folder", node->spec.scratch ? "slurm.scratch" : "TMPDIR");
    return 0;
}

/* Removes a private folder, but never what is mounted in it. */
static void remove_place(const char *dir)
{
    ACT_AUTOFREE char *run = act_path_dirname(dir);
    struct act_error err;

    if (!mount_clear(dir))
        return;
    if (act_remove_tree(dir, &err) < 0)
        node_say("%s", act_error_text(&err));
    rmdir(run); /* when this was its last node */
}

/* Counts the ranks of the node that have ended, this one included. */
static int count_ended(const struct node *node)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/" ENDED "%d", node->local, node->attempt);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st = {0};

    if (fd < 0)
        return 0;
    if (act_write_all(fd, "x", 1) < 0 || fstat(fd, &st) < 0)
        node_say("cannot write '%s': %m", path);
    close(fd);
    return (int)st.st_size;
}

int place_close(struct node *node, const struct rank_place *place, struct act_error *err)
{
    int rc = 0;

    if (node->users_fd <= 0)
        return 0;
    if (count_ended(node) >= place->local_size) {
        rc = mount_end_all(node, node->local, err);
        remove_place(node->local);
    }
    close(node->users_fd);
    node->users_fd = 0;
    return rc;
}

/* Returns the folder of the run's places. New string; NULL: there is none. */
static char *place_find_all(const struct node *node)
{
    struct act_error ignored;
    ACT_AUTOFREE char *base = open_base(node, &ignored);

    return base ? act_path_join(base, node->spec.id) : NULL;
}

int place_end_mounts(const struct node *node, struct act_error *err)
{
    ACT_AUTOFREE char *places = mount_any(node) ? place_find_all(node) : NULL;
    ACT_AUTO(act_strv) names = {0};
    struct act_error other;
    int rc = 0;

    if (places)
        act_folder_names(places, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *dir = act_path_join(places, names.v[i]);
        int end = mount_end_all(node, dir, rc < 0 ? &other : err);
        rc = rc < 0 ? rc : end;
        (void)mount_clear(dir);
    }
    return rc;
}

/* ---- what others left ---- */

/* Folders of other nodes are left alone: if the disk is shared after all, their locks may not be visible here. */
static bool is_of_this_node(int fd, const char *name)
{
    char made_by[NODE_NAME_MAX + 1] = "";

    return act_pread_all(fd, made_by, sizeof(made_by) - 1, 0) >= 0 && strcmp(made_by, name) == 0;
}

/* Tells whether a rank has just ended here, so that others of its run may still come: nothing is locked in between. */
static bool is_between_ranks(const char *dir)
{
    enum { LATELY_S = 600 };
    ACT_AUTO(act_strv) names = {0};
    struct stat st;
    bool is = false;

    act_folder_names(dir, &names);
    for (size_t i = 0; i < names.n && !is; i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, names.v[i]);
        is = act_starts_with(names.v[i], ENDED) && lstat(path, &st) == 0 && st.st_mtime > time(NULL) - LATELY_S;
    }
    return is;
}

/* Renames it first: a rank that starts now makes a new folder, which is not removed. */
static void sweep_one(const char *dir, const struct node *node)
{
    ACT_AUTOFREE char *path = act_path_join(dir, FILE_USERS);
    ACT_AUTOFREE char *gone = act_sprintf("%s.gone", dir);
    ACT_AUTOCLOSE int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd >= 0 && is_of_this_node(fd, node->name) && flock(fd, LOCK_EX | LOCK_NB) == 0 && place_is_current(fd, path) &&
        !is_between_ranks(dir) && mount_clear(dir) && rename(dir, gone) == 0)
        remove_place(gone);
}

/* Calls visit with the path of every entry of dir. */
static void place_for_entries(const char *dir, void (*visit)(const char *, const struct node *),
                              const struct node *node)
{
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(dir, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, names.v[i]);
        visit(path, node);
    }
}

static void sweep_run(const char *dir, const struct node *node)
{
    place_for_entries(dir, sweep_one, node);
}

void place_sweep(const struct node *node)
{
    ACT_AUTOFREE char *run = act_path_dirname(node->local);
    ACT_AUTOFREE char *base = act_path_dirname(run);

    place_for_entries(base, sweep_run, node); /* our own is locked */
}
