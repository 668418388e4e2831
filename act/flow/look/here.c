/* here.c - the copies of a run's logs, in assets/<run id>/. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "flow/flow_internal.h"
#include "flow/look/parts.h"
#include "flow/source/source.h"
#include "flow/trust.h"

enum { CHUNK = 256 << 10, DEPTH_MAX = 8, FILES_MAX = 1 << 20, ATTEMPTS_MAX = 1000 };

struct walk {
    const char *root, *folder;
    struct store_page *out;
};

static int here_list_folder(const struct walk *w, const char *sub, int depth, struct act_error *err);

/* A file or a folder of the folder that d reads. */
static int list_entry(const struct walk *w, const char *sub, DIR *d, const char *name, int depth, struct act_error *err)
{
    ACT_AUTOFREE char *below = act_path_join(sub, name);
    struct stat st;

    if (name[0] == '.' || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0 || w->out->n == FILES_MAX)
        return 0;
    if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
        return here_list_folder(w, below, depth + 1, err);
    if (S_ISREG(st.st_mode))
        *store_page_add(w->out) = (struct store_entry){.key = act_strdup(below), .size = (uint64_t)st.st_size};
    return 0;
}

/* Lists a folder; one that is not there has no files. */
static int here_list_folder(const struct walk *w, const char *sub, int depth, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(w->folder, *sub ? sub : ".");
    int fd = act_open_below(w->root, path, O_RDONLY | O_DIRECTORY, err), rc = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !d)
        close(fd);
    for (struct dirent *e; d && rc == 0 && (e = readdir(d));)
        rc = list_entry(w, sub, d, e->d_name, depth, err);
    if (d)
        closedir(d);
    return fd == -ACT_DENIED ? fd : rc;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct store_entry *)a)->key, ((const struct store_entry *)b)->key);
}

int flow_here_open(const struct flow_run *run, struct flow_here *out, struct act_error *err)
{
    *out = (struct flow_here){.root = flow_log_folder(run->row.project), .folder = flow_assets(run)};
    int rc = flow_trust_logs(run->row.project, err);

    if (rc == 0)
        rc = here_list_folder(&(struct walk){out->root, out->folder, &out->files}, "", 0, err);
    if (out->files.n > 0)
        qsort(out->files.v, out->files.n, sizeof(*out->files.v), by_key);
    out->attempt = flow_last_attempt(&out->files);
    out->attempt = out->attempt < ATTEMPTS_MAX ? out->attempt : ATTEMPTS_MAX;
    return rc;
}

void flow_here_close(struct flow_here *here)
{
    store_page_release(&here->files);
    free(here->root);
    free(here->folder);
}

static int here_has_key(const void *name, const void *entry)
{
    return strcmp(name, ((const struct store_entry *)entry)->key);
}

const struct store_entry *flow_here_find(const struct flow_here *here, const char *name)
{
    return here->files.n ? bsearch(name, here->files.v, here->files.n, sizeof(*here->files.v), here_has_key) : NULL;
}

char *flow_here_prefix(const struct flow_here *here, int attempt)
{
    return attempt == here->attempt ? act_strdup("") : act_sprintf(RUN_DIR_ATTEMPTS "/%d/", attempt);
}

int flow_here_read(const struct flow_here *here, const char *name,
                   void (*take)(void *arg, const char *text, size_t len), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(here->folder, name);
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    int fd = act_open_below(here->root, path, O_RDONLY, err);
    ssize_t n;

    if (fd < 0)
        return fd;
    while ((n = read(fd, chunk, CHUNK)) > 0)
        take(arg, chunk, (size_t)n);
    int rc = n < 0 ? act_error_errno(err, errno, "cannot read '%s'", path) : 0;
    close(fd);
    return rc;
}

int flow_here_tail(const struct flow_here *here, const struct store_entry *file, size_t max, struct act_buf *out,
                   struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(here->folder, file->key);
    ACT_AUTOFREE char *text = act_alloc(max);
    off_t from = file->size > max ? (off_t)(file->size - max) : 0;
    int fd = act_open_below(here->root, path, O_RDONLY, err);

    if (fd < 0)
        return fd;
    ssize_t n = act_pread_all(fd, text, max, from);
    int rc = n < 0 ? act_error_errno(err, errno, "cannot read '%s'", path) : 0;
    close(fd);
    const char *line = n > 0 && from > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    size_t cut = line ? (size_t)(line - text) + 1 : 0;
    if (n > 0)
        act_buf_add(out, text + cut, (size_t)n - cut);
    return rc;
}
