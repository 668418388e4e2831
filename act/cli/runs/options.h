/* options.h - the options of verbs for runs. */
#ifndef ACT_CLI_RUNS_OPTIONS_H
#define ACT_CLI_RUNS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Which log of a run, how much of it, and whether logs are fetched. */
struct cli_logs_options {
    int64_t rank, tail, attempt; /* -1: not given */
    bool follow, no_logs, no_full_logs, refresh;
};

/* The table of runs, and what is redrawn. */
struct cli_query_options {
    bool no_details, rebuild, watch, once, running, queued, failed;
    int64_t interval_s; /* 0: not given */
};

/* Comparing runs by a number in their logs. */
struct cli_metric_options {
    char *metric;
    bool lowest, highest;
};

struct cli_wait_options {
    bool any;
    int64_t timeout_s; /* 0: not given */
    char *notify;
};

/* Options that one verb has alone: files, grep, prune, abort. */
struct cli_runs_options {
    char *folder;
    bool urls, ignore_case, forget;
    int64_t older_s; /* 0: not given */
};

#endif
