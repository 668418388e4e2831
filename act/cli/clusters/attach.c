/* attach.c - 'a attach': back to the terminal of a run of 'a shell'; of any other run, the output of a rank as it
 * comes, which 'a logs -f' shows, Ctrl-C for that rank, which 'a __interrupt' brings to its node, and what is typed,
 * which 'a __input' brings there, if the run has an input. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/kept.h"
#include "cli/print/print.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/platform.h"
#include "proc/proc.h"
#include "run/shell.h"

enum {
    TWICE_MS = 700,      /* in which a second Ctrl-C leaves */
    AGAIN_MS = 2000,     /* between two tries to reach the input */
    LOOK_MS = 500,       /* between two looks whether it is in the foreground */
    TYPED_MOST = 4096,   /* in a frame (node/feed.h) */
    FRAME_HEAD_BYTES = 2 /* its length */
};

/* The input on its way to the run. */
struct attached_input {
    bool of_terminal; /* it is typed on one */
    bool is_over;     /* nothing more can be brought there; so it begins where the run has no input */
    bool has_ended;   /* nothing more comes from here */
    pid_t brings;     /* 'a __input'; 0: it does not run, */
    int to;           /* its input */
    int64_t again_ms; /* when it is started anew */
    bool was_lost;    /* the connection, which was said */
    char frame[FRAME_HEAD_BYTES + TYPED_MOST];
    size_t at, n; /* of the frame: what was taken, all */
};

struct attached {
    const struct cli *cli;
    const struct flow_run *run;
    char rank[12];
    sigset_t signals; /* that are waited for, */
    int signal_fd;    /* here */
    int null;
    pid_t shows; /* 'a logs -f'; 0: it has ended, */
    int status;  /* with this exit status */
    pid_t tells; /* 'a __interrupt', on its way; 0: there is none */
    struct attached_input input;
};

/* ---- the rank's node */

/* Becomes the agent there, with the words: verb, run, rank. */
static int attach_reach_rank(struct cli *cli, const char *verb, const struct flow_run *run, struct act_error *err)
{
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    int64_t rank;

    if (!act_int_from_text(cli->words.v[1], &rank) || rank < 0)
        return act_error_set(err, ACT_USAGE, "'%s' is not a rank", cli->words.v[1]);
    ACT_AUTOFREE char *node = act_sprintf("%d", (int)(rank / run->spec.procs_per_node));
    ACT_STRV_PUSH(&words, verb, run->row.id, cli->words.v[1]);
    int rc = flow_agent(&cli->flow, run, node, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}

int cmd_interrupt(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    return rc < 0 ? rc : attach_reach_rank(cli, "interrupt", &run, err);
}

int cmd_input(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);

    if (rc == 0)
        rc = kept_wait(cli, &run, err);
    if (rc < 0)
        return rc;
    return run_state_is_final(run.status.state) ? RUN_SHELL_GONE : attach_reach_rank(cli, "input", &run, err);
}

