/* rm.c - removes from the store, or whole runs, after a count and a question. */
#include "base/log.h"
#include "base/units.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/keep/keep.h"

struct removing {
    struct cli_progress progress; /* first, because the callbacks get a pointer to it */
    struct cli *cli;
    const char *word;
    const struct transfer_path *what;
    struct transfer_options options;
    struct transfer_report sum;
    struct flow_prune runs;
    size_t n_runs; /* removed, or in a dry run those that would be */
};

static void cmd_rm_print_step(void *arg, const struct transfer_step *step)
{
    struct removing *removing = arg;
    ACT_AUTOFREE char *path = cli_path_of(removing->word, removing->what, step->entry->key);

    if (removing->cli->options.json) {
        cli_print_pack_line("{s:s,s:I,s:o}", "action", "delete", "size", (json_int_t)step->entry->size, "path",
                            codec_json_bytes_new(path));
        return;
    }
    cli_put_path(path);
    putchar_unlocked('\n');
}

static int run_removal(const struct removing *removing, const struct transfer_options *options,
                       struct transfer_report *report, struct act_error *err)
{
    struct engine *engine = services_engine(&removing->cli->services);

    if (CLI_OPTIONS(removing->cli, list)->leftovers)
        return transfer_clear(engine, removing->what->store, removing->what->path, options, report, err);
    return transfer_remove(engine, removing->what, options, report, err);
}

static int ask_to_remove(struct removing *removing, const struct transfer_progress *found, struct act_error *err)
{
    bool leftovers = CLI_OPTIONS(removing->cli, list)->leftovers;
    char size[ACT_UNIT_TEXT];

    act_size_to_text(found->found_bytes, size);
    ACT_AUTOFREE char *question = act_sprintf("Remove %s'%s'%s, %llu object%s, %s, from %s?%s",
                                              leftovers ? "what interrupted uploads left in " : "", removing->word,
                                              leftovers                   ? ""
                                              : removing->what->is_folder ? " (folder)"
                                                                          : " (file)",
                                              (cli_count_t)found->found_objects, cli_plural(found->found_objects), size,
                                              store_name(removing->what->store),
                                              leftovers ? " An upload that is under way elsewhere would fail." : "");
    cli_progress_clear(&removing->progress);
    return cli_confirm(removing->cli, question, err);
}

/* Counts what would be removed, and asks. */
static int cmd_rm_confirm(struct removing *removing, struct act_error *err)
{
    struct transfer_options count = {.filter = removing->options.filter, .dry_run = true};
    struct transfer_report report;

    if (removing->cli->options.yes || removing->options.dry_run)
        return 0;
    int rc = run_removal(removing, &count, &report, err);
    if (rc == 0 && report.total.found_objects > 0)
        rc = ask_to_remove(removing, &report.total, err);
    transfer_report_release(&report);
    return rc;
}

/* ---- runs */

static int take_word(struct removing *removing, const char *word, struct act_strv *paths, struct act_error *err)
{
    ACT_AUTOFREE char *piece = NULL;
    int rc = cli_names_whole_run(removing->cli, word, &piece, err);

    if (rc == 0)
        act_strv_push(paths, word);
    return rc > 0 ? flow_remove_find(&removing->cli->flow, piece, &removing->runs, err) : rc;
}

/* Takes the runs out of the words, so that only paths are left. */
static bool take_runs(struct removing *removing, struct cli_outcome *outcome)
{
    struct act_strv *words = &removing->cli->words;
    struct act_strv paths = {0};
    size_t n = words->n;

    flow_remove_expect(&removing->cli->flow, words);
    for (size_t i = 0; i < n; i++) {
        struct act_error err = {0};
        int rc = take_word(removing, words->v[i], &paths, &err);
        if (rc < 0)
            cli_outcome_add(outcome, rc, &err);
    }
    act_strv_release(words);
    *words = paths;
    if (CLI_OPTIONS(removing->cli, store)->force && paths.n > 0) {
        struct act_error err = {0};
        int rc = act_error_set(&err, ACT_USAGE, "--force is about runs, and '%s' is a path", paths.v[0]);
        cli_outcome_add(outcome, rc, &err);
    }
    if (n > 1)
        cli_outcome_hint(outcome, "nothing was removed");
    return outcome->n_failed == 0;
}

static int print_runs(const struct removing *removing, struct act_error *err)
{
    const struct flow_prune *p = &removing->runs;

    if (!removing->cli->options.json)
        return cli_print_removed(removing->cli, p, err);
    for (size_t i = 0; i < p->n && removing->options.dry_run; i++)
        cli_print_pack_line("{s:s,s:s,s:I,s:b,s:b,s:o}", "action", "delete", "run", p->v[i].id, "size",
                            (json_int_t)p->v[i].bytes, "copies", p->v[i].has_copies, "sent", p->v[i].has_sent,
                            "unreached", p->v[i].unreached ? codec_json_bytes_new(p->v[i].unreached) : json_null());
    return 0;
}

static bool has_unreached(const struct flow_prune *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].unreached)
            return true;
    return false;
}

static int ask_to_remove_runs(const struct removing *removing, struct act_error *err)
{
    const struct flow_prune *p = &removing->runs;
    ACT_AUTOFREE char *sum = cli_sum_of_runs(p, p->n);
    char size[ACT_UNIT_TEXT];

    act_size_to_text(p->bytes, size);
    ACT_AUTOFREE char *question =
        act_sprintf("Remove %s, %s, with all logs, for good?%s%s", sum, size,
                    p->n_found ? " Somebody else may have submitted some of them." : "",
                    has_unreached(p) ? " Where some of them ran cannot be reached: what is left there stays." : "");
    fflush(stdout);
    return cli_confirm(removing->cli, question, err);
}

