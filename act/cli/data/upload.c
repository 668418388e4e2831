/* upload.c - upload and download. */
#include <string.h>

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

struct moving {
    struct cli_progress progress; /* first, because the callbacks get a pointer to it */
    struct cli *cli;
    struct flow *from; /* the other cluster's; NULL: none */
    bool up;
    struct transfer_options options;
    const char *path; /* under way */
    struct flow_data io;
    struct transfer_report sum;
    struct act_strv left; /* the first that are newer at the destination, or links that lead out of it */
    bool left_links;
    uint64_t to_delete; /* steps of a dry run */
    struct cli_outcome outcome;
};

static const char *const actions[] = {
    [TRANSFER_COPY] = "copy", [TRANSFER_DELETE] = "delete", [TRANSFER_LEAVE] = "leave"};

/* ---- callbacks */

static void print_planned(const struct moving *moving, enum transfer_action action, uint64_t bytes, const char *path,
                          const char *reason)
{
    char size[ACT_UNIT_TEXT];

    if (moving->cli->options.json) {
        cli_print_pack_line("{s:s,s:I,s:o,s:s}", "action", actions[action], "size", (json_int_t)bytes, "path",
                            codec_json_bytes_new(path), "reason", reason);
        return;
    }
    act_size_to_text(bytes, size);
    printf("%-6s %10s  ", actions[action], size);
    cli_put_path(path);
    printf("  (%s)\n", reason);
}

static void cmd_upload_print_step(void *arg, const struct transfer_step *step)
{
    struct moving *moving = arg;
    ACT_AUTOFREE char *path = flow_step_path(&moving->io, step);

    moving->to_delete += step->action == TRANSFER_DELETE;
    print_planned(moving, step->action, step->entry->size, path, step->reason);
}

/* Prints what a log has more than its copy. */
static void print_log(void *arg, const char *name, uint64_t bytes, bool is_new)
{
    const struct moving *moving = arg;
    ACT_AUTOFREE char *path = act_sprintf("%.*s:%s", (int)strcspn(moving->path, ":"), moving->path, name);

    print_planned(moving, TRANSFER_COPY, bytes, path, is_new ? "new" : "size");
}

static void note_left(void *arg, const struct transfer_step *step)
{
    struct moving *moving = arg;

    if (moving->options.dry_run)
        cmd_upload_print_step(arg, step);
    moving->left_links |= act_streq(step->reason, "a link");
    if (moving->left.n < TRANSFER_MAX_FAILURES) {
        ACT_AUTOFREE char *path = flow_step_path(&moving->io, step);
        act_strv_push(&moving->left, path);
    }
}

static int ask_to_delete(void *arg, uint64_t objects, uint64_t bytes, struct act_error *err)
{
    struct moving *moving = arg;
    char size[ACT_UNIT_TEXT];

    cli_progress_clear(&moving->progress);
    act_size_to_text(bytes, size);
    ACT_AUTOFREE char *question =
        act_sprintf(moving->up ? "Delete from the store %llu object%s, %s, not in the source '%s'?"
                               : "Delete here %llu object%s, %s, not in the store's '%s'?",
                    (cli_count_t)objects, cli_plural(objects), size, moving->path);
    return cli_confirm(moving->cli, question, err);
}

/* ---- at the end */

static void cmd_upload_print_summary_json(const struct moving *moving)
{
    const struct transfer_progress *t = &moving->sum.total;
    bool dry = moving->options.dry_run;

    cli_print_pack_line(
        "{s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:f,s:o,s:o}", "summary", moving->cli->command->name,
        "dry_run", dry, "objects", (json_int_t)(dry ? t->found_objects : t->done_objects), "bytes",
        (json_int_t)(dry ? t->found_bytes : t->done_bytes), "resumed_bytes", (json_int_t)t->resumed_bytes, "same",
        (json_int_t)t->same_objects, "newer", (json_int_t)t->newer_objects, "left", codec_json_strv_new(&moving->left),
        "skipped_links", (json_int_t)t->skipped_links, "deleted",
        (json_int_t)(dry ? moving->to_delete : t->deleted_objects), "failed", (json_int_t)t->failed_objects,
        "folder_modes", (json_int_t)t->folder_modes, "seconds", cli_progress_seconds(&moving->progress), "failures",
        cli_failures_json(&moving->sum), "errors", cli_errors_json(&moving->outcome));
}

static void print_plan_summary(const struct moving *moving)
{
    const struct transfer_progress *t = &moving->sum.total;
    char size[ACT_UNIT_TEXT], modes[48] = "";

    act_size_to_text(t->found_bytes, size);
    if (t->folder_modes)
        snprintf(modes, sizeof(modes), "; %llu folder mode%s", (cli_count_t)t->folder_modes,
                 cli_plural(t->folder_modes));
    act_note("would %s %llu object%s, %s; %llu already the same; %llu to delete; %llu newer at the destination, "
             "left%s",
             moving->cli->command->name, (cli_count_t)t->found_objects, cli_plural(t->found_objects), size,
             (cli_count_t)t->same_objects, (cli_count_t)moving->to_delete, (cli_count_t)t->newer_objects, modes);
    cli_print_failures(&moving->sum);
}

static void cmd_upload_print_summary(struct moving *moving)
{
    const struct transfer_progress *t = &moving->sum.total;
    bool only_an_error = moving->outcome.n_failed == moving->outcome.n &&
                         t->done_objects + t->same_objects + t->newer_objects + t->skipped_links + t->deleted_objects +
                                 t->failed_objects + t->folder_modes <=
                             1;

    cli_progress_clear(&moving->progress);
    if (moving->cli->options.json)
        cmd_upload_print_summary_json(moving);
    else if (only_an_error)
        return;
    else if (moving->options.dry_run)
        print_plan_summary(moving);
    else
        cli_progress_end(&moving->progress, moving->up ? "uploaded" : "downloaded", &moving->sum);
}

