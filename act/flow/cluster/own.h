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
#include "flow/flow.h"

struct config_listing;
struct config_named;
struct config_report;
struct config_request;

/* Finds the kind of a cluster and what is wrong with its file, for lists. The caller releases out. */
void flow_own_state(const struct config_named *named, struct config_report *out);

/* Finds the cluster of that name that counts here, one of the project only if with_project. *out points into listing.
 * -ACT_NOT_FOUND suggests a name. */
int flow_find_own(const struct config_listing *listing, const char *name, bool with_project,
                  const struct config_named **out, struct act_error *err) ACT_NODISCARD;

/* Makes the cluster the user's default ("local": the built-in one). *out_instead is the cluster file of this project
 * that comes before it, a new string, or NULL. */
int flow_use_cluster(const char *name, bool dry_run, char **out_instead, struct act_error *err) ACT_NODISCARD;
/* Does the same unless there is a default by now. *out_is_default tells whether the cluster is what counts here. */
int flow_use_first_cluster(const char *name, bool *out_is_default, struct act_error *err) ACT_NODISCARD;
/* Tells whether the settings of the user name the cluster as their default; name NULL: whether they name none. */
bool flow_is_default(const char *name);
/* Rename and remove a cluster file. If it is the user's default, a renamed one stays that, and a removed one leaves
 * none; where that cannot be written down, nothing is changed. */
int flow_rename_own(const struct config_named *named, const char *name, bool dry_run,
                    struct act_error *err) ACT_NODISCARD;
int flow_remove_own(const struct config_named *named, bool dry_run, struct act_error *err) ACT_NODISCARD;
/* Returns the account file of the same name, as a new string, or NULL. */
char *flow_own_account(const struct config_named *named);
/* Counts the runs of the ledger that were submitted to a cluster of that name; 0 if it cannot be read. */
size_t flow_runs_on(struct flow *flow, const char *cluster);

/* A cluster file that is being changed. */
struct flow_draft {
    char *file; /* absolute, links resolved */
    char *text; /* what it holds; NULL: it is not there */
    mode_t mode;
    bool is_locked; /* nobody else saves into its folder until it is released */
    int lock_fd;
};
/* Reads a file that is to be changed. A read-only one: -ACT_DENIED; with must_exist one that is not there:
 * -ACT_NOT_FOUND. The caller releases out in every case. */
int flow_draft_open(const char *file, bool must_exist, struct flow_draft *out, struct act_error *err) ACT_NODISCARD;
void flow_draft_release(struct flow_draft *draft);
/* Appends to problems what would be wrong with a cluster file of that text, and was not before. */
int flow_draft_check(const struct flow_draft *draft, const char *text, struct act_strv *problems,
                     struct act_error *err) ACT_NODISCARD;
/* Writes text in place of the file. -ACT_TEMPORARY: somebody else has changed it since. */
int flow_draft_save(const struct flow_draft *draft, const char *text, struct act_error *err) ACT_NODISCARD;

struct flow_key {
    const char *key, *value; /* the value as YAML; NULL: the key is removed */
};
/* Keys of one file, at least one, which are set together or not at all. */
struct flow_keys {
    const struct flow_key *v;
    size_t n;
    bool dry_run;
};
/* Sets keys in the cluster file of the request or in the user's own settings; those of both in one call are refused.
 * Only the file with all of them must be valid. *out_file, a new string, is the file; *out_changed is false if it said
 * all of that already. */
int flow_set_keys(const struct config_request *request, const struct flow_keys *keys, char **out_file,
                  bool *out_changed, struct act_error *err) ACT_NODISCARD;

#endif
