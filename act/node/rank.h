/* rank.h - one process of a run on its node, however it was started: prepares the node, starts the command with its
 * arguments as they are, passes signals on. rank.c is for ranks with a supervisor, service.c for those in a service's
 * job.
 */
#ifndef ACT_NODE_RANK_H
#define ACT_NODE_RANK_H

#include "node/child.h"
#include "node/env.h"
#include "node/node.h"
#include "node/place.h"
#include "node/record.h"
#include "node/room.h"

struct rank {
    struct node node;
    struct rank_place place;
    struct watch watch;
    struct node_record record;
    pid_t child;                    /* the running process, or 0 */
    int64_t kill_at_ms;             /* when it is killed (monotonic); 0: never */
    int64_t grace_ms;               /* for a command that got SIGTERM; -1: the sender decides when to kill it */
    int log_fd;                     /* the user's log */
    int out_fd;                     /* of the command; -1: as ours */
    struct room room;               /* for out_fd */
    int64_t look_at_ms;             /* when the preparation is looked at (monotonic); 0: never */
    void (*report)(struct rank *r); /* the record has changed */
    void (*gone)(struct rank *r);   /* the watch says WATCH_GONE; does not return */
    void (*tick)(struct rank *r);   /* at tick_at_ms, which it sets anew */
    int64_t tick_at_ms;             /* monotonic; 0: never */
};

enum { RANK_WHO = 32 };
/* Finds its place in the environment, notes it in the record, and writes "rank 3" to who, for the log. */
int rank_find_place(struct rank *r, char who[RANK_WHO], struct act_error *err) ACT_NODISCARD;
/* Prepares the node and runs the command, once node, place and environment are set. Returns the exit status. */
int rank_work(struct rank *r);
/* Leaves no process behind, and nothing on the node after its last rank. An error: why something that was written is
 * not in the store, which is in the log then. */
int rank_end(struct rank *r, struct act_error *err) ACT_NODISCARD;

/* Notes in the record and the log why the rank cannot do its work. */
void rank_fail(struct rank *r, int exit_status, const char *reason);
/* Ends the command, now or before it starts. */
void rank_stop(struct rank *r, const char *who);
/* Passes a signal on to the processes that handle it. */
void rank_warn(const struct rank *r, int sig);

#endif
