/* folder_land.c - data first, then the name.
 *
 * A file system may put a name on the disk long before the bytes. So a finished file is put in its place only when
 * its bytes are on the disk: after a power cut every object is the old one or the new one, and whole.
 *
 * To wait for the disk takes as long for one file as for a hundred. So the files of calls that may be kept wait for
 * each other: write-back of each begins at once, and as soon as there are enough, or nothing else is to come, one
 * worker waits for all of them and then gives all their names. The number that wait is bounded; beyond it, a caller is
 * told only at the end. A file that has no name yet disappears with this process.
 *
 * A file in its place survives only once its folder is on the disk as well: STORE_SYNC does that once for all.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/folder.h"

enum {
    BATCH = 64,             /* files that are synced together, at least, while more are to come */
    BATCH_BYTES = 64 << 20, /* or so many bytes */
    MAX_KEPT = 256,         /* files that wait; each has a descriptor */
    PATIENCE_MS = 50,
    FEW = 3,        /* so many are synced one by one */
    SLOW_MS = 1000, /* a file system on which others write as much is not synced as a whole again */
};

/* ---- the disk, on a worker */

bool folder_syncs(const struct folder *folder, const struct folder_place *place)
{
    return !folder->store.no_sync && !folder_dir_is_in_memory(place);
}

/* Forgives a file system that cannot sync. Returns 0, or -1 with errno. */
static int check_sync(int failed)
{
    return failed && (errno == EIO || errno == ENOSPC || errno == EDQUOT) ? -1 : 0;
}

static int sync_error(struct act_error *err)
{
    return act_error_errno(err, errno, "cannot write");
}

