/* run.h - what a run is: its specification (run.json), its states, its ids. Pure data.
 *
 * run.json is written before the run is submitted and never changes (but a pod of an elastic run has a copy with the
 * present size); it is all that the agent reads. Client and agent are both built on this module, so the format has one
 * writer and one reader.
 */
#ifndef ACT_RUN_RUN_H
#define ACT_RUN_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

enum run_state { RUN_QUEUED, RUN_RUNNING, RUN_COMPLETED, RUN_FAILED, RUN_CANCELED, RUN_UNKNOWN };

const char *run_state_name(enum run_state state);     /* "Queued", ... */
enum run_state run_state_from_name(const char *name); /* RUN_UNKNOWN when there is no such state */
static inline bool run_state_is_final(enum run_state s)
{
    return s == RUN_COMPLETED || s == RUN_FAILED || s == RUN_CANCELED;
}

/* How a mapped folder gets to the node. */
enum run_folder_mode {
    RUN_FOLDER_RW_MOUNT,
    RUN_FOLDER_RO_MOUNT,
    RUN_FOLDER_DOWNLOAD,
    RUN_FOLDER_UPLOAD,
    RUN_FOLDER_PATH, /* the nodes have it already: link */
};
const char *run_folder_mode_name(enum run_folder_mode mode); /* "rw_mount", ... */
bool run_folder_mode_from_name(const char *name, enum run_folder_mode *out);

#define RUN_SHARE "file:" /* prefix of the store of a folder in an Azure Files share */
#define RUN_CLAIM "pvc:"  /* and of one in a PersistentVolumeClaim of Kubernetes */

struct run_folder {
    char *name;      /* "data": the link in the code root */
    char *store;     /* without secrets: "folder:/path", "blob:account/container", "file:account/share", "pvc:claim" */
    char *path;      /* path in the store */
    char *link;      /* folder store: the absolute local path to link to; else NULL */
    char *datastore; /* of the workspace; the only way to it once a job file with its key is gone; or NULL */
    enum run_folder_mode mode;
};

/* An output directory of its job file, which people name by its id. */
struct run_output {
    char *id;
    char *path; /* in a mapped folder or RUN_DIR_OUTPUTS; else one of the nodes; with "$ACT_RUN_ID" in it */
};

struct run_env {
    char *name;
    char *value; /* NULL: a secret that is not in run.json, see run_secrets_read() */
    bool secret; /* whatever its name says */
};

/* The environment that the commands of a run find on every node, made there in this order (node/setup.h). Members that
 * are empty or NULL are left out. */
struct run_setup {
    bool modules_purge;      /* unload all modules first */
    struct act_strv modules; /* to load, by Environment Modules or Lmod: "cuda/12.1" */
    char *conda;             /* an environment of conda to activate: its name or its folder */
    char *venv;              /* the folder of a virtual environment to activate */
    char *lines;             /* for bash, once on each node; what they export reaches the ranks */
    char *rank_lines;        /* for bash, by each rank before its command */
    int timeout_s;           /* all but rank_lines must end within so long; 0: nothing is set up */
};

/* Whether the environment of a run sees the packages that its Python has already (node/environment.h). */
enum run_packages {
    RUN_PACKAGES_USUAL,  /* where somebody has chosen that Python: an image, conda, a virtual environment */
    RUN_PACKAGES_SYSTEM, /* it sees them */
    RUN_PACKAGES_OWN     /* it does not */
};

/* Where the environment of a run is made. */
enum run_makes {
    RUN_MAKES_USUAL, /* on the nodes; on the login node once a node has reached no index */
    RUN_MAKES_NODES,
    RUN_MAKES_LOGIN
};

/* How the environment is made from what a project says that it needs. */
struct run_needs {
    bool none;         /* nothing is made, whatever the project says */
    unsigned packages; /* enum run_packages */
    unsigned where;    /* enum run_makes */
    char *wheels;      /* a folder of wheels on the nodes, or of the project, in place of an index; may be NULL */
    char *key;         /* of the one that the login node has made (node/environment.h); NULL: it has made none */
};

