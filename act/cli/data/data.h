/* data.h - the verbs for mapped folders and the store, and what they share (paths.c): options of transfers, words that
 * are paths. */
#ifndef ACT_CLI_DATA_DATA_H
#define ACT_CLI_DATA_DATA_H

#include "cli/command/command.h"
#include "cli/command/outcome.h"
#include "flow/data/data.h"
#include "transfer/transfer.h"

/* Makes the transfer options of the command line; cli owns the filter. Invalid sizes or patterns: -ACT_USAGE. */
int cli_transfer_options(struct cli *cli, struct transfer_options *out, struct act_error *err) ACT_NODISCARD;
/* Calls act with the flow of the cluster of --from-cluster, or with NULL if none was given. */
int cli_with_source(struct cli *cli, int (*act)(struct cli *cli, struct flow *from, struct act_error *err),
                    struct act_error *err) ACT_NODISCARD;
/* Tells whether a path of the command line is RUN:PATH: 1 or 0. -ACT_USAGE if the verb, or an option that was given, is
 * not for the logs of runs. */
int cli_names_run(struct cli *cli, const char *word, struct act_error *err) ACT_NODISCARD;
/* Tells whether a word means a whole run, as flow_names_whole_run() does; *out_piece is a new string. */
int cli_names_whole_run(struct cli *cli, const char *word, char **out_piece, struct act_error *err) ACT_NODISCARD;
/* Opens the path of a word, in the store or of a run. */
int cli_open_path(struct cli *cli, const char *word, struct flow_path *out, struct act_error *err) ACT_NODISCARD;
/* Drops the words that name a path again, or one inside of another word's: it is copied, compared or removed once.
 * Comes behind cli_transfer_options(), as a filter may take less of a folder than of what is named in it. are_here:
 * they name files of this machine, and a word for none is left, so that this is said. */
void cli_paths_once(struct cli *cli, bool are_here);
/* Takes a place and its path, which it releases. */
typedef int cli_place_fn(void *arg, const char *word, enum flow_place place, struct flow_path *path,
                         struct act_error *err);
/* Opens the place that a path of the command line refers to, and with --leftovers both places where interrupted
 * transfers leave files: uploads in the store, downloads here. */
int cli_each_place(struct cli *cli, const char *word, cli_place_fn *each, void *arg,
                   struct act_error *err) ACT_NODISCARD;
/* Checks a word: flow_check_path() or flow_check_local_path(). */
typedef int cli_path_check(struct flow *flow, const char *path, struct act_error *err);
/* Tells whether all words pass the check, and lie in mapped folders of from (may be NULL) too. Else the others are
 * added to the outcome, and when there are several words, hint says what was not done. */
bool cli_check_paths(struct cli *cli, struct flow *from, cli_path_check *check, const char *hint,
                     struct cli_outcome *outcome);
/* Warns about patterns that matched nothing, unless every path failed: then there was nothing to match. */
void cli_warn_idle_patterns(const struct cli *cli, const struct cli_outcome *outcome);
/* Returns failures for the result line of --json. */
json_t *cli_failures_json(const struct transfer_report *report);
/* Returns the errors of whole paths, for the same. */
json_t *cli_errors_json(const struct cli_outcome *outcome);

int cmd_cat(struct cli *cli, struct act_error *err);
int cmd_download(struct cli *cli, struct act_error *err);
int cmd_du(struct cli *cli, struct act_error *err);
int cmd_ls(struct cli *cli, struct act_error *err);
int cmd_mount(struct cli *cli, struct act_error *err);
int cmd_mount_folder(struct cli *cli, struct act_error *err);
int cmd_rm(struct cli *cli, struct act_error *err);
int cmd_transfer_folder(struct cli *cli, struct act_error *err);
int cmd_upload(struct cli *cli, struct act_error *err);
int cmd_url(struct cli *cli, struct act_error *err);
int cmd_verify(struct cli *cli, struct act_error *err);

#endif
