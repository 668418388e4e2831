/* rows.h - the rows of runs that 'a top' shows: a run, or all runs of a sweep folded into one. Pure. */
#ifndef ACT_CLI_TOP_ROWS_H
#define ACT_CLI_TOP_ROWS_H

#include <jansson.h>

#include "cli/top/text.h"

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
