/* platform.h - where runs execute, behind one interface: this machine, Slurm, Azure Machine Learning,
 * Kubernetes.
 *
 * A platform is a folder and a row (row.h) of the table in table.c, and passes tests/conformance/platform_test.c.
 * Callers never test its name: its differences are members of its row. It never uploads anything: packages are handed
 * to it as data.
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
#include "platform/row.h"
#include "proc/environment.h"
#include "run/environments.h"
#include "run/run.h"

struct config;
struct platform;
struct services;
struct store;

/* What one node offers. */
struct platform_limits {
    int gpu_per_node; /* GPUs, or what counts as such: the processors on "local" without GPUs */
    int num_gpu;      /* the default if the user gives no number */
    int max_nodes;    /* 0: not known */
    bool has_gpus;
    const char *why_not_all; /* why a node offers fewer GPUs than it has, in words; NULL: it offers all */
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
/* Returns the nodes as an array, a new reference. */
json_t *platform_nodes_to_json(const struct platform_nodes *nodes);
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

/* A GPU of a single machine. */
struct platform_gpu {
    char *name;           /* "GPU 1" */
    char *model;          /* may be empty */
    char *users;          /* who computes on it, in words; empty: nobody, as far as is known */
    int64_t memory, used; /* bytes; -1: not known */
    bool is_given;        /* runs of this process's user may have it */
};
struct platform_gpus {
    struct platform_gpu *v;
    size_t n;
    const char *note; /* why it is not known who uses them; NULL: it is. Not owned */
};
void platform_gpus_release(struct platform_gpus *gpus);

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

/* An amount of what ACT has put there. */
struct platform_kept {
    uint64_t bytes; /* 0 where nobody tells them */
    size_t n;
};

struct platform_submission {
    const struct run_spec *spec;
    const char *package; /* local path of the package, verified; NULL for a run without code */
    const char *stores;  /* for RUN_FILE_STORES, secret; NULL: none. Not needed if the nodes see the project */
    const char
        *machines; /* for RUN_FILE_MACHINES, secret: this machine is one of those of the run; NULL: the only one */
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

/* Makes the keys of all platforms known, before any configuration is read. */
void platform_begin(void);

/* Returns the row of a platform; for a name that this version does not support, a row without properties that cannot be
 * opened. */
const struct platform_row *platform_find(const char *name);
/* Tells whether the nodes of such a run fetch its package from the store that their logs go to. */
bool platform_nodes_fetch_package(const struct platform_row *row, const struct run_spec *spec);
/* Returns the row of the platform that is this machine. */
const struct platform_row *platform_here(void);
const struct platform_row *platform_row(const struct platform *p);
/* The configuration values that lead somewhere, whichever platform uses them. */
void platform_reach(const struct config *config, struct platform_reaches *out);
void platform_reaches_add(struct platform_reaches *reaches, int kind, const char *key, const char *value);

/* Returns the setting that names the image of runs. Points into config. */
char **platform_image(struct config *config);
/* Tells whether this command itself names it: what it says beats what a job file or an earlier run says, and that beats
 * the cluster file. */
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
int platform_settle(struct platform *p, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int platform_prepare(struct platform *p, struct run_spec *spec, const char *package,
                     struct act_error *err) ACT_NODISCARD;
int platform_submit(struct platform *p, const struct platform_submission *submission,
                    struct act_error *err) ACT_NODISCARD;
int platform_submit_several(struct platform *p, const struct platform_several *several,
                            struct act_error *err) ACT_NODISCARD;
/* 1: runs are submitted one by one. */
int platform_most_together(struct platform *p);
int platform_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                    struct act_error *err) ACT_NODISCARD;
/* A question to platform_status(), and its answer. */
struct platform_query {
    struct platform *platform;
    const char *const *ids;
    size_t n;
    struct run_status *out;
    int rc; /* what it returned, with err */
    struct act_error err;
};
/* Asks all questions, at once where platforms can be asked so (about.asked_apart). */
void platform_ask_all(struct platform_query *questions, size_t n);
/* Always, on platforms that have to be asked. */
bool platform_watch(struct platform *p, bool *news);
int platform_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err) ACT_NODISCARD;
/* A run that is to end, and what became of that: as platform_abort() says it. */
struct platform_end {
    const char *id;
    bool was_final;
    int rc; /* with err */
    struct act_error err;
};
/* Aborts all of them. Each is told to end before this waits for the first one, so whoever interrupts it has told all.
 */
void platform_abort_all(struct platform *p, struct platform_end *ends, size_t n);
/* Runs of one platform that are to end. */
struct platform_ending {
    struct platform *platform;
    struct platform_end *ends;
    size_t n;
};
/* Aborts the runs of n platforms, at once where it takes a while. Meanwhile this thread calls here, which may do the
 * same with platforms that are not among them; NULL: there are none. */
void platform_abort_together(struct platform_ending *endings, size_t n, void (*here)(void *arg), void *arg);
/* Tells whether it takes a while until a run ends, so that platform_abort_all() waits for that. */
bool platform_awaits_ends(const struct platform *p);
int platform_scale(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err) ACT_NODISCARD;
/* Begins to ask ahead, as site_ahead() does, where each question is a round trip: a call only sends its first request,
 * and fails; the same call takes the response after platform_ahead_end(). Returns 1; 0: there is no ahead to end; or
 * the error of a platform that cannot be asked at all. */
int platform_ahead(struct platform *p, struct act_error *err) ACT_NODISCARD;
void platform_ahead_end(struct platform *p);
/* Drops what was asked ahead and not taken. */
void platform_ahead_drop(struct platform *p);
struct store *platform_open_logs(struct platform *p, const char *id, bool ended);
/* Asks ahead for the list of logs that is asked for next, with the ends of the logs (store_list.with_ends). An error is
 * that the platform cannot be asked at all. */
int platform_expect_logs(struct platform *p, const char *id, bool with_ends, struct act_error *err) ACT_NODISCARD;
char *platform_page(struct platform *p, const char *id); /* NULL: none */
/* Returns where the run's copy of the project is, in which it works, as a new string; NULL: not in one folder that
 * stays after its end and is known. */
char *platform_code_folder(struct platform *p, const struct run_spec *spec);
int platform_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err) ACT_NODISCARD;
int platform_list(struct platform *p, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;
/* Empty for platforms without a list of their own. */
int platform_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                    struct act_error *err) ACT_NODISCARD;
int platform_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err) ACT_NODISCARD;
int platform_agent(struct platform *p, const char *id, const char *node, char **out,
                   struct act_error *err) ACT_NODISCARD;
