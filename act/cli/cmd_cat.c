/* cmd_cat.c - prints files of the store. */
#include "cli/cli.h"
#include "flow/data/data.h"
#include "flow/flow.h"

/* On a worker. */
static int print(void *arg, const void *data, size_t len, struct act_error *err)
{
    return cli_write_stdout(arg, data, len, err);
}

static int cat(struct cli *cli, const char *word, struct act_error *err)
{
    const struct cli_options *o = &cli->options;
    const struct transfer_range range = {.first = o->first, .last = o->last};
    ACT_AUTO(flow_path) p = {0};
    int rc = cli_open_path(cli, word, &p, err);

    if (rc < 0)
        return rc;
    if (p.path.is_folder)
        rc = act_error_set(err, ACT_USAGE, "'%s' is a folder; 'a ls' lists it, 'a d' downloads it", word);
    else
        rc = transfer_read(services_engine(&cli->services), &p.path, &range, o->memory, print, NULL, err);
    cli_end_text();
    return rc;
}

int cmd_cat(struct cli *cli, struct act_error *err)
{
    struct cli_outcome outcome = {0};

    if (cli->options.first && cli->options.last)
        return act_error_set(err, ACT_USAGE, "--first and --last exclude each other");
    for (size_t i = 0; i < cli->words.n; i++)
        cli_outcome_add(&outcome, cat(cli, cli->words.v[i], err), err);
    return cli_outcome_end(&outcome, err);
}
