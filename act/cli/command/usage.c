/* usage.c - what is said of words that a verb does not take. */
#include "cli/command/command.h"

char *cli_did_you_mean(const char *near)
{
    return near ? act_sprintf("; did you mean '%s'? ", near) : act_strdup("; ");
}

/* The verbs that are typed most, which a slip most likely means. */
static const char *const often[] = {"submit", "query", "logs", "upload", "download", "why", "status"};

int cli_unknown_verb(const char *word, struct act_error *err)
{
    const char *meant = cli_synonym(word);
    ACT_AUTO(act_strv) names = {0};

    if (meant)
        return act_error_set(err, ACT_USAGE, "unknown verb '%s'; %s", word, meant);
    for (size_t i = 0; i < sizeof(often) / sizeof(often[0]); i++)
        act_strv_push(&names, often[i]);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        if (!c->hidden)
            act_strv_push(&names, c->name);
    cli_add_synonyms(&names);
    const char *near = act_nearest(word, (const char *const *)names.v);
    if (near && cli_synonym(near))
        return act_error_set(err, ACT_USAGE, "unknown verb '%s'; for '%s', %s", word, near, cli_synonym(near));
    ACT_AUTOFREE char *then = cli_did_you_mean(near);
    return act_error_set(err, ACT_USAGE, "unknown verb '%s'%s'a help' lists them", word, then);
}

int cli_hint_help(const struct cli *cli, struct act_error *err)
{
    return act_error_hint(err, "'a %s --help' has examples", cli->command->name);
}

int cli_needs_more(const struct cli *cli, struct act_error *err)
{
    const struct cli_command *c = cli->command;

    act_error_set(err, ACT_USAGE, "'a %s' needs more: a %s %s%s", c->name, c->name, c->synopsis,
                  c->complete == CLI_RUNS ? ", where @ is the run submitted last" : "");
    return cli_hint_help(cli, err);
}

int cli_check_command(const struct cli *cli, const char *example, struct act_error *err)
{
    if (cli->words.n > 0)
        return 0;
    act_error_set(err, ACT_USAGE, "no command to run; try: %s", example);
    return cli_hint_help(cli, err);
}
