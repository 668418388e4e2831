#include "cli/cli.h"

enum { DAY_S = 24 * 3600 };

int cmd_url(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        ACT_AUTOFREE char *url = NULL;
        rc = flow_url(&cli->flow, cli->words.v[i], cli->options.expires_s ? cli->options.expires_s : DAY_S,
                      &url, err);
        if (rc == 0)
            puts(url);
    }
    return rc;
}
