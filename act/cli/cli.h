/* cli.h - the command line: everything of the program act but main(), so that tests link what ships.
 *
 * Its rooms are folders, each with a header that is its manual. A room uses those above it:
 *
 *   options/   which options there are, what each of them sets, and reading the words that were typed
 *   command/   which verbs there are; one command, from its words to its exit status
 *   print/     text, tables, JSON, questions and progress
 *   help/      help, the manual, the completion of shells, the version
 *   runs/      the table of runs, one run, its logs; waiting for runs, aborting and removing them
 *   start/     what starts runs: init, submit, local, sweep, resubmit
 *   screen/    a terminal that is redrawn in place
 *   top/       'a top'
 *   page/      reports and plots, and the pages of 'a ui'
 *   data/      mapped folders and the store
 *   clusters/  clusters, their files and nodes, file servers
 *   own/       logins, the configuration, trust, 'a doctor'
 */
#ifndef ACT_CLI_CLI_H
#define ACT_CLI_CLI_H

/* Runs the program with the words that main() gets. Returns its exit status. */
int cli_main(int argc, char **argv);

#endif
