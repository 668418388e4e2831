/* transfer_internal.h - for the files of transfer/ only. */
#ifndef ACT_TRANSFER_TRANSFER_INTERNAL_H
#define ACT_TRANSFER_TRANSFER_INTERNAL_H

#include "transfer/transfer.h"

/* The prefix of what lies below a folder path: "a" gives "a/", "" gives "". New string. */
char *transfer_prefix(const char *path);

/* Counts and names a failure; the first one is kept whole in first. */
void transfer_report_failure(struct transfer_report *report, const struct act_error *error,
                             struct act_error *first);

/* The result of a finished job: 0, -ACT_PARTIAL, or the first failure when nothing was done. */
int transfer_report_result(const struct transfer_report *report, const struct act_error *first,
                           struct act_error *err);

/* Whether further objects would meet the same error: refused credentials, an unreachable service. */
bool transfer_is_hopeless(const struct act_error *error);

/* Calls the progress callback when it is time again, or now. */
void transfer_progress_tick(const struct transfer_options *options, struct transfer_report *report, bool now);

#endif
