/* mount_keep.c - the keeper of a mount. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "flow/data/mount.h"
#include "proc/proc.h"

enum {
    LOOK_MS = 100,
    ASK_MS = 1000,
    SLOW_MS = 2000, /* from then on people wonder */
    MOUNT_MS = 60 * 1000,
    FREE_MS = 10 * 1000, /* for programs to close what they have open */
    END_MS = 30 * 1000,  /* for the tool to end once it serves nothing */
    RESTARTS = 3,
};

#define RESERVE_FILE "reserve"

struct tool {
    struct mount_plan *plan;
    void (*slow)(void *arg); /* of the keeper, until it was called */
    void *arg;
    char *log, *cache;
    pid_t pid; /* 0: it has ended */
    int status;
    int signal_fd;
    int told;          /* how often a signal told us to end */
    bool disk_is_full; /* that of the cache */
};

/* ---- the tool */

static int open_signals(struct tool *t, struct act_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return act_error_errno(err, errno, "cannot block signals");
    t->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return t->signal_fd < 0 ? act_error_errno(err, errno, "cannot wait for signals") : 0;
}

static void reap(struct tool *t)
{
    if (t->pid > 0 && waitpid(t->pid, &t->status, WNOHANG) == t->pid)
        t->pid = 0;
}

/* Waits for a signal, at most for a moment. */
static void mount_keep_look(struct tool *t)
{
    struct signalfd_siginfo info;

    poll(&(struct pollfd){.fd = t->signal_fd, .events = POLLIN}, 1, LOOK_MS);
    while (read(t->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        t->told += info.ssi_signo != SIGCHLD;
    reap(t);
}

static bool pass_on(int fd, int as)
{
    return fd == as ? fcntl(fd, F_SETFD, 0) >= 0 : dup2(fd, as) >= 0;
}

/* Becomes the tool, by what may be done between fork() and exec(). */
__attribute__((noreturn)) static void become_tool(char *const *words, char *const *env, int log_fd, int config_fd,
                                                  int end_signal)
{
    prctl(PR_SET_PDEATHSIG, end_signal);
    setpgid(0, 0); /* Ctrl-C is ours */
    proc_reset_signals();
    if (dup2(log_fd, STDOUT_FILENO) >= 0 && dup2(log_fd, STDERR_FILENO) >= 0 &&
        (config_fd < 0 || pass_on(config_fd, MOUNT_CONFIG_FD)))
        execve(words[0], words, env);
    _exit(ACT_WRAPPER);
}

static int mount_keep_write_config(const struct mount_plan *plan, struct act_error *err)
{
    ACT_AUTOWIPE char *text = mount_config(plan);
    ACT_AUTOFREE char *path = act_path_join(plan->dir, MOUNT_CONFIG);

    return act_file_write_quickly(path, text, strlen(text), 0600, err);
}

/* Writes the configuration into memory, and returns its descriptor. */
static int open_config(const struct mount_plan *plan, struct act_error *err)
{
    ACT_AUTOWIPE char *text = mount_config(plan);
    int fd = memfd_create("config", MFD_CLOEXEC);
    int rc = fd < 0 || act_write_all(fd, text, strlen(text)) < 0
                 ? act_error_errno(err, errno, "cannot write its configuration")
                 : fd;

    if (rc < 0 && fd >= 0)
        close(fd);
    return rc;
}

/* blobfuse2 sends a file while it is closed, and at its own end, in order or not, removes what could not be sent or is
 * still open. */
static bool forgets_at_end(const struct tool *t)
{
    return t->plan->tool == MOUNTS_BLOBFUSE2 && !t->plan->read_only;
}

/* A folder that no earlier start has used. New string. */
static int make_own_cache(const struct mount_plan *plan, char **out, struct act_error *err)
{
    for (int i = 1;; i++) {
        char *path = act_sprintf("%s/" RUN_DIR_MOUNT_CACHE "/%s.%d", plan->dir, mounts_tool_name(plan->tool), i);
        if (mkdir(path, 0700) == 0) {
            *out = path;
            return 0;
        }
        int rc = errno == EEXIST ? 0 : act_error_errno(err, errno, "cannot make '%s'", path);
        free(path);
        if (rc < 0)
            return rc;
    }
}

/* Makes the cache, which for blobfuse2 is an empty one. */
static int make_cache(struct tool *t, struct act_error *err)
{
    const struct mount_plan *plan = t->plan;
    bool empty = plan->tool == MOUNTS_BLOBFUSE2;
    int rc = 0;

    free(t->cache);
    t->cache = act_path_join(plan->dir, empty ? "read" : RUN_DIR_MOUNT_CACHE);
    if (forgets_at_end(t)) {
        free(t->cache);
        t->cache = NULL;
        rc = make_own_cache(plan, &t->cache, err);
    } else if (empty) {
        rc = act_remove_tree(t->cache, err);
        rc = rc < 0 ? rc : act_mkdir_all(t->cache, 0700, err);
    } else {
        rc = mount_mend(t->cache, err);
    }
    t->plan->cache = t->cache;
    return rc;
}

static int spawn(struct tool *t, int config_fd, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0}, env = {0};
    int log_fd = open(t->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (log_fd < 0)
        return act_error_errno(err, errno, "cannot write '%s'", t->log);
    mount_words(t->plan, &words);
    environment_make(OF_MOUNT, NULL, &env);
    t->pid = fork();
    if (t->pid == 0)
        become_tool(words.v, env.v, log_fd, config_fd, forgets_at_end(t) ? SIGKILL : SIGTERM);
    int start_errno = errno;
    close(log_fd);
    if (t->pid < 0) {
        t->pid = 0;
        return act_error_errno(err, start_errno, "cannot start '%s'", t->plan->program);
    }
    return 0;
}

static int configure_and_spawn(struct tool *t, struct act_error *err)
{
    if (t->plan->tool == MOUNTS_BLOBFUSE2) {
        int rc = mount_keep_write_config(t->plan, err);
        return rc < 0 ? rc : spawn(t, -1, err);
    }
    int fd = open_config(t->plan, err);
    int rc = fd < 0 ? fd : spawn(t, fd, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- what it said */

static bool mount_keep_has_ended(const struct flow_blob *blob)
{
    return flow_blob_ends_s(blob) <= act_now_unix_s();
}

/* The last line of the log from an offset on that contains the words. New string; NULL: none. */
static char *find_line(const struct tool *t, off_t from, const char *words)
{
    enum { TAIL = 64 << 10 };
    int fd = open(t->log, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ACT_AUTOFREE char *text = act_calloc(1, TAIL + 1);
    char *found = NULL, *rest = text, *line;

    if (fd < 0)
        return NULL;
    ssize_t n = act_pread_all(fd, text, TAIL, end - TAIL > from ? end - TAIL : from);
    close(fd);
    while (n > 0 && (line = strsep(&rest, "\n")))
        if (*line && strstr(line, words)) {
            free(found);
            found = act_one_line(line, strlen(line));
        }
    return found;
}

/* Returns what the service said, which is a line of its own, else the last error, as a new string. */
static char *find_reason(const struct tool *t, off_t from)
{
    static const char *const marks[] = {"ServiceCode=", "ERROR CODE: ", " upload failed [", "ERROR"};
    char *line = NULL, ended[ACT_TIME_TEXT];

    if (t->disk_is_full)
        return act_strdup("the disk of its cache was full (no space left on device)");
    if (mount_keep_has_ended(t->plan->blob)) {
        act_time_to_iso(flow_blob_ends_s(t->plan->blob), ended);
        return act_sprintf("the SAS of its store ended at %s", ended);
    }
    for (size_t i = 0; !line && i < sizeof(marks) / sizeof(marks[0]); i++)
        line = find_line(t, from, marks[i]);
    if (!line)
        return act_sprintf("'%s' did not say why", mounts_tool_name(t->plan->tool));
    char *shown = mount_redact(t->plan, line + strspn(line, "= "));
    free(line);
    for (size_t n = strlen(shown); n > 0 && strchr("= ", shown[n - 1]); n--) /* as in "===== RESPONSE ERROR =====" */
        shown[n - 1] = '\0';
    return shown;
}

static off_t log_size(const struct tool *t)
{
    struct stat st;

    return stat(t->log, &st) == 0 ? st.st_size : 0;
}

/* Sets the error that says how the tool ended, and what it said last. */
static int say_ended(const struct tool *t, off_t from, const char *what, struct act_error *err)
{
    ACT_AUTOFREE char *said = find_line(t, from, "");
    ACT_AUTOFREE char *line = said ? mount_redact(t->plan, said) : NULL;
    const char *name = mounts_tool_name(t->plan->tool);

    if (WIFSIGNALED(t->status))
        return act_error_set(err, ACT_FAIL, "%s: '%s' was killed by signal %d", what, name, WTERMSIG(t->status));
    return act_error_set(err, ACT_FAIL, "%s: '%s' ended with status %d: %s", what, name, WEXITSTATUS(t->status),
                         line ? line : "it said nothing");
}

/* ---- begin */

/* Room to say what happened, and for the tool to go on, on a disk that its cache fills. */
static int make_reserve(const struct mount_plan *plan, struct act_error *err)
{
    enum { RESERVE = 1 << 20 };
    ACT_AUTOFREE char *path = act_path_join(plan->dir, RESERVE_FILE);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc = fd < 0 ? errno : posix_fallocate(fd, 0, RESERVE);

    if (fd >= 0)
        close(fd);
    return rc == 0 ? 0 : act_error_errno(err, rc, "cannot keep room in '%s'", plan->dir);
}

static void use_reserve(struct tool *t)
{
    ACT_AUTOFREE char *path = act_path_join(t->plan->dir, RESERVE_FILE);
    struct statvfs disk;

    t->disk_is_full = statvfs(t->plan->dir, &disk) == 0 && disk.f_bavail == 0;
    unlink(path);
}

static void kill_tool(struct tool *t, int sig, int64_t wait_ms)
{
    int64_t until = act_now_monotonic_ms() + wait_ms;

    if (t->pid > 0)
        kill(t->pid, sig);
    while (t->pid > 0 && act_now_monotonic_ms() < until)
        mount_keep_look(t);
}

static void end_tool(struct tool *t)
{
    kill_tool(t, SIGTERM, END_MS);
    kill_tool(t, SIGKILL, END_MS);
}

static int wait_until_mounted(struct tool *t, off_t from, struct act_error *err)
{
    int64_t begun_ms = act_now_monotonic_ms(), until = begun_ms + MOUNT_MS;

    while (!mounts_is_one(t->plan->at)) {
        if (t->slow && act_now_monotonic_ms() - begun_ms >= SLOW_MS) {
            t->slow(t->arg);
            t->slow = NULL;
        }
        if (t->pid == 0)
            return say_ended(t, from, "it cannot be mounted", err);
        if (t->told)
            return act_error_set(err, ACT_INTERRUPTED, "told to end while it was being mounted");
        if (act_now_monotonic_ms() >= until)
            return act_error_set(err, ACT_TIMEOUT, "'%s' has not mounted it within a minute",
                                 mounts_tool_name(t->plan->tool));
        mount_keep_look(t);
    }
    return 0;
}

static int mount_keep_start(struct tool *t, struct act_error *err)
{
    off_t from = log_size(t);
    int rc = make_cache(t, err);

    if (rc == 0)
        rc = configure_and_spawn(t, err);
    if (rc == 0)
        rc = wait_until_mounted(t, from, err);
    if (rc < 0)
        end_tool(t);
    return rc;
}

/* Mounts again. Files that were written before are in the cache, and the next rclone sends them. */
static int restart(struct tool *t, struct act_error *err)
{
    (void)say_ended(t, log_size(t), "the mount ended", err);
    act_warn("'%s': %s; it is mounted again", t->plan->name, act_error_text(err));
    return mounts_end_below(t->plan->at) ? mount_keep_start(t, err)
                                         : act_error_set(err, ACT_FAIL, "'%s' cannot be unmounted", t->plan->at);
}

/* ---- end */

/* Tells whether the tool has tried in vain since then, and more often than what passes takes. */
static bool has_given_up(const struct tool *t, off_t from)
{
    enum { TRIES = 5 };
    static const char words[] = "failed to upload try #"; /* vfs/vfscache/writeback/writeback.go */
    ACT_AUTOFREE char *line = find_line(t, from, words);

    return line && (mount_keep_has_ended(t->plan->blob) || atoi(strstr(line, words) + strlen(words)) >= TRIES);
}

/* While a file is open it counts as one that is not sent. */
static void wait_until_sent(struct tool *t)
{
    off_t from = log_size(t);
    int told = t->told;

    while (t->pid > 0 && t->told <= told + 1 && run_mount_waiting(t->plan->dir) > 0 && !has_given_up(t, from))
        mount_keep_look(t);
}

/* component/file_cache/file_cache.go: FileCache::FlushFile. Whoever closed the file got an error. */
static bool has_failed_to_send(const struct tool *t)
{
    FILE *log = fopen(t->log, "re");
    ACT_AUTOFREE char *line = NULL;
    size_t size = 0;
    bool found = false;

    while (log && !found && getline(&line, &size, log) > 0)
        found = strstr(line, " upload failed [");
    if (log)
        fclose(log);
    return found;
}

static void unmount(struct tool *t)
{
    int64_t until = act_now_monotonic_ms() + FREE_MS;
    struct act_error err;

    mount_keep_look(t); /* what it says of the last file may be on its way */
    if (forgets_at_end(t) && has_failed_to_send(t))
        kill_tool(t, SIGKILL, END_MS);
    while (mounts_is_one(t->plan->at) && mounts_end(t->plan->at, false, &err) < 0 && act_now_monotonic_ms() < until &&
           t->pid > 0)
        mount_keep_look(t);
    if (forgets_at_end(t) && mounts_is_one(t->plan->at))
        kill_tool(t, SIGKILL, END_MS); /* something is still open */
    if (mounts_is_one(t->plan->at) && mounts_end(t->plan->at, true, &err) < 0)
        act_warn("%s", act_error_text(&err));
    kill_tool(t, 0, END_MS);
    end_tool(t);
}

/* If the disk was full, the last writes of a program are not in the file, whether the program took note or not. */
static int check_disk(const struct tool *t, struct act_error *err)
{
    ACT_AUTOFREE char *said = find_line(t, 0, "no space left on device");

    if (!t->disk_is_full && !said)
        return 0;
    return act_error_set(err, ACT_FAIL,
                         "the disk of '%s' was full (no space left on device): files written to it may not be whole",
                         t->plan->dir);
}

static int check_sent(const struct tool *t, off_t from, struct act_error *err)
{
    size_t n = run_mount_unsent(t->plan->dir);

    if (n == 0)
        return check_disk(t, err);
    ACT_AUTOFREE char *why = find_reason(t, forgets_at_end(t) ? 0 : from);
    return act_error_set(err, ACT_FAIL,
                         "%zu file%s written to it %s not in the store but in '%s/" RUN_DIR_MOUNT_CACHE
                         "' on this node: %s",
                         n, n == 1 ? "" : "s",
                         forgets_at_end(t) ? "may be"
                         : n == 1          ? "is"
                                           : "are",
                         t->plan->dir, why);
}

static bool get_another_sas(struct mount_keeper *k, struct tool *t)
{
    struct mount_renewal renewal = {0}; /* it is due */
    int told = t->told;
    bool is_new = mount_renew(k, &renewal);

    while (renewal.pid && t->told <= told + 1) {
        mount_keep_look(t);
        is_new = mount_renew(k, &renewal);
    }
    mount_renewal_end(&renewal);
    return is_new;
}

/* rclone takes another SAS only when it starts, and then sends what is in its cache. Nobody uses the mount any more. */
static void open_again(struct mount_keeper *k, struct tool *t)
{
    struct act_error err;

    if (k->plan.tool != MOUNTS_RCLONE || !k->renew || !mount_keep_has_ended(k->plan.blob) ||
        run_mount_waiting(k->plan.dir) == 0 || !get_another_sas(k, t))
        return;
    unmount(t);
    t->told = 0;
    if (mount_keep_start(t, &err) < 0)
        act_warn("'%s': %s", k->plan.name, act_error_text(&err));
}

static int mount_keep_finish(struct mount_keeper *k, struct tool *t, struct act_error *err)
{
    off_t from = log_size(t);

    use_reserve(t);
    open_again(k, t);
    wait_until_sent(t);
    unmount(t);
    return check_sent(t, from, err);
}

/* ---- all of it */

static void mount_keep_renew(struct mount_keeper *k, struct mount_renewal *renewal)
{
    struct act_error err;

    if (mount_renew(k, renewal) && mount_keep_write_config(&k->plan, &err) < 0)
        act_warn("'%s': %s", k->plan.name, act_error_text(&err));
}

static int keep_mounted(struct mount_keeper *k, struct tool *t, struct mount_renewal *renewal, struct act_error *err)
{
    int64_t ask_ms = 0;
    int restarts = 0;

    while (!t->told) {
        mount_keep_look(t);
        mount_keep_renew(k, renewal);
        if (t->pid == 0 && !t->told) {
            int rc = restarts++ < RESTARTS ? restart(t, err) : say_ended(t, 0, "the mount ended", err);
            if (rc < 0)
                return rc;
        }
        if (!k->wanted || act_now_monotonic_ms() < ask_ms)
            continue;
        ask_ms = act_now_monotonic_ms() + ASK_MS;
        if (!k->wanted(k->arg))
            break;
    }
    return 0;
}

static int mount_keep_keep(struct mount_keeper *k, struct tool *t, struct act_error *err)
{
    struct mount_renewal renewal = {.due_s = mount_renewal_s(k)};
    int rc = keep_mounted(k, t, &renewal, err);

    mount_renewal_end(&renewal);
    return rc;
}

int mount_keep(struct mount_keeper *k, struct act_error *err)
{
    ACT_AUTOFREE char *log = act_path_join(k->plan.dir, MOUNT_LOG);
    struct tool t = {.plan = &k->plan, .log = log, .slow = k->slow, .arg = k->arg};
    struct act_error other;
    int rc = open_signals(&t, err);

    if (rc == 0)
        rc = make_reserve(&k->plan, err);
    if (rc == 0)
        rc = mount_keep_start(&t, err);
    if (rc < 0)
        return rc;
    k->ready(k->arg);
    rc = mount_keep_keep(k, &t, err);
    if (k->waits && run_mount_waiting(k->plan.dir) > 0)
        k->waits(k->arg);
    int end = mount_keep_finish(k, &t, rc < 0 ? &other : err);
    (void)mounts_end_below(k->plan.at);
    close(t.signal_fd);
    free(t.cache);
    return rc < 0 ? rc : end;
}