/* Tells whether a terminal takes what is said now: nobody may read it any more. */
static bool attached_may_say(void)
{
    struct pollfd p = {STDERR_FILENO, POLLOUT, 0};

    return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

/* ---- children: each in a group of its own, as Ctrl-C is for this process */

static int attached_start(const struct attached *a, const char *verb, const char *const *more, int in_fd, int out_fd,
                          pid_t *out_pid, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};

    cli_push_child(a->cli, verb, &words);
    act_strv_add(&words, more);
    return proc_start(
        &(struct proc_start){
            .argv = words.v, .in_fd = in_fd, .out_fd = out_fd, .err_fd = -1, .own_group = true, .ends_with_us = true},
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

/* ---- what is typed */

static void attached_begin_frame(struct attached_input *in, size_t len)
{
    in->frame[0] = (char)(len >> 8);
    in->frame[1] = (char)(len & 0xff);
    in->at = 0;
    in->n = FRAME_HEAD_BYTES + len;
}

/* Starts what brings it there, and sends again what that one before it has not taken whole. */
static void attached_start_input(struct attached *a)
{
    const char *const words[] = {"--quiet", a->run->row.id, a->rank, NULL};
    struct attached_input *in = &a->input;
    struct act_error err;
    int ends[2];

    in->again_ms = act_now_monotonic_ms() + AGAIN_MS;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    int rc = attached_start(a, "__input", words, ends[0], a->null, &in->brings, &err);
    close(ends[0]);
    if (rc < 0) {
        act_warn("%s", act_error_text(&err));
        close(ends[1]);
        in->is_over = true;
        return;
    }
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    in->to = ends[1];
    in->at = 0;
    if (in->has_ended)
        attached_begin_frame(in, 0);
}

/* Notes that the process has ended which brought the input there. */
static void attached_input_ended(struct attached *a, int status)
{
    struct attached_input *in = &a->input;

    close(in->to);
    in->to = -1;
    in->is_over = in->is_over || status == 0 || status == RUN_SHELL_GONE || status == ACT_DENIED || a->shows == 0;
    if (in->is_over || in->was_lost || status == RUN_SHELL_NOT_YET)
        return;
    in->was_lost = true;
    act_warn("the connection to the input of rank %s is lost, and what was typed last may be; trying again", a->rank);
}

static bool attached_wants_more(const struct attached_input *in)
{
    return !in->is_over && !in->has_ended && in->to >= 0 && in->n == 0;
}

/* A terminal is read only while this command is in its foreground; no signal tells when it gets there. */
static bool attached_is_in_front(void)
{
    return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void attached_read(struct attached_input *in)
{
    ssize_t n = read(STDIN_FILENO, in->frame + FRAME_HEAD_BYTES, TYPED_MOST);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0 || (n == 0 && in->of_terminal && !isatty(STDIN_FILENO))) {
        in->is_over = true; /* a terminal that is gone ends nothing: somebody may come back */
        return;
    }
    in->has_ended = n == 0;
    attached_begin_frame(in, (size_t)n);
}

static void attached_write(struct attached_input *in)
{
    ssize_t n = write(in->to, in->frame + in->at, in->n - in->at);

    if (n > 0)
        in->at += (size_t)n;
    if (in->at == in->n)
        in->at = in->n = 0;
}

/* ---- Ctrl-C */

static bool attached_is_reached(const struct attached *a)
{
    return platform_find(a->run->row.platform)->nodes.agent;
}

static void attached_look(struct attached *a)
{
    int told = 0, brought = 0;

    (void)attached_has_ended(&a->shows, &a->status);
    if (attached_has_ended(&a->input.brings, &brought))
        attached_input_ended(a, brought);
    if (attached_has_ended(&a->tells, &told) && told == 0 && attached_may_say())
        act_note("Ctrl-C was sent to rank %s; twice quickly, or Ctrl-\\, leaves it alone", a->rank);
}

/* Sends Ctrl-C to the rank. That may take long, and must not keep anybody from leaving, so nobody waits for it here. */
static void attached_interrupt(struct attached *a)
{
    const char *const words[] = {"--quiet", a->run->row.id, a->rank, NULL};
    struct act_error err;

    if (!attached_is_reached(a))
        act_note(
            "Ctrl-C cannot be sent to rank %s: on the platform '%s' nothing leads from here into the container of a "
            "run; twice quickly leaves",
            a->rank, a->run->row.platform);
    else if (a->tells > 0)
        act_note("Ctrl-C is on its way to rank %s; twice quickly leaves", a->rank);
    else if (attached_start(a, "__interrupt", words, -1, a->null, &a->tells, &err) < 0)
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
    if (a->shows > 0)
        kill(-a->shows, SIGSTOP);
    raise(SIGSTOP);
    if (a->shows > 0)
        kill(-a->shows, SIGCONT);
}

static int attached_leave(struct attached *a)
{
    attached_end(&a->tells);
    attached_end(&a->input.brings);
    if (a->shows == 0)
        return a->status;
    attached_end(&a->shows);
    if (attached_may_say())
        act_note("run %s goes on; 'a attach %s' comes back", a->run->row.id, a->run->row.id);
    return 0;
}

/* Takes a signal; true: it says to leave. */
static bool attached_on_signal(struct attached *a)
{
    struct signalfd_siginfo info;

    if (read(a->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    switch (info.ssi_signo) {
    case SIGCHLD:
        attached_look(a);
        return false;
    case SIGINT:
        if (attached_is_twice())
            return true;
        attached_interrupt(a);
        return false;
    case SIGTSTP:
        attached_stop(a);
        return false;
    default:
        return true;
    }
}

/* Waits for one event; true: it says to leave. */
static bool attached_round(struct attached *a)
{
    struct attached_input *in = &a->input;
    bool is_away = !in->is_over && in->brings == 0;
    bool wants = attached_wants_more(in), reads = wants && attached_is_in_front();
    struct pollfd p[] = {
        {a->signal_fd, POLLIN, 0},
        {reads ? STDIN_FILENO : -1, POLLIN, 0},
        {in->n > 0 ? in->to : -1, POLLOUT, 0},
    };

    (void)poll(p, sizeof(p) / sizeof(p[0]), is_away ? AGAIN_MS : wants != reads ? LOOK_MS : -1);
    if (p[1].revents)
        attached_read(in);
    if (p[2].revents & POLLOUT)
        attached_write(in);
    if (is_away && act_now_monotonic_ms() >= in->again_ms)
        attached_start_input(a);
    return p[0].revents && attached_on_signal(a);
}

/* Returns the exit status. */
static int attached_attend(struct attached *a)
{
    while (a->shows > 0 || a->tells > 0)
        if (attached_round(a))
            return attached_leave(a);
    attached_end(&a->input.brings);
    if (a->input.n > 0 && !a->input.has_ended)
        act_warn("rank %s has ended before it read all that was typed", a->rank);
    return a->status;
}

/* ---- the verb */

/* Says before the first Ctrl-C what that does. */
static void attach_hint(const struct attached *a)
{
    act_note("rank %s of run %s: %sCtrl-C twice quickly, or Ctrl-\\, leaves it alone%s", a->rank, a->run->row.id,
             attached_is_reached(a) ? "Ctrl-C interrupts it; " : "",
             a->run->spec.takes_input ? "; it reads what you type, and Ctrl-D ends that" : "; it has no input");
}

static int attach_any(struct cli *cli, const struct flow_run *run, struct act_error *err)
{
    struct attached a = {.cli = cli,
                         .run = run,
                         .input = {.of_terminal = isatty(STDIN_FILENO), .is_over = !run->spec.takes_input, .to = -1}};
    int64_t rank = CLI_OPTIONS(cli, logs)->rank;
    int rc = cli_check_rank(cli, run, err);

    if (rc < 0)
        return rc;
    snprintf(a.rank, sizeof(a.rank), "%d", rank > 0 ? (int)rank : 0);
    sigemptyset(&a.signals);
    for (const int *sig = (const int[]){SIGINT, SIGQUIT, SIGTSTP, SIGTERM, SIGHUP, SIGCHLD, 0}; *sig; sig++)
        sigaddset(&a.signals, *sig);
    sigprocmask(SIG_BLOCK, &a.signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    a.signal_fd = signalfd(-1, &a.signals, SFD_CLOEXEC);
    a.null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (a.signal_fd < 0 || a.null < 0)
        return act_error_errno(err, errno, "cannot wait for signals");
    attach_hint(&a);
    rc = attached_start(&a, "logs", (const char *const[]){"-f", "--rank", a.rank, run->row.id, NULL}, -1, -1, &a.shows,
                        err);
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
