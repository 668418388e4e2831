/* own.h - the files that say what clusters there are: looking at them and changing them, without a cluster being asked.
 *
 * A file is written as a whole or not at all, keeps its mode, and only if it is none the worse: what 'a config check'
 * says of it is what it said before, or less.
 */
#ifndef ACT_FLOW_CLUSTER_OWN_H
#define ACT_FLOW_CLUSTER_OWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/flow.h"

/* The kind of a cluster and what is wrong with its file, for lists. Release out. */
void flow_own_state(const struct config_named *named, struct config_report *out);

/* The cluster of that name that counts here; those of the project only if with_project. -ACT_NOT_FOUND names what there
 * is. *out points into listing. */
int flow_find_own(const struct config_listing *listing, const char *name, bool with_project,
                  const struct config_named **out, struct act_error *err) ACT_NODISCARD;

/* Makes it the user's default ("local": the built-in one). *out_instead: the cluster file of this project that comes
 * before it, or NULL (new string). */
int flow_use_cluster(const char *name, bool dry_run, char **out_instead, struct act_error *err) ACT_NODISCARD;
/* The same unless there is a default by now. *out_is_default: it is what counts here. */
int flow_use_first_cluster(const char *name, bool *out_is_default, struct act_error *err) ACT_NODISCARD;
/* Tells whether the settings of the user name the cluster as their default; name NULL: whether they name none. */
bool flow_is_default(const char *name);
/* The default of the user goes along; of one that is removed there is none any more. Where that cannot be written down,
 * nothing is changed. */
int flow_rename_own(const struct config_named *named, const char *name, bool dry_run,
                    struct act_error *err) ACT_NODISCARD;
int flow_remove_own(const struct config_named *named, bool dry_run, struct act_error *err) ACT_NODISCARD;
/* The account file of the same name, or NULL. New string. */
char *flow_own_account(const struct config_named *named);
/* How many runs of the ledger were submitted to a cluster of that name; 0 if it cannot be read. */
size_t flow_runs_on(struct flow *flow, const char *cluster);

/* A cluster file at hand: release it. */
struct flow_draft {
    char *file; /* absolute, links resolved */
    char *text; /* what it holds; NULL: it is not there */
    mode_t mode;
    bool is_locked; /* nobody else saves into its folder until it is released */
    int lock_fd;
};
/* To be changed: one that is read-only is -ACT_DENIED. must_exist: one that is not there is -ACT_NOT_FOUND. */
int flow_draft_open(const char *file, bool must_exist, struct flow_draft *out, struct act_error *err) ACT_NODISCARD;
/* The same for a change that needs nobody: others who change a file of that folder wait. */
int flow_draft_open_locked(const char *file, bool must_exist, struct flow_draft *out,
                           struct act_error *err) ACT_NODISCARD;
void flow_draft_release(struct flow_draft *draft);
/* What would be wrong with a cluster file of that text, and was not before. */
int flow_draft_check(const struct flow_draft *draft, const char *text, struct act_strv *problems,
                     struct act_error *err) ACT_NODISCARD;
/* Writes it. -ACT_TEMPORARY: somebody else has changed it since. */
int flow_draft_save(const struct flow_draft *draft, const char *text, struct act_error *err) ACT_NODISCARD;

/* The value of a key, as YAML, in the cluster file of the request or in the user's own settings; NULL: it is removed.
 * *out_file: what was changed (new string); *out_changed: false if it said so already. */
struct flow_key {
    const char *key, *value;
    bool dry_run;
};
int flow_set_key(const struct config_request *request, const struct flow_key *key, char **out_file, bool *out_changed,
                 struct act_error *err) ACT_NODISCARD;

#endif
