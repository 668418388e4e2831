/* here_new.c - what is being made, or on its way out, below <root>/new.
 *
 * A folder or file is filled there as NAME.<12 hex>@<machine> and then renamed to its place. Whoever fills one holds a
 * shared lock of this machine's lock file there; so who gets that lock alone knows that nobody fills anything on this
 * machine, and that what is there was left by processes that were killed. What came from another machine, whose locks
 * may not reach here, is left for an hour. A machine is known by its host name and its id, because several may have one
 * of these; one that gets another name is another machine.
 *
 * A run goes away as gone.<12 hex>@<machine>. That needs no lock: whatever is called so, anybody removes. Its secrets
 * go first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "site/site_internal.h"

#define LOCK ".lock-"
#define GONE "gone."

enum { OLD_S = 3600 };

static char *here_new_folder_of(const struct site *site)
{
    return act_path_join(site->root, "new");
}

/* Returns the id of machine-id(5), which is for nobody else to see, or in containers without one the kernel's: a new
 * string, "" if there is none. */
static char *read_machine_id(void)
{
    enum { ID_MAX = 256 };
    static const char *const files[] = {"/etc/machine-id", "/proc/sys/kernel/random/boot_id"};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *id = NULL;
        if (act_file_read(files[i], ID_MAX, &id, NULL, NULL) == 0 && *id)
            return id;
        free(id);
    }
    return act_strdup("");
}

/* Returns "@<host>-<8 hex>", which ends the names of this machine. New string. */
static char *mark_of_machine(void)
{
    static const char salt[] = "act new ";
    ACT_AUTOFREE char *id = read_machine_id();
    char host[256] = "", hex[ACT_SHA256_HEX];
    struct act_sha256 hash;

    if (gethostname(host, sizeof(host) - 1) < 0 || strchr(host, '/'))
        *host = '\0';
    act_sha256_init(&hash);
    act_sha256_add(&hash, salt, strlen(salt));
    act_sha256_add(&hash, id, strlen(id));
    act_sha256_done(&hash, hex);
    return act_sprintf("@%s-%.8s", host, hex);
}

/* Returns an unused name, a new string. */
static char *new_name(const char *folder, const char *name)
{
    ACT_AUTOFREE char *machine = mark_of_machine();
    uint8_t bytes[6];
    char random[2 * sizeof(bytes) + 1];

    act_random(bytes, sizeof(bytes)); /* several machines may work in this folder */
    act_hex(bytes, sizeof(bytes), random);
    return act_sprintf("%s/%s.%s%s", folder, name, random, machine);
}

/* ---- filling */

/* Takes the lock of this machine and user. Returns it, or -1: with EWOULDBLOCK others have it. A file system without
 * locks gives none, and then only age tells what was left. */
