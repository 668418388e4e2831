/* killed.h - a child that is killed at one of its system calls. It stops itself, by PTRACE_TRACEME and SIGSTOP, where
 * counting is to begin. */
#ifndef UNIT_KILLED_H
#define UNIT_KILLED_H

#include "unit/test.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lets the child run until it enters its nth system call, on any of its threads, and kills it. False: it ended
 * before. */
static inline bool kill_at(pid_t pid, int n)
{
    int status = 0, seen = 0;
    pid_t thread = waitpid(pid, &status, __WALL);

    assert_int_equal(thread, pid);
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
                     0);
    while (thread > 0) {
        bool is_call = WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
        struct __ptrace_syscall_info info = {0};
        if (WIFEXITED(status) && thread == pid) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
        if (is_call && ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) > 0 &&
            info.op == PTRACE_SYSCALL_INFO_ENTRY && ++seen == n)
            break;
        if (WIFSTOPPED(status))
            ptrace(PTRACE_SYSCALL, thread, 0, 0);
        thread = waitpid(-1, &status, __WALL);
    }
    kill(pid, SIGKILL);
    while (waitpid(-1, &status, __WALL) > 0)
        ;
    return true;
}

static inline bool can_trace(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) ? 1 : 0);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
