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
#include "node/node.h"
#include "run/run.h"

#define QUEUE_FILE "queue.lock"

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

/* ---- who asks ---- */

struct asker {
    const struct slots_request *request;
    struct watch *w;
    int queue_fd;  /* the lock of the queue */
    int notify_fd; /* of what is watched; -1: nothing */
    char *why;     /* why it waits, as it was told last */
};

/* Tells why it waits, unless that was told before. Takes ownership of why. */
static void slots_tell(struct asker *a, char *why)
{
    bool same = act_streq(a->why, why);

    free(same ? why : a->why);
    if (same)
        return;
    a->why = why;
    a->request->waiting(a->request->arg, why);
}

/* From now on a wait of w ends when the file at path changes so. */
static void notice(struct asker *a, const char *path, uint32_t changes)
{
    a->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (a->notify_fd >= 0)
        inotify_add_watch(a->notify_fd, path, changes);
    a->w->extra_fd = a->notify_fd;
}

static void notice_no_more(struct asker *a)
{
    if (a->notify_fd >= 0)
        close(a->notify_fd);
    a->w->extra_fd = a->notify_fd = -1;
}

static void slots_drain(int fd)
{
    char events[4096];

    while (read(fd, events, sizeof(events)) > 0)
        continue;
}

/* ---- the queue: one lock, held while slots are collected. Who holds it writes into the file what it waits for, which
 * those behind it tell their users. */

static int cannot_lock(struct act_error *err, int errnum, const char *dir)
{
    return act_error_errno(err, errnum, "cannot lock the files in '%s' by which runs wait for one another", dir);
}

static void write_line(int fd, const char *line)
{
    size_t len = strlen(line);

    if (pwrite(fd, line, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len) < 0)
        node_say("cannot write for the runs behind this one what it has or waits for: %m");
}

/* Says nothing where the run before this one does not wait, or has not yet written what for. */
static void tell_what_is_before(struct asker *a)
{
    char line[512];
    ssize_t n = pread(a->queue_fd, line, sizeof(line) - 1, 0);

    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (*line)
        slots_tell(a, act_sprintf("waits behind %s", line));
    else if (!a->why)
        slots_tell(a, act_strdup("waits behind another run"));
}

