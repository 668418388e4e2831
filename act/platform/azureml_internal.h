/* azureml_internal.h - for the files of Azure Machine Learning only: platform aml (managed clusters), itp (attached
 * Kubernetes) and singularity (virtual clusters).
 *
 *   azureml.c          what the platform can do; opening
 *   azureml_job.c      pure: a run to the body of a job, and a job back to a run
 *   azureml_prepare.c  what a job needs in the workspace: datastores, the environment of the image
 *   azureml_submit.c   submit, abort
 *   azureml_state.c    status, by the job and the run history
 *   azureml_logs.c     logs
 *   azureml_cluster.c  nodes, shell, summary, jobs
 *
 * Source: learn.microsoft.com/rest/api/azureml; the version of each request is in the table of azureml.c.
 */
#ifndef ACT_PLATFORM_AZUREML_INTERNAL_H
#define ACT_PLATFORM_AZUREML_INTERNAL_H

#include "arm/arm.h"
#include "platform/platform_internal.h"

enum azureml_kind { AZUREML_MANAGED, AZUREML_ITP, AZUREML_SINGULARITY };

struct azureml {
    struct platform base; /* the first member */
    enum azureml_kind kind;
    const struct config *config; /* its own copy of the configuration */
    char *workspace;             /* "/subscriptions/.../workspaces/<name>", escaped */
    const char *api_version;

    /* opened by azureml_arm() */
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
    struct arm *arm;

    /* once somebody has asked for it */
    json_t *workspace_answer;
    char *history; /* base URL of the run history of this workspace, trusted */
};

static inline struct azureml *azureml_of(struct platform *p)
{
    return (struct azureml *)p;
}

/* The client, opened with the first call. */
int azureml_arm(struct azureml *a, struct arm **out, struct act_error *err) ACT_NODISCARD;

/* "<workspace><path>" with the formatted path, whose parts the caller has escaped. New string. */
char *azureml_url(const struct azureml *a, const char *fmt, ...) ACT_PRINTF(2, 3);

/* ---- azureml_job.c */

/* How a mapped folder, the package, run.json or the agent is known in the workspace. */
struct azureml_place {
    char *uri; /* "azureml://datastores/<name>/paths/<path>" */
};

/* What the body of a job says beyond the run itself. */
struct azureml_job_places {
    char *environment_id; /* ARM id of the version */
    char *compute_id;     /* NULL: serverless */
    struct azureml_place agent, package, spec;
    struct azureml_place *folders; /* of spec->n_folders */
};

/* The body of PUT .../jobs/<run id>. A new reference; -ACT_CONFIG for what the configuration cannot mean. */
int azureml_job_body(const struct azureml *a, const struct run_spec *spec,
                     const struct azureml_job_places *places, json_t **out,
                     struct act_error *err) ACT_NODISCARD;

/* The shell line that every process of the job begins with: it starts the agent, which reads the command from run.json.
 * New string. */
char *azureml_job_command(const struct run_spec *spec);

/* "PT72H" from "72h", "7d", "90m", "5400" (seconds), or as it is when it is ISO 8601 already. NULL: it is neither. */
char *azureml_iso_duration(const char *text);

#endif
