/* azureml_internal.h - for the files of Azure Machine Learning only: platform aml (managed clusters), itp (attached
 * Kubernetes) and singularity (virtual clusters).
 *
 *   azureml.c  what the platform can do; opening
 *   job.c      pure: a run to the body of a job, and a job back to a run
 *   prepare.c  what a job needs in the workspace, all of it
 *   stores.c   of that the datastores, and the URLs of files
 *   image.c    of that the environment of the image, and the connection to its registry
 *   repeat.c   pure: the body of another tool's job as one of a new job
 *   submit.c   submit, abort
 *   history.c  where the run history is, and asking it
 *   state.c    what the job and the run history say of a run
 *   runs.c     status of many runs, which runs there are
 *   logs.c     logs: which there are, and bytes of one
 *   fetch.c    many logs at once into files
 *   nodes.c    nodes, shell
 *   cluster.c  summary, jobs
 *   compute.c  the managed clusters themselves, see clusters.h
 *   examine.c  whether all is there that runs need
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
#include "platform/clusters.h"
#include "platform/platform_internal.h"

/* The API version for virtual clusters; everything else uses that of struct azureml. */
#define AZUREML_VIRTUAL_CLUSTER_VERSION "2021-03-01-preview"

enum azureml_kind { AZUREML_MANAGED, AZUREML_ITP, AZUREML_SINGULARITY };

/* Where the logs of one run can be read for a while; the URLs hold a signature. */
struct azureml_log_urls {
    char *id;
    json_t *files; /* name -> URL */
    int64_t read_ms;
    int64_t ended_unix_s; /* when the run ended; 0: it has not, or the service does not say */
};

struct azureml {
    struct platform base; /* the first member */
    enum azureml_kind kind;
    const struct config *config; /* the caller's */
    char *workspace;             /* "/subscriptions/.../workspaces/<name>", escaped */
    const char *api_version;

    struct services *services;

    /* opened by azureml_arm() */
    const struct auth_cloud *cloud;
    struct arm *arm;

    /* once somebody has asked for it */
    json_t *workspace_answer;
    char *history; /* base URL of the run history of this workspace */
    bool history_trusted, history_answered;
    struct act_strv history_failed; /* base URLs that were not it */
    struct act_strv datastores;     /* that are known to be there: name and content */
    struct azureml_log_urls logs;
};

static inline struct azureml *azureml_of(struct platform *p)
{
    return (struct azureml *)p;
}

/* The client, opened with the first call. */
int azureml_arm(struct azureml *a, struct arm **out, struct act_error *err) ACT_NODISCARD;

/* The workspace as the service describes it, asked for once; stays the platform's. */
int azureml_workspace(struct azureml *a, const json_t **out, struct act_error *err) ACT_NODISCARD;
/* The token by which a job may be its user to the storage; secret, valid until the loop goes on. */
int azureml_user_token(struct azureml *a, const char **out, struct act_error *err) ACT_NODISCARD;
/* The base URL of its run history: as it is set, as it was within the last day, or as the workspace says; stays the
 * platform's. */
int azureml_history(struct azureml *a, const char **out, struct act_error *err) ACT_NODISCARD;
/* The tenant of the workspace, as it was remembered with that, after azureml_arm(). New string; NULL: not known. */
char *azureml_tenant(const struct azureml *a);
/* arm_do() for a request to it, after azureml_history(). Where the host cannot be reached, or does not know the
 * workspace, it is asked of the next one that the workspace names, and so is everything later. */
int azureml_ask_history(struct azureml *a, struct arm_call *call, struct act_error *err) ACT_NODISCARD;
/* Pure parts of it: the base URL by the workspace's mlFlowTrackingUri ("azureml://<host>/mlflow/..."), by what its
 * discoveryUrl answers, by its region as the clouds name it. NULL: it is not said. New strings. */
char *azureml_tracking_history(const json_t *workspace);
char *azureml_discovered_history(const json_t *answer);
char *azureml_region_history(const json_t *workspace, const struct auth_cloud *cloud);

/* "<workspace><path>" with the formatted path, whose parts the caller has escaped. New string. */
char *azureml_url(const struct azureml *a, const char *fmt, ...) ACT_PRINTF(2, 3);

/* ---- job.c */

/* How a mapped folder, the package, run.json or the agent is known in the workspace. */
struct azureml_place {
    char *uri; /* "azureml://datastores/<name>/paths/<path>", or "https://..." with a signature */
};

