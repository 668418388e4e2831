#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "cli/clusters/clusters.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "run/shell.h"

/* Tells whether a word is an address: no run id has dots. */
static bool is_address(const char *word)
{
    struct in_addr address;

    return inet_pton(AF_INET, word, &address) == 1;
}

static int cmd_ssh_check_words(const struct cli *cli, struct act_error *err)
{
    if (cli->words_before == 2 && is_address(cli->words.v[0]))
        return act_error_set(err, ACT_USAGE, "'%s' is one node: '%s' is too much", cli->words.v[0], cli->words.v[1]);
    if (cli->words_before >= 1 && cli->words_before <= 2)
        return 0;
    if (cli->words_before == 0)
        return cli_needs_more(cli, err);
    act_error_set(err, ACT_USAGE, "'a ssh' does not take '%s': a command comes after '--': a ssh %s", cli->words.v[2],
                  cli->command->synopsis);
    return cli_hint_help(cli, err);
}

static int find_shell_of_run(struct cli *cli, const struct flow_run *run, const struct act_strv *command,
                             struct platform_shell *shell, struct act_error *err)
{
    const char *node = cli->words_before == 2 ? cli->words.v[1] : NULL;
    int rc = flow_shell(&cli->flow, run, node, command, shell, err);

    if (rc == -ACT_NOT_FOUND && node && cli->words.n == cli->words_before)
        act_error_hint(err, "a command comes after '--': a ssh %s -- %s", cli->words.v[0], node);
    return rc;
}

/* Finds the shell of a node that an address names: it belongs to the cluster of -c, not to a run. */
static int find_shell_at(struct cli *cli, const struct act_strv *command, struct platform_shell *shell,
                         struct act_error *err)
{
    flow_close(&cli->flow);
    int rc = cli_open(cli, err);

    return rc < 0 ? rc : flow_shell_at(&cli->flow, cli->words.v[0], command, shell, err);
}

int cli_run_shell(struct cli *cli, const struct platform_shell *shell, struct act_error *err)
{
    if (shell->argv.n == 0)
        return shell->status;
    flow_close(&cli->flow); /* close everything: exec replaces this program */
    services_close(&cli->services);
    environment_reduce(shell->sees, NULL);
    execvp(shell->argv.v[0], shell->argv.v);
    return act_error_errno(err, errno, "cannot start '%s'", shell->argv.v[0]);
}

/* Tells whether somebody comes back to the terminal of 'a shell': he names neither a node nor a command. */
static bool ssh_comes_back(const struct cli *cli, const struct flow_run *run)
{
    struct run_shell how;

    return cli->words.n == 1 && run->status.state == RUN_RUNNING && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           run_shell_of(&run->spec.argv, &how) && !how.serves;
}

int cmd_ssh(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) command = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = cmd_ssh_check_words(cli, err);
    bool is_at = rc == 0 && is_address(cli->words.v[0]);

    if (rc == 0 && !is_at)
        rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);
    if (rc < 0)
        return rc;
    if (!is_at && ssh_comes_back(cli, &run))
        return cli_attend_shell(cli, &run, err);
    act_strv_copy(&command, cli->words.v + cli->words_before, cli->words.n - cli->words_before);
    rc = is_at ? find_shell_at(cli, &command, &shell, err) : find_shell_of_run(cli, &run, &command, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}

int cmd_tunnel(struct cli *cli, struct act_error *err)
{
    const char *node = cli->words.n == 2 ? cli->words.v[1] : NULL;
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    ACT_STRV_PUSH(&words, "tunnel", run.row.id);
    rc = flow_agent(&cli->flow, &run, node, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}
