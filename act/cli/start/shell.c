/* shell.c - words that a shell was meant to read: the command is started without one. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/print/ask.h"
#include "cli/start/start.h"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

int cli_check_shell(const struct cli *cli, struct act_error *err)
{
    static const char *const of_shells[] = {"|",   "||", "|&", "&",  "&&",  ";",    "<",  "<<",
                                            "<<<", ">",  ">>", "2>", "2>>", "2>&1", "&>", NULL};
    static const char *const have_such[] = {"find", "xargs", "expr", "test", "[", NULL};
    const struct act_strv *words = &cli->words;

    if (words->n == 0 || is_one_of(words->v[0], have_such))
        return 0;
    for (size_t i = 0; i < words->n; i++)
        if (is_one_of(words->v[i], of_shells)) {
            ACT_AUTOFREE char *text = act_sprintf("'%s' is passed to '%s' as a word, as there is no shell that reads "
                                                  "it; with one: a %s sh -c '...'",
                                                  words->v[i], words->v[0], cli->command->name);
            ACT_AUTOFREE char *question = act_sprintf("%s. Pass it as a word?", text);
            if (!cli->options.dry_run)
                return cli_confirm(cli, question, err);
            act_warn("%s", text);
            return 0;
        }
    return 0;
}
