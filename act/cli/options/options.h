/* options.h - the options: which there are (table.c), what one means to some verbs only (meanings.c), and how words are
 * read (parse.c).
 *
 * A verb takes the options that its row in command/ names, and the global ones; any other is refused with a line that
 * says what it takes. To add an option, add a row to table.c and a member that it sets, and name the option in the rows
 * of the verbs that use it. Help, manual, completion and "did you mean" follow.
 */
#ifndef ACT_CLI_OPTIONS_OPTIONS_H
#define ACT_CLI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct cli;
struct cli_command;

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
    char *kind, *login, *partition, *context, *namespace_, *kubeconfig, *image;
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

/* The help of an option where it means something else to some verbs. */
struct cli_option_meaning {
    const char *option, *verbs, *help; /* verbs: separated by blanks */
};
extern const struct cli_option_meaning cli_option_meanings[]; /* ends with a row without names */

/* Returns the help of an option of a verb; command NULL: of all verbs. */
const char *cli_option_help(const struct cli_command *command, const struct cli_option *option);
/* Tells whether a list of words separated by blanks (NULL is fine) contains name. */
bool cli_names(const char *list, const char *name);
/* Tells whether a verb takes an option; command NULL: whether the option may be given before a verb. */
bool cli_takes(const struct cli_command *command, const struct cli_option *option);
/* Tells whether an option was given, also by the environment. */
bool cli_is_given(const struct cli_options *options, const struct cli_option *option);
/* Returns the next option after last (NULL: the first) that help shows for a verb at a place; NULL: there are no
 * more. */
const struct cli_option *cli_next_option(const struct cli_command *command, enum cli_place place,
                                         const struct cli_option *last);
/* Finds the option of a verb (NULL: of those before it) that word names, and in *out_value the value if the word
 * contains it, else NULL. Returns NULL if there is none. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *word, const char **out_value);

/* Sets all options to "not given". */
void cli_options_init(struct cli_options *options);
/* Reads argv[1...] into cli->command, options and words. Without a verb, command is NULL. */
int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err) ACT_NODISCARD;

#endif
