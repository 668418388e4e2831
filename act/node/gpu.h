/* gpu.h - what nvidia-smi reports about the GPUs of this node. A broken driver can make it hang forever, so it gets a
 * few seconds at most, and nothing waits for one that hangs. */
#ifndef ACT_NODE_GPU_H
#define ACT_NODE_GPU_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "node/child.h"

struct gpu_query {
    char *program; /* NULL: none */
    struct watch *watch;
    pid_t pid;    /* of the one that is running or hangs; 0: none */
    int failures; /* in a row */
    bool told_to_end;
};

/* watch is used while nvidia-smi runs, and must outlive the query. */
void gpu_open(struct gpu_query *q, struct watch *watch);
void gpu_close(struct gpu_query *q);

/* Asks nvidia-smi, and returns the array of metrics.h; NULL if there is no nvidia-smi; JSON null if it did not answer,
 * or is no longer run because it failed three times in a row. A signal to end makes it stop waiting and sets
 * told_to_end.
 */
json_t *gpu_ask(struct gpu_query *q);

/* Whether the GPUs of a run work. */
enum gpu_use {
    GPU_NOT_ASKED, /* yet */
    GPU_UNKNOWN,   /* there are none, or it does not answer, or does not say */
    GPU_IDLE,      /* all of them */
    GPU_BUSY       /* at least one */
};
/* Judges the result of gpu_ask(). visible: the value of CUDA_VISIBLE_DEVICES; if it has numbers, only those GPUs count.
 */
enum gpu_use gpu_use_of(const json_t *gpus, const char *visible);

/* Returns the array from its output; NULL when the output is something else. */
json_t *gpu_parse(const char *text);

#endif
