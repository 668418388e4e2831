/* text.h - what 'a top' shows, as lines: facts in, text out, without a terminal. */
#ifndef ACT_CLI_TOP_TEXT_H
#define ACT_CLI_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "flow/board/board.h"

enum top_sort { TOP_BY_STATE, TOP_BY_TIME, TOP_BY_USE, TOP_BY_SILENCE, TOP_BY_CLUSTER, TOP_SORTS };
const char *top_sort_name(enum top_sort sort);

struct top_look {
    int rows, columns; /* both 0: as in a pipe, all of it, and nothing is cut */
    bool coloured;
    bool plain; /* only ASCII of our own */
    bool help;  /* the keys instead */
    enum top_sort sort;
    char *filter; /* words that are all in a run's id, name, cluster, state, command or tags; NULL: all runs */
    bool folds;   /* the runs of a sweep into one row, as neither --name nor --tag chose the runs, */
    struct act_strv unfolded; /* but of these */
    const char *bottom;       /* the last line; NULL: the most important keys */
    int64_t now_unix_s;
    char *chosen;   /* the id of the run that keys are for, which is set where it is none of the shown ones */
    char *sweep;    /* out: that it is of; NULL: none */
    size_t folded;  /* out: so many runs are in its row; 0: it alone */
    size_t first;   /* which of the runs is at the top; set where the chosen one would not be shown */
    unsigned known; /* columns that something was known for since the screen is so wide: */
    int known_for;
};

/* Returns the runs that pass the filter, in order. The array is new. */
const struct flow_board_run **top_order(const struct flow_board_view *view, const struct top_look *look, size_t *out_n);
/* Makes the lines, and adds the ids of the running runs among them. */
void top_lines(const struct flow_board_view *view, struct top_look *look, struct act_strv *lines,
               struct act_strv *out_seen);
/* Folds or unfolds a sweep. */
void top_toggle(struct top_look *look, const char *sweep);
/* Chooses the run that is so many rows below the chosen one. */
void top_move(const struct flow_board_view *view, struct top_look *look, int64_t by);

#endif