/* What the body of a job says beyond the run itself. */
struct azureml_job_places {
    char *environment_id; /* ARM id of the version */
    char *compute_id;     /* NULL: serverless */
    struct azureml_place agent, package, spec;
    struct azureml_place *folders; /* of spec->n_folders */
    char *ssh_key;                 /* public; NULL: the nodes take no ssh */
};

/* Whether a job can be made of it. -ACT_CONFIG for what the configuration cannot mean, and for folders and environment
 * variables that a job cannot have. */
int azureml_job_check(const struct azureml *a, const struct run_spec *spec,
                      struct act_error *err) ACT_NODISCARD;

/* The body of PUT .../jobs/<run id>. A new reference; else what azureml_job_check() says. */
int azureml_job_body(const struct azureml *a, const struct run_spec *spec,
                     const struct azureml_job_places *places, json_t **out,
                     struct act_error *err) ACT_NODISCARD;

/* The variables that a job gets without anybody asking for them. A new reference. */
json_t *azureml_own_environment(const struct azureml *a, const struct run_spec *spec);

/* The shell line that every process of the job begins with: it starts the agent, which reads the command from run.json.
 * New string. */
char *azureml_job_command(const struct run_spec *spec);

/* "PT72H" from "72h", "7d", "90m", "5400" (seconds), or as it is when it is ISO 8601 already. NULL: it is neither. */
char *azureml_iso_duration(const char *text);

/* ---- repeat.c */

/* The body that makes the job of another tool again, spec->resubmit_of, as spec; from the answer that describes it. A
 * new reference. */
json_t *azureml_repeated_body(const json_t *answer, const struct run_spec *spec);

/* ---- state.c */

/* What a word of the service means; RUN_UNKNOWN: nothing known. */
enum run_state azureml_state_of(const char *word);
/* "<history>/history/v1.0<workspace><path>", once azureml_history() was asked. New string. */
char *azureml_history_url(struct azureml *a, const char *fmt, ...) ACT_PRINTF(2, 3);
/* The details of a run, and the job; NULL when the service does not know it. It is not asked for what is no run id. New
 * references. */
