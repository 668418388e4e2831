/* config.h - files, environment and flags to one typed, validated, read-only struct.
 *
 * Precedence: flag, -p, environment (ACT_<KEY>, for top-level keys that are neither map nor list), cluster file (with
 * the files its "_base_" names), default. A value that is null counts as not given. Every key is one row of the table
 * in schema.c: its path, type, default, legacy spelling, whether it is secret and a line of documentation; loading,
 * "config show", "config check", the nearest key of an unknown one and the JSON Schemas in config/ come from it.
 */
#ifndef ACT_CONFIG_CONFIG_H
#define ACT_CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "config/request.h"

/* An account file: where objects are stored. */
struct config_account {
    char *file;           /* path of the file, for messages; "built-in" for the embedded default */
    char *account_name;   /* Azure Blob Storage */
    char *account_key;    /* secret; base64; may be NULL */
    char *sas_token;      /* secret; without the leading '?'; may be NULL */
    char *container_name; /* may be NULL for a row that is a share */
    char *endpoint;       /* "https://host[:port]" (account in the host) or "http://ip:port/account"; never NULL
                       for a blob account: https://<account_name>.blob.core.windows.net by default */
    char *file_endpoint;  /* likewise of Azure Files; NULL: not given, and it does not follow from the other one */
    char *auth;           /* "key", "sas", "login", "anonymous"; NULL: whatever is there, else a login */
    char *folder;         /* folder store: absolute path; NULL for a blob account */
    bool secret_is_lent;  /* key or SAS are those of the environment or of a key vault, not of the file */
    bool is_own;          /* the file is the user's own, so that no project says what is in it */
};

/* One row of config_param: the code, or a mapped folder. */
struct config_folder {
    char *name;                 /* "data" for data_folder; "code" for code_path */
    char *account_file;         /* azure_blob_config_file, absolute; or "built-in" */
    char *path;                 /* in the store, no leading or trailing slash; "" is the whole container */
    char *claim;                /* "pvc:NAME/path": the PersistentVolumeClaim that path is in; NULL: in a store */
    char *storage_type;         /* "blob", "file" */
    char *file_share;           /* of Azure Files, never NULL with storage_type "file" */
    char *datastore_name;       /* may be NULL */
    int64_t blob_cache_timeout; /* -1: not given */
    bool submit_with_url;
    char *mode;                     /* rw_mount, ro_mount, download, upload, path */
    struct config_account *account; /* what account_file says of it, a job file, or of mode path the folder; NULL:
                                       account_file is one */
    bool is_far;                    /* it is in the store that the platform has behind its login node, below its root */
};

/* Tells whether the nodes have it already, as the absolute path account_file; path is "". */
static inline bool config_is_place(const struct config_folder *folder)
{
    return act_streq(folder->mode, "path");
}

/* Tells whether the row is a share of Azure Files: no container, and nothing that ACT itself can read or write. */
static inline bool config_is_share(const struct config_folder *folder)
{
    return act_streq(folder->storage_type, "file");
}

/* Tells whether the row is in the store that its platform has by itself: see config_load(). */
static inline bool config_is_built_in(const struct config_folder *folder)
{
    return act_streq(folder->account_file, "built-in");
}

struct config_docker { /* members may be NULL */
    char *image, *address, *username, *password;
};

/* After which failures a run is tried again, and how often. */
enum { CONFIG_RETRY_MOST = 100 };
struct config_retry {
    int64_t times;      /* -1: not given */
    struct act_strv on; /* empty: not given */
};

/* The cluster without a file. */
#define CONFIG_PROJECT_FILE     "act.yaml" /* at the root of a project: what its commands need, on whatever cluster */
#define CONFIG_BUILT_IN_CLUSTER "local"

/* The set-up of a node before the command: run_setup in run/run.h. Members may be NULL. */
struct config_setup {
    bool modules_purge;
    struct act_strv modules;
    char *conda, *venv, *lines, *rank_lines;
    char *timeout; /* a duration as text */
};

