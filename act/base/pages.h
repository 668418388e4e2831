/* pages.h - the end of a list that a service gives page by page, each with a token that names the next one. */
#ifndef ACT_BASE_PAGES_H
#define ACT_BASE_PAGES_H

#include "base/error.h"

/* Begins with zeros. */
struct act_pages {
    int n;      /* of those that named a next one */
    char *mark; /* an earlier token */
};

/* After a page that names the next one by token: whether to go on. -ACT_FAIL: there were most pages, or the service
 * leads round in a circle, naming one page again or several by turns, which is noticed within four times as many pages
 * as there are. what: for the error, after "cannot ". */
int act_pages_next(struct act_pages *pages, const char *token, int most, const char *what,
                   struct act_error *err) ACT_NODISCARD;
void act_pages_release(struct act_pages *pages);

#endif
