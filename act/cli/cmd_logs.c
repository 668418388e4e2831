#include "cli/cli.h"

int cmd_logs(struct cli *cli, struct act_error *err)
{
    const struct cli_options *o = &cli->options;
    ACT_AUTOFREE char *rank_log = run_rank_log(o->rank >= 0 ? (int)o->rank : 0);
    struct flow_run run;
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    if (o->rank >= run.spec.nodes * run.spec.procs_per_node) {
        rc = act_error_set(err, ACT_USAGE, "run '%s' has ranks 0 to %d, not %lld", run.row.id,
                           run.spec.nodes * run.spec.procs_per_node - 1, (long long)o->rank);
    } else {
        struct flow_follow what = {.name = o->log_name ? o->log_name : rank_log,
                                   .tail = o->tail,
                                   .follow = o->follow,
                                   .sink = {.write = cli_write_stdout}};
        rc = flow_follow_log(&cli->flow, &run, &what, err);
    }
    flow_run_release(&run);
    return rc;
}
