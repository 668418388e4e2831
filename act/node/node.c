/* node.c - the run folder as the agent sees it, and the agent's own log. */
#include "node/node.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"

static int log_fd = STDERR_FILENO;
static const char *log_who = "agent";

ACT_PRINTF(1, 0)
static void node_say_line(const char *fmt, va_list ap)
{
    char now[ACT_TIME_TEXT], text[4096], line[sizeof(text) + ACT_TIME_TEXT + 64];

    vsnprintf(text, sizeof(text), fmt, ap);
    act_mask_controls(text, "", '?');
    act_time_to_iso(act_now_unix_s(), now);
    int n = snprintf(line, sizeof(line), "%s %s: %s\n", now, log_who, text);
    if (act_write_all(log_fd, line, (size_t)n) < 0)
        return; /* a full disk must not end the run, and there is no other place to report it */
}

void node_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    node_say_line(fmt, ap);
    va_end(ap);
}

/* Finds Slurm's name of this node, else its host name, and makes it fit for a file name. */
void node_find_name(char out[NODE_NAME_MAX + 1])
{
    const char *name = getenv("SLURMD_NODENAME");
    struct utsname machine;

    if (uname(&machine) < 0 || !machine.nodename[0])
        strcpy(machine.nodename, "node");
    snprintf(out, NODE_NAME_MAX + 1, "%.*s", NODE_NAME_MAX, name && *name ? name : machine.nodename);
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
            *c = '_';
    if (out[0] == '.')
        out[0] = '_';
}

char *node_own_program(void)
{
    char path[PATH_MAX] = "";

    return readlink("/proc/self/exe", path, sizeof(path) - 1) < 0 ? act_strdup("act-node") : act_strdup(path);
}

char *node_path(const struct node *node, const char *name)
{
    return act_path_join(node->dir, name);
}

int node_attempt(void)
{
    const char *text = getenv(NODE_ENV_ATTEMPT);
    int64_t n;

    return text && act_int_from_text(text, &n) && n > 0 && n < INT_MAX ? (int)n : 1;
}

int64_t node_abort_grace_ms(void)
{
    return run_abort_grace_s(getenv("ACT_ABORT_GRACE")) * 1000;
}

int node_open_log(const struct node *node, const char *name)
{
    ACT_AUTOFREE char *path = node_path(node, name);

    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void node_own_log(const struct node *node)
{
    ACT_AUTOFREE char *name = act_sprintf(RUN_DIR_SYSTEM "/node_%s.txt", node->name);
    int fd = node_open_log(node, name);

    if (fd < 0)
        return;
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = fd;
}

int node_read(struct node *node, const char *path, const char *who, struct act_error *err)
{
    *node = (struct node){0};
    node_find_name(node->name);
    log_who = who;
    return run_spec_read(path, &node->spec, err);
}

int node_open(struct node *node, const char *dir, const char *who, struct act_error *err)
{
    ACT_AUTOFREE char *spec = act_path_join(dir, RUN_FILE_SPEC);
    ACT_AUTOFREE char *secrets = act_path_join(dir, RUN_FILE_SECRETS);

    *node = (struct node){0};
    if (dir[0] != '/')
        return act_error_set(err, ACT_USAGE, "the run folder '%s' is not an absolute path", dir);
    int rc = node_read(node, spec, who, err);
    if (rc == 0)
        rc = run_secrets_read(&node->spec, secrets, err);
    if (rc < 0)
        return rc;
    node->dir = act_strdup(dir);
    node->code = act_path_join(dir, RUN_DIR_CODE);
    node->package = act_path_join(dir, RUN_FILE_PACKAGE);
    node_own_log(node);
    return 0;
}

void node_release(struct node *node)
{
    run_spec_release(&node->spec);
    free(node->dir);
    free(node->package);
    free(node->launch);
    free(node->code);
    free(node->local);
    free(node->site);
    *node = (struct node){0};
}

char *node_list_text(const struct act_strv *words, const char *separator)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < words->n; i++)
        act_buf_addf(&text, "%s%s", i ? separator : "", words->v[i]);
    return act_buf_steal(&text);
}

char *node_read_text(const char *path)
{
    enum { MAX_BYTES = 16 << 20 };
    char *text = NULL;

    return act_file_read(path, MAX_BYTES, &text, NULL, NULL) < 0 ? act_strdup("") : text;
}

size_t node_read_tail(const char *path, char *out, size_t size)
{
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, out, size, end > (off_t)size ? end - (off_t)size : 0);

    return n > 0 ? (size_t)n : 0;
}

static bool says_something(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isalnum((unsigned char)line[i]))
            return true;
    return false;
}

void node_last_line(const char *path, char *out, size_t size)
{
    char tail[8192];
    size_t n = node_read_tail(path, tail, sizeof(tail));

    out[0] = '\0';
    while (n > 0) {
        const char *newline = memrchr(tail, '\n', n);
        const char *line = newline ? newline + 1 : tail;
        size_t len = (size_t)(tail + n - line);
        if (says_something(line, len)) {
            snprintf(out, size, "%.*s", (int)len, line);
            break;
        }
        n = newline ? (size_t)(newline - tail) : 0;
    }
    act_mask_controls(out, "", ' ');
}

bool node_has_windows_lines(const char *path)
{
    char line[256] = "";
    FILE *file = fopen(path, "re");

    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    return act_starts_with(line, "#!") && act_ends_with(line, "\r\n");
}
