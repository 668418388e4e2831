/* row.h - a platform as a row: what it is, what it makes of a configuration, and what it can do, in groups.
 *
 * Callers test the members of "about" instead of a platform's name. They call the functions through the wrappers of
 * platform.h, which say what a platform cannot do where a function is NULL; "may be NULL" below says what that means.
 * All functions run on the thread of the platform's loop. Functions that return int return 0, or the negative of an
 * enum act_code with *err set. */
#ifndef ACT_PLATFORM_ROW_H
#define ACT_PLATFORM_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/run.h"

struct config;
struct config_account;
struct config_folder;
struct config_kind;
struct platform;
struct platform_asked;
struct platform_clusters_ops;
struct platform_end;
struct platform_findings;
struct platform_gpus;
struct platform_jobs;
struct platform_kept;
struct platform_limits;
struct platform_nodes;
struct platform_reaches;
struct platform_runs;
struct platform_setup_ops;
struct platform_several;
struct platform_shell;
struct platform_submission;
struct platform_summary;
struct platform_trial;
struct site;
struct store;

/* The nature of a platform. */
struct platform_about {
    /* It is this machine: one place whatever its clusters are called, and runs see its PATH and the project. */
    bool is_here;
    /* runs.status() needs nothing that platforms share (loop, HTTP, tokens): several may be asked at once. */
    bool asked_apart;
    /* Every query and every submission is a request to a service: it takes time, and its response can be lost. */
    bool answers_by_request;
    /* The agent of a run records which rank failed, and why; else only the ranks themselves report it, in their
     * logs. */
    bool keeps_record;
    /* It lists its runs, submitted by any machine or tool, with their display names: runs.recent(). */
    bool keeps_list;
    /* Its nodes fetch package, agent and run.json from the store of the code; else submit.one() gets the package and
     * copies it to them. */
    bool nodes_fetch;
    /* The nodes of a run share the run's folder; but a run over several nodes_apart has one on each of them, and what
     * they keep is read as if it were one. */
    bool nodes_share_folder, nodes_apart;
    /* The agent mounts folders of Blob Storage on the nodes (act-node, node/mount.h); else the platform does. */
    bool agent_mounts;
    /* Its nodes share no folder, and go with what they have printed: they send their logs to the store of the code, if
     * that is Blob Storage (run_spec.logs_path). */
    bool nodes_send_logs;
    /* Packages of more bytes are not handed over if the nodes can fetch them there, too; 0: all are. */
    int64_t package_most;
    /* A shell can be opened on a node by its address, whatever runs there. */
    bool nodes_have_addresses;
    /* Deleting a run there ends it and leaves no trace: a run that it had and does not know any more is canceled. */
    bool deletion_ends;
    /* It knows a run that has ended for so many seconds; 0: for ever, as far as is known. */
    int64_t kept_s;
    /* A run has begun when its first attempt did, of which the platform may know nothing any more. */
    bool begins_once;
    /* Its runs can change their size. */
    bool is_elastic;
    /* Somebody there starts a run when others have ended (run_spec.needs). */
    bool runs_after;
    /* The agent of a run can begin another attempt after one that failed (run_spec.retry_times). */
    bool tries_again;
    /* ... and on other nodes. */
    bool tries_elsewhere;
    /* A run can be a part of the job in which it is submitted ('a submit --here', slurm.here). */
    bool runs_in_jobs;
    /* Its nodes log in to an image's registry with docker.*; else with their own settings. */
    bool logs_in_to_registry;
    /* A login node can make the environment of a run for its nodes, before it is queued (RUN_MAKES_LOGIN). */
    bool has_login_node;
};

