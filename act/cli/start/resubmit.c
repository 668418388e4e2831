#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "cli/start/options.h"
#include "cli/start/start.h"
#include "config/config.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "flow/place.h"
#include "flow/runs/runs.h"
#include "flow/submit/submit.h"

/* Prints a new run, and that it takes the place of one that has not ended; with --json they are one list. */
static int report_new_run(struct cli *cli, const struct run_status *old, const struct run_spec *spec, json_t *preview,
                          json_t *list, struct act_error *err)
{
    if (cli->options.dry_run)
        return cli_print_spec(preview ? preview : run_spec_to_json(spec), err);
    int rc = list ? json_array_append_new(list, cli_spec_json(spec)) : cli_print_id("run", spec->id, NULL, err);
    bool same_code = !CLI_OPTIONS(cli, start)->code && spec->package_key;
    act_note("submitted to %s %s %s%s", spec->cluster,
             run_state_is_final(old->state) ? "as a repeat of" : "in place of", spec->resubmit_of,
             same_code ? ", with the package of that run; --code takes the code as it is now" : "");
    return rc;
}

static const char *named_target(const struct cli *cli)
{
    return CLI_OPTIONS(cli, start)->resubmit_to ? CLI_OPTIONS(cli, start)->resubmit_to : cli->options.cluster;
}

/* Opens where the new run goes: the cluster of -rt, else of -c, else the place of the old run. */
static int open_target(struct cli *cli, const struct flow_run *old, struct flow *to, struct act_error *err)
{
    const char *named = named_target(cli);
    int rc = named ? cli_open_flow(cli, named, to, err) : cli_open_of_run(cli, &old->row, to, err);

    if (rc > 0)
        act_note("the cluster file of '%s' is gone or leads elsewhere: the new run has the configuration that '%s' "
                 "wrote down; -c NAME takes that of a cluster",
                 old->row.cluster, old->row.id);
    return rc < 0 ? rc : 0;
}

/* Asks on a terminal before a running run loses its work. Scripts, which take the id from stdout, are never asked. */
static int confirm_loss(const struct cli *cli, const struct flow_run *old, struct act_error *err)
{
    if (cli->options.dry_run || old->status.state != RUN_RUNNING || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    ACT_AUTOFREE char *question = act_sprintf("'%s' is running: abort it and submit it again?", old->row.id);
    int rc = cli_confirm(cli, question, err);
    return rc == -ACT_FAIL ? act_error_set(err, ACT_FAIL, "not confirmed: '%s' goes on", old->row.id) : rc;
}

/* Opens where the old run's package is. That of a project that was moved is in the store of the named cluster, or
 * nowhere. */
static int open_home(struct cli *cli, const struct flow_run *old, struct flow *home, struct act_error *err)
{
    int rc = flow_open_of_run(&old->row, NULL, home, err);

    if (rc < 0 && named_target(cli))
        rc = cli_open_flow(cli, named_target(cli), home, err);
    if (rc < 0)
        return act_error_prefix(err, "cannot find the configuration of '%s'", old->row.id);
    home->services = &cli->services;
    return 0;
}

/* Says whose code is packed: of two projects, the user may mean the other one. */
static void say_whose_code(const struct cli *cli, const struct flow_run *old, const struct flow *to)
{
    const char *root = to->config->project_root;
    ACT_AUTOFREE char *here = getcwd(NULL, 0);

    if (!CLI_OPTIONS(cli, start)->code)
        return;
    if (strcmp(root, old->row.project) != 0)
        act_note("with the code of '%s', which is not the project of '%s': that is '%s'", root, old->row.id,
                 old->row.project);
    else if (here && !act_path_is_within(here, root))
        act_note("with the code of '%s', the project of '%s'", root, old->row.id);
}

static int cmd_resubmit_resubmit(struct cli *cli, struct flow_run *old, json_t *list, struct act_error *err)
{
    struct cli_packing packing;
    ACT_AUTO(flow_init) code = {0};
    struct flow_submit again = {.dry_run = cli->options.dry_run,
                                .code = CLI_OPTIONS(cli, start)->code ? &code : NULL,
                                .after = CLI_OPTIONS(cli, start)->after,
                                .after_any = CLI_OPTIONS(cli, start)->after_any,
                                .confirm = cli_confirm_for,
                                .arg = cli};
    struct flow home, to;
    int rc = cli_labels(cli, &again.labels, err);

    if (rc == 0)
        rc = confirm_loss(cli, old, err);
    if (rc < 0)
        return rc;
    rc = open_target(cli, old, &to, err);
    if (rc < 0)
        return rc;
    say_whose_code(cli, old, &to);
    rc = open_home(cli, old, &home, err);
    if (rc == 0) {
        cli_packing_start(&packing, cli, &code);
        rc = flow_resubmit(&cli->flow, old, &home, &to, &again, err);
        if (rc == 0)
            rc = report_new_run(cli, &old->status, &again.spec, again.preview, list, err);
        run_spec_release(&again.spec);
        flow_close(&home);
    }
    flow_close(&to);
    return rc;
}

int cmd_resubmit(struct cli *cli, struct act_error *err)
{
    struct cli_each_run each = {
        .act = cmd_resubmit_resubmit, .all_or_none = true, .list = cli->options.json && !cli->options.dry_run};

    struct flow_labels labels; /* a wrong one is known before anything is done */
    int rc = cli_labels(cli, &labels, err);

    cli->flow.cluster_is_target = true;
    return rc < 0 ? rc : cli_each_run(cli, &each, err);
}
