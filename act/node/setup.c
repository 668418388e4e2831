#include "node/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "node/child.h"
#include "node/container.h"
#include "proc/pidfd.h"

/* ---- the words */

void setup_words(const struct node *node, struct act_strv *out)
{
    if (run_setup_is_wanted(&node->spec.setup) && container_is_fresh(node))
        run_setup_words("run", "", &node->spec.setup, out);
}

void setup_rank_words(const struct node *node, struct act_strv *out)
{
    const struct run_setup only_lines = {.lines = node->spec.setup.rank_lines};

    if (only_lines.lines)
        run_setup_words("rank", "", &only_lines, out);
}

/* ---- bash, its output and its time */

/* Copies what there is to read from fd, as long as *room bytes last, and drops the rest. False: its end. */
static bool copy_output(int fd, int log_fd, size_t *room)
{
    char piece[16 * 1024];
    ssize_t n = read(fd, piece, sizeof(piece));

    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    size_t kept = (size_t)n < *room ? (size_t)n : *room;
    static const char cut[] = "\nact: the output of 'setup' is cut here\n";
    if (kept && act_write_all(log_fd, piece, kept) < 0)
        kept = *room; /* a full disk */
    *room -= kept;
    if (*room == 0 && kept)
        (void)!act_write_all(log_fd, cut, sizeof(cut) - 1);
    return true;
}

/* Copies what is in the pipe, and does not wait for its end: a process in the background may keep it open. */
static void copy_the_rest(int fd, int log_fd, size_t *room)
{
    enum { READS_MAX = 1024 };
    struct pollfd more = {.fd = fd, .events = POLLIN};

    for (int i = 0; i < READS_MAX && poll(&more, 1, 0) > 0 && copy_output(fd, log_fd, room); i++)
        continue;
}

/* Waits for the end of bash, its process pid; false: it took too long, and was killed with all that it started. */
static bool setup_wait(pid_t pid, int fd, int log_fd, int timeout_s)
{
    enum { LOG_MAX = 16 << 20, TURN_MS = 200 };
    int64_t until_ms = act_now_monotonic_ms() + (int64_t)timeout_s * 1000;
    int pidfd = proc_pidfd_open(pid);
    size_t room = LOG_MAX;
    bool ended = false;

    while (!(ended = proc_pidfd_wait(pidfd, 0)) && act_now_monotonic_ms() < until_ms) {
        struct pollfd ready[] = {{.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
        if (poll(ready, proc_pidfd_is_pollable(pidfd) ? 2 : 1, TURN_MS) > 0 && ready[0].revents &&
            !copy_output(fd, log_fd, &room))
            fd = -1; /* poll() leaves it out then */
    }
    if (!ended)
        kill(-pid, SIGKILL);
    if (fd >= 0)
        copy_the_rest(fd, log_fd, &room);
    close(pidfd);
    return ended;
}

static int setup_run(const struct node *node, const char *const *argv, int log_fd, int *out_exit_status,
                     struct act_error *err)
{
    int pipe_fds[2], timeout_s = node->spec.setup.timeout_s;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return act_error_errno(err, errno, "cannot make a pipe");
    pid_t pid = child_start(&(struct child){.argv = argv, .cwd = node->code, .out_fd = pipe_fds[1]});
    int start_errno = errno;
    close(pipe_fds[1]);
    bool in_time = pid > 0 && setup_wait(pid, pipe_fds[0], log_fd, timeout_s);
    close(pipe_fds[0]);
    if (pid < 0)
        return act_error_errno(err, start_errno, "cannot start '%s', which 'modules', 'conda', 'venv' and 'setup' need",
                               argv[0]);
    int status = child_exit_status(child_wait(pid));
    if (!in_time) /* that it was killed says nothing */
        return act_error_set(err, ACT_FAIL, "'setup' had not ended after %d s; 'setup_timeout' gives it longer",
                             timeout_s);
    *out_exit_status = status;
    return status == 0 ? 0 : act_error_set(err, ACT_FAIL, "'setup' ended with status %d", status);
}

/* ---- what it has changed */

/* Reads texts that each end with a NUL byte. */
static int read_texts(const char *folder, const char *name, struct act_strv *out, struct act_error *err)
{
    enum { ENVIRONMENT_MAX = 4 << 20 };
    ACT_AUTOFREE char *path = act_path_join(folder, name);
    ACT_AUTOFREE char *text = NULL;
    size_t len = 0;
    int rc = act_file_read(path, ENVIRONMENT_MAX, &text, &len, err);

    for (const char *at = text; rc == 0 && at < text + len; at += strlen(at) + 1)
        act_strv_push(out, at);
    return rc;
}

/* Tells whether a variable ("NAME" or "NAME=value") is bash's own business. */
static bool is_of_bash(const char *variable)
{
    static const char *const names[] = {"_", "SHLVL", "PWD", "OLDPWD"};
    size_t len = strcspn(variable, "=");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == len && strncmp(names[i], variable, len) == 0)
            return true;
    return false;
}

static bool setup_has_name(const struct act_strv *variables, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < variables->n; i++)
        if (strncmp(variables->v[i], name, len) == 0 && variables->v[i][len] == '=')
            return true;
    return false;
}

