/* terminal.h - text from outside, made harmless where a terminal shows it.
 *
 * Logs, names and messages of services may hold what moves a terminal's cursor, sets its title, turns the order of
 * the text around or hides a part of it. On a terminal such a character is shown as '?'; a pipe or a file gets the bytes.
 * The streams of the program are guarded as a whole, so that nothing can be printed around it.
 */
#ifndef ACT_BASE_TERMINAL_H
#define ACT_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

/* What text may hold besides printable characters and tabs. */
enum {
    ACT_SHOW_LINES = 1,    /* line ends; "\r\n" and "\r" are line ends too */
    ACT_SHOW_COLOURS = 2,  /* "ESC [ digits and ; m" */
    ACT_SHOW_PROGRESS = 4, /* what comes behind "\r" takes the place of the line, as of a progress bar */
};

/* A text that comes in pieces, which may end within a character or a colour. {.allow = ACT_SHOW_...} begins one. */
struct act_harmless {
    unsigned allow;
    char held[64]; /* the begin of what the next piece completes */
    size_t n_held;
    unsigned marks;       /* on the last character */
    bool in_line;         /* the last character was no line end */
    bool after_return;    /* it was "\r" */
    bool overwrites;      /* the next character begins the line anew */
    bool colours_changed; /* a colour came, and nobody has set them back */
};

/* Appends what a terminal may get of len more bytes. '?' stands for: control characters (C0, DEL, C1), escape sequences
 * (their ESC), what changes the direction of text or cannot be seen (U+202E, U+200B, ...), line and paragraph separators,
 * bytes that are not UTF-8, and the seventh mark on one character (further ones are left out). */
void act_harmless_add(struct act_harmless *text, const char *data, size_t len, struct act_buf *out);
/* The text ends: what was held back, and the terminal's own colours where they were changed. */
void act_harmless_end(struct act_harmless *text, struct act_buf *out);

/* From now on stdout and stderr, where they are terminals, show text with ACT_SHOW_LINES. Once, before anything is
 * printed. */
void act_terminal_guard(void);
/* What comes next on stdout or stderr: text with allow (the same again: it goes on), or, with ACT_SHOW_ALL, ACT's own
 * colours and movements of the cursor. Nothing happens to a stream that is not guarded. */
#define ACT_SHOW_ALL (~0U)
void act_terminal_show(FILE *stream, unsigned allow);

/* All of a text at once to a descriptor, harmless if that is a terminal. Returns 0, or -1 with errno. */
int act_terminal_write(int fd, const char *data, size_t len) ACT_NODISCARD;

/* The character that the len bytes of act_utf8_char() are. */
uint32_t act_utf8_decode(const char *s, size_t len);
/* Whether a character is drawn over the one before it. */
bool act_is_mark(uint32_t character);
/* How many columns a terminal takes for a text without control characters: none for marks, two for what Unicode calls wide,
 * as Chinese and emoji, one for any other character and for a byte that is no UTF-8. */
int act_columns(const char *text);
/* How many bytes of it fit into room columns, and how many of those they take. No character is cut, and marks stay with
 * theirs. */
size_t act_columns_fit(const char *text, int room, int *out_columns);

#endif
