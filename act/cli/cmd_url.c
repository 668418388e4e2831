#include "cli/cli.h"

int cmd_url(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        struct flow_url io = {.life_s = cli->options.expires_s, .share_sas = cli->options.share_sas};
        rc = flow_url(&cli->flow, cli->words.v[i], &io, err);
        if (rc == 0)
            puts(io.url);
        free(io.url);
    }
    return rc;
}
