/* attach.c - 'a attach': back to the terminal of a run of 'a shell'; of any other run, the output of a rank as it
 * comes, which 'a logs -f' shows, and Ctrl-C for that rank, which 'a __interrupt' brings to its node. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/platform.h"
#include "proc/proc.h"
#include "run/shell.h"

enum { TWICE_MS = 700 }; /* in which a second Ctrl-C leaves */

struct attached {
    const struct cli *cli;
    const struct flow_run *run;
    char rank[12];
    pid_t shows;      /* 'a logs -f' */
    sigset_t signals; /* that are waited for */
};

/* ---- the rank's node */

int cmd_interrupt(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(flow_run) run = {0};
    int64_t rank;
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    if (!act_int_from_text(cli->words.v[1], &rank) || rank < 0)
        return act_error_set(err, ACT_USAGE, "'%s' is no rank", cli->words.v[1]);
    ACT_AUTOFREE char *node = act_sprintf("%d", (int)(rank / run.spec.procs_per_node));
    ACT_STRV_PUSH(&words, "interrupt", run.row.id, cli->words.v[1]);
    rc = flow_agent(&cli->flow, &run, node, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}

/* ---- children: each in a group of its own, as Ctrl-C is for this process */

static int attached_start(const struct attached *a, const char *verb, const char *const *more, pid_t *out_pid,
                          struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};

    ACT_STRV_PUSH(&words, "/proc/self/exe", verb);
    if (a->cli->options.cluster)
        ACT_STRV_PUSH(&words, "--cluster", a->cli->options.cluster);
    act_strv_add(&words, more);
    return proc_start(&(struct proc_start){.argv = words.v, .in_fd = -1, .out_fd = -1, .err_fd = -1, .own_group = true},
                      out_pid, err);
}

static int attached_reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void attached_interrupt(const struct attached *a)
{
    struct act_error err;
    pid_t pid;
    int rc =
        attached_start(a, "__interrupt", (const char *const[]){"--quiet", a->run->row.id, a->rank, NULL}, &pid, &err);

    if (rc < 0)
        act_warn("%s", act_error_text(&err));
    else if (attached_reap(pid) == 0)
        act_note("Ctrl-C was sent to rank %s; twice quickly, or Ctrl-\\, leaves it alone", a->rank);
}

/* ---- until the end, or somebody leaves */

/* Ctrl-C is not sent while a second one may follow, which means that nobody wants it sent. Returns whether one did. */
static bool attached_is_twice(const struct attached *a)
{
    const struct timespec patience = {.tv_nsec = TWICE_MS * 1000000L};
    sigset_t second;

    sigemptyset(&second);
    sigaddset(&second, SIGINT);
    (void)a;
    return sigtimedwait(&second, NULL, &patience) == SIGINT;
}

static void attached_stop(const struct attached *a)
{
    kill(-a->shows, SIGSTOP);
    raise(SIGSTOP);
    kill(-a->shows, SIGCONT);
}

static int attached_leave(const struct attached *a)
{
    kill(a->shows, SIGKILL);
    (void)attached_reap(a->shows);
    act_note("run %s goes on; 'a attach %s' comes back", a->run->row.id, a->run->row.id);
    return 0;
}

/* Returns the exit status. */
static int attached_attend(const struct attached *a)
{
    int status;

    for (;;) {
        switch (sigwaitinfo(&a->signals, NULL)) {
        case SIGCHLD:
            if (waitpid(a->shows, &status, WNOHANG) == a->shows)
                return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            break;
        case SIGINT:
            if (attached_is_twice(a))
                return attached_leave(a);
            attached_interrupt(a);
            break;
        case SIGTSTP:
            attached_stop(a);
            break;
        case SIGQUIT:
        case SIGTERM:
        case SIGHUP:
            return attached_leave(a);
        default:
            break;
        }
    }
}

/* ---- the verb */

static int attach_any(struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    struct attached a = {.cli = cli, .run = run};
    int64_t rank = CLI_OPTIONS(cli, logs)->rank;
    int rc = cli_check_rank(cli, run, err);

    if (rc < 0)
        return rc;
    snprintf(a.rank, sizeof(a.rank), "%d", rank > 0 ? (int)rank : 0);
    sigemptyset(&a.signals);
    for (const int *sig = (const int[]){SIGINT, SIGQUIT, SIGTSTP, SIGTERM, SIGHUP, SIGCHLD, 0}; *sig; sig++)
        sigaddset(&a.signals, *sig);
    sigprocmask(SIG_BLOCK, &a.signals, NULL);
    rc = attached_start(&a, "logs", (const char *const[]){"-f", "--rank", a.rank, run->row.id, NULL}, &a.shows, err);
    return rc < 0 ? rc : attached_attend(&a);
}

int cmd_attach(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc < 0)
        return rc;
    bool is_shell = run_shell_is(&run.spec.argv);
    if (is_shell && CLI_OPTIONS(cli, logs)->rank >= 0)
        return act_error_set(err, ACT_USAGE, "run '%s' is of 'a shell': it has one terminal, not one for each rank",
                             run.row.id);
    if (run_state_is_final(run.status.state))
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: %s", run.row.id, run_state_name(run.status.state),
                             is_shell ? "its shell has ended" : "'a logs' shows its output");
    return is_shell ? cli_attend_shell(cli, &run, err) : attach_any(cli, &run, err);
}