struct run_spec {
    char *id;
    char *experiment;
    char *cluster;
    char *platform;
    bool is_here, agent_mounts; /* of the platform: it is this machine; its agent mounts folders */
    char *project_root;         /* where it was submitted from */
    int64_t created_unix_s;
    struct act_strv argv; /* any bytes */
    char *title; /* what its job file runs, for people: "job.json, pyTorch: python train.py"; NULL: argv says it */

    char *package_store, *package_key;   /* as in run_folder.store; where the package is stored */
    char package_sha256[ACT_SHA256_HEX]; /* empty: a run without code */
    int64_t package_bytes;
    char *logs_store, *logs_path; /* the place where its nodes send their logs, as for the package; NULL: nowhere */

    struct run_folder *folders;
    size_t n_folders;
    struct run_output *outputs;
    size_t n_outputs;
    int nodes, procs_per_node, gpus_per_node; /* gpus_per_node may be 0 */
    struct act_strv gpus; /* by name, the GPUs of this machine that it may have; empty: any that are given */
    int gpu_free_memory;  /* a GPU is free while so many percent of its memory are in use; 0: the usual */
    bool on_processors;   /* the cluster has no GPUs: gpus_per_node counts processors */
    /* An elastic run begins with the nodes that are there, and changes its size between these. nodes is then the most,
     * or on a node the present size. Both 0: the size is fixed. */
    int min_nodes, max_nodes;
    /* The command is a starter (starter.h), one on each node, which starts so many processes there; 0: it is not. */
    int started_per_node;
    struct run_env *env;
    size_t n_env;
    struct run_setup setup;
    struct run_needs environment;
    char *compile_args; /* may be NULL */
    bool sleep_if_fail, sleep_if_succeed;
    bool takes_input;         /* its commands read what is typed into 'a attach'; else they have no input */
    int hang_s;               /* it hangs if no rank writes and no GPU works for so long; 0: nobody looks */
    bool hang_any_gpus;       /* whatever the GPUs do */
    int64_t limit_s, warn_s;  /* its agent ends it when it has run for so long, and warns it so long before; 0: never */
    char *launcher;           /* what starts the ranks: "mpirun" (also when NULL), "srun" or, in pods, "direct" */
    char *mpi;                /* srun's --mpi; may be NULL */
    char *container;          /* "apptainer", "pyxis", "docker" or "podman"; may be NULL */
    char *image;              /* the image it runs in, by container or by the service; may be NULL */
    char *timeout, *shm_size; /* limits from its job file, for a service: "PT5H", "16g"; may be NULL */
    char *scratch;            /* a folder on each node's disk, for the code; may be NULL */
    char *mount;              /* what mounts folders: "blobfuse2", "rclone"; or "copy"; NULL: what the node has */
    char *resubmit_of;        /* the id of the run this one repeats; may be NULL */
    struct act_strv after;    /* it begins when these runs have ended, on a platform that can wait and has them */
    struct act_strv needs;    /* it begins when these runs have completed, and is canceled if one does not; */
    bool needs_any;           /* with this, when they have ended, whatever became of them */
    char *name;               /* what its user calls it, not unique; may be NULL */
    json_t *tags;             /* an object of texts; NULL: none */
    bool own_image;           /* image is of its job file, not of the cluster file */
    bool foreign;             /* another tool's job, or a repeat of one: only its service knows all of it */
    json_t *config;           /* the resolved configuration without secrets; may be NULL */
    /* The run is tried again after a failure, at most so often, if the failure's class (the id of a rule of diagnose.h)
     * is one of these. */
    int retry_times;
    struct act_strv retry_on;
    char *own_rules;       /* the project's own rules, for that; may be NULL */
    struct act_strv avoid; /* nodes it must not be placed on, as they have failed lately */
};

enum { RUN_HANG_MOST_S = 30 * 86400, RUN_LIMIT_MOST_S = 3650 * 86400 };

enum { RUN_SETUP_USUAL_S = 600, RUN_SETUP_MOST_S = 86400 };

/* Tells whether there is anything to do once on a node. */
bool run_setup_is_wanted(const struct run_setup *setup);
/* Makes *to a copy of from, and releases what it was. */
void run_setup_copy(const struct run_setup *from, struct run_setup *to);
void run_setup_release(struct run_setup *setup);
/* Appends the words that start bash with setup.sh, which explains mode; folder: where mode "capture" writes. In the
 * other modes the words of a command follow. */
