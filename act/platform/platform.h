/* platform.h - where runs execute, behind one interface: this machine, Slurm, Azure Machine Learning.
 *
 * A platform is a folder and a row of the table in table.c, and passes tests/conformance/platform_test.c. Nobody asks
 * for its name: what is different about it is a member of its row. It never uploads anything: packages are handed to it
 * as data.
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
#include "config/config.h"
#include "run/run.h"

struct platform;
struct platform_clusters_ops;
struct services;

/* A log file of a run, as it stands. */
struct platform_log {
    char *name; /* relative: "user_logs/std_log_process_0.txt" */
    uint64_t size;
    int64_t idle_s; /* since it last changed, by the clock of where it is; -1: not known */
};
struct platform_logs {
    struct platform_log *v;
    size_t n;
    bool settled; /* of a run that has ended: nothing will be added to them */
};
void platform_logs_release(struct platform_logs *logs);

/* The bytes from offset to end of a log, which belong at the same place of a file that has those before them. */
struct platform_part {
    const char *name, *path;
    const char *root; /* path begins with it, and is reached through no link behind it */
    uint64_t offset, end;
    uint64_t got;  /* out: so many of them are in the file, without a gap */
    bool replaced; /* out: another log has taken its place: the file is the beginning of the old one */
};
struct platform_fetch {
    struct platform_part *parts;
    size_t n;
    void (*moved)(void *arg, const struct platform_part *part,
                  uint64_t bytes); /* got has grown; may be NULL */
    void *arg;
};

/* What one node can take. */
struct platform_limits {
    int gpu_per_node; /* GPUs, or what counts as such: on "local" without GPUs the processors */
    int num_gpu;      /* taken when nobody says how many */
    int max_nodes;    /* 0: not known */
    bool has_gpus;
};

/* A node of a run. */
struct platform_node {
    char *name;
    char *state; /* in the platform's own word: "running", "down", ... */
    int rank;    /* node rank, from 0 */
    int first_rank, n_ranks;
    int gpus;
    char *gpu_ids; /* "0,1", as the node numbers them; NULL: not known */
};
struct platform_nodes {
    struct platform_node *v;
    size_t n;
};
void platform_nodes_release(struct platform_nodes *nodes);

/* What a cluster, or a part of it (a partition), is doing. */
struct platform_pool {
    char *name;
    bool is_default;                               /* where runs of this configuration go */
    int nodes, nodes_idle, nodes_busy, nodes_down; /* busy: at least a part of it is in use; -1: not known */
    int gpus, gpus_idle, gpus_busy, gpus_down;     /* -1: not known */
    int jobs_running, jobs_queued;                 /* of everybody; -1: not known */
    int gpus_queued;                               /* that queued jobs ask for; -1: not known */
};
/* How many nodes are in a state, by the platform's own word. */
struct platform_node_count {
    const char *state; /* not owned */
    int n;
};
struct platform_summary {
    struct platform_pool total; /* each node once */
    struct platform_node_count node_states[8];
    size_t n_node_states; /* 0: it counts no more than the pools say */
    struct platform_pool *pools;
    size_t n_pools;
    bool has_gpus; /* else what counts as GPU is a processor */
    bool has_load; /* of one machine: how many processes want to run, over the last minute */
    double load;
};
void platform_summary_release(struct platform_summary *summary);

/* A job of anybody on the cluster. */
struct platform_job {
    char *id; /* the platform's */
    char *user;
    char *name;
    char *experiment;  /* may be NULL, as where there are none */
    char *nodes_text;  /* where it is: nodes, "n[1-2]", or the name of a compute */
    int64_t running_s; /* -1: not known */
    int64_t limit_s;   /* 0: none, or not known */
    int nodes, gpus;   /* -1: not known */
};
struct platform_jobs {
    struct platform_job *v;
    size_t n;
};
void platform_jobs_release(struct platform_jobs *jobs);

