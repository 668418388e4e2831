/* kept.h - what 'a shell' and 'a notebook' share: runs whose command is a keeper (run/shell.h), and those who come to
 * it, by a child, 'a __session', which goes the way that 'a ssh' goes. */
#ifndef ACT_CLI_CLUSTERS_KEPT_H
#define ACT_CLI_CLUSTERS_KEPT_H

#include "cli/command/command.h"
#include "run/shell.h"

enum { KEPT_IDLE_S = 3600, KEPT_AWAY_S = 5 * 60 };

struct flow_run;

struct kept_run {
    struct run_shell how;           /* idle_s and serves; the rest follows from the options */
    const struct act_strv *command; /* what the keeper starts */
    const char *title;              /* what people see of the run in place of its command */
};

/* Refuses what is not possible on the cluster ('what', "a shell", cannot be opened), and times that are too long. */
int kept_check(const struct cli *cli, const char *what, struct act_error *err);
/* Submits such a run, and finds it; with --dry-run it prints the specification, and *out stays empty. */
int kept_start(struct cli *cli, struct kept_run *kept, struct flow_run *out, struct act_error *err);
/* Waits until a run has begun, ended, or the user does not want to wait any more (cli_interrupted), and shows why it
 * waits. */
int kept_wait(struct cli *cli, struct flow_run *run, struct act_error *err);
/* Finds out what the run does now; one that cannot be asked is as it was. */
void kept_look(struct cli *cli, struct flow_run *run);
/* Says how a run has ended. Returns its exit status. */
int kept_report_end(const struct flow_run *run);
/* Ends the run, which its user does not want any more. Returns the exit status of an interrupted command. */
int kept_give_up(struct cli *cli, struct flow_run *run);
/* Tells whether the input and output of this command are a terminal. */
bool kept_has_terminal(void);
/* Runs 'a __session RUN', with a word behind it or NULL, and returns its exit status, or that of a program that a
 * signal ended, 128 and more; a negative code if it cannot be started. takes_input: with this command's input, and
 * without a terminal its keeper hears when this program is gone, however that ended. *out, if out is not NULL: the last
 * line that it prints, a new string of the caller's; untouched if it cannot be started. With 'what' and without out its
 * complaints are not shown. */
int kept_call(const struct cli *cli, const char *run, const char *what, bool takes_input, char **out,
              struct act_error *err);

#endif