static void warn_left(const struct moving *moving)
{
    uint64_t more = moving->sum.total.newer_objects - moving->left.n;
    ACT_AUTO(act_buf) names = {0};

    if (moving->left.n == 0)
        return;
    for (size_t i = 0; i < moving->left.n; i++)
        act_buf_addf(&names, "%s'%s'", i ? ", " : "", moving->left.v[i]);
    if (more > 0)
        act_buf_addf(&names, " and %llu more", (cli_count_t)more);
    act_warn("left what is newer%s %s: %s; --overwrite takes it",
             moving->left_links ? ", or a link out of the folder," : "", moving->up ? "in the store" : "here",
             names.data);
}

static void warn_kept(struct moving *moving)
{
    const struct transfer_report *r = &moving->io.report;
    cli_count_t failed = r->total.failed_objects;

    if (r->kept_extras == 0)
        return;
    cli_progress_clear(&moving->progress);
    act_warn("nothing %s deleted %s '%s', as %llu object%s failed", moving->options.dry_run ? "would be" : "was",
             moving->up ? "from the store's" : "here from", moving->path, failed, cli_plural(failed));
}

/* ---- all of it */

/* Fetches what is new in the logs of a run, to where 'a q' puts them too. */
static int fetch_logs(struct moving *moving, struct act_error *err)
{
    const struct transfer_options *o = &moving->options;
    struct flow *flow = &moving->cli->flow;
    ACT_AUTO(flow_logs) logs = {0};
    struct flow_run run = {0};
    ACT_AUTOFREE char *path = NULL;
    int rc = flow_find_named_run(flow, moving->path, &run, &path, err);
    const struct flow_fetch what = {.path = path,
                                    .filter = o->filter,
                                    .memory = o->memory,
                                    .progress = o->progress,
                                    .plan = o->dry_run ? print_log : NULL,
                                    .arg = o->arg};

    if (rc == 0)
        rc = flow_fetch_logs(flow, &run, &what, &logs, err);
    if (rc == 0 && !o->dry_run)
        rc = cli_check_kept(&run, &logs, err);
    moving->io.report.total = logs.total;
    cli_progress_clear(&moving->progress);
    if (rc == 0 && !o->dry_run)
        act_note("the logs of '%s' are in '%s'", run.row.id, logs.folder);
    flow_run_release(&run);
    return rc;
}

static int transfer_data(struct moving *moving, struct act_error *err)
{
    struct flow *to = &moving->cli->flow;

    return moving->up ? flow_upload(to, moving->from, moving->path, &moving->io, err)
                      : flow_download(to, moving->path, &moving->io, err);
}

static void transfer(struct moving *moving, const char *path)
{
    struct act_error err = {0};

    moving->path = path;
    moving->io =
        (struct flow_data){.options = moving->options, .follow = CLI_OPTIONS(moving->cli, transfer)->follow_links};
    int rc = cli_names_run(moving->cli, path, &err);
    if (rc >= 0)
        rc = (rc > 0 ? fetch_logs : transfer_data)(moving, &err);
    cli_outcome_add(&moving->outcome, rc, &err);
    warn_kept(moving);
    cli_progress_add(&moving->progress, &moving->sum, &moving->io.report);
}

/* Catches a source and a target, as scp has them, before anything is copied. */
static bool cmd_upload_check_words(struct moving *moving)
{
    return cli_check_paths(moving->cli, moving->from, moving->from ? flow_check_path : flow_check_local_path,
                           "nothing was copied: paths are of the project, and each is copied to the same place",
                           &moving->outcome);
}

static int transfer_all(struct cli *cli, struct flow *from, bool up, struct act_error *err)
{
    struct moving moving = {.cli = cli, .from = from, .up = up};
    int rc = cli_transfer_options(cli, &moving.options, err);

    cli_paths_once(cli, true);
    if (rc < 0)
        return rc;
    cli_progress_start(&moving.progress, up ? "uploading" : "downloading", cli->options.quiet || cli->options.dry_run,
                       &moving.options);
    moving.options.confirm = ask_to_delete;
    moving.options.left = note_left;
    if (up)
        moving.options.links = CLI_OPTIONS(cli, transfer)->skip_links ? TRANSFER_SKIP_LINKS : TRANSFER_REFUSE_LINKS;
    moving.options.plan = moving.options.dry_run ? cmd_upload_print_step : NULL;
    for (size_t i = 0, n = cmd_upload_check_words(&moving) ? cli->words.n : 0; i < n; i++)
        transfer(&moving, cli->words.v[i]);
    cmd_upload_print_summary(&moving);
    warn_left(&moving);
    cli_warn_idle_patterns(cli, &moving.outcome);
    rc = cli_outcome_end(&moving.outcome, err);
    transfer_report_release(&moving.sum);
    act_strv_release(&moving.left);
    return rc;
}

static int upload_all(struct cli *cli, struct flow *from, struct act_error *err)
{
    return transfer_all(cli, from, true, err);
}

int cmd_upload(struct cli *cli, struct act_error *err)
{
    return cli_with_source(cli, upload_all, err);
}

int cmd_download(struct cli *cli, struct act_error *err)
{
    return transfer_all(cli, NULL, false, err);
}
