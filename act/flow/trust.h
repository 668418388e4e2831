/* trust.h - the files of a project may come from anybody. Before they make ACT reach out of the project, the user is
 * shown how, and says once whether it may.
 *
 * What was answered with yes is remembered in <act_state_dir()>/trusted.json, by the project's path and the words of
 * what was shown: another target asks again, and nothing else does. ACT_TRUSTED_PROJECTS (paths separated by ':', with
 * all below them, or '*') trusts projects without a question. What the user says on the command line (--follow too), in
 * the environment or in files of his own configuration folder needs no trust.
 */
#ifndef ACT_FLOW_TRUST_H
#define ACT_FLOW_TRUST_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"

/* ---- reach.c: what leads out, one line each, appended to items where it is not there yet */

/* All that the configuration and the links of its folders lead to. Contacts nobody; what cannot be read leads
 * nowhere. */
void flow_reach(const struct config *config, struct act_strv *items);
/* Whether root/name is a link out of root, or to where no data should be in it. */
void flow_reach_link(const char *root, const char *name, struct act_strv *items);
/* Whether the folder of the logs, as flow_log_folder() names it, leads out of the project by a link on its way. */
void flow_reach_logs(const char *project, struct act_strv *items);
/* Whether a path in a mapped folder leads out of both by a link on its way. */
void flow_reach_path(const struct config *config, const char *folder, const char *rest,
                     struct act_strv *items);
/* realpath(), also where the last names do not exist. New string. */
char *flow_real_place(const char *path);

/* ---- trust.c */

/* What asks: 0 for yes, -ACT_DENIED for no, 1 when there is nobody to ask. NULL (as at first): nobody is ever asked. */
void flow_trust_asks(int (*ask)(const char *project, const struct act_strv *items, struct act_error *err));

/* 0 when nothing leads out, or all that does is trusted, asking where somebody can be asked; else -ACT_DENIED. */
int flow_trust(const struct config *config, struct act_error *err) ACT_NODISCARD;
/* The same of a path in a mapped folder, and of the folder of a project's logs. */
int flow_trust_path(const struct config *config, const char *folder, const char *rest,
                    struct act_error *err) ACT_NODISCARD;
int flow_trust_logs(const char *project, struct act_error *err) ACT_NODISCARD;

/* What of items is not trusted yet, for a project. */
int flow_untrusted(const char *project, const struct act_strv *items, struct act_strv *out,
                   struct act_error *err) ACT_NODISCARD;
/* Remembers that all of them are trusted. */
int flow_trust_keep(const char *project, const struct act_strv *items, struct act_error *err) ACT_NODISCARD;
/* Forgets a project. *out_had: whether there was anything. */
int flow_trust_forget(const char *project, bool *out_had, struct act_error *err) ACT_NODISCARD;
/* All that is remembered: [{"path", "trusted": [...]}], texts as codec_json_bytes_new() has them. A new reference. */
int flow_trust_list(json_t **out, struct act_error *err) ACT_NODISCARD;

#endif