/* The place that a configuration refers to. Nothing here contacts a host. */
struct platform_place {
    /* Returns the place in words, a new string: "'/home/u/.act' on u@login". Clusters in the same place know the same
     * runs, and a place that may be written in several ways has one of them. NULL: it cannot be told. */
    char *(*words)(const struct config *config);
    /* Tells whether where, a place in words, is one of several that the configuration leads to. May be NULL: it leads
     * to one. */
    bool (*has)(const struct config *config, const char *where);
    /* Returns the part of the place that the configuration is for, a new string, where nodes.summary() and
     * runs.recent() are about a part. May be NULL: they are about the whole. */
    char *(*part)(const struct config *config);
    /* The keys, up to NULL, without whose values open() does not find the runs of a place. A run writes them down, and
     * is found by them alone: its cluster file may be deleted or changed. None of them is secret. */
    const char *const *keys;
    /* Completes the values of these keys in resolved, which is what config_resolved() gave, by what is chosen elsewhere
     * and may be another place tomorrow. May be NULL: there is nothing of the kind. */
    void (*record)(const struct config *config, json_t *resolved);
    /* Sets where the folders are that the nodes see, if that is a login node or a machine behind ssh, and the root of
     * runs there; both are those of config. Returns whether it is. May be NULL: it is not. */
    bool (*login)(const struct config *config, const char **out_login, const char **out_root);
    /* Tells whether the nodes see folder, a folder of this machine's project. May be NULL: they do not. */
    bool (*sees_project)(const struct config *config, const struct config_folder *folder);
};

/* The other keys of a configuration as a platform reads them. Nothing here contacts a host. */
struct platform_settings {
    /* Tells whether runs use docker.image if it is set. May be NULL: they never do. */
    bool (*runs_images)(const struct config *config);
    /* Adds the values that lead somewhere to out. May be NULL. */
    void (*reach)(const struct config *config, struct platform_reaches *out);
    /* Returns the platform's name for the store of folder with the credential of account, a new string, for stores that
     * only a run's job file describes. May be NULL: it has no such names. */
    char *(*datastore)(const struct config_folder *folder, const struct config_account *account);
    /* The time limit of runs. */
    struct {
        const char *key;                                     /* "slurm.time" */
        void (*set)(struct config *config, int64_t seconds); /* may be NULL: there is no such setting */
        int64_t (*get)(const struct config *config);         /* in seconds, 0: none; NULL: unknown before a run */
    } time_limit;
    /* The size of /dev/shm. */
    struct {
        const char *key;
        void (*set)(struct config *config, const char *size); /* may be NULL: there is no such setting */
    } shm_size;
    /* The image of runs. */
    struct {
        const char *key;                     /* names it beside docker.image; NULL: that one alone does */
        char **(*at)(struct config *config); /* the setting that names it; NULL: docker.image */
    } image;
    /* Fills in the platform's part of a run's specification. May be NULL. */
    void (*describe)(const struct config *config, const struct platform_asked *asked, struct run_spec *spec);
    /* Restores in the configuration what describe() recorded of the run that is repeated, unless this command
     * overrides it. May be NULL. */
    void (*repeat)(struct config *config, const struct run_spec *old);
};

/* From a specification to a run. */
struct platform_submit {
    /* Refuses a run for which the platform's part of the configuration is not valid; contacts no host. May be NULL:
     * check() finds out. */
    int (*check_settings)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Refuses a run that could not start here; called after that, before anything is uploaded for it. The package may
     * not be known yet. May be NULL: one() will find out. */
    int (*check)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Refuses a package, of spec->package_bytes, that cannot get to the nodes; called before it is stored. May be NULL:
     * any can. */
    int (*check_package)(const struct run_spec *spec, struct act_error *err);
    /* Sets *out, a new reference, to what one() would hand over, as the platform's own tools take it, secrets masked;
     * does nothing else. May be NULL: run.json says it all. */
    int (*preview)(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err);
    /* For a cluster with a store that this machine does not see: sets *out_store to its absolute path there, a new
     * string, or NULL if there is none, and out_there[i] to whether it has the folder paths[i]. May be NULL. */
    int (*own_folders)(struct platform *p, const char *const *paths, size_t n, bool *out_there, char **out_store,
                       struct act_error *err);
    /* Writes the place of a run into spec->config, as the values of place.keys: where it is; for one that is about to
     * be submitted, where that will be. May be NULL: a configuration leads to one place. */
    int (*settle)(struct platform *p, struct run_spec *spec, struct act_error *err);
    /* Makes what the runs there share and such a run needs, and may note in spec which that is; package is as in
     * platform_submission. Called before the run is written down, and leaves no trace where it refuses. A second call
     * changes nothing. May be NULL: there is nothing of the kind. */
    int (*prepare)(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err);
    /* Starts or queues a run, and returns when the platform has it. A second call with the same id succeeds and changes
     * nothing. A platform that cannot let it wait for the runs of spec->after begins it at once; with about.runs_after,
     * it waits for those of spec->needs, and ends as canceled if one does not complete. */
    int (*one)(struct platform *p, const struct platform_submission *submission, struct act_error *err);
    /* Starts or queues several runs, all or none, as one thing of the platform's that also sees to max_parallel; they
     * begin when all that the runs of spec->after were submitted with have ended. May be NULL: there is nothing of the
     * kind. */
    int (*several)(struct platform *p, const struct platform_several *several, struct act_error *err);
    /* Returns the most runs that several() takes, whose numbers are also less than that; 1: none here. Set if several()
     * is. */
    int (*most_together)(struct platform *p);
};

