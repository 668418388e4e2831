/* data_internal.h - for the files of flow/ only: the folders of runs, and folders that have moved. */
#ifndef ACT_FLOW_DATA_DATA_INTERNAL_H
#define ACT_FLOW_DATA_DATA_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "flow/flow.h"
#include "run/run.h"

struct config;
struct config_folder;
struct flow_url;
struct platform;
struct store;
struct transfer_path;

/* If the run sees the project, replaces the folder by the project's own of that name when that has content and the
 * store's has none, and tells the user. from: its row of the configuration. */
void flow_use_here(const struct config *config, const struct config_folder *from, struct run_folder *folder);
/* Tells whether no folder is mapped and the code is in the built-in store. */
bool flow_may_use_own_folders(const struct config *config);
/* In that case, if the platform has a store that this machine does not see, adds to the run the built-in folders that
 * exist there, and tells the user. Asks the platform. */
int flow_use_own_folders(const struct config *config, struct platform *platform, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;
/* Finds out what a key in a store is; path is what the user typed for it. */
int flow_resolve(struct store *store, const char *key, const char *path, struct transfer_path *out,
                 struct act_error *err) ACT_NODISCARD;
/* Says once that --transfers and --bwlimit, if given, limit nothing between these stores; to may be NULL. */
void flow_mention_limits(struct flow *flow, const struct store *from, const struct store *to);
/* Tells whether path is a folder that is not empty. */
bool flow_has_content(const char *path);
/* Adds to the error about something missing in the store where it is instead; local is its path in the project. */
void flow_explain_absence(struct flow *flow, const struct config_folder *folder, const char *local,
                          struct act_error *err);
/* Refuses (-ACT_USAGE) to delete key in the store of a folder if another row of the configuration lies there or below;
 * path is what the user typed for it. */
int flow_check_alone(const struct config *config, const struct config_folder *folder, const char *key, const char *path,
                     struct act_error *err) ACT_NODISCARD;
/* Warns about every folder that contains another row. */
void flow_warn_overlaps(const struct config *config);
/* Adds to the error where a project that no longer exists has such a folder, and how to take it over. place: where the
 * folder, which is empty, is in the built-in store. */
void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place, struct act_error *err);
/* Like flow_url(), of an object; path is what to call it. */
int flow_url_in(struct store *store, const char *key, const char *path, struct flow_url *io,
                struct act_error *err) ACT_NODISCARD;
/* Copies the folder at path in a store to dir, and back; name is for messages. */
int flow_fetch_run_folder(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                          struct act_error *err) ACT_NODISCARD;
/* Copies one file to dir/name. */
int flow_fetch_run_file(struct flow *flow, struct store *store, const char *key, const char *dir, const char *name,
                        struct act_error *err) ACT_NODISCARD;
int flow_send_run_folder(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                         struct act_error *err) ACT_NODISCARD;
/* Copies a folder back, except files that are newer in the store: those stay there, and are named. */
int flow_send_run_changes(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                          struct act_error *err) ACT_NODISCARD;
/* Asks about what a run with 'mount: copy' brings to each node, if it is 10 GiB or more. confirm NULL: never. */
int flow_check_copies(struct flow *flow, const struct run_spec *spec,
                      int (*confirm)(void *arg, const char *question, struct act_error *err), void *arg,
                      struct act_error *err) ACT_NODISCARD;
/* Describes what the nodes of a run need to get at the stores of its folders (RUN_FILE_STORES), with a SAS instead of
 * an account key. *out NULL: nothing. New string, contains secrets. */
int flow_run_stores(struct flow *flow, const struct run_spec *spec, char **out, struct act_error *err) ACT_NODISCARD;
/* A folder in a container of Blob Storage, or in a share, and what opens it, without an account key. */
struct flow_blob {
    char *account, *container, *endpoint, *path;
    bool is_share;   /* of that name */
    bool by_login;   /* a login signs for it */
    char *sas;       /* secret; NULL: everybody may read it */
    int64_t cache_s; /* for which a mount may take what it knows for current; -1: not given */
};
void flow_blob_release(struct flow_blob *blob);
/* Finds the place of a row of the configuration, for what the mode needs. -ACT_CONFIG: it is in a folder store. The
 * caller releases out in every case. */
int flow_blob_of(struct flow *flow, const struct config_folder *folder, enum run_folder_mode mode,
                 struct flow_blob *out, struct act_error *err) ACT_NODISCARD;
/* Finds the place of a run's folder on its node: as the run's folder says, else as the project does, which flow, {0},
 * then opens. */
int flow_blob_of_run(struct flow *flow, const char *run_dir, const char *name, enum run_folder_mode mode,
                     struct flow_blob *out, struct act_error *err) ACT_NODISCARD;
/* Does the same again, with what the project's account file and logins say now, for whoever keeps it open for long.
 * Where the project is not seen, a login of the node signs, if a login signed before. */
int flow_blob_again(const char *run_dir, const char *name, enum run_folder_mode mode, struct flow_blob *out,
                    struct act_error *err) ACT_NODISCARD;
int flow_blob_open(struct flow *flow, const struct flow_blob *blob, struct store **out,
                   struct act_error *err) ACT_NODISCARD;
/* ---- access.c: for how long */

/* Returns when the SAS ends (Unix, seconds); INT64_MAX: never. */
int64_t flow_blob_ends_s(const struct flow_blob *blob);
/* Returns the time limit of the cluster's runs, in seconds, as sbatch(1) reads it; 0: none is known. */
int64_t flow_run_limit_s(const struct config *config);
/* Returns for how long nodes get at a store with a SAS that an account key signs: a month of waiting, and the limit. */
int64_t flow_key_life_s(const struct config *config);
/* The most that a login can sign for:
 * learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas. */
enum { FLOW_LOGIN_LIFE_S = 7 * 24 * 3600 };

/* Folders that nodes may not get at for all of a run. Begins as {0}. */
struct flow_ends {
    struct act_buf names; /* the caller releases them */
    int64_t first_s;
};
/* Refuses (-ACT_DENIED) what has ended, and what certainly ends before a limit for which no login can sign; adds to
 * ends what may end too early. name is the folder's. */
int flow_check_access(const struct config *config, const struct flow_blob *blob, const char *name,
                      enum run_folder_mode mode, struct flow_ends *ends, struct act_error *err) ACT_NODISCARD;
/* Tells the user. */
void flow_say_ends(const struct config *config, struct flow_ends *ends);

/* Refuses (-ACT_DENIED) a SAS that says it is not for what the mode does; name is the folder's. */
int flow_check_rights(const struct flow_blob *blob, enum run_folder_mode mode, const char *name,
                      struct act_error *err) ACT_NODISCARD;

/* Checks that it can be listed: a tool would mount a place that is not there, and fail at each access. */
int flow_blob_check(struct flow *flow, const struct flow_blob *blob, struct act_error *err) ACT_NODISCARD;
/* Returns the run's folder of this name; NULL: none. */
const struct run_folder *flow_find_folder(const struct run_spec *spec, const char *name);

#endif
