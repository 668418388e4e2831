/* logs.h - the logs of a run, fetched or followed. */
#ifndef ACT_FLOW_RUNS_LOGS_H
#define ACT_FLOW_RUNS_LOGS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "transfer/transfer.h"

struct flow_log {
    char *name; /* at the platform */
    char *path; /* of the fetched copy */
    uint64_t size;
};

struct flow_logs {
    char *folder; /* <project>/assets/<run id> */
    char *root;   /* <project>/assets: nothing behind it is reached through a link */
    struct flow_log *v;
    size_t n;
};
void flow_logs_release(struct flow_logs *logs);

/* Fetches what is new of every log into assets/<run id>/ of the run's project. A copy is the beginning of its log at
 * every moment, whatever happens. */
struct flow_fetch {
    uint64_t max_bytes; /* of each log at most; 0: all */
    bool refresh;       /* from the beginnings, although all logs of a run that ended are here */
    void (*progress)(void *arg, const struct transfer_progress *now); /* a few times a second; may be NULL */
    void *arg;
};
int flow_fetch_logs(struct flow *flow, const struct flow_run *run, const struct flow_fetch *what,
                    struct flow_logs *out, struct act_error *err) ACT_NODISCARD;

/* Gives a log to the sink, from its last tail lines (negative: from the start); with follow until the run
 * ends, or *interrupted (may be NULL) becomes true. It goes on through the attempts that begin meanwhile, and while the
 * platform cannot be asked. */
struct flow_follow {
    const char *name; /* NULL: the log of this rank, whatever the platform calls it */
    int rank;
    bool all; /* the logs of all ranks, by line() */
    /* A whole line without its end, or a piece of one that is very long; arg is the sink's, which gets nothing (no
     * bytes) behind the lines that came together. */
    int (*line)(void *arg, int rank, const char *text, size_t len, struct act_error *err);
    int attempt;     /* 0: the last one */
    bool must_exist; /* -ACT_NOT_FOUND when the run has ended without that log */
    int64_t tail;
    bool follow;
    const volatile sig_atomic_t
        *interrupted; /* not 0: the run is aborted, and followed to its end; may be NULL */
    struct flow_sink sink;
};
int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err) ACT_NODISCARD;

#endif
