/* folder_dirs.c - the folders that objects were in lately stay open, for the next object.
 *
 * A folder that was opened never leads out of the root, but it can be moved or removed meanwhile. What is no longer
 * found in it is looked up once more by its path, and after TRUST_MS the folder is reopened. So files written while
 * somebody moves their folder follow it for at most that long, as if they had been written just before.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/folder.h"

enum {
    MAX_DIRS = 64,
    TRUST_MS = 1000,
};

struct folder_dir {
    struct folder_dirs *dirs;
    int fd; /* O_PATH */
    int users;
    bool kept;
    int64_t opened_ms;
    struct act_strv parts; /* the names of part files and maps when it was looked through */
    bool looked_through;
    bool in_memory;
    bool changed;          /* and not on the disk yet */
    atomic_bool read_only; /* it seems */
    dev_t dev;
    ino_t ino;
    struct folder_dir *next;
    size_t len;
    char path[]; /* not terminated */
};

static int sync_dir(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    int failed = fsync(fd) && (errno == EIO || errno == ENOSPC || errno == EDQUOT), saved = errno;
    close(fd);
    errno = saved;
    return failed ? -1 : 0;
}

static void folder_free_dir(struct folder_dir *dir)
{
    if (!dir)
        return;
    if (dir->changed && dir->dev == dir->dirs->dev)
        dir->dirs->many_changed = true;
    else if (dir->changed) /* not of the file system that STORE_SYNC syncs */
        (void)sync_dir(dir->fd);
    close(dir->fd);
    act_strv_release(&dir->parts);
    free(dir);
}

/* Removes an open folder from the list. Returns it if nobody uses it: it must be freed, without the lock. */
static struct folder_dir *take_dir_out(struct folder_dirs *dirs, struct folder_dir **at)
{
    struct folder_dir *dir = *at;

    *at = dir->next;
    dirs->n--;
    dir->kept = false;
    return dir->users == 0 ? dir : NULL;
}

static struct folder_dir **dir_at(struct folder_dirs *dirs, const char *path, size_t len)
{
    struct folder_dir **at = &dirs->first;

    while (*at && ((*at)->len != len || memcmp((*at)->path, path, len) != 0))
        at = &(*at)->next;
    return at;
}

static void put_dir_first(struct folder_dirs *dirs, struct folder_dir *dir)
{
    dir->next = dirs->first;
    dirs->first = dir;
    dirs->n++;
    dir->kept = true;
}

/* Returns the folder if it is kept open, moved to the front, or NULL. Drops one that is too old, and returns it in
 * *old if it must be freed. */
static struct folder_dir *take_kept(struct folder_dirs *dirs, const char *path, size_t len, bool fresh,
                                    struct folder_dir **old)
{
    struct folder_dir **at = dir_at(dirs, path, len), *dir = *at;

    if (!dir)
        return NULL;
    if (fresh || act_now_monotonic_ms() - dir->opened_ms > TRUST_MS) {
        *old = take_dir_out(dirs, at);
        return NULL;
    }
    *at = dir->next;
    dir->next = dirs->first;
    dirs->first = dir;
    dir->users++;
    return dir;
}

/* Keeps a new folder open. Returns the least recently used one if it must be freed. */
static struct folder_dir *keep_dir(struct folder_dirs *dirs, struct folder_dir *dir)
{
    struct folder_dir **last = &dirs->first;

    put_dir_first(dirs, dir);
    if (dirs->n <= MAX_DIRS)
        return NULL;
    while ((*last)->next)
        last = &(*last)->next;
    return take_dir_out(dirs, last);
}

static struct folder_dir *new_dir(struct folder_dirs *dirs, int fd, const char *path, size_t len)
{
    struct folder_dir *dir = act_alloc(sizeof(*dir) + len);
    struct statfs fs;
    struct stat st;

    *dir = (struct folder_dir){.dirs = dirs, .fd = fd, .users = 1, .opened_ms = act_now_monotonic_ms(), .len = len};
    memcpy(dir->path, path, len);
    dir->in_memory = fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    if (fstat(fd, &st) == 0) {
        dir->dev = st.st_dev;
        dir->ino = st.st_ino;
        dir->read_only = !(st.st_mode & S_IWUSR);
    }
    return dir;
}

int folder_dir_open(struct folder *folder, const char *path, size_t len, bool create, bool fresh,
                    struct folder_place *place, struct act_error *err)
{
    struct folder_dirs *dirs = &folder->dirs;
    struct folder_dir *old = NULL;
    int fd = -1;

    pthread_mutex_lock(&dirs->lock);
    struct folder_dir *dir = take_kept(dirs, path, len, fresh, &old);
    pthread_mutex_unlock(&dirs->lock);
    place->kept = dir != NULL;
    if (!dir) {
        int rc = folder_open_dir(folder, path, len, create, &fd, err);
        if (rc) {
            folder_free_dir(old);
            return rc;
        }
        dir = new_dir(dirs, fd, path, len);
        if (old && old->changed && old->ino == dir->ino && old->dev == dir->dev) {
            dir->changed = true;
            old->changed = false;
        }
        folder_free_dir(old);
        pthread_mutex_lock(&dirs->lock);
        old = keep_dir(dirs, dir);
        pthread_mutex_unlock(&dirs->lock);
        folder_free_dir(old);
    }
    place->dir = dir;
    place->fd = dir->fd;
    if (create)
        folder_dir_open_up(folder, place);
    return 0;
}

