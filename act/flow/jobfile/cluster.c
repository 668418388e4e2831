/* cluster.c - what a job file of Azure Batch AI asks of the cluster: the image, its registry, shared memory, time. */
#include <string.h>

#include "base/text.h"
#include "config/config.h"
#include "flow/jobfile/jobfile.h"
#include "platform/platform.h"

static bool runs_images(const struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    return row->runs_images && row->runs_images(config);
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
    return docker->image ? config_image_registry(docker->image) : NULL;
}

/* The cluster's credentials stay if the image is from its registry and the job file has none. */
static void apply_registry(struct flow_job_file *job, struct config *config)
{
    struct config_docker *docker = &config->docker;
    ACT_AUTOFREE char *registry = registry_of(docker);

    if (!platform_find(config->platform)->logs_in_to_registry) {
        if (job->password)
            note(job, "containerSettings.imageSourceRegistry.credentials are not used: the nodes log in to the "
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
        act_strv_pushf(&job->notes, "the image '%s' is not used: cluster '%s' runs commands without one", job->image,
                       config->cluster);
        return;
    }
    if (!config_is_image(job->image)) {
        act_strv_pushf(&job->notes, "the image '%s' is not used: that is not the name of an image", job->image);
        return;
    }
    apply_registry(job, config);
    act_str_replace(&config->docker.image, job->image);
}

static void apply_shm_size(struct flow_job_file *job, struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    if (!job->shm_size)
        return;
    if (row->set_shm_size)
        row->set_shm_size(config, job->shm_size);
    else
        note(job, "containerSettings.shmSize is not used: processes have the /dev/shm of their node");
}

int64_t flow_job_file_apply(struct flow_job_file *job, struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    apply_image(job, config);
    apply_shm_size(job, config);
    for (size_t i = 0; i < job->n_volumes; i++)
        config_add_folder(config, &job->volumes[i]);
    job->n_volumes = 0;
    if (!job->limit_s || !row->set_time_limit)
        return job->limit_s;
    row->set_time_limit(config, job->limit_s);
    return 0;
}
