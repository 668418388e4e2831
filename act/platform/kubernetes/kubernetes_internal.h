/* kubernetes_internal.h - for the files of the platform k8s only. A run is one Indexed Job of the run's name, a pod for
 * each node; what the pods need is in Secrets that the Job owns.
 *
 *   kubernetes.c  what the platform can do; opening
 *   job.c         pure: from a run to the objects that it consists of
 *   merge.c       pure: k8s.pod merged into the pods' template
 *   volumes.c     pure: the folders of a run, and what else is mounted
 *   gzip.c        programs, compressed for Secrets
 *   agent.c       the agent act-node, in a Secret
 *   client.c      the program act, for pods that move files, in several
 *   programs.c    removes the programs of other releases
 *   check.c       what is refused before anything is made
 *   room.c        whether the cluster and the namespace could ever have all pods of a run
 *   admission.c   whether the cluster would let the pods in
*   submission.c  a run with all that its objects hold; the preview
 *   submit.c      makes the objects of a run
 *   change.c      ends, removes and scales runs
 *   object.c      pure: what objects say of themselves
 *   state.c       pure: the state of a run, from its Job, the pods and what the cluster says of them
 *   kueue.c       what Kueue says of a Job in one of its queues
 *   loss.c        pure: pods that were taken away, nodes that do not answer
 *   runs.c        status of many runs, and listings of runs
 *   watched.c     lists that are kept as the cluster has them, for who watches
 *   pod_log.c     pure: the logs of the ranks, from what a pod prints
 *   logs.c        the logs of a run as a store
 *   pod_reader.c  how far the log of each pod was read
 *   nodes.c       nodes, shell
 *   shell.c       this terminal, or these files, as those of a command in a pod
 *   cluster.c     summary, jobs
 *   examine.c     checks that everything runs need is there
 *   aks*.c        the cluster itself, where Azure runs it: see aks.h
 *
 * Source: kubernetes.io/docs/reference/kubernetes-api (batch/v1 Job, core/v1 Pod, Secret, Service, Event), and
 * .../docs/concepts/workloads/controllers/job/.
 */
#ifndef ACT_PLATFORM_KUBERNETES_KUBERNETES_INTERNAL_H
#define ACT_PLATFORM_KUBERNETES_KUBERNETES_INTERNAL_H

#include "auth/services.h"
#include "base/hash.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "kube/kube.h"
#include "platform/kubernetes/keys.h"
#include "platform/platform_internal.h"

struct kubernetes {
    struct platform base;        /* the first member */
    const struct config *config; /* the caller's */
    struct kube *kube;           /* opened by kubernetes_kube() */
    /* The programs of this release that the namespace has in Secrets, for all runs: act-node, and act in parts. */
    struct kubernetes_program {
        char *name; /* of the Secret, or what the names of the parts begin with; NULL: not needed yet */
        char sha256[ACT_SHA256_HEX];
        size_t parts;
        bool is_there;
        int64_t seen_ms; /* when it was looked for; 0: not yet */
    } agent, client;
    struct aks *aks;         /* opened by aks_open() */
    struct act_strv aborted; /* the ids of the runs that were deleted by this process */
    struct act_strv losses;  /* "run id/attempt": of those the events were asked why a pod was lost before */
    struct watched {
        char *path;
        struct kube_watch *watch;
        int64_t used_ms;
    } * watched; /* the lists that were asked for since somebody watches */
    size_t n_watched;
    json_t *caught_up; /* the uids of the Jobs that ended, and whose pods were asked for since */
    bool *news;        /* of who watches; NULL: nobody does */
    bool changed;      /* a list did, since status() */
};

static inline struct kubernetes *kubernetes_of(struct platform *p)
{
    return (struct kubernetes *)p;
}

/* Returns the client, and opens it on the first call. */
int kubernetes_kube(struct kubernetes *k, struct kube **out, struct act_error *err) ACT_NODISCARD;

/* ---- job.c */

/* Marks that tell ACT's objects from others, and which run they belong to. The annotation has every id, the label only
 * one that is fit for a label. */
