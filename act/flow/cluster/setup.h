/* setup.h - a new cluster: asking what has to be known of it, and writing its files.
 *
 * The questions are which platform, those that the platform brings (platform/setup.h), and the name. Whoever asks them
 * takes them in their order, because each may need the answers before it.
 */
#ifndef ACT_FLOW_CLUSTER_SETUP_H
#define ACT_FLOW_CLUSTER_SETUP_H

#include <stdbool.h>

#include "base/error.h"
#include "platform/setup.h"

/* Begins a setup, whose files are the user's own or those of the project of the current folder. services stays the
 * caller's. Release setup with platform_setup_release(). */
void flow_setup_init(struct platform_setup *setup, struct services *services, bool in_project);

/* The first question and the last one. */
extern const struct platform_question flow_question_kind, flow_question_name;
/* Returns the question after this one (NULL: the first), as far as the answers say which it is, or NULL. */
const struct platform_question *flow_next_question(const struct platform_setup *setup,
                                                   const struct platform_question *question);
/* Tells whether the platform of setup, whose kind is known, has a question of that option. */
bool flow_has_question(const struct platform_setup *setup, const char *option);
/* Sets *out to what there is. Contacts the cluster where the question is about what it has. */
int flow_question_look(const struct platform_question *question, struct platform_setup *setup,
                       struct platform_choices *out, struct act_error *err) ACT_NODISCARD;
/* Takes an answer, or says what there is instead: -ACT_NOT_FOUND, -ACT_USAGE. */
int flow_question_take(const struct platform_question *question, struct platform_setup *setup,
                       const struct platform_choices *choices, const char *answer, struct act_error *err) ACT_NODISCARD;

/* Finds out what depends on all answers: the GPUs of a node. */
int flow_setup_finish(struct platform_setup *setup, struct act_error *err) ACT_NODISCARD;
/* Writes the files, and makes what the cluster needs besides them. Replaces nothing that is there. *out_is_first: it is
 * the first one of the user, who has chosen no default; whoever knows that it works calls flow_use_first_cluster(). */
int flow_setup_save(struct platform_setup *setup, bool *out_is_first, struct act_error *err) ACT_NODISCARD;

#endif
