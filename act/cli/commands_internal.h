/* commands_internal.h - the tables of verbs, in the order in which help lists them, and what their rows share.
 *
 * commands.c finds the row of a verb, and knows the names that other tools give it. */
#ifndef ACT_CLI_COMMANDS_INTERNAL_H
#define ACT_CLI_COMMANDS_INTERNAL_H

#include "cli/cli.h"

/* Each ends with a row without a name, which names the next one. */
extern const struct cli_command cli_code_commands[];
extern const struct cli_command cli_run_commands[];
extern const struct cli_command cli_cluster_commands[];
extern const struct cli_command cli_data_commands[];
extern const struct cli_command cli_own_commands[];

#define ANY (-1)

/* What the words of a command are. */
#define A_RUN    .min_words = 1, .max_words = 1, .complete = CLI_RUNS, .of_runs = true
#define RUNS     .min_words = 1, .max_words = ANY, .complete = CLI_RUNS, .of_runs = true
#define PATHS    .min_words = 1, .max_words = ANY, .complete = CLI_PATHS
#define A_CHOICE .min_words = 1, .max_words = 1, .complete = CLI_CHOICE

#endif
