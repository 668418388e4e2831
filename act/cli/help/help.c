/* help.c - help, from the rows of the tables. */
#include <string.h>

#include "cli/command/verbs.h"
#include "cli/help/help.h"
#include "cli/print/wrap.h"

enum { VERB_COLUMN = 18, OPTION_COLUMN = 30, BELOW_COLUMN = 6 };

/* Prints "  left                right", which begins at that column. Where less than half of the line would be left for
 * it, it comes below. */
static void print_row(FILE *out, int column, const char *left, const char *right)
{
    column = 2 * column > cli_help_width() ? BELOW_COLUMN : column;
    fprintf(out, "  %-*s", column - 2, left);
    if ((int)strlen(left) >= column - 2)
        fprintf(out, "\n%*s", column, "");
    cli_wrap(out, right, strlen(right), column, column, cli_help_width());
}

static void print_option(FILE *out, const struct cli_command *command, const struct cli_option *o)
{
    ACT_AUTOFREE char *left = act_sprintf("%s%s--%s%s%s", o->short_name ? o->short_name : "", o->short_name ? ", " : "",
                                          o->long_name, o->argument ? " " : "", o->argument ? o->argument : "");

    print_row(out, OPTION_COLUMN, left, cli_option_help(command, o));
}

/* Prints a text on lines of its own. */
static void help_put_line(FILE *out, int indent, const char *text)
{
    fprintf(out, "%*s", indent, "");
    cli_wrap(out, text, strlen(text), indent, indent, cli_help_width());
}

static void help_put_title(FILE *out, const char *title)
{
    ACT_AUTOFREE char *line = act_sprintf("%s:", title);

    fputc('\n', out);
    help_put_line(out, 0, line);
}

/* Prints the verb's options for a place, below a title. */
static void print_options(FILE *out, const struct cli_command *command, enum cli_place place, const char *title)
{
    for (const struct cli_option *o = NULL; (o = cli_next_option(command, place, o));) {
        if (title)
            help_put_title(out, title);
        title = NULL;
        print_option(out, command, o);
    }
}

static void print_prose(FILE *out, const char *text)
{
    for (size_t n; *text; text += n) {
        n = cli_paragraph(text);
        cli_wrap(out, text, n, 0, 0, cli_help_width());
    }
}

static void print_examples(FILE *out, const char *examples)
{
    fputs("examples:\n", out);
    cli_put_examples(out, examples, 2, cli_help_width());
}

static void print_usage(FILE *out, const char *words)
{
    static const char usage[] = "usage: ";
    int indent = (int)strlen(usage);

    fprintf(out, "\n%s", usage);
    cli_wrap(out, words, strlen(words), indent, indent, cli_help_width());
}

const char cli_overview_examples[] = "a init                           pack the code and upload it\n"
                                     "a submit python3 train.py        run it on the cluster\n"
                                     "a q                              what my runs are doing\n"
                                     "a -c eu -n 8 submit python3 train.py\n";
const char cli_exit_statuses[] =
    "0 done, 1 other error, 2 usage, 3 not found, 4 not allowed, 5 temporary, 6 no capacity,\n"
    "7 configuration, 8 part failed, 10 timeout; 'wait' and 'local': the command's own, 125 for ACT's "
    "failures.\n";

void cli_print_overview(FILE *out)
{
    print_prose(out, "Transfers any command from this machine to a cluster.\n");
    print_usage(out, "a [OPTIONS] VERB [OPTIONS] [ARGUMENTS]");
    fputc('\n', out);
    print_examples(out, cli_overview_examples);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        if (c->group)
            help_put_title(out, c->group);
        if (c->hidden)
            continue;
        ACT_AUTOFREE char *left = act_sprintf("%s%s%s", c->name, c->aliases ? ", " : "", c->aliases ? c->aliases : "");
        print_row(out, VERB_COLUMN, left, c->summary);
    }
    print_options(out, NULL, CLI_BEFORE, "options of several verbs, before or after the verb");
    print_options(out, NULL, CLI_EVERYWHERE, "options of every verb");
    fputs("\nexit status: ", out);
    cli_wrap(out, cli_exit_statuses, strlen(cli_exit_statuses), (int)strlen("exit status: "), 0, cli_help_width());
    print_prose(out,
                "Without any configuration there is the cluster 'local': this machine, with a folder as its store.\n"
                "'a VERB --help' says more.\n");
}

/* The verbs are typed more often than read about: their names are enough, most of a screen of 80 columns and 24
 * lines. */