int azureml_details(struct azureml *a, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;
int azureml_job(struct azureml *a, const char *id, json_t **out, struct act_error *err) ACT_NODISCARD;

/* The status of a run, from its details, a line of a list, or the properties of its job. */
void azureml_read_run(const json_t *run, struct run_status *out);
/* Of a run as the history tells it, else as its job does. */
int azureml_status_of_one(struct azureml *a, const char *id, struct run_status *out,
                          struct act_error *err) ACT_NODISCARD;
/* The words of the service that are a state, as a filter for runs: "(Status eq Running) or ...". New string. */
char *azureml_state_filter(const struct azureml *a, enum run_state state);
/* Unix time of a member in ISO 8601; 0: it has none. */
int64_t azureml_time(const json_t *object, const char *key);
/* The run that a job is. One of another tool is a run of a shell that gets its command. */
int azureml_read_spec(const struct azureml *a, const char *id, const json_t *job, struct run_spec *out,
                      struct act_error *err) ACT_NODISCARD;

/* ---- cluster.c */

/* The compute of the cluster, as the service describes it. A new reference. */
int azureml_compute(struct azureml *a, json_t **out, struct act_error *err) ACT_NODISCARD;

/* ---- logs.c */
void azureml_close_logs(struct azureml *a);
/* The number of the last "user_logs/retry_<n>/" among the logs of a run; 0: it was not started again. */
int azureml_last_retry(const json_t *details);
/* The logs of a run, name -> URL, under the names that attempts have everywhere: those of the last one plain, earlier
 * ones below attempts/<n>/. Without names that would leave a folder. A new reference. */
json_t *azureml_log_files(const json_t *details);
/* Sees to it that the URLs of a run's logs are known; fresh: that they are new. */
int azureml_find_logs(struct azureml *a, const char *id, bool fresh, struct act_error *err) ACT_NODISCARD;
/* The URL of one of them, secret, valid until they are asked for again; NULL: there is no such log. */
const char *azureml_log_url(const struct azureml *a, const char *name);
/* Prepares the request for len bytes of a log, to data. */
void azureml_log_request(struct http_call *http, const char *url, const char *what, uint64_t offset,
                         void *data, size_t len);
/* How many bytes its answer brought: none of an empty log, of a range behind its end, and of one whose URL is no longer
 * good (403). */
int azureml_log_answer(const struct http_call *http, uint64_t offset, size_t *out_got,
                       struct act_error *err) ACT_NODISCARD;
/* The size of the log, as an answer says it; 0: it does not. */
uint64_t azureml_log_size(const struct http_call *http);
int azureml_log_denied(const char *what, struct act_error *err);

/* ---- prepare.c */

/* Sees to it that the workspace has what a run needs, and says what it is called there. */
int azureml_prepare(struct azureml *a, const struct platform_submission *submission,
                    struct azureml_job_places *out, struct act_error *err) ACT_NODISCARD;
char *azureml_compute_id(const struct azureml *a); /* NULL: serverless. New string */
void azureml_places_release(struct azureml_job_places *places, size_t n_folders);

/* ---- stores.c */

/* Whether what the configuration says of stores can be, without asking anybody. -ACT_CONFIG. */
int azureml_check_stores(const struct azureml *a, struct act_error *err) ACT_NODISCARD;
/* Where the mapped folders are, and the files of the run. A datastore has the account, the container and a hash of its
 * credential in its name, so that a new key makes a new one. One that the user named is made where it is missing,
 * written again where ACT made it with another credential, and used as it is where somebody else made it; one that
 * leads elsewhere is -ACT_CONFIG. */
int azureml_find_folders(struct azureml *a, const struct run_spec *spec, struct azureml_job_places *out,
                         struct act_error *err) ACT_NODISCARD;
int azureml_find_files(struct azureml *a, const struct platform_submission *s, struct azureml_job_places *out,
                       struct act_error *err) ACT_NODISCARD;
/* Pure parts of it. The datastore that stands for a row of the configuration, as its own name or its content says, a
 * new string; and its body, a new reference. */
char *azureml_datastore_name(const struct config_folder *row, const struct config_account *account);
json_t *azureml_datastore_body(const struct config_folder *row, const struct config_account *account);

/* ---- image.c */

/* Whether what the configuration says of the image and its registry can be, without asking anybody. -ACT_CONFIG. */
int azureml_check_image(const struct azureml *a, struct act_error *err) ACT_NODISCARD;
/* The connection to the registry, where there is a user for it; the environment of the image. Each is named by its
 * content and made once. */
int azureml_connect_registry(struct azureml *a, struct act_error *err) ACT_NODISCARD;
int azureml_find_environment(struct azureml *a, struct azureml_job_places *out,
                             struct act_error *err) ACT_NODISCARD;
/* Pure parts of it. The id of an environment that docker.image names instead of an image, else NULL; -ACT_CONFIG: it
 * would be one, but is none. The URL of the registry. New strings. */
int azureml_environment_id(const struct azureml *a, char **out, struct act_error *err) ACT_NODISCARD;
char *azureml_registry_target(const struct config_docker *docker);

/* What tells one content from another, short: in names, and where it is known what ACT once wrote. */
enum { AZUREML_MARK = 17 };
void azureml_mark(const char *text, char out[AZUREML_MARK]);

/* compute.c */
extern const struct platform_clusters_ops azureml_clusters;

/* The functions of platform.h: submit.c has check, submit, abort; state.c spec; runs.c status, recent, list; logs.c
 * logs, read_log; fetch.c fetch_logs; nodes.c nodes, shell; cluster.c summary, jobs. */
int azureml_check(struct platform *p, const struct run_spec *spec, struct act_error *err);
int azureml_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err);
int azureml_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err);
int azureml_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                   struct act_error *err);
int azureml_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
/* What the run history says of each of these runs that it knows, 100 in a request. */
int azureml_each_of(struct azureml *a, const char *const *ids, size_t n,
                    void (*each)(void *arg, const json_t *run), void *arg,
                    struct act_error *err) ACT_NODISCARD;
int azureml_recent(struct platform *p, const enum run_state *only, size_t max, struct platform_runs *out,
                   struct act_error *err);
int azureml_list(struct platform *p, struct act_strv *out_ids, struct act_error *err);
int azureml_logs(struct platform *p, const char *id, struct platform_logs *out, struct act_error *err);
int azureml_fetch_logs(struct platform *p, const char *id, const struct platform_fetch *fetch,
                       struct act_error *err);
int azureml_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                     size_t len, size_t *out_got, struct act_error *err);
int azureml_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
int azureml_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                  struct act_strv *out_argv, struct act_error *err);
int azureml_summary(struct platform *p, struct platform_summary *out, struct act_error *err);
void azureml_examine(struct platform *p, struct platform_findings *findings);
int azureml_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err);

#endif
