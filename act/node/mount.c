#include "node/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/folder.h"
#include "proc/mounts.h"
#include "proc/pidfd.h"

bool mount_is_for(const struct node *node, const struct run_folder *folder)
{
    return node->spec.agent_mounts && !folder->link &&
           (folder->mode == RUN_FOLDER_RW_MOUNT || folder->mode == RUN_FOLDER_RO_MOUNT);
}

bool mount_any(const struct node *node)
{
    for (size_t i = 0; i < node->spec.n_folders; i++)
        if (mount_is_for(node, &node->spec.folders[i]))
            return true;
    return false;
}

char *mount_point(const struct node *node, const struct run_folder *folder)
{
    return act_sprintf("%s/" RUN_DIR_MOUNTS "/%s/%s", node->local, folder->name,
                       run_folder_is_copied(&node->spec, folder) ? RUN_DIR_MOUNT_COPY : RUN_DIR_MOUNT_POINT);
}

/* ---- copies ---- */

/* Sends what a command has written to the copy in the folder of a mount, which counts as not fetched once all is
 * sent. */
static int send_changes(const struct node *node, const char *dir, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *copy = act_path_join(dir, RUN_DIR_MOUNT_COPY);
    ACT_AUTOFREE char *fetched = act_path_join(dir, RUN_FILE_MOUNT_FETCHED);

    if (!run_mount_changed(dir))
        return 0;
    if (folder_move(node, "changes", name, copy, err) < 0)
        return act_error_prefix(err, "folder '%s': what was written to it is in '%s' on this node", name, copy);
    return unlink(fetched) < 0 ? act_error_errno(err, errno, "cannot remove '%s'", fetched) : 0;
}

int mount_copy(const struct node *node, const struct run_folder *folder, struct act_error *err)
{
    ACT_AUTOFREE char *copy = mount_point(node, folder);
    ACT_AUTOFREE char *dir = act_path_dirname(copy);
    int rc = send_changes(node, dir, folder->name, err);

    if (rc == 0)
        rc = act_mkdir_all(copy, 0700, err);
    if (rc == 0)
        rc = folder_move(node, "download", folder->name, copy, err);
    return rc < 0 || folder->mode == RUN_FOLDER_RO_MOUNT ? rc : run_mount_note_fetched(dir, err);
}

static int send_all_changes(const struct node *node, const char *node_dir, struct act_error *err)
{
    struct act_error other;
    int rc = 0;

    for (size_t i = 0; i < node->spec.n_folders; i++) {
        const struct run_folder *folder = &node->spec.folders[i];
        ACT_AUTOFREE char *dir = act_sprintf("%s/" RUN_DIR_MOUNTS "/%s", node_dir, folder->name);
        int sent = run_folder_is_copied(&node->spec, folder)
                       ? send_changes(node, dir, folder->name, rc < 0 ? &other : err)
                       : 0;
        rc = rc < 0 ? rc : sent;
    }
    return rc;
}

/* ---- the keepers ---- */

/* Calls visit with the folder of every mount. Returns the sum of its results, or the first error, whose text says the
 * others as well: each may say where something was left. */
static int for_mounts(const char *node_dir, int (*visit)(const char *dir, const char *name, struct act_error *err),
                      struct act_error *err)
{
    ACT_AUTOFREE char *all = act_path_join(node_dir, RUN_DIR_MOUNTS);
    ACT_AUTO(act_strv) names = {0};
    int sum = 0;

    act_folder_names(all, &names);
    for (size_t i = 0; i < names.n; i++) {
        struct act_error this;
        ACT_AUTOFREE char *dir = act_path_join(all, names.v[i]);
        int rc = visit(dir, names.v[i], &this);
        if (rc < 0 && sum >= 0)
            *err = this;
        else if (rc < 0)
            (void)!act_error_set(err, err->code, "%s; %s", act_error_text(err), act_error_text(&this));
        sum = sum < 0 ? sum : rc < 0 ? rc : sum + rc;
    }
    return sum;
}

/* The keeper holds the lock as long as it lives. Returns a descriptor of it when it is free; -1 with errno: it is not
 * (EWOULDBLOCK), or there has never been a keeper. */
