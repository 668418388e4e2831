/* shell.h - the command of a run of 'a shell' or 'a notebook': a keeper (node/keeper.c), which waits on the first node
 * for those who open its terminal, or has a program serve them. Pure. */
#ifndef ACT_RUN_SHELL_H
#define ACT_RUN_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* The exit statuses of 'act-node session', besides those of the shell. PARTED: the keeper does not want it, and said
 * why. */
enum { RUN_SHELL_NOT_YET = 75, RUN_SHELL_INTERRUPTED = 76, RUN_SHELL_GONE = 77, RUN_SHELL_PARTED = 78 };

struct run_shell {
    int64_t idle_s;  /* ended when nothing was typed or printed for so long, and no GPU computed; 0: never */
    int64_t limit_s; /* ended after so long; 0: never */
    int64_t away_s;  /* ended when nobody was connected for so long */
    bool stays;      /* it goes on when the shell has ended, and while nobody is connected */
    bool serves;     /* its command starts at once, and listens at a socket (node/serving.h) */
};

/* The first word of such a command, in place of which a rank starts its agent. */
#define RUN_SHELL_AGENT "act-node"

/* Appends the words of the keeper; those of the command that it starts in place of a shell, if any, follow them. */
void run_shell_words(const struct run_shell *shell, struct act_strv *out);
/* Tells whether a run has such a command, and reads what it says: *out, {0} if it has none. */
bool run_shell_of(const struct act_strv *argv, struct run_shell *out);
/* Tells whether a run has such a command. */
bool run_shell_is(const struct act_strv *argv);
/* Reads the n words behind RUN_SHELL_AGENT. *out_first: which of them begins the command; n: there is none. False: they
 * are not a keeper's. */
bool run_shell_read(char *const *words, size_t n, struct run_shell *out, size_t *out_first);

#endif
