/* kind.h - what a platform brings to the configuration: its keys, and what follows from its name in a cluster file.
 *
 * A kind is a row of the platform's own; the program gives all of them to this module when it starts
 * (config_use_kinds()). So nothing in config/ tests the name of a platform, and a new one needs no change here. */
#ifndef ACT_CONFIG_KIND_H
#define ACT_CONFIG_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct config;
struct config_report;
struct config_request;
struct yaml;

/* ---- keys */

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
    CONFIG_MAP_FILE, /* the same, or the name of a JSON file that holds them */
    CONFIG_MAP_INT,  /* the same, or a number, which layers.c makes a map of */
    CONFIG_MAP_NONE, /* the same, or "none", which layers.c makes a map of */
    CONFIG_ANY,      /* legacy: accepted in silence, not read */
};

#define CONFIG_NOWHERE ((size_t)-1)

/* What the text of a key must look like. */
struct config_form {
    const char *wanted;  /* "a duration such as 90s" */
    const char *pattern; /* a regular expression for the same, for JSON Schemas */
    bool takes_numbers;  /* YAML's numbers fit, too */
    bool (*fits)(const char *text);
    /* Returns what a text that does not fit may mean, a new string, or NULL. May be NULL. */
    char *(*readings)(const char *text);
};
/* Durations with a unit, in one of which "0" is one; quantities of Kubernetes. */
extern const struct config_form config_duration, config_duration_or_zero, config_quantity;

struct config_key {
    const char *path; /* "docker.image"; "config_param.*.path" for every row of config_param */
    enum config_type type;
    size_t offset;        /* in the struct that holds it; CONFIG_NOWHERE: none does */
    const char *fallback; /* as text; NULL: none */
    const char *choices;  /* CONFIG_CHOICE: "a|b|c" */
    int64_t min;          /* CONFIG_INT, CONFIG_INTS */
    int64_t max;          /* CONFIG_INT; 0: what any number may be */
    bool secret;
    bool in_project; /* CONFIG_PROJECT_FILE may have it: it says what commands need, and not where they run */
    const struct config_form *form; /* CONFIG_TEXT: what it must look like; NULL: anything */
    const char *instead;            /* legacy spelling: what says the same today */
    const char *help;
};

/* One thing that is wrong with a configuration, or only doubtful. */
struct config_finding {
    bool is_problem;
    char *file; /* NULL: it has no place */
    int line, column;
    char *text; /* one line, which begins with the place */
};
struct config_findings {
    struct config_finding *v;
    size_t n;
};
/* Add a finding about the value at, whose place the message begins with. */
void config_problem(struct config_findings *f, const struct yaml *at, const char *fmt, ...) ACT_PRINTF(3, 4);
void config_doubt(struct config_findings *f, const struct yaml *at, const char *fmt, ...) ACT_PRINTF(3, 4);
/* Tells whether a problem was found at a key such as "docker.image", or at what it is in. */
bool config_is_faulty(const struct config *config, const char *key, const struct config_findings *f);
/* Returns the value of "docker.image" as the files, the environment or the command line have it, or NULL. */
const struct yaml *config_value(const struct config *config, const char *key);
/* A problem unless value is given: the platform needs the key. */
void config_need(const struct config *config, const char *key, const char *value, struct config_findings *f);
/* Makes a path that a key names absolute: "~/" is the home folder, others are below the project. *path may be NULL. */
void config_make_absolute(const struct config *config, char **path);

/* Does what config_check() does, and has more() (may be NULL) add what else is wrong with what was read. */
int config_check_more(const struct config_request *request,
                      void (*more)(const struct config *config, struct config_findings *f), struct config_report *out,
                      struct act_error *err) ACT_NODISCARD;

/* ---- parts */

/* A map at the top level of a cluster file, and the struct that holds its values. Platforms may share one. */
struct config_part {
    const char *name;              /* "slurm" */
    const struct config_key *keys; /* the map's own row, then its members ("slurm.login"); ends with a NULL path */
    size_t size;                   /* of the struct that the offsets are in */
    /* Completes the values, and says what is wrong with them. May be NULL. */
    void (*check)(struct config *config, struct config_findings *f);
};

/* The values of a part in a configuration. One that was not loaded, as tests make them, has zeros for a part that it
 * lacks; those must not be written to. */
void *config_part(const struct config *config, const struct config_part *part);

/* ---- kinds */

struct config_kind {
    const char *name;                       /* "slurm", the value of 'platform' */
    const struct config_part *const *parts; /* up to NULL; NULL: none */

    /* It is the platform of a cluster file that names none; of the built-in cluster, which has no file; of a file in
     * which this legacy key is true. */
    bool is_default, is_built_in;
    const char *legacy_flag;
    /* It counts the GPUs of its nodes itself: gpu_per_node has no default. */
    bool counts_gpus;

    /* Clusters have a store by themselves, for the code at least. */
    bool has_store;
    /* ... which runs see, so that folders are in it as well. */
    bool runs_see_store;
    /* The key of the folder in which this store is, and its default; but in the user's own folder, and not seen by
     * runs, where a login node is named by the other key. NULL: always in the user's own folder. */
    const char *root_key, *root_fallback, *login_key;
    /* Without a store of their own, clusters have code and folders in the account that the file names at its top. */
    bool has_account;

    /* Folders may be in a place that the nodes have already (mode: path), or on claims (pvc:NAME). */
    bool has_places, has_claims;
    /* The key 'mount' says what mounts folders on the nodes. */
    bool has_mount;
    /* The key of a file with which one logs in, or NULL. */
    const char *login_file_key;

    /* Says what runs need that is not given, for 'a config check'. May be NULL. */
    void (*check)(const struct config *config, struct config_findings *f);
};

/* Makes these the kinds that there are, up to NULL: before any configuration is read, once. */
void config_use_kinds(const struct config_kind *const *kinds);

#endif
