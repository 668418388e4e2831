/* groups.h - the runs of a list in groups, such as sweeps: a group is a line, with what its runs have together. A run
 * that is alone in its group stands alone. Pure.
 *
 * Runs are taken one after the other in the order of the list, and only those that a page of so many lines needs are
 * kept: ten thousand runs are never in memory because there are ten thousand.
 */
#ifndef ACT_CLI_PAGE_GROUPS_H
#define ACT_CLI_PAGE_GROUPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/page/rows.h"

struct page_group;
struct page_groups {
    const char *tag; /* its values are the groups; NULL: days are, or nothing is */
    bool by_day, is_of_sweeps;
    const struct act_strv *open; /* the names of the groups whose runs are all lines; NULL: of none */
    size_t first, max;           /* the lines of the page */
    size_t lines, runs;          /* how many there were */
    json_t *places;              /* of the groups, by their names */
    struct page_group *v;
    size_t n;
};

/* Reads "sweep", "day" or "tag:lr", which is not copied; false: it is none of them. The caller releases out. */
bool page_groups_read(const char *text, struct page_groups *out);
void page_groups_release(struct page_groups *groups);

/* Counts the next run of the list, and tells whether the page needs it: as a line of its own (row->is_line), or for
 * what is said of its group. */
bool page_groups_take(struct page_groups *groups, struct page_row *row);
/* Returns the name of the group in which a line stands; NULL: in none. */
const char *page_groups_of(const struct page_groups *groups, const struct page_row *row);
/* Returns the groups that have a line on the page, as data. rows: those that the page needs, with their notes; keys:
 * the numbers of which the best is told. */
json_t *page_groups_json(const struct page_groups *groups, const struct page_rows *rows, const struct act_strv *keys);

/* Which value of a number is the best. */
enum page_better { PAGE_NONE_BEST, PAGE_LOW_BEST, PAGE_HIGH_BEST };
/* Returns that by the name of the number: none of what is set rather than found, as a learning rate. */
enum page_better page_better(const char *key);
/* Returns the same as data: "low", "high" or null. */
json_t *page_better_json(const char *key);

#endif
