#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "proc/proc.h"
#include "run/shell.h"

/* Tells whether a word is an address: no run id has dots. */
static bool is_address(const char *word)
{
    struct in_addr address;

    return inet_pton(AF_INET, word, &address) == 1;
}

static int cmd_ssh_check_words(const struct cli *cli, struct act_error *err)
{
    const struct act_strv *ports = &CLI_OPTIONS(cli, nodes)->ports;

    if (cli->words_before == 2 && is_address(cli->words.v[0]))
        return act_error_set(err, ACT_USAGE, "'%s' is one node: '%s' is too much", cli->words.v[0], cli->words.v[1]);
    if (cli->words_before >= 1 && ports->n > 0 && is_address(cli->words.v[0]))
        return act_error_set(err, ACT_USAGE, "-L leads to a node of a run, and '%s' is an address", cli->words.v[0]);
    if (cli->words_before >= 1 && cli->words_before <= 2)
        return cli_check_ports(ports->v, ports->n, err);
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

/* ---- -L: this command leads to the ports, and a child, 'a ssh' without -L, has the terminal */

struct ssh_child {
    const struct cli *cli;
    const char *run;
    pid_t pid;  /* 0: it has not begun, or has ended, */
    int status; /* with this exit status */
    bool is_over;
};

static void ssh_child_take(struct ssh_child *c, int options)
{
    int status;

    if (c->pid <= 0 || waitpid(c->pid, &status, options) != c->pid)
        return;
    c->pid = 0;
    c->is_over = true;
    c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool ssh_child_is_over(void *arg)
{
    struct ssh_child *c = arg;

    ssh_child_take(c, WNOHANG);
    return c->is_over;
}

static void ssh_child_ended(int signal)
{
    (void)signal; /* it only wakes who waits for more than that */
}

/* From now on Ctrl-C and the like are for the child. */
static void ssh_child_start(void *arg, uint16_t port)
{
    const struct sigaction wake = {.sa_handler = ssh_child_ended, .sa_flags = SA_NOCLDSTOP};
    struct ssh_child *c = arg;
    const struct act_strv *words = &c->cli->words;
    ACT_AUTO(act_strv) argv = {0};
    struct act_error err;

    (void)port;
    cli_push_child(c->cli, c->cli->command->name, &argv);
    if (c->cli->options.quiet)
        act_strv_push(&argv, "--quiet");
    act_strv_push(&argv, c->run);
    act_strv_copy(&argv, words->v + 1, c->cli->words_before - 1);
    act_strv_push(&argv, "--");
    act_strv_copy(&argv, words->v + c->cli->words_before, words->n - c->cli->words_before);
    sigaction(SIGCHLD, &wake, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    int rc = proc_start(
        &(struct proc_start){.argv = argv.v, .in_fd = STDIN_FILENO, .out_fd = -1, .err_fd = -1, .ends_with_us = true},
        &c->pid, &err);
    if (rc < 0) {
        act_warn("%s", act_error_text(&err));
        c->is_over = true;
        c->status = -rc;
    }
}

/* Returns the exit status of the child, which ends when this command is ended. */
static int ssh_beside_ports(struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    const struct act_strv *ports = &CLI_OPTIONS(cli, nodes)->ports;
    struct ssh_child child = {.cli = cli, .run = run->row.id};
    int rc = cli_forward(cli,
                         &(struct cli_ports){.run = run,
                                             .node = cli->words_before == 2 ? cli->words.v[1] : NULL,
                                             .v = ports->v,
                                             .n = ports->n,
                                             .ready = ssh_child_start,
                                             .is_over = ssh_child_is_over,
                                             .arg = &child},
                         err);

    if (child.pid > 0 && cli_interrupted)
        kill(child.pid, SIGTERM);
    while (child.pid > 0)
        ssh_child_take(&child, 0);
    return child.is_over ? child.status : rc != 0 ? rc : 128 + SIGINT;
}

int cmd_ssh(struct cli *cli, struct act_error *err)
{
    const struct act_strv *ports = &CLI_OPTIONS(cli, nodes)->ports;
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) command = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = cmd_ssh_check_words(cli, err);
    bool is_at = rc == 0 && is_address(cli->words.v[0]);

    if (rc == 0 && !is_at)
        rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);
    if (rc < 0)
        return rc;
    if (ports->n > 0)
        return ssh_beside_ports(cli, &run, err);
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
