/* made.h - pages that other processes make: "a __page", of the same program. Kept for a while, so that several browsers
 * are one question.
 *
 * A page may need a cluster that answers slowly, gigabytes of logs, or texts of strangers: none of that stops, grows or
 * breaks the process that listens. Two are made at a time, so many are kept, each of so many bytes; whoever waits
 * longer than a moment gets the page as it was last, or is told that it is being made.
 */
#ifndef ACT_CLI_PAGE_MADE_H
#define ACT_CLI_PAGE_MADE_H

#include "base/text.h"
#include "web/web.h"

struct made;

struct engine;
struct made *made_new(struct engine *engine);
/* Ends what is under way. The visits have been ended. NULL is fine. */
void made_free(struct made *made);

/* Answers a visit with the page that "a __page" with these words makes; held: the browser is not to ask again. */
void made_answer(struct made *made, const struct act_strv *words, bool held, struct web_visit *visit);

/* Answers a visit with a page that says something; answer has no body. */
void made_say(struct web_visit *visit, const struct web_answer *answer, const char *title, const char *text);

#endif
