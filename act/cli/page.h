/* page.h - a report as one HTML file: no script, nothing from elsewhere, and under its policy nothing could be. */
#ifndef ACT_CLI_PAGE_H
#define ACT_CLI_PAGE_H

#include <stddef.h>

#include "base/text.h"
#include "draw/draw.h"
#include "flow/runs/report.h"

/* The runs by a number, as a table. */
struct page_board {
    const char *key; /* NULL: there is none */
    struct act_strv heads, cells;
};
/* Appends the page of n runs (at least one). Their series get fewer points. */
void page_write(struct flow_report *reports, size_t n, const struct page_board *board, struct act_buf *out);

/* The chart of one key of several runs; the runs without it have no curve. curves and labels have room for n, and must
 * live as long as the chart. out->n 0: none has it. Each curve gets at most points points. */
void page_key_chart(struct numbers *const *numbers, const struct flow_run *const *runs, size_t n, const char *key,
                    size_t points, struct draw_curve *curves, struct draw_chart *out);

#endif
