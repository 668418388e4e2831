/* parse.c - reads words into options.
 *
 * A verb takes the options named in its row in command/, and the global ones; any other is refused with a line
 * that says what it takes. Options of the original may come before the verb, as they did there, or after it. '-' and
 * '_' in long names are equivalent; values are "--name value", "--name=value", for numbers also "-n8"; single-letter
 * flags can be combined: "-lr".
 */
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/units.h"
#include "cli/command/command.h"

void *cli_option_at(const struct cli *cli, const struct cli_option *o)
{
    return (char *)cli->families[o->family] + o->offset;
}

/* A number that was not given is -1. */
static void parse_begin(struct cli *cli)
{
    cli->families[CLI_FAMILY_common] = &cli->options;
    for (size_t i = 0; i < CLI_FAMILY_common; i++)
        cli->families[i] = act_calloc(1, cli_family_sizes[i]);
    for (const struct cli_option *o = cli_option_table; o->long_name; o++)
        if (o->type == CLI_INT)
            *(int64_t *)cli_option_at(cli, o) = -1;
        else if (o->type == CLI_RANGE)
            *(struct cli_range *)cli_option_at(cli, o) = (struct cli_range){-1, -1};
}

bool cli_names(const char *list, const char *name)
{
    size_t len = strlen(name);

    while (list && *list) {
        size_t n = strcspn(list, " ");
        if (n == len && strncmp(list, name, n) == 0)
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* Tells whether an option was given, also by the environment. */
static bool parse_is_given(const struct cli *cli, const struct cli_option *o)
{
    const void *at = cli_option_at(cli, o);

    switch (o->type) {
    case CLI_FLAG:
        return *(const bool *)at;
    case CLI_STRING:
        return *(char *const *)at != NULL;
    case CLI_STRINGS:
        return ((const struct act_strv *)at)->n > 0;
    case CLI_INT:
        return *(const int64_t *)at >= 0;
    case CLI_DURATION:
    case CLI_WITH_UNIT:
        return *(const int64_t *)at > 0;
    case CLI_RANGE:
        return ((const struct cli_range *)at)->most >= 0;
    case CLI_SIZE:
        return *(const uint64_t *)at > 0;
    }
    return false;
}

bool cli_takes(const struct cli_command *command, const struct cli_option *option)
{
    if (option->place == CLI_EVERYWHERE)
        return true;
    return command ? cli_names(command->options, option->long_name) : option->place == CLI_BEFORE;
}

const struct cli_option *cli_given_beyond(const struct cli *cli, const char *list)
{
    for (const struct cli_option *o = cli_option_table; o->long_name; o++)
        if (o->place != CLI_EVERYWHERE && cli_takes(cli->command, o) && parse_is_given(cli, o) &&
            !cli_names(list, o->long_name))
            return o;
    return NULL;
}

const struct cli_option *cli_next_option(const struct cli_command *command, enum cli_place place,
                                         const struct cli_option *last)
{
    for (const struct cli_option *o = last ? last + 1 : cli_option_table; o->long_name; o++)
        if (o->help && o->place == place && cli_takes(command, o))
            return o;
    return NULL;
}

/* Tells whether name (len bytes, without dashes) is the long name; '_' and '-' are the same. */
static bool same_name(const char *name, size_t len, const char *long_name)
{
    if (strlen(long_name) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] != long_name[i] && !(name[i] == '_' && long_name[i] == '-'))
            return false;
    return true;
}

/* Tells whether an option has a name: its long one, or its short one if that is long as well. */
static bool has_long_name(const struct cli_option *o, const char *name, size_t len)
{
    return same_name(name, len, o->long_name) ||
           (o->short_name && act_starts_with(o->short_name, "--") && same_name(name, len, o->short_name + 2));
}

static bool is_short(const struct cli_option *o)
{
    return o->short_name && strlen(o->short_name) == 2;
}

/* Tells whether word is "-n8": for numbers only, as otherwise "-foo" would be "-f oo". */
static bool has_number(const struct cli_option *o, const char *word)
{
    const char *fits = o->type == CLI_RANGE ? "0123456789:" : "0123456789";

    return is_short(o) && (o->type == CLI_INT || o->type == CLI_RANGE) && act_starts_with(word, o->short_name) &&
           word[2 + strspn(word + 2, fits)] == '\0';
}

const struct cli_option *cli_find_option(const struct cli_command *command, const char *word, const char **out_value)
{
    const char *eq = strchr(word, '=');
    size_t name_len = eq ? (size_t)(eq - word) : strlen(word);
    bool is_long = act_starts_with(word, "--");

    *out_value = NULL;
    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        if (!cli_takes(command, o))
            continue;
        if (o->short_name && strcmp(word, o->short_name) == 0)
            return o;
        if (is_long && has_long_name(o, word + 2, name_len - 2)) {
            *out_value = eq ? eq + 1 : NULL;
            return o;
        }
        if (has_number(o, word)) {
            *out_value = word + 2;
            return o;
        }
    }
    return NULL;
}