void setup_compare(const struct act_strv *before, const struct act_strv *after, struct act_strv *out)
{
    for (size_t i = 0; i < after->n; i++)
        if (!is_of_bash(after->v[i]) && !act_strv_has(before, after->v[i]))
            act_strv_push(out, after->v[i]);
    for (size_t i = 0; i < before->n; i++) {
        ACT_AUTOFREE char *name = act_strndup(before->v[i], strcspn(before->v[i], "="));
        if (!is_of_bash(name) && !setup_has_name(after, name))
            act_strv_push(out, name);
    }
}

/* Refuses to give all ranks what each of them has for itself. */
static int check_changes(const struct act_strv *changes, struct act_error *err)
{
    static const char *const own[] = {"RANK",      "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                      "NODE_RANK", NODE_ENV_RUN};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (setup_has_name(changes, own[i]) || act_strv_has(changes, own[i]))
            return act_error_set(err, ACT_FAIL, "'setup' sets %s, which each rank has for itself", own[i]);
    return 0;
}

/* Returns the name of the file that keeps it for the ranks of this attempt. New string. */
static char *kept_name(const struct node *node)
{
    return act_sprintf("setup.%d", node->attempt);
}

static int keep_changes(const struct node *node, const char *folder, struct act_error *err)
{
    ACT_AUTO(act_strv) before = {0}, after = {0}, changes = {0};
    ACT_AUTOFREE char *name = kept_name(node);
    ACT_AUTOFREE char *path = act_path_join(node->local, name);
    ACT_AUTO(act_buf) text = {0};
    int rc = read_texts(folder, "before", &before, err);

    if (rc == 0)
        rc = read_texts(folder, "after", &after, err);
    if (rc < 0)
        return act_error_set(err, ACT_FAIL, "'setup' ended the shell, perhaps with 'exec'");
    setup_compare(&before, &after, &changes);
    rc = check_changes(&changes, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < changes.n; i++)
        act_buf_add(&text, changes.v[i], strlen(changes.v[i]) + 1);
    node_say("setup changed %zu variables", changes.n);
    return act_file_write(path, text.data ? text.data : "", text.len, 0600, err);
}

/* Returns the folder in which bash notes the environment. New string. A container sees only the run's folder, which all
 * nodes share; the folder is removed at once, as values may be secret. */
static char *capture_folder(const struct node *node)
{
    return act_sprintf("%s/.setup.%s.%d", container_is_used(node) ? node->dir : node->local, node->name, node->attempt);
}

int setup_take(const struct node *node, int log_fd, int *out_exit_status, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0}, wrapped = {0};
    ACT_AUTOFREE char *folder = capture_folder(node);
    struct act_error ignored;

    if (!run_setup_is_wanted(&node->spec.setup) || container_is_fresh(node))
        return 0;
    int rc = act_mkdir_all(folder, 0700, err);
    run_setup_words("capture", folder, &node->spec.setup, &words);
    if (rc == 0)
        rc = container_wrap(node, -1, (const char *const *)words.v, &wrapped, err);
    if (rc == 0)
        rc = setup_run(node, (const char *const *)wrapped.v, log_fd, out_exit_status, err);
    if (rc == 0)
        rc = keep_changes(node, folder, err);
    if (act_remove_tree(folder, &ignored) < 0)
        node_say("%s", act_error_text(&ignored));
    return rc < 0 ? rc : setup_apply(node, err);
}

/* ---- for the ranks */

/* apptainer gives its commands the image's PATH and the like, unless these variables say otherwise. */
static const char *const of_apptainer[] = {"APPTAINERENV_", "SINGULARITYENV_", NULL}, *const as_it_is[] = {"", NULL};

static void apply_one(const char *variable, const char *const *prefixes)
{
    const char *equals = strchr(variable, '=');

    for (; *prefixes; prefixes++) {
        ACT_AUTOFREE char *name = act_sprintf("%s%.*s", *prefixes, (int)strcspn(variable, "="), variable);
        if (equals)
            setenv(name, equals + 1, 1);
        else
            unsetenv(name);
    }
}

int setup_apply(const struct node *node, struct act_error *err)
{
    ACT_AUTO(act_strv) changes = {0};
    ACT_AUTOFREE char *name = kept_name(node);

    if (!run_setup_is_wanted(&node->spec.setup) || container_is_fresh(node))
        return 0;
    int rc = read_texts(node->local, name, &changes, err);
    for (size_t i = 0; rc == 0 && i < changes.n; i++)
        apply_one(changes.v[i], container_is_used(node) ? of_apptainer : as_it_is);
    return rc;
}
