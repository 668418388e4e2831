/* pidfd.h - a descriptor that stands for one process and never for another that got its number: a pidfd, and before Linux
 * 5.3 the process's folder in /proc, which ends with it (proc(5)). */
#ifndef ACT_PROC_PIDFD_H
#define ACT_PROC_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns -1 with errno when there is no such process. Close it with close(). */
int proc_pidfd_open(pid_t pid);
/* Whether poll() tells of the end; otherwise only proc_pidfd_wait() does. */
bool proc_pidfd_is_pollable(int fd);
/* Waits until the process has ended, timeout_ms (-1: without limit; 0: looks) at most: whether it has. A child is a zombie
 * then. */
bool proc_pidfd_wait(int fd, int timeout_ms);
/* Signals it, pid being its number; nothing when it has ended. */
void proc_pidfd_signal(int fd, pid_t pid, int signal);

#endif
