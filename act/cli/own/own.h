/* own.h - the verbs for logins, the configuration, trust, and the state of it all. */
#ifndef ACT_CLI_OWN_OWN_H
#define ACT_CLI_OWN_OWN_H

#include "cli/command/command.h"

/* Shows what leads out of a project, and asks on the terminal: a callback for flow_trust_asks(). 1: nobody can be
 * asked. */
int cli_ask_trust(const char *project, const struct act_strv *items, struct act_error *err) ACT_NODISCARD;

int cmd_config(struct cli *cli, struct act_error *err);
int cmd_doctor(struct cli *cli, struct act_error *err);
int cmd_host(struct cli *cli, struct act_error *err);
int cmd_store(struct cli *cli, struct act_error *err);
int cmd_login(struct cli *cli, struct act_error *err);
int cmd_logout(struct cli *cli, struct act_error *err);
int cmd_trust(struct cli *cli, struct act_error *err);

#endif
