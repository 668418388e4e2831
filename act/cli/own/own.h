/* own.h - the verbs for logins, the configuration, trust, and the state of it all. */
#ifndef ACT_CLI_OWN_OWN_H
#define ACT_CLI_OWN_OWN_H

#include <jansson.h>

#include "cli/command/command.h"
#include "platform/platform.h"

/* Shows what leads out of a project, and asks on the terminal: a callback for flow_trust_asks(). 1: nobody can be
 * asked. */
int cli_ask_trust(const char *project, const struct act_strv *items, struct act_error *err) ACT_NODISCARD;

/* Checks that all is there that runs need on the cluster of the options. Returns whether it is. Release out. */
bool cli_examine(struct cli *cli, struct platform_findings *out);
/* Returns the findings as the array "checks" of --json; a new reference. */
json_t *cli_findings_json(const struct platform_findings *findings);
/* Prints a line for each finding, with a mark for those that failed. */
void cli_print_findings(const struct platform_findings *findings);

int cmd_config(struct cli *cli, struct act_error *err);
int cmd_doctor(struct cli *cli, struct act_error *err);
int cmd_host(struct cli *cli, struct act_error *err);
int cmd_store(struct cli *cli, struct act_error *err);
int cmd_login(struct cli *cli, struct act_error *err);
int cmd_logout(struct cli *cli, struct act_error *err);
int cmd_trust(struct cli *cli, struct act_error *err);

#endif
