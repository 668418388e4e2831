/* text.h - the rows of runs that 'a top' shows (rows.c), as lines (text.c) and as JSON (json.c): facts in, text out,
 * without a terminal. */
#ifndef ACT_CLI_TOP_TEXT_H
#define ACT_CLI_TOP_TEXT_H

#include <jansson.h>
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

/* A row: a run, or all runs of a sweep folded into one. */
struct top_row {
    const struct flow_board_run *run;     /* of a folded sweep the first one in the order */
    char *sweep;                          /* that the run is of; NULL: none */
    const struct flow_board_run **folded; /* the runs of the folded sweep, two or more, in the order; NULL: a run */
    size_t n_folded, counts[RUN_UNKNOWN + 1];
};

struct top_rows {
    struct top_row *v;
    size_t n;
};

/* Makes the rows, which live as long as the view. */
void top_rows(const struct flow_board_view *view, const struct top_look *look, struct top_rows *out);
void top_rows_release(struct top_rows *rows);
/* Returns the row that has the run; the first one if none has. */
size_t top_find(const struct top_rows *rows, const char *chosen);
/* Returns the best of the last values that the runs of a folded sweep have of a number whose name says what is
 * better ("loss", "acc"); NULL: none is known. */
const struct flow_live_number *top_best(const struct top_row *row);

/* Returns the view as 'a top --json' prints it (json.c). A new reference. */
json_t *top_json(const struct flow_board_view *view);

#endif
