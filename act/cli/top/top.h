/* top.h - the verb 'a top': top.c takes the keys, text.c makes the lines, rows.c says which rows there are, json.c
 * makes a document. */
#ifndef ACT_CLI_TOP_TOP_H
#define ACT_CLI_TOP_TOP_H

#include "cli/command/command.h"

int cmd_top(struct cli *cli, struct act_error *err);

#endif
