/* shell.c - words that a shell was meant to read: the command is started without one. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/start/start.h"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

void cli_warn_of_shell(const struct cli *cli)
{
    static const char *const of_shells[] = {"|",   "||", "|&", "&",  "&&",  ";",    "<",  "<<",
                                            "<<<", ">",  ">>", "2>", "2>>", "2>&1", "&>", NULL};
    static const char *const have_such[] = {"find", "xargs", "expr", "test", "[", NULL};
    const struct act_strv *words = &cli->words;

    if (words->n == 0 || is_one_of(words->v[0], have_such))
        return;
    for (size_t i = 0; i < words->n; i++)
        if (is_one_of(words->v[i], of_shells)) {
            act_warn("'%s' is passed to '%s' as a word, as there is no shell that reads it; with one: a %s sh -c '...'",
                     words->v[i], words->v[0], cli->command->name);
            return;
        }
}