#define KUBERNETES_RUN       "act/run"
#define KUBERNETES_MANAGED   "app.kubernetes.io/managed-by"
#define KUBERNETES_TITLE     "act/title"
#define KUBERNETES_LABEL     "act/name"
#define KUBERNETES_TAGS      "act/tags" /* by run_tags_line() */
#define KUBERNETES_USER      "act/user"
#define KUBERNETES_CLUSTER   "act/cluster"
#define KUBERNETES_NUM_GPU   "act/num-gpu"
#define KUBERNETES_PROGRAM   "act/program"          /* the Secrets that all runs share: the beginning of its hash */
#define KUBERNETES_MIN_NODES "act/min-nodes"        /* only elastic runs have it */
#define KUBERNETES_PER_NODE  "act/num-gpu-per-node" /* likewise */
#define KUBERNETES_QUEUE     "kueue.x-k8s.io/queue-name"
#define KUBERNETES_QUEUED    "act/queue"     /* of pods that a queue of Kueue lets in: its name */
#define KUBERNETES_MAIN      "main"          /* the container */
#define KUBERNETES_NODE      "/run/act/node" /* in it: a folder of the pod, with the agent */
#define KUBERNETES_TOKEN     "token"         /* of the ranks' link, in the run's Secret */
#define KUBERNETES_INDEX     "batch.kubernetes.io/job-completion-index"
#define KUBERNETES_SENDS     "act/sends-logs" /* of pods whose logs outlive them */
/* How many pods of its index have failed before a pod: those that count for the Job, and those that do not. */
#define KUBERNETES_FAILED      "batch.kubernetes.io/job-index-failure-count"
#define KUBERNETES_IGNORED     "batch.kubernetes.io/job-index-ignored-failure-count"
#define KUBERNETES_MERGE_PATCH "application/merge-patch+json"
/* The Accept header that asks for an object's metadata alone. */
#define KUBERNETES_METADATA_ONLY "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=1,application/json"
#define KUBERNETES_FOLDERS       "/run/act/folders/" /* where the pods have the mapped folders */

enum {
    KUBERNETES_NAME_MAX = 40,
    KUBERNETES_TOKEN_BYTES = 32,
    KUBERNETES_KEPT_S = 7 * 24 * 3600, /* a finished Job, with the logs of its pods */
    KUBERNETES_PART = 700000,          /* bytes of a package in one Secret, of which the limit is 1 MiB */
    KUBERNETES_PACKAGE_MAX = 32 << 20,
    KUBERNETES_LOST_GROUP = 121, /* exit status of a pod that the Job is to replace */
    KUBERNETES_ALONE = 123,      /* and of one that waited in vain for the first one */
    KUBERNETES_NOT_OURS = 124,   /* and of one that finds another program in the Secrets than was submitted */
    KUBERNETES_NO_GZIP = 125,    /* and of one whose image cannot unpack the agent */
    KUBERNETES_NO_CLIENT = 126,  /* and of one whose image cannot run act */
};

/* The minor versions of Kubernetes 1 that runs need, and those that lose nothing to a lost pod. */
enum { KUBERNETES_OLDEST = 24, KUBERNETES_WITH_POLICY = 26, KUBERNETES_ELASTIC = 31 };

/* A run, with what its objects need to know besides it. */
struct kubernetes_run {
    const struct config *config;
    const struct run_spec *spec;
    const char *name;                           /* kubernetes_name() */
    const char *program;                        /* the name of the Secret that holds the agent */
    const char *program_sha256, *client_sha256; /* by which the pods know them, whoever made the Secrets */
    const char *user;                           /* who submits it */
    size_t parts;       /* of the package, each in a Secret of its own; 0: it has none, or is small */
    const char *client; /* what the names of the parts of act begin with; NULL: the pods do not need it */
    size_t client_parts;
};

/* The content of a run's Secret. Everything but spec is secret. */
struct kubernetes_content {
    const char *spec;    /* run.json */
    const char *secrets; /* secrets.json; NULL: none */
    const char *stores;  /* stores.json; NULL: the pods move no files */
    const char *token;   /* by which the pods know each other */
    const void *package; /* NULL: none, or in parts */
    size_t package_len;
};