/* Reads "8" or "8:32". */
static int take_range(const char *word, const char *text, struct cli_range *out, struct act_error *err)
{
    const char *colon = strchr(text, ':');
    ACT_AUTOFREE char *least = act_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    const char *most = colon ? colon + 1 : text;

    if (!act_int_from_text(least, &out->least) || !act_int_from_text(most, &out->most) || out->least < (colon ? 1 : 0))
        return act_error_set(err, ACT_USAGE, "%s takes a number, or MIN:MAX for an elastic run, not '%s'", word, text);
    if (out->least > out->most)
        return act_error_set(err, ACT_USAGE, "%s takes MIN:MAX, and %s is more than %s; did you mean '%s:%s'?", word,
                             least, most, most, least);
    return 0;
}

static int store_value(const struct cli_option *o, const char *word, const char *value, struct cli *cli,
                       struct act_error *err)
{
    void *at = cli_option_at(cli, o);
    int64_t number;
    uint64_t size;

    switch (o->type) {
    case CLI_FLAG:
        *(bool *)at = true;
        return 0;
    case CLI_STRING:
        free(*(char **)at);
        *(char **)at = act_strdup(value);
        return 0;
    case CLI_STRINGS:
        act_strv_push(at, value);
        return 0;
    case CLI_INT:
        if (!act_int_from_text(value, &number) || number < 0)
            return act_error_set(err, ACT_USAGE, "%s takes a number, not '%s'", word, value);
        *(int64_t *)at = number;
        return 0;
    case CLI_RANGE:
        return take_range(word, value, at, err);
    case CLI_DURATION:
    case CLI_WITH_UNIT:
        if ((o->type == CLI_WITH_UNIT && act_int_from_text(value, &number)) ||
            !act_duration_from_text(value, &number) || number == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a time such as 90s, 15m, 24h or 7d, not '%s'", word, value);
        *(int64_t *)at = number;
        return 0;
    case CLI_SIZE:
        if (!act_size_from_text(value, &size) || size == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a size such as 500k, 64M or 1G, not '%s'", word, value);
        *(uint64_t *)at = size;
        return 0;
    }
    return 0;
}

/* Options that can also be set in the environment; the command line wins. */
static const struct {
    const char *option, *variable;
} twins[] = {{"bwlimit", "ACT_BWLIMIT"}, {"memory", "ACT_MEMORY"}};

static int take_environment(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]) && rc == 0; i++) {
        const char *value = act_env(twins[i].variable);
        const struct cli_option *o = cli_option_table;
        while (strcmp(o->long_name, twins[i].option) != 0)
            o++;
        if (value && cli_takes(cli->command, o))
            rc = store_value(o, twins[i].variable, value, cli, err);
    }
    return rc;
}

/* Appends the options of the verb in short form: "-c, -rt, --json". */
static void list_options(const struct cli_command *command, struct act_buf *out)
{
    enum { READABLE = 3 };

    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        bool brief = o->short_name && strlen(o->short_name) <= READABLE;
        if (o->help && o->place != CLI_EVERYWHERE && cli_takes(command, o))
            act_buf_addf(out, "%s%s%s", out->len ? ", " : "", brief ? "" : "--", brief ? o->short_name : o->long_name);
    }
    if (!out->len)
        act_buf_adds(out, "no options but those of every verb: -q, -h");
}

/* Returns the option of the verb closest to what was typed: "--json". The first letter must be right: between words
 * so short all are close. New string; NULL: none is close. */
static char *nearest_option(const struct cli_command *command, const char *name)
{
    ACT_AUTO(act_strv) names = {0};
    const char *word = name + strspn(name, "-");

    for (const struct cli_option *o = cli_option_table; o->long_name; o++)
        if (cli_takes(command, o) && o->help && o->long_name[0] == *word)
            act_strv_push(&names, o->long_name);
    const char *near = names.n ? act_nearest(word, (const char *const *)names.v) : NULL;
    return near ? act_sprintf("--%s", near) : NULL;
}

