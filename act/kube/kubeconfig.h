/* kubeconfig.h - for the readers of kubeconfigs only: config.c, files.c and user.c. */
#ifndef ACT_KUBE_KUBECONFIG_H
#define ACT_KUBE_KUBECONFIG_H

#include "codec/json.h"
#include "codec/yaml.h"
#include "kube/kube_internal.h"

enum { KUBE_MAX_FILE = 1 << 20 };

/* ---- files.c ---- */

struct kube_file {
    char *name, *dir;
    struct yaml *tree;
};

struct kube_files {
    struct kube_file *v;
    size_t n;
    struct act_strv missing;
};

void kube_files_release(struct kube_files *files);
/* Reads the named file (NULL: none), those of KUBECONFIG, or the usual one. */
int kube_files_read(const char *named, struct kube_files *out, struct act_error *err);

/* A list of the file, and where its entries, {name, <part>}, have what they say. */
struct kube_kind {
    const char *list, *part;
};

struct kube_found {
    const struct kube_file *file; /* NULL: it was not found */
    const struct yaml *map;       /* what is said of it; NULL: nothing */
};

/* Read a member of a map; another type is an error. kube_text_of(): *out points into the map, and is NULL where the
 * member is missing, null or empty. */
int kube_text_of(const struct yaml *map, const char *key, const char **out, struct act_error *err);
/* The same as a new string; *out stays as it is where the member is missing. */
int kube_copy_text(const struct yaml *map, const char *key, char **out, struct act_error *err);
int kube_bool_of(const struct yaml *map, const char *key, bool *out, struct act_error *err);
/* A map or a list, as kind says; *out is NULL where it is missing. */
int kube_part_of(const struct yaml *map, const char *key, enum yaml_kind kind, const struct yaml **out,
                 struct act_error *err);
/* The name of an entry of a list; *out is NULL where it has none. */
int kube_name_of(const struct yaml *entry, const struct kube_kind *kind, const char **out, struct act_error *err);
/* Reads the PEM text of "<key>-data", else of the file "<key>", whose path is appended to files. */
int kube_pem_of(const struct kube_found *at, const char *key, char **out, struct act_strv *files,
                struct act_error *err);
/* Returns a path of the file from the root on: it is relative to the file's folder. New string. */
char *kube_resolved(const struct kube_file *file, const char *path);
/* Returns the value as JSON. New reference. */
json_t *kube_to_json(const struct yaml *value);

/* ---- user.c ---- */

/* Reads what is said of a user into config. */
int kube_user_read(const struct kube_found *at, struct kube_config *config, struct act_error *err);

#endif
