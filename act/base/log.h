/* log.h - messages for the user, on stderr. Results go to stdout, never through here.
 *
 * ACT_TRACE=http,sync (or "all") prints what those components do; never pass anything secret to these functions. May
 * be called from any thread: a line is one write.
 */
#ifndef ACT_BASE_LOG_H
#define ACT_BASE_LOG_H

#include <stdbool.h>

#include "base/error.h"

/* Leaves out notes from now on, or shows them again; warnings always show. */
void act_log_quiet(bool quiet);

void act_note(const char *fmt, ...) ACT_PRINTF(1, 2); /* "<fmt>" */
void act_warn(const char *fmt, ...) ACT_PRINTF(1, 2); /* "act: warning: <fmt>" */

/* Says whether the terminal's last line is one that is written again in place, which the next message clears first.
 * Returns whether such a line was still there. */
bool act_log_in_place(bool is_there);

/* Tells whether ACT_TRACE names the component. */
bool act_trace_on(const char *component);
/* Prints a line if it does. */
void act_trace(const char *component, const char *fmt, ...) ACT_PRINTF(2, 3);

#endif
