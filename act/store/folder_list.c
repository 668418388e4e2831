/* folder_list.c - a folder tree as pages of keys in byte order.
 *
 * The tree is walked depth first. Names of folders are kept with their final slash, so that sorting the names
 * of one folder puts whole keys in byte order: "a-b", "a/x", "a0". In memory are only the names of the
 * folders on the current path, and open is only the current folder. The place where a page ended is kept, so
 * that the next page goes on there; a marker alone (another listing came between) finds the place again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/folder.h"

#define DISK_BLOCK 512    /* what stat counts st_blocks in */
#define MAX_LINKED 100000 /* folders entered through links that were found behind links */

struct folder_level {
    struct act_strv names; /* sorted; of folders with '/' */
    size_t next;
    size_t path_len; /* of the folder's own key */
    size_t base_len; /* of the key of the followed link in which it is, or that it is itself */
    dev_t dev;       /* of the folder */
    ino_t ino;
};

struct folder_walk {
    char *prefix;
    bool delimiter, whole, leftovers, follow;
    char *after;         /* only keys after this one; NULL: all. After a page: its last key */
    struct act_buf path; /* key of the current folder, "" or with a final '/' */
    struct folder_level *levels;
    size_t depth;
    size_t linked; /* folders entered through links behind links so far */
    int fd;        /* of the current folder; -1: to be opened again */
};

struct folder_listing {
    struct folder *folder;
    struct folder_walk *walk;
    struct store_page *page;
};

static void close_fd(struct folder_walk *walk)
{
    if (walk->fd >= 0)
        close(walk->fd);
    walk->fd = -1;
}

static const char *listing_path(const struct folder_walk *walk)
{
    return walk->path.data ? walk->path.data : "";
}

static void truncate_path(struct folder_walk *walk, size_t len)
{
    if (walk->path.data)
        walk->path.data[len] = '\0';
    walk->path.len = len;
}

static void pop(struct folder_walk *walk)
{
    act_strv_release(&walk->levels[--walk->depth].names);
    close_fd(walk);
    if (walk->depth)
        truncate_path(walk, walk->levels[walk->depth - 1].path_len);
}

void folder_walk_free(struct folder_walk *walk)
{
    if (!walk)
        return;
    while (walk->depth)
        pop(walk);
    close_fd(walk);
    free(walk->levels);
    act_buf_release(&walk->path);
    free(walk->prefix);
    free(walk->after);
    free(walk);
}

bool folder_walk_fits(const struct folder_walk *walk, const struct store_call *call)
{
    return call->list.marker && walk->delimiter == call->list.delimiter && walk->whole == call->list.whole &&
           walk->leftovers == call->list.leftovers && act_streq(walk->after, call->list.marker) &&
           strcmp(walk->prefix, call->key) == 0;
}

/* ---- the names of one folder */

/* Returns DT_DIR, DT_REG, DT_LNK or another type; -1: it is gone. What cannot be examined counts as a file, and
 * shows its error when it is listed. */
static int type_of(int fd, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? -1 : DT_REG;
    return (int)IFTODT(st.st_mode);
}

/* Returns whether the prefix asks for this name (of a folder: with '/') in the current folder. */
static bool is_asked_for(const struct folder_walk *walk, const char *name)
{
    size_t n = walk->path.len;

    return strlen(walk->prefix) <= n || act_starts_with(name, walk->prefix + n);
}

/* Returns whether an earlier page listed the name, with all that lies below it. */
static bool is_behind_us(const struct folder_walk *walk, const char *name)
{
    if (!walk->after || !act_starts_with(walk->after, listing_path(walk)))
        return false;
    const char *rest = walk->after + walk->path.len;
    if (!walk->delimiter && act_ends_with(name, "/") && act_starts_with(rest, name))
        return false; /* the last page ended inside */
    return strcmp(name, rest) <= 0;
}

/* Returns whether the listing is of names like this one. */
static bool is_of_interest(const struct folder_walk *walk, const struct dirent *entry, int type)
{
    const char *name = entry->d_name;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    if (walk->leftovers && type != DT_DIR)
        return folder_is_part(name) && (type == DT_REG || type == DT_LNK);
    return type == DT_DIR || !folder_is_temporary(name);
}

