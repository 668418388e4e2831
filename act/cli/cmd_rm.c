#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"

static void print_plan(void *arg, const struct transfer_step *step)
{
    (void)arg;
    puts(step->entry->key);
}

/* Counts what would go and asks. */
static int confirm(struct cli *cli, const struct transfer_path *what, const char *path, struct act_error *err)
{
    struct transfer_options count = {.dry_run = true};
    struct transfer_report report;
    char size[ACT_UNIT_TEXT];

    if (cli->options.yes)
        return 0;
    int rc = transfer_remove(cli->flow.engine, what, &count, &report, err);
    if (rc == 0) {
        act_size_to_text(report.total.found_bytes, size);
        ACT_AUTOFREE char *question =
            act_sprintf("Remove '%s' (%s), %llu object%s, %s, from %s?", path,
                        what->is_folder ? "folder" : "file", (unsigned long long)report.total.found_objects,
                        report.total.found_objects == 1 ? "" : "s", size, store_name(what->store));
        rc = cli_confirm(cli, question, err);
    }
    transfer_report_release(&report);
    return rc;
}

static int remove_path(struct cli *cli, const struct transfer_path *what, struct act_error *err)
{
    struct transfer_options options = {.dry_run = cli->options.dry_run};
    struct transfer_report report;
    struct cli_progress progress;

    cli_progress_start(&progress, "removing", cli->options.quiet, &options);
    if (options.dry_run)
        options.plan = print_plan;
    int rc = transfer_remove(cli->flow.engine, what, &options, &report, err);
    if (options.dry_run)
        act_note("would remove %llu object%s", (unsigned long long)report.total.found_objects,
                 report.total.found_objects == 1 ? "" : "s");
    else
        cli_progress_end(&progress, "removed", &report);
    transfer_report_release(&report);
    return rc;
}

static int rm(struct cli *cli, const char *path, struct act_error *err)
{
    struct flow_path p;
    int rc = flow_open_path(&cli->flow, path, &p, err);

    if (rc == 0 && !cli->options.dry_run)
        rc = confirm(cli, &p.path, path, err);
    if (rc == 0)
        rc = remove_path(cli, &p.path, err);
    flow_path_release(&p);
    return rc;
}

int cmd_rm(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = rm(cli, cli->words.v[i], err);
    return rc;
}
