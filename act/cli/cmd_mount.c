#include "cli/cli.h"
#include "flow/data/data.h"

int cmd_mount(struct cli *cli, struct act_error *err)
{
    return flow_mount(&cli->flow, cli->words.v[0], cli->words.v[1], cli->options.read_only, err);
}
