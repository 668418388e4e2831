/* proc.h - child processes. Arguments are vectors, never shell lines. Of this process's environment they get what
 * programs of their kind may see. */
#ifndef ACT_PROC_PROC_H
#define ACT_PROC_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/environment.h"

/* Runs argv (argv[0] looked up in PATH, argv ends with NULL) with /dev/null as input, all of the environment and stderr
 * passed on, waits for at most timeout_s (0: no limit; on timeout the child's process group is killed and -ACT_TIMEOUT
 * returned). *out: stdout as text, at most max_bytes (more is an error), a new string; may be NULL to let
 * stdout through. Returns 0 with *out_status as from waitpid(), -ACT_NOT_FOUND when the program does not
 * exist. */
int proc_run(char *const *argv, int timeout_s, size_t max_bytes, char **out, int *out_status,
             struct act_error *err) ACT_NODISCARD;

/* The same with the caller in control of the input and both output streams. */
struct proc_call {
    char *const *argv; /* argv[0] is looked up in PATH; ends with NULL */
    enum environment_of sees;
    char *const *set;  /* variables for it alone; see environment_make() */
    const char *cwd;   /* NULL: this process's */
    const void *input; /* of input_len bytes; NULL: /dev/null */
    size_t input_len;
    int timeout_s;    /* 0: no limit; when it is over the process group is killed: -ACT_TIMEOUT */
    size_t max_bytes; /* of each stream; more is an error */
    bool on_terminal; /* it may ask on the terminal, so it stays in this process group and is killed alone */
    bool talks;       /* it also has this process's input, and its stderr, which is not captured */
};
struct proc_result {
    int status; /* as from waitpid() */
    char *out, *err;
    size_t out_len, err_len; /* a NUL byte follows */
};
/* Release result in every case. After an error it holds what was read until then. */
int proc_call(const struct proc_call *call, struct proc_result *result, struct act_error *err) ACT_NODISCARD;
void proc_result_release(struct proc_result *result);

/* Starts a child that the caller talks to and waits for. */
struct proc_start {
    char *const *argv;
    enum environment_of sees;
    char *const *set; /* variables for it alone; see environment_make() */
    const char *cwd;
    int in_fd;          /* -1: /dev/null */
    int out_fd, err_fd; /* -1: this process's */
    bool own_group;     /* a process group of its own */
};
int proc_start(const struct proc_start *start, pid_t *out_pid, struct act_error *err) ACT_NODISCARD;

/* Starts argv as a daemon: a session of its own, the parent is init, cwd is "/", stdin /dev/null, stdout and
 * stderr appended to log_path. keep_fd (or -1) stays open in it under the same number. Returns 0 with its pid
 * once exec succeeded; otherwise the errno of exec is reported. */
int proc_daemon(char *const *argv, enum environment_of sees, const char *log_path, int keep_fd, pid_t *out_pid,
                struct act_error *err) ACT_NODISCARD;

/* For a child before exec: every signal does what it does by default, none is blocked. Async-signal-safe. */
void proc_reset_signals(void);

/* From now on only root can look into this process's memory, and no core is written (PR_SET_DUMPABLE in prctl(2)):
 * for programs that hold secrets. Programs that it starts are unaffected, because exec resets it. ACT_DUMPABLE=1 in
 * the environment leaves everything as it is, for debuggers and strace. */
void proc_hide(void);

/* The program beside the running one ("act-node" beside "act"), or in "../libexec/act" of it, or in PATH, where it must
 * say with --version that it is of the same version: -ACT_CONFIG. New string. */
int proc_find_sibling(const char *name, char **out, struct act_error *err) ACT_NODISCARD;

/* The first program of this name in PATH, NULL when there is none. New string. */
char *proc_find_in_path(const char *name);

#endif
