#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "codec/json.h"
#include "flow/data/data.h"
#include "flow/flow.h"

static int make_url(struct cli *cli, const char *path, struct act_error *err)
{
    struct flow_url io = {.life_s = CLI_OPTIONS(cli, store)->expires_s,
                          .share_sas = CLI_OPTIONS(cli, store)->share_sas};
    int rc = cli_names_run(cli, path, err);

    if (rc == 0)
        rc = flow_url(&cli->flow, path, &io, err);
    if (rc == 0 && cli->options.json)
        cli_print_pack_line("{s:o,s:o}", "path", codec_json_bytes_new(path), "url", codec_json_bytes_new(io.url));
    else if (rc == 0)
        puts(io.url);
    free(io.url);
    return rc;
}

int cmd_url(struct cli *cli, struct act_error *err)
{
    struct cli_outcome outcome = {0};

    for (size_t i = 0; i < cli->words.n; i++) {
        struct act_error why = {0};
        int rc = make_url(cli, cli->words.v[i], &why);
        cli_outcome_add(&outcome, rc, &why);
    }
    return cli_outcome_end(&outcome, err);
}
