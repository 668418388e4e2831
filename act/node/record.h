/* record.h - what became of a rank, as its agent reports and the supervisor keeps it. */
#ifndef ACT_NODE_RECORD_H
#define ACT_NODE_RECORD_H

#include <jansson.h>

#include "node/node.h"

enum { RECORD_LINES = 20, RECORD_LINES_BYTES = 8192 };

struct node_record {
    int rank;
    char node[NODE_NAME_MAX + 1];
    pid_t pid;               /* of the command; 0: it was not started */
    int64_t started_unix_ns; /* 0: not yet */
    int64_t ended_unix_ns;   /* 0: not yet */
    int exit_status;         /* as a shell gives it */
    int signal;              /* that killed it, or 0 */
    bool stopped;            /* it was told to end, so how it ended means nothing */
    bool kept;               /* it has ended, and its node is kept for inspection */
    bool lost;               /* its agent is gone and cannot say how it ended */
    int no_room;             /* its log is not whole: the errno, of a full disk or a quota; 0: it is */
    bool room_again;         /* ... or may be: there was room at its end */
    char doing[160];         /* what its preparation does, where that takes long; may be empty */
    char reason[400];        /* why it could not do its work, a line of UTF-8; may be empty */
    struct act_strv lines;   /* the end of its log, if it failed: UTF-8 without control characters */
};
void record_release(struct node_record *record);

/* Make JSON of a record, a new reference, and read it, which checks every member; a missing one is 0. Release *out in
 * any case. */
json_t *record_to_json(const struct node_record *record);
int record_from_json(const json_t *json, struct node_record *out, struct act_error *err) ACT_NODISCARD;

/* Takes the last lines of a log: at most RECORD_LINES, RECORD_LINES_BYTES together. */
void record_tail(const char *path, struct act_strv *out);

/* Says "rank 1 exited with status 3" or "rank 0 was killed by signal 9 (Killed)". */
void record_describe(const struct node_record *record, char *out, size_t size);
static inline bool record_failed(const struct node_record *record)
{
    return record->ended_unix_ns && record->exit_status != 0 && !record->stopped;
}
static inline bool record_succeeded(const struct node_record *record)
{
    return record->ended_unix_ns && record->exit_status == 0 && !record->stopped;
}

#endif