void cli_print_first_screen(FILE *out)
{
    ACT_AUTO(act_buf) names = {0};

    print_prose(out, "Transfers any command from this machine to a cluster.\n");
    cli_put_examples(out, cli_overview_examples, 2, cli_help_width());
    for (const struct cli_command *c = cli_next_command(NULL), *next; c; c = next) {
        next = cli_next_command(c);
        if (c->group)
            help_put_title(out, c->group);
        if (!c->hidden)
            act_buf_addf(&names, " %s", c->name);
        if (next && !next->group)
            continue;
        fputs("  ", out);
        cli_wrap(out, names.data, names.len, 2, 2, cli_help_width());
        act_buf_release(&names);
    }
    print_prose(out, "'a help' says what each does, 'a VERB --help' all about one.\n");
}

/* ---- a verb ---- */

static const struct cli_verb *help_find_verb(const struct cli_command *c, const char *word)
{
    for (const struct cli_verb *v = c->verbs; word && v && v->name; v++)
        if (strcmp(v->name, word) == 0)
            return v;
    return NULL;
}

/* Appends the examples that type one verb of a command, "a -c aml cluster list". */
static void help_add_examples(const struct cli_command *c, const struct cli_verb *verb, struct act_buf *out)
{
    ACT_AUTOFREE char *words = act_sprintf("%s %s", c->name, verb->name);
    size_t len = strlen(words);

    for (const char *line = c->examples, *end; *line; line = end) {
        end = line + strcspn(line, "\n") + 1;
        const char *at = strstr(line, words);
        if (at && at < end && (at[len] == ' ' || at[len] == '\n'))
            act_buf_add(out, line, (size_t)(end - line));
    }
}

static void help_print_verb(const struct cli_command *c, const struct cli_verb *verb, FILE *out)
{
    static const enum cli_place places[] = {CLI_BEHIND, CLI_BEFORE};
    ACT_AUTOFREE char *words = act_sprintf("a %s %s [OPTIONS]%s", c->name, verb->name,
                                           verb->takes_no_name ? ""
                                           : verb->needs_name  ? " NAME"
                                                               : " [NAME]");
    ACT_AUTO(act_buf) examples = {0};

    help_add_examples(c, verb, &examples);
    if (examples.len)
        print_examples(out, examples.data);
    print_usage(out, words);
    fputc('\n', out);
    print_prose(out, verb->summary);
    fputs("\noptions:\n", out);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        for (const struct cli_option *o = NULL; (o = cli_next_option(c, places[i], o));)
            if (cli_names(verb->options, o->long_name))
                print_option(out, c, o);
    ACT_AUTOFREE char *more = act_sprintf("'a help %s' has more.", c->name);
    fputc('\n', out);
    help_put_line(out, 0, more);
}

static void help_print_verbs(const struct cli_command *c, FILE *out)
{
    fputs("\nverbs:\n", out);
    for (const struct cli_verb *v = c->verbs; v->name; v++) {
        ACT_AUTOFREE char *group = v->group ? act_sprintf("%s:", v->group) : NULL;
        if (group)
            help_put_line(out, 1, group);
        print_row(out, VERB_COLUMN, v->name, v->summary);
    }
    ACT_AUTOFREE char *more = act_sprintf("'a help %s VERB' has the options of each.", c->name);
    help_put_line(out, 0, more);
}

static void help_print_page(const struct cli_command *c, FILE *out)
{
    ACT_AUTOFREE char *words = act_sprintf("a [OPTIONS] %s %s%s", c->name, c->options ? "[OPTIONS] " : "", c->synopsis);

    print_examples(out, c->examples);
    print_usage(out, words);
    if (c->aliases)
        fprintf(out, "also:  %s\n", c->aliases);
    fputc('\n', out);
    print_prose(out, c->summary);
    if (c->verbs)
        help_print_verbs(c, out);
    if (c->details) {
        fputc('\n', out);
        print_prose(out, c->details);
    }
    if (!c->verbs)
        print_options(out, c, CLI_BEHIND, "options");
    print_options(out, c, CLI_BEFORE, "options that may also come before the verb");
    print_options(out, c, CLI_EVERYWHERE, "options of every verb");
}

void cli_print_help(const struct cli_command *c, const char *word, FILE *out)
{
    const struct cli_verb *verb = help_find_verb(c, word);

    if (verb)
        help_print_verb(c, verb, out);
    else
        help_print_page(c, out);
}

const char cli_file_format[] =
    "act.yaml at the root of a project says what its commands need, on whatever cluster.\n"
    "aux_data/aml/CLUSTER.yaml in the project describes the cluster that 'a -c CLUSTER' means, else\n"
    "~/.config/act/clusters/CLUSTER.yaml, which 'a cluster add' writes. Where none is named, it is that of\n"
    "ACT_CLUSTER, aml.yaml of the project, or default_cluster of the user.\n"
    "Each key can be overridden by 'a -p YAML', and a simple one of the top\n"
    "level by the environment variable ACT_KEY.\n"
    "A member of a member is written here with a dot between them; a star stands for any name.\n"
    "'a config show' says what holds, and from where.\n";

