/* usage.c - what is said of words that a verb does not take. */
#include "cli/command/command.h"

char *cli_did_you_mean(const char *near)
{
    return near ? act_sprintf("; did you mean '%s'? ", near) : act_strdup("; ");
}

int cli_unknown_verb(const char *word, struct act_error *err)
{
    const char *meant = cli_synonym(word);
    ACT_AUTO(act_strv) names = {0};

    if (meant)
        return act_error_set(err, ACT_USAGE, "unknown verb '%s'; %s", word, meant);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        if (!c->hidden)
            act_strv_push(&names, c->name);
    const char *near = act_nearest(word, (const char *const *)names.v);
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

    act_error_set(err, ACT_USAGE, "'a %s' needs more: a %s %s", c->name, c->name, c->synopsis);
    return cli_hint_help(cli, err);
}

int cli_check_command(const struct cli *cli, const char *example, struct act_error *err)
{
    if (cli->words.n > 0)
        return 0;
    act_error_set(err, ACT_USAGE, "no command to run; try: %s", example);
    return cli_hint_help(cli, err);
}
