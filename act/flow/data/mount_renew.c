/* mount_renew.c - another SAS for the store of a mount, before the one that opens it ends. A child process asks for it:
 * a service that does not answer keeps the keeper from nothing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "flow/data/mount.h"

enum {
    ANSWER_S = 60, /* for all of it */
    PAUSE_S = 60,  /* after one that has ended */
    TEXT_MAX = 16 << 10,
};

int64_t mount_renewal_s(const struct mount_keeper *k)
{
    enum { LEAST_S = 1 };
    int64_t now_s = act_now_unix_s(), ends_s = flow_blob_ends_s(k->plan.blob);

    if (!k->renew || k->plan.tool != MOUNTS_BLOBFUSE2 || ends_s == INT64_MAX)
        return INT64_MAX;
    return now_s + (ends_s <= now_s ? PAUSE_S : (ends_s - now_s) / 2 + LEAST_S);
}

/* The status of the child says whether it sends a SAS, or why there is none. */
__attribute__((noreturn)) static void be_asker(const struct mount_keeper *k, int fd)
{
    ACT_AUTO(flow_blob) blob = {0};
    struct act_error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(ANSWER_S);
    int rc = k->renew(k->arg, &blob, &err);
    const char *text = rc < 0 ? act_error_text(&err) : blob.sas ? blob.sas : "";
    int sent = act_write_all(fd, text, strlen(text)); /* it is shorter than a pipe is long */
    _exit(rc < 0 || sent < 0 ? ACT_FAIL : 0);
}

static void mount_renew_ask(const struct mount_keeper *k, struct mount_renewal *r)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        act_warn("'%s': cannot make a pipe: %s", k->plan.name, strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        be_asker(k, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        act_warn("'%s': cannot start a process: %s", k->plan.name, strerror(errno));
        close(ends[0]);
        return;
    }
    r->pid = pid;
    r->fd = ends[0];
}

/* Returns what the child sent, a new string and a secret. */
static char *receive(struct mount_renewal *r)
{
    char *text = act_calloc(1, TEXT_MAX + 1);
    size_t len = 0;
    ssize_t n;

    while (len < TEXT_MAX && ((n = read(r->fd, text + len, TEXT_MAX - len)) > 0 || (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    close(r->fd);
    r->pid = 0;
    return text;
}

static bool mount_renew_take(struct mount_keeper *k, int status, char *text)
{
    const struct flow_blob given = {.sas = text};

    if (status != 0) {
        act_warn("'%s': what opens its store cannot be renewed: %s", k->plan.name,
                 !WIFSIGNALED(status)          ? text
                 : WTERMSIG(status) == SIGALRM ? "there was no answer within a minute"
                                               : "the process that asked for it was killed");
        return false;
    }
    if (!*text || flow_blob_ends_s(&given) <= flow_blob_ends_s(k->plan.blob))
        return false;
    act_wipe(&k->plan.blob->sas);
    k->plan.blob->sas = act_strdup(text);
    return true;
}

bool mount_renew(struct mount_keeper *k, struct mount_renewal *r)
{
    int status;

    if (r->pid == 0) {
        if (act_now_unix_s() < r->due_s)
            return false;
        r->due_s = act_now_unix_s() + PAUSE_S;
        mount_renew_ask(k, r);
        return false;
    }
    if (waitpid(r->pid, &status, WNOHANG) != r->pid)
        return false;
    char *text = receive(r);
    bool is_new = mount_renew_take(k, status, text);
    act_wipe(&text);
    r->due_s = mount_renewal_s(k);
    return is_new;
}

void mount_renewal_end(struct mount_renewal *r)
{
    if (r->pid == 0)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(r->fd);
    r->pid = 0;
}
