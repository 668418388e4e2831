/* wrap.h - prose and examples in lines that fit. */
#ifndef ACT_CLI_PRINT_WRAP_H
#define ACT_CLI_PRINT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Returns how wide help is: as the terminal, 80 columns in a pipe. */
int cli_help_width(void);
/* Returns the length of the first paragraph of prose in a table, with its last newline. */
size_t cli_paragraph(const char *text);
/* Prints the words of len bytes of text in lines of at most width columns: the first begins at column at, which is
 * where the output is, the others are indented. */
void cli_wrap(FILE *out, const char *text, size_t len, int at, int indent, int width);
/* Prints a line of prose on stdout; on a terminal in lines that fit. */
void cli_put_prose(const char *text, int at, int indent);
/* Prints the lines of examples: an explanation that has no room beside its example comes below it. */
void cli_put_examples(FILE *out, const char *text, int indent, int width);

#endif
