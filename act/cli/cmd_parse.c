#include "base/log.h"
#include "cli/cli.h"
#include "codec/json.h"

static int print_json(const struct flow_run *run, const struct flow_codes *codes, struct act_error *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < codes->n; i++) {
        const struct flow_code *c = &codes->v[i];
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s,s:o,s:o}", "code", c->rule->code, "id", c->rule->id,
                                        "class", c->rule->title, "log", codec_json_bytes_new(c->log), "line",
                                        codec_json_bytes_new(c->line)));
    }
    return cli_print_json(json_pack("{s:i,s:s,s:o}", "version", 1, "run", run->row.id, "codes", list), err);
}

static int parse(struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    struct flow_logs logs = {0};
    struct flow_codes codes = {0};
    int rc = cli_fetch_logs(cli, run, &logs, err);

    flow_logs_release(&logs);
    if (rc == 0)
        rc = flow_parse(run, &codes, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < codes.n && !cli->options.json; i++)
        puts(codes.v[i].rule->code);
    if (cli->options.json)
        rc = print_json(run, &codes, err);
    if (codes.n == 0)
        act_note("no known error in the logs of '%s'", run->row.id);
    flow_codes_release(&codes);
    return rc;
}

int cmd_parse(struct cli *cli, struct act_error *err)
{
    struct flow_run run;
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    rc = parse(cli, &run, err);
    flow_run_release(&run);
    return rc;
}