/* Runs that the platform has. */
struct platform_runs_ops {
    /* Sets out[n] to the status of n runs at once. An id unknown to the platform is no error, but RUN_UNKNOWN without a
     * reason; RUN_UNKNOWN with a reason is a run whose state this version does not know. */
    int (*status)(struct platform *p, const char *const *ids, size_t n, struct run_status *out, struct act_error *err);
    /* Tells whether status() may say something else than it did the last time. From the first call on the platform
     * keeps up by itself, while the loop runs, with whatever status() and the logs of its runs ask for, and sets *news
     * when that is new; news NULL: nobody wants to know any more. May be NULL: it has to be asked again and again. */
    bool (*watch)(struct platform *p, bool *news);
    /* Cancels n runs, and returns when they have ended or the platform has accepted the requests; it tells all to end
     * before it waits for any. Their ids may be those of runs. Sets all but the id of each end: one that had ended
     * already is a success, with was_final. */
    void (*abort)(struct platform *p, struct platform_end *ends, size_t n);
    /* abort() waits until they have ended. It needs nothing that platforms share (loop, HTTP, tokens): several may be
     * at it at once. */
    bool abort_waits;
    /* Changes the number of nodes of an elastic run that has not ended, within its range, and returns when the platform
     * has accepted it. dry_run: all but that request. May be NULL: runs there have fixed sizes. */
    int (*scale)(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err);
    /* Asks for the list of the logs of a run ahead, with their ends or without, where each question is a round trip.
     * May be NULL: there is nothing of the kind. */
    int (*expect_logs)(struct platform *p, const char *id, bool with_ends, struct act_error *err);
    /* Returns the logs of a run as a store, which the caller frees before the platform; store.h says what it can. Those
     * of the last attempt have plain names, those of earlier ones are below "attempts/<n>/". ended: the run's state is
     * final. Contacts no host; for an unknown run, and a log that does not exist (yet), its calls fail with
     * -ACT_NOT_FOUND. */
    struct store *(*open_logs)(struct platform *p, const char *id, bool ended);
    /* Returns the URL of a run's web page, a new string; contacts no host. May be NULL: there are none. */
    char *(*page)(struct platform *p, const char *id);
    /* Reads the run.json of a run that this machine's ledger does not know. May be NULL. */
    int (*spec)(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
    /* Adds the ids of all runs known to the platform to out_ids. May be NULL. */
    int (*list)(struct platform *p, struct act_strv *out_ids, struct act_error *err);
    /* Lists the platform's runs, submitted from any machine, in this state (NULL: any), newest first, at most max (0:
     * all), with their status. May be NULL: only the ledger lists runs. */
    int (*recent)(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                  struct act_error *err);
};

/* The nodes of a cluster, and those of a run. */
struct platform_nodes_ops {
    /* Sets *out to what the nodes offer, by the configuration where the platform cannot tell. */
    int (*limits)(struct platform *p, struct platform_limits *out, struct act_error *err);
    /* Adds the names of all nodes that a run of spec could be placed on today, busy ones included, to out. May be NULL:
     * the platform cannot keep a run off a node (run_spec.avoid). */
    int (*usable)(struct platform *p, const struct run_spec *spec, struct act_strv *out, struct act_error *err);
    /* Lists the nodes of a run that is running or has run; none while it waits. May be NULL. */
    int (*of_run)(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
    /* Runs command on a node of a running run, in its code root; command empty: an interactive shell. *out says whether
     * it has run. node NULL: the first. Without a terminal of the caller, the command gets none either. If ssh leads to
     * the machine instead of the run's container, there is no code root, and the command runs in the home folder. With
     * about.nodes_have_addresses, id NULL: node is an address, and whatever runs there does not matter. May be NULL. */
    int (*shell)(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                 struct platform_shell *out, struct act_error *err);
    /* Sets *out to where the agent is for shell() on that node, a new string, and brings it there if necessary. May be
     * NULL: what shell() reaches has no agent. */
    int (*agent)(struct platform *p, const char *id, const char *node, char **out, struct act_error *err);
    /* Sums up the load of the nodes. May be NULL. */
    int (*summary)(struct platform *p, struct platform_summary *out, struct act_error *err);
    /* Lists the GPUs of a machine, and who uses them; takes a moment. May be NULL: the platform is no single machine.
     * */
    void (*gpus)(struct platform *p, struct platform_gpus *out);
    /* Lists the running jobs of all users, the longest-running first; for a workspace, those on all its computes. May
     * be NULL. */
    int (*jobs)(struct platform *p, struct platform_jobs *out, struct act_error *err);
    /* Checks that everything runs need is there; a failed check is a finding too. May be NULL. */
    void (*examine)(struct platform *p, struct platform_findings *findings);
    /* With about.agent_mounts: finds which of the tools that mount folders the nodes have; wanted: the only one that
     * may be used, or NULL. May be NULL. */
    void (*examine_mounts)(struct platform *p, const char *wanted, struct platform_findings *findings);
    /* Looks whether the nodes have a folder, which is a place for the mapped folder of that name. NULL: only runs see
     * it. */
    void (*examine_place)(struct platform *p, const char *name, const char *path, struct platform_findings *findings);
    /* Tries what nodes set up before the command, where that can be tried without a run. May be NULL. */
    void (*examine_setup)(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings);
};

/* The runs that a platform keeps, and where. */
struct platform_keep {
    /* Returns the i-th of the machines that it consists of, as a platform of its own, which it owns; NULL: there are no
     * more. May be NULL: it is one place. */
    struct platform *(*machine)(struct platform *p, size_t i);
    /* Sets *out to the place where the folders of its runs are; the platform's own. May be NULL: its runs are no
     * folders. */
    int (*site)(struct platform *p, struct site **out, struct act_error *err);
    /* Removes what it has of a run that has ended; one that it does not have any more is success. May be NULL: that is
     * the folder on its site, or without one it keeps its runs itself. */
    int (*remove)(struct platform *p, const char *id, struct act_error *err);
    /* Removes the agents of other versions that are older than so many seconds and that no run there needs; dry_run:
     * only counts them. May be NULL: those on its site, or without one it has none. */
    int (*remove_agents)(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                         struct act_error *err);
};

struct platform_row {
    const struct config_kind *kind; /* its name, and what it brings to a cluster file */
    struct platform_about about;
    struct platform_place place;
    struct platform_settings settings;
    /* Sets *out to the platform of a configuration, which must outlive it; contacts no host. */
    int (*open)(const struct config *config, struct platform **out, struct act_error *err);
    void (*close)(struct platform *p);
    struct platform_submit submit;
    struct platform_runs_ops runs;
    struct platform_nodes_ops nodes;
    struct platform_keep keep;
    const struct platform_clusters_ops *clusters; /* those that it can create, change and delete; NULL: it has none */
    const struct platform_setup_ops *setup;       /* how a new cluster is set up; NULL: not by questions */
};

#endif
