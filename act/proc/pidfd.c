#include "proc/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum { LOOK_MS = 10 };

int proc_pidfd_open(pid_t pid)
{
    char folder[32];
    int fd = pidfd_open(pid, 0);

    if (fd >= 0 || errno != ENOSYS)
        return fd;
    snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool proc_pidfd_is_pollable(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Reads "pid (name) state ..." from path, in folder if it is relative, and returns what follows the name, which may
 * have blanks and parentheses; NULL: there is no such process. */
static const char *pidfd_read_stat(int folder, const char *path, char *text, size_t size)
{
    ACT_AUTOCLOSE int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end ? name_end + 1 : NULL;
}

static bool folder_has_ended(int folder)
{
    char text[1024];
    const char *stat = pidfd_read_stat(folder, "stat", text, sizeof(text));

    return !stat || (stat[0] && strchr("ZX", stat[1]));
}

static bool pidfd_folder_wait(int folder, int timeout_ms)
{
    int64_t started = act_now_monotonic_ms();

    while (!folder_has_ended(folder)) {
        if (timeout_ms >= 0 && act_now_monotonic_ms() - started >= timeout_ms)
            return false;
        if (poll(NULL, 0, LOOK_MS) < 0) /* a signal, which ends poll() on a pidfd as well */
            return false;
    }
    return true;
}

bool proc_pidfd_wait(int fd, int timeout_ms)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};

    return proc_pidfd_is_pollable(fd) ? poll(&end, 1, timeout_ms) > 0 : pidfd_folder_wait(fd, timeout_ms);
}

int64_t proc_began(pid_t pid)
{
    char path[32], text[1024];
    long long ticks = -1;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *stat = pidfd_read_stat(AT_FDCWD, path, text, sizeof(text));
    if (!stat || sscanf(stat,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                        "%lld",
                        &ticks) != 1)
        return -1;
    return ticks;
}

void proc_pidfd_signal(int fd, pid_t pid, int signal)
{
    if (proc_pidfd_is_pollable(fd))
        pidfd_send_signal(fd, signal, NULL, 0);
    else if (!folder_has_ended(fd))
        kill(pid, signal);
}
