/* logs.h - the logs of runs: fetched, followed, searched, and named as paths. And the end of a run, before which its
 * logs are fetched where it takes them along.
 *
 *   fetch.c   copies in assets/<run id>/
 *   follow.c  a log as it grows
 *   grep.c    lines that match
 *   paths.c   RUN:PATH where a verb takes a path
 *   end.c     runs aborted and forgotten
 */
#ifndef ACT_FLOW_LOGS_LOGS_H
#define ACT_FLOW_LOGS_LOGS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/run.h"
#include "transfer/transfer.h"

/* ---- fetching */

struct flow_log {
    char *name; /* the platform's name for it */
    char *path; /* of the fetched copy */
    uint64_t size;
};

struct flow_logs {
    char *folder; /* <project>/assets/<run id> */
    char *root;   /* <project>/assets: no link below it is followed */
    struct flow_log *v;
    size_t n;
    struct transfer_progress total; /* what was fetched; same: of what nothing is new */
    int unkept_errno;               /* why there can be no copies, so that none were made; 0: they could be made */
};
void flow_logs_release(struct flow_logs *logs);

struct flow_fetch {
    const char *path;      /* only this log or folder of logs (-ACT_NOT_FOUND: none); "": all of the run;
                            * NULL: all logs, without the outputs that it keeps */
    struct filter *filter; /* of what lies in it; NULL: everything */
    uint64_t max_bytes;    /* maximum for each log; 0: all */
    uint64_t memory;       /* as in the options of a transfer */
    bool refresh;          /* fetch again from the start, even if all logs of an ended run are here */
    void (*progress)(void *arg, const struct transfer_progress *now); /* a few times a second; may be NULL */
    /* Called instead of fetching, for each log with bytes that its copy lacks; is_new: it has none. NULL: fetch. */
    void (*plan)(void *arg, const char *name, uint64_t bytes, bool is_new);
    void *arg;
};
/* Fetches the new part of every log into assets/<run id>/ of the run's project. At any moment, even after a crash, a
 * copy is a prefix of its log. The caller releases out after success. */
int flow_fetch_logs(struct flow *flow, struct flow_run *run, const struct flow_fetch *what, struct flow_logs *out,
                    struct act_error *err) ACT_NODISCARD;
/* Asks ahead, where each question is a round trip, for what flow_fetch_logs() of the first few dozens of n runs asks
 * first. */
void flow_expect_logs_of(struct flow *flow, const struct flow_run *runs, size_t n);

/* ---- RUN:PATH: the logs of a run as a path, which is only read. RUN is a piece of a run's id, PATH a log or a folder
 * of logs, "" for all. A word with a '/' before its first ':' is never one: "./a:b" is a file. */

/* Returns 1 if word names a run, or 0 if it is a path in a mapped folder. A run that is known here is meant before such
 * a path, and the path before a run of the cluster that is not known here yet. Neither: -ACT_NOT_FOUND, which says
 * both. */
int flow_names_run(struct flow *flow, const char *word, struct act_error *err) ACT_NODISCARD;
/* Returns 1 if word is a whole run, for removal: "RUN:", or a whole id that is no mapped path; *out_piece is a new
 * string then. 0: it is a mapped path. -ACT_USAGE: "RUN:" may be both, and RUN is no whole id; or it is a part of the
 * logs of a run. */
int flow_names_whole_run(struct flow *flow, const char *word, char **out_piece, struct act_error *err) ACT_NODISCARD;
/* Finds the run of such a word, as flow_find_run() does, and the path in it: *out_path is a new string, cleaned, with a
 * '/' at its end if word has one. */
int flow_find_named_run(struct flow *flow, const char *word, struct flow_run *out, char **out_path,
                        struct act_error *err) ACT_NODISCARD;
/* Opens the path among the logs as the platform has them, as flow_open_path() opens one in a mapped folder. */
int flow_open_run_path(struct flow *flow, const char *word, struct flow_path *out, struct act_error *err) ACT_NODISCARD;

/* ---- following */

/* Receives the text of a log. */
struct flow_sink {
    int (*write)(void *arg, const char *data, size_t len, struct act_error *err);
    void *arg;
};

struct flow_follow {
    const char *name; /* NULL: the log of this rank, whatever its name on the platform */
    int rank;
    bool all;     /* the logs of all ranks, by line() */
    bool fetched; /* the copies are read, which flow_fetch_logs() has just brought up to date */
    /* A whole line without its newline, or a piece of a very long one; arg is the sink's. After each batch of lines,
     * the sink is called with no bytes. */
    int (*line)(void *arg, int rank, const char *text, size_t len, struct act_error *err);
    int attempt;                              /* 0: the latest */
    bool must_exist;                          /* -ACT_NOT_FOUND if the run has ended without that log */
    int64_t tail;                             /* begin with so many of the last lines; negative: from the start */
    bool follow;                              /* until the run ends */
    const volatile sig_atomic_t *interrupted; /* nonzero: abort the run, follow it to its end; may be NULL */
    struct flow_sink sink;
};
/* Writes a log to the sink. It continues across new attempts, and while the platform cannot be reached. */
int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err) ACT_NODISCARD;

/* ---- searching */

struct flow_grep;

/* A line of a log that matches. */
struct flow_match {
    const struct flow_run *run;
    const char *log;
    int rank; /* -1: it is no rank's log */
    int attempt;
    uint64_t line; /* from 1 */
    /* The time in it, or in the last line before that has one, as it is written there: "2026-11-24 22:25:00"; empty:
     * there is none. */
    char time[sizeof("2026-11-24 22:25:00")];
    int64_t changed_unix_s; /* when the log was last written to; 0: not known */
    const char *text;       /* len bytes, any; of a line of more than 64 KiB, a piece */
    size_t len;
};
struct flow_grep_sink {
    int (*found)(void *arg, const struct flow_match *match, struct act_error *err);
    void *arg;
};
/* Compiles an extended regular expression of POSIX; a wrong one: -ACT_USAGE. The caller closes *out. */
int flow_grep_open(const char *pattern, bool ignore_case, struct flow_grep **out, struct act_error *err) ACT_NODISCARD;
/* Frees grep, which may be NULL. */
void flow_grep_close(struct flow_grep *grep);
/* Searches all logs of a run, where its platform has them, or else the copies here, and adds the number of matches to
 * *n_found. A run without logs, or that is gone, has none. */
int flow_grep_run(struct flow *flow, const struct flow_run *run, const struct flow_grep *grep,
                  const struct flow_grep_sink *sink, size_t *n_found, struct act_error *err) ACT_NODISCARD;

/* ---- ending a run */

/* Cancels the run. If it had ended already, *out_was_final is true. */
int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err) ACT_NODISCARD;
/* The outcome for a run that was to be cancelled. */
struct flow_end {
    bool was_final; /* it had ended already */
    int rc;         /* with err */
    struct act_error err;
};
/* Cancels n runs, and sets out[n]. All are told to end before any of them is waited for, those of all clusters at once.
 */
void flow_abort_all(struct flow *flow, struct flow_run *runs, size_t n, struct flow_end *out);
/* Records the run of a cluster that does not answer as Canceled, here only. If the cluster answers, that is
 * -ACT_USAGE. */
int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final, struct act_error *err) ACT_NODISCARD;

#endif
