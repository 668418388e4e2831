/* azureml_internal.h - for the files of Azure Machine Learning only: platform aml (managed clusters), itp (attached
 * Kubernetes) and singularity (virtual clusters).
 *
 *   azureml.c  what the platform can do; opening
 *   job.c      pure: from a run to the body of a job, and back
 *   prepare.c  everything that a job needs in the workspace
 *   stores.c   its datastores, and the URLs of files
 *   image.c    its image's environment, and the connection to the registry
 *   repeat.c   pure: the body of another tool's job as one of a new job
 *   submit.c   submit, abort
 *   start.c    whether the compute could ever start a run
 *   history.c  locating the run history, and requests to it
 *   state.c    the state of a run, from its job and the run history
 *   runs.c     status of many runs, and listings of runs
 *   logs.c     the logs of a run as a store
 *   nodes.c    nodes, shell
 *   cluster.c  summary, jobs
 *   compute.c  the managed clusters themselves, see clusters.h
 *   examine.c  checks that everything runs need is there
 *
 * Source: learn.microsoft.com/rest/api/azureml; azureml.c has the API versions.
 */
#ifndef ACT_PLATFORM_AZUREML_INTERNAL_H
#define ACT_PLATFORM_AZUREML_INTERNAL_H

#include "arm/arm.h"
#include "auth/services.h"
#include "auth/token.h"
#include "engine/engine.h"
#include "http/http.h"
#include "platform/azureml/keys.h"
#include "platform/clusters.h"
#include "platform/platform_internal.h"

struct config_account;
struct config_docker;
struct config_folder;

/* The API version for virtual clusters; everything else uses the one in struct azureml. */
#define AZUREML_VIRTUAL_CLUSTER_VERSION "2021-03-01-preview"

enum azureml_kind { AZUREML_MANAGED, AZUREML_ITP, AZUREML_SINGULARITY };

struct azureml {
    struct platform base; /* the first member */
    enum azureml_kind kind;
    const struct config *config; /* the caller's */
    char *workspace;             /* "/subscriptions/.../workspaces/<name>", escaped */
    const char *api_version;

    /* opened by azureml_arm() */
    const struct auth_cloud *cloud;
    struct arm *arm;

    /* set on first use */
    json_t *workspace_response;
    char *history; /* base URL of the run history of this workspace */
    bool history_trusted, history_answered;
    struct act_strv history_failed; /* base URLs that turned out to be wrong */
    struct act_strv datastores;     /* known to exist: name and content */
    struct azureml_shape {
        int nodes, gpus; /* of each */
    } could_start;       /* the last run that the compute can start */
};

static inline struct azureml *azureml_of(struct platform *p)
{
    return (struct azureml *)p;
}

/* The client, opened on the first call. */
int azureml_arm(struct azureml *a, struct arm **out, struct act_error *err) ACT_NODISCARD;

/* The workspace as the service describes it, requested once; owned by the platform. */
int azureml_workspace(struct azureml *a, const json_t **out, struct act_error *err) ACT_NODISCARD;
/* The token with which a job may access the storage as its user; secret, valid until the loop continues. */
int azureml_user_token(struct azureml *a, const char **out, struct act_error *err) ACT_NODISCARD;
/* The base URL of its run history: as configured, as remembered from the last day, or as reported by the workspace;
 * owned by the platform. */
int azureml_history(struct azureml *a, const char **out, struct act_error *err) ACT_NODISCARD;
/* Returns the tenant of the workspace, as remembered with that URL; after azureml_arm(). New string; NULL: not
 * known. */
char *azureml_tenant(const struct azureml *a);
/* arm_do() for a request to the run history, after azureml_history(). If the host is unreachable or does not know the
 * workspace, this and all later requests go to the next one that the workspace names. */
int azureml_ask_history(struct azureml *a, struct arm_call *call, struct act_error *err) ACT_NODISCARD;
/* Pure parts of it: the base URL from the workspace's mlFlowTrackingUri ("azureml://<host>/mlflow/..."), from the
 * response of its discoveryUrl, from its region as the clouds name it. NULL: not available. New strings. */
char *azureml_tracking_history(const json_t *workspace);
char *azureml_discovered_history(const json_t *response);
char *azureml_region_history(const json_t *workspace, const struct auth_cloud *cloud);

