/* cli.h - the command line: tables of commands and options, one file for each command, rendering, exit
 * statuses.
 *
 * To add a command, add a file cmd_<name>.c with one function, its declaration below, and a row in a commands_*.c that
 * names every option it uses; new options are rows in options.c. Help, completion and "did you mean" use the same rows.
 */
#ifndef ACT_CLI_CLI_H
#define ACT_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "auth/services.h"
#include "base/units.h"
#include "flow/code/code.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/sweep/leaders.h"
#include "store/store.h"

/* "8" or "8:32"; of one number both are that. */
struct cli_range {
    int64_t least, most; /* -1: not given */
};

/* Everything an option can set. commands_*.c say which verb takes which. */
struct cli_options {
    char *cluster, *from_cluster, *resubmit_to, *compile_args;
    struct act_strv params;
    struct cli_range num_gpu;
    bool single;
    bool no_logs, no_details, no_full_logs;
    int64_t max; /* -1: not given */
    bool dry_run, json, yes, force, quiet, refresh, rebuild, read_only;
    bool help, version;
    bool follow, all, no_container, mount, recursive;
    int64_t rank, tail, attempt; /* -1: not given */
    char *name;                  /* of a run, or of a log */
    struct act_strv tags;
    struct act_strv grids;
    int64_t max_parallel; /* -1: not given */
    char *show, *metric;
    bool lowest, highest;
    int64_t retry;  /* -1: not given */
    char *retry_on; /* classes, separated by commas */
    bool use_bad_nodes, bad;
    char *notify;
    bool any, ignore_case;
    int64_t hang_s;                      /* 0: not given */
    int64_t older_s;                     /* 0: not given */
    int64_t timeout_s, expires_s;        /* 0: not given */
    int64_t transfers, max_delete;       /* -1: not given */
    uint64_t memory, part_size, bwlimit; /* 0: not given */
    bool checksum, md5, delete_extra, deep, overwrite, skip_links, follow_links, no_sync;
    bool long_form, bytes, leftovers, urls;
    char *folder;
    bool device_code;
    bool list, remove, forget, own, project;
    char *kind, *login, *hosts, *partition, *context, *namespace_, *kubeconfig, *image;
    char *subscription, *resource_group, *workspace, *compute, *storage, *container;
    char *tenant;
    char *vm_size, *admin_user, *ssh_key, *location, *subnet, *node_image, *redundancy;
    struct act_strv identities;
    bool no_public_ip;
    int64_t min, nodes; /* -1: not given */
    int64_t idle_s;     /* 0: not given */
    bool low_priority, no_wait, share_sas;
    char *job_file, *storage_account, *storage_key;
    char *output;
    bool svg, csv, open;
    bool watch, once;
    int64_t interval_s;   /* 0: not given */
    int64_t port;         /* -1: not given */
    int64_t depth;        /* -1: not given */
    uint64_t first, last; /* bytes; 0: not given */
    uint64_t size;        /* likewise */
    struct act_strv includes, excludes, filter_files;
    bool last_package, code;
    char *ignored; /* options of the original that no longer have a meaning */
    bool legacy;
};

struct cli {
    const struct cli_command *command;
    struct cli_options options;
    struct act_strv words;    /* the words after the verb and its options */
    size_t words_before;      /* how many of them come before "--"; all if there is none */
    struct services services; /* shared by all flows of the command */
    struct flow flow;
    bool flow_is_open;
    struct filter *filter; /* from cli_transfer_options() */
    json_t *tags;          /* from cli_labels() */
    void *arg;             /* what a command shares with its cli_each_run.act() */
    bool said_unkept;      /* that copies of logs cannot be kept */
};

/* What a verb's words are; CLI_CHOICE: those at the beginning of its synopsis, "show | check". */
enum cli_complete { CLI_NOTHING, CLI_RUNS, CLI_PATHS, CLI_COMMAND, CLI_VERBS, CLI_CHOICE, CLI_CLUSTERS, CLI_KEYS };

