/* samples.h - what a node used over time, read from metrics/<node>.jsonl (node/metrics.h is its form).
 *
 * A day of a node with eight GPUs is 11 MB of JSON, so that a line is read like the one before it as long as only
 * numbers differ, and as JSON otherwise. A line that is not whole, as the last one of a copy may be, is left out.
 */
#ifndef ACT_NUMBERS_SAMPLES_H
#define ACT_NUMBERS_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers/series.h"

enum { SAMPLES_GPUS = 16, SAMPLES_LINE = 16384 };

enum samples_what {
    SAMPLES_CPU_BUSY,  /* share of the processors, 0 to 1 */
    SAMPLES_MEMORY,    /* share that is used, 0 to 1 */
    SAMPLES_DISK_FULL, /* of the code root, share that is used */
    SAMPLES_RUN_FULL,  /* of the run's folder, share that is used */
    SAMPLES_DISK_READ, /* bytes per second, as all below */
    SAMPLES_DISK_WRITTEN,
    SAMPLES_NET_RECEIVED,
    SAMPLES_NET_SENT,
    SAMPLES_IB_RECEIVED,
    SAMPLES_IB_SENT,
    SAMPLES_GPU_BUSY, /* shares, of each GPU */
    SAMPLES_GPU_MEMORY = SAMPLES_GPU_BUSY + SAMPLES_GPUS,
    SAMPLES_CURVES = SAMPLES_GPU_MEMORY + SAMPLES_GPUS
};

struct samples; /* of one node */
struct samples *samples_new(void);
/* Has only what was measured in a range of Unix seconds kept. */
void samples_set_range(struct samples *s, struct series_range range);
/* Pieces of any size, in the order of the attempts. */
void samples_feed(struct samples *s, const char *text, size_t len);
void samples_end(struct samples *s); /* of a file; another one may follow */
void samples_free(struct samples *s);

/* Takes a line for people instead, without RUN_LOG_METRICS before it: "node n1, cpu 35 %, memory 12.1/251.0 GiB, ...".
 * out_node: the name of the node, new string. False: it is not such a line. */
bool samples_take_text(struct samples *s, const char *line, char **out_node);

/* The curve of SAMPLES_..., of a GPU SAMPLES_GPU_... + its index: Unix seconds against values, to be sorted by
 * series_end(). */
struct series *samples_curve(struct samples *s, int what);
/* Returns how many GPUs there are: one more than the highest index. */
int samples_gpus(const struct samples *s);
uint64_t samples_lines(const struct samples *s); /* that were read */
uint64_t samples_bad(const struct samples *s);   /* that were no samples; a cut one at an end does not count */

#endif
