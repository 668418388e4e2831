/* outcome.h - a command that does the same with several things, paths or runs: if one fails, the others are tried
 * anyway. */
#ifndef ACT_CLI_COMMAND_OUTCOME_H
#define ACT_CLI_COMMAND_OUTCOME_H

#include <stddef.h>

#include "base/error.h"

struct cli_outcome {
    struct act_error *failed;
    size_t n_failed, n;
};

/* Records the result of one of them: rc, and with rc < 0 the error. */
void cli_outcome_add(struct cli_outcome *outcome, int rc, const struct act_error *err);
/* Appends the hint to the last error, if there is one. */
void cli_outcome_hint(struct cli_outcome *outcome, const char *hint);
/* Prints all errors but the last, which is returned in err, and empties outcome. Returns 0 if nothing failed, the code
 * of the first error if everything did, else -ACT_PARTIAL. */
int cli_outcome_end(struct cli_outcome *outcome, struct act_error *err) ACT_NODISCARD;

#endif
