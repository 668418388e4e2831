/* trust.h - the files of a project may come from anybody. Before they make ACT reach outside the project, the user is
 * shown how, and decides once whether to allow it.
 *
 * What was allowed is kept in <act_state_dir()>/trusted.json, by the project's path and the lines that were shown: only
 * a different target asks again. ACT_TRUSTED_PROJECTS (paths separated by ':', with everything below them, or '*')
 * trusts projects without asking. What the user says on the command line, in the environment or in
 * files of the user's own configuration folder needs no trust.
 */
#ifndef ACT_FLOW_TRUST_H
#define ACT_FLOW_TRUST_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"

struct config;

/* ---- reach.c: what leads out, one line each, appended to items unless already there */

/* Appends everything that the configuration and the links in its folders lead to. Contacts no host; what cannot be read
 * leads nowhere. */
void flow_reach(const struct config *config, struct act_strv *items);
/* Appends only what the platform leads to. */
void flow_reach_platform(const struct config *config, struct act_strv *items);
/* Appends the log folder of flow_log_folder(), if a link in its path leads out of the project. */
void flow_reach_logs(const char *project, struct act_strv *items);
/* Appends a path in a mapped folder, if a link in it leads out of the folder and the project. */
void flow_reach_path(const struct config *config, const char *folder, const char *rest, struct act_strv *items);
/* Appends what a kubeconfig says of a place that a run recorded, without the file of the project that names it. */
void flow_reach_recalled(const struct config *config, struct act_strv *items);
/* Appends the links below a path in a mapped folder that lead out of it and the project, for who follows them. */
void flow_reach_links(const struct config *config, const char *folder, const char *rest, struct act_strv *items);
/* Does what realpath() does, but the last components need not exist. Returns a new string. */
char *flow_real_place(const char *path);

/* ---- trust.c */

/* Sets the callback that asks the user: 0 for yes, -ACT_DENIED for no, 1 if there is nobody to ask. NULL (the default):
 * never ask. */
void flow_trust_asks(int (*ask)(const char *project, const struct act_strv *items, struct act_error *err));

/* Returns 0 if nothing leads out, or if the user, who is asked if need be, trusts all that does; else -ACT_DENIED. */
int flow_trust(const struct config *config, struct act_error *err) ACT_NODISCARD;
/* Do the same for a path in a mapped folder, and for the log folder of a project. */
int flow_trust_path(const struct config *config, const char *folder, const char *rest,
                    struct act_error *err) ACT_NODISCARD;
int flow_trust_logs(const char *project, struct act_error *err) ACT_NODISCARD;

/* Does the same for all links below a path in a mapped folder, before they are followed. */
int flow_trust_links(const struct config *config, const char *folder, const char *rest,
                     struct act_error *err) ACT_NODISCARD;

/* Does the same for the place that a run of the project recorded, when the file that named it is no longer known: a
 * kubeconfig in the project, and one elsewhere that was asked about, must be as it was trusted. Any other one is the
 * user's own, as every kubeconfig is that was never asked about. cluster: the run's, for messages. */
int flow_trust_recalled(const char *project, const char *cluster, const struct config *config,
                        struct act_error *err) ACT_NODISCARD;

/* A run of this configuration is about to be submitted: records as trusted what flow_trust_recalled() would ask about,
 * where the user named a kubeconfig of the project. */
int flow_trust_submitted(const struct config *config, struct act_error *err) ACT_NODISCARD;

/* The user has just had a login brought to where the configuration leads: records as trusted, and appends to out, what
 * the platform leads to now and not before, which is flow_reach_platform() of then. */
int flow_trust_added(const struct config *config, const struct act_strv *before, struct act_strv *out,
                     struct act_error *err) ACT_NODISCARD;

/* Appends to out the items that are not yet trusted for a project. */
int flow_untrusted(const char *project, const struct act_strv *items, struct act_strv *out,
                   struct act_error *err) ACT_NODISCARD;
/* Records all items as trusted. */
int flow_trust_keep(const char *project, const struct act_strv *items, struct act_error *err) ACT_NODISCARD;
/* Forgets a project. *out_had tells whether something of it was trusted. */
int flow_trust_forget(const char *project, bool *out_had, struct act_error *err) ACT_NODISCARD;
/* Reads the whole record, [{"path", "trusted": [...]}], with texts as of codec_json_bytes_new(); a new reference. */
int flow_trust_list(json_t **out, struct act_error *err) ACT_NODISCARD;

#endif