/* Returns whether another folder store would refuse a link of the current folder, in which the folders that a
 * followed link leads to would be real ones. */
static bool leads_out(const struct folder_walk *walk, size_t base_len, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(walk->fd, name, target, sizeof(target));
    ACT_AUTOFREE char *key = act_sprintf("%s%s", listing_path(walk) + base_len, name);

    return n < 0 || folder_link_problem(key, target, (size_t)n) != NULL;
}

/* Returns the type of a link's target, if the link is to be followed and the target exists. */
static int followed_type(const struct folder_walk *walk, size_t base_len, const char *name)
{
    struct stat st;

    if (!walk->follow || !leads_out(walk, base_len, name) || fstatat(walk->fd, name, &st, 0))
        return DT_LNK;
    return (int)IFTODT(st.st_mode);
}

/* Takes one name of the current folder into names. */
static void listing_add_name(const struct folder_walk *walk, const struct dirent *entry, struct folder_level *level,
                             bool *found)
{
    const char *name = entry->d_name;
    int type = type_of(walk->fd, entry);

    if (!is_of_interest(walk, entry, type))
        return;
    if (type == DT_LNK)
        type = followed_type(walk, level->base_len, name);
    ACT_AUTOFREE char *full = act_sprintf("%s%s", name, type == DT_DIR ? "/" : "");
    if (type < 0 || !is_asked_for(walk, full))
        return;
    *found = true;
    if (!is_behind_us(walk, full))
        act_strv_push(&level->names, full);
}

/* When it fails errno says why. */
static int read_names(const struct folder_walk *walk, struct folder_level *level, bool *found, struct act_error *err)
{
    struct dirent *entry;
    int rc = 0, fd = openat(walk->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir) {
        rc = act_error_errno(err, errno, "cannot read the folder '%s'", listing_path(walk));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0)
        listing_add_name(walk, entry, level, found);
    int saved = errno;
    if (saved)
        rc = act_error_errno(err, saved, "cannot read the folder '%s'", listing_path(walk));
    closedir(dir);
    errno = saved;
    act_strv_sort(&level->names);
    return rc;
}

/* ---- the walk */

/* When it fails errno says why. */
static int open_at_hand(struct folder_listing *l, struct act_error *err)
{
    struct folder_walk *walk = l->walk;

    if (walk->fd >= 0)
        return 0;
    return folder_open_dir(l->folder, listing_path(walk), walk->path.len ? walk->path.len - 1 : 0, false, &walk->fd,
                           err);
}

/* Adds an entry, which is valid until the next one is added. */
static struct store_entry *listing_emit(struct folder_listing *l, const char *key, const struct stat *st)
{
    struct store_entry *entry = store_page_add(l->page);

    folder_fill(entry, key, st);
    return entry;
}

/* Adds the current folder itself, unless it is the one that is listed. */
static int emit_folder(struct folder_listing *l, const struct folder_level *level, bool filled, struct act_error *err)
{
    struct folder_walk *walk = l->walk;
    const char *key = listing_path(walk);
    struct stat st;

    if (walk->leftovers || walk->depth == 0 || (walk->after && strcmp(key, walk->after) <= 0))
        return 0;
    if (fstat(walk->fd, &st))
        return act_error_errno(err, errno, "folder '%s'", key);
    struct store_entry *entry = listing_emit(l, key, &st);
    entry->filled = filled;
    entry->leads_out = level->base_len == level->path_len;
    return 0;
}

static struct store_entry *emit_unreadable(struct folder_listing *l, const char *key, int errnum)
{
    struct store_entry *entry = store_page_add(l->page);

    entry->key = act_strdup(key);
    entry->kind = STORE_UNREADABLE;
    entry->problem = errnum;
    return entry;
}

/* Adds the folder whose key is in walk->path and which could not be read, unless it is the one that is listed, or
 * gone. */
static int pass_by(struct folder_listing *l, int rc, int errnum)
{
    if (rc == -(int)ACT_NOT_FOUND)
        return 0;
    if (l->walk->depth == 0)
        return rc;
    emit_unreadable(l, listing_path(l->walk), errnum);
    return 0;
}

