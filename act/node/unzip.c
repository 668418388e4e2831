/* unzip.c - unpacks in three steps, so that no order of entries can lead out of the target: first folders, then files
 * by all threads, and only then links, where nothing exists yet. Meanwhile a separate thread computes the zip's
 * SHA-256, whose verdict takes precedence. */
#include "node/unzip.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
#include "node/child.h"
#include "node/confine.h"
#include "node/zip.h"
#include "run/run.h"

enum { THREADS_MAX = 16, ENTRIES_AT_ONCE = 32 };

struct unzip {
    struct zip zip;
    int target_fd;
    const char *target;
    bool over;
    atomic_size_t next; /* the next entry to unpack */
    atomic_bool failed;
};

struct worker {
    struct unzip *u;
    pthread_t thread;
    struct zip_reader *reader;
    int rc;
    struct act_error err;
};

/* ---- folders ---- */

/* Makes one folder whose parent exists. With over, a link of that name is replaced: nothing is written through it. */
static int unzip_make_folder(const struct unzip *u, const char *path, struct act_error *err)
{
    struct stat st;

    if (mkdirat(u->target_fd, path, 0755) == 0)
        return 0;
    if (errno == EEXIST && fstatat(u->target_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        errno = EEXIST;
        if (u->over && S_ISLNK(st.st_mode) && unlinkat(u->target_fd, path, 0) == 0 &&
            mkdirat(u->target_fd, path, 0755) == 0)
            return 0;
    }
    return act_error_errno(err, errno, "cannot make the folder '%s'", path);
}

/* Makes every parent folder of name, except those shared with the previous entry. */
static int make_parents(const struct unzip *u, const char *name, const char *before, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_strdup(name);
    size_t same = 0;
    int rc = 0;

    for (size_t i = 0; name[i] && name[i] == before[i]; i++)
        if (name[i] == '/')
            same = i + 1;
    for (char *slash = strchr(path + same, '/'); rc == 0 && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = unzip_make_folder(u, path, err);
        *slash = '/';
    }
    return rc;
}

static int unzip_make_folders(const struct unzip *u, struct act_error *err)
{
    const char *before = "";
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < u->zip.n; i++) {
        rc = make_parents(u, u->zip.v[i].name, before, err);
        before = u->zip.v[i].name;
    }
    return rc;
}

/* Last, because a folder without write permission takes no files. The owner keeps write permission: mapped folders and
 * compiled files still have to go in. */
static int set_folder_modes(const struct unzip *u, struct act_error *err)
{
    for (size_t i = 0; i < u->zip.n; i++) {
        const struct zip_entry *e = &u->zip.v[i];
        if (S_ISDIR(e->mode) && fchmodat(u->target_fd, e->name, (e->mode & 0777) | 0700, 0) < 0)
            return act_error_errno(err, errno, "cannot set the mode of '%s'", e->name);
    }
    return 0;
}

/* ---- files ---- */

struct file {
    const struct zip_entry *entry;
    int fd;
};

static int write_out(void *arg, const void *data, size_t len, struct act_error *err)
{
    const struct file *f = arg;

    return act_write_all(f->fd, data, len) == 0 ? 0 : act_error_errno(err, errno, "cannot write '%s'", f->entry->name);
}

static int unzip_open_new(const struct unzip *u, const char *name)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(u->target_fd, name, FLAGS, 0600);

    if (fd < 0 && errno == EEXIST && u->over && unlinkat(u->target_fd, name, 0) == 0)
        fd = openat(u->target_fd, name, FLAGS, 0600);
    return fd;
}

