/* signal.c - what SIGINT and SIGTERM do, for all verbs. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/signal.h"

volatile sig_atomic_t cli_interrupted;

/* The line that is printed before the program ends; NULL: it goes on, and cli_interrupted is set. */
static const char *volatile farewell;
/* The lines that are printed at the next signals if it goes on, up to a NULL. */
static const char *const *volatile steps;

/* A terminal that nobody reads takes nothing more; that must not keep anybody from ending the program. */
static void signal_say(const char *text)
{
    struct pollfd p = {STDERR_FILENO, POLLOUT, 0};

    if (poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
        (void)!write(STDERR_FILENO, text, strlen(text));
}

static void say_line(const char *text)
{
    if (isatty(STDERR_FILENO))
        signal_say("\n");
    signal_say("act: ");
    signal_say(text);
    signal_say("\n");
}

static void handle(int signal)
{
    cli_interrupted = signal;
    if (farewell) {
        say_line(farewell);
        _exit(128 + signal);
    }
    if (steps && *steps)
        say_line(*steps++);
}

static void signal_set(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_catch_signals(const char *const *said)
{
    farewell = NULL;
    steps = said;
    signal_set(handle);
}

void cli_end_beside(const char *run)
{
    static char text[512]; /* of the one that is watched */

    cli_end_with("the runs go on: the same command waits for them again, 'a q' shows them");
    if (!run)
        return;
    snprintf(text, sizeof(text), "the run goes on: 'a logs -f %s' follows it again, 'a abort %s' ends it", run, run);
    cli_end_with(text);
}

const char *cli_end_with(const char *text)
{
    const char *before = farewell;

    farewell = text;
    signal_set(text ? handle : SIG_DFL);
    return before;
}
