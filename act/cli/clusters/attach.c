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
    sigset_t signals; /* that are waited for */
    pid_t shows;      /* 'a logs -f'; 0: it has ended, */
    int status;       /* with this exit status */
    pid_t tells;      /* 'a __interrupt', on its way; 0: there is none */
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

/* Kills a child, if it is there. */
static void attached_end(pid_t *child)
{
    if (*child <= 0)
        return;
    kill(*child, SIGKILL);
    while (waitpid(*child, NULL, 0) < 0 && errno == EINTR)
        continue;
    *child = 0;
}

/* Looks whether a child has ended, with which exit status. One that was stopped wants to ask on the terminal, which is
 * not its own: it is ended. */
static bool attached_has_ended(pid_t *child, int *out_status)
{
    int status;

    if (*child <= 0 || waitpid(*child, &status, WNOHANG | WUNTRACED) != *child)
        return false;
    if (WIFSTOPPED(status)) {
        if (WSTOPSIG(status) != SIGTTIN && WSTOPSIG(status) != SIGTTOU)
            return false;
        act_warn("the way to the cluster asks something on the terminal, which is not possible here");
        attached_end(child);
        *out_status = ACT_DENIED;
        return true;
    }
    *child = 0;
    *out_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

static void attached_look(struct attached *a)
{
    int told = 0;

    (void)attached_has_ended(&a->shows, &a->status);
    if (attached_has_ended(&a->tells, &told) && told == 0)
        act_note("Ctrl-C was sent to rank %s; twice quickly, or Ctrl-\\, leaves it alone", a->rank);
}

/* Sends Ctrl-C to the rank. That may take long, and must not keep anybody from leaving, so nobody waits for it here. */
static void attached_interrupt(struct attached *a)
{
    const char *const words[] = {"--quiet", a->run->row.id, a->rank, NULL};
    struct act_error err;

    if (a->tells > 0)
        act_note("Ctrl-C is on its way to rank %s; twice quickly leaves", a->rank);
    else if (attached_start(a, "__interrupt", words, &a->tells, &err) < 0)
        act_warn("%s", act_error_text(&err));
}

/* ---- until the end, or somebody leaves */

/* Ctrl-C is not sent while a second one may follow, which means that nobody wants it sent. Returns whether one did. */
static bool attached_is_twice(void)
{
    const struct timespec patience = {.tv_nsec = TWICE_MS * 1000000L};
    sigset_t second;

    sigemptyset(&second);
    sigaddset(&second, SIGINT);
    return sigtimedwait(&second, NULL, &patience) == SIGINT;
}

static void attached_stop(const struct attached *a)
{
    kill(-a->shows, SIGSTOP);
    raise(SIGSTOP);
    kill(-a->shows, SIGCONT);
}

static int attached_leave(struct attached *a)
{
    attached_end(&a->tells);
    if (a->shows == 0)
        return a->status;
    attached_end(&a->shows);
    act_note("run %s goes on; 'a attach %s' comes back", a->run->row.id, a->run->row.id);
    return 0;
}

/* Returns the exit status. */
static int attached_attend(struct attached *a)
{
    while (a->shows > 0 || a->tells > 0) {
        switch (sigwaitinfo(&a->signals, NULL)) {
        case SIGCHLD:
            attached_look(a);
            break;
        case SIGINT:
            if (attached_is_twice())
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
    return a->status;
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
    struct run_shell how;
    bool is_shell = run_shell_of(&run.spec.argv, &how);
    if (is_shell && CLI_OPTIONS(cli, logs)->rank >= 0)
        return act_error_set(err, ACT_USAGE, "run '%s' is of 'a shell': it has one terminal, not one for each rank",
                             run.row.id);
    if (run_state_is_final(run.status.state))
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: %s", run.row.id, run_state_name(run.status.state),
                             is_shell ? "its shell has ended" : "'a logs' shows its output");
    if (is_shell && how.serves)
        return act_error_set(err, ACT_USAGE, "run '%s' has no terminal: 'a notebook %s' comes back to it", run.row.id,
                             run.row.id);
    return is_shell ? cli_attend_shell(cli, &run, err) : attach_any(cli, &run, err);
}
