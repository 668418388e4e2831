/* command.h - a command: the row of its verb, the words and options that were typed, and the configuration that it
 * opens.
 *
 * dispatch.c goes from the words to the exit status, open.c opens configurations, table.c finds the row of a verb, and
 * code.c, runs.c, clusters.c, data.c and own.c have the rows. To add a verb, add a file with one function to its room,
 * declare the function in the room's header, and add a row here that names every option that it uses.
 */
#ifndef ACT_CLI_COMMAND_COMMAND_H
#define ACT_CLI_COMMAND_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "auth/services.h"
#include "cli/options/options.h"
#include "config/request.h"
#include "flow/flow.h"

struct filter;
struct ledger_run;

/* A command that runs. */
struct cli {
    const struct cli_command *command;
    struct cli_common_options options;
    void *families[CLI_N_FAMILIES]; /* see CLI_OPTIONS() */
    struct act_strv words;          /* the words after the verb and its options */
    size_t words_before;            /* how many of them come before "--"; all if there is none */
    struct services services;       /* shared by all flows of the command */
    struct flow flow;
    bool flow_is_open;
    struct filter *filter; /* from cli_transfer_options() */
    json_t *tags;          /* from cli_labels() */
    void *arg;             /* what a command shares with its cli_each_run.act() */
    bool names_sweep;      /* some of the words were a sweep */
    bool said_unkept;      /* it was said that copies of logs cannot be kept */
};

/* The kind of a verb's words; CLI_CHOICE: those at the beginning of its synopsis, "show | check". */
enum cli_complete { CLI_NOTHING, CLI_RUNS, CLI_PATHS, CLI_COMMAND, CLI_VERBS, CLI_CHOICE, CLI_CLUSTERS, CLI_KEYS };

struct cli_verb; /* of verbs.h */

struct cli_command {
    const char *group; /* the title of the verbs from here on in the overview; NULL: as before */
    const char *name;
    const char *aliases;      /* "q, qr", or NULL */
    const char *synopsis;     /* after the name */
    const char *summary;      /* one line */
    const char *examples;     /* shown first by --help */
    const char *details;      /* may be NULL */
    const char *options;      /* long names of all options that it uses, separated by blanks, or NULL */
    const char *run_options;  /* of these, those it uses where a path is RUN:PATH; NULL: it does not take one */
    bool whole_runs;          /* which then is "RUN:", and no log */
    int min_words, max_words; /* max -1: any number */
    enum cli_complete complete;
    enum cli_complete then;       /* with CLI_CHOICE: what its second word is */
    const char *then_behind;      /* the choices that the second word comes behind */
    const char *alone;            /* with CLI_CHOICE: the one that the verb means alone; NULL: it needs one */
    const struct cli_verb *verbs; /* with CLI_CHOICE: the choices, each with its own options; NULL: all take the same */
    bool sweeps;                  /* its words may be sweeps, which mean their runs, */
    size_t sweeps_from;           /* from this one on */
    bool last_run;                /* beyond min_words, it takes a run: the one submitted last where none is named */
    bool takes_command;           /* from the first word on, everything is the user's command */
    bool bare;                    /* needs no configuration */
    bool of_runs;                 /* like bare, as runs know their own; but a cluster given by name must exist */
    bool looks_only;              /* only shows the configuration, which need not be trusted */
    bool own_status;              /* exits with the status of the user's command; its own failures are 125 */
    bool hidden;
    int (*run)(struct cli *cli, struct act_error *err); /* 0, a negative act_code, or a positive exit status */
    const struct cli_command *next_table; /* in the row without a name that ends a table; NULL: it is the last */
};

/* ---- table.c: which verbs there are */

/* Returns the verb after c in the order in which help lists them: the first one for NULL; NULL after the last. */
const struct cli_command *cli_next_command(const struct cli_command *c);
/* Returns the verb with a name or an alias; NULL: there is none. */
const struct cli_command *cli_find_command(const char *name);
/* Returns what to type instead of a verb of other tools: "'a q' shows your runs" for "ps"; NULL: it is not known. */
const char *cli_synonym(const char *name);
/* Adds the names that other tools give verbs. */
void cli_add_synonyms(struct act_strv *out);

/* ---- usage.c: what is said of wrong words */

/* Says that there are too few words, with the synopsis. Returns -ACT_USAGE. */
int cli_needs_more(const struct cli *cli, struct act_error *err);
/* Checks that there is a command to run; else -ACT_USAGE with an example of one. */
int cli_check_command(const struct cli *cli, const char *example, struct act_error *err);
/* Appends where the examples of the verb are. Returns -err->code. */
int cli_hint_help(const struct cli *cli, struct act_error *err);
/* Returns what joins an error and its continuation: "; did you mean 'near'? ", or "; " where near is NULL. New
 * string. */
char *cli_did_you_mean(const char *near);
/* Says that word is not a verb, and which one may have been meant. Returns -ACT_USAGE. */
int cli_unknown_verb(const char *word, struct act_error *err);

/* ---- open.c: the configuration of a command */

/* What the options ask of the configuration; it points into itself and into cli. */
struct cli_request {
    struct config_request config;
    struct config_override overrides[8];
    char num_gpu[24], range[48], hang[24], retry[24], retry_on[1024];
};
/* Makes the request of the options. */
void cli_request(const struct cli *cli, struct cli_request *out);
/* Opens a flow on a cluster (NULL: the default one) with the overrides of the options. The caller closes it. */
int cli_open_flow(struct cli *cli, const char *cluster, struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Opens a flow where a run is. Returns 1 if that is with the configuration that the run wrote down. */
int cli_open_of_run(struct cli *cli, const struct ledger_run *row, struct flow *flow,
                    struct act_error *err) ACT_NODISCARD;
/* Opens cli->flow on the cluster of -c. */
int cli_open(struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Opens another flow on the cluster of -c, for commands that only show the configuration: it need not be trusted. */
int cli_open_to_look(struct cli *cli, struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Closes and frees whatever the command has. */
void cli_release(struct cli *cli);

#endif
