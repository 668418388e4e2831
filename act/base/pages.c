#include "base/pages.h"

#include "base/text.h"

/* The mark moves ever more rarely, so that one day the whole way round the circle fits between two moves (R. P. Brent,
 * An improved Monte Carlo factorization algorithm, 1980). */
int act_pages_next(struct act_pages *pages, const char *token, int most, const char *what, struct act_error *err)
{
    if (act_streq(token, pages->mark))
        return act_error_set(err, ACT_FAIL, "cannot %s: the service names the same pages again and again", what);
    if (++pages->n >= most)
        return act_error_set(err, ACT_FAIL, "cannot %s: the list does not end after %d pages", what, most);
    if ((pages->n & (pages->n - 1)) == 0)
        act_str_replace(&pages->mark, token);
    return 0;
}

void act_pages_release(struct act_pages *pages)
{
    act_str_replace(&pages->mark, NULL);
    pages->n = 0;
}
