/* ask.h - questions, which only a terminal can answer. */
#ifndef ACT_CLI_PRINT_ASK_H
#define ACT_CLI_PRINT_ASK_H

#include <stdbool.h>

#include "base/error.h"

struct cli;

/* Tells whether an answer is y or yes, and nothing else. */
bool cli_is_yes(const char *answer);
/* Asks on the terminal, which must exist. */
bool cli_ask(const char *question);
/* Asks unless -y was given; without a terminal, an error that names -y. A "no" is -ACT_FAIL. */
int cli_confirm(const struct cli *cli, const char *question, struct act_error *err) ACT_NODISCARD;

/* Does the same as the callback of what asks before it goes on; cli is a struct cli. */
int cli_confirm_for(void *cli, const char *question, struct act_error *err) ACT_NODISCARD;

#endif
