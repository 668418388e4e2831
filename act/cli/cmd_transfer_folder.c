#include "cli/cli.h"
#include "flow/data/data.h"

int cmd_transfer_folder(struct cli *cli, struct act_error *err)
{
    const char *direction = cli->words.v[1];

    if (!act_streq(direction, "download") && !act_streq(direction, "upload"))
        return act_error_set(err, ACT_USAGE, "'%s' is neither download nor upload", direction);
    return flow_move_run_folder(cli->words.v[0], cli->words.v[2], cli->words.v[3], act_streq(direction, "download"),
                                err);
}
