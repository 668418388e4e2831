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

/* The options that many verbs have. */
struct cli_common_options {
    char *cluster;
    struct act_strv params;
    char *name; /* of a run, or of a log */
    struct act_strv tags;
    int64_t max; /* -1: not given */
    bool all, dry_run, json, yes, quiet, no_share, help, version;
    bool legacy;   /* an option of the original that no longer has a meaning, */
    char *ignored; /* and one with a value */
};

/* The others belong to families of verbs. Each family has a struct, cli_<family>_options, in the options.h of its room:
 * who adds a member rebuilds table.c and that room. */
#define CLI_FAMILIES(X)                                                                                                \
    X(settings)                                                                                                        \
    X(start)                                                                                                           \
    X(batch)                                                                                                           \
    X(sweep)                                                                                                           \
    X(logs)                                                                                                            \
    X(query)                                                                                                           \
    X(metric)                                                                                                          \
    X(wait)                                                                                                            \
    X(runs)                                                                                                            \
    X(page)                                                                                                            \
    X(transfer)                                                                                                        \
    X(list)                                                                                                            \
    X(store)                                                                                                           \
    X(add)                                                                                                             \
    X(managed)                                                                                                         \
    X(nodes)                                                                                                           \
    X(login)                                                                                                           \
    X(trust)
#define CLI_FAMILY(name) CLI_FAMILY_##name,
enum cli_family { CLI_FAMILIES(CLI_FAMILY) CLI_FAMILY_common, CLI_N_FAMILIES };
#undef CLI_FAMILY

/* The options of a family that a command was given: CLI_OPTIONS(cli, wait)->any. */
#define CLI_OPTIONS(cli, family) ((const struct cli_##family##_options *)(cli)->families[CLI_FAMILY_##family])

/* Where an option may be given. */
enum cli_place {
    CLI_BEHIND,     /* after the verbs that name it, as most options */
    CLI_BEFORE,     /* also before the verb, as in the original */
    CLI_EVERYWHERE, /* every verb takes it */
};

enum cli_type { CLI_FLAG, CLI_STRING, CLI_STRINGS, CLI_INT, CLI_RANGE, CLI_DURATION, CLI_WITH_UNIT, CLI_SIZE };

struct cli_option {
    const char *short_name; /* "-n", "-rt"; NULL: none */
    const char *long_name;  /* "num-gpu" */
    enum cli_type type;
    enum cli_family family;
    size_t offset;        /* of what it sets, in the struct of the family */
    const char *argument; /* "N"; NULL for flags */
    const char *help;     /* NULL: hidden (accepted for compatibility) */
    enum cli_place place;
};

extern const struct cli_option cli_option_table[];       /* ends with a row without names */
extern const size_t cli_family_sizes[CLI_FAMILY_common]; /* of the structs */

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
/* Returns the first option that was given and that list, of long names, does not have; NULL: there is none. Those of
 * every verb do not count. */
const struct cli_option *cli_given_beyond(const struct cli *cli, const char *list);
/* Returns the next option after last (NULL: the first) that help shows for a verb at a place; NULL: there are no
 * more. */
const struct cli_option *cli_next_option(const struct cli_command *command, enum cli_place place,
                                         const struct cli_option *last);
/* Finds the option of a verb (NULL: of those before it) that word names, and in *out_value the value if the word
 * contains it, else NULL. Returns NULL if there is none. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *word, const char **out_value);

/* Reads argv[1...] into the command, options and words of cli, which is empty. Without a verb, command is NULL. Free
 * what cli has by cli_release(), whatever is returned. */
int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err) ACT_NODISCARD;
/* Returns where an option of a command is kept. */
void *cli_option_at(const struct cli *cli, const struct cli_option *option);
/* Frees all options. */
void cli_options_release(struct cli *cli);

#endif