static int rm_runs(struct removing *removing, struct act_error *err)
{
    struct flow_prune *p = &removing->runs;

    int rc = print_runs(removing, err);
    removing->n_runs = p->n;
    if (rc == 0 && !removing->options.dry_run)
        rc = ask_to_remove_runs(removing, err);
    if (rc == 0 && !removing->options.dry_run)
        rc = flow_remove(&removing->cli->flow, p, &removing->n_runs, err);
    else if (rc < 0)
        removing->n_runs = 0;
    ACT_AUTOFREE char *sum = cli_sum_of_runs(p, removing->n_runs);
    if (!removing->cli->options.json && removing->n_runs > 0)
        act_note("%s %s", removing->options.dry_run ? "would remove" : "removed", sum);
    return rc;
}

/* ---- paths */

/* Refuses a folder that must not be removed before anything else is removed; with a single word, rm() knows in time. */
static bool cmd_rm_check_folders(struct cli *cli, struct cli_outcome *outcome)
{
    for (size_t i = 0; i < cli->words.n && cli->words.n > 1 && !CLI_OPTIONS(cli, list)->leftovers; i++) {
        struct act_error err = {0};
        struct flow_path p;
        if (flow_open_path(&cli->flow, cli->words.v[i], &p, &err) < 0)
            continue; /* what is missing keeps nothing else */
        int rc = p.path.is_folder ? flow_may_remove(&cli->flow, cli->words.v[i], &err) : 0;
        flow_path_release(&p);
        if (rc < 0)
            cli_outcome_add(outcome, rc, &err);
    }
    cli_outcome_hint(outcome, "nothing was removed");
    return outcome->n_failed == 0;
}

static bool cmd_rm_check_words(struct cli *cli, struct cli_outcome *outcome)
{
    return cli_check_paths(cli, NULL, flow_check_path, "nothing was removed", outcome) &&
           cmd_rm_check_folders(cli, outcome);
}

static int rm(void *arg, const char *word, enum flow_place place, struct flow_path *p, struct act_error *err)
{
    struct removing *removing = arg;
    struct transfer_report report = {0};
    int rc = 0;

    (void)place;
    removing->word = word;
    removing->what = &p->path;
    if (p->path.is_folder && !CLI_OPTIONS(removing->cli, list)->leftovers)
        rc = flow_may_remove(&removing->cli->flow, word, err);
    if (rc == 0)
        rc = cmd_rm_confirm(removing, err);
    if (rc == 0)
        rc = run_removal(removing, &removing->options, &report, err);
    cli_progress_add(&removing->progress, &removing->sum, &report);
    flow_path_release(p);
    return rc;
}

static void cmd_rm_print_summary_json(const struct removing *removing, const struct cli_outcome *outcome)
{
    const struct transfer_progress *t = &removing->sum.total;
    bool dry = removing->options.dry_run;

    cli_print_pack_line("{s:s,s:b,s:I,s:I,s:I,s:I,s:o,s:o}", "summary", "rm", "dry_run", dry, "runs",
                        (json_int_t)removing->n_runs, "objects", (json_int_t)(dry ? t->found_objects : t->done_objects),
                        "bytes", (json_int_t)(dry ? t->found_bytes : t->done_bytes), "failed",
                        (json_int_t)t->failed_objects, "failures", cli_failures_json(&removing->sum), "errors",
                        cli_errors_json(outcome));
}

static void cmd_rm_print_summary(struct removing *removing, const struct cli_outcome *outcome)
{
    const struct transfer_progress *t = &removing->sum.total;
    bool only_runs = removing->cli->words.n == 0;

    cli_progress_clear(&removing->progress);
    if (removing->cli->options.json)
        cmd_rm_print_summary_json(removing, outcome);
    else if (only_runs)
        return;
    else if (removing->options.dry_run && (outcome->n_failed < outcome->n || t->found_objects > 0))
        act_note("would remove %llu object%s", (cli_count_t)t->found_objects, cli_plural(t->found_objects));
    else if (outcome->n_failed < outcome->n || t->done_objects + t->failed_objects > 1)
        cli_progress_end(&removing->progress, "removed", &removing->sum);
}

int cmd_rm(struct cli *cli, struct act_error *err)
{
    struct removing removing = {.cli = cli, .runs.force = CLI_OPTIONS(cli, store)->force};
    struct cli_outcome outcome = {0};
    int rc = cli_transfer_options(cli, &removing.options, err);

    if (rc < 0)
        return rc;
    cli_paths_once(cli, false);
    cli_buffer_stdout();
    cli_progress_start(&removing.progress, "removing", cli->options.quiet || removing.options.dry_run,
                       &removing.options);
    if (removing.options.dry_run)
        removing.options.plan = cmd_rm_print_step;
    bool checked = take_runs(&removing, &outcome) && cmd_rm_check_words(cli, &outcome);
    for (size_t i = 0; checked && i < cli->words.n; i++)
        cli_outcome_add(&outcome, cli_each_place(cli, cli->words.v[i], rm, &removing, err), err);
    if (checked && removing.runs.n > 0)
        cli_outcome_add(&outcome, rm_runs(&removing, err), err);
    cmd_rm_print_summary(&removing, &outcome);
    cli_warn_idle_patterns(cli, &outcome);
    transfer_report_release(&removing.sum);
    flow_prune_release(&removing.runs);
    return cli_outcome_end(&outcome, err);
}
