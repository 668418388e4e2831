/* folder_dirs.c - the folders that objects were in lately stay open, for the next object.
 *
 * A folder that was opened never leads out of the root, but it can be moved or removed meanwhile. What is no
 * longer found in it is looked for once more by its path; and after TRUST_MS it is opened anew. So what is
 * written while somebody moves its folder goes along with it for at most that long, as it would when it had
 * been written just before.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
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
    struct folder_dir *next;
    size_t len;
    char path[]; /* not terminated */
};

static void free_dir(struct folder_dir *dir)
{
    if (!dir)
        return;
    close(dir->fd);
    act_strv_release(&dir->parts);
    free(dir);
}

/* Takes a kept one out of the list. Returns it when nobody uses it: it is to be freed, without the lock. */
static struct folder_dir *forget(struct folder_dirs *dirs, struct folder_dir **at)
{
    struct folder_dir *dir = *at;

    *at = dir->next;
    dirs->n--;
    dir->kept = false;
    return dir->users == 0 ? dir : NULL;
}

static struct folder_dir **find(struct folder_dirs *dirs, const char *path, size_t len)
{
    struct folder_dir **at = &dirs->first;

    while (*at && ((*at)->len != len || memcmp((*at)->path, path, len) != 0))
        at = &(*at)->next;
    return at;
}

static void add(struct folder_dirs *dirs, struct folder_dir *dir)
{
    dir->next = dirs->first;
    dirs->first = dir;
    dirs->n++;
    dir->kept = true;
}

/* The kept one, moved to the front, or NULL. One that is too old is forgotten, and is in *old when it is to be
 * freed. */
static struct folder_dir *take(struct folder_dirs *dirs, const char *path, size_t len, bool fresh,
                               struct folder_dir **old)
{
    struct folder_dir **at = find(dirs, path, len), *dir = *at;

    if (!dir)
        return NULL;
    if (fresh || act_now_monotonic_ms() - dir->opened_ms > TRUST_MS) {
        *old = forget(dirs, at);
        return NULL;
    }
    *at = dir->next;
    dir->next = dirs->first;
    dirs->first = dir;
    dir->users++;
    return dir;
}

/* Keeps a new one. Returns the one that was not used for the longest time, when it is to be freed. */
static struct folder_dir *keep(struct folder_dirs *dirs, struct folder_dir *dir)
{
    struct folder_dir **last = &dirs->first;

    add(dirs, dir);
    if (dirs->n <= MAX_DIRS)
        return NULL;
    while ((*last)->next)
        last = &(*last)->next;
    return forget(dirs, last);
}

int folder_dir_open(struct folder *folder, const char *path, size_t len, bool create, bool fresh,
                    struct folder_place *place, struct act_error *err)
{
    struct folder_dirs *dirs = &folder->dirs;
    struct folder_dir *old = NULL;
    int fd = -1;

    pthread_mutex_lock(&dirs->lock);
    struct folder_dir *dir = take(dirs, path, len, fresh, &old);
    pthread_mutex_unlock(&dirs->lock);
    free_dir(old);
    place->kept = dir != NULL;
    if (!dir) {
        int rc = folder_open_dir(folder, path, len, create, &fd, err);
        if (rc)
            return rc;
        dir = act_alloc(sizeof(*dir) + len);
        *dir = (struct folder_dir){
            .dirs = dirs, .fd = fd, .users = 1, .opened_ms = act_now_monotonic_ms(), .len = len};
        memcpy(dir->path, path, len);
        pthread_mutex_lock(&dirs->lock);
        old = keep(dirs, dir);
        pthread_mutex_unlock(&dirs->lock);
        free_dir(old);
    }
    place->dir = dir;
    place->fd = dir->fd;
    return 0;
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
    if (!dir->looked_through) {
        dir->parts = names;
        names = (struct act_strv){0};
        dir->looked_through = true;
    }
    pthread_mutex_unlock(&dir->dirs->lock);
    act_strv_release(&names);
    return &dir->parts;
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
        free_dir(dir);
    place->dir = NULL;
    place->fd = -1;
}

void folder_dirs_init(struct folder_dirs *dirs)
{
    *dirs = (struct folder_dirs){0};
    pthread_mutex_init(&dirs->lock, NULL);
}

void folder_dirs_close(struct folder_dirs *dirs)
{
    while (dirs->first)
        free_dir(forget(dirs, &dirs->first));
    pthread_mutex_destroy(&dirs->lock);
}
