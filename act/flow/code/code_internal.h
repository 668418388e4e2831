/* code_internal.h - for the files of flow/ only: packages and their contents. */
#ifndef ACT_FLOW_CODE_CODE_INTERNAL_H
#define ACT_FLOW_CODE_CODE_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "package/package.h"
#include "run/run.h"
#include "store/store.h"

struct config;

/* The package that code_path currently stands for. */
struct flow_package {
    char *store; /* store_name() */
    char *key;   /* flow_package_key(), or code_path itself when another tool wrote it */
    char *file;  /* a verified local copy */
    char sha256[ACT_SHA256_HEX];
    int64_t bytes;
};
void flow_package_release(struct flow_package *package);
/* Finds the package that code_path stands for now. -ACT_NOT_FOUND: nothing was ever packed. The caller releases out. */
int flow_current_package(struct flow *flow, struct flow_package *out, struct act_error *err) ACT_NODISCARD;
/* Gets a package by its key, verified against sha256. */
int flow_package_by_key(struct flow *flow, const char *key, const char *sha256, struct flow_package *out,
                        struct act_error *err) ACT_NODISCARD;
/* Tells whether the file exists and has this hash. */
bool flow_file_is(const char *path, const char *sha256);
/* Reads a store's latest.json (see init.c), a new reference; *out is NULL if it is missing or unreadable. */
int flow_read_pointer(struct flow *flow, struct store *store, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Stores the tree below root, the compiled package of source, as a separate package and as code_path. */
int flow_init_compiled(struct flow *flow, const char *root, const struct flow_init *source, struct flow_init *io,
                       struct act_error *err) ACT_NODISCARD;
/* logins.c: the kubeconfigs of the project's clusters and of KUBECONFIG that are in the project, and the files with
 * keys and tokens that these name, as package_options.kept_out. */
void flow_keep_out_logins(const struct config *config, struct act_strv *out);
/* guard.c: why a file is left out of a package, as package_options.judge; and tells the user which credentials were
 * left out or included, one line each. */
char *flow_guard_judge(const char *path, const void *data, size_t len);
void flow_guard_tell(const char *root, const struct package_list *list);
/* left_out.c: says what of value the built-in list has left out of a package, once; notes it, and what others have,
 * beside the package; and adds to notes what of that a line of a log misses. */
void flow_say_left_out(const char *project, const struct package_list *list);
void flow_note_left_out(const char *sha256, const struct package_list *list);
void flow_find_left_out(const char *sha256, const char *line, struct act_strv *notes);
/* Tells whether a package is large enough for flow_upload_blocks(), and the store supports it. */
bool flow_has_blocks(const struct store *store, const struct package_summary *package);
/* Stores the cached package as flow_package_key(). If blocks of the package at code_path can be reused, it is first
 * stored as code_path: then *out_etag is the new ETag, otherwise empty. */
int flow_upload_blocks(struct flow *flow, struct store *store, struct flow_init *io, char out_etag[STORE_ETAG],
                       struct act_error *err) ACT_NODISCARD;
/* Refuses a command (at least one word) that cannot work with the listed code: -ACT_USAGE or -ACT_NOT_FOUND. */
int flow_check_program(const struct config *config, const struct package_list *list, const struct act_strv *argv,
                       struct act_error *err) ACT_NODISCARD;

/* Returns the script of Python that the command starts, a path below root, a new string; NULL: none that is known. */
char *flow_started_script(const char *root, const struct act_strv *argv);
/* Adds the top-level modules, but for the project's own, that a script below root imports, also by way of those: all
 * that are found until then (act_now_monotonic_ms()). */
void flow_imports_of(const char *root, const char *script, int64_t until_ms, struct act_strv *out);
/* Warns, within some milliseconds, of packages that the Python here has, the run's command imports, and the environment
 * that is made for it will not have. */
void flow_warn_lacking(const struct config *config, const struct run_spec *spec);

/* Finds "docker" or "podman", whichever answers first; none: -ACT_CONFIG with the reason. */
int flow_find_docker(const char **out, struct act_error *err) ACT_NODISCARD;

/* Prefix of the folders, beside the packages, in which packages are compiled. */
#define FLOW_COMPILES "compile-"

#endif
