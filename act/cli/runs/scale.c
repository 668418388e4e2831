#include "base/log.h"
#include "base/units.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"

static int cmd_scale_say(const struct cli *cli, const struct flow_run *run, int64_t num_gpu, int nodes,
                         struct act_error *err)
{
    if (cli->options.json)
        return cli_print_pack(err, "{s:s, s:I, s:i, s:b}", "id", run->row.id, "num_gpu", (json_int_t)num_gpu, "nodes",
                              nodes, "dry_run", cli->options.dry_run);
    act_note("%s%s  %lld on %d node%s", cli->options.dry_run ? "would scale " : "", run->row.id, (long long)num_gpu,
             nodes, cli_plural(nodes));
    return 0;
}

int cmd_scale(struct cli *cli, struct act_error *err)
{
    const char *word = cli->words.v[1];
    struct flow_run run;
    int64_t num_gpu;
    int nodes;

    if (!act_int_from_text(word, &num_gpu) || num_gpu < 1)
        return act_error_set(err, ACT_USAGE, "'a scale RUN N' takes a number of GPUs, not '%s'", word);
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);
    if (rc < 0)
        return rc;
    rc = flow_scale(&cli->flow, &run, num_gpu, cli->options.dry_run, &nodes, err);
    if (rc == 0)
        rc = cmd_scale_say(cli, &run, num_gpu, nodes, err);
    flow_run_release(&run);
    return rc;
}
