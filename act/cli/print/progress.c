/* progress.c - the progress and the result of a transfer. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/units.h"
#include "cli/command/signal.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"

enum {
    PLAIN_EVERY_MS = 30000,
    SAMPLE_EVERY_MS = 1000,
    EARLY_MS = 2000,  /* a rate over a shorter time is noise */
    MANY_OBJECTS = 8, /* fewer in the window do not predict the next ones */
    WIDTH = 80,       /* of a terminal of unknown width */
    BAR_MIN = 8,      /* cells */
    BAR_MAX = 40,
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Returns the bytes that have moved, those of parts under way as well. */
static uint64_t progress_moved(const struct transfer_progress *now)
{
    return now->done_bytes + (now->moving_bytes > 0 ? (uint64_t)now->moving_bytes : 0);
}

/* ---- the rate */

void cli_rate_add(struct cli_rate *r, int64_t ms, const struct transfer_progress *now)
{
    r->last = (struct cli_sample){
        .ms = ms, .bytes = less(progress_moved(now), now->resumed_bytes), .objects = now->done_objects};
    if (r->n > 0 && ms - r->v[r->n - 1].ms < SAMPLE_EVERY_MS)
        return;
    if (r->n == CLI_RATE_SAMPLES)
        memmove(r->v, r->v + 1, --r->n * sizeof(r->v[0]));
    r->v[r->n++] = r->last;
}

/* Returns the seconds since the oldest sample; 0 while it is too early. */
static double window_s(const struct cli_rate *r)
{
    int64_t ms = r->n > 0 ? r->last.ms - r->v[0].ms : 0;

    return ms < EARLY_MS ? 0 : (double)ms / 1000;
}

double cli_rate_bytes(const struct cli_rate *r)
{
    double seconds = window_s(r);

    return seconds > 0 ? (double)less(r->last.bytes, r->v[0].bytes) / seconds : -1;
}

/* Small files are bound by their number, large ones by their bytes: whichever takes longer. */
int64_t cli_rate_left_s(const struct cli_rate *r, const struct transfer_progress *now)
{
    double seconds = window_s(r), bytes = cli_rate_bytes(r), left;
    uint64_t objects = r->n > 0 ? r->last.objects - r->v[0].objects : 0;
    uint64_t bytes_to_go = less(now->found_bytes, progress_moved(now));

    if (!now->listing_done || seconds <= 0 || (bytes <= 0 && (bytes_to_go > 0 || objects < MANY_OBJECTS)))
        return -1;
    left = bytes_to_go > 0 ? (double)bytes_to_go / bytes : 0;
    if (objects >= MANY_OBJECTS) {
        uint64_t to_go = less(now->found_objects, now->done_objects + now->failed_objects);
        double by_objects = (double)to_go * seconds / (double)objects;
        left = by_objects > left ? by_objects : left;
    }
    return (int64_t)(left + 0.999);
}

/* ---- the line */

static int progress_share(uint64_t part, uint64_t whole)
{
    return part < whole ? (int)((double)part * 100 / (double)whole) : 100;
}

/* Returns the share of the bytes that have moved, and of the objects where these have none; 100 only if all of them are
 * done. -1: not known. */
static int percent_of(const struct transfer_progress *now)
{
    int objects = progress_share(now->done_objects + now->failed_objects, now->found_objects);
    int bytes = now->found_bytes ? progress_share(progress_moved(now), now->found_bytes) : objects;

    if (!now->listing_done || now->found_objects == 0)
        return -1;
    return bytes == 100 && objects < 100 ? 99 : bytes;
}

/* Adds "3/40+ objects, 1.2 MiB/8.0 MiB+", or how much is compared as long as nothing was found that has to be moved. */
static void progress_add_found(const struct transfer_progress *now, struct act_buf *out)
{
    bool compares = now->found_objects == 0 && now->listed_objects > 0;
    uint64_t objects = compares ? now->listed_objects : now->found_objects;
    const char *more = now->listing_done ? "" : "+", *many = objects == 1 && !*more ? "" : "s";
    char done[ACT_UNIT_TEXT], all[ACT_UNIT_TEXT];

    if (now->found_objects == 0 && now->listed_objects == 0 && !now->listing_done) {
        act_buf_adds(out, ", looking what there is");
        return;
    }
    act_size_to_text(progress_moved(now), done);
    act_size_to_text(compares ? now->listed_bytes : now->found_bytes, all);
    if (compares)
        act_buf_addf(out, ", comparing %llu%s object%s, %s%s", (cli_count_t)objects, more, many, all, more);
    else
        act_buf_addf(out, " %llu/%llu%s object%s, %s/%s%s", (cli_count_t)now->done_objects, (cli_count_t)objects, more,
                     many, done, all, more);
}