/* Something that runs need, and how it stands. */
struct platform_finding {
    bool ok;
    char *what; /* "mpirun" */
    char *text; /* what was found; or what is wrong, and what to do */
};
struct platform_findings {
    struct platform_finding *v;
    size_t n;
};
void platform_findings_add(struct platform_findings *findings, bool ok, const char *what, const char *fmt,
                           ...) ACT_PRINTF(4, 5);
void platform_findings_release(struct platform_findings *findings);

/* A run as the platform itself lists it. */
struct platform_run {
    char *id;
    char *name;    /* what people see on the service's pages */
    char *cluster; /* where it ran: a cluster of whoever submitted it; of another tool's run, the compute */
    char *title;   /* as in struct run_spec */
    struct act_strv argv; /* empty: not known, as of a run that another tool submitted */
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

struct platform_submission {
    const struct run_spec *spec;
    const char *package; /* local path of the package, verified; NULL for a run without code */
    const char *
        stores; /* for RUN_FILE_STORES, secret; NULL: none. Where the nodes see the project it is not needed */
    /* Where the agent and run.json (without secrets) are in the store of the package, where the nodes fetch them; else
     * NULL. */
    const char *agent_key, *spec_key;
    /* URLs that read them and the package without any credential, secret; NULL: the nodes get them from the store. */
    const char *agent_url, *spec_url, *package_url;
    /* Set when the platform is about to be asked for the run: what fails from then on may leave open whether it has it,
     * and before that it certainly does not. May be NULL, which submit() of the platforms does not see. */
    bool *asked;
};

/* What only the job file of a run says of it, not its cluster file. */
struct platform_asked {
    bool time_limit, shm_size;
};

/* A value of the configuration that leads somewhere: nobody's project may say it unasked. */
struct platform_reach {
    enum {
        PLATFORM_HOST,   /* a host that is asked, and may be told credentials */
        PLATFORM_FOLDER, /* a folder that is written */
        PLATFORM_LOGIN,  /* where somebody logs in, and what is done there: all of these belong together */
    } kind;
    const char *key; /* "slurm.login" */
    char *value;     /* NULL: not given */
};
struct platform_reaches {
    struct platform_reach *v;
    size_t n;
};
void platform_reaches_release(struct platform_reaches *reaches);

/* A platform: what it is, which callers ask instead of its name; what it makes of a configuration, for which nobody is
 * asked; and what it does. The functions are called by those below, which stand for the ones that are NULL. */
struct platform_row {
    const char *name; /* as in the cluster file */

    /* It is this machine: one place whatever its clusters are called, and runs have the PATH and the project of it. */
    bool is_here;
    /* Every question, and every submission, is a request to a service: it takes its time, and its answer can be
     * lost. */
    bool answers_by_request;
    /* The agent of a run writes down which rank failed, and why; else only the ranks themselves say it, in their
     * logs. */
    bool keeps_record;
    /* It lists its runs itself, of whatever machine or tool, with the names that people gave them: recent(). */
    bool keeps_list;
    /* Its nodes fetch package, agent and run.json from the store of the code; else submit() is handed the package, and
     * brings it to them. */
    bool nodes_fetch;
    /* The nodes of a run see one folder of the run. */
    bool nodes_share_folder;
    /* Its nodes have addresses by which a shell reaches them, whatever runs there. */
    bool nodes_have_addresses;
    /* submit() may refuse what check() lets through. */
    bool refuses_late;
    /* Its runs can change their size. */
    bool is_elastic;
    /* Its nodes log in to the registry of an image as docker.* says; else as their own set-up does. */
    bool logs_in_to_registry;

