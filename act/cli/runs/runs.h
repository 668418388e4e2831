/* runs.h - the verbs for runs that were started, and what they share: which runs the words name (each_run.c), their
 * logs (fetch.c), runs as a table, in lines and as JSON (show.c), and several of them side by side (compare.c,
 * leaders.c). */
#ifndef ACT_CLI_RUNS_RUNS_H
#define ACT_CLI_RUNS_RUNS_H

#include "cli/command/command.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/sweep/leaders.h"

struct flow_diff;
struct flow_prune;
struct flow_why;
struct numbers;

/* ---- show.c: what is printed of a run */

/* Returns the colour of a state for cli_print_coloured(). */
const char *cli_state_colour(enum run_state state);
/* Returns everything that is known of a run. */
json_t *cli_run_json(const struct flow_run *run);
/* Returns what is known of a run that was just submitted. */
json_t *cli_spec_json(const struct run_spec *spec);
/* Returns what 'a why --json' and 'a diff --json' say: new references. */
json_t *cli_why_json(const struct flow_run *run, const struct flow_why *why);
json_t *cli_diff_json(const struct flow_diff *diff);
/* Says on stderr that a list is empty, and what it was asked for: "no run is named 'x'". */
void cli_note_no_runs(const struct flow_table *table);
/* Prints a table of runs, and counts them in *out; with_reason: with a column that says why each waits or failed. */
int cli_print_runs(struct flow_rows *runs, bool with_reason, struct flow_rows_count *out,
                   struct act_error *err) ACT_NODISCARD;
/* Appends the table of runs in room terminal columns (0: no limit). */
void cli_runs_text(const struct flow_runs *runs, bool with_reason, int room, bool coloured, struct act_buf *out);
/* Prints all that is known of a run, in lines; progress is how far it says that it is, page its address in the service,
 * code the folder on this machine in which it works (NULL: none). */
void cli_print_run(const struct flow_run *run, const char *progress, const char *page, const char *code);
/* Returns the last piece of an id, which is unique enough to be typed. */
const char *cli_short_id(const char *id);
/* Returns "ID (NAME)", or only the id of a run without a name. New string. */
char *cli_called(const struct ledger_run *row);
/* Says how a run that has ended did, and what explains a failure; called: what stands before that, "" or
 * cli_called(). */
void cli_note_end(const struct flow_run *run, const char *called);
/* Tells whether a table shows the short ids of its runs, which are ends: in little room, and where no two of them are
 * the same. Sorts ends. */
bool cli_short_ids(struct act_strv *ends, int room);
/* Returns "2", or "2 of 4" for a run that is tried again. New string. */
char *cli_attempt(const struct run_status *status, int attempt);
/* Returns how long a run has run; -1: it has not begun. */
int64_t cli_elapsed_s(const struct run_status *status);
/* Returns how many seconds before now a run was submitted. */
int64_t cli_age_s(int64_t created_unix_s, int64_t now_unix_s);
/* Tells whether a run has ended with an exit status. */
bool cli_has_exit_status(const struct run_status *status);
/* Returns the GPUs of a run: of an elastic one what it has now; 0 on clusters without GPUs. */
int64_t cli_gpus(const struct flow_run *run);
/* Returns the tags of a run as "a=1, b=2", a new string; NULL: it has none. */
char *cli_tags_text(const struct ledger_run *row);
/* Adds the cells of a run that is about to be aborted or removed: id and name, what, cluster, command. */
void cli_push_affected(struct act_strv *cells, const struct ledger_run *row, const char *what);
/* Appends a line for each of those runs, in room terminal columns (0: no limit). */
void cli_affected_text(const struct act_strv *cells, int room, struct act_buf *out);
/* Returns the table of those lines, for cells that are not in memory at once. The caller frees it. */
struct cli_table *cli_affected_table(int room);

/* ---- each_run.c: which runs the words name */

struct cli_each_run {
    void (*before)(struct cli *cli, struct flow_runs *runs); /* once, when all are known; may be NULL */
    /* Handles one run; if list is not NULL, appends the run to it as JSON. */
    int (*act)(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err);
    void (*after)(struct cli *cli, const struct flow_runs *runs); /* once, when all are handled; may be NULL */
    int (*find)(struct flow *flow, const char *piece, struct flow_run *out,
                struct act_error *err); /* NULL: flow_find_run */
    size_t first;                       /* so many words come before the runs */
    bool all_or_none;                   /* for what cannot be repeated: if one name is not a run, nothing is done */
    bool list;                          /* prints {"version": 1, "runs": [...]} */
};
/* Looks up the runs that the words name, and calls act() once for each. A failure is reported and does not stop the
 * others. */
int cli_each_run(struct cli *cli, const struct cli_each_run *each, struct act_error *err) ACT_NODISCARD;
/* Does the same for runs that are known already. */
int cli_these_runs(struct cli *cli, const struct cli_each_run *each, struct flow_runs *runs,
                   struct act_error *err) ACT_NODISCARD;
