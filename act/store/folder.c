/* folder.c - the store that is a folder on disk.
 *
 * An object is written to a file without a name, or to a part file beside its place, and then put in its place at
 * once, so that readers see the old or the new one, also after a power cut (folder_land.c). All disk work runs on the
 * engine's workers.
 */
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "http/http.h"

#define MAX_PUT (64U << 20) /* bytes at once; bounds the memory of a transfer, not the file system */

/* Says that another object came in the meantime: the caller may look again. */
int folder_changed(struct act_error *err)
{
    return act_error_set(err, ACT_TEMPORARY, "it has changed");
}

static int folder_missing(struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "no such file");
}

/* ---- reading */

/* Finds out what lies at the place. Only a key with a trailing slash names a folder, only one without names a file. */
int folder_stat(const struct folder_place *place, struct stat *st, struct act_error *err)
{
    if (fstatat(place->fd, place->name, st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? folder_missing(err) : act_error_errno(err, errno, "cannot stat");
    if (place->is_folder != S_ISDIR(st->st_mode))
        return folder_missing(err);
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
        return act_error_set(err, ACT_FAIL, "neither a file, nor a folder, nor a link");
    return 0;
}

int folder_check_match(const char *if_match, const struct stat *st, struct act_error *err)
{
    char etag[STORE_ETAG];

    if (!if_match)
        return 0;
    folder_etag(st, etag);
    return strcmp(if_match, etag) != 0 ? folder_changed(err) : 0;
}

static int folder_head(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    if (rc == 0)
        folder_fill(&job->call->entry, job->call->key, &st);
    return rc;
}

static int get_link(struct store_call *call, struct folder_place *place, const struct stat *st, struct act_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(place->fd, place->name, target, sizeof(target));

    if (n < 0)
        return act_error_errno(err, errno, "cannot read the link");
    if (folder_check_match(call->get.if_match, st, err))
        return -(int)ACT_TEMPORARY;
    if (call->get.offset < (uint64_t)n) {
        size_t rest = (size_t)n - (size_t)call->get.offset;
        call->get.got = rest < call->get.sink_cap ? rest : call->get.sink_cap;
        if (call->get.got)
            memcpy(call->get.sink, target + call->get.offset, call->get.got);
        store_sums_add(call->get.sums, call->get.sink, call->get.got);
    }
    folder_fill(&call->entry, call->key, st);
    return 0;
}

/* A caller that lists and then reads tells a link from its target by the ETag. */
static bool is_meant_itself(const struct store_call *call, const struct folder_place *place)
{
    struct act_error ignored;
    struct stat st;

    return fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW) ||
           folder_check_match(call->get.if_match, &st, &ignored) == 0;
}

/* O_NONBLOCK: should it be a pipe, do not wait for its writer. */
static int open_object(const struct folder_job *job, const struct folder_place *place, bool *followed)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(place->fd, place->name, flags | O_NOFOLLOW);

    *followed = fd < 0 && errno == ELOOP && job->folder->store.follow && !is_meant_itself(job->call, place);
    return *followed ? openat(place->fd, place->name, flags) : fd;
}

/* Reads what cannot be opened as a file: a link, or a folder, which has no bytes. For anything else it says why it
 * cannot. */
static int get_other(struct store_call *call, struct folder_place *place, int errnum, struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    if (rc)
        return rc;
    if (S_ISREG(st.st_mode))
        return act_error_errno(err, errnum, "cannot read");
    if (S_ISLNK(st.st_mode))
        return get_link(call, place, &st, err);
    folder_fill(&call->entry, call->key, &st);
    return 0;
}

