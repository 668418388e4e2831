/* flow_internal.h - for the files of flow/ only: what is opened once, and small objects in a store. */
#ifndef ACT_FLOW_FLOW_INTERNAL_H
#define ACT_FLOW_FLOW_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "flow/flow.h"
#include "run/run.h"
#include "store/store.h"

struct config;
struct config_account;
struct config_folder;
struct http;
struct ledger;
struct ledger_run;
struct ledger_runs;

/* Loads the configuration of a bare flow, which stays bare after an error. */
int flow_load(struct flow *flow, const struct config_request *request, struct act_error *err) ACT_NODISCARD;
/* Return what the flow shares with the other flows of its command. */
struct services *flow_services(struct flow *flow);
struct engine *flow_engine(struct flow *flow);
struct http *flow_http(struct flow *flow);
/* Opens the ledger, for runs that must be recorded. A damaged one is set aside; a new one is filled with the existing
 * runs. */
int flow_ledger(struct flow *flow, struct ledger **out, struct act_error *err) ACT_NODISCARD;
/* Opens the ledger to show or record what is known about runs, for a loop with the ledger, NULL at first, and the
 * result of its body in *rc:
 *     for (struct ledger *ledger = NULL; flow_next_ledger(flow, &ledger, &rc, err);)
 *         rc = ledger_list(ledger, ...);
 * The body is repeated where a failure could be mended. If the file cannot be used, as on a full disk, the user is told
 * once, and from then on an in-memory copy is used. */
bool flow_next_ledger(struct flow *flow, struct ledger **ledger, int *rc, struct act_error *err) ACT_NODISCARD;
/* Shows each the rows of all runs, newest first, without their specifications, until it returns false. */
int flow_ledger_each(struct flow *flow, bool (*each)(void *arg, const struct ledger_run *row), void *arg,
                     struct act_error *err) ACT_NODISCARD;
/* Puts a run into the ledger; an existing one is left as it is. -ACT_USAGE: another run takes the place of the one that
 * this is to replace. */
int flow_remember(struct flow *flow, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Sets the error that other takes the place already. */
int flow_refuse_other(const char *other, struct act_error *err);
/* Checks that the ledger could be read and written, without doing either. -ACT_NOT_FOUND: there is none yet, but it can
 * be created. -ACT_FAIL: it is damaged. */
int flow_look_at_ledger(struct act_error *err) ACT_NODISCARD;
/* Tells whether the file of the ledger is another one than *before ({0} begins), and sets *before to what it is now. */
bool flow_ledger_changed(struct stat *before);
/* Returns where a mapped folder is, as run_folder.store says it, as a new string; a is its account, {0} for a claim. */
char *flow_store_text(const struct config_folder *f, const struct config_account *a);
/* Opens the store of a mapped folder, or of the code. The caller frees *out. */
int flow_store(struct flow *flow, const struct config_folder *folder, struct store **out,
               struct act_error *err) ACT_NODISCARD;
/* Does the same for whoever asks first what this key is, without a slash at its end, and what lies below it: far away,
 * that is asked with the connection. NULL: nothing is. */
int flow_store_for(struct flow *flow, const struct config_folder *folder, const char *first, struct store **out,
                   struct act_error *err) ACT_NODISCARD;
/* Tells whether requests to the account carry a login token: because it says so, or has no other credential. */
bool flow_uses_login(const struct config_account *account);
/* Read and write small objects whole. Reading a missing one: -ACT_NOT_FOUND. */
int flow_get_text(struct store *store, const char *key, char **out, struct act_error *err) ACT_NODISCARD;
int flow_put_text(struct store *store, const char *key, const char *text, struct act_error *err) ACT_NODISCARD;
/* Do what flow_platform() does with the platform of this machine, that of a cluster (NULL: the default one), and the
 * one that a run in the ledger went to. */
int flow_platform_here(struct flow *flow, struct platform **out, struct act_error *err) ACT_NODISCARD;
int flow_platform_named(struct flow *flow, const char *cluster, struct platform **out,
                        struct act_error *err) ACT_NODISCARD;
int flow_platform_of(struct flow *flow, const struct ledger_run *row, struct platform **out,
                     struct act_error *err) ACT_NODISCARD;
/* Tells whether a platform that was opened, and tells by itself what becomes of its runs, has something new; from now
 * on they set *news then. */
bool flow_watch_platforms(struct flow *flow, bool *news);
void flow_close_platforms(struct flow *flow);
/* Returns which cluster of which project a run is on, and what it wrote down of the place, as a new string: runs for
 * which that is equal are on one platform, and others may be. */
char *flow_cluster_key(const struct ledger_run *row);
/* Tells which place a run's cluster is, without opening it: runs for which that is equal are on one platform. *out is a
 * new string. */
int flow_place_of(const struct ledger_run *row, char **out, struct act_error *err) ACT_NODISCARD;

/* ---- vault.c */

/* Lets a configuration of this flow ask key vaults for the secrets that are there, by the user's login. */
void flow_use_vaults(struct flow *flow, struct config *config);
/* Puts into the configuration and the run what they only name: the password of the registry, where the platform logs
 * in there, and the secrets of a job file. */
int flow_fetch_secrets(struct flow *flow, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
void flow_forget_secrets(struct flow *flow);

/* Looks for the object at key. Returns 1 with its ETag and size if there is one, 0 if there is none, or an error. */
int flow_exists(struct store *store, const char *key, char etag[STORE_ETAG], uint64_t *out_size,
                struct act_error *err) ACT_NODISCARD;

/* ---- row.c */

/* Returns the number of GPUs of all nodes together, or of processors where there are no GPUs. */
int64_t flow_slots_of(const struct run_spec *spec);
/* Reads the specification that a row holds: {0} without one, and after an error. The caller releases out. */
int flow_spec_of_row(const struct ledger_run *row, struct run_spec *out, struct act_error *err) ACT_NODISCARD;
/* Returns the specification that a row holds as JSON, a new reference; NULL: it holds none that can be read. */
json_t *flow_spec_json_of_row(const struct ledger_run *row);
/* Makes the ledger row of a run about which only its specification is known. The caller releases it. */
struct ledger_run flow_row_of(const struct run_spec *spec);

/* ---- names.c */

/* Returns the folder of the packages in the store, which is code_path without .zip, or with .packages appended if it
 * has no .zip, as a new string; NULL: there is no code_path. */
char *flow_code_base(const struct config *config);
/* Returns "<flow_code_base()>/" followed by the formatted text, as a new string. */
char *flow_code_key(const struct flow *flow, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Return "<flow_code_base()>/<sha256>.zip" and ".../latest.json" as new strings. */
char *flow_package_key(const struct flow *flow, const char *sha256);
char *flow_pointer_key(const struct flow *flow);
/* Return the folder where local copies of packages are kept, and the path of one copy, as new strings. */
char *flow_packages_dir(void);
char *flow_package_cache(const char *sha256);
/* Returns the folder into which the logs of a project's runs are fetched, <project>/assets or AML_LOG_FOLDER, relative
 * to the project unless absolute, as a new string. */
char *flow_log_folder(const char *project);

#endif
