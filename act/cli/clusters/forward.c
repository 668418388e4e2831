/* forward.c - 'a forward' and the -L of 'a ssh': ports of a run's node, here. A child, 'a __tunnel', leads to the agent
 * there; when it ends although the run goes on, another one follows. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "cli/print/print.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "platform/platform.h"
#include "proc/proc.h"
#include "tunnel/tunnel.h"

enum { BACKLOG = 128, SILENCE_MS = 45 * 1000, LOOK_MS = 5000, REPEAT_MS = 10 * 60 * 1000, PAUSE_MOST_S = 30 };

struct forward {
    struct cli *cli;
    char *run;        /* its id */
    const char *node; /* NULL: the first one */
    struct tunnel_port *ports;
    uint16_t *here; /* of each */
    size_t n;
    bool is_here;   /* the run is on this machine */
    bool was_said;  /* where the ports are */
    bool is_ready;  /* the other end has said hello */
    bool has_ended; /* the run */
    bool saw_stranger;
    int64_t looked_ms;
    char *warned; /* of, last */
    int64_t warned_ms;
    pid_t tunnel;                            /* the child */
    void (*ready)(void *arg, uint16_t port); /* hears of the first port when the connection is there; may be NULL */
    bool (*is_over)(void *arg);              /* of what it goes on beside; NULL: until Ctrl-C */
    void *arg;
};

/* ---- the words */

/* Reads "[LOCAL:]PORT", or as OpenSSH has it "LOCAL:localhost:PORT". */
static int forward_read_port(const char *word, uint16_t *out_here, uint16_t *out_port, struct act_error *err)
{
    const char *colon = strchr(word, ':'), *last = colon ? strrchr(word, ':') : NULL;
    ACT_AUTOFREE char *first = act_strndup(word, colon ? (size_t)(colon - word) : strlen(word));
    ACT_AUTOFREE char *host = colon < last ? act_strndup(colon + 1, (size_t)(last - colon) - 1) : NULL;
    int64_t here, port;

    if (!act_int_from_text(first, &here) || !act_int_from_text(last ? last + 1 : word, &port) || port < 1 ||
        port > UINT16_MAX || here < 0 || here > UINT16_MAX)
        return act_error_set(err, ACT_USAGE, "'%s' is not a port: PORT, or LOCAL:PORT, from 1 to 65535; LOCAL may be 0",
                             word);
    if (host && strcmp(host, "localhost") != 0 && strcmp(host, "127.0.0.1") != 0)
        return act_error_set(err, ACT_USAGE,
                             "'%s' leads to '%s': only ports of the node itself can be reached, as with '%u:%u'", word,
                             host, (unsigned)here, (unsigned)port);
    *out_here = (uint16_t)here;
    *out_port = (uint16_t)port;
    return 0;
}

static int forward_listen(struct forward *f, uint16_t here, uint16_t port, struct act_error *err)
{
    int fd = act_listen_here(&here, BACKLOG);
    if (fd == -EADDRINUSE && here == port && f->is_here)
        return act_error_set(err, ACT_USAGE,
                             "port %u of this machine is taken: the run is on this machine, so if it "
                             "is the run's, you can connect to it as it is",
                             here);
    if (fd < 0 && !port) /* of a service: its verb has looked whether it can be had */
        return act_error_errno(err, -fd, "cannot listen at port %u of this machine", here);
    if (fd == -EADDRINUSE)
        return act_error_set(err, ACT_USAGE,
                             "port %u of this machine is taken: name another one, '%u:%u', or 0 for one "
                             "that is free, '0:%u'",
                             here, here < 10000 ? here + 10000U : here - 10000U, port, port);
    if (fd == -EACCES)
        return act_error_set(err, ACT_DENIED,
                             "you may not listen at port %u of this machine: name another one, '%u:%u'", here,
                             here + 8000U, port);
    if (fd < 0)
        return act_error_errno(err, -fd, "cannot listen at port %u of this machine", here);
    ACT_GROW(f->here, f->n);
    f->here[f->n] = here;
    ACT_PUSH(f->ports, f->n, (struct tunnel_port){.fd = fd, .port = port});
    return 0;
}

int cli_check_ports(char *const *words, size_t n, struct act_error *err)
{
    uint16_t ignored;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = forward_read_port(words[i], &ignored, &ignored, err);
    return rc;
}

static int forward_open(struct forward *f, char *const *words, size_t n, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        uint16_t here = 0, port = 0;
        rc = forward_read_port(words[i], &here, &port, err);
        if (rc == 0)
            rc = forward_listen(f, here, port, err);
    }
    return rc;
}

