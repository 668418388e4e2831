/* shell.c - 'a shell' and 'a attach': a run whose command is a keeper (run/shell.h), and the terminal that it keeps. A
 * child, 'a __session', leads to it, by the way that 'a ssh' goes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/runs/runs.h"
#include "cli/start/options.h"
#include "cli/start/start.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/submit/submit.h"
#include "platform/platform.h"
#include "proc/proc.h"
#include "run/shell.h"

enum { IDLE_S = 3600, AWAY_S = 5 * 60 };

static bool shell_has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* ---- the session */

int cmd_session(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    ACT_STRV_PUSH(&words, "session", run.row.id);
    if (cli->words.n == 2)
        act_strv_push(&words, cli->words.v[1]);
    rc = flow_agent(&cli->flow, &run, NULL, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}

/* Runs 'a __session', and returns its exit status. */
static int shell_call(const struct cli *cli, const char *run, bool looks, struct act_error *err)
{
    static char self[] = "/proc/self/exe", verb[] = "__session", quiet[] = "--quiet", cluster[] = "--cluster";
    ACT_AUTO(act_strv) words = {0};
    int status = 0;
    pid_t pid;

    act_strv_copy(&words, (char *[]){self, verb, quiet}, 3);
    if (cli->options.cluster)
        act_strv_copy(&words, (char *[]){cluster, cli->options.cluster}, 2);
    act_strv_push(&words, run);
    if (looks)
        act_strv_push(&words, "look");
    int rc = proc_start(
        &(struct proc_start){.argv = words.v, .in_fd = looks ? -1 : STDIN_FILENO, .out_fd = -1, .err_fd = -1}, &pid,
        err);
    if (rc < 0)
        return rc;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Does that, and leaves the terminal as it was, however the child ended. */
static int shell_call_on_terminal(const struct cli *cli, const char *run, struct act_error *err)
{
    struct termios before;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    int status = shell_call(cli, run, false, err);

    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return status;
}

/* ---- the run */

struct shell_waiting {
    const struct cli *cli;
    bool is_shown; /* a line that is written again and again */
    char said[sizeof(((struct run_status *)0)->reason)];
};

static void shell_show_waiting(void *arg, const struct flow_run *run)
{
    struct shell_waiting *w = arg;
    int64_t since_s = act_now_unix_s() - run->row.created_unix_s;
    const char *reason = run->status.reason;
    char time[ACT_UNIT_TEXT];

    if (!isatty(STDERR_FILENO) || w->cli->options.quiet) {
        if (strcmp(reason, w->said) != 0)
            act_note("run %s waits: %s", run->row.id, reason);
        snprintf(w->said, sizeof(w->said), "%s", reason);
        return;
    }
    act_duration_to_text(since_s > 0 ? since_s : 0, time);
    ACT_AUTOFREE char *line = act_sprintf("%s  %s  %s%s%s", run->row.id, run_state_name(run->status.state), time,
                                          *reason ? "  " : "", reason);
    cli_put_in_place(line);
    w->is_shown = true;
}

static void shell_clear(struct shell_waiting *w)
{
    if (w->is_shown)
        cli_put_in_place("");
    w->is_shown = false;
}

static bool shell_is_interrupted(void *arg)
{
    (void)arg;
    return cli_interrupted != 0;
}

/* Ends the run, whose user does not want to wait for it any more. */
static int shell_give_up(struct cli *cli, struct flow_run *run)
{
    struct act_error err;
    bool was_final;

    if (flow_abort(&cli->flow, run, &was_final, &err) < 0)
        act_warn("%s; 'a abort %s' ends it", act_error_text(&err), run->row.id);
    else
        act_note("run %s is ended", run->row.id);
    return 128 + SIGINT;
}

static int shell_report_end(const struct flow_run *run)
{
    act_note("run %s has ended: %s%s%s", run->row.id, run_state_name(run->status.state),
             run->status.reason[0] ? ": " : "", run->status.reason);
    return flow_exit_status(&run->status);
}

/* Finds out what the run does now; one that cannot be asked is as it was. */
static void shell_look(struct cli *cli, struct flow_run *run)
{
    struct flow_run now;
    struct act_error ignored;

    if (flow_find_run(&cli->flow, run->row.id, &now, &ignored) < 0)
        return;
    flow_run_release(run);
    *run = now;
}

/* Says what became of a run whose session has ended. Returns the exit status. */
static int shell_say_end(struct cli *cli, struct flow_run *run, int status)
{
    ACT_AUTOFREE char *id = act_strdup(run->row.id); /* which is looked for anew */
    struct act_error ignored;
    struct run_shell how = {0};
    size_t first;

    (void)run_shell_read(run->spec.argv.v + 1, run->spec.argv.n - 1, &how, &first);
    if (how.stays) {
        act_note("run %s goes on: 'a attach %s' opens its terminal, 'a ssh %s' another shell, 'a abort %s' ends it", id,
                 id, id, id);
        return status;
    }
    if (status != 0)
        shell_look(cli, run);
    if (run_state_is_final(run->status.state))
        return flow_exit_status(&run->status) == status ? status : shell_report_end(run);
    if (status != 0 && shell_call(cli, id, true, &ignored) != RUN_SHELL_GONE)
        act_note("not connected to run %s any more; its shell goes on for %d minutes: 'a attach %s' comes back, 'a "
                 "abort %s' ends it",
                 id, AWAY_S / 60, id, id);
    return status;
}

/* Opens the terminal of a run, as soon as it has one. Returns the exit status of the shell. */
static int shell_attend(struct cli *cli, struct flow_run *run, bool is_own, struct act_error *err)
{
    struct shell_waiting w = {.cli = cli};
    struct flow_beginning how = {.each = shell_show_waiting, .stops = shell_is_interrupted, .arg = &w};

    cli_catch_signals(NULL);
    for (;;) {
        int rc = flow_wait_begun(&cli->flow, run, &how, err);
        shell_clear(&w);
        if (rc < 0)
            return rc;
        if (run_state_is_final(run->status.state))
            return shell_report_end(run);
        int status = cli_interrupted ? RUN_SHELL_INTERRUPTED : shell_call_on_terminal(cli, run->row.id, err);
        if (status == RUN_SHELL_INTERRUPTED || (status == 128 + SIGINT && cli_interrupted))
            return is_own ? shell_give_up(cli, run) : 128 + SIGINT;
        if (status != RUN_SHELL_NOT_YET)
            return status < 0 ? status : shell_say_end(cli, run, status);
        shell_look(cli, run);
    }
}

/* ---- the verbs */

static int shell_check(const struct cli *cli, struct act_error *err)
{
    enum { DAY_S = 86400 };
    const struct config *c = &cli->flow.config;

    if (!platform_find(c->platform)->nodes.agent)
        return act_error_set(err, ACT_USAGE,
                             "a shell cannot be opened on the platform '%s' of cluster '%s': its nodes are not reached "
                             "from here",
                             c->platform, c->cluster);
    if (CLI_OPTIONS(cli, nodes)->time_s > INT32_MAX || CLI_OPTIONS(cli, managed)->idle_s > INT32_MAX)
        return act_error_set(err, ACT_USAGE, "--time and --idle take at most %d days", INT32_MAX / DAY_S);
    if (cli->words.n == 0 && !cli->options.dry_run && !shell_has_terminal())
        return act_error_set(err, ACT_USAGE,
                             "a shell needs a terminal, and this command has none; with a command it needs none: a "
                             "shell -- COMMAND");
    return 0;
}

/* Takes from the configuration what is for commands that nobody looks at. */
static void shell_configure(struct cli *cli)
{
    struct config *c = &cli->flow.config;
    const struct platform_row *row = platform_find(c->platform);
    int64_t time_s = CLI_OPTIONS(cli, nodes)->time_s;

    c->multi_process = false;
    c->retry.times = 0;
    act_str_replace(&c->hang, NULL);
    c->sleep_if_fail = c->sleep_if_succeed = false;
    if (time_s > 0 && row->settings.time_limit.set)
        row->settings.time_limit.set(c, time_s);
}

/* Returns what people see of the run in place of its command, a new string. */
static char *shell_title(const struct act_strv *command)
{
    ACT_AUTOFREE char *line = flow_command_line(command);

    return *line ? act_sprintf("a shell -- %s", line) : act_strdup("a shell");
}

static int shell_submit(struct cli *cli, struct flow_submit *io, struct act_error *err)
{
    const struct cli_nodes_options *o = CLI_OPTIONS(cli, nodes);
    int64_t idle_s = CLI_OPTIONS(cli, managed)->idle_s;
    const struct run_shell how = {
        .idle_s = idle_s ? idle_s : IDLE_S, .limit_s = o->time_s, .away_s = AWAY_S, .stays = o->keep};
    ACT_AUTOFREE char *title = shell_title(&cli->words);
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(flow_init) code = {0};
    struct cli_packing packing;

    run_shell_words(&how, &argv);
    act_strv_copy(&argv, cli->words.v, cli->words.n);
    io->argv = &argv;
    io->title = title;
    io->code = CLI_OPTIONS(cli, start)->last_package ? NULL : &code;
    cli_packing_start(&packing, cli, &code);
    int rc = cli_labels(cli, &io->labels, err);
    if (rc == 0)
        rc = flow_submit(&cli->flow, io, err);
    io->argv = NULL;
    io->title = NULL;
    io->code = NULL;
    return rc;
}

int cmd_shell(struct cli *cli, struct act_error *err)
{
    struct flow_submit io = {.dry_run = cli->options.dry_run, .confirm = cli_confirm_for, .arg = cli};
    ACT_AUTO(flow_run) run = {0};
    int rc = shell_check(cli, err);

    if (rc < 0)
        return rc;
    shell_configure(cli);
    rc = shell_submit(cli, &io, err);
    if (rc == 0 && io.dry_run) {
        rc = cli_print_spec(io.preview ? io.preview : run_spec_to_json(&io.spec), err);
    } else if (rc == 0) {
        act_note("run %s on %s; Ctrl-C while it waits ends it", io.spec.id, io.spec.cluster);
        rc = flow_find_run(&cli->flow, io.spec.id, &run, err);
        if (rc == 0)
            rc = shell_attend(cli, &run, true, err);
    }
    run_spec_release(&io.spec);
    return rc;
}

int cmd_attach(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    if (!run_shell_is(&run.spec.argv))
        return act_error_set(err, ACT_USAGE,
                             "run '%s' is not of 'a shell', so it has no terminal; 'a logs -f %s' shows its output, "
                             "'a ssh %s' opens a shell beside it",
                             run.row.id, run.row.id, run.row.id);
    if (run_state_is_final(run.status.state))
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: its shell has ended", run.row.id,
                             run_state_name(run.status.state));
    if (!shell_has_terminal())
        return act_error_set(err, ACT_USAGE, "'a attach' needs a terminal, and this command has none");
    return shell_attend(cli, &run, false, err);
}
