/* kept.c - runs whose command is a keeper (run/shell.h): submitted, waited for, given up. */
#include "cli/clusters/kept.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
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
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/submit/submit.h"
#include "platform/platform.h"
#include "proc/proc.h"

enum {
    LINES_MOST = 1 << 16,
    STAY_S = 5 /* between two looks at the child that stays, less than its keeper waits for another one (keeper.c) */
};

/* ---- it waits */

struct kept_waiting {
    const struct cli *cli;
    bool is_shown; /* a line that is written again and again */
    char said[sizeof(((struct run_status *)0)->reason)];
};

static void kept_show_waiting(void *arg, const struct flow_run *run)
{
    struct kept_waiting *w = arg;
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
    ACT_AUTOFREE char *line =
        act_sprintf("%s  %s%s%s", run_state_name(run->status.state), time, *reason ? "  " : "", reason);
    cli_put_in_place(line);
    w->is_shown = true;
}

static void kept_clear(struct kept_waiting *w)
{
    if (w->is_shown)
        cli_put_in_place("");
    w->is_shown = false;
}

static bool kept_is_interrupted(void *arg)
{
    (void)arg;
    return cli_interrupted != 0;
}

int kept_wait(struct cli *cli, struct flow_run *run, struct act_error *err)
{
    struct kept_waiting w = {.cli = cli};
    struct flow_beginning how = {.each = kept_show_waiting, .stops = kept_is_interrupted, .arg = &w};
    int rc = flow_wait_begun(&cli->flow, run, &how, err);

    kept_clear(&w);
    return rc;
}

int kept_give_up(struct cli *cli, struct flow_run *run)
{
    struct act_error err;
    bool was_final;

    flow_close(&cli->flow); /* Ctrl-C has ended ssh as well, which holds its connections */
    flow_open_bare(cli->options.cluster, &cli->flow);
    cli->flow.services = &cli->services;
    if (flow_abort(&cli->flow, run, &was_final, &err) < 0)
        act_warn("%s; 'a abort %s' ends it", act_error_text(&err), run->row.id);
    else
        act_note("run %s is ended", run->row.id);
    return 128 + (cli_interrupted ? cli_interrupted : SIGINT);
}

int kept_report_end(const struct flow_run *run)
{
    act_note("run %s has ended: %s%s%s", run->row.id, run_state_name(run->status.state),
             run->status.reason[0] ? ": " : "", run->status.reason);
    return flow_exit_status(&run->status);
}

void kept_look(struct cli *cli, struct flow_run *run)
{
    struct flow_run now;
    struct act_error ignored;

    if (flow_find_run(&cli->flow, run->row.id, &now, &ignored) < 0)
        return;
    flow_run_release(run);
    *run = now;
}

/* ---- it is submitted */

int kept_check(const struct cli *cli, const char *what, struct act_error *err)
{
    enum { DAY_S = 86400 };
    const struct config *c = cli->flow.config;

    if (!platform_find(c->platform)->nodes.agent)
        return act_error_set(err, ACT_USAGE,
                             "%s cannot be opened on the platform '%s' of cluster '%s': its nodes are not reached from "
                             "here",
                             what, c->platform, c->cluster);
    if (CLI_OPTIONS(cli, nodes)->time_s > INT32_MAX || CLI_OPTIONS(cli, managed)->idle_s > INT32_MAX)
        return act_error_set(err, ACT_USAGE, "--time and --idle take at most %d days", INT32_MAX / DAY_S);
    return 0;
}

/* Takes from the configuration what is for commands that nobody looks at. */
static void kept_configure(struct cli *cli)
{
    struct config *c = cli->flow.config;
    const struct platform_row *row = platform_find(c->platform);
    int64_t time_s = CLI_OPTIONS(cli, nodes)->time_s;

    c->multi_process = false;
    c->retry.times = 0;
    act_str_replace(&c->hang, NULL);
    c->sleep_if_fail = c->sleep_if_succeed = false;
    if (time_s > 0 && row->settings.time_limit.set)
        row->settings.time_limit.set(c, time_s);
}

static int kept_submit(struct cli *cli, struct kept_run *kept, struct flow_submit *io, struct act_error *err)
{
    const struct cli_nodes_options *o = CLI_OPTIONS(cli, nodes);
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(flow_init) code = {0};
    struct cli_packing packing;

    kept->how.limit_s = o->time_s;
    kept->how.away_s = KEPT_AWAY_S;
    kept->how.stays = o->keep;
    run_shell_words(&kept->how, &argv);
    act_strv_copy(&argv, kept->command->v, kept->command->n);
    kept_configure(cli);
    io->argv = &argv;
    io->title = kept->title;
    io->dry_run = cli->options.dry_run;
    io->confirm = cli_confirm_for;
    io->arg = cli;
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

int kept_start(struct cli *cli, struct kept_run *kept, struct flow_run *out, struct act_error *err)
{
    struct flow_submit io = {0};
    int rc = kept_submit(cli, kept, &io, err);

    if (rc == 0 && io.dry_run) {
        rc = cli_print_spec(io.preview ? io.preview : run_spec_to_json(&io.spec), err);
    } else if (rc == 0) {
        cli_catch_signals(NULL);
        act_note("run %s on %s; Ctrl-C while it waits ends it", io.spec.id, io.spec.cluster);
        rc = flow_find_run(&cli->flow, io.spec.id, out, err);
    }
    run_spec_release(&io.spec);
    return rc;
}

/* ---- what runs on its node */

bool kept_has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Returns the last line that comes, a new string: what a login shell prints comes before it. */
static char *kept_read_line(int fd)
{
    ACT_AUTO(act_buf) all = {0};
    char piece[512];
    ssize_t n;

    while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && all.len < LINES_MOST)
            act_buf_add(&all, piece, (size_t)n);
    while (all.len > 0 && all.data[all.len - 1] == '\n')
        all.data[--all.len] = '\0';
    const char *last = all.len > 0 ? strrchr(all.data, '\n') : NULL;
    return act_strdup(last ? last + 1 : all.len > 0 ? all.data : "");
}

