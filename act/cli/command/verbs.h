/* verbs.h - commands whose first word is a verb of their own ('a cluster list'), and the changes that a service makes
 * for a while. */
#ifndef ACT_CLI_COMMAND_VERBS_H
#define ACT_CLI_COMMAND_VERBS_H

#include <stdbool.h>

#include "cli/command/command.h"

struct cli_verb {
    const char *group; /* what the verbs from here on are about; NULL: the same as before */
    const char *name;  /* NULL: the end of the table */
    int (*run)(struct cli *cli, const char *name, struct act_error *err);
    const char *summary; /* one line */
    const char *options; /* those of the command that it takes */
    bool needs_name, takes_no_name;
    bool own; /* it is about cluster files, and opens none by itself */
};

/* The verbs of 'a cluster', 'a fileserver' and 'a env'. */
extern const struct cli_verb cli_cluster_verbs[], cli_fileserver_verbs[], cli_env_verbs[];

/* Returns the verb that the first word names; NULL: there is none, and *err says which one may have been meant. */
const struct cli_verb *cli_find_verb(const struct cli *cli, const struct cli_verb *table, struct act_error *err);
/* Checks that a verb takes the name and the options that were given; else -ACT_USAGE. which: what the name is of, "file
 * server"; NULL: the name may come from elsewhere. */
int cli_check_verb(const struct cli *cli, const struct cli_verb *verb, const char *which,
                   struct act_error *err) ACT_NODISCARD;
/* Checks that id (NULL is fine) is the resource id of a kind of thing, "subnets"; else -ACT_USAGE. */
int cli_check_id(const char *option, const char *id, const char *kind, struct act_error *err) ACT_NODISCARD;

/* A change that is told while it goes on: each new status, in a line. */
struct cli_told {
    const char *noun, *name;
    const char *goes_on; /* a literal: said if it is interrupted, which does not interrupt the change */
    char last[96];
};
struct platform_follow; /* of platform/clusters.h */
/* Returns how to follow a change, by the options; told must outlive it. */
struct platform_follow cli_follow(const struct cli *cli, struct cli_told *told);

#endif
