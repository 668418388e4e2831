#include "node/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "run/run.h"

size_t processes_read(pid_t pid, const char *name, char *out, size_t size)
{
    char path[96];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Reads /proc/<pid>/stat, where the name of the program is in parentheses and may contain anything. */
static bool read_process(pid_t pid, struct process *out)
{
    char text[1024];
    uint64_t own[2], reaped[2];

    *out = (struct process){.pid = pid};
    if (processes_read(pid, "stat", text, sizeof(text)) == 0)
        return false;
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end ||
        sscanf(end + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %*d %*d %*d %*d %*u %*u %" SCNu64,
               &out->state, &out->parent, &own[0], &own[1], &reaped[0], &reaped[1], &out->pages) != 7)
        return false;
    snprintf(out->name, sizeof(out->name), "%.*s", (int)(end - name - 1), name + 1);
    out->ticks = own[0] + own[1] + reaped[0] + reaped[1];
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

void processes_list(struct processes *out)
{
    DIR *proc = opendir("/proc");
    struct process p;

    *out = (struct processes){0};
    for (const struct dirent *e; proc && (e = readdir(proc));)
        if (isdigit((unsigned char)e->d_name[0]) && read_process(atoi(e->d_name), &p))
            ACT_PUSH(out->v, out->n, p);
    if (proc)
        closedir(proc);
    if (out->n > 0)
        qsort(out->v, out->n, sizeof(p), by_pid);
}

void processes_release(struct processes *list)
{
    free(list->v);
    *list = (struct processes){0};
}

/* A child usually has a larger number than its parent: then one round finds all, and a second one finds nothing. */
void processes_mark_descendants(struct processes *list)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct process wanted = {.pid = list->v[i].parent};
            const struct process *parent =
                list->v[i].ours ? NULL : bsearch(&wanted, list->v, list->n, sizeof(wanted), by_pid);
            if (parent && parent->ours)
                list->v[i].ours = more = true;
        }
    }
}

void processes_list_own(struct processes *out)
{
    processes_list(out);
    for (size_t i = 0; i < out->n; i++) {
        if (strcmp(out->v[i].name, RUN_MOUNT_KEEPER) == 0)
            out->v[i].parent = 0;
        out->v[i].ours = out->v[i].parent == getpid();
    }
    processes_mark_descendants(out);
}

void processes_mark_commands(struct processes *list, pid_t agent)
{
    char mine[sizeof(list->v->name)] = "";

    prctl(PR_GET_NAME, mine); /* also that of what the agent has forked */
    for (size_t i = 0; i < list->n; i++)
        list->v[i].ours = list->v[i].parent == agent && strcmp(list->v[i].name, mine) != 0;
    processes_mark_descendants(list);
}
