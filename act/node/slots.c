#include "node/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "run/run.h"

/* The kernel reports a closed file a moment before its lock is free; and an occasional check without an event, if files
 * cannot be watched (a home on NFS). */
enum { RETRY_MS = 5, RETRIES = 4, LOOK_AGAIN_MS = 1000 };

static int interrupted(struct act_error *err)
{
    return act_error_set(err, ACT_INTERRUPTED, "canceled while it waited");
}

static bool is_stop(int sig)
{
    return sig == SIGTERM || sig == SIGINT;
}

static int open_lock_file(const char *dir, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    return fd < 0 ? act_error_errno(err, errno, "cannot open '%s'", path) : fd;
}

/* ---- the queue: one lock, held while slots are collected ---- */

static int cannot_lock(struct act_error *err, int errnum, const char *dir)
{
    return act_error_errno(err, errnum, "cannot lock the files in '%s' by which runs wait for one another", dir);
}

/* Its result is the errno, which fits into an exit status. */
static int lock_and_leave(void *fd)
{
    while (flock(*(int *)fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* A child waits in flock(), so that this process still hears signals. The lock belongs to the open file that
 * both share and stays when the child has ended. */
static int queue_wait(int fd, const char *dir, struct watch *w, struct act_error *err)
{
    int signal, status = 0;
    pid_t pid = child_start(&(struct child){.run = lock_and_leave, .arg = &fd, .out_fd = -1});

    if (pid < 0)
        return act_error_errno(err, errno, "cannot wait in the queue");
    for (;;) {
        watch_wait(w, -1, &signal);
        if (is_stop(signal)) {
            child_kill_all();
            return interrupted(err);
        }
        if (!child_reap(pid, &status))
            continue;
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == 0 ? 0 : cannot_lock(err, WEXITSTATUS(status), dir);
        return act_error_set(err, ACT_FAIL, "cannot wait in the queue: the process that waits was killed by %s",
                             strsignal(WTERMSIG(status)));
    }
}

/* Returns the descriptor that has the lock. */
static int queue_pass(const char *dir, int need, struct watch *w, void (*waiting)(void *, int), void *arg,
                      struct act_error *err)
{
    int fd = open_lock_file(dir, "queue.lock", err), rc = 0;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (errno != EWOULDBLOCK) {
        rc = cannot_lock(err, errno, dir);
    } else {
        waiting(arg, need);
        rc = queue_wait(fd, dir, w, err);
    }
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int slots_wait_for(const char *dir, struct watch *w, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_LOCK);
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0) /* the folder was removed: nothing is left of the run */
        return errno == ENOENT ? 0 : act_error_errno(err, errno, "cannot open '%s'", path);
    int rc = queue_wait(fd, dir, w, err);
    close(fd);
    return rc;
}

/* ---- the slots ---- */

struct collector {
    struct slots *slots;
    int *open_fd; /* of each slot; the file is opened once, since closing one wakes everybody who waits */
    int notify_fd;
};

static void slots_collect(struct collector *c)
{
    struct slots *s = c->slots;

    for (int i = 0; i < s->total && s->taken < s->need; i++)
        if (s->fd[i] < 0 && flock(c->open_fd[i], LOCK_EX | LOCK_NB) == 0) {
            s->fd[i] = c->open_fd[i];
            s->taken++;
        }
}

static void slots_drain(int fd)
{
    char events[4096];

    while (read(fd, events, sizeof(events)) > 0)
        continue;
}

static int collect_all(struct collector *c, const char *dir, struct watch *w, void (*waiting)(void *, int), void *arg,
                       struct act_error *err)
{
    struct slots *s = c->slots;
    int retries = RETRIES, told = 0, signal;

    slots_collect(c);
    if (s->taken == s->need)
        return 0;
    c->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (c->notify_fd >= 0)
        inotify_add_watch(c->notify_fd, dir, IN_CLOSE_WRITE);
    w->extra_fd = c->notify_fd;
    for (slots_collect(c); s->taken < s->need; slots_collect(c)) {
        if (told != s->need - s->taken)
            waiting(arg, told = s->need - s->taken);
        enum watch_event event = watch_wait(w, retries > 0 ? RETRY_MS : LOOK_AGAIN_MS, &signal);
        if (is_stop(signal))
            return interrupted(err);
        if (event == WATCH_EXTRA) {
            slots_drain(c->notify_fd);
            retries = RETRIES;
        } else if (retries > 0) {
            retries--;
        }
    }
    return 0;
}

static int open_and_collect(struct collector *c, const char *dir, struct watch *w, void (*waiting)(void *, int),
                            void *arg, struct act_error *err)
{
    for (int i = 0; i < c->slots->total; i++) {
        ACT_AUTOFREE char *name = act_sprintf("%d.lock", i);
        int fd = open_lock_file(dir, name, err);
        if (fd < 0)
            return fd;
        c->open_fd[i] = fd;
    }
    return collect_all(c, dir, w, waiting, arg, err);
}

static int take_in_turn(struct slots *s, const char *dir, struct watch *w, void (*waiting)(void *, int), void *arg,
                        struct act_error *err)
{
    struct collector c = {.slots = s, .notify_fd = -1};

    c.open_fd = act_alloc((size_t)s->total * sizeof(int));
    for (int i = 0; i < s->total; i++)
        c.open_fd[i] = -1;
    int rc = open_and_collect(&c, dir, w, waiting, arg, err);
    for (int i = 0; i < s->total; i++)
        if (c.open_fd[i] >= 0 && s->fd[i] < 0)
            close(c.open_fd[i]);
    free(c.open_fd);
    if (c.notify_fd >= 0)
        close(c.notify_fd);
    w->extra_fd = -1;
    return rc;
}

int slots_take(struct slots *s, const char *dir, int total, int need, struct watch *w,
               void (*waiting)(void *arg, int missing), void *arg, struct act_error *err)
{
    *s = (struct slots){.total = total, .need = need};
    if (need == 0)
        return 0;
    if (need > total)
        return act_error_set(err, ACT_NO_CAPACITY, "it needs %d slots and this machine has %d", need, total);
    int rc = act_mkdir_all(dir, 0700, err);
    int queue = rc < 0 ? rc : queue_pass(dir, need, w, waiting, arg, err);
    if (queue < 0)
        return queue;

    s->fd = act_alloc((size_t)total * sizeof(int));
    for (int i = 0; i < total; i++)
        s->fd[i] = -1;
    rc = take_in_turn(s, dir, w, waiting, arg, err);
    close(queue);
    if (rc < 0)
        slots_release(s);
    return rc;
}

void slots_release(struct slots *s)
{
    for (int i = 0; s->fd && i < s->total; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    free(s->fd);
    *s = (struct slots){0};
}

char *slots_text(const struct slots *s)
{
    struct act_buf text = {0};

    for (int i = 0; s->fd && i < s->total; i++)
        if (s->fd[i] >= 0)
            act_buf_addf(&text, "%s%d", text.len ? "," : "", i);
    return act_buf_steal(&text);
}