void run_setup_words(const char *mode, const char *folder, const struct run_setup *setup, struct act_strv *out);
/* Returns the member "setup" of run.json, a new reference; NULL: its nodes set up nothing. */
json_t *run_setup_to_json(const struct run_spec *spec);
/* Reads that member into spec->setup. Errors: -ACT_FAIL. */
int run_setup_from_json(const json_t *json, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

void run_spec_release(struct run_spec *spec);
/* Returns the value of an environment variable of the run, the last of several; NULL: there is none. */
const char *run_spec_variable(const struct run_spec *spec, const char *name);
/* Returns how many processes of the user a node has, whoever starts them. */
static inline int run_spec_processes(const struct run_spec *spec)
{
    return spec->started_per_node ? spec->started_per_node : spec->procs_per_node;
}
static inline bool run_spec_is_elastic(const struct run_spec *spec)
{
    return spec->max_nodes > 0;
}
void run_spec_add_output(struct run_spec *spec, const char *id, const char *path);
void run_spec_add_env(struct run_spec *spec, const char *name, const char *value);

/* Refuses a package of package_bytes that would be unpacked to so many: a few megabytes could fill the disks of all
 * nodes. Returns 0 or -ACT_FAIL. */
int run_check_unpacked(uint64_t package_bytes, uint64_t unpacked_bytes, struct act_error *err) ACT_NODISCARD;

/* Reads ACT_ABORT_GRACE, the seconds that a run has between SIGTERM and SIGKILL, from its value text. NULL, and
 * anything but a number of seconds less than a day, means the usual ten. */
int64_t run_abort_grace_s(const char *text);
/* Returns how long to wait for a run that was asked to end before killing it, by ACT_ABORT_GRACE of this process. */
int64_t run_abort_wait_ms(void);

/* Makes "<experiment>_<unix time>_<8 hex>", a new string; characters of experiment outside [A-Za-z0-9_-] become '-'. */
char *run_id_new(const char *experiment, int64_t now_unix_s);
/* Makes the id of one of many runs that are submitted together, a new string: "<experiment>_<unix time>_<5 hex><3
 * digits>", of which the hex are of row and the digits are number (less than RUN_ROW_MAX). */
enum { RUN_ROW_MAX = 1000 };
char *run_id_in_row(const char *experiment, int64_t now_unix_s, uint32_t row, int number);
/* Returns what such an id has before its number, a new string; NULL: it is no such id. *out_number, which may be NULL,
 * is that number. */
char *run_id_row(const char *id, int *out_number);
/* Tells whether id has that form, and so may become part of a path. */
bool run_id_valid(const char *id);
/* Tells whether name is safe as part of a path: a service gives runs of other tools names like "brave_apple_x1y2z3". */
bool run_name_valid(const char *name);

/* Write and read run.json. Reading checks every member; unknown members are ignored, a newer version is an error that
 * names it. */
json_t *run_spec_to_json(const struct run_spec *spec);
int run_spec_from_json(const json_t *json, struct run_spec *out, struct act_error *err) ACT_NODISCARD;
/* Reads only what lists of runs show: the command, the title, the code, the size, and of which runs it comes or what it
 * waits for. These members are named by run_brief_members, which ends with NULL. */
extern const char *const run_brief_members[];
int run_brief_from_json(const json_t *json, struct run_spec *out, struct act_error *err) ACT_NODISCARD;
int run_spec_write(const struct run_spec *spec, const char *path, struct act_error *err) ACT_NODISCARD;
int run_spec_read(const char *path, struct run_spec *out, struct act_error *err) ACT_NODISCARD;

/* Return the folders with a datastore in the form of run.json, and read them into a specification without folders. */
json_t *run_volumes_to_json(const struct run_spec *spec);
int run_volumes_from_json(const json_t *array, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* ---- mounts.c */

/* Tells whether the agent brings the folder, in Blob Storage, before the command and sends its changes after it, where
 * others are mounted ('mount: copy'). */
bool run_folder_is_copied(const struct run_spec *spec, const struct run_folder *folder);
/* Writes RUN_FILE_MOUNT_FETCHED into a mount's folder: what is in RUN_DIR_MOUNT_COPY, as it is there. Returns when
 * every later change will be seen. */
int run_mount_note_fetched(const char *dir, struct act_error *err) ACT_NODISCARD;
/* Tells whether something in RUN_DIR_MOUNT_COPY is not as it was then, or nobody can tell. */
bool run_mount_changed(const char *dir);
/* The content of the note. Release it in any case. */
struct run_fetched {
    char *text;
    const char **paths; /* sorted, in text; what is known of each follows its NUL byte */
    size_t n;
};
int run_fetched_read(const char *dir, struct run_fetched *out, struct act_error *err) ACT_NODISCARD;
void run_fetched_release(struct run_fetched *fetched);
/* Tells whether the file at path below RUN_DIR_MOUNT_COPY is as it was: nobody has written to it. */
bool run_fetched_has(const struct run_fetched *fetched, const char *path, uint64_t size, int64_t mtime_ns);

/* Counts the files of a mounted folder that will still be sent, by the notes of rclone in the cache of the mount, whose
 * folder is dir. */
size_t run_mount_waiting(const char *dir);
/* Counts the files that may not be in the store when the tool has ended: those, and all that blobfuse2 has left in its
 * caches, RUN_DIR_MOUNT_CACHE "/blobfuse2.<n>". It sends a file while it closes it, keeps no count, and empties the
 * cache when it ends in order (component/file_cache/file_cache.go of github.com/Azure/azure-storage-fuse). So a file
 * that a killed one left was open for writing, or was only read; nothing tells which. */
size_t run_mount_unsent(const char *dir);
/* Tells whether the folder of a mount has something that is nowhere else: unsent files, changes of a copy, or files
 * that were written to the mount point while nothing was mounted there. */
bool run_mount_holds(const char *dir);

/* ---- labels.c */

/* Tells whether label may be a name, or the key of a tag: at most 64 letters, digits, '.', '_' and '-', the first a
 * letter or digit. So it can stand before the ':' of RUN:PATH, and in an annotation of Kubernetes. */
bool run_label_valid(const char *label);
/* Refuses any other name with -ACT_USAGE. */
int run_check_name(const char *name, struct act_error *err) ACT_NODISCARD;
/* Adds "KEY=VALUE" to an object of texts. VALUE is UTF-8 without control characters, at most 256 bytes. Anything else,
 * or another value for a key that is there: -ACT_USAGE. */
int run_tags_add(json_t *tags, const char *text, struct act_error *err) ACT_NODISCARD;
/* Returns tags as one line of JSON, a new string; NULL: there are none. */
char *run_tags_line(const json_t *tags);
/* Returns the tags of such a line, a new reference, and leaves out members that are not tags. */
json_t *run_tags_parse(const char *line);
/* Tells whether all wanted tags (NULL: none) are there, with these values. */
bool run_tags_have(const json_t *tags, json_t *wanted);

/* The GPU arithmetic: num_gpu <= gpu_per_node makes one node with num_gpu processes; more must be a multiple of
 * gpu_per_node, and makes num_gpu / gpu_per_node nodes. multi_process false: one process on each node. num_gpu 0: one
 * process without GPUs. Anything else is -ACT_USAGE. */
struct run_shape {
    int nodes, procs_per_node, gpus_per_node;
};
int run_shape_of(int64_t num_gpu, int gpu_per_node, bool multi_process, struct run_shape *out,
                 struct act_error *err) ACT_NODISCARD;

/* A node that is to blame for a failure. */
struct run_bad_node {
    char node[64], class[48]; /* class: the id of a rule of diagnose.h */
    int64_t unix_s;
};
enum { RUN_BAD_NODES = 4, RUN_RETRY_MOST = 100 };

/* The state of a run, as far as it is known. */
struct run_status {
    enum run_state state;
    int64_t started_unix_s, ended_unix_s; /* 0: not yet, or not known */
    int exit_status;                      /* of the first failing rank, as a shell would give it (128 + signal) */
    int failed_rank;                      /* the rank that failed first; -1: none, or not known */
    int attempt;                          /* from 1; Slurm restarts a run that was preempted or whose node failed */
    int64_t heartbeat_unix_s;             /* when its supervisor last gave a sign of life; 0: never */
    char reason[512];                     /* one line: why it waits, why it failed, "lost"; may be empty */
    bool has_size;                        /* num_gpu is known; else it is as submitted */
    int num_gpu;                          /* what an elastic run has now, as its size is counted */
    bool unsubmitted;                     /* it failed before its platform got it, so the platform does not know it */
    bool seen;                            /* its platform has told of it, where what is deleted there leaves no trace */
    bool aborted;     /* the user asked its platform to end it; not every platform says who ended a run */
    bool ranks_asked; /* a service's run failed, and the logs of its ranks were searched for the reason */
    char class[48];   /* why it failed: the id of a rule of diagnose.h, where the agent knows it; may be empty */
    int attempts;     /* at most, if every one fails; 0: it is not tried again */
    char retry[320];  /* one line: why the last attempt failed, or why there is no other; may be empty */
    struct run_bad_node bad[RUN_BAD_NODES]; /* the latest ones */
    int n_bad;
};
/* Adds a node, in the place of the oldest one if there are many. Ignores a node that is there already, or whose name is
 * too long. */
void run_status_add_bad(struct run_status *status, const struct run_bad_node *bad);
json_t *run_status_to_json(const struct run_status *status);
/* Reads a status; after a failure *out has the values of a run of which nothing is known. */
int run_status_from_json(const json_t *json, struct run_status *out, struct act_error *err) ACT_NODISCARD;

/* Write and read status.json. A final state is on the disk when run_status_write() returns; earlier states are replaced
 * atomically, too, but without waiting for the disk: after a power cut they mean nothing. */
int run_status_write(const char *path, const struct run_status *status, struct act_error *err) ACT_NODISCARD;
int run_status_read(const char *path, struct run_status *out, struct act_error *err) ACT_NODISCARD;

/* ---- needs.c */

/* Returns for which runs, by their ids, a run waits, a new string: "waits for 'a' and 'b' to complete"; any_end: "waits
 * for the end of 'a' and 'b'". */
char *run_waits_for(const struct act_strv *ids, bool any_end);
/* Says why a run ends that was to run after the one of this id, which has ended without having completed: "'a', which
 * it was to run after, failed". A status that is not final: whoever kept it is dead; NULL: nothing is left of the run.
 */
void run_say_unmet(const char *id, const struct run_status *status, char *out, size_t size);

/* ---- records.c */

/* Replaces path (0600) by the value in one line, atomically, without waiting for the disk: after a power cut there is
 * no supervisor any more, and a torn record counts as none. */
int run_record_write(const char *path, const json_t *value, struct act_error *err) ACT_NODISCARD;

/* Returns what is written into RUN_FILE_JOB for a job of the scheduler, a new string. */
char *run_job_text(const char *job);
/* Reads the job that such a record names into *out, a new string; NULL: it names none. A job that is no text of at most
 * RUN_JOB_MAX bytes is an error. */
int run_job_from_json(const json_t *json, char **out, struct act_error *err) ACT_NODISCARD;
enum { RUN_JOB_MAX = 1024 }; /* an array is named by all its tasks */

enum { RUN_STATUS_MOST = 255 }; /* the greatest exit status, or signal */

/* Why an attempt failed, as its agent writes it into RUN_FILE_FAILURE before it stops the other ranks. */
struct run_failure {
    int attempt;
    int rank;                 /* that failed first; -1: it is not one rank's failure */
    char *node;               /* "": not known */
    int exit_status, signal;  /* signal 0: none */
    char *reason;             /* any bytes */
    int64_t unix_s;           /* when it failed */
    int64_t slurm_from;       /* where the attempt's part of RUN_FILE_SLURM begins */
    struct act_strv lines;    /* the last ones of that rank */
    char *class, *class_line; /* the id of a rule of diagnose.h, where the agent knows it or has judged; what says so */
};
void run_failure_release(struct run_failure *failure);
/* Read and write a failure. Release *out in any case. */
int run_failure_from_json(const json_t *json, struct run_failure *out, struct act_error *err) ACT_NODISCARD;
int run_failure_read(const char *path, struct run_failure *out, struct act_error *err) ACT_NODISCARD;
int run_failure_write(const struct run_failure *failure, const char *path, struct act_error *err) ACT_NODISCARD;

/* The environment of a run on its first node, as the agent writes it into RUN_FILE_ENVIRONMENT. A member that is not
 * known, or not there, is NULL or empty. */
struct run_environment {
    int attempt;
    char *node;
    char *system;             /* "Debian GNU/Linux 12 (bookworm)" */
    char *python;             /* the path of the Python that the command finds */
    char *python_version;     /* "3.11.2" */
    struct act_strv packages; /* of it: "torch==2.1.0+cu121", sorted, with names as pip compares them */
    struct act_strv modules;  /* that are loaded: "cuda/12.1", in this order */
    char *conda, *venv;       /* the folder of the environment that is active */
    char *driver, *cuda, *nccl, *mpi;
    char *image, *image_digest; /* "sha256:..." */
};
void run_environment_release(struct run_environment *environment);
/* Read and write it. Release *out in any case. */
int run_environment_from_json(const json_t *json, struct run_environment *out, struct act_error *err) ACT_NODISCARD;
int run_environment_write(const struct run_environment *environment, const char *path,
                          struct act_error *err) ACT_NODISCARD;
/* Returns the name of a package as pip compares it, of its first len bytes: lower case, with '-' for each run of '-',
 * '_' and '.'. New string. */
char *run_package_name(const char *name, size_t len);

/* The folder of a run on the platform (a shared file system where there are several nodes).
 *
 * Written by the client: run.json, secrets.json, stores.json, package.zip, the first status.json, supervisor.lock,
 * abort, job.json. Written by the agent: claim (the id of the one job that may run it), reserve (room that is given up
 * when the disk is full, so that the end can be written; gone afterwards), status.json, hostfile, temp/, code/ (of one
 * node) or nodes/<node rank>/code/ (of several), user_logs/std_log_process_<rank>.txt, metrics/<node>.jsonl,
 * system_logs/, folders/; what earlier attempts left of these: attempts/<n>/.
 */
#define RUN_FILE_SPEC    "run.json"
#define RUN_FILE_SECRETS "secrets.json" /* 0600; exists only if the environment holds secrets */
#define RUN_FILE_PACKAGE "package.zip"
/* 0600; exists only if nodes that do not see the project copy a mapped folder to or from a blob store: {"version":
 * 1, "folders": {"<name>": {"path", "account_name", "container_name", "endpoint", "sas_token"}}} */
#define RUN_FILE_STORES "stores.json"
/* On a node: the last attempt whose logs other nodes have sent. */
#define RUN_FILE_SENT "sent_attempts"
/* These stand for names there: where nodes that share no folder send their logs, and find a package that is too large
 * to be handed over. */
#define RUN_STORE_LOGS    "/logs"
#define RUN_STORE_PACKAGE "/package"
#define RUN_FILE_STATUS   "status.json"
#define RUN_ENV_CODE      "ACT_RUN_CODE"    /* a variable of its processes: the folder of its code, on their node */
#define RUN_FILE_LOCK     "supervisor.lock" /* locked (flock) while a supervisor lives */
#define RUN_FILE_ABORT    "abort"           /* exists: the run is to be cancelled */
#define RUN_FILE_HOSTS    "hostfile"
#define RUN_FILE_CGROUP   "cgroup" /* the cgroup of the run's processes, if they have one of their own */
#define RUN_DIR_CODE      "code"   /* in "nodes/<node rank>/" when there are several nodes */
#define RUN_DIR_TEMP      "temp"
#define RUN_DIR_USER      "user_logs"
#define RUN_DIR_OUTPUTS   "outputs" /* <id>/: output directories of a job file that lie in no mapped folder */
#define RUN_DIR_SYSTEM    "system_logs"
#define RUN_DIR_NODES     "nodes"
#define RUN_DIR_METRICS   "metrics"
#define RUN_LOG_AGENT     "act: "                   /* prefix of the agent's own lines in a rank's log */
#define RUN_LOG_METRICS   RUN_LOG_AGENT "metrics: " /* see node/metrics.h */
/* The line before the output of a preparation in the log of the rank, which ends at the agent's next line. */
#define RUN_LOG_PREPARATION RUN_LOG_AGENT "the preparation has printed:"
#define RUN_DIR_FOLDERS     "folders"  /* <name>/: what will be sent from a mapped folder of mode upload */
#define RUN_DIR_ATTEMPTS    "attempts" /* <n>/: status.json and the logs of attempt n, once a later one has begun */
#define RUN_FILE_JOB        "job.json" /* the scheduler's job for the run: run_job_text() */
/* mounts/<name>/ in a node's private folder: a mounted folder, see flow/data/mount.h; and the process that keeps it. */
#define RUN_DIR_MOUNTS      "mounts"
#define RUN_DIR_MOUNT_POINT "at"
#define RUN_DIR_MOUNT_CACHE "cache"
#define RUN_DIR_MOUNT_COPY  "copy" /* with RUN_MOUNT_COPY, in place of a mount point */
/* Written when the copy of a folder of mode rw_mount is complete; for each name: path, NUL, "SIZE MTIME_NS INODE
 * CTIME_NS", NUL. */
#define RUN_FILE_MOUNT_FETCHED "fetched"
#define RUN_MOUNT_COPY         "copy" /* run_spec.mount */
#define RUN_FILE_MOUNT_LOCK    "lock"
#define RUN_FILE_MOUNT_END     "end.json" /* {"version": 1, "error": TEXT if there was one} */
#define RUN_MOUNT_KEEPER       "act-mount"
/* struct run_failure: why an attempt failed. */
#define RUN_FILE_FAILURE "system_logs/failure.json"
/* struct run_environment: what the run ran with. */
#define RUN_FILE_ENVIRONMENT "system_logs/environment.json"
/* The output of the batch step of a Slurm job, and of Slurm itself: all attempts one after the other. */
#define RUN_FILE_SLURM RUN_DIR_SYSTEM "/slurm.txt"
/* A line for everything that happened to a rank: {"time", "event": "started" | "ended" | "lost", "rank", "node", "pid",
 * "exit_status", "signal"} */
#define RUN_FILE_RANKS "system_logs/ranks.jsonl"
/* The stacks of the processes of a node's ranks when the run hung (node/stacks.h); %s: the node. */
#define RUN_FILE_STACKS RUN_DIR_SYSTEM "/stacks_%s.txt"
/* The attempts after which the run was tried again: {"version": 1, "tries": [{"attempt", "class", "node", "words",
 * "seconds"}]} */
#define RUN_FILE_RETRY "retry.json"
char *run_rank_log(int rank); /* "user_logs/std_log_process_<rank>.txt", new string */
/* Returns the rank whose log has this name on any platform, also by Azure Machine Learning's runtimes
 * ("user_logs/std_log_process_03.txt", "azureml-logs/70_driver_log_3.txt"); -1: it is not a rank's log. *out_choice: of
 * several files of one rank, that with the smallest number is its log; out_choice may be NULL. */
int run_log_rank(const char *name, int *out_choice);

/* Tells whether the len bytes of a name are that of a folder which runs have for themselves, on some platform. */
bool run_is_own_folder(const char *name, size_t len);

/* Tells whether the value must stay hidden: it is marked so, or its name or value gives it away. */
bool run_env_is_secret(const struct run_env *env);

/* run.json only names the variables that are secret. Their values are in a separate file (0600), which is written
 * only if there are any. Reading it completes a specification from run.json; a missing file changes nothing. */
int run_secrets_write(const struct run_spec *spec, const char *path, struct act_error *err) ACT_NODISCARD;
int run_secrets_read(struct run_spec *spec, const char *path, struct act_error *err) ACT_NODISCARD;
/* Returns the content of that file: an object of names and values. */
json_t *run_secrets_to_json(const struct run_spec *spec);
/* Completes a specification from such an object. */
void run_secrets_from_json(struct run_spec *spec, const json_t *values);

#endif
