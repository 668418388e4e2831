#include "cli/cli.h"
#include "flow/data/data.h"

int cmd_mount_folder(struct cli *cli, struct act_error *err)
{
    return flow_mount_run_folder(cli->words.v[0], cli->words.v[1], cli->words.v[2], err);
}
