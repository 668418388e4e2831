#include "base/log.h"
#include "cli/cli.h"

int cmd_submit(struct cli *cli, struct act_error *err)
{
    struct flow_submit io = {.argv = &cli->words, .dry_run = cli->options.dry_run};
    int rc = flow_submit(&cli->flow, &io, err);

    if (rc == 0 && io.dry_run) {
        rc = cli_print_json(run_spec_to_json(&io.spec), err);
    } else if (rc == 0) {
        puts(io.spec.id);
        act_note("submitted to %s: %d node%s, %d process%s each; 'a logs -f %s' follows it", io.spec.cluster,
                 io.spec.nodes, io.spec.nodes == 1 ? "" : "s", io.spec.procs_per_node,
                 io.spec.procs_per_node == 1 ? "" : "es", io.spec.id);
    }
    run_spec_release(&io.spec);
    return rc;
}
