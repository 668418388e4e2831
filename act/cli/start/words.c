/* words.c - words of a command that its reader may not be meant to get: those of a shell, as the command is started
 * without one, and options of ACT, which come before the command.
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "cli/print/ask.h"
#include "cli/start/start.h"
#include "config/config.h"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

static int check_shell(const struct cli *cli, struct act_error *err)
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

/* ---- options behind the command */

/* Returns the text of the first of n words that is a file of the project, with '-' for each '_': in Python an option
 * of two words has both. NULL: there is none, or it is no text. New string. */
static char *words_script(const struct cli *cli, size_t n, const char **out_name)
{
    enum { MAX_BYTES = 1 << 20 };
    struct act_error ignored;

    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *path = act_path_join(cli->flow.config->project_root, cli->words.v[i]);
        char *text = NULL;
        size_t len;
        if (act_file_read_regular(path, MAX_BYTES, &text, &len, &ignored) < 0)
            continue;
        *out_name = cli->words.v[i];
        if (strlen(text) < len)
            act_str_replace(&text, NULL);
        for (char *c = text; c && *c; c++)
            *c = *c == '_' ? '-' : *c;
        return text;
    }
    return NULL;
}

/* Speaks about word i, which is an option of the verb too, unless the script knows it. Who types --dry-run believes
 * that nothing is started, so that is asked, and refused where nobody can answer. */
static int check_option(const struct cli *cli, size_t i, const struct cli_option *o, struct act_error *err)
{
    const char *name = cli->words.v[0];
    ACT_AUTOFREE char *script = words_script(cli, i, &name);
    bool asks = strcmp(o->long_name, "dry-run") == 0;

    if (script ? strstr(script, o->long_name) != NULL : !asks)
        return 0;
    ACT_AUTOFREE char *text =
        act_sprintf("'%s' comes after the command, so it is passed to '%s'%s; as an option of "
                    "ACT it comes before: a %s --%s ...",
                    cli->words.v[i], name, asks ? ", which would start" : "", cli->command->name, o->long_name);
    if (!asks || cli->options.dry_run) {
        act_note("%s", text);
        return 0;
    }
    if (!isatty(STDIN_FILENO))
        return act_error_set(err, ACT_USAGE, "%s; to pass it to '%s': a %s -- %s ...", text, name, cli->command->name,
                             cli->words.v[0]);
    ACT_AUTOFREE char *question = act_sprintf("%s. Start it?", text);
    return cli_confirm(cli, question, err);
}

static int check_options(const struct cli *cli, struct act_error *err)
{
    const char *ignored;
    int rc = 0;

    if (cli->words_before < cli->words.n || cli->options.yes)
        return 0;
    for (size_t i = 1; i < cli->words.n && rc == 0 && strcmp(cli->words.v[i], "--") != 0; i++) {
        const char *word = cli->words.v[i];
        const struct cli_option *o = act_starts_with(word, "--") ? cli_find_option(cli->command, word, &ignored) : NULL;
        if (o && o->help && o->place != CLI_EVERYWHERE)
            rc = check_option(cli, i, o, err);
    }
    return rc;
}

int cli_check_words(const struct cli *cli, struct act_error *err)
{
    int rc = check_shell(cli, err);

    return rc == 0 ? check_options(cli, err) : rc;
}