static void progress_add_counts(const struct cli_rate *rate, const struct transfer_progress *now, struct act_buf *out)
{
    char text[ACT_UNIT_TEXT];
    int64_t left_s = cli_rate_left_s(rate, now);

    progress_add_found(now, out);
    if (cli_rate_bytes(rate) >= 0) {
        act_size_to_text((uint64_t)cli_rate_bytes(rate), text);
        act_buf_addf(out, ", %s/s", text);
    }
    if (left_s >= 0) {
        act_duration_to_text(left_s, text);
        act_buf_addf(out, ", %s left", text);
    }
    if (now->failed_objects)
        act_buf_addf(out, ", %llu failed", (cli_count_t)now->failed_objects);
    if (now->deleted_objects)
        act_buf_addf(out, ", %llu deleted", (cli_count_t)now->deleted_objects);
    if (now->same_objects)
        act_buf_addf(out, ", %llu the same", (cli_count_t)now->same_objects);
    if (now->slow && *now->slow) { /* the folder itself has no name */
        ACT_AUTOFREE char *name = cli_name(now->slow);
        act_buf_addf(out, ", %s", name);
    }
}

/* Adds a bar in the rest of the line, if that is wide enough to be readable. */
static void add_bar(int percent, int room, struct act_buf *out)
{
    int cells = room - (int)strlen(" []") < BAR_MAX ? room - (int)strlen(" []") : BAR_MAX;

    if (cells < BAR_MIN)
        return;
    act_buf_adds(out, " [");
    for (int i = 0; i < cells; i++)
        act_buf_addc(out, i < cells * percent / 100 ? '#' : '.');
    act_buf_addc(out, ']');
}

void cli_progress_line(const char *verb, const struct cli_rate *rate, const struct transfer_progress *now, size_t width,
                       struct act_buf *out)
{
    int percent = percent_of(now), ignored;
    ACT_AUTO(act_buf) counts = {0};

    progress_add_counts(rate, now, &counts);
    act_buf_adds(out, verb);
    if (percent >= 0)
        act_buf_addf(out, " %d%%", percent);
    if (percent >= 0 && width)
        add_bar(percent, (int)width - act_columns(out->data) - act_columns(counts.data), out);
    act_buf_add(out, counts.data, counts.len);
    if (width)
        out->data[out->len = act_columns_fit(out->data, (int)width, &ignored)] = '\0';
}

/* Returns the sum of two transfers, of which b is the later one. */
static struct transfer_progress progress_sum(const struct transfer_progress *a, const struct transfer_progress *b)
{
    return (struct transfer_progress){
        .listed_objects = a->listed_objects + b->listed_objects,
        .listed_bytes = a->listed_bytes + b->listed_bytes,
        .found_objects = a->found_objects + b->found_objects,
        .found_bytes = a->found_bytes + b->found_bytes,
        .listing_done = b->listing_done,
        .slow = b->slow,
        .done_objects = a->done_objects + b->done_objects,
        .done_bytes = a->done_bytes + b->done_bytes,
        .moving_bytes = b->moving_bytes,
        .resumed_bytes = a->resumed_bytes + b->resumed_bytes,
        .same_objects = a->same_objects + b->same_objects,
        .skipped_links = a->skipped_links + b->skipped_links,
        .newer_objects = a->newer_objects + b->newer_objects,
        .deleted_objects = a->deleted_objects + b->deleted_objects,
        .failed_objects = a->failed_objects + b->failed_objects,
        .folder_modes = a->folder_modes + b->folder_modes,
    };
}

/* One column stays free: some terminals wrap when the last one is written. */
static size_t terminal_width(void)
{
    int width = act_terminal_width(STDERR_FILENO);

    return (size_t)(width > 1 ? width : WIDTH) - 1;
}

/* Writes a line in place, unless it is there already. */
void cli_put_in_place(const char *text)
{
    static char shown[512];
    size_t n = act_columns_fit(text, (int)terminal_width(), &(int){0});
    bool is_there = act_log_in_place(*text);

    if (*text && is_there && n < sizeof(shown) && strncmp(shown, text, n) == 0 && !shown[n])
        return;
    snprintf(shown, sizeof(shown), "%.*s", (int)n, text);
    act_terminal_show(stderr, ACT_SHOW_ALL);
    fprintf(stderr, "\r%.*s\033[K", (int)n, text);
    act_terminal_show(stderr, ACT_SHOW_LINES);
}

void cli_put_count(const char *verb, int64_t done, int64_t all, const char *what)
{
    ACT_AUTOFREE char *counts = act_sprintf(" %lld/%lld %s", (long long)done, (long long)all, what);
    int percent = all > 0 ? (int)(100 * done / all) : 0;
    ACT_AUTO(act_buf) line = {0};

    act_buf_addf(&line, "%s %d%%", verb, percent);
    add_bar(percent, (int)terminal_width() - act_columns(line.data) - act_columns(counts), &line);
    act_buf_adds(&line, counts);
    cli_put_in_place(line.data);
}

