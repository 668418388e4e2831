/* progress.c - how far a transfer is. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"

enum { PLAIN_EVERY_MS = 30000 };

/* "12/40 objects, 3.4 MiB/8.0 MiB, 1.2 MiB/s, 4s left" */
static void describe(const struct cli_progress *p, const struct transfer_progress *now, struct act_buf *out)
{
    char done[ACT_UNIT_TEXT], found[ACT_UNIT_TEXT], rate[ACT_UNIT_TEXT], left[ACT_UNIT_TEXT];
    double seconds = (double)(act_now_monotonic_ms() - p->started_ms) / 1000.0;
    double per_second = seconds > 0 ? (double)now->done_bytes / seconds : 0;

    act_size_to_text(now->done_bytes, done);
    act_size_to_text(now->found_bytes, found);
    act_size_to_text((uint64_t)per_second, rate);
    act_buf_addf(out, "%s %llu/%llu%s objects, %s/%s, %s/s", p->verb, (unsigned long long)now->done_objects,
                 (unsigned long long)now->found_objects, now->listing_done ? "" : "+", done, found, rate);
    if (now->listing_done && per_second > 0) {
        act_duration_to_text((int64_t)((double)(now->found_bytes - now->done_bytes) / per_second), left);
        act_buf_addf(out, ", %s left", left);
    }
    if (now->failed_objects)
        act_buf_addf(out, ", %llu failed", (unsigned long long)now->failed_objects);
}

static void show(void *arg, const struct transfer_progress *now)
{
    struct cli_progress *p = arg;
    int64_t ms = act_now_monotonic_ms();
    struct act_buf line = {0};

    if (!p->terminal && ms - p->last_plain_ms < PLAIN_EVERY_MS)
        return;
    p->last_plain_ms = ms;
    describe(p, now, &line);
    if (p->terminal)
        fprintf(stderr, "\r%s\033[K", line.data);
    else
        act_note("%s", line.data);
    p->shown = true;
    act_buf_release(&line);
}

void cli_progress_start(struct cli_progress *p, const char *verb, bool quiet,
                        struct transfer_options *options)
{
    *p = (struct cli_progress){.verb = verb, .started_ms = act_now_monotonic_ms()};
    p->last_plain_ms = p->started_ms;
    p->terminal = isatty(STDERR_FILENO);
    if (quiet)
        return;
    options->progress = show;
    options->arg = p;
}

void cli_progress_end(struct cli_progress *p, const char *done_verb, const struct transfer_report *report)
{
    const struct transfer_progress *t = &report->total;
    int64_t ms = act_now_monotonic_ms() - p->started_ms;
    char size[ACT_UNIT_TEXT];
    struct act_buf line = {0};

    if (p->terminal && p->shown)
        fputs("\r\033[K", stderr);
    act_size_to_text(t->done_bytes, size);
    act_buf_addf(&line, "%s %llu object%s, %s in %lld.%01lld s", done_verb,
                 (unsigned long long)t->done_objects, t->done_objects == 1 ? "" : "s", size,
                 (long long)(ms / 1000), (long long)(ms % 1000 / 100));
    if (t->same_objects)
        act_buf_addf(&line, "; %llu already the same", (unsigned long long)t->same_objects);
    if (t->failed_objects)
        act_buf_addf(&line, "; %llu failed", (unsigned long long)t->failed_objects);
    act_note("%s", line.data);
    act_buf_release(&line);
    uint64_t left = t->failed_objects;
    for (size_t i = 0; i < report->n_failures && t->failed_objects > 1; i++) {
        const struct transfer_failure *f = &report->failures[i];
        left -= f->n;
        act_note(f->n > 1 ? "  %s (and %llu more like it)" : "  %s", f->text, (unsigned long long)f->n - 1);
    }
    if (t->failed_objects > 1 && left > 0)
        act_note("  ... and %llu more", (unsigned long long)left);
}
