/* cluster.c - what a job file of Azure Batch AI asks of the cluster: the image, its registry, shared memory, time. */
#include <string.h>

#include "flow/jobfile/build.h"
#include "platform/azureml/azureml.h"

enum kind { ON_AZUREML, ON_SLURM, ON_MACHINE };

static enum kind kind_of(const struct config *config)
{
    static const char *const services[] = {"aml", "itp", "singularity"};

    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
        if (act_streq(config->platform, services[i]))
            return ON_AZUREML;
    return act_streq(config->platform, "slurm") ? ON_SLURM : ON_MACHINE;
}

bool job_is_on_azureml(const struct config *config)
{
    return kind_of(config) == ON_AZUREML;
}

static bool runs_images(const struct config *config)
{
    const char *container = config->slurm.container;

    return kind_of(config) == ON_AZUREML ||
           (kind_of(config) == ON_SLURM && container && strcmp(container, "none") != 0);
}

static void note(struct flow_job_file *job, const char *text)
{
    act_strv_push(&job->notes, text);
}

/* The host of docker.address, else what the name of the image says. New string; NULL: Docker Hub. */
static char *registry_of(const struct config_docker *docker)
{
    const char *scheme = docker->address ? strstr(docker->address, "://") : NULL;
    const char *host = scheme ? scheme + strlen("://") : docker->address;

    if (host && *host)
        return act_strndup(host, strcspn(host, "/"));
    return docker->image ? azureml_registry_of(docker->image) : NULL;
}

/* The cluster's registry is none for an image from elsewhere; what it says of the same registry holds. */
static void apply_registry(struct flow_job_file *job, struct config *config)
{
    struct config_docker *docker = &config->docker;
    ACT_AUTOFREE char *registry = registry_of(docker);

    if (kind_of(config) != ON_AZUREML) {
        if (job->password)
            note(job,
                 "containerSettings.imageSourceRegistry.credentials are not used: the nodes log in to the "
                 "registry as their own set-up says");
        return;
    }
    if (job->password || !act_streq(registry, job->registry)) {
        act_str_replace(&docker->address, job->registry);
        act_str_replace(&docker->username, job->username);
        act_str_replace(&docker->password, job->password);
    }
}

static void apply_image(struct flow_job_file *job, struct config *config)
{
    if (!job->image)
        return;
    if (!runs_images(config)) {
        act_strv_pushf(&job->notes, "the image '%s' is not used: cluster '%s' runs commands without one",
                       job->image, config->cluster);
        return;
    }
    if (!config_is_image(job->image)) {
        act_strv_pushf(&job->notes, "the image '%s' is not used: that is no name of an image", job->image);
        return;
    }
    apply_registry(job, config);
    act_str_replace(&config->docker.image, job->image);
}

static void apply_shm_size(struct flow_job_file *job, struct config *config)
{
    if (!job->shm_size)
        return;
    if (kind_of(config) == ON_AZUREML)
        act_str_replace(&config->azureml.shm_size, job->shm_size);
    else
        note(job, "containerSettings.shmSize is not used: processes have the /dev/shm of their node");
}

/* "3-00:00:00" */
static char *slurm_time(int64_t s)
{
    return act_sprintf("%lld-%02d:%02d:%02d", (long long)(s / 86400), (int)(s / 3600 % 24),
                       (int)(s / 60 % 60), (int)(s % 60));
}

int64_t flow_job_file_apply(struct flow_job_file *job, struct config *config)
{
    ACT_AUTOFREE char *iso = act_sprintf("PT%lldS", (long long)job->limit_s);
    ACT_AUTOFREE char *slurm = slurm_time(job->limit_s);

    apply_image(job, config);
    apply_shm_size(job, config);
    for (size_t i = 0; i < job->n_volumes; i++)
        config_add_folder(config, &job->volumes[i]);
    job->n_volumes = 0;
    if (!job->limit_s || kind_of(config) == ON_MACHINE)
        return job->limit_s;
    if (kind_of(config) == ON_AZUREML)
        act_str_replace(&config->azureml.timeout, iso);
    else
        act_str_replace(&config->slurm.time, slurm);
    return 0;
}
