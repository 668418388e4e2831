/* platform.h - where runs execute, behind one interface: this machine, Slurm, Azure Machine Learning,
 * Kubernetes.
 *
 * A platform is a folder and a row of the table in table.c, and passes tests/conformance/platform_test.c. Callers never
 * test its name: its differences are members of its row. It never uploads anything: packages are handed to it as data.
 */
#ifndef ACT_PLATFORM_PLATFORM_H
#define ACT_PLATFORM_PLATFORM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "config/kind.h"
#include "proc/environment.h"
#include "run/run.h"

struct platform;
struct platform_clusters_ops;
struct services;
struct site;
struct store;

/* What one node offers. */
struct platform_limits {
    int gpu_per_node; /* GPUs, or what counts as such: the processors on "local" without GPUs */
    int num_gpu;      /* the default if the user gives no number */
    int max_nodes;    /* 0: not known */
    bool has_gpus;
};

/* A node of a run. */
struct platform_node {
    char *name;
    char *state; /* the platform's own word: "running", "down", ... */
    int rank;    /* node rank, from 0 */
    int first_rank, n_ranks;
    int gpus;
    char *gpu_ids; /* "0,1", as the node numbers them; NULL: not known */
    char *address; /* as the platform tells it: an IP address, or a name; NULL: it does not */
    int port;      /* of ssh at that address; 0: not told */
};
struct platform_nodes {
    struct platform_node *v;
    size_t n;
};
void platform_nodes_release(struct platform_nodes *nodes);

/* The load of a cluster, or of a part of it (a partition). */
struct platform_pool {
    char *name;
    bool is_default;                               /* where runs of this configuration go */
    int nodes, nodes_idle, nodes_busy, nodes_down; /* busy: at least a part of it is in use; -1: not known */
    int gpus, gpus_idle, gpus_busy, gpus_down;     /* -1: not known */
    int jobs_running, jobs_queued;                 /* of all users; -1: not known */
    int gpus_queued;                               /* requested by queued jobs; -1: not known */
};
/* The number of nodes in a state, which is the platform's own word. */
struct platform_node_count {
    const char *state; /* not owned */
    int n;
};
struct platform_summary {
    struct platform_pool total; /* each node once */
    struct platform_node_count node_states[8];
    size_t n_node_states; /* 0: no counts besides those of the pools */
    struct platform_pool *pools;
    size_t n_pools;
    bool has_gpus; /* else processors are counted as GPUs */
    bool has_load; /* a single machine: its load average over the last minute */
    double load;
};
void platform_summary_release(struct platform_summary *summary);

/* A job of any user on the cluster. */
struct platform_job {
    char *id; /* the platform's */
    char *user;
    char *name;
    char *experiment;  /* may be NULL, as on platforms without experiments */
    char *nodes_text;  /* where it runs: nodes, "n[1-2]", or the name of a compute */
    int64_t running_s; /* -1: not known */
    int64_t limit_s;   /* 0: none, or not known */
    int nodes, gpus;   /* -1: not known; gpus also where there are none */
};
struct platform_jobs {
    struct platform_job *v;
    size_t n;
};
void platform_jobs_release(struct platform_jobs *jobs);

/* The result of checking one thing that runs need. */
struct platform_finding {
    bool ok;
    char *what; /* "mpirun" */
    char *text; /* what was found, or what is wrong and what to do */
};
struct platform_findings {
    struct platform_finding *v;
    size_t n;
};
void platform_findings_add(struct platform_findings *findings, bool ok, const char *what, const char *fmt, ...)
    ACT_PRINTF(4, 5);
void platform_findings_release(struct platform_findings *findings);

/* A run as the platform itself lists it. */
struct platform_run {
    char *id;
    char *name;           /* its display name on the service's web pages */
    char *cluster;        /* the cluster that it was submitted to; for another tool's run, the compute */
    char *title;          /* as in struct run_spec */
    char *label, *tags;   /* its name, and its tags by run_tags_line(), as in struct run_spec; may be NULL */
    struct act_strv argv; /* empty: not known, as for a run submitted by another tool */
    int64_t created_unix_s;
    int num_gpu;
    struct run_status status;
    bool is_partial; /* the status lacks its times and reasons: status() has them */
};
struct platform_runs {
    struct platform_run *v;
    size_t n;
};
void platform_runs_release(struct platform_runs *runs);

/* What ACT has put there: bytes are 0 where nobody tells them. */
struct platform_kept {
    uint64_t bytes;
    size_t n;
};

