/* prepare.c - what a job needs in the workspace before it can be made. */
#include <string.h>

#include "config/config.h"
#include "platform/azureml/azureml_internal.h"

/* ---- the compute ---- */

/* A name is a compute of the workspace; on singularity a virtual cluster of its resource group; an ARM id is itself. */
char *azureml_compute_id(const struct azureml *a)
{
    const char *target = a->config->compute_target;

    if (!target || !*target || *target == '/')
        return act_strdup(target && *target ? target : NULL);
    ACT_AUTOFREE char *name = http_encode(target, false);
    if (a->kind != AZUREML_SINGULARITY)
        return azureml_url(a, "/computes/%s", name);
    const char *end = strstr(a->workspace, "/workspaces/");
    return act_sprintf("%.*s/virtualclusters/%s", (int)(end - a->workspace), a->workspace, name);
}

/* ---- all of it ---- */

int azureml_prepare(struct azureml *a, const struct platform_submission *submission, struct azureml_job_places *out,
                    struct act_error *err)
{
    struct arm *arm;
    int rc = azureml_arm(a, &arm, err);

    *out = (struct azureml_job_places){.compute_id = azureml_compute_id(a)};
    if (rc == 0)
        rc = azureml_find_files(a, submission, out, err);
    if (rc == 0)
        rc = azureml_find_folders(a, submission->spec, out, err);
    if (rc == 0)
        rc = azureml_connect_registry(a, err);
    return rc < 0 ? rc : azureml_find_environment(a, out, err);
}

void azureml_places_release(struct azureml_job_places *places, size_t n_folders)
{
    for (size_t i = 0; places->folders && i < n_folders; i++)
        free(places->folders[i].uri);
    free(places->folders);
    free(places->environment_id);
    free(places->compute_id);
    free(places->agent.uri);
    free(places->package.uri);
    free(places->spec.uri);
    *places = (struct azureml_job_places){0};
}
