/* cmd_rm.c - removes from the store, after a count and a question. */
#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/flow.h"

typedef unsigned long long count_t; /* for printf */

struct job {
    struct cli_progress progress; /* first: it is what the callbacks get */
    struct cli *cli;
    const char *word;
    const struct transfer_path *what;
    struct transfer_options options;
    struct transfer_report sum;
};

static void print_step(void *arg, const struct transfer_step *step)
{
    struct job *job = arg;
    ACT_AUTOFREE char *path = cli_path_of(job->word, job->what, step->entry->key);

    if (job->cli->options.json) {
        cli_print_json_line(json_pack("{s:i,s:s,s:I,s:o}", "version", 1, "action", "delete", "size",
                                      (json_int_t)step->entry->size, "path", codec_json_bytes_new(path)));
        return;
    }
    cli_put_path(path);
    putchar_unlocked('\n');
}

static int run(const struct job *job, const struct transfer_options *options, struct transfer_report *report,
               struct act_error *err)
{
    struct engine *engine = job->cli->flow.engine;

    if (job->cli->options.leftovers)
        return transfer_clear(engine, job->what->store, job->what->path, options, report, err);
    return transfer_remove(engine, job->what, options, report, err);
}

static int ask(const struct job *job, const struct transfer_progress *found, struct act_error *err)
{
    bool leftovers = job->cli->options.leftovers;
    char size[ACT_UNIT_TEXT];

    act_size_to_text(found->found_bytes, size);
    ACT_AUTOFREE char *question = act_sprintf(
        "Remove %s'%s'%s, %llu object%s, %s, from %s?%s",
        leftovers ? "what interrupted uploads left in " : "", job->word,
        leftovers              ? ""
        : job->what->is_folder ? " (folder)"
                               : " (file)",
        (count_t)found->found_objects, found->found_objects == 1 ? "" : "s", size,
        store_name(job->what->store), leftovers ? " An upload that is under way elsewhere would fail." : "");
    return cli_confirm(job->cli, question, err);
}

/* Counts what would go and asks. */
static int confirm(const struct job *job, struct act_error *err)
{
    struct transfer_options count = {.filter = job->options.filter, .dry_run = true};
    struct transfer_report report;

    if (job->cli->options.yes || job->options.dry_run)
        return 0;
    int rc = run(job, &count, &report, err);
    if (rc == 0 && report.total.found_objects > 0)
        rc = ask(job, &report.total, err);
    transfer_report_release(&report);
    return rc;
}

static int rm(void *arg, const char *word, enum flow_place place, struct flow_path *p, struct act_error *err)
{
    struct job *job = arg;
    struct transfer_report report = {0};
    int rc = 0;

    (void)place;
    job->word = word;
    job->what = &p->path;
    if (p->path.is_folder && !job->cli->options.leftovers)
        rc = flow_may_remove(&job->cli->flow, word, err);
    if (rc == 0)
        rc = confirm(job, err);
    if (rc == 0)
        rc = run(job, &job->options, &report, err);
    cli_progress_add(&job->progress, &job->sum, &report);
    flow_path_release(p);
    return rc;
}

static void print_summary_json(const struct job *job, const struct cli_outcome *outcome)
{
    const struct transfer_progress *t = &job->sum.total;
    bool dry = job->options.dry_run;

    cli_print_json_line(
        json_pack("{s:i,s:s,s:b,s:I,s:I,s:I,s:o,s:o}", "version", 1, "summary", "rm", "dry_run", dry,
                  "objects", (json_int_t)(dry ? t->found_objects : t->done_objects), "bytes",
                  (json_int_t)(dry ? t->found_bytes : t->done_bytes), "failed", (json_int_t)t->failed_objects,
                  "failures", cli_failures_json(&job->sum), "errors", cli_errors_json(outcome)));
}

static void print_summary(struct job *job, const struct cli_outcome *outcome)
{
    const struct transfer_progress *t = &job->sum.total;

    cli_progress_clear(&job->progress);
    if (job->cli->options.json)
        print_summary_json(job, outcome);
    else if (job->options.dry_run)
        act_note("would remove %llu object%s", (count_t)t->found_objects, t->found_objects == 1 ? "" : "s");
    else if (outcome->n_failed < outcome->n || t->done_objects + t->failed_objects > 1)
        cli_progress_end(&job->progress, "removed", &job->sum);
}

int cmd_rm(struct cli *cli, struct act_error *err)
{
    struct job job = {.cli = cli};
    struct cli_outcome outcome = {0};
    int rc = cli_transfer_options(cli, &job.options, err);

    if (rc < 0)
        return rc;
    cli_buffer_stdout();
    cli_progress_start(&job.progress, "removing", cli->options.quiet || job.options.dry_run, &job.options);
    if (job.options.dry_run)
        job.options.plan = print_step;
    for (size_t i = 0; i < cli->words.n; i++)
        cli_outcome_add(&outcome, cli_each_place(cli, cli->words.v[i], rm, &job, err), err);
    print_summary(&job, &outcome);
    cli_warn_idle_patterns(cli);
    transfer_report_release(&job.sum);
    return cli_outcome_end(&outcome, err);
}