int platform_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                   struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
/* Empty where the platform is no single machine, or it has none. */
void platform_gpus(struct platform *p, struct platform_gpus *out);
int platform_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int platform_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;
void platform_examine(struct platform *p, struct platform_findings *findings); /* adds to findings */
void platform_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings);
/* Looks whether the nodes have the folder at path, which the mapped folder of that name is (mode: path), and adds to
 * findings. false: the platform cannot look, and nothing was added. */
bool platform_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings);
/* The set-up of nodes before the command, as it is tried. It has no variables of a run: a project may have brought
 * them, and the programs that they name would run. */
struct platform_trial {
    struct run_setup setup;
};
/* Tries what nodes set up before the command, or says that it did not; afterwards as platform_examine(). */
void platform_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings);

/* ---- ssh/host.c: this machine, of which another one asks what its platform "ssh" needs */

/* Carries out verb, with the members of in, on the platform of this machine; adds the results to out. An unknown verb:
 * -ACT_USAGE. */
int platform_serve_host(struct platform *here, const char *verb, const json_t *in, json_t *out,
                        struct act_error *err) ACT_NODISCARD;

/* ---- keep.c: what ACT has put on a platform, and removing it, for each of its machines */

/* Returns the i-th machine of a platform that consists of several, else the platform itself as the only one; NULL:
 * there are no more. The platform owns it. */