/* run_needs in run/run.h, in words. */
struct config_environment {
    char *make;           /* "auto" or "none" */
    bool system_packages; /* if config_value() (kind.h) has it: what is usual is found on the node */
    char *wheels_folder;  /* may be NULL */
    char *where;          /* "auto", "nodes" or "login" */
};

struct config_part;
struct config_part_values {
    const struct config_part *part;
    void *values; /* of its struct */
};

struct config {
    char *cluster;      /* "aml" for aux_data/aml/aml.yaml, or CONFIG_BUILT_IN_CLUSTER */
    char *file;         /* absolute path of the cluster file; NULL for the built-in */
    char *project_root; /* absolute: the folder that holds aux_data, or the current folder */
    char *platform;     /* "slurm": the name of a kind (kind.h) */

    struct config_folder code; /* path NULL: no code_path, of which config_account() tells the user */
    struct config_folder *folders;
    size_t n_folders;
    struct config_folder *far; /* behind a login node: known by their names, and used by runs where they are there */
    size_t n_far;
    char *compute_target;
    struct config_docker docker;
    struct config_part_values *parts; /* what the platforms' own parts of the file say: config_part() in kind.h */
    size_t n_parts;
    char *experiment_name;
    bool use_cli_auth, multi_process, preemption_allowed, sleep_if_fail, sleep_if_succeed;
    int64_t gpu_per_node;           /* -1: not given (the platform knows) */
    struct act_strv gpus;           /* of this machine, by number or UUID; empty: any */
    int64_t gpu_free_memory;        /* percent */
    int64_t num_gpu;                /* -1: not given (the platform knows) */
    int64_t process_count_per_node; /* -1: not given */
    struct config_retry retry;
    struct act_strv elastic_num_gpu;
    bool aks_compute_global_dispatch;
    bool use_custom_docker; /* false has no effect */
    char *singularity_sla_tier, *singularity_instance_type;
    struct act_strv env; /* "NAME=value" */
    struct act_strv zip_options;
    bool gitignore;     /* the .gitignore files count for the package */
    char *mount;        /* what mounts folders on a node: "blobfuse2", "rclone", "copy"; NULL: what it has */
    char *compile_args; /* may be NULL */
    struct config_setup setup;
    struct config_environment environment;
    char *hang;      /* a duration as text, or NULL */
    char *hang_gpus; /* "idle" or "any" */

    struct config_values *values; /* every value with its origin, for "config show"; opaque */
};

/* Which file: config_request.cluster. "-c" names a file 'aux_data/aml/NAME.yaml' in the current folder or
 * above; the folder that holds aux_data is the project root. Else it names one of the user's own, for all projects:
 * '<act_config_dir()>/clusters/NAME.yaml'; the project is then that of the built-in cluster. Without "-c" it is what
 * ACT_CLUSTER names, else the file that AML_CONFIG_PATH names, else aml or local of the project, else 'default_cluster'
 * of the user's own settings. Without any file, and for "-c local" without
 * one, there is the built-in cluster: platform local, the folder store <act_state_dir()>/store, and in it
 * below "<folder name>-<8 hex of the project root>/" the code and the folders data and output; its
 * project root is the nearest folder upwards, at most the home folder, that config_mark_of() knows, else the
 * current folder. A cluster file of platform local without config_param, or without its code_path, gets those
 * rows as well; one of platform slurm too, with the folder store <slurm.root>/store. With slurm.login it gets the code
 * alone, in the store of this machine: runs have it from there by way of the site; the store there is the platform's.
 * One of platform k8s gets the code alone as well: the platform brings it to the pods. One of Azure Machine Learning
 * gets those rows in the account that 'azure_blob_config_file' at its top level names, if it does.
 *
 * Warnings (unknown keys, files with secrets that others can read) go to act_warn(). */
