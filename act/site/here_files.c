/* here_files.c - files in a run's folder on this machine. The user's command can write there, too, so no link below
 * it is followed: every folder on the way is opened by itself. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "site/site_internal.h"

enum { FILES_MAX = 200000 };
enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int no_run(const struct site *site, const char *id, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in '%s/runs'", id, site->root);
}

static int here_open_run(const struct site *site, const char *id, struct act_error *err)
{
    if (!run_id_valid(id))
        return no_run(site, id, err);
    ACT_AUTOFREE char *dir = site_run_dir(site, id);
    int fd = open(dir, FOLDER_FLAGS);
    if (fd >= 0)
        return fd;
    return errno == ENOENT ? no_run(site, id, err) : act_error_errno(err, errno, "cannot read '%s'", dir);
}

/* Opens the folder that holds the last component of name, to which it points *out_last. -1 with errno. */
static int open_folder_of(int run_fd, const char *name, const char **out_last)
{
    int fd = openat(run_fd, ".", FOLDER_FLAGS);

    for (const char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        ACT_AUTOFREE char *folder = act_strndup(name, (size_t)(slash - name));
        int below = openat(fd, folder, FOLDER_FLAGS), saved = errno;
        close(fd);
        errno = saved;
        fd = below;
    }
    *out_last = name;
    return fd;
}

static int file_error(const char *doing, const char *id, const char *name, struct act_error *err)
{
    if (errno == ELOOP) /* O_NOFOLLOW met a link */
        return act_error_set(err, ACT_NOT_FOUND, "cannot %s '%s' of run '%s': it is a link", doing, name, id);
    return act_error_errno(err, errno, "cannot %s '%s' of run '%s'", doing, name, id);
}

static int here_check_name(const char *id, const char *name, struct act_error *err)
{
    size_t len = strlen(name);

    if (act_path_is_safe(name, len) && name[len - 1] != '/')
        return 0;
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no file '%s'", id, name);
}

/* Opens the folder of name in the run. */
static int here_open_place(const struct site *site, const char *doing, const char *id, const char *name,
                           const char **out_last, struct act_error *err)
{
    int rc = here_check_name(id, name, err);
    int run_fd = rc < 0 ? rc : here_open_run(site, id, err);

    if (run_fd < 0)
        return run_fd;
    int fd = open_folder_of(run_fd, name, out_last);
    if (fd < 0)
        fd = file_error(doing, id, name, err);
    close(run_fd);
    return fd;
}

/* ---- reading ---- */

static int here_open_file(const struct site *site, const char *id, const char *name, uint64_t *out_size,
                          struct act_error *err)
{
    const char *last;
    struct stat st;
    int folder = here_open_place(site, "read", id, name, &last, err);

    if (folder < 0)
        return folder;
    int fd = openat(folder, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int rc = fd < 0 ? file_error("read", id, name, err) : 0;
    close(folder);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return act_error_set(err, ACT_NOT_FOUND, "'%s' of run '%s' is not a file", name, id);
    }
    if (fd >= 0)
        *out_size = (uint64_t)st.st_size;
    return fd < 0 ? rc : fd;
}

int here_read(struct site *site, const char *id, const char *name, uint64_t offset, void *data, size_t len,
              size_t *out_got, struct act_error *err)
{
    uint64_t size = 0;
    int fd = here_open_file(site, id, name, &size, err);

    *out_got = 0;
    if (fd < 0)
        return fd;
    ssize_t n = offset > INT64_MAX ? 0 : act_pread_all(fd, data, len, (off_t)offset);
    int rc = n < 0 ? file_error("read", id, name, err) : 0;
    close(fd);
    *out_got = n < 0 ? 0 : (size_t)n;
    return rc;
}

int here_read_text(struct site *site, const char *id, const char *name, char **out, struct act_error *err)
{
    uint64_t size = 0;
    int fd = here_open_file(site, id, name, &size, err);

    *out = NULL;
    if (fd < 0)
        return fd;
    if (size > SITE_TEXT_MAX_BYTES) {
        close(fd);
        return act_error_set(err, ACT_FAIL, "cannot read '%s' of run '%s': larger than %d bytes", name, id,
                             (int)SITE_TEXT_MAX_BYTES);
    }
    char *text = act_alloc((size_t)size + 1);
    ssize_t n = act_pread_all(fd, text, (size_t)size, 0);
    int rc = n < 0 ? file_error("read", id, name, err) : 0;
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    if (rc == 0)
        *out = text;
    else
        free(text);
    return rc;
}

/* ---- writing ---- */

