/* help.h - what ACT says about itself: help (help.c), the manual (man.c), the completion of shells (completion.c), and
 * its version (version.c). All of it follows from the tables of verbs, options and keys. */
#ifndef ACT_CLI_HELP_HELP_H
#define ACT_CLI_HELP_HELP_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/command/command.h"
#include "config/config.h"

/* Prints the overview: all verbs, each with its line. */
void cli_print_overview(FILE *out);
/* Prints the names of all verbs, on one screen, for whoever typed none. */
void cli_print_first_screen(FILE *out);
/* Prints the help of a verb. word: one of its own verbs, whose options alone are shown; NULL, or another word: its
 * page, which names them. */
void cli_print_help(const struct cli_command *command, const char *word, FILE *out);
extern const char cli_overview_examples[], cli_exit_statuses[]; /* lines; also in the manual */

/* What act.yaml(5) says of the files, and their keys. */
extern const char cli_file_format[];
enum { CLI_FILES = 4 };
struct cli_file {
    const char *title, *what, *example; /* lines */
    enum config_file file;
};
extern const struct cli_file cli_files[CLI_FILES];
/* Returns what a key is, with its default. New string. */
char *cli_key_help(const struct config_key_text *key);

/* Prints "act VERSION", and on further lines what a bug report should contain: the commit and the libraries. */
void cli_print_version(FILE *out);

/* Shows the manual page of a verb with the user's man(1). Returns false if stdout is not a terminal, or man(1) is
 * missing or cannot show it: then nothing was printed. */
bool cli_show_page(const struct cli_command *command);
/* Shows act.yaml(5), in the same way. */
bool cli_show_file_format(void);

/* Adds the choices at the beginning of a synopsis: "show | check", "list|show [NAME]". */
void cli_add_choices(const char *synopsis, struct act_strv *out);

int cmd_complete(struct cli *cli, struct act_error *err);
int cmd_completion(struct cli *cli, struct act_error *err);
int cmd_help(struct cli *cli, struct act_error *err);
int cmd_man(struct cli *cli, struct act_error *err);

#endif
