/* pod_output.h - what a pod prints: the logs of its ranks, framed so that a reader takes them apart exactly.
 *
 *   [3] text          a line of rank 3
 *   [3+] piece        a part of one that has no end yet: it is longer than POD_PIECE_MAX, or the log ends with it
 *   act: attempt 2    before the first line of the second attempt, and so on
 *   act: log 3 at N   so many bytes of rank 3's log were printed in this attempt: at least every POD_MARK_BYTES, and at
 *                     its end. Kubernetes rotates what it keeps, and a reader sees by this what it has missed.
 *
 *   act: stacks: text  a line of RUN_FILE_STACKS of this pod
 *
 * The bytes of a log are those of its lines and pieces, each line with its newline. Everything else that begins with
 * "act: " is for people.
 */
#ifndef ACT_NODE_POD_OUTPUT_H
#define ACT_NODE_POD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "node/node.h"

enum { POD_PIECE_MAX = 8 * 1024, POD_MARK_BYTES = 64 * 1024 };

/* ---- one log; pure */

struct pod_framer {
    int rank;            /* -1: the stacks */
    struct act_buf line; /* of which the end has not come */
    int64_t printed;     /* bytes of the log */
    int64_t marked;      /* of these, when the last mark was made; -1: none was */
};

/* Appends to out what can be printed after these bytes. */
void pod_framer_add(struct pod_framer *f, const char *data, size_t len, struct act_buf *out);
/* Nothing more comes: appends what is left and the last mark. */
void pod_framer_end(struct pod_framer *f, struct act_buf *out);
void pod_framer_release(struct pod_framer *f);

/* ---- all logs of this pod */

struct pod_log;
struct pod_output {
    struct pod_log *logs;
    int n; /* 0: no attempt has begun */
};

/* Begins an attempt with these ranks on the pod that has the name of this node. Their logs need not exist yet. */
void pod_output_begin(struct pod_output *o, const struct node *node, int first_rank, int n, int attempt);
/* Prints what the logs have got; at most some hundred KiB of each. True: there may be more already. */
bool pod_output_follow(struct pod_output *o);
/* The attempt is over and nothing writes any more: prints the rest. */
void pod_output_end(struct pod_output *o);

#endif