void folder_write_back(int fd)
{
    (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* Waits until the bytes are written. The metadata that leads to them may not be. */
static int wait_for_bytes(int fd)
{
    return check_sync(
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

/* ---- one file, on a worker */

static int name_it(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    int rc, tries = 0;

    do
        rc = job->landing.name(job, place, err);
    while (folder_dir_was_closed(job->folder, place, rc, &tries));
    return rc;
}

void folder_landing_end(struct folder_landing *l, const struct folder_place *place, bool failed)
{
    if (failed && *l->part && !l->stays)
        unlinkat(place->fd, l->part, 0);
    if (l->fd >= 0 && !l->borrowed)
        close(l->fd);
    l->name = NULL;
}

int folder_land(struct folder_job *job, struct folder_place *place, struct act_error *err)
{
    struct folder_landing *l = &job->landing;
    int rc = 0;

    if (!l->name && job->call->op != STORE_PUT)
        return 0;
    bool durable = folder_syncs(job->folder, place), alone = !job->call->kept;
    if (!l->name) /* a link or a folder is there already */
        return durable && alone && folder_sync_dir(place) ? sync_error(err) : 0;
    if (durable && !alone && (l->borrowed || *l->part == '\0')) {
        folder_write_back(l->fd);
        job->waits = true;
        return 0;
    }
    if (durable && l->fd >= 0 && check_sync(fdatasync(l->fd))) /* a link has none */
        rc = sync_error(err);
    if (rc == 0)
        rc = name_it(job, place, err);
    if (rc == 0 && durable && alone && folder_sync_dir(place))
        rc = sync_error(err);
    folder_landing_end(l, place, rc != 0);
    return rc;
}

/* ---- many, on a worker */

struct batch {
    struct folder *folder;
    struct folder_job *jobs;
    size_t n;
};

/* Syncs the whole file system that the first file is on. Returns false if the files have to be synced one by one. */
static bool sync_together(const struct batch *b, int first, dev_t *dev)
{
    int64_t began_ms = act_now_monotonic_ms();
    struct stat st;

    if (b->n <= FEW || b->folder->slow || fstat(first, &st) || syncfs(first))
        return false;
    b->folder->slow = act_now_monotonic_ms() - began_ms > SLOW_MS;
    *dev = st.st_dev;
    return true;
}

static void sync_all(const struct batch *b)
{
    int first = b->jobs->landing.fd;
    struct stat st;
    dev_t dev = 0;

    for (struct folder_job *job = b->jobs; job; job = job->next)
        if (wait_for_bytes(job->landing.fd))
            job->call->rc = sync_error(&job->call->error);
    bool together = sync_together(b, first, &dev);
    for (struct folder_job *job = b->jobs; job; job = job->next) {
        bool synced = together && fstat(job->landing.fd, &st) == 0 && st.st_dev == dev;
        if (job->call->rc == 0 && !synced && check_sync(fdatasync(job->landing.fd)))
            job->call->rc = sync_error(&job->call->error);
    }
}

/* The folder was open while the file waited: it may not be at its path any more. */
static void name_one(struct folder_job *job)
{
    struct store_call *call = job->call;
    struct folder_place *place = &job->place;

    call->rc = name_it(job, place, &call->error);
    if (!folder_was_elsewhere(place, call->rc))
        return;
    folder_place_release(place);
    call->rc = folder_find(job->folder, call->key, true, true, place, &call->error);
    if (call->rc == 0)
        call->rc = name_it(job, place, &call->error);
}

static void land_all(void *arg)
{
    struct batch *b = arg;

    sync_all(b);
    for (struct folder_job *job = b->jobs; job; job = job->next) {
        if (job->call->rc == 0)
            name_one(job);
        folder_landing_end(&job->landing, &job->place, job->call->rc != 0);
        folder_place_release(&job->place);
    }
}

/* ---- those that wait, on the loop */

static void begin_batch(struct folder *folder);

/* Ends the calls. Each may bring others, and with them the next batch. */
static void landing_batch_done(void *arg)
{
    struct batch *b = arg;
    struct folder *folder = b->folder;

    folder->landings.syncing = false;
    folder->landings.n_syncing = 0;
    for (struct folder_job *job = b->jobs, *next; job; job = next) {
        next = job->next;
        folder_job_end(job);
    }
    free(b);
    begin_batch(folder);
}

static void patience_ends(void *arg)
{
    struct folder *folder = arg;

    folder->landings.timer = false;
    folder->landings.hurry = true;
    begin_batch(folder);
}

static struct engine *folder_land_engine_of(const struct folder *folder)
{
    return http_engine(folder->store.http);
}

static void set_landing_timer(struct folder *folder, bool set)
{
    struct folder_landings *l = &folder->landings;

    if (l->timer && !set)
        engine_forget(folder_land_engine_of(folder), folder);
    if (set && !l->timer)
        engine_timer(folder_land_engine_of(folder), PATIENCE_MS, patience_ends, folder);
    l->timer = set;
}

static void begin_batch(struct folder *folder)
{
    struct folder_landings *l = &folder->landings;

    if (l->syncing || l->n == 0)
        return;
    if (!l->hurry && l->n < BATCH && l->bytes < BATCH_BYTES) {
        set_landing_timer(folder, true);
        return;
    }
    struct batch *b = act_alloc(sizeof(*b));
    *b = (struct batch){.folder = folder, .jobs = l->first, .n = l->n};
    set_landing_timer(folder, false);
    *l = (struct folder_landings){.syncing = true, .n_syncing = l->n};
    engine_work(folder_land_engine_of(folder), land_all, landing_batch_done, b);
}

void folder_wait(struct folder_job *job)
{
    struct folder_landings *l = &job->folder->landings;
    struct store_call *call = job->call;

    *(l->first ? l->end : &l->first) = job;
    l->end = &job->next;
    l->n++;
    l->bytes += call->op == STORE_COMMIT ? call->commit.total : call->put.data.len;
    if (l->n + l->n_syncing <= MAX_KEPT)
        call->kept(call);
    begin_batch(job->folder);
}

void folder_hurry(struct store *store)
{
    struct folder *folder = (struct folder *)store;

    if (folder->landings.n == 0)
        return;
    folder->landings.hurry = true;
    begin_batch(folder);
}
