#include "cli/cli.h"

static void print_plan(void *arg, const struct transfer_step *step)
{
    (void)arg;
    printf("%s -> %s\n", step->entry->key, step->to_key);
}

/* One path, in either direction. */
static int transfer(struct cli *cli, struct flow *from, const char *path, bool up, struct act_error *err)
{
    struct flow_data io = {.options = {.dry_run = cli->options.dry_run}};
    struct cli_progress progress;
    int rc;

    cli_progress_start(&progress, up ? "uploading" : "downloading", cli->options.quiet, &io.options);
    if (io.options.dry_run)
        io.options.plan = print_plan;
    rc = up ? flow_upload(&cli->flow, from, path, &io, err) : flow_download(&cli->flow, path, &io, err);
    const struct transfer_progress *t = &io.report.total;
    if (rc == 0 || t->done_objects + t->same_objects + t->failed_objects > 1)
        cli_progress_end(&progress,
                         io.options.dry_run ? "would move"
                         : up               ? "uploaded"
                                            : "downloaded",
                         &io.report);
    transfer_report_release(&io.report);
    return rc;
}

int cmd_upload(struct cli *cli, struct act_error *err)
{
    struct flow from = {0};
    bool elsewhere = cli->options.from_cluster != NULL;
    int rc = elsewhere ? cli_open_flow(cli, cli->options.from_cluster, NULL, &from, err) : 0;

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = transfer(cli, elsewhere ? &from : NULL, cli->words.v[i], true, err);
    if (elsewhere)
        flow_close(&from);
    return rc;
}

int cmd_download(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = transfer(cli, NULL, cli->words.v[i], false, err);
    return rc;
}
