/* pidfd.h - a descriptor for one process, never for another that reuses its number: a pidfd, and before Linux 5.3
 * the process's folder in /proc, which ends with it (proc(5)). */
#ifndef ACT_PROC_PIDFD_H
#define ACT_PROC_PIDFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns -1 with errno when there is no such process. Close it with close(). */
int proc_pidfd_open(pid_t pid);
/* Whether poll() reports the end; otherwise only proc_pidfd_wait() does. */
bool proc_pidfd_is_pollable(int fd);
/* Waits for the process to end, at most timeout_ms (-1: without limit; 0: only looks), and returns whether it has. A
 * child is a zombie then. */
bool proc_pidfd_wait(int fd, int timeout_ms);
/* When the process of this number began, in clock ticks since the boot (field 22 of /proc/<pid>/stat, proc(5)): with
 * the number it tells this process from all others. -1: there is none. */
int64_t proc_began(pid_t pid);
/* Signals the process, whose number is pid; does nothing if it has ended. */
void proc_pidfd_signal(int fd, pid_t pid, int signal);

#endif
