/* lock.c - locks of files and folders, by flock(2): see file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

enum { PAUSE_MS = 20, TOLD_AFTER_MS = 1000, SHORT_MS = 10000 };

/* ---- who has it */

/* Returns the process that has the lock of this file, by proc_locks(5); 0: it does not show, as on another machine. */
static int find_holder(int fd)
{
    struct stat st;
    FILE *locks = fstat(fd, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    unsigned major_of, minor_of;
    unsigned long long inode;
    char line[256];
    int pid, found = 0;

    while (locks && !found && fgets(line, sizeof(line), locks))
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_of, &minor_of, &inode) == 4 &&
            major_of == major(st.st_dev) && minor_of == minor(st.st_dev) && inode == st.st_ino)
            found = pid;
    if (locks)
        fclose(locks);
    return found;
}

/* Returns the process in words, a new string. */
static char *name_holder(int fd)
{
    int pid = find_holder(fd);

    return pid > 0 ? act_sprintf("process %d", pid) : act_strdup("another process");
}

/* ---- taking it */

static int say_interrupted(int fd, const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *holder = name_holder(fd);

    return act_error_set(err, ACT_INTERRUPTED, "interrupted while %s has '%s' locked", holder, path);
}

int act_lock(const char *path, bool wait, struct act_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot open '%s'", path);
    if (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) == 0)
        return fd;
    int saved = errno;
    int rc = saved == EINTR         ? say_interrupted(fd, path, err)
             : saved == EWOULDBLOCK ? act_error_set(err, ACT_TEMPORARY, "'%s' is in use by another process", path)
                                    : act_error_errno(err, saved, "cannot lock '%s'", path);
    close(fd);
    return rc;
}

/* ---- waiting */

/* How long a caller waits, and what it says meanwhile. */
struct patience {
    const char *doing; /* what the other process does, which a note says after a moment; NULL: no note */
    int64_t limit_ms;  /* after this it is an error; 0: never */
};

static void say_waiting(int fd, const struct patience *patience)
{
    ACT_AUTOFREE char *holder = name_holder(fd);

    act_note("waiting for %s, which %s ...", holder, patience->doing);
}

static int lock_wait_for(int fd, const char *path, const struct patience *patience, struct act_error *err)
{
    int64_t start_ms = act_now_monotonic_ms();
    bool told = !patience->doing;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int64_t waited_ms = act_now_monotonic_ms() - start_ms;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return act_error_errno(err, errno, "cannot lock '%s'", path);
        if (patience->limit_ms && waited_ms >= patience->limit_ms) {
            ACT_AUTOFREE char *holder = name_holder(fd);
            return act_error_set(err, ACT_TEMPORARY, "%s has had '%s' locked for %lld s; try again when it has ended",
                                 holder, path, (long long)(waited_ms / 1000));
        }
        if (!told && waited_ms >= TOLD_AFTER_MS) {
            say_waiting(fd, patience);
            told = true;
        }
        if (usleep(PAUSE_MS * 1000) < 0)
            return say_interrupted(fd, path, err);
    }
    return 0;
}

static int open_and_wait(const char *path, int flags, const struct patience *patience, struct act_error *err)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot open '%s'", path);
    int rc = lock_wait_for(fd, path, patience, err);
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int act_lock_shortly(const char *path, struct act_error *err)
{
    return open_and_wait(path, O_RDWR | O_CREAT, &(struct patience){.limit_ms = SHORT_MS}, err);
}

int act_lock_folder(const char *path, struct act_error *err)
{
    return open_and_wait(path, O_RDONLY | O_DIRECTORY, &(struct patience){.limit_ms = SHORT_MS}, err);
}

int act_lock_told(const char *path, const char *doing, struct act_error *err)
{
    return open_and_wait(path, O_RDWR | O_CREAT, &(struct patience){.doing = doing}, err);
}
