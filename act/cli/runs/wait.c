#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command/signal.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "proc/proc.h"

/* The display while runs are waited for, and what is done when one has ended. */
struct shown {
    const struct cli *cli;
    bool terminal;
    int64_t at_s; /* when the status line was written: once a second is enough; 0: there is none */
};

/* Returns what the first run that has not ended does: there is nothing else to say of many. New string; NULL: all have
 * ended. */
static char *cmd_wait_next(const struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        const struct flow_run *run = &runs->v[i];
        const char *reason = run->status.reason;
        if (!run_state_is_final(run->status.state))
            return act_sprintf("%s %s%s%s", run->row.name ? run->row.name : cli_short_id(run->row.id),
                               run_state_name(run->status.state), *reason ? ": " : "", reason);
    }
    return NULL;
}

static char *cmd_wait_line_of(const struct flow_run *run, int64_t now_s)
{
    int64_t since_s = run->status.started_unix_s > 0 ? run->status.started_unix_s : run->row.created_unix_s;
    char time[ACT_UNIT_TEXT];

    act_duration_to_text(now_s > since_s ? now_s - since_s : 0, time);
    ACT_AUTOFREE char *called = cli_called(&run->row);
    return act_sprintf("%s  %s  %s%s%s", called, run_state_name(run->status.state), time,
                       *run->status.reason ? "  " : "", run->status.reason);
}

static void cmd_wait_show(void *arg, const struct flow_runs *runs, size_t n_ended)
{
    struct shown *shown = arg;
    int64_t now_s = act_now_unix_s();

    cli_end_beside(runs->n == 1 ? runs->v[0].row.id : NULL);
    if (!shown->terminal || now_s == shown->at_s)
        return;
    shown->at_s = now_s;
    if (runs->n > 1) {
        ACT_AUTOFREE char *next = cmd_wait_next(runs);
        ACT_AUTOFREE char *what = act_sprintf("runs have ended%s%s", next ? "; " : "", next ? next : "");
        cli_put_count("waiting", (int64_t)n_ended, (int64_t)runs->n, what);
        return;
    }
    ACT_AUTOFREE char *line = cmd_wait_line_of(runs->v, now_s);
    cli_put_in_place(line);
}

static void cmd_wait_clear(struct shown *shown)
{
    if (shown->at_s)
        cli_put_in_place("");
    shown->at_s = 0;
}

/* ---- --notify */

static void make_variables(const struct flow_run *run, struct act_strv *env)
{
    act_strv_pushf(env, "ACT_RUN_ID=%s", run->row.id);
    act_strv_pushf(env, "ACT_RUN_STATE=%s", run_state_name(run->status.state));
    act_strv_pushf(env, "ACT_RUN_EXIT_STATUS=%d", flow_exit_status(&run->status));
    act_strv_pushf(env, "ACT_RUN_NAME=%s", run->row.name ? run->row.name : "");
    act_strv_pushf(env, "ACT_RUN_CLUSTER=%s", run->row.cluster);
    act_strv_pushf(env, "ACT_RUN_REASON=%s", run->status.reason);
}

/* Starts the command of --notify. With --json nothing else may be on stdout. */
static int start_notify(const struct cli *cli, const struct flow_run *run, pid_t *out_pid, struct act_error *err)
{
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, CLI_OPTIONS(cli, wait)->notify, NULL};
    ACT_AUTO(act_strv) set = {0};

    make_variables(run, &set);
    fflush(stdout);
    return proc_start(
        &(struct proc_start){
            .argv = argv, .set = set.v, .in_fd = -1, .out_fd = cli->options.json ? STDERR_FILENO : -1, .err_fd = -1},
        out_pid, err);
}

/* Runs the command of --notify. How it ends says nothing about the run. */
static void notify(const struct cli *cli, const struct flow_run *run)
{
    struct act_error err;
    int status = 0;
    pid_t pid;

    if (start_notify(cli, run, &pid, &err) < 0) {
        act_warn("the command of --notify was not run: %s", act_error_text(&err));
        return;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status))
        act_warn("the command of --notify was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        act_warn("the command of --notify exited with status %d", WEXITSTATUS(status));
}

/* ---- how they ended */

static void cmd_wait_tell_ended(void *arg, const struct flow_run *run)
{
    struct shown *shown = arg;
    ACT_AUTOFREE char *called = cli_called(&run->row);

    cmd_wait_clear(shown);
    cli_note_end(run, called);
    if (CLI_OPTIONS(shown->cli, wait)->notify)
        notify(shown->cli, run);
}

/* Returns the exit status of the first of them that did not complete. */
static int exit_status(const struct flow_run *runs, size_t n)
{
    int status = 0;

    for (size_t i = 0; i < n && status == 0; i++)
        status = flow_exit_status(&runs[i].status);
    return status;
}

/* Prints the run, if one was named; else a list of those that were waited for. */
static int cmd_wait_print_json(const struct cli *cli, const struct flow_run *runs, size_t n, struct act_error *err)
{
    if (cli->words.n == 1)
        return cli_print_pack(err, "{s:o}", "run", cli_run_json(runs));
    return cli_print_list("runs", CLI_JSON_LIST(runs, n, cli_run_json), 0, err);
}

/* Finds the runs that --name and --tag mean now: others that come later are not waited for. */
static int find_labelled(struct cli *cli, struct act_strv *out, struct act_error *err)
{
    ACT_AUTO(flow_runs) runs = {0};
    int rc = cli_labelled_runs(cli, false, &runs, err);

    for (size_t i = 0; rc == 0 && i < runs.n; i++)
        act_strv_push(out, runs.v[i].row.id);
    return rc;
}

static int cmd_wait_for(struct cli *cli, const struct flow_waiting *how, struct flow_runs *runs, struct act_error *err)
{
    ACT_AUTO(act_strv) labelled = {0};
    int rc = cli_check_which(cli, 0, err);

    if (rc == 0 && cli->words.n == 0)
        rc = find_labelled(cli, &labelled, err);
    return rc == 0 ? flow_wait_for(&cli->flow, cli->words.n ? &cli->words : &labelled, how, runs, err) : rc;
}

int cmd_wait(struct cli *cli, struct act_error *err)
{
    const struct cli_wait_options *o = CLI_OPTIONS(cli, wait);
    struct shown shown = {.cli = cli, .terminal = isatty(STDERR_FILENO) && !cli->options.quiet};
    struct flow_waiting how = {
        .timeout_s = o->timeout_s, .any = o->any, .each = cmd_wait_show, .ended = cmd_wait_tell_ended, .arg = &shown};
    ACT_AUTO(flow_runs) runs = {0};

    if (o->notify && !*o->notify)
        return act_error_set(err, ACT_USAGE, "--notify needs a command");
    cli_end_beside(cli->words.n == 1 ? cli->words.v[0] : NULL);
    int rc = cmd_wait_for(cli, &how, &runs, err);
    cmd_wait_clear(&shown);
    if (rc < 0)
        return rc;
    size_t n = o->any ? 1 : runs.n;
    int printed = cli->options.json ? cmd_wait_print_json(cli, runs.v, n, err) : 0;
    return printed < 0 ? printed : exit_status(runs.v, n);
}
