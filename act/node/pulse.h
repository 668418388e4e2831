/* pulse.h - the agent of a rank measures how long the rank has written nothing and computed nothing, reports it, and
 * takes stacks when it is asked to (see hang.h). Messages, besides those of ranks.c:
 *
 *   rank -> supervisor   {"type": "pulse", "silent_ms", "idle_ms", "by_gpus"}   while the command runs; milliseconds
 *                        {"type": "stacks", "where"}                            they are written; where it waits
 *   supervisor -> rank   {"type": "stacks"}                                     take them
 */
#ifndef ACT_NODE_PULSE_H
#define ACT_NODE_PULSE_H

#include "node/gpu.h"
#include "node/hang.h"
#include "node/rank.h"

/* The messages of the agent's children to it, in memory that they share. */
struct pulse_shared {
    _Atomic(enum gpu_use) gpus; /* of the node, from the sampler; only local rank 0 has one */
    _Atomic bool stacks_taken;
    char where[128];
};

struct pulse {
    struct hang_clock clock;
    int64_t silent_ms, idle_ms;
    off_t log_bytes;
    uint64_t ticks; /* of the rank's processes, at the last step */
    struct pulse_shared *shared;
    pid_t taker;             /* takes stacks; 0: nobody does */
    int64_t taker_killed_ms; /* monotonic: when it is */
    void (*tell)(struct rank *r, const json_t *message);
};

/* Sets when the next step is due (r->tick_at_ms), if the run is to be watched. tell sends a message to the
 * supervisor. */
void pulse_open(struct pulse *p, struct rank *r, void (*tell)(struct rank *r, const json_t *message));
void pulse_close(struct pulse *p);
/* Measures and reports, or looks after who takes stacks. Call it when r->tick_at_ms has come. */
void pulse_step(struct pulse *p, struct rank *r);
/* Takes the stacks of the rank, for the supervisor, which has asked for them. */
void pulse_take_stacks(struct pulse *p, struct rank *r);

/* Tells whether processes that used so many ticks in passed_ms, of ticks_per_s, have computed. Pure. */
bool pulse_computed(uint64_t ticks, int64_t passed_ms, int64_t ticks_per_s);

#endif