/* Tells whether some verb takes the option that a word names, after the verb. */
static bool is_behind_some_verb(const char *word)
{
    const char *value;

    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        const struct cli_option *o = cli_find_option(c, word, &value);
        if (o && o->place == CLI_BEHIND)
            return true;
    }
    return false;
}

static int unknown_before(const char *name, struct act_error *err)
{
    if (is_behind_some_verb(name))
        return act_error_set(err, ACT_USAGE,
                             "'%s' comes after its verb; 'a help' lists the options that may come before it", name);
    ACT_AUTOFREE char *near = nearest_option(NULL, name);
    ACT_AUTOFREE char *then = cli_did_you_mean(near);
    return act_error_set(err, ACT_USAGE, "unknown option '%s'%ssee 'a --help'", name, then);
}

/* Refuses "-n=2": only long names take a value this way. 0: it is something else. */
static int refuse_equals(const struct cli_command *command, const char *word, const char *name, struct act_error *err)
{
    const char *value = strchr(word, '='), *ignored;
    const struct cli_option *o = value ? cli_find_option(command, name, &ignored) : NULL;

    if (!o)
        return 0;
    return o->argument ? act_error_set(err, ACT_USAGE, "write '%s %s', not '%s'", name, value + 1, word)
                       : act_error_set(err, ACT_USAGE, "'%s' takes no value", name);
}

