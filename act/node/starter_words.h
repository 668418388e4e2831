/* starter_words.h - the command of a run, with what a starter (run/starter.h) needs to know on this node. */
#ifndef ACT_NODE_STARTER_WORDS_H
#define ACT_NODE_STARTER_WORDS_H

#include "node/env.h"

/* Appends the words of the command to out. Address and port of the first node are those of the environment. */
int starter_words(const struct node *node, const struct rank_place *place, struct act_strv *out,
                  struct act_error *err) ACT_NODISCARD;

#endif
