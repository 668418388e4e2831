/* child.h - the children of the agent: start them, wait for whatever happens next, leave none behind. */
#ifndef ACT_NODE_CHILD_H
#define ACT_NODE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"

/* Everything the agent waits for. While a watch is open, signals come only through it. */
struct watch {
    int signal_fd;
    int extra_fd; /* anything else that becomes readable, or -1 */
    bool told;    /* SIGTERM or SIGINT has come */
    /* Called then; false: this process must end, as what it depends on is gone. May be NULL. */
    bool (*extra)(void *arg);
    void *extra_arg;
};

enum watch_event { WATCH_TIMEOUT, WATCH_SIGNAL, WATCH_EXTRA, WATCH_GONE };

/* Blocks the signals that the agent handles, and opens a watch for them. */
int watch_open(struct watch *w, struct act_error *err) ACT_NODISCARD;
/* Waits for one event, for at most timeout_ms (-1: without limit). *out_signal: the signal that came, or 0. */
enum watch_event watch_wait(struct watch *w, int64_t timeout_ms, int *out_signal);

struct child {
    union { /* a program, or */
        const char *const *argv;
        char *const *exec_argv; /* the same: the type of exec is older than const */
    };
    int (*run)(void *); /* a function of this one, whose result is the exit status */
    void *arg;
    char *const *set; /* variables for it alone; NULL: none */
    const char *cwd;  /* NULL: unchanged */
    int in_fd;        /* stdin; 0: /dev/null */
    int out_fd;       /* stdout and stderr; -1: as ours */
    int cgroup;       /* a descriptor of the cgroup (version 2) that it begins in; 0: ours */
    bool guarded;     /* it watches this process itself, and cleans up before exiting */
};

/* The child has a process group of its own, the signal handling that programs expect, and dies
 * when this process dies (unless guarded). Returns its pid, or -1 with the errno of the step that failed, exec
 * included. */
pid_t child_start(const struct child *child);

/* Waits for the end of this child without touching signals: for a process without a watch. Returns its wait status. */
int child_wait(pid_t pid);

/* Takes the status of every child that has ended. True when pid is among them, with its status. */
bool child_reap(pid_t pid, int *out_status);

/* Signals all descendants of this process. */
void child_signal_all(int sig);
/* Ends all descendants of this process: SIGTERM, and after grace_ms SIGKILL. */
void child_end_all(struct watch *w, int64_t grace_ms);
/* Kills all descendants of this process, and waits some seconds at most until they are gone. */
void child_kill_all(void);

/* Signals those descendants of this process that catch the signal: the others would die of it. Returns how many. */
int child_signal_catchers(int sig);
/* Tells whether a mask in the form of "SigCgt" in /proc/<pid>/status (proc(5)) has the signal. */
bool child_mask_has(const char *hex, int sig);

/* Gives this process, and what it forks, this soft limit, or the nearest one allowed; programs that it executes get
 * the old one. Returns the new limit. For at most two resources. */
rlim_t child_own_limit(int resource, rlim_t wanted);

/* Returns the status as a shell gives it: the exit status, or 128 + the signal. */
int child_exit_status(int wait_status);

#endif