int here_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err)
{
    const char *last;
    int rc = 0, folder = here_open_place(site, "write", id, name, &last, err);

    if (folder < 0)
        return folder;
    ACT_AUTOFREE char *path = act_held_path(folder, last);
    rc = out_existed ? act_file_create(path, text, strlen(text), 0600, out_existed, NULL)
                     : act_file_write(path, text, strlen(text), 0600, NULL);
    if (rc < 0)
        rc = file_error("write", id, name, err);
    close(folder);
    return rc;
}

/* ---- listing ---- */

void site_files_add(struct site_files *files, const char *name, uint64_t size, int64_t idle_s)
{
    ACT_PUSH(files->v, files->n, (struct site_file){.name = act_strdup(name), .size = size, .idle_s = idle_s});
}

/* A file server's clock may be ahead. */
static int64_t idle_s(const struct stat *st)
{
    int64_t s = act_now_unix_s() - st->st_mtim.tv_sec;

    return s > 0 ? s : 0;
}

/* Adds what is below the folder fd, which it closes; name is its name in the run. */
static void here_add_files(int fd, const char *name, int depth, struct site_files *out)
{
    enum { DEPTH_MAX = 16 };
    DIR *d = depth > DEPTH_MAX ? NULL : fdopendir(fd);
    struct stat st;

    if (!d)
        close(fd);
    for (struct dirent *e; d && out->n <= FILES_MAX && (e = readdir(d));) {
        ACT_AUTOFREE char *below = act_path_join(name, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            site_files_add(out, below, (uint64_t)st.st_size, idle_s(&st));
        int folder = S_ISDIR(st.st_mode) ? openat(fd, e->d_name, FOLDER_FLAGS) : -1;
        if (folder >= 0)
            here_add_files(folder, below, depth + 1, out);
    }
    if (d)
        closedir(d);
}

int here_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, struct site_files *out,
               struct act_error *err)
{
    int run_fd = here_open_run(site, id, err);

    *out = (struct site_files){0};
    if (run_fd < 0)
        return run_fd;
    for (size_t i = 0; i < n_folders; i++) {
        const char *last;
        int parent = here_check_name(id, folders[i], NULL) < 0 ? -1 : open_folder_of(run_fd, folders[i], &last);
        int folder = parent < 0 ? -1 : openat(parent, last, FOLDER_FLAGS);
        if (folder >= 0)
            here_add_files(folder, folders[i], 0, out);
        if (parent >= 0)
            close(parent);
    }
    close(run_fd);
    if (out->n > FILES_MAX) {
        site_files_release(out);
        return act_error_set(err, ACT_FAIL, "run '%s' has more than %d files of logs", id, (int)FILES_MAX);
    }
    if (out->n)
        qsort(out->v, out->n, sizeof(*out->v), act_by_text);
    return 0;
}

/* ---- states ---- */

/* Reads a small JSON file; NULL: it does not exist or is not JSON. A torn file says nothing yet. */
static json_t *here_read_json(int run_fd, const char *name)
{
    char text[65536];
    json_t *json = NULL;
    int fd = openat(run_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, text, sizeof(text), 0);

    if (fd >= 0)
        close(fd);
    return n > 0 && codec_json_parse(text, (size_t)n, name, &json, NULL) == 0 ? json : NULL;
}

static int here_state_of(const struct site *site, const char *id, struct site_state *out, struct act_error *err)
{
    int run_fd = here_open_run(site, id, err);
    struct act_error why;

    *out = (struct site_state){.status = {.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1}};
    if (run_fd < 0)
        return run_fd == -ACT_NOT_FOUND ? 0 : run_fd;
    CODEC_AUTOJSON json_t *status = here_read_json(run_fd, RUN_FILE_STATUS);
    CODEC_AUTOJSON json_t *job = here_read_json(run_fd, RUN_FILE_JOB);
    close(run_fd);
    out->there = true;
    if (status && run_status_from_json(status, &out->status, &why) < 0)
        snprintf(out->status.reason, sizeof(out->status.reason), "%s", act_error_text(&why));
    if (job && run_job_from_json(job, &out->job, &why) < 0)
        snprintf(out->status.reason, sizeof(out->status.reason), "%s", act_error_text(&why));
    return 0;
}

int here_states(struct site *site, const char *const *ids, size_t n, struct site_state *out, struct act_error *err)
{
    int rc = 0;

    memset(out, 0, n * sizeof(*out));
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = here_state_of(site, ids[i], &out[i], err);
    if (rc < 0)
        site_states_release(out, n);
    return rc;
}
