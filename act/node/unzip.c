/* unzip.c - unpacks in three steps, so that no order of entries can lead out of the target:
 * every entry is checked, then folders and files are made, and only then links, where nothing is yet. */
#include "node/unzip.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <minizip/unzip.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"

enum { NAME_MAX_BYTES = 65535, MADE_BY_UNIX = 3, FLAG_ENCRYPTED = 1, CHUNK_BYTES = 256 * 1024 };

struct entry {
    char name[NAME_MAX_BYTES + 1];
    uint64_t size;
    mode_t mode; /* type and permissions */
};

struct unzip {
    unzFile zip;
    const char *target;
    bool over;
    struct entry entry;
    char *chunk;
    struct act_strv links; /* name, text, name, text, ... */
    struct act_strv folders;
    mode_t *folder_modes; /* of folders */
    struct act_error *err;
};

static int refuse(struct unzip *u, const char *why)
{
    return act_error_set(u->err, ACT_FAIL, "entry '%s' %s", u->entry.name, why);
}

/* Permissions and type: from a Unix zip its own, from others those of a plain file or folder. */
static mode_t entry_mode(const unz_file_info64 *info, const char *name)
{
    mode_t mode = (info->version >> 8) == MADE_BY_UNIX ? (mode_t)(info->external_fa >> 16) : 0;
    bool folder = act_ends_with(name, "/");

    if ((mode & S_IFMT) == 0)
        mode |= folder ? S_IFDIR : S_IFREG;
    if ((mode & 0777) == 0)
        mode |= folder ? 0755 : 0644;
    return mode & (S_IFMT | 0777);
}

/* Reads and checks the entry at hand. */
static int read_entry(struct unzip *u)
{
    struct entry *e = &u->entry;
    unz_file_info64 info;

    e->name[0] = '\0';
    if (unzGetCurrentFileInfo64(u->zip, &info, e->name, sizeof(e->name), NULL, 0, NULL, 0) != UNZ_OK)
        return act_error_set(u->err, ACT_FAIL, "its table of contents is damaged");
    e->size = info.uncompressed_size;
    e->mode = entry_mode(&info, e->name);
    if (info.size_filename > NAME_MAX_BYTES || strlen(e->name) != info.size_filename ||
        !act_path_is_safe(e->name, info.size_filename))
        return refuse(u, "has a name that leads out of the target, or is none");
    if (info.flag & FLAG_ENCRYPTED)
        return refuse(u, "is encrypted");
    if (!S_ISREG(e->mode) && !S_ISDIR(e->mode) && !S_ISLNK(e->mode))
        return refuse(u, "is neither a file nor a folder nor a link");
    if (S_ISDIR(e->mode) != act_ends_with(e->name, "/"))
        return refuse(u, "does not know whether it is a folder");
    if (S_ISLNK(e->mode) && (e->size == 0 || e->size >= PATH_MAX))
        return refuse(u, "is a link of impossible length");
    return 0;
}

/* Calls visit for every entry. */
static int for_each(struct unzip *u, int (*visit)(struct unzip *, void *), void *arg)
{
    int at = unzGoToFirstFile(u->zip);

    for (; at == UNZ_OK; at = unzGoToNextFile(u->zip)) {
        int rc = read_entry(u);
        if (rc == 0)
            rc = visit(u, arg);
        if (rc < 0)
            return rc;
    }
    return at == UNZ_END_OF_LIST_OF_FILE
               ? 0
               : act_error_set(u->err, ACT_FAIL, "its table of contents is damaged");
}

/* ---- the data of one entry ---- */

static int write_out(struct unzip *u, void *fd, const void *data, size_t len)
{
    if (act_write_all(*(int *)fd, data, len) == 0)
        return 0;
    return act_error_errno(u->err, errno, "cannot write '%s'", u->entry.name);
}

static int keep_text(struct unzip *u, void *buf, const void *data, size_t len)
{
    (void)u;
    act_buf_add(buf, data, len);
    return 0;
}

/* Exactly the declared number of bytes, with the declared CRC. */
static int read_data(struct unzip *u, int (*sink)(struct unzip *, void *, const void *, size_t), void *arg)
{
    uint64_t left = u->entry.size;
    int n, rc = 0;

    if (unzOpenCurrentFile(u->zip) != UNZ_OK)
        return refuse(u, "is damaged, or packed in a way that is not known here");
    while (rc == 0 && (n = unzReadCurrentFile(u->zip, u->chunk, CHUNK_BYTES)) != 0) {
        if (n < 0 || (uint64_t)n > left) {
            rc = refuse(u, n < 0 ? "is damaged" : "is longer than it says");
        } else {
            left -= (uint64_t)n;
            rc = sink(u, arg, u->chunk, (size_t)n);
        }
    }
    if (unzCloseCurrentFile(u->zip) != UNZ_OK && rc == 0)
        rc = refuse(u, "is damaged: its checksum does not match");
    if (rc == 0 && left > 0)
        rc = refuse(u, "is shorter than it says");
    return rc;
}

/* ---- the three kinds ---- */

static char *target_path(const struct unzip *u, const char *name)
{
    return act_path_join(u->target, name);
}

static int make_parents(struct unzip *u, const char *path)
{
    ACT_AUTOFREE char *parent = act_path_dirname(path);

    return act_mkdir_all(parent, 0755, u->err);
}

