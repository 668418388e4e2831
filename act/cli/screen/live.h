/* live.h - a board on the screen: 'a top', 'a q --watch'. */
#ifndef ACT_CLI_SCREEN_LIVE_H
#define ACT_CLI_SCREEN_LIVE_H

#include "cli/command/command.h"
#include "cli/screen/screen.h"
#include "flow/board/board.h"

enum { LIVE_INTERVAL_S = 2 };

struct live {
    /* Set by the owner. */
    struct flow_board_options options;
    /* Adds the lines of a frame. The view is locked. */
    void (*draw)(void *arg, const struct flow_board_view *view, struct act_strv *lines);
    void (*drawn)(void *arg); /* is called after it, without the lock; may be NULL */
    void (*key)(void *arg, int key);
    void *arg;

    /* Its own. */
    struct flow_board *board;
    struct screen screen;
    struct engine *engine;
    int wake; /* an eventfd: the view is another one */
    bool due; /* a frame will be drawn soon */
    bool over;
    int signal; /* that ended it; 0: none */
    char *said; /* the last warning; NULL: none */
    int64_t said_ms, drawn_ms;
};

/* Runs until live_quit() or a signal. Returns 0, or the exit status. what: as for screen_check(). */
int live_run(struct live *live, struct cli *cli, const char *what, struct act_error *err) ACT_NODISCARD;
void live_quit(struct live *live);
/* Waits until every cluster was asked once, without a screen: for one frame. */
void live_settle(struct live *live, struct cli *cli);
/* Frees the board; if that has to wait for a place that does not answer, ends the program with this status. */
void live_end_board(struct live *live, int status);

#endif