static int try_lock(const char *dir)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_LOCK);
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        errno = EWOULDBLOCK;
        fd = -1;
    }
    return fd;
}

/* Returns a pidfd of the keeper that the lock names; -1: it does not name one that lives. The number may be another
 * process's by now, so this compares it after it has opened the pidfd. */
static int open_keeper(const char *dir, pid_t *out_pid)
{
    enum { TEXT_MAX = 64 };
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_LOCK);
    ACT_AUTOFREE char *text = NULL;
    int64_t began;
    int pid;

    if (act_file_read(path, TEXT_MAX, &text, NULL, NULL) < 0 || !strchr(text, '\n') ||
        sscanf(text, "%d %" SCNd64, &pid, &began) != 2 || pid < 2)
        return -1;
    int fd = proc_pidfd_open(pid);
    if (fd >= 0 && proc_began(pid) != began) {
        close(fd);
        fd = -1;
    }
    *out_pid = pid;
    return fd;
}

/* Tells the keeper to end; false: it holds the lock, and has not written down yet who it is. */
static bool try_to_tell(const char *dir, const char *name)
{
    pid_t pid;
    int lock = try_lock(dir), fd = lock < 0 ? open_keeper(dir, &pid) : -1;
    bool is_done = lock >= 0 || fd >= 0;

    if (lock >= 0)
        close(lock);
    if (fd >= 0) {
        proc_pidfd_signal(fd, pid, SIGTERM);
        node_say("folder '%s' is unmounted", name);
        close(fd);
    }
    return is_done;
}

/* Tells the keeper to end. One that has not been told ends by itself, a little later. */
static int tell_keeper(const char *dir, const char *name, struct act_error *err)
{
    enum { TRIES = 50, PAUSE_MS = 20 };
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_LOCK);

    (void)err;
    for (int i = 0; i < TRIES && access(path, F_OK) == 0 && !try_to_tell(dir, name); i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    return 0;
}

/* Reads what the keeper wrote at its end; if it wrote nothing, it was killed. */
static int mount_read_end(const char *dir, const char *name, struct act_error *err)
{
    enum { END_MAX = 1 << 16 };
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_END);
    CODEC_AUTOJSON json_t *end = NULL;

    if (codec_json_read(path, END_MAX, &end, NULL) < 0)
        return act_error_set(err, ACT_FAIL,
                             "folder '%s': what kept it mounted was killed, so that what was written to it "
                             "may not be in the store%s%s%s",
                             name, run_mount_holds(dir) ? ", but in '" : "", run_mount_holds(dir) ? dir : "",
                             run_mount_holds(dir) ? "' on this node" : "");
    ACT_AUTOFREE char *why = codec_json_bytes_get(json_object_get(end, "error"));
    return why ? act_error_set(err, ACT_FAIL, "folder '%s': %s", name, why) : 0;
}

static int mount_wait_for_keeper(const char *dir, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MOUNT_LOCK);
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0) /* it was never mounted */
        return 0;
    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        continue;
    close(fd);
    return mount_read_end(dir, name, err);
}

int mount_end_all(const struct node *node, const char *node_dir, struct act_error *err)
{
    if (act_streq(node->spec.mount, RUN_MOUNT_COPY))
        return send_all_changes(node, node_dir, err);
    if (for_mounts(node_dir, tell_keeper, err) < 0) /* all at once */
        return -ACT_FAIL;
    return for_mounts(node_dir, mount_wait_for_keeper, err);
}

/* ---- what is left ---- */

/* Returns 1 if a mount is in use or its folder holds something, else 0. */
static int clear_one(const char *dir, const char *name, struct act_error *err)
{
    int fd = try_lock(dir);
    bool kept = fd < 0 && errno != ENOENT;

    (void)err;
    if (fd >= 0)
        close(fd);
    if (kept || !mounts_end_below(dir))
        return 1;
    if (!run_mount_holds(dir))
        return 0;
    node_say("folder '%s': '%s' is left, as files in it may not be in the store", name, dir);
    return 1;
}

bool mount_clear(const char *node_dir)
{
    struct act_error ignored;

    return for_mounts(node_dir, clear_one, &ignored) == 0;
}