/* Appends the words of 'a __session RUN [WHAT]'. */
static void kept_push_session(const struct cli *cli, const char *run, const char *what, struct act_strv *out)
{
    cli_push_child(cli, "__session", out);
    ACT_STRV_PUSH(out, "--quiet", run);
    if (what)
        act_strv_push(out, what);
}

/* A child, 'a __session RUN stay', by which the keeper of a command without a terminal hears when this program is gone,
 * however that ended. */
struct kept_stay {
    const struct cli *cli;
    const char *run;
    pid_t pid; /* 0: there is none */
    int fd;    /* its input */
};

static void kept_stay_begin(struct kept_stay *stay)
{
    ACT_AUTO(act_strv) words = {0};
    struct act_error ignored;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    ACT_AUTOCLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    kept_push_session(stay->cli, stay->run, "stay", &words);
    int rc = proc_start(
        &(struct proc_start){
            .argv = words.v, .in_fd = pair[0], .out_fd = null, .err_fd = null, .own_group = true, .ends_with_us = true},
        &stay->pid, &ignored);
    close(pair[0]);
    stay->fd = pair[1];
    if (rc == 0)
        return;
    close(stay->fd);
    stay->pid = 0;
}

static void kept_stay_end(struct kept_stay *stay)
{
    if (stay->pid <= 0)
        return;
    close(stay->fd);
    kill(stay->pid, SIGKILL);
    while (waitpid(stay->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    stay->pid = 0;
}

/* Makes it anew if it has ended, as its connection broke; else uses that, lest somebody on the way ends what is idle.
 */
static void kept_stay_go_on(struct kept_stay *stay)
{
    if (stay->pid > 0 && waitpid(stay->pid, NULL, WNOHANG) == 0) {
        (void)send(stay->fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    if (stay->pid > 0)
        close(stay->fd);
    stay->pid = 0;
    kept_stay_begin(stay);
}

/* Waits for the end of a child, and passes SIGTERM on to it; Ctrl-C comes from the terminal to both. known: what
 * cli_interrupted was when somebody last heeded it. stay goes on beside it, if it is not NULL. Returns the child's exit
 * status. */
static int kept_wait_child(pid_t pid, int known, struct kept_stay *stay)
{
    const struct timespec pause = {.tv_sec = STAY_S};
    bool is_told = false;
    sigset_t set, before;
    int status = 0, got;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    bool tells = cli_interrupted == SIGTERM && known != SIGTERM;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (tells)
            kill(pid, SIGTERM);
        is_told = is_told || tells;
        got = sigtimedwait(&set, NULL, stay ? &pause : NULL);
        tells = got == SIGTERM;
        if (stay && got < 0 && errno == EAGAIN)
            kept_stay_go_on(stay);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (is_told) {
        cli_interrupted = SIGTERM;
        return 128 + SIGTERM;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int kept_call(const struct cli *cli, const char *run, const char *what, bool takes_input, char **out,
              struct act_error *err)
{
    const bool has_owner = takes_input && !kept_has_terminal();
    const int known = takes_input ? 0 : cli_interrupted;
    struct kept_stay stay = {.cli = cli, .run = run};
    ACT_AUTO(act_strv) words = {0};
    int pipes[2] = {-1, -1};
    pid_t pid;

    kept_push_session(cli, run, what, &words);
    if (out && pipe2(pipes, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot make a pipe");
    ACT_AUTOCLOSE int null = what && !out ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (has_owner) /* first, as what is not there cannot be missed */
        kept_stay_begin(&stay);
    int rc = proc_start(&(struct proc_start){.argv = words.v,
                                             .in_fd = takes_input ? STDIN_FILENO : -1,
                                             .out_fd = pipes[1],
                                             .err_fd = null,
                                             .ends_with_us = true},
                        &pid, err);
    if (out)
        close(pipes[1]);
    if (rc == 0 && out)
        *out = kept_read_line(pipes[0]);
    if (out)
        close(pipes[0]);
    int status = rc < 0 ? rc : kept_wait_child(pid, known, has_owner ? &stay : NULL);
    kept_stay_end(&stay);
    return status;
}
