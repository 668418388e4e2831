/* board.h - all runs and their clusters at a glance, kept fresh: what 'a top' shows.
 *
 * Each place (clusters that know the same runs) is asked by a thread of its own, which has everything of its own: a
 * flow, a loop, connections. So one that does not answer holds up nobody. All that threads share is the view, under
 * one lock.
 */
#ifndef ACT_FLOW_BOARD_BOARD_H
#define ACT_FLOW_BOARD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/runs/runs.h"
#include "numbers/numbers.h"
#include "platform/platform.h"

enum {
    FLOW_LIVE_NUMBERS = 3,
    FLOW_LIVE_POINTS = 48, /* of a curve */
    FLOW_BOARD_FOLLOWED = 64,
};

/* A number that the log of rank 0 repeats. */
struct flow_live_number {
    char name[NUMBERS_NAME + 1];
    double last;         /* also NaN or infinite */
    struct series curve; /* of what was read, sorted */
};

/* What a running run is doing. */
struct flow_live {
    char *line;           /* rank 0's last one; NULL: none yet */
    int64_t spoke_unix_s; /* when its log last changed; 0: not known */
    int held_up_by;       /* of ranks that are silent for long: the one that the others seem to wait for; -1: none */
    bool has_gpus;        /* else busy and memory are those of the processors and the host */
    double busy, memory;  /* means over the nodes, 0 to 1; negative: not known */
    struct flow_live_number numbers[FLOW_LIVE_NUMBERS];
    size_t n_numbers;
};

struct flow_board_run {
    struct flow_run run;
    struct flow_live *live; /* NULL: it is not followed, or nothing is known yet */
    size_t cluster;         /* of the view's clusters */
};

struct flow_board_cluster {
    char *name;                      /* of several in one place: "a, b" */
    char *error;                     /* why it cannot be asked; NULL: it answers */
    struct platform_summary summary; /* if has_summary */
    bool has_summary;
    struct platform_gpus gpus; /* of a single machine */
    bool asked;                /* it has answered, or failed to, at least once */
    size_t running, queued;    /* runs of this user */
};

struct flow_board_view {
    struct flow_board_run **runs; /* newest first */
    size_t n;
    size_t total; /* how many there are, even beyond the maximum */
    struct flow_board_cluster **clusters;
    size_t n_clusters;
    char *error;  /* why the runs cannot be listed; NULL: they can */
    char *said;   /* what became of the last request; NULL: nothing yet */
    bool listed;  /* the runs were listed at least once */
    bool settled; /* and every cluster was asked */
};

struct flow_board_options {
    struct flow_table table; /* which runs; what it points to outlives the board */
    const char *cluster;     /* that is asked even if it has no run; NULL: the default one */
    int64_t interval_ms;
    bool table_only; /* only the runs, as flow_list_runs() lists them: no clusters, nothing live */
    /* The view is another one, or parts of it are; from any thread. */
    void (*changed)(void *arg);
    void *arg;
};

struct flow_board;
/* Makes a board, and starts it. From now on no thread of this process asks the user anything: what would have to be
 * asked is an error. */
struct flow_board *flow_board_new(const struct flow_board_options *options);
/* Ends the threads and frees board, which may be NULL. False: a thread still waits for a place that does not
 * answer, and goes on with what is its own: this process is to end by _exit(). */
bool flow_board_free(struct flow_board *board) ACT_NODISCARD;
/* Returns the view, which stays as it is until flow_board_unlock(); that must come soon. */
const struct flow_board_view *flow_board_lock(struct flow_board *board);
void flow_board_unlock(struct flow_board *board);
/* Reads from now on only the logs of these runs, at most FLOW_BOARD_FOLLOWED; until then those of the newest running
 * ones in each place are. */
void flow_board_follow(struct flow_board *board, const char *const *ids, size_t n);
/* Asks now, whatever the interval. */
void flow_board_hurry(struct flow_board *board);
/* Has the run aborted; the view's "said" tells what became of it. */
void flow_board_abort(struct flow_board *board, const char *id);

#endif
