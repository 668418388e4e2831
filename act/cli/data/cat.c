/* cat.c - prints files of the store, or logs of runs, which it can follow. */
#include <unistd.h>

#include "base/text.h"
#include "cli/command/signal.h"
#include "cli/data/data.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"

/* Prints a piece of a file; runs on a worker. */
static int cmd_cat_print(void *arg, const void *data, size_t len, struct act_error *err)
{
    return cli_write_stdout(arg, data, len, err);
}

static int cat(struct cli *cli, const char *word, struct act_error *err)
{
    const struct transfer_range range = {.first = CLI_OPTIONS(cli, list)->first, .last = CLI_OPTIONS(cli, list)->last};
    ACT_AUTO(flow_path) p = {0};
    int rc = cli_open_path(cli, word, &p, err);

    if (rc < 0)
        return rc;
    if (p.path.is_folder)
        rc = act_error_set(err, ACT_USAGE, "'%s' is a folder; 'a ls' lists it, 'a d' downloads it", word);
    else
        rc = transfer_read(services_engine(&cli->services), &p.path, &range, CLI_OPTIONS(cli, transfer)->memory,
                           cmd_cat_print, NULL, err);
    cli_end_text();
    return rc;
}

/* ---- following */

static int check_follow(struct cli *cli, struct act_error *err)
{
    const struct cli_list_options *o = CLI_OPTIONS(cli, list);
    const char *word = cli->words.v[0];

    if (cli->words.n > 1)
        return act_error_set(err, ACT_USAGE, "-f follows one file, not %zu", cli->words.n);
    if (o->first || o->last || CLI_OPTIONS(cli, transfer)->memory)
        return act_error_set(err, ACT_USAGE, "-f prints the whole file as it grows: --%s does not go with it",
                             o->first  ? "first"
                             : o->last ? "last"
                                       : "memory");
    int rc = cli_names_run(cli, word, err);
    if (rc == 0)
        return act_error_set(err, ACT_USAGE, "-f follows a log of a run, 'RUN:PATH', and '%s' is none", word);
    return rc < 0 ? rc : 0;
}

/* Checks that what is there already is a file. */
static int cmd_cat_check_file(struct cli *cli, const char *word, const char *path, struct act_error *err)
{
    ACT_AUTO(flow_path) p = {0};
    struct act_error ignored;
    bool is_folder = !*path || act_ends_with(path, "/");

    if (!is_folder && flow_open_run_path(&cli->flow, word, &p, &ignored) == 0)
        is_folder = p.path.is_folder;
    return is_folder ? act_error_set(err, ACT_USAGE, "'%s' is a folder; 'a ls' lists it", word) : 0;
}

static int cmd_cat_follow(struct cli *cli, struct act_error *err)
{
    const char *word = cli->words.v[0];
    ACT_AUTO(flow_run) run = {0};
    ACT_AUTOFREE char *path = NULL;
    int rc = check_follow(cli, err);

    if (rc == 0)
        rc = flow_find_named_run(&cli->flow, word, &run, &path, err);
    if (rc == 0)
        rc = cmd_cat_check_file(cli, word, path, err);
    if (rc < 0)
        return rc;
    const struct flow_follow what = {
        .name = path, .must_exist = true, .tail = -1, .follow = true, .sink = {.write = cli_write_stdout}};
    cli_end_beside(run.row.id);
    rc = flow_follow_log(&cli->flow, &run, &what, err);
    cli_end_text();
    return rc == 0 ? cli_tell_end(&run) : rc;
}

int cmd_cat(struct cli *cli, struct act_error *err)
{
    struct cli_outcome outcome = {0};

    if (CLI_OPTIONS(cli, logs)->follow)
        return cmd_cat_follow(cli, err);
    if (CLI_OPTIONS(cli, list)->first && CLI_OPTIONS(cli, list)->last)
        return act_error_set(err, ACT_USAGE, "--first and --last exclude each other");
    for (size_t i = 0; i < cli->words.n; i++)
        cli_outcome_add(&outcome, cat(cli, cli->words.v[i], err), err);
    return cli_outcome_end(&outcome, err);
}
