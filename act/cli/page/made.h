/* made.h - pages, and the data of pages, that other processes make: "a __page", of the same program. Kept for a while,
 * so that several browsers are one question.
 *
 * A page may need a cluster that answers slowly, gigabytes of logs, or texts of strangers: none of that stops, grows or
 * breaks the process that listens. Two are made at a time, so many are kept, each of so many bytes and all together of
 * so many; whoever waits longer than a moment gets the page as it was last, or is told that it is being made.
 */
#ifndef ACT_CLI_PAGE_MADE_H
#define ACT_CLI_PAGE_MADE_H

#include <stdbool.h>

#include "base/text.h"
#include "web/web.h"

struct made;

struct engine;
struct made *made_new(struct engine *engine);
/* Ends what is under way. The visits have been ended. NULL is fine. */
void made_free(struct made *made);

enum made_form {
    MADE_PAGE,    /* HTML */
    MADE_JSON,    /* data, for a program */
    MADE_FILE,    /* a file, which is not kept here: download.h gives it */
    MADE_NOTHING, /* only what it does matters */
};
struct made_wish {
    const struct act_strv *words; /* for "a __page" */
    enum made_form form;
    bool gathers; /* it says what made_want() had to say */
};
/* Answers a visit with what "a __page" makes of the words. */
void made_answer(struct made *made, const struct made_wish *wish, struct web_visit *visit);

/* Has "a __page" do something that no visit waits for, unless it was done a while ago. It keeps nobody from being
 * answered. What it has to say goes, as words PAGE_HEARD, to the next that is made with gathers. When it fails it is
 * done again after a while, which becomes longer. */
void made_want(struct made *made, const struct act_strv *words);

/* Returns the status of an answer for a process that has failed with an exit status. */
int made_status_of(int exit_status);

/* The answer that is given instead. */
struct made_words {
    enum made_form form; /* of what was asked for */
    int status;
    const char *title, *text; /* data has only the text, as {"error": "..."}; else it is a page */
    int refresh_s;            /* as of struct web_answer */
};
/* Answers a visit with them. policy: of a page. */
void made_say(struct web_visit *visit, const struct made_words *words, const char *policy);

#endif
