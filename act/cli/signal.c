/* signal.c - what SIGINT and SIGTERM do, for all verbs. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

volatile sig_atomic_t cli_interrupted;

/* What is said before the program ends; NULL: it does not end, cli_interrupted says it. */
static const char *volatile farewell;

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

static void handle(int signal)
{
    const char *text = farewell;

    cli_interrupted = signal;
    if (!text)
        return;
    if (isatty(STDERR_FILENO))
        say("\n");
    say("act: ");
    say(text);
    say("\n");
    _exit(128 + signal);
}

static void set(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_catch_signals(void)
{
    farewell = NULL;
    set(handle);
}

void cli_end_with(const char *text)
{
    farewell = text;
    set(text ? handle : SIG_DFL);
}
