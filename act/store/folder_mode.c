/* folder_mode.c - the modes of folders, and how read-only ones are filled.
 *
 * Nothing can be put in a folder that is not writable. So a folder that is to be read-only becomes so at the end (SYNC,
 * or when the store is freed), and one that already is, if the caller knows that it should be, can be made writable
 * until then. If this process is killed before, the folder stays as it is then, and comparing modes shows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/folder.h"

/* The bits of a folder on disk that store_folder_mode() leaves to its creator. */
#define OWN_BITS 07002

struct folder_mode {
    struct folder_mode *next;
    mode_t mode;
    size_t len;
    char path[]; /* not terminated */
};

void folder_modes_init(struct folder_modes *modes)
{
    *modes = (struct folder_modes){.end = &modes->first};
    pthread_mutex_init(&modes->lock, NULL);
}

void folder_modes_release(struct folder_modes *modes)
{
    act_strv_release(&modes->read_only);
    pthread_mutex_destroy(&modes->lock);
}

/* Notes a mode; the last one wins. The lock is held. */
static void note_mode(struct folder_modes *modes, const char *path, size_t len, mode_t mode)
{
    struct folder_mode *m = act_alloc(sizeof(*m) + len);

    *m = (struct folder_mode){.mode = mode, .len = len};
    memcpy(m->path, path, len);
    *modes->end = m;
    modes->end = &m->next;
}

/* Changes the mode, unless the folder is another user's. Returns 0, or -1 with errno. */
static int mode_change(int fd, mode_t mode)
{
    return fchmodat(fd, ".", mode, 0) && errno != EPERM ? -1 : 0;
}

int folder_set_mode(struct folder *folder, int fd, const char *path, size_t len, int mode)
{
    struct folder_modes *modes = &folder->modes;
    int failed = 0;
    struct stat st;

    if (fstat(fd, &st))
        return -1;
    mode_t wanted = (st.st_mode & OWN_BITS) | (mode_t)mode, now = wanted | S_IWUSR;
    pthread_mutex_lock(&modes->lock);
    if (now != wanted || modes->first)
        note_mode(modes, path, len, wanted);
    if ((st.st_mode & 07777) != now)
        failed = mode_change(fd, now);
    pthread_mutex_unlock(&modes->lock);
    return failed;
}

static int mode_compare(const char *path, size_t len, const char *other)
{
    int order = strncmp(path, other, len);

    return order ? order : -(other[len] != '\0');
}

/* Returns the place that the path has in the list, or would have. The lock is held. */
static size_t mode_place_among(const struct act_strv *paths, const char *path, size_t len, bool *found)
{
    size_t from = 0, to = paths->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (mode_compare(path, len, paths->v[middle]) > 0)
            from = middle + 1;
        else
            to = middle;
    }
    *found = from < paths->n && mode_compare(path, len, paths->v[from]) == 0;
    return from;
}

void folder_may_open_up(struct store *store, const char *key)
{
    struct folder_modes *modes = &((struct folder *)store)->modes;
    struct act_strv *paths = &modes->read_only;
    size_t len = strlen(key) - 1;
    bool found;

    pthread_mutex_lock(&modes->lock);
    size_t at = mode_place_among(paths, key, len, &found);
    if (!found) { /* at the end, where keys come in order */
        act_strv_take(paths, act_strndup(key, len));
        char *path = paths->v[paths->n - 1];
        memmove(&paths->v[at + 1], &paths->v[at], (paths->n - 1 - at) * sizeof(paths->v[0]));
        paths->v[at] = path;
    }
    pthread_mutex_unlock(&modes->lock);
}

bool folder_open_up(struct folder *folder, int fd, const char *path, size_t len)
{
    struct folder_modes *modes = &folder->modes;
    struct stat st;
    bool can;

    pthread_mutex_lock(&modes->lock);
    (void)mode_place_among(&modes->read_only, path, len, &can);
    can = can && fstat(fd, &st) == 0 && st.st_uid == geteuid();
    if (can && !(st.st_mode & S_IWUSR)) {
        can = fchmodat(fd, ".", (st.st_mode & 07777) | S_IWUSR, 0) == 0;
        if (can)
            note_mode(modes, path, len, st.st_mode & 07777);
    }
    pthread_mutex_unlock(&modes->lock);
    return can;
}

/* A folder removed meanwhile needs no mode. */
static int end_mode(struct folder *folder, const struct folder_mode *m, struct act_error *err)
{
    int fd = -1, rc = folder_open_dir(folder, m->path, m->len, false, &fd, err);

    if (rc)
        return rc == -(int)ACT_NOT_FOUND ? 0 : rc;
    if (mode_change(fd, m->mode))
        rc = act_error_errno(err, errno, "cannot make the folder '%.*s' read-only", (int)m->len, m->path);
    close(fd);
    return rc;
}

int folder_end_modes(struct folder *folder, struct act_error *err)
{
    struct folder_modes *modes = &folder->modes;
    int rc = 0;

    pthread_mutex_lock(&modes->lock);
    struct folder_mode *m = modes->first;
    modes->first = NULL;
    modes->end = &modes->first;
    pthread_mutex_unlock(&modes->lock);
    if (m)
        folder_dirs_distrust(&folder->dirs);
    for (struct folder_mode *next; m; m = next) {
        next = m->next;
        int failed = end_mode(folder, m, rc ? NULL : err);
        rc = rc ? rc : failed;
        free(m);
    }
    return rc;
}
