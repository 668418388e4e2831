/* needle.h - for the files of logs/ only: the texts of which every match of a regular expression has one in it, by
 * which a search finds the few lines that are worth a closer look. Pure. */
#ifndef ACT_FLOW_LOGS_NEEDLE_H
#define ACT_FLOW_LOGS_NEEDLE_H

#include <stdint.h>

#include "base/text.h"

enum { NEEDLES_MAX = 8 }; /* with more of them, looking for all takes longer than the expression does */

/* Adds to *out, which is empty, a text for each of the alternatives of this valid extended regular expression of POSIX,
 * as long a one as is easily known: every match contains one of them. None are added where an alternative has no text
 * or where there are too many. */
void flow_needles(const char *pattern, struct act_strv *out);

/* How to look for several texts at once: by two bytes of each, where it has them. */
struct needle_search {
    size_t n;
    struct needle {
        const char *text; /* of the list */
        size_t len, at[2];
        uint8_t byte[2];
    } v[NEEDLES_MAX];
    size_t longest;
};
/* Prepares a search for some of them, at most NEEDLES_MAX, which must outlive it. */
void flow_needles_prepare(const struct act_strv *needles, struct needle_search *out);
/* Returns where the first of them begins; end: none is there. */
const char *flow_needles_find(const struct needle_search *search, const char *text, const char *end);

#endif