static int unpack_file(const struct worker *w, const struct zip_entry *e, struct act_error *err)
{
    struct file f = {.entry = e, .fd = unzip_open_new(w->u, e->name)};

    if (f.fd < 0)
        return act_error_errno(err, errno, "cannot make '%s'", e->name);
    int rc = zip_read(&w->u->zip, e, w->reader, write_out, &f, err);
    if (rc == 0 && fchmod(f.fd, e->mode & 0777) < 0)
        rc = act_error_errno(err, errno, "cannot set the mode of '%s'", e->name);
    if (close(f.fd) < 0 && rc == 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", e->name);
    return rc;
}

/* Entries are sorted by name: a thread that takes a batch of them works in one folder. */
static void *unzip_work(void *arg)
{
    struct worker *w = arg;
    const struct zip *zip = &w->u->zip;

    w->reader = zip_reader_new();
    while (w->rc == 0 && !w->u->failed) {
        size_t from = atomic_fetch_add(&w->u->next, ENTRIES_AT_ONCE), to = from + ENTRIES_AT_ONCE;
        if (from >= zip->n)
            break;
        for (size_t i = from; w->rc == 0 && i < to && i < zip->n; i++)
            if (S_ISREG(zip->v[i].mode))
                w->rc = unpack_file(w, &zip->v[i], &w->err);
    }
    if (w->rc < 0)
        w->u->failed = true;
    zip_reader_free(w->reader);
    return NULL;
}

static size_t count_threads(size_t entries)
{
    cpu_set_t set;
    size_t useful = entries / ENTRIES_AT_ONCE + 1;
    size_t n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : THREADS_MAX;

    n = n < useful ? n : useful;
    return n < THREADS_MAX ? n : THREADS_MAX;
}

/* This thread works too, so failing to start another one does not matter. */
static int unpack_files(struct unzip *u, struct act_error *err)
{
    struct worker w[THREADS_MAX];
    size_t n = count_threads(u->zip.n), started = 1;
    int rc = 0;

    for (size_t i = 0; i < THREADS_MAX; i++)
        w[i] = (struct worker){.u = u};
    while (started < n && pthread_create(&w[started].thread, NULL, unzip_work, &w[started]) == 0)
        started++;
    unzip_work(&w[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(w[i].thread, NULL);
    for (size_t i = 0; rc == 0 && i < started; i++)
        if ((rc = w[i].rc) < 0)
            *err = w[i].err;
    return rc;
}

/* ---- links ---- */

static int keep_text(void *buf, const void *data, size_t len, struct act_error *err)
{
    (void)err;
    act_buf_add(buf, data, len);
    return 0;
}

static int unzip_make_link(const struct unzip *u, const struct zip_entry *e, const char *to, struct act_error *err)
{
    if (u->over)
        unlinkat(u->target_fd, e->name, 0);
    if (symlinkat(to, u->target_fd, e->name) == 0)
        return 0;
    return errno == EEXIST ? zip_refuse(e, "is a link, and something else besides", err)
                           : act_error_errno(err, errno, "cannot make the link '%s'", e->name);
}

static int unpack_link(const struct unzip *u, const struct zip_entry *e, struct zip_reader *reader,
                       struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};
    int rc = zip_read(&u->zip, e, reader, keep_text, &text, err);

    if (rc == 0)
        rc = strlen(text.data) == text.len ? unzip_make_link(u, e, text.data, err)
                                           : zip_refuse(e, "is a link to an impossible name", err);
    return rc;
}

static int unpack_links(const struct unzip *u, struct act_error *err)
{
    struct zip_reader *reader = zip_reader_new();
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < u->zip.n; i++)
        if (S_ISLNK(u->zip.v[i].mode))
            rc = unpack_link(u, &u->zip.v[i], reader, err);
    zip_reader_free(reader);
    return rc;
}

/* ---- all of it ---- */

static int unzip_check_size(const struct unzip *u, uint64_t *out_total, struct act_error *err)
{
    struct stat st;

    *out_total = 0;
    for (size_t i = 0; i < u->zip.n; i++)
        if (__builtin_add_overflow(*out_total, u->zip.v[i].size, out_total))
            return zip_refuse(&u->zip.v[i], "has an impossible size", err);
    if (fstat(u->zip.fd, &st) < 0)
        return act_error_errno(err, errno, "cannot look at it");
    return run_check_unpacked((uint64_t)st.st_size, *out_total, err);
}

static int unzip_check_room(const struct unzip *u, struct act_error *err)
{
    char needed[ACT_UNIT_TEXT], there[ACT_UNIT_TEXT];
    struct statvfs fs;
    uint64_t total;
    int rc = unzip_check_size(u, &total, err);

    if (rc < 0)
        return rc;
    if (fstatvfs(u->target_fd, &fs) < 0)
        return act_error_errno(err, errno, "cannot look at '%s'", u->target);
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (total <= room)
        return 0;
    act_size_to_text(total, needed);
    act_size_to_text(room, there);
    return act_error_set(err, ACT_FAIL, "it needs %s, and the disk of '%s' has room for %s", needed, u->target, there);
}

static int unzip_open_target(struct unzip *u, struct act_error *err)
{
    int rc = act_mkdir_all(u->target, 0755, err);

    if (rc < 0)
        return rc;
    u->target_fd = open(u->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return u->target_fd < 0 ? act_error_errno(err, errno, "cannot open '%s'", u->target) : 0;
}

static int unzip_unpack(struct unzip *u, struct act_error *err)
{
    int rc = unzip_check_room(u, err);

    if (rc == 0)
        rc = unzip_make_folders(u, err);
    if (rc == 0)
        rc = unpack_files(u, err);
    if (rc == 0)
        rc = set_folder_modes(u, err);
    return rc == 0 ? unpack_links(u, err) : rc;
}

static int open_and_unpack(const char *zip, const char *target, bool over, struct act_error *err)
{
    struct unzip u = {.target_fd = -1, .target = target, .over = over};
    int rc = zip_open(zip, &u.zip, err);

    if (rc < 0)
        return rc;
    rc = unzip_open_target(&u, err);
    if (rc == 0)
        rc = unzip_unpack(&u, err);
    if (u.target_fd >= 0)
        close(u.target_fd);
    zip_close(&u.zip);
    return rc;
}

/* ---- the checksum ---- */

struct checksum {
    const char *zip, *wanted;
    pthread_t thread;
    int rc;
    struct act_error err;
};

static void *check_sha256(void *arg)
{
    struct checksum *c = arg;
    char found[ACT_SHA256_HEX];

    c->rc = act_sha256_file(c->zip, found, &c->err);
    if (c->rc == 0 && strcmp(found, c->wanted) != 0)
        c->rc =
            act_error_set(&c->err, ACT_FAIL, "its SHA-256 is %s instead of %s; submit the run again", found, c->wanted);
    return NULL;
}

/* Unpacks while the checksum is computed: the zip is treated as hostile in any case. Existing files are not put at
 * risk. */
static int unpack_checked(struct checksum *c, const char *target, bool over, struct act_error *err)
{
    struct act_error ignored;
    bool apart = !over && pthread_create(&c->thread, NULL, check_sha256, c) == 0;

    if (!apart)
        check_sha256(c);
    int rc = apart || c->rc == 0 ? open_and_unpack(c->zip, target, over, err) : 0;
    if (apart)
        pthread_join(c->thread, NULL);
    if (c->rc == 0)
        return rc;
    *err = c->err;
    if (apart && act_remove_tree(target, &ignored) < 0)
        return c->rc; /* it fails in any case */
    return c->rc;
}

int node_unzip(const char *zip, const char *sha256, const char *target, bool over, struct act_error *err)
{
    struct checksum c = {.zip = zip, .wanted = sha256};
    int rc = sha256 ? unpack_checked(&c, target, over, err) : open_and_unpack(zip, target, over, err);

    return rc < 0 ? act_error_prefix(err, "cannot unpack '%s'", act_path_basename(zip)) : 0;
}

/* ---- in a separate process ---- */

struct apart {
    const char *zip, *sha256, *target;
    bool over;
    struct unzip_outcome { /* in shared memory */
        int rc;
        char text[ACT_ERROR_TEXT];
    } * outcome;
};

static int unzip_confined(void *arg)
{
    const struct apart *a = arg;
    struct act_error err = {0};
    bool held = confine_to(a->target, a->zip);

    (void)held; /* lack of kernel support is no reason not to run */
    a->outcome->rc = node_unzip(a->zip, a->sha256, a->target, a->over, &err);
    snprintf(a->outcome->text, sizeof(a->outcome->text), "%s", act_error_text(&err));
    return 0;
}

static int run_apart(struct apart *a, struct act_error *err)
{
    pid_t pid = child_start(&(struct child){.run = unzip_confined, .arg = a, .out_fd = -1});

    if (pid < 0)
        return act_error_errno(err, errno, "cannot start a process to unpack '%s'", act_path_basename(a->zip));
    int status = child_wait(pid);
    if (status != 0)
        return act_error_set(err, ACT_FAIL, "cannot unpack '%s': the process that does it ended with status %d",
                             act_path_basename(a->zip), child_exit_status(status));
    int rc = a->outcome->rc;
    return rc < 0 ? act_error_set(err, (enum act_code) - rc, "%.*s", ACT_ERROR_TEXT - 1, a->outcome->text) : rc;
}

int node_unzip_apart(const char *zip, const char *sha256, const char *target, bool over, struct act_error *err)
{
    struct apart a = {.zip = zip, .sha256 = sha256, .target = target, .over = over};
    int rc = act_mkdir_all(target, 0755, err);

    if (rc < 0)
        return rc;
    a.outcome = mmap(NULL, sizeof(*a.outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a.outcome == MAP_FAILED)
        return act_error_errno(err, errno, "cannot start a process to unpack '%s'", act_path_basename(zip));
    rc = run_apart(&a, err);
    munmap(a.outcome, sizeof(*a.outcome));
    if (rc < 0 && !over)
        (void)rmdir(target); /* the process could empty it, but not remove it from its parent */
    return rc;
}
