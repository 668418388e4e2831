/* others.c - the runs for which this one waits. Each has a lock, which its supervisor holds for as long as it lives,
 * and through all attempts: so a run whose lock is free has ended, or is lost, as after a restart of the machine. A run
 * that Slurm started has none, as few shared file systems have locks that hold: its record says that it ended, or Slurm
 * does. Only its record says whether it completed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/supervisor.h"

/* A run that was waited for at first. */
struct other {
    const char *id;
    char *dir;
    int lock_fd;    /* which a child waits for, too; -1: it has ended, or has a job */
    char *job;      /* of Slurm; NULL: none, or it has ended */
    int64_t ask_ms; /* monotonic: when Slurm is asked for the job next */
};

struct others {
    struct other *v;
    size_t n;
};

static void others_release(struct others *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->v[i].lock_fd >= 0)
            close(all->v[i].lock_fd);
        free(all->v[i].job);
        free(all->v[i].dir);
    }
    free(all->v);
}

/* A run that has not begun, or whose folder was removed, has no job. */
static char *others_job_of(const char *dir)
{
    enum { JOB_MAX_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_JOB);
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error ignored;
    char *job = NULL;

    if (codec_json_read(path, JOB_MAX_BYTES, &json, &ignored) == 0)
        (void)!run_job_from_json(json, &job, &ignored);
    return job;
}

/* Opens its lock; where the folder was removed nothing is left of the run. */
static int others_open_lock(struct other *o, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(o->dir, RUN_FILE_LOCK);

    o->lock_fd = open(path, O_RDWR | O_CLOEXEC);
    return o->lock_fd >= 0 || errno == ENOENT ? 0 : act_error_errno(err, errno, "cannot open '%s'", path);
}

static int others_open(const struct supervisor *s, const struct act_strv *ids, struct others *out,
                       struct act_error *err)
{
    ACT_AUTOFREE char *runs = act_path_dirname(s->node.dir);
    int rc = 0;

    for (size_t i = 0; i < ids->n && rc == 0; i++) {
        struct other o = {.id = ids->v[i], .dir = act_path_join(runs, ids->v[i]), .lock_fd = -1};
        rc = others_open_lock(&o, err);
        if (o.lock_fd < 0)
            o.job = others_job_of(o.dir);
        ACT_PUSH(out->v, out->n, o);
    }
    return rc;
}

/* ---- one that has ended */

/* Refuses to begin after a run that did not complete. */
static int others_judge(const struct other *o, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(o->dir, RUN_FILE_STATUS);
    struct run_status status;
    char why[256];
    bool is_there = run_status_read(path, &status, NULL) == 0;

    if (is_there && status.state == RUN_COMPLETED)
        return 0;
    run_say_unmet(o->id, is_there ? &status : NULL, why, sizeof(why));
    return act_error_set(err, ACT_INTERRUPTED, "%s", why);
}

/* Tells whether a run with a job has ended. Slurm, which others ask too, is asked now and then. */
static bool others_job_has_ended(struct other *o)
{
    enum { ASK_AGAIN_MS = 10 * 1000 };
    ACT_AUTOFREE char *path = act_path_join(o->dir, RUN_FILE_STATUS);
    struct run_status status;
    int64_t now_ms = act_now_monotonic_ms();

    if (run_status_read(path, &status, NULL) == 0 && run_state_is_final(status.state))
        return true;
    if (now_ms < o->ask_ms)
        return false;
    o->ask_ms = now_ms + ASK_AGAIN_MS;
    return job_is_gone(o->job);
}

/* Tells whether it has ended. The lock is given back at once: other runs may wait for it, and children that wait for
 * other locks have this file open, too. */
static int others_look(struct other *o, bool *out_ended, struct act_error *err)
{
    if (o->job) {
        *out_ended = others_job_has_ended(o);
        return 0;
    }
    *out_ended = o->lock_fd < 0 || flock(o->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (!*out_ended && errno != EWOULDBLOCK)
        return act_error_errno(err, errno, "cannot wait for '%s'", o->id);
    if (*out_ended && o->lock_fd >= 0) {
        (void)flock(o->lock_fd, LOCK_UN);
        close(o->lock_fd);
        o->lock_fd = -1;
    }
    return 0;
}

/* Takes those that have ended out of the list. */
static int others_drop_ended(struct others *all, bool any_end, struct act_error *err)
{
    size_t left = 0;
    bool ended = false;
    int rc = 0;

    for (size_t i = 0; i < all->n; i++) {
        struct other o = all->v[i];
        rc = rc < 0 ? rc : others_look(&o, &ended, err);
        if (rc == 0 && ended && !any_end)
            rc = others_judge(&o, err);
        if (rc == 0 && ended) {
            free(o.job);
            free(o.dir);
        } else {
            all->v[left++] = o;
        }
    }
    all->n = left;
    return rc;
}

/* ---- the wait */

static void others_tell(struct supervisor *s, const struct others *all, bool any_end)
{
    ACT_AUTO(act_strv) ids = {0};

    for (size_t i = 0; i < all->n; i++)
        act_strv_push(&ids, all->v[i].id);
    ACT_AUTOFREE char *why = run_waits_for(&ids, any_end);
    start_tell_waiting(s, why);
}

/* Returns the errno, which fits into an exit status. */
static int others_await_lock(void *fd)
{
    while (flock(*(int *)fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return errno;
    return flock(*(int *)fd, LOCK_UN) < 0 ? errno : 0;
}

/* Starts a child for each lock, which ends when it has: so this process still hears signals. */
static int others_start_waiting(struct others *all, struct act_error *err)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].lock_fd >= 0 &&
            child_start(&(struct child){.run = others_await_lock, .arg = &all->v[i].lock_fd, .out_fd = -1}) < 0)
            return act_error_errno(err, errno, "cannot wait for '%s'", all->v[i].id);
    return 0;
}

static int others_wait_in_turn(struct supervisor *s, struct others *all, bool any_end, struct act_error *err)
{
    enum { LOOK_AGAIN_MS = 1000 }; /* at jobs, and if somebody has killed a child */
    int status, sig = 0, rc = others_drop_ended(all, any_end, err);
    size_t told = 0;

    if (rc == 0)
        rc = others_start_waiting(all, err);
    while (rc == 0 && all->n > 0) {
        if (all->n != told)
            others_tell(s, all, any_end);
        told = all->n;
        watch_wait(&s->watch, LOOK_AGAIN_MS, &sig);
        child_reap(-1, &status);
        rc = sig == SIGTERM || sig == SIGINT ? act_error_set(err, ACT_INTERRUPTED, "canceled while it waited")
                                             : others_drop_ended(all, any_end, err);
    }
    if (rc < 0)
        child_kill_all();
    return rc;
}

static int others_wait_for(struct supervisor *s, const struct act_strv *ids, bool any_end, struct act_error *err)
{
    struct others all = {0};
    int rc = others_open(s, ids, &all, err);

    if (rc == 0)
        rc = others_wait_in_turn(s, &all, any_end, err);
    others_release(&all);
    return rc;
}

/* A run that this one replaces is told to end when this one is sure to begin. What it needed for its first attempt may
 * have been removed since. */
int others_wait(struct supervisor *s, struct act_error *err)
{
    const struct run_spec *spec = &s->node.spec;
    int rc = others_wait_for(s, &spec->after, true, err);

    if (rc == 0 && s->status.attempt == 1)
        rc = others_wait_for(s, &spec->needs, spec->needs_any, err);
    return rc;
}