    /* The place that a configuration means: clusters of one place know the same runs. New string. NULL: each cluster
     * file is a place of its own. */
    char *(*place)(const struct config *config);
    /* Completes out so that open() finds the runs of a place without its cluster file, which may be gone or say
     * something else by now. settings: the platform's part of the configuration that a run was submitted with, as JSON,
     * or NULL. false: they do not tell. NULL: the cluster file is needed. */
    bool (*recall)(const json_t *settings, struct config *out);
    /* Whether the nodes see the project of this machine where a folder of the configuration is. NULL: they do not. */
    bool (*sees_project)(const struct config *config, const struct config_folder *folder);
    /* Whether runs are in the image of docker.image, when there is one. NULL: they never are. */
    bool (*runs_images)(const struct config *config);
    /* What of the configuration leads somewhere, added to out. May be NULL. */
    void (*reach)(const struct config *config, struct platform_reaches *out);
    /* The name by which the platform knows the store of a folder, with its credential, so that a run can have one that
     * only its job file tells of. New string. NULL: it knows none. */
    char *(*datastore)(const struct config_folder *folder, const struct config_account *account);
    /* How long a run may take, and the size of its /dev/shm, in the words of the platform's configuration. NULL: it has
     * none for that. */
    void (*set_time_limit)(struct config *config, int64_t seconds);
    void (*set_shm_size)(struct config *config, const char *size);
    /* The platform's part of the specification of a run. May be NULL. */
    void (*describe)(const struct config *config, const struct platform_asked *asked, struct run_spec *spec);
    /* Gives the configuration what describe() noted of the run that is repeated, unless this command says something
     * else. May be NULL. */
    void (*repeat)(struct config *config, const struct run_spec *old);