struct platform_submission {
    const struct run_spec *spec;
    const char *package; /* local path of the package, verified; NULL for a run without code */
    const char *stores;  /* for RUN_FILE_STORES, secret; NULL: none. Not needed if the nodes see the project */
    /* Keys of the agent and run.json (without secrets) in the package's store, if the nodes fetch them; else NULL. */
    const char *agent_key, *spec_key;
    /* URLs to read them and the package without any other credential, secret; NULL: the nodes read them from the
     * store. */
    const char *agent_url, *spec_url, *package_url;
    /* Set just before the request to start the run: after a later failure it may be unknown whether the platform has
     * the run; after an earlier one it certainly has not. May be NULL for callers, never for the platforms'
     * submit(). */
    bool *asked;
};

/* Several runs that differ in id, name, tags and command. Their ids are of one row, one after another
 * (run_id_in_row()). */
struct platform_several {
    struct platform_submission submission;
    size_t n;
    void (*turn)(void *arg, size_t i); /* makes the submission's spec that of the i-th run */
    void *arg;
    int max_parallel; /* so many of them run at once; 0: no limit */
};

/* Settings that come only from the run's job file, not from its cluster file. */
struct platform_asked {
    bool time_limit, shm_size;
};

/* A configuration value that leads somewhere: no project may set it without the user's consent. */
struct platform_reach {
    enum {
        PLATFORM_HOST,   /* a host that gets requests, perhaps with credentials */
        PLATFORM_FOLDER, /* a folder that is written to */
        PLATFORM_LOGIN,  /* where to log in and what is done there: all of these belong together */
    } kind;
    const char *key; /* "slurm.login" */
    char *value;     /* NULL: not given */
    bool in_words;   /* the value says what the key leads to: "the program 'x', which logs in" */
};
struct platform_reaches {
    struct platform_reach *v;
    size_t n;
};
void platform_reaches_release(struct platform_reaches *reaches);

/* A command on a node: what is to be executed for it, or it has run already. */
struct platform_shell {
    struct act_strv argv;     /* empty: it has run, with the input and output of this process */
    enum environment_of sees; /* of this process's environment */
    int status;               /* without argv: its exit status */
};
void platform_shell_release(struct platform_shell *shell);

/* A platform: its properties, which callers test instead of its name; how it interprets a configuration, without
 * contacting any host; and its operations. Call them through the wrappers below, which handle those that are NULL. */
struct platform_row {
    const struct config_kind *kind; /* its name, and what it brings to a cluster file */

    /* It is this machine: one place whatever its clusters are called, and runs see its PATH and the project. */
    bool is_here;
    /* Every query and every submission is a request to a service: it takes time, and its response can be lost. */
    bool answers_by_request;
    /* The agent of a run records which rank failed, and why; else only the ranks themselves report it, in their
     * logs. */
    bool keeps_record;
    /* It keeps a list of its runs, submitted by any machine or tool, with their display names: recent(). */
    bool keeps_list;
    /* Its nodes fetch package, agent and run.json from the store of the code; else submit() gets the package and copies
     * it to them. */
    bool nodes_fetch;
    /* The nodes of a run share the run's folder. */
    bool nodes_share_folder;
    /* The agent mounts folders of Blob Storage there (act-node, node/mount.h); else the platform does. */
    bool agent_mounts;
    /* Its nodes share no folder, and go with what they have printed: they send their logs to the store of the code, if
     * that is Blob Storage (run_spec.logs_path). */
    bool nodes_send_logs;
    /* Packages of more bytes are not handed over if the nodes can fetch them there, too; 0: all are. */
    int64_t package_most;
    /* A shell can be opened on a node by its address, whatever runs there. */
    bool nodes_have_addresses;
    /* Deleting a run there ends it and leaves no trace: one that it had and does not know any more is cancelled. */
    bool deletion_ends;
    /* For so long it knows a run that has ended; 0: for ever, as far as is known. */
    int64_t kept_s;
    /* A run has begun when its first attempt did, of which the platform may know nothing any more. */
    bool begins_once;
    /* Its runs can change their size. */
    bool is_elastic;
    /* The agent of a run can begin another attempt after one that failed (run_spec.retry_times). */
    bool tries_again;
    /* ... and on other nodes. */
    bool tries_elsewhere;
    /* Its nodes log in to an image's registry with docker.*; else with their own settings. */
    bool logs_in_to_registry;