/* Returns what says here what an option says in other tools; NULL: it is not known, or the verb takes no such. */
static const char *parse_foreign_option(const struct cli_command *command, const char *name)
{
    static const struct {
        const char *names, *option, *advice;
    } rows[] = {
        {"--gpus --gpu --gres --ngpus --np --ntasks --processes --nproc-per-node", "num-gpu", "-n N"},
        {"--env --environment --export", "num-gpu", "-p 'env: {NAME: VALUE}'"},
        {"--partition --account --qos --time --walltime", "num-gpu", "-p 'slurm: {KEY: VALUE}'"},
        {"--status --state --states", "failed", "--running, --queued or --failed"},
        {"--depends --dependency", "after", "--after RUN"},
        {"--job-name --title", "name", "--name NAME"},
        {"--label --labels", "tag", "--tag KEY=VALUE"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (cli_names(rows[i].names, name) && cli_names(command->options, rows[i].option))
            return rows[i].advice;
    return NULL;
}

/* Refuses word, an option that the verb does not take; before: it came before the verb. */
static int refuse_option(const struct cli_command *command, const char *word, bool before, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_strndup(word, strcspn(word, "="));
    const char *ignored;
    int rc = before ? 0 : refuse_equals(command, word, name, err);

    if (rc < 0)
        return rc;
    if (!command)
        return unknown_before(name, err);
    if (before && cli_find_option(command, word, &ignored))
        return act_error_set(err, ACT_USAGE, "the '%s' of 'a %s' comes after the verb: a %s %s ...", name,
                             command->name, command->name, name);
    const char *here = before ? NULL : parse_foreign_option(command, name);
    if (here)
        return act_error_set(err, ACT_USAGE, "'a %s' takes no '%s'; here it is %s; 'a %s --help' has all options",
                             command->name, name, here, command->name);
    ACT_AUTOFREE char *near = before ? NULL : nearest_option(command, name);
    if (near)
        return act_error_set(err, ACT_USAGE, "'a %s' takes no '%s'; did you mean '%s'? 'a %s --help' has all options",
                             command->name, name, near, command->name);
    ACT_AUTO(act_buf) taken = {0};
    list_options(command, &taken);
    return act_error_set(err, ACT_USAGE, "'a %s' takes no '%s'; it takes %s", command->name, name, taken.data);
}

struct parser {
    char **words;
    int n, next;
    struct cli *cli;
    struct before {
        const struct cli_option *option;
        const char *word;
    } * before; /* the options before the verb */
    size_t n_before;
};

static void note_before(struct parser *p, const struct cli_option *option, const char *word)
{
    ACT_PUSH(p->before, p->n_before, (struct before){.option = option, .word = word});
}

/* Checks that the verb takes the options before it, too. */
static int check_before(const struct parser *p, struct act_error *err)
{
    for (size_t i = 0; i < p->n_before; i++)
        if (!cli_takes(p->cli->command, p->before[i].option))
            return refuse_option(p->cli->command, p->before[i].word, true, err);
    return 0;
}

/* Reads "-lr" as "-l -r": single-letter flags, all of which the verb takes. */
static bool parse_letters(const struct parser *p, const char *word)
{
    const char *ignored;

    for (int pass = 0; pass < 2; pass++)
        for (const char *letter = word + 1; *letter; letter++) {
            const char name[] = {'-', *letter, '\0'};
            const struct cli_option *o = *letter == '-' ? NULL : cli_find_option(p->cli->command, name, &ignored);
            if (!o || o->type != CLI_FLAG)
                return false;
            if (pass == 1)
                *(bool *)cli_option_at(p->cli, o) = true;
        }
    return true;
}

/* Reads the option at p->next, with its value. */
static int parse_option(struct parser *p, struct act_error *err)
{
    const char *word = p->words[p->next++], *value;
    const struct cli_command *command = p->cli->command;
    const struct cli_option *o = cli_find_option(command, word, &value);

    if (!o && command && parse_letters(p, word))
        return 0;
    if (!o)
        return refuse_option(command, word, false, err);
    if (!o->argument && value)
        return act_error_set(err, ACT_USAGE, "'%s' takes no value", word);
    if (o->argument && !value) {
        if (p->next == p->n)
            return act_error_set(err, ACT_USAGE, "%s needs a value: %s %s", word, word, o->argument);
        value = p->words[p->next++];
    }
    if (!command)
        note_before(p, o, word);
    return store_value(o, word, value ? value : "", p->cli, err); /* a flag has none */
}

static int check_count(const struct cli *cli, struct act_error *err)
{
    const struct cli_command *c = cli->command;
    const char *space = *c->synopsis ? " " : "";
    int n = (int)cli->words.n;

    if (cli->options.help || (n >= c->min_words && (c->max_words < 0 || n <= c->max_words)))
        return 0;
    if (n < c->min_words)
        return cli_needs_more(cli, err);
    act_error_set(err, ACT_USAGE, "'a %s' does not take '%s': a %s%s%s", c->name, cli->words.v[c->max_words], c->name,
                  space, c->synopsis);
    return cli_hint_help(cli, err);
}

/* Names the run submitted last where a verb takes a run, harms none, and nothing says which. */
static void name_last_run(struct cli *cli)
{
    const struct cli_common_options *o = &cli->options;
    const bool labelled = cli_names(cli->command->options, "tag") && (o->name || o->tags.n);

    if (!cli->command->last_run || o->help || labelled || (int)cli->words.n != cli->command->min_words)
        return;
    act_strv_push(&cli->words, "@");
    cli->words_before += cli->words_before + 1 == cli->words.n;
}

/* Takes the choice that looks where a verb stands alone. */
static void name_choice(struct cli *cli)
{
    if (!cli->command->alone || cli->options.help || cli->words.n > 0)
        return;
    act_strv_push(&cli->words, cli->command->alone);
    cli->words_before++;
}

static int parse_words(struct parser *p, struct act_error *err)
{
    struct cli *cli = p->cli;
    bool only_words = false, separated = false;
    int rc = 0;

    while (p->next < p->n && rc == 0) {
        const char *word = p->words[p->next];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = separated = true;
            cli->words_before = cli->words.n;
            p->next++;
        } else if (!only_words && word[0] == '-' && word[1]) {
            rc = parse_option(p, err);
        } else if (!cli->command) {
            cli->command = cli_find_command(word);
            if (!cli->command)
                return cli_unknown_verb(word, err);
            p->next++;
            only_words = strcmp(cli->command->name, "__complete") == 0;
            rc = take_environment(cli, err);
        } else {
            only_words = only_words || cli->command->takes_command;
            act_strv_push(&cli->words, word);
            p->next++;
        }
    }
    if (!separated)
        cli->words_before = cli->words.n;
    return rc;
}

int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err)
{
    struct parser p = {.words = argv, .n = argc, .next = 1, .cli = cli};

    parse_begin(cli);
    int rc = parse_words(&p, err);

    if (rc == 0 && cli->command && !cli->options.help)
        rc = check_before(&p, err);
    if (rc == 0 && cli->command)
        name_choice(cli);
    if (rc == 0 && cli->command)
        rc = check_count(cli, err);
    if (rc == 0 && cli->command)
        name_last_run(cli);
    free(p.before);
    return rc;
}

void cli_options_release(struct cli *cli)
{
    for (const struct cli_option *o = cli_option_table; o->long_name && cli->families[0]; o++) {
        if (o->type == CLI_STRING)
            act_str_replace(cli_option_at(cli, o), NULL);
        else if (o->type == CLI_STRINGS)
            act_strv_release(cli_option_at(cli, o));
    }
    for (size_t i = 0; i < CLI_FAMILY_common; i++) {
        free(cli->families[i]);
        cli->families[i] = NULL;
    }
}