const struct cli_file cli_files[CLI_FILES] = {
    {"FILE OF THE PROJECT",
     "act.yaml at the root of the project, with these keys and no others. They may also stand in a cluster\n"
     "file, whose value comes before.\n",
     "modules: [cuda/12.1]\n"
     "venv: /shared/me/venv\n"
     "setup: export HF_HOME=/shared/hf\n",
     CONFIG_OWN_FILE},
    {"CLUSTER FILE", "One for each cluster.\n",
     "platform: slurm\n"
     "num_gpu: 8\n"
     "env: {NCCL_DEBUG: WARN}\n"
     "slurm: {partition: gpu, time: 120}\n",
     CONFIG_CLUSTER_FILE},
    {"ACCOUNT FILE", "What azure_blob_config_file names.\n",
     "account_name: me\n"
     "container_name: data\n",
     CONFIG_ACCOUNT_FILE},
    {"CONFIGURATION OF THE USER", "~/.config/act/config.yaml, which no project changes.\n", "default_cluster: lab\n",
     CONFIG_USER_FILE},
};

char *cli_key_help(const struct config_key_text *key)
{
    return act_sprintf("%s%s%s%s", key->help, key->fallback ? " (default " : "", key->fallback ? key->fallback : "",
                       key->fallback ? ")" : "");
}

static void print_key(void *out, const struct config_key_text *key)
{
    ACT_AUTOFREE char *left = act_sprintf("%s %s", key->path, key->values ? key->values : "");
    ACT_AUTOFREE char *help = cli_key_help(key);

    print_row(out, OPTION_COLUMN, left, help);
}

static void print_file_format(FILE *out)
{
    print_prose(out, cli_file_format);
    for (size_t i = 0; i < CLI_FILES; i++) {
        fprintf(out, "\n%s\n", cli_files[i].title);
        print_prose(out, cli_files[i].what);
        fputc('\n', out);
        cli_put_examples(out, cli_files[i].example, 4, cli_help_width());
        fputc('\n', out);
        config_each_key(cli_files[i].file, print_key, out);
    }
}

/* Tells whether an option takes what a word says: "class" of CLASSES. */
static bool takes_such(const struct cli_option *o, const char *word)
{
    size_t len = strlen(word);

    return o->argument && len > 2 && strncasecmp(o->argument, word, len) == 0 && strlen(o->argument) - len <= 2;
}

/* Prints the options of all verbs that a word names, by itself or by what it takes: "retry-on", "CLUSTER". Tells
 * whether there is one. */
static bool help_of_option(const char *word)
{
    const char *name = word + strspn(word, "-");
    bool any = false;

    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
            if (c->hidden || !o->help || o->place == CLI_EVERYWHERE || !cli_takes(c, o) ||
                (strcmp(o->long_name, name) != 0 && !takes_such(o, name)))
                continue;
            ACT_AUTOFREE char *left = act_sprintf("a %s --%s%s%s", c->name, o->long_name, o->argument ? " " : "",
                                                  o->argument ? o->argument : "");
            print_row(stdout, OPTION_COLUMN, left, cli_option_help(c, o));
            any = true;
        }
    return any;
}

/* Checks that the second word is a verb of the first: 'create' of 'a cluster'. */
static int check_help_of(const struct cli_command *c, const char *word, struct act_error *err)
{
    ACT_AUTO(act_strv) verbs = {0};

    if (c->complete == CLI_CHOICE)
        cli_add_choices(c->synopsis, &verbs);
    if (act_strv_has(&verbs, word))
        return 0;
    ACT_AUTOFREE char *then = cli_did_you_mean(verbs.n ? act_nearest(word, (const char *const *)verbs.v) : NULL);
    return act_error_set(err, ACT_USAGE, "'a %s' has no verb '%s'%s'a help %s' is its page", c->name, word, then,
                         c->name);
}

int cmd_help(struct cli *cli, struct act_error *err)
{
    if (cli->words.n == 0) {
        cli_print_overview(stdout);
        return 0;
    }
    if (strcmp(cli->words.v[0], "act.yaml") == 0) {
        if (!cli_show_file_format())
            print_file_format(stdout);
        return 0;
    }
    const struct cli_command *c = cli_find_command(cli->words.v[0]);
    if (!c)
        return !cli_synonym(cli->words.v[0]) && help_of_option(cli->words.v[0])
                   ? 0
                   : cli_unknown_verb(cli->words.v[0], err);
    if (cli->words.n > 1 && check_help_of(c, cli->words.v[1], err) < 0)
        return -ACT_USAGE;
    const char *word = cli->words.n > 1 ? cli->words.v[1] : NULL;
    if (help_find_verb(c, word) || !cli_show_page(c))
        cli_print_help(c, word, stdout);
    return 0;
}
