#include "base/log.h"
#include "cli/cli.h"

static int resubmit(struct cli *cli, struct flow *to, const char *piece, struct act_error *err)
{
    struct run_spec spec;
    int rc = flow_resubmit(&cli->flow, to, piece, cli->options.dry_run, &spec, err);

    if (rc == 0 && cli->options.dry_run)
        rc = cli_print_json(run_spec_to_json(&spec), err);
    else if (rc == 0)
        puts(spec.id);
    if (rc == 0 && !cli->options.dry_run)
        act_note("submitted to %s again, in place of %s", spec.cluster, spec.resubmit_of);
    run_spec_release(&spec);
    return rc;
}

int cmd_resubmit(struct cli *cli, struct act_error *err)
{
    struct flow to = {0};
    bool elsewhere = cli->options.resubmit_to != NULL;
    int rc = elsewhere ? cli_open_flow(cli, cli->options.resubmit_to, &to, err) : 0;

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < cli->words.n && rc == 0; i++)
        rc = resubmit(cli, elsewhere ? &to : NULL, cli->words.v[i], err);
    if (elsewhere)
        flow_close(&to);
    return rc;
}
