/* rows.h - the runs of a list that pass a filter, in the order that is asked for. Pure.
 *
 * A filter is words that must all hold:
 *
 *     base              a piece of id, name, cluster, state, command, tags or why it failed
 *     state:fail        a piece of that one; also id:, name:, cluster:, platform:, project:, command:, why:, sweep:
 *     lr=0.1            a tag, an argument ("--lr 0.1", "lr=1e-1") or the last value of a number in the log
 *     loss<0.5          the last value of a number, or a tag that is one; also >, <= and >=
 *
 * Case does not matter. A word that means nothing of that is looked for as it is.
 */
#ifndef ACT_CLI_PAGE_ROWS_H
#define ACT_CLI_PAGE_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "flow/run.h"

struct page_row {
    struct flow_run run;
    json_t *note; /* as of flow_read_notes(); may be NULL */
    size_t at;    /* in the list as it was */
    size_t group; /* of groups.h; 0: none */
    bool is_line; /* it is shown; else only something is said of it */
};
struct page_rows {
    struct page_row *v;
    size_t n;
};
void page_row_release(struct page_row *row);
void page_rows_release(struct page_rows *rows);

/* Reads a whole text as a number that is finite. */
bool page_number_of(const char *text, double *out);

struct page_term;
struct page_filter_words {
    struct page_term *v; /* at most 32; what follows is ignored */
    size_t n;
};
void page_filter_read(const char *words, struct page_filter_words *out);
void page_filter_words_release(struct page_filter_words *filter);
/* Tells whether a term is about what notes have. */
bool page_filter_needs_notes(const struct page_filter_words *filter);
bool page_filter_passes(const struct page_filter_words *filter, const struct page_row *row);

/* Reads "name", "key:loss", "tag:lr", ...; false: there is no such order. The text is not copied. */
struct page_order {
    int by;
    const char *name; /* of a number or a tag */
    bool descends;
};
bool page_order_read(const char *text, struct page_order *out);
bool page_order_needs_notes(const struct page_order *order);
/* Sorts; rows that lack the value come last in either direction, and equal ones stay as they are. */
void page_order_sort(const struct page_order *order, struct page_rows *rows);

#endif
