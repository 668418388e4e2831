/* ask.c - asks on the terminal. */
#include "cli/print/ask.h"

#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "cli/command/command.h"
#include "cli/command/signal.h"
#include "flow/runs/runs.h"

bool cli_is_yes(const char *answer)
{
    const char *word = answer + strspn(answer, " \t");
    size_t n = strcspn(word, " \t\r\n");
    bool alone = word[n + strspn(word + n, " \t\r\n")] == '\0';

    return alone && ((n == 1 && strncasecmp(word, "y", n) == 0) || (n == 3 && strncasecmp(word, "yes", n) == 0));
}

bool cli_ask(const char *question)
{
    ACT_AUTOFREE char *answer = NULL;
    ACT_AUTO(act_buf) text = {0};
    size_t size = 0;

    act_wrap(question, 0, 0, act_terminal_width(STDERR_FILENO), &text);
    act_buf_adds(&text, " [y/N] ");
    fputs(text.data, stderr);
    return getline(&answer, &size, stdin) >= 0 && cli_is_yes(answer);
}

int cli_confirm(const struct cli *cli, const char *question, struct act_error *err)
{
    if (cli->options.yes)
        return 0;
    if (!isatty(STDIN_FILENO))
        return act_error_set(err, ACT_USAGE, "%s Without a terminal nobody can answer: add -y", question);
    const char *before = cli_end_with("interrupted before the answer: it was not done");
    bool yes = cli_ask(question);
    cli_end_with(before);
    if (yes)
        return 0;
    return act_error_set(err, ACT_FAIL, "not confirmed: nothing was changed");
}

int cli_confirm_for(void *cli, const char *question, struct act_error *err)
{
    return cli_confirm(cli, question, err);
}
