#include "cli/page/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "proc/pidfd.h"
#include "proc/proc.h"

enum {
    SAID_BYTES = 64 << 10,
    LOOK_MS = 50, /* between looks at a process whose end the kernel does not report */
};

static void maker_close(const struct maker *m, int *fd)
{
    if (*fd < 0)
        return;
    engine_unwatch(m->engine, *fd);
    close(*fd);
    *fd = -1;
}

void maker_close_out(struct maker *m)
{
    maker_close(m, &m->out_fd);
}

void maker_kill(const struct maker *m)
{
    if (m->pid > 0)
        kill(-m->pid, SIGKILL); /* its own group, as long as it is our child that has not been waited for */
}

/* Waits for a process that has ended, or is ended now, with what it started and left behind. */
static void maker_reap(struct maker *m)
{
    maker_kill(m);
    while (m->pid > 0 && waitpid(m->pid, &m->status, 0) < 0 && errno == EINTR)
        continue;
    m->pid = 0;
    maker_close(m, &m->end_fd);
    engine_forget(m->engine, m);
}

void maker_release(struct maker *m)
{
    maker_reap(m);
    maker_close(m, &m->out_fd);
    maker_close(m, &m->said_fd);
    act_buf_release(&m->said);
}

/* Returns false when nothing more is there. What is too much is read, so that nobody waits to say it, and dropped. */
static bool maker_hear(struct maker *m)
{
    char chunk[4096];
    ssize_t n = m->said_fd < 0 ? 0 : read(m->said_fd, chunk, sizeof(chunk));

    if (n == 0)
        maker_close(m, &m->said_fd);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    size_t room = SAID_BYTES - m->said.len;
    act_buf_add(&m->said, chunk, (size_t)n < room ? (size_t)n : room);
    return true;
}

static void maker_says(void *arg)
{
    maker_hear(arg);
}

static void maker_look(void *arg)
{
    struct maker *m = arg;

    if (!proc_pidfd_wait(m->end_fd, 0)) {
        if (!proc_pidfd_is_pollable(m->end_fd))
            engine_timer(m->engine, LOOK_MS, maker_look, m);
        return;
    }
    for (int i = 0; i < SAID_BYTES / 64 && maker_hear(m); i++)
        ;
    maker_reap(m);
    m->ended(m->arg);
}

/* Watches a process: what it says is read as it comes, and its end is a descriptor's. */
static bool maker_watch(struct maker *m)
{
    m->end_fd = proc_pidfd_open(m->pid);
    if (m->end_fd < 0 || !engine_watch(m->engine, m->said_fd, false, maker_says, m))
        return false;
    if (proc_pidfd_is_pollable(m->end_fd))
        return engine_watch(m->engine, m->end_fd, false, maker_look, m);
    engine_timer(m->engine, LOOK_MS, maker_look, m);
    return true;
}

/* Returns the end of a pipe to write into, and the one to read from, without waiting, in *out; below 0: a failure. */
static int maker_pipe(int *out, struct act_error *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot make a pipe");
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *out = fds[0];
    return fds[1];
}

static int maker_start_process(struct maker *m, const struct act_strv *words, struct act_error *err)
{
    static char self[] = "/proc/self/exe", verb[] = "__page", quiet[] = "--quiet";
    ACT_AUTO(act_strv) argv = {0};
    int out = maker_pipe(&m->out_fd, err), said = out < 0 ? -1 : maker_pipe(&m->said_fd, err), rc = -ACT_FAIL;

    act_strv_copy(&argv, (char *[]){self, verb, quiet}, 3);
    act_strv_copy(&argv, words->v, words->n);
    if (said >= 0)
        rc = proc_start(
            &(struct proc_start){.argv = argv.v, .in_fd = -1, .out_fd = out, .err_fd = said, .own_group = true},
            &m->pid, err);
    if (out >= 0)
        close(out);
    if (said >= 0)
        close(said);
    return rc;
}

int maker_start(struct maker *m, const struct act_strv *words, struct act_error *err)
{
    m->pid = 0;
    m->out_fd = m->said_fd = m->end_fd = -1;
    m->said = (struct act_buf){0};
    int rc = maker_start_process(m, words, err);
    if (rc == 0 && !maker_watch(m))
        rc = act_error_set(err, ACT_FAIL, "its process cannot be watched");
    if (rc < 0)
        maker_release(m);
    return rc;
}

int maker_exit_status(const struct maker *m)
{
    return WIFEXITED(m->status) ? WEXITSTATUS(m->status) : ACT_FAIL;
}
