#include "cli/cli.h"
#include "codec/json.h"

int cmd_url(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        struct flow_url io = {.life_s = cli->options.expires_s, .share_sas = cli->options.share_sas};
        rc = flow_url(&cli->flow, cli->words.v[i], &io, err);
        if (rc == 0 && cli->options.json)
            cli_print_json_line(json_pack("{s:i,s:o,s:o}", "version", 1, "path",
                                          codec_json_bytes_new(cli->words.v[i]), "url",
                                          codec_json_bytes_new(io.url)));
        else if (rc == 0)
            puts(io.url);
        free(io.url);
    }
    return rc;
}