/* ---- the run */

/* Takes the run, which must be running at first. */
static int forward_take_run(struct forward *f, const struct flow_run *run, struct act_error *err)
{
    const struct platform_row *platform = platform_find(run->row.platform);

    f->run = act_strdup(run->row.id);
    f->is_here = platform->about.is_here;
    if (!platform->nodes.agent)
        return act_error_set(err, ACT_USAGE,
                             "no port of run '%s' can be forwarded: on the platform '%s' nothing leads from here into "
                             "the container of a run",
                             f->run, run->row.platform);
    if (run->status.state == RUN_RUNNING)
        return 0;
    if (run_state_is_final(run->status.state))
        return act_error_set(err, ACT_FAIL, "run '%s' is %s: there is nothing left to connect to", f->run,
                             run_state_name(run->status.state));
    return act_error_set(err, ACT_TEMPORARY, "run '%s' is %s: its node is known when it runs; 'a q -w %s' shows when",
                         f->run, run_state_name(run->status.state), f->run);
}

/* Looks whether the run has ended; one that cannot be asked may go on. */
static void forward_look(struct forward *f)
{
    ACT_AUTO(flow_run) run = {0};
    struct act_error ignored;

    f->looked_ms = act_now_monotonic_ms();
    if (f->is_over) /* a shell has the terminal, on which ssh might ask; it ends with the run by itself */
        return;
    if (flow_find_run(&f->cli->flow, f->run, &run, &ignored) == 0 && run_state_is_final(run.status.state)) {
        f->has_ended = true;
        act_note("run '%s' has ended: %s", f->run, run_state_name(run.status.state));
    }
}

/* Warns, but not of the same again and again. Takes over the text. */
static void forward_warn(struct forward *f, char *text)
{
    int64_t now_ms = act_now_monotonic_ms();

    if (!act_streq(f->warned, text) || now_ms - f->warned_ms >= REPEAT_MS) {
        act_warn("%s", text);
        f->warned_ms = now_ms;
    }
    free(f->warned);
    f->warned = text;
}

/* ---- events of the tunnel */

/* A child in the background that asks something on the terminal stands still: it is ended. */
static void forward_check_asks(struct forward *f)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)f->tunnel, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid != f->tunnel ||
        (info.si_status != SIGTTIN && info.si_status != SIGTTOU))
        return;
    forward_warn(f, act_strdup("the way to the ports asks something on the terminal, which is not possible beside a "
                               "shell"));
    kill(f->tunnel, SIGKILL);
}

static bool forward_stops(void *arg)
{
    struct forward *f = arg;

    if (f->is_over)
        forward_check_asks(f);
    return cli_interrupted || f->has_ended || (f->is_over && f->is_over(f->arg));
}

/* Says where the ports are: on stdout, unless that is another's. */
static void forward_say_ports(const struct forward *f)
{
    for (size_t i = 0; i < f->n; i++) {
        ACT_AUTOFREE char *text =
            act_sprintf("http://127.0.0.1:%u/ leads to port %u of run %s", f->here[i], f->ports[i].port, f->run);
        if (f->is_over)
            act_note("%s", text);
        else
            puts(text);
    }
    fflush(stdout);
    if (!f->is_over)
        act_note("only you can connect, from this machine; Ctrl-C ends it");
}

static void forward_ready(void *arg)
{
    struct forward *f = arg;

    f->is_ready = true;
    act_str_replace(&f->warned, NULL);
    if (f->was_said) {
        act_note("connected to run '%s' again", f->run);
        return;
    }
    f->was_said = true;
    if (f->ports[0].port != 0) /* else a service, whose verb says where it is */
        forward_say_ports(f);
    if (f->ready)
        f->ready(f->arg, f->here[0]);
}

static void forward_refused(void *arg, uint16_t port, const char *why)
{
    struct forward *f = arg;

    if (act_now_monotonic_ms() - f->looked_ms < LOOK_MS)
        return;
    forward_warn(f, act_sprintf("no connection to port %u of run '%s': %s", port, f->run, why));
    forward_look(f);
}

static void forward_stranger(void *arg, uint16_t port)
{
    struct forward *f = arg;

    if (!f->saw_stranger)
        act_warn("a connection to port %u of run '%s' was refused: it is another user's, or was closed at once", port,
                 f->run);
    f->saw_stranger = true;
}

/* ---- a tunnel */