static ssize_t read_range_of_file(struct store_call *call, int fd)
{
    struct stat st;

    if (call->get.sink_cap == 0)
        return 0;
    if (!folder_is_hole(fd, (off_t)call->get.offset, call->get.sink_cap) || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return folder_read(fd, call->get.sink, call->get.sink_cap, (off_t)call->get.offset, call->get.sums);
    uint64_t size = (uint64_t)st.st_size, rest = size > call->get.offset ? size - call->get.offset : 0;
    size_t n = rest < call->get.sink_cap ? (size_t)rest : call->get.sink_cap;
    memset(call->get.sink, 0, n);
    store_sums_add(call->get.sums, call->get.sink, n);
    return (ssize_t)n;
}

/* The ETag is looked at after the bytes were read: a file that was rewritten in the meantime has another than
 * the one the caller knows. */
static int folder_read_file(struct store_call *call, struct folder_place *place, int fd, struct act_error *err)
{
    struct stat st;
    ssize_t n = read_range_of_file(call, fd);

    if (n < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return get_other(call, place, errno, err);
    if (folder_check_match(call->get.if_match, &st, err))
        return -(int)ACT_TEMPORARY;
    call->get.got = (size_t)n;
    folder_fill(&call->entry, call->key, &st);
    return 0;
}

static int folder_get_on_loop(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    bool followed = false;
    int fd = place->is_folder ? -1 : open_object(job, place, &followed);

    if (fd < 0)
        return followed ? act_error_errno(err, errno, "cannot follow the link")
                        : get_other(job->call, place, errno, err);
    int rc = folder_read_file(job->call, place, fd, err);
    close(fd);
    return rc;
}

static int remove_object(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct stat st;
    int rc = folder_stat(place, &st, err);

    if (rc == 0)
        rc = folder_check_match(job->call->delete.if_match, &st, err);
    if (rc)
        return rc;
    folder_dir_open_up(job->folder, place);
    if (unlinkat(place->fd, place->name, place->is_folder ? AT_REMOVEDIR : 0) == 0)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return act_error_set(err, ACT_FAIL, "the folder is not empty");
    return errno == ENOENT ? folder_missing(err) : act_error_errno(err, errno, "cannot remove");
}

/* ---- calls */

/* The work of each operation once the place is found, the check of its key, and whether it makes missing folders. */
static const struct {
    int (*run)(struct folder_job *job, struct folder_place *place, struct act_error *err);
    const char *(*problem)(const char *key);
    bool create;
} steps[STORE_OPS] = {
    [STORE_HEAD] = {folder_head, folder_key_problem, false},
    [STORE_GET] = {folder_get_on_loop, folder_key_problem, false},
    [STORE_PUT] = {folder_put, folder_key_problem, true},
    [STORE_BLOCK] = {folder_block, folder_key_problem, true},
    [STORE_COMMIT] = {folder_commit, folder_key_problem, true},
    [STORE_BLOCKS] = {folder_blocks, folder_key_problem, true},
    [STORE_DROP] = {folder_drop, folder_key_problem, false},
    [STORE_DELETE] = {remove_object, folder_key_problem, false},
    [STORE_COPY] = {folder_copy, folder_key_problem, true},
    [STORE_CLEAR] = {folder_clear, folder_part_problem, false},
};

bool folder_was_elsewhere(const struct folder_place *place, int rc)
{
    struct stat st;

    return rc && place->kept && (rc == -(int)ACT_NOT_FOUND || (fstat(place->fd, &st) == 0 && st.st_nlink == 0));
}

static int run_at_place(struct folder_job *job, struct act_error *err)
{
    struct folder_place place;
    enum store_op op = job->call->op;
    const char *problem = steps[op].problem(job->call->key);
    bool again = false;
    int rc = 0, tries = 0;

    if (problem)
        return act_error_set(err, ACT_FAIL, "the name %s", problem);
    do {
        rc = folder_find(job->folder, job->call->key, steps[op].create, again, &place, err);
        if (rc)
            return op == STORE_DROP && rc == -(int)ACT_NOT_FOUND ? 0 : rc;
        rc = steps[op].run(job, &place, err);
        if (rc == 0 && steps[op].create)
            rc = folder_land(job, &place, err);
        again = folder_was_elsewhere(&place, rc) || folder_dir_was_closed(job->folder, &place, rc, &tries);
        if (job->waits)
            job->place = place;
        else
            folder_place_release(&place);
    } while (again);
    if (rc == 0 && op == STORE_PUT && job->call->put.data.sums && !place.is_folder)
        store_sums_add(job->call->put.data.sums, job->call->put.data.bytes, job->call->put.data.len);
    return rc;
}

static int remove_key(struct folder *folder, struct store_deletion *d)
{
    struct store_call call = {.op = STORE_DELETE, .key = d->key, .delete.if_match = d->if_match};
    struct folder_job job = {.folder = folder, .call = &call};

    return run_at_place(&job, &d->error);
}

/* Does what a GET of no bytes would do. */
static int may_read(struct store *store, const char *key, struct act_error *err)
{
    struct store_call call = {.op = STORE_GET, .key = key};
    struct folder_job job = {.folder = (struct folder *)store, .call = &call};
    int rc = run_at_place(&job, err);

    store_entry_release(&call.entry);
    return rc ? act_error_prefix(err, "cannot %s '%s/%s'", store_verb(call.op), job.folder->root, key) : 0;
}

static void remove_many(struct folder *folder, struct store_call *call)
{
    for (size_t i = 0; i < call->delete_many.n; i++) {
        struct store_deletion *d = &call->delete_many.v[i];
        d->error = (struct act_error){0};
        d->rc = remove_key(folder, d);
        if (d->rc)
            act_error_prefix(&d->error, "cannot delete '%s/%s'", folder->root, d->key);
    }
}

static void folder_work(void *arg)
{
    struct folder_job *job = arg;
    struct store_call *call = job->call;
    struct act_error *err = &call->error;

    if (call->rc == 0 && call->op == STORE_DELETE_MANY)
        remove_many(job->folder, call);
    else if (call->rc == 0 && call->op == STORE_LIST)
        call->rc = folder_list(job->folder, call, &job->walk, err);
    else if (call->rc == 0 && call->op == STORE_SYNC)
        call->rc = folder_sync(job->folder, err);
    else if (call->rc == 0 && job->upload)
        call->rc = folder_upload_run(job, err);
    else if (call->rc == 0)
        call->rc = run_at_place(job, err);
}

void folder_job_end(struct folder_job *job)
{
    struct store_call *call = job->call;

    if (call->rc)
        act_error_prefix(&call->error, "cannot %s '%s%s%s'", store_verb(call->op), job->folder->root,
                         *call->key ? "/" : "", call->key);
    if (job->walk) {
        folder_walk_free(job->folder->walk);
        job->folder->walk = job->walk;
    }
    folder_upload_detach(job);
    free(job);
    store_finish(call, call->rc);
}

static void folder_work_done(void *arg)
{
    struct folder_job *job = arg;

    if (job->waits)
        folder_wait(job);
    else
        folder_job_end(job);
}

static int folder_url(const struct folder *folder, struct store_call *call)
{
    if (strcmp(call->url.permissions, "r") != 0)
        return act_error_set(&call->error, ACT_USAGE, "a URL of a folder cannot give permissions: it can only be read");
    ACT_AUTOFREE char *path = act_sprintf("%s%s%s", folder->root, *call->key ? "/" : "", call->key);
    ACT_AUTOFREE char *encoded = http_encode(path, true);
    call->url.text = act_sprintf("file://%s", encoded);
    return 0;
}

static void folder_start(struct store *store, struct store_call *call)
{
    struct folder *folder = (struct folder *)store;

    if (call->op == STORE_URL) {
        store_finish_later(store, call, folder_url(folder, call));
        return;
    }
    struct folder_job *job = act_calloc(1, sizeof(*job));
    job->folder = folder;
    job->call = call;
    if (call->op == STORE_LIST && folder->walk && folder_walk_fits(folder->walk, call)) {
        job->walk = folder->walk;
        folder->walk = NULL;
    }
    folder_upload_attach(job);
    folder->landings.hurry = false;
    engine_work_in(http_engine(store->http), folder_upload_lane(job), folder_work, folder_work_done, job);
}

/* Returns two calls for each worker, so that the next one waits when a worker has done one. */
static int folder_window(const struct store *store)
{
    return 2 * engine_workers(http_engine(store->http));
}

static void folder_close_store(struct store *store)
{
    struct folder *folder = (struct folder *)store;

    folder_walk_free(folder->walk);
    folder_uploads_close(folder);
    (void)folder_end_modes(folder, NULL);
    folder_modes_release(&folder->modes);
    folder_dirs_close(&folder->dirs);
    if (folder->root_fd >= 0)
        close(folder->root_fd);
    free(folder->root);
    free(folder);
}

static const struct store_ops ops = {
    .operations = ~(STORE_BIT(STORE_PUT_FROM) | STORE_BIT(STORE_BLOCK_FROM)),
    .start = folder_start,
    .key_problem = folder_key_problem,
    .window = folder_window,
    .hurry = folder_hurry,
    .open_up = folder_may_open_up,
    .may_read = may_read,
    .close = folder_close_store,
    .traits = {.max_put = MAX_PUT, .sums_are_free = true, .takes_pieces = true, .real_folders = true, .is_disk = true},
};

int store_folder_open(struct http *http, const char *root, bool create, struct store **out, struct act_error *err)
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

    struct stat st;
    if (fstat(fd, &st))
        st.st_dev = 0;
    struct folder *folder = act_calloc(1, sizeof(*folder));
    folder->store = (struct store){.ops = &ops, .http = http, .name = act_sprintf("folder:%s", resolved)};
    folder->root = resolved;
    folder->root_fd = fd;
    folder_dirs_init(&folder->dirs, st.st_dev);
    folder_modes_init(&folder->modes);
    *out = &folder->store;
    return 0;
}
