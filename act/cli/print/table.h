/* table.h - tables that fit the terminal: the least important columns are cut first, then left out, those before all
 * others of which nothing is known in any row. In a pipe nothing is cut, and nothing left out. A number is never cut:
 * it would be read as another one. */
#ifndef ACT_CLI_PRINT_TABLE_H
#define ACT_CLI_PRINT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { CLI_RANK_MAX = 15 };

/* How a cell that is too wide is shortened. */
enum cli_cut {
    CLI_CUT_ANYWHERE, /* what fits, and "..." */
    CLI_CUT_WORDS,    /* whole words, and "..." */
    CLI_CUT_PARTS,    /* its first parts, which two blanks separate, as a whole */
    CLI_CUT_COMMAND,  /* whole words; where its script would not be seen, "..." and what comes from there;
                          where commands that differ would look alike, their ends, or what they do not share */
    CLI_CUT_MIDDLE,   /* what fits of its beginning, "..." and its last words */
    CLI_CUT_APART,    /* its script, "..." and what comes behind what commands of that script share */
};

struct cli_column {
    const char *head; /* NULL in the first one: the table has no header */
    char align;       /* 'l' or 'r' */
    int rank;         /* 0: always shown; else the column with the highest rank is cut, and left out, first */
    int min, pad;     /* cut to no less, but no number is (0: not cut); in a pipe, aligned up to this width (0: any) */
    int wide;         /* on a terminal at least so wide, so that it stays where it is when its cells change */
    enum cli_cut cut;
    bool is_state; /* the state of a run, shown in its colour */
    bool below;    /* if it does not fit beside more important ones, it is printed on lines below each row */
};

/* Returns the width of stdout, as act_terminal_width(). */
int cli_width(void);
/* Replaces widths, which n columns need (not 0), by those that fit in room terminal columns (0: no limit), with two
 * blanks in between. 0: the column is left out. */
void cli_fit(const struct cli_column *columns, int *widths, size_t n, int room);
/* Appends a table; cells holds the cells of all rows, one after another, each a single line (act_one_line()). room as
 * for cli_fit(). */
void cli_table_text(const struct cli_column *columns, size_t n, const struct act_strv *cells, int room, bool coloured,
                    struct act_buf *out);
/* Makes a table whose cells are given row by row, or some rows together, and need not be in memory at once: all rows
 * are measured first, then added. */
struct cli_table *cli_table_new(const struct cli_column *columns, size_t n, int room, bool coloured);
/* Makes the columns wide enough for these rows. */
void cli_table_measure(struct cli_table *table, const struct act_strv *cells);
/* Appends these rows, as cli_table_text() would; the first call appends the header before them, and decides by these
 * rows how commands are cut. */
void cli_table_add(struct cli_table *table, const struct act_strv *cells, struct act_buf *out);
void cli_table_free(struct cli_table *table);
/* Prints a table on stdout, as wide as that is. */
void cli_print_table(const struct cli_column *columns, size_t n, const struct act_strv *cells);
/* Prints what cli_table_text() made. */
void cli_put_table(const struct act_buf *text);
/* Adds a cell with a number; "-" for a negative one, which is not known. */
void cli_push_count(struct act_strv *cells, int64_t n);
/* Adds a cell with a text; "-" for NULL and "". */
void cli_push_text(struct act_strv *cells, const char *text);
/* Appends any text as one line of at most room columns (0: no limit), as a terminal may show it. */
void cli_add_line(struct act_buf *out, const char *text, int room, enum cli_cut cut);

#endif
