/* start.h - the verbs that start runs (submit, local, sweep, resubmit) or pack for them (init, initc), and what they
 * share: the display while the code is packed. */
#ifndef ACT_CLI_START_START_H
#define ACT_CLI_START_START_H

#include "cli/command/command.h"
#include "cli/print/progress.h"
#include "flow/code/code.h"

/* Asks whether words of the command that only a shell would have understood ('|', '>') are meant for the command
 * itself; a dry run warns of them. Without a "--", says which of them are options of the verb as well that the script
 * does not know, and asks about --dry-run on a terminal. Needs the configuration, for the project. */
int cli_check_words(const struct cli *cli, struct act_error *err) ACT_NODISCARD;

/* Refuses --after-any for a new run that follows none. */
int cli_check_after(const struct cli *cli, struct act_error *err) ACT_NODISCARD;

/* The progress display while the code is packed. */
struct cli_packing {
    struct cli_progress line; /* must be first: its callback gets a pointer to it */
    struct transfer_options shown;
    const struct cli *cli;
};
/* Sets the callbacks of io, which show the progress in packing, and ask before much new code is packed. */
void cli_packing_start(struct cli_packing *packing, const struct cli *cli, struct flow_init *io);

enum { CLI_LARGEST = 10 };
/* Finds the largest files of a package, at most CLI_LARGEST. Returns how many there are. */
size_t cli_find_largest(const struct package_list *list, const struct package_entry *out[CLI_LARGEST]);
/* Prints what a dry run of flow_init() found. */
int cli_explain_package(const struct cli *cli, const struct flow_init *io, struct act_error *err) ACT_NODISCARD;

int cmd_init(struct cli *cli, struct act_error *err);
int cmd_initc(struct cli *cli, struct act_error *err);
int cmd_local(struct cli *cli, struct act_error *err);
int cmd_resubmit(struct cli *cli, struct act_error *err);
int cmd_submit(struct cli *cli, struct act_error *err);
int cmd_sweep(struct cli *cli, struct act_error *err);

#endif