static void progress_show(void *arg, const struct transfer_progress *of_path)
{
    struct cli_progress *p = arg;
    struct transfer_progress now = progress_sum(&p->before, of_path);
    int64_t ms = act_now_monotonic_ms();
    ACT_AUTO(act_buf) line = {0};

    cli_rate_add(&p->rate, ms, &now);
    if (!p->terminal && ms - p->last_plain_ms < PLAIN_EVERY_MS)
        return;
    p->last_plain_ms = ms;
    cli_progress_line(p->verb, &p->rate, &now, p->terminal ? terminal_width() : 0, &line);
    if (p->terminal)
        cli_put_in_place(line.data);
    else
        act_note("%s", line.data);
    p->shown = true;
}

void cli_progress_start(struct cli_progress *p, const char *verb, bool quiet, struct transfer_options *options)
{
    *p = (struct cli_progress){.verb = verb, .started_ms = act_now_monotonic_ms()};
    p->last_plain_ms = p->started_ms;
    p->terminal = isatty(STDERR_FILENO);
    cli_rate_add(&p->rate, p->started_ms, &p->before);
    options->progress = quiet ? NULL : progress_show;
    options->arg = p;
    /* safe at any moment: what was written is complete, and partial transfers are resumed */
    cli_end_with("interrupted; the same command goes on where it stopped");
}

void cli_progress_clear(struct cli_progress *p)
{
    if (p->terminal && p->shown)
        cli_put_in_place("");
    p->shown = false;
}

double cli_progress_seconds(const struct cli_progress *p)
{
    return (double)(act_now_monotonic_ms() - p->started_ms) / 1000;
}

/* ---- the summary */

static void progress_add_count(struct act_buf *line, uint64_t n, const char *what)
{
    if (n > 0)
        act_buf_addf(line, "; %llu %s", (cli_count_t)n, what);
}

static void progress_print_summary(const struct cli_progress *p, const char *verb, const struct transfer_progress *t)
{
    double seconds = cli_progress_seconds(p);
    char size[ACT_UNIT_TEXT];
    ACT_AUTO(act_buf) line = {0};

    act_size_to_text(t->done_bytes, size);
    act_buf_addf(&line, "%s %llu object%s, %s in %.1f s", verb, (cli_count_t)t->done_objects,
                 cli_plural(t->done_objects), size, seconds);
    if (t->done_bytes > t->resumed_bytes && seconds >= 1) {
        act_size_to_text((uint64_t)((double)(t->done_bytes - t->resumed_bytes) / seconds), size);
        act_buf_addf(&line, ", %s/s", size);
    }
    if (t->resumed_bytes > 0) {
        act_size_to_text(t->resumed_bytes, size);
        act_buf_addf(&line, "; %s of it were there from an interrupted transfer", size);
    }
    progress_add_count(&line, t->folder_modes, t->folder_modes == 1 ? "folder mode" : "folder modes");
    progress_add_count(&line, t->same_objects, "already the same");
    progress_add_count(&line, t->newer_objects, "newer at the destination, left");
    progress_add_count(&line, t->skipped_links, "left out (--skip-links)");
    progress_add_count(&line, t->deleted_objects, "deleted");
    progress_add_count(&line, t->failed_objects, "failed");
    act_note("%s", line.data);
}

static void print_failure(const struct transfer_failure *f)
{
    ACT_AUTO(act_buf) line = {0};

    act_buf_addf(&line, "  %s", f->text);
    if (f->n > 1)
        act_buf_addf(&line, " (and %llu more like it", (cli_count_t)f->n - 1);
    for (size_t i = 0; i < f->also.n; i++)
        act_buf_addf(&line, "%s '%s'", i ? "," : ":", f->also.v[i]);
    if (f->n > 1)
        act_buf_adds(&line, f->also.n < f->n - 1 && f->also.n > 0 ? ", ...)" : ")");
    act_note("%s", line.data);
}

/* A single failure is the error that the program ends with. */
void cli_print_failures(const struct transfer_report *report)
{
    uint64_t left = report->total.failed_objects;

    if (left <= 1)
        return;
    for (size_t i = 0; i < report->n_failures; i++) {
        const struct transfer_failure *f = &report->failures[i];
        left -= f->n;
        print_failure(f);
    }
    if (left > 0)
        act_note("  ... and %llu more", (cli_count_t)left);
}

void cli_progress_end(struct cli_progress *p, const char *done_verb, const struct transfer_report *report)
{
    cli_progress_clear(p);
    progress_print_summary(p, done_verb, &report->total);
    cli_print_failures(report);
}

void cli_progress_add(struct cli_progress *p, struct transfer_report *sum, struct transfer_report *part)
{
    sum->total = progress_sum(&sum->total, &part->total);
    p->before = sum->total;
    transfer_report_add_failures(sum, part);
    transfer_report_release(part);
}
