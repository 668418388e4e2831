/* help.c - help, from the rows of the tables. */
#include <string.h>

#include "cli/cli.h"

enum { VERB_COLUMN = 18, OPTION_COLUMN = 30 };

/* "  left                right", which begins at that column. */
static void print_row(FILE *out, int column, const char *left, const char *right)
{
    fprintf(out, "  %-*s", column - 2, left);
    if ((int)strlen(left) >= column - 2)
        fprintf(out, "\n%*s", column, "");
    cli_wrap(out, right, strlen(right), column, column, cli_help_width());
}

static void print_option(FILE *out, const struct cli_option *o)
{
    ACT_AUTOFREE char *left = act_sprintf("%s%s--%s%s%s", o->short_name ? o->short_name : "", o->short_name ? ", " : "",
                                          o->long_name, o->argument ? " " : "", o->argument ? o->argument : "");

    print_row(out, OPTION_COLUMN, left, o->help);
}

/* The verb's options for that place, below a title. */
static void print_options(FILE *out, const struct cli_command *command, enum cli_place place, const char *title)
{
    for (const struct cli_option *o = NULL; (o = cli_next_option(command, place, o));) {
        if (title)
            fprintf(out, "\n%s:\n", title);
        title = NULL;
        print_option(out, o);
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
                                     "a submit python train.py         run it on the cluster\n"
                                     "a q                              what my runs are doing\n"
                                     "a -c eu -n 8 submit python train.py\n";
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
    fputs("\nverbs:\n", out);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        if (c->hidden)
            continue;
        ACT_AUTOFREE char *left = act_sprintf("%s%s%s", c->name, c->aliases ? ", " : "", c->aliases ? c->aliases : "");
        print_row(out, VERB_COLUMN, left, c->summary);
    }
    print_options(out, NULL, CLI_BEFORE, "options, before the verbs that take them or behind");
    print_options(out, NULL, CLI_EVERYWHERE, "options of every verb");
    fputs("\nexit status: ", out);
    cli_wrap(out, cli_exit_statuses, strlen(cli_exit_statuses), (int)strlen("exit status: "), 0, cli_help_width());
    print_prose(out,
                "Without any configuration there is the cluster 'local': this machine, with a folder as its store.\n"
                "'a VERB --help' says more.\n");
}

void cli_print_help(const struct cli_command *c, FILE *out)
{
    ACT_AUTOFREE char *words = act_sprintf("a [OPTIONS] %s %s%s", c->name, c->options ? "[OPTIONS] " : "", c->synopsis);

    print_examples(out, c->examples);
    print_usage(out, words);
    if (c->aliases)
        fprintf(out, "also:  %s\n", c->aliases);
    fputc('\n', out);
    print_prose(out, c->summary);
    if (c->details) {
        fputc('\n', out);
        print_prose(out, c->details);
    }
    print_options(out, c, CLI_BEHIND, "options");
    print_options(out, c, CLI_BEFORE, "options, also before the verb");
    print_options(out, c, CLI_EVERYWHERE, "options of every verb");
}

int cmd_help(struct cli *cli, struct act_error *err)
{
    if (cli->words.n == 0) {
        cli_print_overview(stdout);
        return 0;
    }
    const struct cli_command *c = cli_find_command(cli->words.v[0]);
    if (!c)
        return cli_unknown_verb(cli->words.v[0], err);
    if (!cli_show_page(c))
        cli_print_help(c, stdout);
    return 0;
}