/* Returns the name of the objects of a run: a DNS label of at most KUBERNETES_NAME_MAX characters that begins with a
 * letter, as a Service needs. New string. */
char *kubernetes_name(const char *run_id);
/* Returns the id of the run that an object belongs to, owned by the object; NULL: it is not ACT's. */
const char *kubernetes_run_of(const json_t *object);

/* Returns where config has the image that counts: k8s.image or docker.image. */
char **kubernetes_image_setting(struct config *config);
/* Returns the image of the run spec (NULL: of any run), else the one in config; NULL: there is none. New string. */
char *kubernetes_image(const struct config *config, const struct run_spec *spec);
/* Returns the resource of the cluster by which runs ask for GPUs; NULL: they ask for none. */
const char *kubernetes_gpu_resource(const struct config *config);
/* Return the objects of a run, new references. uid is that of the Job, which then owns them; NULL: nobody does. */
json_t *kubernetes_job(const struct kubernetes_run *run, bool suspended);
json_t *kubernetes_service(const struct kubernetes_run *run, const char *uid);
json_t *kubernetes_secret(const struct kubernetes_run *run, const struct kubernetes_content *content, const char *uid);
json_t *kubernetes_package(const struct kubernetes_run *run, size_t part, const void *bytes, size_t len,
                           const char *uid);
/* pairs has keys and values in turn, and ends with NULL. */
json_t *kubernetes_values_secret(const struct kubernetes_run *run, const char *name, const char *uid,
                                 const char *const *pairs);
/* Returns the login to the image's registry; NULL: docker.* has none. */
json_t *kubernetes_registry(const struct kubernetes_run *run, const char *uid);
/* Returns a Secret that all runs of the namespace share: key has the len bytes gz, the agent or a part of act,
 * compressed; hash is that of the whole program. A new reference. */
json_t *kubernetes_program(const char *name, const char *hash, const char *key, const void *gz, size_t len);
/* Returns the name of the agent's Secret. New string. */
char *kubernetes_program_name(const char *hash);
/* Refuses a Secret that is there if its labels do not say that it is such a one: -ACT_FAIL with what to do. The pods
 * check its content. */
int kubernetes_check_program(const json_t *secret, const char *hash, struct act_error *err) ACT_NODISCARD;
/* Replaces the values of a Secret by asterisks, except run.json, so that people may see it. */
void kubernetes_mask(json_t *secret);

/* ---- merge.c */

/* Merges patch into object as a JSON merge patch (RFC 7396), but lists whose members have names ("containers") by name,
 * as kubectl does. */
void kubernetes_merge(json_t *object, json_t *patch);
/* Tells whether each member of a list has a name, and there is one. */
bool kubernetes_has_names(const json_t *list);
/* Returns the first key of patch, into which it points, that is missing in what the server made of the object; NULL:
 * all that says something is there. */
const char *kubernetes_dropped(json_t *patch, const json_t *made);

/* ---- volumes.c */

/* Refuses folders of a run that the pods cannot have: -ACT_CONFIG. */
int kubernetes_check_folders(const struct config *config, const struct run_spec *spec,
                             struct act_error *err) ACT_NODISCARD;
/* Adds what is mounted to the volumes of a pod and the mounts of its container. */
void kubernetes_add_volumes(const struct kubernetes_run *run, json_t *volumes, json_t *mounts);
/* Returns run.json for the pods, where mapped folders are links to where they are mounted. A new reference. */
json_t *kubernetes_spec_json(const struct run_spec *spec);
/* Returns the name of the PersistentVolumeClaim that a folder is on, into which it points; NULL: it is on none. */
const char *kubernetes_claim_of(const struct run_folder *folder);
/* Returns the index of the first folder of the run that is on the claim of the i-th. */
size_t kubernetes_first_of_claim(const struct run_spec *spec, size_t i);
/* Tells whether a folder is a container of Blob Storage. */
bool kubernetes_is_blob(const struct run_folder *folder);
/* Tells whether a folder is mounted, by the CSI driver of its container or as a claim. */
bool kubernetes_is_mounted(const struct run_folder *folder);
/* Tells whether act in the pods brings or sends a folder, from or to a container or a share. */
bool kubernetes_is_moved(const struct run_folder *folder);
/* Returns the Secret with the key of the account of the run's i-th folder. A new reference; NULL: *err. */
json_t *kubernetes_folder_secret(const struct kubernetes_run *run, size_t i, const struct config_account *account,
                                 const char *uid, struct act_error *err);