void folder_dir_open_up(struct folder *folder, const struct folder_place *place)
{
    const struct folder_dir *dir = place->dir;

    if (dir->read_only)
        folder_open_up(folder, dir->fd, dir->path, dir->len);
}

bool folder_dir_was_closed(struct folder *folder, const struct folder_place *place, int rc, int *tries)
{
    const struct folder_dir *dir = place->dir;

    return rc == -(int)ACT_DENIED && dir && (*tries)++ < FOLDER_TRIES && /* no dir: it could not be opened */
           folder_open_up(folder, dir->fd, dir->path, dir->len);
}

void folder_dirs_distrust(struct folder_dirs *dirs)
{
    pthread_mutex_lock(&dirs->lock);
    for (struct folder_dir *dir = dirs->first; dir; dir = dir->next)
        dir->read_only = true;
    pthread_mutex_unlock(&dirs->lock);
}

static struct act_strv look_through(int dir_fd)
{
    struct act_strv names = {0};
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!stream && fd >= 0)
        close(fd);
    while (stream && (entry = readdir(stream)) != NULL)
        if (act_starts_with(entry->d_name, FOLDER_PART))
            act_strv_push(&names, entry->d_name);
    if (stream)
        closedir(stream);
    return names;
}

const struct act_strv *folder_dir_parts(const struct folder_place *place)
{
    struct folder_dir *dir = place->dir;

    pthread_mutex_lock(&dir->dirs->lock);
    bool known = dir->looked_through;
    pthread_mutex_unlock(&dir->dirs->lock);
    if (known)
        return &dir->parts;
    struct act_strv names = look_through(dir->fd);
    pthread_mutex_lock(&dir->dirs->lock);
    bool is_first = !dir->looked_through;
    if (is_first)
        dir->parts = names;
    dir->looked_through = true;
    pthread_mutex_unlock(&dir->dirs->lock);
    if (!is_first)
        act_strv_release(&names);
    return &dir->parts;
}

bool folder_dir_is_in_memory(const struct folder_place *place)
{
    return place->dir->in_memory;
}

void folder_dir_changed(const struct folder_place *place)
{
    struct folder_dir *dir = place->dir;

    pthread_mutex_lock(&dir->dirs->lock);
    dir->changed |= !dir->in_memory;
    pthread_mutex_unlock(&dir->dirs->lock);
}

int folder_sync_dir(const struct folder_place *place)
{
    return sync_dir(place->fd);
}

/* Gives descriptors of the folders that changed and are open, at most MAX_DIRS, which the caller closes. Returns
 * whether these are all that changed. */
static bool take_changed(struct folder_dirs *dirs, int fds[MAX_DIRS], size_t *n)
{
    pthread_mutex_lock(&dirs->lock);
    bool all = !atomic_exchange(&dirs->many_changed, false);
    for (struct folder_dir *dir = dirs->first; dir && *n < MAX_DIRS; dir = dir->next) {
        if (!dir->changed || dir->in_memory)
            continue;
        fds[*n] = fcntl(dir->fd, F_DUPFD_CLOEXEC, 0);
        dir->changed = false;
        all &= fds[*n] >= 0;
        *n += fds[*n] >= 0;
    }
    pthread_mutex_unlock(&dirs->lock);
    return all;
}

/* Syncs the whole file system, and so the folders that are not open any more. */
static int sync_file_system(const struct folder *folder)
{
    struct statfs fs;
    int fd = openat(folder->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    bool in_memory = fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    int failed = in_memory ? 0 : syncfs(fd);
    int saved = errno;
    close(fd);
    errno = saved;
    return failed;
}

int folder_sync(struct folder *folder, struct act_error *err)
{
    int fds[MAX_DIRS], failed = 0, rc = folder_end_modes(folder, err);
    size_t n = 0;

    if (rc || folder->store.no_sync)
        return rc;
    bool all = take_changed(&folder->dirs, fds, &n) && !folder->made;
    for (size_t i = 0; i < n; i++) {
        failed |= sync_dir(fds[i]);
        close(fds[i]);
    }
    if (!all)
        failed |= sync_file_system(folder);
    folder->made = false;
    return failed ? act_error_errno(err, errno, "what was written may not outlast a power cut") : 0;
}

void folder_place_release(struct folder_place *place)
{
    struct folder_dir *dir = place->dir;

    if (!dir)
        return;
    pthread_mutex_lock(&dir->dirs->lock);
    bool last = --dir->users == 0 && !dir->kept;
    pthread_mutex_unlock(&dir->dirs->lock);
    if (last)
        folder_free_dir(dir);
    place->dir = NULL;
    place->fd = -1;
}

void folder_dirs_init(struct folder_dirs *dirs, dev_t root)
{
    *dirs = (struct folder_dirs){.dev = root};
    pthread_mutex_init(&dirs->lock, NULL);
}

void folder_dirs_close(struct folder_dirs *dirs)
{
    while (dirs->first)
        folder_free_dir(take_dir_out(dirs, &dirs->first));
    pthread_mutex_destroy(&dirs->lock);
}