    /* The place that a configuration refers to, in words: "'/home/u/.act' on u@login". Clusters in the same place know
     * the same runs, and what may be written in several ways is written in one. New string. NULL: it cannot be told. */
    char *(*place)(const struct config *config);
    /* Which part of the place a configuration is for, where summary() and recent() are of a part. New string. NULL:
     * they are of the whole. */
    char *(*part)(const struct config *config);
    /* The keys, up to NULL, without whose values open() does not find the runs of a place. A run writes them down, and
     * is found by them alone: its cluster file may be deleted or changed. None of them is secret. */
    const char *const *place_keys;
    /* Completes the values of these keys, in a configuration as config_resolved() has it, with what is chosen elsewhere
     * and may be another place tomorrow. NULL: there is nothing of the kind. */
    void (*record_place)(const struct config *config, json_t *resolved);
    /* Whether the nodes see this machine's project, for a folder of the configuration. NULL: they do not. */
    bool (*sees_project)(const struct config *config, const struct config_folder *folder);
    /* Whether runs use docker.image if it is set. NULL: they never do. */
    bool (*runs_images)(const struct config *config);
    /* Adds the configuration values that lead somewhere to out. May be NULL. */
    void (*reach)(const struct config *config, struct platform_reaches *out);
    /* The platform's name for the store of a folder with its credential, for stores that only a run's job file
     * describes. New string. NULL: it has no such names. */
    char *(*datastore)(const struct config_folder *folder, const struct config_account *account);
    /* Set the time limit of a run, and the size of its /dev/shm, in the platform's part of the configuration. NULL: it
     * has no such setting. */
    void (*set_time_limit)(struct config *config, int64_t seconds);
    void (*set_shm_size)(struct config *config, const char *size);
    const char *time_limit_key, *shm_size_key; /* what they set */
    /* The time limit of runs, where the platform ends them; 0: none. NULL: it is not known before a run. */
    int64_t (*time_limit_s)(const struct config *config);
    /* Fills in the platform's part of a run's specification. May be NULL. */
    void (*describe)(const struct config *config, const struct platform_asked *asked, struct run_spec *spec);
    /* Restores in the configuration what describe() recorded of the repeated run, unless this command overrides it. May
     * be NULL. */
    void (*repeat)(struct config *config, const struct run_spec *old);
    /* The setting that names the image of runs, and the key that may name it beside docker.image. NULL: docker.image
     * alone. */
    char **(*image)(struct config *config);
    const char *image_key;

