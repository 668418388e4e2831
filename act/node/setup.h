/* setup.h - the environment that a run asks for beyond the node's own: modules, conda, a virtual environment, and lines
 * for bash (run_setup). Sites define modules and conda as functions of a shell, so a bash makes it (run/setup.sh): once
 * on each node, and what it has changed is kept for all ranks there, which run no shell for it.
 *
 * In a container that each command has for itself (container_is_fresh()) nothing of that can be kept: there the bash
 * stands before the command, and becomes it.
 */
#ifndef ACT_NODE_SETUP_H
#define ACT_NODE_SETUP_H

#include "node/node.h"

/* Lets bash make the environment, with its output in the file log_fd, of which no more than 16 MiB is kept, and writes
 * down what changed; then applies it to this process. Does nothing for a run that asks for none, or whose commands do
 * it themselves. Errors: -ACT_FAIL when it fails or takes longer than run_setup.timeout_s, with *out_exit_status its
 * exit status and without the reason, which is the last line of its output; others as they come. */
int setup_take(const struct node *node, int log_fd, int *out_exit_status, struct act_error *err) ACT_NODISCARD;

/* Gives this process the environment that setup_take() has written down in this attempt; for a container that gets its
 * environment by names of its own (apptainer), by those names. */
int setup_apply(const struct node *node, struct act_error *err) ACT_NODISCARD;

/* Appends the words that precede all that runs in a container of its own; none where there is nothing to do. */
void setup_words(const struct node *node, struct act_strv *out);

/* Appends the words that precede a rank's command: run_setup.rank_lines; none where there are none. */
void setup_rank_words(const struct node *node, struct act_strv *out);

/* Appends what has changed from one environment ("NAME=value" each) to another: "NAME=value" for what is set, "NAME"
 * for what is gone; without what every shell changes for itself. */
void setup_compare(const struct act_strv *before, const struct act_strv *after, struct act_strv *out);

#endif
