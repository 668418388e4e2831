/* report.c - counts and groups failures, and calls progress. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "transfer/transfer_internal.h"

enum { TICK_MS = 200 };

void transfer_report_release(struct transfer_report *report)
{
    for (size_t i = 0; i < report->n_failures; i++) {
        free(report->failures[i].text);
        act_strv_release(&report->failures[i].also);
    }
    free(report->failures);
    report->failures = NULL;
    report->n_failures = 0;
}

#define BEHIND_NAME "': "

/* Returns the text of an error behind the name of its object. */
static const char *reason_of(const char *text)
{
    const char *at = strstr(text, BEHIND_NAME);

    return at ? at + strlen(BEHIND_NAME) : text;
}

/* Returns the first name in an error such as "cannot read 'name': ...": a new string, or NULL. */
static char *report_name_of(const char *text)
{
    const char *begin = strchr(text, '\''), *end = strstr(text, BEHIND_NAME);

    return begin && end && begin < end ? act_strndup(begin + 1, (size_t)(end - begin) - 1) : NULL;
}

/* Returns whether two texts give the same reason: what is in brackets, such as a request id, may differ. */
static bool same_reason(const char *a, const char *b)
{
    size_t bracket = strcspn(a, "(");

    return bracket == strcspn(b, "(") && strncmp(a, b, bracket) == 0 && act_streq(strchr(a, ')'), strchr(b, ')'));
}

/* Returns the group of failures like this one, with n 0 if it is the first; NULL: there are too many groups. */
static struct transfer_failure *group_for(struct transfer_report *report, const char *text)
{
    for (size_t i = 0; i < report->n_failures; i++)
        if (same_reason(reason_of(report->failures[i].text), reason_of(text)))
            return &report->failures[i];
    if (report->n_failures == TRANSFER_MAX_FAILURES)
        return NULL;
    ACT_GROW(report->failures, report->n_failures);
    report->failures[report->n_failures] = (struct transfer_failure){.text = act_strdup(text)};
    return &report->failures[report->n_failures++];
}

static void report_take_name(struct transfer_failure *failure, char *name)
{
    if (name && failure->also.n < TRANSFER_MAX_FAILURES)
        act_strv_take(&failure->also, name);
    else
        free(name);
}

static void add_failure(struct transfer_report *report, const char *text, uint64_t n)
{
    struct transfer_failure *failure = group_for(report, text);

    if (!failure)
        return;
    if (failure->n > 0)
        report_take_name(failure, report_name_of(text));
    failure->n += n;
}

void transfer_report_failure(struct transfer_report *report, const struct act_error *error)
{
    if (report->total.failed_objects++ == 0)
        report->first = *error;
    add_failure(report, act_error_text(error), 1);
}

void transfer_report_unreadable(struct transfer_report *report, const struct store_entry *entry)
{
    struct act_error err;

    (void)store_entry_problem(entry, &err);
    act_error_hint(&err, "--exclude leaves it out");
    transfer_report_failure(report, &err);
}

void transfer_report_add_failures(struct transfer_report *sum, const struct transfer_report *part)
{
    for (size_t i = 0; i < part->n_failures; i++) {
        const struct transfer_failure *from = &part->failures[i];
        add_failure(sum, from->text, from->n);
        struct transfer_failure *to = group_for(sum, from->text);
        for (size_t k = 0; to && k < from->also.n; k++)
            report_take_name(to, act_strdup(from->also.v[k]));
    }
}

void transfer_report_add(struct transfer_report *report, const struct transfer_report *part)
{
    if (report->total.failed_objects == 0 && part->total.failed_objects > 0)
        report->first = part->first;
    report->total.failed_objects += part->total.failed_objects;
    transfer_report_add_failures(report, part);
}

int transfer_report_result(const struct transfer_report *report, struct act_error *err)
{
    const struct transfer_progress *t = &report->total;
    const uint64_t done = report->is_plan ? t->found_objects : t->done_objects;
    const uint64_t good = done + t->same_objects + t->newer_objects;

    if (t->failed_objects == 0)
        return 0;
    if (t->failed_objects == 1 || good == 0) {
        *err = report->first;
        if (good > 0)
            err->code = ACT_PARTIAL;
        return -(int)err->code;
    }
    return act_error_set(err, ACT_PARTIAL, "%" PRIu64 " of %" PRIu64 " objects failed; the first: %s",
                         t->failed_objects, t->failed_objects + good, act_error_text(&report->first));
}

bool transfer_is_hopeless(const struct act_error *error)
{
    return error->http_status == 401 || error->http_status == 403 || error->network ||
           error->fact == ACT_FACT_CONTAINER_MISSING;
}

void transfer_progress_tick(const struct transfer_options *options, struct transfer_report *report, bool now)
{
    int64_t ms = act_now_monotonic_ms();

    if (!options->progress || (!now && ms < report->next_tick_ms))
        return;
    report->next_tick_ms = ms + TICK_MS;
    options->progress(options->arg, &report->total);
}
