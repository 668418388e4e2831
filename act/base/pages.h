/* pages.h - finds the end of a list that a service sends page by page, each with a token that names the next one. */
#ifndef ACT_BASE_PAGES_H
#define ACT_BASE_PAGES_H

#include "base/error.h"

/* {0} is the beginning. */
struct act_pages {
    int n;      /* how many pages named a next one */
    char *mark; /* an earlier token */
};

/* Is called after each page that names the next one by token. Fails with -ACT_FAIL after most pages, or if the service
 * leads round in a circle by naming one page again or several in turns, which it notices within four times as many
 * pages as there are. what: stands behind "cannot " in the error. */
int act_pages_next(struct act_pages *pages, const char *token, int most, const char *what,
                   struct act_error *err) ACT_NODISCARD;
void act_pages_release(struct act_pages *pages);

#endif
