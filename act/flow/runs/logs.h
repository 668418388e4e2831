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
    char *name; /* the platform's name for it */
    char *path; /* of the fetched copy */
    uint64_t size;
};

struct flow_logs {
    char *folder; /* <project>/assets/<run id> */
    char *root;   /* <project>/assets: no link below it is followed */
    struct flow_log *v;
    size_t n;
    int unkept_errno; /* why there can be no copies, so that none were made; 0: they could be made */
};
void flow_logs_release(struct flow_logs *logs);

/* Fetches the new part of every log into assets/<run id>/ of the run's project. At any moment, even after a crash, a
 * copy is a prefix of its log. */
struct flow_fetch {
    uint64_t max_bytes; /* maximum for each log; 0: all */
    bool refresh;       /* fetch again from the start, even if all logs of an ended run are here */
    void (*progress)(void *arg, const struct transfer_progress *now); /* a few times a second; may be NULL */
    void *arg;
};
int flow_fetch_logs(struct flow *flow, const struct flow_run *run, const struct flow_fetch *what, struct flow_logs *out,
                    struct act_error *err) ACT_NODISCARD;

/* Writes a log to the sink, from its last tail lines (negative: from the start); with follow until the run ends, or
 * *interrupted (may be NULL) becomes true. Continues across new attempts, and while the platform cannot be reached. */
struct flow_follow {
    const char *name; /* NULL: the log of this rank, whatever its name on the platform */
    int rank;
    bool all; /* the logs of all ranks, by line() */
    /* A whole line without its newline, or a piece of a very long one; arg is the sink's. After each batch of lines,
     * the sink is called with no bytes. */
    int (*line)(void *arg, int rank, const char *text, size_t len, struct act_error *err);
    int attempt;     /* 0: the latest */
    bool must_exist; /* -ACT_NOT_FOUND if the run has ended without that log */
    int64_t tail;
    bool follow;
    const volatile sig_atomic_t *interrupted; /* nonzero: abort the run, follow it to its end; may be NULL */
    struct flow_sink sink;
};
int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err) ACT_NODISCARD;

#endif
