/* shell.c - 'a shell': a run whose command is a keeper (run/shell.h), and the terminal that it keeps. A
 * child, 'a __session', leads to it, by the way that 'a ssh' goes. */
#include <signal.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/kept.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/platform.h"
#include "run/shell.h"

enum { PAUSE_MOST_S = 10 }; /* between two tries to come back */

/* ---- the session */

int cmd_session(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    if (run_state_is_final(run.status.state)) /* since it was looked at last: who asks says how it ended */
        return RUN_SHELL_GONE;
    ACT_STRV_PUSH(&words, "session", run.row.id);
    if (cli->words.n == 2)
        act_strv_push(&words, cli->words.v[1]);
    rc = flow_agent(&cli->flow, &run, NULL, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}

/* Does that, and leaves the terminal as it was, however the child ended. */
static int shell_call(const struct cli *cli, const char *run, struct act_error *err)
{
    struct termios before;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    int status = kept_call(cli, run, NULL, true, NULL, err);

    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return status;
}

/* ---- the run */

/* Says what became of a run whose session has ended. Returns the exit status. */
static int shell_say_end(struct cli *cli, struct flow_run *run, int status)
{
    ACT_AUTOFREE char *id = act_strdup(run->row.id); /* which is looked for anew */
    struct act_error ignored;
    struct run_shell how;

    if (status == RUN_SHELL_PARTED)
        return 128 + SIGHUP;
    if (run_shell_of(&run->spec.argv, &how) && how.stays) {
        act_note("run %s goes on: 'a ssh %s' opens its terminal, 'a ssh %s 0' another shell, 'a abort %s' ends it", id,
                 id, id, id);
        return status;
    }
    if (status != 0)
        kept_look(cli, run);
    if (run_state_is_final(run->status.state))
        return flow_exit_status(&run->status) == status ? status : kept_report_end(run);
    if (status != 0 && kept_call(cli, id, "look", false, NULL, &ignored) != RUN_SHELL_GONE)
        act_note("not connected to run %s any more; its shell goes on for %d minutes: 'a ssh %s' comes back, 'a "
                 "abort %s' ends it",
                 id, KEPT_AWAY_S / 60, id, id);
    return status;
}

/* Tells whether a session was there, and has ended with this status. */
static bool shell_is_session_end(int status)
{
    return status >= 0 && status != RUN_SHELL_INTERRUPTED && status != RUN_SHELL_NOT_YET && !cli_interrupted;
}

static void shell_pause(int seconds)
{
    for (int i = 0; i < seconds && !cli_interrupted; i++)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

/* Tells whether the shell of a session that has ended with this status goes on, and can be reached again. Tries for as
 * long as the shell waits for somebody. */
static bool shell_comes_back(struct cli *cli, struct flow_run *run, int status)
{
    int64_t until_ms = act_now_monotonic_ms() + KEPT_AWAY_S * 1000;
    ACT_AUTOFREE char *id = act_strdup(run->row.id);
    struct act_error ignored;
    bool was_said = false;

    if (status == 0 || status == RUN_SHELL_PARTED || !kept_has_terminal())
        return false;
    for (int pause_s = 1; !cli_interrupted && act_now_monotonic_ms() < until_ms; pause_s += pause_s < PAUSE_MOST_S) {
        int there = kept_call(cli, id, "look", false, NULL, &ignored);
        if (there == RUN_SHELL_GONE)
            return false;
        if (there == 0) {
            act_note("the connection to run %s broke; here is its shell again", id);
            return true;
        }
        if (!was_said)
            act_warn("the connection to run %s broke; trying again for %d minutes, Ctrl-C ends that", id,
                     KEPT_AWAY_S / 60);
        was_said = true;
        shell_pause(pause_s);
    }
    return false;
}

/* Opens the terminal of a run, as soon as it has one. Returns the exit status of the shell. */
static int shell_attend(struct cli *cli, struct flow_run *run, bool is_own, struct act_error *err)
{
    cli_catch_signals(NULL);
    for (;;) {
        int rc = kept_wait(cli, run, err);
        if (rc < 0)
            return rc;
        if (run_state_is_final(run->status.state))
            return kept_report_end(run);
        int status = cli_interrupted ? RUN_SHELL_INTERRUPTED : shell_call(cli, run->row.id, err);
        while (shell_is_session_end(status) && shell_comes_back(cli, run, status))
            status = shell_call(cli, run->row.id, err);
        if (status == RUN_SHELL_INTERRUPTED || (status == 128 + SIGINT && cli_interrupted) ||
            (status == 128 + SIGTERM && cli_interrupted == SIGTERM && is_own && !kept_has_terminal()))
            return is_own ? kept_give_up(cli, run) : 128 + SIGINT;
        if (status != RUN_SHELL_NOT_YET)
            return status < 0 ? status : shell_say_end(cli, run, status);
        kept_look(cli, run);
    }
}

/* ---- the verbs */

/* Returns what people see of the run in place of its command, a new string. */
static char *shell_title(const struct act_strv *command)
{
    ACT_AUTOFREE char *line = flow_command_line(command);

    return *line ? act_sprintf("a shell -- %s", line) : act_strdup("a shell");
}

static int shell_check(const struct cli *cli, struct act_error *err)
{
    int rc = kept_check(cli, "a shell", err);

    if (rc < 0)
        return rc;
    if (cli->words.n == 0 && !cli->options.dry_run && !kept_has_terminal())
        return act_error_set(err, ACT_USAGE,
                             "a shell needs a terminal, and this command has none; with a command it needs none: a "
                             "shell -- COMMAND");
    return 0;
}

int cmd_shell(struct cli *cli, struct act_error *err)
{
    int64_t idle_s = CLI_OPTIONS(cli, managed)->idle_s;
    ACT_AUTOFREE char *title = shell_title(&cli->words);
    struct kept_run kept = {.how = {.idle_s = idle_s ? idle_s : KEPT_IDLE_S}, .command = &cli->words, .title = title};
    ACT_AUTO(flow_run) run = {0};
    int rc = shell_check(cli, err);

    if (rc == 0)
        rc = kept_start(cli, &kept, &run, err);
    return rc < 0 || cli->options.dry_run ? rc : shell_attend(cli, &run, true, err);
}

int cli_attend_shell(struct cli *cli, struct flow_run *run, struct act_error *err)
{
    if (!kept_has_terminal())
        return act_error_set(err, ACT_USAGE, "'a attach' needs a terminal, and this command has none");
    act_note("the shell of run %s; Enter shows its prompt, 'a ssh %s' comes back to it", run->row.id, run->row.id);
    return shell_attend(cli, run, false, err);
}
