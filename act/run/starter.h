/* starter.h - programs that start the processes of a node by themselves: torchrun, accelerate launch, deepspeed. A run
 * starts one of them on each node, and fills in the options that the user left out. Pure.
 *
 * Source: torch/distributed/run.py and launch.py (PyTorch 1.13 and 2.9), accelerate/commands/launch.py and
 * utils/launch.py (Accelerate 1.x), deepspeed/launcher/runner.py and launch.py (DeepSpeed 0.16).
 */
#ifndef ACT_RUN_STARTER_H
#define ACT_RUN_STARTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A starter in a command. */
struct run_starter {
    const char *name;                /* "torchrun", "torch.distributed.run" */
    const struct starter_kind *kind; /* its options: opaque */
    size_t first, end;               /* its own options are the words from first to before end */
};

/* Tells whether the command argv is a starter. has_gpus: the nodes have GPUs; some are starters only then. */
bool run_starter_find(const struct act_strv *argv, bool has_gpus, struct run_starter *out);

/* Tells whether the user has written one of these options of the starter: names without dashes, with "_" for "-" and
 * blanks between them. */
bool run_starter_has(const struct run_starter *starter, const struct act_strv *argv, const char *options);

/* The facts of a run that a starter needs. */
struct run_starter_place {
    int nodes, per_node; /* nodes, and processes on each */
    int node_rank;
    const char *address, *port; /* of the first node */
    const char *id;             /* of the run */
    const char *hosts;          /* the path of a file with a line "<name> slots=<processes>" for each node */
    bool narrowed;              /* the environment says which GPUs of the node belong to the run */
};

/* Adds the missing options to argv, before the user's own, which come last and so win. */
void run_starter_fill(const struct run_starter *starter, const struct run_starter_place *place, struct act_strv *argv);

/* The numbers that the user may have given. */
enum run_starter_number { RUN_STARTER_NODES, RUN_STARTER_PER_NODE, RUN_STARTER_TOTAL };

/* Returns the user's text for that number, in argv; NULL: there is none. *out_option: the option, without dashes. */
const char *run_starter_written(const struct run_starter *starter, const struct act_strv *argv,
                                enum run_starter_number number, const char **out_option);

#endif