void cli_push_child(const struct cli *cli, const char *verb, struct act_strv *out)
{
    ACT_STRV_PUSH(out, "/proc/self/exe", verb);
    if (cli->options.no_share)
        act_strv_push(out, "--no-share");
    if (cli->options.cluster)
        ACT_STRV_PUSH(out, "--cluster", cli->options.cluster);
}

static int forward_start(struct forward *f, struct proc_pipes *out, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};

    cli_push_child(f->cli, "__tunnel", &words);
    ACT_STRV_PUSH(&words, "--quiet", f->run);
    if (f->node)
        act_strv_push(&words, f->node);
    return proc_start_piped(
        &(struct proc_start){.argv = words.v, .err_fd = -1, .own_group = f->is_over, .ends_with_us = true}, &f->tunnel,
        out, err);
}

/* Waits for the child, whose input has ended, for a moment; then kills it. Returns its exit status. */
static int forward_reap(pid_t pid)
{
    enum { STEPS = 20, STEP_MS = 50 };
    int status = 0, steps = 0;

    for (; waitpid(pid, &status, WNOHANG) == 0 && steps <= STEPS; steps++) {
        if (steps == STEPS) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : ACT_FAIL;
}

/* Carries connections until the child ends. Returns its exit status if it never was ready. */
static int forward_once(struct forward *f, struct act_error *err)
{
    struct proc_pipes pipes;

    f->tunnel = -1;
    int rc = forward_start(f, &pipes, err);

    f->is_ready = false;
    if (rc == 0)
        rc = tunnel_run(&(struct tunnel){.in = pipes.from,
                                         .out = pipes.to,
                                         .ports = f->ports,
                                         .n_ports = f->n,
                                         .silence_ms = SILENCE_MS,
                                         .stops = forward_stops,
                                         .ready = forward_ready,
                                         .stranger = forward_stranger,
                                         .refused = forward_refused,
                                         .arg = f},
                        err);
    close(pipes.from);
    close(pipes.to);
    int status = f->tunnel > 0 ? forward_reap(f->tunnel) : 0;
    if (rc == 0)
        act_error_set(err, ACT_TEMPORARY, "the connection was closed");
    return rc < 0 && !f->is_ready && status > 0 ? status : rc;
}

static int forward_serve(struct forward *f, struct act_error *err)
{
    cli_catch_signals(NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int pause_s = 1;; pause_s = f->is_ready ? 1 : pause_s * 2 < PAUSE_MOST_S ? pause_s * 2 : PAUSE_MOST_S) {
        int rc = forward_once(f, err);
        if (forward_stops(f))
            return 0;
        if (!f->was_said)
            return rc;
        forward_look(f);
        if (f->has_ended)
            return 0;
        forward_warn(f,
                     act_sprintf("the connection to run '%s' is lost: %s; trying again", f->run, act_error_text(err)));
        for (int i = 0; i < pause_s && !forward_stops(f); i++)
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
}

static void forward_release(struct forward *f)
{
    for (size_t i = 0; i < f->n; i++)
        close(f->ports[i].fd);
    free(f->ports);
    free(f->here);
    free(f->warned);
    free(f->run);
}

int cli_forward(struct cli *cli, const struct cli_ports *ports, struct act_error *err)
{
    struct forward f = {
        .cli = cli, .node = ports->node, .ready = ports->ready, .is_over = ports->is_over, .arg = ports->arg};
    int rc = forward_take_run(&f, ports->run, err);

    if (rc == 0)
        rc = forward_open(&f, ports->v, ports->n, err);
    if (rc == 0)
        rc = forward_serve(&f, err);
    forward_release(&f);
    return rc;
}

int cmd_forward(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};

    if (cli->words.n < 2)
        return cli_needs_more(cli, err);
    struct cli_ports ports = {
        .run = &run, .node = CLI_OPTIONS(cli, nodes)->node, .v = cli->words.v + 1, .n = cli->words.n - 1};
    int rc = cli_check_ports(ports.v, ports.n, err);
    if (rc == 0)
        rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);
    return rc < 0 ? rc : cli_forward(cli, &ports, err);
}

int cli_forward_service(struct cli *cli, const struct flow_run *run, uint16_t here,
                        void (*ready)(void *arg, uint16_t port), void *arg, struct act_error *err)
{
    struct forward f = {.cli = cli, .run = act_strdup(run->row.id), .ready = ready, .arg = arg};
    int rc = forward_listen(&f, here, 0, err);

    if (rc == 0)
        rc = forward_serve(&f, err);
    forward_release(&f);
    return rc;
}
