/* flow_internal.h - for the files of flow/ only: what is opened once, and small objects of a store. */
#ifndef ACT_FLOW_FLOW_INTERNAL_H
#define ACT_FLOW_FLOW_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"
#include "flow/flow.h"
#include "ledger/ledger.h"
#include "run/run.h"
#include "store/store.h"

struct http;
struct platform;

/* What the flow shares with the others of its command. */
struct services *flow_services(struct flow *flow);
struct engine *flow_engine(struct flow *flow);
struct http *flow_http(struct flow *flow);
/* Opens the ledger, for what must be written down. A damaged one is kept aside, and a new one gets the runs that are
 * there. */
int flow_ledger(struct flow *flow, struct ledger **out, struct act_error *err) ACT_NODISCARD;
/* Does something with the ledger that shows or notes what is known of runs. Where the file cannot be used, as on a full
 * disk, that is said once, and from then on it is done with a copy in memory. */
int flow_with_ledger(struct flow *flow, int (*what)(struct ledger *ledger, void *arg, struct act_error *err),
                     void *arg, struct act_error *err) ACT_NODISCARD;
/* Puts a run into the ledger; one that is there already stays as it is. */
int flow_remember(struct flow *flow, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Whether it can be read and written; nothing is. -ACT_NOT_FOUND: there is none yet, and it can be made. -ACT_FAIL:
 * it is damaged. */
int flow_look_at_ledger(struct act_error *err) ACT_NODISCARD;
/* The store of a mapped folder, or of the code. */
int flow_store(struct flow *flow, const struct config_folder *folder, struct store **out,
               struct act_error *err) ACT_NODISCARD;
/* Whether requests to the account carry the token of a login: it says so, or there is nothing else. */
bool flow_uses_login(const struct config_account *account);
/* Small objects, whole. Reading a missing one is -ACT_NOT_FOUND. */
int flow_get_text(struct store *store, const char *key, char **out, struct act_error *err) ACT_NODISCARD;
int flow_put_text(struct store *store, const char *key, const char *text,
                  struct act_error *err) ACT_NODISCARD;
/* The platform of flow's configuration, this machine, and the platform of a run of the ledger. They are flow's and stay
 * open. */
int flow_platform(struct flow *flow, struct platform **out, struct act_error *err) ACT_NODISCARD;
int flow_platform_here(struct flow *flow, struct platform **out, struct act_error *err) ACT_NODISCARD;
int flow_platform_of(struct flow *flow, const struct ledger_run *row, struct platform **out,
                     struct act_error *err) ACT_NODISCARD;
void flow_close_platforms(struct flow *flow);

/* The object at key, if there is one: 1 with its ETag and size, 0, or an error. */
int flow_exists(struct store *store, const char *key, char etag[STORE_ETAG], uint64_t *out_size,
                struct act_error *err) ACT_NODISCARD;

/* ---- row.c */

/* The GPUs of all nodes. */
int64_t flow_gpus_of(const struct run_spec *spec);
/* A command as a person would read it, with quotes where they are needed. New string. */
char *flow_command_line(const struct act_strv *argv);
/* What the ledger keeps of a run that nothing else is known of. The caller's to release. */
struct ledger_run flow_row_of(const struct run_spec *spec);

/* ---- names.c */

/* The folder of the packages in the store: code_path without .zip, or with .packages where it has no .zip. New
 * string. */
char *flow_code_base(const struct config *config);
/* "<flow_code_base()>/" and what the format says. New string. */
char *flow_code_key(const struct flow *flow, const char *fmt, ...) ACT_PRINTF(2, 3);
/* "<flow_code_base()>/<sha256>.zip" and ".../latest.json". New strings. */
char *flow_package_key(const struct flow *flow, const char *sha256);
char *flow_pointer_key(const struct flow *flow);
/* Where local copies of packages are kept, and that of one of them. New strings. */
char *flow_packages_dir(void);
char *flow_package_cache(const char *sha256);
/* Where the logs of a project's runs are fetched to: <project>/assets, or what AML_LOG_FOLDER names, below the project
 * unless it is absolute. New string. */
char *flow_log_folder(const char *project);

#endif
