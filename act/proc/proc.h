/* proc.h - child processes. Arguments are vectors, never shell lines. */
#ifndef ACT_PROC_PROC_H
#define ACT_PROC_PROC_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Runs argv (argv[0] looked up in PATH, argv ends with NULL) with /dev/null as input and stderr passed on,
 * waits for at most timeout_s (0: no limit; on timeout the child's process group is killed and -ACT_TIMEOUT
 * returned). *out: stdout as text, at most max_bytes (more is an error), a new string; may be NULL to let
 * stdout through. Returns 0 with *out_status as from waitpid(), -ACT_NOT_FOUND when the program does not
 * exist. */
int proc_run(char *const *argv, int timeout_s, size_t max_bytes, char **out, int *out_status,
             struct act_error *err) ACT_NODISCARD;

/* Starts argv as a daemon: a session of its own, the parent is init, cwd is "/", stdin /dev/null, stdout and
 * stderr appended to log_path. keep_fd (or -1) stays open in it under the same number. Returns 0 with its pid
 * once exec succeeded; otherwise the errno of exec is reported. */
int proc_daemon(char *const *argv, const char *log_path, int keep_fd, pid_t *out_pid,
                struct act_error *err) ACT_NODISCARD;

/* The program beside the running one ("act-node" beside "act"), or in "../libexec/act" of it, or in PATH.
 * New string. */
int proc_find_sibling(const char *name, char **out, struct act_error *err) ACT_NODISCARD;

/* The first program of this name in PATH, NULL when there is none. New string. */
char *proc_find_in_path(const char *name);

#endif
