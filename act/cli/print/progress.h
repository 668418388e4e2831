/* progress.h - the progress of a transfer: one line that is redrawn on a terminal, a plain line every 30 s elsewhere;
 * and its summary. */
#ifndef ACT_CLI_PRINT_PROGRESS_H
#define ACT_CLI_PRINT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "transfer/transfer.h"

/* ---- the rate */

enum { CLI_RATE_SAMPLES = 13 }; /* one per second: the rate is that of the last twelve seconds */

/* Recent progress. Bytes already transferred before an interruption do not count. */
struct cli_rate {
    struct cli_sample {
        int64_t ms;
        uint64_t bytes, objects;
    } v[CLI_RATE_SAMPLES], last;
    size_t n;
};

/* Adds the progress at ms, any monotonic clock. Call it as often as the numbers change. */
void cli_rate_add(struct cli_rate *rate, int64_t ms, const struct transfer_progress *now);
/* Returns bytes per second; negative while it is too early to tell. */
double cli_rate_bytes(const struct cli_rate *rate);
/* Returns the remaining time; -1 if it cannot be known: still listing, too early, no progress. */
int64_t cli_rate_left_s(const struct cli_rate *rate, const struct transfer_progress *now);

/* ---- the line */

/* Appends "uploading 30% [###.......] 12/40 objects, 3.4 MiB/8.0 MiB, 1.2 MiB/s, 4s left, what takes long", cut at
 * width columns, with a bar if there is room; width 0: neither cut nor with a bar. */
void cli_progress_line(const char *verb, const struct cli_rate *rate, const struct transfer_progress *now, size_t width,
                       struct act_buf *out);

struct cli_progress {
    const char *verb;                /* "uploading" */
    struct transfer_progress before; /* of finished paths; included in what is shown */
    struct cli_rate rate;
    int64_t started_ms, last_plain_ms;
    bool terminal, shown;
};

/* Sets progress and arg of options; from now on SIGINT and SIGTERM end the program, which says that the same command
 * continues where it stopped. */
void cli_progress_start(struct cli_progress *p, const char *verb, bool quiet, struct transfer_options *options);
/* Replaces the current line of stderr's terminal by ACT's own text, cut to its width. */
void cli_put_in_place(const char *text);
/* Replaces it by "waiting 30% [###.......] 12/40 runs have ended". */
void cli_put_count(const char *verb, int64_t done, int64_t all, const char *what);
/* Clears the line, so that something else can be written. */
void cli_progress_clear(struct cli_progress *p);
/* Returns the seconds since the start. */
double cli_progress_seconds(const struct cli_progress *p);

/* ---- the end */

/* Adds the report of one path to the sum, and releases it. */
void cli_progress_add(struct cli_progress *p, struct transfer_report *sum, struct transfer_report *part);
/* Clears the line, and prints the summary and the failures. */
void cli_progress_end(struct cli_progress *p, const char *done_verb, const struct transfer_report *report);
/* Prints the failures, grouped, if there are more than the one that the program ends with. */
void cli_print_failures(const struct transfer_report *report);

#endif
