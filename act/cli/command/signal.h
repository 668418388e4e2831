/* signal.h - what SIGINT and SIGTERM do. Until one of these functions is called they end the program, silently. */
#ifndef ACT_CLI_COMMAND_SIGNAL_H
#define ACT_CLI_COMMAND_SIGNAL_H

#include <signal.h>

/* The signal that came last; 0: none. */
extern volatile sig_atomic_t cli_interrupted;

/* From now on the signals only set cli_interrupted. Each time the next of the lines said is printed, up to a NULL; said
 * may be NULL. */
void cli_catch_signals(const char *const *said);
/* From now on the signals end the program, which prints text first (a literal, "interrupted; ..."); NULL: nothing.
 * Returns the previous text. */
const char *cli_end_with(const char *text);
/* From now on the signals end the program, which says that it only watched this run, which goes on; NULL: several. */
void cli_end_beside(const char *run);

#endif
