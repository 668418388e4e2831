#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"

static int check_words(const struct cli *cli, struct act_error *err)
{
    if (cli->words_before >= 1 && cli->words_before <= 2)
        return 0;
    if (cli->words_before == 0)
        return act_error_set(err, ACT_USAGE, "'a ssh' needs a run: a ssh %s", cli->command->synopsis);
    return act_error_set(err, ACT_USAGE, "'a ssh' does not take '%s': a command stands behind '--': a ssh %s",
                         cli->words.v[2], cli->command->synopsis);
}

static int find_shell(struct cli *cli, struct act_strv *argv, struct act_error *err)
{
    const char *node = cli->words_before == 2 ? cli->words.v[1] : NULL;
    struct act_strv command = {0};
    struct flow_run run;
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    act_strv_copy(&command, cli->words.v + cli->words_before, cli->words.n - cli->words_before);
    rc = flow_shell(&cli->flow, &run, node, &command, argv, err);
    act_strv_release(&command);
    flow_run_release(&run);
    return rc;
}

int cmd_ssh(struct cli *cli, struct act_error *err)
{
    struct act_strv argv = {0};
    int rc = check_words(cli, err);

    if (rc == 0)
        rc = find_shell(cli, &argv, err);
    if (rc == 0) {
        flow_close(&cli->flow); /* what is open ends with this program, which does not come back */
        execvp(argv.v[0], argv.v);
        rc = act_error_errno(err, errno, "cannot start '%s'", argv.v[0]);
    }
    act_strv_release(&argv);
    return rc;
}