/* Calls act() for each run of a table as it is read, so that they are never in memory together. Not for JSON in one
 * list, nor with before() and after(). */
int cli_runs_of_table(struct cli *cli, const struct cli_each_run *each, const struct flow_table *table,
                      struct flow_rows_count *out, struct act_error *err) ACT_NODISCARD;
/* Puts the runs of a sweep into the place of a word that is its name or id. */
int cli_take_sweeps(struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Reads --name and --tag; cli owns what out points to. Of runs, the tag sweep=NAME is that of the sweep of this name.
 * Invalid: -ACT_USAGE. */
int cli_labels(struct cli *cli, struct flow_labels *out, struct act_error *err) ACT_NODISCARD;
/* Checks that either words from first on, or --name and --tag, say which runs; else -ACT_USAGE. */
int cli_check_which(const struct cli *cli, size_t first, struct act_error *err) ACT_NODISCARD;
/* Finds the user's runs that have the labels, as the ledger knows them, the oldest first. None: -ACT_NOT_FOUND. */
int cli_labelled_runs(struct cli *cli, bool with_spec, struct flow_runs *out, struct act_error *err) ACT_NODISCARD;
/* Turns a list that has the newest run first. */
void cli_oldest_first(struct flow_runs *runs);

/* ---- fetch.c: the logs of runs */

/* Fetches the logs of a run according to the options, with progress. Release out. */
int cli_fetch_logs(struct cli *cli, struct flow_run *run, struct flow_logs *out, struct act_error *err) ACT_NODISCARD;
/* Says, with what to do, that the logs could not be kept here; 0: they could. */
int cli_check_kept(const struct flow_run *run, const struct flow_logs *logs, struct act_error *err) ACT_NODISCARD;
/* Finds the runs that the words from first on name, each once, or those of --name and --tag, and fetches their logs.
 * All or none. */
int cli_find_with_logs(struct cli *cli, size_t first, struct flow_runs *out, struct act_error *err) ACT_NODISCARD;
/* Checks that a run has the rank of --rank; else -ACT_USAGE. */
int cli_check_rank(const struct cli *cli, const struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Says how a run ended whose log was followed, and returns its exit status; 0 if it has not ended. */
int cli_tell_end(const struct flow_run *run);

/* ---- compare.c */

/* Prints what all of these runs have in common, then a table of what differs between them. */
void cli_compare_runs(struct cli *cli, const struct flow_runs *runs);

/* ---- leaders.c: runs by a number in their logs, the best one first */

/* Checks that --metric, --min and --max fit together; else -ACT_USAGE. */
int cli_check_metric(const struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Checks that the logs of any of n runs have the number key; else -ACT_NOT_FOUND, with those that they have. numbers
 * may have NULLs. where: "sweep 60ce2fc7". */
int cli_find_metric(const char *key, struct numbers *const *numbers, size_t n, const char *where,
                    struct act_error *err) ACT_NODISCARD;
/* Does the same where the numbers need not be there together: looks at those of each run (NULL: none), then checks. */
struct cli_metric_names {
    bool found;
    struct act_strv others; /* released by the caller */
};
void cli_metric_look(struct cli_metric_names *names, const char *key, struct numbers *numbers);
int cli_metric_check(const struct cli_metric_names *names, const char *key, const char *where,
                     struct act_error *err) ACT_NODISCARD;
/* Adds the head of the table. */
void cli_leaders_heads(const struct flow_leaders *leaders, struct act_strv *out);
/* Adds its i-th row, with the age that the run has now. */
void cli_leaders_cells(const struct flow_leaders *leaders, size_t i, int64_t now_unix_s, struct act_strv *out);

/* ---- prune.c: removing runs, also for 'a rm' */

/* Prints a line for each run that goes. */
int cli_print_removed(struct cli *cli, const struct flow_prune *p, struct act_error *err) ACT_NODISCARD;
/* Returns "3 runs (2 with logs here, 1 with logs in the store)" for n runs. New string. */
char *cli_sum_of_runs(const struct flow_prune *p, size_t n);

int cmd_abort(struct cli *cli, struct act_error *err);
int cmd_diff(struct cli *cli, struct act_error *err);
int cmd_files(struct cli *cli, struct act_error *err);
int cmd_grep(struct cli *cli, struct act_error *err);
int cmd_logs(struct cli *cli, struct act_error *err);
int cmd_parse(struct cli *cli, struct act_error *err);
int cmd_prune(struct cli *cli, struct act_error *err);
int cmd_query(struct cli *cli, struct act_error *err);
int cmd_query_failed(struct cli *cli, struct act_error *err);
int cmd_query_queued(struct cli *cli, struct act_error *err);
int cmd_query_running(struct cli *cli, struct act_error *err);
int cmd_scale(struct cli *cli, struct act_error *err);
int cmd_wait(struct cli *cli, struct act_error *err);
int cmd_why(struct cli *cli, struct act_error *err);

#endif
