/* stacks.h - what the processes of a rank are doing: into RUN_FILE_STACKS of its node, with that of its other ranks.
 *
 * Of each process there are its command, and of each of its threads the state, the place in the kernel where it waits,
 * its system call, and for root the stack in the kernel; of one whose program is called python also what "py-spy dump"
 * says, if py-spy is in PATH and the system lets it look: a rank's processes are not below the process that does it,
 * which Yama refuses where kernel.yama.ptrace_scope is not 0, unless this is root. What is refused is left out, or
 * said in a line.
 *
 * All is bounded: so many processes, threads and bytes for each rank; py-spy may take some seconds for each process.
 *
 * Sources: proc(5); github.com/benfred/py-spy (README, "py-spy dump"; src/dump.rs); Documentation/admin-guide/LSM/
 * Yama.rst of Linux 6.12.
 */
#ifndef ACT_NODE_STACKS_H
#define ACT_NODE_STACKS_H

#include "node/node.h"

struct stacks_task {
    const struct node *node;
    int rank;
    pid_t agent; /* of the rank, whose descendants are looked at */
    char *where; /* shared with the agent: gets the place where the rank waits, ASCII, empty if that is not known */
    size_t where_size;
    _Atomic bool *done; /* shared with the agent, too: set at the end */
};

/* Takes the stacks, as a struct child. Returns an exit status. */
int stacks_take(void *task);

/* Finds "wait (threading.py:320), called by main (train.py:12)" of the main thread in the output of py-spy. False:
 * there is none. */
bool stacks_python_place(const char *dump, char *out, size_t size);

#endif
