/* record.h - ranks/<rank>.json: what became of a rank. Written by its agent, read by the supervisor. */
#ifndef ACT_NODE_RECORD_H
#define ACT_NODE_RECORD_H

#include "node/node.h"

struct record {
    int rank;
    char node[NODE_NAME_MAX + 1];
    pid_t pid;               /* of the command; 0: it was not started */
    int64_t started_unix_ns; /* 0: not yet */
    int64_t ended_unix_ns;   /* 0: not yet */
    int exit_status;         /* as a shell gives it */
    int signal;              /* that killed it, or 0 */
    bool stopped;            /* it was told to end: how it ended says nothing about it */
    bool kept;               /* it has ended, and its node is kept for a look */
    char reason[400];        /* why it could not do its work; may be empty */
};

int record_write(const struct node *node, const struct record *record, struct act_error *err) ACT_NODISCARD;
/* False when there is none (yet). */
bool record_read(const struct node *node, int rank, struct record *out);

/* "rank 1 exited with status 3", "rank 0 was killed by signal 9 (Killed)". */
void record_describe(const struct record *record, char *out, size_t size);
static inline bool record_failed(const struct record *record)
{
    return record->ended_unix_ns && record->exit_status != 0 && !record->stopped;
}

#endif
