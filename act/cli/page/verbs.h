/* verbs.h - the verbs that make pages and pictures. */
#ifndef ACT_CLI_PAGE_VERBS_H
#define ACT_CLI_PAGE_VERBS_H

#include "cli/command/command.h"

int cmd_page(struct cli *cli, struct act_error *err);
int cmd_plot(struct cli *cli, struct act_error *err);
int cmd_report(struct cli *cli, struct act_error *err);
int cmd_tensorboard(struct cli *cli, struct act_error *err);
int cmd_ui(struct cli *cli, struct act_error *err);

#endif