    int (*open)(const struct config *config, struct platform **out, struct act_error *err);
    /* What this platform's nodes offer, from config where the platform cannot tell. */
    int (*limits)(struct platform *p, struct platform_limits *out, struct act_error *err);
    /* Whether the platform's part of the configuration is valid for such a run, without contacting any host. May be
     * NULL: check() finds out. */
    int (*check_settings)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Whether such a run could start here; called after that, before anything is uploaded for it. The package may not
     * be known yet. May be NULL: submit() will find out. */
    int (*check)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Whether the package of a run, of spec->package_bytes, can get to its nodes; asked before it is stored. May be
     * NULL: any can. */
    int (*check_package)(const struct run_spec *spec, struct act_error *err);
    /* What submit() would hand over, as the platform's own tools take it, secrets masked; nothing is done. A new
     * reference. May be NULL: run.json says it all. */
    int (*preview)(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err);
    /* For a cluster with a store that this machine does not see: *out_store is its absolute path there, a new string,
     * or NULL if there is none; out_there[i]: whether it has the folder paths[i]. May be NULL. */
    int (*own_folders)(struct platform *p, const char *const *paths, size_t n, bool *out_there, char **out_store,
                       struct act_error *err);
    /* Makes what the runs there share and such a run needs; called before the run is written down, and refused without
     * a trace. A second call changes nothing. May be NULL: there is nothing of the kind. */
    int (*prepare)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Starts or queues a run. Idempotent: a second call with the same id succeeds and changes nothing. Returns when the
     * platform has the run. One that cannot let it wait for the runs of spec->after begins it at once. */
    int (*submit)(struct platform *p, const struct platform_submission *submission, struct act_error *err);
    /* Likewise for several, all or none, as one thing of the platform's that also sees to max_parallel; they begin when
     * all that the runs of spec->after were submitted with have ended. NULL: it has nothing of the kind. */
    int (*submit_several)(struct platform *p, const struct platform_several *several, struct act_error *err);
    /* How many runs submit_several() takes at most, and of what numbers: they are less. 1: none here. */
    int (*most_together)(struct platform *p);
    /* The status of n runs at once, out[n]. An id unknown to the platform is no error, but RUN_UNKNOWN without a
     * reason; RUN_UNKNOWN with a reason is a run whose state this version does not know. */
    int (*status)(struct platform *p, const char *const *ids, size_t n, struct run_status *out, struct act_error *err);
    /* Whether status() may say something else than it did the last time. From the first call on the platform keeps up
     * itself, while the loop runs, with whatever status() and the logs of its runs ask for, and sets *news when that is
     * new. news NULL: nobody wants to know any more. The member NULL: it has to be asked again and again. */
    bool (*watch)(struct platform *p, bool *news);
    /* Cancels a run. If it has already ended: success, *out_was_final true. Returns when the run has ended, or the
     * platform has accepted the request. */
    int (*abort)(struct platform *p, const char *id, bool *out_was_final, struct act_error *err);
    /* The names of all nodes that a run of spec could be placed on today, busy ones included. NULL: it cannot keep a
     * run off a node (run_spec.avoid). */
    int (*usable_nodes)(struct platform *p, const struct run_spec *spec, struct act_strv *out, struct act_error *err);
    /* Changes the number of nodes of an elastic run that has not ended, within its range; returns when the platform has
     * accepted it. dry_run: all but that request. NULL: the runs there have fixed sizes. */
    int (*scale)(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err);
    /* The logs of a run as a store; store.h says what it can. Those of the last attempt have plain names, those of
     * earlier ones are below "attempts/<n>/". ended: the run's state is final. Contacts no host; for an unknown run,
     * and a log that does not exist (yet), its calls say -ACT_NOT_FOUND. The caller frees it, before the platform. */
    struct store *(*open_logs)(struct platform *p, const char *id, bool ended);
    /* Where the folders of its runs are, for platforms whose runs are folders. NULL: they are not. */
    int (*site)(struct platform *p, struct site **out, struct act_error *err);
    /* Removes what it has of a run that has ended; one that it does not have any more is success. NULL: that is the
     * folder on its site, or without one it keeps its runs itself. */
    int (*remove)(struct platform *p, const char *id, struct act_error *err);
    /* Removes the agents of other versions that are older and that no run there needs; dry_run: they are only counted.
     * NULL: those on its site, or without one it has none. */
    int (*remove_agents)(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                         struct act_error *err);
    /* The URL of a run's web page; contacts no host. New string. May be NULL. */
    char *(*page)(struct platform *p, const char *id);
    /* The run.json of a run that this machine's ledger does not know. May be NULL. */
    int (*spec)(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
    /* The ids of all runs known to the platform. May be NULL. */
    int (*list)(struct platform *p, struct act_strv *out_ids, struct act_error *err);
    /* The platform's runs, submitted from any machine, in this state (NULL: any), newest first, at most max (0: all),
     * with their status. May be NULL: only the ledger lists runs. */
    int (*recent)(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                  struct act_error *err);
    /* The nodes of a run that is running or has run; none while it waits. May be NULL. */
    int (*nodes)(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
    /* Runs command on a node of a running run, in its code root; command empty: an interactive shell. *out
     * says whether it has run. node NULL: the first. Without a terminal of the caller, the command gets none
     * either. If ssh leads to the machine instead of the run's container, there is no code root, and the command runs
     * in the home folder. With nodes_have_addresses, id NULL: node is an address, and whatever runs there does not
     * matter. May be NULL. */
    int (*shell)(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                 struct platform_shell *out, struct act_error *err);
    /* May be NULL. */
    int (*summary)(struct platform *p, struct platform_summary *out, struct act_error *err);
    /* All users' running jobs, the longest-running first; for a workspace, those on all its computes. May be NULL. */
    int (*jobs)(struct platform *p, struct platform_jobs *out, struct act_error *err);
    /* Checks that everything runs need is there; a failed check is a finding too. May be NULL. */
    void (*examine)(struct platform *p, struct platform_findings *findings);
    /* With agent_mounts: which of the tools that mount folders its nodes have; wanted: the only one that may be used,
     * or NULL. May be NULL. */
    void (*examine_mounts)(struct platform *p, const char *wanted, struct platform_findings *findings);
    /* Operations on the clusters that it can create, change and delete: see clusters.h. NULL: it has none. */
    const struct platform_clusters_ops *clusters;
    void (*close)(struct platform *p);
};

/* Makes the keys of all platforms known, before any configuration is read. */
void platform_begin(void);

/* The row of a platform; for a name that this version does not support, a row without properties that cannot be
 * opened. */
const struct platform_row *platform_find(const char *name);
/* Whether the nodes of such a run fetch its package from the store that their logs go to. */
bool platform_nodes_fetch_package(const struct platform_row *row, const struct run_spec *spec);
/* The row of the platform that is this machine. */
const struct platform_row *platform_here(void);
const struct platform_row *platform_row(const struct platform *p);
/* The configuration values that lead somewhere, whichever platform uses them. */
void platform_reach(const struct config *config, struct platform_reaches *out);
void platform_reaches_add(struct platform_reaches *reaches, int kind, const char *key, const char *value);

/* The setting that names the image of runs. Points into config. */
char **platform_image(struct config *config);
/* Whether this command itself names it: what it says beats what a job file or an earlier run says, and that beats the
 * cluster file. */
bool platform_image_is_said(const struct config *config);

/* Opens the platform of a cluster. services (shared by the whole command) and config must outlive it. A platform that
 * this version does not support: -ACT_CONFIG. */
int platform_open(struct services *services, const struct config *config, struct platform **out,
                  struct act_error *err) ACT_NODISCARD;
void platform_free(struct platform *p);

/* Wrappers: they supply the error text for what a platform cannot do. */
int platform_limits(struct platform *p, struct platform_limits *out, struct act_error *err) ACT_NODISCARD;
int platform_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* With those of the settings. */
int platform_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* *out is NULL if there is nothing but run.json to show. */
int platform_preview(struct platform *p, const struct run_spec *spec, json_t **out,
                     struct act_error *err) ACT_NODISCARD;
int platform_own_folders(struct platform *p, const char *const *paths, size_t n, bool *out_there, char **out_store,
                         struct act_error *err) ACT_NODISCARD;
int platform_prepare(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int platform_submit(struct platform *p, const struct platform_submission *submission,
                    struct act_error *err) ACT_NODISCARD;
int platform_submit_several(struct platform *p, const struct platform_several *several,
                            struct act_error *err) ACT_NODISCARD;
/* 1: runs are submitted one by one. */
int platform_most_together(struct platform *p);
int platform_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                    struct act_error *err) ACT_NODISCARD;
/* Always, on platforms that have to be asked. */
bool platform_watch(struct platform *p, bool *news);
int platform_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err) ACT_NODISCARD;
int platform_scale(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err) ACT_NODISCARD;
struct store *platform_open_logs(struct platform *p, const char *id, bool ended);
char *platform_page(struct platform *p, const char *id); /* NULL: none */
int platform_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err) ACT_NODISCARD;
int platform_list(struct platform *p, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;
/* Empty for platforms without a list of their own. */
int platform_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                    struct act_error *err) ACT_NODISCARD;
int platform_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err) ACT_NODISCARD;
int platform_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                   struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
int platform_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int platform_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
void platform_examine(struct platform *p, struct platform_findings *findings); /* adds to findings */
void platform_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings);

