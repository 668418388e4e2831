/* gpu.h - what nvidia-smi says about the GPUs of this node. A driver in trouble can make it hang for good, so it never
 * gets more than a few seconds, and one that does not end is not waited for. */
#ifndef ACT_NODE_GPU_H
#define ACT_NODE_GPU_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "node/child.h"

struct gpu_query {
    char *program; /* NULL: there is none */
    struct watch *watch;
    pid_t pid;    /* of the one that runs, or did not end; 0: none */
    int failures; /* in a row */
    bool told_to_end;
};

/* watch is used while nvidia-smi runs, and has to outlive the query. */
void gpu_open(struct gpu_query *q, struct watch *watch);
void gpu_close(struct gpu_query *q);

/* NULL when there is no nvidia-smi; JSON null when it did not answer, or is not asked any more because it failed three
 * times in a row; else the array of metrics.h. A signal to end makes it stop waiting and sets told_to_end. */
json_t *gpu_ask(struct gpu_query *q);

/* The array from its output; NULL when the output is something else. */
json_t *gpu_parse(const char *text);

#endif
