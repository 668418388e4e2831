/* pidfd.h - a descriptor for one process, never for another that reuses its number: a pidfd, and before Linux 5.3
 * the process's folder in /proc, which ends with it (proc(5)). */
#ifndef ACT_PROC_PIDFD_H
#define ACT_PROC_PIDFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens a descriptor for the process pid, which close() closes. Returns -1 with errno if there is no such process. */
int proc_pidfd_open(pid_t pid);
/* Tells whether poll() reports the end; otherwise only proc_pidfd_wait() does. */
bool proc_pidfd_is_pollable(int fd);
/* Waits for the process to end, at most timeout_ms (-1: without limit; 0: only looks) or until a signal comes, and
 * returns whether it has ended. A child is a zombie then. */
bool proc_pidfd_wait(int fd, int timeout_ms);
/* Returns when the process pid began, in clock ticks since the boot (field 22 of /proc/<pid>/stat, proc(5)), which
 * together with pid tells it from all others. -1: there is no such process. */
int64_t proc_began(pid_t pid);
/* Signals the process, whose number is pid; does nothing if it has ended. */
void proc_pidfd_signal(int fd, pid_t pid, int signal);

#endif