struct cli_command {
    const char *name;
    const char *aliases;      /* "q, qr", or NULL */
    const char *synopsis;     /* after the name */
    const char *summary;      /* one line */
    const char *examples;     /* shown first by --help */
    const char *details;      /* may be NULL */
    const char *options;      /* long names of all options that it uses, separated by spaces, or NULL */
    const char *run_options;  /* of these, those it uses where a path is RUN:PATH; NULL: it does not take one */
    bool whole_runs;          /* which then is "RUN:", and no log */
    int min_words, max_words; /* max -1: any number */
    enum cli_complete complete;
    enum cli_complete then;  /* of CLI_CHOICE: what its second word is */
    const char *then_behind; /* the choices that it comes behind */
    bool takes_command;      /* from the first word on, everything is the user's command */
    bool bare;               /* needs no configuration */
    bool of_runs;            /* like bare, as runs know their own; but a cluster given by name must exist */
    bool looks_only;         /* only shows the configuration, which need not be trusted */
    bool own_status;         /* exits with the status of the user's command; its own failures are 125 */
    bool hidden;
    int (*run)(struct cli *cli, struct act_error *err); /* 0, a negative act_code, or a positive exit status */
    const struct cli_command *next_table; /* of the row without a name that ends a table; NULL: it is the last */
};

/* The verbs in the order in which help lists them: the first for NULL; NULL after the last. */
const struct cli_command *cli_next_command(const struct cli_command *c);
const struct cli_command *cli_find_command(const char *name);
/* What to type instead of a verb of other tools: "'a q' shows your runs" for "ps"; NULL: not in the table. */
const char *cli_synonym(const char *name);
/* What is said of too few words: the synopsis. -ACT_USAGE. */
int cli_needs_more(const struct cli *cli, struct act_error *err);
/* Whether there is a command to run; else -ACT_USAGE with an example of one. */
int cli_check_command(const struct cli *cli, const char *example, struct act_error *err);
/* Appends where the examples of the verb are. Returns -err->code. */
int cli_hint_help(const struct cli *cli, struct act_error *err);
/* -ACT_USAGE, with the verb that was meant. */
int cli_unknown_verb(const char *word, struct act_error *err);

/* Where an option may be given. */
enum cli_place {
    CLI_BEHIND,     /* after the verbs that name it */
    CLI_BEFORE,     /* also before the verb, as in the original */
    CLI_EVERYWHERE, /* every verb takes it */
};

enum cli_type { CLI_FLAG, CLI_STRING, CLI_STRINGS, CLI_INT, CLI_RANGE, CLI_DURATION, CLI_WITH_UNIT, CLI_SIZE };

struct cli_option {
    const char *short_name; /* "-n", "-rt"; NULL: none */
    const char *long_name;  /* "num-gpu" */
    enum cli_type type;
    size_t offset;        /* in struct cli_options */
    const char *argument; /* "N"; NULL for flags */
    const char *help;     /* NULL: hidden (accepted for compatibility) */
    enum cli_place place;
};

extern const struct cli_option cli_option_table[]; /* ends with a row without names */

/* What an option means to some verbs only. */
struct cli_option_meaning {
    const char *option, *verbs, *help; /* verbs: separated by blanks */
};
extern const struct cli_option_meaning cli_option_meanings[]; /* ends with a row without names */
/* The help of an option of this verb; command NULL: of all. */
const char *cli_option_help(const struct cli_command *command, const struct cli_option *option);
/* Whether a list of words separated by spaces contains name. */
bool cli_names(const char *list, const char *name);
/* Whether the verb takes the option; command NULL: whether the option may be given before a verb. */
bool cli_takes(const struct cli_command *command, const struct cli_option *option);
/* Whether the option was given, also by the environment. */
bool cli_is_given(const struct cli_options *options, const struct cli_option *option);
/* The next option after last (NULL: the first) that help shows for the verb at this place; NULL: no more. */
const struct cli_option *cli_next_option(const struct cli_command *command, enum cli_place place,
                                         const struct cli_option *last);
/* The option of the verb (NULL: of those before it) that a word names, and the value if the word contains it; NULL:
 * none. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *word, const char **out_value);

/* The whole program; returns the exit status. */
int cli_main(int argc, char **argv);

/* Parses argv[1...] into cli->command, options and words. Without a verb, command is NULL. */
int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err) ACT_NODISCARD;
void cli_options_init(struct cli_options *options);
void cli_release(struct cli *cli);

