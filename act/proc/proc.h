/* proc.h - starts child processes. Arguments are vectors, never shell lines. A child gets that part of this process's
 * environment which programs of its kind may see. */
#ifndef ACT_PROC_PROC_H
#define ACT_PROC_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/environment.h"

/* Runs argv, which ends with NULL and whose argv[0] is looked up in PATH, with /dev/null as input, all of the
 * environment and this process's stderr. Waits for timeout_s (0: without limit), then kills the child's process group
 * and returns -ACT_TIMEOUT. *out: stdout as text of at most max_bytes (more is an error), a new string; out NULL lets
 * stdout through. *out_status: as from waitpid(). -ACT_NOT_FOUND: the program does not exist. */
int proc_run(char *const *argv, int timeout_s, size_t max_bytes, char **out, int *out_status,
             struct act_error *err) ACT_NODISCARD;

/* Does the same with more choices. */
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

/* The child of proc_start(), which the caller talks to and waits for. */
struct proc_start {
    char *const *argv;
    enum environment_of sees;
    char *const *set; /* variables for it alone; see environment_make() */
    const char *cwd;
    int in_fd;          /* -1: /dev/null */
    int out_fd, err_fd; /* -1: this process's */
    bool own_group;     /* a process group of its own */
    bool ends_with_us;  /* SIGHUP ends it when the thread that starts it has ended, however that was killed */
};
/* Starts a child, and sets *out_pid. -ACT_NOT_FOUND: there is no such program. */
int proc_start(const struct proc_start *start, pid_t *out_pid, struct act_error *err) ACT_NODISCARD;
/* The ends of the pipes to a child: of its input, and of its output. */
struct proc_pipes {
    int to, from;
};
/* Does so with pipes in the place of in_fd and out_fd. The caller closes both ends; on an error there are none. */
int proc_start_piped(const struct proc_start *start, pid_t *out_pid, struct proc_pipes *out,
                     struct act_error *err) ACT_NODISCARD;

/* Starts argv as a daemon: a session of its own, the parent is init, cwd is "/", stdin /dev/null, stdout and
 * stderr appended to log_path. keep_fd (or -1) stays open in it under the same number. Returns 0 with its pid
 * once exec succeeded; otherwise the errno of exec is reported. */
int proc_daemon(char *const *argv, enum environment_of sees, const char *log_path, int keep_fd, pid_t *out_pid,
                struct act_error *err) ACT_NODISCARD;

/* Resets all signals to their default and blocks none, for a child before exec. Async-signal-safe. */
void proc_reset_signals(void);

/* Hides this process's memory, which may hold secrets: from now on only root can look into it, and no core is written
 * (PR_SET_DUMPABLE in prctl(2)). Programs that it starts are unaffected, because exec resets this. With ACT_DUMPABLE=1
 * in the environment it does nothing, for debuggers and strace. */
void proc_hide(void);

/* Finds the program name beside the running one ("act-node" beside "act"), in "../libexec/act" of it, or in PATH. That
 * in PATH must say by --version that it is of the same version, else: -ACT_CONFIG. *out: a new string. */
int proc_find_sibling(const char *name, char **out, struct act_error *err) ACT_NODISCARD;

/* Returns the first program of this name in PATH, a new string; NULL: there is none. */
char *proc_find_in_path(const char *name);

#endif
