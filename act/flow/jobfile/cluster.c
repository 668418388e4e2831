/* cluster.c - what a job file of Azure Batch AI asks of the cluster: the image, its registry, shared memory, time. */
#include <string.h>

#include "config/config.h"
#include "flow/jobfile/jobfile.h"

static bool runs_images(const struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    return row->settings.runs_images && row->settings.runs_images(config);
}

static void jobfile_cluster_note(struct flow_job_file *job, const char *text)
{
    act_strv_push(&job->notes, text);
}

/* Tells whether this command itself says what a member of the job file is about; then the job file does not count. */
static bool jobfile_cluster_is_said(struct flow_job_file *job, const struct config *config, const char *key,
                                    const char *member)
{
    if (!config_is_said(config, key))
        return false;
    act_strv_pushf(&job->notes, "%s is not used: this command itself gives '%s'", member, key);
    return true;
}

/* The host of docker.address, else what the name of the image says. New string; NULL: Docker Hub. */
static char *registry_of(struct config *config)
{
    const char *address = config->docker.address, *image = *platform_image(config);
    const char *scheme = address ? strstr(address, "://") : NULL;
    const char *host = scheme ? scheme + strlen("://") : address;

    if (host && *host)
        return act_strndup(host, strcspn(host, "/"));
    return image ? config_image_registry(image) : NULL;
}

/* The cluster's credentials stay if the image is from its registry and the job file has none. */
static void apply_registry(struct flow_job_file *job, struct config *config)
{
    struct config_docker *docker = &config->docker;
    ACT_AUTOFREE char *registry = registry_of(config);

    if (!platform_find(config->platform)->about.logs_in_to_registry) {
        if (job->password)
            jobfile_cluster_note(
                job, "containerSettings.imageSourceRegistry.credentials are not used: the nodes log in to the "
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
    if (platform_image_is_said(config)) {
        act_strv_pushf(&job->notes, "the image '%s' is not used: this command itself names '%s'", job->image,
                       *platform_image(config));
        return;
    }
    apply_registry(job, config);
    act_str_replace(platform_image(config), job->image);
}

static void apply_shm_size(struct flow_job_file *job, struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    if (!job->shm_size)
        return;
    if (!row->settings.shm_size.set)
        jobfile_cluster_note(job, "containerSettings.shmSize is not used: processes have the /dev/shm of their node");
    else if (!jobfile_cluster_is_said(job, config, row->settings.shm_size.key, "containerSettings.shmSize"))
        row->settings.shm_size.set(config, job->shm_size);
}

/* Returns what is left for the command itself. */
static int64_t apply_time_limit(struct flow_job_file *job, struct config *config)
{
    const struct platform_row *row = platform_find(config->platform);

    if (!job->limit_s || !row->settings.time_limit.set)
        return job->limit_s;
    if (!jobfile_cluster_is_said(job, config, row->settings.time_limit.key, "constraints.maxWallClockTime"))
        row->settings.time_limit.set(config, job->limit_s);
    return 0;
}

/* The run has the variables of the configuration already. */
static void drop_said(struct flow_job_file *job, const struct config *config, struct act_strv *pairs)
{
    struct act_strv kept = {0};

    for (size_t i = 0; i < pairs->n; i++) {
        ACT_AUTOFREE char *key = act_sprintf("env.%.*s", (int)strcspn(pairs->v[i], "="), pairs->v[i]);
        ACT_AUTOFREE char *member = act_sprintf("the variable '%s'", key + strlen("env."));
        if (!jobfile_cluster_is_said(job, config, key, member))
            act_strv_push(&kept, pairs->v[i]);
    }
    act_strv_release(pairs);
    *pairs = kept;
}

int64_t flow_job_file_apply(struct flow_job_file *job, struct config *config)
{
    apply_image(job, config);
    apply_shm_size(job, config);
    drop_said(job, config, &job->env);
    drop_said(job, config, &job->secrets);
    for (size_t i = 0; i < job->n_volumes; i++)
        config_add_folder(config, &job->volumes[i]);
    job->n_volumes = 0;
    return apply_time_limit(job, config);
}