/* ---- keep.c: what ACT has put on a platform, and removing it */

/* Whether platform_remove() can do anything there. */
bool platform_can_remove(const struct platform *p);
/* The bytes that the folder of a run takes up, 0 where it has none. *out_others: it is another user's. */
int platform_size(struct platform *p, const char *id, uint64_t *out_bytes, bool *out_others,
                  struct act_error *err) ACT_NODISCARD;
int platform_remove(struct platform *p, const char *id, struct act_error *err) ACT_NODISCARD;

/* The packages of this user there that no folder of a run there refers to, whose ever it is, but for the runs of going.
 * is_old: they came there so long ago. */
struct platform_package {
    char *sha256;
    uint64_t bytes;
    bool is_old;
};
struct platform_packages {
    struct platform_package *v;
    size_t n;
    bool unknown; /* a folder of a run cannot be read, so that any may be needed: there are none */
};
int platform_unused_packages(struct platform *p, int64_t older_s, const struct act_strv *going,
                             struct platform_packages *out, struct act_error *err) ACT_NODISCARD;
void platform_packages_release(struct platform_packages *packages);
/* Removes a package that was brought there and is this user's. dry_run: it is only measured. */
int platform_remove_package(struct platform *p, const char *sha256, bool dry_run, struct platform_kept *out,
                            struct act_error *err) ACT_NODISCARD;
/* The agents of other versions that this user brought there and that are older; none while a run there, whose ever it
 * is, has not ended. *out_busy: so it is. Where runs are no folders, those that no run needs, whoever brought them. */
int platform_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out, bool *out_busy,
                           struct act_error *err) ACT_NODISCARD;
/* What commands of this user that were killed have left there, and it is removed. dry_run: it is only measured. */
int platform_clear(struct platform *p, bool dry_run, struct platform_kept *out, struct act_error *err) ACT_NODISCARD;
/* What is there of this user's. Nothing on a platform without a site. */
struct platform_keeps {
    struct platform_kept runs, packages, agents, left;
    char *where; /* new string; NULL: it keeps nothing */
};
int platform_keeps(struct platform *p, struct platform_keeps *out, struct act_error *err) ACT_NODISCARD;

#endif
