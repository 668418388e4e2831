/* report.c - counting, naming failures, progress ticks. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "transfer/transfer_internal.h"

enum { TICK_MS = 200 };

void transfer_report_release(struct transfer_report *report)
{
    act_strv_release(&report->failures);
}

void transfer_report_failure(struct transfer_report *report, const struct act_error *error,
                             struct act_error *first)
{
    if (report->total.failed_objects++ == 0)
        *first = *error;
    if (report->failures.n < TRANSFER_MAX_FAILURES)
        act_strv_push(&report->failures, error->text);
}

int transfer_report_result(const struct transfer_report *report, const struct act_error *first,
                           struct act_error *err)
{
    const struct transfer_progress *t = &report->total;

    if (t->failed_objects == 0)
        return 0;
    if (t->failed_objects == 1 || t->done_objects + t->same_objects == 0) {
        *err = *first;
        if (t->done_objects + t->same_objects > 0)
            err->code = ACT_PARTIAL;
        return -(int)err->code;
    }
    return act_error_set(err, ACT_PARTIAL, "%" PRIu64 " of %" PRIu64 " objects failed; the first: %s",
                         t->failed_objects, t->failed_objects + t->done_objects + t->same_objects,
                         first->text);
}

bool transfer_is_hopeless(const struct act_error *error)
{
    return error->http_status == 401 || error->http_status == 403 || error->network ||
           strcmp(error->service_code, "ContainerNotFound") == 0;
}

void transfer_progress_tick(const struct transfer_options *options, struct transfer_report *report, bool now)
{
    int64_t ms = act_now_monotonic_ms();

    if (!options->progress || (!now && ms < report->next_tick_ms))
        return;
    report->next_tick_ms = ms + TICK_MS;
    options->progress(options->arg, &report->total);
}