/* Returns "<workspace><path>"; the parts of the formatted path must be escaped by the caller. New string. */
char *azureml_url(const struct azureml *a, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Gets what is at such a URL: *out is a new reference, NULL where nothing is. Takes url. */
int azureml_find(struct azureml *a, const char *what, char *url, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Calls each for every item of the list at such a URL, until it returns 1 or fails. Takes url. */
typedef int azureml_take_item(void *arg, const json_t *item, struct act_error *err);
int azureml_each(struct azureml *a, char *url, const char *what, azureml_take_item *each, void *arg,
                 struct act_error *err) ACT_NODISCARD;
/* Does the same for the nodes of the compute at such a URL. */
int azureml_each_node(struct azureml *a, const char *compute, const char *what, azureml_take_item *each, void *arg,
                      struct act_error *err) ACT_NODISCARD;
/* Returns a request that puts body to such a URL. Takes url, and body. */
struct arm_call azureml_put(const struct azureml *a, const char *what, char *url, json_t *body);

/* ---- job.c */

/* The address in the workspace of a mapped folder, the package, run.json or the agent. */
struct azureml_place {
    char *uri; /* "azureml://datastores/<name>/paths/<path>", or "https://..." with a signature */
};

/* What the body of a job contains besides the run itself. */
struct azureml_job_places {
    char *environment_id; /* ARM id of the version */
    char *compute_id;     /* NULL: serverless */
    struct azureml_place agent, package, spec;
    struct azureml_place *folders; /* spec->n_folders of them */
    char *ssh_key;                 /* public; NULL: no ssh to the nodes */
};

/* Checks whether the run can become a job. -ACT_CONFIG for invalid settings, and for folders and environment variables
 * that a job cannot have. */
int azureml_job_check(const struct azureml *a, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* The body of PUT .../jobs/<run id>. A new reference; errors as from azureml_job_check(). */
int azureml_job_body(const struct azureml *a, const struct run_spec *spec, const struct azureml_job_places *places,
                     json_t **out, struct act_error *err) ACT_NODISCARD;

/* Returns the variables that every job gets by default. A new reference. */
json_t *azureml_own_environment(const struct azureml *a, const struct run_spec *spec);

/* Returns the shell line that every process of the job runs: it starts the agent, which reads the command from
 * run.json. New string. */
char *azureml_job_command(const struct run_spec *spec);

/* Returns "PT72H" from "72h", "7d", "90m", "5400" (seconds), or unchanged if it is ISO 8601 already. NULL: it is
 * neither. */
char *azureml_iso_duration(const char *text);

/* ---- repeat.c */

/* Returns the body that resubmits another tool's job, spec->resubmit_of, as spec; response: the service's description
 * of that job. A new reference. */
json_t *azureml_repeated_body(const json_t *response, const struct run_spec *spec);

/* ---- state.c */

/* Returns the state for a word of the service; RUN_UNKNOWN: not a known word. */
enum run_state azureml_state_of(const char *word);
/* Returns "<history>/history/v1.0<workspace><path>", after azureml_history(). New string. */
char *azureml_history_url(struct azureml *a, const char *fmt, ...) ACT_PRINTF(2, 3);
/* The details of a run, and its job; NULL if the service does not know it. No request is made for an invalid run id.
 * New references. */
int azureml_details(struct azureml *a, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;
int azureml_job(struct azureml *a, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;

/* The status of a run, from its details, an item of a listing, or the properties of its job. */
void azureml_read_run(const json_t *run, struct run_status *out);
/* The status of a run from the history, else from its job. */
int azureml_status_of_one(struct azureml *a, const char *id, struct run_status *out,
                          struct act_error *err) ACT_NODISCARD;
/* The service's words for a state, as a filter for runs: "(Status eq Running) or ...". New string. */
char *azureml_state_filter(const struct azureml *a, enum run_state state);
/* Unix time of a member in ISO 8601; 0: none. */
int64_t azureml_time(const json_t *object, const char *key);
/* The run of a job. A job of another tool becomes a run of a shell with the job's command. */
int azureml_read_spec(const struct azureml *a, const char *id, const json_t *job, struct run_spec *out,
                      struct act_error *err) ACT_NODISCARD;

/* ---- cluster.c */

/* The compute of the cluster, or its virtual cluster, as the service describes it. A new reference. */
int azureml_compute(struct azureml *a, json_t **out, struct act_error *err) ACT_NODISCARD;
/* Returns the most GPUs that a quota of a virtual cluster allows this tier; -1: it tells none. */
int64_t azureml_tier_limit(const json_t *virtual_cluster, const char *tier);

/* ---- start.c */

/* Checks whether the compute could ever start such a run: else -ACT_NO_CAPACITY. Warns of what somebody may still
 * change. */
int azureml_check_start(struct azureml *a, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Returns why no run can use a compute, a new string; NULL: nothing is wrong. *out_passes: it may mend by itself. */
char *azureml_compute_fault(const struct azureml *a, const json_t *compute, bool *out_passes);
/* Asks the service, once, about a size of machines in a region. *out: a new reference; NULL: it does not know it. */
int azureml_vm_size(struct azureml *a, const char *location, const char *size, json_t **out,
                    struct act_error *err) ACT_NODISCARD;

/* ---- logs.c */
/* The number of the last "user_logs/retry_<n>/" among the logs of a run; 0: it was not started again. */
int azureml_last_retry(const json_t *details);
/* Returns the logs of a run, name -> URL, under the names that attempts have everywhere: those of the last one plain,
 * earlier ones below attempts/<n>/. Names that would escape a folder are left out. A new reference. */
json_t *azureml_log_files(const json_t *details);

/* ---- prepare.c */

/* Makes sure that the workspace has what a run needs, and returns its names there. */
int azureml_prepare(struct azureml *a, const struct platform_submission *submission, struct azureml_job_places *out,
                    struct act_error *err) ACT_NODISCARD;
char *azureml_compute_id(const struct azureml *a); /* NULL: serverless. New string */
void azureml_places_release(struct azureml_job_places *places, size_t n_folders);

/* ---- stores.c */

/* Checks whether the configuration's stores are valid, without contacting any host. -ACT_CONFIG. */
int azureml_check_stores(const struct azureml *a, struct act_error *err) ACT_NODISCARD;
/* Find where the mapped folders and the files of the run are. A datastore's name contains the account, the container
 * and a hash of its credential, so that a new key makes a new datastore. One named by the user is created if missing,
 * updated if ACT made it with another credential, and used as it is if somebody else made it; one that leads elsewhere
 * is -ACT_CONFIG. */
int azureml_find_folders(struct azureml *a, const struct run_spec *spec, struct azureml_job_places *out,
                         struct act_error *err) ACT_NODISCARD;
int azureml_find_files(struct azureml *a, const struct platform_submission *s, struct azureml_job_places *out,
                       struct act_error *err) ACT_NODISCARD;
/* Pure parts of it: the name of the datastore for a row of the configuration, given by the row or derived from its
 * content, a new string; and its body, a new reference. */
char *azureml_datastore_name(const struct config_folder *row, const struct config_account *account);
json_t *azureml_datastore_body(const struct config_folder *row, const struct config_account *account);

/* ---- image.c */

/* Checks whether the configuration's image and registry are valid, without contacting any host. -ACT_CONFIG. */
int azureml_check_image(const struct azureml *a, struct act_error *err) ACT_NODISCARD;
/* Find or create the connection to the registry, if there is a user for it, and the environment of the image. Each is
 * named by its content and created once. */
int azureml_connect_registry(struct azureml *a, struct act_error *err) ACT_NODISCARD;
int azureml_find_environment(struct azureml *a, struct azureml_job_places *out, struct act_error *err) ACT_NODISCARD;
/* Pure parts of it: the id of an environment that docker.image names instead of an image, else NULL, -ACT_CONFIG if it
 * is malformed; the URL of the registry. New strings. */
int azureml_environment_id(const struct azureml *a, char **out, struct act_error *err) ACT_NODISCARD;
char *azureml_registry_target(const struct config_docker *docker);

/* A short hash of text: for names, and to recognize what ACT once wrote. */
enum { AZUREML_MARK = 17 };
void azureml_mark(const char *text, char out[AZUREML_MARK]);

/* compute.c */
extern const struct platform_clusters_ops azureml_clusters;

/* The functions of platform.h: submit.c has check, submit, abort; state.c spec; runs.c status, recent, list; logs.c
 * open_logs; nodes.c nodes, shell; cluster.c summary, jobs. */
int azureml_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err);
int azureml_check(struct platform *p, const struct run_spec *spec, struct act_error *err);
int azureml_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err);
int azureml_remove(struct platform *p, const char *id, struct act_error *err);
void azureml_abort(struct platform *p, struct platform_end *ends, size_t n);
int azureml_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out, struct act_error *err);
int azureml_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
/* Calls each() with the run history's entry for each of these runs that it knows, 100 per request. */
int azureml_each_of(struct azureml *a, const char *const *ids, size_t n, void (*each)(void *arg, const json_t *run),
                    void *arg, struct act_error *err) ACT_NODISCARD;
int azureml_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                   struct act_error *err);
int azureml_list(struct platform *p, struct act_strv *out_ids, struct act_error *err);
struct store *azureml_open_logs(struct platform *p, const char *id, bool ended);
int azureml_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
int azureml_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                  struct platform_shell *out, struct act_error *err);
int azureml_summary(struct platform *p, struct platform_summary *out, struct act_error *err);
void azureml_examine(struct platform *p, struct platform_findings *findings);
int azureml_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err);

#endif
