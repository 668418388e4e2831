/* folder.c - the store that is a folder on disk.
 *
 * An object is written to a part file beside its place and renamed into place, so that readers see the old or
 * the new one. Data is not synced to disk one file at a time: after a power cut a file that was just written
 * may be empty, and the next transfer sees that its size differs. All disk work runs on the engine's workers.
 *
 * The blocks of a larger object are written at their offsets into one part file that carries the upload id;
 * the caller commits only when each block has been written.
 */
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define WINDOW  16          /* enough for every worker to have the next call waiting */
#define MAX_PUT (64U << 20) /* bytes at once; bounds the memory of a transfer, not the file system */

/* Another object came in the meantime: the caller may look again. */
int folder_changed(struct act_error *err)
{
    return act_error_set(err, ACT_TEMPORARY, "it has changed");
}

static int missing(struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "no such file");
}

/* ---- reading */

/* Finds out what lies at the place. A folder answers only to a key with a slash, a file to one without. */
int folder_stat(const struct folder_place *place, struct stat *st, struct act_error *err)
{
    if (fstatat(place->fd, place->name, st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? missing(err) : act_error_errno(err, errno, "cannot stat");
    if (place->is_folder != S_ISDIR(st->st_mode))
        return missing(err);
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
        return act_error_set(err, ACT_FAIL, "neither a file, nor a folder, nor a link");
    return 0;
}

int folder_check_match(const struct store_call *call, const struct stat *st, struct act_error *err)
{
    char etag[STORE_ETAG];

    folder_etag(st, etag);
    return call->if_match && strcmp(call->if_match, etag) != 0 ? folder_changed(err) : 0;
}

static int head(struct folder *folder, struct store_call *call, struct folder_place *place,
                struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    (void)folder;
    if (rc == 0)
        folder_fill(&call->entry, call->key, &st);
    return rc;
}

static int get_link(struct store_call *call, struct folder_place *place, const struct stat *st,
                    struct act_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(place->fd, place->name, target, sizeof(target));

    if (n < 0)
        return act_error_errno(err, errno, "cannot read the link");
    if (folder_check_match(call, st, err))
        return -(int)ACT_TEMPORARY;
    if (call->offset < (uint64_t)n) {
        size_t rest = (size_t)n - (size_t)call->offset;
        call->got = rest < call->sink_cap ? rest : call->sink_cap;
        if (call->got)
            memcpy(call->sink, target + call->offset, call->got);
    }
    folder_fill(&call->entry, call->key, st);
    return 0;
}

/* Looks at the open file before and after, so that bytes of a file that is being rewritten are not taken for
 * those of the one that was asked for. */
static int read_range(struct store_call *call, int fd, struct act_error *err)
{
    struct stat before, after;

    if (fstat(fd, &before))
        return act_error_errno(err, errno, "cannot stat");
    if (!S_ISREG(before.st_mode) || folder_check_match(call, &before, err))
        return folder_changed(err);
    if (call->offset < (uint64_t)before.st_size) {
        ssize_t n = act_pread_all(fd, call->sink, call->sink_cap, (off_t)call->offset);
        if (n < 0)
            return act_error_errno(err, errno, "cannot read");
        call->got = (size_t)n;
    }
    if (fstat(fd, &after) || folder_check_match(call, &after, err))
        return folder_changed(err);
    folder_fill(&call->entry, call->key, &before);
    return 0;
}

static int get(struct folder *folder, struct store_call *call, struct folder_place *place,
               struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    if (rc || S_ISDIR(st.st_mode))
        return rc ? rc : head(folder, call, place, err);
    if (S_ISLNK(st.st_mode))
        return get_link(call, place, &st, err);

    /* O_NONBLOCK: should a pipe have come in its place, do not wait for its writer. */
    int fd = openat(place->fd, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? missing(err) : act_error_errno(err, errno, "cannot open");
    rc = read_range(call, fd, err);
    close(fd);
    return rc;
}

static int remove_object(struct folder *folder, struct store_call *call, struct folder_place *place,
                         struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    (void)folder;
    if (rc == 0)
        rc = folder_check_match(call, &st, err);
    if (rc)
        return rc;
    if (unlinkat(place->fd, place->name, place->is_folder ? AT_REMOVEDIR : 0) == 0)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return act_error_set(err, ACT_FAIL, "the folder is not empty");
    return errno == ENOENT ? missing(err) : act_error_errno(err, errno, "cannot remove");
}

/* ---- calls */

/* What each operation does once the place is found, and whether missing folders are made on the way. */
static const struct {
    int (*run)(struct folder *folder, struct store_call *call, struct folder_place *place,
               struct act_error *err);
    bool create;
} steps[STORE_OPS] = {
    [STORE_HEAD] = {head, false},           [STORE_GET] = {get, false},
    [STORE_PUT] = {folder_put, true},       [STORE_BLOCK] = {folder_block, true},
    [STORE_COMMIT] = {folder_commit, true}, [STORE_DELETE] = {remove_object, false},
    [STORE_COPY] = {folder_copy, true},     [STORE_DROP] = {folder_drop, false},
};

struct job {
    struct folder *folder;
    struct store_call *call;
    struct folder_walk *walk; /* LIST: owned while under way */
};

static int run_at_place(struct folder *folder, struct store_call *call, struct act_error *err)
{
    struct folder_place place;
    const char *problem = folder_key_problem(call->key);

    if (problem)
        return act_error_set(err, ACT_FAIL, "the name %s", problem);
    int rc = folder_find(folder, call->key, steps[call->op].create, &place, err);
    if (rc)
        return call->op == STORE_DROP && rc == -(int)ACT_NOT_FOUND ? 0 : rc;
    rc = steps[call->op].run(folder, call, &place, err);
    folder_place_release(&place);
    return rc;
}

static void work(void *arg)
{
    struct job *job = arg;
    struct store_call *call = job->call;
    struct act_error *err = &call->error;

    if (call->op == STORE_LIST)
        call->rc = folder_list(job->folder, call, &job->walk, err);
    else
        call->rc = run_at_place(job->folder, call, err);
    if (call->rc)
        act_error_prefix(err, "cannot %s '%s/%s'", store_verb(call->op), job->folder->root, call->key);
}

static void work_done(void *arg)
{
    struct job *job = arg;
    struct store_call *call = job->call;

    if (job->walk) {
        folder_walk_free(job->folder->walk);
        job->folder->walk = job->walk;
    }
    free(job);
    store_finish(call, call->rc);
}

static void start(struct store *store, struct store_call *call)
{
    struct folder *folder = (struct folder *)store;
    struct job *job = act_calloc(1, sizeof(*job));

    job->folder = folder;
    job->call = call;
    if (call->op == STORE_LIST && folder->walk && folder_walk_fits(folder->walk, call)) {
        job->walk = folder->walk;
        folder->walk = NULL;
    }
    engine_work(http_engine(store->http), work, work_done, job);
}

static int window(const struct store *store)
{
    (void)store;
    return WINDOW;
}

static int url(struct store *store, const char *key, const char *permissions, int64_t life_s, char **out,
               struct act_error *err)
{
    struct folder *folder = (struct folder *)store;

    (void)life_s;
    if (strcmp(permissions, "r") != 0)
        return act_error_set(err, ACT_USAGE,
                             "a URL of a folder cannot give permissions: it can only be read");
    ACT_AUTOFREE char *path = act_sprintf("%s%s%s", folder->root, key ? "/" : "", key ? key : "");
    ACT_AUTOFREE char *encoded = http_encode(path, true);
    *out = act_sprintf("file://%s", encoded);
    return 0;
}

static void close_folder(struct store *store)
{
    struct folder *folder = (struct folder *)store;

    folder_walk_free(folder->walk);
    if (folder->root_fd >= 0)
        close(folder->root_fd);
    free(folder->root);
    free(folder);
}

static const struct store_ops ops = {
    .start = {[STORE_HEAD] = start,
              [STORE_GET] = start,
              [STORE_PUT] = start,
              [STORE_BLOCK] = start,
              [STORE_COMMIT] = start,
              [STORE_DELETE] = start,
              [STORE_COPY] = start,
              [STORE_LIST] = start,
              [STORE_DROP] = start},
    .key_problem = folder_key_problem,
    .url = url,
    .window = window,
    .close = close_folder,
    .max_put = MAX_PUT,
    .real_folders = true,
};

int store_folder_open(struct http *http, const char *root, bool create, struct store **out,
                      struct act_error *err)
{
    if (create && act_mkdir_all(root, 0777, err))
        return act_error_prefix(err, "cannot open the store '%s'", root);
    char *resolved = realpath(root, NULL);
    if (!resolved)
        return act_error_errno(err, errno, "cannot open the folder '%s'", root);
    int fd = open(resolved, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int rc = act_error_errno(err, errno, "cannot open the folder '%s'", resolved);
        free(resolved);
        return rc;
    }

    struct folder *folder = act_calloc(1, sizeof(*folder));
    folder->store = (struct store){.ops = &ops, .http = http, .name = act_sprintf("folder:%s", resolved)};
    folder->root = resolved;
    folder->root_fd = fd;
    *out = &folder->store;
    return 0;
}
