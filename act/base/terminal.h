/* terminal.h - makes text from outside harmless before a terminal shows it.
 *
 * Logs, names and messages of services may contain characters that move a terminal's cursor, set its title, reverse
 * the text or hide a part of it. A terminal gets '?' for such a character; a pipe or a file gets the bytes. The
 * program's streams are guarded as a whole, so that no output can bypass this.
 */
#ifndef ACT_BASE_TERMINAL_H
#define ACT_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

/* Text may contain these besides printable characters and tabs. */
enum {
    ACT_SHOW_LINES = 1,    /* line ends; "\r\n" and "\r" are line ends too */
    ACT_SHOW_COLOURS = 2,  /* "ESC [ digits and ; m" */
    ACT_SHOW_PROGRESS = 4, /* the text after "\r" replaces the line, as in a progress bar */
};

/* A text that comes in pieces, which may end within a character or a colour. {.allow = ACT_SHOW_...} is the
 * beginning. */
struct act_harmless {
    unsigned allow;
    char held[64]; /* an incomplete character or colour */
    size_t n_held;
    unsigned marks;       /* on the last character */
    bool in_line;         /* the last character was no line end */
    bool after_return;    /* it was "\r" */
    bool overwrites;      /* the next character starts the line over */
    bool colours_changed; /* a colour came and was not reset */
};

/* Appends len more bytes to out as a terminal may show them. '?' replaces control characters (C0, DEL, C1), the ESC of
 * escape sequences, invisible characters and those that change the direction of text (U+202E, U+200B, ...), line and
 * paragraph separators, bytes that are not UTF-8, and the seventh mark on one character (further ones are left out). */
void act_harmless_add(struct act_harmless *text, const char *data, size_t len, struct act_buf *out);
/* Ends the text: appends to out what was held back, and resets colours that were changed. */
void act_harmless_end(struct act_harmless *text, struct act_buf *out);

/* Returns the state that a line ends in, of those that "\r" replaced, as a progress bar has them, and sets *len to its
 * length; the end of the line is no part of it. */
const char *act_last_state(const char *line, size_t *len);

/* Guards stdout and stderr if they are terminals: from now on they show text with ACT_SHOW_LINES. Call it once,
 * before anything is printed. */
void act_terminal_guard(void);
/* Says what stdout or stderr shows next: text with allow (the same again continues the text), or with ACT_SHOW_ALL
 * ACT's own colours and cursor movements. Does nothing to a stream that is not guarded. */
#define ACT_SHOW_ALL (~0U)
void act_terminal_show(FILE *stream, unsigned allow);

/* Returns the width of the terminal that fd is, in columns; 0: it is not a terminal, or the width is not known. */
int act_terminal_width(int fd);
/* Appends text, whose first line begins at column at, in lines of at most width columns, of which all but the first are
 * indented. It is broken at blanks; a longer word stays whole, so that it can be copied. In less than 40 columns the
 * text stays as it is. */
void act_wrap(const char *text, int at, int indent, int width, struct act_buf *out);

/* Writes a whole text to a descriptor, made harmless if that is a terminal. Returns 0, or -1 with errno. */
int act_terminal_write(int fd, const char *data, size_t len) ACT_NODISCARD;

/* Decodes the len bytes that act_utf8_char() found. */
uint32_t act_utf8_decode(const char *s, size_t len);
/* Tells whether a character is drawn over the one before it. */
bool act_is_mark(uint32_t character);
/* Counts the columns that a text without control characters takes on a terminal: none for marks, two for what Unicode
 * calls wide, such as Chinese and emoji, one for any other character and for a byte that is not UTF-8. */
int act_columns(const char *text);
/* Counts the bytes of text that fit into room columns; *out_columns: how many columns they take. It cuts no character,
 * and leaves marks with their characters. */
size_t act_columns_fit(const char *text, int room, int *out_columns);

#endif
