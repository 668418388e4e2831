/* processes.h - the processes of this machine, and which started which, from /proc (proc(5)). */
#ifndef ACT_NODE_PROCESSES_H
#define ACT_NODE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid, parent;
    char name[20]; /* as /proc/<pid>/comm has it */
    char state;    /* 'R', 'S', 'D', 'T', ... */
    bool ours;
    uint64_t ticks, pages; /* of the processor, with those of children that it has waited for; in memory now */
};

struct processes {
    struct process *v; /* by pid */
    size_t n;
};

/* Lists all; none is marked as ours. */
void processes_list(struct processes *out);
void processes_release(struct processes *list);
/* Marks all descendants of what is marked. */
void processes_mark_descendants(struct processes *list);
/* Lists all, with the descendants of this process marked, but for those that keep a folder mounted: they are nobody's,
 * and end when they have sent what was written. */
void processes_list_own(struct processes *out);
/* Marks what the agent with this pid has started or adopted, with all descendants, except what is the agent's own
 * program, as this process is. */
void processes_mark_commands(struct processes *list, pid_t agent);

/* Reads a small file of /proc/<pid>; its length, 0 if the process is gone or does not let us. */
size_t processes_read(pid_t pid, const char *name, char *out, size_t size);

#endif
