/* flow.h - one function for each thing a user can ask for; each in a file of its own. No terminal here:
 * results come back as data, words for the user go through act_note() and act_warn().
 */
#ifndef ACT_FLOW_FLOW_H
#define ACT_FLOW_FLOW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "auth/token.h"
#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "diagnose/diagnose.h"
#include "ledger/ledger.h"
#include "package/package.h"
#include "platform/azureml/azureml.h"
#include "platform/platform.h"
#include "run/run.h"
#include "store/store.h"
#include "transfer/transfer.h"

/* What the use cases share; everything but the configuration is opened when it is first needed. */
struct flow {
    struct config config;
    const char *cluster;         /* of flow_open_bare() */
    struct http_options network; /* before the first use; {0}: the defaults */
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
    struct ledger *ledger;
    bool ledger_filled;         /* with the runs that are there, as it was new */
    struct ledger *ledger_copy; /* used instead, once it could not be read or written; not for new runs */
    struct flow_opened *opened; /* platforms */
    size_t n_opened;
    bool limits_mentioned; /* that --bwlimit and --transfers have no effect */
};

/* Loads the configuration, which must not lead out of the project where that is not trusted (flow/trust.h). */
int flow_open(const struct config_request *request, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Only loads it, for what shows it. */
int flow_open_to_look(const struct config_request *request, struct flow *out,
                      struct act_error *err) ACT_NODISCARD;
/* Whether the cluster of flow_open_bare(), or the file that AML_CONFIG_PATH names, is there; a cluster that has runs in the
 * ledger is. */
int flow_check_cluster(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* Without a configuration: for what only needs the ledger. cluster (may be NULL, not copied): where a run that the
 * ledger does not know is looked for. */
void flow_open_bare(const char *cluster, struct flow *out);
void flow_close(struct flow *flow);

/* ---- init */

#define FLOW_LARGE_CODE (UINT64_C(100) << 20)

struct flow_init {
    /* What will run with it: refused, before anything is packed, when it cannot. NULL: nothing is checked. */
    const struct act_strv *command;
    bool dry_run; /* only list, package as by package_forecast(), and is_stored */
    /* Called on the loop about five times a second; may be NULL. */
    void (*packing)(void *arg, const struct transfer_progress *now);
    void (*uploading)(void *arg, const struct transfer_progress *now);
    void (*done)(void *arg); /* before anything is said of what came of it; may be NULL */
    /* Before more than FLOW_LARGE_CODE bytes that the last package did not have are packed: an error gives it up. May be
     * NULL. */
    int (*large)(void *arg, const struct flow_init *io, struct act_error *err);
    void *arg;
    bool keep_compiled;             /* code_path stays where it is this package, compiled in the same image */
    struct package_list list;       /* what goes in and what stays out */
    struct package_summary package; /* with dry_run the sha256 is empty unless nothing changed */
    uint64_t sent_bytes;            /* of the package; 0: the store had it */
    bool published;                 /* code_path was replaced */
    enum { FLOW_UNKNOWN, FLOW_YES, FLOW_NO } is_stored; /* with dry_run */
    char compiled[ACT_SHA256_HEX]; /* with keep_compiled: the package that code_path stays; "": it does not */
    uint64_t compiled_bytes;
    bool was_compiled; /* with keep_compiled: code_path was a compiled package, but not of this one */
};
/* Packs the project and stores it as "<code_path without .zip>/<sha256>.zip" (flow_code_base()) and as code_path. */
int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err) ACT_NODISCARD;
/* The same, and then compiles it with compile.aml.sh in docker.image, by docker or podman on this machine, and stores what
 * comes of it as a package of its own, which code_path becomes: out; release both. Nothing to compile, or nothing that does
 * it: -ACT_USAGE, and nothing is stored. What the compiler prints goes to stderr. */
int flow_compile(struct flow *flow, struct flow_init *code, struct flow_init *out,
                 struct act_error *err) ACT_NODISCARD;
void flow_init_release(struct flow_init *io);
/* Notes which code a run gets: "code  412 files, 3.1 MiB, 2 changed: train.py model.py". */
void flow_say_code(const struct flow_init *io);

/* ---- submit, resubmit, local */

struct flow_submit {
    const struct act_strv *argv; /* empty with a job file */
    const char *job_file;        /* a job file of Batch AI that says what to run and where; NULL: none */
    bool own_size;    /* nodes and processes are those of the configuration, whatever the job file says */
    bool dry_run;     /* only fill spec */
    bool own_folders; /* mapped folders are the project's own, whatever the stores have */
    struct flow_init
        *code; /* how the code is packed first, and what came of it; NULL: the package stored last is taken */
    const char *resubmit_of;
    struct run_spec spec;            /* out; release with run_spec_release() */
    const struct flow_job_file *job; /* internal */
    int64_t limit_s;                 /* internal: after which the command is ended; 0: never */
};
int flow_submit(struct flow *flow, struct flow_submit *io, struct act_error *err) ACT_NODISCARD;

/* Where text of a log goes. */
struct flow_sink {
    int (*write)(void *arg, const char *data, size_t len, struct act_error *err);
    void *arg;
};

/* Runs the command here, as a run of the platform local, with the project's own folders, and the image (in docker or podman)
 * of flow's cluster: _start() returns when it has begun, _attend() when it has ended. What rank 0 prints goes to the
 * sink; when *interrupted becomes true the run is aborted. */
struct flow_local {
    const struct act_strv *argv;
    bool no_container;
    bool dry_run;           /* only fill spec */
    struct flow_init *code; /* as in struct flow_submit */
    struct flow_sink sink;
    const volatile sig_atomic_t *interrupted;
    int exit_status;      /* out: as flow_exit_status() */
    struct run_spec spec; /* out; release with run_spec_release() */
};
int flow_local_start(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;
int flow_local_attend(struct flow *flow, struct flow_local *io, struct act_error *err) ACT_NODISCARD;

/* ---- runs */

struct flow_run {
    struct ledger_run row;
    struct run_spec spec; /* only where it was asked for */
    struct run_status status;
    bool changed; /* internal: the ledger does not know this status yet */
    bool fresh;   /* internal: its platform told it a moment ago */
};
struct flow_runs {
    struct flow_run *v;
    size_t n;
    size_t total; /* how many there are, also beyond a maximum */
};
void flow_run_release(struct flow_run *run);
void flow_runs_release(struct flow_runs *runs);

/* The one run that piece means, its status fresh from its platform. A run that the ledger does not
 * know, because it was lost, never written, or another machine's, is taken into it from this machine or the cluster. Ambiguous: -ACT_USAGE with the candidates. */
int flow_find_run(struct flow *flow, const char *piece, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;
/* The same as the ledger knows it, without asking anybody, and without spec. */
int flow_find_unasked(struct flow *flow, const char *piece, struct flow_run *out,
                      struct act_error *err) ACT_NODISCARD;
/* The same for who watches it: while the platform cannot be asked, this goes on, and the user is told. */
int flow_find_watched(struct flow *flow, const char *piece, struct flow_run *out,
                      struct act_error *err) ACT_NODISCARD;

struct flow_table {
    const char *cluster;  /* NULL: all */
    const char *platform; /* NULL: all */
    const char *state;    /* "Running", ...; NULL: all */
    int64_t max;          /* 0: all */
    bool with_spec;       /* fill in the specifications too */
    bool as_known;        /* ask no platform */
};
/* Takes the runs that the cluster of the command line, or of this project, has and the ledger lacks, as after it was lost.
 * Those of a service are in every table, and not taken. */
int flow_rebuild(struct flow *flow, struct act_error *err) ACT_NODISCARD;
/* The runs of the ledger, newest first, the active ones refreshed from their platforms (many in one call); of a table of
 * all states and platforms no more of them than max. A platform that cannot be asked leaves its runs as they were, with a warning. */
int flow_list_runs(struct flow *flow, const struct flow_table *table, struct flow_runs *out,
                   struct act_error *err) ACT_NODISCARD;

struct flow_log {
    char *name; /* at the platform */
    char *path; /* of the fetched copy */
    uint64_t size;
};
struct flow_logs {
    char *folder; /* <project>/assets/<run id> */
    char *root;   /* <project>/assets: nothing behind it is reached through a link */
    struct flow_log *v;
    size_t n;
};
void flow_logs_release(struct flow_logs *logs);
/* Fetches what is new of every log into assets/<run id>/ of the run's project. A copy is the beginning of its log at every
 * moment, whatever happens. */
struct flow_fetch {
    uint64_t max_bytes; /* of each log at most; 0: all */
    bool refresh;       /* from the beginnings, although all logs of a run that ended are here */
    void (*progress)(void *arg, const struct transfer_progress *now); /* a few times a second; may be NULL */
    void *arg;
};
int flow_fetch_logs(struct flow *flow, const struct flow_run *run, const struct flow_fetch *what,
                    struct flow_logs *out, struct act_error *err) ACT_NODISCARD;

/* Gives a log to the sink, from its last tail lines (negative: from the start); with follow until the run
 * ends, or *interrupted (may be NULL) becomes true. It goes on through the attempts that begin meanwhile, and while the
 * platform cannot be asked. */
struct flow_follow {
    const char *name; /* NULL: the log of this rank, whatever the platform calls it */
    int rank;
    bool all; /* the logs of all ranks, by line() */
    /* A whole line without its end, or a piece of one that is very long; arg is the sink's, which gets nothing (no
     * bytes) behind the lines that came together. */
    int (*line)(void *arg, int rank, const char *text, size_t len, struct act_error *err);
    int attempt;     /* 0: the last one */
    bool must_exist; /* -ACT_NOT_FOUND when the run has ended without that log */
    int64_t tail;
    bool follow;
    const volatile sig_atomic_t
        *interrupted; /* not 0: the run is aborted, and followed to its end; may be NULL */
    struct flow_sink sink;
};
int flow_follow_log(struct flow *flow, struct flow_run *run, const struct flow_follow *what,
                    struct act_error *err) ACT_NODISCARD;

/* The page where a run can be looked at with a browser. New string; NULL: there is none. */
char *flow_page(struct flow *flow, const struct flow_run *run);

/* Waits until the run has ended, also while the platform cannot be asked. */
int flow_wait(struct flow *flow, struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* The same for the one run that piece means, found first. */
struct flow_waiting {
    int64_t timeout_s; /* 0: for ever, else -ACT_TIMEOUT */
    /* Once it is found, and after each look that does not find it ended; may be NULL. */
    void (*each)(void *arg, const struct flow_run *run);
    void *arg;
};
int flow_wait_for(struct flow *flow, const char *piece, const struct flow_waiting *how, struct flow_run *out,
                  struct act_error *err) ACT_NODISCARD;

/* Cancels. *out_was_final: it had ended before. */
int flow_abort(struct flow *flow, struct flow_run *run, bool *out_was_final,
               struct act_error *err) ACT_NODISCARD;
/* Of a cluster that does not answer: the run counts as Canceled here; one that answers is an error. As flow_abort()
 * otherwise. */
int flow_forget(struct flow *flow, struct flow_run *run, bool *out_was_final,
                struct act_error *err) ACT_NODISCARD;

/* Submits a run again: command, package and size as they were, on the same cluster also image, environment and folders
 * (see flow_repeat_settings()). One that is still active is aborted first; where a service runs it, afterwards, so that
 * nothing is lost when the new one is refused. home is the configuration of its cluster, to the one it goes to now; they
 * may be the same. With dry_run nothing is aborted and nothing submitted. Release *out_spec in every case. */
int flow_resubmit(struct flow *flow, struct flow_run *old, struct flow *home, struct flow *to, bool dry_run,
                  struct run_spec *out_spec, struct act_error *err) ACT_NODISCARD;

/* The parameters of a command "python src/....py -bp BASE64", decoded: YAML. New string; NULL: it is no such command. */
char *flow_batch_param(const struct act_strv *argv);

/* ---- the cluster */

/* The nodes of a run: none yet while it waits. */
int flow_nodes(struct flow *flow, const struct flow_run *run, struct platform_nodes *out,
               struct act_error *err) ACT_NODISCARD;
/* The words of a program that runs command (no words: a shell) on a node of a running run: its name, or its number from
 * 0; NULL: the first. */
int flow_shell(struct flow *flow, const struct flow_run *run, const char *node,
               const struct act_strv *command, struct act_strv *out_argv,
               struct act_error *err) ACT_NODISCARD;
/* The same on the node of this cluster that has an address, "10.0.0.4", whatever runs there. */
int flow_shell_at(struct flow *flow, const char *address, const struct act_strv *command,
                  struct act_strv *out_argv, struct act_error *err) ACT_NODISCARD;

struct flow_summary {
    struct platform_summary cluster;
    size_t running, queued; /* of the runs of the ledger that are on this cluster */
};
int flow_summary(struct flow *flow, struct flow_summary *out, struct act_error *err) ACT_NODISCARD;
/* The running jobs of everybody on the cluster, those that run longest first. */
int flow_jobs(struct flow *flow, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;

/* The managed clusters of the workspace that flow's cluster is in; see platform/azureml/azureml.h. */

/* The name, or with NULL the compute_target of flow's cluster; without one -ACT_USAGE. */
int flow_cluster_name(const struct flow *flow, const char *name, const char **out,
                      struct act_error *err) ACT_NODISCARD;
int flow_list_clusters(struct flow *flow, struct azureml_clusters *out, struct act_error *err) ACT_NODISCARD;
int flow_get_cluster(struct flow *flow, const char *name, struct azureml_cluster *out,
                     struct act_error *err) ACT_NODISCARD;
int flow_create_cluster(struct flow *flow, const struct azureml_new_cluster *cluster,
                        const struct azureml_follow *follow, struct act_error *err) ACT_NODISCARD;
int flow_scale_cluster(struct flow *flow, const char *name, const struct azureml_scale *scale,
                       const struct azureml_follow *follow, struct act_error *err) ACT_NODISCARD;
int flow_delete_cluster(struct flow *flow, const char *name, const struct azureml_follow *follow,
                        struct act_error *err) ACT_NODISCARD;
int flow_cluster_nodes(struct flow *flow, const char *name, struct azureml_node_list *out,
                       struct act_error *err) ACT_NODISCARD;

/* config_check(), and whether a run would be refused for what the configuration says. Asks nobody. */
int flow_check_config(const struct config_request *request, struct act_strv *out_problems,
                      struct act_error *err) ACT_NODISCARD;

/* Whether all that runs of the cluster need is there. flow is a bare one, and has the configuration afterwards if there is
 * one. Release out. */
void flow_doctor(struct flow *flow, const struct config_request *request, struct platform_findings *out);

/* What a shell would give for the run: 0, the exit status of the first failing rank, 143 when cancelled. */
int flow_exit_status(const struct run_status *status);

/* ---- why, parse */

/* What a rank said last. */
struct flow_rank_line {
    int rank;
    char *line;       /* without the agent's own; empty: nothing yet; NULL: it has no log */
    int64_t silent_s; /* since its log changed, or between that and the run's end; -1: not known */
    bool longer;      /* than that: only the agent has written since */
};
struct flow_rank_lines {
    struct flow_rank_line *v; /* of ranks that are where few others are first, then the most silent ones */
    size_t n;                 /* rank 0 and at most 31 others */
    size_t ranks;             /* of the run */
};

/* Why a run failed, was cancelled, waits; or what it is doing. */
struct flow_why {
    int attempt;             /* the one that "failure" is about; 0: there is no failure to explain */
    int rank;                /* that failed first; -1: not one rank's failure, or not known */
    char *node;              /* of that rank; NULL: not known */
    int exit_status, signal; /* of that rank, or of the run; signal 0: none */
    char *reason;            /* in the words of the agent or of the scheduler; may be empty */
    int64_t failed_unix_s;   /* 0: not known */
    struct act_strv lines;   /* the last ones of that rank */

    const struct diagnose_rule *rule; /* the explanation; NULL: none was found */
    char *advice;                     /* of the rule, with the names of this run in it */
    char *log, *line;                 /* what the rule was found in; log NULL: in the reason */
    int cause_rank;                   /* whose log that is; -1: no rank's */
    struct act_strv notes;            /* what was nearly full at the end: "host memory 98% full on n2" */

    char *rank_log; /* of that rank, or of rank 0; NULL: not there */
    /* While it runs, and of one that ended in a way which only all ranks together explain; else empty. */
    struct flow_rank_lines said;
    struct diagnose *rules;
};
/* Reads the ends of a limited number of logs, whatever their size. The rules are those of the program and of
 * aux_data/diagnosis.yaml of the run's project. */
int flow_why(struct flow *flow, const struct flow_run *run, struct flow_why *out,
             struct act_error *err) ACT_NODISCARD;
void flow_why_release(struct flow_why *why);

/* What the rules find in the fetched logs of a run, all of them whole; each code once, in the order of the rules. What is only a last
 * resort is left out when there is anything else. No fetched logs: -ACT_NOT_FOUND. */
struct flow_code {
    const struct diagnose_rule *rule;
    char *log, *line; /* the first log that has it, and the last such line there */
};
struct flow_error_line {
    char *log, *line;
};
struct flow_codes {
    struct flow_code *v;
    size_t n;
    struct flow_error_line
        *errors; /* lines that hold "Error", but for some that mean nothing: 100 of each log */
    size_t n_errors;
    struct diagnose *rules;
};
int flow_parse(const struct flow_run *run, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
/* The same for a folder of logs from anywhere: one as assets/<run id>, or one whose files are the logs, each read as a
 * rank's unless its name says what it is. Own rules are those of the working directory. */
int flow_parse_folder(const char *folder, struct flow_codes *out, struct act_error *err) ACT_NODISCARD;
void flow_codes_release(struct flow_codes *codes);

/* ---- data */

struct flow_data {
    struct transfer_options options;
    bool follow;                   /* links of the local folder that lead out of it */
    struct transfer_report report; /* out */
    /* internal: what is moved, as the user named it, and where that is on both sides */
    const char *path, *from_path, *to_path;
};
/* Local folder to this cluster's store; from another cluster's store when from is not NULL. Sizes that the store
 * cannot have, a destination that is the source or lies in it, a file where there is a folder, and with
 * delete_extra another folder of the configuration in what it stands for: -ACT_USAGE or
 * -ACT_FAIL before anything is moved. */
int flow_upload(struct flow *flow, struct flow *from, const char *path, struct flow_data *io,
                struct act_error *err) ACT_NODISCARD;
int flow_download(struct flow *flow, const char *path, struct flow_data *io,
                  struct act_error *err) ACT_NODISCARD;
/* For options.plan: what a step is about, in the words of the user: "data/voc/a". New string. */
char *flow_step_path(const struct flow_data *io, const struct transfer_step *step);

/* Compares the local path, or with from what the other cluster's store has, with this cluster's store; as
 * transfer_verify(). */
struct flow_verify {
    struct transfer_options options;
    bool deep;
    bool follow; /* as for flow_data */
    void (*each)(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                 const struct store_entry *to); /* arg is that of the options */
    struct transfer_report report;              /* out */
    const char *path;                           /* internal, as the next */
    bool is_folder;
};
int flow_verify(struct flow *flow, struct flow *from, const char *path, struct flow_verify *io,
                struct act_error *err) ACT_NODISCARD;
/* For each: rel in the words of the user. New string. */
char *flow_verify_path(const struct flow_verify *io, const char *rel);

/* A mapped path in this cluster's store, found out. Keep store open until the path is no longer used. */
struct flow_path {
    struct store *store;
    struct transfer_path path;
};
int flow_open_path(struct flow *flow, const char *path, struct flow_path *out,
                   struct act_error *err) ACT_NODISCARD;
/* The same without a look at whether there is anything, for what interrupted transfers left: in the store, or here in
 * the local folder (-ACT_NOT_FOUND: there is none). */
enum flow_place { FLOW_STORE, FLOW_HERE, FLOW_PLACES };
int flow_open_place(struct flow *flow, const char *path, enum flow_place place, struct flow_path *out,
                    struct act_error *err) ACT_NODISCARD;
void flow_path_release(struct flow_path *path);
/* Refuses to remove a folder in which another one of the configuration lies in the store: -ACT_USAGE. */
int flow_may_remove(struct flow *flow, const char *path, struct act_error *err) ACT_NODISCARD;

/* A URL that reads the file. */
struct flow_url {
    int64_t life_s; /* 0: a day. Where it would have no effect on a sas_token that is shared: -ACT_USAGE */
    bool
        share_sas; /* where nothing signs one for the file alone, it may hold the account's whole sas_token */
    char *url;     /* out: a new string, secret */
};
int flow_url(struct flow *flow, const char *path, struct flow_url *io, struct act_error *err) ACT_NODISCARD;

/* ---- login */

/* Who one is to Azure: the identity of a token for the storage of this cluster, from whatever issues one here. Asks when
 * the cache has none. -ACT_DENIED: there is no credential, the text says what was tried. */
int flow_identify(struct flow *flow, struct token_identity *out, struct act_error *err) ACT_NODISCARD;
/* Logs in with a code that is typed into a browser; show() gets the message for the user. As token_device_login(). */
int flow_login(struct flow *flow, const char *tenant, void (*show)(void *arg, const char *message), void *arg,
               struct act_error *err) ACT_NODISCARD;
/* Forgets all tokens and logins that ACT keeps; with dry_run none. *out_had: there was something. */
int flow_logout(bool dry_run, bool *out_had, struct act_error *err) ACT_NODISCARD;

/* Moves a mapped folder of a run between its store and dir on this machine: what the agent asks for where a folder is not
 * mounted. download true: from the store. Where the run's folder brings the access to its stores, that is used, else
 * the project that the run was submitted from. */
int flow_move_run_folder(const char *run_dir, const char *folder, const char *dir, bool download,
                         struct act_error *err) ACT_NODISCARD;

#endif
