/* claims.c - a claim goes from TRIES to HOLDS:
 *
 *   make the file, lock it, write "T 0 3" -> let others read it -> look at all others -> write "H"
 *
 * Of two that want the same GPU at least one sees the other, since each can be read before it looks. Who sees a claim
 * that HOLDS gives way, and so does who sees one that TRIES and was not made public after its own: the kernel's time of
 * the last change says it, and in the same instant both give way. So never do two of them hold one GPU; who gave way
 * tries again. */
#include "node/claims.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"

#define PREFIX "act-gpus-"
#define TRIES  'T'
#define HOLDS  'H'

enum { TEXT_MAX_BYTES = 4096, EACH_USER_MAX = 256, SWEEP_AFTER_S = 60, FOLDER_MAX = 64 * 1024 };

/* ---- locks */

static bool claims_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Tells whether the holder of a claim lives, by asking for a read lock without taking one. Where the kernel cannot say,
 * he does not. */
static bool is_alive(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

/* ---- claims of others */

struct gpu_claim {
    uid_t uid;
    char state;
    struct timespec changed;
    char keys[TEXT_MAX_BYTES]; /* with a blank before each and at the end */
};

/* Returns false if the claim is dead, or none. One that others may write to is none: they could keep it alive. */
static bool read_claim(int dir_fd, const char *name, struct gpu_claim *out)
{
    struct stat st;
    ACT_AUTOCLOSE int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 022) && is_alive(fd);
    ssize_t n = good ? act_pread_all(fd, out->keys, sizeof(out->keys) - 2, 0) : -1;

    if (n < 2 || (out->keys[0] != TRIES && out->keys[0] != HOLDS))
        return false;
    out->keys[n] = '\0';
    out->state = out->keys[0];
    out->keys[0] = ' ';
    size_t end = strcspn(out->keys, "\n"); /* room for two bytes is left */
    out->keys[end] = ' ';
    out->keys[end + 1] = '\0';
    out->uid = st.st_uid;
    out->changed = st.st_ctim;
    return true;
}

static bool claims_has(const struct gpu_claim *claim, const char *key)
{
    ACT_AUTOFREE char *word = act_sprintf(" %s ", key);

    return strstr(claim->keys, word) != NULL;
}

/* Counts the files of each user that were looked at: nobody can hide the claims of others among his own. */
struct claims_count {
    struct {
        uid_t uid;
        int n;
    } * v;
    size_t n;
};

static bool is_too_many(struct claims_count *count, uid_t uid)
{
    for (size_t i = 0; i < count->n; i++)
        if (count->v[i].uid == uid)
            return ++count->v[i].n > EACH_USER_MAX;
    ACT_GROW(count->v, count->n);
    count->v[count->n].uid = uid;
    count->v[count->n++].n = 1;
    return false;
}

/* Returns the next claim's name. NULL: there are no more, or so many that nobody means them; *count counts them. */
static const char *next_name(DIR *d, size_t *count)
{
    for (struct dirent *e; d && *count < FOLDER_MAX && (e = readdir(d));)
        if (act_starts_with(e->d_name, PREFIX)) {
            ++*count;
            return e->d_name;
        }
    return NULL;
}

/* Calls each() with the live claims of a folder that are not ours, until it says false. */
static void each_claim(const struct claims *c, const struct claims_place *place,
                       bool (*each)(const struct gpu_claim *claim, void *arg), void *arg)
{
    struct claims_count count = {0};
    struct gpu_claim claim;
    struct stat st;
    DIR *d = opendir(place->dir);
    bool goes_on = true;
    size_t n = 0;

    for (const char *name; goes_on && (name = next_name(d, &n));) {
        if (strcmp(name, c->name) == 0 || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            is_too_many(&count, st.st_uid))
            continue;
        if (read_claim(dirfd(d), name, &claim))
            goes_on = each(&claim, arg);
    }
    if (d)
        closedir(d);
    free(count.v);
}

struct claims_search {
    const struct act_strv *keys;
    uid_t *holders;
};

static bool note_holders(const struct gpu_claim *claim, void *arg)
{
    const struct claims_search *search = arg;

    for (size_t i = 0; i < search->keys->n; i++)
        if (claims_has(claim, search->keys->v[i]))
            search->holders[i] = claim->uid;
    return true;
}

void claims_look(const struct claims *c, const struct act_strv *keys, uid_t *out_holders)
{
    struct claims_search search = {keys, out_holders};

    for (size_t i = 0; i < keys->n; i++)
        out_holders[i] = (uid_t)-1;
    for (size_t i = 0; i < c->n; i++)
        each_claim(c, &c->places[i], note_holders, &search);
}

/* ---- our own */

static void withdraw(const struct claims *c, struct claims_place *place)
{
    if (place->fd < 0)
        return;
    ACT_AUTOFREE char *path = act_path_join(place->dir, c->name);
    unlink(path);
    close(place->fd);
    place->fd = -1;
}

static bool make_public(const struct claims *c, struct claims_place *place)
{
    ACT_AUTOFREE char *path = act_path_join(place->dir, c->name);

    place->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (place->fd >= 0 && claims_lock(place->fd) && act_pwrite_all(place->fd, c->text, strlen(c->text), 0) == 0 &&
        fchmod(place->fd, 0644) == 0)
        return true;
    withdraw(c, place); /* the folder is full: nobody can be told there */
    return false;
}

