/* tables.h - the tables of verbs, in the order in which help lists them, and what their rows share. Only for the files
 * of command/. */
#ifndef ACT_CLI_COMMAND_TABLES_H
#define ACT_CLI_COMMAND_TABLES_H

#include "cli/command/command.h"

/* Each ends with a row without a name, which names the next table. */
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
