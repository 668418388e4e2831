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

/* The kind of a command's words, from least to most of them. */
#define N_WORDS(least, most, what) .min_words = (least), .max_words = (most), .complete = (what)
#define N_RUNS(least, most)        N_WORDS(least, most, CLI_RUNS), .of_runs = true
#define PATHS                      N_WORDS(1, ANY, CLI_PATHS)
#define A_COMMAND                  N_WORDS(0, ANY, CLI_COMMAND), .takes_command = true
#define HIDDEN(least, most)        N_WORDS(least, most, CLI_NOTHING), .bare = true, .hidden = true

#endif