/* The configuration request made by the options; out points into itself and into cli. */
struct cli_request {
    struct config_request config;
    struct config_override overrides[7];
    char num_gpu[24], range[48], hang[24], retry[24], retry_on[1024];
};
void cli_request(const struct cli *cli, struct cli_request *out);
/* "2", or "2 of 4" of a run that is tried again. New string. */
char *cli_attempt(const struct run_status *status, int attempt);
/* Opens a flow on a cluster (NULL: the default one), with the overrides from the options; cli_open(): cli->flow, on the
 * cluster of -c. cli_open_of_run(): on the place of a run; 1: with the configuration that it wrote down. */
int cli_open_flow(struct cli *cli, const char *cluster, struct flow *flow, struct act_error *err) ACT_NODISCARD;
int cli_open_of_run(struct cli *cli, const struct ledger_run *row, struct flow *flow,
                    struct act_error *err) ACT_NODISCARD;
int cli_open(struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Opens another flow on the cluster of -c, for commands that only show the configuration: it need not be trusted. */
int cli_open_to_look(struct cli *cli, struct flow *flow, struct act_error *err) ACT_NODISCARD;

/* help.c */
void cli_print_overview(FILE *out);
void cli_print_help(const struct cli_command *command, FILE *out);
extern const char cli_overview_examples[], cli_exit_statuses[]; /* lines; also in the manual */

/* What act.yaml(5) says of the files, and their keys. */
extern const char cli_file_format[];
enum { CLI_FILES = 3 };
struct cli_file {
    const char *title, *what; /* lines */
    enum config_file file;
};
extern const struct cli_file cli_files[CLI_FILES];
/* What a key is, with its default. New string. */
char *cli_key_help(const struct config_key_text *key);

/* version.c: "act VERSION", and on further lines what a bug report should contain: the commit and the libraries. */
void cli_print_version(FILE *out);

/* man.c */
/* Shows the manual page of a verb with the user's man(1). False if stdout is not a terminal, or man(1) is missing or
 * cannot show it: then nothing was printed. */
bool cli_show_page(const struct cli_command *command);
/* That of the files, act.yaml(5), likewise. */
bool cli_show_file_format(void);

/* render.c */
bool cli_colour(FILE *out);
/* Whether the terminal, or whoever reads the pipe, shows more than ASCII: the first of LC_ALL, LC_CTYPE and LANG that
 * is set says so. */
bool cli_utf8(void);
const char *cli_state_colour(enum run_state state); /* for cli_print_coloured() */
/* Prints ACT's own text; colour ("31") is not used if out has no colours. */
void cli_print_coloured(FILE *out, const char *colour, const char *fmt, ...) ACT_PRINTF(3, 4);
/* Writes a piece of a log or a file to stdout; on a terminal, all control sequences but colours are removed. Usable as
 * flow_sink.write. After the last piece call cli_end_text(), which on a terminal ends an incomplete line. */
int cli_write_stdout(void *arg, const char *data, size_t len, struct act_error *err);
void cli_end_text(void);
json_t *cli_count_json(int64_t n);                                      /* a negative one is not known: null */
int cli_print_json(json_t *value, struct act_error *err) ACT_NODISCARD; /* takes the reference */
void cli_print_json_line(json_t *value);                                /* likewise; compact, on one line */
const char *cli_kind(enum store_kind kind);                             /* "file", "symlink", "folder" */
json_t *cli_run_json(const struct flow_run *run);
json_t *cli_spec_json(const struct run_spec *spec); /* of a run just submitted */
/* Prints {version: 1, name: list} and returns rc; after a failure (rc < 0) only if something was done. Takes the
 * reference to list; NULL: nothing is printed. */
int cli_print_list(const char *name, json_t *list, int rc, struct act_error *err) ACT_NODISCARD;
/* Buffers stdout in large blocks, unless it is a terminal. Call it before anything is printed. */
void cli_buffer_stdout(void);
/* -ACT_FAIL if stdout can no longer be written. If the reader has gone, as head does, ends the program silently, as
 * SIGPIPE would. */
int cli_check_stdout(struct act_error *err) ACT_NODISCARD;
/* Prints an untrusted name; control characters become '?'. */
void cli_put_name(const char *name);
/* Prints a line "name         value" of what something is; nothing where there is no value. */
void cli_print_fact(const char *name, const char *value);
/* Prints the path of a file or object: into a pipe byte for byte, so that programs can use it. */
void cli_put_path(const char *path);
/* Formats a size for people, or with --bytes the exact number. */
void cli_size(const struct cli_options *options, uint64_t bytes, char out[ACT_UNIT_TEXT]);
/* The path, as the user would type it, of an object at or below what, which was typed as word: "data/voc/a". New
 * string. */
char *cli_path_of(const char *word, const struct transfer_path *what, const char *key);
/* Likewise of rel, relative to what: below "data/voc" and "a" that is "data/voc/a", below "RUN:" it is "RUN:a". */
char *cli_path_below(const char *word, const struct transfer_path *what, const char *rel);
/* Says on stderr that the list is empty, and what it was asked for: "no run is named 'x'". */
void cli_note_no_runs(const struct flow_table *table);
/* Prints a table of runs; with_reason: with a column that says why each waits or failed. */
void cli_print_runs(const struct flow_runs *runs, bool with_reason);
/* The last piece of an id, which is unique enough to be typed. */
const char *cli_short_id(const char *id);
/* The cells of a run that is about to be aborted or removed: id and name first, and what is said of it. */
void cli_push_affected(struct act_strv *cells, const struct ledger_run *row, const char *what);
/* A line for each of them, in room terminal columns (0: no limit). */
void cli_affected_text(const struct act_strv *cells, int room, struct act_buf *out);
/* The table of runs as text, likewise. */
void cli_runs_text(const struct flow_runs *runs, bool with_reason, int room, bool coloured, struct act_buf *out);
void cli_print_run(const struct flow_run *run, const char *page); /* page NULL: it has none */
/* What tables say of a run: how long it has run (-1: not begun), whether it has ended with a status, its GPUs (of an
 * elastic run what it has now; 0 on clusters without), and its tags as "a=1, b=2" (new string; NULL: it has none). */
int64_t cli_elapsed_s(const struct run_status *status);
bool cli_has_exit_status(const struct run_status *status);
int64_t cli_gpus(const struct flow_run *run);
char *cli_tags_text(const struct ledger_run *row);
/* An untrusted name, for a line of text: control characters become '?'. New string. */
char *cli_name(const char *name);
/* Whether an answer is y or yes, and nothing else. */
bool cli_is_yes(const char *answer);
/* Asks on the terminal, which must exist. */
bool cli_ask(const char *question);
/* Likewise, unless -y was given; without a terminal, an error that names -y. */
int cli_confirm(const struct cli *cli, const char *question, struct act_error *err) ACT_NODISCARD;
/* Callback for flow_trust_asks(): shows what leads out of a project and asks on the terminal. */
int cli_ask_trust(const char *project, const struct act_strv *items, struct act_error *err) ACT_NODISCARD;

/* ---- table.c: tables fit the terminal; in a pipe nothing is cut and nothing left out */

enum { CLI_RANK_MAX = 15 };

/* What is left of a cell that is too wide. */
enum cli_cut {
    CLI_CUT_ANYWHERE, /* what fits, and "..." */
    CLI_CUT_WORDS,    /* whole words, and "..." */
    CLI_CUT_PARTS,    /* its first parts, which two blanks separate, as a whole */
};

struct cli_column {
    const char *head; /* NULL in the first one: the table has no header */
    char align;       /* 'l' or 'r' */
    int rank;         /* 0: always shown; else the column with the highest rank is cut, and left out, first */
    int min, pad;     /* cut to no less, but no number is (0: not cut); in a pipe, aligned up to this width (0: any) */
    int wide;         /* on a terminal at least so wide, so that it stays where it is when its cells change */
    enum cli_cut cut;
    bool is_state; /* the state of a run, shown in its colour */
    bool below;    /* if it does not fit beside more important ones, it is printed on lines below each row */
};

/* The width of the terminal that it is, in columns; 0: it is not a terminal, or the width is not known. */
int cli_width_of(int fd);
/* That of stdout. */
int cli_width(void);
/* widths: the widths that n columns need (not 0), replaced by those that fit in room terminal columns (0: no limit),
 * with two blanks in between. 0: left out. */
void cli_fit(const struct cli_column *columns, int *widths, size_t n, int room);
/* Appends a table; cells holds the cells of all rows, one after another, each a single line (act_one_line()). room as
 * above. */
void cli_table_text(const struct cli_column *columns, size_t n, const struct act_strv *cells, int room, bool coloured,
                    struct act_buf *out);
/* A cell with a number; "-" for a negative one, which is not known. */
void cli_push_count(struct act_strv *cells, int n);
/* Prints what cli_table_text() made. */
void cli_put_table(const struct act_buf *text);
/* Appends any text as one line of at most room columns (0: no limit), as a terminal may show it. */
void cli_add_line(struct act_buf *out, const char *text, int room, enum cli_cut cut);
void cli_print_table(const struct cli_column *columns, size_t n, const struct act_strv *cells);

/* ---- wrap.c: help that fits the terminal */

/* How wide help is: as the terminal, 80 columns in a pipe. */
int cli_help_width(void);
/* The length of the first paragraph of prose in a table, with its last newline. */
size_t cli_paragraph(const char *text);
/* Prints the words of text in lines of at most width columns: the first begins at column at, which is where the output
 * is, the others are indented. */
void cli_wrap(FILE *out, const char *text, size_t len, int at, int indent, int width);
/* Prints a line of prose, on a terminal in lines that fit. */
void cli_put_prose(const char *text, int at, int indent);
/* Prints the lines of examples: an explanation that has no room beside its example comes below it. */
void cli_put_examples(FILE *out, const char *text, int indent, int width);

/* ---- signal.c */

/* From now on SIGINT and SIGTERM only set cli_interrupted. Each time the next of these lines is printed, up to a
 * NULL. */
extern volatile sig_atomic_t cli_interrupted;
void cli_catch_signals(const char *const *said);
/* From now on they end the program, which prints this line first (a literal, "interrupted; ..."); NULL: none. Returns
 * the previous line. */
const char *cli_end_with(const char *text);
#define CLI_RUN_GOES_ON "the run goes on: 'a logs -f RUN' follows it again, 'a abort RUN' ends it"

/* ---- several paths: if one fails, the others are tried anyway */

struct cli_outcome {
    struct act_error *failed;
    size_t n_failed, n;
};
/* Records the result of one path. */
void cli_outcome_add(struct cli_outcome *outcome, int rc, const struct act_error *err);
/* Prints all errors but the last, which is returned in err. 0 if nothing failed; the first error's code if everything
 * did; else -ACT_PARTIAL. */
int cli_outcome_end(struct cli_outcome *outcome, struct act_error *err) ACT_NODISCARD;

/* ---- compare.c */

/* Prints what all of these runs have in common, then a table of what differs between them. */
void cli_compare_runs(struct cli *cli, const struct flow_runs *runs);

/* ---- each_run.c: several runs */

struct cli_each_run {
    /* Handles one run; if list is not NULL, appends the run to it as JSON. */
    int (*act)(struct cli *cli, struct flow_run *run, json_t *list, struct act_error *err);
    void (*after)(struct cli *cli, const struct flow_runs *runs); /* once, when all are handled; may be NULL */
    int (*find)(struct flow *flow, const char *piece, struct flow_run *out,
                struct act_error *err); /* NULL: flow_find_run */
    size_t first;                       /* so many words come before the runs */
    bool all_or_none;                   /* for what cannot be repeated: if one name is not a run, nothing is done */
    bool list;                          /* prints {"version": 1, "runs": [...]} */
};
/* Looks up the runs that the words name, and calls act() once for each. As with several paths, a failure is reported
 * and does not stop the others. */
int cli_each_run(struct cli *cli, const struct cli_each_run *each, struct act_error *err) ACT_NODISCARD;
/* The same for runs that are known already. */
int cli_these_runs(struct cli *cli, const struct cli_each_run *each, struct flow_runs *runs,
                   struct act_error *err) ACT_NODISCARD;

/* What --name and --tag say; cli owns it. Invalid: -ACT_USAGE. */
int cli_labels(struct cli *cli, struct flow_labels *out, struct act_error *err) ACT_NODISCARD;

/* ---- progress.c: one line on a terminal, a plain line every 30 s elsewhere */

enum { CLI_RATE_SAMPLES = 13 }; /* one per second: the rate is that of the last twelve seconds */

/* Recent progress. Bytes already transferred before an interruption do not count. */
struct cli_rate {
    struct cli_sample {
        int64_t ms;
        uint64_t bytes, objects;
    } v[CLI_RATE_SAMPLES], last;
    size_t n;
};
/* Call it as often as the numbers change; ms is any monotonic clock. */
void cli_rate_add(struct cli_rate *rate, int64_t ms, const struct transfer_progress *now);
/* Bytes per second; negative while it is too early to tell. */
double cli_rate_bytes(const struct cli_rate *rate);
/* The remaining time; -1 if it cannot be known: still listing, too early, no progress. */
int64_t cli_rate_left_s(const struct cli_rate *rate, const struct transfer_progress *now);
/* "uploading 30% [###.......] 12/40 objects, 3.4 MiB/8.0 MiB, 1.2 MiB/s, 4s left, what takes long", cut at width
 * columns, with a bar if there is room; width 0: neither cut nor with a bar. */
void cli_progress_line(const char *verb, const struct cli_rate *rate, const struct transfer_progress *now, size_t width,
                       struct act_buf *out);

struct cli_progress {
    const char *verb;                /* "uploading" */
    struct transfer_progress before; /* of finished paths; included in what is shown */
    struct cli_rate rate;
    int64_t started_ms, last_plain_ms;
    bool terminal, shown;
};
/* Sets progress and arg of the options; from now on SIGINT and SIGTERM end the program, which says that the same
 * command continues where it stopped. */
void cli_progress_start(struct cli_progress *p, const char *verb, bool quiet, struct transfer_options *options);
/* Replaces the current line of stderr's terminal by ACT's own text, cut to its width. */
void cli_put_in_place(const char *text);
/* Clears the line, so that something else can be written. */
void cli_progress_clear(struct cli_progress *p);
/* Clears the line and prints the summary, and the failures. */
void cli_progress_end(struct cli_progress *p, const char *done_verb, const struct transfer_report *report);
/* Prints the failures, grouped, if there are more than the one that the program ends with. */
void cli_print_failures(const struct transfer_report *report);
double cli_progress_seconds(const struct cli_progress *p); /* since the start */
struct transfer_progress cli_progress_sum(const struct transfer_progress *a, const struct transfer_progress *b);

/* ---- transfer.c: shared by the verbs that transfer data */

/* The transfer options from the command line; cli owns the filter. Invalid sizes or patterns: -ACT_USAGE. */
int cli_transfer_options(struct cli *cli, struct transfer_options *out, struct act_error *err) ACT_NODISCARD;
/* Whether a path of the command line is RUN:PATH: 1 or 0. -ACT_USAGE if the verb, or an option that was given, is not
 * for the logs of runs. */
int cli_names_run(struct cli *cli, const char *word, struct act_error *err) ACT_NODISCARD;
/* Whether a word means a whole run, as flow_names_whole_run() says; likewise. */
int cli_names_whole_run(struct cli *cli, const char *word, char **out_piece, struct act_error *err) ACT_NODISCARD;
/* Opens the path of a word, in the store or of a run. */
int cli_open_path(struct cli *cli, const char *word, struct flow_path *out, struct act_error *err) ACT_NODISCARD;
/* Opens the place that a path of the command line refers to, and with --leftovers both places where interrupted
 * transfers leave files: uploads in the store, downloads here. each() releases the path. */
typedef int cli_place_fn(void *arg, const char *word, enum flow_place place, struct flow_path *path,
                         struct act_error *err);
int cli_each_place(struct cli *cli, const char *word, cli_place_fn *each, void *arg,
                   struct act_error *err) ACT_NODISCARD;
/* For the result line of --json: failures, and the errors of whole paths. New references. */
json_t *cli_failures_json(const struct transfer_report *report);
json_t *cli_errors_json(const struct cli_outcome *outcome);
/* flow_check_path() or flow_check_local_path(). */
typedef int cli_path_check(struct flow *flow, const char *path, struct act_error *err);
/* Whether all words pass the check, and lie in mapped folders of from (may be NULL) too. Else the others are added to
 * the outcome, and when there are several words, hint says what was not done. */
bool cli_check_paths(struct cli *cli, struct flow *from, cli_path_check *check, const char *hint,
                     struct cli_outcome *outcome);
/* Warns about patterns that matched nothing, unless every path failed: then there was nothing to match. */
void cli_warn_idle_patterns(const struct cli *cli, const struct cli_outcome *outcome);
/* Adds the report of one path to the sum, and releases it. */
void cli_progress_add(struct cli_progress *p, struct transfer_report *sum, struct transfer_report *part);

/* Fetches the logs of a run according to the options, with progress. Release out. */
int cli_fetch_logs(struct cli *cli, struct flow_run *run, struct flow_logs *out, struct act_error *err) ACT_NODISCARD;
/* An error, with what to do, if the logs could not be kept here. */
int cli_check_kept(const struct flow_run *run, const struct flow_logs *logs, struct act_error *err) ACT_NODISCARD;

/* ---- cmd_logs.c: the end of a run whose log was followed */

/* Says how it ended, and returns its exit status; 0 if it has not ended. */
int cli_tell_end(const struct flow_run *run);

/* ---- cmd_prune.c: removing runs, also for 'a rm' */

struct flow_prune;
/* A line for each run that goes. */
void cli_print_removed(const struct flow_prune *p);
/* "3 runs (2 with logs here, 1 with logs in the store)", of n runs. New string. */
char *cli_sum_of_runs(const struct flow_prune *p, size_t n);

/* cmd_logs.c: -ACT_USAGE if the run has no rank of the number that was given. */
int cli_check_rank(const struct cli_options *o, const struct flow_run *run, struct act_error *err) ACT_NODISCARD;

/* Whether words from first on, or else --name and --tag, say which runs; not both. -ACT_USAGE. */
int cli_check_which(const struct cli *cli, size_t first, struct act_error *err) ACT_NODISCARD;
/* The user's runs that have the labels, as the ledger knows them, the oldest first. None: -ACT_NOT_FOUND. */
int cli_labelled_runs(struct cli *cli, bool with_spec, struct flow_runs *out, struct act_error *err) ACT_NODISCARD;
void cli_oldest_first(struct flow_runs *runs); /* of a list that has the newest first */

/* cmd_report.c: finds the runs that the words from first on name, each once, or those of --name and --tag, and fetches
 * their logs. All or none. */
int cli_find_with_logs(struct cli *cli, size_t first, struct flow_runs *out, struct act_error *err) ACT_NODISCARD;

/* ---- board.c */

/* Whether --metric, --min and --max fit together; else -ACT_USAGE. */
int cli_check_metric(const struct cli_options *o, struct act_error *err) ACT_NODISCARD;
/* Whether the logs of any of n runs have the number; else -ACT_NOT_FOUND, with those that they have. numbers may have
 * NULLs. where: "sweep 60ce2fc7". */
int cli_find_metric(const char *key, struct numbers *const *numbers, size_t n, const char *where,
                    struct act_error *err) ACT_NODISCARD;
int64_t cli_age_s(const struct flow_run *run); /* since it was submitted */
/* The head of the table, and its i-th row; key NULL: without a number. */
void cli_leaders_heads(const struct flow_leaders *leaders, const char *key, enum flow_best best, struct act_strv *out);
void cli_leaders_cells(const struct flow_leaders *leaders, size_t i, const char *key, struct act_strv *out);

/* ---- explain.c */

/* packing.c: the progress display while the code is packed. start() sets the callbacks of io. */
struct cli_packing {
    struct cli_progress line; /* must be first: its callback gets a pointer to it */
    struct transfer_options shown;
    const struct cli *cli;
};
void cli_packing_start(struct cli_packing *packing, const struct cli *cli, struct flow_init *io);

/* The largest files of a package, at most CLI_LARGEST. Returns how many. */
enum { CLI_LARGEST = 10 };
size_t cli_find_largest(const struct package_list *list, const struct package_entry *out[CLI_LARGEST]);
/* Prints what a dry run of flow_init() found. */
int cli_explain_package(const struct cli *cli, const struct flow_init *io, struct act_error *err) ACT_NODISCARD;

/* ---- verbs.c: commands whose first word is a verb of their own, and changes that a service makes for a while */

struct cli_verb {
    const char *name; /* NULL: the end of the table */
    int (*run)(struct cli *cli, const char *name, struct act_error *err);
    const char *options; /* those of the command that it takes */
    bool needs_name, takes_no_name;
    bool own; /* it is about cluster files, and opens none by itself */
};
/* That of the first word. NULL: *err, with the one that was meant. */
const struct cli_verb *cli_find_verb(const struct cli *cli, const struct cli_verb *table, struct act_error *err);
/* Whether it takes the options that were given; else -ACT_USAGE. */
int cli_check_verb(const struct cli *cli, const struct cli_verb *verb, struct act_error *err) ACT_NODISCARD;
/* Whether id (NULL is fine) is the resource id of a kind of thing, "subnets"; else -ACT_USAGE. */
int cli_check_id(const char *option, const char *id, const char *kind, struct act_error *err) ACT_NODISCARD;

/* What cli_follow() tells of a change: each new status in a line. */
struct cli_told {
    const char *noun, *name;
    const char *goes_on; /* a literal: said if it is interrupted, which does not interrupt the change */
    char last[96];
};
struct platform_follow; /* of platform/clusters.h */
/* How to follow a change, by the options; told must outlive it. */
struct platform_follow cli_follow(const struct cli *cli, struct cli_told *told);

/* ---- cmd_cluster_own.c, cmd_cluster_add.c: the verbs of 'a cluster' for cluster files; name: the word after the verb,
 * or NULL */

int cli_list_own(struct cli *cli, struct act_error *err);
int cli_use_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_edit_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_rename_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_remove_cluster(struct cli *cli, const char *name, struct act_error *err);
int cli_add_cluster(struct cli *cli, const char *name, struct act_error *err);
/* cmd_cluster_login.c */
int cli_login_cluster(struct cli *cli, const char *name, struct act_error *err);
/* The options of 'a cluster add' alone. */
#define CLI_ADD_OPTIONS                                                                                                    \
    "kind project login hosts partition context namespace kubeconfig image subscription resource-group workspace compute " \
    "storage container"

int cmd_abort(struct cli *cli, struct act_error *err);
int cmd_scale(struct cli *cli, struct act_error *err);
int cmd_blame(struct cli *cli, struct act_error *err);
int cmd_cat(struct cli *cli, struct act_error *err);
int cmd_cluster(struct cli *cli, struct act_error *err);
int cmd_complete(struct cli *cli, struct act_error *err);
int cmd_completion(struct cli *cli, struct act_error *err);
int cmd_config(struct cli *cli, struct act_error *err);
int cmd_diff(struct cli *cli, struct act_error *err);
int cmd_doctor(struct cli *cli, struct act_error *err);
int cmd_download(struct cli *cli, struct act_error *err);
int cmd_du(struct cli *cli, struct act_error *err);
int cmd_files(struct cli *cli, struct act_error *err);
int cmd_fileserver(struct cli *cli, struct act_error *err);
int cmd_grep(struct cli *cli, struct act_error *err);
int cmd_help(struct cli *cli, struct act_error *err);
int cmd_init(struct cli *cli, struct act_error *err);
int cmd_initc(struct cli *cli, struct act_error *err);
int cmd_local(struct cli *cli, struct act_error *err);
int cmd_logs(struct cli *cli, struct act_error *err);
int cmd_ls(struct cli *cli, struct act_error *err);
int cmd_man(struct cli *cli, struct act_error *err);
int cmd_nodes(struct cli *cli, struct act_error *err);
int cmd_host(struct cli *cli, struct act_error *err);
int cmd_page(struct cli *cli, struct act_error *err);
int cmd_parse(struct cli *cli, struct act_error *err);
int cmd_plot(struct cli *cli, struct act_error *err);
int cmd_prune(struct cli *cli, struct act_error *err);
int cmd_query(struct cli *cli, struct act_error *err);
int cmd_query_failed(struct cli *cli, struct act_error *err);
int cmd_query_queued(struct cli *cli, struct act_error *err);
int cmd_query_running(struct cli *cli, struct act_error *err);
int cmd_report(struct cli *cli, struct act_error *err);
int cmd_resubmit(struct cli *cli, struct act_error *err);
int cmd_rm(struct cli *cli, struct act_error *err);
int cmd_ssh(struct cli *cli, struct act_error *err);
int cmd_submit(struct cli *cli, struct act_error *err);
int cmd_summary(struct cli *cli, struct act_error *err);
int cmd_sweep(struct cli *cli, struct act_error *err);
int cmd_mount(struct cli *cli, struct act_error *err);
int cmd_mount_folder(struct cli *cli, struct act_error *err);
int cmd_top(struct cli *cli, struct act_error *err);
int cmd_transfer_folder(struct cli *cli, struct act_error *err);
int cmd_ui(struct cli *cli, struct act_error *err);
int cmd_upload(struct cli *cli, struct act_error *err);
int cmd_url(struct cli *cli, struct act_error *err);
int cmd_login(struct cli *cli, struct act_error *err);
int cmd_logout(struct cli *cli, struct act_error *err);
int cmd_trust(struct cli *cli, struct act_error *err);
int cmd_verify(struct cli *cli, struct act_error *err);
int cmd_wait(struct cli *cli, struct act_error *err);
int cmd_why(struct cli *cli, struct act_error *err);

#endif