int config_load(const struct config_request *request, struct config *out, struct act_error *err) ACT_NODISCARD;
void config_release(struct config *config);
/* Returns what marks a folder as the root of a project: "aux_data", ".git" or CONFIG_PROJECT_FILE; NULL: nothing. */
const char *config_mark_of(const char *dir);

/* A configuration that a run wrote down: some members of what config_resolved() gave. */
struct config_recorded {
    const char *platform, *cluster;
    const char *project; /* NULL: none */
    json_t *values;
};
/* Makes a configuration of recorded values. A key without one has its default: no file is read, and the environment
 * does not count. */
int config_recall(const struct config_recorded *recorded, struct config *out, struct act_error *err) ACT_NODISCARD;
/* Returns the text of a cluster file that says the same as what config_resolved() gave, but for the secrets. New
 * string. */
char *config_text_of(const json_t *resolved);

/* Whether config_load() would find a file, or the built-in cluster; nothing is read. Otherwise -ACT_NOT_FOUND, with the
 * existing clusters, or what is wrong with AML_CONFIG_PATH. */
int config_is_there(const struct config_request *request, struct act_error *err) ACT_NODISCARD;

/* Returns the folder of this name; NULL: there is none. */
const struct config_folder *config_folder_named(const struct config *config, const char *name);
/* Reads the account of a mapped folder (or of config->code). A file without secrets takes them from the
 * environment: AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN (only when AZURE_STORAGE_ACCOUNT is unset or names
 * this account, and not with "auth: login"). Relative paths are below the project root. */
int config_account(const struct config *config, const struct config_folder *folder, struct config_account *out,
                   struct act_error *err) ACT_NODISCARD;

/* In place of a secret an account file, docker.password or a job file may say where it is:
 * "keyvault:https://NAME.vault.azure.net/secrets/SECRET", with "/VERSION" unless the newest one is meant. */
#define CONFIG_KEYVAULT "keyvault:"
static inline bool config_is_in_vault(const char *secret)
{
    return secret && act_starts_with(secret, CONFIG_KEYVAULT);
}
/* Checks whether such a text has that form: 0, or -ACT_CONFIG, which says what the form is. */
int config_check_vault(const char *secret, struct act_error *err) ACT_NODISCARD;
/* Who asks the vault: get() gives the secret at a URL ("https://..."), a new string. Without it a secret stays where it
 * is, for those who only look. arg stays the caller's, and outlives config; a config without files is left as it is. */
struct config_vault {
    int (*get)(void *arg, const char *url, char **out, struct act_error *err);
    void *arg;
};
void config_use_vault(struct config *config, struct config_vault vault);
/* Replaces *secret, which may be NULL, by what it stands for. config_account() has done so. */
int config_fetch_secret(const struct config *config, char **secret, struct act_error *err) ACT_NODISCARD;
/* The same for a key, a SAS or a password: newlines at the end, as editors and 'echo' leave them, are no part of it. */
int config_fetch_credential(const struct config *config, char **secret, struct act_error *err) ACT_NODISCARD;
void config_account_release(struct config_account *account); /* wipes secrets */

/* Adds a folder that no cluster file has, and takes over what is in it. */
void config_add_folder(struct config *config, struct config_folder *folder);
void config_folder_release(struct config_folder *folder); /* wipes secrets */

/* The mapped folder of a path of the project, with the rest of the path: "data/voc" is folder "data", rest "voc". Takes
 * relative paths (to the current folder), absolute ones inside the project, and "." and ".." only at the beginning.
 * Behind the folder every character is the name's: "data/a//b" is "a//b", "data/voc/" is "voc/". An unknown folder is
 * -ACT_NOT_FOUND and names the folders that are mapped. */
int config_map_path(const struct config *config, const char *path, const struct config_folder **out_folder,
                    char **out_rest, struct act_error *err) ACT_NODISCARD;

/* All values as JSON: {"key.path": {"value": ..., "origin": "aux_data/aml/aml.yaml:12"}}, secrets masked as
 * "***"; the accounts as "config_param.data_folder.account.account_name" and so on. Other origins: "default",
 * "$ACT_NUM_GPU", "-p", the flag of an override. A new reference. */
