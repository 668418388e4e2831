/* hang.h - when a run hangs (run_spec.hang_s), and what is done then.
 *
 * The agent of each rank measures, and reports, how long the rank has written nothing and computed nothing (pulse.h).
 * The run hangs when, for the whole time,
 *
 *   - all ranks run, but for those that have ended, and nobody has written anything, and
 *   - nobody has computed anything: on nodes with nvidia-smi every sample says that all GPUs of the run are idle; on
 *     others, and where nvidia-smi does not answer, the processes of the ranks used almost no processor time.
 *     With hang_any_gpus this is not asked: kernels that wait for other ranks, as those of NCCL, keep a GPU busy.
 *
 * All times are counted in steps that each process takes itself, and a step counts no more than it should last: so
 * whatever is stopped, suspended or starved does not age, and no clock is compared with another one.
 *
 * Then all agents are asked for stacks (stacks.h); when they have answered, or after HANG_STACKS_MS, it is on the disk
 * that the attempt has failed of class HANG_CLASS, and the ranks are ended as by an abort.
 */
#ifndef ACT_NODE_HANG_H
#define ACT_NODE_HANG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/run.h"

#define HANG_CLASS "hang"

enum { HANG_STACKS_MS = 45 * 1000 };

/* ---- pure */

/* Counts time in which this process ran. Begins with zeros. */
struct hang_clock {
    int64_t last_ms; /* monotonic; 0: nothing was counted yet */
    int64_t counted_ms;
};
/* Counts the time since the last step, most_ms at most; returns it. */
int64_t hang_clock_step(struct hang_clock *clock, int64_t now_ms, int64_t most_ms);

/* Returns the milliseconds between two reports of a rank. */
int64_t hang_step_ms(const struct run_spec *spec);

/* The knowledge of the supervisor about a rank. */
struct hang_rank {
    bool started, ended;
    bool heard;                 /* it has reported */
    int64_t heard_ms;           /* counted by the supervisor, when it did last */
    int64_t silent_ms, idle_ms; /* as it reported then */
    bool by_gpus;               /* idle_ms is of all GPUs of its node, not of its own processes */
};

/* Returns the rank that is silent longest, if all of them together hang; -1: they do not. now_ms is counted by the
 * supervisor; last_end_ms, too: when the last rank ended, 0: none has. A rank that has not reported for as long as a
 * hang takes says nothing either way. */
int hang_judge(const struct run_spec *spec, const struct hang_rank *ranks, int64_t now_ms, int64_t last_end_ms);

/* ---- the supervisor's part */

struct supervisor;

struct hang {
    enum { HANG_NOT, HANG_ASKS, HANG_IS } phase; /* HANG_ASKS: the agents were asked for stacks */
    struct hang_clock clock;
    struct hang_rank *ranks; /* NULL: nobody looks */
    int64_t last_end_ms;
    int rank;    /* silent longest */
    int answers; /* still awaited */
    char where[128];
    char reason[480]; /* of HANG_IS */
};

/* Prepares to hear from all ranks, if the run is to be watched. */
void hang_open(struct supervisor *s);
void hang_close(struct supervisor *s);
/* Notes that a rank has started, or ended. */
void hang_on_record(struct supervisor *s, int rank);
/* Handle the messages "pulse" and "stacks" of a rank, see ranks.c. */
void hang_on_pulse(struct supervisor *s, int rank, const json_t *message);
void hang_on_stacks(struct supervisor *s, int rank, const json_t *message);
/* Ends the run once all agents have answered, or have had the time to. Does nothing if it is ending already. */
void hang_end_run(struct supervisor *s);

#endif
