/* screen.h - the whole of a terminal, for what is redrawn in place: frames, keys, signals. Plain ANSI (ECMA-48), and of
 * xterm's private modes only those that every terminal in use has or ignores: the other screen (1049), the cursor
 * (25), the end of lines (7). Source: invisible-island.net/xterm/ctlseqs/ctlseqs.html.
 */
#ifndef ACT_CLI_SCREEN_SCREEN_H
#define ACT_CLI_SCREEN_SCREEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

struct engine;

/* Keys that are no characters; the others are bytes. */
enum screen_key {
    SCREEN_UP = 256,
    SCREEN_DOWN,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_ESCAPE,
    SCREEN_ENTER,
    SCREEN_BACKSPACE,
    SCREEN_ERASE_WORD, /* Ctrl-W */
    SCREEN_ERASE_ALL,  /* Ctrl-U */
};

struct screen {
    /* Set by the owner. */
    struct engine *engine;
    void (*key)(void *arg, int key);
    /* It is to be drawn anew: its size is another one, or the program was stopped and goes on. */
    void (*redraw)(void *arg);
    void (*end)(void *arg, int signal); /* SIGINT, SIGTERM, SIGHUP, SIGQUIT; SIGHUP if the terminal is gone */
    void *arg;

    /* Its own. */
    int rows, columns;
    bool on;
    int signals;          /* descriptors */
    int said, stderr_fd;  /* what is written to stderr meanwhile; stderr itself */
    struct act_strv kept; /* of that, for the end */
    struct act_strv frame;
};

/* Checks that this terminal can be redrawn in place; else -ACT_USAGE with what to do instead: what is "'a q' prints
 * the table once". */
int screen_check(const char *what, struct act_error *err) ACT_NODISCARD;
/* Takes the terminal over, in every way in which this program ends until screen_close(). Signals of this thread, and of
 * those that it starts from now on, are the screen's. */
int screen_open(struct screen *screen, struct act_error *err) ACT_NODISCARD;
/* Prints on stderr what was said meanwhile. */
void screen_close(struct screen *screen);
/* Shows lines, each at most screen->columns wide and harmless but for ACT's own colours: only those that are other than
 * in the last frame are written, in one write. */
void screen_draw(struct screen *screen, const struct act_strv *lines);
/* Returns the last line that was written to stderr since, a new string; NULL: none. */
char *screen_said(struct screen *screen);
/* Gives the terminal to a program until it ends, waits for a key (Ctrl-C is one) unless Ctrl-C ended it, and takes it
 * back. head: a line to print before it, in one width of the terminal. */
int screen_run(struct screen *screen, const char *head, char *const *argv, struct act_error *err) ACT_NODISCARD;

/* Reads one key at the start of len (not 0) bytes; returns how many it takes. *out 0: it is none that is known. */
size_t screen_read_key(const char *bytes, size_t len, int *out);

#endif