json_t *config_show(const struct config *config);

/* Tells whether a key says nothing to the platform: "slurm.time" where that is ssh, or a legacy key. */
bool config_is_for_others(const struct config *config, const char *key);

/* Returns the configuration as nested JSON, for run.json; secrets masked as "***". A new reference. */
json_t *config_resolved(const struct config *config);

/* Tells whether the value of a key ("docker.image") is for this command alone: from a flag, -p or the environment. */
bool config_is_said(const struct config *config, const char *key);

/* The key of a secret ("docker.password", "account_key") that a tree of YAML holds where it is a cluster or account
 * file, or NULL. Variables of env are not looked at. */
struct yaml;
const char *config_find_secret(const struct yaml *tree);
/* Tells whether a cluster or account file has such a key at its top level. */
bool config_is_key(const char *key);
/* Tells whether the last name of such a key is that of a secret: "account_key", "password" of "docker.password". */
bool config_is_secret(const char *name);

struct config_report {
    char *cluster;            /* the one that was checked; NULL: it could not be found out which */
    char *file;               /* its file; NULL: the built-in configuration */
    char *platform;           /* NULL: it could not be read, or there is none of that name */
    struct act_strv problems; /* everything that is wrong, one line each ("file:line:column: ...") */
};
void config_report_release(struct config_report *report);
/* Checks the files of a cluster, accounts included. Returns 0 also with problems, none when all is well. Never contacts
 * a service. */
int config_check(const struct config_request *request, struct config_report *out, struct act_error *err) ACT_NODISCARD;

/* The user's settings for all projects, from the file <act_config_dir()>/config.yaml. */
struct config_user {
    char *default_cluster;         /* may be NULL */
    struct act_strv trusted_hosts; /* what an entry means is in auth/trusted.h */
};
/* Without the file everything is empty. One that others own, can write or can replace is -ACT_DENIED. */
int config_user_read(struct config_user *out, struct act_error *err) ACT_NODISCARD;
void config_user_release(struct config_user *user);
char *config_user_file(void); /* new string */
/* Checks whether that file may hold this text: else -ACT_CONFIG, and -ACT_DENIED as above. */
int config_user_check(const char *text, struct act_error *err) ACT_NODISCARD;
/* Tells whether a file, with links resolved, lies in the folder of that file: it is the user's, not a project's. */
bool config_is_users(const char *path);

/* Who gave the value of a key ("azureml.endpoint"): "aux_data/aml/aml.yaml:12", "-p", "default". New string. */
char *config_origin(const struct config *config, const char *key);

/* In this order: the image of docker.*, with its registry; the host of that registry (docker.address without scheme and
 * final slashes, else the one in the image's name, else Docker Hub's); the host that an image's name begins with (NULL:
 * none, so Docker Hub). New strings. */
char *config_docker_image(const struct config_docker *docker);
char *config_docker_registry(const struct config_docker *docker);
char *config_image_registry(const char *image);
bool config_is_docker_hub(const char *host);

/* Tells whether a text may be the name of an image: one that begins with '-' would be an option of docker's. */
bool config_is_image(const char *name);

/* Tells whether the value of a key is the user's own: from the command line, the environment, a default, a file in the
 * user's own folder, or the cluster file outside the project that AML_CONFIG_PATH names. */
bool config_is_own(const struct config *config, const char *key);
/* Tells whether the user gives it so himself: false where nobody says it (a default, a place that a run recorded). */
bool config_is_said_by_user(const struct config *config, const char *key);
/* Tells whether the account file of a row is the user's own: built in, or named by such a value and in the user's own
 * folder or outside the project. If the row is not given for this command alone, its path must be such a value too. */
bool config_account_is_own(const struct config *config, const struct config_folder *folder);
/* Like config_account(), but asks no key vault and does not report what is wrong; false: there is no account. */
bool config_account_peek(const struct config *config, const struct config_folder *folder, struct config_account *out);
/* The files that values come from and that are not the user's own: the cluster file, those that '_base_' and
 * 'aml_config' name. Absolute paths, appended unless already in out. */