    int (*open)(struct services *services, const struct config *config, struct platform **out,
                struct act_error *err);
    /* What this platform's nodes offer, with config's word where the platform does not know better. */
    int (*limits)(struct platform *p, struct platform_limits *out, struct act_error *err);
    /* Whether such a run could start here; asked before anything is uploaded for it. The package may not be known yet.
     * May be NULL: submit will tell. */
    int (*check)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Of a cluster whose own store this machine does not see: *out_store is where it is there, absolute, a new string,
     * and out_there[i] whether it has the folder paths[i]. May be NULL; there is none: *out_store is NULL. */
    int (*own_folders)(struct platform *p, const char *const *paths, size_t n, bool *out_there,
                       char **out_store, struct act_error *err);
    /* Starts a run, or queues it. The same id twice is one run: the second call succeeds and changes nothing.
     * Returns when the platform has it. */
    int (*submit)(struct platform *p, const struct platform_submission *submission, struct act_error *err);
    /* The status of n runs at once, out[n]. An id the platform does not know is RUN_UNKNOWN without a
     * reason and success; with one it is a run whose state this version does not know. */
    int (*status)(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                  struct act_error *err);
    /* Cancels. A run that has ended already: success, *out_was_final true. Returns when the run has ended, or
     * when the platform has accepted to end it. */
    int (*abort)(struct platform *p, const char *id, bool *out_was_final, struct act_error *err);
    /* The logs of a run, sorted by name; and bytes of one of them from an offset, *out_got 0 at the end. A
     * log that is not there (yet) is -ACT_NOT_FOUND. */
    int (*logs)(struct platform *p, const char *id, struct platform_logs *out, struct act_error *err);
    int (*read_log)(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                    size_t len, size_t *out_got, struct act_error *err);
    /* Many logs of a run at once. May be NULL: read_log does it, one after the other. */
    int (*fetch_logs)(struct platform *p, const char *id, const struct platform_fetch *fetch,
                      struct act_error *err);
    /* The page where people can look at a run with a browser; asks nobody. New string. May be NULL. */
    char *(*page)(struct platform *p, const char *id);
    /* run.json of a run, for a machine whose ledger does not know it. May be NULL. */
    int (*spec)(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
    /* The ids of all runs the platform knows. May be NULL. */
    int (*list)(struct platform *p, struct act_strv *out_ids, struct act_error *err);
    /* The newest runs that the platform has, of whatever machine, in that state (NULL: in any), at most max (0: all),
     * newest first, with their status. May be NULL: the ledger is all there is. */
    int (*recent)(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                  struct act_error *err);
    /* The nodes of a run that is running or has run; none yet while it waits. May be NULL. */
    int (*nodes)(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
    /* The words of a program that runs command on a node of a running run, in its code root; command without words: an
     * interactive shell. node NULL: the first. Where the caller has no terminal, the command gets none either. The
     * caller executes it. May be NULL. Where ssh leads to the machine instead of the container of the run, there is no
     * code root, and the command runs in the home. With nodes_have_addresses, id NULL: on the node that has the address
     * that node is, whatever runs there. */
    int (*shell)(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                 struct act_strv *out_argv, struct act_error *err);
    /* May be NULL. */
    int (*summary)(struct platform *p, struct platform_summary *out, struct act_error *err);
    /* The running jobs of everybody, those that run longest first; of a workspace on all its computes. May be NULL. */
    int (*jobs)(struct platform *p, struct platform_jobs *out, struct act_error *err);
    /* Looks whether all that runs need is there; what fails is a finding too. May be NULL. */
    void (*examine)(struct platform *p, struct platform_findings *findings);
    /* The clusters that it can make, change and remove: see clusters.h. NULL: it has none. */
    const struct platform_clusters_ops *clusters;
    void (*close)(struct platform *p);
};

/* The row of a platform; of a name that this version does not drive one that has no facts, and that cannot be
 * opened. */
const struct platform_row *platform_find(const char *name);
/* That which is this machine. */
const struct platform_row *platform_here(void);
const struct platform_row *platform_row(const struct platform *p);
/* What of the configuration leads somewhere, whichever platform makes use of it. */
void platform_reach(const struct config *config, struct platform_reaches *out);
void platform_reaches_add(struct platform_reaches *reaches, int kind, const char *key, const char *value);

/* The platform of a cluster. services, which all of a command share, and config must stay as long as it is open. One
 * that this version cannot drive is -ACT_CONFIG and says so. */
int platform_open(struct services *services, const struct config *config, struct platform **out,
                  struct act_error *err) ACT_NODISCARD;
void platform_free(struct platform *p);

/* Wrappers: they supply the text for what a platform cannot do. */
int platform_limits(struct platform *p, struct platform_limits *out, struct act_error *err) ACT_NODISCARD;
int platform_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int platform_own_folders(struct platform *p, const char *const *paths, size_t n, bool *out_there,
                         char **out_store, struct act_error *err) ACT_NODISCARD;
int platform_submit(struct platform *p, const struct platform_submission *submission,
                    struct act_error *err) ACT_NODISCARD;
int platform_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                    struct act_error *err) ACT_NODISCARD;
int platform_abort(struct platform *p, const char *id, bool *out_was_final,
                   struct act_error *err) ACT_NODISCARD;
int platform_logs(struct platform *p, const char *id, struct platform_logs *out,
                  struct act_error *err) ACT_NODISCARD;
int platform_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                      size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;
/* Brings parts of logs into files. A log that ends earlier or is not there (any more) is no failure. The first failure
 * ends it; what the files have then is right, as after the end of this process at any moment. */
int platform_fetch_logs(struct platform *p, const char *id, const struct platform_fetch *fetch,
                        struct act_error *err) ACT_NODISCARD;
char *platform_page(struct platform *p, const char *id); /* NULL: there is none */
int platform_spec(struct platform *p, const char *id, struct run_spec *out,
                  struct act_error *err) ACT_NODISCARD;
int platform_list(struct platform *p, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;
/* Empty for platforms that do not list theirs. */
int platform_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                    struct act_error *err) ACT_NODISCARD;
int platform_nodes(struct platform *p, const char *id, struct platform_nodes *out,
                   struct act_error *err) ACT_NODISCARD;
int platform_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                   struct act_strv *out_argv, struct act_error *err) ACT_NODISCARD;
int platform_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int platform_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
void platform_examine(struct platform *p, struct platform_findings *findings); /* adds to findings */

#endif