static int lock_folder(const char *folder, int how)
{
    ACT_AUTOFREE char *machine = mark_of_machine();
    ACT_AUTOFREE char *path = act_sprintf("%s/" LOCK "%u%s", folder, (unsigned)geteuid(), machine);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc;

    if (fd < 0)
        return -1;
    do
        rc = flock(fd, how);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int here_fill(const struct site *site, const char *name, struct here_filling *out, struct act_error *err)
{
    ACT_AUTOFREE char *folder = here_new_folder_of(site);
    int rc = act_mkdir_all(folder, 0700, err);

    *out = (struct here_filling){.lock_fd = -1};
    if (rc < 0)
        return rc;
    out->lock_fd = lock_folder(folder, LOCK_SH);
    out->path = new_name(folder, name);
    return 0;
}

void here_filling_release(struct here_filling *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    free(f->path);
    *f = (struct here_filling){.lock_fd = -1};
}

int here_publish(struct here_filling *f, const char *path, int rc, struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);

    if (rc == 0)
        rc = act_mkdir_all(dir, 0700, err);
    if (rc == 0 && rename(f->path, path) < 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    if (rc < 0 && f->path)
        unlink(f->path);
    here_filling_release(f);
    return rc;
}

/* ---- what is there */

/* A walk over what is this user's there; names with a dot are locks. */
struct look {
    DIR *dir;
    const char *folder;
};

static bool open_look(struct look *look, const char *folder)
{
    *look = (struct look){.dir = opendir(folder), .folder = folder};
    return look->dir != NULL;
}

/* Returns the path of the next one, a new string; NULL: there is no more. */
static char *next_path(struct look *look, struct stat *out)
{
    for (const struct dirent *e; look->dir && (e = readdir(look->dir));) {
        char *path = act_path_join(look->folder, e->d_name);
        if (e->d_name[0] != '.' && lstat(path, out) == 0 && out->st_uid == geteuid())
            return path;
        free(path);
    }
    return NULL;
}

static void close_look(struct look *look)
{
    if (look->dir)
        closedir(look->dir);
}

static bool here_new_is_gone(const char *path)
{
    return act_starts_with(act_path_basename(path), GONE);
}

/* Who fills something on this machine, as far as it is known. */
enum here { NOBODY_FILLS, SOMEBODY_FILLS, NO_LOCKS };

/* Tells whether its maker has ended. The clock of a file server may be hours behind, so that age counts only where no
 * lock tells. */
static bool is_left(const char *path, const struct stat *st, const char *machine, enum here here)
{
    if (here_new_is_gone(path))
        return true;
    if (here != NO_LOCKS && act_ends_with(path, machine))
        return here == NOBODY_FILLS;
    return st->st_mtime <= act_now_unix_s() - OLD_S;
}

/* ---- removing */

/* Gives a run's folder, or what was to become one, the name of what anybody removes. One that is not there is fine.
 * out_gone: that path, a new string; may be NULL. */
static int send_away(const char *folder, const char *path, char **out_gone, struct act_error *err)
{
    ACT_AUTOFREE char *gone = new_name(folder, "gone");
    ACT_AUTOFREE char *secrets = act_path_join(path, RUN_FILE_SECRETS);

    if (unlink(secrets) < 0 && errno != ENOENT && errno != ENOTDIR)
        return act_error_errno(err, errno, "cannot remove '%s'", secrets);
    if (rename(path, gone) < 0 && errno != ENOENT)
        return act_error_errno(err, errno, "cannot remove '%s'", path);
    if (out_gone)
        *out_gone = act_strdup(gone);
    return 0;
}

/* Removes all that is gone, whoever sent it away. */
static int remove_gone(const char *folder, struct act_error *err)
{
    struct look look;
    struct stat st;
    int rc = 0;

    open_look(&look, folder);
    for (char *path; (path = next_path(&look, &st)); free(path)) {
        struct act_error why;
        if (here_new_is_gone(path) && act_remove_tree(path, &why) < 0 && rc == 0) {
            *err = why;
            rc = -why.code;
        }
    }
    close_look(&look);
    return rc;
}

/* Sends away what was left, in a dry run nothing. Nobody begins to fill something meanwhile, so this does not take
 * long: it says where everything is then, and reads none of it. */
static int send_left_away(const char *folder, bool dry_run, struct act_strv *left, struct act_error *err)
{
    ACT_AUTOFREE char *machine = mark_of_machine();
    int lock = lock_folder(folder, LOCK_EX | LOCK_NB), rc = 0;
    enum here here = lock >= 0 ? NOBODY_FILLS : errno == EWOULDBLOCK ? SOMEBODY_FILLS : NO_LOCKS;
    struct look look;
    struct stat st;

    open_look(&look, folder);
    for (char *path; (path = next_path(&look, &st)); free(path)) {
        struct act_error why;
        char *gone = NULL;
        if (!is_left(path, &st, machine, here))
            continue;
        if (!dry_run && !here_new_is_gone(path) && send_away(folder, path, &gone, &why) < 0 && rc == 0) {
            *err = why;
            rc = -why.code;
        }
        act_strv_take(left, gone ? gone : act_strdup(path));
    }
    close_look(&look);
    if (lock >= 0)
        close(lock);
    return rc;
}

int here_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err)
{
    ACT_AUTOFREE char *folder = here_new_folder_of(site);
    ACT_AUTO(act_strv) left = {0};
    struct act_error more;

    if (out)
        *out = (struct site_left){0};
    if (access(folder, F_OK) < 0)
        return 0;
    int rc = send_left_away(folder, dry_run, &left, err);
    for (size_t i = 0; out && i < left.n; i++) {
        out->n++;
        out->bytes += act_tree_size(left.v[i]);
    }
    int removed = dry_run ? 0 : remove_gone(folder, rc < 0 ? &more : err);
    return rc < 0 ? rc : removed;
}

/* Sends away what was to become the folder of this run, on whichever machine, because nobody wants the run any more. */
static int send_filled_away(const char *folder, const char *id, struct act_error *err)
{
    ACT_AUTOFREE char *prefix = act_sprintf("%s.", id);
    struct look look;
    struct stat st;
    int rc = 0;

    open_look(&look, folder);
    for (char *path; (path = next_path(&look, &st)); free(path))
        if (rc == 0 && act_starts_with(act_path_basename(path), prefix))
            rc = send_away(folder, path, NULL, err);
    close_look(&look);
    return rc;
}

int here_remove_run(struct site *site, const char *id, struct act_error *err)
{
    ACT_AUTOFREE char *dir = site_run_dir(site, id), *folder = here_new_folder_of(site);
    ACT_AUTO(act_strv) left = {0};
    struct act_error others;
    int rc = 0;

    if (!run_id_valid(id))
        return 0;
    if (access(dir, F_OK) == 0) {
        rc = act_mkdir_all(folder, 0700, err);
        if (rc == 0)
            rc = send_away(folder, dir, NULL, err);
    }
    if (rc == 0)
        rc = send_filled_away(folder, id, err);
    if (rc == 0 && send_left_away(folder, false, &left, &others) < 0)
        (void)others; /* of other runs: the next one tries again */
    return rc < 0 ? rc : remove_gone(folder, err);
}