/* Returns the errno, which fits into an exit status. */
static int lock_and_leave(void *fd)
{
    while (flock(*(int *)fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* A child waits in flock(), so that this process still hears signals. The lock belongs to the open file that
 * both share and stays when the child has ended. */
static int queue_wait(struct asker *a, struct act_error *err)
{
    int signal, status = 0;
    pid_t pid = child_start(&(struct child){.run = lock_and_leave, .arg = &a->queue_fd, .out_fd = -1});

    if (pid < 0)
        return act_error_errno(err, errno, "cannot wait in the queue");
    for (;;) {
        if (watch_wait(a->w, LOOK_AGAIN_MS, &signal) == WATCH_EXTRA)
            slots_drain(a->notify_fd);
        if (is_stop(signal)) {
            child_kill_all();
            return interrupted(err);
        }
        if (!child_reap(pid, &status)) {
            tell_what_is_before(a);
            continue;
        }
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == 0 ? 0 : cannot_lock(err, WEXITSTATUS(status), a->request->dir);
        return act_error_set(err, ACT_FAIL, "cannot wait in the queue: the process that waits was killed by %s",
                             strsignal(WTERMSIG(status)));
    }
}

static int queue_pass(struct asker *a, struct act_error *err)
{
    const char *dir = a->request->dir;
    ACT_AUTOFREE char *path = act_path_join(dir, QUEUE_FILE);

    a->queue_fd = open_lock_file(dir, QUEUE_FILE, err);
    if (a->queue_fd < 0 || flock(a->queue_fd, LOCK_EX | LOCK_NB) == 0)
        return a->queue_fd;
    if (errno != EWOULDBLOCK)
        return cannot_lock(err, errno, dir);
    notice(a, path, IN_MODIFY);
    tell_what_is_before(a);
    int rc = queue_wait(a, err);
    notice_no_more(a);
    return rc;
}

/* Leaves the queue. Its line is emptied first, because the next in the queue waits for something else. */
static void queue_leave(struct asker *a)
{
    write_line(a->queue_fd, "");
    close(a->queue_fd);
}

/* ---- the slots ---- */

struct collector {
    struct slots *slots;
    int *open_fd; /* of each slot; the file is opened once, since closing one wakes everybody who waits */
};

static bool choose_first(const bool *free_slots, int total, int need, bool *out_chosen, struct slots_lack *out_lack)
{
    for (int i = 0; i < total; i++) {
        out_chosen[i] = free_slots[i] && out_lack->can_be_had < need;
        out_lack->can_be_had += free_slots[i];
    }
    return out_lack->can_be_had >= need;
}

/* Returns the runs that have the slots which are not free. New string. */
static char *slots_holders(const struct collector *c, const bool *free_slots)
{
    enum { NAMED_MAX = 2, ID_MAX = 128 };
    ACT_AUTO(act_strv) ids = {0};
    struct act_buf text = {0};

    for (int i = 0; i < c->slots->total; i++) {
        char id[ID_MAX];
        ssize_t n = free_slots[i] ? 0 : pread(c->open_fd[i], id, sizeof(id) - 1, 0);
        id[n > 0 ? n : 0] = '\0';
        id[strcspn(id, "\n")] = '\0';
        if (*id && !act_strv_has(&ids, id))
            act_strv_push(&ids, id);
    }
    for (size_t i = 0; i < ids.n && i < NAMED_MAX; i++)
        act_buf_addf(&text, "%s'%s'", i == 0 ? ", held by " : ids.n > NAMED_MAX ? ", " : " and ", ids.v[i]);
    if (ids.n > NAMED_MAX)
        act_buf_addf(&text, " and %zu more", ids.n - NAMED_MAX);
    return act_buf_steal(&text);
}

static void slots_mark(int fd, const char *run)
{
    ACT_AUTOFREE char *line = act_sprintf("%s\n", run);

    write_line(fd, line);
}

static void release_lack(struct slots_lack *lack)
{
    free(lack->held);
    free(lack->why);
}

/* Takes all that the run needs, or none: whoever has the queue has time. */
static bool slots_collect(struct collector *c, const struct slots_request *r, struct slots_lack *out_lack)
{
    struct slots *s = c->slots;
    ACT_AUTOFREE bool *free_slots = act_calloc((size_t)s->total, sizeof(bool));
    ACT_AUTOFREE bool *chosen = act_calloc((size_t)s->total, sizeof(bool));

    *out_lack = (struct slots_lack){0};
    for (int i = 0; i < s->total; i++)
        free_slots[i] = flock(c->open_fd[i], LOCK_EX | LOCK_NB) == 0;
    bool enough = r->choose ? r->choose(r->chooser, free_slots, s->need, chosen, out_lack)
                            : choose_first(free_slots, s->total, s->need, chosen, out_lack);
    out_lack->held = enough ? NULL : slots_holders(c, free_slots);
    for (int i = 0; i < s->total; i++)
        if (enough && chosen[i]) {
            s->fd[i] = c->open_fd[i];
            slots_mark(s->fd[i], r->run);
        } else if (free_slots[i]) {
            (void)flock(c->open_fd[i], LOCK_UN);
        }
    return enough;
}

/* "2 of 4 GPUs", or, of which it has none, "4 GPUs". New string. */
static char *slots_lacking(const struct slots_request *r, const struct slots_lack *lack)
{
    int lacking = r->need - lack->can_be_had;

    if (lacking < r->need)
        return act_sprintf("%d of %d %s", lacking, r->need, r->unit);
    return act_sprintf("%d %.*s", lacking, (int)strlen(r->unit) - (lacking == 1), r->unit);
}

static void tell_what_is_missing(struct asker *a, const struct slots_lack *lack)
{
    const struct slots_request *r = a->request;
    ACT_AUTOFREE char *what = slots_lacking(r, lack);
    ACT_AUTOFREE char *why =
        act_sprintf("waits for %s%s%s%s", what, lack->held, lack->why ? ": " : "", lack->why ? lack->why : "");
    ACT_AUTOFREE char *line = act_sprintf("'%s', which %s\n", r->run, why);

    if (act_streq(a->why, why))
        return;
    slots_tell(a, act_strdup(why));
    write_line(a->queue_fd, line);
}

/* Does not return before it has all, or is told to end. */
static int wait_for_slots(struct collector *c, struct asker *a, struct act_error *err)
{
    struct slots_lack lack;
    int retries = RETRIES, signal;

    notice(a, a->request->dir, IN_CLOSE_WRITE);
    while (!slots_collect(c, a->request, &lack)) {
        tell_what_is_missing(a, &lack);
        release_lack(&lack);
        enum watch_event event = watch_wait(a->w, retries > 0 ? RETRY_MS : LOOK_AGAIN_MS, &signal);
        if (is_stop(signal))
            return interrupted(err);
        if (event == WATCH_EXTRA) {
            slots_drain(a->notify_fd);
            retries = RETRIES;
        } else if (retries > 0) {
            retries--;
        }
    }
    return 0;
}

static int collect_all(struct collector *c, struct asker *a, struct act_error *err)
{
    struct slots_lack lack;

    if (slots_collect(c, a->request, &lack))
        return 0;
    release_lack(&lack);
    return wait_for_slots(c, a, err);
}

static int open_and_collect(struct collector *c, struct asker *a, struct act_error *err)
{
    for (int i = 0; i < c->slots->total; i++) {
        const struct act_strv *names = a->request->names;
        ACT_AUTOFREE char *name = names ? act_sprintf("%s.lock", names->v[i]) : act_sprintf("%d.lock", i);
        int fd = open_lock_file(a->request->dir, name, err);
        if (fd < 0)
            return fd;
        c->open_fd[i] = fd;
    }
    return collect_all(c, a, err);
}

static int take_in_turn(struct slots *s, struct asker *a, struct act_error *err)
{
    struct collector c = {.slots = s};

    c.open_fd = act_alloc((size_t)s->total * sizeof(int));
    for (int i = 0; i < s->total; i++)
        c.open_fd[i] = -1;
    int rc = open_and_collect(&c, a, err);
    for (int i = 0; i < s->total; i++)
        if (c.open_fd[i] >= 0 && s->fd[i] < 0)
            close(c.open_fd[i]);
    free(c.open_fd);
    notice_no_more(a);
    return rc;
}

static int slots_take_all(struct slots *s, struct asker *a, struct act_error *err)
{
    int rc = queue_pass(a, err);

    if (rc < 0)
        return rc;
    s->fd = act_alloc((size_t)s->total * sizeof(int));
    for (int i = 0; i < s->total; i++)
        s->fd[i] = -1;
    rc = take_in_turn(s, a, err);
    queue_leave(a);
    a->queue_fd = -1;
    return rc;
}

int slots_take(struct slots *s, const struct slots_request *request, struct watch *w, struct act_error *err)
{
    struct asker asker = {.request = request, .w = w, .queue_fd = -1, .notify_fd = -1};
    int need = request->need, total = request->total;

    *s = (struct slots){.total = total, .need = need};
    if (need == 0)
        return 0;
    if (need > total)
        return act_error_set(err, ACT_NO_CAPACITY, "it needs %d slots and this machine has %d", need, total);
    int rc = act_mkdir_all(request->dir, 0700, err);
    if (rc == 0)
        rc = slots_take_all(s, &asker, err);
    if (asker.queue_fd >= 0)
        close(asker.queue_fd);
    free(asker.why);
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

bool slots_has(const struct slots *s, int slot)
{
    return s->fd && s->fd[slot] >= 0;
}

char *slots_text(const struct slots *s)
{
    struct act_buf text = {0};

    for (int i = 0; i < s->total; i++)
        if (slots_has(s, i))
            act_buf_addf(&text, "%s%d", text.len ? "," : "", i);
    return act_buf_steal(&text);
}
