#include "cli/data/data.h"
#include "cli/data/options.h"
#include "flow/data/data.h"

int cmd_mount(struct cli *cli, struct act_error *err)
{
    return flow_mount(&cli->flow, cli->words.v[0], cli->words.v[1], CLI_OPTIONS(cli, store)->read_only, err);
}

int cmd_mount_folder(struct cli *cli, struct act_error *err)
{
    return flow_mount_run_folder(cli->words.v[0], cli->words.v[1], cli->words.v[2], err);
}

int cmd_transfer_folder(struct cli *cli, struct act_error *err)
{
    const char *direction = cli->words.v[1];

    for (int move = 0; move < FLOW_MOVES; move++)
        if (act_streq(direction, flow_move_name((enum flow_move)move)))
            return flow_move_run_folder(cli->words.v[0], cli->words.v[2], cli->words.v[3], (enum flow_move)move, err);
    return act_error_set(err, ACT_USAGE, "'%s' is none of download, upload and changes", direction);
}
