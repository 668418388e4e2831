/* config_internal.h - how the files of this module work together.
 *
 *   find.c    which cluster file, which project root; clusters.c: which there are
 *   layers.c  defaults, the project's file, that of the cluster, environment, -p and flags merged into one YAML tree:
 *             every value still knows where it came from, so an origin needs no book-keeping of its own
 *   schema.c  the tables of keys; form.c what their texts look like; kind.c: what the platforms bring
 *   read.c    the tree to the struct, by the tables
 *   config.c  the steps above in a row; the rows of config_param; paths of the project
 *   account.c account files; vault.c secrets that are elsewhere; user.c the user's own file
 *   show.c, check.c: the same data printed and judged; recall.c: taken from what a run wrote down of it
 */
#ifndef ACT_CONFIG_CONFIG_INTERNAL_H
#define ACT_CONFIG_CONFIG_INTERNAL_H

#include "codec/yaml.h"
#include "config/config.h"
#include "config/kind.h"

#define CONFIG_CLUSTER_DIR "aux_data/aml" /* of a project, with its cluster files */
#define CONFIG_BUILT_IN    "built-in"     /* as azure_blob_config_file: the embedded folder store */
#define CONFIG_DEFAULT     "default"      /* the origin of a value that was not set */
#define CONFIG_MASK        "***"
#define CONFIG_RECORDED    "the record of the run" /* the origin of a value that a run wrote down */

/* All end with a row whose path is NULL. */
extern const struct config_key config_general_keys[]; /* of a cluster file, without those of the parts */
extern const struct config_key *config_cluster_keys;  /* all of a cluster file: those, then those of the parts */
extern const char *const config_general_maps[];       /* its maps whose members have rows there, up to NULL */
extern const struct config_key config_account_keys[];
extern const struct config_key config_user_keys[];

/* Below, map names the map that a key is a member of: "docker", "config_param.*", "" for the top level. */

/* Returns the row of a member of the map, or NULL. */
const struct config_key *config_key_find(const struct config_key *keys, const char *map, const char *key);
/* Returns the name by which a row is a member of the map, or NULL: it is none. */
const char *config_key_member(const struct config_key *key, const char *map);

struct config_values {
    struct yaml *tree; /* all layers merged; config_param rows are maps here */
    char *current_dir;
    char *cluster_origin;
    struct act_strv warned; /* account files that were warned about already */
    struct config_vault vault;
};

void config_findings_release(struct config_findings *f);
/* Sorts what was found by files, in the order in which they were first named, and places. */
void config_findings_sort(struct config_findings *f);
/* Adds what a failed function says: it has no place of its own. */
void config_problem_text(struct config_findings *f, const char *text);
/* Returns the number of problems; *out_first is the text of the first one, or NULL. */
size_t config_count_problems(const struct config_findings *f, const char **out_first);
/* Warns the user of what is doubtful. */
void config_warn(const struct config_findings *f);

/* kind.c */
/* Returns the kind of this name; for another one, a kind without properties. */
const struct config_kind *config_kind_named(const char *name);
/* Returns the kind of a tree that is not read yet. */
const struct config_kind *config_kind_of(const struct yaml *tree);
/* All kinds and all parts that there are, up to NULL. */
const struct config_kind *const *config_kinds(void);
/* Returns the kind of the built-in cluster. */
const struct config_kind *config_kind_built_in(void);
const struct config_part *const *config_parts(void);
/* Returns the names of the kinds whose flag, the offset of a bool, is true: "'local' and 'slurm'". New string. */
char *config_kinds_that(size_t flag);
/* Reads the parts of a tree; frees them. */
void config_read_parts(struct config *c, struct config_findings *f);
void config_release_parts(struct config *c);

/* find.c */
/* Replaces dir by its parent; false at the root. */
bool config_go_up(char **dir);
struct config_place {
    char *file;       /* absolute; NULL: built-in */
    const char *text; /* what it would hold; NULL: what it holds */
    char *root, *cluster, *origin, *current_dir;
};
int config_find(const struct config_request *request, struct config_place *out, struct act_error *err);
void config_place_release(struct config_place *place);
/* path for messages: relative to root when it lies inside. Points into path. */
const char *config_display(const char *path, const char *root);
/* An absolute, clean path: "~/" is the home folder, relative ones are below root. New string. */
char *config_absolute(const char *path, const char *root);

/* user.c: whether only the user can write and replace a file of his own. */
int config_check_users(const char *file, struct act_error *err);
/* The user's default cluster, or NULL. New string. */
int config_user_default(char **out, struct act_error *err);

/* layers.c: everything merged. */
/* Returns where a file leads to if that is out of the project, a new string; NULL: it does not. */
char *config_leads_out(const char *file, const char *root);
int config_layers(const struct config_request *request, const struct config_place *place, struct yaml **out,
                  struct act_error *err);

/* show.c: the value of a key such as "slurm.login" in a tree, or NULL. */
const struct yaml *config_tree_value(const struct yaml *tree, const char *key);

/* config.c */

/* Tells whether the key of a row of config_param is one; what else was meant is a problem. */
bool config_is_row(const struct yaml *row, struct config_findings *f);

/* read.c */
/* Reads the members of the map, which has these values (NULL: none), into base, the struct that holds them. */
void config_read_keys(const struct config_key *keys, const char *map, const struct yaml *values, void *base,
                      struct config_findings *f);
/* Adds a finding for each of the values whose key has no row in the map. */
void config_warn_unknown(const struct config_key *keys, const char *map, const struct yaml *values,
                         struct config_findings *f);
/* Returns the key that is meant as 'platform', which the tree does not have; else NULL. */
const struct yaml *config_misspelt_platform(const struct yaml *tree);
/* Tells whether a value is a whole number within the key's limits. */
bool config_read_int(const struct config_key *key, const struct yaml *value, int64_t *out);
/* The same for all of a cluster file but the rows of config_param. */
void config_warn_all_unknown(const struct yaml *tree, struct config_findings *f);
/* Frees what config_read_keys() put into base; of the top level, what is in its maps too. */
void config_release_keys(const struct config_key *keys, const char *map, void *base);

/* config.c: as config_load(), with what is wrong in f; *out is filled as far as possible and must be
 * released. A negative result only when there is no tree to judge. */
int config_load_all(const struct config_request *request, struct config *out, struct config_findings *f,
                    struct act_error *err);
/* The members of a struct that has its tree, and where it is. */
void config_read_tree(struct config *c, struct config_findings *f);
/* The keys of a row of config_param that mean nothing where it is in no store, up to NULL. */
extern const char *const config_keys_of_stores[];
/* Returns the key of the row of config_param that this folder is: "data_folder", "code_path". New string. */
char *config_row_key(const struct config *config, const struct config_folder *folder);
/* Returns the value of a key in that row, or NULL. */
const struct yaml *config_row_value(const struct config *config, const struct config_folder *folder, const char *key);
/* Returns the place that names the account file of this folder, or NULL. */
const struct yaml *config_account_origin(const struct config *config, const struct config_folder *folder);

/* sas.c: takes a '?' off the beginning, and reports what is surely no SAS, or one that no service takes. */
void config_check_sas(char *sas, const struct yaml *at, struct config_findings *f);

/* account.c: the account with the tree it came from, which the caller frees. */
int config_account_read(const struct config *config, const struct config_folder *folder, struct config_account *out,
                        struct yaml **out_tree, struct config_findings *f, struct act_error *err);

#endif
