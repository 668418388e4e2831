/* code_internal.h - for the files of flow/ only: packages and what they are made of. */
#ifndef ACT_FLOW_CODE_CODE_INTERNAL_H
#define ACT_FLOW_CODE_CODE_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/code/code.h"
#include "flow/flow.h"
#include "package/package.h"
#include "run/run.h"
#include "store/store.h"

/* The package that code_path stands for now. */
struct flow_package {
    char *store; /* store_name() */
    char *key;   /* flow_package_key(), or code_path itself when another tool wrote it */
    char *file;  /* a verified local copy */
    char sha256[ACT_SHA256_HEX];
    int64_t bytes;
};
void flow_package_release(struct flow_package *package);
/* -ACT_NOT_FOUND when nothing was ever packed. */
int flow_current_package(struct flow *flow, struct flow_package *out, struct act_error *err) ACT_NODISCARD;
/* A package by its key, verified against sha256. */
int flow_package_by_key(struct flow *flow, const char *key, const char *sha256, struct flow_package *out,
                        struct act_error *err) ACT_NODISCARD;
/* Whether the file is there and has the hash. */
bool flow_file_is(const char *path, const char *sha256);
/* What latest.json of a store says (see init.c), NULL where there is none, or none that can be read. New value. */
int flow_read_pointer(struct flow *flow, struct store *store, json_t **out,
                      struct act_error *err) ACT_NODISCARD;
/* Stores the tree of root, which is that package of an init compiled, as one of its own and as code_path. */
int flow_init_compiled(struct flow *flow, const char *root, const struct flow_init *source,
                       struct flow_init *io, struct act_error *err) ACT_NODISCARD;
/* guard.c: why a file stays out of a package, as package_options.judge; and what users should know of the
 * credentials that were left out, or go in, one line for each. */
char *flow_guard_judge(const char *path, const void *data, size_t len);
void flow_guard_tell(const char *root, const struct package_list *list);
/* Whether a package is large enough for flow_upload_blocks(), and the store can do it. */
bool flow_has_blocks(const struct store *store, const struct package_summary *package);
/* Stores the package in the cache as flow_package_key() and, where that makes use of blocks of the package that is
 * there, as code_path before: *out_etag is its ETag then, else empty. */
int flow_upload_blocks(struct flow *flow, struct store *store, struct flow_init *io,
                       char out_etag[STORE_ETAG], struct act_error *err) ACT_NODISCARD;
/* Refuses a command (at least one word) that cannot work with the code of the list: -ACT_USAGE or -ACT_NOT_FOUND. */
int flow_check_program(const struct config *config, const struct package_list *list,
                       const struct act_strv *argv, struct act_error *err) ACT_NODISCARD;

/* "docker" or "podman", whichever answers first; none: -ACT_CONFIG with the reason. */
int flow_find_docker(const char **out, struct act_error *err) ACT_NODISCARD;

/* How the folders begin, among the packages, where packages are compiled. */
#define FLOW_COMPILES "compile-"

#endif