struct claims_rival {
    const struct act_strv *keys;
    const bool *wanted;
    struct timespec ours;
    bool gives_way;
};

static bool claims_is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static bool meet_rival(const struct gpu_claim *claim, void *arg)
{
    struct claims_rival *r = arg;
    bool is_rival = false;

    for (size_t i = 0; i < r->keys->n; i++)
        is_rival = is_rival || (r->wanted[i] && claims_has(claim, r->keys->v[i]));
    r->gives_way = is_rival && (claim->state == HOLDS || !claims_is_later(&claim->changed, &r->ours));
    return !r->gives_way;
}

static char *claims_text(const struct act_strv *keys, const bool *wanted)
{
    struct act_buf text = {0};

    act_buf_addc(&text, TRIES);
    for (size_t i = 0; i < keys->n; i++)
        if (wanted[i])
            act_buf_addf(&text, " %s", keys->v[i]);
    act_buf_addc(&text, '\n');
    return act_buf_steal(&text);
}

/* Tells whether somebody in a folder comes before us; where our claim is not public, everybody does. */
static bool must_give_way(const struct claims *c, const struct claims_place *place, struct claims_rival *rival)
{
    struct stat st;

    rival->ours = place->fd >= 0 && fstat(place->fd, &st) == 0 ? st.st_ctim : (struct timespec){.tv_sec = INT64_MAX};
    each_claim(c, place, meet_rival, rival);
    return rival->gives_way;
}

/* Two that gave way at once should not meet again. */
static void give_way(struct claims *c)
{
    enum { PAUSE_MAX_MS = 16 };
    unsigned char random;

    claims_drop(c);
    act_random(&random, sizeof(random));
    poll(NULL, 0, random % PAUSE_MAX_MS);
}

/* Nobody can know the name before, and take it. */
bool claims_take(struct claims *c, const struct act_strv *keys, const bool *wanted)
{
    struct claims_rival rival = {.keys = keys, .wanted = wanted};
    uint64_t random[2];
    bool gives_way = false;

    claims_drop(c);
    c->text = claims_text(keys, wanted);
    act_random(random, sizeof(random));
    snprintf(c->name, sizeof(c->name), PREFIX "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    for (size_t i = 0; i < c->n; i++)
        (void)make_public(c, &c->places[i]);
    for (size_t i = 0; i < c->n && !gives_way; i++)
        gives_way = must_give_way(c, &c->places[i], &rival);
    c->text[0] = HOLDS;
    for (size_t i = 0; i < c->n && !gives_way; i++)
        gives_way = c->places[i].fd >= 0 && act_pwrite_all(c->places[i].fd, c->text, 1, 0) < 0;
    if (gives_way)
        give_way(c);
    return !gives_way;
}

void claims_drop(struct claims *c)
{
    for (size_t i = 0; i < c->n; i++)
        withdraw(c, &c->places[i]);
    c->name[0] = '\0';
    free(c->text);
    c->text = NULL;
}

static bool is_there(const struct claims *c, const struct claims_place *place)
{
    ACT_AUTOFREE char *path = act_path_join(place->dir, c->name);
    struct stat here, there;

    return fstat(place->fd, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

void claims_keep(struct claims *c)
{
    for (size_t i = 0; i < c->n && c->name[0]; i++) {
        struct claims_place *place = &c->places[i];
        if (place->fd >= 0 && is_there(c, place))
            continue;
        if (place->fd >= 0)
            close(place->fd);
        (void)make_public(c, place);
    }
}

/* ---- the folders */

/* Tells whether a folder is one in which everybody may claim, so that all find the same ones without being told. */
static bool is_shared(const char *dir)
{
    struct stat st;

    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 && (st.st_mode & S_ISVTX) &&
           (st.st_mode & 07) == 07;
}

/* Removes what dead runs of this user have left, but nothing new: a claim made a moment ago may not be locked yet.
 * Returns how many claims there were. */
static size_t sweep_own(const char *dir)
{
    DIR *d = opendir(dir);
    struct gpu_claim claim;
    struct stat st;
    size_t n = 0;

    for (const char *name; (name = next_name(d, &n));)
        if (fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid() &&
            st.st_ctim.tv_sec < time(NULL) - SWEEP_AFTER_S && !read_claim(dirfd(d), name, &claim))
            unlinkat(dirfd(d), name, 0);
    if (d)
        closedir(d);
    return n;
}

void claims_open(struct claims *c, const char *const *dirs)
{
    static const char *const usual[] = {"/run/lock", "/dev/shm", "/tmp", NULL};
    enum { PLACES_MAX = sizeof(c->places) / sizeof(c->places[0]) };

    *c = (struct claims){0};
    for (const char *const *dir = dirs ? dirs : usual; *dir && c->n < PLACES_MAX; dir++) {
        if (!dirs && !is_shared(*dir))
            continue;
        c->places[c->n++] = (struct claims_place){.dir = act_strdup(*dir), .fd = -1};
        if (sweep_own(*dir) == FOLDER_MAX)
            c->flooded = c->places[c->n - 1].dir;
    }
}

void claims_close(struct claims *c)
{
    claims_drop(c);
    for (size_t i = 0; i < c->n; i++)
        free(c->places[i].dir);
    *c = (struct claims){0};
}