void config_files(const struct config *config, struct act_strv *out);
/* The file of the value of a key, for messages. New string. */
char *config_file_of(const struct config *config, const char *key);
/* Returns a path for messages: from the project root, when it lies in it. Points into path. */
const char *config_shown_path(const struct config *config, const char *path);

/* The names of the clusters of this project and of the user ("local" last), for messages and completion. */
void config_clusters(const char *start_dir, struct act_strv *out);

/* A cluster that there is. */
struct config_named {
    char *name, *file; /* file: absolute; NULL: built-in */
    bool is_users;     /* the file is the user's, for all projects */
    bool is_hidden;    /* another one of this name comes before it, nearer to the current folder */
    bool is_default;   /* it is the one without -c */
};
struct config_listing {
    struct config_named *v;
    size_t n;
};
/* Those of the project, then the user's, then the built-in one, each sorted by name; before them the one whose file
 * only AML_CONFIG_PATH names. Reads no cluster file. */
void config_list(const char *start_dir, struct config_listing *out);
/* The same without saying which one is the default, and without that of AML_CONFIG_PATH. */
void config_list_all(const char *start_dir, struct config_listing *out);
void config_listing_release(struct config_listing *listing);
/* Returns the value of a key that holds text, of whatever platform: "slurm.login". NULL: it is not given. */
const char *config_text(const struct config *config, const char *key);
/* The files to log in with (kubeconfigs) that the cluster files of the project and the user's name, whichever cluster
 * is chosen. Absolute paths, appended unless already in out; what cannot be read names none. */
void config_login_files(const struct config *config, struct act_strv *out);

/* Where the user's own clusters are, and the file of one. New strings. */
char *config_users_clusters(void);
char *config_users_cluster_file(const char *name);
/* 'aux_data/aml/NAME.yaml' in the project of that folder (NULL: the current one). New string. */
char *config_project_cluster_file(const char *start_dir, const char *name);
/* Checks whether a new cluster may have this name: -ACT_USAGE. */
int config_check_name(const char *name, struct act_error *err) ACT_NODISCARD;

/* Where the value of a key is written: a cluster file, or the user's own settings. */
enum config_home { CONFIG_NO_KEY, CONFIG_IN_CLUSTER, CONFIG_IN_SETTINGS };
/* Returns the home of "docker.image", "env.NCCL_DEBUG", "trusted_hosts". CONFIG_NO_KEY: there is no such key, and
 * *out_near (may be NULL) is one that is meant, or NULL. */
enum config_home config_home_of(const char *key, char **out_near);
/* Tells whether the value of such a key is text, whatever it looks like. */
bool config_is_text_key(const char *key);
/* A key as the manual describes it; all texts are static. */
struct config_key_text {
    const char *path;     /* "docker.image"; a star stands for any name */
    const char *values;   /* "a|b|c", or the kind of it: "NUMBER" */
    const char *fallback; /* NULL: none */
    const char *help;
};
enum config_file { CONFIG_OWN_FILE, CONFIG_CLUSTER_FILE, CONFIG_ACCOUNT_FILE, CONFIG_USER_FILE }; /* first: act.yaml */
/* Every key of a file that is not legacy, in the order of the tables. */
void config_each_key(enum config_file file, void (*each)(void *arg, const struct config_key_text *key), void *arg);
/* The top-level keys of a cluster file that have one value: "num_gpu". */
void config_simple_keys(struct act_strv *out);

/* Returns "<folder name>-<8 hex of its whole path>": what keeps the projects of a user apart in the built-in store. New
 * string. */
char *config_built_in_prefix(const char *project_root);
/* The folders of the built-in rows. */
enum { CONFIG_BUILT_IN_FOLDERS = 2 };
extern const char *const config_built_in_folders[CONFIG_BUILT_IN_FOLDERS];

#endif