/* Refuses a folder that contains itself: its listing would never end. */
static int check_loop(const struct folder_walk *walk, struct folder_level *level, struct act_error *err)
{
    struct stat st;

    if (fstat(walk->fd, &st))
        return act_error_errno(err, errno, "folder '%s'", listing_path(walk));
    level->dev = st.st_dev;
    level->ino = st.st_ino;
    for (size_t i = 0; i < walk->depth; i++)
        if (walk->levels[i].ino == level->ino && walk->levels[i].dev == level->dev) {
            errno = ELOOP;
            return act_error_errno(err, errno, "folder '%s'", listing_path(walk));
        }
    return 0;
}

/* Refuses folders that link to each other, without a loop, in more ways than anybody could walk: two links in each
 * of forty folders are a million million. */
static int check_ways(struct folder_walk *walk, const struct folder_level *level, struct act_error *err)
{
    bool behind = walk->depth && walk->levels[walk->depth - 1].base_len;

    if (!behind || level->base_len != level->path_len || ++walk->linked <= MAX_LINKED)
        return 0;
    errno = EMLINK;
    return act_error_errno(err, errno, "folder '%s'", listing_path(walk));
}

/* Goes down into the folder whose key is in walk->path. */
static int push(struct folder_listing *l, size_t base_len, struct act_error *err)
{
    struct folder_walk *walk = l->walk;
    struct folder_level level = {.path_len = walk->path.len, .base_len = base_len};
    bool found = false;

    close_fd(walk);
    int rc = open_at_hand(l, err);
    if (rc == 0 && walk->follow)
        rc = check_loop(walk, &level, err);
    if (rc == 0 && walk->follow)
        rc = check_ways(walk, &level, err);
    if (rc == 0)
        rc = read_names(walk, &level, &found, err);
    if (rc == 0 && (walk->whole || !found))
        rc = emit_folder(l, &level, found, err);
    if (rc) {
        int errnum = errno;
        act_strv_release(&level.names);
        return pass_by(l, rc, errnum);
    }
    ACT_PUSH(walk->levels, walk->depth, level);
    return 0;
}

static void emit_leftover(struct folder_listing *l, const char *key, const char *name, const struct stat *st)
{
    if (!folder_part_is_free(l->walk->fd, name))
        return;
    listing_emit(l, key, st)->size = (uint64_t)st->st_blocks * DISK_BLOCK;
}

/* Adds what has a name and is not an object: a pipe, a socket, a device, or a folder in place of what was listed. */
static struct store_entry *emit_odd(struct folder_listing *l, const char *key, const struct stat *st)
{
    return emit_unreadable(l, key, S_ISDIR(st->st_mode) ? EISDIR : ENXIO);
}

static void emit_outward(struct folder_listing *l, const char *key, const char *name, const struct stat *link)
{
    struct stat st;

    if (!l->walk->follow)
        listing_emit(l, key, link)->leads_out = true;
    else if (fstatat(l->walk->fd, name, &st, 0))
        emit_unreadable(l, key, errno)->leads_out = true;
    else if (S_ISREG(st.st_mode))
        listing_emit(l, key, &st);
    else
        emit_odd(l, key, &st)->leads_out = true;
}

/* Adds a file or a link, unless it is gone in the meantime. */
static void emit_file(struct folder_listing *l, const char *name)
{
    struct folder_walk *walk = l->walk;
    struct act_error ignored;
    struct stat st;
    ACT_AUTOFREE char *key = act_sprintf("%s%s", listing_path(walk), name);
    int rc = open_at_hand(l, &ignored);

    if (rc == 0 && fstatat(walk->fd, name, &st, AT_SYMLINK_NOFOLLOW))
        rc = act_error_errno(&ignored, errno, "%s", "");
    if (rc == -(int)ACT_NOT_FOUND)
        return;
    if (rc)
        emit_unreadable(l, key, errno);
    else if (walk->leftovers)
        emit_leftover(l, key, name, &st);
    else if (S_ISLNK(st.st_mode) && leads_out(walk, walk->levels[walk->depth - 1].base_len, name))
        emit_outward(l, key, name, &st);
    else if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        listing_emit(l, key, &st);
    else
        emit_odd(l, key, &st);
}

