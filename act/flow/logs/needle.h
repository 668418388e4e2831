/* needle.h - for the files of logs/ only: the texts of which every match of a regular expression has one in it, by
 * which a search finds the few lines that are worth a closer look. Pure. */
#ifndef ACT_FLOW_LOGS_NEEDLE_H
#define ACT_FLOW_LOGS_NEEDLE_H

#include "base/text.h"

enum { NEEDLES_MAX = 8 }; /* with more of them, looking for each takes longer than the expression does */

/* Adds to *out, which is empty, a text for each of the alternatives of this valid extended regular expression of POSIX,
 * as long a one as is easily known: every match contains one of them. None are added where an alternative has no text
 * or where there are too many. */
void flow_needles(const char *pattern, struct act_strv *out);

#endif
