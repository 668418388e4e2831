/* config_internal.h - how the files of this module work together.
 *
 *   find.c    which cluster file, which project root; clusters.c: which there are
 *   layers.c  defaults, file, environment, -p and flags merged into one YAML tree: every value still knows
 *             where it came from, so an origin needs no book-keeping of its own
 *   schema.c  the tables of keys
 *   read.c    the tree to the struct, by the tables
 *   config.c  the steps above in a row; the rows of config_param; paths of the project
 *   account.c account files; vault.c secrets that are elsewhere; user.c the user's own file
 *   show.c, check.c: the same data printed and judged; recall.c: taken from what a run wrote down of it
 */
#ifndef ACT_CONFIG_CONFIG_INTERNAL_H
#define ACT_CONFIG_CONFIG_INTERNAL_H

#include "codec/yaml.h"
#include "config/config.h"

#define CONFIG_BUILT_IN "built-in" /* as azure_blob_config_file: the embedded folder store */
#define CONFIG_DEFAULT  "default"  /* the origin of a value that was not set */
#define CONFIG_MASK     "***"
#define CONFIG_RECORDED "the record of the run" /* the origin of a value that a run wrote down */

enum config_type {
    CONFIG_BOOL,     /* bool */
    CONFIG_INT,      /* int64_t, -1 when not given */
    CONFIG_TEXT,     /* char *, NULL when not given */
    CONFIG_CHOICE,   /* char *, one of choices */
    CONFIG_TEXTS,    /* struct act_strv */
    CONFIG_INTS,     /* struct act_strv */
    CONFIG_ENV,      /* struct act_strv of "NAME=value", from a map */
    CONFIG_OBJECT,   /* json_t *, a map of any form, NULL when not given */
    CONFIG_OBJECTS,  /* json_t *, a list of such maps, NULL when not given */
    CONFIG_MAP,      /* its members have rows of their own */
    CONFIG_MAP_FILE, /* the same, or the name of a file that holds them */
    CONFIG_MAP_INT,  /* the same, or a number, which layers.c makes a map of */
    CONFIG_ANY,      /* legacy: accepted in silence, not read */
};

#define CONFIG_NOWHERE ((size_t)-1)

struct config_key {
    const char *path; /* "docker.image"; "config_param.*.path" for every row of config_param */
    enum config_type type;
    size_t offset;        /* in struct config, config_folder or config_account; CONFIG_NOWHERE: not kept there */
    const char *fallback; /* as text; NULL: none */
    const char *choices;  /* CONFIG_CHOICE: "a|b|c" */
    int64_t min;          /* CONFIG_INT, CONFIG_INTS */
    int64_t max;          /* CONFIG_INT; 0: what any number may be */
    bool secret;
    const char *instead; /* legacy spelling: what says the same today */
    const char *help;
};

/* All end with a row whose path is NULL. */
extern const struct config_key config_cluster_keys[];
extern const struct config_key config_account_keys[];
extern const struct config_key config_user_keys[];

/* The row of prefix + key, or NULL. */
const struct config_key *config_key_find(const struct config_key *keys, const char *prefix, const char *key);
/* The name of a row when it follows the prefix directly ("docker.", ""), else NULL. */
const char *config_key_member(const struct config_key *key, const char *prefix);

struct config_values {
    struct yaml *tree; /* all layers merged; config_param rows are maps here */
    char *current_dir;
    char *cluster_origin;
    struct act_strv warned; /* account files that were warned about already */
    struct config_vault vault;
};

/* What is wrong and what is doubtful, one line each. */
struct config_findings {
    struct act_strv problems, warnings;
};
void config_problem(struct config_findings *f, const struct yaml *at, const char *fmt, ...) ACT_PRINTF(3, 4);
void config_doubt(struct config_findings *f, const struct yaml *at, const char *fmt, ...) ACT_PRINTF(3, 4);
void config_findings_release(struct config_findings *f);

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
int config_layers(const struct config_request *request, const struct config_place *place, struct yaml **out,
                  struct act_error *err);

/* config.c */

/* Whether the key of a row of config_param is one; what else was meant is a problem. */
bool config_is_row(const struct yaml *row, struct config_findings *f);

/* read.c */
void config_read_keys(const struct config_key *keys, const char *prefix, const struct yaml *map, void *base,
                      struct config_findings *f);
void config_warn_unknown(const struct config_key *keys, const char *prefix, const struct yaml *map,
                         struct config_findings *f);
/* The key that is meant as 'platform', which the tree does not have; else NULL. */
const struct yaml *config_misspelt_platform(const struct yaml *tree);
/* Whether a value is a whole number within the key's limits. */
bool config_read_int(const struct config_key *key, const struct yaml *value, int64_t *out);
/* The same for all of a cluster file but the rows of config_param. */
void config_warn_all_unknown(const struct yaml *tree, struct config_findings *f);
/* Frees what config_read_keys put into base. */
void config_release_keys(const struct config_key *keys, const char *prefix, void *base);

/* config.c: as config_load(), with what is wrong in f; *out is filled as far as possible and must be
 * released. A negative result only when there is no tree to judge. */
int config_load_all(const struct config_request *request, struct config *out, struct config_findings *f,
                    struct act_error *err);
/* The members of a struct that has its tree, and where it is. */
void config_read_tree(struct config *c, struct config_findings *f);
/* The keys of a row of config_param that mean nothing where it is in no store, up to NULL. */
extern const char *const config_keys_of_stores[];
/* The platforms that need an Azure Machine Learning workspace. */
bool config_is_azureml(const char *platform);
/* The value of "docker.image", or NULL. */
const struct yaml *config_value(const struct config *config, const char *key);
/* The value of a key in the row of config_param that this folder is, or NULL. */
const struct yaml *config_row_value(const struct config *config, const struct config_folder *folder, const char *key);
/* The place that names the account file of this folder, or NULL. */
const struct yaml *config_account_origin(const struct config *config, const struct config_folder *folder);

/* sas.c: takes a '?' off the beginning, and reports what is surely no SAS, or one that no service takes. */
void config_check_sas(char *sas, const struct yaml *at, struct config_findings *f);

/* account.c: the account with the tree it came from, which the caller frees. */
int config_account_read(const struct config *config, const struct config_folder *folder, struct config_account *out,
                        struct yaml **out_tree, struct config_findings *f, struct act_error *err);

#endif