static void emit_prefix(struct folder_listing *l, const char *name)
{
    ACT_AUTOFREE char *key = act_sprintf("%s%s", listing_path(l->walk), name);
    struct act_error ignored;
    struct stat st;

    if (open_at_hand(l, &ignored) == 0 && fstatat(l->walk->fd, name, &st, 0) == 0)
        listing_emit(l, key, &st)->kind = STORE_PREFIX;
    else
        *store_page_add(l->page) = (struct store_entry){.key = act_strdup(key), .kind = STORE_PREFIX, .mode = -1};
}

/* Returns where the path of a folder of the current one begins, whose name ends in '/'. */
static size_t base_of(struct folder_listing *l, const struct folder_level *top, const char *name)
{
    ACT_AUTOFREE char *bare = act_strndup(name, strlen(name) - 1);
    struct act_error ignored;
    struct stat st;

    if (!l->walk->follow || open_at_hand(l, &ignored) || fstatat(l->walk->fd, bare, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISLNK(st.st_mode))
        return top->base_len;
    return top->path_len + strlen(name);
}

/* Goes one name further. */
static int step(struct folder_listing *l, struct act_error *err)
{
    struct folder_walk *walk = l->walk;
    struct folder_level *top = &walk->levels[walk->depth - 1];

    if (walk->path.len != top->path_len) { /* back from a folder that was not entered */
        truncate_path(walk, top->path_len);
        close_fd(walk);
    }
    if (top->next == top->names.n) {
        pop(walk);
        return 0;
    }
    const char *name = top->names.v[top->next++];
    if (!act_utf8_valid(name, strlen(name))) {
        ACT_AUTOFREE char *key = act_sprintf("%s%s", listing_path(walk), name);
        emit_unreadable(l, key, EILSEQ);
        return 0;
    }
    if (act_ends_with(name, "/") && !walk->delimiter) {
        size_t base_len = base_of(l, top, name);
        act_buf_adds(&walk->path, name);
        return push(l, base_len, err);
    }
    if (act_ends_with(name, "/"))
        emit_prefix(l, name);
    else
        emit_file(l, name);
    return 0;
}

static struct folder_walk *walk_new(const struct folder *folder, const struct store_call *call)
{
    struct folder_walk *walk = act_calloc(1, sizeof(*walk));
    const char *slash = strrchr(call->key, '/');

    walk->prefix = act_strdup(call->key);
    walk->delimiter = call->list.delimiter;
    walk->whole = call->list.whole;
    walk->leftovers = call->list.leftovers;
    walk->follow = folder->store.follow;
    walk->after = act_strdup(call->list.marker);
    walk->fd = -1;
    if (slash)
        act_buf_add(&walk->path, call->key, (size_t)(slash - call->key) + 1);
    return walk;
}

/* Fills the page from where the walk stopped. */
static int fill_listing(struct folder_listing *l, size_t max, struct act_error *err)
{
    int rc = 0;

    while (rc == 0 && l->walk->depth && l->page->n < max)
        rc = step(l, err);
    return rc;
}

int folder_list(struct folder *folder, struct store_call *call, struct folder_walk **walk, struct act_error *err)
{
    struct folder_listing l = {.folder = folder, .walk = *walk, .page = &call->list.page};
    const char *problem = folder_prefix_problem(call->key);
    size_t max = call->list.max > 0 && call->list.max < STORE_PAGE_MAX ? (size_t)call->list.max : STORE_PAGE_MAX;
    int rc = 0;

    if (problem)
        return act_error_set(err, ACT_FAIL, "the name %s", problem);
    if (!l.walk) {
        l.walk = *walk = walk_new(folder, call);
        rc = push(&l, 0, err);
    }
    if (rc == 0)
        rc = fill_listing(&l, max, err);
    if (rc == 0 && l.walk->depth && call->list.page.n) {
        call->list.page.next = act_strdup(call->list.page.v[call->list.page.n - 1].key);
        free(l.walk->after);
        l.walk->after = act_strdup(call->list.page.next);
        close_fd(l.walk); /* a page may be the last that is asked for: keep no descriptor */
        return 0;
    }
    folder_walk_free(l.walk);
    *walk = NULL;
    return rc;
}
