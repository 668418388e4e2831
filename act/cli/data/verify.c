#include "base/clock.h"
#include "base/log.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/flow.h"

struct comparison {
    struct cli_progress progress; /* first, because the callbacks get a pointer to it */
    struct flow_verify io;
    bool json;
    uint64_t differences;
};

static const char *const words[TRANSFER_DIFFERENCES] = {[TRANSFER_MISSING] = "missing",
                                                        [TRANSFER_EXTRA] = "extra",
                                                        [TRANSFER_KIND] = "kind",
                                                        [TRANSFER_SIZE] = "size",
                                                        [TRANSFER_CONTENT] = "content"};

static json_t *entry_json(const struct store_entry *e)
{
    char when[ACT_TIME_TEXT];

    if (!e)
        return json_null();
    act_time_to_iso_ns(e->mtime_ns, when);
    return json_pack("{s:s,s:I,s:o}", "kind", cli_kind(e->kind), "size", (json_int_t)e->size, "mtime",
                     e->mtime_ns ? json_string(when) : json_null());
}

static void print_difference(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                             const struct store_entry *to)
{
    struct comparison *c = arg;
    ACT_AUTOFREE char *path = flow_verify_path(&c->io, rel);

    c->differences++;
    cli_progress_clear(&c->progress);
    if (c->json) {
        cli_print_pack_line("{s:s,s:o,s:o,s:o}", "difference", words[what], "path", codec_json_bytes_new(path), "from",
                            entry_json(from), "to", entry_json(to));
        return;
    }
    printf("%s ", words[what]);
    cli_put_path(path);
    puts(from && from->kind == STORE_SYMLINK && from->leads_out
             ? "  (a link that leads out; --follow takes what it names)"
             : "");
}

/* The error that the command ends with says how many differences one path has. */
static void cmd_verify_print_summary(struct comparison *c, const struct transfer_report *report, bool is_one_path)
{
    const struct transfer_progress *t = &report->total;
    ACT_AUTO(act_buf) found = {0}, more = {0};

    cli_progress_clear(&c->progress);
    if (t->failed_objects)
        act_buf_addf(&more, "; %llu could not be compared", (cli_count_t)t->failed_objects);
    if (t->skipped_links)
        act_buf_addf(&more, "; %llu left out (--skip-links)", (cli_count_t)t->skipped_links);
    if (!c->differences || !is_one_path)
        act_buf_addf(&found, "; %llu difference%s", (cli_count_t)c->differences, cli_plural(c->differences));
    act_note("compared %llu object%s in %.1f s%s%s", (cli_count_t)t->done_objects, cli_plural(t->done_objects),
             cli_progress_seconds(&c->progress), found.len ? found.data : "", more.len ? more.data : "");
    cli_print_failures(report);
}

static int verify_all(struct cli *cli, struct flow *from, struct act_error *err)
{
    const struct cli_transfer_options *o = CLI_OPTIONS(cli, transfer);
    struct comparison c = {.io = {.deep = o->deep, .follow = o->follow_links, .each = print_difference},
                           .json = cli->options.json};
    struct cli_outcome outcome = {0};
    ACT_AUTO(transfer_report) sum = {0};
    int rc = cli_transfer_options(cli, &c.io.options, err);

    if (rc < 0)
        return rc;
    c.io.options.links = o->skip_links ? TRANSFER_SKIP_LINKS : TRANSFER_KEEP_LINKS;
    cli_progress_start(&c.progress, "verifying", cli->options.quiet, &c.io.options);
    cli_paths_once(cli, false);
    for (size_t i = 0; i < cli->words.n; i++) {
        struct act_error failed = {0};
        rc = cli_names_run(cli, cli->words.v[i], &failed);
        if (rc == 0)
            rc = flow_verify(&cli->flow, from, cli->words.v[i], &c.io, &failed);
        cli_outcome_add(&outcome, rc, &failed);
        cli_progress_add(&c.progress, &sum, &c.io.report);
    }
    cli_progress_clear(&c.progress);
    if (outcome.n_failed < outcome.n || sum.total.done_objects + sum.total.failed_objects > 0)
        cmd_verify_print_summary(&c, &sum, outcome.n == 1);
    cli_warn_idle_patterns(cli, &outcome);
    return cli_outcome_end(&outcome, err);
}

int cmd_verify(struct cli *cli, struct act_error *err)
{
    return cli_with_source(cli, verify_all, err);
}