struct platform *platform_machine(struct platform *p, size_t i);
/* Tells whether both, which are machines, are one place. Those that cannot be asked are not known to be. */
bool platform_is_same_machine(struct platform *a, struct platform *b);

/* Tells whether platform_remove() can do anything there. */
bool platform_can_remove(const struct platform *p);
/* The size of the folder of a run; 0 where it has none. */
struct platform_size {
    uint64_t bytes;
    bool others; /* it is another user's */
};
/* Measures the folders of n runs, by one request to each machine: out[i] is that of ids[i]. */
int platform_sizes(struct platform *p, const char *const *ids, size_t n, struct platform_size *out,
                   struct act_error *err) ACT_NODISCARD;
int platform_remove(struct platform *p, const char *id, struct act_error *err) ACT_NODISCARD;

/* A package on a platform. */
struct platform_package {
    char *sha256;
    uint64_t bytes;
    bool is_old; /* it was brought there longer ago than older_s */
};
struct platform_packages {
    struct platform_package *v;
    size_t n;
    bool unknown; /* a run's folder cannot be read, so that any package may be needed: none is listed */
};
/* Lists the packages of this user that no run there needs, whoever submitted it, unless its id is in going, which
 * is sorted. Release out. */
int platform_unused_packages(struct platform *p, int64_t older_s, const struct act_strv *going,
                             struct platform_packages *out, struct act_error *err) ACT_NODISCARD;
void platform_packages_release(struct platform_packages *packages);
/* Removes a package that this user brought there. dry_run: it only measures it. */
int platform_remove_package(struct platform *p, const char *sha256, bool dry_run, struct platform_kept *out,
                            struct act_error *err) ACT_NODISCARD;
/* Removes the agents of other versions that this user brought there more than older_s ago. While any user's run there
 * has not ended, it removes none and sets *out_busy. Where runs are not folders, it removes those that no run needs,
 * whoever brought them. dry_run: it only counts them. */
int platform_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out, bool *out_busy,
                           struct act_error *err) ACT_NODISCARD;
/* Removes environments of this user (node/environment.h) that no run has taken up for older_s, and that no unfinished
 * run has. dry_run: it only measures them. */
int platform_remove_environments(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                                 struct act_error *err) ACT_NODISCARD;
enum platform_environment_state {
    ENVIRONMENT_IDLE,
    ENVIRONMENT_IN_USE, /* by a run that has not ended */
    ENVIRONMENT_IN_THE_MAKING
};
/* One that is whole, or will be. */
struct platform_environment {
    struct platform *machine; /* that has it */
    char *key, *path;         /* its name, and the folder that has bin/ */
    struct environment_about about;
    uint64_t bytes;
    size_t n_runs;
    int64_t used_unix_s; /* when a run took it up last; 0: none has */
    enum platform_environment_state state;
};
struct platform_environments {
    struct platform_environment *v;
    size_t n;
};
void platform_environments_release(struct platform_environments *environments);
/* Lists the environments of this user on all machines of the platform. Where runs have no site, so that each container
 * makes its own: -ACT_NOT_FOUND. Release *out in any case. */
int platform_list_environments(struct platform *p, struct platform_environments *out,
                               struct act_error *err) ACT_NODISCARD;
/* Removes one of them, unless a run has taken it up since that has not ended: *out_gone says. */
int platform_remove_environment(const struct platform_environment *environment, bool *out_gone,
                                struct act_error *err) ACT_NODISCARD;
/* Removes what commands of this user left there when they were killed. dry_run: it only measures that. */
int platform_clear(struct platform *p, bool dry_run, struct platform_kept *out, struct act_error *err) ACT_NODISCARD;
/* What a platform keeps for this user: nothing where it has no site. */
struct platform_keeps {
    struct platform_kept runs, packages, agents, environments, left;
    char *where; /* new string; NULL: it keeps nothing */
};
int platform_keeps(struct platform *p, struct platform_keeps *out, struct act_error *err) ACT_NODISCARD;

#endif