static int unpack_file(struct unzip *u)
{
    ACT_AUTOFREE char *path = target_path(u, u->entry.name);
    if (u->over)
        unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 && errno == ENOENT) {
        int rc = make_parents(u, path);
        if (rc < 0)
            return rc;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (fd < 0 && errno == EEXIST)
        return refuse(u, "appears twice");
    if (fd < 0)
        return act_error_errno(u->err, errno, "cannot make '%s'", u->entry.name);

    int rc = read_data(u, write_out, &fd);
    if (rc == 0 && fchmod(fd, u->entry.mode & 0777) < 0)
        rc = act_error_errno(u->err, errno, "cannot set the mode of '%s'", u->entry.name);
    if (close(fd) < 0 && rc == 0)
        rc = act_error_errno(u->err, errno, "cannot write '%s'", u->entry.name);
    return rc;
}

static int unpack_folder(struct unzip *u)
{
    ACT_AUTOFREE char *path = target_path(u, u->entry.name);

    path[strlen(path) - 1] = '\0'; /* the final slash */
    u->folder_modes = act_realloc(u->folder_modes, (u->folders.n + 1) * sizeof(mode_t));
    u->folder_modes[u->folders.n] = u->entry.mode & 0777;
    act_strv_push(&u->folders, path);
    return act_mkdir_all(path, 0755, u->err);
}

static int keep_link(struct unzip *u)
{
    struct act_buf text = {0};
    int rc = read_data(u, keep_text, &text);

    if (rc == 0 && (!text.data || strlen(text.data) != text.len))
        rc = refuse(u, "is a link to an impossible name");
    if (rc == 0) {
        act_strv_push(&u->links, u->entry.name);
        act_strv_push(&u->links, text.data);
    }
    act_buf_release(&text);
    return rc;
}

/* ---- the three steps ---- */

static int check_entry(struct unzip *u, void *total)
{
    uint64_t *sum = total;

    if (__builtin_add_overflow(*sum, u->entry.size, sum))
        return refuse(u, "has an impossible size");
    return 0;
}

static int check_room(struct unzip *u, uint64_t total)
{
    char needed[ACT_UNIT_TEXT], there[ACT_UNIT_TEXT];
    struct statvfs fs;

    if (statvfs(u->target, &fs) < 0)
        return act_error_errno(u->err, errno, "cannot look at '%s'", u->target);
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (total <= room)
        return 0;
    act_size_to_text(total, needed);
    act_size_to_text(room, there);
    return act_error_set(u->err, ACT_FAIL, "it needs %s, and the disk of '%s' has room for %s", needed,
                         u->target, there);
}

static int unpack_entry(struct unzip *u, void *arg)
{
    (void)arg;
    if (S_ISDIR(u->entry.mode))
        return unpack_folder(u);
    return S_ISLNK(u->entry.mode) ? keep_link(u) : unpack_file(u);
}

static int make_links(struct unzip *u)
{
    for (size_t i = 0; i < u->links.n; i += 2) {
        const char *name = u->links.v[i];
        ACT_AUTOFREE char *path = target_path(u, name);
        int rc = make_parents(u, path);
        if (rc < 0)
            return rc;
        if (u->over)
            unlink(path);
        if (symlink(u->links.v[i + 1], path) < 0)
            return errno == EEXIST ? act_error_set(u->err, ACT_FAIL,
                                                   "entry '%s' is a link, and something else besides", name)
                                   : act_error_errno(u->err, errno, "cannot make the link '%s'", name);
    }
    return 0;
}

/* Last, because a folder without write permission takes no files. The owner keeps his rights: mapped folders
 * and compiled files still have to go in. */
static int set_folder_modes(struct unzip *u)
{
    for (size_t i = 0; i < u->folders.n; i++)
        if (chmod(u->folders.v[i], u->folder_modes[i] | 0700) < 0)
            return act_error_errno(u->err, errno, "cannot set the mode of '%s'", u->folders.v[i]);
    return 0;
}

static int unpack_all(struct unzip *u)
{
    uint64_t total = 0;
    int rc = for_each(u, check_entry, &total);

    if (rc == 0)
        rc = check_room(u, total);
    if (rc == 0)
        rc = for_each(u, unpack_entry, NULL);
    if (rc == 0)
        rc = set_folder_modes(u);
    return rc == 0 ? make_links(u) : rc;
}

static int check_sha256(const char *zip, const char *sha256, struct act_error *err)
{
    char found[ACT_SHA256_HEX];
    int rc = act_sha256_file(zip, found, err);

    if (rc == 0 && strcmp(found, sha256) != 0)
        rc = act_error_set(err, ACT_FAIL, "its SHA-256 is %s instead of %s; submit the run again", found,
                           sha256);
    return rc;
}

static int open_and_unpack(const char *zip, const char *target, bool over, struct act_error *err)
{
    struct unzip *u = act_calloc(1, sizeof(*u));
    int rc;

    u->target = target;
    u->over = over;
    u->err = err;
    u->zip = unzOpen64(zip);
    u->chunk = act_alloc(CHUNK_BYTES);
    rc = u->zip ? unpack_all(u) : act_error_set(err, ACT_FAIL, "it is no zip file, or a damaged one");
    if (u->zip)
        unzClose(u->zip);
    act_strv_release(&u->links);
    act_strv_release(&u->folders);
    free(u->folder_modes);
    free(u->chunk);
    free(u);
    return rc;
}

int node_unzip(const char *zip, const char *sha256, const char *target, bool over, struct act_error *err)
{
    int rc = sha256 ? check_sha256(zip, sha256, err) : 0;

    if (rc == 0)
        rc = act_mkdir_all(target, 0755, err);
    if (rc == 0)
        rc = open_and_unpack(zip, target, over, err);
    return rc < 0 ? act_error_prefix(err, "cannot unpack '%s'", act_path_basename(zip)) : 0;
}
