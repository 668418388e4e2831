/* places.h - for the files of the board only: its places, and the logs that they follow. */
#ifndef ACT_FLOW_BOARD_PLACES_H
#define ACT_FLOW_BOARD_PLACES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "flow/board/board.h"
#include "flow/flow.h"

/* A thread waits on its own loop, so that what its platforms watch goes on. */
struct board_bell {
    int fd;    /* others ring it */
    bool rung; /* or a platform has news; the thread's own */
};

struct board_place {
    struct flow_board *board;
    struct flow_board_cluster shown; /* in the view */
    char *where;                     /* flow_place_of() */
    struct ledger_run sample;        /* of a run there: how it is opened */
    size_t index;                    /* of the view's clusters */
    pthread_t thread;
    struct board_bell bell;
    bool has_thread, ended;
    bool hurry, look_at_logs;
    struct act_strv aborts;
};

struct board_entry {
    struct flow_board_run shown; /* in the view */
    bool fresh;                  /* its status came from its platform */
    bool followed;
};

struct flow_board {
    struct flow_board_options options;
    pthread_mutex_t lock; /* of all below */
    pthread_t lister;
    struct board_bell bell; /* of the thread that lists runs */
    bool lister_ended, hurry, stop;
    bool chosen; /* flow_board_follow() said which runs are followed */
    struct flow_board_view view;
    struct board_entry **by_id;
    struct board_place **places; /* as the view's clusters */
    size_t n_places;
};

/* Returns the entry of the run with this id; NULL: it is not in the view. The caller holds the lock. */
struct board_entry *board_find(struct flow_board *board, const char *id);
/* Tells whether the logs of the run are to be read. The caller holds the lock. */
bool board_follows(const struct flow_board *board, const struct board_entry *entry);
/* Tells whoever shows the view. Without the lock. */
void board_changed(struct flow_board *board);
/* Waits until due_ms, or until the bell rings. With the lock held, which is free meanwhile. */
void board_wait(struct flow_board *board, struct flow *flow, struct board_bell *bell, int64_t due_ms);

/* ---- place.c */

/* Asks the place (struct board_place) until the board stops. A function of a thread. */
void *board_ask_place(void *place);

/* ---- follow.c: the logs of one run, read as they grow */

struct board_follow;
/* Follows the logs of a run of the ledger. NULL: they cannot be followed. */
struct board_follow *board_follow_new(struct flow *flow, const char *id);
void board_follow_free(struct board_follow *follow);
const char *board_follow_id(const struct board_follow *follow);
/* Reads what is new: at once where that costs no request, because the log is followed, else every few seconds, or if
 * in_hurry. Returns what is known then, new memory. Failing to read leaves what is known. */
struct flow_live *board_follow_look(struct board_follow *follow, struct flow *flow, const struct run_status *status,
                                    bool in_hurry);
void flow_live_free(struct flow_live *live);

#endif