/* ---- gzip.c */

/* Returns the len bytes of data as gzip has them. New memory. */
void *kubernetes_gzip(const void *data, size_t len, size_t *out_len);

/* ---- agent.c */

/* Finds k->agent.name, and whether the namespace has the Secret. Asks once. */
int kubernetes_look_for_agent(struct kubernetes *k, struct act_error *err) ACT_NODISCARD;
/* Does the same, and makes the Secret where it is missing. */
int kubernetes_need_agent(struct kubernetes *k, struct act_error *err) ACT_NODISCARD;

/* ---- client.c */

/* Tells whether the pods of a run move files, which act does for them. */
bool kubernetes_needs_client(const struct run_spec *spec);
/* Tells whether the namespace has a Secret of this name, for who may make Secrets and not get them: by what the server
 * says of making it in a dry run. Source: kubernetes.io/docs/reference/using-api/api-concepts/#dry-run */
bool kubernetes_is_name_taken(struct kubernetes *k, const char *name);
/* Finds k->client. Asks once. make: the namespace has its Secrets afterwards. */
int kubernetes_need_client(struct kubernetes *k, bool make, struct act_error *err) ACT_NODISCARD;

/* ---- check.c */

/* Refuses a run that cannot become a Job: -ACT_CONFIG for settings and folders. Asks nobody. */
int kubernetes_check_job(const struct config *config, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Sets the error of a namespace that is not there. */
int kubernetes_no_namespace(const struct kubernetes *k, struct act_error *err);
/* Refuses a namespace that is not there. Asks nobody where the agent's Secret was seen, and passes where the user may
 * not look. */
int kubernetes_check_namespace(struct kubernetes *k, struct act_error *err) ACT_NODISCARD;
/* Refuses a server of Kubernetes 1.<minor> that cannot have the run. */
int kubernetes_too_old(const struct run_spec *spec, int minor, struct act_error *err) ACT_NODISCARD;

/* ---- room.c */

/* Refuses a run whose pods, as its job makes them, could never be there all at once: -ACT_NO_CAPACITY. Warns where what
 * is there, or free, does not do now. Passes where the user may not look. */
int kubernetes_check_room(struct kubernetes *k, const struct run_spec *spec, const json_t *job,
                          struct act_error *err) ACT_NODISCARD;

/* ---- admission.c */

/* Refuses a run whose pods, as its job makes them, the policies of the namespace do not let in: -ACT_CONFIG names the
 * key. Passes where the user may not ask. */
int kubernetes_check_admission(struct kubernetes *k, const struct run_spec *spec, const json_t *job,
                               struct act_error *err) ACT_NODISCARD;

/* ---- submission.c */

/* A run that is submitted, or shown. */
struct kubernetes_submission {
    struct kubernetes *k;
    struct kubernetes_run run;
    char *name, *user, *spec_text, *secrets_text, *package;
    const char *stores; /* the caller's */
    size_t package_len;
    char token[2 * KUBERNETES_TOKEN_BYTES + 1];
    char *uid;     /* of the Job */
    bool may_undo; /* the Job was made by this try, or nothing runs of it yet */
};

/* Describes a run, whose spec outlives the submission. k->agent.name is known. */
void kubernetes_submission_init(struct kubernetes_submission *s, struct kubernetes *k, const struct run_spec *spec);
/* Lets the pods have act, which was found before, and stores.json, the caller's. */
void kubernetes_submission_use_client(struct kubernetes_submission *s, const char *stores);
/* Says in how many parts the package is: one that does not fit into the run's own Secret is in several. */
void kubernetes_submission_split(struct kubernetes_submission *s);
void kubernetes_submission_release(struct kubernetes_submission *s);
/* Takes an object. */
typedef int kubernetes_take_object(struct kubernetes_submission *s, json_t *object, void *arg, struct act_error *err);
/* Calls each for every object but the Job, in the order in which they are made, until it fails. */
int kubernetes_each_object(struct kubernetes_submission *s, kubernetes_take_object *each, void *arg,
                           struct act_error *err) ACT_NODISCARD;

/* ---- change.c */

/* Deletes the object that was looked at, one of plural, and no other one of its name. policy says what becomes of what
 * it owns: "Foreground", "Background", or NULL where it owns nothing. One that is gone is fine. */
int kubernetes_delete(struct kube *kube, const char *version, const char *plural, const json_t *object,
                      const char *policy, struct act_error *err) ACT_NODISCARD;
int kubernetes_delete_job(struct kubernetes *k, const json_t *job, const char *policy,
                          struct act_error *err) ACT_NODISCARD;
/* Sets the error of a run that the namespace does not have. */
int kubernetes_no_run(const struct kubernetes *k, const char *id, struct act_error *err);

/* ---- cluster.c */

/* Asks the server for its version: *out_name "v1.20.4", a new string, and *out_minor 20; INT_MAX: it is not
 * Kubernetes 1. */
int kubernetes_version(struct kubernetes *k, char **out_name, int *out_minor, struct act_error *err) ACT_NODISCARD;
/* Calls each for every node, until it fails. -ACT_DENIED: the user may not list them. */
int kubernetes_each_node(struct kubernetes *k, int (*each)(void *arg, const json_t *node, struct act_error *err),
                         void *arg, struct act_error *err) ACT_NODISCARD;

/* ---- runs.c */

/* Asks for the Job of a run. *out is a new reference, NULL where there is none, or one of the name that is not the
 * run's. */
int kubernetes_find_job(struct kubernetes *k, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Does the same without a request where somebody watches it. *out must not be changed. */
int kubernetes_know_job(struct kubernetes *k, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Lists the pods of the Job with this name, also those that have ended and were not deleted, without a request where
 * somebody watches them. *out is a new array of what must not be changed. */
int kubernetes_find_pods(struct kubernetes *k, const char *name, json_t **out, struct act_error *err) ACT_NODISCARD;

/* ---- watched.c */

/* Gives the items of the list with this path, called what ("the pods"), a new array of what must not be changed. Asks
 * nobody where the list is watched; where somebody watches the platform, it is watched from now on. */
int kubernetes_items(struct kubernetes *k, const char *path, const char *what, json_t **out,
                     struct act_error *err) ACT_NODISCARD;
/* Asks for them, even where they are watched. */
int kubernetes_items_now(struct kubernetes *k, const char *path, const char *what, json_t **out,
                         struct act_error *err) ACT_NODISCARD;
/* Tells whether the list is watched. */
bool kubernetes_watches(const struct kubernetes *k, const char *version, const char *plural, const char *query);
/* Ends the watches of lists that nobody has asked for in a while. */
void kubernetes_drop_unused(struct kubernetes *k);

/* ---- object.c */

/* Returns the metadata of an object; NULL: it has none. */
const json_t *kubernetes_metadata(const json_t *object);
/* Return metadata.name and metadata.uid, "" where there is none. */
const char *kubernetes_name_of(const json_t *object);
const char *kubernetes_uid_of(const json_t *object);
/* Return a member of metadata.labels or metadata.annotations; NULL: there is none. */
const char *kubernetes_label(const json_t *object, const char *key);
const char *kubernetes_annotation(const json_t *object, const char *key);
/* Returns a member in RFC 3339 as Unix time; 0: there is none. */
int64_t kubernetes_time(const json_t *object, const char *key);
/* Tells whether somebody has deleted an object that is there yet. */
bool kubernetes_is_going(const json_t *object);
/* Returns the condition of this type, whatever its status; NULL: there is none. */
const json_t *kubernetes_any_condition(const json_t *object, const char *type);
/* Tells whether the status of a condition is True. */
bool kubernetes_is_true(const json_t *condition);
/* Returns the condition of this type if it is True; else NULL. */
const json_t *kubernetes_condition(const json_t *object, const char *type);

/* Returns how many pods a Job has when it is complete: 0 to 100000. */
int kubernetes_completions(const json_t *job);
/* Return the phase of a pod, and the name of its node, "" where there is none. */
const char *kubernetes_phase(const json_t *pod);
const char *kubernetes_node_of(const json_t *pod);
/* Returns the index of a pod in its Job; -1: it is not known. */
int kubernetes_index(const json_t *pod);
/* Returns the state ("waiting", "running", "terminated") of the run's container in a pod; NULL: it is in another. */
const json_t *kubernetes_container_state(const json_t *pod, const char *state);
/* Returns that state of the first container of a pod that gives a reason, where those that start before the others come
 * first; NULL: none does. */
const json_t *kubernetes_told_state(const json_t *pod, const char *state);
/* Returns what people call the state of a pod: "Running", "Pending: ImagePullBackOff", "Terminating". New string. */
char *kubernetes_pod_state(const json_t *pod);
/* Tells whether a pod has failed or is going. */
bool kubernetes_is_over(const json_t *pod);
/* Compares when two pods were made: < 0: `one` before `other`. Times have only seconds; of two that were made within
 * one, the one that changed last is newer, for a pod takes the place of another when that is over. The versions of
 * objects of one kind can be compared. Source: https://www.kubernetes.dev/resources/keps/5504/ */
int kubernetes_compare_age(const json_t *one, const json_t *other);
/* Tells whether a pod was made in the place of the other (NULL: none), which then is over. */
bool kubernetes_is_newer(const json_t *pod, const json_t *than);
/* Returns how many pods there were in the place of a pod before it, also those that are gone; 0 where the cluster does
 * not say. */
int kubernetes_lives_before(const json_t *pod);
/* Returns the pods that are the n nodes of a run now: the newest of each index, NULL where there is none. New
 * memory. */
const json_t **kubernetes_pods_of(const json_t *pods, int n);

/* ---- state.c */

/* What the cluster tells of one run. All may be NULL. */
struct kubernetes_view {
    const json_t *job;
    const json_t *pods;     /* array; NULL: not asked for */
    const json_t *events;   /* array, of any objects of the namespace; NULL: not asked for */
    const json_t *workload; /* Kueue's */
    int64_t ahead_s;        /* of the clock that the cluster's times are of: kube_ahead_s() */
};
/* Reads the status of a run. Without a Job its state is Unknown. */
void kubernetes_read_status(const struct kubernetes_view *view, struct run_status *out);
/* Explains the words by which a policy refuses a pod: "<meaning>: <words>; <todo>". New string. */
char *kubernetes_refusal(const char *words);
/* Tells whether the pods of a Job add to what the Job itself says of its state. */
bool kubernetes_wants_pods(const json_t *job);
/* Tells whether only the events may say why a run of this status waits. */
bool kubernetes_wants_events(const json_t *job, const struct run_status *status);
/* Tells whether only Kueue's Workload may say why a run waits. */
bool kubernetes_wants_workload(const json_t *job);
/* Returns the object whose events may say why the run waits: the first pod that is not up, or the Job where it lacks a
 * pod; NULL: it lacks none. Owned by the view. */
const json_t *kubernetes_waits_for(const struct kubernetes_view *view);

/* ---- kueue.c */

/* Lists the Workloads of the namespace, a new array. now: as they are now, whether or not somebody watches them. */
int kubernetes_list_workloads(struct kubernetes *k, bool now, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Returns the one that the Job with this uid owns. NULL: there is none. Owned by the array. */
const json_t *kubernetes_workload_of(const json_t *workloads, const char *job_uid);
/* Returns why Kueue took the pods of a Job away, now or before it admitted the Job again. New string; NULL: it never
 * did. */
char *kubernetes_eviction(const json_t *workload);

/* ---- loss.c */

/* Says why the last of the pods that were taken away was, of the n indexes of a run: "pod 'x' was preempted: ...".
 * only_now: of those whose place no other has yet, also of those that are only ending. New string; NULL: none was. */
char *kubernetes_loss(const json_t *pods, int n, bool only_now);
/* Says the same of pods of a Job that are gone, by the events "Preempted" of the namespace. New string; NULL: none
 * was. */
char *kubernetes_loss_in_events(const json_t *events, const char *job);
/* Returns since when the node of a pod does not answer, by the clock of the cluster; 0: it does, as far as is known. */
int64_t kubernetes_silent_since(const json_t *pod);
/* Says "node 'a' does not answer since ..." of the first such pod, with what follows and what to do. is_ending: the
 * run is; ahead_s: see kubernetes_view. New string; NULL: all answer. */
char *kubernetes_silent_node(const json_t *pods, bool is_ending, int64_t ahead_s);

/* ---- pod_log.c: the logs of the ranks, from what the agent in a pod prints */

struct kubernetes_pod_log;
/* Takes text of the log of a rank, perhaps a piece of a line; rank -1: a line of the agent, or of what starts it. */
typedef void kubernetes_log_text(void *arg, int attempt, int rank, const char *text, size_t len);
/* Returns a log that calls text with arg. */
struct kubernetes_pod_log *kubernetes_pod_log_new(kubernetes_log_text *text, void *arg);
/* Takes bytes as the service gives them with timestamps=true. */
void kubernetes_pod_log_take(struct kubernetes_pod_log *log, const char *bytes, size_t len);
/* Takes a last line that has no end: the container has ended, and no more bytes will come. */
void kubernetes_pod_log_end(struct kubernetes_pod_log *log);
/* Tells whether the node said that it has the log no more, as of pods that were evicted; known at the end. */
bool kubernetes_pod_log_is_gone(const struct kubernetes_pod_log *log);
/* Expects the next bytes from another connection, which repeats what was there at that second. Returns the value of its
 * sinceTime, a new string; NULL: it begins at the beginning. */
char *kubernetes_pod_log_resume(struct kubernetes_pod_log *log);
/* Returns by how many of its last lines a log shows that nothing was added; 0: by none, it has to be read from that
 * second. */
int64_t kubernetes_pod_log_proof(const struct kubernetes_pod_log *log);
/* Tells whether the bytes, so many last lines of the log, end with what was taken. */
bool kubernetes_pod_log_proves(const struct kubernetes_pod_log *log, const char *bytes, size_t len);
void kubernetes_pod_log_free(struct kubernetes_pod_log *log);

/* ---- shell.c */

/* Tells whether a command gets a terminal, because both ends of it are one here. */
bool kubernetes_has_terminal(void);
/* Runs a command in a pod with the input and the output of this process. *out_not_spoken, when it failed: the server
 * takes no commands this way, and nothing ran. */
int kubernetes_run_in(struct kubernetes *k, const char *pod, const struct act_strv *command, int *out_status,
                      bool *out_not_spoken, struct act_error *err) ACT_NODISCARD;

/* The functions of platform.h. */
int kubernetes_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err);
int kubernetes_check(struct platform *p, const struct run_spec *spec, struct act_error *err);
int kubernetes_check_package(const struct run_spec *spec, struct act_error *err);
int kubernetes_preview(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err);
int kubernetes_prepare(struct platform *p, struct run_spec *spec, const char *package, struct act_error *err);
int kubernetes_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err);
void kubernetes_abort(struct platform *p, struct platform_end *ends, size_t n);
int kubernetes_remove(struct platform *p, const char *id, struct act_error *err);
int kubernetes_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                             struct act_error *err);
int kubernetes_scale(struct platform *p, const char *id, int nodes, bool dry_run, struct act_error *err) ACT_NODISCARD;
int kubernetes_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                      struct act_error *err);
bool kubernetes_watch(struct platform *p, bool *news);
int kubernetes_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
int kubernetes_list(struct platform *p, struct act_strv *out_ids, struct act_error *err);
int kubernetes_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                      struct act_error *err);
struct store *kubernetes_open_logs(struct platform *p, const char *id, bool ended);
int kubernetes_usable_nodes(struct platform *p, const struct run_spec *spec, struct act_strv *out,
                            struct act_error *err) ACT_NODISCARD;
int kubernetes_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
int kubernetes_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                     struct platform_shell *out, struct act_error *err);
int kubernetes_agent_in(struct platform *p, const char *id, const char *node, char **out, struct act_error *err);
int kubernetes_summary(struct platform *p, struct platform_summary *out, struct act_error *err);
int kubernetes_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err);
void kubernetes_examine(struct platform *p, struct platform_findings *findings);

#endif
