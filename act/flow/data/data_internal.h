/* data_internal.h - for the files of flow/ only: the folders of runs, and folders that are elsewhere. */
#ifndef ACT_FLOW_DATA_DATA_INTERNAL_H
#define ACT_FLOW_DATA_DATA_INTERNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "config/config.h"
#include "flow/flow.h"
#include "run/run.h"

struct platform;
struct store;

/* A folder of a run that sees the project becomes the project's own of that name, and a note says so, when that holds
 * something and the store does not. from: its row. */
void flow_use_here(const struct config *config, const struct config_folder *from, struct run_folder *folder);
/* Nothing is mapped, and the code has no store that somebody wrote down. */
bool flow_may_use_own_folders(const struct config *config);
/* Then, where the platform has a store that this machine does not see: the run gets those of the built-in folders that
 * are there, and notes say so. Asks the platform. */
int flow_use_own_folders(const struct config *config, struct platform *platform, struct run_spec *spec,
                         struct act_error *err) ACT_NODISCARD;
/* Whether there is a folder with something in it. */
bool flow_has_content(const char *path);
/* Adds to the error that something is not in the store where it is instead; local is its place in the project. */
void flow_explain_absence(struct flow *flow, const struct config_folder *folder, const char *local,
                          struct act_error *err);
/* Refuses (-ACT_USAGE) to delete what is at key in the store of a folder, where another row of the configuration lies
 * there or below; path is what the user typed for it. */
int flow_check_alone(const struct config *config, const struct config_folder *folder, const char *key,
                     const char *path, struct act_error *err) ACT_NODISCARD;
/* Warns of every folder in which another row lies. */
void flow_warn_overlaps(const struct config *config);
/* Adds where a project that is no longer there has such a folder, and how this one takes it over. place is that of the
 * folder, which has nothing, in the built-in store. */
void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place,
                     struct act_error *err);
/* From the folder at path of a store to dir, and back; name is for messages. */
int flow_fetch_run_folder(struct flow *flow, struct store *store, const char *path, const char *name,
                          const char *dir, struct act_error *err) ACT_NODISCARD;
int flow_send_run_folder(struct flow *flow, struct store *store, const char *path, const char *name,
                         const char *dir, struct act_error *err) ACT_NODISCARD;
/* What the nodes of a run need to reach the stores of its folders (RUN_FILE_STORES), where a SAS takes the place of an
 * account key. *out NULL: nothing. New string, with secrets. */
int flow_run_stores(struct flow *flow, const struct run_spec *spec, char **out,
                    struct act_error *err) ACT_NODISCARD;
/* NULL: it has none of that name. */
const struct run_folder *flow_find_folder(const struct run_spec *spec, const char *name);

#endif
